"""Floats that are combined from the parts of tiles: they are rounded otherwise than one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from orion.plan.plan import FunctionPlan, Inspected, LoopPlan, Tiled
from orion.typing.expression_types import Typing

ROUNDING = ("+", "*")
"""The operators whose results depend on the order of their operands where these are floats."""


def any_floats(names: Iterable[str], typing: Typing) -> bool:
    """Whether there may be floats under some names: those of which no type is known may be."""
    kinds = (typing.names.get(name) for name in names)
    return any(kind is None or kind.dtype.startswith(("float", "complex")) for kind in kinds)


def combined_floats(loops: Iterable[LoopPlan], typing: Typing) -> frozenset[str]:
    """The scalars and arrays of floats to which iterations of planned loops add, or by which they multiply."""
    names = {name for loop in loops for name in _combined(loop)}
    return frozenset(name for name in names if any_floats([name], typing))


def rounded_in_parts(loop: LoopPlan, plan: FunctionPlan) -> tuple[str, ...]:
    """The names of the floats that a loop of the source combines from the parts of its tiles."""
    cut = (part for part in loop.parts or (loop,) if _is_cut(part))
    return tuple(dict.fromkeys(name for part in cut for name in _combined(part) if name in plan.floats))


def _combined(loop: LoopPlan) -> list[str]:
    scalars = loop.analysis.scalars
    sums = [one.name for one in scalars.reductions if one.op in ROUNDING]
    return [
        *sums,
        *(one.name for one in scalars.accumulations),
        *(one.name for one in loop.analysis.sums if one.op in ROUNDING),
    ]


def _is_cut(loop: LoopPlan) -> bool:
    return prod(loop.cuts) > 1 if isinstance(loop.tiles, Tiled) else isinstance(loop.tiles, Inspected)
