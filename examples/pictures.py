"""Pictures of arrays for the examples: grey PNG files, by nothing but the standard library."""

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
