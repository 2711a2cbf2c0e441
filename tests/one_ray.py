"""One Ray for the tests on Ray of several files, which takes seconds to start.

The sessions of the tests of `FILES` use the Ray that Orion has started for `Keeper`, and those that ask for nothing but
two workers have these in common (`Lasting`): each worker takes two seconds of a core to start. The tests of `ON_NODES`
have a session on nodes in common (`nodes`). Both are ended before the next test that has another Ray, and at the end.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from orion.runtime import session as sessions
from orion.runtime.session import Settings
from tests.ray_nodes import session_on

WORKERS = 2

FILES = {
    "test_array_repr", "test_buffers_ray", "test_checkpoints", "test_counted_lists", "test_dynamic",
    "test_early_exits", "test_element_stores", "test_examples_bpr", "test_examples_gbt", "test_examples_lda",
    "test_examples_lda_gibbs", "test_examples_sgd_mf", "test_examples_slr", "test_examples_sparse",
    "test_examples_tensor", "test_examples_word2vec", "test_frontend_iterables", "test_frontend_lists",
    "test_frontend_tuples", "test_index_arrays", "test_inspected_loops", "test_keyed_random", "test_made_arrays",
    "test_mapped_keys", "test_matrices", "test_outside_arrays", "test_passes_array_names", "test_passes_options",
    "test_passes_picking", "test_passes_unpacking", "test_plan_together", "test_renaming", "test_returned_arrays",
    "test_runtime_ray_versions", "test_followed", "test_scans", "test_shuffle", "test_tsvc",
    "test_verify_call", "test_whole_functions",
}  # fmt: skip
"""Files whose tests on Ray begin sessions of at most so many workers, and look at nothing else of Ray."""

ON_NODES = {"test_applied_nodes", "test_buffers_nodes", "test_served_attack", "test_served_nodes", "test_shuffle_ahead"}
"""Files whose tests on Ray have the session `nodes`."""

CPUS = (2, 1)
"""Those of its nodes; the first is the driver's."""


class Keeper:
    """Stands for a session that holds no CPUs."""

    cluster_cpus = 0


class Lasting:
    """The backend of sessions of two workers on Ray, whose workers stay when a session ends."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def close(self) -> None:
        """As far as sessions are concerned."""


_keeper = Keeper()
_patches = pytest.MonkeyPatch()
_lasting: list[Lasting] = []
_make_backend = sessions._make_backend
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
    _patches.setattr(sessions, "_make_backend", backend_for)


def backend_for(settings: Settings) -> Any:
    """The backend of a session: that of all that have two workers on Ray, and else are as by default. Other workers on
    Ray take the place of these."""
    if settings.backend != "ray":
        return _make_backend(settings)
    if replace(settings, force_parallel=False) != Settings("ray", WORKERS, None, False):
        _end_lasting()
        return _make_backend(settings)
    if not _lasting:
        _lasting.append(Lasting(_make_backend(settings)))
    return _lasting[0]


def _end_lasting() -> None:
    for one in _lasting:
        one.backend.close()
    _lasting.clear()


def let_go() -> None:
    """End it, if it runs."""
    _patches.undo()
    _end_lasting()
    if "orion.runtime.ray.membership" in sys.modules:
        sys.modules["orion.runtime.ray.membership"].membership.leave(_keeper)
