"""The others: correlation, covariance, deriche, floyd-warshall, nussinov."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .kernel import Inputs, Kernel, uniform

# ---------------------------------------------------------------- correlation of the columns of data


def correlation(data, corr, mean, stddev):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for j in range(m):
        stddev[j] = 0.0
        for i in range(n):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] /= n
        stddev[j] = np.sqrt(stddev[j])
        stddev[j] = 1.0 if stddev[j] <= 0.1 else stddev[j]
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
            data[i, j] /= np.sqrt(n) * stddev[j]
    for i in range(m - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            corr[i, j] = 0.0
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[m - 1, m - 1] = 1.0


@njit(parallel=True, fastmath=False)
def correlation_prange(data, corr, mean, stddev):
    n, m = data.shape
    for j in prange(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
        stddev[j] = 0.0
        for i in range(n):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] /= n
        stddev[j] = np.sqrt(stddev[j])
        stddev[j] = 1.0 if stddev[j] <= 0.1 else stddev[j]
    for i in prange(n):
        for j in range(m):
            data[i, j] -= mean[j]
            data[i, j] /= np.sqrt(n) * stddev[j]
    for i in prange(m - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            corr[i, j] = 0.0
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[m - 1, m - 1] = 1.0


def correlation_inputs(size: str) -> Inputs:
    n, m = {"tiny": (11, 7), "small": (80, 60), "bench": (700, 540)}[size]
    return {"data": uniform(1, n, m), "corr": uniform(2, m, m), "mean": uniform(3, m), "stddev": uniform(4, m)}


CORRELATION = Kernel(
    "correlation", correlation, correlation_prange, correlation_inputs, ("data", "corr", "mean", "stddev")
)


# ---------------------------------------------------------------- covariance of the columns of data


def covariance(data, cov, mean):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = 0.0
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]


@njit(parallel=True, fastmath=False)
def covariance_prange(data, cov, mean):
    n, m = data.shape
    for j in prange(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in prange(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in prange(m):
        for j in range(i, m):
            cov[i, j] = 0.0
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]


def covariance_inputs(size: str) -> Inputs:
    n, m = {"tiny": (11, 7), "small": (80, 60), "bench": (700, 540)}[size]
    return {"data": uniform(1, n, m), "cov": uniform(2, m, m), "mean": uniform(3, m)}


COVARIANCE = Kernel("covariance", covariance, covariance_prange, covariance_inputs, ("data", "cov", "mean"))


# ---------------------------------------------------------------- deriche: edges by a filter along rows, then columns


def deriche(image, out, y1, y2, alpha):
    width, height = image.shape
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0**-alpha
    b2 = -np.exp(-2.0 * alpha)
    for i in range(width):
        ym1 = 0.0
        ym2 = 0.0
        xm1 = 0.0
        for j in range(height):
            y1[i, j] = k * image[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1 = image[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for i in range(width):
        yp1 = 0.0
        yp2 = 0.0
        xp1 = 0.0
        xp2 = 0.0
        for j in range(height - 1, -1, -1):
            y2[i, j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2
            xp2 = xp1
            xp1 = image[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(width):
        for j in range(height):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in range(height):
        tm1 = 0.0
        ym1 = 0.0
        ym2 = 0.0
        for i in range(width):
            y1[i, j] = k * out[i, j] + a2 * tm1 + b1 * ym1 + b2 * ym2
            tm1 = out[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for j in range(height):
        tp1 = 0.0
        tp2 = 0.0
        yp1 = 0.0
        yp2 = 0.0
        for i in range(width - 1, -1, -1):
            y2[i, j] = a3 * tp1 + a4 * tp2 + b1 * yp1 + b2 * yp2
            tp2 = tp1
            tp1 = out[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(width):
        for j in range(height):
            out[i, j] = y1[i, j] + y2[i, j]


@njit(parallel=True, fastmath=False)
def deriche_prange(image, out, y1, y2, alpha):
    width, height = image.shape
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0**-alpha
    b2 = -np.exp(-2.0 * alpha)
    for i in prange(width):
        ym1 = 0.0
        ym2 = 0.0
        xm1 = 0.0
        for j in range(height):
            y1[i, j] = k * image[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1 = image[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
        yp1 = 0.0
        yp2 = 0.0
        xp1 = 0.0
        xp2 = 0.0
        for j in range(height - 1, -1, -1):
            y2[i, j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2
            xp2 = xp1
            xp1 = image[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
        for j in range(height):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in prange(height):
        tm1 = 0.0
        ym1 = 0.0
        ym2 = 0.0
        for i in range(width):
            y1[i, j] = k * out[i, j] + a2 * tm1 + b1 * ym1 + b2 * ym2
            tm1 = out[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for j in prange(height):
        tp1 = 0.0
        tp2 = 0.0
        yp1 = 0.0
        yp2 = 0.0
        for i in range(width - 1, -1, -1):
            y2[i, j] = a3 * tp1 + a4 * tp2 + b1 * yp1 + b2 * yp2
            tp2 = tp1
            tp1 = out[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in prange(width):
        for j in range(height):
            out[i, j] = y1[i, j] + y2[i, j]


def deriche_inputs(size: str) -> Inputs:
    width, height = {"tiny": (9, 11), "small": (150, 200), "bench": (3200, 2400)}[size]
    arrays = {name: uniform(seed, width, height) for seed, name in enumerate(("image", "out", "y1", "y2"))}
    return {**arrays, "alpha": 0.25}


DERICHE = Kernel("deriche", deriche, deriche_prange, deriche_inputs, ("out", "y1", "y2"))


# ---------------------------------------------------------------- floyd-warshall: shortest paths between all pairs


def floyd_warshall(path):
    for k in range(path.shape[0]):
        for i in range(path.shape[0]):
            for j in range(path.shape[0]):
                path[i, j] = path[i, j] if path[i, j] < path[i, k] + path[k, j] else path[i, k] + path[k, j]


@njit(parallel=True, fastmath=False)
def floyd_warshall_prange(path):
    for k in range(path.shape[0]):
        for i in prange(path.shape[0]):
            if i != k:  # row k, which all others read, stays as it is: no path[k, k] is negative
                for j in range(path.shape[0]):
                    path[i, j] = path[i, j] if path[i, j] < path[i, k] + path[k, j] else path[i, k] + path[k, j]


def floyd_warshall_inputs(size: str) -> Inputs:
    """A third of the pairs have no edge, which stands as a long one."""
    n = {"tiny": 11, "small": 90, "bench": 600}[size]
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 100, (n, n))
    return {"path": np.where(rng.random((n, n)) < 1 / 3, 999, lengths).astype(np.int32)}


FLOYD_WARSHALL = Kernel("floyd-warshall", floyd_warshall, floyd_warshall_prange, floyd_warshall_inputs, ("path",))


# ---------------------------------------------------------------- nussinov: the most pairs of bases in a folded RNA


def nussinov(seq, table):
    n = seq.shape[0]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])


@njit(parallel=True, fastmath=False)
def nussinov_prange(seq, table):
    n = seq.shape[0]
    for length in range(1, n):  # diagonal by diagonal: a stretch of bases needs only shorter ones
        for i in prange(n - length):
            j = i + length
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])


def nussinov_inputs(size: str) -> Inputs:
    """Bases are 0 to 3; those whose sum is 3 pair."""
    n = {"tiny": 13, "small": 120, "bench": 1000}[size]
    return {"seq": np.random.default_rng(1).integers(0, 4, n).astype(np.int8), "table": np.zeros((n, n), np.int32)}


NUSSINOV = Kernel("nussinov", nussinov, nussinov_prange, nussinov_inputs, ("table",))
