"""Simulations as in physics courses and research scripts: loops over grids, particles, spins and samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature

EX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
EY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
OPPOSITE = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
WEIGHTS = np.array([4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36])


def heat_rod(u, alpha=0.01, dx=0.1, dt=0.2, steps=50):
    """Temperature of a rod with fixed ends after some explicit time steps."""
    r = alpha * dt / dx**2
    for _ in range(steps):
        new = u.copy()
        for i in range(1, len(u) - 1):
            new[i] = u[i] + r * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u = new
    return u


def _rod_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).random(n),)


def heat_plate(T, k=0.2, steps=20):
    """Mean temperature of a plate with insulated sides after some steps, the plate changed in place."""
    for _ in range(steps):
        lap = T[:-2, 1:-1] + T[2:, 1:-1] + T[1:-1, :-2] + T[1:-1, 2:] - 4.0 * T[1:-1, 1:-1]
        T[1:-1, 1:-1] += k * lap
        T[:, 0] = T[:, 1]
        T[:, -1] = T[:, -2]
    return T.mean()


def _plate_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).random((n, n)),)


def wave_membrane(u, v, c=0.5, damping=0.001, steps=12):
    """Shape of a drum skin after some steps, and how its middle moved."""
    n, m = u.shape
    prev = u - v
    cur = u.copy()
    nxt = np.zeros_like(u)
    trace = np.zeros(steps)
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = cur[i - 1, j] + cur[i + 1, j] + cur[i, j - 1] + cur[i, j + 1] - 4 * cur[i, j]
                nxt[i, j] = (2 - damping) * cur[i, j] - (1 - damping) * prev[i, j] + c * c * lap
        prev, cur, nxt = cur, nxt, prev
        trace[t] = cur[n // 2, m // 2]
    return cur, trace


def gauss_seidel(p, f, h=0.05, tol=1e-9, max_sweeps=12):
    """Sweeps of Gauss-Seidel for a Poisson equation: how many, and the last largest change."""
    n, m = p.shape
    change = 0.0
    for sweep in range(max_sweeps):
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                old = p[i, j]
                p[i, j] = 0.25 * (p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1] - h * h * f[i, j])
                change = max(change, abs(p[i, j] - old))
        if change < tol:
            return sweep + 1, change
    return max_sweeps, change


def sor_red_black(u, f, omega=1.7, sweeps=10):
    """Over-relaxation of a Poisson equation in red-black order, in place; the sum of residuals per sweep."""
    n, m = u.shape
    history = np.zeros(sweeps)
    for s in range(sweeps):
        for colour in (0, 1):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, m - 1, 2):
                    res = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]) - u[i, j]
                    u[i, j] += omega * res
                    history[s] += abs(res)
    return history


def jacobi(phi, rho, tol=1e-6, max_iter=10):
    """Potential of given charges by Jacobi iteration with two buffers, until the change is small."""
    ny, nx = phi.shape
    old, new = phi, phi.copy()
    error, it = 1.0, 0
    while error > tol and it < max_iter:
        error = 0.0
        for y in range(1, ny - 1):
            for x in range(1, nx - 1):
                new[y, x] = (old[y - 1, x] + old[y + 1, x] + old[y, x - 1] + old[y, x + 1] + rho[y, x]) / 4
                d = abs(new[y, x] - old[y, x])
                if d > error:
                    error = d
        old, new = new, old
        it += 1
    return old, error


def _two_fields_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    first, second = np.zeros((n, n)), np.zeros((n, n))
    first[1:-1, 1:-1] = rng.random((n - 2, n - 2))
    second[1:-1, 1:-1] = 0.1 * rng.standard_normal((n - 2, n - 2))
    return first, second


def nbody_leapfrog(pos, vel, mass, dt=0.01, eps=0.05, steps=2):
    """Kinetic energy of stars after some steps under their gravity, positions and speeds changed in place."""
    n = pos.shape[0]
    acc = np.zeros_like(pos)
    for _ in range(steps):
        for i in range(n):
            ax = ay = az = 0.0
            for j in range(n):
                if j == i:
                    continue
                dx = pos[j, 0] - pos[i, 0]
                dy = pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + eps * eps
                w = mass[j] / (r2 * math.sqrt(r2))
                ax += w * dx
                ay += w * dy
                az += w * dz
            acc[i, 0], acc[i, 1], acc[i, 2] = ax, ay, az
        vel += dt * acc
        pos += dt * vel
    return 0.5 * np.sum(mass * (vel**2).sum(axis=1))


def _stars_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.random((n, 3)), 0.1 * rng.standard_normal((n, 3)), rng.random(n) / n


def coulomb_pairs(pos, charge, soft=0.01):
    """Forces between charges and their energy, each pair visited once."""
    n = len(pos)
    force = np.zeros((n, 3))
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            d = pos[i] - pos[j]
            r = np.sqrt(np.dot(d, d) + soft)
            qq = charge[i] * charge[j]
            force[i] += qq / r**3 * d
            force[j] -= qq / r**3 * d
            energy += qq / r
    return force, energy


def _charges_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.random((n, 3)), rng.choice(np.array([-1.0, 1.0]), n)


def cell_lists(pos, width, m):
    """The newest particle of each cell, and for each particle the one before it in its cell."""
    head = np.full((m, m), -1)
    before = np.full(len(pos), -1)
    for i in range(len(pos)):
        cx, cy = int(pos[i, 0] / width) % m, int(pos[i, 1] / width) % m
        before[i] = head[cx, cy]
        head[cx, cy] = i
    return before, head


def lennard_jones(pos, box, cutoff=2.5):
    """Forces and energy of a Lennard-Jones fluid in a periodic square, found through cell lists."""
    m = int(box / cutoff)
    width = box / m
    before, head = cell_lists(pos, width, m)
    force = np.zeros_like(pos)
    energy = 0.0
    for i in range(len(pos)):
        cx, cy = int(pos[i, 0] / width), int(pos[i, 1] / width)
        for ox in range(-1, 2):
            for oy in range(-1, 2):
                j = head[(cx + ox) % m, (cy + oy) % m]
                while j >= 0:
                    dx, dy = pos[i, 0] - pos[j, 0], pos[i, 1] - pos[j, 1]
                    dx -= box * round(dx / box)
                    dy -= box * round(dy / box)
                    r2 = dx * dx + dy * dy
                    if j != i and r2 < cutoff * cutoff:
                        s6 = 1.0 / r2**3
                        energy += 2.0 * s6 * (s6 - 1.0)
                        force[i, 0] += 24.0 * s6 * (2.0 * s6 - 1.0) / r2 * dx
                        force[i, 1] += 24.0 * s6 * (2.0 * s6 - 1.0) / r2 * dy
                    j = before[j]
    return force, energy


def neighbour_list(pos, radius, most=64):
    """For each atom the atoms within a radius, and how many."""
    n = len(pos)
    neighbours = np.full((n, most), -1)
    counts = np.zeros(n, dtype=np.int64)
    for i, p in enumerate(pos):
        k = 0
        for j, q in enumerate(pos):
            if i == j or abs(p[0] - q[0]) > radius:
                continue
            if (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 < radius * radius:
                neighbours[i, k] = j
                k += 1
                if k == most:
                    break
        counts[i] = k
    return neighbours, counts


def _fluid_arguments(n: int) -> tuple[Any, ...]:
    side = math.isqrt(n)
    box = 1.2 * side
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    return (1.2 * grid + np.random.default_rng(n).uniform(0.45, 0.75, grid.shape)), box


def _atoms_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).random((n, 2)), math.sqrt(4.0 / n)


def ising_raster(spins, numbers, beta=0.44):
    """Magnetisation after each Metropolis sweep over a periodic lattice, one site after the other."""
    n, m = spins.shape
    magnetisation = np.zeros(len(numbers))
    for t, draws in enumerate(numbers):
        for i in range(n):
            for j in range(m):
                around = spins[i - 1, j] + spins[(i + 1) % n, j] + spins[i, j - 1] + spins[i, (j + 1) % m]
                dE = 2 * spins[i, j] * around
                if dE <= 0 or draws[i, j] < math.exp(-beta * dE):
                    spins[i, j] = -spins[i, j]
        magnetisation[t] = spins.mean()
    return magnetisation


def _spins_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.choice(np.array([-1, 1]), (n, n)), rng.random((3, n, n))


def lattice_boltzmann(f, solid, tau=0.6, steps=2):
    """Populations of a D2Q9 lattice gas in a periodic channel with solid cells, after some steps."""
    ny, nx, _ = f.shape
    g = np.empty_like(f)
    for _ in range(steps):
        for y in range(ny):
            for x in range(nx):
                rho = ux = uy = 0.0
                for k in range(9):
                    rho += f[y, x, k]
                    ux += EX[k] * f[y, x, k]
                    uy += EY[k] * f[y, x, k]
                ux, uy = ux / rho, uy / rho
                for k in range(9):
                    eu = 3.0 * (EX[k] * ux + EY[k] * uy)
                    eq = WEIGHTS[k] * rho * (1.0 + eu + 0.5 * eu * eu - 1.5 * (ux * ux + uy * uy))
                    out = f[y, x, k] - (f[y, x, k] - eq) / tau
                    if solid[y, x]:
                        out = f[y, x, OPPOSITE[k]]
                    g[(y + EY[k]) % ny, (x + EX[k]) % nx, k] = out
        f, g = g, f
    return f


def _channel_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    solid = rng.random((n, n)) < 0.02
    solid[0] = solid[-1] = True
    return WEIGHTS * (1.0 + 0.1 * rng.random((n, n, 9))), solid


def advect_tracer(q, wind, dt=0.4, steps=25):
    """Amount of a tracer left after a varying wind has carried it around a ring, first-order upwind."""
    n = q.size
    flux = np.zeros(n)
    for _ in range(steps):
        for i in range(n):
            if wind[i] > 0:
                flux[i] = wind[i] * q[i - 1]
            else:
                flux[i] = wind[i] * q[i]
        for i in range(n):
            q[i] -= dt * (flux[(i + 1) % n] - flux[i])
    return q.sum()


def _ring_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).random(n), np.sin(np.arange(n) * 0.01)


def shallow_water(h, u, v, depth=10.0, g=9.81, dt=0.05, steps=20):
    """Highest water during some steps of the linear shallow water equations on a staggered grid."""
    peak = h.max()
    for _ in range(steps):
        u[1:-1, :] -= g * dt * (h[1:, :] - h[:-1, :])
        v[:, 1:-1] -= g * dt * (h[:, 1:] - h[:, :-1])
        h -= depth * dt * (u[1:, :] - u[:-1, :] + v[:, 1:] - v[:, :-1])
        peak = max(peak, h.max())
    return peak


def _basin_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).random((n, n)), np.zeros((n + 1, n)), np.zeros((n, n + 1))


def monte_carlo_integral(xs, ys, area=4.0):
    """Integral of a function of two variables from given random points, and its standard error."""
    n = len(xs)
    total = squares = 0.0
    for x, y in zip(xs, ys):  # noqa: B905
        f = math.exp(-x * x - y * y) * math.cos(x * y)
        total += f
        squares += f * f
    mean = total / n
    return area * mean, area * math.sqrt((squares / n - mean * mean) / n)


def _points_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(-1.0, 1.0, n), rng.uniform(-1.0, 1.0, n)


def cavity_flow(psi, w, nu=0.01, lid=1.0, steps=4, sweeps=8):
    """Lowest stream function in a box whose lid moves, after some steps of the vorticity equation."""
    n, m = psi.shape
    h = 1.0 / (n - 1)
    dt = 0.2 * h * h / nu
    for _ in range(steps):
        for _ in range(sweeps):
            around = psi[2:, 1:-1] + psi[:-2, 1:-1] + psi[1:-1, 2:] + psi[1:-1, :-2]
            psi[1:-1, 1:-1] = 0.25 * (around + h * h * w[1:-1, 1:-1])
        w[0] = -2.0 * psi[1] / h**2
        w[-1] = -2.0 * psi[-2] / h**2 - 2.0 * lid / h
        w[:, 0] = -2.0 * psi[:, 1] / h**2
        w[:, -1] = -2.0 * psi[:, -2] / h**2
        new = w.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u = (psi[i + 1, j] - psi[i - 1, j]) / (2 * h)
                v = -(psi[i, j + 1] - psi[i, j - 1]) / (2 * h)
                carried = (u * (w[i, j + 1] - w[i, j - 1]) + v * (w[i + 1, j] - w[i - 1, j])) / (2 * h)
                lap = (w[i + 1, j] + w[i - 1, j] + w[i, j + 1] + w[i, j - 1] - 4 * w[i, j]) / h**2
                new[i, j] = w[i, j] + dt * (nu * lap - carried)
        w[:] = new
    return psi.min()


def _cavity_arguments(n: int) -> tuple[Any, ...]:
    return np.zeros((n, n)), np.zeros((n, n))


def swing(theta, omega, t, drive):
    """Rates of change of a damped, driven pendulum."""
    return omega, -math.sin(theta) - 0.5 * omega + drive * math.cos(0.667 * t)


def driven_pendulums(theta, omega, drive, dt=0.04, steps=100):
    """How often each of many pendulums turns over, by fourth-order Runge-Kutta, angles changed in place."""
    turns = np.zeros(len(theta), dtype=np.int64)
    for i in range(len(theta)):
        th, om = theta[i], omega[i]
        for s in range(steps):
            t = s * dt
            a1, b1 = swing(th, om, t, drive[i])
            a2, b2 = swing(th + 0.5 * dt * a1, om + 0.5 * dt * b1, t + 0.5 * dt, drive[i])
            a3, b3 = swing(th + 0.5 * dt * a2, om + 0.5 * dt * b2, t + 0.5 * dt, drive[i])
            a4, b4 = swing(th + dt * a3, om + dt * b3, t + dt, drive[i])
            th += dt * (a1 + 2 * a2 + 2 * a3 + a4) / 6
            om += dt * (b1 + 2 * b2 + 2 * b3 + b4) / 6
            while th > math.pi:
                th -= 2 * math.pi
                turns[i] += 1
        theta[i], omega[i] = th, om
    return turns


def _pendulums_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(-2, 2, n), rng.uniform(1, 4, n), rng.uniform(0, 1.5, n)


def random_walks(moves, bins=40):
    """Histogram of how far walkers end, their mean square distance over time, and who got farthest."""
    walkers, steps, _ = moves.shape
    hist = np.zeros(bins, dtype=np.int64)
    msd = np.zeros(steps)
    farthest, who = -1.0, -1
    for w in range(walkers):
        x = y = d2 = 0.0
        for k in range(steps):
            x += moves[w, k, 0]
            y += moves[w, k, 1]
            d2 = x * x + y * y
            msd[k] += d2
            if d2 > farthest:
                farthest, who = d2, w
        hist[min(int(math.sqrt(d2)), bins - 1)] += 1
    return hist, msd / walkers, who


def _moves_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).standard_normal((n, 100, 2)),)


def lorenz_path(x, y, z, steps, dt=0.002):
    """Points of the Lorenz attractor by Euler steps."""
    path = np.empty((steps, 3))
    for k in range(steps):
        dx, dy, dz = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
        x, y, z = x + dt * dx, y + dt * dy, z + dt * dz
        path[k, 0], path[k, 1], path[k, 2] = x, y, z
    return path


def _lorenz_arguments(n: int) -> tuple[Any, ...]:
    return 1.0, 1.0, 20.0, n


_OLD_STEP = "Steps are serial, but within a loop of a step no iteration reads what another one writes."
_BUFFERS = "Iterations are serial, but each reads one buffer, writes the other, and finds a maximum."
_SLICES = "Steps are serial, but each assignment of a step computes its whole right side before it writes."
_COLOURS = "Cells of one colour read only themselves and cells of the other colour, and residuals are only summed."
_CHANGED = "A cell reads the cells above and to the left of it as this sweep has just changed them."
_SPIN = "A spin reads the spins above and to the left of it as this sweep has left them."
_GRAVITY = "Steps are serial, but each star sums over positions that do not change until all stars are done."
_PAIRS = "Each pair only adds to the forces of its two charges and to the energy."
_CELLS = "Forces are found particle by particle, which is nearly all of the work; only filling the cells is serial."
_ATOMS = "Each atom fills its own row of the table, with a counter of its own."
_STREAMING = (
    "Steps are serial, but each cell reads only old populations and sends each of its nine to a place of its own."
)
_POINTS = "The iterations only add to two sums."
_CAVITY = "Steps and sweeps are serial, but each of them computes its values from arrays it does not change meanwhile."
_PENDULUMS = "Each pendulum is followed through time on its own."
_WALKERS = "Walkers are independent but for counts, sums over walkers and the first of the farthest."
_LORENZ = "Each step is a nonlinear function of the point that the step before has reached."

CASES: tuple[Case, ...] = (
    Case("heat equation", heat_rod, _rod_arguments, 700, 350_000, Nature.PARALLEL, _OLD_STEP),
    Case("heat equation", heat_plate, _plate_arguments, 250, 300, Nature.PARALLEL, _SLICES),
    Case("wave equation", wave_membrane, _two_fields_arguments, 35, 1100, Nature.PARALLEL, _OLD_STEP),
    Case("Gauss-Seidel", gauss_seidel, _two_fields_arguments, 35, 500, Nature.WAVEFRONT, _CHANGED),
    Case("red-black relaxation", sor_red_black, _two_fields_arguments, 35, 900, Nature.PARALLEL, _COLOURS),
    Case("Jacobi", jacobi, _two_fields_arguments, 35, 1000, Nature.PARALLEL, _BUFFERS),
    Case("n-body", nbody_leapfrog, _stars_arguments, 60, 1500, Nature.PARALLEL, _GRAVITY),
    Case("pair forces", coulomb_pairs, _charges_arguments, 70, 500, Nature.PARALLEL, _PAIRS),
    Case("Lennard-Jones", lennard_jones, _fluid_arguments, 100, 36_000, Nature.PARALLEL, _CELLS),
    Case("neighbour lists", neighbour_list, _atoms_arguments, 200, 4000, Nature.PARALLEL, _ATOMS),
    Case("Ising model", ising_raster, _spins_arguments, 70, 700, Nature.WAVEFRONT, _SPIN),
    Case("lattice Boltzmann", lattice_boltzmann, _channel_arguments, 20, 400, Nature.PARALLEL, _STREAMING),
    Case("advection", advect_tracer, _ring_arguments, 1200, 500_000, Nature.PARALLEL, _OLD_STEP),
    Case("shallow water", shallow_water, _basin_arguments, 250, 350, Nature.PARALLEL, _SLICES),
    Case("Monte Carlo integral", monte_carlo_integral, _points_arguments, 50_000, 1_000_000, Nature.PARALLEL, _POINTS),
    Case("cavity flow", cavity_flow, _cavity_arguments, 40, 350, Nature.PARALLEL, _CAVITY),
    Case("pendulums", driven_pendulums, _pendulums_arguments, 30, 1500, Nature.PARALLEL, _PENDULUMS),
    Case("random walks", random_walks, _moves_arguments, 250, 100_000, Nature.PARALLEL, _WALKERS),
    Case("Lorenz attractor", lorenz_path, _lorenz_arguments, 20_000, 1_200_000, Nature.SERIAL, _LORENZ),
)
