"""Factorizations and solvers: cholesky, durbin, gramschmidt, lu, ludcmp, trisolv."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .kernel import Floats, Inputs, Kernel, uniform


def dominant(n: int) -> Floats:
    """A matrix with a dominant diagonal: its factors exist, and its condition number is small."""
    return uniform(1, n, n) / n + 2.0 * np.eye(n)


# ---------------------------------------------------------------- cholesky: A = L L', L in the lower half


def cholesky(A):
    for i in range(A.shape[0]):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])


@njit(parallel=True, fastmath=False)
def cholesky_prange(A):
    for j in range(A.shape[0]):  # column by column: below the diagonal, the rows of a column are independent
        for k in range(j):
            A[j, j] -= A[j, k] * A[j, k]
        A[j, j] = np.sqrt(A[j, j])
        for i in prange(j + 1, A.shape[0]):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]


def cholesky_inputs(size: str) -> Inputs:
    n = {"tiny": 9, "small": 120, "bench": 1000}[size]
    A = dominant(n)
    return {"A": A + A.T}


CHOLESKY = Kernel("cholesky", cholesky, cholesky_prange, cholesky_inputs, ("A",))


# ---------------------------------------------------------------- durbin: the Yule-Walker equations


def durbin(r, y, z):
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, r.shape[0]):
        beta = (1.0 - alpha * alpha) * beta
        total = 0.0
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha


@njit(parallel=True, fastmath=False)
def durbin_prange(r, y, z):
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, r.shape[0]):
        beta = (1.0 - alpha * alpha) * beta
        total = 0.0
        for i in prange(k):  # a reduction: one partial sum per thread
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):  # parallel too, but done before a thread has started
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha


def durbin_inputs(size: str) -> Inputs:
    """Autocorrelations whose sum is below 1/2: the Toeplitz matrix of the equations has a dominant diagonal."""
    n = {"tiny": 11, "small": 900, "bench": 16000}[size]
    return {"r": 0.2 * uniform(1, n) / np.arange(1.0, n + 1.0) ** 2, "y": uniform(2, n), "z": uniform(3, n)}


DURBIN = Kernel("durbin", durbin, durbin_prange, durbin_inputs, ("y", "z"))


# ---------------------------------------------------------------- gramschmidt: A = Q R


def gramschmidt(A, R, Q):
    for k in range(A.shape[1]):
        square = 0.0
        for i in range(A.shape[0]):
            square += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(square)
        for i in range(A.shape[0]):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = 0.0
            for i in range(A.shape[0]):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(A.shape[0]):
                A[i, j] = A[i, j] - Q[i, k] * R[k, j]


@njit(parallel=True, fastmath=False)
def gramschmidt_prange(A, R, Q):
    for k in range(A.shape[1]):
        square = 0.0
        for i in range(A.shape[0]):
            square += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(square)
        for i in range(A.shape[0]):
            Q[i, k] = A[i, k] / R[k, k]
        for j in prange(k + 1, A.shape[1]):
            R[k, j] = 0.0
            for i in range(A.shape[0]):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(A.shape[0]):
                A[i, j] = A[i, j] - Q[i, k] * R[k, j]


def gramschmidt_inputs(size: str) -> Inputs:
    """Nearly orthogonal columns."""
    m, n = {"tiny": (9, 7), "small": (80, 70), "bench": (500, 440)}[size]
    A = uniform(1, m, n) / n + 2.0 * np.eye(m, n)
    return {"A": A, "R": np.zeros((n, n)), "Q": np.zeros((m, n))}


GRAMSCHMIDT = Kernel("gramschmidt", gramschmidt, gramschmidt_prange, gramschmidt_inputs, ("A", "R", "Q"))


# ---------------------------------------------------------------- lu: A = L U in place, without pivots


def lu(A):
    for i in range(A.shape[0]):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


@njit(parallel=True, fastmath=False)
def lu_prange(A):
    for k in range(A.shape[0]):  # the same products, subtracted in the same order, from all rows below k
        for i in prange(k + 1, A.shape[0]):
            A[i, k] /= A[k, k]
            for j in range(k + 1, A.shape[0]):
                A[i, j] -= A[i, k] * A[k, j]


def lu_inputs(size: str) -> Inputs:
    n = {"tiny": 9, "small": 100, "bench": 800}[size]
    return {"A": dominant(n)}


LU = Kernel("lu", lu, lu_prange, lu_inputs, ("A",))


# ---------------------------------------------------------------- ludcmp: A x = b by the factors of A


def ludcmp(A, b, x, y):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            w = A[i, j]
            for k in range(j):
                w -= A[i, k] * A[k, j]
            A[i, j] = w / A[j, j]
        for j in range(i, n):
            w = A[i, j]
            for k in range(i):
                w -= A[i, k] * A[k, j]
            A[i, j] = w
    for i in range(n):
        w = b[i]
        for j in range(i):
            w -= A[i, j] * y[j]
        y[i] = w
    for i in range(n - 1, -1, -1):
        w = y[i]
        for j in range(i + 1, n):
            w -= A[i, j] * x[j]
        x[i] = w / A[i, i]


@njit(parallel=True, fastmath=False)
def ludcmp_prange(A, b, x, y):
    n = A.shape[0]
    for k in range(n):  # as in lu
        for i in prange(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]
    for i in range(n):
        w = b[i]
        for j in range(i):
            w -= A[i, j] * y[j]
        y[i] = w
    for i in range(n - 1, -1, -1):
        w = y[i]
        for j in range(i + 1, n):
            w -= A[i, j] * x[j]
        x[i] = w / A[i, i]


def ludcmp_inputs(size: str) -> Inputs:
    n = {"tiny": 9, "small": 100, "bench": 800}[size]
    return {"A": dominant(n), "b": uniform(2, n), "x": uniform(3, n), "y": uniform(4, n)}


LUDCMP = Kernel("ludcmp", ludcmp, ludcmp_prange, ludcmp_inputs, ("A", "x", "y"))


# ---------------------------------------------------------------- trisolv: L x = b


def trisolv(L, x, b):
    for i in range(L.shape[0]):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


@njit(fastmath=False)
def trisolv_prange(L, x, b):
    """Serial: x[i] needs all before it. Column by column the updates are independent, but L is stored by rows."""
    for i in range(L.shape[0]):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


def trisolv_inputs(size: str) -> Inputs:
    n = {"tiny": 11, "small": 600, "bench": 9000}[size]
    return {"L": dominant(n), "x": uniform(2, n), "b": uniform(3, n)}


TRISOLV = Kernel("trisolv", trisolv, trisolv_prange, trisolv_inputs, ("x",))
