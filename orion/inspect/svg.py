"""The picture of a loop: its iteration space, cut into the tiles of a schedule, with what keeps them in order."""

from __future__ import annotations

import numpy as np

from orion.inspect.chain import chain_picture
from orion.inspect.tiles import tiles_picture
from orion.plan.plan import LoopPlan
from orion.schedule.build import build_schedule
from orion.schedule.schedule import Schedule


def plan_svg(loop: LoopPlan, schedule: Schedule | None = None) -> str:
    """The picture of a loop as an SVG document that can stand by itself or inside a page.

    Parallel loops are drawn as their tiles: blocks of two loop dimensions as rows and columns (of a third as one
    square each), coloured by worker and numbered by step, with arrows along what conflicts. Serial loops are drawn as
    their first iterations and the arrows that chain them. Without a schedule (sizes are not known) blocks are drawn
    without their bounds.
    """
    if loop.space is None:
        return chain_picture(loop)
    if schedule is None or schedule.grid != loop.cuts:  # some sizes are not known
        return tiles_picture(loop, _without_sizes(loop), has_bounds=False)
    return tiles_picture(loop, schedule, has_bounds=True)


def _without_sizes(loop: LoopPlan) -> Schedule:
    """The schedule of the loop if every block were one iteration wide."""
    return build_schedule(loop, [np.arange(blocks + 1) for blocks in loop.cuts], loop.runs_on)
