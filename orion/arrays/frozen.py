"""Arrays that nobody may write to."""

from __future__ import annotations

from copy import copy
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line


def is_frozen(array: NDArray[Any]) -> bool:
    """Whether nobody can write to the memory of an array: it is that of a `bytes` object, as `freeze` has it. A
    read-only array that NumPy has allocated is not enough, for whoever holds it can make it writeable again.

    >>> whole = np.arange(4)
    >>> whole.flags.writeable = False
    >>> is_frozen(whole), is_frozen(freeze(whole)[1:])
    (False, True)
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, bytes)


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
    >>> perm.flags.writeable = True
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
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
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        kind = "array of Python objects" if isinstance(array, np.ndarray) else type(array).__name__
        hint = "pass a NumPy array of numbers, or one of SciPy's sparse matrices"
        raise ArgumentError(describe(f"this {kind} is no array that can be frozen", hint=hint))
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    return cast(Frozen, np.ndarray(array.shape, array.dtype, array.tobytes(order), order=order))
