"""Tile order of sparse arrays: a pure function of elements, bounds and order, with the elements held once."""

import gc
import weakref

import numpy as np
import pytest

import orion.arrays as oa
from orion.arrays import at_once
from orion.arrays import layout as layout_module
from orion.errors import ArgumentError


def random_sparse(n, shape, seed=0, values=1):
    rng = np.random.default_rng(seed)
    coords = tuple(rng.integers(0, size, n) for size in shape)
    data = tuple(rng.random(n) for _ in range(values))
    return oa.sparse(coords, data if values > 1 else data[0], shape)


def even(shape, grid):
    return tuple(oa.even_bounds(n, b) for n, b in zip(shape, grid, strict=True))


def check_layout(s, layout, bounds):
    """Every element once, in its own tile, with its own keys and values."""
    positions = layout.positions
    np.testing.assert_array_equal(np.sort(positions), np.arange(s.nnz))
    for stored, given in zip(layout.keys, s.coords, strict=True):
        np.testing.assert_array_equal(stored, given[positions])
    given_values = s.values if s.values_are_tuple else (s.values,)
    for stored, given in zip(layout.values, given_values, strict=True):
        np.testing.assert_array_equal(stored, given[positions])
    blocks = [np.searchsorted(b, k, side="right") - 1 for b, k in zip(bounds, layout.keys, strict=True)]
    tiles = np.ravel_multi_index(blocks, layout.grid)
    assert layout.offsets.dtype == np.int64
    np.testing.assert_array_equal(np.diff(layout.offsets), np.bincount(tiles, minlength=np.prod(layout.grid)))
    np.testing.assert_array_equal(tiles, np.repeat(np.arange(np.prod(layout.grid)), np.diff(layout.offsets)))


CASES = [
    ((50, 40), (4, 4), 3000, 1),
    ((50, 40), (1, 1), 500, 1),
    ((50, 40), (7, 1), 500, 2),
    ((3, 2), (8, 8), 100, 1),
    ((50, 40), (2, 2), 0, 1),
    ((50, 40), (2, 2), 1, 1),
    ((300,), (5,), 400, 1),
    ((20, 30, 10), (2, 3, 4), 2000, 3),
    ((200_000, 70_000), (3, 2), 5000, 1),
    ((300, 300), (300, 300), 2000, 1),
]


@pytest.mark.parametrize("order", ["shuffled", "ascending"])
@pytest.mark.parametrize(("shape", "grid", "n", "values"), CASES)
def test_elements_are_grouped_by_tile(shape, grid, n, values, order):
    s = random_sparse(n, shape, values=values)
    bounds = even(shape, grid)
    layout = s.layout(bounds, order)
    assert layout.grid == grid
    assert layout.order == order
    check_layout(s, layout, bounds)


def test_uneven_bounds_with_empty_blocks():
    s = random_sparse(1000, (10, 10))
    bounds = (np.array([0, 0, 7, 7, 10]), np.array([0, 1, 10, 10]))
    layout = s.layout(bounds, "shuffled")
    check_layout(s, layout, bounds)
    assert layout.offsets[3] == 0
    assert layout.offsets[7] == layout.offsets[9]


@pytest.mark.parametrize("shape", [(50, 40), (4, 200_000), (2**40, 50), (9, 8, 7)])
def test_ascending_sorts_by_key_and_keeps_ties_in_user_order(shape):
    s = random_sparse(4000, shape, seed=1)
    layout = s.layout(even(shape, (2,) * len(shape)), "ascending")
    for a, b in zip(layout.offsets, layout.offsets[1:], strict=False):
        rows = list(zip(*(k[a:b].tolist() for k in layout.keys), layout.positions[a:b].tolist(), strict=True))
        assert rows == sorted(rows)


@pytest.mark.parametrize("n", [300, layout_module.CHUNK, layout_module.CHUNK + 1000, 3 * layout_module.CHUNK])
def test_shuffled_breaks_up_the_runs_of_sorted_data(n):
    rows = np.sort(np.random.default_rng(0).integers(0, 100, n))
    s = oa.sparse((rows, np.arange(n) % 97), np.ones(n, "float32"))
    layout = s.layout(even(s.shape, (1, 1)), "shuffled")
    same = np.mean(np.diff(layout.keys[0]) == 0)
    assert same < 0.05 if n <= layout_module.CHUNK else same < 0.1
    check_layout(s, layout, even(s.shape, (1, 1)))


@pytest.mark.parametrize("order", ["shuffled", "ascending"])
@pytest.mark.parametrize("n", [2000, 2 * layout_module.CHUNK + 77])
def test_the_order_never_depends_on_earlier_layouts(n, order):
    shape = (400, 300)
    target = even(shape, (4, 4))
    fresh = random_sparse(n, shape).layout(target, order)
    for first in ["shuffled", "ascending"]:
        s = random_sparse(n, shape)
        s.layout(even(shape, (3, 5)), first)
        s.layout(even(shape, (1, 1)), first)
        again = s.layout(target, order)
        np.testing.assert_array_equal(again.positions, fresh.positions)
        np.testing.assert_array_equal(again.keys, fresh.keys)
        np.testing.assert_array_equal(again.values, fresh.values)


def test_the_order_does_not_depend_on_the_number_of_threads(monkeypatch):
    n, shape = 4 * layout_module.CHUNK, (400, 300)
    results = []
    for threads in (1, 4):
        monkeypatch.setattr(at_once, "cores", lambda threads=threads: threads)
        results.append(random_sparse(n, shape).layout(even(shape, (4, 4)), "shuffled").positions)
    np.testing.assert_array_equal(*results)


def test_user_order_comes_back():
    s = random_sparse(5000, (60, 50), values=2)
    coords, values, elements = s.coords, s.values, list(s)
    for grid, order in [((4, 4), "shuffled"), ((2, 3), "ascending")]:
        s.layout(even((60, 50), grid), order)
        np.testing.assert_array_equal(s.coords, coords)
        np.testing.assert_array_equal(s.values, values)
        assert list(s) == elements


def test_the_same_layout_is_the_same_object():
    s = random_sparse(500, (60, 50))
    bounds = even((60, 50), (4, 4))
    layout = s.layout(bounds, "shuffled")
    assert s.layout(tuple(b.tolist() for b in bounds), "shuffled") is layout
    other = s.layout(bounds, "ascending")
    assert other is not layout
    assert s.layout(bounds, "shuffled") is layout, "a layout that is still held is not made again"


def test_elements_are_held_once():
    s = random_sparse(10_000, (60, 50))
    plain = s.nbytes
    layout = weakref.ref(s.layout(even((60, 50), (4, 4)), "shuffled"))
    assert s.nbytes == plain + 4 * s.nnz
    s.layout(even((60, 50), (2, 2)), "shuffled")
    gc.collect()
    assert layout() is None, "the layout before is let go of"
    assert s.nbytes == plain + 4 * s.nnz


@pytest.mark.parametrize(
    ("bounds", "order", "message"),
    [
        (([0, 10],), "shuffled", "bounds for 1 dimensions, the array has 2"),
        (([0, 10], [0, 5]), "shuffled", "dimension 1(.|\n)*at least 10"),
        (([1, 10], [0, 10]), "shuffled", "dimension 0"),
        (([0, 7, 3, 10], [0, 10]), "shuffled", "ascend"),
        (([0, 10], [0]), "shuffled", "dimension 1"),
        (([0, 10], [0, 10]), "random", "'shuffled' or 'ascending'"),
    ],
)
def test_bad_bounds(bounds, order, message):
    s = oa.sparse((np.arange(10), np.arange(10)), np.ones(10))
    with pytest.raises(ArgumentError, match=message):
        s.layout(bounds, order)
    np.testing.assert_array_equal(s.coords[0], np.arange(10))


def test_replace_storage_moves_the_layout():
    s = random_sparse(500, (60, 50))
    bounds = even((60, 50), (4, 4))
    layout = s.layout(bounds, "shuffled")
    keys, values = tuple(k.copy() for k in layout.keys), tuple(v.copy() for v in layout.values)
    moved = s.replace_storage(keys, values)
    assert moved.keys[0] is keys[0]
    assert s.layout(bounds, "shuffled") is moved
    check_layout(s, moved, bounds)
    with pytest.raises(ArgumentError, match="not a contiguous"):
        s.replace_storage(keys, (values[0].astype("float32"),))
    with pytest.raises(ArgumentError, match="not a contiguous"):
        s.replace_storage((keys[0][:-1], keys[1]), values)
    assert s.layout(bounds, "shuffled") is moved


def test_replace_storage_needs_a_layout():
    s = random_sparse(5, (6, 5))
    with pytest.raises(ArgumentError, match="no layout"):
        s.replace_storage(s.coords, (s.values,))


def test_blocks_searched_for_are_the_blocks_looked_up(monkeypatch):
    """Dimensions with very many indices have no table of blocks; keys on the bounds are the ones to get wrong."""
    s = oa.sparse((np.arange(100), np.arange(100)[::-1]), np.ones(100), (120, 110))
    bounds = (np.array([0, 10, 10, 50, 120]), np.array([0, 1, 99, 110]))
    looked_up = s.layout(bounds, "shuffled")
    monkeypatch.setattr(layout_module, "TABLE_LIMIT", 0)
    searched = oa.sparse(s.coords, s.values, s.shape).layout(bounds, "shuffled")
    np.testing.assert_array_equal(searched.offsets, looked_up.offsets)
    np.testing.assert_array_equal(searched.positions, looked_up.positions)
