"""Programs over graphs: levels, rounds until nothing changes, rounds over all pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.small.program import Program


def bfs_levels(indptr, indices, source):
    """Return the distance of each vertex from the source in edges, by one pass over the frontier per level."""
    n = len(indptr) - 1
    dist = np.full(n, -1)
    frontier = np.empty(n, dtype=np.int64)
    upcoming = np.empty(n, dtype=np.int64)
    dist[source] = 0
    frontier[0] = source
    size = 1
    level = 0
    while size > 0:
        level += 1
        found = 0
        for k in range(size):
            v = frontier[k]
            for e in range(indptr[v], indptr[v + 1]):
                w = indices[e]
                if dist[w] < 0:
                    dist[w] = level
                    upcoming[found] = w
                    found += 1
        frontier, upcoming = upcoming, frontier
        size = found
    return dist


def components(indptr, indices):
    """Return the least vertex of each connected component, by propagating labels until none changes."""
    n = len(indptr) - 1
    label = np.arange(n)
    new = np.arange(n)
    changed = 1
    rounds = 0
    while changed > 0:
        changed = 0
        for v in range(n):
            least = label[v]
            for e in range(indptr[v], indptr[v + 1]):
                least = min(least, label[indices[e]])
            new[v] = least
            if least != label[v]:
                changed += 1
        for v in range(n):
            label[v] = new[v]
        rounds += 1
    return label, rounds


def k_core(indptr, indices):
    """Return the core number of each vertex: remove the vertices of degree below k, round by round, for rising k."""
    n = len(indptr) - 1
    degree = np.zeros(n, dtype=np.int64)
    core = np.zeros(n, dtype=np.int64)
    alive = np.ones(n, dtype=np.bool_)
    leaving = np.zeros(n, dtype=np.bool_)
    for v in range(n):
        degree[v] = indptr[v + 1] - indptr[v]
    left = n
    k = 1
    while left > 0:
        removed = 0
        for v in range(n):
            leaving[v] = alive[v] and degree[v] < k
            if leaving[v]:
                alive[v] = False
                core[v] = k - 1
                removed += 1
        if removed == 0:
            k += 1
        else:
            left -= removed
            for v in range(n):
                if alive[v]:
                    lost = 0
                    for e in range(indptr[v], indptr[v + 1]):
                        if leaving[indices[e]]:
                            lost += 1
                    degree[v] -= lost
    return core


def communities(indptr, indices, most_rounds):
    """Give each vertex the most frequent label of its neighbours and itself, until no label changes."""
    n = len(indptr) - 1
    label = np.arange(n)
    new = np.arange(n)
    rounds = 0
    changed = 1
    while changed > 0 and rounds < most_rounds:
        changed = 0
        for v in range(n):
            best = label[v]
            most = 1
            for e in range(indptr[v], indptr[v + 1]):
                candidate = label[indices[e]]
                count = 1 if candidate == label[v] else 0
                for f in range(indptr[v], indptr[v + 1]):
                    if label[indices[f]] == candidate:
                        count += 1
                if count > most or (count == most and candidate < best):
                    most = count
                    best = candidate
            new[v] = best
            if best != label[v]:
                changed += 1
        label, new = new, label
        rounds += 1
    return label, rounds


def bellman_ford(indptr, indices, weight, source):
    """Return the shortest distances from the source, pulled from the neighbours until none changes."""
    n = len(indptr) - 1
    dist = np.full(n, np.inf)
    new = np.full(n, np.inf)
    dist[source] = 0.0
    changed = True
    while changed:
        changed = False
        for v in range(n):
            best = dist[v]
            for e in range(indptr[v], indptr[v + 1]):
                through = dist[indices[e]] + weight[e]
                if through < best:
                    best = through
            new[v] = best
            if best < dist[v]:
                changed = True
        dist, new = new, dist
    return dist


def floyd_warshall(D):
    """Turn a matrix of edge lengths into the shortest distances of all pairs."""
    n = D.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                D[i, j] = min(D[i, j], D[i, k] + D[k, j])


def pagerank(indptr, indices, degree, damping, tol):
    """Return the PageRank of each vertex, pulled from the neighbours until it hardly changes."""
    n = len(indptr) - 1
    rank = np.full(n, 1.0 / n)
    share = np.zeros(n)
    change = 1.0
    rounds = 0
    while change > tol:
        for v in range(n):
            share[v] = rank[v] / degree[v]
        change = 0.0
        for v in range(n):
            total = 0.0
            for e in range(indptr[v], indptr[v + 1]):
                total += share[indices[e]]
            new = (1.0 - damping) / n + damping * total
            change += abs(new - rank[v])
            rank[v] = new
        rounds += 1
    return rank, rounds


# ---------------------------------------------------------------- graphs


def csr(n: int, src: Any, dst: Any) -> tuple[Any, Any]:
    """Return an undirected graph as CSR: each edge is in the rows of both ends."""
    ends, others = np.concatenate([src, dst]), np.concatenate([dst, src])
    order = np.argsort(ends, kind="stable")
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n), out=indptr[1:])
    return indptr, others[order].astype(np.int64)


def small_world(n: int, far: int, seed: int) -> tuple[Any, Any]:
    """Return a ring whose vertices have edges to the next two, and `far` edges between random vertices."""
    rng = np.random.default_rng(seed)
    ring = np.arange(n)
    src = np.concatenate([ring, ring, rng.integers(0, n, far)])
    dst = np.concatenate([(ring + 1) % n, (ring + 2) % n, rng.integers(0, n, far)])
    return csr(n, src, dst)


def blocks(n: int, size: int, inside: int, across: int, seed: int) -> tuple[Any, Any]:
    """Return groups of `size` vertices with `inside` random edges per vertex, and `across` random edges in all."""
    rng = np.random.default_rng(seed)
    src = np.repeat(np.arange(n), inside)
    dst = src // size * size + rng.integers(0, size, n * inside)
    return csr(n, np.concatenate([src, rng.integers(0, n, across)]), np.concatenate([dst, rng.integers(0, n, across)]))


def for_bfs(n: int) -> tuple[Any, ...]:
    return *small_world(n, n // 20, 1), 0


def for_k_core() -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    n, edges = 5_000, 40_000
    return csr(n, (n * rng.random(edges) ** 3).astype(np.int64), rng.integers(0, n, edges))


def for_bellman_ford() -> tuple[Any, ...]:
    indptr, indices = small_world(5_000, 500, 5)
    return indptr, indices, np.random.default_rng(5).random(len(indices)) + 0.1, 0


def for_floyd_warshall() -> tuple[Any, ...]:
    rng = np.random.default_rng(6)
    lengths = np.where(rng.random((100, 100)) < 0.1, rng.random((100, 100)), np.inf)
    np.fill_diagonal(lengths, 0.0)
    return (lengths,)


def for_pagerank() -> tuple[Any, ...]:
    rng = np.random.default_rng(7)
    n, edges = 10_000, 80_000
    indptr, indices = csr(n, (n * rng.random(edges) ** 2).astype(np.int64), rng.integers(0, n, edges))
    return indptr, indices, np.maximum(1, np.diff(indptr)).astype(np.float64), 0.85, 1e-8


PROGRAMS = (
    Program("bfs_10_4", bfs_levels, partial(for_bfs, 10_000)),
    Program("bfs_10_6", bfs_levels, partial(for_bfs, 1_000_000)),
    Program("components", components, partial(small_world, 5_000, 500, 2)),
    Program("k_core", k_core, for_k_core),
    Program("communities", communities, lambda: (*blocks(5_000, 50, 6, 1_000, 4), 50)),
    Program("bellman_ford", bellman_ford, for_bellman_ford),
    Program("floyd_warshall", floyd_warshall, for_floyd_warshall, ("D",)),
    Program("pagerank", pagerank, for_pagerank),
)
