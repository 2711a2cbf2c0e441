"""Rules for the type of what a function returns: what a call is given → the type of its result.

`orion.typing.functions` says which function has which rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from orion.dataclass import replace
from orion.ir.constants import constant_value
from orion.ir.nodes import Binary, Call, Const, Dtype, Expr, Subscript, Tuple, Unary, Var
from orion.ir.printer import print_expr
from orion.ir.spans import without_spans
from orion.typing.arguments import Arguments, Rule
from orion.typing.dtypes import Kind, elementwise_result, float_result, operator_result, promote, sum_result
from orion.typing.problems import TypeProblem
from orion.typing.rewritten import flat_by_size, joined_as_one, with_converted, without_keyword
from orion.typing.rewritten_axes import differences_of_columns, operand, quantiles, range_of_signed
from orion.typing.value_type import BOOL, FLOAT, INT, ValueType, broadcast, join_values, scalar, shaped

NOT_BY_NUMBA = "Numba, which compiles the loop, does not take it"


def product_type(left: ValueType, right: ValueType) -> ValueType:
    """The type of `left @ right` for rows and matrices."""
    if not left.rank or not right.rank:
        raise TypeProblem("`@` of a scalar", "it multiplies rows and matrices", "write `*`")
    if left.rank > 2 or right.rank > 2:
        raise TypeProblem("`@` of arrays of more than two dimensions", "", "write a loop")
    inner = left.lengths[-1], right.lengths[0]
    if all(isinstance(length, Const) for length in inner) and inner[0] != inner[1]:
        raise TypeProblem("the lengths of the two sides of `@` do not fit together")
    lengths = (*left.lengths[:-1], *right.lengths[1:])
    kind = promote(left.kind, right.kind)
    if lengths and kind.dtype.startswith("complex"):
        raise TypeProblem("`@` of matrices of complex numbers", "", "write it as loops", is_for_numba=True)
    if lengths and not kind.dtype.startswith("float"):
        what = f"`@` of matrices of {kind.dtype}"
        raise TypeProblem(what, NOT_BY_NUMBA, "write it as loops, or pass `A.astype(np.float64)` for each")
    return ValueType(kind.dtype, False, len(lengths), lengths)


# ---------------------------------------------------------------- groups of functions


def fold(kind: Callable[[Kind], Kind]) -> Rule:
    """The rule of a function that makes one value of all elements, or of those along an axis: `kind` goes from the kind
    of these to that of the result."""

    def result(given: Arguments) -> ValueType:
        array = _array(given)
        found = Kind(given.dtypes["dtype"]) if "dtype" in given.dtypes else kind(array.kind)
        axis = given.keyword("axis", 1)
        if axis is None:
            return scalar(found)
        number = axis.value if isinstance(axis, Const) else None
        if isinstance(axis, Unary) and isinstance(axis.operand, Const) and isinstance(axis.operand.value, int):
            number = array.rank - axis.operand.value
        if not isinstance(number, int) or not 0 <= number < array.rank:
            raise TypeProblem("`axis` is not the number of an axis of the array", "", "write a constant, `axis=0`")
        lengths = array.lengths[:number] + array.lengths[number + 1 :]
        return ValueType(found.dtype, False, len(lengths), lengths)

    return result


def same_kind(kind: Kind) -> Kind:
    """The kind of the elements, no longer weak."""
    return Kind(kind.dtype)


def new_array(given: Arguments) -> ValueType:
    lengths = _lengths(given, 0)
    return ValueType(given.dtype(1) or "float64", False, len(lengths), lengths)


def filled_array(given: Arguments) -> ValueType:
    """That of np.full: the value comes before the dtype."""
    filled, lengths = given.type(1).dtype, _lengths(given, 0)
    return ValueType(given.dtype(2) or filled, False, len(lengths), lengths)


def array_like(dtype: int) -> Rule:
    """The rule of a new array of the shape of its first argument, where the dtype may stand at that position."""
    return lambda given: replace(_array(given), dtype=given.dtype(dtype) or given.type(0).dtype)


def _lengths(given: Arguments, position: int) -> tuple[Expr | None, ...]:
    """The lengths that a shape argument gives: a number, or a tuple of numbers."""
    kind = given.type(position)
    shape = given.call.arguments[position]
    if isinstance(shape, Tuple):
        return tuple(without_spans(item) for item in shape.items)
    if kind.items:
        return (None,) * len(kind.items)
    if kind.rank or not kind.is_integer:
        hint = f"write `int({print_expr(shape)})`" if not kind.rank else "write its items, `np.zeros((n, m))`"
        why = f"it is {'an array' if kind.rank else kind.dtype}"
        raise TypeProblem("a shape is not an integer or a tuple of integers", why, hint)
    return (without_spans(shape),)


def outer(given: Arguments) -> ValueType:
    left, right = given.type(0), given.type(1)
    if left.rank == right.rank == 1:
        return ValueType(promote(left.kind, right.kind).dtype, False, 2, left.lengths + right.lengths)
    return product_of_rows(given)


def dot(given: Arguments) -> ValueType:
    left, right = given.type(0), given.type(1)
    if not (left.rank and right.rank):
        raise TypeProblem("`dot` of a scalar", NOT_BY_NUMBA, "write `*`")
    return product_type(left, right)


def product(given: Arguments) -> ValueType:
    return product_type(given.type(0), given.type(1))


def product_of_rows(given: Arguments) -> ValueType:
    left, right = given.type(0), given.type(1)
    if left.rank != 1 or right.rank != 1:
        name = given.call.function.removeprefix("np.")
        is_inner = name == "inner" and left.rank == right.rank == 2
        text = "{} @ {}.T".format(*map(operand, given.call.arguments)) if is_inner else None
        raise TypeProblem(f"`{name}` of other than two rows", "", "write a loop", replaced_by=text)
    return product_type(left, right)


def elementwise(given: Arguments) -> ValueType:
    """That of a NumPy function of each element, by NumPy's own table of dtypes."""
    name = given.call.function.removeprefix("np.")
    try:
        shape = broadcast(*given.types)
        result = elementwise_result(name, *(kind.kind for kind in given.types))
    except (TypeError, ValueError) as error:
        dtypes = " and ".join(kind.dtype for kind in given.types)
        raise TypeProblem(f"`{given.call.function}` is not defined for {dtypes} of these shapes") from error
    if result.dtype == "float16":  # NumPy's choice for bool and for integers of 8 bits
        dtypes = " and ".join(dict.fromkeys(kind.dtype for kind in given.types))
        written = ", ".join(as_float(*one) for one in zip(given.call.arguments, given.types, strict=True))
        hint = f"convert what it is given, `np.{name}({written})`"
        raise TypeProblem(f"`{given.call.function}` of {dtypes} gives float16", NOT_BY_NUMBA, hint)
    return shaped(result, shape)


def as_float(expr: Expr, kind: ValueType) -> str:
    """Return what to write for an expression converted to floats."""
    text = print_expr(expr)
    if kind.dtype.startswith("float"):
        return text
    if not kind.rank:
        return f"float({text})"
    return f"{text if isinstance(expr, Var | Subscript) else f'({text})'}.astype(np.float64)"


def _array(given: Arguments) -> ValueType:
    array = given.type(0)
    if array.items:
        name, written = given.call.function.lstrip("."), print_expr(given.call.arguments[0])
        text = f"{name}(np.array({written}))"
        is_all = given.call.function == name and len(given.types) == 1 and not given.call.keywords
        hint = f"write its items as an array, `{text}`"
        raise TypeProblem(f"`{name}` of a tuple", "", hint, replaced_by=text if is_all else None)
    if not array.rank:
        raise TypeProblem(f"`{given.call.function.lstrip('.')}` of a scalar", "", "it takes a row or an array")
    return array


# ---------------------------------------------------------------- single functions


def extreme(given: Arguments) -> ValueType:
    """Python's `min` and `max`, of several scalars or of one row."""
    if len(given.types) == 1:
        if isinstance(items := given.call.arguments[0], Tuple):
            written = f"{given.call.function}({', '.join(map(print_expr, items.items))})"
            hint = f"write its items, `{written}`"
            raise TypeProblem(f"`{given.call.function}` of a tuple", "", hint, replaced_by=written)
        return scalar(Kind(_array(given).dtype))
    if any(kind.rank for kind in given.types):
        raise TypeProblem("a minimum or maximum of arrays", "", "write np.minimum or np.maximum")
    found = join_values(given.types, given.call.arguments, given.single)
    if found is None:
        raise TypeProblem("a minimum or maximum of what is not numbers")
    return found


def absolute(given: Arguments) -> ValueType:
    kind = given.type(0)
    if kind.weak:
        return INT if kind.dtype == "bool" else FLOAT if kind.is_complex else kind
    return elementwise(given)


def rounded(given: Arguments) -> ValueType:
    if given.type(0).dtype == "bool" and not given.type(0).weak:
        raise TypeProblem("`round` of a truth value", "NumPy has none for it", "leave it out")
    return INT if len(given.types) == 1 and not given.type(0).rank else given.type(0)


def same_shape(given: Arguments) -> ValueType:
    return given.type(0)


def rounded_elements(given: Arguments) -> ValueType:
    if given.type(0).dtype == "bool":
        raise TypeProblem("`round` of truth values", NOT_BY_NUMBA, "leave it out, or write `a.astype(np.float64)`")
    return given.type(0)


def cumulated(given: Arguments) -> ValueType:
    array = _array(given)
    if array.rank > 1:
        raise TypeProblem("a cumulated sum of more than one dimension", "", "write a loop")
    return shaped(sum_result(array.kind), array)


def clipped(given: Arguments) -> ValueType:
    kind = promote(promote(given.type(0).kind, given.type(1).kind), given.type(2).kind)
    return shaped(Kind(kind.dtype), broadcast(*given.types[:3]))


def chosen(given: Arguments) -> ValueType:
    if len(given.types) != 3:
        raise TypeProblem(
            "np.where with one argument",
            "how many elements it finds is not known",
            f"write `np.flatnonzero({print_expr(given.call.arguments[0])})` inside a loop, or pass it as an argument",
        )
    kind = promote(given.type(1).kind, given.type(2).kind)
    return shaped(Kind(kind.dtype), broadcast(*given.types))


def counted(given: Arguments) -> ValueType:
    integers = all(kind.is_integer for kind in given.types)
    if any(kind.dtype.startswith("uint") for kind in given.types):
        text = range_of_signed(given.call, given.type(0))
        raise TypeProblem("`arange` of unsigned integers", NOT_BY_NUMBA, "convert them, `int(n)`", replaced_by=text)
    ends = given.call.arguments
    length = without_spans(ends[0]) if len(given.types) == 1 and integers else None
    if len(given.types) == 2 and integers and not any(isinstance(end, Dtype) for end in ends):
        known = constant_value(Binary("-", ends[1], ends[0], given.call.span))
        span = given.call.span
        between = Call("max", (Binary("-", ends[1], ends[0], span), Const(0, span)), span)
        length = without_spans(between) if known is None else Const(max(0, known), span)
    return ValueType(given.dtype(3) or ("int64" if integers else "float64"), False, 1, (length,))


def spaced(given: Arguments) -> ValueType:
    """np.linspace: so many floats from one to another, of which the last is one."""
    ends = given.type(0), given.type(1)
    if any(end.rank for end in ends):
        raise TypeProblem("`linspace` between rows", NOT_BY_NUMBA, "write a loop")
    if any(end.dtype == "bool" or (end.dtype == "float32" and not end.weak) for end in ends):
        what = f"`linspace` between numbers of {' and '.join(dict.fromkeys(end.dtype for end in ends))}"
        raise TypeProblem(what, "Numba computes it as float64", "convert them, `float(x)`")
    number = given.keyword("num", 2)
    if number is None:
        return ValueType("float64", False, 1, (Const(50, given.call.span),))
    kind = given.type(2) if len(given.types) > 2 else INT
    return ValueType("float64", False, 1, (_number_of(number, kind),))


def window(given: Arguments) -> ValueType:
    """np.hanning and its like: so many factors."""
    kind, number = given.type(0), given.call.arguments[0]
    whole = replace(given.call, arguments=(Call("int", (number,), number.span),))
    text = print_expr(whole) if kind.dtype.startswith("uint") and not kind.rank else None
    return ValueType("float64", False, 1, (_number_of(number, kind, text),))


def _number_of(number: Expr, kind: ValueType, text: str | None = None) -> Expr:
    """How many elements a function makes; of a negative number none. `text` is the call with an integer."""
    if kind.rank or not kind.dtype.startswith("int"):
        what = "a number of elements that is not a signed integer"
        raise TypeProblem(what, NOT_BY_NUMBA, "write `int(…)`", replaced_by=text)
    span = number.span
    return without_spans(number if constant_value(number) else Call("max", (number, Const(0, span)), span))


def joined(given: Arguments) -> ValueType:
    """np.concatenate and np.hstack of rows of one dimension."""
    rows = given.type(0).items
    if not rows or any(row.rank != 1 for row in rows):
        what = f"`{given.call.function}` of other than a tuple of rows of one dimension"
        raise TypeProblem(what, "", "write `np.concatenate((a, b))` of rows, or loops that fill a new array")
    if len({row.dtype for row in rows}) > 1:
        text = joined_as_one(given.call, rows)
        hint = "convert one, `a.astype(np.float64)`"
        raise TypeProblem("rows of different dtypes are joined", "", hint, replaced_by=text)
    lengths = [row.lengths[0] for row in rows]
    known = [length for length in lengths if length is not None]
    total = reduce(lambda one, other: Binary("+", one, other, one.span), known) if len(known) == len(lengths) else None
    return ValueType(rows[0].dtype, False, 1, (total,))


def some_of_row(given: Arguments) -> ValueType:
    return replace(_array(given), rank=1, lengths=(None,))


def differences(given: Arguments) -> ValueType:
    """np.diff of a row: one element less."""
    row = _row(given)
    if row.dtype == "bool":
        name = given.call.arguments[0].name if isinstance(given.call.arguments[0], Var) else None
        text = f"{name}[1:] != {name}[:-1]" if name else None
        raise TypeProblem("`diff` of truth values", NOT_BY_NUMBA, "write `a[1:] != a[:-1]`", replaced_by=text)
    length = row.lengths[0]
    if length is None:
        return row
    span = length.span
    less = Call("max", (Binary("-", length, Const(1, span), span), Const(0, span)), span)
    known = constant_value(length)
    return replace(row, lengths=(less if known is None else Const(max(known - 1, 0), span),))


def places(given: Arguments) -> ValueType:
    """np.flatnonzero: as many positions as there are elements that are not zero."""
    _array(given)
    return ValueType("int64", False, 1, (None,))


def positions(given: Arguments) -> ValueType:
    return shaped(Kind("int64"), _row(given))


def found_positions(given: Arguments) -> ValueType:
    _row(given)
    return shaped(Kind("int64"), given.type(1))


def _row(given: Arguments) -> ValueType:
    array = _array(given)
    if array.rank > 1:
        name = given.call.function.lstrip(".")
        text = differences_of_columns(given.call, array) if name == "np.diff" else None
        what = f"`{name}` of an array of more than one dimension"
        raise TypeProblem(what, NOT_BY_NUMBA, "loop over its rows", replaced_by=text)
    return array


def transposed(given: Arguments) -> ValueType:
    array = given.type(0)
    return replace(array, lengths=array.lengths[::-1])


def flat(given: Arguments) -> ValueType:
    array = _array(given)
    return array if array.rank == 1 else replace(array, rank=1, lengths=(None,))


def reshaped(given: Arguments) -> ValueType:
    """`A.reshape(n, m)`, `np.reshape(A, (n, m))`: of an array whose elements lie one after the other."""
    array, shape = _array(given), given.call.arguments[1:]
    if len(shape) == 1:
        lengths = _lengths(given, 1)
    else:
        lengths = tuple(without_spans(length) for length in shape)
    if not lengths or any(length is None or constant_value(length) == -1 for length in lengths):
        text = flat_by_size(given.call) if len(shape) == 1 and constant_value(shape[0]) == -1 else None
        what, hint = "`reshape` to lengths that are not given", "write all lengths as integers"
        raise TypeProblem(what, "", hint, replaced_by=text)
    return replace(array, weak=False, rank=len(lengths), lengths=lengths)


def diagonal(given: Arguments) -> ValueType:
    array = _array(given)
    lengths = array.lengths * 2 if array.rank == 1 else (None,)
    return replace(array, rank=len(lengths), lengths=lengths)


def identity(given: Arguments) -> ValueType:
    lengths = _lengths(given, 0)
    if len(given.types) > 1 and not isinstance(given.call.arguments[1], Dtype):
        return ValueType(given.dtype(3) or "float64", False, 2, lengths + _lengths(given, 1))
    return ValueType(given.dtype(1) or "float64", False, 2, lengths * 2)


def written_out(given: Arguments) -> ValueType:
    """np.array of numbers, or of lists of as many numbers each."""
    items = given.type(0).items
    if not items:
        hint = "write `A.copy()` for a copy of an array"
        is_copy = given.type(0).rank > 0 and len(given.types) == 1 and not given.call.keywords
        text = print_expr(Call(".copy", given.call.arguments, given.call.span)) if is_copy else None
        raise TypeProblem("`np.array` of other than lists of numbers", "", hint, replaced_by=text)
    lengths = [len(items)]
    while items[0].items:
        if len({len(item.items) for item in items}) > 1:
            raise TypeProblem("`np.array` of lists of different lengths")
        lengths.append(len(items[0].items))
        items = tuple(part for item in items for part in item.items)
    if any(item.rank or item.items for item in items):
        raise TypeProblem("`np.array` of arrays", "", "make it with np.zeros, and write its rows: `A[0] = x`")
    dtype = given.dtype(1) or np.result_type(*(item.dtype for item in items)).name
    known = tuple(Const(length, given.call.span) for length in lengths)
    return ValueType(dtype, False, len(lengths), tuple(map(without_spans, known)))


def quantile(given: Arguments) -> ValueType:
    """np.percentile: one value, of one place in the order of all."""
    array = _array(given)
    if given.type(1).rank or given.type(1).items:
        what, text = f"`{given.call.function}` at several places", quantiles(given.call, given.type(1))
        raise TypeProblem(what, "", "write one call for each", replaced_by=text)
    if not array.dtype.startswith("float") and array.dtype != "int64":
        raise TypeProblem(f"`{given.call.function}` of {array.dtype}", NOT_BY_NUMBA, "write `a.astype(np.float64)`")
    return scalar(float_result(array.kind))


def float_of_array(given: Arguments) -> ValueType:
    return scalar(float_result(_array(given).kind))


def _of_floats(given: Arguments) -> None:
    """Systems, inverses and determinants are compiled for arrays of floats or complex numbers of one dtype alone."""
    dtypes = sorted({kind.dtype for kind in given.types if kind.rank})
    if not all(dtype.startswith(("float", "complex")) for dtype in dtypes):
        hint = "convert it, `a.astype(np.float64)`"
        text = with_converted(given.call, "float64") if len(given.types) == 1 else None
        raise TypeProblem(f"`{given.call.function}` of an array of integers", NOT_BY_NUMBA, hint, replaced_by=text)
    if len(dtypes) > 1:
        one = np.result_type(*dtypes).name
        what = f"`{given.call.function}` of arrays of {' and '.join(dtypes)}"
        raise TypeProblem(what, "Numba takes arrays of one dtype", f"convert one, `a.astype(np.{one})`")


def determinant(given: Arguments) -> ValueType:
    _of_floats(given)
    return float_of_array(given)


def solution(given: Arguments) -> ValueType:
    _of_floats(given)
    last = given.types[-1]
    return shaped(float_result(promote(given.type(0).kind, last.kind)), last)


def conversion(given: Arguments) -> ValueType:
    """That of a dtype that is called."""
    if len(given.types) > 1:
        hint = "write `complex(x, y)`" if "complex" in given.call.function else "give it one"
        is_same = given.call.function == "np.complex128" and not any(
            kind.rank or kind.is_complex for kind in given.types
        )
        one = print_expr(replace(given.call, function="complex"))
        text = one if is_same and len(given.types) == 2 else None
        raise TypeProblem(f"`{given.call.function}` of {len(given.types)} values", NOT_BY_NUMBA, hint, replaced_by=text)
    return shaped(Kind(given.call.function.removeprefix("np.")), given.type(0))


def converted(given: Arguments) -> ValueType:
    dtype = given.dtype(1)
    if dtype is None:
        raise TypeProblem("`astype` without a dtype", "", "write `a.astype(np.float32)`")
    if len(given.types) > 2 or {key for key, _ in given.call.keywords} - {"dtype"}:
        is_copied = dtype != given.type(0).dtype and {key for key, _ in given.call.keywords} <= {"dtype", "copy"}
        text = without_keyword(given.call, "copy") if is_copied and len(given.types) <= 2 else None
        hint = "write `a.astype(np.float32)`"
        raise TypeProblem("`astype` with more than a dtype", "", hint, replaced_by=text)
    return shaped(Kind(dtype), given.type(0))


def item_of(given: Arguments) -> ValueType:
    kind = given.type(0)
    return BOOL if kind.dtype == "bool" else INT if kind.is_integer else FLOAT


def power(given: Arguments) -> ValueType:
    left, right = given.type(0), given.type(1)
    if left.rank or right.rank:
        base, exponent = given.call.arguments[:2]
        text = print_expr(Binary("**", base, exponent, given.call.span)) if len(given.types) == 2 else None
        raise TypeProblem("`pow` of an array", NOT_BY_NUMBA, "write `**`", replaced_by=text)
    return shaped(operator_result("**", left.kind, right.kind), broadcast(left, right))


def added_up(given: Arguments) -> ValueType:
    """Python's `sum`: 0 and the elements one after the other, truth values as 0 and 1."""
    if isinstance(items := given.call.arguments[0], Tuple):
        raise TypeProblem("`sum` of a tuple", "", f"write `{' + '.join(map(print_expr, items.items))}`")
    array = _array(given)
    if array.rank > 1:
        what = f"`sum` of an array of {array.rank} dimensions"
        hint = "write `np.sum(a, axis=0)`, or `np.sum(a)` for one number"
        along = replace(given.call, function="np.sum", keywords=(("axis", Const(0, given.call.span)),))
        text = print_expr(along) if sum_result(array.kind).dtype == array.dtype else None
        raise TypeProblem(what, "Python adds up its rows", hint, replaced_by=text)
    return scalar(operator_result("+", INT.kind, array.kind))


def shape_of(given: Arguments) -> ValueType:
    return INT if len(given.types) == 2 else ValueType("tuple", items=(INT,) * given.type(0).rank)
