"""Dependences against brute force: what iterations really conflict is a subset of what the analysis reports, and
equal to it where all subscripts are affine."""

import islpy as isl
import numpy as np
import pytest

from orion.cost.extents import parameter_values
from orion.dependence.analyse import analyse_loop
from orion.dependence.bounds import fix_parameters
from orion.frontend.parse import parse_function
from orion.ir.signature import argument_types
from orion.ir.types import SparseType
from orion.passes.split import split_program
from orion.pipeline import through_passes
from tests.oracles.brute_force import record


def reported(function, arguments, ordered=None):
    """The conflicting pairs of iterations that the analysis reports, both ways round, and the number of components."""
    dense = {name: value for name, value in arguments.items() if not isinstance(value, tuple)}
    types, shapes = argument_types(dense)
    types, shapes = dict(types), dict(shapes)
    for name, value in arguments.items():
        if isinstance(value, tuple):
            coords, values = value
            types[name] = SparseType(len(coords), "int64", (values.dtype.name,))
            shapes[name] = tuple(int(axis.max()) + 1 for axis in coords)
    program = split_program(through_passes(parse_function(function), types), types, ordered)
    found = analyse_loop(program, 0, types)
    integers = {name: value for name, value in arguments.items() if isinstance(value, int)}
    values = parameter_values(shapes, integers)
    pairs = set()
    for text in {dependence.relation for dependence in found.dependences}:
        relation = fix_parameters(isl.Map(text).wrap(), values)
        if any(isinstance(value, tuple) for value in arguments.values()):  # ranks of equal keys: 0 or 1 in these tests
            count = relation.dim(isl.dim_type.set)
            for position in (count // 2 - 1, count - 1):
                relation = relation.upper_bound_val(isl.dim_type.set, position, isl.Val(1))
        relation.foreach_point(lambda point: pairs.add(coordinates(point)))
    both = {(p[: len(p) // 2], p[len(p) // 2 :]) for p in pairs}
    dims = len(program.nests[0].dims) + (program.nests[0].elements is not None)
    return both | {(b, a) for a, b in both}, dims


def coordinates(point):
    count = point.get_space().dim(isl.dim_type.set)
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in range(count))


def stencil(a):
    for i in range(1, a.shape[0] - 1):
        a[i] = (a[i - 1] + a[i] + a[i + 1]) / 3


def mirrored(a, c):
    for i in range(3):
        a[i + c] = a[c - i] + 1


def wrapped(a, n):
    for i in range(-2, n):
        a[i] += 1.0


def strided(a, b):
    for i in range(0, 7, 2):
        a[i] = a[i + 1] + b[i]


def backwards(a):
    for i in range(6, 0, -2):
        a[i] = a[i - 1] + 1


def halves(a, b):
    for i in range(7):
        a[i // 2] = b[i] + a[6 - i]


def modulo(y, x):
    for i in range(x.shape[0]):
        y[i % 4] += x[i]


def triangle(A):
    for i in range(A.shape[0]):
        for j in range(i, A.shape[1]):
            A[i, j] = A[j, i] + 1


def skewed(A, B):
    for i in range(4):
        for j in range(3):
            A[i + j] = B[i, j] + A[i + j]


def gauss_seidel(A):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def rows(W, H):
    for i in range(W.shape[0]):
        for j in range(H.shape[0]):
            W[i] += H[j, :2]
            H[j, 1:] -= W[i, :-1]


def column_slices(A):
    for j in range(A.shape[1] - 1):
        A[:, j] = A[:, j + 1] * 2


def inner(A, v):
    for i in range(A.shape[0]):
        for k in range(i + 1, A.shape[0]):
            v[i] += A[i, k]
        A[i, i] = v[i]


def view(W, g):
    for i in range(W.shape[0] - 1):
        w = W[i]
        w -= g * W[i + 1]


A1, A2 = np.ones(9), np.ones((4, 4))
AFFINE = [
    (stencil, {"a": A1}), (mirrored, {"a": A1, "c": 4}), (wrapped, {"a": np.ones(5), "n": 4}),
    (strided, {"a": A1, "b": A1}), (backwards, {"a": A1}), (halves, {"a": A1, "b": A1}), (modulo, {"y": A1, "x": A1}),
    (triangle, {"A": A2}), (skewed, {"A": A1, "B": A2}), (gauss_seidel, {"A": A2}),
    (rows, {"W": np.ones((3, 2)), "H": np.ones((4, 3))}), (column_slices, {"A": A2}),
    (inner, {"A": A2, "v": np.ones(4)}),
    (view, {"W": A2, "g": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments"), AFFINE, ids=lambda v: getattr(v, "__name__", ""))
def test_affine_loops_are_analysed_exactly(function, arguments):
    found, dims = reported(function, arguments)
    assert found == record(function, arguments, dims).conflicts()


def sgd(ratings, W, H, step):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * err * H[j]
        H[j] += step * err * wi


def cells(ratings, A):
    for (i, j), r in ratings:
        A[i, j] += r


def first_key(ratings, v):
    for (i, _j), r in ratings:
        v[i + 1] = v[i] + r


SPARSE = (np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 1, 0, 1, 1])), np.ones(6, np.float32)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (sgd, {"ratings": SPARSE, "W": np.ones((3, 2)), "H": np.ones((2, 2)), "step": 0.1}),
        (cells, {"ratings": SPARSE, "A": np.ones((3, 2))}),
        (first_key, {"ratings": SPARSE, "v": np.ones(4)}),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_loops_over_elements_report_every_conflict_of_the_elements_present(function, arguments, ordered):
    found, dims = reported(function, arguments, ordered)
    oracle = record(function, arguments, dims)
    present = set(oracle.iterations)
    assert {(a, b) for a, b in found if a in present and b in present} == oracle.conflicts()


def gather(a, idx):
    for i in range(idx.shape[0]):
        a[idx[i]] += 1.0


def quadratic(a, n):
    for i in range(n):
        a[i * i % 7] = a[i] + 1


def guarded(a, m, b, c):
    for i in range(4):
        if m[i] > 0:
            a[i] = b[i]
        c[i] = a[i + 1]


def ragged(indptr, a):
    for i in range(3):
        for p in range(indptr[i], indptr[i + 1]):
            a[p] += 1.0


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (gather, {"a": np.ones(4), "idx": np.array([0, 2, 2, 1])}),
        (quadratic, {"a": np.ones(9), "n": 5}),
        (guarded, {"a": A1, "m": np.array([1, 0, 1, 1]), "b": A1, "c": A1}),
        (ragged, {"indptr": np.array([0, 2, 3, 5]), "a": A1}),
    ],
)
def test_what_is_not_affine_is_over_approximated(function, arguments):
    found, dims = reported(function, arguments)
    assert record(function, arguments, dims).conflicts() <= found
