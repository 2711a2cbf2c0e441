"""The inspector of a loop: what of its body computes the elements that its iterations touch.

A backward slice (Weiser, *Program slicing*, ICSE 1981) of the loop for the subscripts of the arrays that it carries
dependences over: the statements that give these subscripts their values, with the conditions and loops around them.
Where a condition needs what the loop itself writes, both of its sides are taken: what is listed is never too little. A
loop has no inspector where a subscript needs such a value, or the arrays that subscripts are read from are written in
the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from orion.dependence.access import LoopDependences
from orion.dependence.early_exits import ends_early
from orion.dependence.inspection import END, ENDS, FIRST, PLACES, Inspectable, extent_argument
from orion.ir.assigned import assigned_names, assignments
from orion.ir.function import Function
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Count,
    Dim,
    Elements,
    Expr,
    For,
    If,
    Logic,
    Node,
    Pass,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    While,
    every,
    holds,
    names_in,
)
from orion.ir.program import LoopNest, OfSource
from orion.ir.rewriting import rewrite
from orion.ir.spans import without_spans
from orion.ir.types import ArrayType, ScalarType, Types
from orion.source import Span

AT, TRIP = "orion_at", "orion_trip"
"""How many accesses are listed, and how many iterations."""


class NoInspectorError(Exception):
    """Some subscript cannot be computed before the loop runs."""


@dataclass(frozen=True, slots=True)
class Access:
    """An access whose element is to be listed, by those of its subscripts that tell elements apart."""

    array: str
    subscripts: tuple[Expr, ...]
    is_write: bool
    span: Span

    @property
    def element(self) -> object:
        """What tells its element from others where names have the same values."""
        return self.array, *map(without_spans, self.subscripts)


@dataclass(frozen=True, slots=True)
class Around:
    """What is left of a statement that holds others, with what is left of these."""

    statement: If | For | While
    body: tuple[Item, ...]
    orelse: tuple[Item, ...] = ()


Item = Access | Around | Assign | Update


def inspectable(nest: LoopNest, types: Types, analysis: LoopDependences) -> Inspectable | None:
    """The inspector of a loop that is serial as far as can be told without the contents of arrays; None where it has
    none.

    No iteration may leave anything but elements of arrays to those after it: scalars that are handed on, ends of loops,
    and arrays of which each tile has its own need the order of the loop.
    """
    scalars = analysis.scalars
    if nest.elements is not None or not isinstance(nest.form, OfSource) or nest.copied_in:
        return None
    if analysis.reasons or analysis.private or analysis.sums or scalars.has_results or ends_early(nest.body):
        return None
    arrays = tuple(sorted({one.array for one in analysis.dependences}))
    if all(one.exact for one in analysis.dependences):
        return None  # an inspector would find what is known
    if any(not isinstance(types.get(name), ArrayType) for name in arrays):
        return None
    try:
        return _Slicer(nest, types, arrays).inspectable()
    except NoInspectorError:
        return None


@dataclass(slots=True)
class _Slicer:
    nest: LoopNest
    types: Types
    arrays: tuple[str, ...]
    keyed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)

    @property
    def loop(self) -> For:
        return self.nest.loops[0]

    @property
    def function(self) -> Function:
        return self.nest.function

    def inspectable(self) -> Inspectable:
        self.keyed = {name: self.subscripts_of(name) for name in self.arrays}
        items: tuple[Item, ...] = ()
        while True:  # until all names that subscripts need are computed
            before = len(self.needed)
            items = self.block(self.loop.body)
            self.needed |= _names_of(items)
            if len(self.needed) == before:
                break
        if not any(isinstance(one, Access) and one.is_write for one in _all(items)):
            raise NoInspectorError
        return self.made(items)

    # ------------------------------------------------------------ which subscripts tell elements apart

    def subscripts_of(self, array: str) -> tuple[int, ...]:
        """The subscripts of an array that elements are told apart by. Not those that run through the same range
        wherever the array is touched: each access is to all elements along them."""
        uses = [one for one in every(Subscript, self.loop) if one.base.name == array]
        if sum(node.name == array for node in every(Var, self.loop)) != len(uses):
            raise NoInspectorError  # it is used as a whole
        rank = min(len(use.index) for use in uses)
        found = [
            axis
            for axis in range(rank)
            if not any(isinstance(use.index[axis], Slice) for use in uses) and not self.runs_through(axis, uses)
        ]
        if not found:
            raise NoInspectorError
        return tuple(found)

    def runs_through(self, axis: int, uses: Sequence[Subscript]) -> bool:
        """Whether a subscript is, wherever the array is touched, the variable of an inner loop over the same range."""
        spaces = [one.space for one in every(For, *self.loop.body) if isinstance(one.space, Range)]
        indices = [use.index[axis] for use in uses]
        names = {index.name if isinstance(index, Var) else "" for index in indices}
        ranges = [(space.start, space.stop, space.step) for space in spaces if space.var in names]
        is_same = len({tuple(map(without_spans, bounds)) for bounds in ranges}) == 1
        still = names_in(*(part for bounds in ranges for part in bounds)).isdisjoint(assigned_names((self.loop,)))
        return is_same and still and names <= {space.var for space in spaces}

    # ------------------------------------------------------------ the slice

    def block(self, body: Iterable[Stmt]) -> tuple[Item, ...]:
        found = [item for statement in body for item in self.statement(statement)]
        return self.each_once(found)

    def each_once(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """The items without accesses to what is written, or listed, beside them."""
        changing = _assigned_in(items)
        written = {one.element for one in items if isinstance(one, Access) and one.is_write}
        seen: set[object] = set()
        found: list[Item] = []
        for item in items:
            if isinstance(item, Access) and changing.isdisjoint(_names_of((item,))):
                if item.element in seen or (not item.is_write and item.element in written):
                    continue
                seen.add(item.element)
            found.append(item)
        return tuple(found)

    def statement(self, statement: Stmt) -> Iterator[Item]:
        match statement:
            case Assign(target, value):
                yield from self.reads(value)
                yield from self.target(target)
                yield from self.kept(statement, target, value)
            case Update(target, _, value):
                yield from self.reads(value)
                yield from self.target(target)
                yield from self.kept(statement, target, value)
            case If(test, body, orelse):
                yield from self.reads(test)
                yield from self.branch(statement, self.block(body), self.block(orelse))
            case For(space, body):
                assert not isinstance(space, Elements)
                yield from self.reads(space.start, space.stop, space.step)
                yield from self.inside(statement, self.block(body))
            case While(test, body):
                yield from self.reads(test)
                inside = self.block(body)
                if inside:
                    self.check(test)
                    self.check_whole(body)
                    yield Around(statement, inside)
            case Pass() | Break() | Continue():
                pass  # a loop that is not left early touches more
            case _:
                if not names_in(statement).isdisjoint(self.arrays):
                    raise NoInspectorError

    def branch(self, statement: If, body: tuple[Item, ...], orelse: tuple[Item, ...]) -> Iterator[Item]:
        if not (body or orelse):
            return
        if self.is_known(statement.test):
            yield Around(statement, body, orelse)
        elif all(isinstance(one, Access) for one in (*body, *orelse)):
            yield from (*body, *orelse)
        else:
            raise NoInspectorError

    def inside(self, statement: For, items: tuple[Item, ...]) -> Iterator[Item]:
        """What is left of an inner loop; accesses that are the same in all of its iterations stand in its place."""
        space = statement.space
        assert isinstance(space, Range)
        inner = {space.var} | _assigned_in(items)
        still = [one for one in items if isinstance(one, Access) and inner.isdisjoint(_names_of((one,)))]
        yield from still
        rest = tuple(one for one in items if one not in still)
        if rest:
            self.check(space.start, space.stop, space.step)
            if _assigned_in(rest):
                self.check_whole(statement.body)
            yield Around(statement, rest)

    def check_whole(self, body: Iterable[Stmt]) -> None:
        """What names are given must not hang on which iterations of a loop are left early."""
        if holds((Break, Continue), *body):
            raise NoInspectorError

    def kept(self, statement: Assign | Update, target: Expr, value: Expr) -> Iterator[Item]:
        """A statement that gives a name that is needed its value."""
        names = {name for name in assigned_names((statement,)) if name in self.needed}
        if names:
            if not isinstance(target, Var):
                raise NoInspectorError
            self.check(value)
            yield statement

    def target(self, target: Expr) -> Iterator[Item]:
        for part in target.items if isinstance(target, Tuple) else (target,):
            if isinstance(part, Subscript):
                yield from self.reads(*part.index)
                if part.base.name in self.arrays:
                    yield self.access(part, is_write=True)

    def reads(self, *code: Node) -> Iterator[Item]:
        for use in every(Subscript, *code):
            if use.base.name in self.arrays:
                yield self.access(use, is_write=False)

    def access(self, use: Subscript, *, is_write: bool) -> Access:
        subscripts = tuple(use.index[axis] for axis in self.keyed[use.base.name])
        self.check(*subscripts)
        return Access(use.base.name, subscripts, is_write, use.span)

    # ------------------------------------------------------------ what can be computed before the loop

    def is_known(self, *code: Expr) -> bool:
        """Whether the code needs nothing that the function writes."""
        arrays = {name for name in names_in(*code) if isinstance(self.types.get(name), ArrayType)}
        given = set(self.function.given)
        return arrays <= given and arrays.isdisjoint(self.written) and not holds(Slice, *code)

    def check(self, *code: Expr) -> None:
        if not self.is_known(*code):
            raise NoInspectorError

    @property
    def written(self) -> set[str]:
        targets = [one.target for one in every((Assign, Update), *self.function.body)]
        parts = [part for one in targets for part in (one.items if isinstance(one, Tuple) else (one,))]
        bases = {part.base.name for part in parts if isinstance(part, Subscript)}
        return bases | assigned_names(self.function.body)

    # ------------------------------------------------------------ the function

    def made(self, items: tuple[Item, ...]) -> Inspectable:
        loop, span = self.loop, self.loop.span
        space = loop.space
        assert isinstance(space, Range)
        self.check(space.start, space.stop, space.step)
        bases = self.bases(span)
        writer = _Writer(self.keyed, bases)
        at, trip = Var(AT, span), Var(TRIP, span)
        one = Const(1, span)
        inner = (
            *writer.block(items),
            Assign(Subscript(Var(ENDS, span), (trip,), span), at, span),
            Update(trip, "+", one, span),
        )
        before = self.before({*_names_of(items), *names_in(space.start, space.stop, space.step)})
        body: tuple[Stmt, ...] = (
            *before,
            Assign(at, Const(0, span), span),
            Assign(trip, Const(0, span), span),
            replace(loop, space=_part_of(space), body=inner),
        )
        body, extents = with_extents(body)
        if holds(Count, *body):
            raise NoInspectorError
        used = names_in(*body)
        params = tuple(name for name in self.function.given if name in used)
        arrays = tuple(name for name in params if isinstance(self.types.get(name), ArrayType))
        integers = tuple(name for name in params if isinstance(self.types.get(name), ScalarType))
        known = {*params, *assigned_names(body), *extents, FIRST, END, ENDS, PLACES}
        if not used <= known:
            raise NoInspectorError
        function = Function(
            name=f"inspect_{self.function.name}_{loop.index}",
            params=(*params, *extents, FIRST, END, ENDS, PLACES),
            body=body,
            constants=self.function.constants,
            helpers=self.function.helpers,
            source=self.function.source,
            span=self.function.span,
        )
        return Inspectable(
            loop.index, self.arrays, tuple(self.keyed[name] for name in self.arrays), function, arrays, integers
        )

    def bases(self, span: Span) -> dict[str, Expr]:
        """The number of the first element of each array."""
        found: dict[str, Expr] = {}
        base: Expr = Const(0, span)
        for name in self.arrays:
            found[name] = base
            base = Binary("+", base, size_of(name, self.keyed[name], span), span)
        return found

    def before(self, names: set[str]) -> tuple[Assign, ...]:
        """The statements before the loop that give names their values, where these are the only ones."""
        bound = {loop.space.var for loop in every(For, self.loop) if isinstance(loop.space, Range)} | self.needed
        inside = assigned_names((self.loop,))
        found: list[Assign] = []
        given = set(self.function.given)
        top = [one for one in self.function.body if isinstance(one, Assign)]
        waiting = sorted(names - given)
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in seen or name in inside & bound or name in given:
                continue
            seen.add(name)
            places = [one for one in top if name in assigned_names((one,))]
            assigned = sum(one == name for statement in self.function.body for one, _ in assignments(statement))
            if len(places) != 1 or assigned != 1:
                raise NoInspectorError
            self.check(places[0].value)
            if places[0] not in found:  # it may give several names their values
                found.append(places[0])
            waiting += sorted(names_in(places[0].value))
        changed = assigned_names(self.function.body)
        if any(name in changed for name in names & given):
            raise NoInspectorError
        return tuple(sorted(found, key=top.index))


def _part_of(space: Range) -> Range:
    """The iterations of a range whose numbers, from 0, an inspector is given."""
    first, end = (
        Binary("+", space.start, Binary("*", Var(name, space.span), space.step, space.span), space.span)
        for name in (FIRST, END)
    )
    return replace(space, start=first, stop=end)


def with_extents(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[str, ...]]:
    """Code with names for the lengths of arrays, and these names: an inspector is not given arrays that it does not
    read, of which the function may make some itself."""
    found: dict[str, None] = {}

    def named(expr: Expr) -> Expr:
        if not isinstance(expr, Dim) or expr.array == PLACES:
            return expr
        name = extent_argument(expr.array, expr.axis)
        found[name] = None
        return Var(name, expr.span)

    return tuple(rewrite(statement, named) for statement in body), tuple(found)


def size_of(array: str, axes: Sequence[int], span: Span) -> Expr:
    """How many elements an array has that subscripts along these axes tell apart."""
    dims: list[Expr] = [Dim(array, axis, span) for axis in axes]
    return reduce(lambda left, right: Binary("*", left, right, span), dims)


@dataclass(slots=True)
class _Writer:
    """Writes what is left of a loop as statements that list its accesses."""

    keyed: dict[str, tuple[int, ...]]
    bases: dict[str, Expr]
    count: int = 0

    def block(self, items: Iterable[Item]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for item in items:
            match item:
                case Access():
                    found += self.listed(item)
                case Around(If() as statement, body, orelse):
                    inside = self.block(body) or (Pass(statement.span),)
                    found.append(replace(statement, body=inside, orelse=self.block(orelse)))
                case Around(statement, body):
                    found.append(replace(statement, body=self.block(body)))
                case Assign() | Update():
                    found.append(item)
        return tuple(found)

    def listed(self, access: Access) -> Iterator[Stmt]:
        span, axes = access.span, self.keyed[access.array]
        names = []
        for axis, subscript in zip(axes, access.subscripts, strict=True):
            at = Var(f"orion_place_{self.count}", span)
            self.count += 1
            names.append((at, Dim(access.array, axis, span)))
            yield Assign(at, Call(INTEGER, (subscript,), span), span)
            yield If(Compare(("<",), (at, Const(0, span)), span), (Update(at, "+", names[-1][1], span),), (), span)
        number: Expr = names[0][0]
        for at, extent in names[1:]:
            number = Binary("+", Binary("*", number, extent, span), at, span)
        number = Binary("+", number, self.bases[access.array], span)
        value: Expr = Binary("+", Binary("*", number, Const(2, span), span), Const(int(access.is_write), span), span)
        tests = [Compare(("<=", "<"), (Const(0, span), at, extent), span) for at, extent in names]
        test: Expr = Logic("and", tuple(tests), span) if len(tests) > 1 else tests[0]
        count = Var(AT, span)
        element = Subscript(Var(PLACES, span), (count,), span)
        room = Compare(("<",), (count, Dim(PLACES, 0, span)), span)
        put = If(test, (Assign(element, value, span),), (Assign(element, Const(-1, span), span),), span)
        yield If(room, (put,), (), span)
        yield Update(count, "+", Const(1, span), span)


def _all(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Around):
            yield from _all((*item.body, *item.orelse))
        else:
            yield item


def _names_of(items: Iterable[Item]) -> set[str]:
    """The names that must have their values where the items stand."""
    found: set[str] = set()
    for item in items:
        match item:
            case Access(_, subscripts):
                found |= names_in(*subscripts)
            case Around(If(test) | While(test), body, orelse):
                found |= names_in(test) | _names_of((*body, *orelse))
            case Around(For(space), body):
                assert isinstance(space, Range)
                found |= names_in(space.start, space.stop, space.step) | _names_of(body)
            case Assign() | Update():
                found |= names_in(item)
            case _:
                raise NoInspectorError
    return found


def _assigned_in(items: Iterable[Item]) -> set[str]:
    """The names that are given values in what is left of some code."""
    return {name for one in _all(items) if isinstance(one, Assign | Update) for name in assigned_names((one,))}
