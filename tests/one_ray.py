"""One Ray for the tests on Ray of several files, which takes seconds to start.

The sessions of these tests use the Ray that Orion has started for `Keeper`, which ends it before the next test that has
a Ray of its own, and at the end.
"""

from __future__ import annotations

import sys

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


class Keeper:
    """Stands for a session that holds no CPUs."""

    cluster_cpus = 0


_keeper = Keeper()


def keep() -> None:
    """Have Ray run until `let_go`."""
    from orion.runtime.ray.membership import membership

    membership.join(_keeper, None, WORKERS)


def let_go() -> None:
    """End it, if it runs."""
    if "orion.runtime.ray.membership" in sys.modules:
        sys.modules["orion.runtime.ray.membership"].membership.leave(_keeper)
