"""Sparse arrays from SciPy matrices, pandas frames and Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.check import checked_keys, checked_values
from orion.arrays.sparse import SparseArray, adopt, sparse
from orion.errors import DataFormatError, describe
from orion.tracebacks import ends_in_users_line

Names = str | Sequence[str]


@ends_in_users_line
def from_scipy(matrix: Any, *, allow_nan: bool = False) -> SparseArray:
    """Make a sparse array from a SciPy sparse matrix or array of any format.

    - `matrix`: its stored zeros stay elements, and so do duplicates of the COO format.
    - `allow_nan`: accept NaN among the values.

    Returns an `orion.SparseArray` with copies of keys and values.

    Errors: `DataFormatError` for anything else than a SciPy matrix, and for NaN.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.csr_array([[0.0, 1.0], [2.0, 0.0]]))
    SparseArray(shape=(2, 2), nnz=2, dtype=float64)
    """
    if not hasattr(matrix, "tocoo"):
        raise DataFormatError(
            describe(f"{type(matrix).__name__} is not a SciPy sparse matrix", hint="for NumPy use orion.array")
        )
    coo = matrix.tocoo()
    coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    return sparse(coords, coo.data, coo.shape, allow_nan=allow_nan)


@ends_in_users_line
def from_pandas(
    frame: Any, *, keys: Names, values: Names, shape: Sequence[int] | None = None, allow_nan: bool = False
) -> SparseArray:
    """Make a sparse array from columns of a pandas data frame, with one element per row.

    - `keys`: the names of columns of integers, one per dimension.
    - `values`: the name of one column, or several names for a tuple of values.
    - `shape`: as for `orion.sparse`.
    - `allow_nan`: accept missing floats, as NaN.

    Returns an `orion.SparseArray` with copies of the columns.

    Errors: `DataFormatError`, with column and position, for a column that does not exist, a missing entry, or one that
    is no number.

    >>> import pandas
    >>> frame = pandas.DataFrame({"user": [0, 1], "item": [2, 0], "stars": [5.0, 3.5]})
    >>> from_pandas(frame, keys=["user", "item"], values="stars")
    SparseArray(shape=(2, 3), nnz=2, dtype=float64)
    """
    columns = [str(c) for c in frame.columns]
    _check_columns(columns, keys, values, "data frame")

    def fetch(name: str) -> NDArray[Any]:
        series = frame.iloc[:, columns.index(name)]
        missing = series.isna().to_numpy()
        kind = getattr(series.dtype, "numpy_dtype", None)
        if missing.any() and not _may_be_missing(name, values, kind or series.dtype, allow_nan):
            hint = f"drop such rows, `frame = frame.dropna(subset=[{name!r}])`"
            raise _missing(name, int(np.argmax(missing)), hint)
        return np.asarray(series.to_numpy() if kind is None else series.to_numpy(dtype=kind))

    return _from_columns(fetch, keys, values, shape, allow_nan)


@ends_in_users_line
def from_arrow(
    table: Any, *, keys: Names, values: Names, shape: Sequence[int] | None = None, allow_nan: bool = False
) -> SparseArray:
    """Make a sparse array from columns of a `pyarrow.Table`. Parameters and errors are those of `orion.from_pandas`.

    >>> import pyarrow
    >>> table = pyarrow.table({"user": [0, 1], "item": [2, 0], "stars": [5.0, 3.5]})
    >>> from_arrow(table, keys=["user", "item"], values="stars")
    SparseArray(shape=(2, 3), nnz=2, dtype=float64)
    """
    _check_columns(list(table.column_names), keys, values, "table")

    def fetch(name: str) -> NDArray[Any]:
        column = table.column(name)
        array = np.asarray(column.to_numpy())
        if column.null_count and not _may_be_missing(name, values, array.dtype, allow_nan):
            raise _missing(name, int(np.argmax(column.is_null().to_numpy())), "drop such rows, `table.drop_null()`")
        return array

    return _from_columns(fetch, keys, values, shape, allow_nan)


def _from_columns(fetch: Any, keys: Names, values: Names, shape: Sequence[int] | None, allow_nan: bool) -> SparseArray:
    key_names, value_names = _as_tuple(keys), _as_tuple(values)
    coords = checked_keys([fetch(name) for name in key_names], [f"column {name!r}" for name in key_names])
    columns = tuple(fetch(name) for name in value_names)
    checked = checked_values(columns, len(coords[0]), allow_nan, [f"column {name!r}" for name in value_names])
    copied = tuple(k.copy() for k in coords), tuple(v.copy() for v in checked)
    return adopt(*copied, shape, not isinstance(values, str))


def _as_tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _check_columns(columns: list[str], keys: Names, values: Names, holder: str) -> None:
    for name in (*_as_tuple(keys), *_as_tuple(values)):
        if columns.count(name) != 1:
            found = "no column" if name not in columns else "more than one column"
            raise DataFormatError(
                describe(f"the {holder} has {found} {name!r}", why=f"its columns are {', '.join(columns)}")
            )


def _may_be_missing(name: str, values: Names, kind: Any, allow_nan: bool) -> bool:
    return allow_nan and name in _as_tuple(values) and np.dtype(kind).kind == "f"


def _missing(name: str, position: int, hint: str) -> DataFormatError:
    return DataFormatError(describe(f"column {name!r} has no entry at position {position}", hint=hint))
