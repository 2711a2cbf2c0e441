"""That blocks may add to copies of an array: what `orion.rewrites.array_sums` claims, read from the text.

All that a loop does with the array is X[f] = X[f] ∘ v, by one operator that is associative and commutative for the
values of its dtype, f and v not reading X; and no two workers have the same copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from orion.arrays.aligned import padded_shape
from orion.errors import PlanError, UnsupportedLoopError
from orion.ir.function import Function
from orion.ir.nodes import Assign, Binary, Call, Expr, For, Stmt, Subscript, Update, Var, count_names, every
from orion.ir.spans import without_spans
from orion.ir.types import ArrayType, Types
from orion.plan.plan import Copies, LoopPlan
from orion.schedule.schedule import Schedule
from orion.sets.names import extent_name
from orion.typing.expression_types import UntypedNameError
from orion.typing.infer import infer_types

OPERATORS = {"+": "+", "-": "+", "*": "*"}
FUNCTIONS = {"min": "min", "max": "max", "np.minimum": "min", "np.maximum": "max"}


def prove_sums(function: Function, loop: For, copies: Copies, types: Types) -> None:
    """PlanError where a loop does more with an array than to update its elements by the operator of its copies."""
    wrong = PlanError(f"iterations cannot add to copies of {copies.array}")
    updates = [*_updates(loop.body, copies.array)]
    mentions = count_names((loop,), copies.array)
    if not updates or mentions != sum(count_names((statement,), copies.array) for statement, _, _ in updates):
        raise wrong
    if {op for _, op, _ in updates} != {copies.op}:
        raise wrong
    kind = types[copies.array]
    if not isinstance(kind, ArrayType) or kind.dtype != copies.dtype:
        raise wrong
    if np.dtype(kind.dtype).kind in "iub" and not _stay_integers(function, types, copies, [v for *_, v in updates]):
        raise wrong
    if np.dtype(kind.dtype).kind == "f" and any(_begins_anew(statement) for statement, *_ in updates):
        raise wrong


def prove_shape(copies: Copies, types: Types, values: Mapping[str, int]) -> None:
    """PlanError where copies have another shape than their array has in memory."""
    kind = types[copies.array]
    assert isinstance(kind, ArrayType)
    extents = [values.get(extent_name(copies.array, axis)) for axis in range(kind.ndim)]
    shape = tuple(extent for extent in extents if extent is not None)
    memory = padded_shape(shape, np.dtype(kind.dtype)) if kind.padded else shape
    if len(shape) == kind.ndim and copies.shape != memory:
        raise PlanError(f"copies of {copies.array} have another shape than it")


def prove_own_copies(plan: LoopPlan, schedule: Schedule) -> None:
    """PlanError where two workers add to the same copy, or there are fewer copies than blocks."""
    if not plan.copies:
        return
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)[plan.space or 0]
    pairs = set(zip(blocks.tolist(), schedule.owner.tolist(), strict=True))
    own = plan.space is not None and len(pairs) <= schedule.grid[plan.space]
    if len({one.array for one in plan.copies}) < len(plan.copies):
        raise PlanError("an array has copies twice")
    few = any(plan.space is None or one.count != schedule.grid[plan.space] for one in plan.copies)
    if not own or few or schedule.grid != plan.cuts:
        raise PlanError("two workers add to the same copy")


def _updates(body: Sequence[Stmt], array: str) -> Iterator[tuple[Stmt, str, Expr]]:
    """The statements X[f] = X[f] ∘ v, each with ∘ and v."""
    for node in every((Update, Assign), *body):
        match node:
            case Update(Subscript(Var(base), index), op, value) if base == array and op in OPERATORS:
                found: tuple[str, Expr] | None = OPERATORS[op], value
            case Assign(Subscript(Var(base), index) as target, value) if base == array:
                found = _combined(value, target)
            case _:
                continue
        if found is not None and not count_names((*index, found[1]), array):
            yield node, *found


def _combined(value: Expr, target: Subscript) -> tuple[str, Expr] | None:
    """The operator and the other operand of a value that combines an element with something."""
    match value:
        case Binary(op, left, right) if op in OPERATORS and (op != "-" or _is(left, target)):
            name, operands = OPERATORS[op], (left, right)
        case Call(called, (left, right), _, ()) if called in FUNCTIONS:
            name, operands = FUNCTIONS[called], (left, right)
        case _:
            return None
    others = [operand for operand in operands if not _is(operand, target)]
    return (name, others[0]) if len(others) == 1 else None


def _is(expr: Expr, target: Subscript) -> bool:
    return without_spans(expr) == without_spans(target)


def _begins_anew(statement: Stmt) -> bool:
    """Whether Python's `min` or `max` has the element second: then a NaN in it is forgotten."""
    match statement:
        case Assign(target, Call("min" | "max", (_, second))) if isinstance(target, Subscript):
            return _is(second, target)
        case _:
            return False


def _stay_integers(function: Function, types: Types, copies: Copies, values: Sequence[Expr]) -> bool:
    """Whether what is stored is an integer that was computed as one: of a least or greatest one, of that dtype."""
    try:
        typing = infer_types(function, types)
        kinds = [typing.of(value) for value in values]
        results = [np.dtype(copies.dtype if kind.weak else np.result_type(copies.dtype, kind.dtype)) for kind in kinds]
    except (UntypedNameError, UnsupportedLoopError, TypeError):
        return False
    fits = all(one.kind in "iu" for one in results) and all(np.dtype(kind.dtype).kind in "iub" for kind in kinds)
    return fits and (copies.op not in ("min", "max") or all(one == np.dtype(copies.dtype) for one in results))
