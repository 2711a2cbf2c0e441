"""Programs on grids: flows, heat, weather, alternating directions."""

from __future__ import annotations

from typing import Any

import numpy as np

import orion

from .program import Program


def pressure_source(source, rho, dt, u, v, dx, dy):
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * dy)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * dy)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * dx)
    source[1:-1, 1:-1] = rho * ((ux + vy) / dt - ux**2 - 2.0 * uy * vx - vy**2)


def relaxed_pressure(p, old, source, dx, dy):
    old[:] = p
    across = (old[1:-1, 2:] + old[1:-1, :-2]) * dy**2
    along = (old[2:, 1:-1] + old[:-2, 1:-1]) * dx**2
    p[1:-1, 1:-1] = (across + along - dx**2 * dy**2 * source[1:-1, 1:-1]) / (2.0 * (dx**2 + dy**2))
    p[:, -1] = p[:, -2]
    p[0, :] = p[1, :]
    p[:, 0] = p[:, 1]
    p[-1, :] = 0.0


@orion.parallel_for
def cavity_flow(u, v, p, steps, sweeps, dt, dx, dy, rho, nu):
    source = np.zeros_like(p)
    old = np.empty_like(p)
    un = np.empty_like(u)
    vn = np.empty_like(v)
    for _ in range(steps):
        un[:] = u
        vn[:] = v
        pressure_source(source, rho, dt, un, vn, dx, dy)
        for _ in range(sweeps):
            relaxed_pressure(p, old, source, dx, dy)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2.0 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2.0 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2.0 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2.0 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2.0 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2.0 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = 0.0
        u[:, 0] = 0.0
        u[:, -1] = 0.0
        u[-1, :] = 1.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        v[:, 0] = 0.0
        v[:, -1] = 0.0


def _cavity_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 17, "large": 61}[size]
    u, v, p = (np.zeros((n, n)) for _ in range(3))
    return u, v, p, 3, 5, 0.001, 2.0 / (n - 1), 2.0 / (n - 1), 1.0, 0.1


@orion.parallel_for
def channel_flow(u, v, p, sweeps, dt, dx, dy, rho, nu, force):
    difference = 1.0
    steps = 0
    while difference > 0.001 and steps < 50:
        un = u.copy()
        vn = v.copy()
        for _ in range(sweeps):
            pn = p.copy()
            p[1:-1, 1:-1] = 0.25 * (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1])
            p[1:-1, -1] = 0.25 * (pn[1:-1, 0] + pn[1:-1, -2] + pn[2:, -1] + pn[:-2, -1])
            p[1:-1, 0] = 0.25 * (pn[1:-1, 1] + pn[1:-1, -1] + pn[2:, 0] + pn[:-2, 0])
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2.0 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2.0 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2.0 * un[1:-1, 1:-1] + un[:-2, 1:-1])
            + force * dt
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2.0 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2.0 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2.0 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[1:-1, -1] = un[1:-1, -1] - un[1:-1, -1] * dt / dx * (un[1:-1, -1] - un[1:-1, -2]) + force * dt
        u[1:-1, 0] = un[1:-1, 0] - un[1:-1, 0] * dt / dx * (un[1:-1, 0] - un[1:-1, -1]) + force * dt
        u[0, :] = 0.0
        u[-1, :] = 0.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        total = np.sum(u)
        difference = (total - np.sum(un)) / total
        steps += 1
    return steps


def _channel_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 17, "large": 61}[size]
    u, v, p = np.zeros((n, n)), np.zeros((n, n)), np.ones((n, n))
    return u, v, p, 5, 0.01, 2.0 / (n - 1), 2.0 / (n - 1), 1.0, 0.1, 1.0


@orion.parallel_for
def adi(u, steps, a, b):
    n = u.shape[0]
    v = np.zeros_like(u)
    p = np.zeros_like(u)
    q = np.zeros_like(u)
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = a / (1.0 + 2.0 * a - a * p[1:-1, j - 1])
            known = b * u[j, :-2] + (1.0 - 2.0 * b) * u[j, 1:-1] + b * u[j, 2:]
            q[1:-1, j] = (known + a * q[1:-1, j - 1]) / (1.0 + 2.0 * a - a * p[1:-1, j - 1])
        v[n - 1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = b / (1.0 + 2.0 * b - b * p[1:-1, j - 1])
            known = a * v[:-2, j] + (1.0 - 2.0 * a) * v[1:-1, j] + a * v[2:, j]
            q[1:-1, j] = (known + b * q[1:-1, j - 1]) / (1.0 + 2.0 * b - b * p[1:-1, j - 1])
        u[1:-1, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


def _adi_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 20, "large": 90}[size]
    return np.random.default_rng(n).random((n, n)), 4, 0.3, 0.7


@orion.parallel_for
def heat_3d(A, B, steps):
    for _ in range(steps):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, 1:-1, :-2])
            + B[1:-1, 1:-1, 1:-1]
        )


def _heat_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 10, "large": 30}[size]
    return np.random.default_rng(n).random((n, n, n)), np.zeros((n, n, n)), 4


@orion.parallel_for
def horizontal_diffusion(field, out, coefficient):
    laplace = 4.0 * field[1:-1, 1:-1, :] - (
        field[2:, 1:-1, :] + field[:-2, 1:-1, :] + field[1:-1, 2:, :] + field[1:-1, :-2, :]
    )
    east = laplace[1:, 1:-1, :] - laplace[:-1, 1:-1, :]
    x_flux = np.where(east * (field[2:-1, 2:-2, :] - field[1:-2, 2:-2, :]) > 0.0, 0.0, east)
    north = laplace[1:-1, 1:, :] - laplace[1:-1, :-1, :]
    y_flux = np.where(north * (field[2:-2, 2:-1, :] - field[2:-2, 1:-2, :]) > 0.0, 0.0, north)
    out[:] = field[2:-2, 2:-2, :] - coefficient * (
        x_flux[1:, :, :] - x_flux[:-1, :, :] + y_flux[:, 1:, :] - y_flux[:, :-1, :]
    )


def _hdiff_arguments(size: str) -> tuple[Any, ...]:
    n, m, k = {"tiny": (12, 10, 5), "large": (40, 36, 20)}[size]
    made = np.random.default_rng(n)
    return made.random((n + 4, m + 4, k)), np.zeros((n, m, k)), made.random((n, m, k))


@orion.parallel_for
def vertical_advection(tendency, before, position, wind, value, dt):
    n, m, levels = tendency.shape
    c = np.empty((n, m, levels))
    d = np.empty((n, m, levels))
    last = np.empty((n, m))
    for k in range(levels):
        if k == 0:
            gain = 0.25 * (wind[1:, :, 1] + wind[:-1, :, 1])
            c[:, :, 0] = 0.5 * gain
            middle = dt - c[:, :, 0]
            change = -0.5 * gain * (value[:, :, 1] - value[:, :, 0])
            d[:, :, 0] = dt * position[:, :, 0] + before[:, :, 0] + tendency[:, :, 0] + change
            c[:, :, 0] /= middle
            d[:, :, 0] /= middle
        elif k < levels - 1:
            down = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
            up = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
            a = 0.5 * down
            c[:, :, k] = 0.5 * up
            middle = dt - a - c[:, :, k]
            change = -0.5 * down * (value[:, :, k - 1] - value[:, :, k])
            change -= 0.5 * up * (value[:, :, k + 1] - value[:, :, k])
            d[:, :, k] = dt * position[:, :, k] + before[:, :, k] + tendency[:, :, k] + change
            factor = 1.0 / (middle - c[:, :, k - 1] * a)
            c[:, :, k] *= factor
            d[:, :, k] = (d[:, :, k] - a * d[:, :, k - 1]) * factor
        else:
            down = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
            a = 0.5 * down
            middle = dt - a
            change = -0.5 * down * (value[:, :, k - 1] - value[:, :, k])
            d[:, :, k] = dt * position[:, :, k] + before[:, :, k] + tendency[:, :, k] + change
            d[:, :, k] = (d[:, :, k] - a * d[:, :, k - 1]) / (middle - c[:, :, k - 1] * a)
    for k in range(levels - 1, -1, -1):
        if k == levels - 1:
            last[:] = d[:, :, k]
        else:
            last[:] = d[:, :, k] - c[:, :, k] * last
        tendency[:, :, k] = dt * (last - position[:, :, k])


def _vadv_arguments(size: str) -> tuple[Any, ...]:
    n, m, k = {"tiny": (12, 10, 7), "large": (40, 36, 20)}[size]
    made = np.random.default_rng(n)
    tendency, before, position, value = (made.random((n, m, k)) for _ in range(4))
    return tendency, before, position, made.random((n + 1, m, k)), value, 3.0 / 20.0


FLUIDS = (
    Program("cavity_flow", cavity_flow, _cavity_arguments),
    Program("channel_flow", channel_flow, _channel_arguments),
    Program("adi", adi, _adi_arguments),
    Program("heat_3d", heat_3d, _heat_arguments),
    Program("horizontal_diffusion", horizontal_diffusion, _hdiff_arguments),
    Program("vertical_advection", vertical_advection, _vadv_arguments),
)
