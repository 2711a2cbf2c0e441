"""What went wrong in a run, as the error that the caller gets."""

from __future__ import annotations

from orion.errors import OrionError, OutOfBoundsError, PlanError, describe
from orion.kernel.calling import OUT_OF_BOUNDS
from orion.runtime.memory import RunMemory
from orion.runtime.prepared import PreparedLoop, PreparedProgram


def failure_in(prepared: PreparedProgram, memory: RunMemory) -> OrionError | None:
    """The error that the control rows tell of, None where they tell of none."""
    for number, loop in enumerate(prepared.loops):
        if memory.control.item(number, 0) == OUT_OF_BOUNDS:
            is_list = loop.kernel.sites[memory.control.item(number, 1)].array in prepared.program.function.lists
            return (_no_item if is_list else _out_of_bounds)(loop, *memory.control[number, 1:5].tolist())
    return None


def _no_item(loop: PreparedLoop, site: int, subscript: int, extent: int, axis: int) -> OutOfBoundsError:
    place = loop.kernel.sites[site]
    what = f"the list `{place.array}` has no such item"
    why = "list index out of range: it has fewer items here"
    return OutOfBoundsError(describe(what, span=place.span, source=loop.kernel.user, why=why))


def _out_of_bounds(loop: PreparedLoop, site: int, subscript: int, extent: int, axis: int) -> OutOfBoundsError:
    place = loop.kernel.sites[site]
    what = f"subscript {subscript} leaves `{place.array}`, which has {extent} elements along axis {axis}"
    hint = f"the subscript must be in {-extent} … {extent - 1}; arrays may have been changed by other iterations"
    return OutOfBoundsError(describe(what, span=place.span, source=loop.kernel.user, hint=hint))


def left_without_error(prepared: PreparedProgram) -> PlanError:
    """For a run whose workers left it though none of them failed."""
    return PlanError(f"the workers left `{prepared.program.function.name}` without an error; please report this")
