"""Integers that grow by a constant in every trip of a loop, replaced by their values in terms of the loop's variable.

Let the loop run t = 0, 1, …, T - 1, and let each trip add c1, …, cm, with sum C, to the integer k, in this order, at
the top level of its body; both sides of a branch may begin with the same addition. Where nothing else in the loop
assigns k and no trip is left early, k is in trip t, after the first p of the additions,

    k = k0 + C·t + c1 + … + cp,        and after the loop        k = k0 + C·T,

k0 being its value before the loop (Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, section 4.5;
Pottenger and Eigenmann, ICS 1995). The loop then carries no value of k, and subscripts in which k stands are affine
where k0 is. Loops further in come first: `k = k + C·T` is an addition of the loop around.

Where C is no number, products of names are no affine subscripts either. Such a name is replaced where nothing is stored
by it: then it is what it is for reads, and the loop carries it no longer. Where the step of the loop is no number, each
trip would have to divide.

A float that is increased again and again is rounded each time, k0 + C·t only once: other values. Whole numbers are not
rounded as long as 53 bits hold them, so that floats that begin with one, and grow by others, are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orion.dataclass import dataclass, field, replace
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
    Subscript,
    Unary,
    Update,
    Var,
    While,
    count_names,
    every,
    holds,
)  # fmt: skip
from orion.ir.rewriting import rewrite, with_new
from orion.ir.spans import with_span
from orion.ir.sums import literal
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.narrow import is_narrow

WHOLE_START, WHOLE_STEP = 2**40, 2**9
"""The greatest floats that count as whole numbers where one begins with them, and where it grows by them."""


def close_inductions(function: Function, typing: Typing) -> Function:
    """The function with its induction variables replaced; `inductions` says which they are."""
    closer = _Closer(typing)
    body = closer.block(function.body)
    if not closer.found:
        return function
    for name in dict.fromkeys(induction.name for induction in closer.found):
        body = _without_unused(name, body)
    return with_new(function, body=body, inductions=tuple(closer.found))


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
                    case Assign(Var(name), value) if (number := _whole(value, WHOLE_START)) is not None:
                        known[name] = number
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
                loop, after = replace(statement, space=space, body=with_plain_steps(self.block(body))), []
                steps = _steps(loop.body) if isinstance(space, Range) else {}
                loop = replace(loop, space=self.plain(space)) if steps else loop
                changed = set(_assigned((loop,)))
                for name in steps:
                    if self.is_closed(name, loop) and (self.is_integer(name) or name in known):
                        start = known.get(name)
                        if start is None or mentions(start, changed):
                            start = Var(name, loop.span)
                        loop, end = self.close(name, loop, start)
                        after.append(end)
                return (loop, *after) if after else (replace(statement, space=space, body=self.block(body)),)
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
        updates = [statement for statement in body if _step(statement, name) is not None]
        changed = _assigned(body)
        reads = count_names(body, name) - count_names(updates, name)
        growing = (space.step, *_steps(body)[name])
        fixed = (space.start, space.stop, *growing)
        return (
            (self.is_integer(name) or self.is_whole(name, growing[1:])) and reads > 0
            and changed.count(name) == len(updates) and space.var not in changed
            and constant_value(space.step) not in (None, 0) and all(map(_is_simple, fixed))
            and not any(count_names(fixed, other) for other in (*changed, space.var) if other != name)
            and not any(leaves_loop(s) or holds(Return, s) for s in body)
            and (None not in map(constant_value, growing) or self.only_reads(name, body, growing[1:]))
        )  # fmt: skip

    def is_integer(self, name: str) -> bool:
        kind = self.typing.names.get(name)
        return kind is not None and kind.dtype == "int64" and kind.rank == 0

    def is_whole(self, name: str, steps: Iterable[Expr]) -> bool:
        """Whether a name stands for floats that grow by whole numbers: fewer than 2⁴³ of these have 53 bits in sum."""
        kind = self.typing.names.get(name)
        numbers = [constant_value(step) for step in steps]
        is_float = kind is not None and kind.dtype == "float64" and kind.rank == 0
        return is_float and all(number is not None and abs(number) <= WHOLE_STEP for number in numbers)

    def value(self, name: str, expr: Expr) -> Expr:
        """The value of a name from that as an integer."""
        return expr if self.is_integer(name) else Call("float", (expr,), expr.span)

    def only_reads(self, name: str, body: tuple[Stmt, ...], growing: Iterable[Expr]) -> bool:
        """Whether nothing is stored at a place that a name gives, which grows by Python's integers."""
        targets = (statement.target for statement in every((Assign, Update), *body))
        stored = any(count_names(part.index, name) for target in targets for part in every(Subscript, target))
        return not stored and all(map(self.isconstant_value, growing))

    def close(self, name: str, loop: For, start: Expr) -> tuple[For, Stmt]:
        """The loop without the additions to `name`, whose value before it is `start`, and the assignment of its value
        after the loop."""
        space = loop.space
        assert isinstance(space, Range)
        last = next(s.span for s in reversed(loop.body) if _step(s, name) is not None)
        total = before = literal(0, last)
        for step in _steps(loop.body)[name]:
            total = sums.total(total, step)
        body: list[Stmt] = []
        for statement in loop.body:
            added = _step(statement, name)
            if added is None:
                body.append(self.replaced(statement, name, space, total, before, start))
            else:
                before = sums.total(before, added)
        self.found.append(Induction(name, total, loop.index, last))
        end = _product(total, _trips(space, last), last)
        value = sums.total(with_span(start, last), end)
        return replace(loop, body=tuple(body) or (Pass(last),)), Assign(Var(name, last), self.value(name, value), last)

    def replaced(self, statement: Stmt, name: str, space: Range, total: Expr, before: Expr, start: Expr) -> Stmt:
        """The statement with the value of `name` in terms of the loop variable."""

        def change(expr: Expr) -> Expr:
            if not isinstance(expr, Var) or expr.name != name:
                return expr
            return self.value(name, _at_trip(space, total, before, start, expr.span))

        return rewrite(statement, change)


def _at_trip(space: Range, total: Expr, before: Expr, start: Expr, span: Span) -> Expr:
    """The value in a trip of a name that begins with `start`, has grown by `before` in it, and grows by `total`."""
    known = constant_value(start)
    each, so_far, step = constant_value(total), constant_value(before), constant_value(space.step)
    if each is None or so_far is None or step is None:
        grown = _product(total, _trip(space, span), span)
        return sums.total(sums.total(with_span(start, span), with_span(before, span)), grown)
    offset = _grown(space, each, so_far + (known or 0), span)
    return offset if known is not None else sums.total(with_span(start, span), offset)


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


def _trip(space: Range, span: Span) -> Expr:
    """The number of the trip, for any step: (var - start) // step, which leaves nothing over."""
    apart = sums.difference(Var(space.var, span), with_span(space.start, span))
    return apart if constant_value(space.step) == 1 else Binary("//", apart, with_span(space.step, span), span)


def _trips(space: Range, span: Span) -> Expr:
    """How many trips a range makes: max(0, -((start - stop) // step))."""
    start, stop, step = (constant_value(bound) for bound in (space.start, space.stop, space.step))
    if start is not None and stop is not None and step is not None:
        return Const(len(range(start, stop, step)), span)
    if step == 1:
        length: Expr = space.stop if start == 0 else Binary("-", space.stop, space.start, span)
    elif step == -1:
        length = Binary("-", space.start, space.stop, span)
    else:
        apart = Binary("-", space.start, space.stop, span)
        length = Unary("-", Binary("//", apart, space.step if step is None else Const(step, span), span), span)
    if isinstance(length, Dim):
        return length  # none is negative
    return Call("max", (Const(0, span), length), span)


# ------------------------------------------------------------ arithmetic


def _product(factor: int | Expr, value: Expr, span: Span) -> Expr:
    known = factor if isinstance(factor, int) else constant_value(factor)
    if known is None:
        assert not isinstance(factor, int)
        return Binary("*", with_span(factor, span), value, span)
    match value:
        case Const(int(number)):
            return Const(known * number, span)
        case _ if known == 1:
            return value
        case _ if known == -1:
            return Unary("-", value, span)
        case _:
            return Binary("*", Const(known, span), value, span)


# ------------------------------------------------------------ what a loop body does


def with_plain_steps(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body with additions that both sides of a branch begin with before it, and those that go by way of other names,
    `k = j + 1; j = k + 1`, made at once."""
    done: list[Stmt] = []
    values: dict[str, Expr] = {}
    for whole in body:
        for each in _hoisted(whole):
            statement: Stmt = each
            match statement:
                case Assign(Var(name), value, span) if _is_simple(value) and name not in values:
                    found = _in_terms_of_the_start(value, values)
                    apart = sums.difference(found, Var(name, span))
                    if value != found and constant_value(apart) is not None:
                        statement = Update(Var(name, span), "+", apart, span)
                    values[name] = found
                case _:
                    values |= {name: Var("", statement.span) for name in _assigned((statement,))}  # not known
            done.append(statement)
    return tuple(done)


def _in_terms_of_the_start(value: Expr, values: Mapping[str, Expr]) -> Expr:
    """A value in terms of what names had at the beginning of an iteration."""

    def change(part: Expr) -> Expr:
        match part:
            case Var(name) if name in values:
                return values[name]
            case Binary("+" | "-" as op, left, Const(int(number))):
                return sums.plus(left, number if op == "+" else -number)
            case _:
                return part

    return rewrite(value, change)


def _hoisted(statement: Stmt) -> tuple[Stmt, ...]:
    """A branch without additions that both of its sides begin with, after these."""
    match statement:
        case If(test, (first, *body), (other, *orelse), span) if body and orelse:
            ((name, step), *_), ((other_name, other_step), *_) = _numbers(first), _numbers(other)
            if step is not None and (name, step) == (other_name, other_step) and not mentions(test, {name}):
                return (first, *_hoisted(If(test, tuple(body), tuple(orelse), span)))
        case _:
            pass
    return (statement,)


def _numbers(statement: Stmt) -> list[tuple[str, int | None]]:
    """The name that a statement increases, and by which number; the last of the list stands for none."""
    return [*((name, constant_value(steps[0])) for name, steps in _steps((statement,)).items()), ("", None)]


def _steps(body: Iterable[Stmt]) -> dict[str, list[Expr]]:
    """The names to which statements of a body add something, with what that is in turn."""
    found: dict[str, list[Expr]] = {}
    for statement in body:
        match statement:
            case Update(Var(name)) | Assign(Var(name)):
                step = _step(statement, name)
                if step is not None:
                    found.setdefault(name, []).append(step)
            case _:
                pass
    return found


def _whole(value: Expr, most: int) -> Expr | None:
    """A float that is a whole number, and not above that, as an integer; None for others."""
    match value:
        case Const(float(number)) if number.is_integer() and abs(number) <= most:
            return literal(int(number), value.span)
        case Unary("-", Const(float(number))) if number.is_integer() and 0 < number <= most:
            return literal(-int(number), value.span)
        case _:
            return None


def _step(statement: Stmt, name: str) -> Expr | None:
    """What the statement adds to `name`; None where it is no such addition."""
    match statement:
        case Update(Var(target), "+" | "-" as op, value) if target == name:
            pass
        case Assign(Var(target), Binary("+" | "-" as op, Var(first), value)) if target == first == name:
            pass
        case Assign(Var(target), Binary("+" as op, value, Var(second))) if target == second == name:
            pass
        case _:
            return None
    value = _whole(value, WHOLE_STEP) or value
    if not _is_simple(value) or mentions(value, {name}):
        return None
    known = constant_value(value)
    if known is not None:
        return literal(known if op == "+" else -known, value.span)
    return value if op == "+" else Unary("-", value, value.span)


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
