"""Ray clusters of several nodes on this machine, whose nodes talk through its loopback device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orion

STORE_BYTES = 80 * 1024**2

UNUSED = {"include_log_monitor": False, "no_monitor": True}
"""What Ray starts on the first node of a cluster and no test has a use for: who forwards logs to drivers, and who asks
for more machines. The two take a second of a core, and half of the time until a cluster is there."""

SOON = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
"""Settings (`_system_config`) of a Ray that sees a dead node after two seconds, not sixteen."""


def started_cluster(**head: Any) -> Any:
    """A Ray cluster that has one node, with these arguments of Ray; more may be added to it."""
    from ray.cluster_utils import Cluster

    return Cluster(initialize_head=True, head_node_args={**UNUSED, **head})


@contextmanager
def cluster_of(cpus: Sequence[int], store: int = STORE_BYTES) -> Iterator[str]:
    """The address of a cluster of nodes with so many CPUs, the first of which is the driver's."""
    import ray

    nodes = [{"num_cpus": count, "object_store_memory": store} for count in cpus]
    ray.shutdown()
    cluster = started_cluster(**nodes[0])
    try:
        for node in nodes[1:]:
            cluster.add_node(**node)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def session_on(cpus: Sequence[int], store: int = STORE_BYTES, **options: Any) -> Iterator[Any]:
    """A session of a worker for each CPU of such a cluster."""
    with (
        cluster_of(cpus, store) as address,
        orion.session("ray", sum(cpus), address=address, force_parallel=True, **options) as session,
    ):
        yield session
