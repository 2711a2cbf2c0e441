"""That arrays live where their iterations need them: what the placements of a loop claim, by the elements it touches.

Workers go on from a loop to the next without meeting where neither writes an array that the other touches, as the
placements have it: which it writes (what it reads is known from its kernel). So each array that the text of a loop
writes must be among them, and be called written.

An array that is cut along axis k in the blocks of loop dimension d, with halo (a, b), is touched by iteration x at
elements e with x_d + a ≤ e_k ≤ x_d + b alone; and one that iterations write is said to be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orion.cost.placement import Placement
from orion.errors import PlanError
from orion.ir.function import Function
from orion.ir.nodes import STORE, Assign, Call, Elements, For, Subscript, Tuple, Update, Var, every, names_in
from orion.ir.program import LoopNest
from orion.ir.types import ArrayType, SparseType, Types
from orion.passes.writes import Ranks, written_positions
from orion.sets.names import number_text
from orion.verify.conflicts import any_parameters
from orion.verify.events import Iterations
from orion.verify.views import views_in

if TYPE_CHECKING:
    import islpy as isl


def prove_written(nest: LoopNest, placements: Sequence[Placement], types: Types) -> None:
    """PlanError where a loop writes an array that its placements do not name, or call read only."""
    loop, function = nest.loops[0], nest.function
    told = {one.array: one.is_written for one in placements}
    if isinstance(loop.space, Elements) and any(call.function == STORE for call in every(Call, loop)):
        kind = types.get(loop.space.array)
        if not told.get(loop.space.array, False):
            raise PlanError(f"values of {loop.space.array} are written, and the plan does not say so")
        if not isinstance(kind, SparseType) or not kind.unique_keys:
            raise PlanError(f"values of {loop.space.array} are written, and keys may occur more than once")
    ranks = {name: kind.ndim for name, kind in types.items() if isinstance(kind, ArrayType)}
    views = views_in((loop,), types)
    written = {array for name in _written(loop, function, ranks) for array in views.get(name, {name})}
    for one in function.late:
        written = written - {one.name} | {*one.changed} if one.name in written else written
    for array in ranks.keys() & written:
        if not told.get(array, False):
            raise PlanError(f"{array} is written, and the plan does not say so")


def _written(loop: For, function: Function, ranks: Ranks) -> Iterator[str]:
    """The names that statements of a loop, and calls in it, write elements by. A name of a row that is given another
    one writes nothing."""
    for node in every((Assign, Update), loop):
        for target in node.target.items if isinstance(node.target, Tuple) else (node.target,):
            if isinstance(target, Subscript):
                yield target.base.name
            elif isinstance(target, Var) and (isinstance(node, Update) or target.name in ranks):
                yield target.name
    for call in every(Call, loop):
        for position in written_positions(call, function, ranks):
            yield from names_in(call.arguments[position])


def prove_placed(found: Iterations, placements: Sequence[Placement], context: isl.Context) -> Iterator[str]:
    """PlanError where an iteration touches elements that are elsewhere; a sentence where it is not known what it
    touches."""
    for one in placements:
        events = [event for event in found.events if event.array == one.array]
        if one.dim is None or one.loop_dim is None:
            continue
        for event in events:
            away = any_parameters(found.touched(event, context)).subtract(_near(found, one, event.rank, context))
            if not away.is_empty():
                message = f"{one.array} is touched where it does not live: {away.sample()}"
                if event.is_exact and found.is_exact:
                    raise PlanError(message)
                yield f"not proved: {message}"


def _near(found: Iterations, one: Placement, rank: int, context: isl.Context) -> isl.Map:
    """The elements that are in the block of an iteration, or in the halo around it."""
    import islpy as isl

    dims = [f"x{dim}" for dim in range(len(found.dims))]
    element = [f"e{axis}" for axis in range(rank)]
    low, high = (number_text(edge) for edge in one.halo)
    inside = f"x{one.loop_dim} + {low} <= e{one.dim} <= x{one.loop_dim} + {high}"
    return isl.Map(f"{{ [{', '.join(dims)}] -> [{', '.join(element)}] : {inside} }}", context)
