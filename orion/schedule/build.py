"""The schedule stage: the plan of a loop, block bounds and a number of workers in; tiles by step and worker out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from orion.analysis.rules import tiling_of
from orion.analysis.strategies.serial import SERIAL
from orion.analysis.strategies.tiling import Tiles, Wait
from orion.cost.candidate import Strategy
from orion.dependence.early_exits import ends_early
from orion.plan.deal import owners
from orion.plan.plan import Inspected, LoopPlan, Reordered, Tiled, Weighed
from orion.schedule.inspected import inspected_schedule
from orion.schedule.schedule import Ints, Schedule, ranked


def build_schedule(plan: LoopPlan, bounds: Sequence[Ints], workers: int) -> Schedule:
    """The tiles of a loop for `workers` workers.

    `bounds[d]` has the `plan.cuts[d] + 1` block boundaries of loop dimension d. Workers own runs of neighbouring
    blocks of the space dimension, as many as `plan.deal` says; where a loop in another order has tiles that wait, and
    where a loop may end early, they are dealt out in turn. The order of tiles is by step, the heavy ones first, then by
    number. The steps, and what tiles wait for, are those of the strategy; a tile need not wait for those of its own
    worker, but where the loop is dynamic: then nobody knows before who runs it, nor who has run it in the round before.
    """
    if isinstance(plan.tiles, Inspected):
        return inspected_schedule(plan.tiles.inspection, bounds, workers)
    grid = tuple(len(edges) - 1 for edges in bounds)
    blocks = np.indices(grid).reshape(len(grid), -1)
    if isinstance(plan.tiles, Tiled):
        tiles = Tiles(grid, blocks, plan.tiles.space, plan.tiles.time)
        tiling = tiling_of(plan.strategy, plan.ordered) if tiles.time else SERIAL  # no tile of which waits either
        own = blocks[tiles.space]
        # A loop in another order has no partitions: dealt out one by one, its blocks keep all workers busy. So do those
        # of a loop that may end early, since the blocks after the end are in vain.
        in_turn = (isinstance(plan.form, Reordered) and bool(tiles.time)) or ends_early(plan.nest.body)
        owner = owners(plan.deal, grid[tiles.space], workers, in_turn=in_turn)[own]
    else:
        tiling, tiles, owner = SERIAL, Tiles(grid, blocks, 0, ()), np.zeros(blocks.shape[1], np.int64)
    step = tiling.steps(tiles)
    heavy = plan.tiles.heavy[blocks[plan.tiles.space]] if isinstance(plan.tiles, Weighed) else np.zeros_like(step)
    order = ranked(step, heavy)
    links = [*tiling.waits(tiles, order)]
    if plan.is_dynamic:
        pairs = sorted({*links, *_in_turn(tiles, order, plan.strategy)})
    else:
        pairs = sorted({(tile, before, lag) for tile, before, lag in links if owner[tile] != owner[before]})
    waiting, waits, lags = np.array(pairs, np.int64).reshape(-1, 3).T
    offsets = np.searchsorted(waiting, np.arange(step.size + 1)).astype(np.int64)
    edges = tuple(np.asarray(b, np.int64) for b in bounds)
    orders = tuple(order[owner[order] == worker] for worker in range(workers))
    waiting_for = offsets, waits.copy(), lags.copy()
    return Schedule(workers, grid, edges, owner, step, heavy, orders, *waiting_for, plan.is_dynamic)


def most_workers(plan: LoopPlan, workers: int) -> int:
    """How many of so many workers have a block of the loop."""
    match plan.tiles:
        case Tiled(space=space):
            return min(workers, plan.cuts[space])
        case Inspected():
            return min(workers, plan.cuts[0])
        case _:
            return 1


def _in_turn(tiles: Tiles, order: Ints, strategy: Strategy) -> Iterator[Wait]:
    """What the tiles of a block of the space dimension wait for that one worker would run one after the other, round
    after round. Where no iterations are in conflict each waits for itself alone, as it was in the round before."""
    if strategy is Strategy.INDEPENDENT:
        yield from ((tile, tile, 1) for tile in order.tolist())
        return
    own = tiles.blocks[tiles.space]
    for block in range(tiles.grid[tiles.space]):
        chain = order[own[order] == block].tolist()
        yield from zip(chain[1:], chain[:-1], [0] * (len(chain) - 1), strict=True)
        yield chain[0], chain[-1], 1
