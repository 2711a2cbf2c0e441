"""Numerical methods as in textbooks and scripts: linear systems, eigenvalues, roots, integrals and ODEs in loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def matrix_product(A, B):
    """Product of two matrices, entry by entry."""
    n, m = A.shape
    p = B.shape[1]
    C = np.zeros((n, p))
    for i in range(n):
        for j in range(p):
            s = 0.0
            for k in range(m):
                s += A[i, k] * B[k, j]
            C[i, j] = s
    return C


def product_by_rows(A, B):
    """Product of two matrices, as sums of multiples of rows."""
    C = np.zeros((len(A), B.shape[1]))
    for i in range(len(A)):
        for k in range(len(B)):
            C[i] += A[i, k] * B[k]
    return C


def _two_matrices_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, n)), rng.standard_normal((n, n))


def lu_pivoted(A):
    """LU factors in place, the order of the rows, and the sign of that order (0 if singular)."""
    n = A.shape[0]
    order = np.arange(n)
    sign = 1
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        if A[p, k] == 0.0:
            return order, 0
        if p != k:
            A[k], A[p] = A[p].copy(), A[k].copy()
            order[k], order[p] = order[p], order[k]
            sign = -sign
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            A[i, k + 1 :] -= A[i, k] * A[k, k + 1 :]
    return order, sign


def cholesky(A):
    """Lower Cholesky factor, and whether the matrix is positive definite."""
    n = len(A)
    L = np.zeros_like(A)
    for j in range(n):
        s = A[j, j]
        for k in range(j):
            s -= L[j, k] ** 2
        if s <= 0.0:
            return L, False
        L[j, j] = math.sqrt(s)
        for i in range(j + 1, n):
            t = A[i, j]
            for k in range(j):
                t -= L[i, k] * L[j, k]
            L[i, j] = t / L[j, j]
    return L, True


def gram_schmidt(A):
    """QR factors by modified Gram-Schmidt over columns."""
    n = A.shape[1]
    Q = A.copy()
    R = np.zeros((n, n))
    for j in range(n):
        R[j, j] = np.sqrt(np.sum(Q[:, j] ** 2))
        Q[:, j] /= R[j, j]
        for k in range(j + 1, n):
            R[j, k] = np.dot(Q[:, j], Q[:, k])
            Q[:, k] -= R[j, k] * Q[:, j]
    return Q, R


def _square_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).standard_normal((n, n)),)


def _definite_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    A = rng.random((n, n))
    A += A.T.copy()
    A[np.arange(n), np.arange(n)] += n
    return A, rng.random(n)


def _definite_matrix_arguments(n: int) -> tuple[Any, ...]:
    return _definite_arguments(n)[:1]


def back_substitution(U, B):
    """Solves an upper triangular system for many right sides, in place."""
    n = U.shape[0]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            B[i] -= U[i, k] * B[k]
        B[i] /= U[i, i]


def _triangle_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.random((n, n)) + n * np.eye(n), rng.random((n, n))


def conjugate_gradient(A, b, tol=1e-9, max_iter=25):
    """Solution of a dense positive definite system, and how many iterations it took."""
    n = len(b)
    x = np.zeros(n)
    r = b.copy()
    p = r.copy()
    Ap = np.zeros(n)
    rr = np.dot(r, r)
    it = 0
    while it < max_iter and math.sqrt(rr) > tol:
        for i in range(n):
            Ap[i] = np.dot(A[i], p)
        alpha = rr / np.dot(p, Ap)
        x += alpha * p
        r -= alpha * Ap
        rr_new = np.dot(r, r)
        p = r + rr_new / rr * p
        rr = rr_new
        it += 1
    return x, it


def csr_times(indptr, indices, data, x, y):
    """Product of a sparse matrix and a vector, into y."""
    for row in range(len(indptr) - 1):
        s = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            s += data[k] * x[indices[k]]
        y[row] = s


def sparse_conjugate_gradient(indptr, indices, data, b, tol=1e-8, max_iter=15):
    """Solution of a sparse positive definite system, and the residual after each iteration."""
    n = len(b)
    x = np.zeros(n)
    r, p = b.copy(), b.copy()
    Ap = np.empty(n)
    residuals = np.zeros(max_iter)
    rho = np.sum(r * r)
    for it in range(max_iter):
        csr_times(indptr, indices, data, p, Ap)
        alpha = rho / np.dot(p, Ap)
        rho_new = 0.0
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * Ap[i]
            rho_new += r[i] * r[i]
        residuals[it] = math.sqrt(rho_new)
        if residuals[it] < tol:
            break
        for i in range(n):
            p[i] = r[i] + rho_new / rho * p[i]
        rho = rho_new
    return x, residuals


def _laplacian_arguments(n: int) -> tuple[Any, ...]:
    cell = np.arange(n * n).reshape(n, n)
    pairs = [(cell, cell), (cell[1:], cell[:-1]), (cell[:-1], cell[1:])]
    pairs += [(cell[:, 1:], cell[:, :-1]), (cell[:, :-1], cell[:, 1:])]
    rows = np.concatenate([a.ravel() for a, _ in pairs])
    columns = np.concatenate([b.ravel() for _, b in pairs])
    order = np.lexsort((columns, rows))
    indptr = np.searchsorted(rows[order], np.arange(n * n + 1))
    data = np.where(rows == columns, 4.1, -1.0)[order]
    return indptr, columns[order], data, np.random.default_rng(n).random(n * n)


def power_iteration(A, x, tol=1e-9, max_iter=8):
    """Largest eigenvalue and its vector, scaled by the largest entry."""
    n = A.shape[0]
    value = 0.0
    for _ in range(max_iter):
        y = np.zeros(n)
        for i in range(n):
            y[i] = np.dot(A[i], x)
        k = np.argmax(np.abs(y))
        before, value = value, y[k]
        x = y / y[k]
        if abs(value - before) < tol * abs(value):
            break
    return value, x


def thomas(lower, diag, upper, rhs):
    """Solution of a tridiagonal system, with two scratch arrays."""
    n = len(rhs)
    c = np.zeros(n)
    d = np.zeros(n)
    c[0] = upper[0] / diag[0]
    d[0] = rhs[0] / diag[0]
    for i in range(1, n):
        w = diag[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / w
        d[i] = (rhs[i] - lower[i] * d[i - 1]) / w
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def thomas_many(lower, diag, upper, rhs):
    """Solves a tridiagonal system per row, in place of the right sides."""
    for a, b, c, d in zip(lower, diag, upper, rhs):  # noqa: B905
        d[:] = thomas(a, b, c, d)


def _tridiagonal_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.random(n), 3.0 + rng.random(n), rng.random(n), rng.random(n)


def _tridiagonals_arguments(n: int) -> tuple[Any, ...]:
    return tuple(array.reshape(n, 100) for array in _tridiagonal_arguments(100 * n))


def kepler_newton(mean, eccentricity, tol=1e-12):
    """Eccentric anomalies of many orbits by Newton's method."""
    result = np.empty_like(mean)
    for i in range(len(mean)):
        M, e = mean[i], eccentricity[i]
        E = M if e < 0.8 else math.pi
        delta = 1.0
        steps = 0
        while abs(delta) > tol and steps < 30:
            delta = (E - e * math.sin(E) - M) / (1.0 - e * math.cos(E))
            E -= delta
            steps += 1
        result[i] = E
    return result


def _orbits_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(0.0, 2.0 * math.pi, n), rng.uniform(0.0, 0.9, n)


def mismatch(x, level):
    """Function whose root is sought: a saturating curve less a level."""
    return x * math.exp(-0.1 * x) + 0.5 * x - level


def bisect_all(levels, lo=0.0, hi=20.0, width=1e-9):
    """Roots of one function at many levels by bisection, nan where the interval holds no root."""
    roots = np.full(levels.size, np.nan)
    for i, level in enumerate(levels):
        a, b = lo, hi
        fa = mismatch(a, level)
        if fa * mismatch(b, level) > 0:
            continue
        while b - a > width:
            mid = 0.5 * (a + b)
            fm = mismatch(mid, level)
            if fa * fm <= 0:
                b = mid
            else:
                a, fa = mid, fm
        roots[i] = 0.5 * (a + b)
    return roots


def _levels_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).uniform(0.1, 12.0, n),)


def horner(coeffs, xs):
    """Values and slopes of a polynomial at many points, highest power first."""
    values = np.zeros(len(xs))
    slopes = np.zeros(len(xs))
    for i, x in enumerate(xs):
        y = dy = 0.0
        for c in coeffs:
            dy = dy * x + y
            y = y * x + c
        values[i], slopes[i] = y, dy
    return values, slopes


def _polynomial_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.standard_normal(20), rng.uniform(-1.0, 1.0, n)


def fft(re, im):
    """Fourier transform in place, the length a power of two, by bit reversal and butterflies."""
    n = len(re)
    for i in range(n):
        j, k, m = 0, i, n >> 1
        while m > 0:
            j, k, m = 2 * j + k % 2, k // 2, m // 2
        if j > i:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    half = 1
    while half < n:
        for start in range(0, n, 2 * half):
            for k in range(half):
                c, s = math.cos(math.pi * k / half), -math.sin(math.pi * k / half)
                a, b = start + k, start + k + half
                tr = c * re[b] - s * im[b]
                ti = c * im[b] + s * re[b]
                re[b], im[b] = re[a] - tr, im[a] - ti
                re[a], im[a] = re[a] + tr, im[a] + ti
        half *= 2


def _signal_arguments(n: int) -> tuple[Any, ...]:
    length = 1 << (n.bit_length() - 1)
    return np.random.default_rng(n).standard_normal(length), np.zeros(length)


def simpson_bessel(xs, panels=100):
    """Bessel function of order zero at many points, by Simpson's rule over its integral."""
    h = math.pi / panels
    out = []
    for x in xs:
        total = 1.0 + math.cos(x * math.sin(math.pi))
        for k in range(1, panels):
            weight = 4.0 if k % 2 == 1 else 2.0
            total += weight * math.cos(x * math.sin(k * h))
        out.append(total * h / 3.0 / math.pi)
    return np.array(out)


def interpolate(queries, xs, ys, outside=0.0):
    """Values of a table at many points, linear between its entries."""
    result = np.empty(len(queries))
    for q in range(len(queries)):
        x = queries[q]
        if x < xs[0] or x > xs[-1]:
            result[q] = outside
            continue
        lo, hi = 0, len(xs) - 1
        while hi - lo > 1:
            mid = (lo + hi) // 2
            if xs[mid] <= x:
                lo = mid
            else:
                hi = mid
        t = (x - xs[lo]) / (xs[hi] - xs[lo])
        result[q] = (1.0 - t) * ys[lo] + t * ys[hi]
    return result


def _table_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(-0.05, 1.05, n), np.linspace(0.0, 1.0, 200) ** 2, rng.random(200)


def epidemic_grid(betas, gammas, days=60, dt=0.5):
    """Peak share of the ill for each pair of rates in an SIR model, and the rates with the highest peak."""
    peaks = np.zeros((len(betas), len(gammas)))
    worst, at = -1.0, (0, 0)
    for i, beta in enumerate(betas):
        for j, gamma in enumerate(gammas):
            s, ill = 0.999, 0.001
            for _ in range(int(days / dt)):
                caught = beta * s * ill * dt
                s -= caught
                ill += caught - gamma * ill * dt
                peaks[i, j] = max(peaks[i, j], ill)
                if ill < 1e-5:
                    break
            if peaks[i, j] > worst:
                worst, at = peaks[i, j], (i, j)
    return peaks, worst, at


def _rates_arguments(n: int) -> tuple[Any, ...]:
    return np.linspace(0.1, 0.9, n), np.linspace(0.05, 0.5, n)


def van_der_pol(t_end, mu=5.0, h=0.01, tol=1e-7):
    """State at a time and the number of steps tried, by Heun's method with step control."""
    t, x, v = 0.0, 2.0, 0.0
    tried = 0
    while t < t_end:
        h = min(h, t_end - t)
        a1 = mu * (1.0 - x * x) * v - x
        x2, v2 = x + h * v, v + h * a1
        a2 = mu * (1.0 - x2 * x2) * v2 - x2
        error = 0.5 * h * max(abs(v2 - v), abs(a2 - a1))
        if error <= tol:
            t += h
            x += 0.5 * h * (v + v2)
            v += 0.5 * h * (a1 + a2)
        tried += 1
        h *= min(2.0, max(0.3, 0.9 * math.sqrt(tol / (error + 1e-300))))
    return x, v, tried


def _time_arguments(n: int) -> tuple[Any, ...]:
    return (0.1 * n,)


def first_asymmetry(A, tol=1e-12):
    """Position of the first entry that differs from the one across the diagonal, or (-1, -1)."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            if abs(A[i, j] - A[j, i]) > tol:
                return i, j
    return -1, -1


def _nearly_symmetric_arguments(n: int) -> tuple[Any, ...]:
    A, _ = _definite_arguments(n)
    A[n - n // 20, n // 3] += 1.0
    return (A,)


_ENTRIES = "Each entry is a dot product of its own, and the inputs are only read."
_ROWS = "Each row of the product is summed on its own."
_ELIMINATION = "Pivots come one after the other, but below each of them all rows are changed independently."
_FACTOR = "Columns come one after the other, but each entry of one needs only finished columns and the pivot."
_COLUMNS = "Columns come one after the other, but each of them is taken out of all later ones independently."
_SIDES = "Rows come one after the other, but the right sides, which are the columns of B, never meet."
_MATVEC = "Iterations are serial, but each is mostly a matrix-vector product whose rows are independent."
_FRACTIONS = "Elimination is a recurrence of linear fractions and of linear functions, which compose associatively."
_SYSTEMS = "Each system is solved on its own, with scratch arrays of its own."
_ALONE = "Each element of the result is computed on its own."
_APPENDED = "Each point is integrated on its own, and each iteration appends exactly one value."
_STAGES = "Stages are serial, but swaps and butterflies of one stage each touch two elements of their own."
_MODELS = "Each pair of rates is a simulation of its own, and the worst is the first of the highest peaks."
_STEPS = "Each step starts from the state and the step length that the one before has left."
_MISMATCH = "The loops only read, and end at the first entry that differs."

CASES: tuple[Case, ...] = (
    Case("matrix product", matrix_product, _two_matrices_arguments, 45, 250, Nature.PARALLEL, _ENTRIES),
    Case("matrix product", product_by_rows, _two_matrices_arguments, 90, 300, Nature.PARALLEL, _ROWS),
    Case("LU", lu_pivoted, _square_arguments, 100, 400, Nature.PARALLEL, _ELIMINATION),
    Case("Cholesky", cholesky, _definite_matrix_arguments, 80, 450, Nature.PARALLEL, _FACTOR),
    Case("QR", gram_schmidt, _square_arguments, 70, 220, Nature.PARALLEL, _COLUMNS),
    Case("triangular solve", back_substitution, _triangle_arguments, 120, 400, Nature.PARALLEL, _SIDES),
    Case("conjugate gradient", conjugate_gradient, _definite_arguments, 700, 1500, Nature.PARALLEL, _MATVEC),
    Case("conjugate gradient", sparse_conjugate_gradient, _laplacian_arguments, 25, 350, Nature.PARALLEL, _MATVEC),
    Case("power iteration", power_iteration, _definite_arguments, 700, 1500, Nature.PARALLEL, _MATVEC),
    Case("tridiagonal system", thomas, _tridiagonal_arguments, 20_000, 1_000_000, Nature.SCAN, _FRACTIONS),
    Case("tridiagonal system", thomas_many, _tridiagonals_arguments, 200, 10_000, Nature.PARALLEL, _SYSTEMS),
    Case("Newton's method", kepler_newton, _orbits_arguments, 4000, 150_000, Nature.PARALLEL, _ALONE),
    Case("bisection", bisect_all, _levels_arguments, 1000, 40_000, Nature.PARALLEL, _ALONE),
    Case("polynomials", horner, _polynomial_arguments, 3000, 500_000, Nature.PARALLEL, _ALONE),
    Case("Fourier transform", fft, _signal_arguments, 1024, 65_536, Nature.PARALLEL, _STAGES),
    Case("Simpson's rule", simpson_bessel, _levels_arguments, 400, 10_000, Nature.PARALLEL, _APPENDED),
    Case("interpolation", interpolate, _table_arguments, 6000, 500_000, Nature.PARALLEL, _ALONE),
    Case("ODEs over a grid", epidemic_grid, _rates_arguments, 16, 220, Nature.PARALLEL, _MODELS),
    Case("ODE, adaptive steps", van_der_pol, _time_arguments, 50, 1500, Nature.SERIAL, _STEPS),
    Case("symmetry check", first_asymmetry, _nearly_symmetric_arguments, 400, 3000, Nature.SEARCH, _MISMATCH),
)
