"""That iterations after the one which ends a loop may run: they do nothing that counts, and nothing in them can fail.

    set at the exit    from each place that gives s a value, every way on comes to the `break` of the loop
    no effect          no element of an array is written, and no function is called but such as have a result alone
    no failure         no subscript leaves its array in any iteration of the whole range; no division of Python's
                       numbers but by a number that is not 0, no power of integers but to a number that is not negative

Read from the text. What the plan says of it, and how the planner found it, is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.errors import PlanError
from orion.ir.assigned import assigned_names, own_level
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Evaluate,
    Expr,
    For,
    If,
    Return,
    Slice,
    Stmt,
    Subscript,
    Unary,
    Update,
    Var,
    While,
    every,
    walk,
)  # fmt: skip
from orion.ir.program import LoopNest
from orion.typing.expression_types import Typing
from orion.verify.events import Iterations
from orion.verify.text_values import any_of

if TYPE_CHECKING:
    import islpy as isl

WITHOUT_EFFECT = ("np.", "math.", "orion.random", "abs", "bool", "float", "int", "max", "min", "round")
"""What the names of functions that may be called begin with, whose arguments are scalars."""


def is_ended_by_first(nest: LoopNest) -> bool:
    """Whether iterations after the one that ends a loop are said to be such that they may run."""
    return any(isinstance(one, Break) and one.is_first for one in own_level(nest.body))


def prove_unended(nest: LoopNest) -> None:
    """PlanError where a loop that is run in several tiles may be ended otherwise than by the first such `break`."""
    for loop in nest.loops:
        ends = [one for one in own_level(loop.body) if isinstance(one, Break)]
        if any(every(Return, *loop.body)) or any(not one.is_first or loop is not nest.loops[-1] for one in ends):
            raise PlanError("the loop may end early, and is run in several tiles")


def prove_harmless(nest: LoopNest, found: Iterations, typing: Typing, at_call: isl.Set, context: isl.Context) -> None:
    """PlanError where iterations after the end may do something, or fail."""
    for node in (node for statement in nest.body for node in walk(statement)):
        what = _effect(node) or (_failure(node, typing) if isinstance(node, Expr) else None)
        if what is not None:
            raise PlanError(f"iterations after the one that ends the loop run, and there is {what}")
    known = {(event.node.span, one.axis) for event in found.events if isinstance(event.node, Subscript)
             for one in event.leaving}  # fmt: skip
    for part in every(Subscript, *nest.body):
        if any((part.span, axis) not in known for axis in range(len(part.index))):
            raise PlanError(f"iterations after the one that ends the loop run, and where {part.base.name} is read then "
                            "is not known")  # fmt: skip
    for event in found.events:
        outside = [one.outside for one in event.leaving]
        if outside and not found.instances(event, any_of(outside), context).intersect_params(at_call).is_empty():
            raise PlanError(f"iterations after the one that ends the loop run, and may leave {event.array}")


def _effect(node: object) -> str | None:
    match node:
        case Assign(Subscript()) | Update(Subscript()):
            return "an element that is written"
        case Bind() | Evaluate() | While():
            return "more than scalars that are given values"
        case Call(function) if not function.startswith(WITHOUT_EFFECT):
            return f"a call of {function}"
        case _:
            return None


def _failure(node: Expr, typing: Typing) -> str | None:
    match node:
        case Slice():
            return "a part of an array"
        case Binary("/" | "//" | "%", left, right) if typing.of(left).weak and typing.of(right).weak:
            return None if _literal(right) else "a division by what may be 0"
        case Binary("**", left, right) if typing.of(left).is_integer and typing.of(right).is_integer:
            return None if isinstance(right, Const) else "a power that may be none"
        case Call("orion.random.integers"):
            return "a range of random numbers that may be empty"
        case Call("np.power") if typing.of(node).is_integer:
            return "a power that may be none"
        case Call(arguments=arguments) if any(typing.of(one).rank for one in arguments):
            return "a function of an array"
        case _:
            return None


def _literal(part: Expr) -> object:
    """The number that is written there, without its sign; None for anything else."""
    part = part.operand if isinstance(part, Unary) else part
    return part.value if isinstance(part, Const) else None


# ------------------------------------------------------------ scalars that have their values from the exit


@dataclass(frozen=True, slots=True)
class _After:
    """What comes after a place: the rest of its block, and what comes after that block. `is_loop`: the block is the
    body of a loop inside of the one that is looked at."""

    rest: Sequence[Stmt]
    outer: _After | None
    is_loop: bool


def prove_set_at_exit(name: str, body: Sequence[Stmt]) -> None:
    """PlanError where an iteration may give a scalar a value and be followed by another one."""
    for statement, after in _places(body, _After((), None, False)):
        if name in _own_names(statement) and (isinstance(statement, For) or not _comes_to_break(after, {})):
            raise PlanError(f"`{name}` has a value from an iteration that may be followed by others")


def _places(body: Sequence[Stmt], outer: _After, is_loop: bool = False) -> Iterator[tuple[Stmt, _After]]:
    """All statements, each with what comes after it, itself as the first, as its value may be a number."""
    for number, statement in enumerate(body):
        yield statement, _After(body[number:], outer, is_loop)
        after = _After(body[number + 1 :], outer, is_loop)
        match statement:
            case If(_, then, orelse):
                yield from (*_places(then, after), *_places(orelse, after))
            case For(_, inner) | While(_, inner):
                yield from _places(inner, after, True)
            case _:
                pass


def _own_names(statement: Stmt) -> set[str]:
    match statement:
        case If() | While():
            return set()
        case For(space):
            return assigned_names((For(space, (), statement.index, statement.span),))
        case _:
            return assigned_names((statement,))


def _comes_to_break(at: _After, numbers: Mapping[str, object]) -> bool:
    """Whether all ways from a place come to the `break` of the loop, where names have these numbers."""
    while True:
        if not at.rest:
            if at.outer is None or at.is_loop:
                return False  # another trip, of the loop or of one inside it
            at = at.outer
            continue
        statement, *rest = at.rest
        at = _After(rest, at.outer, at.is_loop)
        match statement:
            case Break():
                inner = _inner_loop(at)
                if inner is None:
                    return True
                at = inner
            case Continue() | Return():
                return False
            case If(test, then, orelse):
                holds = _holds(test, numbers)
                sides = [side for side, wanted in ((then, True), (orelse, False)) if holds in (None, wanted)]
                return all(_comes_to_break(_After(side, at, False), numbers) for side in sides)
            case Assign(Var(name), Const(value)):
                numbers = {**numbers, name: value}
            case _:
                lost = assigned_names((statement,))
                numbers = {name: number for name, number in numbers.items() if name not in lost}


def _inner_loop(at: _After) -> _After | None:
    """What comes after the innermost loop around a place; None where that is the one that is looked at."""
    found: _After | None = at
    while found is not None and not found.is_loop:
        found = found.outer
    return None if found is None else found.outer


def _holds(test: Expr, numbers: Mapping[str, object]) -> bool | None:
    match test:
        case Compare(("==" | "!=" as op,), (Var(name), Const(value))) if name in numbers:
            return (numbers[name] == value) == (op == "==")
        case _:
            return None
