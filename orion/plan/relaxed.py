"""How a loop with buffers keeps its updates: how often workers apply theirs, and how they find them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import prod

from orion.cost.grid import counters_of, likely_trips
from orion.cost.sizes import Sizes
from orion.dataclass import dataclass
from orion.ir.assigned import assigned_names
from orion.ir.function import Buffered
from orion.ir.nodes import For, If, Slice, Stmt, Subscript, Update, While, count_names, every
from orion.ir.program import LoopNest

FLUSHES = 4
"""How often a worker applies its updates within the iterations that they may be late: with one of them it could not be
ahead of others at all."""

PACED = 8
"""Where other nodes are sent what has changed as the link has time, a worker applies its updates when it has made so
many times as many as there are elements: what it has not applied cannot be sent, and looking at all elements takes a
few hundredths of the time of so many updates then."""

SPARSE = 4
"""Applying updates looks at all elements, unless these are so many times as many as updates: to keep a list of those
costs more than to look at some zeros. To add each at once costs more, too, where workers add to the same elements all
the time, but less than a list."""

SPARSE_SUMS = 16
"""The same where single elements are added to, which takes vectors: 0.2 ns for each of all elements of four bytes, and
5.5 for each update in a list."""


class How(StrEnum):
    """How a worker applies its updates of an array: all elements are looked at for some, or those in a list; or each is
    applied at once, by one instruction that nobody gets in between; or there are none, as the loop only reads it."""

    DENSE = "dense"
    LISTED = "listed"
    AT_ONCE = "at once"
    READ = "read"


@dataclass(frozen=True, slots=True)
class RelaxedArray:
    """An array with a buffer. `leading`: each update is of the part of the array that so many subscripts say; those of
    a list are such parts."""

    buffered: Buffered
    how: How
    leading: int

    @property
    def is_collected(self) -> bool:
        """Whether a worker collects its updates, to apply them later."""
        return self.how in (How.DENSE, How.LISTED)


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

    @property
    def has_delays(self) -> bool:
        """Whether any update may be late at all, among workers that share memory."""
        return any(one.is_collected for one in self.arrays)

    @property
    def has_clocks(self) -> bool:
        """Whether workers say how far they are: those of other nodes do not see at once what is added at once."""
        return any(one.how is not How.READ for one in self.arrays)


NOT_RELAXED = Relaxed((), 0, 0, False)


def relaxed_at(nest: LoopNest, iterations: int | None, sizes: Sizes) -> Relaxed:
    """The arrays with buffers of a loop at these sizes."""
    if not nest.buffered:
        return NOT_RELAXED
    max_delay = min(one.max_delay for one in nest.buffered)
    found = {
        one.name: [*_updates(nest.body, one.name, nest, float(iterations or 1), 1.0, sizes)] for one in nest.buffered
    }
    often = max(1, max_delay // FLUSHES)
    if any(one.sending.order for one in nest.buffered):
        often = min(often, *(_paced(one, found[one.name], often, sizes) for one in nest.buffered))
    arrays = tuple(_relaxed_array(one, nest, found[one.name], often, sizes) for one in nest.buffered)
    return Relaxed(arrays, often, max_delay, any(one.deterministic for one in nest.buffered))


def _paced(one: Buffered, found: Sequence[tuple[Subscript, float]], often: int, sizes: Sizes) -> int:
    """The iterations after which a worker has made so many updates of an array that applying them takes little of its
    time, `often` where that is not known. Larger ones have lists then, or are updated at once."""
    shape = sizes.shapes.get(one.array)
    leading = min((_leading(target) for target, _ in found), default=0)
    if shape is None or not leading:
        return often
    return int(PACED * prod(shape[:leading]) / max(1e-9, sum(times for _, times in found))) + 1


def _relaxed_array(
    one: Buffered, nest: LoopNest, found: Sequence[tuple[Subscript, float]], often: int, sizes: Sizes
) -> RelaxedArray:
    shape = sizes.shapes.get(one.array)
    if not found:
        return RelaxedArray(one, How.READ, 0)
    leading = min(_leading(target) for target, _ in found)
    if shape is None or not leading:
        return RelaxedArray(one, How.DENSE, leading)
    parts, updates = prod(shape[:leading]), often * sum(times for _, times in found)
    if parts <= (SPARSE_SUMS if one.apply is None and leading == len(shape) else SPARSE) * updates:
        return RelaxedArray(one, How.DENSE, leading)
    return RelaxedArray(one, How.AT_ONCE if _may_be_at_once(one, nest, len(shape)) else How.LISTED, leading)


def _may_be_at_once(one: Buffered, nest: LoopNest, rank: int) -> bool:
    """Whether all uses are of elements, to which updates are only added, in no fixed order."""
    uses = [use for use in every(Subscript, *nest.body) if use.base.name == one.name]
    is_of_elements = all(_leading(use) == rank for use in uses) and count_names(nest.body, one.name) == len(uses)
    return is_of_elements and one.apply is None and not one.deterministic


def _leading(target: Subscript) -> int:
    """The subscripts of an update before the first slice."""
    return next((k for k, part in enumerate(target.index) if isinstance(part, Slice)), len(target.index))


def _updates(
    body: Sequence[Stmt], name: str, nest: LoopNest, runs: float, times: float, sizes: Sizes
) -> Iterator[tuple[Subscript, float]]:
    """The updates of a buffer, with how often an iteration makes each."""
    varying, counters = {*nest.dims, *assigned_names(nest.body)}, counters_of(nest)
    for statement in body:
        match statement:
            case Update(Subscript() as target) if target.base.name == name:
                yield target, times
            case For(_, inner):
                trips = likely_trips(statement, varying, counters, runs, sizes.shapes, sizes.values)
                yield from _updates(inner, name, nest, runs * trips, times * trips, sizes)
            case If(_, inner, orelse):
                yield from _updates((*inner, *orelse), name, nest, runs, times, sizes)
            case While(_, inner):
                yield from _updates(inner, name, nest, runs, times, sizes)


def why_apart(relaxed: Relaxed, takes_tiles: bool) -> str:
    """Why updates cannot go from node to node; "" where they can. `takes_tiles`: that of the plan."""
    if not relaxed:
        return ""
    if relaxed.deterministic:
        return "are applied in a fixed order by workers that share memory"
    if takes_tiles:
        return "are made by tiles that workers take from each other, in memory that they share"
    return ""
