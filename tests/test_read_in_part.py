"""Large arrays that a loop only reads, by subscripts that are in other arrays: nodes are sent what their tiles read."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.plan import served
from orion.runtime.ray import announced
from orion.runtime.ray.announced import Announcers
from tests.oracles.interpreted import Order, kernel_code
from tests.oracles.nodes import Earlier, run_on_nodes

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(served, "SERVED_BYTES", 8)
    monkeypatch.setattr(announced, "PLACE_BYTES", 0)
    monkeypatch.setattr(announced, "BOX_BYTES", 0)


@orion.parallel_for
def product(indptr, indices, values, x, y):
    for i in range(y.shape[0]):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * x[indices[p]]
        y[i] = total


@orion.parallel_for
def rows_of_a_table(table, row, out):
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = table[row[i], k] + table[-1 - row[i], 0]


@orion.parallel_for
def columns_of_a_table(table, row, out):
    for i in range(out.shape[0]):
        out[i] = table[1, row[i]] + table[i % 2, row[i]]


@orion.parallel_for
def by_both_subscripts(table, row, other, out):
    for i in range(out.shape[0]):
        out[i] = table[row[i], other[i]]


@orion.parallel_for
def backwards(x, row, out):
    for i in range(out.shape[0] - 1, 1, -2):
        if row[i] % 3:
            out[i] = x[row[i] // 2]


@orion.parallel_for
def in_rounds(x, row, out, rounds):
    for r in range(rounds):
        for i in range(out.shape[0]):
            out[i] += x[row[i]] * r


@orion.parallel_for
def by_the_round(x, row, out):
    for r in range(row.shape[0]):
        for i in range(out.shape[0]):
            out[i] += x[row[r, i]]


@orion.parallel_for
def then_written(x, row, out):
    for i in range(out.shape[0]):
        out[i] = x[row[i]]
    for k in range(x.shape[0]):
        x[k] += 1.0
    for i in range(out.shape[0]):
        out[i] += x[row[i]]


@orion.parallel_for
def two_dimensions(x, row, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[row[i]] + x[row[j]]


@orion.parallel_for
def through_two(x, first, second, out):
    for i in range(out.shape[0]):
        out[i] = x[second[first[i]]]


N, M = 60, 2000


def given(function, seed):
    rng = np.random.default_rng(seed)
    row, other = rng.integers(0, N, N), rng.integers(0, M, N)
    x, table = rng.random(M), rng.random((M, 5))
    name = function.__wrapped__.__name__
    match name:
        case "product":
            indptr = np.append(0, np.cumsum(rng.integers(0, 6, N)))
            count = int(indptr[-1])
            return indptr, rng.integers(0, M, count), rng.random(count), x, np.zeros(N)
        case "rows_of_a_table":
            return table, row, np.zeros((N, 5))
        case "columns_of_a_table":
            return rng.random((2, M)), row, np.zeros(N)
        case "by_both_subscripts":
            return rng.random((N, M)), row, other, np.zeros(N)
        case "in_rounds":
            return x, row, np.zeros(N), 3
        case "by_the_round":
            return x, rng.integers(0, M, (3, N)), np.zeros(N)
        case "two_dimensions":
            return x, row, np.zeros((N, N))
        case "through_two":
            return x, row, rng.integers(0, M, N), np.zeros(N)
        case _:
            return x, row, np.zeros(N)


LOOPS = [
    product, rows_of_a_table, columns_of_a_table, by_both_subscripts, backwards, in_rounds, by_the_round, then_written,
    two_dimensions, through_two,
]  # fmt: skip


WHOLE = (by_the_round, in_rounds, two_dimensions)
"""Loops whose subscripts depend on the round, and those that run in another order: nodes have all that they read."""


def on_nodes(function, arguments, nodes, driver, earlier=None, announcers=None):
    """Run a function as nodes would that have nothing of arrays but what the exchange says; what was listed."""
    names = function.__wrapped__.__code__.co_varnames
    by_name = dict(zip(names, arguments, strict=False))
    prepared = function._preparations.plain.prepare(by_name, len(nodes), True)
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    local = prepared.local.take() if prepared.local.specs else {}
    reads = (announcers or Announcers()).reads(prepared.program, nodes, by_name)
    run_on_nodes(prepared.program, codes, {**by_name, **local}, Order(3), nodes, driver, earlier, reads=reads)
    return reads


@pytest.mark.parametrize("nodes", ["ab", "aab", "abc", "aabb"])
@pytest.mark.parametrize("function", LOOPS, ids=lambda one: one.__wrapped__.__name__)
def test_nodes_have_what_their_tiles_read(function, nodes):
    """And nothing else: what was not sent is no number."""
    arguments, expected = given(function, 1), given(function, 1)
    function.serial(*expected)
    reads = on_nodes(function, arguments, nodes, "a")
    for one, other in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert bool(reads) == (function not in WHOLE)


def test_what_has_not_changed_is_not_sent_again():
    arguments, earlier, announcers = given(product, 2), Earlier(), Announcers()
    indptr, indices, values, x, y = arguments
    on_nodes(product, arguments, "ab", "a", earlier, announcers)
    first = Counter(earlier.filled)
    assert 0 < first["values"] < len(values)
    assert 0 < first["x"] < len(x)
    on_nodes(product, arguments, "ab", "a", earlier, announcers)
    assert not +earlier.filled
    x += 1.0
    on_nodes(product, arguments, "ab", "a", earlier, announcers)
    assert +earlier.filled == {"x": first["x"]}
    indices[-10:] = (indices[-10:] + 7) % len(x)  # other subscripts: others are read
    on_nodes(product, arguments, "ab", "a", earlier, announcers)
    expected = [sum(values[p] * x[indices[p]] for p in range(indptr[i], indptr[i + 1])) for i in range(N)]
    np.testing.assert_allclose(y, expected)


def test_what_was_listed_is_the_same_value_until_subscripts_change():
    arguments, announcers = given(product, 2), Announcers()
    first = on_nodes(product, arguments, "ab", "a", None, announcers)
    arguments[3][:] = 1.0
    assert on_nodes(product, arguments, "ab", "a", None, announcers) is first
    arguments[1][0] = (arguments[1][0] + 1) % M
    assert on_nodes(product, arguments, "ab", "a", None, announcers) is not first


def test_boxes_are_ranges():
    indptr, row = np.arange(0, 241, 4), np.arange(240) // 3
    reads = on_nodes(product, (indptr, row, np.ones(240), np.ones(M), np.zeros(N)), "ab", "a")
    of = {one.array: one for one in reads[0]}
    assert len(of["values"].tile) == len(of["x"].tile) == len(np.unique(of["x"].tile))  # one for each tile
    np.testing.assert_array_equal(of["values"].high[:-1], of["values"].low[1:])


def test_too_many_ranges_are_the_whole_array(monkeypatch):
    monkeypatch.setattr(announced, "MOST_BOXES", 3)
    arguments, expected = given(through_two, 1), given(through_two, 1)
    through_two.serial(*expected)
    assert not on_nodes(through_two, arguments, "ab", "a")
    np.testing.assert_array_equal(arguments[-1], expected[-1])


def test_what_takes_as_many_bytes_to_be_told_of_is_sent_whole(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(served, "SERVED_BYTES", 8)
    rng = np.random.default_rng(4)
    indptr, out = np.arange(N + 1) * 50, np.zeros(N)
    indices, values = rng.integers(0, M, 50 * N), rng.random(50 * N)
    for x, some in ((np.ones(M), indices), (np.ones(M), indices // 40 * 40)):
        reads = on_nodes(product, (indptr, some, values, x, out), "ab", "a")
        assert {one.array for one in reads.get(0, ())} == {"values", "indices"}  # long ranges; not single elements of x


def test_a_subscript_that_leaves_its_array_lists_nothing():
    arguments = given(rows_of_a_table, 1)
    arguments[1][3] = M
    names = ("table", "row", "out")
    by_name = dict(zip(names, arguments, strict=True))
    prepared = rows_of_a_table._preparations.plain.prepare(by_name, 2, True)
    assert not Announcers().reads(prepared.program, "ab", by_name)


def test_the_plan_says_what_is_read_in_part():
    arguments = given(product, 1)
    with orion.session("threads", 2, force_parallel=True):
        plan = product.plan(*arguments)
    assert [(one.array, one.announcer.lists.reads) for one in plan.only.read_in_part] == [
        ("values", ("indptr",)), ("indices", ("indptr",)), ("x", ("indptr", "indices")),
    ]  # fmt: skip
    assert "x read by every worker" in " ".join(str(plan).split())
    on_nodes = replace(plan, function=replace(plan.function, is_apart=True))  # as in a session on Ray
    assert "each node has what its tiles read, as `indptr` and `indices` say" in " ".join(str(on_nodes).split())
    assert plan.to_dict()["loops"][0]["read_in_part"][0] == {"array": "values", "by": ["indptr"]}
