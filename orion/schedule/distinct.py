"""The distinct numbers of an array."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound=np.integer)


def distinct(values: NDArray[Kind]) -> NDArray[Kind]:
    """The integers that are in an array of one dimension, each once, in ascending order.

    `np.unique` gives the same; from NumPy 2.3 on it puts all of them into a table of hashes first, which takes ten
    times as long as to sort a million of them (0.19 s for three million on a Zen 4 that was busy, and 2.3 s).

    >>> distinct(np.array([5, -1, 5, 2]))
    array([-1,  2,  5])
    """
    ordered = np.sort(values)
    return ordered[np.append(ordered[:-1] != ordered[1:], True)] if ordered.size else ordered
