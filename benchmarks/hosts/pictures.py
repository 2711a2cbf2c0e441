"""Figures of what programs took on hosts, from the results that `benchmarks.hosts` has written.

python -m benchmarks.hosts.pictures benchmarks/results/hosts-2.json docs/figures
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.figures import COLOURS, Box, Curve, Entry, Part, axis_of, bar, duration, key, panel
from benchmarks.hosts.results import Row
from benchmarks.written import write
from orion.inspect.pictures.shapes import FAINT, document, line, text

MARGIN, LEFT, TOP = 18.0, 56.0, 108.0
ACROSS = 2
"""Panels beside each other."""

WIDTH, HEIGHT = 320.0, 220.0
BELOW_CURVES, BELOW_BARS = 64.0, 30.0
"""The room below a panel: for what stands at its axis and the title of the next one, or for that alone."""

ONE_WORKER = "#7f7f7f"
PARTS = (
    ("computing", "computing", "#009e73"),
    ("both", "computing while messages are on their way", "#e69f00"),
    ("moving", "messages on their way, not computing", "#d55e00"),
    ("neither", "neither", "#d9dde1"),
)
"""Of `Row`: the field, what it means, its colour."""

BAR, STEP, NAMES, SAID = 11.0, 15.0, 124.0, 74.0
"""How high a bar is, from one to the next, and the room for words before and after it."""


def megabytes(size: float) -> str:
    """An amount as axes and titles have it.

    >>> megabytes(5.316e6), megabytes(1e5)
    ('5.32 MB', '0.1 MB')
    """
    return f"{size / 1e6:.3g} MB"


def rate(megabits: int) -> str:
    """A rate in words.

    >>> rate(1000), rate(20)
    ('1 Gbit/s', '20 Mbit/s')
    """
    return f"{megabits / 1000:g} Gbit/s" if megabits >= 1000 else f"{megabits} Mbit/s"


def names_of(rows: Sequence[Row]) -> list[str]:
    """The programs, in their order."""
    return list(dict.fromkeys(row.name for row in rows))


def rates_of(rows: Sequence[Row]) -> list[int]:
    """The rates, the fastest first."""
    return sorted({row.megabits for row in rows}, reverse=True)


def _place(number: int, height: float) -> tuple[float, float]:
    """Where the box of a panel begins; it has such a height with the room below it."""
    down, across = divmod(number, ACROSS)
    return MARGIN + LEFT + across * (WIDTH + LEFT + MARGIN), TOP + down * height


def _size(panels: int, height: float) -> tuple[float, float]:
    """How wide and how high the paper for so many panels is."""
    return MARGIN + ACROSS * (WIDTH + LEFT + MARGIN), TOP + -(-panels // ACROSS) * height - 10


# ---------------------------------------------------------------- time against bytes


def time_figure(rows: Sequence[Row], hosts: int) -> str:
    """The time of a call against the bytes that nodes send each other, by program and rate: as measured, what the bytes
    of the busiest link need at its rate, and one worker. Programs of which nothing is sent are not in it."""
    rows = [row for row in rows if row.sent]
    names, rates = names_of(rows), rates_of(rows)
    colours = {megabits: COLOURS[number] for number, megabits in enumerate(rates)}
    across = axis_of([row.sent for row in rows], megabytes, "sent by nodes to each other in a call")
    times = [time for row in rows for time in (row.seconds, row.link_seconds, row.alone) if time > 0]
    up = axis_of(times, duration, "time of a call")
    title = f"Time of a call against bytes sent, {hosts} hosts"
    entries = [
        *(Entry(f"{rate(megabits)}, measured", colours[megabits], False, True) for megabits in rates),
        Entry("what the busiest link needs for its bytes", FAINT, False, False),
        Entry("one worker, no link", ONE_WORKER, False, True),
    ]
    width, height = _size(len(names), HEIGHT + BELOW_CURVES)
    shapes = [text(MARGIN, 30, title, size=15, weight=600), *key(MARGIN, 52, width - 2 * MARGIN, entries)[0]]
    for number, name in enumerate(names):
        own = [row for row in rows if row.name == name]
        box = Box(*_place(number, HEIGHT + BELOW_CURVES), WIDTH, HEIGHT)
        shapes += panel(box, name, across, up, list(_curves(own, colours)))
    told = f"{', '.join(names)}: a panel for each, both axes logarithmic, a curve for each rate of the links."
    return document(width, height, title, told, shapes)


def _curves(rows: Sequence[Row], colours: dict[int, str]) -> Iterator[Curve]:
    by_bytes = sorted(rows, key=lambda row: row.sent)
    yield Curve(ONE_WORKER, tuple(_alone(by_bytes)), True)
    for megabits, colour in colours.items():
        own = [row for row in by_bytes if row.megabits == megabits]
        yield Curve(colour, tuple((row.sent, row.link_seconds, "") for row in own if row.link_seconds > 0), False)
        yield Curve(colour, tuple((row.sent, row.seconds, f"{row.place}: {_told(row)}") for row in own), True)


def _alone(rows: Sequence[Row]) -> Iterator[tuple[float, float, str]]:
    """One worker, for which no rate matters: the median of what was measured next to each of them."""
    for about in dict.fromkeys(row.about for row in rows):
        own = [row for row in rows if row.about == about]
        seconds = median(row.alone for row in own)
        yield own[0].sent, seconds, f"{own[0].name}, {about}, one worker: {duration(seconds)}"


def _told(row: Row) -> str:
    return f"{megabytes(row.sent)}, {duration(row.seconds)}, {duration(row.link_seconds)} on the busiest link"


# ---------------------------------------------------------------- what a call is made of


def parts_figure(rows: Sequence[Row], hosts: int) -> str:
    """What a call is made of, by program, rate and size: each bar is all of the time of a call."""
    names, rates = names_of(rows), rates_of(rows)
    tallest = max(sum(row.name == name for row in rows) for name in names)
    inside = STEP * tallest + 8 * len(rates) + BELOW_BARS
    title = f"What a call is made of, {hosts} hosts"
    width, height = _size(len(names), inside)
    entries = [Entry(words, colour, True, True) for _, words, colour in PARTS]
    shapes = [text(MARGIN, 30, title, size=15, weight=600), *key(MARGIN, 52, width - 2 * MARGIN, entries)[0]]
    for number, name in enumerate(names):
        x, y = _place(number, inside)
        shapes.append(text(x - LEFT, y - 10, name, weight=600))
        shapes += _bars(x - LEFT, y, [row for row in rows if row.name == name])
    told = "Each bar is the time of a call, a mean over workers; beside it are the bytes that nodes send, and the time."
    return document(width, height, title, told, shapes)


def _bars(x: float, y: float, rows: Sequence[Row]) -> Iterator[str]:
    for megabits in rates_of(rows):
        for row in (row for row in rows if row.megabits == megabits):
            box = Box(x + NAMES, y, WIDTH + LEFT - NAMES - SAID, BAR)
            yield text(x, y + BAR - 1.5, f"{rate(megabits)}, {megabytes(row.sent)}", size=10.5, fill=FAINT)
            yield from bar(box, list(_parts(row)))
            whole = sum(getattr(row, field) for field, _, _ in PARTS)
            yield text(box.x + box.width + 6, y + BAR - 1.5, duration(whole), size=10.5, fill=FAINT)
            y += STEP
        yield line(x, y - 0.5, x + WIDTH + LEFT, y - 0.5, stroke="#eceff2")
        y += 8


def _parts(row: Row) -> Iterator[Part]:
    for field, words, colour in PARTS:
        amount = getattr(row, field)
        yield Part(amount, colour, f"{row.place}: {words} {duration(amount)}")


# ---------------------------------------------------------------- files


def draw(rows: Sequence[Row], hosts: int, stem: str, folder: Path) -> None:
    """Write the figures into a folder."""
    if any(row.sent for row in rows):
        write(folder, f"{stem}-time.svg", time_figure(rows, hosts))
    write(folder, f"{stem}-parts.svg", parts_figure(rows, hosts))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw what was measured before."""
    parser = argparse.ArgumentParser(description="Figures from the results of benchmarks.hosts.")
    parser.add_argument("results", type=Path, help="the JSON that it has written")
    parser.add_argument("folder", type=Path, help="where the figures go")
    options = parser.parse_args(arguments)
    found = json.loads(options.results.read_text(encoding="utf-8"))
    draw([Row(**row) for row in found["rows"]], found["hosts"], options.results.stem, options.folder)


if __name__ == "__main__":
    main()
