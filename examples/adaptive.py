"""Steps that adapt to the gradients so far, one step size per element: AdaGrad, and AdaRevision for late gradients.

Both are functions for `orion.buffer(w, apply=…)`, whose updates are gradients (sums of those that came together). The
step is a constant of the function that is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orion

METHODS = ("adagrad", "adarevision")


def adagrad(step: float) -> Callable[..., Any]:
    """Duchi, Hazan, Singer: *Adaptive subgradient methods for online learning and stochastic optimization*, JMLR 2011.
    The helper `z` is 1 and the squares of the gradients so far."""

    def apply(w, g, z):
        z = z + g * g
        return w - step * g / np.sqrt(z), z

    return apply


def adarevision(step: float) -> Callable[..., Any]:
    """Algorithm 1 of McMahan, Streeter: *Delay-tolerant algorithms for asynchronous distributed online learning*, NIPS
    2014. `total` is the sum of gradients so far, ḡ in the paper, `before` what it was when the element was read; `z` is
    1 and the squares of gradients, with twice their products with those that came meanwhile, and `most` the most that
    `z` has been, z′ in the paper.

    The step size falls by what came meanwhile, too, and the steps that were taken then, with a greater one, are
    revised.
    """

    def apply(w, g, total, z, most, before):
        meanwhile = total - before
        larger = step / np.sqrt(most)
        z = z + g * g + 2.0 * g * meanwhile
        most = max(most, z)
        smaller = step / np.sqrt(most)
        return w - smaller * g + (larger - smaller) * meanwhile, total + g, z, most

    return apply


def buffer_of(method: str, w: NDArray[Any], step: float, max_delay: int) -> Any:
    """A buffer of gradients of `w` with new helpers."""
    ones = [np.ones_like(w) for _ in METHODS]
    if method == "adagrad":
        return orion.buffer(w, adagrad(step), max_delay, ones[:1])
    total = np.zeros_like(w)
    return orion.buffer(w, adarevision(step), max_delay, [total, *ones], [total])
