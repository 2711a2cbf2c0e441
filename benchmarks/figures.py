"""Figures of measured results as SVG text: curves between logarithmic axes, bars of parts, and what their colours mean.

Whatever is drawn of a measurement has a title that says it in numbers: browsers show it when pointed at, and tests
read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log, log10, sqrt

from orion.inspect.pictures.shapes import EDGE, FAINT, PAPER, line, number, rectangle, text, text_width

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
"""To be told apart with any colour vision, also as thin lines: Okabe & Ito, *Color Universal Design* (2008)."""

SMALL = 10.5
"""The size of the font of what is written at axes."""

ROOM = 0.08
"""The part of an axis, as it is drawn, that is free beyond the values at each end."""

SAMPLE = 22.0
"""How wide the sample of a colour in a key is."""


def duration(seconds: float) -> str:
    """A time, as it is written at axes and bars.

    >>> [duration(time) for time in (6.3e-6, 0.01, 0.8476, 16.96, 250.0)]
    ['6.3 µs', '10 ms', '848 ms', '17 s', '250 s']
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis: from which value to which, the values that are written at it, how, and what they are."""

    low: float
    high: float
    ticks: tuple[float, ...]
    words: Callable[[float], str]
    label: str

    def part(self, value: float) -> float:
        """How far from the beginning of the axis to its end a value is."""
        return log(value / self.low) / log(self.high / self.low)


def axis_of(values: Iterable[float], words: Callable[[float], str], label: str) -> Axis:
    """The axis for some values, all of which are over zero: with a tick at each power of ten; where that would be fewer
    than three, at its double and its fivefold too. The axis is over one power of ten at least.

    >>> axis_of([0.5, 2000.0], str, "ms").ticks
    (1.0, 10.0, 100.0, 1000.0)
    >>> axis_of([2.0, 60.0], str, "ms").ticks
    (2.0, 5.0, 10.0, 20.0, 50.0)
    """
    found = list(values)
    least, most = min(found), max(found)
    wider = max((most / least) ** ROOM, sqrt(10 * least / most))
    low, high = least / wider, most * wider
    powers = [10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1)]
    ticks = [power for power in powers if low <= power <= high]
    if len(ticks) < 3:
        ticks = [times * power for power in powers for times in (1, 2, 5) if low <= times * power <= high]
    return Axis(low, high, tuple(ticks), words, label)


@dataclass(frozen=True)
class Box:
    """Where on the paper something is drawn."""

    x: float
    y: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True)
class Curve:
    """Points in ascending order, each with its title; no points are marked in a curve that was not measured."""

    colour: str
    points: tuple[tuple[float, float, str], ...]
    is_measured: bool


def panel(box: Box, title: str, across: Axis, up: Axis, curves: Sequence[Curve]) -> Iterator[str]:
    """Curves in a box, and the axes to the left of it and below."""

    def places(curve: Curve) -> list[tuple[float, float]]:
        return [(box.x + across.part(x) * box.width, box.bottom - up.part(y) * box.height) for x, y, _ in curve.points]

    yield text(box.x, box.y - 10, title, weight=600)
    yield from _grid(box, across, up)
    for curve in curves:
        found = places(curve)
        yield _through(found, curve.colour, dashed=not curve.is_measured)
        if curve.is_measured:
            yield from (_mark(*at, curve.colour, title) for at, (_, _, title) in zip(found, curve.points, strict=True))


def _grid(box: Box, across: Axis, up: Axis) -> Iterator[str]:
    yield rectangle(box.x, box.y, box.width, box.height, fill="none", stroke=EDGE)
    for tick in across.ticks:
        x = box.x + across.part(tick) * box.width
        yield line(x, box.y, x, box.bottom, stroke=EDGE, thick=0.5)
        yield text(x, box.bottom + 14, across.words(tick), size=SMALL, anchor="middle", fill=FAINT)
    for tick in up.ticks:
        y = box.bottom - up.part(tick) * box.height
        yield line(box.x, y, box.x + box.width, y, stroke=EDGE, thick=0.5)
        yield text(box.x - 6, y + 4, up.words(tick), size=SMALL, anchor="end", fill=FAINT)
    yield text(box.x + box.width / 2, box.bottom + 30, across.label, size=SMALL, anchor="middle", fill=FAINT)
    yield text(box.x + box.width, box.y - 10, up.label, size=SMALL, anchor="end", fill=FAINT)


def _through(places: Sequence[tuple[float, float]], colour: str, *, dashed: bool) -> str:
    points = " ".join(f"{number(x)},{number(y)}" for x, y in places)
    thick, dashes = (1, ' stroke-dasharray="4 3"') if dashed else (2, "")
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{thick}"{dashes}/>'


def _mark(x: float, y: float, colour: str, title: str) -> str:
    circle = f'<circle cx="{number(x)}" cy="{number(y)}" r="3.5" fill="{colour}" stroke="{PAPER}" stroke-width="1">'
    return f"{circle}<title>{escape(title)}</title></circle>"


# ---------------------------------------------------------------- bars


@dataclass(frozen=True)
class Part:
    """A part of a bar."""

    amount: float
    colour: str
    title: str


def bar(box: Box, parts: Sequence[Part]) -> Iterator[str]:
    """Parts beside each other, so that all of them fill the box."""
    x, total = box.x, sum(part.amount for part in parts)
    for part in parts:
        width = part.amount / total * box.width
        yield rectangle(x, box.y, width, box.height, fill=part.colour, title=part.title)
        x += width


# ---------------------------------------------------------------- keys


@dataclass(frozen=True)
class Entry:
    """What a colour means: a line, dashed where it was not measured, or a patch."""

    words: str
    colour: str
    is_patch: bool
    is_measured: bool


def key(x: float, y: float, width: float, entries: Sequence[Entry]) -> tuple[list[str], float]:
    """The key to a figure, in as many lines as it takes, and where it ends."""
    shapes, at, end = [], x, x + width
    for entry in entries:
        room = SAMPLE + 6 + text_width(entry.words, 11.5) + 18
        if at > x and at + room > end:
            at, y = x, y + 18
        shapes.append(_sample(at, y, entry))
        shapes.append(text(at + SAMPLE + 6, y + 4, entry.words, size=11.5))
        at += room
    return shapes, y + 18


def _sample(x: float, y: float, entry: Entry) -> str:
    if entry.is_patch:
        return rectangle(x, y - 6, SAMPLE, 12, fill=entry.colour)
    thick = 2 if entry.is_measured else 1
    return line(x, y, x + SAMPLE, y, stroke=entry.colour, thick=thick, dashed=not entry.is_measured)
