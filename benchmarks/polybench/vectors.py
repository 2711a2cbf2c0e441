"""Products of matrices and vectors: atax, bicg, gemver, gesummv, mvt."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange

from .kernel import Inputs, Kernel, uniform

# ---------------------------------------------------------------- atax: y = A' (A x)


def atax(A, x, y, tmp):
    for i in range(A.shape[1]):
        y[i] = 0.0
    for i in range(A.shape[0]):
        tmp[i] = 0.0
        for j in range(A.shape[1]):
            tmp[i] += A[i, j] * x[j]
        for j in range(A.shape[1]):
            y[j] += A[i, j] * tmp[i]


@njit(parallel=True, fastmath=False)
def atax_prange(A, x, y, tmp):
    threads = get_num_threads()
    own = np.zeros((threads, A.shape[1]))  # all rows update y: one for each thread
    for thread in prange(threads):
        for i in range(thread * A.shape[0] // threads, (thread + 1) * A.shape[0] // threads):
            tmp[i] = 0.0
            for j in range(A.shape[1]):
                tmp[i] += A[i, j] * x[j]
            for j in range(A.shape[1]):
                own[thread, j] += A[i, j] * tmp[i]
    for j in range(A.shape[1]):
        y[j] = 0.0
        for thread in range(threads):
            y[j] += own[thread, j]


def atax_inputs(size: str) -> Inputs:
    m, n = {"tiny": (7, 9), "small": (700, 800), "bench": (8000, 8500)}[size]
    return {"A": uniform(1, m, n), "x": uniform(2, n), "y": uniform(3, n), "tmp": uniform(4, m)}


ATAX = Kernel("atax", atax, atax_prange, atax_inputs, ("y", "tmp"))


# ---------------------------------------------------------------- bicg: s = A' r and q = A p


def bicg(A, s, q, p, r):
    for i in range(A.shape[1]):
        s[i] = 0.0
    for i in range(A.shape[0]):
        q[i] = 0.0
        for j in range(A.shape[1]):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]


@njit(parallel=True, fastmath=False)
def bicg_prange(A, s, q, p, r):
    threads = get_num_threads()
    own = np.zeros((threads, A.shape[1]))  # as in atax
    for thread in prange(threads):
        for i in range(thread * A.shape[0] // threads, (thread + 1) * A.shape[0] // threads):
            q[i] = 0.0
            for j in range(A.shape[1]):
                own[thread, j] += r[i] * A[i, j]
                q[i] += A[i, j] * p[j]
    for j in range(A.shape[1]):
        s[j] = 0.0
        for thread in range(threads):
            s[j] += own[thread, j]


def bicg_inputs(size: str) -> Inputs:
    n, m = {"tiny": (9, 7), "small": (800, 700), "bench": (6500, 6000)}[size]
    return {"A": uniform(1, n, m), "s": uniform(2, m), "q": uniform(3, n), "p": uniform(4, m), "r": uniform(5, n)}


BICG = Kernel("bicg", bicg, bicg_prange, bicg_inputs, ("s", "q"))


# ---------------------------------------------------------------- gemver: two rank-one updates and two products


def gemver(A, u1, v1, u2, v2, w, x, y, z, alpha, beta):
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            x[i] = x[i] + beta * A[j, i] * y[j]
    for i in range(A.shape[0]):
        x[i] = x[i] + z[i]
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            w[i] = w[i] + alpha * A[i, j] * x[j]


@njit(parallel=True, fastmath=False)
def gemver_prange(A, u1, v1, u2, v2, w, x, y, z, alpha, beta):
    for i in prange(A.shape[0]):
        for j in range(A.shape[0]):
            A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in prange(A.shape[0]):
        for j in range(A.shape[0]):
            x[i] = x[i] + beta * A[j, i] * y[j]
        x[i] = x[i] + z[i]
    for i in prange(A.shape[0]):
        for j in range(A.shape[0]):
            w[i] = w[i] + alpha * A[i, j] * x[j]


def gemver_inputs(size: str) -> Inputs:
    n = {"tiny": 9, "small": 400, "bench": 6000}[size]
    vectors = {name: uniform(seed, n) for seed, name in enumerate(("u1", "v1", "u2", "v2", "w", "x", "y", "z"))}
    return {"A": uniform(8, n, n), **vectors, "alpha": 1.5, "beta": 1.2}


GEMVER = Kernel("gemver", gemver, gemver_prange, gemver_inputs, ("A", "w", "x"))


# ---------------------------------------------------------------- gesummv: y = alpha A x + beta B x


def gesummv(A, B, tmp, x, y, alpha, beta):
    for i in range(A.shape[0]):
        tmp[i] = 0.0
        y[i] = 0.0
        for j in range(A.shape[0]):
            tmp[i] = A[i, j] * x[j] + tmp[i]
            y[i] = B[i, j] * x[j] + y[i]
        y[i] = alpha * tmp[i] + beta * y[i]


@njit(parallel=True, fastmath=False)
def gesummv_prange(A, B, tmp, x, y, alpha, beta):
    for i in prange(A.shape[0]):
        tmp[i] = 0.0
        y[i] = 0.0
        for j in range(A.shape[0]):
            tmp[i] = A[i, j] * x[j] + tmp[i]
            y[i] = B[i, j] * x[j] + y[i]
        y[i] = alpha * tmp[i] + beta * y[i]


def gesummv_inputs(size: str) -> Inputs:
    n = {"tiny": 9, "small": 500, "bench": 5500}[size]
    return {
        "A": uniform(1, n, n), "B": uniform(2, n, n), "tmp": uniform(3, n), "x": uniform(4, n), "y": uniform(5, n),
        "alpha": 1.5, "beta": 1.2,
    }  # fmt: skip


GESUMMV = Kernel("gesummv", gesummv, gesummv_prange, gesummv_inputs, ("tmp", "y"))


# ---------------------------------------------------------------- mvt: x1 += A y1 and x2 += A' y2


def mvt(x1, x2, y1, y2, A):
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            x1[i] = x1[i] + A[i, j] * y1[j]
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            x2[i] = x2[i] + A[j, i] * y2[j]


@njit(parallel=True, fastmath=False)
def mvt_prange(x1, x2, y1, y2, A):
    for i in prange(A.shape[0]):
        for j in range(A.shape[0]):
            x1[i] = x1[i] + A[i, j] * y1[j]
    for i in prange(A.shape[0]):
        for j in range(A.shape[0]):
            x2[i] = x2[i] + A[j, i] * y2[j]


def mvt_inputs(size: str) -> Inputs:
    n = {"tiny": 9, "small": 400, "bench": 6000}[size]
    vectors = {name: uniform(seed, n) for seed, name in enumerate(("x1", "x2", "y1", "y2"))}
    return {**vectors, "A": uniform(4, n, n)}


MVT = Kernel("mvt", mvt, mvt_prange, mvt_inputs, ("x1", "x2"))
