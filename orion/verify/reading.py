"""What each iteration of a program's loops reads and writes, read from its text: by this the checker knows dependences.

A program is gone through from its first statement to the loops that are wanted, with the values that integers have on
the way (`orion.verify.text_values`), and then through the bodies of these loops. There each mention of an array is an
`Event`: a map (x, v) → e, with x the coordinates of the loop, v those of loops inside it and e the element. Conditions
that are affine restrict it; what is not affine may have any value, which makes the map larger. Numbers are integers as
NumPy takes subscripts: a negative one counts from the end.

Coordinates are those of schedules: the value of the variable of a `range` with step 1, the number of the trip with any
other step, the key of a sparse array. From an unknown start it is the value, its negative where the loop goes down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from math import prod

import numpy as np

from orion.dataclass import dataclass, field, replace
from orion.ir.assigned import assigned_places, holds_break, own_level
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Break,
    Call,
    Choose,
    Compare,
    Continue,
    Dim,
    Elements,
    Expr,
    For,
    If,
    Logic,
    Node,
    Range,
    Return,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    While,
    children,
    holds,
)
from orion.ir.program import Branch, LoopNest, OfNewOrder, OfStatements, Repeat, RunLoop, Scalars, Step
from orion.ir.types import ArrayType, ScalarType, Types
from orion.passes.writes import viewed_places, written_positions
from orion.sets.names import extent_name, isl_name, number_text, sum_text
from orion.verify.elements import ElementsRead, constant_arrays
from orion.verify.events import Event, Iterations, Leaving, defined
from orion.verify.here import Here
from orion.verify.subscripts import is_of_data, leaving, on_axis
from orion.verify.text_values import (
    Scope,
    UnprovedError,
    Value,
    compared,
    constant,
    names_of,
    shape_key,
    size_key,
    total,
)
from orion.verify.views import views_in


@dataclass
class Reader:
    """Reads a program. `values` are known parameters of isl: extents and integer arguments."""

    function: Function
    types: Types
    values: Mapping[str, int]
    scalars: frozenset[str] = frozenset()
    """Scalars whose mentions are events."""
    found: dict[int, Iterations] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    place: list[int] = field(default_factory=list)
    events: list[Event] | None = None
    views: dict[str, set[str]] = field(default_factory=dict)
    unlimited: set[str] = field(default_factory=set)
    """Parameters that may not have all values that the conditions leave: variables of loops around, and scalars."""

    constant: Mapping[str, int] = field(init=False)
    elements: ElementsRead = field(init=False)
    """Those that subscripts and bounds of the loop that is read are made of."""
    by_elements: tuple[Value | None, ...] = ()
    """The bounds of the loop that is entered next, by them."""

    def __post_init__(self) -> None:
        self.constant = constant_arrays(self.function, self.types)
        self.elements = ElementsRead(self.constant)
        names = {name: self.of_parameter(name) for name, kind in self.types.items() if not isinstance(kind, ArrayType)}
        names |= {name: {"": value} if value else {} for name, value in self.function.constants if type(value) is int}
        self.at = Here(Scope(self.numbers, names), [], [], 0, 0)
        known = self.at.scope.names
        for name, kind in self.types.items():
            if isinstance(kind, ArrayType):
                known[name] = None
                lengths = [self.values.get(extent_name(name, axis)) for axis in range(kind.ndim)]
                for axis, length in enumerate(lengths):
                    known[shape_key(name, axis)] = None if length is None else number(length)
                found = [length for length in lengths if length is not None]
                if len(found) == len(lengths):
                    known[size_key(name)] = number(prod(found))

    def of_parameter(self, name: str) -> Value | None:
        kind = self.types[name]
        if not isinstance(kind, ScalarType) or np.dtype(kind.dtype).kind not in "iu":
            return None
        text = isl_name(name)
        return number(self.values[text]) if text in self.values else {text: 1}

    # ------------------------------------------------------------ from the first statement to the loops

    def steps(self, steps: Iterable[Step], nests: Sequence[LoopNest]) -> None:
        """Go through a program: what its planned loops do is in `found`, by their numbers."""
        for step in steps:
            match step:
                case Scalars(body):
                    self.block(body)
                case RunLoop(number_):
                    nest = nests[number_]
                    if isinstance(nest.form, OfNewOrder):
                        self.forget((nest.loops[0],))
                    else:
                        self.nest(number_, nest.loops, nest.body)
                    if isinstance(nest.form, OfStatements):
                        self.block(nest.body)  # run once: what it gives to scalars holds from then on
                case Repeat(loop, inner):
                    with self.repeated(loop):
                        self.steps(inner, nests)
                case Branch(statement, sides):
                    for wanted, side in zip((True, False), sides, strict=True):
                        with self.guarded(statement.test, wanted):
                            self.steps(side, nests)
                    self.forget((statement,))

    def nest(
        self, number_: int, loops: Sequence[For], body: Sequence[Stmt], before: Sequence[Sequence[Stmt]] = ()
    ) -> None:
        """Note what the iterations of nested loops do. In each of them, statements may stand `before` the body."""
        bounds = self.bounds(loops[0].space)  # what a loop goes through is settled before its first trip
        self.forget(loops)
        with self.inside():
            self.settle(loops)
            self.at.dims, self.place, self.events = [], [0], []
            self.elements = ElementsRead(self.constant)
            self.at.missing = self.at.unsure = 0
            for loop, passed in zip(loops, before or [()] * len(loops), strict=True):
                if holds_break(loop.body) or holds(Return, *loop.body):
                    self.at.unsure += 1
                self.enter(loop.space, bounds if loop is loops[0] else self.bounds(loop.space))
                self.pass_by(passed)
            dims, conditions, definitions = tuple(self.at.dims), tuple(self.at.conditions), self.at.scope.definitions
            known = self.unlimited.isdisjoint(names_of(defined(conditions, definitions)[0]))
            self.views = views_in(body, self.types)
            self.block(body)
            whole = not self.at.missing
            found = Iterations(dims, conditions, tuple(self.events), whole, whole and known, definitions)
        self.found[number_] = found
        self.events, self.views = None, {}

    def pass_by(self, statements: Sequence[Stmt]) -> None:
        """Learn the values that statements of an iteration give to names; what they touch is not noted."""
        noted, place = self.events, self.place
        self.events, self.place = [], [0]
        self.block(statements)
        self.events, self.place = noted, place

    def settle(self, loops: Sequence[For]) -> None:
        """Scalars that are not known but stay the same in all iterations are parameters: one value for any two."""
        changed = assigned_places(loops)
        for name, value in [*self.at.scope.names.items()]:
            is_scalar = name.isidentifier() and not isinstance(self.types.get(name), ArrayType)
            if value is None and is_scalar and name not in changed:
                self.at.scope.names[name] = self.parameter(name, name in self.at.scope.of_data)

    def parameter(self, name: str, is_data: bool) -> Value:
        """A value that is not known: any integer, where it comes from data."""
        parameter = f"{isl_name(name)}_{next(self.numbers)}__"
        if not is_data:
            self.unlimited.add(parameter)
        return {parameter: 1}

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is found of names and conditions inside is forgotten after it."""
        before = self.at
        self.at = before.inner()
        yield
        self.at = before

    def bounds(self, space: Range | Elements) -> tuple[Value | None, ...]:
        """Start, stop and step of a range, None where it is not known."""
        if isinstance(space, Elements):
            return ()
        return tuple(self.valued(part) for part in (space.start, space.stop, space.step))

    def enter(self, space: Range | Elements, bounds: tuple[Value | None, ...]) -> None:
        """Begin an iteration of a loop: its variable is a new dimension, or keys are."""
        if isinstance(space, Elements):
            for axis, key in enumerate(space.keys):
                dim, length = self.at.dimension(), extent_name(space.array, axis)
                self.at.scope.names[key] = {dim: 1}
                self.at.conditions.append(f"0 <= {dim}")
                if length in self.values:
                    self.at.conditions.append(f"{dim} < {self.values[length]}")
            self.at.scope.forget(space.values)
            self.at.scope.of_data.update(space.values)
            return
        dim = self.at.dimension()
        start, stop, step = bounds
        width = None if step is None else constant(step)
        if width and (width == 1 or start is None):  # from a start that is not known, trips are told by values
            at: Value = {dim: 1 if width > 0 else -1}
        elif width and start is not None:
            at = total({dim: width}, start)
        else:
            self.at.missing += 1
            self.at.scope.names[space.var] = None
            return
        place = self.at.scope.names[space.var] = at if isinstance(at, dict) else self.at.scope.named(at, space.var)
        self.at.missing += start is None or stop is None
        if start is not None:
            self.at.conditions.append(compared(start, "<=", {dim: 1}) if width == 1 else f"{dim} >= 0")
        if stop is not None:
            self.at.conditions.append(compared(place, "<" if width and width > 0 else ">", stop))

    @contextmanager
    def repeated(self, loop: For | While) -> Iterator[None]:
        """A trip of a loop around planned ones: its variable is a parameter."""
        bounds = self.bounds(loop.space) if isinstance(loop, For) else ()
        self.forget((loop,))
        with self.inside():
            if isinstance(loop, For) and isinstance(loop.space, Range):
                self.within(loop.space, bounds)
            yield

    def within(self, space: Range, bounds: tuple[Value | None, ...]) -> None:
        """What holds of the variable of a loop in a trip."""
        name = f"{isl_name(space.var)}_{next(self.numbers)}__"
        self.at.scope.names[space.var] = {name: 1}
        start, stop, step = bounds
        width = None if step is None else constant(step)
        first, last = ("<=", "<") if width and width > 0 else (">=", ">")
        if width and start is not None:
            self.at.conditions.append(compared(start, first, {name: 1}))
        if width and stop is not None:
            self.at.conditions.append(compared({name: 1}, last, stop))
        if width and abs(width) > 1 and start is not None:
            begin = sum_text(self.at.scope.named(start, space.var))
            self.at.conditions.append(f"({name} - ({begin})) mod {number_text(abs(width))} = 0")
        if not width or start is None or stop is None:
            self.unlimited.add(name)

    @contextmanager
    def guarded(self, test: Expr, wanted: bool) -> Iterator[None]:
        """A branch: what is affine of its test is a condition in it."""
        with self.inside():
            self.at.unsure += not self.at.take(test, wanted)
            yield

    # ------------------------------------------------------------ statements

    def block(self, body: Sequence[Stmt]) -> None:
        unsure = self.at.unsure
        for statement in body:
            self.statement(statement)
            if any(isinstance(inner, Break | Continue | Return) for inner in own_level((statement,))):
                self.at.unsure += 1  # what follows may be left out
        self.at.unsure = unsure

    def statement(self, statement: Stmt) -> None:
        match statement:
            case If(test, body, orelse):
                self.expression(test)
                for wanted, side in ((True, body), (False, orelse)):
                    with self.guarded(test, wanted):
                        self.block(side)
                self.forget((statement,))
            case While(test, body):
                self.forget((statement,))
                with self.trips():
                    self.at.unsure += 1
                    self.at.dimension()
                    self.expression(test)
                    self.block(body)
            case For(space, body):
                self.expression(space)
                bounds = self.bounds(space)
                self.by_elements = () if self.events is None else self.elements.bounds(self.at.scope, space)
                self.forget((statement,))
                self.loop(statement, body, bounds)
                self.forget((statement,))
            case Assign(target, value):
                self.expression(value)
                self.target(target, in_place=False)
                self.assign(target, value)
            case Update(target, op, value):
                self.expression(value)
                self.expression(target)
                self.target(target, in_place=True)
                if isinstance(target, Var):
                    self.assign(target, Binary(op, target, value, statement.span))
            case _:
                self.expression(statement)
                self.forget((statement,))

    def loop(self, statement: For, body: Sequence[Stmt], bounds: tuple[Value | None, ...]) -> None:
        if self.events is None:  # no one asks for what it does
            return
        with self.trips():
            missing = self.at.missing
            sparse = isinstance(statement.space, Elements)
            if isinstance(statement.space, Elements):
                self.at.dimension()
            else:
                self.enter(statement.space, bounds)
                limits = zip(("<=", ">"), self.by_elements, strict=False)
                dim: Value = {self.at.dims[-1]: 1}
                self.at.by_elements += [compared(end, op, dim) for op, end in limits if end is not None]
            ends = holds_break(body) or holds(Return, *body)
            self.at.unsure += sparse or ends or self.at.missing > missing
            self.block(body)

    @contextmanager
    def trips(self) -> Iterator[None]:
        """A loop in an iteration: a dimension of its own (of a `while`: the number of the trip)."""
        with self.inside():
            self.place.append(0)
            yield
        self.place.pop()
        self.tick()

    def tick(self) -> None:
        if self.place:
            self.place[-1] += 1

    def assign(self, target: Expr, value: Expr) -> None:
        match target, value:
            case Var(name), _:
                by_elements = None if self.events is None else self.elements.value(self.at.scope, value)
                self.know(name, self.valued(value), is_of_data(self.at.scope, value))
                if by_elements is not None and self.at.scope.names[name] is None:
                    self.at.scope.of_elements[name] = by_elements
            case Tuple(targets), Tuple(values) if len(targets) == len(values):
                new = [(self.valued(part), is_of_data(self.at.scope, part)) for part in values]
                for part, found in zip(targets, new, strict=True):
                    if isinstance(part, Var):
                        self.know(part.name, *found)
            case Tuple(targets), _:
                self.at.scope.forget(part.name for part in targets if isinstance(part, Var))

    def know(self, name: str, value: Value | None, is_data: bool) -> None:
        self.at.scope.forget((name,))
        if value is None and self.events is None and not isinstance(self.types.get(name), ArrayType):
            value = self.parameter(name, is_data)  # others may be given it, and sums with it
        self.at.scope.names[name] = value
        if value is None and is_data:
            self.at.scope.of_data.add(name)

    def valued(self, value: Expr) -> Value | None:
        try:
            return self.at.scope.value(value)
        except UnprovedError:
            return None

    def forget(self, statements: Iterable[Stmt]) -> None:
        self.at.scope.forget(assigned_places(statements))

    # ------------------------------------------------------------ events

    def target(self, target: Expr, *, in_place: bool) -> None:
        """Note the writes of an assignment. A row's name that is rebound, not changed `in_place`, writes nothing."""
        for part in target.items if isinstance(target, Tuple) else (target,):
            if isinstance(part, Subscript):
                for index in part.index:
                    self.expression(index)
            if in_place or not (isinstance(part, Var) and part.name in self.views):
                self.touch(part, is_write=True)

    def expression(self, node: Node) -> None:
        """Note all that an expression reads, and what calls in it may write."""
        if self.events is None:
            return
        match node:
            case Subscript(_, parts):
                for index in parts:
                    self.expression(index)
                self.touch(node, is_write=False)
            case Var():
                self.touch(node, is_write=False)
            case Call():
                for part in children(node):
                    self.expression(part)
                self.call(node)
            case Choose(test, then, orelse):
                self.expression(test)
                for wanted, side in ((True, then), (False, orelse)):
                    with self.guarded(test, wanted):
                        self.expression(side)
            case Logic(op, (first, *rest)):
                self.expression(first)
                if rest:
                    with self.guarded(first, op == "and"):
                        self.at.unsure += 1
                        self.expression(Logic(op, tuple(rest), node.span))
            case Compare(_, operands):  # `a < b < c` looks at c where a < b
                for operand in operands[:2]:
                    self.expression(operand)
                self.at.unsure += 1
                for other in operands[2:]:
                    self.expression(other)
                self.at.unsure -= 1
            case Bind(_, row):
                for index in row.index:
                    self.expression(index)
            case _:
                for part in children(node):
                    self.expression(part)

    def call(self, call: Call) -> None:
        """Note what a call may write: a method its array, a function of the user's what it says."""
        ranks = {name: kind.ndim for name, kind in self.types.items() if isinstance(kind, ArrayType)}
        self.at.unsure += 1
        for position in written_positions(call, self.function, ranks):
            for place in viewed_places(call.arguments[position]):  # `A` and `i` are not written by `A[i].sort()`
                self.touch(place, is_write=True)
        self.at.unsure -= 1

    def touch(self, node: Expr, *, is_write: bool) -> None:
        if self.events is None:
            return
        name = node.base.name if isinstance(node, Subscript) else node.name if isinstance(node, Var) else ""
        if name in self.scalars:
            self.note(name, node, 0, is_write, [], [], exact=True, sure=True)
        for array in self.views.get(name, ()):
            self.element(array, node, (), is_write, exact=False)
        if isinstance(self.types.get(name), ArrayType) and name not in self.views:
            index = node.index if isinstance(node, Subscript) else ()
            self.element(name, node, index, is_write, exact=True)

    def element(self, array: str, node: Expr, index: Sequence[Expr], is_write: bool, *, exact: bool) -> None:
        kind = self.types[array]
        assert isinstance(kind, ArrayType)
        texts, left, by_elements = list[str](), list[Leaving](), [*self.at.by_elements]
        sure = exact
        for axis in range(kind.ndim):
            length = self.at.scope.value(Dim(array, axis, node.span))
            at = f"e{axis}__"
            texts += [compared({}, "<=", {at: 1}), compared({at: 1}, "<", length)]
            if axis < len(index):
                said, unknown = on_axis(self.at.scope, index[axis], at, length)
                texts += said
                if unknown:
                    by_elements += self.elements.on_axis(self.at.scope, index[axis], at, length)
                    sure, exact = False, exact and all(is_of_data(self.at.scope, part) for part in unknown)
                else:
                    left += leaving(self.at.scope, index[axis], axis, length)
        self.note(array, node, kind.ndim, is_write, texts, left, exact=exact, sure=sure, by_elements=by_elements)

    def note(
        self,
        array: str,
        node: Node,
        rank: int,
        is_write: bool,
        at: list[str],
        left: list[Leaving],
        *,
        exact: bool,
        sure: bool,
        by_elements: Sequence[str] = (),
    ) -> None:
        assert self.events is not None
        certain = not self.at.missing and not self.at.unsure
        if self.unlimited:  # accesses that meet for some of its values may not be those that it has
            said = defined([*self.at.conditions, *at], self.at.scope.definitions)[0]
            exact = exact and self.unlimited.isdisjoint(names_of(said))
        known = exact and not self.at.missing, sure and certain, certain
        place = tuple(self.place)
        self.tick()
        found = tuple(self.at.conditions), tuple(at), tuple(left)
        named = {one for text in by_elements for one in names_of(text)}
        elements = tuple(one for one in self.elements.found.values() if one.name in named)
        event = Event(array, node, is_write, tuple(self.at.dims), rank, *found, place, *known)
        self.events.append(replace(event, elements=elements, by_elements=tuple(by_elements)))


def number(value: int) -> Value:
    return {"": value} if value else {}
