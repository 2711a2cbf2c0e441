"""The loops whose printed plans are kept in this folder. Plain functions: the tests plan them, nothing runs them."""

import numpy as np


def sgd_epoch(ratings, W, H, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j] - reg * W[i])
        H[j] += step * (err * wi - reg * H[j])


def rmse(ratings, W, H):
    total = 0.0
    for (i, j), r in ratings:
        total += (r - W[i] @ H[j]) ** 2
    return np.sqrt(total / len(ratings))


def adagrad_epoch(ratings, W, H, GW, GH, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        gw = reg * W[i] - err * H[j]
        gh = reg * H[j] - err * W[i]
        GW[i] += gw * gw
        GH[j] += gh * gh
        W[i] -= step * gw / np.sqrt(GW[i])
        H[j] -= step * gh / np.sqrt(GH[j])


def factorize(tensor, U, V, T, step):
    for (i, j, k), x in tensor:
        err = x - np.sum(U[i] * V[j] * T[k])
        du = err * V[j] * T[k]
        dv = err * U[i] * T[k]
        dt = err * U[i] * V[j]
        U[i] += step * du
        V[j] += step * dv
        T[k] += step * dt


def shift(W):
    for i in range(W.shape[0] - 1):
        W[i + 1] = 0.5 * W[i]


def through_view(W, g, step):
    for i in range(1, W.shape[0]):
        w = W[i]
        w -= step * (g[i] + W[i - 1])


def permuted(W, perm, g):
    for i in range(perm.shape[0]):
        W[perm[i]] += g[i]


def smooth(A):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def gauss_seidel(A, sweeps):
    for t in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def running_sum(d, a):
    t = 0.0
    for i in range(d.shape[0]):
        t = t + d[i]
        a[i] = t


def train(ratings, W, H, step, epochs):
    for epoch in range(epochs):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            wi = W[i].copy()
            W[i] += step * err * H[j]
            H[j] += step * err * wi
