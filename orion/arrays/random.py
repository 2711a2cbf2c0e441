"""Dense arrays of random numbers that are the same whoever draws them.

The array is cut along its first dimension into blocks, a size that depends on its shape alone. Block `b` is
drawn from a Philox generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) whose
256-bit counter starts at `b * 2**64`: blocks never share a counter value, and any block can be drawn alone,
by any worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from numpy.typing import DTypeLike, NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.dtypes import checked_shape, supported_dtype
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line

Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.floating]]

BLOCK_ELEMENTS = 1 << 16


@ends_in_users_line
def uniform(
    shape: int | Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = np.float64,
    seed: int | None = None,
) -> DenseArray:
    """Make a dense array of random numbers, uniform in `[low, high)`.

    - `shape`: an integer or a tuple of integers.
    - `low`, `high`: the range, with `low` at most `high`.
    - `dtype`: float64, the default, or float32.
    - `seed`: an integer from 0 on. The numbers depend on it, the shape and the dtype, on any number of workers. Without
      a seed, they differ with every call.

    Returns an `orion.DenseArray`. Errors: `ArgumentError` for any other value.

    Source: the generator is Philox, of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

    >>> uniform((4, 2), seed=7).to_numpy().min() >= 0
    np.True_
    """
    kind = _float_dtype(dtype)
    if not low <= high:
        raise ArgumentError(f"uniform numbers from {low} to {high}: the lower end is above the higher one")
    start, width = kind.type(low), kind.type(high - low)

    def draw(generator: np.random.Generator, size: tuple[int, ...]) -> NDArray[np.floating]:
        numbers = generator.random(size, dtype=kind.type)
        numbers *= width
        numbers += start
        return numbers

    return _filled(checked_shape(shape), kind, seed, draw)


@ends_in_users_line
def normal(
    shape: int | Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    dtype: DTypeLike = np.float64,
    seed: int | None = None,
) -> DenseArray:
    """Make a dense array of random numbers with a normal distribution.

    - `shape`, `dtype`, `seed`: those of `orion.uniform`.
    - `mean`, `std`: the mean, and the standard deviation, at least 0.

    Returns an `orion.DenseArray`. Errors: `ArgumentError` for any other value. Source: that of `orion.uniform`.

    >>> normal(1000, mean=3.0, std=0.0, seed=7).to_numpy().max()
    np.float64(3.0)
    """
    kind = _float_dtype(dtype)
    if not std >= 0:
        raise ArgumentError(f"a standard deviation cannot be {std}")
    centre, width = kind.type(mean), kind.type(std)

    def draw(generator: np.random.Generator, size: tuple[int, ...]) -> NDArray[np.floating]:
        numbers = generator.standard_normal(size, dtype=kind.type)
        numbers *= width
        numbers += centre
        return numbers

    return _filled(checked_shape(shape), kind, seed, draw)


def _float_dtype(dtype: DTypeLike) -> np.dtype:
    kind = supported_dtype(dtype)
    if kind.kind != "f":
        raise ArgumentError(describe(f"random numbers of type {kind}", hint="use float32 or float64"))
    return kind


def _filled(shape: tuple[int, ...], dtype: np.dtype, seed: int | None, draw: Draw) -> DenseArray:
    if seed is not None and seed < 0:
        raise ArgumentError(f"a seed cannot be negative: {seed}")
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64).astype(np.uint64)
    result = DenseArray(shape, dtype)
    view = result.view if shape else result.view.reshape(1)
    rows = _rows_per_block(shape)
    for block, start in enumerate(range(0, len(view), rows)):
        part = view[start : start + rows]
        part[...] = draw(_block_generator(key, block), part.shape)
    return result


def _rows_per_block(shape: tuple[int, ...]) -> int:
    return max(1, BLOCK_ELEMENTS // max(1, prod(shape[1:])))


def _block_generator(key: NDArray[np.uint64], block: int) -> np.random.Generator:
    counter = np.array([0, block, 0, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
