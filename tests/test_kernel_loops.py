"""Compiled loops against the same functions run by Python, on one worker."""

import math
import warnings

import numpy as np
import pytest

from orion.kernel.calling import NOWHERE
from tests.kernel_loops import compiled, make_loop, run_loop
from tests.serial_results import copies
from tests.trials import one_in

generator = np.random.default_rng(1)


def f64(*shape):
    return generator.normal(size=shape)


def f32(*shape):
    return generator.normal(size=shape).astype(np.float32)


def ints(limit, *shape, dtype=np.int64):
    return generator.integers(0, limit, size=shape).astype(dtype)


# ------------------------------------------------------------ the loops


def scale(a, b, c):
    for i in range(len(a)):
        a[i] = b[i] * c + 1


def integer_arithmetic(a, b):
    for i in range(a.shape[0]):
        a[i] = (a[i] * 3 + b[i]) // 2 - b[i] % 3


def triangular(A, x):
    for i in range(A.shape[0]):
        for j in range(i + 1):
            A[i, j] = A[i, j] * x + i - j


def negative_step(a):
    for i in range(len(a) - 1, -1, -2):
        a[i] = i * 0.5


def step_of_three(a, b):
    for i in range(1, len(a), 3):
        for j in range(0, i, 2):
            a[i] += b[j]


def scatter(w, index, x):
    for i in range(index.size):
        w[index[i]] += x[i]


def logistic_sparse(indptr, indices, values, labels, w, step):
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            w[indices[p]] -= step * g * values[p]


def running_sum(a, d):
    t = 0.0
    for i in range(len(a)):
        t = t + d[i]
        a[i] = t
    return t


def length(v):
    return np.sqrt(v @ v)


def with_helper(A, out):
    for i in range(A.shape[0]):
        out[i] = length(A[i]) + abs(A[i, 0])


def collatz(a, out):
    for i in range(len(a)):
        n = a[i]
        c = 0
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            c += 1
            if c > 50:
                break
        out[i] = c


def shifted_rows(A, B):
    for i in range(A.shape[0]):
        A[i] = np.where(B[i] > 0, A[i], B[i] * 2)
        A[i, 1:] = A[i, :-1] * 0.5


def matrix_product(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            C[i, j] = s


def add_rows(A, B):
    for i in range(A.shape[0]):
        A[i] += B[i] * 2


def branches(a, b, flag):
    for i in range(len(a)):
        x = a[i] if a[i] > b[i] else b[i]
        if flag and x > 0:
            a[i] = x**2
        elif not flag:
            a[i] = x * x * x
        else:
            continue
        b[i] = -a[i]


def mathematics(a):
    for i in range(len(a)):
        a[i] = math.sin(a[i]) + math.sqrt(abs(a[i])) + int(a[i]) + float(i) + round(a[i])


def row_by_elements(A, B, K):
    for i in range(A.shape[0]):
        t = np.zeros(K)
        for k in range(K):
            t[k] = A[i, k] * 2
        B[i] = t


def mean_of_rows(A, X, index):
    for i in range(A.shape[0]):
        t = np.zeros(8, dtype=np.float32)
        for k in range(3):
            t += X[index[i, k]]
        A[i] = t / 3


def rows_under_conditions(A, B, c):
    for i in range(A.shape[0]):
        if c[i] > 0:
            A[i] -= B[i]
            s = A[i].sum()
        else:
            s = 0.0
        A[i] *= 2
        B[i] = A[i] + s


def folds_of_rows(A, o):
    for i in range(A.shape[0]):
        o[i] = A[i].mean() + A[i].max() - np.min(A[i]) + np.linalg.norm(A[i]) + np.sum(A[i] * A[i])


def logistic_dense(X, w, o):
    for i in range(X.shape[0]):
        o[i] = 1 / (1 + np.exp(-(X[i] @ w)))


def swap(a, b):
    for i in range(len(a)):
        a[i], b[i] = b[i], a[i]


def rows_of_a_tensor(T, A):
    for i in range(T.shape[0]):
        for j in range(T.shape[1]):
            T[i, j] = T[i, j] * 2 + A[j]


def from_the_end(a, b):
    for i in range(len(a)):
        a[i] = b[-i - 1]


def mixed_precision(A, B):
    for i in range(A.shape[0]):
        A[i] += 0.5 * B[i]


def narrow(image, out):
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[i, j] = image[i, j] + 1 if image[i, j] < 200 else image[i, j] // 2


def same_row_twice(A, index):
    for i in range(A.shape[0]):
        A[i] += 1
        A[index[i]] *= 2
        A[i] -= A[index[i]]


def index_changes(A, B):
    for i in range(B.shape[0]):
        k = i
        B[i] = A[k]
        k = (i * 3) % A.shape[0]
        B[i] += A[k]


def index_changes_in_blocks(A, B, c):
    for i in range(B.shape[0]):
        k = i
        B[i] += A[k]
        if c[i] > 0:
            k = 0
        B[i] += A[k] * 2
        for m in range(2):
            B[i] -= A[k]
            k = m
        while k < 3:
            k += 1
            B[i] *= A[k]
        B[i] += A[k]


def view_of_a_row(A, x):
    for i in range(A.shape[0]):
        row = A[i]
        row -= x[i]
        row[0] = row[1] * 2


def one_of_two_rows(A, B, c):
    for i in range(A.shape[0]):
        row = A[i] if c[i] else B[i]
        A[i] = row * 2


def columns(A, x):
    for j in range(A.shape[1]):
        A[:, j] *= x[j]


def two_names_of_one_row(A, B):
    for i in range(A.shape[0]):
        t = A[i] * 2
        u = t
        u += 1
        B[i] = t


def condition_on_a_dot(A, B, o):
    for i in range(A.shape[0]):
        n = 0
        while A[i] @ A[i] > 1 and n < 20:
            A[i] *= 0.5
            n += 1
        o[i] = n if B[i] @ B[i] > 1 or A[i].sum() > 0 else -n


def exact_power(a, b):
    for i in range(len(a)):
        a[i] = a[i] ** 2 + b[i] ** 0.5


def whole_array(w, x):
    for i in range(x.shape[0]):
        w -= 0.5
        w += x[i] * w[1]


def rows_in_tuples(A, B):
    for i in range(A.shape[0]):
        t, u = A[i].copy(), B[i] * 2
        t += u
        A[i] = u
        B[i] = t


def long_private_rows(A, B, x):
    for i in range(A.shape[0]):
        t = A[i] - x[i]
        u = t * t + np.where(t > 0, t, B[i])
        t /= np.linalg.norm(u) + u @ B[i] ** 2
        B[i] = t + u.sum() if x[i] > 0 else u


def scaled_by_own_element(A):
    for i in range(A.shape[0]):
        A[i] /= A[i, 0]
        A[i] -= A[i, A.shape[1] - 1] * 2


CASES = [
    (whole_array, f64(4), f64(3)),
    (whole_array, f32(400), f32(3)),
    (rows_in_tuples, f64(4, 5), f64(4, 5)),
    (rows_in_tuples, f64(4, 500), f64(4, 500)),
    (long_private_rows, f64(4, 500), f64(4, 500), f64(4)),
    (long_private_rows, f64(4, 50), f64(4, 50), f64(4)),
    (long_private_rows, f64(50, 4).T, f64(50, 4).T, f64(4)),
    (scaled_by_own_element, f64(4, 5) + 3),
    (scaled_by_own_element, f64(4, 500) + 3),
    (scale, f32(20), f32(20), 0.3),
    (scale, f64(20), f64(20), 2),
    (scale, f32(20), f32(20), np.float64(0.3)),
    (integer_arithmetic, ints(9, 20, dtype=np.int32), ints(9, 20, dtype=np.int32)),
    (integer_arithmetic, ints(9, 20), ints(9, 20)),
    (triangular, f64(6, 7), 0.5),
    (negative_step, f64(11)),
    (negative_step, ints(5, 10, dtype=np.int32)),
    (step_of_three, f64(17), f64(17)),
    (scatter, f64(5), ints(5, 20), f64(20)),
    (scatter, f32(5), ints(5, 20, dtype=np.int32), f32(20)),
    (logistic_sparse, np.array([0, 3, 5, 9]), ints(7, 9), f64(9), f64(3), f64(7), 0.1),
    (logistic_sparse, np.array([0, 3, 5, 9]), ints(7, 9, dtype=np.int32), f32(9), f32(3), f32(7), 0.1),
    (with_helper, f64(4, 5), f64(4)),
    (with_helper, f32(4, 5), f32(4)),
    (collatz, ints(90, 20), ints(4, 20)),
    (shifted_rows, f64(5, 6), f64(5, 6)),
    (shifted_rows, f32(5, 300), f32(5, 300)),
    (matrix_product, f64(4, 5), f64(5, 3), f64(4, 3)),
    (matrix_product, f32(4, 50), f32(50, 3), f32(4, 3)),
    (add_rows, f64(6, 5).T, f64(6, 5).T),
    (add_rows, f32(6, 500), f32(6, 500)),
    (add_rows, f64(6, 3), f64(12, 3)[::2]),
    (add_rows, ints(9, 6, 5, dtype=np.int32), ints(9, 6, 5, dtype=np.int32)),
    (branches, f64(9), f64(9), True),
    (branches, f32(9), f32(9), False),
    (mathematics, f64(9)),
    (row_by_elements, f64(3, 4), f64(3, 4), 4),
    (mean_of_rows, f32(6, 8), f32(5, 8), ints(5, 6, 3)),
    (rows_under_conditions, f32(5, 12), f32(5, 12), f64(5)),
    (rows_under_conditions, f64(5, 300), f64(5, 300), f64(5)),
    (folds_of_rows, f64(4, 11), f64(4)),
    (folds_of_rows, f32(4, 33), f32(4)),
    (logistic_dense, f64(5, 9), f64(9), f64(5)),
    (swap, f64(4), f64(4)),
    (rows_of_a_tensor, f32(3, 4, 20), f32(4, 20)),
    (from_the_end, f64(4), f64(4)),
    (mixed_precision, f32(3, 8), f64(3, 8)),
    (mixed_precision, f64(3, 8), f32(3, 8)),
    (narrow, ints(255, 4, 4, dtype=np.uint8), ints(255, 4, 4, dtype=np.uint8)),
    (same_row_twice, f64(6, 5), ints(6, 6)),
    (index_changes, f64(5, 4), f64(5, 4)),
    (index_changes_in_blocks, f64(5, 4), f64(5, 4), f64(5)),
    (view_of_a_row, f64(5, 4), f64(5)),
    (columns, f64(5, 4), f64(4)),
    (two_names_of_one_row, f64(5, 4), f64(5, 4)),
    (condition_on_a_dot, f64(5, 4), f64(5, 4), ints(3, 5)),
    (exact_power, f64(5), f64(5) ** 2),
]

FUNCTIONS = dict.fromkeys(case[0] for case in CASES)
TRIED = [case for function in FUNCTIONS for case in one_in(2, [case for case in CASES if case[0] is function])]
"""Of the cases of each loop, one in two if no more is asked for."""


def in_python(function, arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*arguments)


@pytest.mark.parametrize("case", TRIED, ids=lambda case: f"{case[0].__name__}-{case[1].dtype}")
def test_same_as_python(case):
    function, *arguments = case
    found, expected = copies(arguments), copies(arguments)
    loop = make_loop(function, *found)
    assert run_loop(loop, compiled(loop))["control"][0] == 0
    in_python(function, expected)
    for ours, theirs in zip(found, expected, strict=True):
        if isinstance(ours, np.ndarray):
            tolerance = 1e-6 if ours.dtype == np.float32 else 1e-14
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


EXACT = [c for c in TRIED if c[0] in (triangular, matrix_product, mixed_precision, add_rows, same_row_twice)]


@pytest.mark.parametrize("case", EXACT, ids=lambda case: f"{case[0].__name__}-{case[1].dtype}")
def test_without_fastmath_loops_give_the_bits_of_python(case):
    function, *arguments = case
    found, expected = copies(arguments), copies(arguments)
    loop = make_loop(function, *found, fastmath=False)
    run_loop(loop, compiled(loop))
    in_python(function, expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# ------------------------------------------------------------ scalars that leave the loop


def many_reductions(x, y):
    s = 0.0
    n = 0
    p = 1.0
    low = 1e30
    high = -1e30
    least = 1000
    every = True
    some = False
    for i in range(len(x)):
        s += x[i] * y[i]
        least = min(i * i, least)
        if x[i] > 0:
            n += 1
        p *= y[i]
        low = min(low, x[i])
        high = np.maximum(high, y[i])
        every = every and x[i] < 100
        some = some or y[i] > 1000
    return s, n, p, low, high, least, every, some


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_partial_results(dtype):
    x, y = f64(30).astype(dtype), f64(30).astype(dtype)
    loop = make_loop(many_reductions, x, y)
    boxes = [[[0, 11]], [[11, 11]], [[11, 30]]]
    found = run_loop(loop, compiled(loop), boxes, low=1e30, high=-1e30)
    wide = y.astype(np.float64)
    np.testing.assert_allclose(found["s"], [np.dot(x[:11], y[:11]), 0, np.dot(x[11:], y[11:])], rtol=1e-5)
    assert found["s"].dtype == np.float64
    assert found["n"].tolist() == [(x[:11] > 0).sum(), 0, (x[11:] > 0).sum()]
    np.testing.assert_allclose(found["p"], [wide[:11].prod(), 1, wide[11:].prod()])
    start = np.array(1e30, dtype)  # of floats it matters which of two zeros comes first
    assert found["low"].tolist() == [x[:11].min(), start, x[11:].min()]
    assert found["high"].tolist() == [y[:11].max(), -start, y[11:].max()]
    assert found["place of low"].tolist() == [x[:11].argmin(), NOWHERE, 11 + x[11:].argmin()]
    assert found["least"].tolist() == [0, np.iinfo(np.int64).max, 121]
    assert found["every"].tolist() == [True, True, True]
    assert found["some"].tolist() == [False, False, False]


def test_carried_scalars_go_in_and_out():
    a, d = f64(9), f64(9)
    loop = make_loop(running_sum, a, d)
    found = run_loop(loop, compiled(loop), [[[0, 4]], [[4, 9]]], t=5.0)
    np.testing.assert_array_equal(a, np.add.accumulate(np.concatenate([[5.0], d]))[1:])
    assert found["t"].tolist() == [a[-1]]
