"""Nests of ranges whose loops are put into another order: distributed, interchanged, skewed."""

import numpy as np


def gemm(C, A, B, alpha, beta):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= beta
            for k in range(A.shape[1]):
                C[i, j] += alpha * A[i, k] * B[k, j]


def gemm_acc(C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            acc = 0.0
            for k in range(A.shape[1]):
                acc += A[i, k] * B[k, j]
            C[i, j] = acc


def gs(A, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def seidel9(A, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0


def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])


def jacobi1d(A, B, T):
    n = A.shape[0]
    for _t in range(T):
        for i in range(1, n - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


def jacobi2d(A, B, T):
    n = A.shape[0]
    for _t in range(T):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


def floyd(P):
    n = P.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                P[i, j] = P[i, j] if P[i, j] < P[i, k] + P[k, j] else P[i, k] + P[k, j]


def bicg(A, s, q, p, r):
    m = A.shape[1]
    n = A.shape[0]
    for i in range(m):
        s[i] = 0.0
    for i in range(n):
        q[i] = 0.0
        for j in range(m):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]


def atax(A, x, y, tmp):
    m = A.shape[0]
    n = A.shape[1]
    for i in range(n):
        y[i] = 0.0
    for i in range(m):
        tmp[i] = 0.0
        for j in range(n):
            tmp[i] += A[i, j] * x[j]
        for j in range(n):
            y[j] += A[i, j] * tmp[i]


def mvt(x1, x2, y1, y2, A):
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            x1[i] += A[i, j] * y1[j]
    for i in range(n):
        for j in range(n):
            x2[i] += A[j, i] * y2[j]


def trisolv(L, x, b):
    n = L.shape[0]
    for i in range(n):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


def lcs(a, b, M):
    for i in range(1, M.shape[0]):
        for j in range(1, M.shape[1]):
            if a[i - 1] == b[j - 1]:
                M[i, j] = M[i - 1, j - 1] + 1
            else:
                M[i, j] = max(M[i - 1, j], M[i, j - 1])


def warped(a, b, M):
    for i in range(1, M.shape[0]):
        for j in range(1, M.shape[1]):
            M[i, j] = abs(a[i - 1] - b[j - 1]) + min(M[i - 1, j], M[i, j - 1], M[i - 1, j - 1])


def gramschmidt(A, R, Q):
    m = A.shape[0]
    n = A.shape[1]
    for k in range(n):
        nrm = 0.0
        for i in range(m):
            nrm += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(nrm)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = 0.0
            for i in range(m):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(m):
                A[i, j] = A[i, j] - Q[i, k] * R[k, j]


def two_temporaries(A, B, C):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            t = A[i, j] * 2.0
            B[i, j] = t + 1.0
        for j in range(1, A.shape[1]):
            t = B[i, j - 1]
            C[i, j] = C[i, j - 1] + t


def backwards(A, B):
    n = A.shape[0]
    for i in range(n - 2, -1, -1):
        B[i] = B[i + 1] * 0.5
        for j in range(0, A.shape[1], 3):
            A[i, j] += B[i] + A[i + 1, j]


def bounded(A, x, k):
    n = A.shape[0]
    for i in range(n):
        for j in range(max(0, i - k), min(n, i + k + 1)):
            x[i] += A[i, j] * (i + j) // 2
        if i % 2 == 0:
            x[i] *= 2


def last_value(A, x):
    last = 0.0
    for i in range(1, A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] += A[i - 1, j]
        x[i] = x[i - 1] + 1.0
        last = x[i]
    return last


def _random(*shape):
    return np.random.default_rng(len(shape)).random(shape)


def _definite(n):
    x = _random(n, n)
    return x @ x.T + n * np.eye(n)


def arguments(n):
    """For each loop its arguments, with extents around n."""
    m, k = n + 1, n + 2
    return {
        gemm: (_random(n, m), _random(n, k), _random(k, m), 1.5, 1.2),
        gemm_acc: (_random(n, m), _random(n, k), _random(k, m)),
        gs: (_random(n, k), 3),
        seidel9: (_random(n, k), 3),
        lu: (_definite(n),),
        cholesky: (_definite(n),),
        jacobi1d: (_random(n), _random(n), 4),
        jacobi2d: (_random(n, n), _random(n, n), 3),
        floyd: (_random(n, n),),
        bicg: (_random(n, m), _random(m), _random(n), _random(m), _random(n)),
        atax: (_random(n, m), _random(m), _random(m), _random(n)),
        mvt: (_random(n), _random(n), _random(n), _random(n), _random(n, n)),
        trisolv: (_definite(n), _random(n), _random(n)),
        lcs: (np.arange(n) % 7, np.arange(m) % 5, np.zeros((n + 1, m + 1), np.int64)),
        warped: (_random(n), _random(m), np.zeros((n + 1, m + 1))),
        gramschmidt: (_random(m, n), _random(n, n), _random(m, n)),
        two_temporaries: (_random(n, m), _random(n, m), _random(n, m)),
        backwards: (_random(n, m), _random(n)),
        bounded: (_random(n, n), _random(n), 2),
        last_value: (_random(n, m), _random(n)),
    }
