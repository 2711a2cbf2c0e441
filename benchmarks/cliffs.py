"""Loops that a new user writes in the first week, next to `@numba.njit` of the same text.

    python -m benchmarks.cliffs
    python -m benchmarks.cliffs --only gradient --repeats 15

They take turns; Orion runs on one worker and on two. Ratios are the time of `@numba.njit` over that of Orion: above 1,
Orion is faster. None should be below 0.95 on one worker, which is marked where it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_name
from numba import njit
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import interleaved, machine, seconds
from benchmarks.wavefront import common_subsequence

WORKERS = (1, 2)
LEAST = 0.95
LENGTHS = (4096, 8000, 8191, 8192)
LETTERS = 4
Make = Callable[[], tuple[Any, ...]]


# ---------------------------------------------------------------- sums into whole arrays


def gradient(X, y, w, g):
    for i in range(X.shape[0]):
        g += X[i] * (X[i] @ w - y[i])


def gradient_descent(X, y, w, g, step, epochs):
    for _ in range(epochs):
        g[:] = 0
        for i in range(X.shape[0]):
            g += X[i] * (X[i] @ w - y[i])
        w -= step * g


def outer_products(X, D, G):
    for i in range(X.shape[0]):
        G += np.outer(X[i], D[i])


# ---------------------------------------------------------------- many short rounds


def forward(A, B, observed, alpha, scale):
    states = A.shape[0]
    for t in range(1, observed.shape[0]):
        for j in range(states):
            s = 0.0
            for i in range(states):
                s += alpha[t - 1, i] * A[i, j]
            alpha[t, j] = s * B[observed[t], j]
        total = 0.0
        for j in range(states):
            total += alpha[t, j]
        inverse = 1.0 / total
        for j in range(states):
            alpha[t, j] *= inverse
        scale[t] = inverse


def viterbi(A, B, observed, best, new, back):
    states = A.shape[0]
    for t in range(1, observed.shape[0]):
        for j in range(states):
            score, place = best[0] + A[0, j], 0
            for i in range(1, states):
                value = best[i] + A[i, j]
                if value > score:
                    score = value
                    place = i
            new[j] = score + B[observed[t], j]
            back[t, j] = place
        for j in range(states):
            best[j] = new[j]


def stencils_with_source(a, b, source):
    for t in range(source.shape[0]):
        for i in range(1, a.shape[0] - 1):
            b[i] = 0.5 * a[i] + 0.25 * (a[i - 1] + a[i + 1])
        b[100] = source[t]
        for i in range(1, a.shape[0] - 1):
            a[i] = 0.5 * b[i] + 0.25 * (b[i - 1] + b[i + 1])


# ---------------------------------------------------------------- subscripts that are read


def factorize(ratings, W, H, user, item, mean, step, reg):
    for t in range(ratings.shape[0]):
        u, i, r = int(ratings[t, 0]), int(ratings[t, 1]), ratings[t, 2]
        e = r - mean - user[u] - item[i]
        for k in range(W.shape[1]):
            e -= W[u, k] * H[i, k]
        user[u] += step * (e - reg * user[u])
        item[i] += step * (e - reg * item[i])
        for k in range(W.shape[1]):
            w = W[u, k]
            W[u, k] += step * (e * H[i, k] - reg * w)
            H[i, k] += step * (e * w - reg * H[i, k])


def histogram(bins, H):
    for i in range(bins.shape[0]):
        for f in range(bins.shape[1]):
            H[f, bins[i, f]] += 1


def histogram_by_feature(bins, H):
    for f in range(bins.shape[1]):
        for i in range(bins.shape[0]):
            H[f, bins[i, f]] += 1


def gradient_histogram(bins, gradients, node, H, counts):
    for i in range(bins.shape[0]):
        for f in range(bins.shape[1]):
            b = bins[i, f]
            H[node[i], f, b] += gradients[i]
            counts[node[i], f, b] += 1


def warped(M, a, b):
    for i in range(1, M.shape[0]):
        for j in range(1, M.shape[1]):
            M[i, j] = abs(a[i - 1] - b[j - 1]) + min(M[i - 1, j], M[i, j - 1], M[i - 1, j - 1])


def life(a, b):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            s = (a[(i - 1) % n, (j - 1) % m] + a[(i - 1) % n, j] + a[(i - 1) % n, (j + 1) % m]
                 + a[i, (j - 1) % m] + a[i, (j + 1) % m]
                 + a[(i + 1) % n, (j - 1) % m] + a[(i + 1) % n, j] + a[(i + 1) % n, (j + 1) % m])  # fmt: skip
            if s == 3 or (s == 2 and a[i, j] == 1):
                b[i, j] = 1
            else:
                b[i, j] = 0


# ---------------------------------------------------------------- measuring


@dataclass(frozen=True, slots=True)
class Case:
    """A loop, and what makes its arguments."""

    title: str
    function: Callable[..., None]
    make: Make


def cases() -> list[Case]:
    """All loops, each with arguments that take `@numba.njit` a few milliseconds or more."""
    rng = np.random.default_rng(0)
    X, y, D = rng.random((50_000, 64)), rng.random(50_000), rng.random((5_000, 32))
    found = [
        Case("gradient, 50,000 × 64", gradient, lambda: (X, y, y[:64].copy(), np.zeros(64))),
        Case("gradient descent, 10 epochs", gradient_descent,
             lambda: (X, y, y[:64].copy(), np.zeros(64), 1e-7, 10)),
        Case("outer products, 5,000 of 64 × 32", outer_products, lambda: (X[:5_000], D, np.zeros((64, 32)))),
    ]  # fmt: skip
    cells = rng.integers(0, 2, (1_000, 1_000))
    found += [
        Case(f"game of life, 1,000², {np.dtype(kind)}", life,
             lambda kind=kind: (cells.astype(kind), np.zeros((1_000, 1_000), kind)))
        for kind in (np.uint8, np.int32, np.int64)
    ]  # fmt: skip
    return [*found, *_rounds(rng), *_by_subscripts(rng), *_subsequences(rng)]


def _rounds(rng: np.random.Generator) -> list[Case]:
    A, B, first, line = rng.random((64, 64)), rng.random((20, 64)), np.full(64, 1 / 64), rng.random(2_000)
    observed = {rounds: rng.integers(0, 20, rounds) for rounds in (3_000, 5_000)}

    def alphas(rounds: int) -> tuple[Any, ...]:
        alpha = np.zeros((rounds, 64))
        alpha[0] = first
        return A, B, observed[rounds], alpha, np.zeros(rounds)

    scores = np.log(A), np.log(B), observed[5_000]
    return [
        *(Case(f"forward algorithm, {n:,} rounds", forward, lambda n=n: alphas(n)) for n in observed),
        Case("Viterbi, 5,000 rounds", viterbi,
             lambda: (*scores, first.copy(), first.copy(), np.zeros((5_000, 64), np.int64))),
        Case("stencils with a source, 3,000 rounds of 2,000", stencils_with_source,
             lambda: (line.copy(), line.copy(), np.resize(line, 3_000))),
    ]  # fmt: skip


def _by_subscripts(rng: np.random.Generator) -> list[Case]:
    places = rng.integers(0, 3_000, 200_000), rng.integers(0, 2_000, 200_000), rng.random(200_000)
    gradients, nodes = rng.integers(-50, 50, 200_000), rng.integers(0, 8, 200_000)
    found = []
    for dtype in (np.float64, np.float32):
        ratings, W, H = (one.astype(dtype) for one in (
            np.stack(places, 1), 0.1 * rng.random((3_000, 16)), 0.1 * rng.random((2_000, 16))))  # fmt: skip
        number = dtype(1e-3)
        found.append(Case(
            f"factorization over triples, {np.dtype(dtype)}", factorize,
            lambda r=ratings, W=W, H=H, n=number, d=dtype: (
                r, W.copy(), H.copy(), np.zeros(3_000, d), np.zeros(2_000, d), n, n, n),
        ))  # fmt: skip
    for kind in (np.uint8, np.int32, np.int64):
        bins = rng.integers(0, 256, (200_000, 28)).astype(kind)
        found += [
            Case(f"histogram, {np.dtype(kind)}", histogram, lambda b=bins: (b, np.zeros((28, 256), np.int64))),
            Case(f"histogram by feature, {np.dtype(kind)}", histogram_by_feature,
                 lambda b=bins: (b, np.zeros((28, 256), np.int64))),
            Case(f"sums by node and bin, {np.dtype(kind)}", gradient_histogram, lambda b=bins: (
                b, gradients, nodes, np.zeros((8, 28, 256), np.int64), np.zeros((8, 28, 256), np.int64))),
        ]  # fmt: skip
    return found


def _subsequences(rng: np.random.Generator) -> list[Case]:
    words, lines = rng.integers(0, LETTERS, (2, max(LENGTHS))), rng.random((2, max(LENGTHS)))
    warping = [
        Case(f"time warping, {n}²", warped,
             lambda n=n: (np.zeros((n + 1, n + 1)), lines[0, :n].copy(), lines[1, :n].copy()))
        for n in LENGTHS
    ]  # fmt: skip
    return [
        *warping,
        *(Case(f"common subsequence, {n}², {np.dtype(kind)}", common_subsequence,
               lambda n=n, kind=kind: (np.zeros((n + 1, n + 1), kind), words[0, :n].copy(), words[1, :n].copy()))
          for n in LENGTHS
          for kind in (np.int32, np.int64)),
    ]  # fmt: skip


def times(case: Case, repeats: int) -> dict[str, Any]:
    """Seconds of every repeat by contender, and whether Orion's results are those of `@numba.njit`."""
    serial, parallel = njit(case.function), orion.parallel_for(case.function)
    expected, own = case.make(), case.make()
    serial(*expected)

    def by_numba() -> float:
        arguments = case.make()
        return seconds(lambda: serial(*arguments))

    def by_orion(workers: int) -> float:
        arguments, again = case.make(), case.make()
        with orion.session(workers=workers):
            parallel(*arguments)  # compiled, and loaded by this session
            return seconds(lambda: parallel(*again))

    with orion.session(workers=max(WORKERS)):
        parallel(*own)
    pairs = [(a, b) for a, b in zip(own, expected, strict=True) if isinstance(a, np.ndarray)]
    same = all(np.allclose(a, b, rtol=1e-4 if a.dtype == np.float32 else 1e-9) for a, b in pairs)
    contenders = {"njit": by_numba} | {f"x{w}": lambda w=w: by_orion(w) for w in WORKERS}
    return {**interleaved(contenders, repeats), "same": same}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Loops of the first week, next to @numba.njit of the same text.")
    parser.add_argument("--repeats", type=int, default=9, help="measurements of each (default 9)")
    parser.add_argument("--only", default="", help="loops whose titles have this in them")
    options = parser.parse_args()
    processor = f"{machine()['processor']}, {get_host_cpu_name()}"
    table = Table(title=f"Next to @numba.njit, medians (bests) of {options.repeats}; {processor}")
    for head in ("loop", "result", "njit, ms", *(f"Orion x{w}, ms" for w in WORKERS), *(f"njit/x{w}" for w in WORKERS)):
        table.add_column(head, justify="left" if head in ("loop", "result") else "right")
    for case in cases():
        if options.only not in case.title:
            continue
        found = times(case, options.repeats)
        serial, *others = (found[name] for name in ("njit", *(f"x{w}" for w in WORKERS)))
        table.add_row(
            case.title,
            "same" if found["same"] else "WRONG",
            f"{median(serial) * 1e3:.1f}",
            *(f"{median(values) * 1e3:.1f}" for values in others),
            *(f"{median(serial) / median(values):.2f} ({min(serial) / min(values):.2f})" for values in others),
            style="red" if median(serial) < LEAST * median(others[0]) else "",
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
