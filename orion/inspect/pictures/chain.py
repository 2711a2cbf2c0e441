"""A serial loop as a picture: its first iterations, and the arrows that keep them one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from orion.inspect.pictures.arrows import Entry, Pattern, key_of_arrows, patterns_of
from orion.inspect.pictures.shapes import FAINT, arc, arrow, circle, document, text, text_width
from orion.inspect.text.telling import lone_reasons
from orion.inspect.text.words import place
from orion.ir.nodes import Const, Range
from orion.plan.plan import LoopPlan

MARGIN = 18.0
SHOWN = 7
"""Iterations drawn of a loop with one dimension."""

LATTICE = (4, 6)
"""Rows and columns drawn of a loop with more."""

GAP = 62.0
SERIAL = "serial: one worker runs every iteration, one after another"
RADIUS = 13.0


def chain_picture(loop: LoopPlan, about: str = "") -> str:
    """The picture of a serial loop; `about` is said below its title, if not that it is serial."""
    patterns = patterns_of(loop)
    one = len(loop.nest.dims) == 1
    rows, columns = (None, 0) if one else _plane(patterns, len(loop.nest.dims))
    shapes = [
        text(MARGIN, 26, f"{loop.nest.function.name}, {place(loop.nest.span)}", size=13.5, weight=600),
        text(MARGIN, 44, about or SERIAL, size=12, fill=FAINT),
    ]
    if rows is None:
        shapes += _row(loop, patterns)
        top, right = 178.0, MARGIN + GAP * SHOWN + 60
    else:
        shapes += _lattice(loop, patterns, rows, columns)
        top, right = 96 + LATTICE[0] * 52.0, MARGIN + 40 + LATTICE[1] * GAP
    key = [*key_of_arrows(patterns, rows, columns, None)]
    key += (Entry(reason.message.replace("`", "")) for reason in lone_reasons(loop))
    shapes += (entry.draw(MARGIN, top + 20 * position) for position, entry in enumerate(key))
    width = max(right, *(entry.width + 2 * MARGIN for entry in key), text_width("x" * 60))
    title = f"{loop.nest.function.name}, {place(loop.nest.span)}"
    return document(width, top + 20 * len(key), title, "A serial loop: " + "; ".join(e.words for e in key), shapes)


def _plane(patterns: Sequence[Pattern], dims: int) -> tuple[int, int]:
    """The two loop dimensions to draw: the last two in which iterations that conflict differ."""
    moving = [dim for dim in range(dims) if any(pattern.steps[dim] != "0" for pattern in patterns)]
    others = [dim for dim in range(dims) if dim not in moving]
    rows, columns = sorted([*others, *moving][-2:])
    return rows, columns


def _row(loop: LoopPlan, patterns: Sequence[Pattern]) -> Iterator[str]:
    """Iterations side by side, with an arrow over them for each pair that conflicts."""
    first_value = _first_value(loop)
    y = 128.0
    xs = [MARGIN + RADIUS + 6 + GAP * position for position in range(SHOWN)]
    for first, second, dashed in _pairs(patterns):
        both = any(not pattern.ordered for pattern in patterns)
        lift = 14 + 11 * (second - first)
        yield arc(xs[first] + 3, xs[second] - 3, y - RADIUS - 2, min(lift, 42), dashed=dashed, both=both)
    for position, x in enumerate(xs):
        yield circle(x, y, RADIUS)
        yield text(x, y + 4, str(first_value + position), size=11, anchor="middle")
    yield text(xs[-1] + RADIUS + 12, y + 4, "…", size=16)
    words = f"iterations of {loop.nest.dims[0]}, in their order"
    yield text(xs[0] - RADIUS, y + RADIUS + 15, words, size=10.5, fill=FAINT)


def _first_value(loop: LoopPlan) -> int:
    """The value of the loop variable in the first iteration where the source says it, 0 elsewhere."""
    match loop.nest.ranges:
        case (Range(start=Const(value=int(value)), step=Const(value=1)),):
            return value
        case _:
            return 0


def _pairs(patterns: Sequence[Pattern]) -> Iterator[tuple[int, int, bool]]:
    """The pairs of drawn iterations that an arrow connects, and whether it is dashed."""
    for pattern in patterns:
        reach = abs(pattern.reach[0]) if pattern.is_next else 0
        if reach:
            yield from ((first, first + reach, False) for first in range(SHOWN - reach))
            continue
        yield from ((first, first + 1, not pattern.is_exact) for first in range(SHOWN - 1))
        if not pattern.is_scalar:
            yield from ((0, later, not pattern.is_exact) for later in (2, 3, 4))


def _lattice(loop: LoopPlan, patterns: Sequence[Pattern], rows: int, columns: int) -> Iterator[str]:
    """Iterations as a lattice of two loop dimensions, with the arrows that leave one of them."""
    x0, y0 = MARGIN + 40, 92.0
    dims = loop.nest.dims

    def at(row: int, column: int) -> tuple[float, float]:
        return x0 + column * GAP, y0 + row * 52

    yield text(x0 + (LATTICE[1] - 0.45) * GAP, y0 + 4, dims[columns], size=12, weight=600)
    yield text(x0, y0 + (LATTICE[0] - 0.4) * 52, dims[rows], size=12, weight=600, anchor="middle")
    for pattern in patterns:
        for row, column in product(range(LATTICE[0]), range(LATTICE[1])):
            for down, across in _targets(pattern, rows, columns, (row, column)):
                if 0 <= row + down < LATTICE[0] and 0 <= column + across < LATTICE[1]:
                    yield _between(at(row, column), at(row + down, column + across), pattern)
    for row, column in product(range(LATTICE[0]), range(LATTICE[1])):
        yield circle(*at(row, column), 5)


def _targets(pattern: Pattern, rows: int, columns: int, start: tuple[int, int]) -> list[tuple[int, int]]:
    """How far from an iteration those lie that conflict with it."""
    if pattern.is_scalar:
        return [(0, 1)]  # from one iteration to the next
    if pattern.is_next:
        return [(pattern.reach[rows], pattern.reach[columns])]
    if start != (1, 1):
        return []  # arrows from one iteration stand for those from all
    down, across = (_offsets(pattern.steps[dim]) for dim in (rows, columns))
    return [pair for pair in product(down, across) if pair != (0, 0)]


def _offsets(step: str) -> tuple[int, ...]:
    return {"0": (0,), "+": (1, 2), "-": (-1,), "*": (-1, 0, 1, 2)}[step]


def _between(start: tuple[float, float], end: tuple[float, float], pattern: Pattern) -> str:
    """An arrow between two dots that leaves both visible."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    inset = 8 / max(1.0, (dx * dx + dy * dy) ** 0.5)
    x1, y1 = start[0] + dx * inset, start[1] + dy * inset
    x2, y2 = end[0] - dx * inset, end[1] - dy * inset
    return arrow(x1, y1, x2, y2, both=not pattern.ordered, dashed=not pattern.is_exact, thick=1.4, size=6)
