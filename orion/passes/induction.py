"""Integers that grow by a constant in every trip of a loop, replaced by their values in terms of the loop's variable.

Let the loop run t = 0, 1, …, T - 1, and let each trip add c1, …, cm, with sum C, to the integer k, in this order, at
the top level of its body. Where nothing else in the loop assigns k and no trip is left early, k is in trip t, after the
first p of the additions,

    k = k0 + C·t + c1 + … + cp,        and after the loop        k = k0 + C·T,

k0 being its value before the loop (Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, section 4.5;
Pottenger and Eigenmann, ICS 1995). The loop then carries no value of k, and subscripts in which k stands are affine
where k0 is. Loops further in come first: where T is a constant, `k = k + C·T` is an addition of the loop around.

Integers only. A float that is increased again and again is rounded each time, k0 + C·t only once: other values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from orion.ir import sums
from orion.ir.assigned import assignments, leaves_loop, mentions
from orion.ir.constants import constant_value
from orion.ir.function import Function, Induction
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Call,
    Const,
    Count,
    Dim,
    Elements,
    Expr,
    For,
    If,
    Pass,
    Range,
    Return,
    Stmt,
    Unary,
    Update,
    Var,
    While,
    count_names,
    every,
    holds,
)  # fmt: skip
from orion.ir.rewriting import rewrite
from orion.ir.spans import with_span
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.narrow import is_narrow


def close_inductions(function: Function, typing: Typing) -> Function:
    """The function with its induction variables replaced; `inductions` says which they are."""
    closer = _Closer(typing)
    body = closer.block(function.body)
    if not closer.found:
        return function
    for name in dict.fromkeys(induction.name for induction in closer.found):
        body = _without_unused(name, body)
    return replace(function, body=body, inductions=tuple(closer.found))


@dataclass(slots=True)
class _Closer:
    typing: Typing
    found: list[Induction] = field(default_factory=list)

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements. `known` are the values of names where one stands, in terms of names that have kept theirs."""
        done: list[Stmt] = []
        known: dict[str, Expr] = {}
        for statement in body:
            for new in self.statement(statement, known):
                done.append(new)
                changed = set(_assigned((new,)))
                known = {k: v for k, v in known.items() if k not in changed and not mentions(v, changed)}
                match new:
                    case Assign(Var(name), value) if self.isconstant_value(value) and not mentions(value, {name}):
                        known[name] = value
                    case _:
                        pass
        return tuple(done)

    def isconstant_value(self, value: Expr) -> bool:
        """Whether a value is a Python integer made of others by what the loop language takes for affine."""
        kinds = [self.typing.names.get(node.name) for node in every(Var, value)]
        return _is_simple(value) and all(kind is not None and kind.dtype == "int64" and not kind.rank for kind in kinds)

    def statement(self, statement: Stmt, known: dict[str, Expr]) -> tuple[Stmt, ...]:
        match statement:
            case If(_, body, orelse):
                return (replace(statement, body=self.block(body), orelse=self.block(orelse)),)
            case While(_, body):
                return (replace(statement, body=self.block(body)),)
            case For(space, body):
                loop, after = replace(statement, space=space, body=self.block(body)), []
                steps = _steps(loop.body) if isinstance(space, Range) else {}
                loop = replace(loop, space=self.plain(space)) if steps else loop
                changed = set(_assigned((loop,)))
                for name in steps:
                    if self.is_closed(name, loop):
                        start = known.get(name)
                        if start is None or mentions(start, changed):
                            start = Var(name, loop.span)
                        loop, end = self.close(name, loop, start)
                        after.append(end)
                return (loop, *after)
            case _:
                return (statement,)

    def plain(self, space: Range | Elements) -> Range | Elements:
        """The range with bounds that are Python integers: sums are made of them."""
        if not isinstance(space, Range):
            return space
        start, stop = (self.pythonconstant_value(bound) for bound in (space.start, space.stop))
        return replace(space, start=start, stop=stop)

    def pythonconstant_value(self, bound: Expr) -> Expr:
        is_other = _is_simple(bound) and is_narrow(self.typing.of(bound).dtype)
        return Call(INTEGER, (bound,), bound.span) if is_other else bound

    def is_closed(self, name: str, loop: For) -> bool:
        """Whether a name that the loop increases has its value by the formula in each trip, and is read there."""
        space, body = loop.space, loop.body
        assert isinstance(space, Range)
        kind = self.typing.names.get(name)
        updates = [statement for statement in body if _step(statement, name) is not None]
        changed = _assigned(body)
        reads = count_names(body, name) - count_names(updates, name)
        fixed = [bound for bound in (space.start, space.stop) if _is_simple(bound)]
        return (
            kind is not None and kind.dtype == "int64" and kind.rank == 0 and reads > 0
            and changed.count(name) == len(updates) and space.var not in changed
            and constant_value(space.step) not in (None, 0) and len(fixed) == 2
            and not any(count_names(fixed, other) for other in changed if other != name)
            and not any(leaves_loop(s) or holds(Return, s) for s in body)
        )  # fmt: skip

    def close(self, name: str, loop: For, start: Expr) -> tuple[For, Stmt]:
        """The loop without the additions to `name`, whose value before it is `start`, and the assignment of its value
        after the loop."""
        space = loop.space
        assert isinstance(space, Range)
        steps = _steps(loop.body)[name]
        total, before = sum(steps), 0
        body: list[Stmt] = []
        for statement in loop.body:
            step = _step(statement, name)
            if step is None:
                body.append(_replaced(statement, name, space, total, before, start))
            else:
                before += step
        last = next(s.span for s in reversed(loop.body) if _step(s, name) is not None)
        self.found.append(Induction(name, total, loop.index, last))
        end = _product(total, _trips(space, last), last)
        value = sums.total(with_span(start, last), end)
        return replace(loop, body=tuple(body) or (Pass(last),)), Assign(Var(name, last), value, last)


def _replaced(statement: Stmt, name: str, space: Range, total: int, before: int, start: Expr) -> Stmt:
    """The statement with the value of `name` in terms of the loop variable."""

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Var) or expr.name != name:
            return expr
        known = constant_value(start)
        offset = _grown(space, total, before + (known or 0), expr.span)
        return offset if known is not None else sums.total(with_span(start, expr.span), offset)

    return rewrite(statement, change)


def _grown(space: Range, total: int, constant: int, span: Span) -> Expr:
    """`total · trip + constant`, the trip being (var - start) / step."""
    step, start, var = constant_value(space.step), constant_value(space.start), Var(space.var, span)
    assert step is not None
    if total % step == 0 and start is not None:
        factor = total // step
        return sums.plus(_product(factor, var, span), constant - factor * start)
    apart: Expr = var
    if start != 0:
        is_up = step > 0 or total % step == 0
        apart = Binary("-", var, space.start, span) if is_up else Binary("-", space.start, var, span)
    elif step < 0 and total % step:
        apart = Unary("-", var, span)
    if total % step == 0:
        return sums.plus(_product(total // step, apart, span), constant)
    return sums.plus(_product(total, Binary("//", apart, Const(abs(step), span), span), span), constant)


def _trips(space: Range, span: Span) -> Expr:
    """How many trips a range makes: max(0, -((start - stop) // step))."""
    start, stop, step = (constant_value(bound) for bound in (space.start, space.stop, space.step))
    assert step is not None
    if start is not None and stop is not None:
        return Const(len(range(start, stop, step)), span)
    if step == 1:
        length: Expr = space.stop if start == 0 else Binary("-", space.stop, space.start, span)
    elif step == -1:
        length = Binary("-", space.start, space.stop, span)
    else:
        apart = Binary("-", space.start, space.stop, span)
        length = Unary("-", Binary("//", apart, Const(step, span), span), span)
    return Call("max", (Const(0, span), length), span)


# ------------------------------------------------------------ arithmetic


def _product(factor: int, value: Expr, span: Span) -> Expr:
    match value:
        case Const(int(number)):
            return Const(factor * number, span)
        case _ if factor == 1:
            return value
        case _ if factor == -1:
            return Unary("-", value, span)
        case _:
            return Binary("*", Const(factor, span), value, span)


# ------------------------------------------------------------ what a loop body does


def _steps(body: Iterable[Stmt]) -> dict[str, list[int]]:
    """The names to which statements of a body add a constant, with the constants in turn."""
    found: dict[str, list[int]] = {}
    for statement in body:
        match statement:
            case Update(Var(name)) | Assign(Var(name)):
                step = _step(statement, name)
                if step is not None:
                    found.setdefault(name, []).append(step)
            case _:
                pass
    return found


def _step(statement: Stmt, name: str) -> int | None:
    """The constant that the statement adds to `name`; None where it is no such addition."""
    step: int | None
    match statement:
        case Update(Var(target), "+" | "-" as op, value) if target == name:
            step = constant_value(value)
        case Assign(Var(target), Binary("+" | "-" as op, Var(first), value)) if target == first == name:
            step = constant_value(value)
        case Assign(Var(target), Binary("+" as op, value, Var(second))) if target == second == name:
            step = constant_value(value)
        case _:
            return None
    return step if step is None or op == "+" else -step


def _is_simple(bound: Expr) -> bool:
    """Whether an expression has the same value wherever its names have: it reads no array and calls nothing."""
    match bound:
        case Const(int()) | Var() | Dim() | Count():
            return True
        case Unary("-", operand):
            return _is_simple(operand)
        case Call(function, (operand,)) if function == INTEGER:
            return _is_simple(operand)
        case Binary("+" | "-" | "*" | "//" | "%", left, right):
            return _is_simple(left) and _is_simple(right)
        case Call("min" | "max", parts) if len(parts) > 1:
            return all(map(_is_simple, parts))
        case _:
            return False


def _assigned(body: Iterable[Stmt]) -> list[str]:
    """The names that the statements bind, once for each place that does."""
    return [name for statement in body for name, _ in assignments(statement)]


def _without_unused(name: str, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements without assignments to a name that nothing else reads."""
    own = [n for n in every(Assign, *body) if _is_own(n, name)]
    if count_names(body, name) > count_names(own, name):
        return body
    return _cleared(body, name)


def _cleared(body: tuple[Stmt, ...], name: str) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for statement in body:
        match statement:
            case If(_, inner, orelse):
                found.append(replace(statement, body=_cleared(inner, name), orelse=_cleared(orelse, name)))
            case For(_, inner) | While(_, inner):
                found.append(replace(statement, body=_cleared(inner, name)))
            case _ if not _is_own(statement, name):
                found.append(statement)
    return tuple(found) or tuple(Pass(statement.span) for statement in body[:1])


def _is_own(statement: Stmt, name: str) -> bool:
    match statement:
        case Assign(Var(target), value):
            return target == name and _is_simple(value)
        case _:
            return False
