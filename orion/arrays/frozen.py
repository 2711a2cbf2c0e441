"""Arrays that nobody may write to."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line


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


Frozen = TypeVar("Frozen")

SUBSCRIPTS = ("indptr", "indices", "row", "col")
"""The attributes of SciPy's matrices that say where their values are."""


@ends_in_users_line
def freeze(array: Frozen) -> Frozen:
    """A copy of an array that nobody may write to: what is shown of it once holds for all calls. Of one of SciPy's
    sparse matrices the arrays of subscripts are such copies, and the values are the same array. ArgumentError for
    anything else.

    A loop that is parallel because of what an array of subscripts holds (`out[perm[i]] = x[i]` where `perm` has no two
    equal elements) looks at that array in every call, to see whether it has changed. Of a frozen one it need not.

    >>> perm = freeze(np.array([2, 0, 1]))
    >>> perm.flags.writeable
    False
    >>> import scipy.sparse
    >>> A = freeze(scipy.sparse.csr_array(np.eye(3)))
    >>> A.indptr.flags.writeable, A.data.flags.writeable
    (False, True)
    """
    if hasattr(array, "tocoo"):
        found: Any = copy(array)
        for name in SUBSCRIPTS:
            if isinstance(getattr(found, name, None), np.ndarray):
                setattr(found, name, freeze(getattr(found, name)))
        return cast(Frozen, found)
    if not isinstance(array, np.ndarray):
        what = f"a {type(array).__name__} is no array that can be frozen"
        raise ArgumentError(describe(what, hint="pass a NumPy array, or one of SciPy's sparse matrices"))
    frozen = np.array(array)
    frozen.flags.writeable = False
    return cast(Frozen, frozen)
