"""Every instance of every statement runs once, on the worker and in the tile that the plan shows.

Kernels that note each instance are run at small sizes; what they noted is compared with what the function does as
Python, with `plan.schedule()`, and with the plan as data and as text. `tests.instances` says how it is noted.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import islpy as isl
import numpy as np
import pytest

from orion.ir.nodes import Const, Range
from orion.ir.types import ArrayType
from orion.plan.plan import Reordered, ReorderedSingle
from orion.plan.source_plans import rounds_around
from orion.sets.names import isl_name
from tests.inspect_loops import CASES
from tests.instances import ran
from tests.shown_runs import arguments_of, told_workers

WORKERS = (1, 3)


def small_arguments(case):
    """Arguments of small sizes: equal extents stay equal, longer ones stay longer. Rows of floats have gaps between
    their elements, so that no kernel keeps them in vector registers, which cannot be interpreted."""
    types, shapes = case
    extents = sorted({extent for shape in shapes.values() for extent in shape})
    new = {extent: 7 + 3 * number for number, extent in enumerate(extents)}
    small = {name: tuple(new[extent] for extent in shape) for name, shape in shapes.items()}
    return [
        np.repeat(value, 2, axis=-1)[..., ::2] if isinstance(kind, ArrayType) and kind.ndim == 2 else value
        for kind, value in zip(types.values(), arguments_of(types, small), strict=True)
    ]


@cache
def ran_small(function, workers):
    return ran(function, small_arguments(CASES[function]), workers)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_each_instance_runs_once_where_the_plan_says(function, workers):
    found = ran_small(function, workers)
    assert bool(found.noted) == bool(found.expected)
    assert Counter((one.statement, one.values) for one in found.noted) == Counter(found.expected)
    for number, loop in enumerate(found.program.loops):
        noted = [one for one in found.noted if one.loop == number]
        schedule = found.plan.schedule_of(found.plan.function.loops[number], loop.plan.runs_on)
        owners = {(one.worker, one.tile) for one in noted}
        assert owners <= {(int(owner), tile) for tile, owner in enumerate(schedule.owner)}
        assert {one.worker for one in noted} <= set(range(loop.plan.runs_on))
        for one in noted:
            assert lies_in(place_of(one, found, loop.plan), schedule, one.tile), one


def lies_in(place, schedule, tile):
    if place is None:
        return True
    blocks = np.unravel_index(tile, schedule.grid)
    return all(
        edges[block] <= at < edges[block + 1] for at, block, edges in zip(place, blocks, schedule.bounds, strict=True)
    )


def place_of(one, found, loop):
    """The coordinates of an instance in the planned loop that ran it; None where it is a single one."""
    statement = found.statements[one.statement]
    values = dict(zip(statement.variables, one.values, strict=False))
    if isinstance(loop.form, ReorderedSingle):
        return None
    if not isinstance(loop.form, Reordered):
        spaces = [outer.space for outer in loop.nest.loops]
        if isinstance(spaces[0], Range) and spaces[0].var not in values:
            return None
        return tuple(coordinate(dim, values, spaces) for dim in loop.nest.dims)
    return moved(statement, values, found, loop)


def coordinate(dim, values, spaces):
    """The value of a variable, or the number of its trip."""
    space = next((space for space in spaces if isinstance(space, Range) and space.var == dim), None)
    if space is None or space.step == Const(1, space.step.span):
        return values[dim]
    assert isinstance(space.start, Const)
    assert isinstance(space.step, Const)
    return (values[dim] - space.start.value) // space.step.value


def moved(statement, values, found, loop):
    """The coordinates that the order gives an instance, by isl."""
    span, moved_ones = statement.statement.span, loop.form.origin.statements
    own = next(one for one in moved_ones if any(part.span == span for part in one.body))
    sizes = found.plan._values() | {isl_name(name): value for name, value in values.items()}
    point = ", ".join(str(values[inner.space.var]) for inner in own.loops)
    at = isl.UnionMap(loop.form.places).intersect_domain(isl.UnionSet(f"{{ {own.name}[{point}] }}"))
    text = " and ".join(f"{name} = {value}" for name, value in sizes.items() if name not in values)
    params = ", ".join(name for name in sizes if name not in values)
    at = at.intersect_params(isl.Set(f"[{params}] -> {{ : {text or 'true'} }}"))
    place = isl.Set.from_union_set(at.range()).sample_point()
    count = isl.Set.from_union_set(at.range()).dim(isl.dim_type.set)
    found_at = [int(place.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(count)]
    return tuple(found_at[len(rounds_around(found.plan.function, loop.nest.number)) :])


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_data_and_text_say_how_many_workers_have_instances(function):
    found = ran_small(function, 3)
    data = [loop for loop in found.plan.to_dict()["loops"] if loop["is_written_by_user"]]
    assert [loop["runs_on"] for loop in data] == list(told_workers(str(found.plan)))
    for number, loop in enumerate(found.program.loops):
        tiles = {one.tile for one in found.noted if one.loop == number}
        workers = {one.worker for one in found.noted if one.loop == number}
        shown = found.plan.schedule_of(found.plan.function.loops[number], loop.plan.runs_on)
        assert workers == {int(shown.owner[tile]) for tile in tiles}
