"""What went wrong in a run, as the error that the caller gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.errors import OrionError, OutOfBoundsError, PlanError, UpdateError, describe, of_user
from orion.ir.function import Function, in_users_words, written_names
from orion.ir.nodes import INTEGER, Assign, Call, Stmt, Subscript, Var, every
from orion.ir.program import RunLoop, Step, blocks_of
from orion.kernel.calling import NOT_A_NUMBER, OUT_OF_BOUNDS
from orion.runtime.memory import RunMemory
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.source import SourceText, Span

NO_INTEGER = -(2**63)
"""The integer that floats become which have none: NaN, infinite and too large ones."""

PAST_ALL = 2**63 - 1
"""The subscript that integers of uint64 without a sign are taken for (`orion.ir.nodes.INTEGER`)."""

LINES = {"rows_indptr": "row", "columns_indptr": "column"}
"""The parts of a sparse array that say where its rows and columns begin."""


def failure_in(prepared: PreparedProgram, memory: RunMemory) -> OrionError | None:
    """The error that the control rows tell of, None where they tell of none."""
    for number, loop in enumerate(prepared.loops):
        if memory.control.item(number, 0) == OUT_OF_BOUNDS:
            site, subscript, extent, axis = memory.control[number, 1:5].tolist()
            place, user = loop.kernel.sites[site], loop.kernel.user
            what, why, hint = _out_of_bounds(prepared.program.function, place.array, subscript, extent, axis)
            hint += _changed(prepared, number) if hint else ""
            error = OutOfBoundsError(describe(what, span=place.span, source=user, why=why, hint=hint))
            error.read_from = None if why or not hint else _read_from(loop.plan.nest.body, place.span, axis, subscript)
            return error
        if memory.control.item(number, 0) == NOT_A_NUMBER:
            return _not_a_number(prepared.program.function, loop, *memory.control[number, 1:3].tolist())
    return None


def by_all(error: Exception) -> Exception:
    """An error that each worker comes to by itself: none need be told, and each does first what comes before it."""
    error._orion_by_all = True  # type: ignore[attr-defined]
    return error


def is_by_all(error: BaseException) -> bool:
    """Whether each worker comes to an error by itself."""
    return getattr(error, "_orion_by_all", False)


def past_64_bits(what: str, span: Span, source: SourceText, why: str) -> Exception:
    """The error for an integer between loops that has more than 64 bits."""
    hint = "take a remainder of it (`x % m`), or keep it as a float"
    return of_user(OverflowError(describe(what, span=span, source=source, why=why, hint=hint)))


def too_wide(loop: PreparedLoop, value: Any) -> Exception:
    """The error for an integer with which a loop cannot begin."""
    shown = f"{value:,}" if abs(value) < 1 << 99 else f"one of {value.bit_length()} bits"
    what = f"this loop is given an integer that 64 bits do not hold: {shown}"
    return past_64_bits(what, loop.plan.nest.span, loop.kernel.user, "loops are compiled: their integers have 64 bits")


def _not_a_number(function: Function, loop: PreparedLoop, number: int, place: int) -> UpdateError:
    """The error for an update of a buffer that is not a number."""
    if loop.plan.nest.replicas:
        return _copy_not_a_number(function, loop, number, place)
    found, user = loop.plan.relaxed.arrays[number].buffered, loop.kernel.user
    where, sums = (f", in place {place} in the order of C,", " there sum up to") if place >= 0 else ("", " come to")
    what = f"an update of `{found.array}`{where} is not a number"
    why = f"the updates of one worker{sums} NaN; `{found.array}` and its helpers are as they were"
    hint = f"look at what the loop adds to `{found.source}`: a division by 0, or numbers that have grown too large"
    return UpdateError(in_users_words(describe(what, span=found.span, source=user, why=why, hint=hint), function))


def _copy_not_a_number(function: Function, loop: PreparedLoop, number: int, place: int) -> UpdateError:
    """The error for a copy of an array that is not a number."""
    found, user = loop.plan.nest.replicas[number], loop.kernel.user
    what = (
        f"a worker's copy `{found.name}` of `{found.array}`, in place {place} in the order of C, is not a finite number"
    )
    why = f"`{found.array}` and all copies of it are as they were"
    hint = f"look at what the loop does with `{found.name}`: a division by 0, or steps that are too large"
    return UpdateError(in_users_words(describe(what, span=found.span, source=user, why=why, hint=hint), function))


def _read_from(body: tuple[Stmt, ...], span: Span, axis: int, subscript: int) -> tuple[str, int] | None:
    """The array that a subscript was read from, with its value, where that is to be seen."""
    given = {target.name: one.value for one in every(Assign, *body) if isinstance(target := one.target, Var)}
    for node in every(Subscript, *body):
        if node.span == span and axis < len(node.index):
            part = node.index[axis]
            part = given.get(part.name, part) if isinstance(part, Var) else part
            while isinstance(part, Call) and part.function in (INTEGER, "int"):
                part = part.arguments[0]
            if isinstance(part, Subscript):
                return part.base.name, subscript
    return None


def _changed(prepared: PreparedProgram, failed: int) -> str:
    """The arrays of the user's that iterations may have changed before one of loop `failed` met an error."""
    numbers: set[int] = set()
    for step in prepared.program.steps:
        numbers |= _loops_of(step)
        if failed in numbers:
            break
    function = prepared.program.function
    written = {name for number in numbers for name in (*prepared.loops[number].writes, prepared.loops[number].stored)}
    said = (in_users_words(name, function) for name in function.given if name in written)
    names = [f"`{name}`" for name in said if written_names(function).issuperset(re.findall(r"\w+", name))]
    return f"; other iterations may have changed {' and '.join(names)} by then" if names else ""


def _loops_of(step: Step) -> set[int]:
    """The numbers of the planned loops in a step."""
    inner = {number for steps in blocks_of(step) for one in steps for number in _loops_of(one)}
    return inner | {step.number} if isinstance(step, RunLoop) else inner


def with_place(error: OutOfBoundsError, arguments: Mapping[str, object], function: Function) -> OutOfBoundsError:
    """The error with the place of the subscript in the array that it was read from, where it is still there."""
    name, value = error.read_from or ("", 0)
    array = getattr(arguments.get(name), "storage", arguments.get(name))
    if not isinstance(array, np.ndarray):
        return error
    places = np.argwhere(_is_read_as(array, value))
    if not len(places):
        return error
    found = array[tuple(places[0])].item()
    where = ", ".join(map(str, places[0].tolist()))
    more = f", and so are {len(places) - 1:,} more" if len(places) > 1 else ""
    lines = str(error).splitlines()
    if isinstance(found, int):
        lines[0] = lines[0].replace(_shown(value), f"subscript {found} leaves")
    said = f"  why:  `{in_users_words(name, function)}[{where}]` is {found}{more}"
    return OutOfBoundsError("\n".join([*lines[:-1], said, lines[-1]]))


def _is_read_as(array: NDArray[Any], subscript: int) -> NDArray[np.bool]:
    """Which elements of an array are this subscript."""
    found: NDArray[np.bool] = array == subscript
    if array.dtype.kind == "f":
        found = ~(np.abs(array) < 2.0**63) if subscript == NO_INTEGER else np.trunc(array) == subscript
    elif array.dtype == np.uint64 and subscript == PAST_ALL:
        found = array >= subscript
    return found


def _shown(subscript: int) -> str:
    more = " or more" if subscript == PAST_ALL else ""
    return f"subscript {subscript}{more} leaves"


def _out_of_bounds(function: Function, array: str, subscript: int, extent: int, axis: int) -> tuple[str, str, str]:
    """What is said of a subscript: what it is, why, and what to do."""
    part = next((one for one in function.parts if one.name == array), None)
    if array in function.lists:
        return f"the list `{array}` has no such item", "list index out of range: it has fewer items here", ""
    if part is not None and part.attribute in LINES:
        return f"`{part.matrix}` has no such {LINES[part.attribute]}: it has {extent - 1}", "", ""
    what = f"{_shown(subscript)} `{in_users_words(array, function)}`, which has {extent} elements along axis {axis}"
    hint = f"the subscript must be in {-extent} … {extent - 1}"
    if subscript == NO_INTEGER:
        hint += "; this number is what NaN becomes as an integer, or a float that 64 bits do not hold"
    return what, "", hint


def left_without_error(prepared: PreparedProgram) -> PlanError:
    """For a run whose workers left it though none of them failed."""
    return PlanError(f"the workers left `{prepared.program.function.name}` without an error; please report this")
