"""Arrays with buffers that nodes do not have whole: what tiles announce, and which node is told of which rows."""

import numpy as np
import pytest

import orion
from orion.plan import served
from orion.runtime.ray.announced import Announced, Announcers
from orion.runtime.ray.carried import told_announced
from orion.runtime.ray.exchange import program_exchange
from tests.test_buffers import parallel_slr, slr

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

ROWS = 400
"""Rows of the arrays here; a test sees to it that they are large enough to be served."""


@pytest.fixture(autouse=True)
def small_ones_are_served(monkeypatch):
    monkeypatch.setattr(served, "SERVED_BYTES", 8)


@orion.parallel_for
def added(row, w, late):
    for i in range(row.shape[0]):
        late[row[i]] += 1.0


@orion.parallel_for
def by_steps(row, w, late):
    for i in range(3, row.shape[0] - 2, 4):
        late[row[i]] += w[row[i + 1]]


@orion.parallel_for
def from_the_end(row, w, late):
    for i in range(row.shape[0] - 1, -1, -1):
        late[-row[i] - 1] += 1.0


@orion.parallel_for
def by_ranges(row, w, late):
    for i in range(row.shape[0] // 2):
        z = 0.0
        for p in range(row[i] // 9, row[i] // 9 + i % 5):
            z += w[row[p]]
        if z > 0.5:
            late[row[i] // 2] += z


@orion.parallel_for
def of_rows(row, w, late):
    for i in range(row.shape[0]):
        late[row[i], :] += w[(row[i] * 7) % w.shape[0], 0]


@orion.parallel_for
def of_some_elements(row, w, late):
    for i in range(row.shape[0]):
        late[row[i], i % 3] += w[row[i], 1]


@orion.parallel_for
def under_a_condition(row, w, late):
    half = row.shape[0] // 2
    for i in range(row.shape[0]):
        if row[i] < half:
            late[row[i]] += 1.0
        elif w[0] > 2.0:
            late[row[i] - half] += 1.0


def touched(function, row, w, leading, first, count):
    """The rows, by so many leading subscripts, that iterations `first` to `first + count` touch, as the undecorated
    function shows it."""
    found = set()

    class Watched:
        shape = w.shape

        def __getitem__(self, index):
            found.add(_row(index, w, leading))
            return w[index]

        def __setitem__(self, index, value):
            found.add(_row(index, w, leading))

    class Some:
        """The first iterations of a range do nothing, nor do those after the last."""

        def __call__(self, *bounds):
            if self.is_used:
                return range(*bounds)
            self.is_used = True
            return range(*bounds)[first : first + count]

        is_used = False

    plain = function.__wrapped__
    code = type(plain)(plain.__code__, {**plain.__globals__, "range": Some()})
    code(row, Watched(), Watched())
    return found


def _row(index, w, leading):
    index = index if isinstance(index, tuple) else (index,)
    places = [int(at) % extent for at, extent in zip(index[:leading], w.shape, strict=False)]
    return int(np.ravel_multi_index(places, w.shape[:leading]))


def announcements(prepared, exchange, arguments, announcers=None):
    announcers = announcers or Announcers()
    announcers.reads(prepared, "aab", arguments)
    return announcers.of(prepared, exchange, arguments)


def announced_of(function, row, w, nodes=("a", "a", "b")):
    late = orion.buffer(w, max_delay=100)
    given = row, w, late
    with orion.session("threads", len(nodes), force_parallel=True):
        function(*given)
        prepared = function._ran.prepared.program
    arguments = {"row": row, "w": w, "late": np.zeros_like(w)}
    shapes = {name: value.shape for name, value in arguments.items()}
    exchange = program_exchange(prepared.loops, prepared.known, nodes, shapes)
    return prepared, exchange, announcements(prepared, exchange, arguments)


LOOPS = [added, by_steps, from_the_end, by_ranges, of_rows, of_some_elements, under_a_condition]


@pytest.mark.parametrize("function", LOOPS, ids=lambda one: one.__wrapped__.__name__)
def test_tiles_announce_all_that_they_touch_in_the_order_in_which_they_need_it(function):
    row = np.random.default_rng(5).integers(0, ROWS, ROWS)
    w = np.ones((ROWS, 3)) if function in (of_rows, of_some_elements) else np.ones(ROWS)
    prepared, exchange, (announced,) = announced_of(function, row, w)
    (loop,) = prepared.loops
    leading = 2 if function is of_some_elements else 1
    assert announced.count == np.prod(w.shape[:leading])
    counts = np.diff(loop.schedule.bounds[0])
    firsts = loop.schedule.bounds[0] - loop.schedule.bounds[0][0]
    for node in (0, 1):
        rows = announced.rows[node].tolist()
        assert len({*rows}) == len(rows)
        tiles = [t for w, place in enumerate(exchange.place) if place == node for t in loop.schedule.order[w]]
        own = {tile: touched(function, row, w, leading, int(firsts[tile]), int(counts[tile])) for tile in tiles}
        sure = set().union(*own.values())
        assert sure <= {*rows}
        if function not in (by_ranges, under_a_condition):  # both sides of conditions on values are listed
            assert sure == {*rows}
        for tile, part in own.items():
            if node:
                assert part <= {*rows[: announced.need[tile]]}
            else:
                assert announced.need[tile] == 0


@orion.parallel_for
def by_the_array_itself(row, w, late):
    for i in range(row.shape[0]):
        late[int(w[row[i]])] += 1.0


@orion.parallel_for
def by_what_it_writes(row, w, late, own):
    for i in range(row.shape[0]):
        own[i] = row[i]
        late[own[i]] += 1.0


@orion.parallel_for
def affine(row, w, late):
    for i in range(row.shape[0]):
        late[i // 2] += row[i]


@orion.parallel_for
def as_a_whole(row, w, late):
    for i in range(row.shape[0]):
        late[row[i]] += w.sum()


@pytest.mark.parametrize("function", [by_the_array_itself, by_what_it_writes, affine, as_a_whole])
def test_what_nobody_can_announce_nodes_have_whole(function):
    row, w = np.arange(ROWS), np.zeros(ROWS)
    given = row, w, orion.buffer(w, max_delay=100), *([np.zeros_like(row)] if function is by_what_it_writes else [])
    with orion.session("threads", 2, force_parallel=True):
        plan = function.plan(*given)
        assert plan.strategy == "relaxed"
        assert plan.only.served == ()
        function(*given)


def test_small_arrays_are_not_served(monkeypatch):
    monkeypatch.setattr(served, "SERVED_BYTES", 8 * ROWS + 1)
    row, w = np.arange(ROWS), np.zeros(ROWS)
    with orion.session("threads", 2, force_parallel=True):
        assert added.plan(row, w, orion.buffer(w, max_delay=100)).only.served == ()


def test_functions_that_are_no_sums_are_not_served():
    row, w = np.arange(ROWS), np.zeros(ROWS)
    with orion.session("threads", 2, force_parallel=True):
        for more in ({"apply": lambda value, update: value + update}, {"deterministic": True}):
            assert added.plan(row, w, orion.buffer(w, max_delay=100, **more)).only.served == ()


def test_a_subscript_that_leaves_its_array_announces_everything():
    """The loop itself says where it is."""
    row, w = np.arange(ROWS), np.zeros(ROWS)
    prepared, exchange, _ = announced_of(added, row, w)
    row[7] = ROWS
    arguments = {"row": row, "w": w, "late": np.zeros_like(w)}
    (announced,) = announcements(prepared, exchange, arguments)
    np.testing.assert_array_equal(announced.rows[1], np.arange(ROWS))


def test_what_was_announced_is_kept_until_subscripts_change():
    row, w = np.arange(ROWS), np.zeros(ROWS)
    prepared, exchange, _ = announced_of(added, row, w)
    arguments = {"row": row, "w": w, "late": np.zeros_like(w)}
    announcers = Announcers()
    first = announcements(prepared, exchange, arguments, announcers)
    w[:] = 7
    assert announcements(prepared, exchange, arguments, announcers) is first
    row[3] = 0
    again = announcements(prepared, exchange, arguments, announcers)
    assert again is not first
    assert announcements(prepared, exchange, arguments, announcers) is again


@pytest.mark.parametrize("seed", range(20))
def test_who_touches_a_row_is_told_of_it_and_nobody_else_but_the_home_node(seed):
    rng, count = np.random.default_rng(seed), 50
    nodes = ("home", "b", "c", "d")[: rng.integers(2, 5)]
    rows = tuple(rng.permutation(count)[: rng.integers(0, count)].astype(np.int32) for _ in nodes)
    all_told = [told_announced(Announced(0, 0, count, rows, np.zeros(1)), nodes, own) for own in range(len(nodes))]
    for own, told in enumerate(all_told):
        np.testing.assert_array_equal(told.fetches, rows[own] if own else [])
        assert {*told.wanted} == {*nodes} - {nodes[own]}
        for other, node in enumerate(nodes):
            if other == own:
                continue
            is_told = {*told.rows[told.wanted[node]].tolist()}
            both = {*rows[own].tolist()} & {*rows[other].tolist()}
            if other:
                assert is_told == both
            else:  # home learns of what several others touch as it happens, and of the rest at the end
                others = set().union(*(rows[k].tolist() for k in range(len(nodes)) if k != own))
                assert is_told == {*rows[own].tolist()} & others
                assert is_told | {*told.last.tolist()} == {*rows[own].tolist()}
                assert is_told.isdisjoint(told.last.tolist())
    np.testing.assert_array_equal(
        np.concatenate([all_told[0].given[node] for node in nodes[1:]]), np.concatenate(rows[1:])
    )


def test_the_plan_says_what_is_served_and_by_what():
    row, w = np.arange(ROWS), np.zeros(ROWS)
    with orion.session("threads", 2, force_parallel=True):
        plan = added.plan(row, w, orion.buffer(w, max_delay=100))
    (one,) = plan.only.served
    assert (one.array, one.count) == ("w", ROWS)
    text = " ".join(str(plan).split())
    assert "on other nodes rows that tiles announce by `row` are there before these" in text
    (placement,) = (one for one in plan.only.placements if one.array == "w")
    assert placement.kind == "served"
    assert plan.to_dict()["loops"][0]["relaxed"]["served"] == [{"array": "w", "by": ["row"]}]


def test_threads_do_as_before():
    rng = np.random.default_rng(1)
    indptr, indices = np.arange(201) * 5, rng.integers(0, ROWS, 1000)
    values, labels, w, expected = rng.random(1000), (rng.random(200) < 0.5) * 1.0, np.zeros(ROWS), np.zeros(ROWS)
    parallel_slr(indptr, indices, values, labels, w, orion.buffer(w, max_delay=0), 0.1)
    slr(indptr, indices, values, labels, expected, orion.buffer(expected), 0.1)
    np.testing.assert_allclose(w, expected)
