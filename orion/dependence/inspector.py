"""The inspector of a loop: a function in the loop language that lists the elements which its iterations touch, made of
what of the loop computes their subscripts (`orion.dependence.address_slice`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

from orion.dataclass import dataclass, replace
from orion.dependence.access import LoopDependences
from orion.dependence.address_slice import (
    Access,
    AddressSlice,
    Around,
    Item,
    NoInspectorError,
    address_slice,
    is_known,
    names_of,
    written_names,
)
from orion.dependence.inspection import END, ENDS, FIRST, OUTSIDE, PLACES, Inspectable, extent_argument
from orion.dependence.scalars import why_in_order
from orion.ir.assigned import assigned_names, assignments
from orion.ir.function import Function
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Count,
    Dim,
    Expr,
    If,
    Logic,
    Pass,
    Range,
    Stmt,
    Subscript,
    Update,
    Var,
    holds,
    names_in,
)
from orion.ir.program import LoopNest
from orion.ir.rewriting import rewrite
from orion.ir.types import ArrayType, ScalarType, Types
from orion.reasons import Reason
from orion.source import Span

AT, TRIP = "orion_at", "orion_trip"
"""How many accesses are listed, and how many iterations."""


def inspectable(
    nest: LoopNest, types: Types, analysis: LoopDependences
) -> tuple[Inspectable | None, tuple[Reason, ...]]:
    """The inspector of a loop that is serial as far as can be told without the contents of arrays; None where it has
    none, with the reason if contents might help."""
    scalars = analysis.scalars
    extremes = any(one.op in ("min", "max") for one in scalars.reductions)
    in_pieces = extremes or bool(scalars.choices or analysis.private)
    try:
        found = address_slice(nest, types, analysis)
        made = None if found is None else inspector_of(found, nest.function, types, in_pieces)
        if made is not None and (why := why_in_order(nest, scalars, of_lists=True)):  # their order depends on workers
            return None, why
        return made, ()
    except NoInspectorError as error:
        reasons = (one.reason for one in analysis.dependences)
        if not any(one is not None and one.code == "ORN102" for one in reasons):
            return None, ()
        return None, (Reason.of("ORN131", f"it is not inspected: {error.why}", error.span),)


def inspector_of(found: AddressSlice, function: Function, types: Types, in_pieces: bool) -> Inspectable:
    """The inspector of a loop that has such a slice. NoInspectorError where there is none."""
    loop, span = found.loop, found.loop.span
    body, extents = with_extents((*_before(found, function, types), *_listing(found)))
    used = names_in(*body)
    params = tuple(name for name in function.given if name in used)
    known = {*params, *assigned_names(body), *extents, FIRST, END, ENDS, PLACES}
    reads = tuple(name for name in params if isinstance(types.get(name), ArrayType))
    if holds(Count, *body) or not used <= known or not reads:
        why = "its subscripts are made as arrays while it runs: write them as loops over single elements"
        raise NoInspectorError(why, span)
    made = Function(
        name=f"inspect_{function.name}_{loop.index}",
        params=(*params, *extents, FIRST, END, ENDS, PLACES),
        body=body,
        constants=function.constants,
        helpers=function.helpers,
        source=function.source,
        span=span,
    )
    integers = tuple(name for name in params if isinstance(types.get(name), ScalarType))
    return Inspectable(loop.index, found.arrays, found.keyed, made, reads, integers, in_pieces)


def _before(found: AddressSlice, function: Function, types: Types) -> tuple[Assign, ...]:
    """The statements before the loop that give names their values, where these are the only ones."""
    space = found.loop.space
    assert isinstance(space, Range)
    if not is_known(function, types, space.start, space.stop, space.step):
        raise NoInspectorError("its bounds are computed while the function runs", space.span)
    names = {*names_of(found.items), *names_in(space.start, space.stop, space.step)}
    given = set(function.given)
    changed = sorted(given & names & written_names(function))
    if changed:
        raise NoInspectorError(f"its subscripts need `{changed[0]}`, which the function changes", found.loop.span)
    top = [one for one in function.body if isinstance(one, Assign)]
    needed: list[Assign] = []
    waiting, seen = sorted(names - given), {*given, *assigned_names((found.loop,))}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        places = [one for one in top if name in assigned_names((one,))]
        assigned = sum(one == name for statement in function.body for one, _ in assignments(statement))
        if len(places) != 1 or assigned != 1 or not is_known(function, types, places[0].value):
            raise NoInspectorError(
                f"its subscripts need `{name}`, which is computed while the function runs", found.loop.span
            )
        if places[0] not in needed:  # it may give several names their values
            needed.append(places[0])
        waiting += sorted(names_in(places[0].value))
    return tuple(sorted(needed, key=top.index))


def _listing(found: AddressSlice) -> tuple[Stmt, ...]:
    """The loop that lists accesses."""
    loop, span = found.loop, found.loop.span
    assert isinstance(loop.space, Range)
    keyed = dict(zip(found.arrays, found.keyed, strict=True))
    at, trip, zero, one = Var(AT, span), Var(TRIP, span), Const(0, span), Const(1, span)
    inner = (
        *_Writer(keyed, _bases(keyed, span)).block(found.items),
        Assign(Subscript(Var(ENDS, span), (trip,), span), at, span),
        Update(trip, "+", one, span),
    )
    listing = replace(loop, space=_part_of(loop.space), body=inner)
    return (Assign(at, zero, span), Assign(trip, zero, span), listing)


def _part_of(space: Range) -> Range:
    """The iterations of a range whose numbers, from 0, an inspector is given."""
    first, end = (
        Binary("+", space.start, Binary("*", Var(name, space.span), space.step, space.span), space.span)
        for name in (FIRST, END)
    )
    return replace(space, start=first, stop=end)


def _bases(keyed: Mapping[str, Sequence[int]], span: Span) -> dict[str, Expr]:
    """The number of the first element of each array."""
    found: dict[str, Expr] = {}
    base: Expr = Const(0, span)
    for name, axes in keyed.items():
        found[name] = base
        extents: list[Expr] = [Dim(name, axis, span) for axis in axes]
        size = reduce(lambda left, right: Binary("*", left, right, span), extents)
        base = Binary("+", base, size, span)
    return found


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


@dataclass(slots=True)
class _Writer:
    """Writes what is left of a loop as statements that list its accesses. `count` numbers names."""

    keyed: Mapping[str, Sequence[int]]
    bases: Mapping[str, Expr]
    count: int = 0

    def block(self, items: Iterable[Item]) -> tuple[Stmt, ...]:
        """The statements for some items."""
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
        """Statements that put an access into the list, where there is room, and count it."""
        span, axes = access.span, self.keyed[access.array]
        count, zero = Var(AT, span), Const(0, span)
        names = []
        for axis, subscript in zip(axes, access.subscripts, strict=True):
            at, extent = Var(f"orion_place_{self.count}", span), Dim(access.array, axis, span)
            self.count += 1
            names.append((at, extent))
            yield Assign(at, Call(INTEGER, (subscript,), span), span)
            yield If(Compare(("<",), (at, zero), span), (Update(at, "+", extent, span),), (), span)
        number: Expr = names[0][0]
        for at, extent in names[1:]:
            number = Binary("+", Binary("*", number, extent, span), at, span)
        number = Binary("+", number, self.bases[access.array], span)
        value: Expr = Binary("+", Binary("*", number, Const(2, span), span), Const(int(access.is_write), span), span)
        tests = [Compare(("<=", "<"), (zero, at, extent), span) for at, extent in names]
        is_inside: Expr = Logic("and", tuple(tests), span) if len(tests) > 1 else tests[0]
        element = Subscript(Var(PLACES, span), (count,), span)
        has_room = Compare(("<",), (count, Dim(PLACES, 0, span)), span)
        outside = Assign(element, Const(OUTSIDE, span), span)
        yield If(has_room, (If(is_inside, (Assign(element, value, span),), (outside,), span),), (), span)
        yield Update(count, "+", Const(1, span), span)
