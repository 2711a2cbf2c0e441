"""Arrays that are served, in loops and calls of which somebody who had not written them thought."""

from contextlib import nullcontext

import numpy as np
import pytest

import orion
from orion.runtime.ray import announced
from tests import one_ray
from tests.served_ones import served_from

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning"),
]
N, ROWS = 600, 300


@pytest.fixture
def nodes():
    """Two nodes, the driver's with two workers, the other with one."""
    return one_ray.nodes()


@pytest.fixture
def small_ones():
    """Small arrays are served too."""
    with served_from(0):
        yield


@orion.parallel_for
def shifted(row, k, late):
    for i in range(row.shape[0]):
        late[row[i] + k] += 1.0


@orion.parallel_for
def chosen(row, data, limit, late):
    for i in range(row.shape[0]):
        if data[i] > limit:
            late[row[i]] += 1.0
        else:
            late[row[i] // 2] -= 1.0


@orion.parallel_for
def cells(row, column, late):
    for i in range(row.shape[0]):
        late[row[i], column[i]] += 1.0


@orion.parallel_for
def cells_of_planes(row, column, late):
    for i in range(row.shape[0]):
        late[row[i], 1, column[i]] += 1.0


@orion.parallel_for
def added(row, late):
    for i in range(row.shape[0]):
        late[row[i]] += 1.0


@orion.parallel_for
def rows_added(row, late):
    for i in range(row.shape[0]):
        late[row[i], :] += 1.0


@orion.parallel_for
def by_many(a, b, c, d, e, f, g, h, j, k, m, n, o, p, q, r, s, late):
    for i in range(a.shape[0]):
        late[a[i]] += 1.0
        late[b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + j[i] + k[i]] += 1.0
        late[m[i] + n[i] + o[i] + p[i] + q[i] + r[i] + s[i]] += 1.0


@orion.parallel_for
def other_rounds(row, w, late, out):
    for e in range(out.shape[0]):
        for i in range(row.shape[0]):
            late[row[i]] += e + 1.0
        out[e] = w[0]


def test_a_number_in_subscripts_is_another_in_the_next_call(nodes, small_ones):
    row, w, expected = np.random.default_rng(0).integers(0, ROWS - 50, N), np.zeros(ROWS), np.zeros(ROWS)
    for k in (0, 3, 40, 3):
        shifted(row, k, orion.buffer(w, max_delay=50))
        shifted.serial(row, k, orion.buffer(expected))
        assert shifted.last_run.fetched
        np.testing.assert_array_equal(w, expected)


@pytest.mark.parametrize("limits", [(1.0, 5.0), (7, 2)])
def test_a_number_in_a_condition_is_another_in_the_next_call(limits, nodes, small_ones):
    rng = np.random.default_rng(0)
    row, data, w, expected = rng.integers(0, ROWS, N), rng.integers(0, 9, N), np.zeros(ROWS), np.zeros(ROWS)
    for limit in limits:
        chosen(row, data, limit, orion.buffer(w, max_delay=50))
        chosen.serial(row, data, limit, orion.buffer(expected))
        assert chosen.last_run.fetched
        np.testing.assert_array_equal(w, expected)


def test_a_number_in_subscripts_of_a_large_array(nodes):
    """Nothing is patched: this is what users see."""
    row, size = np.arange(N) * 200, 200_000
    w, expected = np.zeros(size), np.zeros(size)
    shifted(row, 0, orion.buffer(w, max_delay=50))
    shifted(row, 7, orion.buffer(w, max_delay=50))
    for k in (0, 7):
        shifted.serial(row, k, orion.buffer(expected))
    np.testing.assert_array_equal(w, expected)


@pytest.mark.parametrize("columns", [2, 3, 4, 6])
@pytest.mark.parametrize("function", [cells, cells_of_planes])
def test_elements_of_arrays_of_orion_whose_rows_are_padded(function, columns, nodes, small_ones):
    """Rows of memory are longer than those of the array."""
    rng = np.random.default_rng(1)
    shape = (60, columns) if function is cells else (60, 2, columns)
    row, column, w, expected = rng.integers(0, 60, N), rng.integers(0, columns, N), orion.zeros(shape), np.zeros(shape)
    function(row, column, orion.buffer(w, max_delay=20))
    function.serial(row, column, orion.buffer(expected))
    np.testing.assert_array_equal(w.to_numpy(), expected)


def test_elements_of_a_large_array_of_orion_whose_rows_are_padded(nodes):
    """Nothing is patched."""
    rng, shape = np.random.default_rng(1), (100_000, 4)
    row, column, w, expected = rng.integers(0, shape[0], 6000), rng.integers(0, 4, 6000), orion.zeros(shape), 0
    cells(row, column, orion.buffer(w, max_delay=20))
    expected = np.zeros(shape)
    np.add.at(expected, (row, column), 1.0)
    np.testing.assert_array_equal(w.to_numpy(), expected)


def test_rows_without_elements(nodes, small_ones):
    """Nothing happens."""
    rows_added(np.arange(N) % 30, orion.buffer(np.zeros((30, 0)), max_delay=50))


def test_subscripts_of_an_array_without_elements(nodes, small_ones):
    with pytest.raises(orion.OutOfBoundsError):
        added(np.zeros(5, np.int64), orion.buffer(np.zeros(0), max_delay=50))


def test_tiles_announce_once_by_however_many_arrays(nodes, small_ones, monkeypatch):
    """More arrays than `orion.runtime.shown.KEPT`: these are copied, and the loop is gone through, at each call."""
    arrays, w, times = [orion.freeze(np.arange(N) % 7) for _ in range(17)], np.zeros(ROWS), []
    of_one = announced._announced
    monkeypatch.setattr(announced, "_announced", lambda *given: times.append(1) or of_one(*given))
    for _ in range(3):
        by_many(*arrays, orion.buffer(w, max_delay=50))
    assert by_many.last_run.fetched
    assert len(times) == 1


@pytest.mark.parametrize("where", ["threads", "nodes"])
def test_rounds_of_other_updates_keep_their_order(where, small_ones):
    """What follows the inner loop reads sums of all workers."""
    row, w, expected = np.arange(N) % 60, np.zeros(60), np.zeros(60)
    out, wanted = np.zeros(5), np.zeros(5)
    other_rounds.serial(row, expected, orion.buffer(expected), wanted)
    with nullcontext(one_ray.nodes()) if where == "nodes" else orion.session("threads", 3, force_parallel=True):
        other_rounds(row, w, orion.buffer(w, max_delay=50), out)
    np.testing.assert_array_equal(w, expected)
    np.testing.assert_array_equal(out, wanted)
