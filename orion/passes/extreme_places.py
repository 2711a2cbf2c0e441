"""Places of extremes that are compared by looking them up: with a name for the extreme itself.

    best = 0                              best = 0
    for i in range(1, n):                 if 1 < n:
        if a[i] > a[best]:                    value = a[best]
            best = i                      for i in range(1, n):
                                              if a[i] > value:
                                                  value = a[i]
                                                  best = i

which is the form that parts of the iterations can be combined from (`orion.dependence.choices`). `value` is a[best]
throughout, as nothing writes `a` in the loop and nothing else gives `best` another value there.

Where the loop itself writes a[i] before it looks, that choice is moved to a loop of its own after it. Each element is
then what it was when it was looked at: a[i] is written in iteration i only, before it is looked at, and `best` stands
for an iteration that has been. So it must begin as the first of them:

    best = 0                              best = 0
    for i in range(n):                    for i in range(n):
        a[i] = f(i)                           a[i] = f(i)
        if a[i] > a[best]:                for i in range(n):
            best = i                          if a[i] > a[best]:
                                                  best = i
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_names
from orion.ir.constants import constant_value
from orion.ir.function import Function
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Bind,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Expr,
    For,
    If,
    Logic,
    Range,
    Return,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    count_names,
    every,
    holds,
    names_in,
)  # fmt: skip
from orion.ir.program import new_numbers
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite
from orion.ir.spans import without_spans
from orion.typing.expression_types import Typing

ORDERED = ("<", "<=", ">", ">=")
ELSEWHERE = (Break, Continue, Return, Bind)
"""What leaves a loop early, and names by which arrays may be written."""


@dataclass(frozen=True, slots=True)
class Looked:
    """An `if` that gives `places` the values of loop variables where what stands at these is better than what stands at
    `places`: `here` is what it looks at, `there` the same at the places, `there_is_right` its side of the test."""

    statement: If
    places: Mapping[str, str]
    here: Expr
    there: Expr
    there_is_right: bool

    @property
    def arrays(self) -> set[str]:
        return {part.base.name for part in every(Subscript, self.here)}


def with_extremes_by_name(function: Function, typing: Typing) -> Function:
    """The function with names for the extremes that its outermost loops look up."""
    if not holds(If, *function.body):
        return function
    taken, body = {*typing.names, *function.params}, list[Stmt]()
    before: dict[str, Expr] = {}
    numbers = new_numbers(function.body)
    for statement in function.body:
        for part in _apart(statement, before, numbers):
            body += _named(part, typing, taken)
        before = _given(statement, before)
    return function if tuple(body) == function.body else replace(function, body=tuple(body))


def _given(statement: Stmt, before: Mapping[str, Expr]) -> dict[str, Expr]:
    """The values that names have after a statement, where it or one before it gives them plainly."""
    changed = assigned_names((statement,))
    found = {name: value for name, value in before.items() if name not in changed}
    match statement:
        case Assign(Var(name), value):
            found[name] = value
        case Assign(Tuple(targets), Tuple(values)) if len(targets) == len(values):
            found |= {t.name: v for t, v in zip(targets, values, strict=True) if isinstance(t, Var)}
    return found


# ---------------------------------------------------------------- finding them


def looked_up(statement: Stmt, variables: frozenset[str]) -> Looked | None:
    """What an `if` is in a loop with these variables; None where it is something else."""
    match statement:
        case If(Compare((op,), (left, right)), body, ()) if op in ORDERED:
            places = _places(body, variables)
        case _:
            return None
    if places:
        for here, there, is_right in ((left, right, True), (right, left, False)):
            moved = rewrite(without_spans(here), lambda part: _at(part, places))
            if moved == without_spans(there) and moved != without_spans(here) and _is_plain(here):
                return Looked(statement, places, here, there, is_right)
    return None


def _places(body: tuple[Stmt, ...], variables: frozenset[str]) -> dict[str, str]:
    """The names that a body gives the values of loop variables, if that is all it does: by variable."""
    found: dict[str, str] = {}
    for statement in body:
        match statement:
            case Assign(Tuple(targets), Tuple(values)) if len(targets) == len(values):
                pairs = [*zip(targets, values, strict=True)]
            case Assign():
                pairs = [(statement.target, statement.value)]
            case _:
                return {}
        for pair in pairs:
            match pair:
                case Var(place), Var(name) if name in variables - found.keys() and place not in found.values():
                    found[name] = place
                case _:
                    return {}
    return {} if variables & {*found.values()} else found


def _at(part: Expr, places: Mapping[str, str]) -> Expr:
    return replace(part, name=places[part.name]) if isinstance(part, Var) and part.name in places else part


def _is_plain(expr: Expr) -> bool:
    """Whether an expression is the same wherever its names and arrays are: it calls no function of the user's."""
    return all(map(_is_known, every(Call, expr)))


def _is_known(call: Call) -> bool:
    return call.function.startswith(("np.", "math.", INTEGER)) or call.function in ("abs", "min", "max", "float", "int")


# ---------------------------------------------------------------- with a name


def _named(statement: Stmt, typing: Typing, taken: set[str]) -> Iterator[Stmt]:
    """A statement outside of all loops, with names for the extremes that it looks up as a loop."""
    if isinstance(statement, For) and isinstance(statement.space, Range) and not holds(ELSEWHERE, *statement.body):
        for looked, spaces in _inside(statement, (statement.space,)):
            kind = typing.of(looked.here)
            if not kind.rank and kind.dtype in ZEROS and _stays(looked, statement, spaces):
                name = fresh(f"value_at_{next(iter(looked.places.values()))}", taken)
                yield _first(looked, name, spaces, ZEROS[kind.dtype])
                statement = _replaced(statement, looked, name)
    yield statement


ZEROS: Mapping[str, int | float] = {"float64": 0.0, "float32": 0.0, "int64": 0, "int32": 0, "int16": 0, "int8": 0}


def _inside(loop: For, spaces: tuple[Range, ...]) -> Iterator[tuple[Looked, tuple[Range, ...]]]:
    """What a loop looks up in every iteration, with the ranges around it."""
    variables = frozenset(space.var for space in spaces)
    for statement in loop.body:
        found = looked_up(statement, variables)
        if found is not None:
            yield found, spaces
        elif isinstance(statement, For) and isinstance(statement.space, Range):
            yield from _inside(statement, (*spaces, statement.space))


def _stays(looked: Looked, loop: For, spaces: tuple[Range, ...]) -> bool:
    """Whether nothing else in the loop has to do with the places, and what is looked at stays as it is."""
    mine = {*looked.places.values()}
    if any(count_names((loop,), name) != count_names((looked.statement,), name) for name in mine):
        return False
    others = names_in(looked.there) - mine
    bounds = names_in(*(bound for space in spaces for bound in (space.start, space.stop)))
    changed = assigned_names((loop,))
    is_once = all(constant_value(space.step) == 1 for space in spaces)
    return is_once and changed.isdisjoint(others | bounds) and looked.arrays.isdisjoint(written(loop))


def written(*body: Stmt) -> set[str]:
    """The names and arrays that statements write, or may: those that they give to functions of the user's, too."""
    found = {name for node in every((Assign, Update), *body) for name in names_in(node.target)}
    calls = (call for call in every(Call, *body) if not _is_known(call))
    return found | {name for call in calls for name in names_in(*call.arguments)}


def _first(looked: Looked, name: str, spaces: tuple[Range, ...], zero: int | float) -> Stmt:
    """What gives the name its first value, where the loop has an iteration."""
    span = spaces[0].span
    tests = tuple(Compare(("<",), (space.start, space.stop), span) for space in spaces)
    test = tests[0] if len(tests) == 1 else Logic("and", tests, span)
    value = Assign(Var(name, span), looked.there, span)
    return If(test, (value,), (Assign(Var(name, span), Const(zero, span), span),), span)


def _replaced(loop: For, looked: Looked, name: str) -> For:
    old, span = looked.statement, looked.statement.span
    assert isinstance(old.test, Compare)
    sides = (looked.here, Var(name, span)) if looked.there_is_right else (Var(name, span), looked.here)
    test = replace(old.test, operands=sides)
    new = replace(old, test=test, body=(Assign(Var(name, span), looked.here, span), *old.body))
    (found,) = expand((loop,), lambda statement: (new if statement == old else statement,))
    assert isinstance(found, For)
    return found


# ---------------------------------------------------------------- in a loop of its own


def _apart(statement: Stmt, before: Mapping[str, Expr], numbers: Iterator[int]) -> Iterator[Stmt]:
    """A loop, and where it writes what it looks up at its end, that in a loop of its own after it."""
    if isinstance(statement, For) and isinstance(statement.space, Range) and len(statement.body) > 1:
        *others, last = statement.body
        space = statement.space
        found = looked_up(last, frozenset({space.var}))
        rest = replace(statement, body=tuple(others))
        if (
            found is not None
            and not found.arrays.isdisjoint(written(*others))
            and not holds(ELSEWHERE, *statement.body)
        ):
            (place,) = found.places.values()  # there is one variable
            first, start = before.get(place), constant_value(space.start)
            begins = first is not None and start is not None and constant_value(first) == start and start >= 0
            if begins and _stays(found, replace(statement, body=(last,)), (space,)) and _only_here(found, rest, place):
                yield rest
                yield replace(statement, body=(last,), index=next(numbers))
                return
    yield statement


def _only_here(looked: Looked, rest: For, place: str) -> bool:
    """Whether the rest of a loop knows nothing of the place, changes no name of what is looked at, nor the bounds, and
    writes of its arrays only the elements that are looked at in the same iteration."""
    space = rest.space
    assert isinstance(space, Range)
    used = names_in(looked.here, space.start, space.stop) | {space.var}
    if place in names_in(rest) or used & assigned_names(rest.body):
        return False
    mine = {without_spans(part) for part in every(Subscript, looked.here)}
    if any(without_spans(Var(space.var, space.span)) not in part.index for part in mine):
        return False  # another iteration may write it
    others = (node for node in every((Assign, Update), *rest.body) if without_spans(node.target) not in mine)
    return looked.arrays.isdisjoint(written(*others)) and all(map(_is_known, every(Call, *rest.body)))
