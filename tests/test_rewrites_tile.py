"""The tiles of a box: all of the box, each part once, tile by tile, whatever the limits of the box."""

import numpy as np
import pytest

import orion
from orion.frontend.parse import parse_function
from orion.ir.nodes import Const, Var
from orion.ir.printer import print_stmt
from orion.ir.spans import NOWHERE
from orion.rewrites.reorder import order
from orion.rewrites.tile.apply import CacheTile, in_cache_tiles

FAR = 2**62


def box(A, i_first, i_end, j_first, j_end, n):
    for i in range(max(0, i_first), min(n, i_end)):
        for j in range(max(i, j_first), min(n + 3, j_end)):
            A[i, j] += 1


class Trace(dict):
    """An array that notes which elements are written, in order."""

    def __init__(self):
        self.order = []

    def __missing__(self, key):
        return 0

    def __setitem__(self, key, value):
        self.order.append(key)


def run(statements, limits, n):
    trace = Trace()
    names = dict(zip(("i_first", "i_end", "j_first", "j_end"), limits, strict=True))
    exec("\n".join(print_stmt(statement) for statement in statements), {"A": trace, "n": n, **names})
    return trace.order


def tiles(sizes):
    n = Var("n", NOWHERE)
    return [
        CacheTile("i", ("i_first", "i_end"), Const(0, NOWHERE), n, sizes[0]),
        CacheTile("j", ("j_first", "j_end"), Const(0, NOWHERE), Var("n_and_3", NOWHERE), sizes[1]),
    ]


@pytest.mark.parametrize("sizes", [(1, 1), (2, 5), (4, 3), (64, 64)])
@pytest.mark.parametrize("limits", [(0, 9, 0, 12), (3, 7, 2, 11), (5, 5, 0, 4), (-FAR, FAR, -FAR, FAR), (2, FAR, 0, 6)])
def test_a_box_is_run_tile_by_tile(sizes, limits):
    body = parse_function(box).body
    changed = in_cache_tiles(body, tiles(sizes), NOWHERE)
    for n in (0, 1, 5, 8):
        written = run(body, limits, n)
        source = "\n".join(print_stmt(statement) for statement in changed)
        trace = Trace()
        names = dict(zip(("i_first", "i_end", "j_first", "j_end"), limits, strict=True))
        exec(source, {"A": trace, "n": n, "n_and_3": n + 3, **names})
        by_tile = sorted(written, key=lambda at: (at[0] // sizes[0], at[1] // sizes[1], *at))
        assert trace.order == by_tile


def product(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= 0.5
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@pytest.mark.parametrize("shape", [(70, 70, 5), (33, 3, 300), (4, 130, 4), (3, 0, 5), (0, 3, 2)])
def test_products_of_matrices_larger_than_a_tile_have_the_bits_of_python(shape):
    n, m, k = shape
    random = np.random.default_rng(n)
    A, B, C = random.random((n, m)), random.random((m, k)), random.random((n, k))
    expected = C.copy()
    product(A, B, expected)
    for workers in (1, 2):
        found = C.copy()
        with orion.session(workers=workers, force_parallel=True):
            orion.parallel_for(product)(A, B, found)
        np.testing.assert_array_equal(found, expected)


def steps_of_two(A, z, n):
    for i in range(n - 1, -1, -2):
        for j in range(i, z.shape[0], 2):
            for k in range(min(j + 1, 3)):
                A[i, k] = 0.5
                A[i + 2, 2] = 0.25


def test_bounds_of_tiles_that_depend_on_remainders(monkeypatch):
    """isl took the remainder of z.shape[0] for that of z.shape[0] + n in a bound of k."""
    monkeypatch.setattr(order, "tile_sizes", lambda node, *_: (*[2] * (node.band_n_member() - 1), 3))
    function = orion.parallel_for(steps_of_two)
    for rows in range(7):
        for n in range(7):
            given, expected = np.ones((9, 5)), np.ones((9, 5))
            with orion.session(workers=2, force_parallel=True):
                function(given, np.ones((rows, 1)), n)
            steps_of_two(expected, np.ones((rows, 1)), n)
            np.testing.assert_array_equal(given, expected)
    function.plan(given, np.ones((3, 1)), 3).check()
