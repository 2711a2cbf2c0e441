"""A program written out as one text again, as if nothing had been taken apart: to compare it with its function."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from orion.ir.nodes import Assign, Break, Choose, Const, Expr, For, If, Node, Range, Stmt, Unary, Var, While
from orion.ir.program import SYNTHETIC, Branch, Repeat, RunLoop, Scalars, Step
from orion.ir.rewriting import rewrite
from orion.ir.spans import without_spans

N = TypeVar("N", bound=Node)


def text_of(steps: Iterable[Step], loops: Mapping[int, tuple[For, ...]]) -> tuple[Stmt, ...]:
    """The statements that steps run, `loops` being those that planned loops stand for."""
    return tuple(part for step in steps for part in _texts(step, loops))


def _texts(step: Step, loops: Mapping[int, tuple[For, ...]]) -> Iterator[Stmt]:
    match step:
        case Scalars(body):
            yield from body
        case RunLoop(number):
            yield from loops[number]
        case Repeat(loop, inner):
            yield replace(loop, body=text_of(inner, loops))
        case Branch(statement, (then, orelse)):
            yield replace(statement, body=text_of(then, loops), orelse=text_of(orelse, loops))


def inlined(body: Sequence[Stmt], names: Collection[str]) -> tuple[Stmt, ...]:
    """Return a text without names that a program has beside its function's.

    Such a name is assigned right before the one statement that reads it, in its test or its bounds. Those are evaluated
    once; the test of a `while` is evaluated in each round. A test `True if v else False` becomes `v`.
    """
    found: list[Stmt] = []
    values: dict[str, Expr] = {}
    for statement in body:
        match statement:
            case Assign(Var(name), value) if name in names:
                values[name] = value
                continue
            case For(Range() as space, inner):
                changed: Stmt = replace(statement, space=_with(space, values), body=inlined(inner, names))
            case While(Const(True), (Assign(Var(name)), If(Unary("not", Var(test)), (Break(),), ()), *_) as inner) if (
                name == test and name in names
            ):  # what each round tests
                (leaves, *rest) = inlined(inner, names)
                assert isinstance(leaves, If)
                assert isinstance(leaves.test, Unary)
                changed = replace(statement, test=_tested(leaves.test.operand), body=tuple(rest))
            case For(_, inner) | While(_, inner):
                changed = replace(statement, body=inlined(inner, names))
            case If(test, then, orelse):
                sides = inlined(then, names), inlined(orelse, names)
                changed = replace(statement, test=_tested(_with(test, values)), body=sides[0], orelse=sides[1])
            case _:
                changed = statement
        values.clear()
        found.append(changed)
    return tuple(found)


def _with(node: N, values: Mapping[str, Expr]) -> N:
    def value(expr: Expr) -> Expr:
        return values.get(expr.name, expr) if isinstance(expr, Var) else expr

    return rewrite(node, value) if values else node


def _tested(test: Expr) -> Expr:
    """What is tested, without the two truth values that a name for it is given of what is none."""
    match test:
        case Choose(value, Const(True), Const(False)):
            return value
    return test


def bare(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """A text without places in the source, and without the loops of one trip around statements that run once."""
    return tuple(part for statement in body for part in _bare(statement))


def _bare(statement: Stmt) -> Iterator[Stmt]:
    match statement:
        case For(Range(_, Const(0), Const(1), Const(1)), body, index) if index == SYNTHETIC:
            yield from bare(body)
        case For(_, body) | While(_, body):
            yield without_spans(replace(statement, body=bare(body)))
        case If(_, body, orelse):
            yield without_spans(replace(statement, body=bare(body), orelse=bare(orelse)))
        case _:
            yield without_spans(statement)
