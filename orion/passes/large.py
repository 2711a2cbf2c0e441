"""Integers above 2**63 that are written as numbers: those that meet integers of 64 bits without a sign.

    h ^= x[i] & 0xFFFFFFFFFFFFFFFF          # `x` of uint64: NumPy takes the number for one, and so does the loop

Python's own integers have no such limit, so that a number which meets one of these is refused: what Python computes of
both may need more than 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from orion.ir.function import Function
from orion.ir.nodes import Assign, Binary, Call, Compare, Const, Expr, Node, Subscript, Update, children, every
from orion.ir.refuse import unsupported
from orion.typing.expression_types import Typing

FIRST = 2**63
LARGE = "np.uint64"
WHY = "integers have 64 bits in a compiled loop, Python's as many as they need"


def refuse_large_numbers(function: Function, typing: Callable[[], Typing]) -> Function:
    """Return the function, or raise UnsupportedLoopError where such a number meets anything else. Helpers count too; of
    those that are compiled by themselves, only explicit conversions are known."""
    calls = [*every(Call, *function.body)]
    called = {call.function.removeprefix("helper:") for call in calls}
    for helper in function.helpers:
        if helper.name in called:
            _refuse_first(helper, None)
    if any(map(is_large, calls)):
        _refuse_first(function, typing())
    return function


def _refuse_first(function: Function, typing: Typing | None) -> None:
    for number in (found for statement in function.body for found in _meeting_others(statement, typing)):
        value = number.arguments[0]
        assert isinstance(value, Const)
        hint = f"write `np.uint64({value.value})`, and the same of what it meets: `np.uint64(x)`"
        what = f"{value.value} is too large"
        raise unsupported(what, number.span, function.source, why=WHY, hint=hint)


def is_large(expr: Node) -> bool:
    """Whether it is such a number, as the parser writes it; `np.uint64(…)` of one in the source is a call of that."""
    match expr:
        case Call(function, (Const(int(value)),)) if function == LARGE:
            return value >= FIRST
        case _:
            return False


def _meeting_others(node: Node, typing: Typing | None) -> Iterator[Call]:
    """The numbers in some code that meet something else than an integer of 64 bits without a sign."""
    for part in children(node):
        if not is_large(part):
            yield from _meeting_others(part, typing)
        elif not any(_is_unsigned(one, typing) for one in _met(node, part)):
            assert isinstance(part, Call)
            yield part


def _is_unsigned(expr: Expr, typing: Typing | None) -> bool:
    if typing is None:
        return isinstance(expr, Call) and expr.function == LARGE
    return typing.of(expr).dtype == LARGE.removeprefix("np.")


def _met(node: Node, part: Node) -> Iterator[Expr]:
    """What a part of some code meets in it, or is converted to."""
    match node:
        case Binary(_, left, right):
            yield right if part is left else left
        case Compare(_, operands):
            yield from (one for one in operands if not is_large(one))
        case Update(target) | Assign(Subscript() as target):
            yield target
        case Call(function) if function == LARGE:
            yield node
        case _:
            pass
