"""Programs of physics, graphs and codes: particles, fractals, self-energies, integrals, checksums."""

from __future__ import annotations

from typing import Any

import numpy as np

import orion

from .program import Program


@orion.parallel_for
def contour_integral(H, Y, contour):
    blocks, n, _ = H.shape
    first = np.zeros((n, Y.shape[1]), np.complex128)
    second = np.zeros((n, Y.shape[1]), np.complex128)
    for k in range(contour.size):
        z = contour[k]
        T = np.zeros((n, n), np.complex128)
        for b in range(blocks):
            T = T * z + H[b]
        X = np.linalg.solve(T, Y)
        if np.abs(z) < 1.0:
            X = -X
        first += X
        second += z * X
    return first, second


def _contour_arguments(size: str) -> tuple[Any, ...]:
    n, m, k = {"tiny": (8, 5, 4), "large": (30, 25, 16)}[size]
    made = np.random.default_rng(n)
    contour = np.exp(2j * np.pi * np.arange(k) / k) * 1.1
    return made.random((3, n, n)) + 1j * made.random((3, n, n)), made.random((n, m)) + 0j, contour


@orion.parallel_for
def crc16(data, polynomial):
    crc = 0xFFFF
    for b in data:
        current = 0xFF & b
        for _ in range(8):
            if (crc & 0x0001) ^ (current & 0x0001):
                crc = (crc >> 1) ^ polynomial
            else:
                crc >>= 1
            current >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8) | ((crc >> 8) & 0xFF)


def _crc_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 100, "large": 5000}[size]
    return np.random.default_rng(n).integers(0, 256, n, dtype=np.uint8), 0x8408


@orion.parallel_for
def mandelbrot(x, y, rounds, horizon):
    C = x + y[:, np.newaxis] * 1j
    count = np.zeros(C.shape, np.int64)
    Z = np.zeros(C.shape, np.complex128)
    for n in range(rounds):
        inside = np.abs(Z) < horizon
        count = np.where(inside, n, count)
        Z = np.where(inside, Z * Z + C, Z)
    return Z, np.where(count == rounds - 1, 0, count)


def _mandelbrot_arguments(size: str) -> tuple[Any, ...]:
    n, m = {"tiny": (12, 15), "large": (70, 90)}[size]
    return np.linspace(-2.25, 0.75, n), np.linspace(-1.25, 1.25, m), 20, 2.0


@orion.parallel_for
def self_energies(neighbours, dH, G, D, Sigma):
    momenta, energies = G.shape[0], G.shape[1]
    phonons, frequencies = D.shape[0], D.shape[1]
    for k in range(momenta):
        for E in range(energies):
            for q in range(phonons):
                for w in range(frequencies):
                    for i in range(D.shape[4]):
                        for j in range(D.shape[4]):
                            for a in range(neighbours.shape[0]):
                                for b in range(neighbours.shape[1]):
                                    if E - w >= 0:
                                        dHG = G[k, E - w, neighbours[a, b]] @ dH[a, b, i]
                                        dHD = dH[a, b, j] * D[q, w, a, b, i, j]
                                        Sigma[k, E, a] += dHG @ dHD


def _energies_arguments(size: str) -> tuple[Any, ...]:
    momenta, energies, frequencies, atoms, near, n = {"tiny": (2, 4, 2, 5, 2, 3), "large": (3, 6, 3, 8, 4, 4)}[size]
    made = np.random.default_rng(n)
    neighbours = made.integers(0, atoms, (atoms, near))
    dH, G = made.random((atoms, near, 3, n, n)), made.random((momenta, energies, atoms, n, n))
    D = made.random((momenta, frequencies, atoms, near, 3, 3))
    return neighbours, dH, G, D, np.zeros((momenta, energies, atoms, n, n))


def accelerations(position, mass, G, softening):
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inverse = (dx**2 + dy**2 + dz**2 + softening**2) ** -1.5
    found = np.empty_like(position)
    found[:, 0] = G * (dx * inverse) @ mass
    found[:, 1] = G * (dy * inverse) @ mass
    found[:, 2] = G * (dz * inverse) @ mass
    return found


@orion.parallel_for
def n_body(position, velocity, mass, steps, dt, G, softening):
    energy = np.zeros(steps)
    acceleration = accelerations(position, mass, G, softening)
    for t in range(steps):
        velocity += acceleration * dt / 2.0
        position += velocity * dt
        acceleration = accelerations(position, mass, G, softening)
        velocity += acceleration * dt / 2.0
        energy[t] = 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))
    return energy


def _body_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 12, "large": 60}[size]
    made = np.random.default_rng(n)
    return made.random((n, 3)), made.random((n, 3)), np.full(n, 20.0 / n), 5, 0.01, 1.0, 0.1


@orion.parallel_for
def azimuthal_mean(data, radius, bins):
    largest = np.max(radius)
    found = np.zeros(bins)
    for k in range(bins):
        low = largest * k / bins
        high = largest * (k + 1) / bins
        ring = np.logical_and(low <= radius, radius < high)
        found[k] = np.sum(np.where(ring, data, 0.0)) / np.maximum(np.sum(ring), 1)
    return found


def _azimuthal_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 300, "large": 20000}[size]
    made = np.random.default_rng(n)
    return made.random(n), made.random(n), 10


@orion.parallel_for
def shortest_paths(distance):
    for k in range(distance.shape[0]):
        distance[:] = np.minimum(distance, distance[:, k][:, np.newaxis] + distance[k])


def _paths_arguments(size: str) -> tuple[Any, ...]:
    n = {"tiny": 14, "large": 80}[size]
    return (np.random.default_rng(n).random((n, n)),)


SCIENCE = (
    Program("contour_integral", contour_integral, _contour_arguments),
    Program("crc16", crc16, _crc_arguments),
    Program("mandelbrot", mandelbrot, _mandelbrot_arguments),
    Program("self_energies", self_energies, _energies_arguments),
    Program("n_body", n_body, _body_arguments),
    Program("azimuthal_mean", azimuthal_mean, _azimuthal_arguments),
    Program("shortest_paths", shortest_paths, _paths_arguments),
)
