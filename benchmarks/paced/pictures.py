"""The figure of trainings on hosts with slow links: loss against seconds, and against bytes.

python -m benchmarks.paced.pictures benchmarks/results/paced-2.json docs/figures
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import COLOURS, Axis, Box, Curve, Entry, axis_of, duration, key, panel
from benchmarks.paced.one import POLICIES
from benchmarks.written import write
from orion.inspect.pictures.shapes import document, text

MARGIN, LEFT, TOP = 18.0, 62.0, 108.0
WIDTH, HEIGHT, BELOW = 260.0, 190.0, 64.0
TICKS = 5

Row = dict[str, Any]


def medians(rows: Sequence[Row]) -> list[Row]:
    """Of trainings of one kind, the median of each number."""
    kinds: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        kinds.setdefault((row["name"], row["share"], row["policy"], row["epochs"]), []).append(row)
    return [
        {key: median(row[key] for row in own) if isinstance(one, float | int) else one for key, one in own[0].items()}
        for own in kinds.values()
    ]


def figure(rows: Sequence[Row], hosts: int) -> str:
    """Panels side by side for the links of a program, the upper ones against seconds, the lower ones against bytes."""
    rows = medians(rows)
    columns = list(dict.fromkeys((row["name"], row["share"]) for row in rows))
    width = MARGIN + len(columns) * (LEFT + WIDTH + MARGIN)
    title = f"Loss by what is sent first, {hosts} hosts"
    entries = [Entry(name, colour, False, True) for name, colour in zip(POLICIES, COLOURS, strict=False)]
    shapes = [text(MARGIN, 30, title, size=15, weight=600), *key(MARGIN, 52, width - 2 * MARGIN, entries)[0]]
    for column, (name, share) in enumerate(columns):
        own = [row for row in rows if (row["name"], row["share"]) == (name, share)]
        left = MARGIN + LEFT + column * (LEFT + WIDTH + MARGIN)
        up = _losses([row["loss"] for row in rows if row["name"] == name])
        for down, (field, words, label) in enumerate(
            (("seconds", duration, "time of the loop"), ("sent", _megabytes, "sent by all hosts"))
        ):
            across = axis_of([row[field] for row in own if row[field] > 0], words, label)
            box = Box(left, TOP + down * (HEIGHT + BELOW), WIDTH, HEIGHT)
            shapes += panel(box, f"{name}, links at {share:.0%}", across, up, _curves(own, field))
    told = "A panel for each program and link; above against seconds, below against bytes; a curve for each order."
    return document(width, TOP + 2 * (HEIGHT + BELOW) - 10, title, told, shapes)


def _curves(rows: Sequence[Row], field: str) -> list[Curve]:
    found = []
    for policy, colour in zip(POLICIES, COLOURS, strict=False):
        own = sorted((row for row in rows if row["policy"] == policy and row[field] > 0), key=lambda row: row["epochs"])
        points = tuple((row[field], row["loss"], _told(row)) for row in own)
        if points:
            found.append(Curve(colour, points, True))
    return found


def _told(row: Row) -> str:
    passes = f"{row['policy']}, {row['epochs']:g} passes"
    return f"{passes}: {duration(row['seconds'])}, {_megabytes(row['sent'])}, loss {row['loss']:.4f}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.3g} MB"


def _losses(losses: Sequence[float]) -> Axis:
    low, high = min(losses) * 0.99, max(losses) * 1.01
    ticks = tuple(low + (high - low) * k / (TICKS - 1) for k in range(TICKS))
    return Axis(low, high, ticks, lambda loss: f"{loss:.3g}", "loss")


def main() -> None:
    """Draw the figure of a file of results into a folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    told = json.loads(options.results.read_text(encoding="utf-8"))
    write(options.folder, f"{options.results.stem}.svg", figure(told["rows"], told["hosts"]))


if __name__ == "__main__":
    main()
