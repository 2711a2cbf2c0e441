"""Programs that eliminate in dense matrices, one column or pivot after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.small.program import Program


def lu_partial_pivots(A, pivots):
    """Factor a matrix in place into L and U, with the largest element of each column as its pivot."""
    n = A.shape[0]
    for k in range(n):
        p = k
        largest = abs(A[k, k])
        for i in range(k + 1, n):
            if abs(A[i, k]) > largest:
                largest = abs(A[i, k])
                p = i
        pivots[k] = p
        if p != k:
            for j in range(n):
                swapped = A[k, j]
                A[k, j] = A[p, j]
                A[p, j] = swapped
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


def cholesky(A):
    """Factor a symmetric positive definite matrix in place: its lower triangle becomes L."""
    n = A.shape[0]
    for k in range(n):
        A[k, k] = np.sqrt(A[k, k])
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
        for j in range(k + 1, n):
            for i in range(j, n):
                A[i, j] -= A[i, k] * A[j, k]


def qr_gram_schmidt(A, R):
    """Factor a matrix in place into Q and R, by modified Gram-Schmidt."""
    m, n = A.shape
    for k in range(n):
        norm = 0.0
        for i in range(m):
            norm += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(norm)
        for i in range(m):
            A[i, k] /= R[k, k]
        for j in range(k + 1, n):
            product = 0.0
            for i in range(m):
                product += A[i, k] * A[i, j]
            R[k, j] = product
            for i in range(m):
                A[i, j] -= A[i, k] * product


def simplex(T, most_pivots):
    """Maximise by pivots on a tableau whose last row has the costs and whose last column the bounds."""
    rows, columns = T.shape
    pivots = 0
    while pivots < most_pivots:
        entering = 0
        least = -1e-9
        for j in range(columns - 1):
            if T[rows - 1, j] < least:
                least = T[rows - 1, j]
                entering = j
        if least == -1e-9:
            break
        leaving = -1
        ratio = np.inf
        for i in range(rows - 1):
            if T[i, entering] > 1e-9 and T[i, columns - 1] / T[i, entering] < ratio:
                ratio = T[i, columns - 1] / T[i, entering]
                leaving = i
        if leaving < 0:
            break
        pivot = T[leaving, entering]
        for j in range(columns):
            T[leaving, j] /= pivot
        for i in range(rows):
            if i != leaving:
                factor = T[i, entering]
                for j in range(columns):
                    T[i, j] -= factor * T[leaving, j]
        pivots += 1
    return T[rows - 1, columns - 1], pivots


# ---------------------------------------------------------------- matrices


def for_lu() -> tuple[Any, ...]:
    return np.random.default_rng(11).standard_normal((200, 200)), np.zeros(200, dtype=np.int64)


def for_cholesky() -> tuple[Any, ...]:
    rows = np.random.default_rng(12).standard_normal((200, 200))
    return (rows @ rows.T + 200.0 * np.eye(200),)


def for_qr() -> tuple[Any, ...]:
    return np.random.default_rng(13).standard_normal((150, 150)), np.zeros((150, 150))


def for_simplex() -> tuple[Any, ...]:
    rng = np.random.default_rng(14)
    bounds, unknowns = 150, 150
    T = np.zeros((bounds + 1, unknowns + bounds + 1))
    T[:bounds, :unknowns] = rng.random((bounds, unknowns))
    T[:bounds, unknowns : unknowns + bounds] = np.eye(bounds)
    T[:bounds, -1] = rng.random(bounds) + 1.0
    T[bounds, :unknowns] = -rng.random(unknowns) - 0.5
    return T, 500


PROGRAMS = (
    Program("lu", lu_partial_pivots, for_lu, ("A", "pivots")),
    Program("cholesky", cholesky, for_cholesky, ("A",)),
    Program("qr", qr_gram_schmidt, for_qr, ("A", "R")),
    Program("simplex", simplex, for_simplex, ("T",)),
)
