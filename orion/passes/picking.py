"""Arrays as subscripts: what they pick, element by element.

    s = x[picks].sum()            taken = np.empty(len(picks))
                                  for k in range(len(picks)):
                                      taken[k] = x[picks[k]]
                                  s = taken.sum()

A mask picks where it is true, into an array that has room for all; what is picked is the first part of that. NumPy's
own checks are those of the elements: a subscript that is outside is an error, and so is a mask of another length than
what it picks from, of which both are read to the end of the longer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from orion.dataclass import dataclass, field, replace
from orion.ir.as_statements import as_branches
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.lifting import Lifter
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Dim,
    Dtype,
    Expr,
    For,
    If,
    Logic,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    While,
    every,
    names_in,
)  # fmt: skip
from orion.ir.program import new_numbers
from orion.ir.refuse import unsupported
from orion.ir.rewriting import expand, with_new
from orion.ir.spans import with_span
from orion.passes.writes import helper_writes
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.value_type import INT, ValueType


def pick_by_loops(function: Function, typing: Typing) -> Function:
    """The function with loops for what arrays as subscripts pick. UnsupportedLoopError where that may not be evaluated
    whenever the statement is."""
    picker = _Picker(function, typing)
    if not any(map(picker.is_picked, every(Subscript, *function.body))):
        return function
    loops = every((For, While), *function.body)
    inside = {statement for loop in loops for statement in every(Assign, *loop.body)}
    body = expand(function.body, lambda statement: picker.direct(statement, statement in inside))
    writes = helper_writes(function, {name: kind.rank for name, kind in typing.names.items()})
    lifter = Lifter(picker.is_picked, picker.lift, picker.instead, writes)
    return with_new(function, body=lifter.block(body))


def is_picked(expr: Expr, typing: Typing) -> bool:
    """Whether an array, or a mask, is one of the subscripts of an expression."""
    return isinstance(expr, Subscript) and any(_is_array(part, typing) for part in expr.index)


def _is_array(part: Expr, typing: Typing) -> bool:
    return not isinstance(part, Slice) and typing.of(part).rank > 0


@dataclass(slots=True)
class _Picker:
    function: Function
    typing: Typing
    taken: set[str] = field(default_factory=set)
    rooms: dict[str, Expr] = field(default_factory=dict)
    """Arrays for what masks pick, with the names for how much that is."""
    numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.taken = {*self.function.params, *assigned_names(self.function.body)}
        self.numbers = new_numbers(self.function.body)

    def is_picked(self, expr: Expr) -> bool:
        return is_picked(expr, self.typing)

    def is_array(self, part: Expr) -> bool:
        return _is_array(part, self.typing)

    def is_mask(self, expr: Subscript) -> bool:
        """Whether an array that picks is a mask."""
        return any(self.is_array(part) and self.typing.of(part).dtype == "bool" for part in expr.index)

    def direct(self, statement: Stmt, is_repeated: bool) -> tuple[Stmt, ...]:
        """`t = x[picks]` filled where it is, and in a loop `t = x[mask]` as a copy: what is picked there in the next
        round must not change what the name, or another one for it, stands for."""
        match statement:
            case Assign(Var(name) as target, Subscript() as value, span) if self.is_picked(value):
                if self.is_mask(value):
                    copied = Call(".copy", (value,), span) if is_repeated else value
                    return (replace(statement, value=copied),)
                if name not in names_in(value):
                    part, before = self.part(value)
                    return (*before, *replace(part, found=target).by_places())
        return (statement,)

    def lift(self, expr: Subscript, before: list[Stmt]) -> Expr:
        """What is picked, from a new array that is filled before."""
        part, first = self.part(expr)
        if part.is_mask:
            at: Expr = self.fresh("at", expr.span, INT)
            assert isinstance(at, Var)
            before += [*first, *part.by_mask(at)]
        else:
            before += [*first, *part.by_places()]
            at = part.length
            if not part.is_partial:
                return part.found
        self.rooms[part.found.name] = at
        return Subscript(part.found, (*part.slices, Slice(None, at, None, expr.span)), expr.span)

    def part(self, expr: Subscript) -> tuple[_Part, list[Stmt]]:
        """How an array as a subscript picks, and what gives it a name."""
        (place,) = (k for k, part in enumerate(expr.index) if self.is_array(part))
        picks, span = expr.index[place], expr.span
        kind, found = self.typing.of(picks), self.typing.of(expr)
        is_mask = kind.dtype == "bool"
        before: list[Stmt] = []
        is_partial = isinstance(picks, Subscript) and picks.base.name in self.rooms
        if is_partial:  # what a mask has picked before
            assert isinstance(picks, Subscript)
            picks = picks.base
        if not isinstance(picks, Var):
            name = self.fresh("mask" if is_mask else "picks", span, kind)
            before.append(Assign(name, picks, span))
            picks = name
        room = self.fresh("taken", span, replace(found, lengths=(None,) * found.rank))
        own = kind.lengths[0]
        whole = Dim(picks.name, 0, span) if own is None else with_span(own, span)
        length = self.rooms[picks.name] if is_partial else whole
        return _Part(expr, place, picks, length, is_partial, room, kind.rank, is_mask, self), before

    def instead(self, expr: Expr, why: str) -> Expr:
        what = "an array of subscripts is not supported here"
        hint = "give what it picks a name first"
        source = self.function.source
        text = as_branches(expr.span, source)
        raise unsupported(what, expr.span, source, why=why, hint=hint, is_for_numba=True, replacement=text)

    def fresh(self, name: str, span: Span, kind: ValueType) -> Var:
        """A new name, for a value of this type."""
        found, number = f"{name}_{span.line}", 1
        while found in self.taken:
            number += 1
            found = f"{name}_{span.line}_{number}"
        self.taken.add(found)
        self.typing = self.typing.having({found: kind})
        return Var(found, span)

    def loop(self, variable: Var, stop: Expr, body: Sequence[Stmt]) -> For:
        span = variable.span
        space = Range(variable.name, Const(0, span), stop, Const(1, span), span)
        return For(space, tuple(body), next(self.numbers), span)


@dataclass(frozen=True, slots=True)
class _Part:
    """`expr` picks by `picks`, its subscript number `place`, an array of `rank` dimensions; of places by the first
    `length`, which may be less than it has room for (`is_partial`). `found` is the name for what is picked."""

    expr: Subscript
    place: int
    picks: Var
    length: Expr
    is_partial: bool
    found: Var
    rank: int
    is_mask: bool
    picker: _Picker

    @property
    def span(self) -> Span:
        return self.expr.span

    @property
    def slices(self) -> tuple[Slice, ...]:
        """What stands before the array, and is whole."""
        return tuple(part for part in self.expr.index[: self.place] if isinstance(part, Slice))

    @property
    def picks_rows(self) -> bool:
        return self.picker.typing.of(self.expr).rank > 1

    def by_places(self) -> list[Stmt]:
        variable = self.picker.fresh("k", self.span, INT)
        place = Subscript(self.picks, (variable,), self.span)
        room = Dim(self.picks.name, 0, self.span) if self.is_partial else self.length
        return [self.new(room), self.picker.loop(variable, self.length, [self.put(variable, (place,))])]

    def by_mask(self, at: Var) -> list[Stmt]:
        """Loops that pick where a mask is true; `at` is then how many there are."""
        span, picker = self.span, self.picker
        value = picker.fresh("value", span, ValueType(picker.typing.of(self.expr).dtype))
        variables = tuple(picker.fresh(name, span, INT) for name in "ijkl"[: self.rank])
        put = Assign(Subscript(self.found, (at,), span), value, span)
        next_place = Update(at, "+", Const(1, span), span)
        then = (self.put(at, variables) if self.picks_rows else put, next_place)
        body: list[Stmt] = [
            *self.reading(value, variables),
            If(Subscript(self.picks, variables, span), then, (), span),
        ]
        room: Expr = Dim(self.picks.name, 0, span)
        for axis in reversed(range(self.rank)):
            own = Dim(self.picks.name, axis, span)
            body = [picker.loop(variables[axis], own if self.is_sure(axis) else self.longer(axis, own), body)]
            room = room if axis == 0 else Binary("*", room, own, span)
        return [self.new(room), Assign(at, Const(0, span), span), *body]

    def reading(self, value: Var, variables: tuple[Expr, ...]) -> list[Stmt]:
        """The element that may be picked; of rows the first, if they have one, where their number may be another."""
        span, base = self.span, self.expr.base
        index = self.index(variables)
        if not self.picks_rows:
            return [Assign(value, Subscript(base, index, span), span)]
        if all(map(self.is_sure, range(self.rank))):
            return []
        zero = Const(0, span)
        last = self.picker.typing.name(base.name).rank
        rest = [*range(self.place), *range(self.place + self.rank, last)]
        first = tuple(zero if isinstance(part, Slice) else part for part in index)
        read = Assign(value, Subscript(base, (*first, *(zero,) * (last - len(first))), span), span)
        tests = [Compare((">",), (Dim(base.name, axis, span), zero), span) for axis in rest]
        return [If(tests[0] if len(tests) == 1 else Logic("and", tuple(tests), span), (read,), (), span)]

    def is_sure(self, axis: int) -> bool:
        """Whether a mask is known to be as long as what it picks from."""
        typing = self.picker.typing
        length = typing.name(self.expr.base.name).lengths[self.place + axis]
        return length is not None and length == typing.of(self.expr.index[self.place]).lengths[axis]

    def longer(self, axis: int, own: Dim) -> Expr:
        """How far both are read; a mask of no elements picks none of any number, as NumPy has it."""
        span = self.span
        both = Call("max", (own, Dim(self.expr.base.name, self.place + axis, span)), span)
        return Binary("*", both, Call("min", (own, Const(1, span)), span), span)

    def index(self, places: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*self.expr.index[: self.place], *places, *self.expr.index[self.place + 1 :])

    def new(self, length: Expr) -> Stmt:
        """The array for what is picked."""
        span, base, axis = self.span, self.expr.base, 0
        lengths: list[Expr] = []
        for number, part in enumerate(self.expr.index):
            if number == self.place:
                lengths.append(length)
            elif isinstance(part, Slice):
                lengths.append(Dim(base.name, axis, span))
            axis += self.rank if number == self.place else 1
        typing = self.picker.typing
        lengths += [Dim(base.name, rest, span) for rest in range(axis, typing.name(base.name).rank)]
        shape = lengths[0] if len(lengths) == 1 else Tuple(tuple(lengths), span)
        dtype = Dtype(typing.of(self.expr).dtype, span)
        return Assign(self.found, Call("np.empty", (shape, dtype), span), span)

    def put(self, place: Expr, places: tuple[Expr, ...]) -> Stmt:
        value = Subscript(self.expr.base, self.index(places), self.span)
        return Assign(Subscript(self.found, (*self.slices, place), self.span), value, self.span)
