"""Examples in the text format of LIBSVM and SVMlight: a label and pairs of an index and a value in each line.

A file is read in pieces of whole lines, several at once. In each piece, NumPy finds where words begin and end. Arrow
then converts the labels, one to a line, and the pairs, as a file of two columns. Only after a failure or a bad entry,
`libsvm_errors` goes through the file line by line, to name the place.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from orion.arrays.at_once import AtOnce
from orion.arrays.check import key_dtype, largest_extent
from orion.arrays.dtypes import supported_dtype
from orion.arrays.files.libsvm_errors import Rules, first_error
from orion.arrays.files.lines import BLOCK, opened, refuse_foreign
from orion.arrays.sparse import SparseArray, adopt
from orion.arrays.storage import KeyPieces, Pieces, Storage, current_storage
from orion.aside import aside
from orion.cores import cores
from orion.errors import ArgumentError, DataFormatError
from orion.tracebacks import ends_in_users_line

PIECE = 1 << 22
"""About how many bytes are looked at together; a piece ends with a line."""

INT32_MAX = int(np.iinfo(np.int32).max)
TAB, LINE_FEED, CARRIAGE_RETURN, SPACE, REMARK, PLUS, MINUS, COLON = b"\t\n\r #+-:"

Bytes = NDArray[np.uint8]


@ends_in_users_line
def read_libsvm(
    path: str | os.PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float32,
    *,
    zero_based: bool | Literal["auto"] = "auto",
    allow_nan: bool = False,
) -> tuple[SparseArray, NDArray[np.float64]]:
    """Read a LIBSVM or SVMlight file into a sparse array, one row per example, and an array of labels.

    Files that end in .gz, .bz2, .zst or .lz4 are unpacked. A line is `label index:value index:value … # remark`, with
    spaces or tabs between the parts and ascending indices. Blank lines and remarks are skipped. A label alone is a row
    without elements.

    - `path`: the file.
    - `features`: the number of columns, by default the smallest that holds all indices. Give it to two files that
      belong together, such as one to train and one to test.
    - `dtype`: the type of floats of the values, float32 by default.
    - `zero_based`: indices count from 0. LIBSVM counts from 1, some programs from 0. "auto" means 0 if the index 0
      occurs in the file, else 1. Say True or False for files that belong together, since one of them may have no index
      0.
    - `allow_nan`: accept NaN and infinite numbers.

    Returns an `orion.SparseArray` of shape (examples, features), and the labels, float64 of shape (examples,). For
    loops over rows, `rows = X.lines(0)` has `rows.indptr`, `rows.indices` and `rows.values[0]`.

    Errors: `ArgumentError` for a `dtype` that is no type of floats, and for other values of `features` or `zero_based`.
    `DataFormatError` for the file, with line, column (both from 1) and text; nothing is returned then. It is raised
    for:

    - a file that is missing, empty or damaged.
    - a label or a value that is no number.
    - a part that is no pair of index and value, such as `qid:1`.
    - an index that is no integer, is below the first one, or is not below `features`.
    - an index far above the number of elements, without `features`.
    - indices that do not ascend.

    Source: Chang and Lin, "LIBSVM: A library for support vector machines", ACM TIST 2011 (the format).

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "examples.txt")
    ...     _ = path.write_text("+1 1:0.5 4:2  # the first\\n-1 2:1\\n")
    ...     X, labels = read_libsvm(path)
    >>> X, labels
    (SparseArray(shape=(2, 4), nnz=3, dtype=float32), array([ 1., -1.]))
    """
    return aside(lambda: _read(os.fspath(path), features, dtype, zero_based, allow_nan))


def _read(
    path: str, features: int | None, dtype: DTypeLike, zero_based: bool | Literal["auto"], allow_nan: bool
) -> tuple[SparseArray, NDArray[np.float64]]:
    kind = supported_dtype(dtype)
    if kind.kind != "f":
        raise ArgumentError(f"values are read as floats, not as {kind}: say dtype='float32' or 'float64'")
    if zero_based not in (True, False, "auto"):
        raise ArgumentError(f"zero_based={zero_based!r}: say True, False or 'auto'")
    if features is not None and (not isinstance(features, int | np.integer) or features < 0):
        raise ArgumentError(f"features={features!r} is no number of columns")
    rules = Rules(kind, None if features is None else int(features), allow_nan)
    rows = _Rows(current_storage())
    _read_rows(path, rules, rows)
    if not rows.count:
        raise DataFormatError(f"{path} is empty")
    low = (0 if rows.least == 0 else 1) if zero_based == "auto" else 1 - int(zero_based)
    columns = 0 if rows.largest is None else rows.largest + 1 - low
    limit = largest_extent(rows.elements) if rules.features is None else rules.features
    if columns > limit or (rows.least is not None and rows.least < low):
        far = None if rules.features is not None else f"{columns:,} columns for {rows.elements:,} elements"
        raise first_error(path, rules._replace(features=limit, lowest=low, far=far), "an index is out of range")
    return rows.whole(low, columns if rules.features is None else rules.features)


class _Rows:
    """Rows read so far: their number, that of their elements, and the least and largest index (None without any)."""

    def __init__(self, storage: Storage) -> None:
        self._labels, self._keys, self._values = Pieces(storage), KeyPieces(storage, 2), Pieces(storage)
        self.count = self.elements = 0
        self.least: int | None = None
        self.largest: int | None = None

    def add(self, part: _Part) -> None:
        """Add some rows."""
        self._labels.add(part.labels)
        self._keys.add((np.repeat(np.arange(self.count, self.count + len(part.labels)), part.counts), part.indices))
        self._values.add(part.values)
        self.count += len(part.labels)
        self.elements += len(part.indices)
        if len(part.indices):
            least, largest = int(part.indices.min()), int(part.indices.max())
            self.least = least if self.least is None else min(self.least, least)
            self.largest = largest if self.largest is None else max(self.largest, largest)

    def whole(self, low: int, features: int) -> tuple[SparseArray, NDArray[np.float64]]:
        """The array, whose columns count from `low` in the file, and the labels."""
        rows, columns = self._keys.whole()
        columns -= columns.dtype.type(low)
        kind, values = key_dtype((rows, columns)), self._values.whole(*self._values.dtypes)
        keys = rows.astype(kind, copy=False), columns.astype(kind, copy=False)
        labels = self._labels.whole(np.dtype(np.float64))
        return adopt(keys, (values,), (self.count, features), False), labels


class _Part(NamedTuple):
    """Some rows: their labels and numbers of pairs, and the indices, as they stand there, and values of these."""

    labels: NDArray[np.float64]
    counts: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]


class _RefusedError(Exception):
    """Some line is not as it should be."""


def _read_rows(path: str, rules: Rules, rows: _Rows) -> None:
    """Add all rows of a file. `DataFormatError` where a line is not of the format."""
    threads = cores()
    try:
        with opened(path) as stream, AtOnce(threads) as pool:
            pieces = _pieces(path, stream)
            while several := list(islice(pieces, threads)):
                for part in pool.map(lambda piece: _part(piece, rules), several):
                    rows.add(part)
    except _RefusedError as error:
        raise first_error(path, rules, str(error)) from None


def _pieces(path: str, stream: Any) -> Iterator[bytes]:
    """The bytes of a file in pieces of whole lines, each of which ends with the end of a line."""
    kept, begun = b"", False
    while block := stream.read(PIECE):
        if not begun:
            refuse_foreign(path, block[:BLOCK])
            block, begun = block.removeprefix(codecs.BOM_UTF8), True
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if end:
            yield kept + block[:end]
            kept = block[end:]
        else:
            kept += block
    if kept:
        yield kept + b"\n"


def _part(piece: bytes, rules: Rules) -> _Part:
    """The rows of some lines. Raises _RefusedError where one is wrong."""
    data = np.frombuffer(piece, np.uint8)
    ends = (data == LINE_FEED) | (data == CARRIAGE_RETURN)
    word = ~(ends | (data == SPACE) | (data == TAB))
    if (data == REMARK).any():
        word &= ~_remarks(data, ends)
    starts = np.flatnonzero(word[1:] & ~word[:-1]) + 1
    if word[0]:
        starts = np.concatenate(([0], starts))
    stops = np.flatnonzero(word[:-1] & ~word[1:]) + 1  # each is followed by a space or the end of its line
    line = np.searchsorted(np.flatnonzero(ends), starts)
    is_label = np.ones(len(starts), bool)
    is_label[1:] = line[1:] != line[:-1]
    rows = np.flatnonzero(is_label)
    counts = np.diff(np.append(rows, len(starts))) - 1
    text = data.copy()
    text[stops] = LINE_FEED
    of_label = _covered(len(data), starts[rows], stops[rows])
    word[stops] = True
    word &= _without_plus(data)
    labels = _labels(text[word & of_label])
    indices, values = _pairs(text[word & ~of_label], rules.dtype)
    if len(labels) != len(rows) or len(indices) != len(starts) - len(rows):
        raise _RefusedError("words are lost")
    part = _Part(labels, counts, indices, values)
    _check(part, rules.allow_nan)
    return part


def _remarks(data: Bytes, ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the remarks: from `#` to the end of the line."""
    places = np.arange(1, len(data) + 1, dtype=np.int32 if len(data) < INT32_MAX else np.int64)
    last_end = np.maximum.accumulate(np.where(ends, places, 0))
    last_mark = np.maximum.accumulate(np.where(data == REMARK, places, 0))
    return np.asarray(last_mark > last_end)


def _covered(length: int, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of some words, each with the byte after it."""
    steps = np.zeros(length + 1, np.int8)
    steps[starts] = 1
    steps[stops + 1] -= 1
    return np.cumsum(steps[:-1], dtype=np.int8).view(bool)


def _without_plus(data: Bytes) -> NDArray[np.bool_]:
    """All places but those of plus signs before numbers, which Arrow does not take before integers."""
    keep = np.ones(len(data), bool)
    places = np.flatnonzero(data == PLUS)
    before = np.where(places == 0, SPACE, data[places - 1])
    is_first = np.isin(before, (SPACE, TAB, LINE_FEED, CARRIAGE_RETURN, COLON))
    keep[places[is_first & ~np.isin(data[places + 1], (PLUS, MINUS))]] = False
    return keep


def _labels(text: Bytes) -> NDArray[np.float64]:
    (labels,) = _columns(text, {"label": np.dtype(np.float64)}, "\x1f")
    return labels


def _pairs(text: Bytes, dtype: np.dtype) -> tuple[NDArray[Any], NDArray[Any]]:
    indices, values = _columns(text, {"index": np.dtype(np.int64), "value": dtype}, ":")
    small = not len(indices) or int(indices.max()) <= INT32_MAX
    return indices.astype(np.int32) if small else indices, values


def _columns(text: Bytes, dtypes: dict[str, np.dtype], delimiter: str) -> list[NDArray[Any]]:
    """The columns of some lines. Raises _RefusedError where one is not of these types."""
    import pyarrow
    from pyarrow import csv

    if not len(text):
        return [np.empty(0, dtype) for dtype in dtypes.values()]
    types = {name: pyarrow.from_numpy_dtype(dtype) for name, dtype in dtypes.items()}
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(pyarrow.py_buffer(np.ascontiguousarray(text))),
            read_options=csv.ReadOptions(column_names=list(types), block_size=BLOCK),
            parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=csv.ConvertOptions(column_types=types),
        )
    except pyarrow.ArrowInvalid as error:
        raise _RefusedError(str(error)) from None
    if "index" in types and table.column("index").null_count:
        raise _RefusedError("indices are missing")
    return [np.ascontiguousarray(table.column(name).to_numpy()) for name in types]


def _check(part: _Part, allow_nan: bool) -> None:
    """Raises _RefusedError where indices do not ascend, or numbers are none. What is missing is NaN."""
    ascends = np.diff(part.indices) > 0
    ends = np.cumsum(part.counts)[:-1]
    ascends[ends[(ends > 0) & (ends < len(part.indices))] - 1] = True
    if not ascends.all():
        raise _RefusedError("indices do not ascend")
    if not allow_nan and not (np.isfinite(part.labels).all() and np.isfinite(part.values).all()):
        raise _RefusedError("a number is NaN or infinite")
