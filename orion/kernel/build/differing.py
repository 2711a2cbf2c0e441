"""What Numba computes otherwise than Python and NumPy in a function that it compiles as it is, by its types: refused.

Integers narrower than Python's or without a sign, and mixed floats, in arithmetic, whose results NumPy keeps at their
width; powers of integers by other than constants; `.flat`, which checks no subscripts; text made of floats.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from numba import typeof
from numba.core import ir, types
from numba.core.types import List, StringLiteral, UnicodeType, literal, unliteral  # type: ignore[attr-defined]

from orion.kernel.build.checked_operations import IN_PLACE, check_mask

WHOLE = (types.int64, types.int32, types.float64, types.complex128, types.boolean)
"""The types of numbers with which Numba computes as NumPy does: integers of 32 bits but for what these do not hold."""

WIDTHS = (types.boolean, types.int32, types.int64, types.float64, types.complex128)
"""The same, each one after those that become it where they meet."""

COMPARING = frozenset([operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.is_])
NOTHING = (types.NoneType, types.Omitted, types.Optional)  # type: ignore[attr-defined]
TEXT = (types.Integer, UnicodeType, StringLiteral)
SAFE = frozenset({"len", "range", "enumerate", "zip", "int", "float", "bool", "print", "isinstance"})
SAFE_METHODS = frozenset({"copy", "astype", "item", "reshape", "ravel", "flatten", "fill", "view", "tolist"})


def differing(dispatcher: Any) -> str:
    """What a compiled function would do otherwise than Python; empty where nothing is known of that."""
    return first_of(dispatcher, _of)


def first_of(dispatcher: Any, told: Callable[[Any, Any], Iterable[str]]) -> str:
    """The first thing that is told of a statement of a compiled function, given the types of its names, with the line;
    empty where nothing is."""
    for compiled in dispatcher.overloads.values():
        found = compiled.type_annotation
        for block in found.blocks.values():
            for statement in block.body:
                for what in told(statement, found.typemap):
                    return f"{what} in line {statement.loc.line}"
    return ""


def _of(statement: Any, kinds: Any) -> Iterator[str]:
    value = getattr(statement, "value", None)
    if not isinstance(statement, ir.Assign) or not isinstance(value, ir.Expr):
        return
    match value.op:
        case "binop" | "inplace_binop":
            operands = [kinds[value.lhs.name], kinds[value.rhs.name]]
            yield from _of_operation(value.fn, operands)
        case "unary":
            yield from _of_operation(value.fn, [kinds[value.value.name]])
        case "arrayexpr":
            yield from _of_tree(value.expr, kinds)
        case "getattr" if value.attr == "flat" and isinstance(kinds[value.value.name], types.Array):
            yield "subscripts of `.flat` would not be checked"
        case "call":
            yield from _of_call(value, kinds)


def _of_tree(tree: Any, kinds: Any) -> Iterator[str]:
    """An operation on arrays that Numba makes one loop of, with those inside it."""
    if isinstance(tree, tuple):
        function, operands = tree
        for operand in operands:
            yield from _of_tree(operand, kinds)
        yield from _of_operation(function, [_kind_of(operand, kinds) for operand in operands])


def _kind_of(tree: Any, kinds: Any) -> Any:
    """The type of an operation on arrays, whose parts are of types that are computed with alike."""
    if isinstance(tree, ir.Var):
        return kinds[tree.name]
    if isinstance(tree, ir.Const):
        return literal(tree.value) if type(tree.value) is int else typeof(tree.value)
    function, operands = tree
    if function in COMPARING:
        return types.boolean
    if function is operator.truediv:
        return types.float64
    found = [kind for kind in (_number(_kind_of(operand, kinds)) for operand in operands) if kind is not None]
    return max(found, key=lambda kind: WIDTHS.index(kind) if kind in WIDTHS else len(WIDTHS), default=types.float64)


def _of_operation(function: Any, operands: list[Any]) -> Iterator[str]:
    numbers = [kind for kind in map(_number, operands) if kind is not None]
    name = getattr(function, "__name__", "").removeprefix("i")
    if name == "pow" and all(isinstance(kind, types.Integer) for kind in numbers) and len(operands) == 2:
        exponent = operands[1]
        if not (isinstance(exponent, types.IntegerLiteral) and exponent.literal_value >= 0):
            yield "a power of integers would be an integer, whatever the exponent,"
    if function in (operator.is_, operator.is_not) and not any(isinstance(kind, NOTHING) for kind in operands):
        yield "`is` would compare values, not objects,"
    if function in COMPARING or name in ("not_", "contains"):
        return
    if any(kind not in WHOLE for kind in numbers) and len({*numbers}) + any(map(_is_integer, numbers)) > 1:
        shown = " and ".join(sorted({str(kind) for kind in numbers}))
        yield f"arithmetic with {shown} would not keep NumPy's type"
    elif len(operands) == 2 and len(numbers) == 2 and {*numbers} == {types.boolean} and name in ("add", "sub", "mul"):
        yield "arithmetic with truth values would be with integers"


def _is_integer(kind: Any) -> bool:
    return isinstance(kind, types.Integer)


def _of_call(call: Any, kinds: Any) -> Iterator[str]:
    function = kinds[call.func.name]
    given = [kinds[argument.name] for argument in call.args]
    key = getattr(function, "typing_key", None)
    if key is check_mask:
        return
    if any(key is made for made in IN_PLACE.values()):
        operation = next(one for one, made in IN_PLACE.items() if made is key)
        yield from _of_operation(operation, given)
        return
    name = getattr(key, "__name__", "")
    if key is str and not all(isinstance(kind, TEXT) for kind in given):
        yield "text of other values than integers would be no text of them"
    if isinstance(function, types.BoundFunction):
        owner, method = function.this, str(key).rpartition(".")[2]
        if isinstance(owner, types.Array) and owner.dtype not in WHOLE and method not in SAFE_METHODS:
            yield f"`.{method}` of {owner.dtype} may have another type than NumPy's"
        return
    nin = getattr(key, "nin", None)
    if nin is not None and len(given) > nin:
        yield f"`np.{name}` with an array for its result would check no lengths"
    holders = (types.Array, List) if key is sum else (types.Array,)
    narrow = [kind.dtype for kind in given if isinstance(kind, holders) and kind.dtype not in WHOLE]
    is_known = name in SAFE or isinstance(function, types.Dispatcher)
    if narrow and not is_known and all(isinstance(kind, types.Number) for kind in narrow):
        yield f"{f'`{name}`' if name else 'a function'} of {narrow[0]} may have another type than NumPy's"


def _number(kind: Any) -> Any:
    """The type of the numbers of a value; None where it is of none."""
    if isinstance(kind, types.Array):
        kind = kind.dtype
    kind = unliteral(kind)
    return kind if isinstance(kind, types.Number | types.Boolean) else None
