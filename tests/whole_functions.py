"""Functions as users write them, with arguments to call them with: `cases()` has them by name.

Those over a sparse array are unordered there, or give the same in any order up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import orion


def early_stopping(ratings, W, H, step, tolerance, epochs):
    last = 1e30
    done = 0
    for _epoch in range(epochs):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            wi = W[i].copy()
            W[i] += step * err * H[j]
            H[j] += step * err * wi
        loss = 0.0
        for (i, j), r in ratings:
            loss += (r - W[i] @ H[j]) ** 2
        done += 1
        if last - loss < tolerance:
            break
        last = loss
    return done


def loss_history(ratings, w, losses, epochs, tolerance):
    for t in range(epochs):
        losses[t] = 0.0
        loss = 0.0
        for (i, _j), r in ratings:
            loss += (r - w[i]) ** 2
        losses[t] = loss
        if t > 0 and losses[t - 1] - losses[t] < tolerance:
            return t, losses[t]
        for (i, _j), r in ratings:
            w[i] += 0.1 * (r - w[i])
    return epochs, losses[epochs - 1]


def every_second_epoch(ratings, w, epochs, verbose):
    last = 0.0
    for t in range(epochs):
        if t % 2 == 1:
            continue
        for (i, _j), r in ratings:
            w[i] += 0.1 * (r - w[i])
        if verbose:
            total = 0.0
            for (i, _j), r in ratings:
                total += (r - w[i]) ** 2
            last = total
        elif w[0] > 1e9:
            return -1.0
    return last


def pagerank(links, rank, new, degree, damping, tolerance, most):
    n = rank.shape[0]
    change = 1.0
    rounds = 0
    while change > tolerance and rounds < most:
        for i in range(n):
            new[i] = (1 - damping) / n
        for (i, j), w in links:
            new[j] += damping * w * rank[i] / degree[i]
        change = 0.0
        for i in range(n):
            change += abs(new[i] - rank[i])
            rank[i] = new[i]
        rounds += 1
    return rounds


def kmeans(X, C, labels, sums, counts, rounds, tolerance):
    for t in range(rounds):
        for i in range(X.shape[0]):
            best = 1e300
            at = 0
            for k in range(C.shape[0]):
                d = 0.0
                for j in range(X.shape[1]):
                    d += (X[i, j] - C[k, j]) ** 2
                if d < best:
                    best = d
                    at = k
            labels[i] = at
        sums[:] = 0.0
        counts[:] = 0
        for i in range(X.shape[0]):
            counts[labels[i]] += 1
            for j in range(X.shape[1]):
                sums[labels[i], j] += X[i, j]
        moved = 0.0
        for k in range(C.shape[0]):
            if counts[k] > 0:
                for j in range(X.shape[1]):
                    new = sums[k, j] / counts[k]
                    moved += abs(new - C[k, j])
                    C[k, j] = new
        if moved < tolerance:
            return t
    return rounds


def power_iteration(A, v, w, tolerance):
    last = 0.0
    while True:
        for i in range(A.shape[0]):
            s = 0.0
            for j in range(A.shape[1]):
                s += A[i, j] * v[j]
            w[i] = s
        norm = 0.0
        for i in range(w.shape[0]):
            norm += w[i] * w[i]
        norm = math.sqrt(norm)
        for i in range(w.shape[0]):
            v[i] = w[i] / norm
        if abs(norm - last) < tolerance:
            break
        last = norm
    return last


def jacobi(A, B, tolerance):
    change = tolerance + 1.0
    sweeps = 0
    while change > tolerance:
        change = 0.0
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
                change = max(change, abs(B[i, j] - A[i, j]))
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = B[i, j]
        sweeps += 1
    return sweeps


def conjugate_gradients(A, x, r, p, q, tolerance, most):
    n = len(x)
    rr = 0.0
    for i in range(n):
        rr += r[i] * r[i]
    k = 0
    while rr > tolerance and k < most:
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += A[i, j] * p[j]
            q[i] = s
        pq = 0.0
        for i in range(n):
            pq += p[i] * q[i]
        alpha = rr / pq
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * q[i]
        new = 0.0
        for i in range(n):
            new += r[i] * r[i]
        beta = new / rr
        rr = new
        for i in range(n):
            p[i] = r[i] + beta * p[i]
        k += 1
    return k


def life(grid, other, steps):
    n, m = grid.shape
    for _t in range(steps):
        for i in range(n):
            for j in range(m):
                c = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            c += grid[(i + di) % n, (j + dj) % m]
                if c == 3:
                    other[i, j] = 1
                elif c == 2:
                    other[i, j] = grid[i, j]
                else:
                    other[i, j] = 0
        alive = 0
        for i in range(n):
            for j in range(m):
                grid[i, j] = other[i, j]
                alive += other[i, j]
        if alive == 0:
            return 0
    return alive


def sieve(prime):
    n = len(prime)
    prime[0] = False
    prime[1] = False
    for i in range(2, n):
        prime[i] = True
    i = 2
    while i * i < n:
        if prime[i]:
            for j in range(i * i, n, i):
                prime[j] = False
        i += 1
    count = 0
    for i in range(n):
        if prime[i]:
            count += 1
    return count


def components(label, first, second):
    rounds = 0
    changed = True
    while changed:
        changed = False
        for e in range(len(first)):
            low = min(label[first[e]], label[second[e]])
            if label[first[e]] != low or label[second[e]] != low:
                label[first[e]] = low
                label[second[e]] = low
                changed = True
        rounds += 1
    return rounds


def bubble_sort(a):
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break
    return i


def binary_search(a, keys, at):
    for k in range(len(keys)):
        low, high = 0, len(a)
        while low < high:
            mid = (low + high) // 2
            if a[mid] < keys[k]:
                low = mid + 1
            else:
                high = mid
        at[k] = low


def find(a, x):
    for i in range(len(a)):
        if a[i] == x:
            return i
    return -1


def find_pair(A, x):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] == x:
                return i, j
    return None


def find_or_else(a, x):
    for i in range(len(a)):
        if a[i] == x:
            break
    else:
        return False, len(a)
    return True, i


def first_descent(a):
    for i in range(len(a) - 1):
        if a[i] > a[i + 1]:
            return i, a[i] - a[i + 1]
    return -1, 0.0


def scaled(a, b, way):
    if len(b) < len(a):
        return -1
    if way > 0:
        for i in range(len(a)):
            a[i] += b[i]
    elif b[0] > 0.5:
        for i in range(len(a)):
            a[i] -= b[i]
    else:
        b[0] = 2.0
    total = 0.0
    for i in range(len(a)):
        total += a[i]
    return total


def within(a, n):
    if n <= len(a):
        for i in range(n):
            a[i] += 1
    while n > len(a):
        n -= 7
    for i in range(n):
        a[i] *= 2
    return n


def shrinking(a, n):
    while n > 0:
        for i in range(n):
            a[i] += i
        n //= 2
        for i in range(len(a)):
            a[i] *= 1.5
    return n


def own_bound(a, n):
    total = 0
    for t in range(n):
        for i in range(len(a)):
            a[i] += t
        n = 2
        total += n
    return total, n


def bounds_from_array(a, p):
    for t in range(p[0], p[1]):
        for i in range(len(a)):
            a[i] += t
        p[1] = 1
    return p[1]


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def line_search(a, b, rounds):
    """One loop of a round by itself, another in a `while`."""
    for t in range(rounds):
        for i in range(len(a)):
            a[i] = 0.5 * a[i] + b[len(a) - 1 - i] + t
        error = 1.0
        while error > 0.1:
            error = 0.0
            for i in range(len(a)):
                b[i] = 0.3 * b[i]
                error = max(error, abs(b[i]))


def nested(a, n):
    k = 0
    while k < n:
        j = 0
        while True:
            for i in range(len(a)):
                a[i] += j
            j += 1
            if j > k:
                break
            if a[0] > 3:
                continue
            for i in range(len(a)):
                a[i] *= 0.5
        k += 1
    return j


def kept_by_break(a, n):
    s = 0.0
    for t in range(n):
        for i in range(len(a)):
            a[i] += t
            s = a[i]
        if t == 2:
            break
        s = 0.0
    return s


def kept_by_continue(a, n):
    s = 0.0
    total = 0.0
    while n > 0:
        n -= 1
        total += s
        for i in range(len(a)):
            a[i] += 1
            s = a[i]
        if n % 2:
            continue
        s = 0.0
    return total


def cases() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """A function and fresh arguments for each name."""
    rng = np.random.default_rng(7)
    u, ints = rng.random, rng.integers
    keys = np.sort(rng.choice(600, 200, replace=False))
    ratings = orion.sparse((keys // 20, keys % 20), u(200), shape=(30, 20))
    A = u((20, 20))
    return {
        "early stopping": (early_stopping, (ratings, u((30, 4)), u((20, 4)), 0.05, 0.05, 40)),
        "loss history": (loss_history, (ratings, u(30), np.zeros(30), 30, 1e-2)),
        "loss history to its end": (loss_history, (ratings, u(30), np.zeros(3), 3, 1e-9)),
        "every second epoch": (every_second_epoch, (ratings, u(30), 5, True)),
        "every second epoch, silent": (every_second_epoch, (ratings, u(30), 5, False)),
        "PageRank": (pagerank, (ratings, np.full(30, 1 / 30), np.zeros(30), np.full(30, 5.0), 0.85, 1e-6, 50)),
        "k-means": (kmeans, (u((60, 3)), u((4, 3)), np.zeros(60, int), np.zeros((4, 3)), np.zeros(4, int), 30, 1e-6)),
        "power iteration": (power_iteration, (A + A.T, u(20), np.zeros(20), 1e-9)),
        "Jacobi": (jacobi, (u((20, 20)), np.zeros((20, 20)), 1e-3)),
        "conjugate gradients": (
            conjugate_gradients,
            (A @ A.T + 20 * np.eye(20), np.zeros(20), A[0].copy(), A[0].copy(), np.zeros(20), 1e-10, 99),
        ),
        "life": (life, (ints(0, 2, (20, 20)), np.zeros((20, 20), int), 5)),
        "life that ends": (life, (np.eye(2, 9, dtype=int), np.zeros((2, 9), int), 5)),
        "sieve": (sieve, (np.zeros(200, bool),)),
        "components": (components, (np.arange(50), ints(0, 50, 60), ints(0, 50, 60))),
        "bubble sort": (bubble_sort, (u(40),)),
        "binary search": (binary_search, (np.sort(u(100)), u(30), np.zeros(30, int))),
        "find": (find, (ints(0, 30, 100), 7)),
        "find nothing": (find, (ints(0, 30, 100), 77)),
        "find a pair": (find_pair, (ints(0, 30, (10, 10)), 7)),
        "find no pair": (find_pair, (ints(0, 30, (10, 10)), 77)),
        "find or else": (find_or_else, (ints(0, 30, 100), 7)),
        "find or nothing": (find_or_else, (ints(0, 30, 100), 77)),
        "no descent": (first_descent, (np.arange(20.0),)),
        "a descent": (first_descent, (u(20),)),
        "a branch": (scaled, (u(20), u(20), 1)),
        "the other branch": (scaled, (u(20), u(20) + 1, 0)),
        "no branch": (scaled, (u(20), u(20) / 2, 0)),
        "an early return": (scaled, (u(20), u(19), 0)),
        "within the bounds": (within, (u(20), 12)),
        "outside the bounds": (within, (u(20), 30)),
        "a bound that shrinks": (shrinking, (u(20), 20)),
        "a loop that sets its bound": (own_bound, (u(20), 5)),
        "bounds from an array": (bounds_from_array, (u(20), np.array([0, 4]))),
        "Collatz": (collatz, (27,)),
        "nested": (nested, (u(20), 5)),
        "a while in a for": (line_search, (u(20), u(20), 3)),
        "a value that a break keeps": (kept_by_break, (u(20), 5)),
        "a value that a continue keeps": (kept_by_continue, (u(20), 5)),
    }
