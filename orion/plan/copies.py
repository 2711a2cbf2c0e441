"""Copies of the arrays that a loop adds to without knowing which iterations share an element: how many, and when."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from orion.arrays.aligned import padded_shape
from orion.cost.candidate import Strategy
from orion.cost.extents import parameter_values
from orion.cost.grid import COMBINED_NS, predicted_ns
from orion.ir.types import ArrayType, Shapes, Types
from orion.plan.plan import Copies, LoopPlan, Tiled
from orion.reasons import Reason

ELEMENT_NS = 0.5
"""What one element of one copy costs: it is set at the beginning, and combined at the end."""

SHARE = 0.1
"""The part of the work of a loop that its copies may cost at most."""


def with_copies(plan: LoopPlan, types: Types, shapes: Shapes) -> LoopPlan:
    """A parallel plan with the copies that its loop needs; where shapes are unknown, without their numbers."""
    if not isinstance(plan.tiles, Tiled):
        return plan
    found = []
    for one in plan.analysis.sums:
        kind = types[one.name]
        assert isinstance(kind, ArrayType)
        shape = shapes.get(one.name, ())
        memory = padded_shape(shape, np.dtype(kind.dtype)) if kind.padded else shape
        found.append(Copies(one.name, one.op, kind.dtype, memory, plan.cuts[plan.tiles.space]))
    return replace(plan, copies=tuple(found))


def why_no_copies(plan: LoopPlan, time: float | None, shapes: Shapes, *, any_size: bool) -> Reason | None:
    """Why a plan with copies is not worth them, given the predicted time of the loop on one worker; None where it is,
    or need not be (`any_size`).

    Copies cost ELEMENT_NS for each of their elements, and may cost SHARE of the time; a loop that takes less than
    COMBINED_NS is not shared out. The number of workers does not count, so that the bits of the result do not depend on
    it.
    """
    is_shared_out = plan.strategy is not Strategy.SERIAL
    if is_shared_out and any_size:
        return None
    if is_shared_out and time is None and plan.iterations is not None:
        time = predicted_ns(plan.nest, plan.iterations, shapes, parameter_values(shapes, {}))
    elements = sum(copies.count * prod(copies.shape) for copies in plan.copies)
    if is_shared_out and time is not None and time >= max(COMBINED_NS, elements * ELEMENT_NS / SHARE):
        return None
    names = ", ".join(f"`{one.name}`" for one in plan.analysis.sums)
    size = f", {elements:,} elements in all," if elements else ""
    message = f"copies of {names} for each block{size} would cost more than they gain"
    return Reason.of("ORN122", message, plan.analysis.sums[0].span)
