"""Functions that make arrays between their loops, with arguments to call them with: `cases()` has them by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import orion


def jacobi(A, rounds):
    B = np.empty_like(A)
    for _t in range(rounds):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = B[i, j]


def jacobi_with_copies(A, rounds):
    for _t in range(rounds):
        B = A.copy()
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.25 * (B[i - 1, j] + B[i + 1, j] + B[i, j - 1] + B[i, j + 1])


def padded(a, by):
    n = a.shape[0]
    b = np.ones(n + by, dtype=np.float32)
    for i in range(n):
        b[i] = a[i]
    return b


def histogram(x, bins):
    counts = np.zeros(bins, np.int64)
    for i in range(x.shape[0]):
        counts[int(x[i] * bins)] += 1
    return counts


def several(a, n):
    m = 2 * n + 1
    b, c = np.ones(m, dtype=np.int32), np.full((n, 2), 2.5)
    d = np.empty(a.shape)
    for i in range(n):
        c[i, 1] += b[2 * i]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            d[i, j] = a[i, j] * c[i % n, j % 2]
    return d, b, c.shape[0]


def expressions(a, b, x):
    c = a + x * b
    d = np.sqrt(np.abs(c)) - 1
    e = a.astype(np.float32)
    k = np.arange(len(a))
    big = a > b
    for i in range(len(a)):
        if big[i]:
            d[i] += k[i] * e[i]
    return c, d, e, k, big


def products(A, v):
    u = A @ v
    M = A.T @ A
    for i in range(len(u)):
        M[0, i] += u[i]
    return M, u.copy()


def again(a):
    b = np.zeros(len(a))
    total = 0.0
    for i in range(len(a)):
        b[i] += a[i]
    for i in range(len(a)):
        total += b[i]
    b = b + 1
    for i in range(len(a)):
        a[i] = b[i]
    b = a * b[0]
    for i in range(len(a)):
        total += b[i]
    b *= 2
    return total, b


def either(a, way):
    if way > 0:
        b = np.zeros(len(a))
    else:
        b = a.copy()
    for i in range(len(a)):
        b[i] += 1
    return b


def early(a, x):
    found = np.full(3, -1)
    for i in range(len(a)):
        if a[i] > x:
            return found
        found[i % 3] = i
    return a * 2.0


def of_a_branch(a, n):
    if n > 5:
        b = np.ones(n - 5)
        for i in range(n - 5):
            a[i] += b[i]
    return n


def row_sums(R, n):
    sums = np.zeros(R.shape[0])
    counts = np.zeros(R.shape[0], dtype=int)
    for _t in range(n):
        part = np.zeros(R.shape[0])
        for (i, _j), r in R:
            part[i] += r
            counts[i] += 1
        for i in range(R.shape[0]):
            sums[i] += part[i]
    return sums, counts


def rows_of_their_own(A, k):
    out = np.empty(A.shape[0])
    for i in range(A.shape[0]):
        w = np.zeros(k)
        for j in range(A.shape[1]):
            w[j % k] += A[i, j]
        out[i] = w[0] * w[k - 1]
    return out


def until_it_changes_little(A, tolerance):
    change = tolerance + 1.0
    sweeps = 0
    while change > tolerance:
        B = A.copy()
        change = 0.0
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.25 * (B[i - 1, j] + B[i + 1, j] + B[i, j - 1] + B[i, j + 1])
                change = max(change, abs(A[i, j] - B[i, j]))
        sweeps += 1
    return sweeps


def gradient_descent(X, y, step, rounds):
    w = np.zeros(X.shape[1])
    for _t in range(rounds):
        g = X.T @ (X @ w - y)
        w = w - step * g
    return w


def gradient_descent_by_loops(X, y, step, rounds):
    n, k = X.shape
    w = np.zeros(k)
    loss = np.empty(rounds)
    for t in range(rounds):
        r = np.zeros(n)
        g = np.zeros(k)
        for i in range(n):
            for j in range(k):
                r[i] += X[i, j] * w[j]
        total = 0.0
        for i in range(n):
            r[i] -= y[i]
            total += r[i] ** 2
        for j in range(k):
            for i in range(n):
                g[j] += X[i, j] * r[i]
        for j in range(k):
            w[j] -= step * g[j]
        loss[t] = total
    return w, loss


def cases() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """A function and fresh arguments for each name."""
    rng = np.random.default_rng(3)
    u = rng.random
    keys = np.sort(rng.choice(600, 200, replace=False))
    ratings = orion.sparse((keys // 20, keys % 20), u(200), shape=(30, 20))
    return {
        "Jacobi": (jacobi, (u((20, 30)), 5)),
        "Jacobi with copies": (jacobi_with_copies, (u((20, 30)), 5)),
        "Jacobi with copies, float32": (jacobi_with_copies, (u((20, 30)).astype(np.float32), 4)),
        "Jacobi without rounds": (jacobi_with_copies, (u((3, 3)), 0)),
        "padded": (padded, (u(50), 3)),
        "padded, nothing": (padded, (u(0), 0)),
        "padded, one": (padded, (u(1), 0)),
        "histogram": (histogram, (u(500), 10)),
        "several": (several, (u((12, 7)), 4)),
        "several, integers": (several, (rng.integers(0, 9, (5, 7)), 5)),
        "expressions": (expressions, (u(40), u(40), 0.5)),
        "expressions, float32": (expressions, (u(40).astype(np.float32), u(40).astype(np.float32), 3)),
        "expressions, strided": (expressions, (u((40, 2))[:, 1], u(80)[::2], 2.0)),
        "products": (products, (u((9, 9)), u(9))),
        "again": (again, (u(30),)),
        "one way": (either, (u(30), 1)),
        "the other way": (either, (u(30), 0)),
        "early": (early, (u(30), 0.9)),
        "not early": (early, (u(30), 2.0)),
        "a branch": (of_a_branch, (u(30), 12)),
        "no branch": (of_a_branch, (u(30), 3)),
        "sparse": (row_sums, (ratings, 3)),
        "until it changes little": (until_it_changes_little, (u((9, 9)), 1e-3)),
        "gradient descent": (gradient_descent, (u((30, 4)), u(30), 0.01, 5)),
        "gradient descent by loops": (gradient_descent_by_loops, (u((30, 4)), u(30), 0.01, 5)),
        "rows of their own": (rows_of_their_own, (u((30, 20)), 3)),
    }
