"""What went wrong in a run, as the error that the caller gets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orion.errors import OrionError, OutOfBoundsError, PlanError, describe
from orion.ir.function import Function, in_users_words
from orion.ir.nodes import Assign, Stmt, Subscript, Var, every
from orion.kernel.calling import OUT_OF_BOUNDS
from orion.runtime.memory import RunMemory
from orion.runtime.prepared import PreparedProgram
from orion.source import Span

LINES = {"rows_indptr": "row", "columns_indptr": "column"}
"""The parts of a sparse array that say where its rows and columns begin."""


def failure_in(prepared: PreparedProgram, memory: RunMemory) -> OrionError | None:
    """The error that the control rows tell of, None where they tell of none."""
    for number, loop in enumerate(prepared.loops):
        if memory.control.item(number, 0) == OUT_OF_BOUNDS:
            site, subscript, extent, axis = memory.control[number, 1:5].tolist()
            place, user = loop.kernel.sites[site], loop.kernel.user
            what, why, hint = _out_of_bounds(prepared.program.function, place.array, subscript, extent, axis)
            error = OutOfBoundsError(describe(what, span=place.span, source=user, why=why, hint=hint))
            error.read_from = None if why or not hint else _read_from(loop.plan.nest.body, place.span, axis, subscript)
            return error
    return None


def _read_from(body: tuple[Stmt, ...], span: Span, axis: int, subscript: int) -> tuple[str, int] | None:
    """The array that a subscript was read from, with its value, where that is to be seen."""
    given = {target.name: one.value for one in every(Assign, *body) if isinstance(target := one.target, Var)}
    for node in every(Subscript, *body):
        if node.span == span and axis < len(node.index):
            part = node.index[axis]
            part = given.get(part.name, part) if isinstance(part, Var) else part
            if isinstance(part, Subscript):
                return part.base.name, subscript
    return None


def with_place(error: OutOfBoundsError, arguments: Mapping[str, object], function: Function) -> OutOfBoundsError:
    """The error with the place of the subscript in the array that it was read from, where it is still there."""
    name, value = error.read_from or ("", 0)
    array = getattr(arguments.get(name), "storage", arguments.get(name))
    if not isinstance(array, np.ndarray):
        return error
    places = np.argwhere(array == value)
    if not len(places):
        return error
    where = ", ".join(map(str, places[0].tolist()))
    more = f", and so are {len(places) - 1:,} more" if len(places) > 1 else ""
    lines = str(error).splitlines()
    said = f"  why:  `{in_users_words(name, function)}[{where}]` is {value}{more}"
    return OutOfBoundsError("\n".join([*lines[:-1], said, lines[-1]]))


def _out_of_bounds(function: Function, array: str, subscript: int, extent: int, axis: int) -> tuple[str, str, str]:
    """What is said of a subscript: what it is, why, and what to do."""
    part = next((one for one in function.parts if one.name == array), None)
    if array in function.lists:
        return f"the list `{array}` has no such item", "list index out of range: it has fewer items here", ""
    if part is not None and part.attribute in LINES:
        return f"`{part.matrix}` has no such {LINES[part.attribute]}: it has {extent - 1}", "", ""
    what = f"subscript {subscript} leaves `{in_users_words(array, function)}`, which has {extent} elements"
    hint = f"the subscript must be in {-extent} … {extent - 1}; arrays may have been changed by other iterations"
    return f"{what} along axis {axis}", "", hint


def left_without_error(prepared: PreparedProgram) -> PlanError:
    """For a run whose workers left it though none of them failed."""
    return PlanError(f"the workers left `{prepared.program.function.name}` without an error; please report this")
