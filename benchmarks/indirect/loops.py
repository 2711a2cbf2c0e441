"""25 loops whose subscripts are read from arrays, listed before any of them was looked into.

Of each it is said what decides whether it is parallel: a property of an array of subscripts, levels or batches that an
inspection finds, or nothing, because it only reads by such subscripts or its chain is as long as the loop. `repeats`:
subscripts come several times; `is_deep`: most iterations wait for others, in chains of many; `ordered`: whether the
order of the iterations counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Indirect:
    """A function as a user writes it, without a decorator; `arguments(n)` are new ones, the same for the same n."""

    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    decides: str
    repeats: bool = False
    is_deep: bool = False
    ordered: bool = True

    @property
    def name(self) -> str:
        return self.function.__name__


# ---------------------------------------------------------------- permutations and parts


def permute(out, perm, x):
    for i in range(len(x)):
        out[perm[i]] = x[i]


def invert(inverse, perm):
    for i in range(len(perm)):
        inverse[perm[i]] = i


def update_rows(W, rows, G, rate):
    for k in range(len(rows)):
        for j in range(W.shape[1]):
            W[rows[k], j] -= rate * G[k, j]


def scale_rows(data, ptr, scale):
    for i in range(len(scale)):
        for p in range(ptr[i], ptr[i + 1]):
            data[p] *= scale[i]


def softmax_rows(data, ptr):
    for i in range(len(ptr) - 1):
        top, total = -np.inf, 0.0
        for p in range(ptr[i], ptr[i + 1]):
            top = max(top, data[p])
        for p in range(ptr[i], ptr[i + 1]):
            data[p] = np.exp(data[p] - top)
            total += data[p]
        for p in range(ptr[i], ptr[i + 1]):
            data[p] /= total


def unpack_runs(out, starts, values):
    for k in range(len(values)):
        for p in range(starts[k], starts[k + 1]):
            out[p] = values[k] + (p - starts[k])


def swap_pairs(a, left, right):
    for k in range(len(left)):
        t = a[left[k]]
        a[left[k]] = a[right[k]]
        a[right[k]] = t


def by_colour(u, f, first, order, ptr, idx):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            i = order[k]
            s = f[i]
            for p in range(ptr[i], ptr[i + 1]):
                s += u[idx[p]]
            u[i] = s / (ptr[i + 1] - ptr[i] + 1)


# ---------------------------------------------------------------- sums at places that repeat


def count(h, b):
    for i in range(len(b)):
        h[b[i]] += 1


def sum_segments(out, segment, v):
    for i in range(len(v)):
        out[segment[i]] += v[i]


def greatest_of_group(top, group, v):
    for i in range(len(v)):
        top[group[i]] = max(top[group[i]], v[i])


def histograms(H, bins, g):
    for i in range(bins.shape[0]):
        for f in range(bins.shape[1]):
            H[f, bins[i, f]] += g[i]


def multiply_by_columns(y, ptr, idx, data, x):
    for j in range(len(ptr) - 1):
        for p in range(ptr[j], ptr[j + 1]):
            y[idx[p]] += data[p] * x[j]


def assemble(K, element, k):
    for e in range(element.shape[0]):
        for a in range(element.shape[1]):
            for b in range(element.shape[1]):
                K[element[e, a], element[e, b] % K.shape[1]] += k[e] * (a + 1) * (b + 2)


def forces(F, X, source, target):
    for e in range(len(source)):
        for d in range(X.shape[1]):
            pull = X[target[e], d] - X[source[e], d]
            F[source[e], d] += pull
            F[target[e], d] -= pull


def edge_updates(P, source, target, rate):
    for e in range(len(source)):
        dot = 0.0
        for d in range(P.shape[1]):
            dot += P[source[e], d] * P[target[e], d]
        for d in range(P.shape[1]):
            step = rate * (1.0 - dot)
            P[source[e], d] += step * P[target[e], d]


def two_tables(C, D, centre, context, rate):
    for k in range(len(centre)):
        for d in range(C.shape[1]):
            t = C[centre[k], d]
            C[centre[k], d] += rate * D[context[k], d]
            D[context[k], d] += rate * t


def last_seen(seen, key):
    for i in range(len(key)):
        seen[key[i]] = i


# ---------------------------------------------------------------- only read


def multiply_by_rows(y, ptr, idx, data, x):
    for i in range(len(ptr) - 1):
        s = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            s += data[p] * x[idx[p]]
        y[i] = s


def mean_of_neighbours(new, x, near):
    for i in range(near.shape[0]):
        s = 0.0
        for k in range(near.shape[1]):
            s += x[near[i, k]]
        new[i] = s / near.shape[1]


# ---------------------------------------------------------------- chains


def solve_lower(x, b, ptr, idx, data):
    for i in range(len(b)):
        s = b[i]
        for p in range(ptr[i], ptr[i + 1] - 1):
            s -= data[p] * x[idx[p]]
        x[i] = s / data[ptr[i + 1] - 1]


def sweep(u, f, ptr, idx):
    for i in range(len(f)):
        s = f[i]
        for p in range(ptr[i], ptr[i + 1]):
            s += u[idx[p]]
        u[i] = s / (ptr[i + 1] - ptr[i] + 1)


def depths(depth, parent):
    for v in range(1, len(parent)):
        depth[v] = depth[parent[v]] + 1


def longest_paths(d, source, target, w):
    for e in range(len(source)):
        d[target[e]] = max(d[target[e]], d[source[e]] + w[e])


def chase(x, link):
    for i in range(len(link)):
        x[link[i]] = 0.5 * x[i] + 1.0


# ---------------------------------------------------------------- arguments


def _rng(n: int) -> np.random.Generator:
    return np.random.default_rng(n)


def _ptr(n: int, most: int = 9, least: int = 0) -> Any:
    return np.concatenate([[0], np.cumsum(_rng(n).integers(least, most, n))])


def _permuted(n: int) -> tuple[Any, ...]:
    return np.zeros(n), _rng(n).permutation(n), _rng(n + 1).random(n)


def _rows(n: int) -> tuple[Any, ...]:
    rng = _rng(n)
    return rng.random((2 * n, 16)), rng.choice(2 * n, n, replace=False), rng.random((n, 16)), 0.1


def _ragged(n: int) -> tuple[Any, ...]:
    ptr = _ptr(n)
    return _rng(n).random(int(ptr[-1])), ptr, _rng(n).random(n)


def _runs(n: int) -> tuple[Any, ...]:
    starts = _ptr(n)
    return np.zeros(int(starts[-1])), starts, _rng(n).random(n)


def _pairs(n: int) -> tuple[Any, ...]:
    both = _rng(n).permutation(2 * n)
    return _rng(n).random(2 * n), both[:n].copy(), both[n:].copy()


def _grid(n: int) -> tuple[Any, Any]:
    """The neighbours of the points of a square grid, in an order of rows: a graph of about n vertices."""
    side = max(2, int(n**0.5))
    at = np.arange(side * side).reshape(side, side)
    near = [[] for _ in range(side * side)]
    for one, other in ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:])):
        for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True):
            near[a].append(b)
            near[b].append(a)
    ptr = np.concatenate([[0], np.cumsum([len(one) for one in near])])
    return ptr, np.array([v for one in near for v in sorted(one)])


def _coloured(n: int) -> tuple[Any, ...]:
    ptr, idx = _grid(n)
    count, side = len(ptr) - 1, int((len(ptr) - 1) ** 0.5)
    colour = (np.arange(count) // side + np.arange(count) % side) % 2
    order = np.argsort(colour, kind="stable")
    first = np.array([0, int((colour == 0).sum()), count])
    return _rng(n).random(count), _rng(n + 1).random(count), first, order, ptr, idx


def _swept(n: int) -> tuple[Any, ...]:
    ptr, idx = _grid(n)
    return _rng(n).random(len(ptr) - 1), _rng(n + 1).random(len(ptr) - 1), ptr, idx


def _counted(n: int) -> tuple[Any, ...]:
    return np.zeros(n // 50 + 1, np.int64), _rng(n).integers(0, n // 50 + 1, n)


def _segments(n: int) -> tuple[Any, ...]:
    return np.zeros(n // 8 + 1), np.sort(_rng(n).integers(0, n // 8 + 1, n)), _rng(n).random(n)


def _groups(n: int) -> tuple[Any, ...]:
    return np.full(n // 8 + 1, -np.inf), _rng(n).integers(0, n // 8 + 1, n), _rng(n).random(n)


def _bins(n: int) -> tuple[Any, ...]:
    return np.zeros((28, 256)), _rng(n).integers(0, 256, (n, 28)).astype(np.uint8), _rng(n).random(n)


def _sparse(n: int) -> tuple[Any, ...]:
    ptr = _ptr(n, 12)
    count = int(ptr[-1])
    return np.zeros(n), ptr, _rng(n).integers(0, n, count), _rng(n).random(count), _rng(n + 1).random(n)


def _elements(n: int) -> tuple[Any, ...]:
    return np.zeros((n, 9)), _rng(n).integers(0, n, (n, 3)), _rng(n).random(n)


def _edges(n: int) -> tuple[Any, ...]:
    rng = _rng(n)
    return np.zeros((n // 4 + 2, 3)), rng.random((n // 4 + 2, 3)), *(rng.integers(0, n // 4 + 2, n) for _ in "st")


def _factors(n: int) -> tuple[Any, ...]:
    rng = _rng(n)
    return rng.random((n // 2 + 2, 16)), rng.integers(0, n // 2 + 2, n), rng.integers(0, n // 2 + 2, n), 0.01


def _words(n: int) -> tuple[Any, ...]:
    rng, many = _rng(n), n // 2 + 2
    return rng.random((many, 16)), rng.random((many, 16)), rng.integers(0, many, n), rng.integers(0, many, n), 0.01


def _keys(n: int) -> tuple[Any, ...]:
    return np.full(n // 3 + 1, -1), _rng(n).integers(0, n // 3 + 1, n)


def _near(n: int) -> tuple[Any, ...]:
    return np.zeros(n), _rng(n).random(n), _rng(n).integers(0, n, (n, 6))


def _lower(n: int) -> tuple[Any, ...]:
    """A sparse lower triangular matrix by rows, the diagonal last, with neighbours as on a grid."""
    ptr, idx = _grid(n)
    rows = [[v for v in idx[a:b].tolist() if v < i] + [i] for i, (a, b) in enumerate(itertools.pairwise(ptr))]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.array([v for row in rows for v in row])
    return np.zeros(len(rows)), _rng(n).random(len(rows)), starts, flat, 1.0 + _rng(n).random(len(flat))


def _tree(n: int) -> tuple[Any, ...]:
    return np.zeros(n, np.int64), (_rng(n).random(n) * np.arange(n)).astype(np.int64)


def _paths(n: int) -> tuple[Any, ...]:
    rng = _rng(n)
    target = np.sort(rng.integers(1, n // 3 + 2, n))
    return np.zeros(n // 3 + 2), (rng.random(n) * target).astype(np.int64), target, rng.random(n)


def _links(n: int) -> tuple[Any, ...]:
    return _rng(n).random(n), np.minimum(np.arange(n) + 1, n - 1)


LOOPS = (
    Indirect(permute, _permuted, "perm has no two equal elements"),
    Indirect(invert, lambda n: (np.zeros(n, np.int64), _rng(n).permutation(n)), "perm has no two equal elements"),
    Indirect(update_rows, _rows, "rows has no two equal elements", ordered=False),
    Indirect(scale_rows, _ragged, "ptr never goes down"),
    Indirect(softmax_rows, lambda n: _ragged(n)[:2], "ptr never goes down"),
    Indirect(unpack_runs, _runs, "starts never goes down"),
    Indirect(swap_pairs, _pairs, "left and right have no element twice"),
    Indirect(by_colour, _coloured, "vertices of a colour are no neighbours", ordered=False),
    Indirect(count, _counted, "sums of integers", repeats=True),
    Indirect(sum_segments, _segments, "segment never goes down", repeats=True),
    Indirect(greatest_of_group, _groups, "maxima", repeats=True),
    Indirect(histograms, _bins, "nothing: f is a loop of its own", repeats=True),
    Indirect(multiply_by_columns, _sparse, "batches", repeats=True, ordered=False),
    Indirect(assemble, _elements, "batches", repeats=True, ordered=False),
    Indirect(forces, _edges, "batches", repeats=True, ordered=False),
    Indirect(edge_updates, _factors, "batches", repeats=True, ordered=False),
    Indirect(two_tables, _words, "batches", repeats=True, ordered=False),
    Indirect(last_seen, _keys, "the last one counts", repeats=True),
    Indirect(multiply_by_rows, _sparse, "nothing: it only reads"),
    Indirect(mean_of_neighbours, _near, "nothing: it only reads"),
    Indirect(solve_lower, _lower, "levels", is_deep=True),
    Indirect(sweep, _swept, "levels", is_deep=True),
    Indirect(depths, _tree, "levels", is_deep=True),
    Indirect(longest_paths, _paths, "levels", repeats=True, is_deep=True),
    Indirect(chase, _links, "nothing: one chain", is_deep=True),
)
