"""Which arguments a kernel takes, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from orion.dependence.access import Choice
from orion.dependence.choices import directions
from orion.dependence.early_exits import ends_early
from orion.ir.nodes import Count, Dim, For, Var, every
from orion.ir.program import LoopNest
from orion.kernel.calling import ANEW, Argument
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.flush import relaxed_arguments
from orion.kernel.emit.ranged import gathered_subscripts
from orion.passes.extremes import comparison

EXTREMES = {"<": "min", "<=": "min", ">": "max", ">=": "max"}


def kernel_arguments(facts: LoopFacts) -> tuple[Argument, ...]:
    """Partial results, choices, carried scalars, copies, an order, keys and values, arrays, what buffers need, counts,
    scalars; within each kind by name."""
    accumulated = [*_accumulated(facts)]
    own = {one.name for one in accumulated}
    partials = [
        _scalar("partial", reduction.name, facts, op=reduction.op)
        for reduction in sorted(facts.roles.reductions, key=lambda reduction: reduction.name)
        if reduction.name not in own
    ]
    partials += accumulated
    plain = [choice for choice in facts.roles.choices if _is_plain(choice, facts)]
    chosen = [choice for choice in facts.roles.choices if choice not in plain]
    extremes = [(choice.names[0], EXTREMES[comparison(choice.op)]) for choice in plain]
    partials += [_scalar("partial", name, facts, op=op) for name, op in extremes]
    carried = [_scalar("carried", name, facts) for name in sorted(dict(facts.roles.carried))]
    mentioned = {part.name for part in facts.parts() if isinstance(part, Var)}
    if chosen:
        mentioned |= {name for name, _ in place_of(facts.nest)}
    starts = {name for choice in chosen for name in choice.names}
    scalars = [Argument("scalar", name, facts.declared(name)) for name in sorted({*facts.scalar_inputs(), *starts})]
    copies = [Argument("copies", c.array, c.dtype, op=c.op, ndim=len(c.shape) + 1) for c in facts.copies]
    elements, arrays = _elements(facts, mentioned), _arrays(facts, mentioned)
    results = (*partials, *_choices(chosen, facts))
    ended = [Argument("ended", results[0].name, "int64", op="ended")] if results and ends_early(facts.nest.body) else []
    order = [Argument("order", "", "int64")] if facts.is_listed else []
    relaxed = relaxed_arguments(facts)
    counts = *_counts(facts), *_extremes(facts)
    return (*results, *ended, *carried, *copies, *order, *elements, *arrays, *relaxed, *counts, *scalars)


def _extremes(facts: LoopFacts) -> Iterator[Argument]:
    """The least and the greatest element of arrays whose elements are subscripts in innermost loops."""
    bodies = facts.nest.body, *(loop.body for loop in every(For, *facts.nest.body))
    found = {one.array for body in bodies for one in gathered_subscripts(body, facts.looked_through)}
    for name in sorted(found):
        yield from (Argument(kind, name, "int64") for kind in ("least", "greatest"))


def _scalar(kind: str, name: str, facts: LoopFacts, position: int = 0, op: str = "") -> Argument:
    """A scalar that has another value after the loop."""
    return Argument(kind, name, facts.declared(name), position, op, outside=facts.typing.name(name).kind)


def _accumulated(facts: LoopFacts) -> Iterator[Argument]:
    """The numbers of accumulators that the loop adds to."""
    for one in facts.nest.function.accumulated:
        if facts.reduction(one.names[0]) is not None:
            for position, (name, neutral) in enumerate(zip(one.names, one.init, strict=True)):
                yield replace(_scalar("partial", name, facts, position, one.op), neutral=neutral)


def _is_plain(choice: Choice, facts: LoopFacts) -> bool:
    """Whether a choice is no more than the least or greatest of integers: then it is the same which of equal ones is
    taken. Equal floats may be zeros of two signs."""
    is_one = len(choice.names) == 1 and choice.comparison is not None
    return is_one and np.dtype(facts.declared(choice.names[0])).kind in "iu"


def _choices(choices: Iterable[Choice], facts: LoopFacts) -> Iterator[Argument]:
    """What each choice ends with, and the place of the iteration that it was taken from."""
    for number, choice in enumerate(choices):
        for name in choice.names:
            yield _scalar("chosen", name, facts, number, choice.op)
        if choice.op == "first":
            continue  # it is that of the tile that has ended the loop
        components = len(place_of(facts.nest))
        for component in range(components):
            yield Argument("place", choice.names[0], "int64", component, "place")
        if choice.begins_anew:
            yield Argument("place", choice.names[0], "int64", components, ANEW)


def place_of(nest: LoopNest) -> tuple[tuple[str, int], ...]:
    """What tells an iteration from those of other tiles, in the order in which the loop runs: names of its variables,
    each with 1 where it grows and -1 where it falls. Of an unordered loop only that there was one: (("", 0),)."""
    if not nest.ordered:
        return (("", 0),)
    return tuple(zip(nest.dims, directions(nest) or (1,) * len(nest.dims), strict=True))


def _elements(facts: LoopFacts, mentioned: set[str]) -> list[Argument]:
    """The keys and values that the body uses."""
    elements = facts.nest.elements
    if elements is None:
        return []
    kind = facts.sparse(elements.array)
    assert kind is not None
    keys = [
        Argument("key", elements.array, kind.key_dtype, position)
        for position, name in enumerate(elements.keys)
        if name in mentioned
    ]
    values = [
        Argument("value", elements.array, dtype, position, writeable=position in facts.nest.stored)
        for position, (name, dtype) in enumerate(zip(elements.values, kind.value_dtypes, strict=True))
        if name in mentioned
    ]
    return keys + values


def _arrays(facts: LoopFacts, mentioned: set[str]) -> list[Argument]:
    extents = {part.array for part in facts.parts() if isinstance(part, Dim | Count)}
    late = facts.nest.late
    own = {name for one in late for name in one.own}
    found = []
    for name in sorted(mentioned.union(extents, *(one.names for one in late))):
        kind = facts.array(name)
        if kind is not None:
            is_own = name in own
            found.append(
                Argument(
                    "own" if is_own else "array", name, kind.dtype, contiguous=is_own or kind.c_contiguous,
                    ndim=kind.ndim, writeable=is_own or kind.writeable,
                )
            )  # fmt: skip
    return found


def _counts(facts: LoopFacts) -> list[Argument]:
    counted = {part.array for part in facts.parts() if isinstance(part, Count)}
    return [Argument("count", name, "int64") for name in sorted(counted) if facts.sparse(name) is not None]
