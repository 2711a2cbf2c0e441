"""Arrays that nobody may write to."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line


class Sealed:
    """The memory of an array, on which NumPy makes arrays that nobody can make writeable: it asks this object, their
    base, whether they may be."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        told = array.__array_interface__
        self.__array_interface__ = {**told, "data": (told["data"][0], True)}


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of the same elements that can never be written. Nobody else may have the array itself.

    >>> sealed(np.arange(3)).setflags(write=True)
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    return np.asarray(Sealed(array))


def is_frozen(array: NDArray[Any]) -> bool:
    """Whether nobody can write to the memory of an array, as of those from `freeze`. A read-only array is not enough:
    whoever holds one that NumPy has allocated can make it writeable again.

    >>> whole = np.arange(4)
    >>> whole.flags.writeable = False
    >>> is_frozen(whole), is_frozen(freeze(whole)[1:])
    (False, True)
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, Sealed)


Frozen = TypeVar("Frozen")

SUBSCRIPTS = ("indptr", "indices", "row", "col")
"""The attributes of SciPy's matrices that say where their values are."""


@ends_in_users_line
def freeze(array: Frozen) -> Frozen:
    """Make a read-only copy of an index array, which Orion inspects once for all calls.

    - `array`: an index array, or a SciPy sparse matrix. Of a matrix, the index arrays are copied and frozen; the values
      stay the same array.

    Some loops are parallel because of the contents of an index array. `out[perm[i]] = x[i]` is, if all elements of
    `perm` differ. Each call then checks whether `perm` has changed. A frozen array needs no check, since nobody can
    write to it.

    Errors: `ArgumentError` for anything that is neither an array nor such a matrix.

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
    if not isinstance(array, np.ndarray) or array.dtype.hasobject or np.ma.isMaskedArray(array):
        kind = "array of Python objects" if type(array) is np.ndarray else type(array).__name__
        hint = "pass a NumPy array of numbers, or one of SciPy's sparse matrices"
        raise ArgumentError(describe(f"this {kind} is no array that can be frozen", hint=hint))
    return cast(Frozen, sealed(np.array(array)))
