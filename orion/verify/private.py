"""That tiles may have an array of their own: what `orion.rewrites.privatize` claims, by sets of elements.

Of each array of which tiles have their own, the last tile having the array itself, it is proved that

    every read of an element in an iteration comes after a write of it, sure to happen, in the same iteration;
    all that is written in a round, the last iteration of it writes again, for sure;
    that iteration is in the last tile, in every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orion.errors import PlanError
from orion.schedule.schedule import Schedule
from orion.sets.names import number_text
from orion.verify.events import Event, Iterations

if TYPE_CHECKING:
    import islpy as isl


def prove_private(found: Iterations, array: str, context: isl.Context) -> None:
    """Prove the first two for an array. PlanError where one does not hold."""
    events = [event for event in found.events if event.array == array]
    sure = [event for event in events if event.is_write and event.is_sure]
    for read in (event for event in events if not event.is_write):
        rest = found.placed(read, context)
        for write in sure:
            order = earlier(write, read, len(found.dims), context)
            rest = rest if order is None else rest.subtract(order.apply_range(found.placed(write, context)))
        if not rest.is_empty():
            raise PlanError(f"iterations cannot each have their own {array}: one reads what it has not written")
    domain = found.domain(context)
    last = domain.lexmax()
    written = _elements([found.touched(event, context) for event in events if event.is_write])
    again = _elements([found.touched(event, context).intersect_domain(last) for event in sure])
    if written is not None and (again is None or not written.is_subset(again)):
        raise PlanError(f"iterations cannot each have their own {array}: the last one does not write all of it")


def prove_last(found: Iterations, schedule: Schedule, context: isl.Context) -> None:
    """Prove that the last iteration of every round is in the last tile."""
    import islpy as isl

    last = found.domain(context).lexmax()
    last = last.project_out(isl.dim_type.param, 0, last.dim(isl.dim_type.param))
    names = [f"x{dim}" for dim in range(len(found.dims))]
    ends = zip(names, schedule.bounds, strict=True)
    inside = [f"{number_text(int(b[-2]))} <= {name} < {number_text(int(b[-1]))}" for name, b in ends]
    box = isl.Set(f"{{ [{', '.join(names)}] : {' and '.join(inside)} }}", context)
    if not last.is_subset(box):
        raise PlanError("the last iteration is not in the last tile, or not the same in all rounds of the loops around")


def _elements(maps: Sequence[isl.Map]) -> isl.Set | None:
    found: isl.Set | None = None
    for one in maps:
        found = one.range() if found is None else found.union(one.range())
    return found


def earlier(write: Event, read: Event, outer: int, context: isl.Context) -> isl.Map | None:
    """(x, v) → (x, u): the places of a write that come before one of a read in the same iteration."""
    import islpy as isl

    same = [f"x{dim}" for dim in range(outer)]
    mine = [*same, *(f"u{level}" for level in range(len(write.dims) - outer))]
    others = [*same, *(f"v{level}" for level in range(len(read.dims) - outer))]
    ways, equal = list[str](), list[str]()
    for level, (here, there) in enumerate(zip(write.place, read.place, strict=False)):
        if here != there:
            ways += [" and ".join(equal) or "true"] if here < there else []
            break
        if level + 1 < min(len(write.place), len(read.place)):  # both are in the loop that stands there
            ways.append(" and ".join([*equal, f"u{level} < v{level}"]))
            equal.append(f"u{level} = v{level}")
    if not ways:
        return None
    text = " or ".join(f"({way})" for way in ways)
    return isl.Map(f"{{ [{', '.join(others)}] -> [{', '.join(mine)}] : {text} }}", context)
