"""Programs that take one short step after the other along a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.small.program import Program


def hmm_forward(start, move, emit, seen):
    """Return the log-likelihood of a sequence under a hidden Markov model, by the scaled forward pass."""
    states = len(start)
    alpha = np.zeros(states)
    new = np.zeros(states)
    scale = 0.0
    for s in range(states):
        alpha[s] = start[s] * emit[s, seen[0]]
        scale += alpha[s]
    log_likelihood = np.log(scale)
    for s in range(states):
        alpha[s] /= scale
    for t in range(1, len(seen)):
        scale = 0.0
        for s in range(states):
            total = 0.0
            for r in range(states):
                total += alpha[r] * move[r, s]
            new[s] = total * emit[s, seen[t]]
            scale += new[s]
        for s in range(states):
            alpha[s] = new[s] / scale
        log_likelihood += np.log(scale)
    return log_likelihood


def viterbi(start, move, emit, seen):
    """Return the likeliest states of a hidden Markov model, given logarithms of its probabilities."""
    states = len(start)
    steps = len(seen)
    score = np.zeros((steps, states))
    came_from = np.zeros((steps, states), dtype=np.int64)
    for s in range(states):
        score[0, s] = start[s] + emit[s, seen[0]]
    for t in range(1, steps):
        for s in range(states):
            best = score[t - 1, 0] + move[0, s]
            source = 0
            for r in range(1, states):
                candidate = score[t - 1, r] + move[r, s]
                if candidate > best:
                    best = candidate
                    source = r
            score[t, s] = best + emit[s, seen[t]]
            came_from[t, s] = source
    path = np.zeros(steps, dtype=np.int64)
    for s in range(states):
        if score[steps - 1, s] > score[steps - 1, path[steps - 1]]:
            path[steps - 1] = s
    for back in range(1, steps):
        t = steps - back
        path[t - 1] = came_from[t, path[t]]
    return path


def rnn(W, U, bias, inputs, h):
    """Run the steps of a recurrent network; `h` is its state."""
    units = len(h)
    features = inputs.shape[1]
    new = np.zeros(units)
    for t in range(len(inputs)):
        for i in range(units):
            total = bias[i]
            for j in range(units):
                total += W[i, j] * h[j]
            for j in range(features):
                total += U[i, j] * inputs[t, j]
            new[i] = np.tanh(total)
        for i in range(units):
            h[i] = new[i]


def kalman(F, H, Q, noise, measured, x, P):
    """Return the states that a Kalman filter estimates, with one measured value per step."""
    n = len(x)
    states = np.zeros((len(measured), n))
    ahead = np.zeros(n)
    FP = np.zeros((n, n))
    PH = np.zeros(n)
    for t in range(len(measured)):
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += F[i, j] * x[j]
            ahead[i] = total
        for i in range(n):
            for j in range(n):
                total = 0.0
                for k in range(n):
                    total += F[i, k] * P[k, j]
                FP[i, j] = total
        for i in range(n):
            for j in range(n):
                total = Q[i, j]
                for k in range(n):
                    total += FP[i, k] * F[j, k]
                P[i, j] = total
        innovation = measured[t]
        variance = noise
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += P[i, j] * H[j]
            PH[i] = total
            innovation -= H[i] * ahead[i]
            variance += H[i] * total
        for i in range(n):
            x[i] = ahead[i] + PH[i] * innovation / variance
            states[t, i] = x[i]
            for j in range(n):
                P[i, j] -= PH[i] * PH[j] / variance
    return states


# ---------------------------------------------------------------- models and sequences


def for_hmm() -> tuple[Any, ...]:
    rng = np.random.default_rng(31)
    start, move, emit = rng.random(16) + 0.1, rng.random((16, 16)) + 0.1, rng.random((16, 8)) + 0.1
    seen = rng.integers(0, 8, 5_000)
    return start / start.sum(), move / move.sum(1, keepdims=True), emit / emit.sum(1, keepdims=True), seen


def for_viterbi() -> tuple[Any, ...]:
    start, move, emit, seen = for_hmm()
    return np.log(start), np.log(move), np.log(emit), seen


def for_rnn() -> tuple[Any, ...]:
    rng = np.random.default_rng(33)
    W, U = rng.standard_normal((64, 64)) / 8.0, rng.standard_normal((64, 32)) / 8.0
    return W, U, rng.standard_normal(64) / 8.0, rng.standard_normal((500, 32)), np.zeros(64)


def for_kalman() -> tuple[Any, ...]:
    rng = np.random.default_rng(34)
    F = np.eye(6) * 0.98 + np.eye(6, k=1) * 0.1
    measured = np.cumsum(rng.standard_normal(2_000)) * 0.1
    return F, np.array([1.0, 0.0, 0.5, 0.0, 0.25, 0.0]), np.eye(6) * 0.01, 0.5, measured, np.zeros(6), np.eye(6)


PROGRAMS = (
    Program("hmm_forward", hmm_forward, for_hmm),
    Program("viterbi", viterbi, for_viterbi),
    Program("rnn", rnn, for_rnn, ("h",)),
    Program("kalman", kalman, for_kalman, ("x", "P")),
)
