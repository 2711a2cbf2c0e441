"""That subscripts which kernels take without looking lie inside of their arrays: a claim of the bounds checks.

A subscript is claimed by its place, the text of the element and the axis. All readings and writings at that place must
lie in `[0, extent)` at the sizes of the call: for no instance (x, v) is the subscript negative, or outside of the axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

from orion.errors import PlanError
from orion.ir.nodes import Subscript
from orion.source import Span
from orion.verify.events import Iterations
from orion.verify.text_values import any_of

if TYPE_CHECKING:
    import islpy as isl

Place = tuple[Span, int]


def prove_inside(
    parts: Iterable[Iterations], claimed: Set[Place], at_call: isl.Set, context: isl.Context
) -> Iterator[str]:
    """PlanError for a claimed subscript that leaves its array, or counts from its end, in one of the parts of a loop;
    a sentence where that can be neither shown nor ruled out. `at_call` is what holds of parameters in the call."""
    seen: set[Place] = set()
    for found in parts:
        for place, name, wrong, is_exact in _leaving(found, claimed, context):
            seen.add(place)
            wrong = wrong.intersect_params(at_call)
            if wrong.is_empty():
                continue
            message = f"subscript {place[1]} of {name} ({place[0]}) is taken to be inside of it: {wrong.sample()}"
            if is_exact:
                raise PlanError(message)
            yield f"not proved: {message}"
    for span, axis in claimed - seen:
        yield f"not proved: subscript {axis} ({span}), column {span.column}, is taken to be inside of its array"


def _leaving(
    found: Iterations, claimed: Set[Place], context: isl.Context
) -> Iterator[tuple[Place, str, isl.Set, bool]]:
    """The claimed subscripts with the instances that break the claim, and whether that is sure."""
    for event in found.events:
        if isinstance(event.node, Subscript):
            for one in event.leaving:
                place = event.node.span, one.axis
                if place in claimed:
                    wrong = found.instances(event, any_of([one.outside, one.negative]), context)
                    yield place, event.array, wrong, event.is_exact and found.is_exact
