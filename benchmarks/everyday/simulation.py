"""Simulations, filters and learning as people write them with loops: cells, agents, tracks, sound, rewards."""

# ruff: noqa: B905

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def game_of_life(board, steps=5):
    """Board after some generations of Conway's game on a torus."""
    n, m = board.shape
    new = np.zeros_like(board)
    for _ in range(steps):
        for i in range(n):
            for j in range(m):
                alive = -board[i, j]
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        alive += board[(i + di) % n, (j + dj) % m]
                new[i, j] = 1 if alive == 3 or (alive == 2 and board[i, j] == 1) else 0
        board, new = new, board
    return board


def epidemic_peaks(beta, gamma, days=160, dt=0.25):
    """Largest share of infected people and its day, for pairs of rates of infection and recovery."""
    peak = np.zeros(len(beta))
    when = np.zeros(len(beta))
    for k in range(len(beta)):
        well, ill = 0.999, 0.001
        for step in range(int(days / dt)):
            new = beta[k] * well * ill * dt
            well -= new
            ill += new - gamma[k] * ill * dt
            if ill > peak[k]:
                peak[k] = ill
                when[k] = step * dt
    return peak, when


def bank_queue(gaps, service, clerks=4):
    """Mean and longest wait of customers, each served by the clerk who is free first."""
    free = np.zeros(clerks)
    now = total = longest = 0.0
    for gap, length in zip(gaps, service):
        now += gap
        k = np.argmin(free)
        wait = max(0.0, free[k] - now)
        free[k] = now + wait + length
        total += wait
        longest = max(longest, wait)
    return total / len(gaps), longest


def genetic_search(pop, picks, cuts, noise):
    """Evolve rows towards the minimum of a bumpy function by tournaments, crossing and mutation."""
    n = len(pop)
    best = np.zeros(len(picks))
    for g in range(len(picks)):
        cost = np.zeros(n)
        for i, x in enumerate(pop):
            cost[i] = np.sum(x**2 - 10.0 * np.cos(2.0 * np.pi * x) + 10.0)
        best[g] = cost.min()
        children = np.empty_like(pop)
        for i in range(n):
            a, b, c, d = picks[g, i]
            mother = a if cost[a] < cost[b] else b
            father = c if cost[c] < cost[d] else d
            cut = cuts[g, i]
            children[i, :cut] = pop[mother, :cut]
            children[i, cut:] = pop[father, cut:]
            children[i, cut] += noise[g, i]
        pop = children
    return pop, best


def particle_swarm(x, v, pulls, inertia=0.7):
    """Best point that a swarm finds of a narrow valley, and its height."""
    n, d = x.shape
    own, height = x.copy(), np.full(n, np.inf)
    leader = x[0].copy()
    for pull in pulls:
        for i in range(n):
            f = 0.0
            for j in range(d - 1):
                f += 100.0 * (x[i, j + 1] - x[i, j] ** 2) ** 2 + (1.0 - x[i, j]) ** 2
            if f < height[i]:
                height[i] = f
                own[i] = x[i]
        leader = own[np.argmin(height)].copy()
        for i in range(n):
            v[i] = inertia * v[i] + pull[i, 0] * (own[i] - x[i]) + pull[i, 1] * (leader - x[i])
            x[i] += v[i]
    return leader, height.min()


def anneal_knapsack(value, weight, flips, chances, limit=100.0, start=3.0):
    """Pack a knapsack by simulated annealing; the best worth met and the last contents."""
    taken = np.zeros(len(value), dtype=np.bool_)
    load = worth = best = 0.0
    for k, i in enumerate(flips):
        heat = start * (1.0 - k / len(flips)) + 1e-3
        sign = -1.0 if taken[i] else 1.0
        if load + sign * weight[i] > limit:
            continue
        if sign > 0 or chances[k] < math.exp(-value[i] / heat):
            taken[i] = not taken[i]
            load += sign * weight[i]
            worth += sign * value[i]
            best = max(best, worth)
    return best, taken


def ring_road(position, speed, chances, length, top=5):
    """Mean speed at each step of cars on a ring that brake for the car ahead and dawdle by chance."""
    n = len(position)
    flow = np.zeros(len(chances))
    for t, chance in enumerate(chances):
        for i in range(n):
            gap = (position[(i + 1) % n] - position[i] - 1) % length
            speed[i] = min(speed[i] + 1, top, gap)
            if speed[i] > 0 and chance[i] < 0.2:
                speed[i] -= 1
        for i in range(n):
            position[i] = (position[i] + speed[i]) % length
            flow[t] += speed[i]
    return flow / n


def forest_fire(forest, U, spark=0.0005, growth=0.02):
    """Trees grow on bare cells (0), stand (1), catch fire from neighbours or lightning (2) and burn down."""
    n, m = forest.shape
    burnt = 0
    for u in U:
        new = np.zeros_like(forest)
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                if forest[i, j] == 1:
                    near = max(forest[i - 1, j], forest[i + 1, j], forest[i, j - 1], forest[i, j + 1])
                    new[i, j] = 2 if near == 2 or u[i, j] < spark else 1
                elif forest[i, j] == 0 and u[i, j] < growth:
                    new[i, j] = 1
                elif forest[i, j] == 2:
                    burnt += 1
        forest = new
    return forest, burnt


def ant_colony(dist, U, decay=0.7):
    """Length of the shortest tour that ants find, who prefer short ways with much scent."""
    n = len(dist)
    scent = np.ones((n, n))
    shortest = np.inf
    for draws in U:
        tours = np.zeros((len(draws), n), dtype=np.int64)
        lengths = np.zeros(len(draws))
        for a, draw in enumerate(draws):
            city = a % n
            seen = np.zeros(n, dtype=np.bool_)
            for k in range(n):
                tours[a, k] = city
                seen[city] = True
                if k < n - 1:
                    c = np.cumsum(np.where(seen, 0.0, scent[city] / dist[city] ** 2))
                    city = np.searchsorted(c, draw[k] * c[-1], side="right")
                lengths[a] += dist[tours[a, k], city]
        scent *= decay
        for a in range(len(draws)):
            for k in range(1, n):
                scent[tours[a, k - 1], tours[a, k]] += 1.0 / lengths[a]
        shortest = min(shortest, lengths.min())
    return shortest, scent


def kalman_tracks(Z, dt=0.1, noise=4.0):
    """Last position and speed of each track of noisy positions, by a Kalman filter."""
    F = np.array([[1.0, dt], [0.0, 1.0]])
    Q = np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    last = np.zeros((len(Z), 2))
    for k, track in enumerate(Z):
        x = np.array([track[0], 0.0])
        P = 10.0 * np.eye(2)
        for z in track[1:]:
            x = F @ x
            P = F @ P @ F.T + Q
            gain = P[:, 0] / (P[0, 0] + noise)
            x += gain * (z - x[0])
            P -= np.outer(gain, P[0])
        last[k] = x
    return last


def particle_filter(particles, readings, kicks, offsets):
    """Estimates of a hidden state from readings, by particles that are weighted and drawn again."""
    n = len(particles)
    estimate = np.zeros(len(readings))
    for t, z in enumerate(readings):
        w = np.zeros(n)
        for k in range(n):
            particles[k] += 0.1 * np.sin(particles[k]) + kicks[t, k]
            w[k] = np.exp(-0.5 * (z - particles[k]) ** 2)
        estimate[t] = np.dot(w, particles) / w.sum()
        c = np.cumsum(w)
        drawn = np.zeros(n)
        for k in range(n):
            drawn[k] = particles[np.searchsorted(c, (k + offsets[t]) / n * c[-1])]
        particles = drawn
    return estimate


def distance_to_scene(x, y, z, spheres):
    """Distance from a point to the nearest of some spheres or the floor."""
    nearest = y + 1.0
    for cx, cy, cz, r in spheres:
        nearest = min(nearest, math.sqrt((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2) - r)
    return nearest


def march_rays(spheres, height, width, far=20.0):
    """Depth image of a scene, each ray going on by the distance to the nearest thing."""
    depth = np.full((height, width), far)
    for i in range(height):
        for j in range(width):
            dx, dy = (j + 0.5) / width - 0.5, 0.5 - (i + 0.5) / height
            norm = math.sqrt(dx * dx + dy * dy + 1.0)
            t = 0.0
            while t < far:
                step = distance_to_scene(t * dx / norm, t * dy / norm, t / norm, spheres)
                if step < 1e-3:
                    depth[i, j] = t
                    break
                t += step
    return depth


def fir_lowpass(x, order=31):
    """Signal smoothed by a window of taps."""
    taps = np.hanning(order)
    taps /= taps.sum()
    y = np.zeros(len(x) - order + 1)
    for i in range(len(y)):
        y[i] = np.dot(taps, x[i : i + order])
    return y


def biquad(x, b0=0.02, b1=0.04, b2=0.02, a1=-1.56, a2=0.64):
    """Signal through a recursive filter of second order."""
    y = np.zeros_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for i, v in enumerate(x):
        y[i] = b0 * v + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        x2, x1 = x1, v
        y2, y1 = y1, y[i]
    return y


def echo(x, delay=4_000, feedback=0.6):
    """Add a repeating echo to a sound in place."""
    for i in range(delay, len(x)):
        x[i] += feedback * x[i - delay]


def find_peaks(x, height=1.0):
    """Positions of the local maxima above a height."""
    peaks = np.zeros(len(x), dtype=np.int64)
    count = 0
    for i in range(1, len(x) - 1):
        if x[i] > height and x[i - 1] < x[i] >= x[i + 1]:
            peaks[count] = i
            count += 1
    return peaks[:count]


def spectrogram(x, size=64, hop=32):
    """Power of each frequency in each frame, by the plain Fourier sum."""
    frames = (len(x) - size) // hop + 1
    power = np.zeros((frames, size // 2 + 1))
    window = np.hanning(size)
    for f in range(frames):
        part = window * x[f * hop : f * hop + size]
        for k in range(size // 2 + 1):
            re = im = 0.0
            for t in range(size):
                angle = 2.0 * math.pi * k * t / size
                re += part[t] * math.cos(angle)
                im -= part[t] * math.sin(angle)
            power[f, k] = re * re + im * im
    return power


def value_iteration(T, R, gamma=0.9, tol=1e-3):
    """Value of each state and its best action, given the chances of the next state and the rewards."""
    states = len(R)
    V = np.zeros(states)
    policy = np.zeros(states, dtype=np.int64)
    while True:
        new = np.zeros(states)
        for s in range(states):
            q = R[s] + gamma * (T[s] @ V)
            policy[s] = np.argmax(q)
            new[s] = q.max()
        change = np.abs(new - V).max()
        V = new
        if change < tol:
            return V, policy


def q_learning(episodes, rewards, states, actions, alpha=0.1, gamma=0.9):
    """Table of values learned from recorded steps of state and action."""
    Q = np.zeros((states, actions))
    for episode, reward in zip(episodes, rewards):
        for t in range(len(reward) - 1):
            s, a = episode[t]
            target = reward[t] + gamma * Q[episode[t + 1, 0]].max()
            Q[s, a] += alpha * (target - Q[s, a])
    return Q


def bandit_runs(means, U, noise, greed=0.9):
    """Mean reward at each step over many runs of a player who mostly takes the arm that looks best."""
    runs, steps = U.shape
    arms = len(means)
    reward = np.zeros(steps)
    for r in range(runs):
        count, value = np.zeros(arms), np.zeros(arms)
        for t in range(steps):
            a = np.argmax(value) if U[r, t] < greed else int((U[r, t] - greed) / (1.0 - greed) * arms)
            gain = means[a] + noise[r, t]
            count[a] += 1
            value[a] += (gain - value[a]) / count[a]
            reward[t] += gain
    return reward / runs


def _board_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).integers(0, 2, (n, n)),)


def _rate_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).uniform(0.2, 0.6, n), np.random.default_rng(n + 1).uniform(0.05, 0.2, n)


def _customer_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).exponential(1.0, n), np.random.default_rng(n + 1).exponential(3.6, n)


def _gene_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    draws = rng.integers(0, n, (10, n, 4)), rng.integers(1, 20, (10, n)), rng.normal(0.0, 0.3, (10, n))
    return rng.normal(0.0, 2.0, (n, 20)), *draws


def _swarm_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(-2.0, 2.0, (n, 10)), np.zeros((n, 10)), rng.uniform(0.0, 1.5, (10, n, 2))


def _thing_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(1.0, 5.0, 200), rng.uniform(1.0, 5.0, 200), rng.integers(0, 200, n), rng.random(n)


def _car_arguments(n: int) -> tuple[Any, ...]:
    return 4 * np.arange(n), np.zeros(n, dtype=np.int64), np.random.default_rng(n).random((20, n)), 4 * n


def _forest_arguments(n: int) -> tuple[Any, ...]:
    return *_board_arguments(n), np.random.default_rng(n).random((10, n, n))


def _ant_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(1.0, 10.0, (n, n)), rng.random((5, 10, n))


def _track_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).normal(0.0, 2.0, (n, 50)) + np.arange(50.0),)


def _hidden_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=n), rng.normal(size=20), rng.normal(0.0, 0.2, (20, n)), rng.random(20)


def _scene_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).uniform((-2.0, -1.0, 3.0, 0.3), (2.0, 1.0, 9.0, 1.0), (6, 4)), n, n


def _sound_arguments(n: int) -> tuple[Any, ...]:
    return (np.sin(0.05 * np.arange(n)) + np.random.default_rng(n).normal(0.0, 0.3, n),)


def _decision_arguments(n: int) -> tuple[Any, ...]:
    T = np.random.default_rng(n).random((n, 4, n))
    return T / T.sum(axis=2, keepdims=True), np.random.default_rng(n + 1).random((n, 4))


def _episode_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.integers(0, (100, 4), (n, 50, 2)), rng.normal(size=(n, 50)), 100, 4


def _player_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return np.linspace(0.0, 1.0, 10), rng.random((n, 200)), rng.normal(size=(n, 200))


CASES: tuple[Case, ...] = (
    Case("cells", game_of_life, _board_arguments, 30, 400, Nature.PARALLEL, "Each cell reads only the old board."),
    Case("epidemic", epidemic_peaks, _rate_arguments, 40, 7_000, Nature.PARALLEL, "Each pair of rates is independent."),
    Case(
        "queue", bank_queue, _customer_arguments, 6_000, 1_500_000, Nature.SERIAL, "Who is free depends on all before."
    ),
    Case(
        "genes", genetic_search, _gene_arguments, 100, 4_000, Nature.PARALLEL, "Children are independent of each other."
    ),
    Case(
        "swarm", particle_swarm, _swarm_arguments, 100, 8_000, Nature.PARALLEL, "In a round particles are independent."
    ),
    Case(
        "packing",
        anneal_knapsack,
        _thing_arguments,
        25_000,
        1_500_000,
        Nature.SERIAL,
        "Whether a thing is put in or taken out depends on what the steps before it have packed.",
    ),
    Case(
        "traffic", ring_road, _car_arguments, 500, 100_000, Nature.PARALLEL, "In a step each car reads old positions."
    ),
    Case(
        "forest fire", forest_fire, _forest_arguments, 40, 500, Nature.PARALLEL, "Each cell reads only the old forest."
    ),
    Case("ant colony", ant_colony, _ant_arguments, 14, 170, Nature.PARALLEL, "In a round the ants are independent."),
    Case("tracking", kalman_tracks, _track_arguments, 30, 600, Nature.PARALLEL, "Each track has a filter of its own."),
    Case(
        "tracking",
        particle_filter,
        _hidden_arguments,
        150,
        12_000,
        Nature.PARALLEL,
        "In a step each particle moves, weighs and draws by itself, and only the cumulated sum of weights is a scan.",
    ),
    Case("rendering", march_rays, _scene_arguments, 8, 160, Nature.PARALLEL, "Each pixel has a ray of its own."),
    Case("sound", fir_lowpass, _sound_arguments, 15_000, 500_000, Nature.PARALLEL, "Each sample only reads the input."),
    Case(
        "sound", biquad, _sound_arguments, 25_000, 2_500_000, Nature.SCAN, "It is a linear recurrence of second order."
    ),
    Case(
        "sound",
        echo,
        _sound_arguments,
        50_000,
        10_000_000,
        Nature.PARALLEL,
        "Any `delay` samples in a row are independent, since each reads one that is a whole delay before it.",
    ),
    Case("peaks", find_peaks, _sound_arguments, 80_000, 8_000_000, Nature.SCAN, "A peak's place is a running count."),
    Case("spectrum", spectrogram, _sound_arguments, 400, 20_000, Nature.PARALLEL, "Each frequency is its own sum."),
    Case(
        "planning", value_iteration, _decision_arguments, 25, 450, Nature.PARALLEL, "Each state only reads old values."
    ),
    Case("learning", q_learning, _episode_arguments, 60, 20_000, Nature.SERIAL, "A step uses all learned before."),
    Case("bandits", bandit_runs, _player_arguments, 25, 5_000, Nature.PARALLEL, "Runs are independent and only add."),
)
