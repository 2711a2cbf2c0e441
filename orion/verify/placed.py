"""That arrays live where their iterations need them: what the placements of a loop claim, by the elements it touches.

An array that is cut along axis k in the blocks of loop dimension d, with halo (a, b), is touched by iteration x at
elements e with x_d + a ≤ e_k ≤ x_d + b alone; and one that iterations write is said to be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orion.cost.placement import Placement
from orion.errors import PlanError
from orion.sets.names import number_text
from orion.verify.conflicts import any_parameters
from orion.verify.events import Iterations

if TYPE_CHECKING:
    import islpy as isl


def prove_placed(found: Iterations, placements: Sequence[Placement], context: isl.Context) -> None:
    """PlanError where an iteration touches elements that are elsewhere, or writes what is not brought back."""
    for one in placements:
        events = [event for event in found.events if event.array == one.array]
        if any(event.is_write for event in events) and not one.is_written:
            raise PlanError(f"{one.array} is written, and the plan does not say so")
        if one.dim is None or one.loop_dim is None:
            continue
        for event in events:
            away = any_parameters(found.touched(event, context)).subtract(_near(found, one, event.rank, context))
            if not away.is_empty():
                raise PlanError(f"{one.array} is touched where it does not live: {away.sample()}")


def _near(found: Iterations, one: Placement, rank: int, context: isl.Context) -> isl.Map:
    """The elements that are in the block of an iteration, or in the halo around it."""
    import islpy as isl

    dims = [f"x{dim}" for dim in range(len(found.dims))]
    element = [f"e{axis}" for axis in range(rank)]
    low, high = (number_text(edge) for edge in one.halo)
    inside = f"x{one.loop_dim} + {low} <= e{one.dim} <= x{one.loop_dim} + {high}"
    return isl.Map(f"{{ [{', '.join(dims)}] -> [{', '.join(element)}] : {inside} }}", context)
