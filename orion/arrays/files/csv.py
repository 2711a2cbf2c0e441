"""Ratings and other keyed elements from text files with one element per line.

Arrow reads and converts the whole file in parallel, and `csv_lines` counts its lines meanwhile. Only after a failure, a
bad entry, or another number of elements than lines, `csv_errors` goes through the file again, to name the place.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from orion.arrays.check import INT32, INT64, Arrays, far_dimension, largest_extent
from orion.arrays.dtypes import checked_shape, supported_dtype
from orion.arrays.files.columns import Column, Columns, find_columns
from orion.arrays.files.errors import Refusal, far_error, first_error, line_error
from orion.arrays.files.lines import (
    BLOCK,
    DataLines,
    Row,
    Separator,
    checked_separator,
    cut,
    opened,
    read_lines,
    reader,
)
from orion.arrays.sparse import SparseArray, adopt
from orion.arrays.storage import IN_MEMORY, KeyPieces, Pieces, Storage, current_storage
from orion.aside import aside
from orion.errors import ArgumentError, DataFormatError
from orion.tracebacks import ends_in_users_line


@ends_in_users_line
def read_csv(
    path: str | os.PathLike[str],
    keys: Column | Sequence[Column] = (0, 1),
    values: Column | Sequence[Column] = 2,
    sep: str | None = None,
    header: bool | None = None,
    dtype: DTypeLike | Sequence[DTypeLike] = np.float32,
    shape: Sequence[int] | None = None,
    *,
    quoted: bool = True,
    one_based: bool = False,
    skip_lines: int = 0,
    allow_nan: bool = False,
) -> SparseArray:
    """Read a text file with one element per line into a sparse array. Files that end in .gz, .bz2, .zst or .lz4 are
    unpacked.

    - `path`: the file.
    - `keys`, `values`: the columns, by header name or by position from 0. One value column gives scalars, a sequence of
      columns gives tuples.
    - `sep`: one or more characters between columns. By default "," for .csv, a tab for .tsv, and "::" for .dat
      (MovieLens).
    - `header`: True if the first line names the columns. By default, it does if columns are asked for by name, or if no
      entry asked for is a number.
    - `dtype`: that of the values, float32 by default, or a sequence with one per value column. Complex values cannot be
      read.
    - `shape`: as for `orion.sparse`.
    - `quoted`: entries may stand in quotation marks, and then hold separators. This needs a separator of one character.
    - `one_based`: ids count from 1, and become keys that count from 0.
    - `skip_lines`: the number of lines before the header. Blank lines are skipped everywhere.
    - `allow_nan`: accept values that are empty, NaN or infinite.

    Returns an `orion.SparseArray`. Ids are decimal integers, or hexadecimal ones that begin with 0x.

    Errors: `ArgumentError` for arguments that do not fit together. `DataFormatError` for the file, with line (from 1),
    column and text; nothing is returned then. It is raised for:

    - a file that is missing, empty or damaged.
    - a line that has more or fewer columns than the first, or more than a megabyte.
    - quotation marks that are still open at the end of a line, in any column.
    - a column that does not exist.
    - an id that is no integer, is negative or lies outside of `shape`.
    - an id far above the number of lines, without a `shape`.
    - a value that is no number of `dtype`.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ratings.csv")
    ...     _ = path.write_text("user,item,stars\\n0,2,5.0\\n1,0,3.5\\n")
    ...     read_csv(path, keys=["user", "item"], values="stars")
    SparseArray(shape=(2, 3), nnz=2, dtype=float32)
    """
    return aside(lambda: _read(path, keys, values, sep, header, dtype, shape, quoted, one_based, skip_lines, allow_nan))


def _read(
    path: str | os.PathLike[str],
    keys: Column | Sequence[Column],
    values: Column | Sequence[Column],
    sep: str | None,
    header: bool | None,
    dtype: DTypeLike | Sequence[DTypeLike],
    shape: Sequence[int] | None,
    quoted: bool,
    one_based: bool,
    skip_lines: int,
    allow_nan: bool,
) -> SparseArray:
    name = os.fspath(path)
    separator = checked_separator(name, sep, quoted)
    first, second = _first_rows(name, separator, skip_lines)
    columns = find_columns(
        name, first, keys=keys, values=values, header=header, dtypes=_value_dtypes(dtype, values),
        limits=None if shape is None else checked_shape(tuple(shape)), lowest=1 if one_based else 0,
        allow_nan=allow_nan,
    )  # fmt: skip
    arrays = _no_elements(columns) if columns.header and not second else _read_columns(name, separator, columns)
    return adopt(*arrays, shape, not isinstance(values, str | int))


def _value_dtypes(dtype: Any, values: Column | Sequence[Column]) -> tuple[np.dtype, ...]:
    count = 1 if isinstance(values, str | int) else len(values)
    given = tuple(dtype) if isinstance(dtype, list | tuple) else (dtype,) * count
    if len(given) != count:
        raise ArgumentError(f"{len(given)} dtypes for {count} value columns")
    dtypes = tuple(supported_dtype(d) for d in given)
    if any(d.kind == "c" for d in dtypes):
        raise ArgumentError("complex values cannot be read from text")
    return dtypes


def _first_rows(path: str, separator: Separator, skip_lines: int) -> tuple[Row, bool]:
    """The first row, and whether there is another one."""
    lines = list(islice(read_lines(path, skip_lines), 2))
    if not lines:
        after = f" after the {skip_lines} lines left out" if skip_lines else ""
        raise DataFormatError(f"{path} is empty{after}")
    first = cut(lines[0], separator)
    if first.open is not None:
        raise line_error(path, first, None, "")
    return first, len(lines) > 1


def _no_elements(columns: Columns) -> tuple[Arrays, Arrays]:
    return tuple(np.empty(0, INT32) for _ in columns.keys), tuple(np.empty(0, d) for d in columns.dtypes)


def _read_columns(path: str, separator: Separator, columns: Columns) -> tuple[Arrays, Arrays]:
    """The keys and values. The file is read again where anything is wrong with them, to find the first such line."""
    try:
        with opened(path) as stream:
            _pass_over(stream, columns.bytes_before_data)
            keys, values = _read_data(stream, separator, columns, current_storage())
    except _RefusedError as error:
        raise first_error(path, separator, columns, _refusal(separator, columns), str(error)) from None
    if columns.limits is None and far_dimension(keys) is not None:
        near = replace(columns, limits=(largest_extent(len(keys[0])),) * len(keys))
        raise far_error(path, separator, near, _refusal(separator, near), keys)
    return keys, values


def _pass_over(stream: Any, count: int) -> None:
    while count > 0:
        count -= len(stream.read(min(count, BLOCK)))


class _RefusedError(Exception):
    """Some lines are not as many acceptable elements."""


def _refusal(separator: Separator, columns: Columns) -> Refusal:
    """Says why some lines are not read as they are, None where they are."""

    def refusal(data: bytes) -> str | None:
        try:
            _read_data(io.BytesIO(data), separator, columns, IN_MEMORY)
        except _RefusedError as error:
            return str(error)
        return None

    return refusal


def _read_data(stream: Any, separator: Separator, columns: Columns, storage: Storage) -> tuple[Arrays, Arrays]:
    """The keys, counted from 0, and the values, from lines that are all read as one element each."""
    import pyarrow

    data = DataLines(reader(stream, separator), separator)
    key_pieces = KeyPieces(storage, len(columns.keys))
    value_pieces = [Pieces(storage) for _ in columns.values]
    count = 0
    try:
        for batch in _batches(data, separator, columns, storage):
            keys, values = _checked(batch, columns)
            key_pieces.add(keys)
            for pieces, column in zip(value_pieces, values, strict=True):
                pieces.add(column)
            count += batch.num_rows
    except pyarrow.ArrowInvalid as error:
        raise _RefusedError(str(error)) from None
    if data.is_open or count != data.lines:
        raise _RefusedError(f"{data.lines} lines are read as {count} elements")
    found = tuple(pieces.whole(dtype) for pieces, dtype in zip(value_pieces, columns.dtypes, strict=True))
    return key_pieces.whole(), found


def _batches(data: DataLines, separator: Separator, columns: Columns, storage: Storage) -> Iterator[Any]:
    """The columns asked for as Arrow has them, some lines after others; each is named by its position in the file.
    Arrow parses several blocks at once where it may hold all of them, else one after the other."""
    import pyarrow
    from pyarrow import csv

    types = {str(at): pyarrow.int64() for at in columns.keys}
    types |= {str(at): pyarrow.from_numpy_dtype(d) for at, d in zip(columns.values, columns.dtypes, strict=True)}
    options = {
        "read_options": csv.ReadOptions(column_names=[str(at) for at in range(columns.count)], block_size=BLOCK),
        "parse_options": csv.ParseOptions(
            delimiter=separator.delimiter,
            quote_char='"' if separator.quoted else False,
            newlines_in_values=False,
        ),
        "convert_options": csv.ConvertOptions(include_columns=list(types), column_types=types),
    }
    file = pyarrow.PythonFile(data, mode="r")
    if storage == IN_MEMORY:
        yield from csv.read_csv(file, **options).to_batches()
    else:
        with csv.open_csv(file, **options) as batches:
            yield from batches


def _checked(batch: Any, columns: Columns) -> tuple[Arrays, Arrays]:
    """The keys, counted from 0, and the values of some lines. Raises _RefusedError where any is not to be taken."""
    floats = {str(at) for at, d in zip(columns.values, columns.dtypes, strict=True) if d.kind == "f"}
    strict = set(batch.schema.names) - (floats if columns.allow_nan else set())
    if any(batch.column(name).null_count for name in strict):
        raise _RefusedError("entries are missing")
    keys = tuple(batch.column(str(at)).to_numpy(zero_copy_only=False) for at in columns.keys)
    values = tuple(batch.column(str(at)).to_numpy(zero_copy_only=False) for at in columns.values)
    if not _acceptable(keys, values, columns):
        raise _RefusedError("an id or a value is out of range")
    return tuple(k - columns.lowest if columns.lowest else k for k in keys), values


def _acceptable(keys: Arrays, values: Arrays, columns: Columns) -> bool:
    low, limits = columns.lowest, columns.limits or (np.iinfo(INT64).max,) * len(keys)
    in_range = all(
        not k.size or (int(k.min()) >= low and int(k.max()) - low < n) for k, n in zip(keys, limits, strict=True)
    )
    return in_range and (columns.allow_nan or all(v.dtype.kind != "f" or np.isfinite(v).all() for v in values))
