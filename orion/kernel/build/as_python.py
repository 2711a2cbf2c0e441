"""Functions of numbers, compiled so that each result is what Python gives, to the bit and of the same type, or refused.

What Python and NumPy compute otherwise than Numba is replaced before types are known: operators, `abs`, `int` and
`float` by functions that exist for those types alone for which they do the same. Integers that would leave 64 bits,
division by zero and the like raise an error when it runs: then Python is to do it all. Python's numbers that stand in
the code adapt to float32, as NumPy has it; others may not meet it, since Numba's types do not tell them from NumPy's.
What is left (calls, subscripts, names with values of several types) is looked at once types are known.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from functools import update_wrapper
from typing import Any

import numpy as np
from numba.core import ir
from numba.core import types as numba_types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, guard
from numba.core.types import unliteral  # type: ignore[attr-defined]
from numba.core.untyped_passes import IRProcessing, TranslateByteCode
from numba.extending import overload, register_jitable

from orion.kernel.build.differing import first_of
from orion.kernel.build.local_functions import refuse_local_defaults, refuse_unbindable
from orion.kernel.build.unassigned import refuse_names_without_value, refuse_unassigned

types: Any = numba_types
INT, FLOAT, SINGLE, TRUTH = types.int64, types.float64, types.float32, types.boolean
INTEGERS = (INT, types.int32, types.int16, types.int8, types.uint32, types.uint16, types.uint8)
NUMBERS = (*INTEGERS, types.uint64, FLOAT, SINGLE, TRUTH, types.complex64, types.complex128)

EXACT_IN_DOUBLE, EXACT_IN_SINGLE = 2**53, 2**24

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
BITS = (operator.and_, operator.or_, operator.xor)
PLAIN = (operator.add, operator.sub, operator.mul, operator.truediv)

IN_PLACE = {
    operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
    operator.itruediv: operator.truediv, operator.ifloordiv: operator.floordiv, operator.imod: operator.mod,
    operator.iand: operator.and_, operator.ior: operator.or_, operator.ixor: operator.xor,
    operator.ipow: operator.pow, operator.irshift: operator.rshift, operator.ilshift: operator.lshift,
}  # fmt: skip

Implementation = Callable[..., Any] | None


# ------------------------------------------------------------ operators


def _added(a: Any, b: Any) -> Any:  # pragma: no cover - compiled, as all like it
    found = a + b
    if ((a ^ found) & (b ^ found)) < 0:
        raise OverflowError
    return found


def _subtracted(a: Any, b: Any) -> Any:  # pragma: no cover
    found = a - b
    if ((a ^ b) & (a ^ found)) < 0:
        raise OverflowError
    return found


def _multiplied(a: Any, b: Any) -> Any:  # pragma: no cover
    if abs(float(a)) * abs(float(b)) > 9e18:
        raise OverflowError
    return a * b


def _divided(a: Any, b: Any) -> Any:  # pragma: no cover
    if not (-EXACT_IN_DOUBLE <= a <= EXACT_IN_DOUBLE and -EXACT_IN_DOUBLE <= b <= EXACT_IN_DOUBLE):
        raise OverflowError
    return a / b


def _floored(a: Any, b: Any) -> Any:  # pragma: no cover
    if b == -1:
        raise OverflowError
    return a // b


def _remainder(a: Any, b: Any) -> Any:  # pragma: no cover
    if b == -1:
        raise OverflowError
    return a % b


OF_INTEGERS = {
    operator.add: _added, operator.sub: _subtracted, operator.mul: _multiplied, operator.truediv: _divided,
    operator.floordiv: _floored, operator.mod: _remainder,
}  # fmt: skip


def _binary(function: Any, a: Any, b: Any, left: bool, right: bool) -> Implementation:
    """What does an operation on numbers of these types, of which one may stand in the code. None where nothing does."""
    kinds = unliteral(a), unliteral(b)
    if kinds == (INT, INT) and function in OF_INTEGERS:
        return OF_INTEGERS[function]
    if kinds == (INT, INT) and function is operator.pow and right and getattr(b, "literal_value", None) == 2:
        return lambda a, b: _square(a)
    if kinds == (INT, INT) and function is operator.rshift and 0 <= getattr(b, "literal_value", -1) < 64:
        return _two(operator.rshift)
    if function in BITS and kinds in ((INT, INT), (TRUTH, TRUTH)):
        return _two(function)
    if function in COMPARISONS and (kinds == (TRUTH, TRUTH) or all(kind in INTEGERS for kind in kinds)):
        return _two(function)
    return _of_floats(function, kinds, left, right) if function in PLAIN + COMPARISONS else None


def _of_floats(function: Any, kinds: tuple[Any, Any], left: bool, right: bool) -> Implementation:
    match kinds:
        case (types.float64, types.float64) | (types.float32, types.float32):
            return _two(function)
    first, second = kinds
    if first == SINGLE and right and second in (FLOAT, INT):
        return lambda a, b: function(a, _single(b))
    if second == SINGLE and left and first in (FLOAT, INT):
        return lambda a, b: function(_single(a), b)
    if first == FLOAT and second in INTEGERS:
        return lambda a, b: function(a, _double(b))
    if second == FLOAT and first in INTEGERS:
        return lambda a, b: function(_double(a), b)
    return None


def _two(function: Any) -> Implementation:
    """A function in Python, which Numba wants, that does the same for two numbers."""
    return lambda a, b: function(a, b)  # noqa: PLW0108


def _one(function: Any) -> Implementation:
    """The same for one."""
    return lambda a: function(a)  # noqa: PLW0108


def _stands_for(function: Callable[[Any], Any]) -> Callable[[Callable[[Any], Implementation]], Any]:
    """Decorate what says by a number's type what is compiled in place of a function: a stand-in that is called."""

    def decorate(implementation: Callable[[Any], Implementation]) -> Any:
        def stand_in(a: Any) -> Any:
            return function(a)

        overload(stand_in, strict=False)(implementation)
        return update_wrapper(stand_in, implementation)

    return decorate


@register_jitable  # type: ignore[untyped-decorator]
def _square(a: Any) -> Any:  # pragma: no cover
    if abs(float(a)) > 3e9:
        raise OverflowError
    return a * a


@_stands_for(np.float32)
def _single(a: Any) -> Implementation:
    if unliteral(a) == FLOAT:
        return _one(np.float32)

    def single(a: Any) -> Any:  # pragma: no cover
        if not -EXACT_IN_SINGLE <= a <= EXACT_IN_SINGLE:
            raise OverflowError
        return np.float32(a)

    return single


@register_jitable  # type: ignore[untyped-decorator]
def _double(a: Any) -> Any:  # pragma: no cover
    if not -EXACT_IN_DOUBLE <= a <= EXACT_IN_DOUBLE:
        raise OverflowError
    return np.float64(a)


def _operation(function: Any, left: bool, right: bool) -> Any:
    """A function that stands for an operation, whose operands on the left or right may be Python's numbers."""

    def operation(a: Any, b: Any) -> Any:
        return function(a, b)

    @overload(operation, strict=False)  # type: ignore[untyped-decorator]
    def typed(a: Any, b: Any) -> Any:
        return _binary(function, a, b, left, right)

    return operation


OPERATIONS = {
    (function, left, right): _operation(function, left, right)
    for function in (*OF_INTEGERS, *COMPARISONS, *BITS, operator.pow, operator.rshift, operator.lshift)
    for left in (False, True)
    for right in (False, True)
}


# ------------------------------------------------------------ functions of one number


@_stands_for(operator.neg)
def _negative(a: Any) -> Implementation:
    if unliteral(a) in (FLOAT, SINGLE):
        return _one(operator.neg)
    return _one(_subtracted_from_zero) if unliteral(a) == INT else None


@register_jitable  # type: ignore[untyped-decorator]
def _subtracted_from_zero(a: Any) -> Any:  # pragma: no cover
    if a == -(2**63):
        raise OverflowError
    return -a


@_stands_for(abs)
def _absolute(a: Any) -> Implementation:
    if unliteral(a) in (FLOAT, SINGLE):
        return _one(abs)
    return (lambda a: _subtracted_from_zero(a) if a < 0 else a) if unliteral(a) == INT else None


@_stands_for(int)
def _integer(a: Any) -> Implementation:
    kind = unliteral(a)
    if kind in (FLOAT, SINGLE):

        def truncated(a: Any) -> Any:  # pragma: no cover
            if not -4e18 < a < 4e18:
                raise OverflowError
            return np.int64(a)

        return truncated
    return _one(np.int64) if kind in (*INTEGERS, TRUTH) else None


@_stands_for(float)
def _float(a: Any) -> Implementation:
    return _one(np.float64) if unliteral(a) in (*INTEGERS, FLOAT, SINGLE, TRUTH) else None


@_stands_for(math.sqrt)
def _root(a: Any) -> Implementation:
    if unliteral(a) not in (INT, FLOAT, SINGLE):
        return None

    def root(a: Any) -> Any:  # pragma: no cover
        if not a >= 0:
            raise ValueError
        return np.sqrt(np.float64(a))

    return root


UNARY = {operator.neg: _negative}
CALLS = {abs: _absolute, int: _integer, float: _float, math.sqrt: _root}
OWN = frozenset([*OPERATIONS.values(), *UNARY.values(), *CALLS.values()])


# ------------------------------------------------------------ before types are known


@register_pass(mutates_CFG=True, analysis_only=False)
class TranslateWithValues(TranslateByteCode):  # type: ignore[misc]
    """Translates bytecode, and refuses names that may have no value, and local functions with defaults."""

    _name = "orion_translate_with_values"

    def run_pass(self, state: Any) -> bool:
        function, loc = state.func_id.func, ir.Loc.from_function_id(state.func_id)
        refuse_local_defaults(function.__code__, "it", loc)
        refuse_unbindable(function.__code__, loc)
        refuse_unassigned(function, loc)
        found: bool = super().run_pass(state)
        refuse_names_without_value(state.func_ir.blocks, "it", loc)
        return found


@register_pass(mutates_CFG=False, analysis_only=False)
class Replace(FunctionPass):  # type: ignore[misc]
    """Puts the functions above in the place of operators and functions."""

    _name = "orion_as_python"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        code = state.func_ir
        for block in code.blocks.values():
            body: list[Any] = []
            for statement in block.body:
                body += _replaced(statement, code, block.scope)
            block.body = body
        code._definitions = build_definitions(code.blocks)
        return True


def _replaced(statement: Any, code: Any, scope: Any) -> list[Any]:
    value: Any = getattr(statement, "value", None)
    if isinstance(statement, ir.Assign) and isinstance(value, ir.Global | ir.FreeVar) and _in(value.value, CALLS):
        statement.value = ir.Global(value.name, CALLS[value.value], value.loc)
    if not isinstance(statement, ir.Assign) or not isinstance(value, ir.Expr):
        return [statement]
    if value.op in ("binop", "inplace_binop"):
        function = IN_PLACE.get(value.fn, value.fn)
        made = OPERATIONS.get((function, _is_python(value.lhs, code), _is_python(value.rhs, code)))
        given: tuple[Any, ...] = (value.lhs, value.rhs)
    elif value.op == "unary":
        made = UNARY.get(value.fn)
        given = (value.value,)
    elif value.op == "getattr" and value.attr == "sqrt" and _definition(value.value, code) is math:
        return [ir.Assign(ir.Global("sqrt", _root, value.loc), statement.target, statement.loc)]
    else:
        return [statement]
    if made is None:
        return [statement]
    name = scope.redefine("$as_python", statement.loc)
    called = ir.Expr.call(name, given, (), statement.loc)
    return [
        ir.Assign(ir.Global("as_python", made, statement.loc), name, statement.loc),
        ir.Assign(called, statement.target, statement.loc),
    ]


def _in(value: object, table: dict[Any, Any]) -> bool:
    try:
        return value in table
    except TypeError:
        return False


def _definition(variable: Any, code: Any) -> object:
    """What a name stands for in the code, None where that is nothing that stays the same."""
    try:
        found = guard(code.get_definition, variable)
    except KeyError:  # there are several
        return None
    return found.value if isinstance(found, ir.Const | ir.Global | ir.FreeVar) else None


def _is_python(variable: Any, code: Any) -> bool:
    """Whether it is a number of Python's that stands in the code."""
    return type(_definition(variable, code)) in (int, float)


class AsPython(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with these passes."""

    def define_pipelines(self) -> list[Any]:
        made = DefaultPassBuilder.define_nopython_pipeline(self.state)
        made.passes = [(TranslateWithValues if one is TranslateByteCode else one, name) for one, name in made.passes]
        made.add_pass_after(Replace, IRProcessing)
        made.finalize()
        return [made]


# ------------------------------------------------------------ once types are known

STATEMENTS = (ir.Assign, ir.Del, ir.Jump, ir.Branch, ir.Return, ir.StaticRaise)
EXPRESSIONS = frozenset(
    ["call", "build_tuple", "exhaust_iter", "getiter", "iternext", "pair_first", "pair_second", "null"]
)
ROOTS = frozenset([np.sqrt, np.floor, np.ceil, np.trunc, np.isnan, np.isinf, np.isfinite])
"""Functions of NumPy that are exact for floats."""


def otherwise(dispatcher: Any) -> str:
    """What a compiled function would do otherwise than Python, as far as is known; empty where nothing is."""
    return first_of(dispatcher, _of)


def _of(statement: Any, kinds: Any) -> Iterator[str]:
    if not isinstance(statement, STATEMENTS):
        yield f"a {type(statement).__name__}"
    if not isinstance(statement, ir.Assign):
        return
    value, target = statement.value, kinds[statement.target.name]
    if isinstance(value, ir.Var) and not _same(kinds[value.name], target):
        yield "a name has values of several types"
    if not isinstance(value, ir.Expr):
        return
    match value.op:
        case "phi":
            if not all(_same(kinds[one.name], target) for one in value.incoming_values if one is not ir.UNDEFINED):
                yield "a name has values of several types"
        case "cast":
            if not _same(kinds[value.value.name], target):
                yield "results have several types"
        case "call":
            yield from _of_call(value, kinds)
        case "getattr":
            if not isinstance(kinds[value.value.name], types.Module) and value.attr not in ("shape", "size", "ndim"):
                yield f"`.{value.attr}`"
        case "getitem" | "static_getitem" | "typed_getitem":
            holder = kinds[value.value.name]
            if isinstance(holder, types.Array) and target not in NUMBERS:
                yield "a part of an array"
            if not isinstance(holder, types.Array | types.BaseTuple):
                yield f"a part of {holder}"
        case "unary":
            if value.fn is not operator.not_ or unliteral(kinds[value.value.name]) not in (TRUTH, INT, FLOAT, SINGLE):
                yield f"`{value.fn.__name__}`"
        case _ if value.op not in EXPRESSIONS:
            yield f"`{value.op}`"


def _same(one: Any, other: Any) -> bool:
    return bool(unliteral(one) == unliteral(other))


def _of_call(call: Any, kinds: Any) -> Iterator[str]:
    function = kinds[call.func.name]
    given = [unliteral(kinds[argument.name]) for argument in call.args]
    if isinstance(function, types.NumberClass):
        key, is_known = None, len(given) == 1 and given[0] in CONVERTED.get(function.instance_type, ())
    elif isinstance(function, types.Dispatcher):
        key, is_known = None, True
    else:
        key = getattr(function, "typing_key", None)
        is_known = key in OWN or _is_exact(key, given)
    if call.kws or not is_known:
        yield f"`{getattr(key, '__name__', function)}`"


CONVERTED = {FLOAT: (*INTEGERS, FLOAT, SINGLE, TRUTH), SINGLE: (FLOAT, SINGLE), INT: (*INTEGERS, TRUTH)}
"""What NumPy's classes of numbers make a number of them of, as Numba does."""


def _is_exact(key: Any, given: list[Any]) -> bool:
    """Whether a function of Python's or NumPy's is the same for arguments of these types."""
    if key in ROOTS:
        return len(given) == 1 and given[0] in (FLOAT, SINGLE)
    if key is bool:
        return given[0] in (TRUTH, INT, FLOAT, SINGLE)
    if key in (min, max):
        return len(given) > 1 and len({*given}) == 1 and given[0] in (INT, FLOAT, SINGLE)
    if key is range:
        return all(kind == INT for kind in given)
    return key is len and isinstance(given[0], types.BaseTuple)
