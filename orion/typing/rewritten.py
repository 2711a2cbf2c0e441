"""Calls as others that do the same, for the hints of calls that are not compiled."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from operator import attrgetter

import numpy as np

from orion.dataclass import replace
from orion.ir.constants import constant_value
from orion.ir.nodes import Binary, Call, Const, Dtype, Expr, Subscript, Tuple, Update, Var
from orion.ir.printer import print_expr
from orion.typing.rewritten_axes import (
    along_axis,
    is_plain,
    reversed_axes,
    trace_beside,
    with_fewer_degrees,
    with_kept_axis,
    with_start,
)
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
        case "np.mean" | ".mean", (array, axis, Dtype("float64")) if not (call.keywords or types[0].is_complex):
            return print_expr(Call(call.function, (_converted(array, "float64"), axis), call.span))
        case "np.trace", _:
            return trace_beside(call, types[0])
        case "np.transpose", _:
            return reversed_axes(call, types[0])
        case "pow", _:
            return power_of_remainder(call, types)
        case ".item", (row, place) if types[0].rank == 1 and not call.keywords:
            return item_at(row, place, types)
        case "np.concatenate" | "np.cumsum" | ".cumsum" | "np.cumprod", (row, axis) if constant_value(axis) == 0:
            rows = types[0].items or types[:1]
            is_row = all(kind.rank == 1 for kind in rows) and not call.keywords
            return print_expr(replace(call, arguments=(row,))) if is_row else None
        case _:
            return along_axis(call, types)


def power_of_remainder(call: Call, types: Sequence[ValueType]) -> str | None:
    """`pow(i, 2, m)` as `(i % m) ** 2 % m`, where 64 bits hold that."""
    number, exponent, divisor = call.arguments if len(call.arguments) == 3 else (None, None, None)
    if number is None or exponent is None or divisor is None or call.keywords or types[0].rank:
        return None
    power, limit = constant_value(exponent), constant_value(divisor)
    if power is None or limit is None or not types[0].fits_int64:
        return None
    if not (0 <= power < 64 and limit > 0 and limit**power < 2**63):
        return None
    remainder = Binary("%", number, divisor, call.span)
    return print_expr(Binary("%", Binary("**", remainder, exponent, call.span), divisor, call.span))


def item_at(row: Expr, place: Expr, types: Sequence[ValueType]) -> str | None:
    """`x.item(k)` as `float(x[k])`: a number of Python's, as it was."""
    if not isinstance(row, Var | Subscript) or types[1].rank or not types[1].is_integer:
        return None
    kind = types[0]
    number = "bool" if kind.dtype == "bool" else "int" if kind.is_integer else "" if kind.is_complex else "float"
    return f"{number}({print_expr(row)}[{print_expr(place)}])" if number else None


def stored(call: Call) -> str | None:
    """`np.dot(a, b, c)` and `np.add(a, b, c)` as a statement that assigns the result."""
    match call.arguments:
        case (*given, Var() | Subscript() as target) if call.function.startswith("np.") and not call.keywords:
            place = f"{target.name}[:]" if isinstance(target, Var) else print_expr(target)
            return f"{place} = {print_expr(replace(call, arguments=tuple(given)))}"
        case _:
            return None


def without_argument(
    call: Call, types: Sequence[ValueType], key: str, dtypes: Mapping[str, str], most: int | None
) -> str | None:
    """A call without an argument by name that is not compiled; None where the result is another then. At most so many
    arguments have places."""
    instead = INSTEAD.get(key)
    if instead is not None:
        return instead(call, types)
    if key == "endpoint" and call.keywords == (("endpoint", Const(False, call.keywords[0][1].span)),):
        return open_linspace(call, types)
    if key == "dtype" and types and dtypes.get(key) == "float64" and types[0].rank and not types[0].is_complex:
        others = tuple(one for one in call.keywords if one[0] != key)
        return with_converted(replace(call, keywords=others), "float64")
    has_places = most is None or len(call.arguments) + len(call.keywords) <= most
    return by_position(call) if has_places else None


INSTEAD = {"axis": along_axis, "keepdims": with_kept_axis, "initial": with_start, "ddof": with_fewer_degrees}
"""What a call computes that has an argument of this name."""


def parts_of_complex(call: Call, types: Sequence[ValueType]) -> str | None:
    """`complex(x, y)` of which one is complex, as Python puts it together."""
    left, right = call.arguments
    if call.keywords or not (is_plain(left) and is_plain(right)):
        return None
    first, second = (
        (f"{_part(one)}.real", f"{_part(one)}.imag") if kind.is_complex else (_part(one), "")
        for one, kind in zip((left, right), types, strict=True)
    )
    real = f"{first[0]} - {second[1]}" if second[1] else first[0]
    imaginary = f"{first[1]} + {second[0]}" if first[1] else second[0]
    return f"complex({real}, {imaginary})"


def _part(expr: Expr) -> str:
    return print_expr(expr) if isinstance(expr, Var | Subscript) else f"({print_expr(expr)})"


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
