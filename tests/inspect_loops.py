"""Loops whose plans the tests of `orion.inspect` look at, with the types and sizes to plan them for."""

import numpy as np

from orion.cost.sizes import Sizes
from orion.ir.types import ArrayType, ScalarType, SparseType
from orion.plan.plan import FunctionPlan
from orion.plan.planner import plan_program
from orion.plan.source_plans import loops_of_source
from orion.planned import Plan
from orion.prepare import Preparation
from orion.prepared_call import Options
from orion.schedule.build import build_schedule
from orion.schedule.schedule import Schedule


def sgd_epoch(ratings, W, H, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j] - reg * W[i])
        H[j] += step * (err * wi - reg * H[j])


def rmse(ratings, W, H):
    total = 0.0
    for (i, j), r in ratings:
        total += (r - W[i] @ H[j]) ** 2
    return np.sqrt(total / len(ratings))


def adagrad_epoch(ratings, W, H, GW, GH, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        gw = reg * W[i] - err * H[j]
        gh = reg * H[j] - err * W[i]
        GW[i] += gw * gw
        GH[j] += gh * gh
        W[i] -= step * gw / np.sqrt(GW[i])
        H[j] -= step * gh / np.sqrt(GH[j])


def factorize(tensor, U, V, T, step):
    for (i, j, k), x in tensor:
        err = x - np.sum(U[i] * V[j] * T[k])
        du = err * V[j] * T[k]
        dv = err * U[i] * T[k]
        dt = err * U[i] * V[j]
        U[i] += step * du
        V[j] += step * dv
        T[k] += step * dt


def shift(W):
    for i in range(W.shape[0] - 1):
        W[i + 1] = np.sqrt(W[i])


def through_view(W, g, step):
    for i in range(1, W.shape[0]):
        w = W[i]
        w -= step * (g[i] + W[i - 1])


def permuted(W, perm, g):
    for i in range(perm.shape[0]):
        W[perm[i]] += g[i]


def smooth(A):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def gauss_seidel(A, sweeps):
    for _t in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def running_sum(d, a):
    t = 0.0
    for i in range(d.shape[0]):
        t = t + d[i]
        a[i] = t


def train(ratings, W, H, step, epochs):
    for _epoch in range(epochs):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            wi = W[i].copy()
            W[i] += step * err * H[j]
            H[j] += step * err * wi


def scale_rows(A, s):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] * s[i]


def several(a, b, n):
    for i in range(n):
        a[i] = 2.0 * b[i]
    a[0] = 1.0
    for i in range(1, n):
        a[i] = a[i - 1] + b[i]


def prefix(A, n):
    for i in range(1, n):
        for j in range(i):
            A[i, j] = A[i - 1, j] + 1.0


def scatter(ratings, W, perm):
    for (i, j), r in ratings:
        W[perm[i]] += j * r


def recurrence(A, n):
    t = 0.0
    for i in range(1, n):
        for j in range(1, n):
            t = 0.5 * t + A[i - 1, j - 1] + A[i - 1, n - j]
            A[i, j] = t


def search(a, limit, n):
    for i in range(3, n):
        if a[i - 3] > limit:
            break
        a[i] = 2.0 * a[2 * i - n]


def skewed(A, sweeps):
    for _t in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i + 1, j - 1] + A[i + 1, j + 1])


def two_products(A, s, q, p, r):
    for i in range(A.shape[0]):
        q[i] = 0.0
        for j in range(A.shape[1]):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]


def history(means, a):
    for t in range(means.shape[0]):
        s = 0.0
        for i in range(a.shape[0]):
            s = 0.5 * s + a[i]
        means[t] = s / a.size
        for i in range(a.shape[0]):
            a[i] = 0.5 * a[i]


def pull(a, x):
    for i in range(x.shape[0]):
        a[i] = a[i + 1] + x[i]


def stencil(a):
    for i in range(1, a.shape[0] - 2):
        a[i] = 0.5 * a[i + 1]
        a[i + 2] = 0.5 * a[i]


def scattered_steps(ratings, W, perm):
    for (i, j), r in ratings:
        W[perm[i]] += j * r - 0.5 * W[perm[i]]


MATRIX = ArrayType("float32", 2)
GRID = ArrayType("float64", 2)
VECTOR = ArrayType("float64", 1)
INDICES = ArrayType("int64", 1)
RATINGS = SparseType(2, "int32", ("float32",))
TENSOR = SparseType(3, "int32", ("float32",))
FLOAT = ScalarType("float64", weak=True)
INTEGER = ScalarType("int64", weak=True)

USERS, ITEMS = (6040, 32), (3706, 32)
SIZES = {"ratings": (6040, 3706), "W": USERS, "H": ITEMS, "GW": USERS, "GH": ITEMS}
COUNTS = {"ratings": 1_000_209, "tensor": 5_000_000}
TENSOR_SIZES = {"tensor": (2000, 1500, 300), "U": (2000, 16), "V": (1500, 16), "T": (300, 16)}

CASES = {
    sgd_epoch: ({"ratings": RATINGS, "W": MATRIX, "H": MATRIX, "step": FLOAT, "reg": FLOAT}, SIZES),
    rmse: ({"ratings": RATINGS, "W": MATRIX, "H": MATRIX}, SIZES),
    adagrad_epoch: (
        {"ratings": RATINGS, "W": MATRIX, "H": MATRIX, "GW": MATRIX, "GH": MATRIX, "step": FLOAT, "reg": FLOAT}, SIZES,
    ),
    factorize: ({"tensor": TENSOR, "U": MATRIX, "V": MATRIX, "T": MATRIX, "step": FLOAT}, TENSOR_SIZES),
    shift: ({"W": VECTOR}, {"W": (1_000_000,)}),
    through_view: ({"W": GRID, "g": GRID, "step": FLOAT}, {"W": (100_000, 32), "g": (100_000, 32)}),
    permuted: ({"W": VECTOR, "perm": INDICES, "g": VECTOR}, {"W": (1000,), "perm": (5000,), "g": (5000,)}),
    smooth: ({"A": GRID}, {"A": (1000, 1000)}),
    gauss_seidel: ({"A": GRID, "sweeps": INTEGER}, {"A": (1000, 1000)}),
    running_sum: ({"d": VECTOR, "a": VECTOR}, {"d": (1000,), "a": (1000,)}),
    train: ({"ratings": RATINGS, "W": MATRIX, "H": MATRIX, "step": FLOAT, "epochs": INTEGER}, SIZES),
    scale_rows: ({"A": GRID, "s": VECTOR}, {"A": (64, 8), "s": (64,)}),
    several: ({"a": VECTOR, "b": VECTOR, "n": INTEGER}, {"a": (1000,), "b": (1000,)}),
    scatter: ({"ratings": RATINGS, "W": VECTOR, "perm": INDICES}, {"ratings": (60, 40), "W": (60,), "perm": (60,)}),
    scattered_steps: (
        {"ratings": RATINGS, "W": VECTOR, "perm": INDICES}, {"ratings": (60, 40), "W": (60,), "perm": (60,)}
    ),
    recurrence: ({"A": GRID, "n": INTEGER}, {"A": (500, 500)}),
    search: ({"a": VECTOR, "limit": FLOAT, "n": INTEGER}, {"a": (600,)}),
    prefix: ({"A": GRID, "n": INTEGER}, {"A": (500, 500)}),
    skewed: ({"A": GRID, "sweeps": INTEGER}, {"A": (1000, 1000)}),
    two_products: (
        {"A": GRID, "s": VECTOR, "q": VECTOR, "p": VECTOR, "r": VECTOR},
        {"A": (3000, 2000), "s": (2000,), "q": (3000,), "p": (2000,), "r": (3000,)},
    ),
    history: ({"means": VECTOR, "a": VECTOR}, {"means": (20,), "a": (4_000_000,)}),
    stencil: ({"a": VECTOR}, {"a": (1000,)}),
    pull: ({"a": VECTOR, "x": VECTOR}, {"a": (1001,), "x": (1000,)}),
}  # fmt: skip


def plan_of(function, *, workers: int = 4, symbolic: bool = False) -> FunctionPlan:
    """The plan of one of the functions above for its sizes, or with all sizes as symbols."""
    types, shapes = CASES[function]
    typed = Preparation(function, Options()).typed(types)
    if symbolic:
        return plan_program(typed.variants, Sizes(workers=workers, symbolic=True))
    integers = dict.fromkeys(typed.parameters, 500)
    sizes = typed.all_sizes(Sizes(shapes, integers, COUNTS, workers))
    return plan_program(typed.variants, sizes)


def schedules_of(plan: FunctionPlan, function, workers: int = 4) -> list[Schedule | None]:
    """A schedule per loop of the source: even blocks over the shapes of the sparse array, or over the ranges."""
    from orion.measured import Measurements  # here, as plans are compared with the lines that loops stand in

    found: list[Schedule | None] = []
    types, shapes = CASES[function]
    whole = Plan(
        plan, Sizes(shapes, dict.fromkeys(types, 500), COUNTS, workers), {}, (), lambda workers: whole, Measurements()
    )
    for loop in loops_of_source(plan):
        if loop.nest.elements is None:
            found.append(whole.schedule_of(loop, workers))
            continue
        extents = shapes[loop.nest.elements.array]
        bounds = [np.linspace(0, n, cuts + 1).astype(np.int64) for n, cuts in zip(extents, loop.cuts, strict=True)]
        found.append(build_schedule(loop, bounds, workers))
    return found
