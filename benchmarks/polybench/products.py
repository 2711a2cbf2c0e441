"""Products of matrices: 2mm, 3mm, doitgen, gemm, symm, syr2k, syrk, trmm."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .kernel import Inputs, Kernel, uniform

# ---------------------------------------------------------------- 2mm: D = alpha A B C + beta D


def two_mm(tmp, A, B, C, D, alpha, beta):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            tmp[i, j] = 0.0
            for k in range(A.shape[1]):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(A.shape[0]):
        for j in range(C.shape[1]):
            D[i, j] *= beta
            for k in range(C.shape[0]):
                D[i, j] += tmp[i, k] * C[k, j]


@njit(parallel=True, fastmath=False)
def two_mm_prange(tmp, A, B, C, D, alpha, beta):
    for i in prange(A.shape[0]):
        for j in range(B.shape[1]):
            tmp[i, j] = 0.0
            for k in range(A.shape[1]):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
        for j in range(C.shape[1]):  # row i of D needs row i of tmp only
            D[i, j] *= beta
            for k in range(C.shape[0]):
                D[i, j] += tmp[i, k] * C[k, j]


def two_mm_inputs(size: str) -> Inputs:
    ni, nj, nk, nl = {"tiny": (7, 9, 5, 11), "small": (60, 70, 80, 90), "bench": (440, 480, 520, 560)}[size]
    return {
        "tmp": uniform(1, ni, nj), "A": uniform(2, ni, nk), "B": uniform(3, nk, nj), "C": uniform(4, nj, nl),
        "D": uniform(5, ni, nl), "alpha": 1.5, "beta": 1.2,
    }  # fmt: skip


TWO_MM = Kernel("2mm", two_mm, two_mm_prange, two_mm_inputs, ("tmp", "D"))


# ---------------------------------------------------------------- 3mm: G = (A B) (C D)


def three_mm(E, A, B, F, C, D, G):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            E[i, j] = 0.0
            for k in range(A.shape[1]):
                E[i, j] += A[i, k] * B[k, j]
    for i in range(C.shape[0]):
        for j in range(D.shape[1]):
            F[i, j] = 0.0
            for k in range(C.shape[1]):
                F[i, j] += C[i, k] * D[k, j]
    for i in range(E.shape[0]):
        for j in range(F.shape[1]):
            G[i, j] = 0.0
            for k in range(E.shape[1]):
                G[i, j] += E[i, k] * F[k, j]


@njit(parallel=True, fastmath=False)
def three_mm_prange(E, A, B, F, C, D, G):
    for i in prange(A.shape[0]):
        for j in range(B.shape[1]):
            E[i, j] = 0.0
            for k in range(A.shape[1]):
                E[i, j] += A[i, k] * B[k, j]
    for i in prange(C.shape[0]):
        for j in range(D.shape[1]):
            F[i, j] = 0.0
            for k in range(C.shape[1]):
                F[i, j] += C[i, k] * D[k, j]
    for i in prange(E.shape[0]):
        for j in range(F.shape[1]):
            G[i, j] = 0.0
            for k in range(E.shape[1]):
                G[i, j] += E[i, k] * F[k, j]


def three_mm_inputs(size: str) -> Inputs:
    ni, nj, nk, nl, nm = {
        "tiny": (6, 7, 8, 9, 5), "small": (50, 55, 60, 65, 70), "bench": (400, 420, 440, 460, 480),
    }[size]  # fmt: skip
    return {
        "E": uniform(1, ni, nj), "A": uniform(2, ni, nk), "B": uniform(3, nk, nj), "F": uniform(4, nj, nl),
        "C": uniform(5, nj, nm), "D": uniform(6, nm, nl), "G": uniform(7, ni, nl),
    }  # fmt: skip


THREE_MM = Kernel("3mm", three_mm, three_mm_prange, three_mm_inputs, ("E", "F", "G"))


# ---------------------------------------------------------------- doitgen: every row A[r, q] times C4


def doitgen(A, C4, row):
    for r in range(A.shape[0]):
        for q in range(A.shape[1]):
            for p in range(A.shape[2]):
                row[p] = 0.0
                for s in range(A.shape[2]):
                    row[p] += A[r, q, s] * C4[s, p]
            for p in range(A.shape[2]):
                A[r, q, p] = row[p]


@njit(parallel=True, fastmath=False)
def doitgen_prange(A, C4, row):
    for r in prange(A.shape[0]):
        own = np.empty_like(row)  # one `row` per r: the shared one would be written by all at once
        for q in range(A.shape[1]):
            for p in range(A.shape[2]):
                own[p] = 0.0
                for s in range(A.shape[2]):
                    own[p] += A[r, q, s] * C4[s, p]
            for p in range(A.shape[2]):
                A[r, q, p] = own[p]
        if r == A.shape[0] - 1:  # what the serial loop leaves in it
            for p in range(A.shape[2]):
                row[p] = own[p]


def doitgen_inputs(size: str) -> Inputs:
    nr, nq, np_ = {"tiny": (5, 4, 7), "small": (20, 16, 24), "bench": (120, 110, 128)}[size]
    return {"A": uniform(1, nr, nq, np_), "C4": uniform(2, np_, np_), "row": uniform(3, np_)}


DOITGEN = Kernel("doitgen", doitgen, doitgen_prange, doitgen_inputs, ("A", "row"))


# ---------------------------------------------------------------- gemm: C = alpha A B + beta C


def gemm(C, A, B, alpha, beta):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += alpha * A[i, k] * B[k, j]


@njit(parallel=True, fastmath=False)
def gemm_prange(C, A, B, alpha, beta):
    for i in prange(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += alpha * A[i, k] * B[k, j]


def gemm_inputs(size: str) -> Inputs:
    ni, nj, nk = {"tiny": (7, 9, 5), "small": (60, 70, 80), "bench": (1000, 1100, 1200)}[size]
    return {"C": uniform(1, ni, nj), "A": uniform(2, ni, nk), "B": uniform(3, nk, nj), "alpha": 1.5, "beta": 1.2}


GEMM = Kernel("gemm", gemm, gemm_prange, gemm_inputs, ("C",))


# ---------------------------------------------------------------- symm: C = alpha A B + beta C, A symmetric


def symm(C, A, B, alpha, beta):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            above = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                above += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * above


@njit(parallel=True, fastmath=False)
def symm_prange(C, A, B, alpha, beta):
    for j in prange(C.shape[1]):  # row i updates the rows above it: only columns are independent
        for i in range(C.shape[0]):
            above = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                above += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * above


def symm_inputs(size: str) -> Inputs:
    m, n = {"tiny": (8, 6), "small": (60, 70), "bench": (600, 640)}[size]
    return {"C": uniform(1, m, n), "A": uniform(2, m, m), "B": uniform(3, m, n), "alpha": 1.5, "beta": 1.2}


SYMM = Kernel("symm", symm, symm_prange, symm_inputs, ("C",))


# ---------------------------------------------------------------- syr2k: C = alpha (A B' + B A') + beta C, lower half


def syr2k(C, A, B, alpha, beta):
    for i in range(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


@njit(parallel=True, fastmath=False)
def syr2k_prange(C, A, B, alpha, beta):
    for i in prange(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


def syr2k_inputs(size: str) -> Inputs:
    n, m = {"tiny": (9, 7), "small": (70, 60), "bench": (640, 540)}[size]
    return {"C": uniform(1, n, n), "A": uniform(2, n, m), "B": uniform(3, n, m), "alpha": 1.5, "beta": 1.2}


SYR2K = Kernel("syr2k", syr2k, syr2k_prange, syr2k_inputs, ("C",))


# ---------------------------------------------------------------- syrk: C = alpha A A' + beta C, lower half


def syrk(C, A, alpha, beta):
    for i in range(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


@njit(parallel=True, fastmath=False)
def syrk_prange(C, A, alpha, beta):
    for i in prange(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


def syrk_inputs(size: str) -> Inputs:
    n, m = {"tiny": (9, 7), "small": (70, 60), "bench": (740, 640)}[size]
    return {"C": uniform(1, n, n), "A": uniform(2, n, m), "alpha": 1.5, "beta": 1.2}


SYRK = Kernel("syrk", syrk, syrk_prange, syrk_inputs, ("C",))


# ---------------------------------------------------------------- trmm: B = alpha A' B, A unit lower triangular


def trmm(A, B, alpha):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            for k in range(i + 1, B.shape[0]):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


@njit(parallel=True, fastmath=False)
def trmm_prange(A, B, alpha):
    for i in range(B.shape[0]):  # row i reads the rows below it as they were
        for j in prange(B.shape[1]):
            for k in range(i + 1, B.shape[0]):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


def trmm_inputs(size: str) -> Inputs:
    m, n = {"tiny": (8, 6), "small": (60, 70), "bench": (600, 640)}[size]
    return {"A": uniform(1, m, m), "B": uniform(2, m, n), "alpha": 1.5}


TRMM = Kernel("trmm", trmm, trmm_prange, trmm_inputs, ("B",))
