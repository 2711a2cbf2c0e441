"""Whether neighbouring loops are run as one at given sizes, and how the plan tells of it.

One after the other, the loops bring an array that both use through memory twice, if it is larger than a cache. As one,
an iteration of the second follows the same iteration of the first, and finds in the cache what that has used, if all
that one iteration uses fits there:

    bytes(a) > L2 for a shared array a,  and  Σ_a bytes of a that one iteration uses <= SHARE * L2,

L2 being the second-level cache of a core. Elements that lie apart use a cache line each. The number of workers does not
count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from orion.analysis.one_loop import AnalysedLoop, members_of
from orion.cost.extents import coordinate_ranges
from orion.cost.grid import LINE_BLOCKS
from orion.cost.placement import ArrayUse, array_bytes
from orion.cost.sizes import Sizes
from orion.ir.types import ArrayType, Shapes, Types
from orion.plan.plan import Fill, Fused, FusedWith, LoopPlan, Member, Written
from orion.plan.variants import Changed, Variant
from orion.reasons import ReasonKind
from orion.rewrites.fuse.apply import fuse_loops
from orion.rewrites.fuse.found import Found, Fusable, NotFused
from orion.rewrites.fuse.take import shared_arrays

SHARE = 0.5
"""The part of the cache that one iteration may use: columns of a matrix often fall into the same few sets of it."""

LINE = 64
"""Bytes in a cache line."""


def why_fused(loop: AnalysedLoop, types: Types, sizes: Sizes) -> FusedWith | None:
    """Why the neighbours that a fused loop stands for are run as one; None where they better are not, or it stands for
    none."""
    members = members_of(loop)
    if not members or sizes.symbolic:
        return None
    arrays = shared_arrays(members)
    lines = tuple(member.nest.span.line for member in members)
    large = tuple(array for array in arrays if (array_bytes(array, types, sizes.shapes) or 0) > sizes.caches.second)
    if sizes.force_parallel:
        return FusedWith(lines, large or arrays, None)
    if any(array_bytes(use.array, types, sizes.shapes) is None for use in loop.uses):
        return None
    used = sum(_bytes_per_iteration(use, len(loop.nest.dims), types, sizes.shapes) for use in loop.uses)
    if not large or used > SHARE * sizes.caches.second or not _has_blocks(loop, sizes):
        return None
    times = {array: sum(array in _used(member) for member in members) - 1 for array in large}
    saved = sum(times[array] * (array_bytes(array, types, sizes.shapes) or 0) for array in large)
    return FusedWith(lines, large, saved)


def _used(loop: AnalysedLoop) -> set[str]:
    return {use.array for use in loop.uses}


def _bytes_per_iteration(use: ArrayUse, dims: int, types: Types, shapes: Shapes) -> float:
    """The part of an array that one iteration of the fused dimensions uses, in cache lines."""
    size, shape, kind = float(array_bytes(use.array, types, shapes) or 0), shapes[use.array], types[use.array]
    assert isinstance(kind, ArrayType)
    followed = {follow.axis: follow.high - follow.low + 1 for follow in use.follows if follow.dim < dims}
    for axis, width in followed.items():
        size *= min(1.0, width / max(1, shape[axis]))
    if len(shape) - 1 in followed:  # few elements of each row
        size *= max(1.0, LINE / np.dtype(kind.dtype).itemsize / followed[len(shape) - 1])
    return size


def _has_blocks(loop: AnalysedLoop, sizes: Sizes) -> bool:
    """Whether the outermost loop alone, which is shared out, has as many iterations as there are blocks."""
    values = sizes.known
    first = coordinate_ranges(loop.analysis.domain, len(loop.nest.dims), values)[0]
    return first is not None and first[1] - first[0] >= LINE_BLOCKS


def along(member: AnalysedLoop, space: int) -> AnalysedLoop:
    """A neighbour in blocks of the dimension that the fused loop has blocks of."""
    candidates = tuple(candidate for candidate in member.candidates if candidate.space == space)
    return replace(member, candidates=candidates or member.candidates)


def keeps_blocks(fused: LoopPlan, member: LoopPlan) -> bool:
    """Whether a neighbour that is run by itself has the blocks of the fused loop, so that its sums are the same."""
    return member.tiles == fused.tiles and member.cuts == fused.cuts


def with_members(plan: LoopPlan, members: Iterable[LoopPlan], why: FusedWith) -> LoopPlan:
    """The plan of a fused loop with those of the loops that it stands for; all run in its blocks, on its workers."""
    sizing = tuple(reason for reason in plan.reasons if reason.kind is ReasonKind.SIZES)
    apart = tuple(reason for reason in plan.reasons if reason.kind is ReasonKind.NOTE)
    found: list[LoopPlan] = []
    for member in members:
        others = tuple(line for line in why.lines if line != member.nest.span.line)
        nest = replace(member.nest, number=plan.nest.number)
        reasons = (*(reason for reason in member.reasons if reason.kind is not ReasonKind.SIZES), *sizing)
        reasons = reasons if found else (*reasons, *apart)
        assert isinstance(member.form, Written | Fill)
        found.append(
            replace(
                member,
                nest=nest,
                form=Member(member.form, replace(why, lines=others)),
                strategy=plan.strategy,
                is_parallel=plan.is_parallel,
                tiles=plan.tiles,
                cuts=(*plan.cuts, *member.cuts[len(plan.cuts) :]),
                reasons=reasons,
                runs_on=plan.runs_on,
                rounds_overlap=plan.rounds_overlap,
            )
        )
    return replace(plan, form=Fused(tuple(found)))


def with_reasons(plan: LoopPlan, apart: Iterable[NotFused], types: Types, sizes: Sizes) -> LoopPlan:
    """The plan of a loop with the reason why it is not fused with the loop before it, where that would save
    something at these sizes."""
    for one in apart:
        sizes_of = [array_bytes(array, types, sizes.shapes) or 0 for array in one.arrays]
        if one.number == plan.nest.number and max(sizes_of, default=0) > sizes.caches.second:
            return replace(plan, reasons=(*plan.reasons, one.reason))
    return plan


def fused_program(analysed: Variant, chosen: Sequence[Fusable]) -> Variant:
    """The program with some of its neighbours run as one."""
    if not chosen:
        return analysed
    program = fuse_loops(analysed.program, tuple(one.group for one in chosen))
    assert program is not None
    first_of = {one.group.first: one.loop for one in chosen}
    gone = {number for one in chosen for number in one.group.numbers[1:]}
    loops: list[AnalysedLoop] = []
    numbers: list[int] = []
    for number, old in enumerate(analysed.loops):
        if number not in gone:
            loops.append(replace(first_of.get(number, old), nest=program.nests[len(loops)]))
        numbers.append(len(loops) - 1)
    changed = tuple(_renumbered(one, numbers) for one in analysed.changed)
    not_fused = tuple(replace(one, number=numbers[one.number]) for one in analysed.neighbours.not_fused)
    deferred = tuple(replace(one, first=numbers[one.first]) for one in analysed.deferred)
    found = replace(analysed, program=program, loops=tuple(loops), changed=changed, deferred=deferred)
    return replace(found, neighbours=Found((), not_fused))


def _renumbered(changed: Changed, numbers: Sequence[int]) -> Changed:
    inside = changed.numbers
    return replace(changed, numbers=range(numbers[inside[0]], numbers[inside[-1]] + 1)) if inside else changed
