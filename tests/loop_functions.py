"""Loops in plain Python for the tests of the front end. Nothing here is ever run."""

# ruff: noqa: F841, B007
# mypy: ignore-errors

import math
from math import exp

import numpy as np
import numpy as xp
from numpy import sqrt
from numpy.linalg import norm

SCALE = 3
RATE = np.float32(0.5)


def sgd_epoch(ratings, W, H, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j] - reg * W[i])
        H[j] += step * (err * wi - reg * H[j])


def rmse(ratings, W, H):
    """The error of the model."""
    total = 0.0
    for (i, j), r in ratings:
        total += (r - W[i] @ H[j]) ** 2
    return np.sqrt(total / len(ratings))


def gauss_seidel(A, sweeps):
    for t in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def control_flow(a, b, n):
    best = -1
    for i in range(n - 1, -1, -2):
        k = i
        while k > 0 and a[k] != 0:
            k -= 1
            if b[k] < 0:
                continue
            if b[k] == 7:
                break
        if not 0 <= k < n or (a[i] < b[i] and a[i] > 0):
            best = i
    return best


def precedence(a, x, y):
    for i in range(2):
        a[i] = (x + y) * (x - y) / (x * y) // (x % y) ** -(x**2)
        a[i] = -((x + y) ** 2) + (-x) ** 2 - (x - (y - x)) - ((x - y) - x)
        a[i] = (x**y) ** 2 + x**y**2 + ~x + (-x) * -y
        a[i] = (x if x > y else y) if (x and y) or not x else (x if y else -x)
        a[i] = (x | y) ^ (x & y) << 2 >> (x + 1)
        a[i] = (x < y) + (x == y) * (not x)
        a[i] = ((x and y) or x) and (x or y)
        a[i] = (not x) + (x < y < 3) - (x if y else 2)


def slices(W, H, n):
    for i in range(n):
        W[i, :] = H[:, i]
        W[i, 1:n] = W[i, :-1] * 2
        W[i, ::2] += H[i][1:]
        W[i, n:1:-1] = 0
        H[i][0] = W[i, 0]


def tuple_values(events, a):
    for (i, j, k), (r, weight) in events:
        a[i, j] = r * weight
        x, y = i, j
        x, a[i, k] = y, x


def one_key(v, a):
    for i, x in v:
        a[i] = x


def helper(x, scale=2.0):
    return x * scale


def names(a, b, n):
    for i in range(len(a)):
        a[i] = xp.sqrt(b[i]) + sqrt(b[i]) + norm(b) + np.linalg.norm(b) + math.exp(1.0) + exp(2) + xp.absolute(i)
        a[i] = abs(i) + min(i, n) + max(1, 2, i) + int(b[i]) + float(n) + bool(n) + round(b[i]) + helper(i)
        a[i] = SCALE + RATE + np.pi + math.inf


def arrays(a, W, n):
    for i in range(n):
        z = np.zeros((3, n), dtype=np.float32)
        y = np.zeros(n, np.int64)
        x = W[i].astype(float).sum(axis=0)
        a[i] = a.size + W.shape[-1] + W.ndim + len(W[i]) + W[i].shape[0]
        W[i] = np.where(W[i] > 0, W[i], 0)


def square(x):
    return x * x


def norm2(x, y, *, scale=1):
    return (square(x) + square(y)) * scale
