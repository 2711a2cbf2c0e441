"""Keyed elements from Parquet files: row groups are read and converted in parallel."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from orion.arrays.at_once import AtOnce, threads_for
from orion.arrays.check import INT64, Arrays, extents_of, far_dimension, key_dtype, largest_extent
from orion.arrays.dtypes import SUPPORTED, checked_shape, supported_dtype
from orion.arrays.files.columns import Column
from orion.arrays.sparse import SparseArray, adopt
from orion.arrays.storage import KeyPieces, Pieces, current_storage
from orion.aside import aside
from orion.dataclass import dataclass
from orion.errors import ArgumentError, DataFormatError, describe
from orion.extras import require
from orion.tracebacks import ends_in_users_line

Path = str | os.PathLike[str]

ENDINGS = (".parquet", ".parq", ".pq")


@ends_in_users_line
def read_parquet(
    path: Path | Sequence[Path],
    keys: Column | Sequence[Column] = (0, 1),
    values: Column | Sequence[Column] = 2,
    dtype: DTypeLike | Sequence[DTypeLike] | None = None,
    shape: Sequence[int] | None = None,
    *,
    one_based: bool = False,
    allow_nan: bool = False,
) -> SparseArray:
    """Read Parquet files with one element per row into a sparse array, in the order of files and rows.

    - `path`: a file, a folder, or a sequence of these. A folder stands for its files that end in .parquet, .parq or
      .pq, also those in folders inside of it, by name. Names that begin with "." or "_" are skipped.
    - `keys`, `values`: the columns, by name or by position from 0. One value column gives scalars, a sequence of
      columns gives tuples.
    - `dtype`: that of the values, or a sequence with one per value column; by default that of the column. Integers may
      become an integer type that holds all of them, and numbers any type of floats.
    - `shape`: as for `orion.sparse`.
    - `one_based`: ids count from 1, and become keys that count from 0.
    - `allow_nan`: accept NaN; missing floats then become NaN.

    Returns an `orion.SparseArray`.

    Errors: `ArgumentError` for arguments that do not fit together. `DataFormatError` for the files, with file, row
    (from 0) and column; nothing is returned then. It is raised for:

    - a file that is missing, damaged or no Parquet, and a folder without such files.
    - a column that does not exist, or has another type than in the first file.
    - an id that is missing, no integer, negative or outside of `shape`.
    - an id far above the number of rows, without a `shape`.
    - a value that is missing, no number, or does not fit `dtype`.

    >>> import pathlib, tempfile, pyarrow.parquet
    >>> table = pyarrow.table({"user": [0, 1], "item": [2, 0], "stars": [5.0, 3.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ratings.parquet")
    ...     pyarrow.parquet.write_table(table, path)
    ...     read_parquet(path, keys=["user", "item"], values="stars")
    SparseArray(shape=(2, 3), nnz=2, dtype=float64)
    """
    return aside(lambda: _read(path, keys, values, dtype, shape, one_based, allow_nan))


def _read(
    path: Path | Sequence[Path],
    keys: Column | Sequence[Column],
    values: Column | Sequence[Column],
    dtype: DTypeLike | Sequence[DTypeLike] | None,
    shape: Sequence[int] | None,
    one_based: bool,
    allow_nan: bool,
) -> SparseArray:
    key_columns, value_columns = _as_tuple(keys), _as_tuple(values)
    if not key_columns or not value_columns or len({*key_columns, *value_columns}) < len(key_columns + value_columns):
        raise ArgumentError(f"keys={keys!r} and values={values!r} do not name different columns")
    limits = None if shape is None else checked_shape(tuple(shape))
    if limits is not None and len(limits) != len(key_columns):
        raise ArgumentError(f"the shape {limits} has {len(limits)} dimensions, there are {len(key_columns)} keys")
    wanted = _Wanted(key_columns, _dtypes(dtype, value_columns), value_columns, limits, int(one_based), allow_nan)
    groups = list(_groups(_files(path), wanted))
    found, columns = _columns(groups, wanted)
    is_tuple = not isinstance(values, str | int)
    dim = None if limits is not None else far_dimension(found)
    if dim is not None:
        raise _far(groups, found, dim, wanted)
    return adopt(found, columns, limits, is_tuple)


@dataclass(frozen=True)
class _Wanted:
    """Request for columns: the dtypes of values (None for that of the file), and the range of keys."""

    keys: tuple[Column, ...]
    dtypes: tuple[np.dtype | None, ...]
    values: tuple[Column, ...]
    limits: tuple[int, ...] | None
    lowest: int
    allow_nan: bool


def _as_tuple(columns: Column | Sequence[Column]) -> tuple[Column, ...]:
    return (columns,) if isinstance(columns, str | int) else tuple(columns)


def _dtypes(dtype: Any, values: tuple[Column, ...]) -> tuple[np.dtype | None, ...]:
    given = tuple(dtype) if isinstance(dtype, list | tuple) else (dtype,) * len(values)
    if len(given) != len(values):
        raise ArgumentError(f"{len(given)} dtypes for {len(values)} value columns")
    return tuple(None if one is None else supported_dtype(one) for one in given)


# ---------------------------------------------------------------- files


def _files(path: Path | Sequence[Path]) -> list[str]:
    """The files to be read, in order."""
    given = [os.fspath(one) for one in ([path] if isinstance(path, str | os.PathLike) else path)]
    if not given:
        raise ArgumentError("read_parquet is given no path")
    found = []
    for one in given:
        inside = sorted(_inside(one)) if os.path.isdir(one) else [one]
        if not inside:
            raise DataFormatError(f"there is no file in the folder {one} whose name ends in {', '.join(ENDINGS)}")
        found += inside
    return found


def _inside(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith((".", "_"))]
        for name in names:
            if name.lower().endswith(ENDINGS) and not name.startswith((".", "_")):
                yield os.path.join(place, name)


@contextmanager
def _opened(path: str, metadata: Any = None) -> Iterator[Any]:
    """A Parquet file, whose metadata may be known. `DataFormatError` where it is missing, none or damaged."""
    require("pyarrow", "reading Parquet files")
    import pyarrow
    from pyarrow.parquet import ParquetFile

    if os.path.exists(path) and not os.path.isfile(path):
        raise DataFormatError(f"{path} is a pipe or a device, which cannot be read as a Parquet file")
    try:
        with ParquetFile(path, metadata=metadata) as file:
            yield file
    except FileNotFoundError as error:
        raise DataFormatError(f"there is no file {path}") from error
    except (pyarrow.ArrowException, OSError) as error:
        hint = "text is read by `orion.read_csv`, `orion.read_libsvm` or `orion.text_file`"
        what = f"{path} is damaged, or no Parquet file"
        raise DataFormatError(describe(what, why=str(error).strip().split("\n")[0], hint=hint)) from error


def _groups(files: list[str], wanted: _Wanted) -> Iterator[_Group]:
    """The row groups of all files, which have the columns asked for, and of the same types."""
    names: tuple[str, ...] | None = None
    types: list[Any] = []
    for path in files:
        with _opened(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
            if names is None:
                names = tuple(_name(path, schema.names, column) for column in (*wanted.keys, *wanted.values))
            names = tuple(_name(path, schema.names, name) for name in names)
            found = [schema.field(name).type for name in names]
            types = types or found
            for at, (kind, first) in enumerate(zip(found, types, strict=True)):
                is_value = at >= len(wanted.keys)
                if kind != first and is_value and wanted.dtypes[at - len(wanted.keys)] is None:
                    what = f"{path}: column {names[at]!r} is of type {kind}, in {files[0]} of type {first}"
                    raise DataFormatError(describe(what, hint="say dtype="))
            start = 0
            for number in range(max(1, metadata.num_row_groups)):  # a file without any still has types
                rows = metadata.row_group(number).num_rows if metadata.num_row_groups else 0
                yield _Group(path, metadata, number if metadata.num_row_groups else None, start, rows, names)
                start += rows


def _name(path: str, names: list[str], column: Column) -> str:
    if isinstance(column, int):
        if 0 <= column < len(names):
            return _name(path, names, names[column])
        raise DataFormatError(f"{path} has no column at position {column}: there are {len(names)}, counted from 0")
    if names.count(column) == 1:
        return column
    found = "no column" if column not in names else "more than one column"
    raise DataFormatError(describe(f"{path} has {found} {column!r}", why=f"its columns are {', '.join(names)}"))


# ---------------------------------------------------------------- row groups


@dataclass(frozen=True)
class _Group:
    """A row group of a file, which begins with the row `start`; `number` is None for a file that has none."""

    path: str
    metadata: Any
    number: int | None
    start: int
    rows: int
    names: tuple[str, ...]

    def read(self, wanted: _Wanted) -> Arrays:
        """Its keys and values. `DataFormatError` for the first row of a column that is wrong."""
        with _opened(self.path, self.metadata) as file:
            columns = [*dict.fromkeys(self.names)]
            table = (
                file.schema_arrow.empty_table()
                if self.number is None
                else file.read_row_group(self.number, columns=columns, use_threads=False)
            )
        count = len(wanted.keys)
        keys = [self._key(table.column(name), dim, wanted) for dim, name in enumerate(self.names[:count])]
        kind = key_dtype(keys)
        values = [
            self._value(table.column(name), name, dtype, wanted.allow_nan)
            for name, dtype in zip(self.names[count:], wanted.dtypes, strict=True)
        ]
        return (*(one.astype(kind, copy=False) for one in keys), *values)

    def _key(self, column: Any, dim: int, wanted: _Wanted) -> NDArray[Any]:
        name = self.names[dim]
        array = self._array(column, name, None)
        if array.dtype.kind not in "iu":
            hint = "convert the column to integers; texts are numbered by `pyarrow.compute.dictionary_encode`"
            what = f"{self.path}: column {name!r} is of type {column.type}, keys are integers"
            raise DataFormatError(describe(what, hint=hint))
        low = wanted.lowest
        self._refuse(array < low, array, name, "the id {} is negative" if not low else "the id is {}, ids count from 1")
        self._refuse(array >= np.iinfo(INT64).max, array, name, "the id {} is too large")
        keys = array.astype(INT64, copy=False) - low if low else array
        if wanted.limits is not None:
            of = f"outside of the shape, where this dimension has {wanted.limits[dim]}"
            self._refuse(keys >= wanted.limits[dim], array, name, f"the id {{}} lies {of}")
        return keys if low else keys.copy()

    def _value(self, column: Any, name: str, dtype: np.dtype | None, allow_nan: bool) -> NDArray[Any]:
        is_float = column.type in _floats() and (dtype is None or dtype.kind in "fc")
        array = self._array(column, name, np.nan if allow_nan and is_float else None)
        if array.dtype not in SUPPORTED:
            what = f"{self.path}: column {name!r} is of type {column.type}, whose entries are not numbers"
            raise DataFormatError(describe(what, hint="convert the column to integers or floats"))
        if array.dtype.kind == "f" and not allow_nan:
            self._refuse(np.isnan(array), array, name, "the value is NaN; say allow_nan=True to keep it")
        if dtype is None or array.dtype == dtype:
            return array.copy()
        with np.errstate(all="ignore"):
            converted = array.astype(dtype)
            lost = (converted != array) if dtype.kind in "iub" else np.isinf(converted) & ~np.isinf(array)
        self._refuse(lost, array, name, f"{{}} does not fit dtype={dtype}")
        return converted

    def _array(self, column: Any, name: str, missing: float | None) -> NDArray[Any]:
        """The entries of a column, those that are missing as `missing`."""
        import pyarrow
        import pyarrow.compute

        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if column.null_count and missing is None:
            absent = np.asarray(column.is_null().to_numpy())
            raise self._wrong(int(np.argmax(absent)), name, "there is no entry")
        if pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type):
            return np.asarray(column.to_numpy())
        if pyarrow.types.is_boolean(column.type):
            return np.asarray(column.to_numpy()).astype(bool)
        return np.empty(0, object)

    def _refuse(self, wrong: NDArray[Any], array: NDArray[Any], name: str, message: str) -> None:
        if wrong.any():
            at = int(np.argmax(wrong))
            raise self._wrong(at, name, message.format(array[at]))

    def _wrong(self, at: int, name: str, message: str) -> DataFormatError:
        return DataFormatError(f"{self.path}, row {self.start + at}, column {name!r}: {message}")


def _floats() -> tuple[Any, ...]:
    import pyarrow

    return pyarrow.float32(), pyarrow.float64()


def _columns(groups: list[_Group], wanted: _Wanted) -> tuple[Arrays, Arrays]:
    """The keys and the values of all row groups, of which as many are in memory at a time as there are cores."""
    storage, dims = current_storage(), len(wanted.keys)
    keys, values = KeyPieces(storage, dims), [Pieces(storage) for _ in wanted.values]
    several = threads_for(len(groups))
    with AtOnce(several) as threads:
        for start in range(0, len(groups), several):
            for part in threads.map(lambda group: group.read(wanted), groups[start : start + several]):
                keys.add(part[:dims])
                for pieces, column in zip(values, part[dims:], strict=True):
                    pieces.add(column)
    return keys.whole(), tuple(pieces.whole(np.result_type(*pieces.dtypes)) for pieces in values)


def _far(groups: list[_Group], keys: Arrays, dim: int, wanted: _Wanted) -> DataFormatError:
    """The error for the first id that makes a dimension far longer than there are elements."""
    limit = largest_extent(len(keys[0]))
    shape = extents_of(keys)
    at = int(np.argmax(keys[dim] >= limit))
    for group in groups:
        if at < group.rows:
            break
        at -= group.rows
    why = f"dimension {dim} would have {shape[dim]:,} indices for {len(keys[0]):,} elements"
    hint = f"mend the row, or say shape={shape} if that is meant"
    place = f"{group.path}, row {group.start + at}, column {group.names[dim]!r}"
    largest = int(keys[dim][np.argmax(keys[dim] >= limit)]) + wanted.lowest
    return DataFormatError(describe(f"{place}: the id is {largest}", why=why, hint=hint))
