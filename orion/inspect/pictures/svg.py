"""The picture of a loop: its iteration space, cut into the tiles of a schedule, with what keeps them in order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orion.cost.candidate import Strategy
from orion.inspect.pictures.chain import chain_picture
from orion.inspect.pictures.steps import steps_picture
from orion.inspect.pictures.tiles import tiles_picture
from orion.inspect.text.parts import lines_of
from orion.inspect.text.words import lines_in_words, shown_part
from orion.plan.plan import Inspected, LoopPlan, Tiled
from orion.plan.source_plans import main_part
from orion.schedule.build import build_schedule
from orion.schedule.schedule import Schedule


def plan_svg(
    loop: LoopPlan,
    schedule: Schedule | None = None,
    drawn: LoopPlan | None = None,
    values: Mapping[str, int] | None = None,
) -> str:
    """The picture of a loop as an SVG document that can stand by itself or inside a page.

    Parallel loops are drawn as their tiles: blocks of two loop dimensions as rows and columns (of a third as one square
    each), coloured by worker and numbered by step, with arrows along what conflicts. Serial loops are drawn as their
    first iterations and the arrows that chain them. Without a schedule (sizes are not known) blocks are drawn without
    their bounds. `values` are those of sizes and integers: with them, what of a tile is no iteration is blank. Of a
    loop in another order the tiles of one part are drawn, `drawn` or else the largest; where that is what one worker
    runs, the iterations of the loop as it is written.
    """
    loop = shown_part(loop)
    part = drawn or main_part(loop)
    if loop.parts and isinstance(part.tiles, Tiled):
        return _picture_of_part(loop, part, schedule, values or {})
    if isinstance(loop.tiles, Inspected) and schedule is not None:
        return steps_picture(loop, loop.tiles.inspection, schedule)
    if not isinstance(loop.tiles, Tiled):
        return chain_picture(loop, _about_once(loop, part))
    return _picture_of_tiles(loop, schedule, values or {}, "")


def _about_once(loop: LoopPlan, part: LoopPlan) -> str:
    """What one worker runs of a loop in another order, where that is drawn."""
    if not loop.parts or loop.strategy is Strategy.SERIAL:
        return ""
    lines = lines_of(part.nest)
    return f"most of the work: {lines_in_words(lines)}, which one worker runs in every iteration"


def _picture_of_part(loop: LoopPlan, part: LoopPlan, schedule: Schedule | None, values: Mapping[str, int]) -> str:
    """The picture of a part of a loop: its axes are formulas in the user's variables."""
    number, count = loop.parts.index(part) + 1, len(loop.parts)
    about = f"part {number} of {count}, {lines_in_words(lines_of(part.nest))}" if count > 1 else ""
    return _picture_of_tiles(shown_part(part), schedule, values, about)


def _picture_of_tiles(loop: LoopPlan, schedule: Schedule | None, values: Mapping[str, int], about: str) -> str:
    if schedule is None or schedule.grid != loop.cuts:  # some sizes are not known
        return tiles_picture(loop, _without_sizes(loop), {}, has_bounds=False, about=about)
    return tiles_picture(loop, schedule, values, has_bounds=True, about=about)


def _without_sizes(loop: LoopPlan) -> Schedule:
    """The schedule of the loop if every block were one iteration wide."""
    return build_schedule(loop, [np.arange(blocks + 1) for blocks in loop.cuts], loop.runs_on)
