"""The schedule stage: the plan of a loop, block bounds and a number of workers in; tiles by step and worker out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from orion.plan.plan import LoopPlan
from orion.schedule.schedule import Ints, Schedule


def build_schedule(plan: LoopPlan, bounds: Sequence[Ints], workers: int) -> Schedule:
    """The tiles of a loop for `workers` workers.

    `bounds[d]` has the `plan.cuts[d] + 1` block boundaries of loop dimension d. Workers own runs of neighbouring
    blocks of the space dimension; where a loop in another order has tiles that wait, the blocks are dealt out in turn.
    The order of tiles is by step (`tile_steps`), then by number; a tile waits for the tile of another worker that last
    used one of its time blocks before it in this order, and in the round before, for the last one to use it.
    """
    grid = tuple(len(edges) - 1 for edges in bounds)
    blocks = np.indices(grid).reshape(len(grid), -1)
    step = tile_steps(plan, grid, blocks)
    if plan.space is None:
        owner = np.zeros(step.size, np.int64)
    else:
        own = blocks[plan.space]
        # A loop in another order has no partitions: dealt out one by one, its blocks keep all workers busy.
        owner = own % workers if plan.deals_in_turn else own * workers // grid[plan.space]
    ranked = np.lexsort((np.arange(step.size), step))
    order = tuple(ranked[owner[ranked] == worker].astype(np.int64) for worker in range(workers))
    pairs = sorted(set(_waits(plan, grid, blocks, owner, ranked)))
    waiting, waits, lags = np.array(pairs, np.int64).reshape(-1, 3).T
    offsets = np.searchsorted(waiting, np.arange(step.size + 1)).astype(np.int64)
    edges = tuple(np.asarray(b, np.int64) for b in bounds)
    return Schedule(workers, grid, edges, owner, step, order, offsets, waits.copy(), lags.copy())


def tile_steps(plan: LoopPlan, grid: Sequence[int], blocks: Ints) -> Ints:
    """The time step of each tile.

    Unordered: a Latin hypercube. With p the block of the space dimension and q, r, … those of the time dimensions,
    each time dimension contributes the digit (q − p) mod max(blocks), so that tiles of one step differ in every
    block. Ordered: anti-diagonals p + q. Without time dimensions all tiles are in step 0.
    """
    steps = np.zeros(blocks.shape[1], np.int64)
    if plan.space is None:
        return steps
    own = blocks[plan.space]
    for dim in plan.time:
        if plan.ordered:
            steps += own + blocks[dim]
        else:
            width = max(grid[plan.space], grid[dim])
            steps = steps * width + (blocks[dim] - own) % width
    return steps


def _waits(
    plan: LoopPlan, grid: Sequence[int], blocks: Ints, owner: Ints, ranked: Ints
) -> Iterator[tuple[int, int, int]]:
    """(tile, tile it waits for, lag), for pairs on different workers."""
    if plan.ordered and plan.time:
        yield from _wavefront_waits(plan, grid, blocks, owner)
        return
    for dim in plan.time:
        for block in range(grid[dim]):
            chain = ranked[blocks[dim][ranked] == block]
            links = [*zip(chain[1:], chain[:-1], [0] * (len(chain) - 1), strict=True), (chain[0], chain[-1], 1)]
            for tile, before, lag in links:
                if owner[tile] != owner[before]:
                    yield int(tile), int(before), lag


def _wavefront_waits(plan: LoopPlan, grid: Sequence[int], blocks: Ints, owner: Ints) -> Iterator[tuple[int, int, int]]:
    """A tile waits for its neighbours one block earlier in either dimension; the first one for the last of the
    round before.
    """
    assert plan.space is not None
    (time,) = plan.time
    number = np.arange(owner.size).reshape(tuple(grid))
    for dim in (plan.space, time):
        later, earlier = np.moveaxis(number, dim, 0)[1:].ravel(), np.moveaxis(number, dim, 0)[:-1].ravel()
        yield from ((int(t), int(b), 0) for t, b in zip(later, earlier, strict=True) if owner[t] != owner[b])
    first, last = 0, owner.size - 1
    if owner[first] != owner[last]:
        yield first, last, 1
