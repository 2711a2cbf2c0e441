"""What a kernel is, and the random data that its inputs are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZES = ("tiny", "small", "bench")
"""`tiny`: fewer than 20 per dimension, all dimensions different. `small`: at most a few milliseconds of serial Numba.
`bench`: 0.05 to 0.5 s;
the least where a matrix is read once, since it then fills a few hundred megabytes.
"""

Floats = NDArray[np.float64]
Inputs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of PolyBench.

    `function` is the plain loop. `prange` does the same by hand with Numba's `prange`, wherever that is legal.
    `inputs(size)` makes fresh arguments, in the order of the parameters. `outputs` names every array that
    the loop writes, those for intermediate results too.
    """

    name: str
    function: Callable[..., None]
    prange: Callable[..., None]
    inputs: Callable[[str], Inputs]
    outputs: tuple[str, ...]


def uniform(seed: int, *shape: int) -> Floats:
    """Floats in [0.5, 1.5): no cancellation in sums of products."""
    return np.random.default_rng(seed).random(shape) + 0.5
