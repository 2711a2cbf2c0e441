"""Memory whose rows start on 64-byte boundaries: the size of a cache line and of the widest vector."""

from __future__ import annotations

from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

LINE = 64
"""Bytes of a cache line."""


def padded_shape(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """`shape` with its last dimension grown until a row takes a multiple of 64 bytes. One-dimensional shapes
    stay.

    >>> padded_shape((10, 20), np.dtype("float32"))
    (10, 32)
    """
    if len(shape) < 2:
        return shape
    step = LINE // gcd(LINE, dtype.itemsize)
    return (*shape[:-1], -(-shape[-1] // step) * step)


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> NDArray[np.generic]:
    """A C-contiguous array of zeros whose first element is on a 64-byte boundary. Rows are not padded."""
    size = prod(shape) * dtype.itemsize
    raw = np.zeros(size + LINE, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def is_aligned(array: NDArray[np.generic]) -> bool:
    """Whether every row (last dimension) of `array` starts on a 64-byte boundary."""
    return array.ctypes.data % LINE == 0 and all(stride % LINE == 0 for stride in array.strides[:-1])
