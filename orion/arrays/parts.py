"""Parts of arrays that a function made and returns: copies where they would keep much more memory than they have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray


def are_small(parts: Sequence[NDArray[Any]], size: int) -> bool:
    """Whether these parts of some memory, which has `size` bytes, are to be copies, as they have less than half of it.
    Parts that overlap are not: what is written to one of them is read from the other.

    >>> memory = np.zeros(100)
    >>> are_small([memory[:5], memory[90:]], 800), are_small([memory[:5], memory], 800)
    (True, False)
    >>> are_small([memory[:5], memory[4:6]], 800)
    False
    """
    few = 2 * sum(part.nbytes for part in parts) < size
    return few and not any(np.may_share_memory(one, other) for one, other in combinations(parts, 2))
