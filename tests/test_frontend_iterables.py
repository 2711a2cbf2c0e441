"""`for`s over arrays, `enumerate`, `zip`, `reversed`, tuples, `np.ndindex`, `prange`: what is read goes through the
same items as Python does."""

import re

import numba
import numpy as np
import pytest

import orion
from orion.frontend.parse import parse_function
from orion.ir.printer import print_function
from tests.loop_text import defined

HEADS = [
    "for x in v",
    "for x in reversed(v)",
    "for i, x in enumerate(v)",
    "for i, x in enumerate(v, 3)",
    "for i, x in enumerate(v, start=n)",
    "for i, (x, y) in enumerate(zip(v, w))",
    "for i, i in enumerate(v)",
    "for x, y in zip(v, w)",
    "for x, y in zip(v, w, strict=False)",
    "for x, y in zip(v[1:], v[:-1])",
    "for x, y in zip(v[1:-1], w[2:])",
    "for x, (y, z) in zip(v, zip(w, v))",
    "for x, y in zip(range(n), v)",
    "for x, y in zip(range(2, 30, 3), v)",
    "for x, y in zip(range(30, n, -4), v)",
    "for x, y in zip(v, range(n, 2))",
    "for x, y in zip(reversed(v), v)",
    "for x, y in enumerate(range(3, n))",
    "for x in reversed(range(n))",
    "for x in reversed(range(2, n))",
    "for x in reversed(range(n, 2))",
    "for x in reversed(range(1, n, 3))",
    "for x in reversed(range(n, -3, -2))",
    "for x in reversed(range(n, 0, -1))",
    "for x in reversed(range(n, 0, 3))",
    "for x, y in np.ndindex(n, 3)",
    "for x, y in np.ndindex(A.shape)",
    "for x, y in np.ndindex((2, n))",
    "for (x, y), z in np.ndenumerate(A)",
    "for (i,), x in np.ndenumerate(v)",
    "for x in (1, 2, 3)",
    "for x in (5, 3, 1)",
    "for x in (4, 1, 7)",
    "for x in [2.5, n]",
    "for x, y in ((0, 1), (1, 0), (0, -1), (-1, 0))",
    "for i, (x, (y, z)) in enumerate(((0, (1, 2)), (1, (3, 4))))",
    "for x in A[1]",
    "for x, y in zip(A[1], A[0])",
    "for x in numba.prange(n)",
    "for x in (n, k0, i)",
    "for x in (A[0, 1], n + 1)",
    "for x, y in ((n, A[0, 1]), (k0, i))",
    "for x in A[k0]",
    "for x in A[int(A[0, 1]) % 2]",
    "for x, y in zip(A[k0], A[i])",
    "for x, y in zip(range(k0, 5), w)",
    "for x, y in zip(range(n, 30, 2), w)",
    "for x, y in enumerate(w, k0)",
    "for x, y in enumerate(w, int(A[0, 1]))",
    "for x, y in np.ndindex(n, i + 1)",
    "for x, y in np.ndindex((k0 + 2, n))",
    "for x in v[k0:n]",
    "for x in v[k0:int(A[0, 1]) + 2]",
    "for x in reversed(range(k0, n + i))",
    "for x in v * n",
    "for x in w[::-1]",
    "for x in w[1::2]",
    "for x in w[n - 4::3]",
    "for x in w[:-1:2]",
    "for x, y in zip(w[::2], w[1::2])",
    "for i, x in enumerate(w[::-1])",
    "for x in reversed(w[::2])",
    "for x in v[n:]",
    "for x in v[:n]",
    "for x in v[-n:]",
    "for x in v[n - 4:n]",
    "for x in v[n - 4:-2]",
    "for x in v[-3:5 - n]",
    "for x in v[-3:]",
    "for x in v[2:4]",
    "for x in v[:40]",
    "for x in np.sort(v)",
    "for x in v + 1",
    "for x, y in zip(v[n - 3:], w)",
    "for x, y in zip(v[n - 3:], w[n - 3:])",
    "for i, x in enumerate(w[n - 1:])",
    "for x in reversed(w[1:n])",
    "for x in v[::2]",
    "for x in np.arange(n)",
    "for x, y in zip(np.sort(v), np.sort(w))",
]


CHANGES = [
    "",
    "n += 2",
    "k0 += 1\nn -= 1",
    "A[0, 1] += 1.0\nn = 3",
    "x = 5\ni = 7",
    "v[:1] += 3.0\nw[:1] -= 1.0",
    "v = w\nw = A[0]\nA = A * 2",
]
"""What the body does to names and elements that the head mentions: Python evaluates some of that once."""


@pytest.mark.parametrize("head", HEADS)
def test_goes_through_what_python_does(head):
    for changes in CHANGES:
        read, function = read_and_written(head, changes)
        for n in (0, 1, 2, 5, 9):
            found = []
            for one in (function, read):
                v, w, A = np.arange(n) + 10.0, np.arange(n + 2) * 3.0, np.arange(6.0).reshape(3, 2)
                out = np.zeros(500)
                found.append((one(v, w, A, n, out), out.tolist(), v.tolist(), w.tolist(), A.tolist()))
            assert found[0] == found[1], (changes, n)


def read_and_written(head, changes):
    """A function with such a loop, as it is read, and as it is written."""
    names = re.findall(r"\b[a-z]\b", head.partition(" in ")[0])
    source = f"def f(v, w, A, n, out):\n    k = k0 = 0\n    i = x = 1\n    {head}:\n"
    source += "".join(f"        out[k] = {name}\n        k += 1\n" for name in names)
    source += "".join(f"        {line}\n" for line in changes.splitlines()) + "    return k, n, k0, i, x\n"
    function = defined(source, np=np, numba=numba)
    read = print_function(parse_function(function))
    assert "numba" not in read
    assert "zip" not in read
    assert "reversed" not in read
    scope = {"np": np}
    exec(read, scope)
    return scope["f"], function


def rows(X, s):
    for row in X:
        s += row


def rows_written(X):
    for i, row in enumerate(X):
        row *= 2
        row[0] = i


def norms(X, out):
    for i, row in enumerate(X):
        out[i] = np.sqrt(row @ row)


def dot(v, w):
    total = 0.0
    for x, y in zip(v, w, strict=False):
        total += x * y
    return total


def least_squares(X, y, w):
    error = 0.0
    for x, t in zip(X, y, strict=False):
        error += (x @ w - t) ** 2
    return error


def both(v, w, out):
    for i, (x, y) in enumerate(zip(v, w, strict=False)):
        out[i] = max(x, y)


def from_behind(v, out):
    for i in reversed(range(len(v))):
        out[i] = v[i] + 1


def neighbours(A, B):
    for i, j in np.ndindex(A.shape):
        total = 0.0
        for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            if 0 <= i + di < A.shape[0] and 0 <= j + dj < A.shape[1]:
                total += A[i + di, j + dj]
        B[i, j] = total


def neighbours_in_rows(indptr, indices, x, out):
    for v in range(len(out)):
        total = 0.0
        for u in indices[indptr[v] : indptr[v + 1]]:
            total += x[u]
        out[v] = total


def weighted(indptr, indices, weights, x, out):
    for v in range(len(out)):
        first, last = indptr[v], indptr[v + 1]
        for u, w in zip(indices[first:last], weights[first:last], strict=False):
            out[v] += w * x[u]


def windows(v, out):
    for i in range(len(out)):
        total = 0.0
        for x in v[i : i + 5]:
            total += x
        out[i] = total


def of_roots(v, out):
    for i, x in enumerate(np.sqrt(v)):
        out[i] = x * x


def in_numba(v, out):
    for i in numba.prange(len(v)):
        out[i] = v[i] * 2


LOOPS = [
    (rows, lambda: (table(), np.zeros(8))),
    (rows_written, lambda: (table(),)),
    (norms, lambda: (table(), np.zeros(400))),
    (dot, lambda: (table()[:, 0].copy(), table()[:350, 1].copy())),
    (least_squares, lambda: (table(), np.arange(400.0), np.ones(8))),
    (both, lambda: (table()[:, 0].copy(), table()[:, 1].copy(), np.zeros(400))),
    (from_behind, lambda: (table()[:, 0].copy(), np.zeros(400))),
    (neighbours, lambda: (table(), np.zeros((400, 8)))),
    (neighbours_in_rows, lambda: (*rows_of(400), np.arange(400.0), np.zeros(400))),
    (weighted, lambda: (*rows_of(400), np.arange(1200.0), np.arange(400.0), np.zeros(400))),
    (windows, lambda: (table()[:, 0].copy(), np.zeros(400))),
    (of_roots, lambda: (table()[:, 0].copy(), np.zeros(400))),
    (in_numba, lambda: (table()[:, 0].copy(), np.zeros(400))),
]


def table():
    return np.random.default_rng(3).random((400, 8))


def rows_of(n):
    """Three neighbours of each."""
    return np.arange(0, 3 * n + 1, 3), np.random.default_rng(4).integers(0, n, 3 * n)


def runs(looped):
    """The arguments and results after a call of each."""
    for function, make in LOOPS:
        expected, arguments = make(), make()
        result = function(*expected)
        found = looped(function)(*arguments)
        for one, other in zip((*arguments, found), (*expected, result), strict=True):
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=function.__name__)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_loops_are_right_on_threads(workers):
    with orion.session(workers=workers, force_parallel=True):
        runs(orion.parallel_for(require_parallel=True))


@pytest.mark.ray
def test_loops_are_right_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        runs(orion.parallel_for(require_parallel=True))


def test_a_prange_that_is_not_parallel_is_told():
    def wrong(v):
        for i in numba.prange(1, len(v)):
            v[i] = v[i - 1] + 1

    plan = orion.parallel_for(wrong).plan(np.zeros(100))
    assert not plan.is_parallel
    assert any(reason.kind == "blocks" for reason in plan.reasons)


def test_names_for_subscripts_are_as_many_as_dimensions():
    def two_of_three(A, out):
        for i, j in np.ndindex(A.shape):
            out[i] += j

    with pytest.raises(orion.UnsupportedLoopError, match="3 values cannot be unpacked into 2"):
        orion.parallel_for(two_of_three).plan(np.zeros((3, 4, 5)), np.zeros(3))
