"""Pictures as arrays for the examples: grey PNG files, read and written by nothing but the standard library."""

from __future__ import annotations

import struct
import zlib
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
