"""Programs that step small grids and systems through time."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.small.program import Program


def ising(spins, draws, beta_first, beta_last):
    """Anneal an Ising model on a torus by sweeps over the squares of one colour, then of the other."""
    sweeps, n, m = draws.shape
    for t in range(sweeps):
        beta = beta_first + (beta_last - beta_first) * t / sweeps
        for colour in range(2):
            for i in range(n):
                for j in range((i + colour) % 2, m, 2):
                    around = (
                        spins[(i + 1) % n, j] + spins[(i - 1) % n, j] + spins[i, (j + 1) % m] + spins[i, (j - 1) % m]
                    )
                    cost = 2.0 * spins[i, j] * around
                    if cost <= 0.0 or draws[t, i, j] < np.exp(-beta * cost):
                        spins[i, j] = -spins[i, j]


def heat(u, steps, rate):
    """Return the temperatures of a plate after so many explicit time steps; its border stays as it is."""
    n, m = u.shape
    new = u.copy()
    for _step in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = u[i, j] + rate * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
        u, new = new, u
    return u


def wave(u, before, steps, courant):
    """Return the displacement of a string after so many leapfrog steps; its ends are fixed."""
    n = len(u)
    after = np.zeros(n)
    for _step in range(steps):
        for i in range(1, n - 1):
            after[i] = 2.0 * u[i] - before[i] + courant * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        before, u, after = u, after, before
    return u


def life(cells, generations):
    """Return the cells of the Game of Life on a torus after so many generations."""
    n, m = cells.shape
    new = cells.copy()
    for _generation in range(generations):
        for i in range(n):
            up = (i - 1) % n
            down = (i + 1) % n
            for j in range(m):
                left = (j - 1) % m
                right = (j + 1) % m
                alive = cells[up, left] + cells[up, j] + cells[up, right] + cells[i, left]
                alive += cells[i, right] + cells[down, left] + cells[down, j] + cells[down, right]
                if alive == 3 or (alive == 2 and cells[i, j] == 1):
                    new[i, j] = 1
                else:
                    new[i, j] = 0
        cells, new = new, cells
    return cells


def forces(x, k, out):
    """Compute the forces on the oscillators of a chain with cubic springs; its ends are fixed."""
    n = len(x)
    out[0] = 0.0
    out[n - 1] = 0.0
    for i in range(1, n - 1):
        left = x[i - 1] - x[i]
        right = x[i + 1] - x[i]
        out[i] = k * (left + right) + 0.1 * (left * left * left + right * right * right) - x[i]


def oscillators(x, v, k, h, steps):
    """Step coupled oscillators through time by the Runge-Kutta method of fourth order."""
    n = len(x)
    at = np.zeros(n)
    dx2, dx3, dx4 = np.zeros(n), np.zeros(n), np.zeros(n)
    dv1, dv2, dv3, dv4 = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for _step in range(steps):
        forces(x, k, dv1)
        for i in range(n):
            at[i] = x[i] + 0.5 * h * v[i]
            dx2[i] = v[i] + 0.5 * h * dv1[i]
        forces(at, k, dv2)
        for i in range(n):
            at[i] = x[i] + 0.5 * h * dx2[i]
            dx3[i] = v[i] + 0.5 * h * dv2[i]
        forces(at, k, dv3)
        for i in range(n):
            at[i] = x[i] + h * dx3[i]
            dx4[i] = v[i] + h * dv3[i]
        forces(at, k, dv4)
        for i in range(n):
            x[i] += h / 6.0 * (v[i] + 2.0 * dx2[i] + 2.0 * dx3[i] + dx4[i])
            v[i] += h / 6.0 * (dv1[i] + 2.0 * dv2[i] + 2.0 * dv3[i] + dv4[i])


# ---------------------------------------------------------------- states at first


def for_ising() -> tuple[Any, ...]:
    rng = np.random.default_rng(51)
    return 2 * rng.integers(0, 2, (64, 64)) - 1, rng.random((200, 64, 64)), 0.1, 1.0


def for_heat() -> tuple[Any, ...]:
    return np.random.default_rng(52).random((64, 64)), 500, 0.2


def for_wave() -> tuple[Any, ...]:
    u = np.exp(-(((np.arange(2_000) - 600.0) / 40.0) ** 2))
    u[0] = u[-1] = 0.0
    return u, u.copy(), 2_000, 0.5


def for_life() -> tuple[Any, ...]:
    return np.random.default_rng(54).integers(0, 2, (128, 128)), 200


def for_oscillators() -> tuple[Any, ...]:
    rng = np.random.default_rng(55)
    x = rng.standard_normal(500)
    x[0] = x[-1] = 0.0
    return x, np.zeros(500), 1.0, 0.01, 1_000


PROGRAMS = (
    Program("ising", ising, for_ising, ("spins",)),
    Program("heat", heat, for_heat),
    Program("wave", wave, for_wave),
    Program("life", life, for_life),
    Program("oscillators", oscillators, for_oscillators, ("x", "v")),
)
