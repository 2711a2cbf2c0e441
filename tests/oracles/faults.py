"""Plans and schedules with one thing broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import islpy as isl
import numpy as np

from orion.cost.candidate import Strategy
from orion.dependence.access import PrivateArray
from orion.ir.nodes import Assign, Binary, Const, Expr, For, Range, Slice, Stmt, Subscript, Update, every
from orion.ir.program import Repeat, RunLoop
from orion.ir.rewriting import expand, rewrite
from orion.ir.types import ArrayType
from orion.plan.plan import FunctionPlan, LoopPlan, Reordered, Tiled, Written
from orion.schedule.schedule import Schedule

Broken = tuple[str, Schedule]
BrokenPlan = tuple[str, FunctionPlan]

# ---------------------------------------------------------------- schedules


def schedule_faults(schedule: Schedule) -> Iterator[Broken]:
    """The schedule with each kind of fault that it can have."""
    if not schedule.tiles:
        return
    yield from _bounds(schedule)
    yield from _orders(schedule)
    yield from _waits(schedule)
    yield from _owners(schedule)


def _bounds(schedule: Schedule) -> Iterator[Broken]:
    for dim, edges in enumerate(schedule.bounds):
        for kind, at, by in (("first block later", 0, 1), ("last block sooner", -1, -1)):
            if edges[-1] - edges[0] > 1:
                yield f"bounds: {kind}", _with_edges(schedule, dim, at, edges[at] + by)
        if len(edges) > 2:
            yield "bounds: blocks overlap", _with_edges(schedule, dim, 1, edges[2] + 1)
            yield "bounds: blocks out of order", _with_edges(schedule, dim, 1, edges[0] - 1)


def _with_edges(schedule: Schedule, dim: int, at: int, value: int) -> Schedule:
    edges = schedule.bounds[dim].copy()
    edges[at] = value
    return replace(schedule, bounds=(*schedule.bounds[:dim], edges, *schedule.bounds[dim + 1 :]))


def _orders(schedule: Schedule) -> Iterator[Broken]:
    for worker, order in enumerate(schedule.order):
        if order.size > 1:
            yield "order: two tiles swapped", _with_order(schedule, worker, order[[1, 0, *range(2, order.size)]])
        if order.size:
            yield "order: a tile left out", _with_order(schedule, worker, order[1:])
            yield "order: a tile twice", _with_order(schedule, worker, order[[0, *range(order.size)]])


def _with_order(schedule: Schedule, worker: int, order: Any) -> Schedule:
    return replace(schedule, order=(*schedule.order[:worker], order, *schedule.order[worker + 1 :]))


def _waits(schedule: Schedule) -> Iterator[Broken]:
    for number in range(min(schedule.waits.size, 12)):
        lag = int(schedule.lags[number])
        kept = np.arange(schedule.waits.size) != number
        offsets = schedule.wait_offsets - (schedule.wait_offsets > number)
        fewer = replace(schedule, waits=schedule.waits[kept], lags=schedule.lags[kept], wait_offsets=offsets)
        yield f"waits: one left out, lag {lag}", fewer
        if lag == 0:
            lags = schedule.lags.copy()
            lags[number] = 1
            yield "waits: for the round before", replace(schedule, lags=lags)


def _owners(schedule: Schedule) -> Iterator[Broken]:
    """A tile goes to the end of another worker's order."""
    for tile in range(min(schedule.tiles, 6)):
        old = int(schedule.owner[tile])
        new = (old + 1) % schedule.workers
        if new != old:
            owner = schedule.owner.copy()
            owner[tile] = new
            order = [one[one != tile] for one in schedule.order]
            order[new] = np.append(order[new], tile)
            yield "owner: another worker", replace(schedule, owner=owner, order=tuple(order))


# ---------------------------------------------------------------- plans


def plan_faults(plan: FunctionPlan, types: Mapping[str, Any]) -> Iterator[BrokenPlan]:
    """The plan with each kind of fault that it can have."""
    for number, loop in enumerate(plan.loops):
        for kind, broken in _loop_faults(loop, types):
            yield kind, replace(plan, loops=(*plan.loops[:number], broken, *plan.loops[number + 1 :]))
    steps = plan.program.steps
    for number in range(len(steps) - 1):
        swapped = (*steps[:number], steps[number + 1], steps[number], *steps[number + 2 :])
        yield "steps: two swapped", replace(plan, program=replace(plan.program, steps=swapped))
    for number, step in enumerate(steps):
        if isinstance(step, RunLoop | Repeat):
            for kind, others in (("left out", ()), ("twice", (step, step))):
                broken = replace(plan.program, steps=(*steps[:number], *others, *steps[number + 1 :]))
                yield f"steps: one {kind}", replace(plan, program=broken)


def _loop_faults(loop: LoopPlan, types: Mapping[str, Any]) -> Iterator[tuple[str, LoopPlan]]:
    yield from _strategies(loop)
    yield from _copies(loop, types)
    yield from _scalars(loop)
    yield from _texts(loop)
    yield from _placements(loop)
    yield from _nests(loop)
    if not loop.rounds_overlap:
        yield "rounds overlap", replace(loop, rounds_overlap=True)
    if loop.ordered and loop.time:
        yield "ordered: not", replace(loop, ordered=False)
    if isinstance(loop.form, Reordered):
        yield "places: shifted", replace(loop, form=replace(loop.form, places=shifted(loop.form.places)))


def shifted(places: str) -> str:
    """Places whose first coordinate is one more in one statement."""
    maps: list[isl.Map] = []
    isl.UnionMap(places).foreach_map(maps.append)
    first, *others = maps
    names = [f"c{k}" for k in range(first.dim(isl.dim_type.out))]
    by_one = isl.Map(f"{{ [{', '.join(names)}] -> [{', '.join(['1 + c0', *names[1:]])}] }}")
    found = isl.UnionMap.from_map(first.apply_range(by_one))
    for other in others:
        found = found.union(isl.UnionMap.from_map(other))
    return str(found)


def _strategies(loop: LoopPlan) -> Iterator[tuple[str, LoopPlan]]:
    dims = len(loop.nest.dims)
    if isinstance(loop.tiles, Tiled) and loop.time:
        free = replace(loop, strategy=Strategy.INDEPENDENT, tiles=replace(loop.tiles, time=()))
        yield "strategy: tiles do not wait", free
    for space in range(dims):
        cuts = tuple(3 if dim == space else 1 for dim in range(dims))
        free = replace(loop, strategy=Strategy.INDEPENDENT, tiles=Tiled(space, ()), cuts=cuts, runs_on=3)
        if loop.space is None:
            yield "strategy: a serial loop shared out", free
        elif space != loop.space:
            yield "space: another dimension", free


def _placements(loop: LoopPlan) -> Iterator[tuple[str, LoopPlan]]:
    """Where workers meet depends on what is written; all else only a cluster's workers look at, so that a fault that
    survives changes nothing in threads."""
    for number, one in enumerate(loop.placements):

        def other(**fields: Any) -> LoopPlan:
            placements = (*loop.placements[:number], replace(one, **fields), *loop.placements[number + 1 :])  # noqa: B023
            return replace(loop, placements=placements)

        if one.is_written:
            rest = (*loop.placements[:number], *loop.placements[number + 1 :])
            yield "placements: one left out", replace(loop, placements=rest)
            yield "placements: not written", other(is_written=False)
        if one.dim is not None:
            yield "placements: another halo", other(halo=(one.halo[0] + 1, one.halo[1] + 1))


def _nests(loop: LoopPlan) -> Iterator[tuple[str, LoopPlan]]:
    """The body that is run is another than that of the loops, or the number another."""
    nest = loop.nest
    if len(nest.body) > 1:
        yield "nest: another body", replace(loop, nest=replace(nest, body=nest.body[1:]))
    yield "nest: another number", replace(loop, nest=replace(nest, number=nest.number + 1))


def _copies(loop: LoopPlan, types: Mapping[str, Any]) -> Iterator[tuple[str, LoopPlan]]:
    private = loop.private_arrays
    for one in private:
        fewer = tuple(other for other in private if other is not one)
        yield "private: one left out", replace(loop, analysis=replace(loop.analysis, private=fewer))
    if loop.space is not None and isinstance(loop.form, Written):
        written = {a.array for a in loop.analysis.accesses if a.is_write} - {one.name for one in private}
        for name in sorted(written):
            if isinstance(types.get(name), ArrayType) and types[name].c_contiguous:
                more = (*private, PrivateArray(name, loop.nest.span, ()))
                yield "private: one too many", replace(loop, analysis=replace(loop.analysis, private=more))
    for one in loop.copies:
        rest = tuple(other for other in loop.copies if other is not one)
        yield "copies: one left out", replace(loop, copies=rest)
        op = "*" if one.op == "+" else "+"
        yield "copies: another operator", replace(loop, copies=(*rest, replace(one, op=op)))
        yield "copies: fewer", replace(loop, copies=(*rest, replace(one, count=1)))
        yield "copies: shorter", replace(loop, copies=(*rest, replace(one, shape=tuple(x - 1 for x in one.shape))))


def _scalars(loop: LoopPlan) -> Iterator[tuple[str, LoopPlan]]:
    roles = loop.analysis.scalars
    for one in roles.reductions:
        rest = tuple(other for other in roles.reductions if other is not one)
        for op in {"+", "*", "max", "and"} - {one.op}:
            other = replace(roles, reductions=(*rest, replace(one, op=op)))
            yield "scalars: another operator", replace(loop, analysis=replace(loop.analysis, scalars=other))
        alone = replace(roles, reductions=rest, private=(*roles.private, one.name))
        yield "scalars: combined ones private", replace(loop, analysis=replace(loop.analysis, scalars=alone))
    for choice in roles.choices:
        others = tuple(other for other in roles.choices if other is not choice)
        if choice.op != "last":
            op = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}.get(choice.op, "<")
            turned = replace(roles, choices=(*others, replace(choice, op=op)))
            yield "scalars: another comparison", replace(loop, analysis=replace(loop.analysis, scalars=turned))
        alone = replace(roles, choices=others, private=(*roles.private, *choice.names))
        yield "scalars: chosen ones private", replace(loop, analysis=replace(loop.analysis, scalars=alone))


# ---------------------------------------------------------------- texts


def _texts(loop: LoopPlan) -> Iterator[tuple[str, LoopPlan]]:
    """The text of a loop with a bound that is off by one, a statement left out or two swapped, another operator."""
    body = loop.nest.body
    for kind, new in (*_bound_faults(body), *_statement_faults(body), *_expression_faults(body)):
        if new != body and new:
            outer = loop.nest.loops[-1]
            loops = (*loop.nest.loops[:-1], replace(outer, body=new))
            for level in range(len(loops) - 2, -1, -1):
                loops = (*loops[:level], replace(loops[level], body=(loops[level + 1],)), *loops[level + 1 :])
            yield kind, replace(loop, nest=replace(loop.nest, loops=loops, body=new))


def _bound_faults(body: tuple[Stmt, ...]) -> Iterator[tuple[str, tuple[Stmt, ...]]]:
    spaces = [loop.space for loop in every(For, *body) if isinstance(loop.space, Range)]
    for space in spaces[:6]:
        for kind, field, by in (
            ("text: begins one later", "start", 1),
            ("text: begins one sooner", "start", -1),
            ("text: ends one sooner", "stop", -1),
            ("text: ends one later", "stop", 1),
        ):
            old = getattr(space, field)
            new = replace(space, **{field: Binary("+", old, Const(by, old.span), old.span)})

            def change(statement: Stmt, space: Range = space, new: Range = new) -> tuple[Stmt, ...]:
                same = isinstance(statement, For) and statement.space == space
                return (replace(statement, space=new),) if same and isinstance(statement, For) else (statement,)

            yield kind, expand(body, change)


def _statement_faults(body: tuple[Stmt, ...]) -> Iterator[tuple[str, tuple[Stmt, ...]]]:
    statements = [*every((Assign, Update), *body)]
    for one in statements[:6]:
        yield "text: a statement left out", expand(body, lambda s, one=one: () if s == one else (s,))  # type: ignore[misc]
    for first, second in pairwise(statements[:5]):

        def swapped(s: Stmt, first: Stmt = first, second: Stmt = second) -> tuple[Stmt, ...]:
            return (second,) if s == first else (first,) if s == second else (s,)

        yield "text: two statements swapped", expand(body, swapped)


def _expression_faults(body: tuple[Stmt, ...]) -> Iterator[tuple[str, tuple[Stmt, ...]]]:
    """Values that are stored with another operator, and subscripts that are one more."""
    for one in [*every((Assign, Update), *body)][:4]:
        for old in [*every(Binary, one.value)][:2]:
            if old.op in ("+", "-", "*"):
                other = replace(old, op="-" if old.op != "-" else "+")
                yield "text: another operator", _with(body, one, replace(one, value=_instead(one.value, old, other)))
        for place in [*every(Subscript, one.value)][:2]:
            first, *rest = place.index
            if not isinstance(first, Slice):
                moved = replace(place, index=(Binary("+", first, Const(1, first.span), first.span), *rest))
                yield "text: another subscript", _with(body, one, replace(one, value=_instead(one.value, place, moved)))


def _with(body: tuple[Stmt, ...], old: Stmt, new: Stmt) -> tuple[Stmt, ...]:
    return expand(body, lambda statement: (new,) if statement is old else (statement,))


def _instead(value: Expr, old: Expr, new: Expr) -> Expr:
    return rewrite(value, lambda part: new if part == old else part)
