"""The figure of transports, from the results that `benchmarks.transports` has written.

python -m benchmarks.transports.pictures benchmarks/results/transports.json docs/figures
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.figures import COLOURS, Axis, Box, Curve, Entry, axis_of, duration, key, panel
from benchmarks.transports.contenders import BY_NAME
from benchmarks.transports.tables import Figures, Found, digits, size_text, sizes_of
from benchmarks.written import write
from orion.inspect.pictures.shapes import document, text

MARGIN, LEFT, WIDTH, HEIGHT = 18.0, 62.0, 330.0, 280.0


def transports_figure(found: Found) -> str:
    """Two panels: the time one way, written, handed over and read, and the time of cores per byte, against the size."""
    colours = {name: COLOURS[list(BY_NAME).index(name)] for name in found}
    sizes = sizes_of(found)
    across = Axis(
        sizes[0] / 1.6, sizes[-1] * 1.6, tuple(map(float, sizes[::2])), lambda at: size_text(int(at)), "payload"
    )
    width = MARGIN + 2 * (LEFT + WIDTH + MARGIN)
    entries = [Entry(BY_NAME[name].label.replace("`", ""), colours[name], False, True) for name in found]
    keys, end = key(MARGIN, 52, width - 2 * MARGIN, entries)
    shapes = [text(MARGIN, 30, "A payload from one process to another", size=15, weight=600), *keys]
    panels = (
        ("Written, handed over and read", "one way", lambda one: one.touched, duration),
        ("Cores, handed over alone", "ns per byte", lambda one: (one.cpu + one.cpu_others) * 1e9, _nanoseconds),
    )
    for number, (title, label, value, words) in enumerate(panels):
        box = Box(MARGIN + LEFT + number * (LEFT + WIDTH + MARGIN), end + 24, WIDTH, HEIGHT)
        curves = [_curve(name, one, colours[name], value, words) for name, one in found.items()]
        up = axis_of([y for curve in curves for _, y, _ in curve.points], words, label)
        shapes += panel(box, title, across, up, curves)
    told = "Two panels, axes logarithmic, a curve for each transport: the time one way, and the time of cores per byte."
    return document(width, end + 24 + HEIGHT + 44, "Transports", told, shapes)


def _nanoseconds(value: float) -> str:
    return f"{digits(value)} ns"


def _curve(
    name: str,
    figures: Mapping[int, Figures],
    colour: str,
    value: Callable[[Figures], float],
    words: Callable[[float], str],
) -> Curve:
    found = ((size, value(figures[size])) for size in sorted(figures))
    points = ((size, y, f"{name}, {size_text(size)}: {words(y)}") for size, y in found if y > 0)
    return Curve(colour, tuple(points), True)


def draw(found: Found, stem: str, folder: Path) -> None:
    """Write the figure into a folder."""
    write(folder, f"{stem}.svg", transports_figure(found))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw what was measured before."""
    parser = argparse.ArgumentParser(description="The figure from the results of benchmarks.transports.")
    parser.add_argument("results", type=Path, help="the JSON that it has written")
    parser.add_argument("folder", type=Path, help="where the figure goes")
    options = parser.parse_args(arguments)
    written = json.loads(options.results.read_text(encoding="utf-8"))["figures"]
    found = {name: {int(size): Figures(**one) for size, one in by_size.items()} for name, by_size in written.items()}
    draw(found, options.results.stem, options.folder)


if __name__ == "__main__":
    main()
