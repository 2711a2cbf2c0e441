"""Statistics as people write it with loops: moments, resampling, ranks, distances, robust estimates."""

# ruff: noqa: B905

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def central_moments(x):
    """Mean, variance, skewness and excess kurtosis of a sample."""
    n = len(x)
    mean = 0.0
    for v in x:
        mean += v
    mean /= n
    m2 = m3 = m4 = 0.0
    for v in x:
        d = v - mean
        m2 += d * d
        m3 += d * d * d
        m4 += d * d * d * d
    m2 /= n
    return mean, m2, m3 / n / m2**1.5, m4 / n / (m2 * m2) - 3.0


def streaming_variance(x):
    """Mean and sample variance in one pass, by Welford's update."""
    mean = 0.0
    m2 = 0.0
    for k, value in enumerate(x):
        delta = value - mean
        mean += delta / (k + 1)
        m2 += delta * (value - mean)
    return mean, m2 / (len(x) - 1)


def covariance_matrix(X):
    """Sample covariance of the columns of X."""
    n, p = X.shape
    mean = np.zeros(p)
    for row in X:
        mean += row
    mean /= n
    cov = np.zeros((p, p))
    for row in X:
        d = row - mean
        cov += np.outer(d, d)
    return cov / (n - 1)


def correlation_matrix(X):
    """Pearson correlation of each pair of columns, written to both triangles."""
    n, p = X.shape
    R = np.eye(p)
    for a in range(p):
        for b in range(a + 1, p):
            sa = sb = saa = sbb = sab = 0.0
            for i in range(n):
                u, v = X[i, a], X[i, b]
                sa += u
                sb += v
                saa += u * u
                sbb += v * v
                sab += u * v
            r = (n * sab - sa * sb) / math.sqrt((n * saa - sa * sa) * (n * sbb - sb * sb))
            R[a, b] = r
            R[b, a] = r
    return R


def histogram_counts(x, low, high, bins=64):
    """Counts of x in equal bins from low to high; values outside go to the first and last bin."""
    counts = np.zeros(bins, dtype=np.int64)
    scale = bins / (high - low)
    for i in range(x.shape[0]):
        b = int((x[i] - low) * scale)
        if b < 0:
            b = 0
        elif b >= bins:
            b = bins - 1
        counts[b] += 1
    return counts


def kernel_density(grid, sample, bandwidth):
    """Gaussian kernel density of a sample at each grid point."""
    density = np.empty_like(grid)
    norm = 1.0 / (len(sample) * bandwidth * np.sqrt(2.0 * np.pi))
    for i, g in enumerate(grid):
        total = 0.0
        for s in sample:
            z = (g - s) / bandwidth
            if abs(z) < 5.0:
                total += np.exp(-0.5 * z * z)
        density[i] = norm * total
    return density


def bootstrap_means(x, picks):
    """Bootstrap means and standard deviations, one for each row of drawn indices."""
    rounds = picks.shape[0]
    means = np.zeros(rounds)
    stds = np.zeros(rounds)
    for b in range(rounds):
        sample = x[picks[b]]
        means[b] = np.mean(sample)
        stds[b] = np.std(sample)
    return means, stds


def quantile_by_bisection(x, q=0.5, tol=1e-6):
    """Quantile without sorting: halve the interval and count the values below its middle."""
    lo, hi = x.min(), x.max()
    want = q * len(x)
    while hi - lo > tol:
        mid = 0.5 * (lo + hi)
        below = 0
        for v in x:
            if v <= mid:
                below += 1
        if below < want:
            lo = mid
        else:
            hi = mid
    return hi


def average_ranks(x, order):
    """Ranks from 1, ties sharing the mean of their ranks; `order` sorts x."""
    n = len(x)
    ranks = np.zeros(n)
    i = 0
    while i < n:
        j = i
        while j + 1 < n and x[order[j + 1]] == x[order[i]]:
            j += 1
        for k in range(i, j + 1):
            ranks[order[k]] = 0.5 * (i + j) + 1.0
        i = j + 1
    return ranks


def mann_whitney_u(x, y):
    """Mann-Whitney U by comparing every pair, ties counting one half."""
    u = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            if x[i] > y[j]:
                u += 1.0
            elif x[i] == y[j]:
                u += 0.5
    return u


def permutation_test(pooled, perms, n_first):
    """Share of the permutations whose difference of group means is at least the observed one."""
    observed = abs(pooled[:n_first].mean() - pooled[n_first:].mean())
    hits = 0
    for perm in perms:
        first, second = 0.0, 0.0
        for k, i in enumerate(perm):
            if k < n_first:
                first += pooled[i]
            else:
                second += pooled[i]
        if abs(first / n_first - second / (len(perm) - n_first)) >= observed:
            hits += 1
    return (hits + 1) / (len(perms) + 1)


def regression_diagnostics(X, y, beta, gram_inverse):
    """Residuals, leverages and Cook's distances of a fitted linear model, and the worst row."""
    n, p = X.shape
    residual = np.zeros(n)
    leverage = np.zeros(n)
    cook = np.zeros(n)
    sse = 0.0
    for i in range(n):
        residual[i] = y[i] - np.dot(X[i], beta)
        leverage[i] = X[i] @ gram_inverse @ X[i]
        sse += residual[i] ** 2
    s2 = sse / (n - p)
    worst = 0
    for i in range(n):
        h = leverage[i]
        cook[i] = residual[i] ** 2 * h / (p * s2 * (1.0 - h) ** 2)
        if cook[i] > cook[worst]:
            worst = i
    return residual, leverage, cook, worst


def distance_matrix(X):
    """Euclidean distances between all rows, and the closest pair."""
    n, dim = X.shape
    D = np.zeros((n, n))
    best, best_i, best_j = np.inf, -1, -1
    for i in range(n):
        for j in range(i):
            d = 0.0
            for k in range(dim):
                d += (X[i, k] - X[j, k]) ** 2
            d = math.sqrt(d)
            D[i, j] = D[j, i] = d
            if d < best:
                best, best_i, best_j = d, i, j
    return D, best, best_i, best_j


def autocorrelation(x, max_lag=40):
    """Sample autocorrelation at the lags 0 to max_lag, and the Ljung-Box statistic."""
    n = x.shape[0]
    c = x - x.mean()
    var = np.dot(c, c)
    acf = np.ones(max_lag + 1)
    q = 0.0
    for lag in range(1, max_lag + 1):
        total = 0.0
        for t in range(n - lag):
            total += c[t] * c[t + lag]
        acf[lag] = total / var
        q += acf[lag] ** 2 / (n - lag)
    return acf, n * (n + 2) * q


def huber_location(x, k=1.345, rounds=50):
    """Huber's robust mean by reweighting until it settles."""
    center = np.mean(x)
    scale = np.std(x)
    for _ in range(rounds):
        weight_sum = 0.0
        weighted = 0.0
        for v in x:
            r = abs(v - center) / scale
            w = 1.0 if r <= k else k / r
            weight_sum += w
            weighted += w * v
        previous, center = center, weighted / weight_sum
        if abs(center - previous) < 1e-7:
            break
    return center


def repeated_median_slope(x, y):
    """Siegel's robust slope: the median over points of the median slope to all the other points."""
    n = x.size
    medians = np.empty(n)
    for i in range(n):
        slopes = np.empty(n - 1)
        k = 0
        for j in range(n):
            if j == i:
                continue
            slopes[k] = (y[j] - y[i]) / (x[j] - x[i])
            k += 1
        medians[i] = np.median(slopes)
    return np.median(medians)


def winsorize_columns(X, percent=5.0):
    """Clip each column to its own outer percentiles, in place; counts the values that changed."""
    changed = 0
    for j in range(X.shape[1]):
        col = X[:, j]
        low = np.percentile(col, percent)
        high = np.percentile(col, 100.0 - percent)
        changed += np.sum((col < low) | (col > high))
        X[:, j] = np.minimum(np.maximum(col, low), high)
    return changed


def chi_square(a, b, levels_a, levels_b):
    """Contingency table of two coded variables and its chi-square statistic."""
    table = np.zeros((levels_a, levels_b))
    for i, j in zip(a, b):
        table[i, j] += 1
    rows = table.sum(axis=1)
    cols = table.sum(axis=0)
    n = len(a)
    stat = 0.0
    for i in range(levels_a):
        for j in range(levels_b):
            expected = rows[i] * cols[j] / n
            if expected > 0:
                stat += (table[i, j] - expected) ** 2 / expected
    return table, stat


def group_summary(values, labels, groups):
    """Count, mean, smallest and largest value of each group."""
    count = np.zeros(groups, dtype=np.int64)
    mean = np.zeros(groups)
    low = np.full(groups, np.inf)
    high = np.full(groups, -np.inf)
    for i in range(len(values)):
        g = labels[i]
        count[g] += 1
        mean[g] += values[i]
        low[g] = min(low[g], values[i])
        high[g] = max(high[g], values[i])
    for g in range(groups):
        if count[g] > 0:
            mean[g] /= count[g]
    return count, mean, low, high


def metropolis_chain(steps, log_uniform, start=0.0):
    """Random-walk Metropolis on a two-humped density, with proposals and acceptance levels given."""
    x = start
    logp = -0.25 * (x * x - 4.0) ** 2
    chain = np.empty(len(steps))
    accepted = 0
    for t in range(len(steps)):
        y = x + steps[t]
        logq = -0.25 * (y * y - 4.0) ** 2
        if log_uniform[t] < logq - logp:
            x, logp = y, logq
            accepted += 1
        chain[t] = x
    return chain, accepted / len(steps)


def cusum_alarm(x, target, slack=0.5, limit=15.0):
    """First index at which the upper or lower CUSUM passes the limit, or -1."""
    up = down = 0.0
    for i in range(len(x)):
        up = max(0.0, up + x[i] - target - slack)
        down = max(0.0, down - x[i] + target - slack)
        if up > limit or down > limit:
            return i
    return -1


def _sample_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).normal(2.0, 3.0, n),)


def _table_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).normal(size=(n, 8)) @ np.random.default_rng(1).normal(size=(8, 8)),)


def _histogram_arguments(n: int) -> tuple[Any, ...]:
    return (*_sample_arguments(n), -5.0, 9.0)


def _density_arguments(n: int) -> tuple[Any, ...]:
    return np.linspace(-8.0, 12.0, n), np.random.default_rng(n).normal(2.0, 3.0, 2 * n), 0.4


def _bootstrap_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.gamma(2.0, size=2000), rng.integers(0, 2000, (n, 2000))


def _rank_arguments(n: int) -> tuple[Any, ...]:
    x = np.round(np.random.default_rng(n).normal(size=n), 3)
    return x, np.argsort(x, kind="stable")


def _pair_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    x = np.sort(rng.random(n)) + np.arange(n)
    return x, np.round(0.1 * x + rng.normal(0.0, 0.05 * n, n), 2)


def _permutation_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    pooled = rng.normal(size=400)
    pooled[:150] += 0.1
    return pooled, rng.permuted(np.tile(np.arange(400), (n, 1)), axis=1), 150


def _regression_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    X = np.column_stack((np.ones(n), rng.normal(size=(n, 7))))
    y = X @ rng.normal(size=8) + rng.normal(size=n)
    inverse = np.linalg.inv(X.T @ X)
    return X, y, inverse @ (X.T @ y), inverse


def _codes_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    a = rng.integers(0, 12, n)
    return a, (a + rng.integers(0, 9, n)) % 10, 12, 10


def _groups_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=n), rng.integers(0, 200, n), 200


def _chain_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=n), np.log(rng.random(n))


def _alarm_arguments(n: int) -> tuple[Any, ...]:
    x = np.random.default_rng(n).normal(size=n)
    x[n - n // 10 :] += 1.5
    return x, 0.0, 1.0, 20.0


# fmt: off
CASES: tuple[Case, ...] = (
    Case("moments", central_moments, _sample_arguments, 40_000, 6_000_000, Nature.PARALLEL, "Two loops of pure sums."),
    Case("moments", streaming_variance, _sample_arguments, 50_000, 3_000_000, Nature.SCAN,
         "The mean so far goes into the next update, but the summaries of two blocks can be combined."),
    Case("covariance", covariance_matrix, _table_arguments, 2_000, 40_000, Nature.PARALLEL,
         "Each row only adds a vector or a matrix."),
    Case("correlation", correlation_matrix, _table_arguments, 1_200, 120_000, Nature.PARALLEL,
         "Each pair of columns is a separate set of sums and has its own two cells."),
    Case("histogram", histogram_counts, _histogram_arguments, 60_000, 10_000_000, Nature.PARALLEL,
         "Each value only adds one to a count."),
    Case("kernel density", kernel_density, _density_arguments, 150, 2_500, Nature.PARALLEL,
         "Each grid point has its own sum over the sample."),
    Case("bootstrap", bootstrap_means, _bootstrap_arguments, 400, 2_500, Nature.PARALLEL,
         "Each round reads its own row of indices and writes its own two results."),
    Case("quantile", quantile_by_bisection, _sample_arguments, 10_000, 1_200_000, Nature.PARALLEL,
         "The halvings follow one another, but each of them is a count over the whole sample."),
    Case("rank test", average_ranks, _rank_arguments, 20_000, 600_000, Nature.SCAN,
         "Where a group of ties starts and ends is known from neighbours and a running maximum."),
    Case("rank test", mann_whitney_u, _pair_arguments, 250, 5_000, Nature.PARALLEL,
         "Each pair only adds to one number."),
    Case("permutation test", permutation_test, _permutation_arguments, 300, 25_000, Nature.PARALLEL,
         "Each permutation has its own two sums and only adds to a count."),
    Case("regression diagnostics", regression_diagnostics, _regression_arguments, 4_000, 40_000, Nature.PARALLEL,
         "Rows are independent but for a sum of squares and the position of a maximum."),
    Case("distance matrix", distance_matrix, _table_arguments, 80, 1_800, Nature.PARALLEL,
         "Each pair of rows has its own two cells and only adds to the search of a minimum."),
    Case("autocorrelation", autocorrelation, _sample_arguments, 2_500, 300_000, Nature.PARALLEL,
         "Each lag has its own sum of products and adds to one number."),
    Case("robust estimate", huber_location, _sample_arguments, 8_000, 1_000_000, Nature.PARALLEL,
         "The rounds follow one another, but each of them is two sums over the whole sample."),
    Case("robust regression", repeated_median_slope, _pair_arguments, 200, 1_000, Nature.PARALLEL,
         "Each point has its own slopes and median."),
    Case("winsorizing", winsorize_columns, _table_arguments, 15_000, 25_000, Nature.PARALLEL,
         "Each column is read and written by itself, and only adds to a count."),
    Case("contingency table", chi_square, _codes_arguments, 40_000, 8_000_000, Nature.PARALLEL,
         "Nearly all of the work is adding one to a cell of the table."),
    Case("group statistics", group_summary, _groups_arguments, 10_000, 6_000_000, Nature.PARALLEL,
         "Each value only adds to the sums and extremes of its group."),
    Case("Markov chain", metropolis_chain, _chain_arguments, 30_000, 3_000_000, Nature.SERIAL,
         "Whether a step is taken depends on where all of the steps before it have led."),
    Case("control chart", cusum_alarm, _alarm_arguments, 30_000, 5_000_000, Nature.SEARCH,
         "It stops at the first alarm, and the sums before it are running ones."),
)
# fmt: on
