"""Sparse loops side by side with SciPy and serial Numba: triangular solves, a Gauss-Seidel sweep, products, PageRank.

    python -m benchmarks.indirect.sparse                 # from the project's folder; `make sparse` does the same

The mesh is that of `examples/triangular.py`: triangles over a square of points, numbered row by row, and with blocks of
64 numbered in another order. The factor is an incomplete one without fill (Meijerink, van der Vorst 1977) of its
matrix. All contenders get the same arrays, with subscripts of 64 bits; Orion's arrays of subscripts are frozen, and "as
they are" says what it takes where they are looked at in each call. Medians of interleaved runs, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import spsolve_triangular

import orion
from benchmarks.indirect.loops import solve_lower, sweep
from benchmarks.measure import interleaved, machine, seconds
from benchmarks.process import ROOT
from orion.plan.plan import Inspected

sys.path.insert(0, str(ROOT / "examples"))

import pagerank
from graph_data import Graph, mesh, web
from triangular import Heat, multiply

RESULTS = ROOT / "benchmarks" / "results" / "sparse.json"
WIDTH = 190


@numba.njit
def without_fill(ptr: Any, idx: Any, data: Any) -> None:
    """The incomplete factor of a symmetric matrix, given as its lower triangle by rows, the diagonal last, in place."""
    for i in range(len(ptr) - 1):
        for p in range(ptr[i], ptr[i + 1]):
            j, s = idx[p], data[p]
            a, b = ptr[i], ptr[j]
            while a < p and b < ptr[j + 1] - 1:
                if idx[a] == idx[b]:
                    s -= data[a] * data[b]
                    a += 1
                    b += 1
                elif idx[a] < idx[b]:
                    a += 1
                else:
                    b += 1
            data[p] = np.sqrt(s) if j == i else s / data[ptr[j + 1] - 1]


def factor_of(graph: Graph) -> tuple[Any, Any, Any]:
    """The factor of the matrix of a mesh: by rows, the diagonal last."""
    heat, n = Heat(graph, 0), graph.vertices
    lower = sp.csr_matrix((heat.lower.data, heat.lower.idx, heat.lower.ptr), shape=(n, n))
    whole = (lower + sp.diags(heat.diagonal)).tocsr()
    whole.sort_indices()
    ptr, idx, data = whole.indptr.astype(np.int64), whole.indices.astype(np.int64), whole.data
    without_fill(ptr, idx, data)
    return ptr, idx, data


def solves(graph: Graph) -> Case:
    ptr, idx, data = factor_of(graph)
    n = graph.vertices
    b = np.random.default_rng(0).random(n)
    matrix = sp.csr_matrix((data, idx.astype(np.int32), ptr.astype(np.int32)), shape=(n, n))
    return Case(solve_lower, (np.zeros(n), b, ptr, idx, data), lambda: spsolve_triangular(matrix, b, lower=True))


def sweeps(graph: Graph) -> Case:
    n = graph.vertices
    u, f = np.random.default_rng(0).random(n), np.random.default_rng(1).random(n)
    return Case(sweep, (u, f, graph.ptr, graph.idx), None)


def products(graph: Graph) -> Case:
    heat, n = Heat(graph, 0), graph.vertices
    x, part = np.random.default_rng(0).random(n), heat.all
    matrix = sp.csr_matrix((part.data, part.idx.astype(np.int32), part.ptr.astype(np.int32)), shape=(n, n))
    return Case(
        multiply.serial, (np.zeros(n), np.array(part.ptr), np.array(part.idx), part.data, x), lambda: matrix @ x
    )


def ranks(graph: Graph) -> Case:
    """An iteration of PageRank by who links to a page."""
    found = pagerank.Ranks(graph, "pull", 0.85)
    _, arguments = found.loop()
    n = graph.vertices
    weights = found.inverse[graph.idx]
    links = sp.csr_matrix((weights, graph.idx.astype(np.int32), graph.ptr.astype(np.int32)), shape=(n, n))

    def by_scipy() -> float:
        new = 0.15 / n + 0.85 * (links @ found.rank + found.rank[found.links == 0].sum() / n)
        return float(np.abs(new - found.rank).sum())

    return Case(pagerank.pull.serial, arguments, by_scipy)


@dataclass(frozen=True, eq=False)
class Case:
    """A loop, its arguments, and what SciPy has for it, if anything."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    by_scipy: Callable[[], object] | None

    def frozen(self) -> tuple[Any, ...]:
        """The arguments with integers that nobody may change, which are subscripts in all of these loops."""
        return tuple(
            orion.freeze(one) if isinstance(one, np.ndarray) and one.dtype.kind == "i" else one
            for one in self.arguments
        )

    def times(self, repeats: int) -> tuple[dict[str, float], str]:
        """Milliseconds by contender, and how Orion runs it on two workers."""
        compiled, frozen = numba.njit(self.function), self.frozen()
        decorated, watching = orion.parallel_for(self.function), orion.parallel_for(self.function)
        with orion.session(workers=2):
            plan = decorated.plan(*frozen, inspect=True)
            watching.plan(*self.arguments, inspect=True)
            calls: dict[str, Callable[[], object]] = {
                "Numba": lambda: compiled(*self.arguments),
                "×2": lambda: decorated(*frozen),
                "×2, looked at": lambda: watching(*self.arguments),
            }
            if self.by_scipy is not None:
                calls["SciPy"] = self.by_scipy
            values = measured(calls, repeats)
        with orion.session(workers=1):
            values |= measured({"×1": lambda: decorated(*frozen)}, repeats)
        return {name: 1e3 * median(found) for name, found in values.items()}, how(plan)


def measured(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, tuple[float, ...]]:
    for call in calls.values():
        call(), call()
    return interleaved({name: (lambda call=call: seconds(call)) for name, call in calls.items()}, repeats)


def how(plan: orion.Plan) -> str:
    """How the costliest loop runs, and what an inspection took, in milliseconds."""
    loop = max(plan.loops, key=lambda one: one.runs_on)
    if not isinstance(loop.tiles, Inspected):
        return str(loop.strategy)
    found = loop.tiles.inspection
    kind, spent = found.kind.name.lower(), found.inspection_ns / 1e6
    return f"{found.tiles:,} {kind}, depth {found.depth:,}, inspected in {spent:.0f} ms"


def cases(side: int) -> Iterator[tuple[str, Callable[[], Case]]]:
    pages = side * side // 2
    for shuffled, name in ((False, "mesh"), (True, "mesh, other numbers")):
        graph = mesh(side, 0, shuffled=shuffled)
        yield f"triangular solve, {name}", partial(solves, graph)
        yield f"Gauss-Seidel, {name}", partial(sweeps, graph)
    yield "product, mesh", partial(products, mesh(side, 0))
    yield f"PageRank, {pages:,} pages", lambda: ranks(web(pages, 8, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description="Sparse loops next to SciPy and serial Numba.")
    parser.add_argument("--side", type=int, default=1000, help="the mesh has side × side points")
    parser.add_argument("--repeats", type=int, default=15, help="measurements of each contender")
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    names = ("Numba", "SciPy", "×1", "×2", "×2, looked at")
    table = Table("loop", *(f"{name} ms" for name in names), "×2 / Numba", "×2 / SciPy", "×2 / ×1", "how")
    found = {}
    for title, make in cases(options.side):
        times, words = make().times(options.repeats)
        found[title] = times
        ratios = (times[name] / times["×2"] if name in times else None for name in ("Numba", "SciPy", "×1"))
        cells = (f"{times[name]:.2f}" if name in times else "" for name in names)
        table.add_row(title, *cells, *("" if one is None else f"{one:.2f}" for one in ratios), words)
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine(), "ms": found}))


if __name__ == "__main__":
    main()
