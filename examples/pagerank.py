"""PageRank three ways: by who links to a page, by whom it links to, and by sweeps in place.

    python examples/pagerank.py                                  # a generated web of 200,000 pages
    python examples/pagerank.py --edges facebook_combined.txt --skip 2    # a file of edges
    python examples/pagerank.py --how sweep --backend ray --workers 2

`pull` reads ranks by subscripts that are read from an array, and writes each rank once: parallel as it is. `push` adds
to ranks at such subscripts. `sweep` (Gauss-Seidel) takes the ranks that pages before it already have, in any order:
Orion looks at who links to whom, and runs pages at the same time that have no link between them. The plan, printed
before anything runs, says so.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from graph_data import Graph, read_edges, rows_of, web
from live import steps
from options import add_edges_options, add_running_options, between, non_negative, parsed, whole

import orion

# ------------------------------------------------------------------------------------------------ the loops


@orion.parallel_for
def pull(new, rank, share, ptr, idx, links, damping):
    n = len(rank)
    lost = 0.0
    for v in range(n):
        if links[v] == 0:
            lost += rank[v]
    for v in range(n):
        share[v] = rank[v] / max(links[v], 1)
    base = (1.0 - damping + damping * lost) / n
    change = 0.0
    for v in range(n):
        s = 0.0
        for p in range(ptr[v], ptr[v + 1]):
            s += share[idx[p]]
        new[v] = base + damping * s
        change += abs(new[v] - rank[v])
    return change


@orion.parallel_for(ordered=False)
def push(new, rank, to_ptr, to, damping):
    n = len(rank)
    lost = 0.0
    for u in range(n):
        if to_ptr[u] == to_ptr[u + 1]:
            lost += rank[u]
    base = (1.0 - damping + damping * lost) / n
    for v in range(n):
        new[v] = base
    for u in range(n):
        for p in range(to_ptr[u], to_ptr[u + 1]):
            new[to[p]] += damping * rank[u] / (to_ptr[u + 1] - to_ptr[u])
    change = 0.0
    for v in range(n):
        change += abs(new[v] - rank[v])
    return change


@orion.parallel_for(ordered=False)
def sweep(rank, before, ptr, idx, inverse, lost, damping):
    n = len(rank)
    base = (1.0 - damping + damping * lost) / n
    for v in range(n):
        before[v] = rank[v]
    for v in range(n):
        s = 0.0
        for p in range(ptr[v], ptr[v + 1]):
            s += rank[idx[p]] * inverse[idx[p]]
        rank[v] = base + damping * s
    change = 0.0
    for v in range(n):
        change += abs(rank[v] - before[v])
    return change


# ------------------------------------------------------------------------------------------------ the iterations


class Ranks:
    """The ranks of a graph, and one iteration of a kind over them."""

    def __init__(self, graph: Graph, how: str, damping: float) -> None:
        self.graph, self.how, self.damping = graph, how, damping
        n = graph.vertices
        self.links = np.bincount(graph.idx, minlength=n)
        self.inverse = 1.0 / np.maximum(self.links, 1)
        back = rows_of(n, graph.idx, np.repeat(np.arange(n), np.diff(graph.ptr)), graph.about)
        self.ptr, self.idx, self.to_ptr, self.to = map(orion.freeze, (graph.ptr, graph.idx, back.ptr, back.idx))
        self.rank, self.other, self.share = np.full(n, 1.0 / n), np.zeros(n), np.zeros(n)

    def loop(self) -> tuple[Any, tuple[Any, ...]]:
        """The loop of one iteration, and its arguments."""
        if self.how == "pull":
            return pull, (self.other, self.rank, self.share, self.ptr, self.idx, self.links, self.damping)
        if self.how == "push":
            return push, (self.other, self.rank, self.to_ptr, self.to, self.damping)
        lost = float(self.rank[self.links == 0].sum())
        return sweep, (self.rank, self.other, self.ptr, self.idx, self.inverse, lost, self.damping)

    def iterate(self) -> float:
        """One iteration; how much all ranks have changed together."""
        loop, arguments = self.loop()
        change = float(loop(*arguments))
        if self.how != "sweep":
            self.rank, self.other = self.other, self.rank
        return change


# ------------------------------------------------------------------------------------------------ the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PageRank of a graph.")
    add_edges_options(parser)
    parser.add_argument("--pages", type=whole(2), default=200_000, help="of the generated graph (default: %(default)s)")
    parser.add_argument("--links", type=whole(1), default=8, help="of each generated page (default: %(default)s)")
    parser.add_argument("--how", choices=("pull", "push", "sweep"), default="pull", help="(default: %(default)s)")
    parser.add_argument("--damping", type=between(0, 1), default=0.85, help="(default: %(default)s)")
    parser.add_argument(
        "--tolerance", type=non_negative, default=1e-10, help="the change to stop at (default: %(default)s)"
    )
    parser.add_argument("--iterations", type=whole(1), default=200, help="the most of them (default: %(default)s)")
    add_running_options(parser)
    return parsed(parser, arguments)


def run(options: argparse.Namespace) -> Ranks:
    graph = (
        web(options.pages, options.links, options.seed)
        if options.edges is None
        else read_edges(options.edges, options.skip)
    )
    print(f"{graph.about}, {graph.edges:,} links")
    ranks = Ranks(graph, options.how, options.damping)
    with orion.session(options.backend, options.workers):
        loop, arguments = ranks.loop()
        print(f"\n{loop.plan(*arguments, inspect=True)}\n")
        print("iteration        change   milliseconds")
        for iteration in steps("iterations", options.iterations):
            start = perf_counter()
            change = ranks.iterate()
            print(f"{iteration:9d}  {change:12.3e}  {1e3 * (perf_counter() - start):13.2f}", flush=True)
            if change < options.tolerance:
                break
    told = "converged" if change < options.tolerance else "not converged"
    print(f"\n{told} after {iteration} iterations: the change is {change:.3e}, --tolerance {options.tolerance:g}")
    print("\nthe highest ranks")
    for v in np.argsort(-ranks.rank, kind="stable")[:5].tolist():
        print(f"  vertex {graph.number(v):8d}  {ranks.rank[v]:.3e}")
    return ranks


def main(arguments: Sequence[str] | None = None) -> int:
    warnings.simplefilter("ignore", orion.SerialLoopWarning)  # the plan says what is serial
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"pagerank.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
