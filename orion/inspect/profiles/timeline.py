"""A profile as a picture: what each worker did when, and the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orion.dataclass import dataclass
from orion.inspect.pictures.shapes import EDGE, FAINT, INK, WORKERS, document, line, rectangle, text, text_width
from orion.inspect.profiles.bottleneck import Bottleneck
from orion.inspect.profiles.loops import title_of
from orion.inspect.text.words import time_in_words
from orion.runtime.profile.records import CallRecord, LoopLabel, WorkerRecord

MARGIN, LEFT, WIDTH = 18.0, 92.0, 760.0
ROW, BAR = 30.0, 20.0
TOP = 64.0
MOST = 4_000
"""More bars than this are not drawn: each would be less than a pixel wide."""

WAITING, PREPARING, PLANNING, OUTSIDE = "#ececec", "#b9c2cb", "#8e99a5", "none"


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of one row, in nanoseconds from the beginning."""

    row: int
    start: int
    end: int
    fill: str
    title: str


def timeline_svg(calls: Sequence[CallRecord], start: int, end: int, bottleneck: Bottleneck) -> str:
    """The timeline of some calls between two times: a row for the driver and one for each worker, coloured by loop."""
    workers = sorted({worker.worker for call in calls for worker in call.workers})
    rows = {number: place for place, number in enumerate(workers, start=1)}
    colours = _colours(calls)
    bars = [bar for call in calls for bar in _of_call(call, rows, colours, start)]
    wide = [bar for bar in bars if (bar.end - bar.start) * WIDTH >= 0.05 * max(1, end - start)]
    drawn = sorted(wide, key=lambda bar: bar.start - bar.end)[:MOST]
    shapes = [
        text(MARGIN, 26, f"profile: {time_in_words(end - start)}", size=13.5, weight=600),
        *_sentence(bottleneck.sentence),
        *_axis(end - start, len(rows) + 1),
        *(
            _drawn(bar, end - start)
            for bar in sorted(drawn, key=lambda bar: (bar.row, bar.end - bar.start), reverse=True)
        ),
        text(MARGIN, TOP + 42 + BAR - 5, "driver"),
        *(text(MARGIN, TOP + 42 + ROW * row + BAR - 5, f"worker {number}") for number, row in rows.items()),
    ]
    bottom = TOP + 42 + ROW * (len(rows) + 1) + 16
    key = list(_key(colours, bottom))
    height = bottom + 20 * len(key)
    return document(LEFT + WIDTH + 2 * MARGIN, height, "profile", bottleneck.sentence, [*shapes, *key])


def _colours(calls: Iterable[CallRecord]) -> dict[LoopLabel, str]:
    loops = dict.fromkeys(label for call in calls for label in call.loops)
    return {label: WORKERS[number % len(WORKERS)] for number, label in enumerate(loops)}


def _of_call(call: CallRecord, rows: dict[int, int], colours: dict[LoopLabel, str], zero: int) -> Iterator[Bar]:
    name = call.function
    planned = call.planned if call.is_planned else call.end
    yield Bar(
        0, call.start - zero, planned - zero, PLANNING, f"{name}: {'planning' if call.is_planned else 'as it is'}"
    )
    yield Bar(0, planned - zero, call.begun - zero, PREPARING, f"{name}: preparation")
    yield Bar(0, call.ended - zero, call.end - zero, PREPARING, f"{name}: results")
    for worker in call.workers:
        yield from _of_worker(call, worker, rows[worker.worker], colours, zero)


def _of_worker(
    call: CallRecord, worker: WorkerRecord, row: int, colours: dict[LoopLabel, str], zero: int
) -> Iterator[Bar]:
    for part in worker.parts:
        label = call.loops[part.loop]
        times = f"computing {time_in_words(part.compute)}, waiting {time_in_words(part.wait)}"
        title = f"{label.function}, round {part.round}: {part.tiles} tiles, {times}"
        yield Bar(row, part.start - zero, part.end - zero, colours[label], title)
    for wait in worker.waits:
        yield Bar(row, wait.start - zero, wait.end - zero, WAITING, f"waiting {time_in_words(wait.end - wait.start)}")
    if worker.parts:
        yield Bar(row, worker.end - zero, call.ended - zero, WAITING, "waiting for the end")


def _drawn(bar: Bar, length: int) -> str:
    scale = WIDTH / max(1, length)
    width = max(0.3, (bar.end - bar.start) * scale)
    return rectangle(
        MARGIN + LEFT + bar.start * scale, TOP + 42 + ROW * bar.row, width, BAR, fill=bar.fill, title=bar.title
    )


def _axis(length: int, rows: int) -> Iterator[str]:
    for step in range(5):
        x = MARGIN + LEFT + WIDTH * step / 4
        yield line(x, TOP + 34, x, TOP + 42 + ROW * rows, stroke=EDGE)
        anchor = "end" if step == 4 else "middle" if step else "start"
        yield text(x, TOP + 28, time_in_words(length * step / 4) if step else "0", size=10.5, anchor=anchor, fill=FAINT)


def _sentence(words: str) -> Iterator[str]:
    """The sentence in at most three lines."""
    lines: list[str] = [""]
    for word in words.split():
        if text_width(f"{lines[-1]} {word}", 12) > LEFT + WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    yield from (text(MARGIN, 44 + 15 * number, one, fill=INK) for number, one in enumerate(lines[:3]))


def _key(colours: dict[LoopLabel, str], y: float) -> Iterator[str]:
    entries = [(colour, title_of(label)) for label, colour in list(colours.items())[:12]]
    entries += [(WAITING, "waiting"), (PREPARING, "preparation"), (PLANNING, "planning")]
    for number, (colour, words) in enumerate(entries):
        box = rectangle(MARGIN, y + 20 * number, 14, 12, fill=colour, stroke=EDGE)
        yield box + text(MARGIN + 22, y + 20 * number + 10, words)
