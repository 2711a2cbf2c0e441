"""Pictures for the examples, by nothing but the standard library: arrays as grey PNG files, curves as SVG files."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 620, 75, 350
"""Where curves are drawn in an SVG picture; their names are above, in columns of `NAMES`."""

NAMES, COLUMN = 3, 270

COLOURS = ("#1f5fa8", "#c2410c", "#2f7d32", "#6b21a8", "#a16207", "#0e7490")


def _write(path: Path, data: bytes) -> None:
    """Write a whole file. OSError, which names it, where that fails: the file that was there is then as before."""
    whole = path.resolve()
    part = whole.with_name(f".{whole.name}.{os.getpid()}.tmp")
    try:
        part.write_bytes(data)
        part.replace(whole)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def save_png(path: Path, values: NDArray[Any]) -> str:
    """Write an array of two dimensions as a grey picture: its least value is black, its greatest white. Which these
    are is returned, to be printed: the picture has no scale."""
    low, high = float(values.min()), float(values.max())
    grey = np.rint((values - low) * (255.0 / (high - low or 1.0))).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)  # each begins with how it is filtered: not at all
    height, width = grey.shape
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    _write(path, b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    return f"black is {low:.4g}, white {high:.4g}"


def read_png(path: Path) -> NDArray[np.uint8]:
    """The grey values of a PNG file of 8 bits, those of its first channel where it has several. ValueError for others.

    PNG (Portable Network Graphics) Specification, W3C 2003, sections 5 and 9.
    """
    data = path.read_bytes()
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ValueError(f"{path} is no PNG file")
    at, packed, header = 8, b"", b""
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        part = data[at + 8 : at + 8 + length]
        header, packed = (part if kind == b"IHDR" else header), (packed + part if kind == b"IDAT" else packed)
        at += 12 + length
    if len(header) != 13:
        raise ValueError(f"{path} has no header")
    width, height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}.get(colours)
    if bits != 8 or channels is None or interlaced:
        raise ValueError(f"{path}: only pictures of 8 bits that are not interlaced are read, without a palette")
    rows = _unpacked(path, packed, height, 1 + width * channels)
    found, before = np.empty((height, width * channels), np.uint8), np.zeros(width * channels, np.uint8)
    for y, how in enumerate(rows[:, 0].tolist()):
        found[y] = before = _unfiltered(how, rows[y, 1:], before, channels)
    return found[:, ::channels].copy()


def _unpacked(path: Path, packed: bytes, height: int, length: int) -> NDArray[np.uint8]:
    """The rows of a picture, each of which begins with how it is filtered. ValueError where they are not all there."""
    try:
        data = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"{path} is damaged or not complete: {error}") from None
    if not height or len(data) != height * length:
        raise ValueError(f"{path} is damaged: {height * length:,} bytes are needed, there are {len(data):,}")
    rows = np.frombuffer(data, np.uint8).reshape(height, length)
    if rows[:, 0].max() > 4:
        raise ValueError(f"{path} is damaged: a row is filtered in a way that PNG does not have")
    return rows


def _unfiltered(how: int, row: NDArray[np.uint8], above: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """A row of a picture, given how it is filtered and the row above."""
    if how == 0:
        return row
    if how == 2:
        return row + above
    left, corner = [0] * channels, [0] * channels
    found = np.empty_like(row)
    for x, (value, up) in enumerate(zip(row.tolist(), above.tolist(), strict=True)):
        a, c = left[x % channels], corner[x % channels]
        if how == 1:
            guess = a
        elif how == 3:
            guess = (a + up) // 2
        else:
            p = a + up - c
            guess = min((abs(p - a), 0, a), (abs(p - up), 1, up), (abs(p - c), 2, c))[2]
        found[x] = (value + guess) & 255
        left[x % channels], corner[x % channels] = int(found[x]), up
    return found


@dataclass(frozen=True)
class Axes:
    """What lies across and what goes up, and the ranges that are drawn."""

    across: str
    up: str
    last: float
    low: float
    high: float

    def place(self, x: float, y: float) -> str:
        """Where a point is in the picture."""
        share = (y - self.low) / (self.high - self.low or 1.0)
        return f"{LEFT + (RIGHT - LEFT) * x / (self.last or 1.0):.1f},{BOTTOM - (BOTTOM - TOP) * share:.1f}"

    def drawn(self) -> list[str]:
        """The axes, with their names and the ends of their ranges."""
        turned = f'transform="rotate(-90 18 {(TOP + BOTTOM) / 2:g})"'
        return [
            f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="black"/>',
            _text(LEFT - 6, TOP + 4, f"{self.high:.4g}", "end"),
            _text(LEFT - 6, BOTTOM + 4, f"{self.low:.4g}", "end"),
            _text(LEFT, BOTTOM + 18, "0"),
            _text(RIGHT, BOTTOM + 18, f"{self.last:g}", "end"),
            _text((LEFT + RIGHT) / 2, BOTTOM + 36, self.across, "middle"),
            _text(18, (TOP + BOTTOM) / 2, self.up, "middle", turned),
        ]


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {more}>{escape(text)}</text>'.replace(" >", ">")


def save_curves(
    path: Path,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    names: tuple[str, str],
    levels: Mapping[str, float] | None = None,
) -> None:
    """Write curves, each of points (x, y) with x from 0 on, and levels, as dashed lines, to an SVG picture that says
    which is which. `names` are those of x and of y."""
    levels = levels or {}
    points = [point for curve in curves.values() for point in curve]
    values = [*(y for _, y in points), *levels.values()]
    axes = Axes(*names, max(x for x, _ in points), min(values), max(values))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *axes.drawn(),
    ]
    drawn = [(name, curve, "") for name, curve in curves.items()]
    drawn += [(name, [(0.0, y), (axes.last, y)], ' stroke-dasharray="6 4"') for name, y in levels.items()]
    for number, (name, curve, dashes) in enumerate(drawn):
        colour, x, y = COLOURS[number % len(COLOURS)], LEFT + COLUMN * (number // NAMES), 18 + 18 * (number % NAMES)
        placed = " ".join(axes.place(*point) for point in curve)
        lines += [
            f'<polyline points="{placed}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>',
            f'<path d="M{x} {y - 4}h30" stroke="{colour}" stroke-width="1.5"{dashes}/>',
            _text(x + 36, y, name),
        ]
    _write(path, "\n".join([*lines, "</svg>", ""]).encode())
