"""Pictures for the examples, by nothing but the standard library: arrays as grey PNG files, curves as SVG files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def save_png(path: Path, values: NDArray[Any]) -> None:
    """Write an array of two dimensions as a grey picture: its least value is black, its greatest white."""
    low, high = float(values.min()), float(values.max())
    grey = np.rint((values - low) * (255.0 / (high - low or 1.0))).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)  # each begins with how it is filtered: not at all
    height, width = grey.shape
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in parts:
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


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
    if len(header) < 13:
        raise ValueError(f"{path} has no header")
    width, height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}.get(colours)
    if bits != 8 or channels is None or interlaced:
        raise ValueError(f"{path}: only pictures of 8 bits that are not interlaced are read, without a palette")
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    found, before = np.empty((height, width * channels), np.uint8), np.zeros(width * channels, np.uint8)
    for y, (how, *_) in enumerate(rows):
        found[y] = before = _unfiltered(int(how), rows[y, 1:], before, channels)
    return found[:, ::channels].copy()


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


def save_curves(path: Path, curves: Mapping[str, Sequence[float]], title: str) -> None:
    """Write curves, each a number per step, as lines of an SVG picture with their names."""
    width, height, edge = 640, 400, 60
    values = [value for curve in curves.values() for value in curve]
    low, high = min(values), max(values)
    most = max(len(curve) for curve in curves.values())

    def place(step: int, value: float) -> str:
        x = edge + (width - 2 * edge) * step / max(1, most - 1)
        y = height - edge - (height - 2 * edge) * (value - low) / (high - low or 1.0)
        return f"{x:.1f},{y:.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{edge}" y="{edge / 2}">{escape(title)}</text>',
        f'<text x="4" y="{edge + 4}">{high:.4g}</text><text x="4" y="{height - edge + 4}">{low:.4g}</text>',
        f'<text x="{edge}" y="{height - edge / 2}">1</text>',
        f'<text x="{width - edge}" y="{height - edge / 2}" text-anchor="end">{most}</text>',
    ]
    for number, (name, curve) in enumerate(curves.items()):
        colour = ("#1f5fa8", "#c2410c", "#2f7d32", "#6b21a8")[number % 4]
        points = " ".join(place(step, value) for step, value in enumerate(curve))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        lines.append(
            f'<text x="{width - edge}" y="{edge + 18 * number}" text-anchor="end" fill="{colour}">{escape(name)}</text>'
        )
    path.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")
