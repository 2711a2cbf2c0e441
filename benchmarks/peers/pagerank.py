"""PageRank of 500,000 generated pages: the loop `pull` of `examples/pagerank.py`, igraph, SciPy and Numba.

    python -m benchmarks.peers.pagerank                  # from the project's folder
    python -m benchmarks.peers.pagerank --pages 100000 --repeats 9

All get the same graph and end with the same error: the sum of the absolute differences to ranks that are right to
1e-14. igraph cannot be told how exact to be: the error of what it finds on one thread is what the others have to
reach, unless `--error` says another one. They iterate as often as that takes, which is counted before; each iteration
also computes the change, as a program does that stops by it. Building each library's own graph or matrix is not timed,
with one exception: igraph's PRPACK puts the graph into another order in every call. What that takes is a row of its
own, by a damping of 0.001, with which hardly anything is left to iterate.

networkx is left out: it makes a matrix of SciPy from its dictionaries in every call. Of 100,000 pages that took 2.2
seconds, where SciPy by itself took 0.2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import machine
from benchmarks.process import ROOT

from .contenders import Contender, in_turns, installed, show, table, threads_of_numba, workers_of_orion

sys.path.insert(0, str(ROOT / "examples"))

from graph_data import Graph, Ints, web
from pagerank import Ranks

Floats = NDArray[np.float64]
DAMPING = 0.85
RIGHT = 1e-14  # the error of the ranks that others are compared to
WITHOUT_IGRAPH = 1e-12  # the error to reach where neither igraph nor an option says one
HARDLY = 0.001  # a damping with which a few sweeps do

# ---------------------------------------------------------------- by hand, in Numba


def step(new: Floats, rank: Floats, share: Floats, ptr: Ints, idx: Ints, inverse: Floats, damping: float) -> float:
    """An iteration as one writes it for Numba; `inverse` is 0 for a page without links."""
    n = len(rank)
    lost = 0.0
    for v in numba.prange(n):
        share[v] = rank[v] * inverse[v]
        if inverse[v] == 0.0:
            lost += rank[v]
    base = (1.0 - damping + damping * lost) / n
    change = 0.0
    for v in numba.prange(n):
        s = 0.0
        for p in range(ptr[v], ptr[v + 1]):
            s += share[idx[p]]
        new[v] = base + damping * s
        change += abs(new[v] - rank[v])
    return change


serial_step = numba.njit(step)  # with fastmath it is slower: rows are too short for vectors
parallel_step = numba.njit(parallel=True)(step)


class Web:
    """A graph, and what the iterations over it need."""

    def __init__(self, graph: Graph) -> None:
        self.graph, n = graph, graph.vertices
        self.links = np.bincount(graph.idx, minlength=n)
        self.inverse = np.where(self.links > 0, 1.0 / np.maximum(self.links, 1), 0.0)

    def iterates(self, one: Callable[..., float]) -> Iterator[tuple[Floats, float]]:
        """The ranks after each iteration, and how much they have changed, without end."""
        n = self.graph.vertices
        rank, new, share = np.full(n, 1.0 / n), np.zeros(n), np.zeros(n)
        while True:
            change = one(new, rank, share, self.graph.ptr, self.graph.idx, self.inverse, DAMPING)
            rank, new = new, rank
            yield rank, change

    def by_numba(self, one: Callable[..., float], iterations: int) -> Floats:
        rank, _ = next(islice(self.iterates(one), iterations - 1, None))
        return rank


# ---------------------------------------------------------------- how exact they are


def right_ranks(pages: Web) -> NDArray[np.longdouble]:
    """Ranks by iterations in long doubles, which begin where doubles do not get any further."""
    rank = next(rank for rank, change in pages.iterates(serial_step) if change < RIGHT).astype(np.longdouble)
    graph, n, damping = pages.graph, pages.graph.vertices, np.longdouble(DAMPING)
    linked, inverse = np.flatnonzero(np.diff(graph.ptr)), 1.0 / np.maximum(pages.links, 1).astype(np.longdouble)
    while True:
        sums = np.zeros(n, np.longdouble)
        sums[linked] = np.add.reduceat((rank * inverse)[graph.idx], graph.ptr[linked])
        new = (1.0 - damping + damping * rank[pages.links == 0].sum()) / n + damping * sums
        change, rank = np.abs(new - rank).sum(), new
        if change * damping / (1.0 - damping) < RIGHT:  # a bound of the error
            return rank


def error_of(ranks: Floats, right: NDArray[np.longdouble]) -> float:
    return float(np.abs(ranks - right).sum())


def iterations_to(pages: Web, right: NDArray[np.longdouble], error: float) -> int:
    """How many iterations it takes from equal ranks to an error."""
    for count, (rank, _) in enumerate(pages.iterates(serial_step), 1):
        if error_of(rank, right) <= error:
            return count
    raise AssertionError("iterations do not end")


# ---------------------------------------------------------------- the contenders


def by_orion(ranks: Ranks, iterations: int) -> Floats:
    ranks.rank[:] = 1.0 / len(ranks.rank)
    for _ in range(iterations):
        ranks.iterate()
    found: Floats = ranks.rank
    return found


def of_orion(pages: Web, iterations: int) -> Iterator[Contender]:
    ranks = Ranks(pages.graph, "pull", DAMPING)
    for workers in (1, 2):
        yield Contender(
            "Orion",
            workers,
            partial(by_orion, ranks, iterations),
            f"{iterations} iterations, subscripts of 64 bits",
            partial(workers_of_orion, workers, ranks.iterate),
        )


def of_numba(pages: Web, iterations: int) -> Iterator[Contender]:
    serial, parallel = partial(pages.by_numba, serial_step), partial(pages.by_numba, parallel_step)
    does = f"{iterations} iterations by hand, subscripts of 64 bits"
    yield Contender("Numba", 1, partial(serial, iterations), does)
    yield Contender("Numba prange", 2, partial(parallel, iterations), does, partial(threads_of_numba, 2))


def of_scipy(pages: Web, iterations: int) -> Iterator[Contender]:
    if not installed("scipy", "scipy"):
        return
    import scipy.sparse as sp

    graph, n, nowhere = pages.graph, pages.graph.vertices, pages.links == 0
    weights = pages.inverse[graph.idx]
    links = sp.csr_matrix((weights, graph.idx.astype(np.int32), graph.ptr.astype(np.int32)), shape=(n, n))

    def run() -> Floats:
        rank = np.full(n, 1.0 / n)
        for _ in range(iterations):
            new = (1.0 - DAMPING + DAMPING * rank[nowhere].sum()) / n + DAMPING * (links @ rank)
            np.abs(new - rank).sum()
            rank = new
        return rank

    yield Contender(
        "SciPy", 1, run, f"{iterations} iterations: `@` and NumPy, subscripts of 32 bits, a weight per link"
    )


def of_igraph(graph: Graph) -> Iterator[Contender]:
    if not (installed("igraph", "igraph") and installed("threadpoolctl", "threadpoolctl")):
        return
    import igraph
    from threadpoolctl import threadpool_limits

    target = np.repeat(np.arange(graph.vertices), np.diff(graph.ptr))
    theirs = igraph.Graph(n=graph.vertices, edges=np.column_stack((graph.idx, target)), directed=True)

    def run(damping: float) -> Floats:
        return np.array(theirs.pagerank(directed=True, damping=damping, implementation="prpack"))

    does = "PRPACK: Gauss-Seidel sweeps by strongly connected component, after putting the graph in that order"
    for workers, also in ((1, ""), (2, "; threads sweep at the same time, over ranks as they find them")):
        yield Contender("igraph", workers, partial(run, DAMPING), does + also, partial(threadpool_limits, workers))
    does = f"the same with a damping of {HARDLY}, which needs hardly a sweep"
    yield Contender("igraph, preparing", 1, partial(run, HARDLY), does, partial(threadpool_limits, 1))


# ---------------------------------------------------------------- the command


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PageRank by Orion, igraph, SciPy and Numba.")
    parser.add_argument("--pages", type=int, default=500_000, help="(default: %(default)s)")
    parser.add_argument("--links", type=int, default=8, help="of each page (default: %(default)s)")
    parser.add_argument("--error", type=float, help=f"to reach (default: that of igraph, else {WITHOUT_IGRAPH})")
    parser.add_argument("--repeats", type=int, default=7, help="measurements of each contender")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.pages < 2 or options.links < 1 or options.repeats < 1:
        parser.error("pages must be 2 at least, links and repeats 1")
    if options.error is not None and not RIGHT <= options.error < 1.0:
        parser.error(f"the error must be between {RIGHT} and 1: less than {RIGHT} cannot be told")
    return options


def main() -> None:
    options, before = parse(), machine()
    pages = Web(web(options.pages, options.links, options.seed))
    right = right_ranks(pages)
    contenders = list(of_igraph(pages.graph))
    errors = {one.title: error_of(one.result(), right) for one in contenders if one.name == "igraph"}
    goal = max(options.error or errors.get("igraph ×1", WITHOUT_IGRAPH), RIGHT)
    count = iterations_to(pages, right, goal)
    iterating = [*of_orion(pages, count), *of_numba(pages, count), *of_scipy(pages, count)]
    for one in iterating:
        errors[one.title] = found = error_of(one.result(), right)
        if found > 1.01 * goal:
            raise SystemExit(f"{one.title} ends with an error of {found:.2e}, and {goal:.2e} is wanted")
    contenders = [*iterating, *contenders]
    measured = in_turns("pagerank", contenders, options.repeats)
    title = f"PageRank of {options.pages:,} pages with {pages.graph.edges:,} links to an error of {goal:.1e}"
    shown = {one.title: f"{errors[one.title]:.2e}" if one.title in errors else "" for one in contenders}
    found_table = table(f"{title}; medians of {options.repeats}", measured, "error", shown)
    show("pagerank", [found_table], measured, before)


if __name__ == "__main__":
    main()
