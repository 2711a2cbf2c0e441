"""Programs over graphs as people write them with loops: edge lists, adjacency rows and matrices."""

# ruff: noqa: B905

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def bfs_frontier(indptr, indices, source=0):
    """Distance in edges from the source, level by level with two frontier arrays."""
    n = len(indptr) - 1
    dist = np.full(n, -1)
    frontier = np.empty(n, dtype=np.int64)
    upcoming = np.empty(n, dtype=np.int64)
    dist[source], frontier[0] = 0, source
    size, level = 1, 0
    while size > 0:
        level += 1
        found = 0
        for k in range(size):
            v = frontier[k]
            for e in range(indptr[v], indptr[v + 1]):
                w = indices[e]
                if dist[w] == -1:
                    dist[w] = level
                    upcoming[found] = w
                    found += 1
        frontier, upcoming = upcoming, frontier
        size = found
    return dist


def bfs_bottom_up(indptr, indices, source=0):
    """Distance in edges from the source: each vertex not yet reached looks for a neighbour in the last level."""
    dist = np.full(len(indptr) - 1, -1)
    dist[source] = 0
    level = 0
    while True:
        reached = 0
        for v in range(len(dist)):
            if dist[v] >= 0:
                continue
            for w in indices[indptr[v] : indptr[v + 1]]:
                if dist[w] == level:
                    dist[v] = level + 1
                    reached += 1
                    break
        if reached == 0:
            return dist
        level += 1


def closeness(indptr, indices):
    """Closeness of each vertex, by a breadth-first search from each of them."""
    n = len(indptr) - 1
    score = np.zeros(n)
    for s in range(n):
        dist = np.full(n, -1)
        queue = np.zeros(n, dtype=np.int64)
        dist[s], queue[0] = 0, s
        head, tail, total = 0, 1, 0
        while head < tail:
            v = queue[head]
            head += 1
            total += dist[v]
            for w in indices[indptr[v] : indptr[v + 1]]:
                if dist[w] < 0:
                    dist[w] = dist[v] + 1
                    queue[tail] = w
                    tail += 1
        if total > 0:
            score[s] = (tail - 1) / total * (tail - 1) / (n - 1)
    return score


def bellman_ford(src, dst, weight, n, source=0):
    """Shortest distances from a vertex over a list of edges, and how many rounds changed something."""
    dist = np.full(n, np.inf)
    dist[source] = 0.0
    rounds = 0
    changed = True
    while changed and rounds < n:
        changed = False
        for u, v, w in zip(src, dst, weight):
            if dist[u] + w < dist[v]:
                dist[v] = dist[u] + w
                changed = True
        if changed:
            rounds += 1
    return dist, rounds


def cheapest_with_stops(src, dst, price, n, stops=3):
    """Cheapest price from airport 0 to each other one with at most so many stops."""
    best = np.full(n, np.inf)
    best[0] = 0.0
    for _ in range(stops + 1):
        previous = best.copy()
        for k in range(len(price)):
            offer = previous[src[k]] + price[k]
            if offer < best[dst[k]]:
                best[dst[k]] = offer
    return best


def floyd_warshall(W):
    """Shortest distances between all pairs of vertices."""
    D = W.copy()
    n = D.shape[0]
    for k in range(n):
        for i in range(n):
            if D[i, k] == np.inf:
                continue
            for j in range(n):
                through = D[i, k] + D[k, j]
                if through < D[i, j]:
                    D[i, j] = through
    return D


def pagerank_edges(src, dst, n, damping=0.85, rounds=10):
    """PageRank pushed along a list of links; what pages without links hold goes to all pages."""
    links = np.zeros(n)
    for u in src:
        links[u] += 1
    rank = np.full(n, 1.0 / n)
    for _ in range(rounds):
        new = np.full(n, (1.0 - damping) / n)
        for e in range(len(src)):
            new[dst[e]] += damping * rank[src[e]] / links[src[e]]
        rank = new + (1.0 - new.sum()) / n
    return rank


def pagerank_pull(indptr, indices, damping=0.85, tol=1e-6):
    """PageRank of an undirected graph, pulled from the neighbours until it hardly changes."""
    n = len(indptr) - 1
    degree = np.diff(indptr)
    rank, new = np.full(n, 1.0 / n), np.zeros(n)
    for _sweep in range(50):
        change = 0.0
        for v in range(n):
            total = 0.0
            for w in indices[indptr[v] : indptr[v + 1]]:
                total += rank[w] / degree[w]
            new[v] = (1.0 - damping) / n + damping * total
            change += abs(new[v] - rank[v])
        rank, new = new, rank
        if change < tol:
            break
    return rank


def count_triangles(indptr, indices):
    """Number of triangles, by merging the sorted neighbours of both ends of each edge."""
    total = 0
    for u in range(len(indptr) - 1):
        for v in indices[indptr[u] : indptr[u + 1]]:
            if v <= u:
                continue
            i, j = indptr[u], indptr[v]
            while i < indptr[u + 1] and j < indptr[v + 1]:
                if indices[i] < indices[j]:
                    i += 1
                elif indices[i] > indices[j]:
                    j += 1
                else:
                    if indices[i] > v:
                        total += 1
                    i += 1
                    j += 1
    return total


def component_labels(indptr, indices):
    """Lowest vertex of each vertex's connected component, by passing labels on until none changes."""
    labels = np.arange(len(indptr) - 1)
    changed = True
    while changed:
        changed = False
        new = labels.copy()
        for v in range(len(labels)):
            for e in range(indptr[v], indptr[v + 1]):
                new[v] = min(new[v], labels[indices[e]])
            if new[v] != labels[v]:
                changed = True
        labels = new
    return labels


def find_root(parent, v):
    """Root of the tree that v is in, halving the path on the way."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


def union_by_size(src, dst, n):
    """Size of the largest connected component after each added edge, by union-find."""
    parent = np.arange(n)
    size = np.ones(n, dtype=np.int64)
    largest = np.ones(len(src), dtype=np.int64)
    for k, (a, b) in enumerate(zip(src, dst)):
        a, b = find_root(parent, a), find_root(parent, b)
        if size[a] < size[b]:
            a, b = b, a
        if a != b:
            parent[b] = a
            size[a] += size[b]
        largest[k] = max(largest[k - 1], size[a]) if k > 0 else size[a]
    return largest


def kruskal(src, dst, weight, n):
    """Edges of a minimum spanning forest and their total weight, by Kruskal."""
    parent = np.arange(n)
    chosen = np.zeros(len(src), dtype=np.bool_)
    total = 0.0
    for e in np.argsort(weight):
        a = find_root(parent, src[e])
        b = find_root(parent, dst[e])
        if a != b:
            parent[max(a, b)] = min(a, b)
            chosen[e] = True
            total += weight[e]
    return chosen, total


def degree_counts(edges, n):
    """How many vertices have each degree."""
    degree = np.zeros(n, dtype=np.int64)
    for a, b in edges:
        degree[a] += 1
        degree[b] += 1
    counts = np.zeros(degree.max() + 1, dtype=np.int64)
    for d in degree:
        counts[d] += 1
    return counts


def clustering(A):
    """Share of linked pairs among the neighbours of each vertex, and the mean of it."""
    n = A.shape[0]
    share = np.zeros(n)
    for i in range(n):
        near = np.flatnonzero(A[i])
        k = len(near)
        if k < 2:
            continue
        links = 0
        for a in range(k):
            for b in range(a + 1, k):
                if A[near[a], near[b]]:
                    links += 1
        share[i] = 2.0 * links / (k * (k - 1))
    return share, share.mean()


def graph_convolution(indptr, indices, H, W):
    """A layer of a graph network: rows of neighbours mixed by degree, times the weights, negative parts cut."""
    n = len(indptr) - 1
    scale = 1.0 / np.sqrt(1.0 + np.diff(indptr))
    out = np.zeros((n, W.shape[1]))
    for v in range(n):
        mixed = scale[v] * H[v]
        for w in indices[indptr[v] : indptr[v + 1]]:
            mixed += scale[w] * H[w]
        out[v] = np.maximum(scale[v] * np.dot(mixed, W), 0.0)
    return out


def walk_visits(indptr, indices, starts, U):
    """How often each vertex is visited by walkers that choose edges by the numbers in U."""
    visits = np.zeros(len(indptr) - 1, dtype=np.int64)
    for walker, v in enumerate(starts):
        for u in U[walker]:
            visits[v] += 1
            degree = indptr[v + 1] - indptr[v]
            if degree == 0:
                break
            v = indices[indptr[v] + int(u * degree)]
    return visits


def modularity(src, dst, community, groups):
    """Modularity of a division of the vertices into groups."""
    inside = np.zeros(groups)
    ends = np.zeros(groups)
    m = len(src)
    for a, b in zip(src, dst):
        ca, cb = community[a], community[b]
        ends[ca] += 1
        ends[cb] += 1
        if ca == cb:
            inside[ca] += 1
    q = 0.0
    for g in range(groups):
        q += inside[g] / m - (ends[g] / (2.0 * m)) ** 2
    return q


def dag_levels(indptr, indices):
    """Length of the longest path to each vertex of a graph without cycles, level by level."""
    n = len(indptr) - 1
    waits = np.zeros(n, dtype=np.int64)
    for w in indices:
        waits[w] += 1
    level = np.full(n, -1)
    ready = np.flatnonzero(waits == 0)
    depth = 0
    while len(ready) > 0:
        for v in ready:
            level[v] = depth
            for w in indices[indptr[v] : indptr[v + 1]]:
                waits[w] -= 1
        ready = np.flatnonzero((waits == 0) & (level < 0))
        depth += 1
    return level


def first_conflict(src, dst, side):
    """Position of the first edge with both ends on the same side, or -1."""
    for k, (a, b) in enumerate(zip(src, dst)):
        if side[a] == side[b]:
            return k
    return -1


def _link_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n), n


def _edge_arguments(n: int) -> tuple[Any, ...]:
    src, dst, _ = _link_arguments(n)
    return src, dst, np.random.default_rng(n + 1).uniform(1.0, 10.0, len(src)), n


def _pair_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).integers(0, n // 8, (n, 2)), n // 8


def _rows_of(src: Any, dst: Any, n: int) -> tuple[Any, ...]:
    keys = np.unique((src * n + dst)[src != dst])
    return np.searchsorted(keys, np.arange(n + 1) * n), keys % n


def _csr_arguments(n: int) -> tuple[Any, ...]:
    src, dst, _ = _link_arguments(n)
    return _rows_of(np.concatenate((src, dst)), np.concatenate((dst, src)), n)


def _distance_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    W = np.where(rng.random((n, n)) < 0.3, rng.uniform(1.0, 9.0, (n, n)), np.inf)
    np.fill_diagonal(W, 0.0)
    return (W,)


def _matrix_arguments(n: int) -> tuple[Any, ...]:
    A = np.triu(np.random.default_rng(n).random((n, n)) < 0.1, 1).astype(np.int8)
    return (A + A.T,)


def _net_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return *_csr_arguments(n), rng.normal(size=(n, 32)), rng.normal(size=(32, 16))


def _walk_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return *_csr_arguments(5_000), rng.integers(0, 5_000, n), rng.random((n, 40))


def _community_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.integers(0, 10_000, n), rng.integers(0, 10_000, n), rng.integers(0, 50, 10_000), 50


def _layer_arguments(n: int) -> tuple[Any, ...]:
    src, step, _ = _link_arguments(n)
    dst = src + n // 25 + step // 2
    return _rows_of(src[dst < n], dst[dst < n], n)


def _side_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    src, dst = 2 * rng.integers(0, 2_000, n), 2 * rng.integers(0, 2_000, n) + 1
    src[n - n // 20] = dst[n - n // 20]
    return src, dst, np.arange(4_000) % 2


CASES: tuple[Case, ...] = (
    Case(
        "BFS",
        bfs_frontier,
        _csr_arguments,
        5_000,
        150_000,
        Nature.SCAN,
        "Levels follow one another; in each, any order of claims gives the same distances, and finds are compacted.",
    ),
    Case("BFS", bfs_bottom_up, _csr_arguments, 1_500, 150_000, Nature.PARALLEL, "Vertices only read the last level."),
    Case("centrality", closeness, _csr_arguments, 60, 900, Nature.PARALLEL, "Each search is independent."),
    Case(
        "paths",
        bellman_ford,
        _edge_arguments,
        1_000,
        120_000,
        Nature.SERIAL,
        "An edge uses distances that edges before it in the same round have lowered, and the rounds are counted.",
    ),
    Case("paths", cheapest_with_stops, _edge_arguments, 2_000, 300_000, Nature.PARALLEL, "Flights only lower minima."),
    Case(
        "paths",
        floyd_warshall,
        _distance_arguments,
        32,
        300,
        Nature.PARALLEL,
        "Steps over k follow one another, but step k leaves its own row and column alone, and cells are independent.",
    ),
    Case("PageRank", pagerank_edges, _link_arguments, 400, 100_000, Nature.PARALLEL, "In a round each link only adds."),
    Case("PageRank", pagerank_pull, _csr_arguments, 150, 50_000, Nature.PARALLEL, "Each vertex reads old ranks only."),
    Case("triangles", count_triangles, _csr_arguments, 300, 60_000, Nature.PARALLEL, "Triangles are only counted."),
    Case(
        "components", component_labels, _csr_arguments, 400, 100_000, Nature.PARALLEL, "Vertices only read old labels."
    ),
    Case(
        "components",
        union_by_size,
        _link_arguments,
        2_000,
        300_000,
        Nature.SERIAL,
        "An edge joins trees as the edges before it have built them, and the sizes on the way are wanted.",
    ),
    Case("spanning", kruskal, _edge_arguments, 2_000, 50_000, Nature.SERIAL, "It depends on all lighter edges."),
    Case(
        "degrees",
        degree_counts,
        _pair_arguments,
        12_000,
        2_000_000,
        Nature.PARALLEL,
        "Each edge only adds to counters.",
    ),
    Case("clustering", clustering, _matrix_arguments, 180, 1_100, Nature.PARALLEL, "Each vertex is counted by itself."),
    Case("network", graph_convolution, _net_arguments, 600, 20_000, Nature.PARALLEL, "Each vertex writes its own row."),
    Case("walks", walk_visits, _walk_arguments, 400, 50_000, Nature.PARALLEL, "Walkers only add to counts."),
    Case("modularity", modularity, _community_arguments, 20_000, 4_000_000, Nature.PARALLEL, "Each edge only adds."),
    Case(
        "levels", dag_levels, _layer_arguments, 5_000, 400_000, Nature.PARALLEL, "In a level, only counters are shared."
    ),
    Case(
        "bipartite",
        first_conflict,
        _side_arguments,
        80_000,
        10_000_000,
        Nature.SEARCH,
        "It stops at the first conflict.",
    ),
)
