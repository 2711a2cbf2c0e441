"""Sweeps over arrays in tiles of rounds and space, so that a part of the arrays stays in the cache for several rounds.

A serial loop t around loops that each go over whole arrays reads and writes all of memory once per round. Let x_k be
the loop variable of a statement at depth k, and take the coordinates

    c_0 = t,    c_k = s_k t + x_k + f_{S,k}        k = 1, …, m,

with a slope s_k for all and a shift f_{S,k} for each statement S. Where S has no such loop, x_k is the subscript of
what it writes on the axis that others go along, such as a row at the edge, or 0. If every
dependence has differences δ ≥ 0 in all of them, boxes of c may be run one after the other in any order that goes
forwards in each coordinate, and *inside of a box everything in the order in which it is written*: a dependence between
two boxes goes forwards, one inside of a box is kept because the written order keeps it. So the loops stay as they are,
but for their bounds. Sources: Irigoin and Triolet 1988 (supernodes); Wonnacott 2000 (time skewing).

With a_0 and a_1 the least differences of x_k over the dependences S → S' within a round and to later rounds, δ ≥ 0 is

    f_{S'} ≥ f_S − a_0    and    s ≥ f_S − f_{S'} − a_1,

the first a system of differences (longest paths), the second then gives the least slope. Statements that share their
loop at depth k share their shift, so that it is a shift of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from orion.analysis.one_loop import TimeTiles
from orion.dataclass import dataclass
from orion.dependence.region import Place, Region, Statement
from orion.dependence.relations import Relations
from orion.ir.nodes import Const, Expr, Range, names_in
from orion.ir.types import ArrayType, Types
from orion.sets.affine import Affine, affine_form, has_unit_step, parameter
from orion.sets.names import number_of, parameter_list, sum_text

if TYPE_CHECKING:
    import islpy as isl

MOST = 2
"""The most coordinates of space; the innermost loop has none, unless it is the only one in t, so that it stays long."""


@dataclass(frozen=True, slots=True)
class Spot:
    """For each coordinate of space, a statement's loop variable, or where it has none, the expression that stands for
    it (`fixed`, and None for a variable); as isl text, all of them are `values`. `places` are those of the loop, or of
    the statement or loop that has no variable, whose shift it has."""

    statement: Statement
    values: tuple[str, ...]
    places: tuple[Place, ...]
    fixed: tuple[Expr | None, ...]

    @property
    def parameters(self) -> frozenset[str]:
        """The isl parameters in `values`."""
        names = (name for value in self.values for name in re.findall(r"[A-Za-z_]\w*", value))
        return frozenset(names) - {*self.statement.space.dims}


def find_time_tiles(region: Region, relations: Relations, types: Types) -> tuple[TimeTiles, isl.UnionMap] | None:
    """The sweeps of a region, and the map from the instances of its statements to the coordinates.

    None where no such coordinates exist, or where the rounds do not depend on each other across space (no slope).
    """
    import islpy as isl

    depth = max(len(statement.loops) for statement in region.statements)
    levels = range(1, max(2, min(depth - 1, MOST + 1)))
    if depth < 2 or not all(_steps_by_one(statement, levels) for statement in region.statements):
        return None
    spots = {spot.statement.name: spot for spot in spots_of(region.statements, levels)}
    if not _agree(spots.values()):
        return None
    found: list[tuple[int, dict[Place, int]]] = []
    for position in range(len(levels)):
        one = _coordinate(relations, spots, position)
        if one is None or not one[0]:
            return None
        found.append(one)
    slopes = tuple(slope for slope, _ in found)
    shifts = {(k, place): shift for k, (_, by_place) in enumerate(found) for place, shift in by_place.items()}
    parameters = parameter_list(frozenset().union(*(spot.parameters for spot in spots.values())))
    text = f"{parameters}{{ {'; '.join(_coordinates(spot, slopes, shifts) for spot in spots.values())} }}"
    places = isl.UnionMap(text, relations.domain.get_ctx()).intersect_domain(relations.domain)
    if not is_permutable(relations.dependences, places, len(slopes)):
        return None
    return TimeTiles(slopes, tuple(shifts.items()), tuple(_rows(region, types, spots))), places


def spots_of(statements: Sequence[Statement], levels: range) -> Iterator[Spot]:
    """Which loops the coordinates go along: those, at each depth in `levels`, around a statement with the most
    loops."""
    depth = max(len(statement.loops) for statement in statements)
    deepest = [statement for statement in statements if len(statement.loops) == depth]
    along = {statement.place[: level + 1] for statement in deepest for level in levels}
    for statement in statements:
        values: list[str] = []
        places: list[Place] = []
        fixed: list[Expr | None] = []
        for level in levels:
            is_inside = bool(places) and places[-1] not in along  # of what has no loop for the coordinate before
            places.append(places[-1] if is_inside else statement.place[: level + 1])
            has_loop = not is_inside and places[-1] in along
            value, expr = (statement.space.dims[level], None) if has_loop else _edge(statement, deepest, level)
            values.append(value)
            fixed.append(expr)
        yield Spot(statement, tuple(values), tuple(places), tuple(fixed))


def _agree(spots: Iterable[Spot]) -> bool:
    """Whether statements that are put into a tile together have the same values."""
    known: dict[tuple[int, Place], str] = {}
    return all(
        known.setdefault((k, place), value) == value
        for spot in spots
        for k, (place, value) in enumerate(zip(spot.places, spot.values, strict=True))
    )


def _edge(statement: Statement, deepest: Sequence[Statement], level: int) -> tuple[str, Expr]:
    """Where a statement without a loop at a depth writes on the axis that the loops at that depth go along: as isl text
    and as an expression. 0 where that is not one place."""
    for reference in statement.references:
        axes = {
            int(axis)
            for other in deepest
            for array, _, matrix in other.subscripts
            if array == reference.array
            for axis in np.flatnonzero(matrix[:, level])
        }
        if reference.is_write and reference.subscript is not None and len(axes) == 1:
            axis = axes.pop()
            form, index = reference.axes[axis], reference.subscript.index
            if axis < len(index) and isinstance(form, Affine) and form.names.isdisjoint(statement.space.dims):
                names = names_in(index[axis])
                again = affine_form(index[axis], {name: parameter(name) for name in names})
                if isinstance(again, Affine) and again.text == form.text:  # not one that wraps around
                    return form.text, index[axis]
    return "0", Const(0, statement.body[0].span)


def is_permutable(dependences: isl.UnionMap, places: isl.UnionMap, slopes: int) -> bool:
    """Whether no dependence goes backwards in any coordinate: δ ≥ 0."""
    import islpy as isl

    moved = dependences.apply_domain(places).apply_range(places).deltas()
    dims = [f"c{k}" for k in range(slopes + 1)]
    fine = isl.UnionSet(f"{{ [{', '.join(dims)}] : {' and '.join(f'{dim} >= 0' for dim in dims)} }}", moved.get_ctx())
    return bool(moved.is_subset(fine))


def _steps_by_one(statement: Statement, levels: range) -> bool:
    """Whether coordinates are values of loop variables: elsewhere they are numbers of trips."""
    spaces = [loop.space for loop in statement.loops[: levels.stop]]
    return all(isinstance(space, Range) and has_unit_step(space) for space in spaces)


# ---------------------------------------------------------------- slopes and shifts


def _coordinate(relations: Relations, spots: Mapping[str, Spot], k: int) -> tuple[int, dict[Place, int]] | None:
    """The slope and the shifts of coordinate k + 1; None where a dependence has no least difference in it."""
    within: list[tuple[Place, Place, int]] = []
    later: list[tuple[Place, Place, int]] = []
    for one, other, deltas in _differences(relations, spots, k):
        for edges, rounds in ((within, "r = 0"), (later, "r > 0")):
            least = _least(deltas, rounds)
            if least == UNBOUNDED:
                return None
            if least is not None:
                edges.append((one.places[k], other.places[k], least))
    shifts = {spot.places[k]: 0 for spot in spots.values()}
    for _ in range(len(shifts) + 1):
        before = dict(shifts)
        for start, end, least in within:
            shifts[end] = max(shifts[end], shifts[start] - least)
        if shifts == before:
            return max([0, *(shifts[start] - shifts[end] - least for start, end, least in later)]), shifts
    return None


UNBOUNDED = -(2**62)


def _least(deltas: isl.Set, rounds: str) -> int | None:
    """The least second coordinate of the differences with such a first one; None where there are none."""
    import islpy as isl

    found = deltas.intersect(isl.Set(f"{{ [r, x] : {rounds} }}", deltas.get_ctx()))
    if found.is_empty():
        return None
    value = found.dim_min_val(1)
    return number_of(value) if value.is_int() else UNBOUNDED


def _differences(relations: Relations, spots: Mapping[str, Spot], k: int) -> Iterator[tuple[Spot, Spot, isl.Set]]:
    """For two statements each, the differences of t and of the loop variable of coordinate k + 1 over their
    dependences."""
    import islpy as isl

    context = relations.domain.get_ctx()
    here: dict[str, isl.Map] = {}
    for name, spot in spots.items():
        point = _point(spot, (spot.statement.space.dims[0], spot.values[k]))
        here[name] = isl.Map(f"{parameter_list(spot.parameters)}{{ {point} }}", context)
    found: list[isl.Map] = []
    relations.dependences.foreach_map(found.append)
    for relation in found:
        one, other = (relation.get_tuple_name(kind) for kind in (isl.dim_type.in_, isl.dim_type.out))
        yield spots[one], spots[other], relation.apply_domain(here[one]).apply_range(here[other]).deltas()


def _coordinates(spot: Spot, slopes: Sequence[int], shifts: Mapping[tuple[int, Place], int]) -> str:
    t = spot.statement.space.dims[0]
    found = [
        f"{sum_text({t: slope, '': shifts[k, spot.places[k]]})} + ({spot.values[k]})" for k, slope in enumerate(slopes)
    ]  # fmt: skip
    return _point(spot, (t, *found))


def _point(spot: Spot, values: Sequence[str]) -> str:
    return f"{spot.statement.name}[{', '.join(spot.statement.space.dims)}] -> [{', '.join(values)}]"


def _rows(region: Region, types: Types, spots: Mapping[str, Spot]) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """The arrays with an axis that a coordinate goes along."""
    along: dict[str, set[int]] = {}
    for statement in region.statements:
        spot = spots[statement.name]
        found = zip(spot.values, spot.fixed, strict=True)
        columns = [statement.space.dims.index(variable) for variable, fixed in found if fixed is None]
        for array, _, matrix in statement.subscripts:
            axes = np.flatnonzero(matrix[:, columns].any(axis=1))
            along.setdefault(array, set()).update(int(axis) for axis in axes)
    for array, followed in along.items():
        kind = types.get(array)
        if followed and isinstance(kind, ArrayType):
            yield array, np.dtype(kind.dtype).itemsize, tuple(a for a in range(kind.ndim) if a not in followed)
