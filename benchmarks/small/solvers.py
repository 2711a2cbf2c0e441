"""Iterative solvers, each until a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.small.program import Program


def jacobi(u, f, tol, most):
    """Solve Poisson's equation by Jacobi sweeps over two grids, until no value changes by more than `tol`."""
    n, m = u.shape
    new = u.copy()
    sweeps = 0
    change = tol + 1.0
    while change > tol and sweeps < most:
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])
                change = max(change, abs(new[i, j] - u[i, j]))
        u, new = new, u
        sweeps += 1
    return u, sweeps


def gauss_seidel_red_black(u, f, tol, most):
    """Solve Poisson's equation by sweeps over the red and then the black points, in place, until values settle."""
    n, m = u.shape
    sweeps = 0
    change = tol + 1.0
    while change > tol and sweeps < most:
        change = 0.0
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + 1 + colour) % 2, m - 1, 2):
                    new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])
                    change = max(change, abs(new - u[i, j]))
                    u[i, j] = new
        sweeps += 1
    return sweeps


def conjugate_gradients(b, x, tol):
    """Solve the 5-point stencil's equations by conjugate gradients; the borders of all grids are 0."""
    n, m = b.shape
    r = np.zeros((n, m))
    p = np.zeros((n, m))
    q = np.zeros((n, m))
    rho = 0.0
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            r[i, j] = b[i, j]
            p[i, j] = b[i, j]
            rho += b[i, j] * b[i, j]
    steps = 0
    while rho > tol * tol:
        pq = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                q[i, j] = 4.0 * p[i, j] - p[i - 1, j] - p[i + 1, j] - p[i, j - 1] - p[i, j + 1]
                pq += p[i, j] * q[i, j]
        alpha = rho / pq
        new_rho = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                x[i, j] += alpha * p[i, j]
                r[i, j] -= alpha * q[i, j]
                new_rho += r[i, j] * r[i, j]
        beta = new_rho / rho
        rho = new_rho
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                p[i, j] = r[i, j] + beta * p[i, j]
        steps += 1
    return steps


def power_iteration(A, x, tol):
    """Return the largest eigenvalue of a matrix, by products until it hardly changes."""
    n = len(x)
    y = np.zeros(n)
    value = 0.0
    change = 1.0
    steps = 0
    while change > tol:
        square = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += A[i, j] * x[j]
            y[i] = total
            square += total * total
        norm = np.sqrt(square)
        for i in range(n):
            x[i] = y[i] / norm
        change = abs(norm - value)
        value = norm
        steps += 1
    return value, steps


def gmres_20(A, b, x, tol, most_restarts):
    """Solve A x = b by GMRES, restarted after 20 steps, until the residual's norm is below `tol`."""
    n = len(b)
    m = 20
    V = np.zeros((m + 1, n))
    H = np.zeros((m + 1, m))
    cosine = np.zeros(m)
    sine = np.zeros(m)
    g = np.zeros(m + 1)
    y = np.zeros(m)
    restarts = 0
    residual = tol + 1.0
    while restarts < most_restarts:
        square = 0.0
        for i in range(n):
            total = b[i]
            for j in range(n):
                total -= A[i, j] * x[j]
            V[0, i] = total
            square += total * total
        residual = np.sqrt(square)
        if residual < tol:
            break
        for i in range(n):
            V[0, i] /= residual
        for k in range(m + 1):
            g[k] = 0.0
        g[0] = residual
        for k in range(m):
            for i in range(n):
                total = 0.0
                for j in range(n):
                    total += A[i, j] * V[k, j]
                V[k + 1, i] = total
            for r in range(k + 1):
                product = 0.0
                for i in range(n):
                    product += V[k + 1, i] * V[r, i]
                H[r, k] = product
                for i in range(n):
                    V[k + 1, i] -= product * V[r, i]
            square = 0.0
            for i in range(n):
                square += V[k + 1, i] * V[k + 1, i]
            norm = np.sqrt(square)
            H[k + 1, k] = norm
            for i in range(n):
                V[k + 1, i] /= norm
            for r in range(k):
                turned = cosine[r] * H[r, k] + sine[r] * H[r + 1, k]
                H[r + 1, k] = cosine[r] * H[r + 1, k] - sine[r] * H[r, k]
                H[r, k] = turned
            length = np.sqrt(H[k, k] * H[k, k] + norm * norm)
            cosine[k] = H[k, k] / length
            sine[k] = norm / length
            H[k, k] = length
            g[k + 1] = -sine[k] * g[k]
            g[k] = cosine[k] * g[k]
        for back in range(m):
            k = m - 1 - back
            total = g[k]
            for r in range(k + 1, m):
                total -= H[k, r] * y[r]
            y[k] = total / H[k, k]
        for i in range(n):
            total = x[i]
            for k in range(m):
                total += y[k] * V[k, i]
            x[i] = total
        restarts += 1
    return restarts


# ---------------------------------------------------------------- equations


def for_jacobi() -> tuple[Any, ...]:
    return np.zeros((64, 64)), np.random.default_rng(21).random((64, 64)) / 64**2, 1e-7, 10_000


def for_gauss_seidel() -> tuple[Any, ...]:
    return np.zeros((128, 128)), np.random.default_rng(22).random((128, 128)) / 128**2, 8e-6, 10_000


def for_conjugate_gradients() -> tuple[Any, ...]:
    return np.random.default_rng(23).random((130, 130)), np.zeros((130, 130)), 1e-8


def for_power_iteration() -> tuple[Any, ...]:
    A = np.random.default_rng(24).random((200, 200))
    return A + A.T + np.diag(np.linspace(0.0, 250.0, 200)), np.ones(200), 1e-10


def for_gmres() -> tuple[Any, ...]:
    rng = np.random.default_rng(25)
    A = rng.standard_normal((200, 200)) / 12.0 + np.diag(np.linspace(1.0, 4.0, 200))
    return A, rng.standard_normal(200), np.zeros(200), 1e-8, 100


PROGRAMS = (
    Program("jacobi", jacobi, for_jacobi),
    Program("gauss_seidel_red_black", gauss_seidel_red_black, for_gauss_seidel, ("u",)),
    Program("conjugate_gradients", conjugate_gradients, for_conjugate_gradients, ("x",)),
    Program("power_iteration", power_iteration, for_power_iteration, ("x",)),
    Program("gmres_20", gmres_20, for_gmres, ("x",)),
)
