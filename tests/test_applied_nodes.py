"""Updates that are no sums (`orion.buffer(apply=)`) on several nodes: these tell each other of updates, and each
applies all of them to the array and the helpers that it has."""

import warnings

import numpy as np
import pytest

import orion
from tests import one_ray
from tests.dying import kill_in_the_middle
from tests.test_buffers import count, latest, look, loss, parallel_slr, samples, slowly
from tests.trials import one_in

pytestmark = [
    pytest.mark.all("test_all_updates_are_applied_to_all", "test_rounds", "test_the_plan_says_so"),
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning"),
]


@pytest.fixture
def nodes():
    """Two nodes, the driver's with two workers, the other with one."""
    return one_ray.nodes()


def added(value, update):
    return value + update


def doubled(value, update):
    return value + 2 * update


def greatest(value, update):
    return max(value, update)


def with_count(value, update, calls):
    return value + update, calls + 1


def adagrad(w, u, squares):
    squares = squares + u * u
    return w + 0.1 * u / np.sqrt(squares), squares


def adarevision(w, g, total, z, most, before):
    meanwhile = total - before
    larger = 0.1 / np.sqrt(most)
    z = z + g * g + 2.0 * g * meanwhile
    most = max(most, z)
    smaller = 0.1 / np.sqrt(most)
    return w + smaller * g - (larger - smaller) * meanwhile, total + g, z, most


def since_read(value, update, total, least, before):
    """`total` is all that was added, `least` the least that came between a read and the update: 0 at least."""
    return value + update, total + update, min(least, total - before)


@orion.parallel_for
def add(row, data, late):
    for i in range(row.shape[0]):
        late[row[i]] += data[i]


@orion.parallel_for
def add_rows(row, data, late):
    for i in range(row.shape[0]):
        late[row[i], :] += data[i]


@orion.parallel_for
def add_elements(row, data, late):
    for i in range(row.shape[0]):
        late[row[i], 1, i % 5] += data[i]


@orion.parallel_for
def two_of_them(row, data, late, other, sums):
    for i in range(row.shape[0]):
        late[row[i]] += data[i]
        other[row[i] // 2] += data[i]
        sums[row[i] // 3] += data[i]


@orion.parallel_for
def in_rounds(row, data, w, late, out, rounds):
    for r in range(rounds):
        for i in range(row.shape[0]):
            late[row[i]] += data[i]
        out[r] = w[row[0]]


@pytest.mark.parametrize("send", [None, orion.pacing(batch="1KB")], ids=["bound", "magnitude"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16"])
@pytest.mark.parametrize("size", [1, 7, 300, 40_000])
def test_all_updates_are_applied_to_all(size, dtype, send, nodes):
    rng = np.random.default_rng(size)
    row, data = rng.integers(0, size, 4000), rng.integers(1, 4, 4000).astype(dtype)
    w, calls = orion.zeros(size, dtype), np.zeros(size, dtype)
    expected = np.zeros(size, dtype)
    for _ in range(2):
        add(row, data, orion.buffer(w, with_count, 100, [calls], send=send))
        assert len(add.last_run.sent) == 2
        np.add.at(expected, row, data)
        np.testing.assert_array_equal(w.to_numpy(), expected)
    np.testing.assert_array_equal(calls > 0, expected > 0)
    assert all(0 <= one.latest <= 100 for one in add.last_run.late)


@pytest.mark.parametrize("made", [np.zeros, orion.zeros])
@pytest.mark.parametrize("shape", [(60, 5), (60, 70), (20_000, 3)])
def test_rows(shape, made, nodes):
    rng = np.random.default_rng(1)
    row, data, w, expected = rng.integers(0, shape[0], 3000), np.ones(3000), made(shape), np.zeros(shape)
    add_rows(row, data, orion.buffer(w, doubled, max_delay=60))
    np.add.at(expected, row, 2.0)
    np.testing.assert_array_equal(np.asarray(w), expected)
    assert len(add_rows.last_run.sent) == 2


@pytest.mark.parametrize("made", [np.zeros, orion.zeros])
@pytest.mark.parametrize("rows", [30, 9000])
def test_elements_of_arrays_of_three_dimensions(rows, made, nodes):
    rng = np.random.default_rng(2)
    row, data = rng.integers(0, rows, 3000), np.ones(3000)
    w, expected = made((rows, 2, 5)), np.zeros((rows, 2, 5))
    add_elements(row, data, orion.buffer(w, added, max_delay=60))
    np.add.at(expected, (row, 1, np.arange(3000) % 5), 1.0)
    np.testing.assert_array_equal(np.asarray(w), expected)


def test_what_is_applied_is_what_the_function_says(nodes):
    """Each element has one update, so that their order does not matter."""
    rng = np.random.default_rng(3)
    row, data, w = rng.permutation(5000)[:3000], rng.random(3000), rng.random(5000)
    expected = w.copy()
    add(row, data, orion.buffer(w, greatest, max_delay=30))
    np.maximum.at(expected, row, data)
    np.testing.assert_array_equal(w, expected)


def test_sums_and_others_in_one_loop(nodes):
    rng = np.random.default_rng(4)
    row, data = rng.integers(0, 600, 3000), np.ones(3000)
    w, x, y = np.zeros(600), np.zeros(300), np.zeros(200)
    calls = np.zeros(300)
    late = orion.buffer(w, doubled, max_delay=40), orion.buffer(x, with_count, 40, [calls])
    two_of_them(row, data, *late, orion.buffer(y, max_delay=40))
    np.testing.assert_array_equal(w, 2.0 * np.bincount(row, minlength=600))
    np.testing.assert_array_equal(x, np.bincount(row // 2, minlength=300))
    np.testing.assert_array_equal(y, np.bincount(row // 3, minlength=200))
    assert len(two_of_them.last_run.sent) == 2


def test_rounds(nodes):
    row, data, w, out = np.arange(2000) % 9, np.ones(2000), np.zeros(9), np.zeros(4)
    in_rounds(row, data, w, orion.buffer(w, doubled, max_delay=50), out, 4)
    np.testing.assert_array_equal(w, 8.0 * np.bincount(row))
    np.testing.assert_array_equal(out, 2.0 * np.bincount(row)[0] * np.arange(1, 5))


@pytest.mark.parametrize("send", [None, orion.pacing(batch=8)], ids=["bound", "magnitude"])
@pytest.mark.parametrize("max_delay", [1, 7, 100])
def test_no_update_is_later_than_was_said(max_delay, send, nodes):
    assert latest(3, max_delay, n=600, send=send, apply=added) <= max_delay
    assert {one.latest for one in look.last_run.late} <= {*range(max_delay + 1)}
    assert len(look.last_run.sent) == 2


def test_adagrad_learns_as_it_does_on_one_node(nodes):
    data = samples(3000, 50)
    alone, w = np.zeros(50), np.zeros(50)
    with orion.session("threads", 1):
        parallel_slr(*data, alone, orion.buffer(alone, adagrad, 40, [np.full(50, 1e-8)]), 1.0)
    squares = np.full(50, 1e-8)
    parallel_slr(*data, w, orion.buffer(w, adagrad, 40, [squares]), 1.0)
    assert len(parallel_slr.last_run.sent) == 2
    assert loss(*data, w) < 1.1 * loss(*data, alone)
    assert (squares > 1e-8).all()


def test_snapshots_go_with_their_updates(nodes):
    rng = np.random.default_rng(5)
    for size in (5, 400, 30_000):
        row, data = rng.integers(0, size, 4000), rng.integers(1, 4, 4000) * 1.0
        for helper in (np.zeros, orion.zeros):
            w, total, least = np.zeros(size), helper(size), np.full(size, 1e9)
            late = orion.buffer(w, since_read, 100, [total, least], [total])
            add(row, data, late)
            np.testing.assert_array_equal(w, np.bincount(row, data, minlength=size))
            np.testing.assert_array_equal(np.asarray(total), w)
            np.testing.assert_array_equal(least < 1e9, w > 0)
            assert least.min() >= 0  # with the snapshot of another element, or of none, it would not be
            assert len(add.last_run.sent) == 2


def test_adarevision_learns_nearly_as_it_does_where_nothing_is_late(nodes):
    data = samples(3000, 50)

    def trained(max_delay):
        w, total = np.zeros(50), np.zeros(50)
        helpers = [total, np.ones(50), np.ones(50)]
        for _ in range(3):
            parallel_slr(*data, w, orion.buffer(w, adarevision, max_delay, helpers, [total]), 1.0)
        return loss(*data, w)

    with orion.session("threads", 1):
        best = trained(0)
    assert best < trained(40) < 1.4 * best < 0.4
    assert len(parallel_slr.last_run.sent) == 2


def test_updates_that_are_no_numbers_leave_all_as_it_was(nodes):
    data = samples(300, 20)
    for place in (100, len(data[2]) - 1):  # on one node, and on the other
        w, squares, values = np.ones(20), np.full(20, 1e-8), data[2].copy()
        values[place] = np.nan
        with pytest.raises(orion.UpdateError, match="is not a number"):
            parallel_slr(*data[:2], values, *data[3:], w, orion.buffer(w, adagrad, 10, [squares]), 0.1)
        np.testing.assert_array_equal(w, 1.0)
        np.testing.assert_array_equal(squares, 1e-8)


def test_the_plan_says_so(nodes):
    row, data, w = np.arange(900) % 7, np.ones(900), np.zeros(7)
    text = " ".join(str(add.plan(row, data, orion.buffer(w, doubled, max_delay=20))).split())
    assert "on several nodes updates go to the others after 10 iterations of a worker, and at the end" in text
    assert "applied by `doubled`" in text


@pytest.mark.parametrize("victim", one_in(2, [2, 1]), ids={1: "beside a carrier", 2: "a carrier"}.get)
def test_a_worker_that_dies_takes_no_update_with_it(victim, nodes):
    group, totals = np.arange(4000) % 13, orion.zeros(13)
    late = orion.buffer(totals, doubled, max_delay=50)
    slowly(group, 10, late)
    killing = kill_in_the_middle(nodes._backend._team.group.processes[victim])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        slowly(group, 400_000, late)
    killing.join()
    assert [one.category for one in seen] == [orion.WorkerReplacedWarning]
    np.testing.assert_array_equal(totals.to_numpy(), 4 * np.bincount(group))
    count(group, late)
    np.testing.assert_array_equal(totals.to_numpy(), 6 * np.bincount(group))
