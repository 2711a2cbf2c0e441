"""What of the body of a loop computes the elements that its iterations touch.

A backward slice (Weiser, *Program slicing*, ICSE 1981) of the loop for the subscripts of the arrays that it carries
dependences over: the statements that give these subscripts their values, with the conditions and loops around them.
Where a condition needs what the loop itself writes, both of its sides are taken: what is listed is never too little. A
loop has no such slice where a subscript needs such a value, or the arrays that subscripts are read from are written in
the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orion.dataclass import dataclass, field
from orion.dependence.access import LoopDependences, Reduction
from orion.dependence.early_exits import ends_early
from orion.ir.assigned import assigned_names, own_level
from orion.ir.function import Function
from orion.ir.kept import kept
from orion.ir.nodes import (
    Assign,
    Break,
    Call,
    Continue,
    Elements,
    Expr,
    For,
    If,
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
from orion.ir.spans import without_spans
from orion.ir.types import ArrayType, Types
from orion.passes.writes import written_names as written_parameters
from orion.source import Span
from orion.typing.infer import infer_types


class NoInspectorError(Exception):
    """What a loop touches cannot be listed before it runs: why, in a clause, and where that shows."""

    def __init__(self, why: str, span: Span) -> None:
        super().__init__(why)
        self.why, self.span = why, span


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


@dataclass(frozen=True, slots=True)
class AddressSlice:
    """What is left of a loop for the subscripts of `arrays`, whose elements `keyed` tells apart: the statements, and
    the accesses, of an iteration."""

    loop: For
    arrays: tuple[str, ...]
    keyed: tuple[tuple[int, ...], ...]
    items: tuple[Item, ...]


def address_slice(nest: LoopNest, types: Types, analysis: LoopDependences) -> AddressSlice | None:
    """The slice of a loop that is serial as far as can be told without the contents of arrays; None where it needs
    none. NoInspectorError where it has none.

    No iteration may leave anything but elements of arrays to those after it: scalars that are handed on, and ends of
    loops, need the order of the loop. So do sums and products of floats, which are rounded in their order. What is the
    same in any order of contiguous parts, such as a maximum, or an array of which each tile has its own, may be.
    """
    scalars = analysis.scalars
    if nest.elements is not None or not isinstance(nest.form, OfSource) or nest.copied_in:
        return None
    if analysis.reasons or analysis.sums or scalars.carried or ends_early(nest.body):
        return None
    arrays = tuple(sorted({one.array for one in analysis.dependences}))
    if all(one.exact for one in analysis.dependences):
        return None  # an inspector would find what is known
    if any(not isinstance(types.get(name), ArrayType) for name in arrays):
        return None
    rounded = _rounded(scalars.reductions, nest.function, types)
    if rounded is not None:
        why = (
            f"`{rounded.name}` adds up floats in the order of the iterations: store what each of them adds in an array"
        )
        raise NoInspectorError(f"{why}, and add that up in a loop of its own", rounded.span)
    return _Slicer(nest, types, arrays).of_what_is_written()


def slice_for(nest: LoopNest, types: Types, array: str) -> AddressSlice:
    """The slice of a loop for one of its arrays, which it may only read. NoInspectorError where it has none, and where
    scalars that subscripts may need are handed on from iteration to iteration."""
    return _Slicer(nest, types, (array,)).slice()


def _rounded(reductions: Sequence[Reduction], function: Function, types: Types) -> Reduction | None:
    """A scalar that iterations add to, or multiply, and that is not the same to the bit in any order, as integers
    are."""
    sums = [one for one in reductions if one.op in ("+", "*")]
    if not sums:
        return None
    typing = infer_types(function, types)
    return next((one for one in sums if one.name not in typing.names or not typing.name(one.name).is_integer), None)


@dataclass(slots=True)
class _Slicer:
    """`keyed` are the subscripts that elements of the arrays are told apart by. `needed` are the names that subscripts
    need, and conditions on what the loop does not write; `hidden` those whose values nobody knows before it runs."""

    nest: LoopNest
    types: Types
    arrays: tuple[str, ...]
    keyed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)

    @property
    def loop(self) -> For:
        return self.nest.loops[0]

    @property
    def function(self) -> Function:
        return self.nest.function

    def of_what_is_written(self) -> AddressSlice:
        found = self.slice()
        if not any(isinstance(one, Access) and one.is_write for one in all_items(found.items)):
            raise NoInspectorError("it writes nothing that is told apart", self.loop.span)
        return found

    def slice(self) -> AddressSlice:
        self.keyed = {name: self.subscripts_of(name) for name in self.arrays}
        items: tuple[Item, ...] = ()
        while True:  # until all names that subscripts need are computed
            before = len(self.needed), len(self.hidden)
            items = self.block(self.loop.body)
            self.needed |= names_of(items)
            if (len(self.needed), len(self.hidden)) == before:
                break
        if isinstance(self.loop.space, Range) and self.loop.space.var not in self.needed:
            names = " and ".join(f"`{name}`" for name in self.arrays)
            why = f"every iteration of `{self.loop.space.var}` may touch the same elements of {names}"
            raise NoInspectorError(why, self.loop.span)
        return AddressSlice(self.loop, self.arrays, tuple(self.keyed[name] for name in self.arrays), items)

    # ------------------------------------------------------------ which subscripts tell elements apart

    def subscripts_of(self, array: str) -> tuple[int, ...]:
        """The subscripts of an array that elements are told apart by. Not those that run through the same range
        wherever the array is touched: each access is to all elements along them."""
        uses = [one for one in every(Subscript, self.loop) if one.base.name == array]
        if sum(node.name == array for node in every(Var, self.loop)) != len(uses):
            raise NoInspectorError(f"`{array}` is used as a whole in it", self.loop.span)
        rank = min(len(use.index) for use in uses)
        found = [
            axis
            for axis in range(rank)
            if not any(isinstance(use.index[axis], Slice) for use in uses) and not self.runs_through(axis, uses)
        ]
        if not found:
            raise NoInspectorError(f"no subscript tells apart what it touches of `{array}`", self.loop.span)
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
        changing = assigned_in(items)
        written = {one.element for one in items if isinstance(one, Access) and one.is_write}
        seen: set[object] = set()
        found: list[Item] = []
        for item in items:
            if isinstance(item, Access) and changing.isdisjoint(names_of((item,))):
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
                    raise NoInspectorError("nobody can list what this touches", statement.span)

    def branch(self, statement: If, body: tuple[Item, ...], orelse: tuple[Item, ...]) -> Iterator[Item]:
        if not (body or orelse):
            return
        if self.is_known(statement.test):
            yield Around(statement, body, orelse)
        elif all(isinstance(one, Access) for one in (*body, *orelse)):
            yield from (*body, *orelse)
        else:
            why = "what it touches hangs on a condition on what it writes"
            raise NoInspectorError(why, statement.test.span)

    def inside(self, statement: For, items: tuple[Item, ...]) -> Iterator[Item]:
        """What is left of an inner loop; accesses that are the same in all of its iterations stand in its place."""
        space = statement.space
        assert isinstance(space, Range)
        inner = {space.var} | assigned_in(items)
        still = [one for one in items if isinstance(one, Access) and inner.isdisjoint(names_of((one,)))]
        yield from still
        rest = tuple(one for one in items if one not in still)
        if rest:
            if any(isinstance(one, Break) for one in own_level(statement.body)):
                why = "an inner loop is left early, and nobody can say how much longer it might go on"
                raise NoInspectorError(why, statement.span)
            self.check(space.start, space.stop, space.step)
            if assigned_in(rest):
                self.check_whole(statement.body)
            yield Around(statement, rest)

    def check_whole(self, body: Iterable[Stmt]) -> None:
        """What names are given must not hang on which iterations of a loop are left early."""
        if holds((Break, Continue), *body):
            why = "what a name stands for hangs on which iterations of an inner loop are left early"
            raise NoInspectorError(why, next(iter(every((Break, Continue), *body))).span)

    def kept(self, statement: Assign | Update, target: Expr, value: Expr) -> Iterator[Item]:
        """A statement that gives a name that is needed its value."""
        names = {name for name in assigned_names((statement,)) if name in self.needed}
        if names and isinstance(target, Var) and self.is_known(value):
            yield statement
        else:
            self.hidden |= names

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

    def is_known(self, *code: Expr) -> bool:
        return self.hidden.isdisjoint(names_in(*code)) and is_known(self.function, self.types, *code)

    def check(self, *code: Expr) -> None:
        for one in code:
            if not self.is_known(one):
                raise NoInspectorError(self.why_not(one), one.span)

    def why_not(self, code: Expr) -> str:
        """Why nobody knows the value of an expression before the loop runs."""
        hidden = sorted(self.hidden.intersection(names_in(code)))
        written = written_names(self.function)
        arrays = [name for name in sorted(names_in(code)) if isinstance(self.types.get(name), ArrayType)]
        others = [name for name in arrays if name in written or name not in self.function.given]
        if hidden:
            return f"`{hidden[0]}` hangs on what the loop writes"
        if others:
            return f"subscripts are read from `{others[0]}`, which the function writes"
        return "a subscript calls a function, or takes a part of an array"


def is_known(function: Function, types: Types, *code: Expr) -> bool:
    """Whether code has values before the loops of a function run: it needs no array that the function writes. Of arrays
    that helpers have from elsewhere nobody would know when they change."""
    arrays = {name for name in names_in(*code) if isinstance(types.get(name), ArrayType)}
    if any(one.function.startswith("helper:") for one in every(Call, *code)) or holds(Slice, *code):
        return False
    return arrays <= set(function.given) and arrays.isdisjoint(written_names(function))


@kept
def written_names(function: Function) -> frozenset[str]:
    """The names that a function gives values, and the arrays whose elements it writes, by methods and helpers too."""
    targets = [one.target for one in every((Assign, Update), *function.body)]
    parts = [part for one in targets for part in (one.items if isinstance(one, Tuple) else (one,))]
    bases = {part.base.name for part in parts if isinstance(part, Subscript)}
    return frozenset(bases | assigned_names(function.body) | written_parameters(function))


def all_items(items: Iterable[Item]) -> Iterator[Item]:
    """The items, and those in them."""
    for item in items:
        if isinstance(item, Around):
            yield from all_items((*item.body, *item.orelse))
        else:
            yield item


def names_of(items: Iterable[Item]) -> set[str]:
    """The names that must have their values where the items stand."""
    found: set[str] = set()
    for item in items:
        match item:
            case Access(_, subscripts):
                found |= names_in(*subscripts)
            case Around(If(test) | While(test), body, orelse):
                found |= names_in(test) | names_of((*body, *orelse))
            case Around(For(space), body):
                assert isinstance(space, Range)
                found |= names_in(space.start, space.stop, space.step) | names_of(body)
            case Assign() | Update():
                found |= names_in(item)
            case _:
                raise AssertionError(item)
    return found


def assigned_in(items: Iterable[Item]) -> set[str]:
    """The names that are given values in what is left of some code."""
    return {name for one in all_items(items) if isinstance(one, Assign | Update) for name in assigned_names((one,))}
