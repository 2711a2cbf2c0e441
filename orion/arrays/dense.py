"""Dense arrays, in one block of memory with aligned rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from orion.arrays.aligned import is_aligned, padded_shape
from orion.arrays.base import bytes_text, place_text
from orion.arrays.dtypes import checked_shape, supported_dtype
from orion.arrays.exchange import Exchange
from orion.arrays.foreign import viewed
from orion.arrays.shuffled import Shuffled, as_a_whole, move_rows
from orion.arrays.storage import current_storage
from orion.aside import aside
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line


class DenseArray(Shuffled):
    """Dense array, made by `orion.array`, `zeros`, `ones`, `full`, `uniform` or `normal`.

    Outside of loops, read and write it like a NumPy array, by elements or slices. For arithmetic on the whole array,
    use `view` (no copy) or `to_numpy()` (a copy).

    Memory: `storage` is C-contiguous and starts on a 64-byte boundary. From two dimensions on, zeros pad its rows, so
    that every row starts on such a boundary. `view` is the array without the padding, in the same memory.

    >>> a = zeros((2, 3))
    >>> a[1, 2] = 5.0
    >>> a.to_numpy()
    array([[0., 0., 0.],
           [0., 0., 5.]])
    >>> a.storage.shape
    (2, 8)
    """

    shuffles = 0
    """How often its rows were shuffled."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._shape = shape
        self._storage = current_storage().zeros(padded_shape(shape, dtype), dtype)

    @property
    def storage(self) -> NDArray[Any]:
        """Memory of the array, of shape `(..., columns + padding)`: C-contiguous and aligned."""
        return self._storage

    @property
    def view(self) -> NDArray[Any]:
        """Array without its padding, as a NumPy array in the memory of `storage`. Stale after `replace_storage`."""
        return self._storage[..., : self._shape[-1]] if self._shape else self._storage

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        return self._storage.dtype

    @property
    def nbytes(self) -> int:
        return self._storage.nbytes

    def to_numpy(self) -> NDArray[Any]:
        return self.view.copy()

    @ends_in_users_line
    def map(self, f: Callable[[Any], Any]) -> DenseArray:
        """Compute a new array of the same shape, with `f(value)` for each element.

        `f` gets NumPy's numbers, in C order of the elements, and returns a number. All else, compilation included, is
        as for `SparseArray.map`, but the elements are computed at once.

        Errors: `ArgumentError` where `f` does not take one argument, or returns no number. An error that `f` raises
        names the element.

        >>> array([[1, 2], [3, 4]]).map(lambda v: v / 2).to_numpy()
        array([[0.5, 1. ],
               [1.5, 2. ]])
        """
        from orion.arrays.lazy import mapped

        return array(mapped(self.view, f))

    @property
    def _element_bytes(self) -> int:
        return prod(self._shape[1:]) * self.dtype.itemsize

    def _reorder(self, exchange: Exchange) -> None:
        rows = self._storage
        if not rows.flags.writeable:
            hint = "shuffle a copy: `orion.array(a.to_numpy())`"
            raise ArgumentError(describe(f"the memory of {self!r} is read-only, and its rows are to move", hint=hint))
        order = aside(exchange.order)

        moving = len(rows) if exchange.is_whole else exchange.slots * exchange.ranks

        def move() -> None:
            move_rows(rows, order, moving * (rows.nbytes // len(rows)))
            self._last_shuffle = exchange
            self.shuffles += 1

        as_a_whole(move)

    def __getattr__(self, name: str) -> Any:
        if name in ("map_keys", "filter", "group_by", "shuffle_keys", "key_permutation", "materialize"):
            hint = "make a sparse array of the elements that are meant, by `orion.sparse`"
            raise AttributeError(describe(f"a dense array has no `{name}`, as its elements have no keys", hint=hint))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def replace_storage(self, storage: NDArray[Any]) -> None:
        """Move the array to `storage`, for example in shared memory. The caller has copied the contents
        there.

        `ArgumentError` unless `storage` has the shape and dtype of the present one, is C-contiguous,
        writeable and starts on a 64-byte boundary.
        """
        old = self._storage
        if storage.shape != old.shape or storage.dtype != old.dtype:
            have, want = f"{storage.dtype}{storage.shape}", f"{old.dtype}{old.shape}"
            raise ArgumentError(f"new storage is {have}, not {want} like the old one")
        if not (storage.flags.c_contiguous and storage.flags.writeable and (not storage.size or is_aligned(storage))):
            raise ArgumentError("new storage is not C-contiguous, writeable and 64-byte aligned")
        self._storage = storage

    def __len__(self) -> int:
        return len(self.view)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.view)

    def __getitem__(self, key: Any) -> Any:
        return self.view[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.view[key] = value

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.view, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"DenseArray(shape={self.shape}, dtype={self.dtype})"

    def _facts(self) -> Mapping[str, str]:
        return {
            "shape": " × ".join(f"{n:,}" for n in self.shape) or "()",
            "dtype": str(self.dtype),
            "memory": f"{bytes_text(self.nbytes)} with padding, in {place_text(self._storage)}",
        }


@ends_in_users_line
def array(data: ArrayLike, dtype: DTypeLike | None = None) -> DenseArray:
    """Make a dense array from a copy of an array, or of nested sequences.

    - `data`: an array of any layout and byte order, of NumPy or of another library, or nested sequences of numbers.
    - `dtype`: by default that of `data`: bool, integers of 1 to 8 bytes, float32, float64, complex64 or complex128.

    Returns an `orion.DenseArray`. Errors: `ArgumentError` for objects, text, dates and other types.

    >>> array([[1, 2], [3, 4]], dtype="float32")
    DenseArray(shape=(2, 2), dtype=float32)
    """
    source = np.asarray(viewed(data))
    kind = supported_dtype(source.dtype if dtype is None else dtype)
    supported_dtype(source.dtype)
    result = DenseArray(source.shape, kind)
    result.view[...] = source
    return result


@ends_in_users_line
def zeros(shape: int | Sequence[int], dtype: DTypeLike = np.float64) -> DenseArray:
    """Make a dense array of zeros.

    - `shape`: an integer or a tuple of integers.
    - `dtype`: float64 by default; `orion.array` lists all.

    Returns an `orion.DenseArray`. Errors: `ArgumentError` for a negative length, and for another dtype.

    >>> zeros(3).to_numpy()
    array([0., 0., 0.])
    """
    return DenseArray(checked_shape(shape), supported_dtype(dtype))


@ends_in_users_line
def ones(shape: int | Sequence[int], dtype: DTypeLike = np.float64) -> DenseArray:
    """Make a dense array of ones. `shape`, `dtype` and errors are those of `orion.zeros`.

    >>> ones(3, dtype="int32").to_numpy()
    array([1, 1, 1], dtype=int32)
    """
    return full(shape, 1, dtype)


@ends_in_users_line
def full(shape: int | Sequence[int], value: complex, dtype: DTypeLike | None = None) -> DenseArray:
    """Make a dense array filled with `value`, whose dtype is the default. `shape` and errors are those of
    `orion.zeros`.

    >>> full(2, 0.5).to_numpy()
    array([0.5, 0.5])
    """
    kind = supported_dtype(np.asarray(value).dtype if dtype is None else dtype)
    result = DenseArray(checked_shape(shape), kind)
    result.view[...] = value
    return result
