"""Check that a call runs as an earlier one did: if not, the difference of their plans is told in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from orion.dependence.inspection import Inspection
from orion.errors import ArgumentError, PlanError, describe
from orion.ir.assumed import Has, Held
from orion.last_run import LastRun, Ran
from orion.plan.plan import Inspected, LoopPlan
from orion.planned import Plan
from orion.prepare import Preparation
from orion.prepared_call import Prepared
from orion.runtime.prepared import PreparedLoop

MEASURED = frozenset({"ORN127", "ORN128", "ORN129"})
"""Codes of notes on inspections: they have times that were measured."""

TILES = ("order", "offsets", "need_offsets", "needs", "owner", "turn")
"""What the tiles of an inspection are."""


def ran_in(run: object, name: str) -> Ran:
    """Return what a run of the function of that name has kept. `ArgumentError` if it is no run."""
    if not isinstance(run, LastRun):
        hint = f"write `{name}.replay(run, …)` with `run = {name}.last_run` after the call"
        raise ArgumentError(describe(f"{name}.replay(): the first argument is a run, not {run!r}", hint=hint))
    return run.ran


def check_function(ran: Ran, preparations: Sequence[Preparation], name: str) -> None:
    """Raise PlanError unless the run is one of the function as it is now, which has these preparations."""
    if ran.preparation not in preparations:
        what = f"{name}.replay(): the run is one of another function, or of other code"
        raise PlanError(describe(what, hint=f"give a `{name}.last_run` of this function as it is now"))


def check_plan(found: Prepared, ran: Ran, name: str) -> None:
    """Raise PlanError unless a call is planned as the run was."""
    different = () if found is ran.prepared else differences(found, ran.prepared)
    if different:
        what = f"{name}.replay(): the plan of the run is not one for these arguments"
        hint = "give the arguments of the run, with what they held before it"
        raise PlanError(describe(what, why="; ".join(different), hint=hint))


def differences(now: Prepared, before: Prepared) -> tuple[str, ...]:
    """What of a call keeps it from running as an earlier one of the function did; nothing where it would run so.

    Any tiles are right for all contents that show how much work there is, whoever they are dealt to: these may differ.
    """
    one, other = _comparable(now.plan, before.plan)
    found = [*_of_arguments(one, other), *_of_sizes(now.plan, before.plan), *_of_sparse_arrays(now, before)]
    if not found and one != other:
        found += _of_properties(now.plan, before.plan)
    if not found:
        found += _of_inspections(now.plan, before.plan)
    if not found and one != other:
        found.append("its loops would run otherwise than in the run")
    return tuple(found)


def _comparable(*plans: Plan) -> list[dict[str, Any]]:
    """Return the data of plans without what was measured, and without whom tiles are dealt to. Of loops that are cut by
    weight, how they are cut is left out too."""
    found = [plan.to_dict() for plan in plans]
    for loops in zip_longest(*(data["loops"] for data in found), fillvalue=None):
        own = [loop for loop in loops if loop is not None]
        is_weighed = any(loop["weighed_by"] for loop in own)
        for loop in own:
            del loop["deal"], loop["inspection"]
            loop["reasons"] = [one for one in loop["reasons"] if one["code"] not in MEASURED]
            if is_weighed:
                del loop["blocks"], loop["weighed_by"]
    return found


# ---------------------------------------------------------------- arguments


def _of_arguments(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    """Kinds, dtypes and dimensions of arguments, and options."""
    for name, kind in now["arguments"].items():
        if name in before["arguments"] and kind != before["arguments"][name]:
            yield f"`{name}` is {_kind(kind)}, and was {_kind(before['arguments'][name])} in the run"
    for name in now["options"].keys() | before["options"].keys():
        mine, theirs = (one["options"].get(name) for one in (now, before))
        if mine != theirs:
            yield f"`{name}` is {mine!r}, and was {theirs!r} in the run"


def _kind(kind: Mapping[str, Any]) -> str:
    dtypes, dimensions = ", ".join(kind["dtypes"]), kind["dimensions"]
    if kind["kind"] == "scalar":
        return f"a number of dtype {dtypes}"
    return f"a {kind['kind']} array of dtype {dtypes} with {dimensions} dimension{'s' * (dimensions != 1)}"


def _of_sizes(now: Plan, before: Plan) -> Iterator[str]:
    given = now.function.program.function.given
    for name, shape in now.sizes.shapes.items():
        theirs = before.sizes.shapes.get(name, shape)
        if name in given and shape != theirs:
            yield f"`{name}` has shape {shape}, and had {theirs} in the run"
    for name, value in now.sizes.integers.items():
        other = before.sizes.integers.get(name, value)
        if value != other:
            yield f"`{name}` is {value}, and was {other} in the run"


def _of_sparse_arrays(now: Prepared, before: Prepared) -> Iterator[str]:
    """Sparse arrays whose elements are others: blocks are cut by these."""
    for name, array in now.plan.arrays.items():
        theirs = before.plan.arrays.get(name, array)
        if array is theirs:
            continue
        if len(array) != len(theirs):
            yield f"`{name}` has {len(array):,} elements, and had {len(theirs):,} in the run"
        elif any(_are_cut_otherwise(*loops, name) for loops in _pairs(now, before)):
            yield f"`{name}` has elements with other keys than the sparse array of the run: its blocks are cut by them"


def _pairs(now: Prepared, before: Prepared) -> Iterator[tuple[PreparedLoop, PreparedLoop]]:
    yield from zip(now.program.loops, before.program.loops, strict=False)


def _are_cut_otherwise(one: PreparedLoop, other: PreparedLoop, array: str) -> bool:
    pairs = zip_longest(one.schedule.bounds, other.schedule.bounds)
    return one.sparse == array and not all(np.array_equal(mine, theirs) for mine, theirs in pairs)


# ---------------------------------------------------------------- contents


def _of_inspections(now: Plan, before: Plan) -> Iterator[str]:
    for loop, other in zip(now.function.loops, before.function.loops, strict=False):
        mine, theirs = _inspection(loop), _inspection(other)
        line = loop.nest.span.line
        if mine is None and theirs is not None:
            yield f"the loop in line {line} ran in tiles that an inspection had found, and none has of these arrays"
        elif mine is not None and theirs is None:
            yield f"the loop in line {line} has been inspected since, and would run in the tiles that were found"
        elif mine is not None and theirs is not None and not _have_same_tiles(mine, theirs):
            assert isinstance(loop.tiles, Inspected)
            names = " and ".join(f"`{name}`" for name in loop.tiles.inspectable.reads)
            yield f"the contents of {names} are others than in the run: line {line} has other tiles for them"


def _inspection(loop: LoopPlan) -> Inspection | None:
    return loop.tiles.inspection if isinstance(loop.tiles, Inspected) else None


def _have_same_tiles(one: Inspection, other: Inspection) -> bool:
    return one.kind is other.kind and all(np.array_equal(getattr(one, part), getattr(other, part)) for part in TILES)


def _of_properties(now: Plan, before: Plan) -> Iterator[str]:
    """Properties of index arrays that hold in one of the calls alone."""
    mine, theirs = _shown(now), _shown(before)
    for (array, has), holds in sorted(mine.items(), key=str):
        if theirs.get((array, has), holds) is not holds:
            told = (
                ("it does not hold now", "it held in the run")
                if not holds
                else ("it holds now", "it did not in the run")
            )
            yield f"`{array}` {has}: {told[0]}, and {told[1]}"


def _shown(plan: Plan) -> dict[tuple[str, Has], bool]:
    return {(array, has): holds for array, has, holds in plan.sizes.shown if not isinstance(has, Held)}
