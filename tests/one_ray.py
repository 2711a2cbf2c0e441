"""One Ray for the tests on Ray of several files, which takes seconds to start.

The sessions of the tests of `FILES` use the Ray that Orion has started for `Keeper`. The tests of `ON_NODES` have a
session on nodes in common, with its workers (`nodes`). Both are ended before the next test that has another Ray, and at
the end.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from tests.ray_nodes import session_on

WORKERS = 2

FILES = {
    "test_array_repr", "test_counted_lists", "test_dynamic", "test_early_exits", "test_element_stores",
    "test_frontend_iterables", "test_frontend_lists", "test_frontend_tuples", "test_index_arrays",
    "test_inspected_loops", "test_keyed_random", "test_made_arrays", "test_mapped_keys", "test_matrices",
    "test_outside_arrays", "test_passes_array_names", "test_passes_options", "test_passes_picking",
    "test_passes_unpacking", "test_plan_together", "test_renaming", "test_returned_arrays", "test_runtime_rounds",
    "test_scans", "test_shuffle", "test_tsvc", "test_whole_functions",
}  # fmt: skip
"""Files whose tests on Ray begin sessions of at most so many workers, and look at nothing else of Ray."""

ON_NODES = {"test_applied_nodes", "test_buffers_nodes", "test_served_attack", "test_served_nodes"}
"""Files whose tests on Ray have the session `nodes`."""

CPUS = (2, 1)
"""Those of its nodes; the first is the driver's."""


class Keeper:
    """Stands for a session that holds no CPUs."""

    cluster_cpus = 0


_keeper = Keeper()
_on_nodes = ExitStack()
_sessions: list[Any] = []


def prepare_for(file: str) -> None:
    """Have the Ray run that tests of this file share, if any, and no other."""
    if file not in ON_NODES:
        leave_nodes()
    if file in FILES:
        keep()
    else:
        let_go()


def place_of(file: str) -> int:
    """Where tests of this file are among all: those that share a Ray follow each other, so that it is started once."""
    return 0 if file in FILES else 1 if file in ON_NODES else 2


def nodes() -> Any:
    """The session on nodes of tests of `ON_NODES`. It lasts until `prepare_for` others."""
    if not _sessions:
        _sessions.append(_on_nodes.enter_context(session_on(CPUS)))
    return _sessions[0]


def leave_nodes() -> None:
    """End that session, if there is one, and its cluster."""
    _sessions.clear()
    _on_nodes.close()


def keep() -> None:
    """Have Ray run until `let_go`."""
    from orion.runtime.ray.membership import membership

    membership.join(_keeper, None, WORKERS)


def let_go() -> None:
    """End it, if it runs."""
    if "orion.runtime.ray.membership" in sys.modules:
        sys.modules["orion.runtime.ray.membership"].membership.leave(_keeper)
