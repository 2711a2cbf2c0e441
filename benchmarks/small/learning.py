"""Programs that fit models, step by step, until they settle."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.small.program import Program


def gaussian_mixture(x, weight, mean, variance, tol):
    """Fit a mixture of normal distributions in one dimension by EM, until the log-likelihood settles."""
    n = len(x)
    k = len(mean)
    belongs = np.zeros((n, k))
    before = -np.inf
    rounds = 0
    settled = False
    while not settled:
        log_likelihood = 0.0
        for i in range(n):
            total = 0.0
            for c in range(k):
                away = x[i] - mean[c]
                density = np.exp(-0.5 * away * away / variance[c]) / np.sqrt(2.0 * np.pi * variance[c])
                belongs[i, c] = weight[c] * density
                total += belongs[i, c]
            for c in range(k):
                belongs[i, c] /= total
            log_likelihood += np.log(total)
        for c in range(k):
            mass = 0.0
            first = 0.0
            for i in range(n):
                mass += belongs[i, c]
                first += belongs[i, c] * x[i]
            mean[c] = first / mass
            second = 0.0
            for i in range(n):
                second += belongs[i, c] * (x[i] - mean[c]) ** 2
            variance[c] = second / mass
            weight[c] = mass / n
        settled = log_likelihood - before < tol
        before = log_likelihood
        rounds += 1
    return before, rounds


def adam(target, scale, w, steps, rate):
    """Minimise a sum of squares and fourth powers by steps of Adam."""
    n = len(w)
    m = np.zeros(n)
    v = np.zeros(n)
    m_left = 1.0
    v_left = 1.0
    for _step in range(steps):
        m_left *= 0.9
        v_left *= 0.999
        for i in range(n):
            away = w[i] - target[i]
            gradient = scale[i] * away + 0.1 * away * away * away
            m[i] = 0.9 * m[i] + 0.1 * gradient
            v[i] = 0.999 * v[i] + 0.001 * gradient * gradient
            w[i] -= rate * (m[i] / (1.0 - m_left)) / (np.sqrt(v[i] / (1.0 - v_left)) + 1e-8)


def logistic_loss(X, y, w):
    """Return the mean logistic loss of a linear model."""
    total = 0.0
    for i in range(X.shape[0]):
        z = 0.0
        for j in range(X.shape[1]):
            z += X[i, j] * w[j]
        total += np.log(1.0 + np.exp(-y[i] * z))
    return total / X.shape[0]


def backtracking_descent(X, y, w, tol, most):
    """Fit a logistic regression by gradient descent; each step is halved until the loss falls enough."""
    n, d = X.shape
    gradient = np.zeros(d)
    trial = np.zeros(d)
    slope = np.zeros(n)
    loss = logistic_loss(X, y, w)
    steps = 0
    square = tol + 1.0
    while square > tol and steps < most:
        for i in range(n):
            z = 0.0
            for j in range(d):
                z += X[i, j] * w[j]
            slope[i] = -y[i] / (1.0 + np.exp(y[i] * z))
        square = 0.0
        for j in range(d):
            total = 0.0
            for i in range(n):
                total += slope[i] * X[i, j]
            gradient[j] = total / n
            square += gradient[j] * gradient[j]
        rate = 16.0
        while True:
            for j in range(d):
                trial[j] = w[j] - rate * gradient[j]
            new = logistic_loss(X, y, trial)
            if new <= loss - 0.5 * rate * square or rate < 1e-8:
                break
            rate *= 0.5
        for j in range(d):
            w[j] = trial[j]
        loss = new
        steps += 1
    return loss, steps


def kmeans(points, centres):
    """Move centres to the means of their points until no point changes its centre; return the assignment."""
    n, d = points.shape
    k = centres.shape[0]
    nearest = np.full(n, -1)
    sums = np.zeros((k, d))
    count = np.zeros(k, dtype=np.int64)
    changed = 1
    while changed > 0:
        changed = 0
        for i in range(n):
            best = 0
            least = np.inf
            for c in range(k):
                distance = 0.0
                for j in range(d):
                    distance += (points[i, j] - centres[c, j]) ** 2
                if distance < least:
                    least = distance
                    best = c
            if nearest[i] != best:
                nearest[i] = best
                changed += 1
        for c in range(k):
            count[c] = 0
            for j in range(d):
                sums[c, j] = 0.0
        for i in range(n):
            count[nearest[i]] += 1
            for j in range(d):
                sums[nearest[i], j] += points[i, j]
        for c in range(k):
            if count[c] > 0:
                for j in range(d):
                    centres[c, j] = sums[c, j] / count[c]
    return nearest


def lloyd_max(x, levels, tol):
    """Move the levels of a quantiser to the means of their cells until the error hardly changes."""
    k = len(levels)
    sums = np.zeros(k)
    count = np.zeros(k)
    error = np.inf
    gain = np.inf
    rounds = 0
    while gain > tol:
        new = 0.0
        for c in range(k):
            sums[c] = 0.0
            count[c] = 0.0
        for i in range(len(x)):
            low = 0
            high = k - 1
            while low < high:
                middle = (low + high) // 2
                if x[i] > 0.5 * (levels[middle] + levels[middle + 1]):
                    low = middle + 1
                else:
                    high = middle
            sums[low] += x[i]
            count[low] += 1.0
            new += (x[i] - levels[low]) ** 2
        for c in range(k):
            if count[c] > 0.0:
                levels[c] = sums[c] / count[c]
        new /= len(x)
        gain = error - new
        error = new
        rounds += 1
    return error, rounds


def sinkhorn(K, a, b, u, v, tol):
    """Scale the rows and columns of a kernel until its sums are `a` and `b`."""
    n, m = K.shape
    error = tol + 1.0
    rounds = 0
    while error > tol:
        error = 0.0
        for i in range(n):
            total = 0.0
            for j in range(m):
                total += K[i, j] * v[j]
            error += abs(u[i] * total - a[i])
            u[i] = a[i] / total
        for j in range(m):
            total = 0.0
            for i in range(n):
                total += K[i, j] * u[i]
            v[j] = b[j] / total
        rounds += 1
    return rounds


# ---------------------------------------------------------------- data


def for_mixture() -> tuple[Any, ...]:
    rng = np.random.default_rng(41)
    x = np.concatenate([rng.normal(centre, 0.8, 700) for centre in (-3.0, 0.0, 2.5)])
    return x, np.full(3, 1.0 / 3.0), np.array([-1.0, 0.5, 1.0]), np.ones(3), 1e-6


def for_adam() -> tuple[Any, ...]:
    rng = np.random.default_rng(42)
    return rng.standard_normal(1_000), rng.random(1_000) + 0.1, np.zeros(1_000), 2_000, 0.01


def for_descent() -> tuple[Any, ...]:
    rng = np.random.default_rng(43)
    X = rng.standard_normal((1_000, 20))
    y = np.where(X @ rng.standard_normal(20) + rng.standard_normal(1_000) > 0.0, 1.0, -1.0)
    return X, y, np.zeros(20), 1e-8, 200


def for_kmeans() -> tuple[Any, ...]:
    rng = np.random.default_rng(44)
    points = rng.standard_normal((3_000, 4)) + rng.integers(0, 3, (3_000, 4)) * 2.0
    return points, points[:16].copy()


def for_lloyd_max() -> tuple[Any, ...]:
    rng = np.random.default_rng(45)
    return rng.standard_normal(4_000), np.linspace(-2.0, 2.0, 16), 1e-7


def for_sinkhorn() -> tuple[Any, ...]:
    rng = np.random.default_rng(46)
    a, b = rng.random(150) + 0.1, rng.random(120) + 0.1
    apart = np.abs(rng.random((150, 1)) - rng.random(120))
    return np.exp(-apart / 0.02), a / a.sum(), b / b.sum(), np.ones(150), np.ones(120), 1e-6


PROGRAMS = (
    Program("gaussian_mixture", gaussian_mixture, for_mixture, ("weight", "mean", "variance")),
    Program("adam", adam, for_adam, ("w",)),
    Program("backtracking_descent", backtracking_descent, for_descent, ("w",)),
    Program("kmeans", kmeans, for_kmeans, ("centres",)),
    Program("lloyd_max", lloyd_max, for_lloyd_max, ("levels",)),
    Program("sinkhorn", sinkhorn, for_sinkhorn, ("u", "v")),
)
