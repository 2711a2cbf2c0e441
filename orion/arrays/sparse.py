"""Sparse arrays: keyed elements, held once, in the order of the tiles that read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any, get_args
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orion.arrays.base import bytes_text, place_text
from orion.arrays.check import Arrays, checked_extents, checked_keys, checked_values, largest_extent
from orion.arrays.keyed import KeyedElements
from orion.arrays.layout import (
    Bounds,
    Elements,
    Order,
    TileLayout,
    checked_bounds,
    tile_layout,
    user_order,
)
from orion.arrays.lines import Lines, by_lines
from orion.arrays.partition import balanced_bounds, even_bounds
from orion.arrays.sorting import counts_of, has_no_equal, is_ascending, sorted_columns, with_positions
from orion.arrays.storage import BLOCK, current_storage
from orion.arrays.transformed import Transformed
from orion.errors import ArgumentError, OutOfBoundsError, PlanError, describe
from orion.tracebacks import ends_in_users_line

_ITERATED_AT_ONCE = 1 << 16


class SparseArray(Transformed):
    """Sparse array, made by `orion.sparse`, `from_scipy`, `from_pandas` or `from_arrow`, or read from a file.

    Element e has one key per dimension and one value, or a tuple of values. A key may occur more than once. `for (i,
    j), r in ratings` iterates by ascending keys, in Python as in a loop with `ordered=True`. The first dimension is the
    most significant one; elements with equal keys come in the order they were given in. `coords`, `values` and
    `to_scipy` have the elements as they were given.

    Memory: the elements are held once, first in the order they were given in. The first loop moves them into tile
    order, with both orders in memory meanwhile. From then on, the array holds the tile order of the last loop, and 4
    bytes per element for the way back (8 above 2**32 elements). Iterating in Python keeps 4 bytes per element for the
    order, unless the elements were given in it.

    >>> ratings = sparse(([0, 0, 2], [1, 3, 0]), np.array([4.0, 3.5, 5.0]))
    >>> ratings
    SparseArray(shape=(3, 4), nnz=3, dtype=float64)
    >>> for (i, j), r in ratings:
    ...     print(i, j, r)
    0 1 4.0
    0 3 3.5
    2 0 5.0
    """

    def __init__(
        self,
        keys: Arrays,
        values: Arrays,
        extents: tuple[int, ...],
        shape: tuple[int, ...],
        values_are_tuple: bool,
    ) -> None:
        self._elements = Elements(keys, values, None)
        self._extents = extents
        self._shape = shape
        self._values_are_tuple = values_are_tuple
        self._layout_key: tuple[object, ...] | None = None
        self._lines: dict[int, Lines] = {}
        self._layouts: WeakValueDictionary[tuple[object, ...], TileLayout] = WeakValueDictionary()
        self._keyed: KeyedElements | None = None
        self._has_own_values = False
        self.version = 0
        """How often values were stored, by Python or by a run of a loop, or elements shuffled."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def extents(self) -> tuple[int, ...]:
        """One past the largest key present, per dimension; 0 without elements. Never larger than `shape`."""
        return self._extents

    @property
    def nnz(self) -> int:
        """Number of stored elements."""
        return len(self._elements)

    def __len__(self) -> int:
        return self.nnz

    @property
    def key_dtype(self) -> np.dtype:
        """int32 if every key fits, else int64; the same in all dimensions."""
        return self._elements.keys[0].dtype

    @property
    def value_dtypes(self) -> tuple[np.dtype, ...]:
        """Type of each value of an element."""
        return tuple(v.dtype for v in self._elements.values)

    @property
    def values_are_tuple(self) -> bool:
        """True if an element's value is a tuple rather than one scalar."""
        return self._values_are_tuple

    @property
    def dtype(self) -> np.dtype:
        """Type of the values; for tuples a structured type with fields `f0`, `f1`, ..."""
        if self._values_are_tuple:
            return np.dtype([(f"f{at}", kind) for at, kind in enumerate(self.value_dtypes)])
        return self.value_dtypes[0]

    @property
    def nbytes(self) -> int:
        order = vars(self).get("_ascending")
        lines = sum(one.nbytes for one in self._lines.values()) + (0 if self._keyed is None else self._keyed.nbytes)
        return self._elements.nbytes + lines + (0 if order is None else order.nbytes)

    @property
    def as_given(self) -> Elements:
        """The elements in the order they were given in, not to be changed; perhaps a copy."""
        return user_order(self._elements)

    @property
    def coords(self) -> Arrays:
        """Keys as given: one read-only array of shape (elements,) per dimension, int32 or int64."""
        return tuple(map(_read_only, self.as_given.keys))

    @property
    def values(self) -> NDArray[Any] | Arrays:
        """Values as given: a read-only array of shape (elements,), or a tuple of them."""
        held = user_order(self._elements).values
        if self._has_own_values and held is self._elements.values:
            held = tuple(map(current_storage().copied, held))  # what is shown stays, whatever is stored later
        values = tuple(map(_read_only, held))
        return values if self._values_are_tuple else values[0]

    @cached_property
    def _ascending(self) -> NDArray[Any] | None:
        """The order of iteration, None where the elements were given in it."""
        keys = self.as_given.keys
        return None if is_ascending(keys) else with_positions(keys, current_storage())[-1]

    @property
    def iteration_order(self) -> NDArray[np.int64]:
        """Positions of the elements, as given, in the order of iteration.

        >>> sparse(([2, 0, 2], [0, 3, 0]), np.array([4.0, 3.5, 5.0])).iteration_order
        array([1, 0, 2])
        """
        return np.arange(self.nnz) if self._ascending is None else self._ascending.astype(np.int64)

    @ends_in_users_line
    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        return self._iterated(user_order(self._elements), self._ascending)

    def _iterated(self, ordered: Elements, ascending: NDArray[Any] | None) -> Iterator[tuple[tuple[int, ...], Any]]:
        for start in range(0, self.nnz, _ITERATED_AT_ONCE):
            part: Any = slice(start, start + _ITERATED_AT_ONCE)
            part = part if ascending is None else ascending[part]
            keys = zip(*(k[part].tolist() for k in ordered.keys), strict=True)
            values = tuple(v[part] for v in ordered.values)
            yield from zip(keys, zip(*values, strict=True) if self._values_are_tuple else values[0], strict=True)

    def lines(self, dim: int) -> Lines:
        """Return the elements by rows (`dim` 0) or by columns (1), in the order of iteration. Those of a column ascend
        by rows.

        They are made once, and then in memory beside the elements. ArgumentError unless the array has two dimensions.

        >>> ratings = sparse(([2, 0, 2], [0, 3, 1]), np.array([4.0, 3.5, 5.0]))
        >>> ratings.lines(0).indptr, ratings.lines(0).indices
        (array([0, 1, 1, 3]), array([3, 0, 1], dtype=int32))
        """
        if self.ndim != 2:
            raise ArgumentError(f"an array with {self.ndim} dimensions has no rows and columns")
        if dim not in self._lines:
            self._lines[dim] = by_lines(self.as_given, dim, self._shape[dim])
        return self._lines[dim]

    def __getitem__(self, index: Any) -> Any:
        """The elements of a row, `R[i]`, as pairs of column and value; of a column, `R[:, j]`, as pairs of row and
        value. Ascending, equal ones in the order they were given in; negative numbers count from the end.

        With an integer for each dimension, the value of the element with that key, or the tuple of its values. Keys are
        counted from 0. MissingKeyError where there is none, or more than one.

        >>> ratings = sparse(([2, 0, 2], [0, 3, 1]), np.array([4.0, 3.5, 5.0]))
        >>> ratings[2], float(ratings[2, 1])
        ([(0, np.float64(4.0)), (1, np.float64(5.0))], 5.0)
        """
        key = self._key_of(index)
        if key is not None:
            found = self._by_key().values(key)
            return found if self._values_are_tuple else found[0]
        match index:
            case (slice(start=None, stop=None, step=None), number):
                dim = 1
            case number:
                dim = 0
        if not isinstance(number, int | np.integer):
            hint = "write `R[i]` for a row and `R[:, j]` for a column, with an integer"
            raise ArgumentError(describe(f"a sparse array has no part [{index!r}]", hint=hint))
        length = self._shape[dim] if self.ndim == 2 else 0
        lines = self.lines(dim)
        if not -length <= number < length:
            raise OutOfBoundsError(f"{('row', 'column')[dim]} {number} of a sparse array of shape {self._shape}")
        first, end = lines.indptr[number % length], lines.indptr[number % length + 1]
        values = [value[first:end] for value in lines.values]
        each = zip(*values, strict=True) if self._values_are_tuple else values[0]
        return list(zip(lines.indices[first:end].tolist(), each, strict=True))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Give the element with a key, an integer for each dimension, another value: as NumPy converts what is assigned
        to an element of an array, or for tuples as many. MissingKeyError where there is no such element, or more than
        one. Arrays of values that were shown before stay as they are.

        >>> ratings = sparse(([2, 0, 2], [0, 3, 1]), np.array([4.0, 3.5, 5.0]))
        >>> ratings[2, 1] += 1
        >>> ratings.values
        array([4. , 3.5, 6. ])
        """
        found = self._key_of(key)
        if found is None:
            hint = f"write {self.ndim} integers, `R[{', '.join('ijklmnop'[: self.ndim])}] = value`"
            raise ArgumentError(describe(f"a sparse array has no element [{key!r}] to be stored", hint=hint))
        if isinstance(self._elements, TileLayout) or self._has_own_values:
            elements = self._by_key()
        else:  # what was shown of them, or taken over from others, stays as it is
            self._by_key().place(found)
            self._elements = replace(
                self._elements, values=tuple(current_storage().copied(v) for v in self._elements.values)
            )
            self._has_own_values = True
            elements = self._by_key()
        elements.store(found, value if self._values_are_tuple else (value,))
        self._forget_values()

    def _key_of(self, index: Any) -> tuple[int, ...] | None:
        """A subscript as the key of an element; None where it is none."""
        key = index if isinstance(index, tuple) else (index,)
        is_key = len(key) == self.ndim and all(isinstance(one, int | np.integer) for one in key)
        return tuple(int(one) for one in key) if is_key else None

    def _by_key(self) -> KeyedElements:
        """The elements as they are held now, to be found by their keys."""
        if self._keyed is None or not self._keyed.are(self._elements):
            self._keyed = KeyedElements(self._elements, self._keyed)
        return self._keyed

    def begin_stores(self, layout: TileLayout) -> None:
        """A loop is about to store values in a layout, which is one of this array with its present values: from now on
        it is what holds them, and all else that does is let go of."""
        key = next((key for key, known in self._layouts.items() if known is layout), None)
        if key is None:
            raise PlanError("loops that store values of one sparse array have it in different orders")
        self._keep(key, layout)
        self._forget_values()

    @property
    def held_values(self) -> Arrays:
        """The arrays that hold the values, in whatever order."""
        return self._elements.values

    def before_image(self) -> Callable[[], None]:
        """Return a function that gives the elements their present values back, from a copy."""
        elements, key = self._elements, self._layout_key
        image = replace(elements, values=tuple(map(current_storage().copied, elements.values)))

        def undo() -> None:
            self._elements, self._layout_key = image, key
            self._forget_values()

        return undo

    def has_present_values(self, layout: TileLayout) -> bool:
        """Whether a layout of this array still has its values: those that were made before values were stored do not,
        but for the one they were stored in."""
        return layout is self._elements or any(known is layout for known in self._layouts.values())

    def _forget_values(self) -> None:
        """Let go of all values but those of the present elements."""
        self.version += 1
        self._lines.clear()
        self._layouts.clear()
        if isinstance(self._elements, TileLayout) and self._layout_key is not None:
            self._layouts[self._layout_key] = self._elements

    def histogram(self, dim: int, bins: int | None = None) -> NDArray[np.int64]:
        """Count the elements per index of a dimension, or in each of `bins` equal ranges of its indices.

        Returns int64 of shape (indices,) or (bins,). ArgumentError for a dimension that does not exist.

        >>> sparse(([0, 0, 2], [1, 3, 0]), np.ones(3)).histogram(0)
        array([2, 0, 1])
        """
        if not 0 <= dim < self.ndim:
            raise ArgumentError(f"dimension {dim} of an array with {self.ndim} dimensions")
        keys = self._elements.keys[dim]
        if bins is None:
            return counts_of(keys, self._shape[dim])
        cuts = even_bounds(self._shape[dim], bins)
        found = np.zeros(bins, np.int64)
        for start in range(0, self.nnz, BLOCK):
            inside = np.searchsorted(cuts, keys[start : start + BLOCK], side="right") - 1
            found += np.bincount(inside, minlength=bins)
        return found

    def balanced_bounds(self, dim: int, blocks: int) -> NDArray[np.int64]:
        """Bounds of blocks of a dimension that hold about as many elements each (`orion.arrays.partition`). That takes
        no more memory than the elements do, however long the dimension is.

        >>> sparse(([0, 10**12],), np.ones(2), shape=(10**13,)).balanced_bounds(0, 2)
        array([             0,  1000000000000, 10000000000000])
        """
        keys, length = self._elements.keys[dim], self._shape[dim]
        if not self.nnz:
            return even_bounds(length, blocks)
        if length <= largest_extent(self.nnz):
            return balanced_bounds(self.histogram(dim), blocks)
        present, counts = np.unique(keys, return_counts=True)
        starts = np.append(present, length)
        starts[0] = 0
        return starts[balanced_bounds(counts, blocks)]

    @cached_property
    def unique_keys(self) -> bool:
        """True if no key occurs twice. The first use sorts the keys."""
        if self.nnz > current_storage().at_once:
            return has_no_equal(sorted_columns(self._elements.keys, self.ndim, current_storage()))
        if prod(self._extents) > np.iinfo(np.int64).max:
            ranks = np.lexsort(self._elements.keys)
            same = np.logical_and.reduce([np.diff(k[ranks]) == 0 for k in self._elements.keys])
            return not bool(same.any())
        cells = np.zeros(self.nnz, dtype=np.int64)
        for keys, extent in zip(self._elements.keys, self._extents, strict=True):
            cells *= extent
            cells += keys
        cells.sort()
        return not bool((cells[1:] == cells[:-1]).any())

    def layout(self, bounds: tuple[ArrayLike, ...], order: Order) -> TileLayout:
        """The elements in tile order: `bounds` cut each dimension into blocks, `order` says how a tile is
        ordered.

        The result depends on the elements, `bounds` and `order`, never on what was asked for before. It
        shares its arrays with this sparse array, is the same object when asked for again, and must not be
        changed. Earlier layouts that someone still holds stay valid, until values are stored, and are returned without
        work.

        `ArgumentError` if the bounds do not ascend from 0 or do not cover every key.

        >>> ratings = sparse(([0, 0, 2], [1, 3, 0]), np.array([4.0, 3.5, 5.0]))
        >>> halves = ratings.layout(([0, 3], [0, 2, 4]), "ascending")
        >>> halves.offsets, halves.values[0]
        (array([0, 2, 3]), array([4. , 5. , 3.5]))
        """
        if order not in get_args(Order):
            raise ArgumentError(describe(f"order {order!r}", hint="use 'shuffled' or 'ascending'"))
        cuts = checked_bounds(tuple(np.asarray(b) for b in bounds), self._extents)
        key = (order, *(c.tobytes() for c in cuts))
        found = self._layouts.get(key)
        if found is None:
            found = self._moved(cuts, order)
        self._keep(key, found)
        return found

    def replace_storage(self, keys: Arrays, values: Arrays) -> TileLayout:
        """Hold the present layout in other arrays, for example in shared memory. The caller has copied the
        contents.

        Returns the layout made of them. `ArgumentError` unless there is a layout and every array has the
        length and dtype of the one that it replaces, and is C-contiguous.
        """
        layout = self._elements
        if not isinstance(layout, TileLayout) or self._layout_key is None:
            raise ArgumentError(describe("there is no layout to replace", hint="call layout(bounds, order) first"))
        for old, new in zip((*layout.keys, *layout.values), (*keys, *values), strict=True):
            if old.shape != new.shape or old.dtype != new.dtype or not new.flags.c_contiguous:
                have, want = f"{new.dtype}{new.shape}", f"{old.dtype}{old.shape}"
                raise ArgumentError(f"new storage is {have}, not a contiguous {want} like the old one")
        moved = replace(layout, keys=tuple(keys), values=tuple(values))
        self._keep(self._layout_key, moved)
        return moved

    def _moved(self, cuts: Bounds, order: Order) -> TileLayout:
        # The old order is let go of first, so that no more than two are in memory.
        self._elements = user_order(self._elements)
        return tile_layout(self._elements, cuts, order)

    def _keep(self, key: tuple[object, ...], layout: TileLayout) -> None:
        self._layout_key, self._elements = key, layout
        self._layouts[key] = layout

    def to_numpy(self) -> NDArray[Any]:
        """A dense array, zero where there is no element; elements with the same key are added up.

        `ArgumentError` for tuples of values.
        """
        if self._values_are_tuple:
            raise ArgumentError(describe("a dense array has one value per element", hint="use coords and values"))
        ordered = user_order(self._elements)
        result = np.zeros(self._shape, dtype=self.dtype)
        np.add.at(result, ordered.keys, ordered.values[0])
        return result

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse.coo_array` with the elements as they were given, duplicates included.

        `ArgumentError` unless the array has two dimensions and one value per element.
        """
        from scipy.sparse import coo_array

        if self._values_are_tuple or self.ndim != 2:
            raise ArgumentError(
                describe(
                    "a SciPy matrix has two dimensions and one value per element",
                    hint="use coords and values",
                )
            )
        ordered = user_order(self._elements)
        return coo_array((ordered.values[0].copy(), tuple(k.copy() for k in ordered.keys)), shape=self._shape)

    def __repr__(self) -> str:
        return f"SparseArray(shape={self.shape}, nnz={self.nnz}, dtype={self._kinds()})"

    def _kinds(self) -> str:
        kinds = ", ".join(map(str, self.value_dtypes))
        return f"({kinds})" if self._values_are_tuple else kinds

    def _facts(self) -> Mapping[str, str]:
        cells = prod(self._shape)
        order = getattr(self._elements, "order", None)
        return {
            "shape": " × ".join(f"{n:,}" for n in self._shape),
            "elements": f"{self.nnz:,}" + (f" ({self.nnz / cells:.2g} of all cells)" if cells else ""),
            "dtype": f"{self._kinds()}, keys {self.key_dtype}",
            "memory": f"{bytes_text(self.nbytes)}, in {place_text(self._elements.keys[0])}",
            "stored": "as given" if order is None else f"in tiles, {order} inside",
        }


@ends_in_users_line
def sparse(
    coords: Sequence[ArrayLike],
    values: ArrayLike | tuple[ArrayLike, ...],
    shape: Sequence[int] | None = None,
    *,
    allow_nan: bool = False,
) -> SparseArray:
    """Make a sparse array from one array of keys per dimension, and one or more arrays of values.

    - `coords`: a tuple with one integer array per dimension, each of shape (elements,). Keys count from 0, and a key
      may occur more than once. They are stored as int32, or as int64 if a key needs it.
    - `values`: an array of shape (elements,), or a tuple of such arrays for several values per element. Dtypes stay.
    - `shape`: the number of indices per dimension; by default the smallest that holds all keys.
    - `allow_nan`: accept NaN among the values.

    Returns an `orion.SparseArray` with copies of these arrays. For an array without elements, `([], [])` and `[]` will
    do.

    Errors: `DataFormatError`, with the first position, for keys that are no integers, are negative, or lie outside of
    `shape`. The same for unequal lengths, values that are no numbers, and NaN. Without a `shape`, a key must be below
    2**24 or below 64 times the number of elements.

    >>> sparse(([0, 5], [1, 1], [2, 0]), (np.ones(2), np.array([3, 4])))
    SparseArray(shape=(6, 2, 3), nnz=2, dtype=(float64, int64))
    """
    keys = checked_keys(coords)
    several = isinstance(values, tuple)
    given = values if isinstance(values, tuple) else (values,)
    names = [f"values[{at}]" for at in range(len(given))] if several else ["values"]
    checked = checked_values(given, len(keys[0]), allow_nan, names)
    copied = current_storage().copied
    return adopt(tuple(map(copied, keys)), tuple(map(copied, checked)), shape, several)


def adopt(keys: Arrays, values: Arrays, shape: Sequence[int] | None, values_are_tuple: bool) -> SparseArray:
    """Return a sparse array of checked arrays, without a copy. Keys are still compared with `shape`."""
    extents, limits = checked_extents(keys, shape)
    return SparseArray(keys, values, extents, limits, values_are_tuple)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
