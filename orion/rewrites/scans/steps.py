"""What a loop does with a scalar that each iteration gets from the one before, where that is a scan.

Each change of such a scalar s is one of

    s = s + e,  s = s - e      a sum          s = max(s, e),  s = min(s, e)      an extreme
    s = e                      a new value    s = a * s + e                      a linear step

where neither a, e nor whether it is done depends on a scalar like s, or on arrays that the loop writes. What iterations
do with s one after the other is then one such function, whatever s is when they begin, and functions of blocks of
iterations can be put together in any grouping (Blelloch, "Prefix sums and their applications", 1990; Kogge and Stone,
"A parallel algorithm for the efficient solution of a general class of recurrence equations", 1973):

    after a block   s -> s + t             sums
                    s -> max(s, t)         extremes
                    s -> t                 as soon as there was a new value
                    s -> f * s + t         linear steps
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Set
from enum import StrEnum

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_by, assigned_names
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    For,
    If,
    Range,
    Stmt,
    Subscript,
    Unary,
    Update,
    Var,
    count_names,
    names_in,
)  # fmt: skip
from orion.ir.spans import without_spans
from orion.passes.extremes import AGAINST, running
from orion.source import Span


class Step(StrEnum):
    SUM = "sum"
    EXTREME = "extreme"
    NEW = "new"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that changes a scalar: s -> `factor` * s + `term` for linear steps; `term` is e for others, with its
    sign for sums. `function` is that of extremes, as in `np.maximum(s, e)`; `s_first` says which is written first."""

    statement: Stmt
    step: Step
    term: Expr
    factor: Expr | None = None
    function: str = ""
    s_first: bool = True

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.term,) if self.factor is None else (self.term, self.factor)

    def applied(self, before: Expr, term: Expr) -> Expr:
        """An extreme of what the scalar was before and a value."""
        pair = (before, term) if self.s_first else (term, before)
        return Call(self.function, pair, self.statement.span)


@dataclass(frozen=True, slots=True)
class Scan:
    """A scalar and all changes of it."""

    name: str
    changes: tuple[Change, ...]

    @property
    def steps(self) -> set[Step]:
        return {one.step for one in self.changes}

    @property
    def is_linear(self) -> bool:
        return Step.LINEAR in self.steps

    @property
    def is_added_to(self) -> bool:
        """Whether it is rounded, where it is a float."""
        return not self.steps.isdisjoint({Step.SUM, Step.LINEAR})

    @property
    def has_new_values(self) -> bool:
        return Step.NEW in self.steps

    @property
    def extreme(self) -> Change | None:
        """One of its changes, if it is an extreme."""
        first = self.changes[0]
        return first if first.step is Step.EXTREME else None


def scans_of(body: tuple[Stmt, ...], names: Collection[str], written: Collection[str]) -> tuple[Scan, ...] | None:
    """The scans that the scalars `names` are in an iteration; None where one of them is none. `written` are the arrays
    that the loop writes."""
    depending = dependents(body, {*names, *written})  # `z = b[i]` after `b[i] = s` depends on s
    found = []
    for name in sorted(names):
        changes = [*_changes(body, name)]
        known = tuple(one for one in changes if one is not None)
        if not changes or len(known) < len(changes):
            return None
        used = {part for one in known for part in names_in(*one.parts)}
        if not depending.isdisjoint(used | _guards(body, name, known)):
            return None
        kinds = {(one.step is Step.EXTREME, one.function, one.s_first) for one in known}
        if any(one.step is Step.EXTREME for one in known) and len(kinds) > 1:
            return None
        found.append(Scan(name, known))
    return tuple(found)


def dependents(body: tuple[Stmt, ...], names: Collection[str]) -> set[str]:
    """Some scalars and arrays, and the scalars that may depend on them, by what they are given or by whether they
    are."""
    found = {*names}
    while True:
        more = {name for statement in body for name in _depending(statement, found, guarded=False)} - found
        if not more:
            return found
        found |= more


def _depending(statement: Stmt, names: set[str], *, guarded: bool) -> Iterator[str]:
    match statement:
        case If(test, body, orelse):
            inside = guarded or not names.isdisjoint(names_in(test))
            for one in (*body, *orelse):
                yield from _depending(one, names, guarded=inside)
        case For(space, body):
            inside = guarded or not names.isdisjoint(names_in(space))
            yield from assigned_by(statement) if inside else ()
            for one in body:
                yield from _depending(one, names, guarded=inside)
        case Assign(_, value) | Update(_, _, value):
            if guarded or not names.isdisjoint(names_in(value)):
                yield from assigned_by(statement)


def _guards(body: tuple[Stmt, ...], name: str, changes: tuple[Change, ...]) -> set[str]:
    """The names in tests and ranges around changes of a scalar."""
    found: set[str] = set()
    for statement in body:
        if any(one.statement is statement for one in changes):
            continue
        if isinstance(statement, If | For) and name in assigned_names((statement,)):
            found |= names_in(statement.test if isinstance(statement, If) else statement.space)
            blocks = (statement.body, statement.orelse) if isinstance(statement, If) else (statement.body,)
            for block in blocks:
                found |= _guards(block, name, changes)
    return found


def _changes(body: tuple[Stmt, ...], name: str) -> Iterator[Change | None]:
    """The changes of a scalar; None for one of another form."""
    for statement in body:
        if name not in assigned_names((statement,)):
            continue
        match statement:
            case If() if (found := _taken_if_better(statement, name)) is not None:
                yield found
            case If(_, then, orelse):
                yield from (*_changes(then, name), *_changes(orelse, name))
            case For(Range(variable), inner) if variable != name:
                yield from _changes(inner, name)
            case _:
                yield _change(statement, name)


def _taken_if_better(statement: If, name: str) -> Change | None:
    """`if e > s: s = e` as `s = max(s, e)`."""
    match statement:
        case If(Compare((">" | "<" as op,), (left, right)), (Assign(Var(target), value),), ()) if target == name:
            own, other = (left, right) if _is(left, name) else (right, left)
            is_plain = _is(own, name) and not count_names((other, value), name)
            if not is_plain or without_spans(other) != without_spans(value):
                return None
            takes_greater = (op == ">") == (own is right)
            return Change(statement, Step.EXTREME, value, function="max" if takes_greater else "min")
        case _:
            return None


def _change(statement: Stmt, name: str) -> Change | None:
    match statement:
        case Update(Var(), "+" | "-" as op, value) if not count_names((value,), name):
            return Change(statement, Step.SUM, _signed(op, value))
        case Update(Var(), "*", value) if not count_names((value,), name):
            return Change(statement, Step.LINEAR, Const(-0.0, value.span), value)
        case Assign(Var(), value) if not count_names((value,), name):
            return Change(statement, Step.NEW, value)
        case Assign(Var(), Call(function, (first, second))) if running(statement) is not None:
            other = second if _is(first, name) else first
            return Change(statement, Step.EXTREME, other, function=function, s_first=_is(first, name))
        case Assign(Var(), value):
            return _linear(statement, value, name)
        case _:
            return None


def _linear(statement: Assign, value: Expr, name: str) -> Change | None:
    """A change by sums, products and quotients in which the scalar is a factor at most."""
    found = _form(value, name)
    if found is None or found.factor is None:
        return None
    term = Const(-0.0, value.span) if found.term is None else found.term
    if isinstance(found.factor, Const) and found.factor.value == 1:
        return Change(statement, Step.SUM, term)
    return Change(statement, Step.LINEAR, term, found.factor)


@dataclass(frozen=True, slots=True)
class _Form:
    """An expression as `factor` times the scalar plus `term`; None for 0."""

    factor: Expr | None
    term: Expr | None

    def each(self, change: Callable[[Expr], Expr]) -> _Form:
        return _Form(*(None if part is None else change(part) for part in (self.factor, self.term)))


def _form(value: Expr, name: str) -> _Form | None:
    """An expression in terms of a scalar; None where it has no such form."""
    span = value.span
    if not count_names((value,), name):
        return _Form(None, value)
    match value:
        case Var():
            return _Form(Const(1, span), None)
        case Unary("-" | "+" as op, operand) if (found := _form(operand, name)) is not None:
            return found.each(lambda part: _signed(op, part))
        case Binary("+" | "-" as op, left, right):
            one, other = _form(left, name), _form(right, name)
            if one is None or other is None:
                return None
            return _Form(_sum(op, one.factor, other.factor, span), _sum(op, one.term, other.term, span))
        case Binary("*", left, right) if not count_names((right,), name):
            found = _form(left, name)
            return None if found is None else found.each(lambda part: _product(part, right, span))
        case Binary("*", left, right) if not count_names((left,), name):
            found = _form(right, name)
            return None if found is None else found.each(lambda part: _product(left, part, span))
        case Binary("/", left, right) if not count_names((right,), name):
            found = _form(left, name)
            return None if found is None else found.each(lambda part: Binary("/", part, right, span))
        case _:
            return None


def _sum(op: str, left: Expr | None, right: Expr | None, span: Span) -> Expr | None:
    if left is None or right is None:
        return left if right is None else _signed(op, right)
    return Binary(op, left, right, span)


def _product(left: Expr, right: Expr, span: Span) -> Expr:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Const) and one.value == 1:
            return other
    return Binary("*", left, right, span)


def _signed(sign: str, value: Expr) -> Expr:
    return value if sign == "+" else Unary("-", value, value.span)


def _is(value: Expr, name: str) -> bool:
    return isinstance(value, Var) and value.name == name


def keeps_first(change: Change) -> bool:
    """Whether an extreme keeps what it was unless the other is better, or wins by being NaN: those in any grouping are
    the same. Python's `max(e, s)` takes e also after a NaN, whatever it is."""
    found = running(
        Assign(Var("s", change.term.span), change.applied(Var("s", change.term.span), change.term), change.term.span)
    )
    return found is not None and not found.op.startswith(AGAINST)


def kept_for(body: tuple[Stmt, ...], wanted: Collection[str]) -> tuple[Stmt, ...]:
    """The part of a body that some scalars, and those that these are computed from, need: no element is written."""
    needed, assigned = {*wanted}, assigned_names(body)
    while True:
        found = _sliced(body, needed)
        more = {name for one in found for name in names_in(one)} & assigned - needed
        if not more:
            return found
        needed |= more


def _sliced(body: tuple[Stmt, ...], needed: Set[str]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for statement in body:
        match statement:
            case If(_, then, orelse):
                sides = _sliced(then, needed), _sliced(orelse, needed)
                if any(sides):
                    found.append(replace(statement, body=sides[0], orelse=sides[1]))
            case For(_, inner):
                kept = _sliced(inner, needed)
                if kept:
                    found.append(replace(statement, body=kept))
            case Assign(Subscript()) | Update(Subscript()):
                continue
            case _ if not needed.isdisjoint(assigned_by(statement)):
                found.append(statement)
    return tuple(found)
