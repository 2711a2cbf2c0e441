"""The plans of a function's loops as they are in its source: planned loops that stand for one of them are one, and one
that stands for several is taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from orion.analysis.one_loop import Origin
from orion.analysis.rules import strength
from orion.cost.candidate import Strategy
from orion.cost.placement import Placement, PlacementKind
from orion.dependence.model import trip_name
from orion.ir.constants import constant_value
from orion.ir.nodes import For, Range, walk
from orion.ir.printer import print_expr
from orion.ir.program import Repeat, RunLoop, Step, blocks_of
from orion.passes.between import SYNTHETIC
from orion.plan.plan import (
    FunctionPlan,
    Fused,
    LoopPlan,
    Merged,
    Reordered,
    ReorderedSingle,
    Single,
    Uncut,
    is_of_source,
    source_nest,
)
from orion.plan.relaxed import NOT_RELAXED
from orion.sets.names import isl_name, number_of

if TYPE_CHECKING:
    import islpy as isl


def source_plans(plan: FunctionPlan) -> tuple[LoopPlan, ...]:
    """One plan per planned loop of the source, in textual order; statements between loops stay as they are.

    Planned loops that stand for one loop of the source in another order are merged (`merged`). In place of one that
    stands for neighbouring loops there are these; after statements that run once come the loops in them.
    """
    found: list[LoopPlan] = []
    for _, group in groupby(plan.loops, lambda loop: id(source_nest(loop))):
        first, *others = group
        match first.form:
            case Reordered(origin=origin) | ReorderedSingle(origin=origin):
                found.append(merged((first, *others), origin))
            case Fused(members):
                found += members
            case Single(inside):
                found += (first, *inside)
            case _:
                found.append(first)
    return tuple(found)


def loops_of_source(plan: FunctionPlan) -> tuple[LoopPlan, ...]:
    """Those of `source_plans` that are loops of the source: not statements between loops, and not the filling of arrays
    that the function makes."""
    return tuple(filter(is_of_source, source_plans(plan)))


def merged(parts: Iterable[LoopPlan], origin: Origin) -> LoopPlan:
    """The plan of a loop of the source whose statements run in other loops, its `parts`.

    It has the nest and the analysis of the loop as written. Its strategy is the weakest one of the parts that are
    shared out ("serial" where none is), it runs on as many workers as the part that runs on most, and it has the
    placements and reasons of all parts, each said once.
    """
    parts = tuple(parts)
    shared = [part for part in parts if isinstance(part.form, Reordered)]
    dims = len(origin.nest.dims)
    iterations = next(part.form.written_iterations for part in parts if isinstance(part.form, Reordered))
    return LoopPlan(
        nest=replace(origin.nest, number=parts[0].nest.number),
        form=Merged(origin, parts),
        strategy=min((part.strategy for part in shared), key=strength, default=Strategy.SERIAL),
        tiles=Uncut(),
        cuts=(1,) * dims,
        is_parallel=all(part.is_parallel for part in shared),
        ordered=origin.nest.ordered,
        analysis=origin.analysis,
        placements=_placements(parts),
        reasons=tuple(dict.fromkeys(reason for part in parts for reason in part.reasons)),
        runs_on=max(part.runs_on for part in parts),
        iterations=iterations,
        rewrites=tuple(dict.fromkeys(name for part in parts for name in part.rewrites)),
        rounds_overlap=all(part.rounds_overlap for part in parts),
        copies=(),
        works=(),
        is_dynamic=any(part.is_dynamic for part in parts),
        deal=max(parts, key=lambda part: len(part.nest.limits)).deal,
        relaxed=NOT_RELAXED,
        served=(),
        read_in_part=(),
        known=parts[0].known,
        may_be_private=tuple(dict.fromkeys(name for part in parts for name in part.may_be_private)),
    )


def _placements(parts: Iterable[LoopPlan]) -> tuple[Placement, ...]:
    """One placement per array: that of the part where it is farthest from its worker, with the bytes of all parts."""
    kinds = tuple(PlacementKind)
    found: dict[str, Placement] = {}
    for placement in (placement for part in parts for placement in part.placements):
        other = found.get(placement.array, placement)
        farthest = max(other, placement, key=lambda p: kinds.index(p.kind))
        moved = [other.bytes_moved, placement.bytes_moved] if other is not placement else [placement.bytes_moved]
        total = None if None in moved else sum(size for size in moved if size is not None)
        is_written = other.is_written or placement.is_written
        found[placement.array] = replace(farthest, bytes_moved=total, is_written=is_written)
    return tuple(found.values())


def main_part(loop: LoopPlan) -> LoopPlan:
    """The part of a merged plan that has most dimensions, of those the first; any other plan as it is."""
    return max(loop.parts, key=lambda part: len(part.nest.limits)) if loop.parts else loop


def in_formulas(part: LoopPlan) -> LoopPlan:
    """A part of a merged plan as a loop of its own: its dimensions are named by formulas in the user's variables
    ("t + i")."""
    own = formulas(part)[-len(part.nest.dims) :]
    dims = own if len(own) == len(part.nest.dims) else part.nest.dims
    return replace(part, nest=replace(part.nest, dims=dims))


def has_values(part: LoopPlan) -> bool:
    """Whether the coordinates of a part of a merged plan are the values of its formulas in all statements."""
    import islpy as isl

    if not isinstance(part.form, Reordered):
        return True
    maps: list[isl.Map] = []
    isl.UnionMap(part.form.places).foreach_map(maps.append)
    return len({coordinate_formulas(str(isl.UnionMap(one)), {}) for one in maps}) == 1


def enclosing_loops(plan: FunctionPlan, number: int) -> tuple[For, ...]:
    """The `for`s that stand around planned loop `number`, outermost first: those of the source (`index` is not
    negative), and those that a new order has."""

    def find(steps: Iterable[Step]) -> tuple[For, ...] | None:
        for step in steps:
            if isinstance(step, RunLoop) and step.number == number:
                return ()
            for block in blocks_of(step):
                inside = find(block)
                if inside is not None:
                    around = step.loop if isinstance(step, Repeat) else None
                    return (around, *inside) if isinstance(around, For) else inside
        return None

    return find(plan.program.steps) or ()


def rounds_around(plan: FunctionPlan, number: int) -> tuple[str, ...]:
    """The variables of the serial loops that a new order has around planned loop `number`, outermost first."""
    spaces = [loop.space for loop in enclosing_loops(plan, number) if loop.index == SYNTHETIC]
    return tuple(space.var for space in spaces if isinstance(space, Range))


def formulas(part: LoopPlan) -> tuple[str, ...]:
    """What the coordinates of the serial loops around a part and its own are, in the variables of the loop as written.

    Empty for statements that one worker runs once, and for loops as they are written.
    """
    if not isinstance(part.form, Reordered):
        return ()
    names: dict[str, str] = {}
    for node in walk(part.form.origin.nest.loops[0]):
        if isinstance(node, Range):
            names[isl_name(node.var)] = node.var
            names[trip_name(node)] = _trip(node)
    for name in part.nest.function.params:
        names[isl_name(name)] = name
    return coordinate_formulas(part.form.places, names)


def _trip(space: Range) -> str:
    """The number of a trip, by the variable of its loop.

    >>> from orion.ir.nodes import Const, Unary, Var
    >>> from orion.ir.spans import NOWHERE
    >>> zero, one, n = Const(0, NOWHERE), Const(1, NOWHERE), Var("n", NOWHERE)
    >>> _trip(Range("i", zero, n, Const(2, NOWHERE), NOWHERE)), _trip(Range("i", n, one, Const(-1, NOWHERE), NOWHERE))
    ('i // 2', 'n - i')
    """
    start, step = print_expr(space.start), constant_value(space.step)
    if not isinstance(step, int):
        return f"({space.var} - {start}) // {print_expr(space.step)}"
    ahead = space.var if start == "0" else f"{space.var} - {start}"
    if step < 0:
        ahead = f"{start} - {space.var}"
    if abs(step) == 1:
        return ahead
    return f"{ahead if ahead.isidentifier() else f'({ahead})'} // {abs(step)}"


def coordinate_formulas(places: str, names: dict[str, str]) -> tuple[str, ...]:
    """What each coordinate of a new order is in terms of loop variables, for the statement with the most loops.

    `places` is an isl union map, as text, from instances of statements to coordinates; `names` has the Python names
    of isl's.

    >>> text = "[A__0] -> { S0[t, i] -> [t, 2t + i, A__0 - i] : 0 <= t < A__0; S1[t] -> [t, 0, 0] : 0 <= t < A__0 }"
    >>> coordinate_formulas(text, {})
    ('t', '2 * t + i', 'A.shape[0] - i')
    """
    import islpy as isl

    maps: list[isl.Map] = []
    isl.UnionMap(places).foreach_map(maps.append)
    deepest = max(maps, key=lambda one: one.dim(isl.dim_type.in_))
    pieces: list[isl.MultiAff] = []
    isl.PwMultiAff.from_map(deepest).foreach_piece(lambda _, piece: pieces.append(piece))
    return tuple(_formula(pieces[0].get_at(k), names) for k in range(pieces[0].dim(isl.dim_type.out)))


def _formula(function: isl.Aff, names: dict[str, str]) -> str:
    """An affine function as Python would have it; in isl's notation where it divides."""
    import islpy as isl

    if function.dim(isl.dim_type.div):
        return str(function).partition("[(")[2].rpartition(")]")[0]
    terms: list[tuple[int, str]] = []
    for kind in (isl.dim_type.param, isl.dim_type.in_):
        for position in range(function.dim(kind)):
            factor = number_of(function.get_coefficient_val(kind, position))
            if factor:
                terms.append((factor, _python_name(function.get_dim_name(kind, position), names)))
    terms.sort(key=lambda term: term[0] < 0)  # "i - n" rather than "-n + i"
    constant = number_of(function.get_constant_val())
    alone = len(terms) == 1 and not constant and terms[0][0] == 1
    terms = [(factor, name if alone or "(" in name or " " not in name else f"({name})") for factor, name in terms]
    words = [(factor, name if abs(factor) == 1 else f"{abs(factor)} * {name}") for factor, name in terms]
    if constant or not words:
        words.append((constant, str(abs(constant))))
    first, *others = words
    signed = ("-" if first[0] < 0 else "") + first[1]
    return signed + "".join(f" {'-' if factor < 0 else '+'} {text}" for factor, text in others)


def _python_name(name: str, names: dict[str, str]) -> str:
    extent = re.fullmatch(r"(\w+?)__(\d+)", name)
    if extent and name not in names:
        return f"{names.get(extent[1], extent[1])}.shape[{extent[2]}]"
    return names.get(name, name)
