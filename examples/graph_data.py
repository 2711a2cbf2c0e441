"""Graphs and meshes for the examples: generated, or read from a file of edges. All as rows of neighbours: those of
vertex v are `idx[ptr[v] : ptr[v + 1]]`."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """Neighbours by vertex; `about` says where the graph is from. `numbers` are those that a file has for the vertices,
    ascending; without, vertex v has the number v."""

    ptr: Ints
    idx: Ints
    about: str
    numbers: Ints | None = None

    @property
    def vertices(self) -> int:
        return len(self.ptr) - 1

    @property
    def edges(self) -> int:
        return len(self.idx)

    def number(self, vertex: int) -> int:
        """The number of a vertex, as the file has it."""
        return vertex if self.numbers is None else int(self.numbers[vertex])

    def vertex(self, number: int) -> int | None:
        """The vertex that has a number; None where there is no such vertex."""
        at = number if self.numbers is None else int(np.searchsorted(self.numbers, number))
        return at if 0 <= at < self.vertices and self.number(at) == number else None


def rows_of(vertices: int, source: Ints, target: Ints, about: str) -> Graph:
    """A graph with the edges source → target as the rows of the sources, each edge once, targets ascending."""
    keys = np.unique(source.astype(np.int64) * vertices + target)
    counts = np.bincount(keys // vertices, minlength=vertices)
    return Graph(np.concatenate(([0], np.cumsum(counts))), keys % vertices, about)


def web(vertices: int, links: int, seed: int) -> Graph:
    """Pages that link to each other: most links stay near, and some pages are linked to by very many."""
    rng = np.random.default_rng(seed)
    count = vertices * links
    source = rng.integers(0, vertices, count)
    near = (source + rng.geometric(0.02, count) * rng.choice([-1, 1], count)) % vertices
    famous = (vertices * rng.random(count) ** 4).astype(np.int64)
    target = np.where(rng.random(count) < 0.7, near, famous)
    fine = source != target
    return rows_of(vertices, target[fine], source[fine], f"generated: {vertices:,} pages, by who links to them")


def read_edges(path: Path, skip: int = 0) -> Graph:
    """The graph in a file of edges, two numbers a line, in both directions, after `skip` lines. The first line may be a
    heading, of words alone. ValueError where a line is no edge."""
    opened: Any = gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8")  # noqa: SIM115
    try:
        with opened as file:
            lines = [(number, line.strip()) for number, line in enumerate(file, 1) if number > skip]
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    lines = [(number, line) for number, line in lines if line and not line.startswith(("#", "%"))]
    pairs = []
    for at, (number, line) in enumerate(lines):
        parts = line.replace(",", " ").split()
        if len(parts) >= 2 and all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts[:2]):
            pairs.append((int(parts[0]), int(parts[1])))
        elif at or any(map(_is_number, parts)):
            raise ValueError(f"{path}: line {number} is no edge, two whole numbers from 0 on: {line[:60]!r}")
    if not pairs:
        raise ValueError(f"{path}: there is no edge in it")
    known, edges = np.unique(np.array(pairs, np.int64), return_inverse=True)
    source, target = edges.reshape(-1, 2).T
    both = np.concatenate((source, target)), np.concatenate((target, source))
    return replace(rows_of(len(known), *both, f"{path.name}: {len(known):,} vertices"), numbers=known)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def mesh(side: int, seed: int, *, shuffled: bool = False) -> Graph:
    """Triangles over a square of side × side points: each point and those around it. With `shuffled` blocks of 64
    points are numbered in another order, as mesh generators leave them."""
    at = np.arange(side * side).reshape(side, side)
    if shuffled:
        rng = np.random.default_rng(seed)
        blocks = [at.ravel()[k : k + 64] for k in range(0, side * side, 64)]
        number = np.empty(side * side, np.int64)
        number[np.concatenate([blocks[k] for k in rng.permutation(len(blocks))])] = np.arange(side * side)
        at = number[at]
    pairs = ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:]), (at[:-1, :-1], at[1:, 1:]))
    source = np.concatenate([a.ravel() for a, _ in pairs])
    target = np.concatenate([b.ravel() for _, b in pairs])
    both = np.concatenate((source, target)), np.concatenate((target, source))
    return rows_of(side * side, *both, f"generated: a mesh of {side} × {side} points")
