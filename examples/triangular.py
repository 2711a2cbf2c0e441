"""Sparse triangular solves: a heat equation on an unstructured mesh, by conjugate gradients or by relaxation in place.

    python examples/triangular.py                                 # conjugate gradients, SSOR preconditioner
    python examples/triangular.py --how sor --side 400 --backend ray --workers 2
    python examples/triangular.py --picture heat.png

Each row of a triangular solve needs rows before it: which ones is written in an array of subscripts. Orion looks at
that array, finds pieces of the loop that need none of each other, and runs them as soon as those that they need are
done: the bits are those of the loop as written. The plan, printed before anything runs, says so.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from time import perf_counter
from typing import Any

import numpy as np
from graph_data import Graph, mesh
from live import steps
from numpy.typing import NDArray
from options import add_running_options, between, non_negative, parsed, picture_file, whole
from pictures import save_png

import orion

Floats = NDArray[np.float64]

PATIENCE = 30
"""Iterations without a smaller residual after which there is no further one."""

# ------------------------------------------------------------------------------------------------ the loops


@orion.parallel_for
def multiply(y, ptr, idx, data, x):
    for i in range(len(y)):
        s = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            s += data[p] * x[idx[p]]
        y[i] = s


@orion.parallel_for
def solve_lower(x, b, ptr, idx, data, diagonal):
    for i in range(len(b)):
        s = b[i]
        for p in range(ptr[i], ptr[i + 1]):
            s -= data[p] * x[idx[p]]
        x[i] = s / diagonal[i]


@orion.parallel_for
def solve_upper(x, b, ptr, idx, data, diagonal):
    for i in range(len(b) - 1, -1, -1):
        s = b[i] * diagonal[i]
        for p in range(ptr[i], ptr[i + 1]):
            s -= data[p] * x[idx[p]]
        x[i] = s / diagonal[i]


@orion.parallel_for
def relax(x, b, ptr, idx, data, diagonal, omega):
    for i in range(len(b)):
        s = b[i]
        for p in range(ptr[i], ptr[i + 1]):
            s -= data[p] * x[idx[p]]
        x[i] = (1.0 - omega) * x[i] + omega * s / diagonal[i]


@orion.parallel_for
def dot(a, b):
    s = 0.0
    for i in range(len(a)):
        s += a[i] * b[i]
    return s


@orion.parallel_for
def step(x, r, p, q, alpha):
    for i in range(len(x)):
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]


@orion.parallel_for
def turn(p, z, beta):
    for i in range(len(p)):
        p[i] = z[i] + beta * p[i]


@orion.parallel_for
def distance(r, b, q):
    for i in range(len(r)):
        r[i] = b[i] - q[i]


# ------------------------------------------------------------------------------------------------ the matrix


@dataclass(frozen=True, eq=False)
class Rows:
    """Part of a matrix by rows."""

    ptr: Any
    idx: Any
    data: Floats

    @classmethod
    def of(cls, graph: Graph, keep: NDArray[np.bool_], data: Floats) -> Rows:
        kept = np.concatenate(([0], np.cumsum(keep)))
        return cls(orion.freeze(kept[graph.ptr]), orion.freeze(graph.idx[keep]), data[keep])


class Heat:
    """The matrix of the heat equation on a mesh, which is symmetric: -1 to -1.2 between neighbours, and on the diagonal
    a little more than what makes the sums of rows zero.
    `lower` and `upper` are what is below and above that, `all` both; sources are hot and cold spots."""

    def __init__(self, graph: Graph, seed: int) -> None:
        n = graph.vertices
        rng = np.random.default_rng(seed)
        row = np.repeat(np.arange(n), np.diff(graph.ptr))
        edges, place = np.unique(np.minimum(row, graph.idx) * n + np.maximum(row, graph.idx), return_inverse=True)
        data = (-1.0 - 0.2 * rng.random(len(edges)))[place]  # one number per edge: the matrix is symmetric
        self.diagonal = 0.01 + np.bincount(row, weights=-data, minlength=n)
        self.all = Rows.of(graph, np.ones(graph.edges, np.bool_), data)
        self.lower = Rows.of(graph, graph.idx < row, data)
        self.upper = Rows.of(graph, graph.idx > row, data)
        self.b = np.zeros(n)
        spots = rng.choice(n, 12, replace=False)
        self.b[spots] = np.where(np.arange(12) % 2, 1.0, -1.0)
        self.x = np.zeros(n)

    def times(self, y: Floats, x: Floats) -> None:
        multiply(y, self.all.ptr, self.all.idx, self.all.data, x)
        y += self.diagonal * x

    def residual(self) -> float:
        """How far the equations are from being met."""
        q = np.zeros(len(self.b))
        self.times(q, self.x)
        return float(np.linalg.norm(self.b - q))


class Gradients:
    """Conjugate gradients, preconditioned by symmetric relaxation: two triangular solves a step."""

    title = "conjugate gradients"

    def __init__(self, heat: Heat) -> None:
        self.heat, n = heat, len(heat.b)
        self.r, self.z, self.half, self.q = heat.b.copy(), np.zeros(n), np.zeros(n), np.zeros(n)
        self.precondition()
        self.p = self.z.copy()
        self.rz = dot(self.r, self.z)

    def first(self) -> tuple[Any, tuple[Any, ...]]:
        part = self.heat.lower
        return solve_lower, (self.half, self.r, part.ptr, part.idx, part.data, self.heat.diagonal)

    def second(self) -> tuple[Any, tuple[Any, ...]]:
        part = self.heat.upper
        return solve_upper, (self.z, self.half, part.ptr, part.idx, part.data, self.heat.diagonal)

    def plans(self) -> str:
        """The plan of the first solve, and the strategy of the second."""
        one, two = (loop.plan(*arguments, inspect=True) for loop, arguments in (self.first(), self.second()))
        return f"{one}\n\nsolve_upper: {two.strategy}{' too' if two.strategy == one.strategy else ''}"

    def precondition(self) -> None:
        for loop, arguments in (self.first(), self.second()):
            loop(*arguments)

    def iterate(self) -> float:
        """A step; how far the equations are from being met."""
        self.heat.times(self.q, self.p)
        alpha = self.rz / dot(self.p, self.q)
        step(self.heat.x, self.r, self.p, self.q, alpha)
        self.precondition()
        before, self.rz = self.rz, dot(self.r, self.z)
        turn(self.p, self.z, self.rz / before)
        return sqrt(dot(self.r, self.r))


class Relaxation:
    """Successive over-relaxation, in place."""

    title = "relaxation"

    def __init__(self, heat: Heat, omega: float) -> None:
        self.heat, self.omega = heat, omega
        self.r, self.q = heat.b.copy(), np.zeros(len(heat.b))

    def first(self) -> tuple[Any, tuple[Any, ...]]:
        heat, part = self.heat, self.heat.all
        return relax, (heat.x, heat.b, part.ptr, part.idx, part.data, heat.diagonal, self.omega)

    def plans(self) -> str:
        loop, arguments = self.first()
        return str(loop.plan(*arguments, inspect=True))

    def iterate(self) -> float:
        """A sweep; how far the equations are from being met."""
        loop, arguments = self.first()
        loop(*arguments)
        self.heat.times(self.q, self.heat.x)
        distance(self.r, self.heat.b, self.q)
        return sqrt(dot(self.r, self.r))


# ------------------------------------------------------------------------------------------------ the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A heat equation on an unstructured mesh.")
    parser.add_argument("--side", type=whole(4), default=500, help="of side × side points (default: %(default)s)")
    parser.add_argument("--how", choices=("cg", "sor"), default="cg", help="(default: %(default)s)")
    parser.add_argument("--omega", type=between(0, 2), default=1.7, help="of the relaxation (default: %(default)s)")
    parser.add_argument("--tolerance", type=non_negative, default=1e-8, help="of the residual (default: %(default)s)")
    parser.add_argument("--iterations", type=whole(1), default=200, help="the most of them (default: %(default)s)")
    parser.add_argument(
        "--picture", type=picture_file(".png"), metavar="FILE", help="write the temperatures as a PNG file"
    )
    add_running_options(parser)
    return parsed(parser, arguments)


def solve(solver: Gradients | Relaxation, most: int, tolerance: float) -> int:
    """Iterations, a line each, until the residual is below the tolerance or no longer falls; how many there were."""
    least, since = inf, 0
    exact = 1e-16 * float(np.linalg.norm(solver.heat.b))
    print("iteration      residual   milliseconds")
    for iteration in steps("iterations", most):
        start = perf_counter()
        residual = solver.iterate()
        print(f"{iteration:9d}  {residual:12.3e}  {1e3 * (perf_counter() - start):13.2f}", flush=True)
        if residual < least:
            least, since = residual, iteration
        if residual < tolerance:
            return iteration
        if residual < exact:
            print("\nwhat is left of the residual are rounding errors")
            return iteration
        if iteration - since == PATIENCE:
            print(f"\nthe residual was least in iteration {since}, and has not fallen in the {PATIENCE} that followed")
            return iteration
    return most


def run(options: argparse.Namespace) -> Heat:
    graph = mesh(options.side, options.seed)
    heat = Heat(graph, options.seed)
    print(f"{graph.about}, {graph.edges + graph.vertices:,} elements in the matrix")
    with orion.session(options.backend, options.workers):
        solver = Gradients(heat) if options.how == "cg" else Relaxation(heat, options.omega)
        print(f"\n{solver.plans()}\n")
        iterations = solve(solver, options.iterations, options.tolerance)
        left = heat.residual()
    told = "converged" if left < options.tolerance else "not converged"
    print(f"\n{told} after {iterations} iterations: |b - Ax| is {left:.3e}, --tolerance {options.tolerance:g}")
    if options.picture is not None:
        scale = save_png(options.picture, heat.x.reshape(options.side, options.side))
        print(f"\nwritten to {options.picture}: the temperatures, a pixel for each point of the mesh, {scale}")
    return heat


def main(arguments: Sequence[str] | None = None) -> int:
    warnings.simplefilter("ignore", orion.SerialLoopWarning)  # the plans say what is serial
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"triangular.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
