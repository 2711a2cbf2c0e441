"""What kernels refuse, found before any is made, so that a plan refuses it as the call does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from orion.errors import UnsupportedLoopError
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Call,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    Node,
    Range,
    Stmt,
    Subscript,
    Update,
    Var,
    While,
    every,
    walk,
)  # fmt: skip
from orion.ir.refuse import unsupported
from orion.passes.writes import written_parameters
from orion.typing.expression_types import Typing
from orion.typing.functions import Form, form_of, writes
from orion.typing.value_type import ValueType, fits

OF_RESULT = frozenset({"min", "max", "np.minimum", "np.maximum", "np.clip"})
"""Functions whose arguments are converted to the dtype of the result, where that is a scalar."""


def refuse_in_kernels(function: Function, bodies: Iterable[tuple[Stmt, ...]], typing: Typing) -> None:
    """Refuse numbers that do not fit the dtypes they meet, and calls inside expressions that write arrays. `bodies` are
    those of planned loops. Raises UnsupportedLoopError."""
    for node in (node for body in bodies for statement in body for node in walk(statement)):
        for made in every(Call, *_evaluated(node)):
            if written_arguments(made, function, typing.of):
                raise _refused(function, made, hidden_write(made))
        for number, dtype in _met(node, typing):
            value = number.value
            if value is not None and not fits(value, dtype):
                raise _refused(function, number, misfit(value, dtype))


def _refused(function: Function, expr: Expr, said: tuple[str, str, str]) -> UnsupportedLoopError:
    what, why, hint = said
    return unsupported(what, expr.span, function.source, why=why, hint=hint)


# ---------------------------------------------------------------- numbers that do not fit


def misfit(value: complex, dtype: str) -> tuple[str, str, str]:
    """Return the words for a number that does not fit a dtype: what, why, and what to write."""
    hint = "use a number that fits, or convert the array: `x.astype(np.int64)`"
    return f"{value} does not fit {dtype}", "NumPy raises an OverflowError", hint


def _met(node: Node, typing: Typing) -> Iterator[tuple[Const, str]]:
    """The numbers that are operands of a node, each with the dtype that NumPy converts it to."""
    match node:
        case Assign(Subscript() as target, Const() as value):
            yield from _numbers((value,), typing.of(target))
        case Update(target, op, Const() as value):
            kind = typing.of(target)
            yield from _numbers((value,), kind if isinstance(target, Subscript) else _result(op, target, value, typing))
        case Binary(op, left, right) if isinstance(left, Const) or isinstance(right, Const):
            yield from _numbers((left, right), _result(op, left, right, typing))
        case Call(function, arguments) if any(isinstance(one, Const) for one in arguments):
            meets = _meeting(node, function, arguments, typing)
            if meets is not None:
                yield from _numbers(arguments, meets)


def _result(op: str, left: Expr, right: Expr, typing: Typing) -> ValueType:
    return typing.of(Binary(op, left, right, left.span))


def _meeting(node: Call, function: str, arguments: tuple[Expr, ...], typing: Typing) -> ValueType | None:
    """The type that Python's numbers take among the arguments of a call, if they take any."""
    if function in OF_RESULT and len(arguments) > 1 and not typing.of(node).rank:
        return typing.of(node)
    if form_of(function) is not Form.ELEMENTS:
        return None
    strong = {kind.dtype: kind for kind in map(typing.of, arguments) if not kind.weak}
    return next(iter(strong.values())) if len(strong) == 1 else None


def _numbers(operands: Iterable[Expr], kind: ValueType) -> Iterator[tuple[Const, str]]:
    if kind.is_integer and not kind.weak:
        yield from ((one, kind.dtype) for one in operands if isinstance(one, Const))


# ---------------------------------------------------------------- calls that write, inside expressions


def hidden_write(made: Call) -> tuple[str, str, str]:
    """Return the words for a call inside an expression that may write an array: what, why, and what to write."""
    name = made.function.removeprefix("helper:")
    what = f"`{name}` may write an array, and is called inside an expression or a test"
    why = "what the rest of it reads depends on when the call is made"
    return what, why, f"call it on a line of its own, `t = {name}(…)`, and use `t`"


def written_arguments(made: Call, function: Function, type_of: Callable[[Expr], ValueType]) -> tuple[int, ...]:
    """The positions of the arguments that a call may write in place."""
    if not made.function.startswith("helper:"):
        return (0,) if writes(made.function) else ()
    ranks = tuple(type_of(argument).rank for argument in made.arguments)
    return written_parameters(function, made.function.removeprefix("helper:"), ranks)


def _evaluated(node: Node) -> tuple[Node, ...]:
    """What a statement itself evaluates, but for a call that is all of it: what is read before and after a call that
    writes could be the same rows in registers."""
    match node:
        case Assign(target, Call(_, arguments)) | Update(Var() as target, _, Call(_, arguments)):
            return (target, *arguments)
        case Evaluate(Call(_, arguments)):
            return arguments
        case If(test, _, _) | While(test, _):
            return (test,)
        case For(Range() as space, _):
            return (space,)
        case Assign() | Update() | Bind() | Evaluate():
            return (node,)
        case _:
            return ()
