"""Loops that an inspection cut into lists of iterations, on nodes that share nothing but messages: Python's results,
whatever comes when; each node is sent the elements that its tiles touch, and no more."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import orion
from orion.plan.plan import Inspected
from orion.runtime.ray.exchange import program_exchange
from orion.runtime.ray.regions import Scattered
from tests.oracles.interpreted import Order
from tests.oracles.nest_check import kernel_code
from tests.oracles.nodes import Earlier, run_on_nodes
from tests.test_inspected_loops import OTHERWISE, SIGNATURE, TEXTS, UNORDERED, given, written
from tests.test_runtime_exchange import NODES, dense_of, prepared

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

NAMES = tuple(name.strip() for name in SIGNATURE.split(","))

ROWS = ("rows as a whole", "an array that is filled anew")
"""Loops whose kernels keep rows in vector registers, which the interpreter has not: they run in `make cluster`."""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Calls look as soon as they find the contents of one before."""
    monkeypatch.setattr("orion.inspecting.LOOK_AFTER_NS", 0.0)


@pytest.fixture
def many_tiles(monkeypatch):
    """Short loops are cut into many tiles."""
    for name, value in {
        "LEAST_PIECE": 2,
        "LONGEST_PIECE": 5,
        "LEAST_AVERAGE": 1,
        "TILE_NS": 1.0,
        "WAIT_NS": 1.0,
    }.items():
        monkeypatch.setattr(f"orion.kernel.inspector.inspect.{name}", value)


def found_for(function, arguments, workers):
    """The function prepared for arguments that calls before have found as they are."""
    prepared(function, arguments, workers)
    return prepared(function, arguments, workers)


def exchange_of(found, arguments, nodes):
    shapes = {key: value.shape for key, value in {**dense_of(arguments), **found.local.take()}.items()}
    return program_exchange(found.program.loops, found.program.known, nodes, shapes)


def run(found, arguments, nodes, order, earlier=None):
    codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
    own = {**arguments, **found.local.take()}
    return run_on_nodes(found.program, codes, own, order, nodes, nodes[0], earlier)[0]


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in ROWS])
def test_results_are_pythons(name, many_tiles):
    function, sizes = orion.parallel_for(written(TEXTS[name])), []
    for seed, nodes in enumerate(NODES.values()):
        arguments, expected = (dict(zip(NAMES, given(seed), strict=True)) for _ in range(2))
        found = found_for(function, arguments, len(nodes))
        sizes += [loop.schedule.tiles for loop in found.program.loops if isinstance(loop.plan.tiles, Inspected)]
        wanted = written(TEXTS[name])(**expected)
        for order in range(2):
            own = copy.deepcopy(arguments)
            np.testing.assert_equal(run(found, own, nodes, Order(order)), wanted)
            for key in NAMES:
                np.testing.assert_array_equal(own[key], expected[key], key)
    assert sum(sizes) >= 2 * len(sizes) > 0 or name in OTHERWISE


@pytest.mark.parametrize("name", UNORDERED)
def test_loops_in_any_order_give_the_bits_of_one_worker(name, many_tiles):
    function = orion.parallel_for(ordered=False)(written(TEXTS[name]))
    for seed, nodes in enumerate(NODES.values()):
        arguments = dict(zip(NAMES, given(seed), strict=True))
        found = found_for(function, arguments, len(nodes))
        alone, shared = copy.deepcopy(arguments), copy.deepcopy(arguments)
        run(found, alone, "a" * len(nodes), Order(0))
        run(found, shared, nodes, Order(seed))
        for key in NAMES:
            np.testing.assert_array_equal(shared[key], alone[key], key)


def test_nodes_are_sent_the_elements_that_their_tiles_touch():
    def scatter(x, to, y):
        for k in range(len(to)):
            x[to[k]] = x[to[k]] * 0.5 + y[k]

    rng, n = np.random.default_rng(2), 4000
    arguments = {"x": rng.random(n), "to": rng.integers(0, n, n), "y": rng.random(n)}
    found = found_for(orion.parallel_for(scatter), arguments, 4)
    (loop,) = found.program.loops
    exchange = exchange_of(found, arguments, "aabb")
    inspection, cells = loop.plan.tiles.inspection, exchange.cells["x"]
    assert exchange.loops[0].why_at_home is None
    tile_of = np.empty(n, np.int64)
    tile_of[inspection.order] = np.repeat(np.arange(inspection.tiles), np.diff(inspection.offsets))
    for number in range(2):
        here = np.isin(loop.schedule.owner[tile_of], [2 * number, 2 * number + 1])
        first = np.zeros(n, bool)
        for region in cells.regions(exchange.loops[0].usage["x"].first[number]):
            region.put(first, True)
        touched = np.zeros(n, bool)
        touched[arguments["to"][here]] = True
        assert not (first & ~touched).any()
        assert (first | ~touched)[_written_by_one(arguments["to"], here)].all()
    sections = cells.regions(exchange.needed("x")[1])
    assert any(isinstance(one, Scattered) for one in sections)
    earlier = Earlier()
    own = copy.deepcopy(arguments)
    run(found, own, "aabb", Order(1), earlier)
    scatter(**arguments)
    np.testing.assert_array_equal(own["x"], arguments["x"])
    assert earlier.filled["x"] < 0.8 * n


def _written_by_one(to, here):
    """The elements that only iterations of a node, or only those of others, touch."""
    return np.setdiff1d(np.arange(here.size), np.intersect1d(to[here], to[~here]))
