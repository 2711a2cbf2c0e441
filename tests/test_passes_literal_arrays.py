"""Arrays that are written out, lengths of `np.arange` between two integers, quantiles."""

import math

import numpy as np
import pytest

import orion
from tests.serial_results import assert_as_serial

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def row(a, n, x):
    w = np.array([0.25, 0.5, 0.25])
    out = np.zeros(len(a))
    for i in range(1, len(a) - 1):
        for k in range(3):
            out[i] += w[k] * a[i + k - 1]
    return out


def matrices(a, n, x):
    F = np.array([[1.0, x], [0.0, 1.0]])
    out = np.zeros((len(a), 2))
    for i in range(len(a)):
        s = np.array([a[i], n])
        out[i] = F @ s + np.array([1, 2]) * np.array([True, False])
    return out


def named_anew(a, n, x):
    for i in range(len(a)):
        v = np.array([a[i], 1.0])
        v = np.array([v[1], v[0] + x])
        a[i] = v[0] * 2.0 + v[1]


def dtypes(a, n, x):
    total = 0.0
    for i in range(len(a)):
        v = np.array([1, 2, 3], dtype=np.float32)
        u = np.array([i, i + 1])
        w = np.array((np.float32(0.1), np.float32(0.2)))
        total += (v / 3).sum() + (u // 2).sum() + w[0] * a[i]
    return total


def returned(a, n, x):
    return np.array([[a[0], a[1] + x], [n, 1]])


def counted(a, n, x):
    weights = np.exp(-0.5 * (np.arange(-n, n + 1) / x) ** 2)
    weights /= weights.sum() + len(np.arange(n, 2))
    for i in range(len(a)):
        for k in range(2 * n + 1):
            a[i] += weights[k]
    return np.arange(3, 3 + n)


def quantiles(a, n, x):
    out = np.zeros(4)
    for i in range(4):
        part = a[i:]
        out[i] = np.percentile(part, 10.0 * i) + np.quantile(part, 0.5) + np.percentile(part, 100.0)
    return out


FUNCTIONS = [row, matrices, named_anew, dtypes, returned, counted, quantiles]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_is_what_numpy_does(function):
    assert_as_serial(function, np.random.default_rng(4).random(60), 3, 1.5, workers=(1, 2, 4))


def test_quantiles_of_integers_and_of_nan():
    def of_integers(a, n, x):
        out = np.zeros(len(a) - 3)
        for i in range(len(out)):
            out[i] = np.percentile(a[i : i + 3], n * 9.7)
        return out

    assert_as_serial(of_integers, np.arange(30) ** 2, 3, 1.5)
    assert_as_serial(of_integers, np.array([1.0, np.nan, 3.0, 4.0, -np.inf, 2.0, 0.0]), 3, 1.5)


def test_quantiles_of_nothing_are_an_index_error_with_its_line():
    def of_rest(a, n, x):
        total = 0.0
        for k in range(n):
            total += np.percentile(a[k:], 50.0)
        return total

    assert_as_serial(of_rest, np.arange(3.0), 5, 1.5)
    with pytest.raises(IndexError, match=r"an array has no elements here\n.*np.percentile\(a\[k:\], 50.0\)"):
        orion.parallel_for(of_rest)(np.arange(3.0), 5, 1.5)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("v = np.array([[1.0, 2.0], [3.0]])", "lists of different lengths"),
        ("v = np.array(a)", "of other than lists of numbers"),
        ("v = np.array([a, a])", "of arrays"),
        ("v = np.array([1.0])[0] if x > 0.0 else 0.0", "it may not be evaluated"),
        ("v = np.arange(np.uint8(n))", "of unsigned integers"),
        ("v = np.percentile(a, np.array([1.0, 2.0]))", "at several places"),
    ],
)
def test_what_is_refused(line, words):
    from orion.ir.types import ArrayType, ScalarType
    from orion.pipeline import through_passes
    from tests.loop_text import from_body

    types = {"a": ArrayType("float64", 1), "n": ScalarType("int64", True), "x": ScalarType("float64", True)}
    with pytest.raises(orion.UnsupportedLoopError, match=words):
        through_passes(from_body(f"for i in range(n):\n    {line}", ", ".join(types)), types)


def test_arrays_as_long_as_arrays_that_the_function_makes():
    def trained(X, n, x):
        W = np.zeros((n, X.shape[1]))
        for _ in range(3):
            grad = np.zeros_like(W)
            for i in range(len(X)):
                p = W @ X[i]
                p[i % n] -= 1.0
                grad += np.outer(p, X[i])
            W -= x * grad
        return W

    assert_as_serial(trained, np.random.default_rng(4).random((60, 5)), 3, 0.1)


def test_lengths_that_go_through_floats():
    def votes(A, n, x):
        far = int(math.hypot(A.shape[0], A.shape[1])) + 1
        out = np.zeros(2 * far + 1)
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                out[i + j + far] += A[i, j]
        half = np.ones(int(n / 2) + 1)
        return out.sum() + half.sum()

    assert_as_serial(votes, np.random.default_rng(4).random((30, 40)), 7, 1.5)


def test_lengths_of_float_arguments_are_refused():
    def cells(a, n, x):
        out = np.zeros(int(x / 0.5))
        for i in range(len(out)):
            out[i] = a[i]
        return out

    with pytest.raises(orion.UnsupportedLoopError, match="how large `out` is must follow from the arguments"):
        orion.parallel_for(cells).plan(np.zeros(9), 3, 1.5)


def shaped(a, n, x):
    out = np.zeros((4, 5))
    for k in range(3):
        m = np.arange(20.0).reshape(4, 5) + np.reshape(a[:20] * x, (4, 5))
        out += m * k
    return out


def sides(a, n, x):
    s = np.sort(a)
    total = 0
    for i in range(len(a)):
        total += np.searchsorted(s, s[i], side="right") - np.searchsorted(s, s[i], side="left")
    return total


def different(a, n, x):
    total = 0
    m = np.floor(np.outer(a, a) * 5.0)
    for _ in range(n):
        total += len(np.unique(m))
    return total


@pytest.mark.parametrize("function", [shaped, sides, different], ids=lambda one: one.__name__)
def test_other_functions(function):
    assert_as_serial(function, np.round(np.random.default_rng(4).random(60), 1), 3, 1.5)


def test_a_shape_of_another_size_is_an_error():
    def f(a, n, x):
        total = 0.0
        for k in range(n):
            total += (a * k).reshape(4, n).sum()
        return total

    assert_as_serial(f, np.arange(12.0), 3, 1.5)
    for workers in (1, 2):
        with orion.session(workers=workers), pytest.raises(ValueError, match=r"reshape|size|shape"):
            orion.parallel_for(f)(np.arange(13.0), 3, 1.5)
