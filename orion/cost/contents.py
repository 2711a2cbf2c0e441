"""How much work arrays show to be at each index of a loop's dimension: the trips of inner loops whose bounds are read
from them.

    for i in range(n):
        for _ in range(counts[i]):          # or range(starts[i], starts[i + 1])

Where tiles are cut, and which are begun first, may hang on it; no bit of a result does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from orion.cost.extents import evaluated
from orion.cost.grid import ITERATION_NS
from orion.cost.sizes import Sizes
from orion.cost.worth import OPERATION_NS, body_ns
from orion.dataclass import dataclass
from orion.ir.assigned import assigned_names
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Call,
    Expr,
    For,
    If,
    Range,
    Stmt,
    Subscript,
    Var,
    every,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.program import LoopNest
from orion.ir.rewriting import rewrite
from orion.sets.affine import has_unit_step
from orion.sets.names import isl_name

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

PARTS = 1 << 16
"""In how many parts at most, none of which is cut, the work of a dimension is told."""

CHUNK = 1 << 18
"""The trips of about so many indices are counted at a time."""

MOST_NODES = 16
"""Longer values of scalars are not written out: in a chain (`b = a + a; c = b + b; …`) each is twice as long."""

OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "min": np.minimum, "max": np.maximum}


class UnknownError(Exception):
    """Nobody can say before the loop runs how many trips an inner one makes."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A loop in the body of a nest whose bounds are read from `arrays` by `var`, the variable of one of its dimensions.
    In its `range` the scalars that an iteration computes before are written out."""

    loop: For
    range: Range
    var: str
    arrays: tuple[str, ...]


def decided_loops(nest: LoopNest) -> tuple[Decided, ...]:
    """The loops in the body of a nest of ranges whose bounds are read from arrays by one of its variables."""
    return tuple(_decided(nest.body, nest.dims, {})) if nest.elements is None else ()


def _decided(body: Sequence[Stmt], dims: Sequence[str], before: Mapping[str, Expr]) -> Iterator[Decided]:
    """Those among some statements, given the scalars computed `before`."""
    known = dict(before)
    for statement in body:
        match statement:
            case For(Range() as space):
                start, stop, step = (_written_out(bound, known) for bound in (space.start, space.stop, space.step))
                arrays = tuple(dict.fromkeys(one.base.name for one in every(Subscript, start, stop, step)))
                variables = [name for name in dims if name in names_in(start, stop, step)]
                if arrays and len(variables) == 1:
                    yield Decided(statement, Range(space.var, start, stop, step, space.span), variables[0], arrays)
            case If(_, then, orelse):
                yield from _decided(then, dims, known)
                yield from _decided(orelse, dims, known)
        changed = assigned_names([statement])
        if isinstance(statement, Assign) and isinstance(statement.target, Var):
            value = _written_out(statement.value, known)
            if len([*walk(value)]) <= MOST_NODES:
                known[statement.target.name] = value
                changed -= {statement.target.name} - names_in(value)
        known = {name: value for name, value in known.items() if changed.isdisjoint({name} | names_in(value))}


def _written_out(expr: Expr, known: Mapping[str, Expr]) -> Expr:
    return rewrite(expr, lambda one: known.get(one.name, one) if isinstance(one, Var) else one)


def work_by_contents(
    nest: LoopNest, dim: int, span: tuple[int, int], sizes: Sizes, contents: Mapping[str, NDArray[np.integer]]
) -> Floats | None:
    """The predicted time, in nanoseconds, of parts of a dimension with the half-open range `span`: one after the other,
    all of one length but the last. None where the `contents` of arrays do not show it."""
    found = [one for one in decided_loops(nest) if one.var == nest.dims[dim] and contents.keys() >= {*one.arrays}]
    if not found or span[0] >= span[1]:
        return None
    length = -(-(span[1] - span[0]) // PARTS)
    loops = [one.loop for one in found]
    rest = [one for one in nest.body if not any(loop in loops for loop in every(For, one))]
    base = ITERATION_NS + body_ns(rest, sizes.known, sizes.shapes)
    trip_ns = [OPERATION_NS + body_ns(loop.body, sizes.known, sizes.shapes) for loop in loops]
    counting = _Counting(nest.ranges[dim], sizes.known, contents)
    try:
        steps = range(span[0], span[1], max(1, CHUNK // length) * length)
        parts = [counting.work(found, trip_ns, np.arange(a, min(a + steps.step, span[1])), length) for a in steps]
    except UnknownError:
        return None
    return np.concatenate(parts) + base * length


@dataclass(frozen=True, slots=True)
class _Counting:
    """Counts the trips of decided loops, given the range of the variable that decides, the values of isl's parameters
    and the contents of arrays."""

    space: Range
    known: Mapping[str, int]
    contents: Mapping[str, NDArray[np.integer]]

    def work(self, loops: Sequence[Decided], trip_ns: Sequence[float], at: Numbers, length: int) -> Floats:
        """The time of the trips of all loops at these coordinates, in parts of `length`."""
        values = {isl_name(self.space.var): at if has_unit_step(self.space) else self._of_trips(at)}
        firsts = np.arange(0, at.size, length)
        trips = [np.broadcast_to(self._trips(one.range, values), at.shape) for one in loops]
        parts = [ns * np.add.reduceat(one, firsts) for one, ns in zip(trips, trip_ns, strict=True)]
        return np.asarray(sum(parts), np.float64)

    def _of_trips(self, at: Numbers) -> Numbers:
        start, step = (evaluated(bound, self.known) for bound in (self.space.start, self.space.step))
        if start is None or step is None:
            raise UnknownError
        return start + step * at

    def _trips(self, space: Range, values: Mapping[str, Numbers]) -> Numbers:
        start, stop, step = (self._value(bound, values) for bound in (space.start, space.stop, space.step))
        if not np.all(step):
            raise UnknownError
        trips = -((start - stop) // step) if np.any(step != 1) else stop - start  # to divide takes most of the time
        return np.asarray(np.maximum(0, trips), np.int64)

    def _value(self, expr: Expr, values: Mapping[str, Numbers]) -> Numbers:
        number = evaluated(expr, self.known)
        if number is not None:
            return np.asarray(number, np.int64)
        match expr:
            case Var(name) if isl_name(name) in values:
                return values[isl_name(name)]
            case Call(name, (inner,)) if name in (INTEGER, "int"):
                return self._value(inner, values)
            case Binary(op, left, right) if op in OPERATORS:
                return np.asarray(OPERATORS[op](self._value(left, values), self._value(right, values)), np.int64)
            case Call("min" | "max" as op, (left, right)):
                return np.asarray(OPERATORS[op](self._value(left, values), self._value(right, values)), np.int64)
            case Subscript(Var(array), index) if array in self.contents and len(index) == self.contents[array].ndim:
                return self._element(self.contents[array], [self._value(part, values) for part in index])
            case _:
                raise UnknownError

    def _element(self, array: NDArray[np.integer], index: Sequence[Numbers]) -> Numbers:
        if any(at.min() < 0 or at.max() >= extent for at, extent in zip(index, array.shape, strict=True)):
            raise UnknownError
        return np.asarray(array[tuple(index)], np.int64)


def bounds_of_work(work: Floats, blocks: int) -> NDArray[np.int64]:
    """The bounds of blocks of parts with about as much work each: beside its largest part none has more than its share.
    What single parts have above that is left to them, and all others share the rest. No block is empty, and there may
    be as many as parts, at most.

    >>> bounds_of_work(np.array([1.0, 1.0, 8.0, 1.0, 1.0, 1.0, 1.0]), 4)
    array([0, 2, 3, 5, 7])
    """
    share = float(work.sum()) / blocks
    for _ in range(64):  # each time what is above the share is left out of it
        less = float(np.minimum(work, share).sum()) / blocks
        if less >= share * (1 - 1e-9):
            break
        share = less
    until = np.concatenate([[0.0], np.cumsum(np.minimum(work, share))])
    cuts = np.searchsorted(until, until[-1] * np.arange(blocks + 1) / blocks - 1e-9 * share)
    cuts[-1] = work.size
    number = np.arange(blocks + 1)
    cuts = np.maximum.accumulate(cuts - number) + number
    return np.asarray(np.minimum(cuts, work.size - (blocks - number)), np.int64)


def heaviness(work: Floats) -> NDArray[np.int64]:
    """How many times the average each is, as a power of two: 0 where it is less than twice.

    >>> heaviness(np.array([1.0, 1.0, 1.0, 5.0, 32.0]))
    array([0, 0, 0, 0, 2])
    """
    return np.asarray(np.log2(np.maximum(work / work.mean(), 1.0)), np.int64)  # rounded down
