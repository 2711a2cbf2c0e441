"""The tiles of a parallel loop as a picture: rows and columns of blocks, workers as colours, steps as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil

import numpy as np

from orion.dataclass import dataclass, replace
from orion.inspect.pictures.arrows import Box, Entry, arrows_over, key_of_arrows, patterns_of
from orion.inspect.pictures.outline import Plane, plane_of
from orion.inspect.pictures.shapes import (
    EDGE,
    FAINT,
    GRID,
    INK,
    PAPER,
    WORKERS,
    boxes,
    document,
    grid,
    line,
    outside,
    rectangle,
    text,
    text_width,
)  # fmt: skip
from orion.inspect.text.words import counted, factor, listed, place, strategy_in_words
from orion.plan.plan import LoopPlan, Tiled
from orion.schedule.schedule import Ints, Schedule

SQUARE = 336.0
"""The side of the square of tiles, where there is one square."""

WIDE = 620.0
MOST_SQUARES = 4
MOST_TILES = 400
"""Of more tiles than these, those of one worker that stand beside each other are one shape: pages stay small."""

TICK = 10.0
TOP = 92.0
LEFT = 24.0
MARGIN = 18.0
FAR = 2**61
"""Bounds past this stand for "not known before the loop runs"."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What goes where: `rows`, `columns` and `slices` are loop dimensions (None where there is no such direction).
    `about` says which part of a loop it is, where it is one of several. `values` are those of sizes and integers, none
    where they are not known."""

    loop: LoopPlan
    schedule: Schedule
    has_bounds: bool
    rows: int | None
    columns: int
    slices: int | None
    left: float
    width: float
    height: float
    about: str
    values: Mapping[str, int]

    def blocks(self, dim: int | None) -> int:
        """The number of blocks of a loop dimension; 1 for a direction that there is not."""
        return 1 if dim is None else self.schedule.grid[dim]

    @property
    def shown(self) -> int:
        """The number of squares that are drawn."""
        return min(MOST_SQUARES, self.blocks(self.slices))

    def tile(self, row: int, column: int, square: int) -> int:
        """The number of a tile; dimensions that are not drawn are at their first block."""
        blocks = [0] * len(self.schedule.grid)
        for dim, block in ((self.rows, row), (self.columns, column), (self.slices, square)):
            if dim is not None:
                blocks[dim] = block
        return int(np.ravel_multi_index(blocks, self.schedule.grid))

    def origin(self, square: int) -> tuple[float, float]:
        """The upper left corner of one square."""
        return self.left + square * (self.width + 16), TOP + (20 if self.slices is not None else 0)

    def plane(self, square: int) -> Plane | None:
        """The iterations of one square; None where it is not known which of a tile's places have one."""
        if self.rows is None or not self.has_bounds or self.loop.nest.elements is not None:
            return None
        others = {} if self.slices is None else {self.slices: self.between(self.slices, square)}
        return plane_of(self.loop, self.rows, self.columns, others, self.values)

    def between(self, dim: int | None, block: int) -> tuple[int, int]:
        """The half-open range of the coordinates of a block."""
        assert dim is not None
        bounds = self.schedule.bounds[dim]
        return int(bounds[block]), int(bounds[block + 1])

    @property
    def bottom(self) -> float:
        return self.origin(0)[1] + self.height

    @property
    def right(self) -> float:
        return self.origin(self.shown - 1)[0] + self.width


def tiles_picture(
    loop: LoopPlan, schedule: Schedule, values: Mapping[str, int], *, has_bounds: bool, about: str = ""
) -> str:
    """The picture of a loop with a parallel schedule; `about` is said below its title."""
    layout = replace(_layout(loop, schedule, has_bounds), about=about, values=values)
    patterns = patterns_of(loop)
    shapes = [*_titles(layout), *_axes(layout)]
    for square in range(layout.shown):
        shapes += _square(layout, square)
        shapes += arrows_over(patterns, layout.rows, layout.columns, layout.slices, _box(layout, square))
    shapes += _workers(layout)
    key = [*_notes(layout), *key_of_arrows(patterns, layout.rows, layout.columns, layout.slices)]
    top = layout.bottom + (46 if layout.rows is None else 26)
    shapes += (entry.draw(MARGIN, top + 20 * position) for position, entry in enumerate(key))
    last = _bound(int(schedule.bounds[layout.columns][-1])) if has_bounds else ""
    beside = 100 if layout.rows is not None else max(20, text_width(last, TICK) / 2 + 8)
    width = max(layout.right + beside, *(entry.width + 2 * MARGIN for entry in key))
    width = max(width, text_width(_subtitle(layout), 12) + 2 * MARGIN)
    return document(width, top + 20 * len(key), _title(loop), describe(loop, schedule), shapes)


def _box(layout: Layout, square: int) -> Box:
    x, y = layout.origin(square)
    return Box(x, y, layout.width, layout.height, layout.blocks(layout.rows), layout.blocks(layout.columns))


def describe(loop: LoopPlan, schedule: Schedule) -> str:
    """The picture in words, for those who cannot see it."""
    grid = " by ".join(f"{counted(blocks, 'block')} of {name}" for blocks, name in _cut(loop, schedule))
    return f"{grid or 'one tile'}, on {counted(schedule.workers, 'worker')}: {strategy_in_words(loop)}."


def _cut(loop: LoopPlan, schedule: Schedule) -> list[tuple[int, str]]:
    return [(blocks, name) for blocks, name in zip(schedule.grid, loop.nest.dims, strict=True) if blocks > 1]


# ---------------------------------------------------------------- where things go


def _layout(loop: LoopPlan, schedule: Schedule, has_bounds: bool) -> Layout:
    assert isinstance(loop.tiles, Tiled)
    space, others = loop.tiles.space, _other_dims(loop, loop.tiles, schedule)
    if not others:
        return Layout(loop, schedule, has_bounds, None, space, None, LEFT, WIDE, 44, "", {})
    slices = others[1] if len(others) > 1 and schedule.grid[others[1]] > 1 else None
    side = SQUARE if slices is None else 150.0
    labels = [_bound(bound) for bound in schedule.bounds[space]] if has_bounds else [""]
    name = text_width(f"{loop.nest.dims[space]} ↓") + 6
    left = max(46.0, MARGIN + 8 + max(text_width(label, TICK) for label in labels), MARGIN + name)
    return Layout(loop, schedule, has_bounds, space, others[0], slices, left, side, side, "", {})


def _other_dims(loop: LoopPlan, tiles: Tiled, schedule: Schedule) -> list[int]:
    """The dimensions besides the one that is shared out: those of time first, then cut ones, then the rest."""
    rest = [dim for dim in range(len(loop.nest.dims)) if dim not in (tiles.space, *tiles.time)]
    return [*tiles.time, *sorted(rest, key=lambda dim: schedule.grid[dim] == 1)]


def _titles(layout: Layout) -> list[str]:
    return [
        text(MARGIN, 26, _title(layout.loop), size=13.5, weight=600),
        text(MARGIN, 44, _subtitle(layout), size=12, fill=FAINT),
    ]


def _title(loop: LoopPlan) -> str:
    return f"{loop.nest.function.name}, {place(loop.nest.span)}"


def _subtitle(layout: Layout) -> str:
    loop, schedule = layout.loop, layout.schedule
    cut = _cut(loop, schedule)
    shape = " × ".join(f"{blocks}" for blocks, _ in cut)
    names = " × ".join(factor(name) for _, name in cut)
    tiles = f"{shape} {'blocks' if len(cut) == 1 else 'tiles'} of {names}" if cut else "one tile"
    about = f"{layout.about}; " if layout.about else ""
    return f"{about}{loop.strategy}: {tiles} on {counted(schedule.workers, 'worker')}"


# ---------------------------------------------------------------- tiles


def _square(layout: Layout, square: int) -> Iterator[str]:
    """The tiles of one square, and above it which block of the third dimension it is."""
    loop, schedule = layout.loop, layout.schedule
    x0, y0 = layout.origin(square)
    rows, columns = layout.blocks(layout.rows), layout.blocks(layout.columns)
    width, height = layout.width / columns, layout.height / rows
    if layout.slices is not None:
        name = loop.nest.dims[layout.slices]
        words = f" = {_range(schedule.bounds[layout.slices], square)}" if layout.has_bounds else f": block {square}"
        yield text(x0, y0 - 40, name + words, size=11, weight=600)
    if rows * columns * layout.shown > MOST_TILES:
        yield from _coarse_square(layout, square)
        return
    marked, plane = _marked_step(layout), layout.plane(square)
    numbers, outlines = [], []
    for row in range(rows):
        for column in range(columns):
            tile = layout.tile(row, column, square)
            x, y = x0 + column * width, y0 + row * height
            step, worker = int(schedule.step[tile]), int(schedule.owner[tile])
            is_empty = plane is not None and not _has_iterations(layout, plane, row, column)
            title = _tile_title(layout, tile) + (", no iterations" if is_empty else "")
            yield rectangle(x, y, width, height, fill=_colour(worker), stroke=GRID, title=title)
            if loop.time and width >= 16 and height >= 14 and not is_empty:
                numbers.append(text(x + 4, y + 12, str(step), size=10, weight=600 if step == marked else 400))
            if step == marked and not is_empty:
                outlines.append(rectangle(x + 1, y + 1, width - 2, height - 2, fill="none", stroke=INK, thick=2))
    if plane is not None:
        yield from _without_iterations(layout, plane, square)
    yield from (*numbers, *outlines)


def _coarse_square(layout: Layout, square: int) -> Iterator[str]:
    """The tiles of one square that has many: a shape for each run of them along a row that one worker has, the grid,
    and those of the marked step."""
    x0, y0 = layout.origin(square)
    rows, columns = layout.blocks(layout.rows), layout.blocks(layout.columns)
    width, height = layout.width / columns, layout.height / rows
    marked, plane, outlines = _marked_step(layout), layout.plane(square), []
    for row in range(rows):
        tiles = [layout.tile(row, column, square) for column in range(columns)]
        first = 0
        for worker, run in groupby(int(layout.schedule.owner[tile]) for tile in tiles):
            count, x, y = len(list(run)), x0 + first * width, y0 + row * height
            title = _run_title(layout, worker, row, (first, first + count - 1))
            yield rectangle(x, y, count * width, height, fill=_colour(worker), title=title)
            first += count
        for column, tile in enumerate(tiles):
            is_empty = plane is not None and not _has_iterations(layout, plane, row, column)
            if int(layout.schedule.step[tile]) == marked and not is_empty:
                outlines.append((x0 + column * width, y0 + row * height))
    if min(width, height) >= 4:
        yield grid(x0, y0, layout.width, layout.height, rows, columns, stroke=GRID)
    if plane is not None:
        yield from _without_iterations(layout, plane, square)
    if outlines:
        yield boxes(outlines, width, height, stroke=INK)


def _run_title(layout: Layout, worker: int, row: int, columns: tuple[int, int]) -> str:
    """What is shown of a run of tiles that is pointed at."""
    parts = [f"worker {worker}"]
    if layout.has_bounds:
        dims, bounds = layout.loop.nest.dims, layout.schedule.bounds
        if layout.rows is not None:
            parts.append(f"{dims[layout.rows]} = {_range(bounds[layout.rows], row)}")
        else:
            first, last = columns
            ends = bounds[layout.columns][[first, last + 1]]
            parts.append(f"{dims[layout.columns]} = {_range(ends, 0)}")
    return ", ".join(parts)


def _has_iterations(layout: Layout, plane: Plane, row: int, column: int) -> bool:
    return plane.meets(layout.between(layout.rows, row), layout.between(layout.columns, column))


def _without_iterations(layout: Layout, plane: Plane, square: int) -> Iterator[str]:
    """What of a square is no iteration, as paper: all that is not inside of their outline."""
    assert layout.rows is not None
    x0, y0 = layout.origin(square)
    sides = (layout.columns, layout.width, x0), (layout.rows, layout.height, y0)
    places = []
    for (dim, length, start), coordinates in zip(sides, np.array(plane.corners()).T, strict=True):
        edges, blocks = layout.schedule.bounds[dim], layout.blocks(dim)
        places.append(start + np.interp(coordinates, edges, np.arange(blocks + 1)) * length / blocks)
    x, y = places
    area = abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2
    if area < layout.width * layout.height - 1:  # to a pixel
        corners = list(zip(x.tolist(), y.tolist(), strict=True))
        yield outside(x0, y0, layout.width, layout.height, corners, fill=PAPER, title="no iterations")


def _marked_step(layout: Layout) -> int:
    """The step whose tiles are outlined: one with as many tiles as there can be; −1 where all tiles are in one step."""
    if not layout.loop.time:
        return -1
    counts = np.bincount(layout.schedule.step)
    return int(np.argmax(counts))


def _colour(worker: int) -> str:
    return WORKERS[worker % len(WORKERS)]


def _tile_title(layout: Layout, tile: int) -> str:
    schedule = layout.schedule
    blocks = np.unravel_index(tile, schedule.grid)
    parts = [f"worker {schedule.owner[tile]}"]
    if layout.loop.time:
        parts.append(f"step {schedule.step[tile]}")
    if layout.has_bounds:
        sides = zip(layout.loop.nest.dims, schedule.bounds, blocks, strict=True)
        parts += [f"{name} = {_range(bounds, int(block))}" for name, bounds, block in sides]
    return ", ".join(parts)


def _range(bounds: Ints, block: int) -> str:
    """The indices of a block, as "0–754"."""
    low, high = int(bounds[block]), int(bounds[block + 1]) - 1
    if high < low:
        return "none"
    return "all" if high > FAR else f"{low:,}–{high:,}" if high > low else f"{low:,}"


def _bound(bound: int) -> str:
    return "" if abs(bound) > FAR else f"{bound:,}"


# ---------------------------------------------------------------- around the tiles


def _axes(layout: Layout) -> Iterator[str]:
    """The names of the loop variables and the bounds of their blocks."""
    dims = layout.loop.nest.dims
    x0, y0 = layout.origin(0)
    columns = layout.blocks(layout.columns)
    yield text(x0 + layout.width / 2, y0 - 22, f"{dims[layout.columns]} →", size=12, weight=600, anchor="middle")
    yield from _column_ticks(layout, x0, y0, columns)
    if layout.rows is not None:
        yield text(x0 - 10, y0 - 10, f"{dims[layout.rows]} ↓", size=12, weight=600, anchor="end")
        if layout.has_bounds:
            yield from _row_ticks(layout, x0, y0)


def _column_ticks(layout: Layout, x0: float, y0: float, columns: int) -> Iterator[str]:
    if not layout.has_bounds:
        return
    bounds = layout.schedule.bounds[layout.columns]
    cell = layout.width / columns
    every = _stride([text_width(_bound(b), TICK) + 6 for b in bounds], cell)
    for edge in _edges(columns, every):
        x = x0 + edge * cell
        yield line(x, y0 - 4, x, y0, stroke=FAINT)
        yield text(x, y0 - 7, _bound(int(bounds[edge])), size=TICK, anchor="middle", fill=FAINT)


def _row_ticks(layout: Layout, x0: float, y0: float) -> Iterator[str]:
    assert layout.rows is not None
    rows = layout.blocks(layout.rows)
    bounds = layout.schedule.bounds[layout.rows]
    cell = layout.height / rows
    for edge in _edges(rows, _stride([TICK + 3], cell)):
        y = y0 + edge * cell
        yield line(x0 - 4, y, x0, y, stroke=FAINT)
        yield text(x0 - 7, y + 3.5, _bound(int(bounds[edge])), size=TICK, anchor="end", fill=FAINT)


def _stride(needs: Sequence[float], cell: float) -> int:
    """Every how many blocks there is room for a label."""
    return max(1, ceil(max(needs) / cell))


def _edges(blocks: int, every: int) -> list[int]:
    """The block edges to label: every so many, and the last, without one that would run into it."""
    inner = [edge for edge in range(0, blocks, every) if blocks - edge >= every or edge == 0]
    return [*inner, blocks]


def _workers(layout: Layout) -> Iterator[str]:
    """A bar along the rows (below the columns, in a single row) of each run of blocks of one worker, with its name."""
    owner = layout.schedule.owner
    blocks = layout.blocks(layout.loop.space)
    tiles = [layout.tile(0, b, 0) if layout.rows is None else layout.tile(b, 0, 0) for b in range(blocks)]
    owners = [int(owner[tile]) for tile in tiles]
    first = 0
    for worker, run in groupby(owners):
        count, name = len(list(run)), f"worker {worker}"
        if layout.rows is None:
            cell = layout.width / blocks
            x = layout.left + first * cell
            yield rectangle(x + 1, layout.bottom + 5, count * cell - 2, 5, fill=_colour(worker), stroke=EDGE)
            if count * cell > text_width(name, 11):
                yield text(x + count * cell / 2, layout.bottom + 23, name, size=11, anchor="middle")
        else:
            cell = layout.height / blocks
            y = layout.origin(0)[1] + first * cell
            yield rectangle(layout.right + 6, y + 1, 5, count * cell - 2, fill=_colour(worker), stroke=EDGE)
            if count * cell >= 11:
                yield text(layout.right + 17, y + count * cell / 2 + 4, name, size=11)
        first += count


# ---------------------------------------------------------------- the key


def _notes(layout: Layout) -> Iterator[Entry]:
    loop = layout.loop
    if loop.time:
        apart = "do not wait for each other" if loop.ordered else f"share no block of {_named(loop)}"
        yield Entry(f"numbers are steps: the tiles of one step {apart},")
        yield Entry(f"so they may run at the same time (outlined: step {_marked_step(layout)})")
    else:
        yield Entry("all tiles may run at the same time;")
        yield Entry("each worker goes through its own one by one")
    hidden = layout.blocks(layout.slices) - layout.shown
    if hidden and layout.slices is not None:
        name = loop.nest.dims[layout.slices]
        yield Entry(f"{counted(hidden, 'more square')} like these, for the other blocks of {name}")
    if loop.runs_on < layout.schedule.workers:
        yield Entry(f"at these sizes it runs on {counted(loop.runs_on, 'worker')}; the picture has more")


def _named(loop: LoopPlan) -> str:
    assert isinstance(loop.tiles, Tiled)
    names = [loop.nest.dims[dim] for dim in sorted((loop.tiles.space, *loop.tiles.time))]
    return listed(names).replace(" and ", " or ")
