"""Ray itself: joined where it runs, started where it does not, and ended where we started it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Event, Thread, current_thread, main_thread
from typing import Any

import ray

from orion.errors import ArgumentError, describe

OBJECT_STORE_BYTES = 100 * 1024**2
"""Ray's own store holds only what goes between nodes; partitions lie in memory of ours."""


def join_or_start(address: str | None, workers: int) -> bool:
    """Make Ray usable in this process. Returns whether it was started here, and is to be ended by us."""
    if address is not None and address.startswith("ray://"):
        hint = 'run the program on a node of the cluster, with address="auto"'
        raise ArgumentError(describe(f"address={address!r} is that of a Ray client, which shares no memory", hint=hint))
    if ray.is_initialized():
        return False
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is not None or "RAY_ADDRESS" in os.environ:
        try:
            ray.init(address=address, **quiet)
        except ConnectionError as error:
            what = f"no Ray cluster at address={address!r}"
            hint = "start one with `ray start --head`, or leave out `address` to start Ray in this process"
            raise ArgumentError(describe(what, why=str(error), hint=hint)) from error
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    start = partial(
        ray.init,
        address="local",
        num_cpus=workers,
        num_gpus=0,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES,
        **quiet,
    )
    _from_lasting_thread(start)
    return True


def _from_lasting_thread(start: Callable[[], object]) -> None:
    """Call a function that starts Ray from a thread that lasts as long as this process: the main one, or one that
    then only waits. On Linux, Ray's processes are killed as soon as the thread that started them ends.
    """
    if current_thread() is main_thread():
        start()
        return
    started: Future[None] = Future()

    def body() -> None:
        try:
            start()
        except BaseException as error:
            started.set_exception(error)
        else:
            started.set_result(None)
            Event().wait()

    Thread(target=body, name="orion-ray", daemon=True).start()
    started.result()


def cluster_cpus() -> int:
    """The number of CPUs of the cluster that this process has joined."""
    return int(ray.cluster_resources().get("CPU", 0))


def own_node() -> str:
    """The id of the node that this process is on."""
    return str(ray.get_runtime_context().get_node_id())


def start_actors(kind: type[Any], number: int, group: str, seconds: float, held: int) -> list[Any]:
    """Actors of a class, each with one CPU and a second thread for the calls of a concurrency group, once all
    have started. `held` are the CPUs that other sessions of this process hold meanwhile.

    `ArgumentError` where the cluster has not that many CPUs, or they are not free within `seconds`.
    """
    cpus = cluster_cpus()
    if cpus - held < number:
        others = f", the sessions around this one hold {held} of them" if held else ""
        raise _no_room(number, f"the cluster has {cpus} CPUs{others}, and each worker takes one")
    remote = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, concurrency_groups={group: 1})(kind)
    actors: list[Any] = []
    try:
        while len(actors) < number:
            actors.append(remote.remote())
        started = [actor.__ray_ready__.remote() for actor in actors]
        ready, late = ray.wait(started, num_returns=len(started), timeout=seconds)
        ray.get(ready)
        if late:
            why = f"{len(late)} did not start in {seconds:.0f} s: others use the cluster's {cluster_cpus()} CPUs"
            raise _no_room(number, why)
    except BaseException:
        kill_actors(actors)
        raise
    return actors


def _no_room(workers: int, why: str) -> ArgumentError:
    hint = "ask for fewer workers, or end what else uses the cluster"
    return ArgumentError(describe(f"no room for {workers} workers on Ray", why=why, hint=hint))


def nodes_of(actors: list[Any]) -> list[str]:
    """The id of the node that each actor is on."""
    return list(ray.get([actor.__ray_call__.remote(_node_id) for actor in actors]))


def _node_id(actor: Any) -> str:
    return own_node()


def connection() -> str:
    """What tells this process's present connection to a cluster from any other: actors last as long as it does."""
    return str(ray.get_runtime_context().get_worker_id())


def kill_actors(actors: list[Any]) -> None:
    """End actors at once, whatever they do. Those of an earlier connection have ended with it, and Ray does not
    know them any more.
    """
    for actor in actors if ray.is_initialized() else ():
        with suppress(Exception):
            ray.kill(actor, no_restart=True)


def is_running() -> bool:
    """Whether this process has joined a cluster."""
    return bool(ray.is_initialized())


def end_ray() -> None:
    """End Ray in this process, and its other processes where they were started here."""
    ray.shutdown()
