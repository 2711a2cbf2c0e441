"""An inspected loop as a picture: how many of its iterations each step has, by the workers that run them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from orion.dependence.inspection import Inspection
from orion.inspect.pictures.shapes import EDGE, FAINT, WORKERS, document, line, rectangle, text, text_width
from orion.inspect.text.words import counted, place
from orion.plan.plan import LoopPlan
from orion.schedule.schedule import Ints, Schedule

MARGIN, TOP, HEIGHT, WIDTH = 18.0, 74.0, 160.0, 640.0
COLUMNS, SHAPES = 160, 640
"""As many columns are drawn at most, and shapes in them: of more steps, several are one column."""


def steps_picture(loop: LoopPlan, found: Inspection, schedule: Schedule) -> str:
    """The picture of a loop whose tiles an inspection has found."""
    sizes = _iterations(found, schedule)
    title = f"{loop.nest.function.name}, {place(loop.nest.span)}"
    said = f"{counted(found.tiles, 'tile')}, {found.kind}; on {counted(schedule.workers, 'worker')}"
    chain = f"the longest chain has {found.depth:,} of {found.order.size:,} iterations"
    shapes = [
        text(MARGIN, 26, title, size=13.5, weight=600),
        text(MARGIN, 44, said, fill=FAINT),
        text(MARGIN, 60, chain, fill=FAINT),
        *_columns(sizes),
        line(MARGIN, TOP + HEIGHT, MARGIN + WIDTH, TOP + HEIGHT, stroke=EDGE),
        text(MARGIN, TOP + HEIGHT + 16, "steps: each needs those before it", size=10.5, fill=FAINT),
    ]
    x = MARGIN
    for worker in range(schedule.workers):
        words = f"worker {worker}"
        shapes += [
            rectangle(x, TOP + HEIGHT + 28, 12, 12, fill=WORKERS[worker % len(WORKERS)]),
            text(x + 17, TOP + HEIGHT + 38, words, size=11),
        ]
        x += 34 + text_width(words, 11)
    width = max(WIDTH, x, text_width(said), text_width(chain)) + 2 * MARGIN
    return document(width, TOP + HEIGHT + 52, title, f"{said}; {chain}", shapes)


def _iterations(found: Inspection, schedule: Schedule) -> Ints:
    """How many iterations the workers run in each column of steps, (columns, workers)."""
    steps = int(schedule.step.max(initial=0)) + 1
    columns = min(COLUMNS, steps, max(1, SHAPES // schedule.workers))
    column = schedule.step * columns // steps
    sizes = np.zeros((columns, schedule.workers), np.int64)
    np.add.at(sizes, (column, schedule.owner), np.diff(found.offsets))
    return sizes


def _columns(sizes: Ints) -> Iterator[str]:
    wide, most = WIDTH / len(sizes), max(1, int(sizes.sum(axis=1).max(initial=0)))
    for number, column in enumerate(sizes.tolist()):
        bottom = TOP + HEIGHT
        for worker, count in enumerate(column):
            high = HEIGHT * count / most
            if count:
                told = f"worker {worker}: {count:,} iterations"
                fill = WORKERS[worker % len(WORKERS)]
                bottom -= high
                yield rectangle(MARGIN + number * wide, bottom, max(0.5, wide - 0.5), high, fill=fill, title=told)
