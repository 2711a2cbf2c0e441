"""Keyed elements from any text, by a function of the user's that is called for each line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from orion.arrays.check import Arrays, far_dimension
from orion.arrays.collected import Column, WrongResultError, key_columns, shown
from orion.arrays.dtypes import checked_shape
from orion.arrays.files.lines import Line, read_lines
from orion.arrays.sparse import SparseArray, adopt
from orion.arrays.storage import KeyPieces, current_storage
from orion.errors import ArgumentError, DataFormatError, describe
from orion.tracebacks import shorten

AT_ONCE = 1 << 14
"""Lines whose results are Python's objects at the same time."""

Parser = Callable[[str], Any]


def text_file(
    path: str | os.PathLike[str],
    parse_line: Parser,
    shape: Sequence[int] | None = None,
    *,
    skip_lines: int = 0,
    encoding: str = "utf-8",
    allow_nan: bool = False,
) -> SparseArray:
    """Read a text file into a sparse array, by a function that parses one line.

    Files that end in .gz, .bz2, .zst or .lz4 are unpacked. Blank lines are skipped.

    - `path`: the file.
    - `parse_line`: called as `parse_line(line)` for each line in turn, without its end (`\\n`, `\\r\\n` or `\\r`). It
      returns `(keys, value)`, or None to skip the line. `keys` is a tuple with one integer per dimension, or an integer
      for one dimension. `value` is a number or a tuple of numbers. All lines must give as many of each.
    - `shape`: as for `orion.sparse`. Keys count from 0.
    - `skip_lines`: the number of lines at the beginning that are skipped.
    - `encoding`: that of the text, UTF-8 by default.
    - `allow_nan`: accept NaN among the values.

    Returns an `orion.SparseArray`. NumPy's numbers among the values decide the dtype, and Python's numbers adapt to it.
    Python's bool, int, float and complex alone give bool, int64, float64 and complex128. A file without elements gives
    an array of the dimensions of `shape`, or one dimension, of float64.

    Errors: `ArgumentError` for a `parse_line` that is no function, or an unknown `encoding`. `DataFormatError` for the
    file, with line (from 1) and text; nothing is returned then. It is raised for:

    - a line for which `parse_line` fails; that error is the `__cause__`.
    - a result of another form.
    - a key that is negative or lies outside of `shape`.
    - a key far above the number of elements, without a `shape`.
    - a value that is NaN.
    - text in another encoding, and a line of more than a megabyte.
    - a file that is missing or damaged.

    >>> import pathlib, tempfile
    >>> def parse(line):
    ...     user, _, rest = line.partition(" gave ")
    ...     item, _, stars = rest.partition(" ")
    ...     return (int(user), int(item)), len(stars)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "stars.txt")
    ...     _ = path.write_text("0 gave 2 *****\\n1 gave 0 ***\\n")
    ...     text_file(path, parse)
    SparseArray(shape=(2, 3), nnz=2, dtype=int64)
    """
    try:
        if not callable(parse_line):
            raise ArgumentError(f"{shown(parse_line)} is no function that can be called for each line")
        _check_encoding(encoding)
        limits = None if shape is None else checked_shape(tuple(shape))
        return _read(_Reader(os.fspath(path), parse_line, limits, encoding, allow_nan), skip_lines)
    except BaseException as error:
        cause = error.__cause__
        shorten(error)
        if isinstance(error, DataFormatError):
            error.__cause__ = cause  # where the parser went wrong is for its author to see
        raise


def _read(reader: _Reader, skip_lines: int) -> SparseArray:
    lines: list[Line] = []
    for line in read_lines(reader.path, skip_lines):
        lines.append(line)
        if len(lines) == AT_ONCE:
            reader.add(lines)
            lines = []
    reader.add(lines)
    return reader.array()


class _Reader:
    """The elements of the lines so far, as arrays."""

    def __init__(
        self, path: str, parse: Parser, limits: tuple[int, ...] | None, encoding: str, allow_nan: bool
    ) -> None:
        self.path = path
        self._parse, self._limits, self._encoding, self._allow_nan = parse, limits, encoding, allow_nan
        self._form: tuple[int, int, bool] | None = None
        """How many keys and values a line gives, and whether its value is a tuple."""
        self._form_line = 0
        self._storage = current_storage()
        self._keys = KeyPieces(self._storage, 0)
        self._values: list[Column] = []
        self._farthest: list[tuple[int, int]] = []
        """The largest key of each dimension, and the number of its line."""

    def add(self, lines: list[Line]) -> None:
        """Add the elements of some lines. DataFormatError for a line that is wrong, where one is."""
        found = [(line, *result) for line in lines if (result := self._result(line)) is not None]
        if not found:
            return
        taken = [line for line, _, _ in found]
        try:
            keys = key_columns([key for _, key, _ in found], len(found[0][1]))
            self._check_limits(keys, taken)
            for column, results in zip(self._values, zip(*(value for _, _, value in found), strict=True), strict=True):
                column.add(results)
                self._check_nan(results)
        except WrongResultError as error:
            raise self._error(taken[error.place], str(error)) from None
        self._keys.add(keys)
        for dim, axis in enumerate(keys):
            at = int(np.argmax(axis))
            self._farthest[dim] = max(self._farthest[dim], (int(axis[at]), taken[at].number))

    def array(self) -> SparseArray:
        """The array of all elements."""
        if self._form is None:
            dims = 1 if self._limits is None else len(self._limits)
            return adopt(tuple(np.empty(0, np.int32) for _ in range(dims)), (np.empty(0),), self._limits, False)
        keys = self._keys.whole()
        dim = None if self._limits is not None else far_dimension(keys)
        if dim is not None:
            largest, number = self._farthest[dim]
            shape = tuple(one + 1 for one, _ in self._farthest)
            why = f"dimension {dim} would have {shape[dim]:,} indices for {len(keys[0]):,} elements"
            what = f"{self.path}, line {number}: the key of dimension {dim} is {largest}"
            raise DataFormatError(describe(what, why=why, hint=f"say shape={shape} if that is meant"))
        try:
            values = tuple(column.whole() for column in self._values)
        except WrongResultError as error:
            raise DataFormatError(f"{self.path}: of the values, {error}") from None
        return adopt(keys, values, self._limits, self._form[2])

    def _result(self, line: Line) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """The keys and the values of a line, None where it is left out."""
        try:
            text = line.data.decode(self._encoding).rstrip("\r\n")
        except UnicodeDecodeError as error:
            hint = "say encoding= if it is text in another one"
            raise self._error(line, f"it is not text in {self._encoding}", str(error), hint) from None
        try:
            result = self._parse(text)
        except Exception as error:
            what = f"{_name(self._parse)} raises {type(error).__name__}"
            raise self._error(line, what + (f": {error}" if str(error) else "")) from error
        if result is None:
            return None
        if type(result) is not tuple or len(result) != 2:
            hint = "return (keys, value), or None to leave the line out"
            raise self._error(line, f"{_name(self._parse)} returns {shown(result)}", hint=hint)
        key, value = result
        keys, values = key if isinstance(key, tuple) else (key,), value if isinstance(value, tuple) else (value,)
        self._check_form(line, result, (len(keys), len(values), isinstance(value, tuple)))
        return keys, values

    def _check_form(self, line: Line, result: object, form: tuple[int, int, bool]) -> None:
        """DataFormatError unless a line gives as many keys and values as the first one."""
        if form == self._form:
            return
        returned = f"{_name(self._parse)} returns {shown(result)}"
        if self._form is None:
            if not form[0] or not form[1]:
                raise self._error(line, returned, hint="an element has at least one key and one value")
            if self._limits is not None and len(self._limits) != form[0]:
                why = f"the shape {self._limits} has {len(self._limits)} dimensions"
                raise self._error(line, returned, why)
            self._form, self._form_line = form, line.number
            self._keys = KeyPieces(self._storage, form[0])
            self._values = [Column(self._storage) for _ in range(form[1])]
            self._farthest = [(0, 0)] * form[0]
        else:
            keys, values, is_tuple = self._form
            kind = f"a tuple of {values}" if is_tuple else "a number"
            raise self._error(line, returned, f"line {self._form_line} gives {keys} keys, and {kind} as value")

    def _check_limits(self, keys: Arrays, lines: list[Line]) -> None:
        for dim, axis in enumerate(keys if self._limits is not None else ()):
            assert self._limits is not None
            outside = axis >= self._limits[dim]
            if outside.any():
                at = int(np.argmax(outside))
                what = f"the key {axis[at]} of dimension {dim} lies outside of the shape {self._limits}"
                raise self._error(lines[at], what)

    def _check_nan(self, results: Sequence[Any]) -> None:
        if not self._allow_nan:
            at = next((place for place, one in enumerate(results) if one != one), None)
            if at is not None:
                raise WrongResultError(at, "the value is NaN; say allow_nan=True to keep it")

    def _error(self, line: Line, what: str, why: str = "", hint: str = "") -> DataFormatError:
        text = line.data.decode(self._encoding, errors="replace").rstrip("\r\n")
        return DataFormatError(
            describe(f"{self.path}, line {line.number}: {what}\n    | {text[:100]}", why=why, hint=hint)
        )


def _check_encoding(encoding: str) -> None:
    try:
        line = "\n".encode(encoding)
    except LookupError:
        raise ArgumentError(f"{encoding!r} is no encoding of text") from None
    if line != b"\n":  # lines are cut before they are decoded
        anew = f'pathlib.Path(to).write_text(pathlib.Path(path).read_text("{encoding}"), "utf-8")'
        what = f"text in {encoding!r} is not read, as its lines end in other bytes than those of ASCII"
        raise ArgumentError(describe(what, hint=f"write the file anew in UTF-8: `{anew}`"))


def _name(function: Parser) -> str:
    return f"`{getattr(function, '__name__', type(function).__name__)}`"
