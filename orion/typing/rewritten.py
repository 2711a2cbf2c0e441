"""Calls as others that do the same, for the hints of calls that are not compiled."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from operator import attrgetter

import numpy as np

from orion.dataclass import replace
from orion.ir.constants import constant_value
from orion.ir.nodes import Binary, Call, Const, Dtype, Expr, Tuple, Update, Var
from orion.ir.printer import print_expr
from orion.typing.value_type import ValueType


def by_position(call: Call) -> str | None:
    """A call of a function of NumPy's with the arguments by name at their places; None where one between is missing."""
    if not call.function.startswith("np.") or not call.keywords:
        return None
    try:
        names = [*inspect.signature(attrgetter(call.function.removeprefix("np."))(np)).parameters]
    except (AttributeError, TypeError, ValueError):  # some of those that are written in C have no signature
        return None
    given, first = dict(call.keywords), len(call.arguments)
    placed = names[first : first + len(given)]
    if set(placed) != given.keys():
        return None
    return print_expr(replace(call, arguments=(*call.arguments, *(given[name] for name in placed)), keywords=()))


def without_keyword(call: Call, name: str) -> str:
    """The call without an argument by name."""
    return print_expr(replace(call, keywords=tuple(one for one in call.keywords if one[0] != name)))


def with_converted(call: Call, dtype: str) -> str:
    """The call of an array of another dtype."""
    first, *others = call.arguments
    return print_expr(replace(call, arguments=(_converted(first, dtype), *others)))


def joined_as_one(call: Call, rows: Sequence[ValueType]) -> str | None:
    """`np.concatenate` of rows that have the dtype of the result."""
    first, *others = call.arguments
    if not isinstance(first, Tuple):
        return None
    one = np.result_type(*(row.dtype for row in rows)).name
    pairs = zip(first.items, rows, strict=True)
    items = tuple(item if row.dtype == one else _converted(item, one) for item, row in pairs)
    return print_expr(replace(call, arguments=(replace(first, items=items), *others)))


def flat_by_size(call: Call) -> str | None:
    """`W.reshape(-1)` with the number of the elements."""
    match call.arguments:
        case (Var(name, span) as array, _):
            return print_expr(replace(call, arguments=(array, Call("attribute:size", (Var(name, span),), span))))
        case _:
            return None


def with_fewer(call: Call, types: Sequence[ValueType]) -> str | None:
    """A call that has an argument too many as one without it, or as what it computes."""
    match call.function, call.arguments:
        case "math.log", (number, base) if not call.keywords:
            one, other = (Call("math.log", (given,), call.span) for given in (number, base))
            return print_expr(Binary("/", one, other, call.span))
        case "np.diff", (row, times) if constant_value(times) == 2 and not call.keywords:
            return print_expr(Call("np.diff", (Call("np.diff", (row,), call.span),), call.span))
        case "np.linspace", (_, _, _, Const(False)) if not call.keywords:
            return open_linspace(call, types)
        case "np.sum" | ".sum", (array, axis, Dtype() as dtype) if not call.keywords:
            return print_expr(Call(call.function, (array, axis), call.span, (("dtype", dtype),)))
        case "np.concatenate" | "np.cumsum" | ".cumsum" | "np.cumprod", (row, axis) if constant_value(axis) == 0:
            rows = types[0].items or types[:1]
            is_row = all(kind.rank == 1 for kind in rows) and not call.keywords
            return print_expr(replace(call, arguments=(row,))) if is_row else None
        case _:
            return None


def without_argument(call: Call, types: Sequence[ValueType], key: str, dtypes: Mapping[str, str]) -> str | None:
    """A call without an argument by name that is not compiled; None where the result is another then."""
    if key == "endpoint" and call.keywords == (("endpoint", Const(False, call.keywords[0][1].span)),):
        return open_linspace(call, types)
    if key == "dtype" and types and dtypes.get(key) == "float64" and types[0].rank and not types[0].is_complex:
        others = tuple(one for one in call.keywords if one[0] != key)
        return with_converted(replace(call, keywords=others), "float64")
    return by_position(call)


def open_linspace(call: Call, types: Sequence[ValueType]) -> str | None:
    """`np.linspace` without its end as NumPy computes it."""
    if call.function != "np.linspace" or len(call.arguments) < 3 or not all(kind.weak for kind in types[:2]):
        return None  # between NumPy's numbers the result has their dtype
    start, stop, number = call.arguments[:3]
    count, span = constant_value(number), call.span
    if not isinstance(count, int) or count < 1:
        return None
    step = Binary("/", Binary("-", stop, start, span), number, span)
    return print_expr(Binary("+", Binary("*", Call("np.arange", (number,), span), step, span), start, span))


def with_one_limit(call: Call) -> str | None:
    """`np.clip` between None and a number."""
    match call.function, call.arguments:
        case "np.clip", (array, Const(None), limit) if not call.keywords and limit != Const(None, limit.span):
            return print_expr(Call("np.minimum", (array, limit), call.span))
        case "np.clip", (array, limit, Const(None)) if not call.keywords and limit != Const(None, limit.span):
            return print_expr(Call("np.maximum", (array, limit), call.span))
        case _:
            return None


def product_in_place(statement: Update) -> str | None:
    """`A @= B` as `A[:] = A @ B`."""
    match statement:
        case Update(Var(name) as target, "@", value):
            return f"{name}[:] = {print_expr(Binary('@', target, value, statement.span))}"
        case _:
            return None


def _converted(array: Expr, dtype: str) -> Call:
    return Call(".astype", (array, Dtype(dtype, array.span)), array.span)
