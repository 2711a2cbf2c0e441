"""What a graph looks like: distances from a vertex, components, triangles.

    python examples/graph.py                                     # a generated web of 200,000 pages, both ways
    python examples/graph.py --edges facebook_combined.txt --skip 2 --backend ray --workers 2

Distances and components are found in rounds, each of which reads what the round before has left: parallel as they are.
Triangles are counted by walking along two sorted rows of neighbours at once. The plans, printed before anything runs,
say so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from graph_data import Graph, Ints, read_edges, rows_of, web
from live import waiting
from options import add_edges_options, add_running_options, parsed, whole

import orion


@orion.parallel_for
def step_outward(new, distance, ptr, idx, depth):
    reached = 0
    for v in range(len(distance)):
        new[v] = distance[v]
        if distance[v] < 0:
            for p in range(ptr[v], ptr[v + 1]):
                if distance[idx[p]] == depth:
                    new[v] = depth + 1
            if new[v] >= 0:
                reached += 1
    return reached


@orion.parallel_for
def spread_labels(new, label, ptr, idx):
    changed = 0
    for v in range(len(label)):
        least = label[v]
        for p in range(ptr[v], ptr[v + 1]):
            least = min(least, label[idx[p]])
        new[v] = least
        if least != label[v]:
            changed += 1
    return changed


@orion.parallel_for
def jump_labels(new, label):
    for v in range(len(label)):
        new[v] = label[label[v]]


@orion.parallel_for
def count_triangles(ptr, idx):
    total = 0
    for v in range(len(ptr) - 1):
        for p in range(ptr[v], ptr[v + 1]):
            u = idx[p]
            if u < v:
                a = ptr[v]
                b = ptr[u]
                while a < ptr[v + 1] and b < ptr[u + 1] and idx[a] < u and idx[b] < u:
                    if idx[a] == idx[b]:
                        total += 1
                        a += 1
                        b += 1
                    elif idx[a] < idx[b]:
                        a += 1
                    else:
                        b += 1
    return total


def distances_from(start: int, graph: Graph, tell: Callable[[str], None]) -> Ints:
    """The number of edges from a vertex to each; -1 where there is no way."""
    distance, new = np.full(graph.vertices, -1), np.full(graph.vertices, -1)
    distance[start] = 0
    depth = reached = 0
    while True:
        begin = perf_counter()
        found = step_outward(new, distance, graph.ptr, graph.idx, depth)
        distance, new = new, distance
        if not found:
            return distance
        depth, reached = depth + 1, reached + found
        tell(f"distance {depth:6d}  {found:12,d} vertices  {1e3 * (perf_counter() - begin):10.2f} ms")


def components_of(graph: Graph, tell: Callable[[str], None]) -> Ints:
    """The least vertex of the component of each."""
    label, new = np.arange(graph.vertices), np.zeros(graph.vertices, np.int64)
    rounds = 0
    while True:
        begin = perf_counter()
        changed = spread_labels(new, label, graph.ptr, graph.idx)
        if not changed:
            return label
        jump_labels(label, new)
        rounds += 1
        tell(f"round {rounds:9d}  {changed:12,d} changed   {1e3 * (perf_counter() - begin):10.2f} ms")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Distances, components and triangles of a graph.")
    add_edges_options(parser)
    parser.add_argument("--pages", type=whole(2), default=200_000, help="of the generated graph (default: %(default)s)")
    parser.add_argument("--links", type=whole(1), default=4, help="of each generated page (default: %(default)s)")
    parser.add_argument(
        "--start", type=whole(0, 10**18), help="the vertex to begin at (default: that of the least number)"
    )
    add_running_options(parser)
    return parsed(parser, arguments)


def both_ways(graph: Graph) -> Graph:
    """The graph with each edge in both directions."""
    source = np.repeat(np.arange(graph.vertices), np.diff(graph.ptr))
    both = np.concatenate((source, graph.idx)), np.concatenate((graph.idx, source))
    return rows_of(graph.vertices, *both, graph.about)


def run(options: argparse.Namespace) -> dict[str, Any]:
    graph = both_ways(web(options.pages, options.links, options.seed)) if options.edges is None else None
    graph = graph or read_edges(options.edges, options.skip)
    print(f"{graph.about}, {graph.edges // 2:,} edges")
    begin_at = graph.number(0) if options.start is None else options.start
    start, last = graph.vertex(begin_at), graph.number(graph.vertices - 1)
    if start is None:
        raise ValueError(f"--start {begin_at} is no vertex: their numbers are from {graph.number(0)} to {last}")
    with orion.session(options.backend, options.workers):
        for loop, arguments in (
            (spread_labels, (np.arange(graph.vertices), np.arange(graph.vertices))),
            (count_triangles, ()),
        ):
            print(f"\n{loop.plan(*arguments, graph.ptr, graph.idx)}")
        print()
        with waiting("distances"):
            distance = distances_from(start, graph, print)
        with waiting("components"):
            label = components_of(graph, print)
        begin = perf_counter()
        with waiting("triangles"):
            triangles = int(count_triangles(graph.ptr, graph.idx))
        print(f"{triangles:,} triangles  {1e3 * (perf_counter() - begin):.2f} ms")
    sizes = np.sort(np.bincount(label)[np.unique(label)])[::-1]
    print(f"{len(sizes):,} components, the largest of {int(sizes[0]):,} vertices")
    print(f"{int((distance >= 0).sum()):,} vertices are reached from {begin_at}, in {int(distance.max())} steps")
    return {"distance": distance, "label": label, "triangles": triangles}


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"graph.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
