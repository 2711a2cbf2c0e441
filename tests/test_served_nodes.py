"""Arrays with buffers that are served, on several nodes: these fetch what their tiles announce, and no more."""

import warnings
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest

import orion
from tests import one_ray
from tests.dying import kill_in_the_middle
from tests.oracles.buffered_loops import BufferedLoop
from tests.served_ones import served_from
from tests.test_buffers import count, latest, look, loss, parallel_slr, samples, slowly, slr
from tests.trials import one_in, times

pytestmark = [
    pytest.mark.all(
        "test_nodes_fetch_what_their_tiles_touch_and_all_updates_are_there",
        "test_no_update_is_later_than_was_said",
        "test_hardly_any_iterations",
        "test_subscripts_that_leave_the_array_are_told_of_as_ever",
        "test_infinite_values_and_zeros_with_a_sign_stay_so",
        "test_updates_that_are_no_numbers_leave_all_as_it_was",
        "test_training_and_evaluation_in_turns",
    ),
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning"),
]

LARGE = 200_000
"""Elements of eight bytes of an array that is served."""


@pytest.fixture
def nodes():
    """Two nodes, the driver's with two workers, the other with one."""
    return one_ray.nodes()


@pytest.fixture
def small_ones():
    """Small arrays are served too."""
    with served_from(0, count, look, parallel_slr, slowly):
        yield


@orion.parallel_for
def added(row, data, late):
    for i in range(row.shape[0]):
        late[row[i]] += data[i]


@orion.parallel_for
def add_rows(row, data, late):
    for i in range(row.shape[0]):
        late[row[i], :] += data[i]


@orion.parallel_for
def add_planes(row, data, late):
    for i in range(row.shape[0]):
        late[row[i], 1, :] += data[i]
        late[row[i], i % 2, 2] -= 1.0


@orion.parallel_for
def seen_and_added(row, other, data, u, w, late):
    for i in range(row.shape[0]):
        data[i] = w[row[i]] + u[other[i]]
        late[row[i]] += 1.0


@orion.parallel_for
def then_read(row, data, w, late, out):
    for i in range(row.shape[0]):
        late[row[i]] += data[i]
    for k in range(out.shape[0]):
        out[k] = w[k] + 1.0
    for i in range(row.shape[0]):
        late[row[i]] += data[i]


@orion.parallel_for
def in_rounds(row, data, w, late, out, rounds):
    for r in range(rounds):
        for i in range(row.shape[0]):
            late[row[i]] += data[i]
        out[r] = w[row[0]]


def rows_of(function, row, worker=2):
    """The distinct rows that a worker's tiles touch."""
    schedule = function.last_run.plan.schedule()
    edges = schedule.bounds[0]
    own = np.concatenate([row[edges[t] : edges[t + 1]] for t in schedule.order[worker]])
    return np.unique(own)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint32", "int16"])
@pytest.mark.parametrize("made", [np.zeros, orion.zeros])
def test_nodes_fetch_what_their_tiles_touch_and_all_updates_are_there(made, dtype, nodes):
    rng, size = np.random.default_rng(1), LARGE * 8 // np.dtype(dtype).itemsize
    row, data, w = rng.integers(0, size, 5000), rng.integers(1, 9, 5000).astype(dtype), made(size, dtype)
    expected = np.zeros(size, dtype)
    for _ in range(2):
        added(row, data, orion.buffer(w, max_delay=200))
        np.add.at(expected, row, data)
        np.testing.assert_array_equal(np.asarray(w), expected)
        (fetched,) = added.last_run.fetched
        assert fetched.rows == len(rows_of(added, row))
        assert fetched.bytes == fetched.rows * np.dtype(dtype).itemsize
        assert 1 <= fetched.messages <= 3
        assert fetched.waited >= 0
        assert fetched.seconds > 0
        assert fetched.hidden <= 1


def test_a_row_that_one_node_touches_is_told_of_once(nodes):
    """Rows of the two halves of the loop are others, so that nobody is told of any while it runs."""
    n = 4000
    row, data, w = np.arange(n) * 50, np.ones(n), np.zeros(LARGE)
    added(row, data, orion.buffer(w, max_delay=20))
    np.testing.assert_array_equal(w, np.bincount(row, minlength=LARGE))
    here, there = added.last_run.sent
    assert here.rows == 0
    assert there.rows == len(rows_of(added, row))
    assert there.flushes > 10  # clocks go all the same


@pytest.mark.parametrize("function", [add_rows, add_planes])
def test_rows_of_arrays_of_several_dimensions(function, nodes):
    rng = np.random.default_rng(2)
    shape = (30_000, 6) if function is add_rows else (20_000, 2, 5)
    row, data, w, expected = (
        rng.integers(0, shape[0], 3000),
        rng.integers(0, 9, 3000) * 1.0,
        np.ones(shape),
        np.ones(shape),
    )
    function(row, data, orion.buffer(w, max_delay=60, send=orion.pacing(batch=2000)))
    function.serial(row, data, orion.buffer(expected))
    np.testing.assert_array_equal(w, expected)
    (fetched,) = function.last_run.fetched
    if function is add_rows:
        assert fetched.rows == len(rows_of(function, row))
        assert fetched.bytes == fetched.rows * w[0].nbytes
    else:  # two subscripts say which row of five elements
        plane = 2 * row + np.arange(len(row)) % 2
        assert fetched.rows == len(np.union1d(rows_of(function, 2 * row + 1), rows_of(function, plane)))
        assert fetched.bytes == fetched.rows * w[0, 0].nbytes


def test_other_subscripts_and_other_values_in_the_next_call(nodes):
    rng = np.random.default_rng(3)
    row, data, w = rng.integers(0, LARGE, 3000), np.ones(3000), np.zeros(LARGE)
    expected = np.zeros(LARGE)
    for _ in range(3):
        added(row, data, orion.buffer(w, max_delay=100))
        np.add.at(expected, row, data)
        w[row[:5]] *= 2  # by the driver, between calls
        expected[row[:5]] *= 2
        row[::3] = rng.integers(0, LARGE, 1000)
        np.testing.assert_array_equal(w, expected)


def test_an_array_that_is_only_read_beside_it(nodes):
    rng = np.random.default_rng(4)
    row, other, data = rng.permutation(LARGE)[:3000], rng.integers(0, LARGE, 3000), np.zeros(3000)
    u, w = rng.random(LARGE), rng.random(LARGE)
    before = w.copy()
    seen_and_added(row, other, data, u, w, orion.buffer(w, max_delay=50))
    np.testing.assert_array_equal(data, before[row] + u[other])  # each row is touched once
    np.testing.assert_array_equal(w, before + np.bincount(row, minlength=LARGE))


def test_a_loop_that_reads_all_of_it_comes_between(nodes):
    rng = np.random.default_rng(5)
    row, data, w, out = rng.integers(0, LARGE, 3000), np.ones(3000), np.zeros(LARGE), np.zeros(LARGE)
    then_read(row, data, w, orion.buffer(w, max_delay=50), out)
    counts = np.bincount(row, minlength=LARGE)
    np.testing.assert_array_equal(out, counts + 1.0)
    np.testing.assert_array_equal(w, 2.0 * counts)


def test_rounds(nodes):
    rng = np.random.default_rng(6)
    row, data, w, out = rng.integers(0, LARGE, 3000), np.ones(3000), np.zeros(LARGE), np.zeros(3)
    in_rounds(row, data, w, orion.buffer(w, max_delay=50), out, 3)
    counts = np.bincount(row, minlength=LARGE)
    np.testing.assert_array_equal(w, 3.0 * counts)
    np.testing.assert_array_equal(out, counts[row[0]] * np.arange(1.0, 4.0))


@orion.parallel_for
def read(row, w, out):
    for i in range(row.shape[0]):
        out[i] = w[row[i]]


def test_what_a_loop_only_reads_is_sent_in_part(nodes):
    """Large arrays: the values that tiles read, where they have changed, and no others."""
    rng = np.random.default_rng(7)
    row, w, out = rng.integers(0, LARGE, 3000), rng.random(LARGE), np.zeros(3000)
    group = nodes._backend._team.group
    for change in range(4):
        before = group.moved
        read(row, w, out)
        np.testing.assert_array_equal(out, w[row])
        moved = group.moved - before
        own = len(rows_of(read, row))
        back = 8 * int(np.diff(read.last_run.plan.schedule().bounds[0])[read.last_run.plan.schedule().owner == 2].sum())
        assert moved >= (8 * own if change in (0, 2) else 0)
        assert moved <= 8 * (own if change != 3 else own // 2 + 1) * (change != 1) + back + row.nbytes
        if change == 1:
            w += 1.0
        elif change == 2:
            w[: LARGE // 4] = 5.0


def test_training_and_evaluation_in_turns(nodes):
    rng = np.random.default_rng(8)
    row, data, w, out = rng.integers(0, LARGE, 3000), np.ones(3000), np.zeros(LARGE), np.zeros(3000)
    for k in range(1, 4):
        added(row, data, orion.buffer(w, max_delay=100))
        read(row, w, out)
        np.testing.assert_array_equal(out, k * np.bincount(row, minlength=LARGE)[row])


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_hardly_any_iterations(n, nodes):
    row, data, w = np.arange(n), np.ones(n), np.zeros(LARGE)
    added(row, data, orion.buffer(w, max_delay=5))
    assert w.sum() == n


def test_infinite_values_and_zeros_with_a_sign_stay_so(nodes):
    w = np.zeros(LARGE)
    w[:6] = [np.inf, -np.inf, -0.0, 1.0, np.nan, 2.0]
    row = np.arange(3000) % 5
    added(row, np.ones(3000), orion.buffer(w, max_delay=50))
    np.testing.assert_array_equal(w[:6], [np.inf, -np.inf, 600.0, 601.0, np.nan, 2.0])


def test_subscripts_that_leave_the_array_are_told_of_as_ever(nodes):
    row, data, w = np.arange(3000), np.ones(3000), np.ones(LARGE)
    for place in (10, 2990):
        row[place] = LARGE
        with pytest.raises(orion.OutOfBoundsError):
            added(row, data, orion.buffer(w, max_delay=50))
        row[place] = place
        np.testing.assert_array_equal(w, 1.0)
        added(row, data * 0.0, orion.buffer(w, max_delay=50))


def test_updates_that_are_no_numbers_leave_all_as_it_was(nodes):
    row, w = np.arange(3000) * 7, np.ones(LARGE)
    for place in (10, 2990):
        data = np.ones(3000)
        data[place] = np.nan
        with pytest.raises(orion.UpdateError, match="is not a number"):
            added(row, data, orion.buffer(w, max_delay=50))
        np.testing.assert_array_equal(w, 1.0)


@pytest.mark.parametrize("send", [None, orion.pacing(batch=8)], ids=["bound", "magnitude"])
@pytest.mark.parametrize("max_delay", [1, 7, 100])
def test_no_update_is_later_than_was_said(max_delay, send, nodes, small_ones):
    assert latest(3, max_delay, n=600, send=send) <= max_delay
    assert look.last_run.fetched


def test_a_model_learns_as_it_does_one_by_one(nodes, small_ones):
    data = samples(3000, 50)
    serial, w = np.zeros(50), np.zeros(50)
    slr(*data, serial, orion.buffer(serial), 0.1)
    parallel_slr(*data, w, orion.buffer(w, max_delay=40, send=orion.pacing()), 0.1)
    assert parallel_slr.last_run.fetched
    assert loss(*data, w) < 1.1 * loss(*data, serial)


@pytest.mark.timeout(900)
def test_no_update_of_a_random_loop_is_lost_or_too_late(nodes, small_ones):
    """Counted over all of them: a third has too few calls to be judged by itself."""
    tally = Counter()
    for seed in range(times(50, 20)):
        loop = BufferedLoop(3000 + seed)
        if loop.n and not loop.is_deterministic:
            loop.run(3, tally, nullcontext())
    assert tally["sent"] > tally["calls"] / 4
    assert tally["fetched"] > tally["calls"] / 8


@pytest.mark.parametrize("victim", one_in(2, [2, 1]), ids={1: "beside a carrier", 2: "a carrier"}.get)
def test_a_worker_that_dies_takes_no_update_with_it(victim, nodes, small_ones):
    group, totals = np.arange(4000) % 13, orion.zeros(13)
    late = orion.buffer(totals, max_delay=50)
    slowly(group, 10, late)
    killing = kill_in_the_middle(nodes._backend._team.group.processes[victim])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        slowly(group, 400_000, late)
    killing.join()
    assert [one.category for one in seen] == [orion.WorkerReplacedWarning]
    np.testing.assert_array_equal(totals.to_numpy(), 2 * np.bincount(group))
    assert slowly.last_run.fetched
    count(group, late)
    np.testing.assert_array_equal(totals.to_numpy(), 3 * np.bincount(group))
