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
    """Sparse arrays, as far as others are made of them. `materialize` says when elements are computed, and how."""

    def __getstate__(self) -> dict[str, Any]:
        """What another process gets: the elements, not in which tiles loops of this one have them."""
        return {name: value for name, value in vars(self).items() if name != "_layouts"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _layouts=WeakValueDictionary())

    @ends_in_users_line
    def map(self, f: Callable[..., Any]) -> SparseArray:
        """An array with the same keys and shape, and `f(value)` as the value of each element, which are computed when
        it is first used (`materialize` says how).

        `f` is given the value, or for tuples as many arguments: `f(v1, v2)`. It returns a number, or a tuple of as many
        numbers for each element. The dtype of a value is that of NumPy's numbers that are returned, promoted by NumPy's
        rules, to which Python's adapt; Python's bool, int, float and complex alone are bool, int64, float64 and
        complex128. NaN is kept. Without elements `f` is not called, and the dtypes are as before.

        `ArgumentError` where `f` cannot be called with so many arguments, or returns anything else.

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
        """An array with the same values, and `f(i, j)` as the key of each element, which are computed when
        it is first used (`materialize` says how).

        `f` is given the key of each dimension, as many arguments as there are. It returns a tuple of integers, of any
        length that is the same for all elements, or an integer for an array of one dimension. `shape` is the shape of
        the result, the smallest that holds its keys if not given. Elements that come to have equal keys are kept, in
        their order.

        `ArgumentError` where `f` cannot be called with so many arguments, or returns anything else; `DataFormatError`
        where a key is negative, lies outside of `shape`, or, without one, far above the number of elements.

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
        """An array of the same shape with those elements for which `f(key, value)` is True, which are found when
        it is first used (`materialize` says how).

        `f` is given what `for key, value in array` gives: the key is a tuple of integers, the value a number, or for
        tuples a tuple. It returns True or False, Python's or NumPy's.

        `ArgumentError` where `f` cannot be called with two arguments, or returns anything else.

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
        """An array with the same values and shape in which the keys of some dimensions have other places: those
        of each dimension are permuted, all indices of the shape, by one random permutation. They are computed when it
        is first used (`materialize` says how).

        It depends on the seed, the dimension and its length alone, and is the same on any machine. `key_permutation`
        gives it. Blocks of a dimension then hold about as many elements each, also where neighbours were alike.

        `ArgumentError` for a dimension that there is not, or twice, or that is far longer than there are elements, and
        for a seed that is no integer from 0 on.

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
        """How `shuffle_keys` permutes the keys of a dimension with this seed: key k becomes `p[k]`. So what a loop has
        computed by the new keys is, by the old ones, `result[p]`; the old keys of the new ones are `np.argsort(p)`.

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
        """The elements by their keys of one dimension: a mapping from each key that an element has to the sparse array
        of these elements. It goes through the keys in ascending order.

        The array of a group has all dimensions and the shape of this one, so that a loop over this array runs over a
        group as it is; its elements are in the order they were given in. `len` is the number of groups, `.sizes` an
        array of their numbers of elements, in the order of the keys. Nothing is computed before it is used; from then
        on the elements are in memory a second time, and the arrays of groups are parts of that. Values that are stored
        in the array of a group stay in that one: each `groups[key]` is a new array.

        `ArgumentError` for a dimension that there is not; `MissingKeyError` for a key that no element has.

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
        """Compute the elements now, if they are not computed yet. Returns the array itself.

        `map`, `map_keys`, `filter` and `shuffle_keys` give a new array at once, and compute nothing: its elements are
        computed here, or when they are first used (by a loop, `len`, `shape`, `to_numpy`, iteration, …). All steps
        between two such arrays are done in one pass. An array that is used is computed once; what it is made of, if
        that is not used by itself, is not kept, and is computed anew for each array that is made of it.

        Functions are called for each element, in the order in which the elements were given, which is the order of the
        results, too. They are given what a loop over the array gives: Python's integers as keys, NumPy's numbers as
        values. They are to have no effects: they may be called more than once for an element, or be compiled (with the
        same results, but without NumPy's warnings). What the names in them stand for is looked up when the elements are
        computed, as in any function of Python's; the elements are those that the array had when the method was called:
        if values have been stored since, or elements shuffled, that is an `ArgumentError`.

        Where a function raises an error, that is raised, and says for which element; the array is not computed then.

        >>> from orion.arrays.sparse import sparse
        >>> sparse(([2, 0], [0, 3]), np.array([4.0, 3.5])).filter(lambda key, v: v > 10).materialize()
        SparseArray(shape=(3, 4), nnz=0, dtype=float64)
        """
        return self


def _sparse(array: Transformed) -> SparseArray:
    return cast("SparseArray", array)


def check_dimension(dim: object, count: int | None) -> int:
    """A dimension as a number from 0 on; `count` is how many there are, if that is known."""
    try:
        found = index(dim)  # type: ignore[arg-type]
    except TypeError:
        found = -1
    if found < 0 or (count is not None and found >= count):
        of = "" if count is None else f" of an array with {count} dimensions, which are counted from 0"
        raise ArgumentError(f"dimension {dim!r}{of}")
    return found
