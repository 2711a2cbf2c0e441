"""From source to strategy: what each loop is found to be, and the reasons where it is serial."""

import numpy as np
import pytest

from orion.cost.sizes import Sizes
from orion.frontend.parse import parse_function
from orion.ir.types import ArrayType, ScalarType, SparseType
from orion.passes.split import split_program
from orion.pipeline import REWRITES, through_passes
from orion.plan.planner import plan_program
from orion.plan.rewriting import Seen, variants_of

FLOAT = ScalarType("float64", weak=True)
WITHOUT_COPIES = [one for one in REWRITES if one.name != "copy_in"]
INT = ScalarType("int64", weak=True)


def dense(ndim, dtype="float64"):
    return ArrayType(dtype, ndim)


def sparse(ndim, values=1):
    return SparseType(ndim, "int32", ("float32",) * values, single=values == 1)


def plan(function, types, ordered=None):
    resolved = through_passes(parse_function(function), types)
    analysed = variants_of(split_program(resolved, types, ordered), types, Seen(resolved, WITHOUT_COPIES))
    return plan_program(analysed, Sizes(symbolic=True, workers=2))


def sgd(ratings, W, H, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j] - reg * W[i])
        H[j] += step * (err * wi - reg * H[j])


def tensor(x, A, B, C, step):
    for (i, j, k), v in x:
        err = v - np.sum(A[i] * B[j] * C[k])
        a = A[i].copy()
        b = B[j].copy()
        A[i] += step * err * b * C[k]
        B[j] += step * err * a * C[k]
        C[k] += step * err * a * b


def rmse(ratings, W, H):
    total = 0.0
    for (i, j), r in ratings:
        total += (r - W[i] @ H[j]) ** 2
    return np.sqrt(total / len(ratings))


def row_view(ratings, W, g):
    for (i, _j), r in ratings:
        w = W[i]
        w -= g * r


def next_row(W):
    for i in range(W.shape[0] - 1):
        W[i + 1] = W[i] * 0.5


def permuted(W, perm):
    for i in range(perm.shape[0]):
        W[perm[i]] = 0.5 * W[perm[i]] + 1.0


def gauss_seidel(A, sweeps):
    for _t in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def even_odd(a, x):
    for i in range(x.shape[0]):
        a[2 * i] = a[2 * i + 1] + x[i]


def last_value(a):
    last = 0.0
    for i in range(a.shape[0]):
        last = a[i]
    return last


def running_sum(a, d):
    t = 0.0
    for i in range(d.shape[0]):
        t = t + d[i]
        a[i] = t


def columns(A, B):
    for i in range(B.shape[0]):
        for j in range(1, A.shape[0]):
            A[j] = A[j - 1] + B[i]


def reverse(a):
    for i in range(a.shape[0] - 1, 0, -1):
        a[i] = a[i] + a[i - 1]


def modulo(y, x):
    for i in range(x.shape[0]):
        y[i % 4] = 0.5 * y[i % 4] + x[i]


def matmul(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


RATINGS = {"ratings": sparse(2), "W": dense(2, "float32"), "H": dense(2, "float32")}
TABLE = [
    (sgd, {**RATINGS, "step": FLOAT, "reg": FLOAT}, None, "2d", []),
    (sgd, {**RATINGS, "step": FLOAT, "reg": FLOAT}, True, "2d", []),
    (tensor, {"x": sparse(3), "A": dense(2), "B": dense(2), "C": dense(2), "step": FLOAT}, None, "nd", []),
    (rmse, RATINGS, None, "independent", []),
    (row_view, {"ratings": sparse(2), "W": dense(2), "g": FLOAT}, None, "1d", []),
    (next_row, {"W": dense(2)}, None, "serial", ["ORN101"]),
    (permuted, {"W": dense(2), "perm": ArrayType("int64", 1)}, None, "serial", ["ORN102", "ORN127"]),
    (gauss_seidel, {"A": dense(2), "sweeps": INT}, None, "wavefront", []),
    (even_odd, {"a": dense(1), "x": dense(1)}, None, "independent", []),
    (last_value, {"a": dense(1)}, None, "independent", []),
    (running_sum, {"a": dense(1), "d": dense(1)}, None, "serial", ["ORN104"]),
    (columns, {"A": dense(1), "B": dense(1)}, None, "wavefront", []),
    (reverse, {"a": dense(1)}, None, "serial", ["ORN101"]),
    (modulo, {"x": dense(1), "y": dense(1)}, None, "serial", ["ORN101"]),
    (matmul, {"A": dense(2), "B": dense(2), "C": dense(2)}, None, "1d", []),
]  # fmt: skip


@pytest.mark.parametrize(("function", "types", "ordered", "strategy", "codes"), TABLE)
def test_strategy(function, types, ordered, strategy, codes):
    (loop,) = plan(function, types, ordered).loops
    assert loop.strategy == strategy
    if strategy == "serial":
        assert sorted({reason.code for reason in loop.reasons}) == codes


def shifting(a, rounds):
    for t in range(rounds):
        for i in range(20):
            a[i + t] = a[i + t] * 0.5


def jacobi(a, b, rounds):
    for _t in range(rounds):
        for i in range(1, 19):
            b[i] = 0.5 * (a[i - 1] + a[i + 1])
        for i in range(1, 19):
            a[i] = b[i]


def jacobi_from(a, b, rounds):
    for t in range(rounds):
        for i in range(t + 1, 19):
            b[i] = 0.5 * (a[i - 1] + a[i + 1])
        for i in range(t + 1, 19):
            a[i] = b[i]


def mirrored_below(a, rounds):
    for t in range(rounds):
        for i in range(t, 20):
            a[i] = a[i] * 0.5
            a[39 - i] = a[39 - i] + t


@pytest.mark.parametrize(
    ("function", "types", "overlap"),
    [
        (jacobi, {"a": dense(1), "b": dense(1), "rounds": INT}, True),
        (jacobi_from, {"a": dense(1), "b": dense(1), "rounds": INT}, False),
        (shifting, {"a": dense(1), "rounds": INT}, False),
    ],
)
def test_rounds_overlap_only_where_no_subscript_or_bound_depends_on_the_round(function, types, overlap):
    loops = plan(function, types).loops
    assert all(loop.is_parallel for loop in loops)
    assert {loop.rounds_overlap for loop in loops} == {overlap}


def test_statements_that_touch_different_elements_are_taken_apart():
    loops = plan(mirrored_below, {"a": dense(1), "rounds": INT}).loops
    assert [loop.strategy for loop in loops] == ["1d", "1d"]
    assert loops[0].form.origin == loops[1].form.origin
