"""Dependence arrows: which way each conflict points in iteration space, drawn over tiles and explained in a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orion.dataclass import dataclass
from orion.inspect.pictures.shapes import INK, PAPER, arrow, rectangle, text, text_width
from orion.inspect.text.conflicts import Conflict, conflicts_of
from orion.inspect.text.words import listed
from orion.plan.plan import LoopPlan

LABEL = 11.0
KEY = 12.0


@dataclass(frozen=True, slots=True)
class Pattern:
    """Conflicts that point the same way, and what the key says of them.

    `steps` has per loop dimension the sign of the difference of two conflicting iterations: "0", "+", "-", or "*"
    where it can be any. `is_next`: the difference is the same for all pairs, and `reach` has it (0 where it is not the
    same). `is_scalar`: it is a scalar that passes from each iteration to the next.
    """

    arrays: tuple[str, ...]
    words: str
    steps: tuple[str, ...]
    reach: tuple[int, ...]
    is_next: bool
    is_exact: bool
    is_scalar: bool
    ordered: bool


def patterns_of(loop: LoopPlan) -> tuple[Pattern, ...]:
    """The patterns of a loop's conflicts, in program order."""
    groups: dict[tuple[str, tuple[str, ...], str], list[Conflict]] = {}
    for conflict in conflicts_of(loop):
        groups.setdefault((conflict.iterations, _steps(conflict), conflict.reason.code), []).append(conflict)
    return tuple(_pattern(group, loop.ordered) for group in groups.values())


def _pattern(group: list[Conflict], ordered: bool) -> Pattern:
    first = group[0]
    is_exact = all(dependence.exact for conflict in group for dependence in conflict.dependences)
    return Pattern(
        arrays=tuple(dict.fromkeys(conflict.array for conflict in group)),
        words=_words(group, ordered, is_exact),
        steps=_steps(first),
        reach=tuple(step or 0 for step in first.distance),
        is_next=all(step is not None for step in first.distance),
        is_exact=is_exact,
        is_scalar=first.is_scalar,
        ordered=ordered,
    )


def _words(group: list[Conflict], ordered: bool, is_exact: bool) -> str:
    if group[0].is_scalar:
        return "; ".join(conflict.reason.message for conflict in group).replace("`", "")
    arrays = listed(list(dict.fromkeys(conflict.array for conflict in group)))
    iterations = group[0].iterations
    if not is_exact:
        return f"{arrays}: {iterations} may conflict: not known before the loop runs"
    if ordered:
        return f"{arrays}: of {iterations} the later waits for the earlier"
    return f"{arrays}: {iterations} conflict"


def _steps(conflict: Conflict) -> tuple[str, ...]:
    signs = {"=": "0", "<": "+", "<=": "+", ">": "-", ">=": "-", "*": "*"}
    return tuple(signs[direction] for direction in conflict.direction)


# ---------------------------------------------------------------- over tiles


@dataclass(frozen=True, slots=True)
class Box:
    """Where one square of tiles stands, and its numbers of rows and columns."""

    x: float
    y: float
    width: float
    height: float
    rows: int
    columns: int

    def centre(self, row: float, column: float) -> tuple[float, float]:
        """The middle of a tile."""
        across, down = self.width / self.columns, self.height / self.rows
        return self.x + (column + 0.5) * across, self.y + (row + 0.5) * down


def arrows_over(
    patterns: Sequence[Pattern], rows: int | None, columns: int, slices: int | None, box: Box
) -> Iterator[str]:
    """The arrows of all patterns over the tiles of two loop dimensions (`rows` is None for a single row); a third one,
    `slices`, may have further squares.

    A constant difference is an arrow from each tile to the next; any other, and one inside of tiles that are as long as
    their dimension, is one line along a whole row or column.
    """
    in_rows = in_columns = 0
    for pattern in patterns:
        down = "0" if rows is None else pattern.steps[rows]
        across = pattern.steps[columns]
        moves = {dim for dim, step in enumerate(pattern.steps) if step != "0"}
        if not moves <= {rows, columns, slices} or (down == "0" and across == "0"):
            continue
        if pattern.is_next and _crosses(down, box.rows) and _crosses(across, box.columns):
            yield from _to_neighbours(_sign(down), _sign(across), box)
        elif down == "0":
            yield from _along_row(pattern, min(box.rows - 1, 1 + in_rows), box)
            in_rows += 1
        elif across == "0":
            yield from _along_column(pattern, max(0, box.columns - 2 - in_columns), box)
            in_columns += 1


def _crosses(step: str, blocks: int) -> bool:
    """Whether there is a next block to point to, where the arrow moves in this direction at all."""
    return step == "0" or blocks > 1


def _sign(step: str) -> int:
    return {"0": 0, "+": 1, "-": -1, "*": 1}[step]


def _to_neighbours(down: int, across: int, box: Box) -> Iterator[str]:
    if min(box.width / box.columns, box.height / box.rows) < 14 and box.rows > 1:
        return
    for row in range(box.rows):
        for column in range(box.columns):
            if 0 <= row + down < box.rows and 0 <= column + across < box.columns:
                (x1, y1), (x2, y2) = box.centre(row, column), box.centre(row + down, column + across)
                dx, dy = (x2 - x1) * 0.28, (y2 - y1) * 0.28
                yield arrow(x1 + dx, y1 + dy, x2 - dx, y2 - dy, thick=1.4, size=6)


def _along_row(pattern: Pattern, row: int, box: Box) -> Iterator[str]:
    _, y = box.centre(row, 0)
    yield arrow(box.x + 3, y, box.x + box.width - 3, y, both=not pattern.ordered, dashed=not pattern.is_exact, thick=2)
    yield from _label(pattern, *box.centre(row, max(0, box.columns // 2 - 1) + 0.18), box.width)


def _along_column(pattern: Pattern, column: int, box: Box) -> Iterator[str]:
    x, _ = box.centre(0, column)
    yield arrow(x, box.y + 3, x, box.y + box.height - 3, both=not pattern.ordered, dashed=not pattern.is_exact, thick=2)
    yield from _label(pattern, *box.centre(box.rows // 2 + 0.14, column), box.width)


def _label(pattern: Pattern, x: float, y: float, room: float) -> Iterator[str]:
    words = ", ".join(pattern.arrays)
    width = 1.2 * text_width(words, LABEL) + 8  # bold, and often wide letters
    if width < room:
        yield rectangle(x - width / 2, y - 8, width, 16, fill=PAPER, stroke=INK, round_by=4)
        yield text(x, y + 4, words, size=LABEL, anchor="middle", weight=600)


# ---------------------------------------------------------------- the key


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the key: what it says, and the arrow in front of it (`across`, `down`: its direction), if any."""

    words: str
    across: int = 0
    down: int = 0
    both: bool = False
    dashed: bool = False

    @property
    def width(self) -> float:
        return text_width(self.words, KEY) + (36 if self.across or self.down else 0)

    def draw(self, x: float, y: float) -> str:
        if not (self.across or self.down):
            return text(x, y, self.words, size=KEY)
        ways = [(11, 0), (0, 8)] if self.both else [(11 * self.across, 8 * self.down)]
        marks = [
            arrow(x + 12 - dx, y - 4 - dy, x + 12 + dx, y - 4 + dy, both=self.both, dashed=self.dashed, size=6)
            for dx, dy in ways
            if not self.both or (dx and self.across) or (dy and self.down)
        ]
        return "".join(marks) + text(x + 32, y, self.words, size=KEY)


def key_of_arrows(patterns: Sequence[Pattern], rows: int | None, columns: int, slices: int | None) -> Iterator[Entry]:
    """What the arrows mean, one entry per pattern."""
    for pattern in patterns:
        down = 0 if rows is None else _sign(pattern.steps[rows])
        across = _sign(pattern.steps[columns])
        if pattern.is_scalar:
            yield Entry(pattern.words, 1, 0)
        elif not pattern.is_next and down and across:
            whole = " (each square as a whole)" if slices is not None and pattern.steps[slices] == "0" else ""
            yield Entry(pattern.words + whole, 1, 1, both=not pattern.ordered, dashed=not pattern.is_exact)
        else:
            yield Entry(pattern.words, across, down, both=not pattern.ordered, dashed=not pattern.is_exact)
