"""Sparse arrays made of others, element by element: what users call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dtypes import checked_shape
from orion.arrays.shuffled_elements import ShuffledElements
from orion.errors import ArgumentError
from orion.tracebacks import ends_in_users_line

if TYPE_CHECKING:
    from orion.arrays.groups import Groups
    from orion.arrays.sparse import SparseArray


class Transformed(ShuffledElements):
    """Sparse array as far as others are made from it. `materialize` says when elements are computed, and how."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process: the elements, not the tiles of this process's loops."""
        return {name: value for name, value in vars(self).items() if name != "_layouts"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _layouts=WeakValueDictionary())

    @ends_in_users_line
    def map(self, f: Callable[..., Any]) -> SparseArray:
        """Make a sparse array with the same keys and shape, and `f(value)` as the value of each element.

        The values are computed at the first use (`materialize`).

        - `f`: gets the value, or for tuples one argument per value: `f(v1, v2)`. It returns a number, or a tuple of as
          many numbers for each element. NaN is kept.

        NumPy's numbers among the results decide the dtype, promoted by NumPy's rules, and Python's numbers adapt to it.
        Python's bool, int, float and complex alone give bool, int64, float64 and complex128. Without elements, `f` is
        not called, and the dtypes stay.

        Errors: `ArgumentError` where `f` takes another number of arguments, or returns anything else.

        >>> from orion.arrays.sparse import sparse
        >>> ratings = sparse(([2, 0], [0, 3]), np.array([4.0, 3.5], dtype="float32"))
        >>> ratings.map(lambda v: v - 3).values
        array([1. , 0.5], dtype=float32)
        >>> ratings.map(lambda v: (v, v > 3.75)).map(lambda v, large: 2 * v if large else v).values
        array([8. , 3.5], dtype=float32)
        """
        from orion.arrays.lazy import after, form
        from orion.arrays.steps import MapValues

        step, values = MapValues(f), form(_sparse(self))[1]
        step.check(1, values)
        return after(_sparse(self), step)

    @ends_in_users_line
    def map_keys(self, f: Callable[..., Any], shape: Sequence[int] | None = None) -> SparseArray:
        """Make a sparse array with the same values, and `f(i, j)` as the key of each element.

        The keys are computed at the first use (`materialize`). Elements with equal new keys stay, in their order.

        - `f`: gets the key, one argument per dimension. It returns a tuple of integers, of one length for all elements,
          or an integer for one dimension.
        - `shape`: that of the result, by default the smallest that holds its keys.

        Errors: `ArgumentError` where `f` takes another number of arguments, or returns anything else. `DataFormatError`
        where a key is negative, lies outside of `shape` or, without one, is far above the number of elements.

        >>> from orion.arrays.sparse import sparse
        >>> ratings = sparse(([2, 0], [0, 3]), np.array([4.0, 3.5]))
        >>> ratings.map_keys(lambda i, j: (j, i))
        SparseArray(not computed yet: map_keys of SparseArray(shape=(3, 4), nnz=2, dtype=float64))
        >>> ratings.map_keys(lambda i, j: (j, i)).materialize()
        SparseArray(shape=(4, 3), nnz=2, dtype=float64)
        """
        from orion.arrays.lazy import after, form
        from orion.arrays.steps import MapKeys

        limits = None if shape is None else checked_shape(tuple(shape))
        if limits == ():
            raise ArgumentError("a sparse array has at least one dimension")
        step, keys = MapKeys(f, limits), form(_sparse(self))[0]
        step.check(keys, 1)
        return after(_sparse(self), step)

    @ends_in_users_line
    def filter(self, f: Callable[[Any, Any], Any]) -> SparseArray:
        """Make a sparse array of the same shape with those elements for which `f(key, value)` is True.

        The elements are selected at the first use (`materialize`).

        - `f`: gets the key, a tuple of integers, and the value, a number or a tuple. It returns True or False, Python's
          or NumPy's.

        Errors: `ArgumentError` where `f` does not take two arguments, or returns anything else.

        >>> from orion.arrays.sparse import sparse
        >>> ratings = sparse(([2, 0, 1], [0, 3, 1]), np.array([4.0, 3.5, 1.0]))
        >>> list(ratings.filter(lambda key, v: key[0] != key[1] and v < 4))
        [((0, 3), np.float64(3.5))]
        """
        from orion.arrays.lazy import after
        from orion.arrays.steps import Filter

        step = Filter(f)
        step.check(1, 1)
        return after(_sparse(self), step)

    @ends_in_users_line
    def shuffle_keys(self, dims: int | Sequence[int], seed: int) -> SparseArray:
        """Make a sparse array with the same values and shape, and randomly permuted keys in some dimensions.

        Blocks of such a dimension then have about as many elements each, even if neighbours had similar numbers. The
        keys are computed at the first use (`materialize`).

        - `dims`: a dimension, or several. Each has one permutation of all indices of its shape.
        - `seed`: an integer from 0 on. A permutation depends on the seed, the dimension and its length alone, on any
          machine. `key_permutation` returns it.

        Errors: `ArgumentError` for a dimension that does not exist, occurs twice, or is far longer than there are
        elements, and for another seed.

        >>> from orion.arrays.sparse import sparse
        >>> ratings = sparse(([2, 0, 1], [0, 3, 1]), np.array([4.0, 3.5, 1.0]))
        >>> mixed = ratings.shuffle_keys([0, 1], seed=1)
        >>> rows, columns = ratings.key_permutation(0, seed=1), ratings.key_permutation(1, seed=1)
        >>> bool((mixed.coords[0] == rows[ratings.coords[0]]).all())
        True
        """
        from orion.arrays.lazy import after, form
        from orion.arrays.permuted import checked_seed
        from orion.arrays.steps import Shuffle

        given = tuple(dims) if isinstance(dims, Sequence) else (dims,)
        found = tuple(check_dimension(dim, form(_sparse(self))[0]) for dim in given)
        if len({*found}) < len(found):
            raise ArgumentError(f"a dimension occurs twice among {given}")
        return after(_sparse(self), Shuffle(found, checked_seed(seed)))

    @ends_in_users_line
    def key_permutation(self, dim: int, seed: int) -> NDArray[np.int64]:
        """Return the permutation `p` of a dimension's keys by `shuffle_keys` with this seed, int64 of shape (indices,).

        Key k becomes `p[k]`. For a result by new keys, `result[p]` is by old ones. `np.argsort(p)` has the old key of
        each new one. Errors are those of `shuffle_keys`.

        >>> from orion.arrays.sparse import sparse
        >>> ratings = sparse(([2, 0, 1], [0, 3, 1]), np.array([4.0, 3.5, 1.0]))
        >>> p = ratings.key_permutation(0, seed=1)
        >>> counts = ratings.shuffle_keys(0, seed=1).histogram(0)
        >>> counts[p], ratings.histogram(0)
        (array([1, 1, 1]), array([1, 1, 1]))
        """
        from orion.arrays.permuted import check_length, checked_seed, key_permutation

        found, array = check_dimension(dim, self.ndim), _sparse(self)
        check_length(array.shape[found], found, array.nnz)
        return key_permutation(array.shape[found], found, checked_seed(seed))

    @ends_in_users_line
    def group_by(self, dim: int) -> Groups:
        """Group the elements by their keys of one dimension: a mapping from each key to a sparse array.

        - `dim`: the dimension.

        The mapping iterates over the keys of elements, in ascending order. `len` is the number of groups, and `.sizes`
        an array of their numbers of elements. The array of a group has all dimensions and the shape of this one, so
        that the same loops run over it. Its elements are in the order they were given in.

        The first use computes the groups; the elements are then in memory a second time. Each `groups[key]` is a new
        array, so values stored in it stay there.

        Errors: `ArgumentError` for a dimension that does not exist. `MissingKeyError` for a key without elements.

        >>> from orion.arrays.sparse import sparse
        >>> ratings = sparse(([2, 0, 2], [0, 3, 1]), np.array([4.0, 3.5, 5.0]))
        >>> for user, own in ratings.group_by(0).items():
        ...     print(user, own.values)
        0 [3.5]
        2 [4. 5.]
        >>> ratings.group_by(0)[2]
        SparseArray(shape=(3, 4), nnz=2, dtype=float64)
        """
        from orion.arrays.groups import Groups
        from orion.arrays.lazy import form

        array = _sparse(self)
        found = check_dimension(dim, form(array)[0])
        return Groups(array, found, vars(array).get("version", 0))

    def materialize(self) -> Self:
        """Compute the elements now, if they are not computed yet, and return the array itself.

        `map`, `map_keys`, `filter` and `shuffle_keys` compute nothing. The elements are computed here, or at the first
        use: by a loop, `len`, `shape`, `to_numpy` or iteration. One pass does all steps since the last computed array.
        A used array is computed once. An intermediate array that is not used itself is not kept: each array made from
        it computes it anew.

        Functions are called for each element, in the order they were given in, which is the order of the results. They
        get what a loop over the array gives: Python's integers as keys, NumPy's numbers as values. They must have no
        effects: they may be called more than once for an element, or be compiled. Compiled ones have the same results,
        without NumPy's warnings. Their names are looked up when the elements are computed.

        Errors: `ArgumentError` if values were stored, or elements shuffled, since the method was called. An error that
        a function raises names the element, and the array is then not computed.

        >>> from orion.arrays.sparse import sparse
        >>> sparse(([2, 0], [0, 3]), np.array([4.0, 3.5])).filter(lambda key, v: v > 10).materialize()
        SparseArray(shape=(3, 4), nnz=0, dtype=float64)
        """
        return self


def _sparse(array: Transformed) -> SparseArray:
    return cast("SparseArray", array)


def check_dimension(dim: object, count: int | None) -> int:
    """Return a dimension as a number from 0 on. `count` is the number of dimensions, if it is known."""
    try:
        found = index(dim)  # type: ignore[arg-type]
    except TypeError:
        found = -1
    if found < 0 or (count is not None and found >= count):
        of = "" if count is None else f" of an array with {count} dimensions, which are counted from 0"
        raise ArgumentError(f"dimension {dim!r}{of}")
    return found
