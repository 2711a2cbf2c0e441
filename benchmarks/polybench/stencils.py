"""Stencils: adi, fdtd-2d, heat-3d, jacobi-1d, jacobi-2d, seidel-2d."""

from __future__ import annotations

from numba import njit, prange

from .kernel import Inputs, Kernel, uniform

# ---------------------------------------------------------------- adi: heat, by alternating directions


def adi(u, v, p, q, tsteps):
    n = u.shape[0]
    dx = 1.0 / n
    dt = 1.0 / tsteps
    mul1 = 2.0 * dt / (dx * dx)
    mul2 = 1.0 * dt / (dx * dx)
    a = -mul1 / 2.0
    b = 1.0 + mul1
    d = -mul2 / 2.0
    e = 1.0 + mul2
    for _t in range(tsteps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = (-d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]) / (
                    a * p[i, j - 1] + b
                )
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -d / (d * p[i, j - 1] + e)
                q[i, j] = (-a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1]) / (
                    d * p[i, j - 1] + e
                )
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


@njit(parallel=True, fastmath=False)
def adi_prange(u, v, p, q, tsteps):
    n = u.shape[0]
    dx = 1.0 / n
    dt = 1.0 / tsteps
    mul1 = 2.0 * dt / (dx * dx)
    mul2 = 1.0 * dt / (dx * dx)
    a = -mul1 / 2.0
    b = 1.0 + mul1
    d = -mul2 / 2.0
    e = 1.0 + mul2
    for _t in range(tsteps):
        for i in prange(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = (-d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]) / (
                    a * p[i, j - 1] + b
                )
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in prange(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -d / (d * p[i, j - 1] + e)
                q[i, j] = (-a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1]) / (
                    d * p[i, j - 1] + e
                )
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def adi_inputs(size: str) -> Inputs:
    n, tsteps = {"tiny": (9, 5), "small": (80, 6), "bench": (500, 40)}[size]
    grids = {name: uniform(seed, n, n) for seed, name in enumerate(("u", "v", "p", "q"))}
    return {**grids, "tsteps": tsteps}


ADI = Kernel("adi", adi, adi_prange, adi_inputs, ("u", "v", "p", "q"))


# ---------------------------------------------------------------- fdtd-2d: an electromagnetic field in the plane


def fdtd_2d(ex, ey, hz, pulse):
    for t in range(pulse.shape[0]):
        for j in range(ey.shape[1]):
            ey[0, j] = pulse[t]
        for i in range(1, ey.shape[0]):
            for j in range(ey.shape[1]):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(ex.shape[0]):
            for j in range(1, ex.shape[1]):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(hz.shape[0] - 1):
            for j in range(hz.shape[1] - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@njit(parallel=True, fastmath=False)
def fdtd_2d_prange(ex, ey, hz, pulse):
    for t in range(pulse.shape[0]):
        for j in range(ey.shape[1]):
            ey[0, j] = pulse[t]
        for i in prange(1, ey.shape[0]):
            for j in range(ey.shape[1]):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in prange(ex.shape[0]):
            for j in range(1, ex.shape[1]):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(hz.shape[0] - 1):
            for j in range(hz.shape[1] - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def fdtd_2d_inputs(size: str) -> Inputs:
    nx, ny, tsteps = {"tiny": (9, 11, 5), "small": (100, 120, 20), "bench": (1000, 1200, 60)}[size]
    fields = {name: uniform(seed, nx, ny) for seed, name in enumerate(("ex", "ey", "hz"))}
    return {**fields, "pulse": uniform(3, tsteps)}


FDTD_2D = Kernel("fdtd-2d", fdtd_2d, fdtd_2d_prange, fdtd_2d_inputs, ("ex", "ey", "hz"))


# ---------------------------------------------------------------- heat-3d: heat in space, from A to B and back


def heat_3d(A, B, tsteps):
    for _t in range(tsteps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2] - 1):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2] - 1):
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


@njit(parallel=True, fastmath=False)
def heat_3d_prange(A, B, tsteps):
    for _t in range(tsteps):
        for i in prange(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2] - 1):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in prange(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2] - 1):
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


def heat_3d_inputs(size: str) -> Inputs:
    nx, ny, nz, tsteps = {"tiny": (7, 8, 9, 4), "small": (30, 32, 34, 10), "bench": (120, 124, 128, 40)}[size]
    return {"A": uniform(1, nx, ny, nz), "B": uniform(2, nx, ny, nz), "tsteps": tsteps}


HEAT_3D = Kernel("heat-3d", heat_3d, heat_3d_prange, heat_3d_inputs, ("A", "B"))


# ---------------------------------------------------------------- jacobi-1d: means of three, from A to B and back


def jacobi_1d(A, B, tsteps):
    for _t in range(tsteps):
        for i in range(1, A.shape[0] - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, A.shape[0] - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


@njit(parallel=True, fastmath=False)
def jacobi_1d_prange(A, B, tsteps):
    for _t in range(tsteps):
        for i in prange(1, A.shape[0] - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in prange(1, A.shape[0] - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


def jacobi_1d_inputs(size: str) -> Inputs:
    n, tsteps = {"tiny": (17, 6), "small": (2000, 100), "bench": (400_000, 800)}[size]
    return {"A": uniform(1, n), "B": uniform(2, n), "tsteps": tsteps}


JACOBI_1D = Kernel("jacobi-1d", jacobi_1d, jacobi_1d_prange, jacobi_1d_inputs, ("A", "B"))


# ---------------------------------------------------------------- jacobi-2d: means of five, from A to B and back


def jacobi_2d(A, B, tsteps):
    for _t in range(tsteps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


@njit(parallel=True, fastmath=False)
def jacobi_2d_prange(A, B, tsteps):
    for _t in range(tsteps):
        for i in prange(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in prange(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


def jacobi_2d_inputs(size: str) -> Inputs:
    n, m, tsteps = {"tiny": (9, 11, 5), "small": (100, 120, 20), "bench": (1300, 1400, 60)}[size]
    return {"A": uniform(1, n, m), "B": uniform(2, n, m), "tsteps": tsteps}


JACOBI_2D = Kernel("jacobi-2d", jacobi_2d, jacobi_2d_prange, jacobi_2d_inputs, ("A", "B"))


# ---------------------------------------------------------------- seidel-2d: means of nine, in place


def seidel_2d(A, tsteps):
    for _t in range(tsteps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
                    + A[i, j - 1] + A[i, j] + A[i, j + 1]
                    + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


@njit(fastmath=False)
def seidel_2d_prange(A, tsteps):
    """Serial: no loop is parallel as it stands, and skewing by hand is not what is compared with."""
    for _t in range(tsteps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
                    + A[i, j - 1] + A[i, j] + A[i, j + 1]
                    + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


def seidel_2d_inputs(size: str) -> Inputs:
    n, m, tsteps = {"tiny": (9, 11, 5), "small": (100, 120, 10), "bench": (1000, 1100, 20)}[size]
    return {"A": uniform(1, n, m), "tsteps": tsteps}


SEIDEL_2D = Kernel("seidel-2d", seidel_2d, seidel_2d_prange, seidel_2d_inputs, ("A",))
