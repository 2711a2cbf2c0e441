"""The loops of `docs/will-it-work.md`, as users write them, and what to write instead of some."""

import math

import numpy as np

import orion


def elementwise(y, x):
    for i in range(len(x)):
        y[i] = x[i] * np.exp(-x[i])


def sum_of_squares(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
    return total


def smooth(u):
    for i in range(len(u) - 1):
        u[i] = 0.5 * (u[i] + u[i + 1])


def smooth_into(new, u):
    for i in range(len(u) - 1):
        new[i] = 0.5 * (u[i] + u[i + 1])


def running_sum(out, x):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        out[i] = total


def histogram(counts, codes):
    for i in range(len(codes)):
        counts[codes[i]] += 1


def scatter(out, place, x):
    for i in range(len(x)):
        out[place[i]] = x[i]


def multiply(y, indptr, indices, data, x):
    for i in range(len(y)):
        for p in range(indptr[i], indptr[i + 1]):
            y[i] += data[p] * x[indices[p]]


def gauss_seidel(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def common_subsequence(L, a, b):
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                L[i, j] = L[i - 1, j - 1] + 1
            else:
                L[i, j] = max(L[i - 1, j], L[i, j - 1])


def jacobi(x, new, b, tol):
    change = 2.0 * tol
    while change > tol:
        change = 0.0
        for i in range(1, len(x) - 1):
            new[i] = 0.5 * (x[i - 1] + x[i + 1] + b[i])
            change = max(change, abs(new[i] - x[i]))
        for i in range(1, len(x) - 1):
            x[i] = new[i]
    return change


def first_negative(x):
    found = -1
    for i in range(len(x)):
        if x[i] < 0:
            found = i
            break
    return found


def positives(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append(x[i])
    return np.array(found)


def are_positive(keep, x):
    for i in range(len(x)):
        keep[i] = x[i] > 0


def count_by_name(codes):
    counts = {}
    for code in codes:
        if code in counts:
            counts[code] += 1
        else:
            counts[code] = 1
    return counts


def count_by_number(counts, codes):
    for i in range(len(codes)):
        counts[codes[i]] += 1


def depth(left, right, node):
    if node < 0:
        return 0
    return 1 + max(depth(left, right, left[node]), depth(left, right, right[node]))


def depths(out, left, right, roots):
    for i in range(len(roots)):
        out[i] = depth(left, right, roots[i])


def depths_by_stack(out, left, right, roots):
    for i in range(len(roots)):
        nodes, levels = np.zeros(64, np.int64), np.zeros(64, np.int64)
        nodes[0], levels[0], waiting = roots[i], 1, 1
        while waiting > 0:
            waiting -= 1
            node, level = nodes[waiting], levels[waiting]
            if node >= 0:
                out[i] = max(out[i], level)
                nodes[waiting], nodes[waiting + 1] = left[node], right[node]
                levels[waiting], levels[waiting + 1] = level + 1, level + 1
                waiting += 2


def count_letter(counts, words):
    for i in range(len(words)):
        counts[i] = words[i].count("a")


def count_byte(counts, text, starts):
    for i in range(len(counts)):
        for p in range(starts[i], starts[i + 1]):
            if text[p] == 97:
                counts[i] += 1


def payoff(price, strike):
    return max(price - strike, 0.0)


def discounted(price, strike, rate):
    return payoff(price, strike) * math.exp(-rate)


def values(out, prices, strike, rate):
    for i in range(len(prices)):
        out[i] = discounted(prices[i], strike, rate)


class Particles:
    def __init__(self, x, v):
        self.x, self.v = x, v


def move(particles, dt):
    for i in range(len(particles.x)):
        particles.x[i] += dt * particles.v[i]


def move_arrays(x, v, dt):
    for i in range(len(x)):
        x[i] += dt * v[i]


def pi(n):
    hits = 0
    for _ in range(n):
        x, y = np.random.random(), np.random.random()
        if x * x + y * y < 1.0:
            hits += 1
    return 4.0 * hits / n


def pi_by_key(n, seed):
    hits = 0
    for i in range(n):
        x, y = orion.random(seed, i), orion.random(seed, i, 1)
        if x * x + y * y < 1.0:
            hits += 1
    return 4.0 * hits / n


def nearest(points, x, y):
    best, at = np.inf, -1
    for i in range(len(points)):
        distance = (points[i, 0] - x) ** 2 + (points[i, 1] - y) ** 2
        if distance < best:
            best, at = distance, i
    return at


def chase(after, start, steps):
    at = start
    for _ in range(steps):
        at = after[at]
    return at


def chase_many(at, after, steps):
    for i in range(len(at)):
        for _ in range(steps):
            at[i] = after[at[i]]
