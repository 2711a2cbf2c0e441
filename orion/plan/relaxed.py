"""How a loop with buffers keeps its updates: how often workers apply theirs, and how they find them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from orion.cost.grid import likely_trips
from orion.cost.sizes import Sizes
from orion.ir.assigned import assigned_names
from orion.ir.function import Buffered
from orion.ir.nodes import For, If, Slice, Stmt, Subscript, Update, While
from orion.ir.program import LoopNest

FLUSHES = 4
"""How often a worker applies its updates within the iterations that they may be late: with one of them it could not be
ahead of others at all."""

SPARSE = 4
"""Applying updates looks at all elements, unless these are so many times as many as updates: to keep a list of those
costs more than to look at some zeros."""


@dataclass(frozen=True, slots=True)
class RelaxedArray:
    """An array with a buffer. `leading`: each update is of the part of the array that so many subscripts say. Where it
    `is_dense`, all elements are looked at when updates are applied, else those in a list of such parts."""

    buffered: Buffered
    is_dense: bool
    leading: int

    @property
    def is_written(self) -> bool:
        """Whether the loop updates it; else it reads it."""
        return self.leading >= 0


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The arrays with buffers of a loop; a worker applies its updates after `every` iterations of its own, and those of
    others are at most `max_delay` iterations late. `deterministic`: all do so after the same iterations, one after the
    other."""

    arrays: tuple[RelaxedArray, ...]
    every: int
    max_delay: int
    deterministic: bool

    def __bool__(self) -> bool:
        return bool(self.arrays)


NOT_RELAXED = Relaxed((), 0, 0, False)


def relaxed_at(nest: LoopNest, iterations: int | None, sizes: Sizes) -> Relaxed:
    """The arrays with buffers of a loop at these sizes."""
    if not nest.buffered:
        return NOT_RELAXED
    max_delay = min(one.max_delay for one in nest.buffered)
    every = max(1, max_delay // FLUSHES)
    arrays = tuple(_relaxed_array(one, nest, iterations, every, sizes) for one in nest.buffered)
    return Relaxed(arrays, every, max_delay, any(one.deterministic for one in nest.buffered))


def _relaxed_array(one: Buffered, nest: LoopNest, iterations: int | None, every: int, sizes: Sizes) -> RelaxedArray:
    shape = sizes.shapes.get(one.array)
    found = [*_updates(nest.body, one.name, nest, float(iterations or 1), 1.0, sizes)]
    if not found:
        return RelaxedArray(one, True, -1)
    leading = min(_leading(target) for target, _ in found)
    if shape is None or not leading:
        return RelaxedArray(one, True, leading)
    parts, updates = prod(shape[:leading]), every * sum(times for _, times in found)
    return RelaxedArray(one, parts <= SPARSE * updates, leading)


def _leading(target: Subscript) -> int:
    """The subscripts of an update before the first slice."""
    return next((k for k, part in enumerate(target.index) if isinstance(part, Slice)), len(target.index))


def _updates(
    body: Sequence[Stmt], name: str, nest: LoopNest, runs: float, times: float, sizes: Sizes
) -> Iterator[tuple[Subscript, float]]:
    """The updates of a buffer, with how often an iteration makes each."""
    varying = {*nest.dims, *assigned_names(nest.body)}
    for statement in body:
        match statement:
            case Update(Subscript() as target) if target.base.name == name:
                yield target, times
            case For(_, inner):
                trips = likely_trips(statement, varying, runs, sizes.shapes, sizes.values)
                yield from _updates(inner, name, nest, runs * trips, times * trips, sizes)
            case If(_, inner, orelse):
                yield from _updates((*inner, *orelse), name, nest, runs, times, sizes)
            case While(_, inner):
                yield from _updates(inner, name, nest, runs, times, sizes)
