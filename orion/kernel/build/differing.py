"""What Numba computes otherwise than Python and NumPy in a function that it compiles as it is: refused, or looked at.

Refused is what the types of a compiled function show: integers narrower than Python's or without a sign, and mixed
floats, in arithmetic, whose results NumPy keeps at their width; powers of integers by other than constants; `.flat`,
which checks no subscripts; text made of floats. Looked at when it runs is what only lengths tell: operators in place on
arrays, and masks as subscripts, which Numba does not compare with the array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numba import typeof
from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, find_callname, guard
from numba.core.types import BaseTuple, List, StringLiteral, UnicodeType, literal, unliteral  # type: ignore[attr-defined]
from numba.core.untyped_passes import IRProcessing
from numba.extending import overload, register_jitable

from orion.kernel.build.builtin_functions import array_of

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
        yield f"`{name or 'a function'}` of {narrow[0]} may have another type than NumPy's"


def _number(kind: Any) -> Any:
    """The type of the numbers of a value; None where it is of none."""
    if isinstance(kind, types.Array):
        kind = kind.dtype
    kind = unliteral(kind)
    return kind if isinstance(kind, types.Number | types.Boolean) else None


# ------------------------------------------------------------ looked at when it runs


def in_place(function: Any) -> Any:
    """An operator in place as a function that raises ValueError where its arrays do not fit."""

    def run(a: Any, b: Any) -> Any:
        return function(a, b)

    @overload(run)  # type: ignore[untyped-decorator]
    def compiled(a: Any, b: Any) -> Any:
        if not (isinstance(a, types.Array) and isinstance(b, types.Array) and b.ndim):

            def unchecked(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
                return function(a, b)

            return unchecked
        if b.ndim > a.ndim:

            def refused(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
                raise ValueError("non-broadcastable output operand")
                return a

            return refused

        def checked(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
            check_fits(a.shape, b.shape)
            return function(a, b)

        return checked

    return run


@register_jitable  # type: ignore[untyped-decorator]
def check_fits(shape: Any, other: Any) -> None:
    """Raises ValueError where an array of the other shape, which is no longer, cannot be spread out over one of this.

    >>> check_fits((2, 3), (3,)), check_fits((2, 3), (2, 1))
    (None, None)
    >>> check_fits((2, 3), (2,))
    Traceback (most recent call last):
    ValueError: operands could not be broadcast together
    """
    for axis in range(len(other)):
        if other[axis] != 1 and other[axis] != shape[axis + len(shape) - len(other)]:
            raise ValueError("operands could not be broadcast together")


@register_jitable  # type: ignore[untyped-decorator]
def as_it_is(value: Any) -> Any:
    """The value. What Numba finds by its definition, it does not find behind a call.

    >>> as_it_is([1, 2])
    [1, 2]
    """
    return value


def check_mask(array: Any, index: Any) -> None:
    """Raises IndexError where a mask has another length than the array.

    >>> check_mask(np.zeros(3), np.array([True, False]))
    Traceback (most recent call last):
    IndexError: boolean index did not match indexed array
    """
    if isinstance(index, np.ndarray) and index.dtype == np.bool_ and index.shape != array.shape[: index.ndim]:
        raise IndexError("boolean index did not match indexed array")


@overload(check_mask)  # type: ignore[untyped-decorator]
def _check_mask(array: Any, index: Any) -> Any:
    parts = tuple(index) if isinstance(index, BaseTuple) else (index,)
    if not isinstance(array, types.Array) or not any(map(_is_mask, parts)):

        def nothing(array: Any, index: Any) -> None:  # pragma: no cover - compiled
            pass

        return nothing
    if not isinstance(index, BaseTuple):

        def checked(array: Any, index: Any) -> None:  # pragma: no cover - compiled
            if index.shape != array.shape[: index.ndim]:
                raise IndexError("boolean index did not match indexed array")

        return checked
    raise TypeError("masks among several subscripts are not looked at")


def _is_mask(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.dtype == types.boolean


IN_PLACE = {
    function: in_place(function)
    for function in (
        operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod,
        operator.ipow, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift,
    )
}  # fmt: skip
"""Operator in place → what is compiled for it. There is none for sets."""


@register_pass(mutates_CFG=False, analysis_only=False)
class LookAtLengths(FunctionPass):  # type: ignore[misc]
    """Puts what looks at lengths before what Numba does without looking."""

    _name = "orion_look_at_lengths"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        called = {part.func.name for block in state.func_ir.blocks.values() for part in block.find_exprs("call")}
        for block in state.func_ir.blocks.values():
            body = []
            for one in block.find_insts(ir.Assign):
                is_complex = isinstance(one.value, ir.Global) and one.value.value is complex
                if is_complex and one.target.name not in called:
                    one.value = ir.Global("complex128", np.complex128, one.loc)  # Numba has no dtype of that name
            for statement in block.body:
                body += [*_with_array_of(statement, state.func_ir, block.scope), *_looked_at(statement, block.scope)]
            block.body = body
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


def _looked_at(statement: Any, scope: Any) -> list[Any]:
    value = getattr(statement, "value", None)
    if isinstance(statement, ir.Assign) and isinstance(value, ir.Expr):
        if value.op == "inplace_binop" and value.fn in IN_PLACE:
            before, called = _call(IN_PLACE[value.fn], (value.lhs, value.rhs), scope, statement.loc)
            return [*before, ir.Assign(called, statement.target, statement.loc)]
        if value.op == "getitem":
            return [*_check(value.value, value.index, scope, statement.loc), statement]
    if isinstance(statement, ir.SetItem):
        return [*_check(statement.target, statement.index, scope, statement.loc), statement]
    return [statement]


def _with_array_of(statement: Any, func_ir: Any, scope: Any) -> list[Any]:
    """What keeps a list that is given to `np.array`, in place of which a function of Orion's is called. Numba would
    make the list itself an array there, also where it is used afterwards, and one of the length that its loop's bounds
    tell, which may be negative."""
    value: Any = getattr(statement, "value", None)
    if guard(find_callname, func_ir, value) != ("array", "numpy") or not value.args:
        return []
    before, called = _call(as_it_is, value.args[:1], scope, statement.loc)
    kept = scope.redefine("$kept", statement.loc)
    made, own = _call(array_of, (kept, *value.args[1:]), scope, statement.loc)
    value.func, value.args = own.func, own.args
    return [*before, ir.Assign(called, kept, statement.loc), *made]


def _check(array: Any, index: Any, scope: Any, loc: Any) -> list[Any]:
    before, called = _call(check_mask, (array, index), scope, loc)
    return [*before, ir.Assign(called, scope.redefine("$looked_at", loc), loc)]


def _call(function: Any, arguments: tuple[Any, ...], scope: Any, loc: Any) -> tuple[list[Any], Any]:
    name = scope.redefine("$look", loc)
    made = ir.Assign(ir.Global(function.__name__, function, loc), name, loc)
    return [made], ir.Expr.call(name, arguments, (), loc)


class LookingCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with that pass."""

    def define_pipelines(self) -> list[Any]:
        made = DefaultPassBuilder.define_nopython_pipeline(self.state)
        made.add_pass_after(LookAtLengths, IRProcessing)
        made.finalize()
        return [made]
