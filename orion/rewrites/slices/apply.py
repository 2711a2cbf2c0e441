"""Loops in place of statements over slices, for the calls in which their bounds and lengths fit.

    for t in range(rounds):                             for t in range(rounds):
        A[1:-1] = 0.5 * (A[:-2] + A[2:])                    for i in range(1, n - 1):
                                                                A_new[i - 1] = 0.5 * (A[i - 1] + A[i + 1])
                                                            for i in range(1, n - 1):
                                                                A[i] = A_new[i - 1]

where n >= 2. NumPy computes all of a value before it stores any of it: where that makes a difference, since elements of
the array that is written are read at other places, the value has an array of its own. It is one loop else: each
iteration reads and writes the elements of one place, in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from orion.dataclass import dataclass, field, replace
from orion.dependence.given_sizes import GivenSizes
from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assigned_names
from orion.ir.assumed import OfSizes, OfWorkers
from orion.ir.function import Function, LocalArray
from orion.ir.nodes import (
    Assign,
    Compare,
    Const,
    Dim,
    Expr,
    For,
    If,
    Range,
    Slice,
    Stmt,
    Subscript,
    Update,
    Var,
    While,
    every,
    names_in,
)  # fmt: skip
from orion.ir.program import SYNTHETIC, new_numbers
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite, with_new
from orion.ir.spans import NOWHERE, with_span, without_spans
from orion.ir.sums import difference, total
from orion.ir.types import ArrayType, Types
from orion.passes.between import separate
from orion.passes.elementwise import NamedScalars, cannot_fail, element_at
from orion.passes.homes import living_around
from orion.passes.sizes import with_arrays
from orion.rewrites.slices.bounds import Extent, at_most, condition, equal, extent_of, inside
from orion.rewrites.slices.find import is_over_slices, is_slow, meets_itself, placed, writes_rows
from orion.sets.maps import Maps
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.infer import infer_types, with_local_arrays

Axes = tuple[tuple[Var, Extent], ...]
"""The variables of loops, with the places of the target that they go through."""


class NoLoopsError(Exception):
    """A statement is none that loops stand for."""


ROW = 64
"""The least length of rows that are shared out by columns: of shorter ones two workers have a few cache lines each."""


def apply(function: Function, types: Types, typing: Typing, places: frozenset[Span]) -> tuple[Function, ...]:
    """The function with loops for the statements at these places, under the conditions on sizes that this takes.

    A row that is written in each iteration of a loop takes less time as it is, unless several workers share long ones
    whose elements take long: there is a form with such rows, if there are any, and one without.
    """
    rows = {one.statement.span: one.statement for one in placed(function.body) if writes_rows(one, typing)}
    slow = frozenset(span for span in rows.keys() & places if is_slow(rows[span]))
    others = places - rows.keys()
    forms = [_with_loops(function, types, typing, spans, slow & spans) for spans in (others | slow, others) if spans]
    return tuple(form for form in (forms if slow else forms[-1:]) if form is not None)


def _with_loops(
    function: Function, types: Types, typing: Typing, spans: Collection[Span], rows: Collection[Span]
) -> Function | None:
    try:
        changed = _with_values(_without_frames(function, spans), typing, spans)
        made = _made_there(changed, infer_types(changed, types), spans)
        if made:
            changed = with_arrays(changed, infer_types(changed, types), made)
        types = with_local_arrays(types, changed)
        writer = _Writer(changed, types, infer_types(changed, types), frozenset(spans), frozenset(rows))
        body = writer.block(changed.body, ())
        assumed = (*changed.assumed, *writer.assumed(made))
        local = _unchecked(changed, made)
        return separate(replace(changed, body=body, assumed=assumed, local_arrays=local), types)
    except (UnsupportedLoopError, NoLoopsError):
        return None


def _unchecked(function: Function, made: Collection[str]) -> tuple[LocalArray, ...]:
    """The arrays of the function; those that are made for loops are looked at by conditions instead."""
    return tuple(replace(one, is_sure=False, alike=()) if one.name in made else one for one in function.local_arrays)


def _without_frames(function: Function, spans: Collection[Span]) -> Function:
    """The function without the loops of one trip around the statements."""

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case For(_, body, number) if number == SYNTHETIC and _holds_any(body, spans):
                return body
            case _:
                return (statement,)

    return with_new(function, body=expand(function.body, change))


def _holds_any(body: tuple[Stmt, ...], spans: Collection[Span]) -> bool:
    return any(one.span in spans for one in every((Assign, Update), *body))


def _with_values(function: Function, typing: Typing, spans: Collection[Span]) -> Function:
    """The function with names for what is to be computed before anything is stored: scalars that are not cheap, single
    elements of the array that a statement writes to, and values with elements of it at other places."""
    taken = {*typing.names}

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case For(Range(), body):
                before = tuple(one for one in body if _is_moved(one, statement, typing))
                inside = tuple(one for one in body if one not in before)
                return (*before, with_new(statement, body=inside)) if before and inside else (statement,)
            case Assign(Subscript(Var(array))) | Update(Subscript(Var(array))) if statement.span in spans:
                scalars = NamedScalars(typing, f"{array}_at", taken)
                statement = replace(statement, value=scalars.taken_out(statement.value))
                if not meets_itself(statement):
                    return (*scalars.before, statement)
                more, statement = _with_scalars(statement, scalars.typing, taken)
                before = (*scalars.before, *more)
                if not meets_itself(statement):
                    return (*before, statement)
                name = Var(fresh(f"{array}_new", taken), statement.span)
                return (*before, Assign(name, statement.value, statement.span), replace(statement, value=name))
            case _:
                return (statement,)

    return with_new(function, body=expand(function.body, change))


def _is_moved(one: Stmt, loop: For, typing: Typing) -> bool:
    """Whether a statement gives a new name the same scalar in each iteration of a loop, and cannot fail: it may stand
    before the loop."""
    if not isinstance(one, Assign) or not isinstance(one.target, Var) or one.target.name in typing.names:
        return False
    names = names_in(one.value)
    if any(typing.names[name].rank for name in names if name in typing.names) or not cannot_fail(one.value):
        return False
    return names.isdisjoint(assigned_names((loop,)))


def _with_scalars(
    statement: Assign | Update, typing: Typing, taken: set[str]
) -> tuple[tuple[Stmt, ...], Assign | Update]:
    """A statement with names for the single elements in its value of the array that it writes to."""
    target = statement.target
    assert isinstance(target, Subscript)
    before: list[Stmt] = []

    def named(part: Expr) -> Expr:
        if not isinstance(part, Subscript) or part.base.name != target.base.name or typing.of(part).rank:
            return part
        name = Var(fresh(f"{part.base.name}_at", taken), part.span)
        before.append(Assign(name, part, part.span))
        return name

    changed = replace(statement, value=rewrite(statement.value, named))
    return tuple(before), changed


def _made_there(function: Function, typing: Typing, spans: Collection[Span]) -> tuple[str, ...]:
    """The arrays that the function makes in the statements at these places, and in serial loops around them. What lives
    in another loop alone, beside them, is left to that."""
    outer = [one for one in function.body if _holds_any((one,), spans)]
    arrays = assigned_names(outer) & {name for name, kind in typing.names.items() if kind.rank}
    made = living_around(outer, arrays - {*function.params}, lambda loop: _holds_any(loop.body, spans))
    return tuple(sorted(made))


@dataclass(slots=True)
class _Writer:
    """Writes loops; `conditions` are the comparisons that they take to hold, by the number of the loop, with the loops
    around it."""

    function: Function
    types: Types
    typing: Typing
    spans: frozenset[Span]
    rows: frozenset[Span]
    conditions: list[tuple[int, tuple[Compare, ...], tuple[For, ...]]] = field(default_factory=list)
    few: list[OfWorkers] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    taken: set[str] = field(init=False)
    numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = {*self.typing.names, *self.function.params}
        self.numbers = new_numbers(self.function.body)

    def block(self, body: tuple[Stmt, ...], around: tuple[For, ...]) -> tuple[Stmt, ...]:
        return tuple(self.statement(one, around) for one in body)

    def statement(self, statement: Stmt, around: tuple[For, ...]) -> Stmt:
        match statement:
            case For(_, body):
                return replace(statement, body=self.block(body, (*around, statement)))
            case While(_, body):
                return replace(statement, body=self.block(body, around))
            case If(_, body, orelse):
                return replace(statement, body=self.block(body, around), orelse=self.block(orelse, around))
            case Assign(Subscript()) | Update(Subscript()) if statement.span in self.spans:
                is_known = is_over_slices(statement, self.typing)
                return self.loops(statement, around) if is_known else statement
            case _:
                return statement

    def loops(self, statement: Assign | Update, around: tuple[For, ...]) -> Stmt:
        """The loops that a statement over slices stands for."""
        target, span = statement.target, statement.span
        assert isinstance(target, Subscript)
        checks: list[Compare] = []
        extents = self.extents(target, checks)
        variables = self.variables(target, len(extents))
        places = tuple(zip(variables, extents, strict=True))
        element = self.element(statement.value, places, checks)
        index = self.index(target, variables)
        inner: Stmt = replace(statement, target=Subscript(target.base, index, target.span), value=element)
        first = next(self.numbers)
        numbers = [first, *(next(self.numbers) for _ in variables[1:])]
        for (variable, one), number in reversed([*zip(places, numbers, strict=True)]):
            start, stop = with_span(one.start, span), with_span(one.stop, span)
            inner = For(Range(variable.name, start, stop, Const(1, span), span), (inner,), number, span)
        if span in self.rows:
            checks.append(at_most(Const(ROW, NOWHERE), difference(extents[0].stop, extents[0].start)))
            self.few.append(OfWorkers(first, 2))
        self.conditions.append((first, tuple(checks), around))
        return inner

    def variables(self, target: Subscript, number: int) -> tuple[Var, ...]:
        """The variables of loops over a part of an array."""
        array = target.base.name
        for k in range(len(self.names.setdefault(array, [])), number):
            self.names[array].append(fresh(f"{array}_{k}", self.taken))
        return tuple(Var(name, target.span) for name in self.names[array][:number])

    def extents(self, part: Subscript, checks: list[Compare]) -> list[Extent]:
        """The places of the axes that a part of an array has, with what must hold for its subscripts."""
        found = []
        for axis, (length, one) in enumerate(self.axes(part)):
            if one is None or isinstance(one, Slice):
                found.append(extent := extent_of(one, length))
                checks += extent.holds
            elif axis < len(part.index):
                checks.append(inside(one, length))
        return found

    def axes(self, part: Subscript) -> Iterator[tuple[Expr, Expr | None]]:
        """The lengths of the axes of the array, with the subscripts that they have."""
        lengths = self.lengths(part.base.name)
        rest = (None,) * (len(lengths) - len(part.index))
        yield from zip(lengths, (*part.index, *rest), strict=True)

    def lengths(self, array: str) -> tuple[Expr, ...]:
        for one in self.function.local_arrays:
            if one.name == array:
                return one.lengths
        kind = self.types.get(array)
        if not isinstance(kind, ArrayType):
            raise NoLoopsError
        return tuple(Dim(array, axis, NOWHERE) for axis in range(kind.ndim))

    def element(self, value: Expr, places: Axes, checks: list[Compare]) -> Expr:
        """What is stored at a place of the target."""

        def at(part: Subscript | Var, after: int = 0) -> Expr:
            whole = part if isinstance(part, Subscript) else Subscript(part, (), part.span)
            extents = self.extents(whole, checks)
            variables = []
            mine = places[len(places) - len(extents) - after : len(places) - after]
            for (variable, own), other in zip(mine, extents, strict=True):
                checks.append(equal(difference(own.stop, own.start), difference(other.stop, other.start)))
                place = total(without_spans(variable), difference(other.start, own.start))
                variables.append(with_span(place, part.span))
            return Subscript(whole.base, self.index(whole, variables), part.span)

        found = element_at(value, self.typing, at)
        if found is None:
            raise NoLoopsError
        for part in every(Subscript, value):  # single elements are read also where there is nothing to store
            if not self.typing.of(part).rank:
                checks += [inside(one, length) for length, one in self.axes(part) if one is not None]
        return found

    def index(self, part: Subscript, variables: Sequence[Expr]) -> tuple[Expr, ...]:
        """The subscripts of an element of a part of an array."""
        places = iter(variables)
        return tuple(next(places) if one is None or isinstance(one, Slice) else one for _, one in self.axes(part))

    def assumed(self, made: Collection[str]) -> Iterator[OfSizes | OfWorkers]:
        """The conditions of all loops, and that arrays which meet in those that are made are as long as one another."""
        yield from self.few
        given = GivenSizes.of(self.function, self.types)
        alike = [equal(*pair) for one in self.function.local_arrays if one.name in made for pair in one.alike]
        maps = Maps()
        for index, checks, around in self.conditions:
            found = condition(index, [*checks, *alike], around, given.forms, given.known, maps)
            if found is None:
                raise NoLoopsError
            if found.names:
                yield found
