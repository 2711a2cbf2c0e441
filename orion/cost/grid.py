"""How many blocks each loop dimension is cut into, and how many workers a loop is worth.

Grids do not depend on the number of workers up to `SHARED_GRID` of them, and so neither do the bits of a result: a
loop gives the same numbers on one worker and on eight. Where no bit depends on the grid it may, so that what is in a
cache line is not brought into the cache once for each of many blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from orion.cost.candidate import Candidate
from orion.cost.extents import UNKNOWN_TRIPS, evaluated
from orion.ir.assigned import assigned_names
from orion.ir.nodes import (
    Binary,
    Call,
    Elements,
    For,
    Node,
    Range,
    Slice,
    Subscript,
    Unary,
    Update,
    Var,
    children,
    every,
    names_in,
)  # fmt: skip
from orion.ir.program import SYNTHETIC, LoopNest, OfNewOrder
from orion.ir.types import Shapes
from orion.sets.names import isl_name

SHARED_GRID = 8
LINE_BLOCKS = 32
"""Blocks of the only dimension that is cut, where nothing moves between them."""

ELEMENT_BLOCKS = {1: 64, 2: 8, 3: 4}
"""Blocks per dimension of a sparse array, by its number of dimensions: all unordered loops over an array share one
grid, so that its elements are sorted once."""

DISPATCH_NS = 100_000
"""A loop predicted to take less time than this stays on one worker: about twice what it costs to wake the others."""

COMBINED_NS = 1_000_000
"""The same for a loop with copies of arrays: to meet and combine them cost 200 to 250 µs on two workers, and what is
predicted of such loops is up to four times what they take."""

ROUND_NS = 15_000
"""The same for the longest loop in a serial one that is compiled: the others are awake, and look for the next round."""

OPERATIONS = (Binary, Unary, Call, Update)
OPERATION_NS = 0.5
ITERATION_NS = 1.0


def cuts(
    nest: LoopNest,
    candidate: Candidate | None,
    extents: Sequence[int | None],
    workers: int,
    *,
    few: bool = False,
    free: bool = False,
) -> tuple[int, ...]:
    """The number of blocks per loop dimension, at most one per index where extents are known. `few`: each block of the
    space dimension has copies of arrays. `free`: no bit of the result depends on the blocks.

    A serial loop (no candidate) has one block; over the elements of a sparse array, in any order, it goes through the
    tiles that the other loops over the array use.
    """
    dims = len(nest.dims)
    if nest.elements is not None and not nest.ordered:
        blocks = ELEMENT_BLOCKS.get(dims, 2)
        wanted = [max(blocks, whole_multiple(blocks, workers))] * dims
    elif candidate is None:
        return (1,) * dims
    else:
        many = SHARED_GRID if candidate.time or few else LINE_BLOCKS
        if free and not candidate.time and (candidate.space or isinstance(nest.form, OfNewOrder)):
            many = workers  # each block goes through all of the loops around the one that is shared out
        cut = {candidate.space, *candidate.time}
        if free and workers == 1 and dims == len(cut) == 2:
            cut = set()  # a chain of tiles on one worker: no cut keeps rows whole, as they are written
        wanted = [whole_multiple(many, workers) if d in cut else 1 for d in range(dims)]
    return tuple(
        max(1, blocks if extent is None else min(blocks, extent))
        for blocks, extent in zip(wanted, extents, strict=True)
    )


def extents_of(nest: LoopNest, ranges: Sequence[tuple[int, int] | None], shapes: Shapes) -> list[int | None]:
    """The lengths of the dimensions of a loop with coordinates in these ranges, None where they are not known.

    In a loop around it that makes no round it has no coordinates. Over the elements of a sparse array its lengths are
    those of the array all the same: other loops go through the same tiles, in which one may store values.
    """
    found = [None if span is None else span[1] - span[0] for span in ranges]
    whole = shapes.get(nest.elements.array, ()) if nest.elements is not None else ()
    return list(whole) if whole and 0 in found else found


def whole_multiple(blocks: int, workers: int) -> int:
    """The least multiple of `blocks` that gives each worker at least one."""
    return blocks * -(-workers // blocks)


def predicted_ns(nest: LoopNest, iterations: int, shapes: Shapes, values: Mapping[str, int]) -> float:
    """A rough prediction of the time of the compiled loop on one worker, in nanoseconds.

    The loops in the body of a nest in another order are those that `iterations` counts.
    """
    varying, counters = {*nest.dims, *assigned_names(nest.body)}, counters_of(nest)

    def cost(nodes: Sequence[Node], trips: float) -> float:
        total = 0.0
        for statement in nodes:
            if isinstance(statement, For):
                inside = 1.0
                if statement.index != SYNTHETIC:
                    inside = likely_trips(statement, varying, counters, iterations * trips, shapes, values)
                total += cost(statement.body, trips * inside)
                continue
            counts = [count for node, count in elements_in(statement, shapes) if isinstance(node, OPERATIONS)]
            total += OPERATION_NS * trips * sum(max(1, count / 8) for count in counts)  # on vectors of 8
        return total

    return iterations * (ITERATION_NS + cost(nest.body, 1.0))


def counters_of(nest: LoopNest) -> set[str]:
    """The variables of the loops of a nest, and of those in its body."""
    return {*nest.dims, *(one.space.var for one in every(For, *nest.body) if isinstance(one.space, Range))}


def likely_trips(
    loop: For,
    varying: Collection[str],
    counters: Collection[str],
    runs: float,
    shapes: Shapes,
    values: Mapping[str, int],
) -> float:
    """The trips of a loop that is run so many times. Where values do not tell, it is taken to go through the whole of
    the shortest array that its variable is a subscript of: in each run, or, where its bounds depend on names that vary
    from run to run, in all runs together (the rows of a sparse matrix). Of such names `counters` are those of loops:
    where bounds are computed from these, as of a triangle or a window, trips are those halfway along that array."""
    space = loop.space
    known = trips_of(space, values, -1)
    if known >= 0 or not isinstance(space, Range):
        return known if known >= 0 else UNKNOWN_TRIPS
    lengths = [
        shapes[one.base.name][axis]
        for one in every(Subscript, *loop.body)
        for axis, part in enumerate(one.index)
        if isinstance(part, Var) and part.name == space.var and len(shapes.get(one.base.name, ())) > axis
    ]
    if not lengths:
        return UNKNOWN_TRIPS
    halfway = {isl_name(name): min(lengths) // 2 for name in counters}
    computed = trips_of(space, {**halfway, **values}, -1)
    if computed >= 0:
        return max(1.0, computed)
    is_shared = not names_in(space.start, space.stop).isdisjoint(varying)
    return min(lengths) / max(1.0, runs) if is_shared else float(min(lengths))


def trips_of(space: Range | Elements, values: Mapping[str, int], unknown: int = UNKNOWN_TRIPS) -> int:
    """The trips of a serial loop, or so many where values of names and extents do not tell.

    >>> from orion.ir.nodes import Const
    >>> from orion.source import Span
    >>> start, stop, step = (Const(value, Span("f.py", 1, 0, 1, 1)) for value in (9, 0, -2))
    >>> trips_of(Range("i", start, stop, step, start.span), {})
    5
    """
    if not isinstance(space, Range):
        return unknown
    start, stop, step = (evaluated(bound, values) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return unknown
    return max(0, -((start - stop) // step))  # a range may be longer than `len` takes


def elements_in(node: Node, shapes: Shapes) -> list[tuple[Node, int]]:
    """A node, then those below it, each with how many elements it works on, as far as shapes tell: 1 of scalars, those
    of the longest row otherwise.

    >>> from orion.ir.nodes import Slice, Subscript, Var
    >>> from orion.source import Span
    >>> span = Span("f.py", 1, 0, 1, 1)
    >>> A, i = Var("A", span), Var("i", span)
    >>> whole = Slice(None, None, None, span)
    >>> parts = A, Subscript(A, (i,), span), Subscript(A, (whole, i), span)
    >>> [elements_in(part, {"A": (5, 40)})[0][1] for part in parts]
    [200, 40, 5]
    """
    found: list[tuple[Node, int]] = []
    _add_elements(node, shapes, found)
    return found


def _add_elements(node: Node, shapes: Shapes, found: list[tuple[Node, int]]) -> int:
    place = len(found)
    found.append((node, 1))
    below = [_add_elements(part, shapes, found) for part in children(node)]
    match node:
        case Var(name):
            elements = prod(shapes.get(name, ()))
        case Subscript(base, index):
            shape = shapes.get(base.name, ())
            sliced = [extent for extent, part in zip(shape, index, strict=False) if isinstance(part, Slice)]
            elements = prod((*sliced, *shape[len(index) :]))
        case _:
            elements = max(below, default=1)
    found[place] = node, elements
    return elements
