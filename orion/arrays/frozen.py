"""Arrays that nobody may write to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_frozen(array: NDArray[Any]) -> bool:
    """Whether nobody may write to the memory of an array: it is read-only, and so is what it is a part of.

    >>> whole = np.arange(4)
    >>> part = whole[1:]
    >>> part.flags.writeable = False
    >>> is_frozen(part), is_frozen(freeze(whole))
    (False, True)
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array that nobody may write to: what is shown of it once holds for all calls.

    A loop that is parallel because of what an array of subscripts holds (`out[perm[i]] = x[i]` where `perm` has no two
    equal elements) looks at that array in every call, to see whether it has changed. Of a frozen one it need not.

    >>> perm = freeze(np.array([2, 0, 1]))
    >>> perm.flags.writeable
    False
    """
    frozen = np.array(array)
    frozen.flags.writeable = False
    return frozen
