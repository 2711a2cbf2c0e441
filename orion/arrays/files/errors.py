"""Where in a text file an entry is wrong. Only used once it is known that one is.

The reader itself says which line it is: it is given parts of the file, and halves of the part that it refuses. What
is said of the line is found out in Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

import numpy as np

from orion.arrays.check import Arrays, extents_of
from orion.arrays.files.columns import Columns
from orion.arrays.files.lines import BLOCK, Line, Row, Separator, cut, read_lines
from orion.errors import DataFormatError, describe

INTEGER = re.compile(r"-?[0-9]+|0[xX][0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(nan|inf|infinity)", re.IGNORECASE)
_TRUTH = frozenset(("0", "1", "true", "false"))
_LARGEST_KEY = int(np.iinfo(np.int64).max) - 1
_DIGITS = 20
"""No integer of 64 bits has more digits; Python refuses to read one of some thousands."""
_LARGEST_FLOAT = {kind: float(np.finfo(kind).max) for kind in map(np.dtype, ("float32", "float64"))}

Refusal = Callable[[bytes], str | None]
"""Why the reader does not take some lines as they are, None where it does."""


def first_error(path: str, separator: Separator, columns: Columns, refusal: Refusal, found: str) -> DataFormatError:
    """The error for the first line that the reader refuses. `found` is what it said of the whole file, in case it takes
    every line by itself.
    """
    line = _first_refused(path, columns, refusal)
    if line is None:
        return DataFormatError(f"{path} cannot be read: {found}")
    return line_error(path, cut(line, separator), columns, refusal(line.data) or found)


def far_error(path: str, separator: Separator, columns: Columns, refusal: Refusal, keys: Arrays) -> DataFormatError:
    """The error for the first id that makes a dimension far longer than there are elements. `columns` have what is not
    too long as limits."""
    line = _first_refused(path, columns, refusal)
    assert line is not None
    assert columns.limits is not None
    fields = cut(line, separator).fields
    texts = [fields[at].strip(" \t") for at in columns.keys]
    dim = next(d for d, text in enumerate(texts) if _key_problem(text, columns.lowest, columns.limits[d]))
    shape = extents_of(keys)
    why = f"dimension {dim} would have {shape[dim]:,} indices for {len(keys[0]):,} elements"
    message = f"{path}, line {line.number}, {columns.label(columns.keys[dim])}: the id is {texts[dim]}"
    return DataFormatError(describe(message, why=why, hint=f"mend the line, or say shape={shape} if that is meant"))


def line_error(path: str, row: Row, columns: Columns | None, found: str) -> DataFormatError:
    """The error for a line that is known to be wrong. `found` is what the reader says of it."""
    label, message, hint = _problem(row, columns, found)
    place = f"{path}, line {row.line.number}{label}: {message}"
    return DataFormatError(describe(f"{place}\n    | {row.text[:100]}", hint=hint))


def _parts(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """The lines in parts of about a block each."""
    part: list[Line] = []
    for line in lines:
        part.append(line)
        if line.end - part[0].start >= BLOCK:
            yield part
            part = []
    yield part


def _refused(lines: list[Line], refusal: Refusal) -> bool:
    return refusal(b"".join(line.data for line in lines)) is not None


def _first_refused(path: str, columns: Columns, refusal: Refusal) -> Line | None:
    """The first line of data that is refused, if any is: lines are refused together if one is by itself."""
    parts = _parts(read_lines(path, columns.lines_before_data))
    lines = next((part for part in parts if _refused(part, refusal)), [])
    while len(lines) > 1:
        half = lines[: len(lines) // 2]
        lines = half if _refused(half, refusal) else lines[len(half) :]
    return lines[0] if lines else None


def _problem(row: Row, columns: Columns | None, found: str) -> tuple[str, str, str]:
    """The label of a column, or nothing for the whole line, what is wrong, and what to do."""
    if row.open is not None:
        label = columns.label(row.open) if columns and row.open < columns.count else f"column {row.open + 1}"
        message = "the line ends inside quotation marks: an entry cannot hold a line break"
        hint = "mend the line, or say quoted=False if quotation marks are characters like any other in this file"
        return f", {label}", message, hint
    if columns is None:
        return "", found, ""
    label, message = next(_problems(row, columns), ("", f"it cannot be read: {found}"))
    return label, message, _hint(columns)


def _hint(columns: Columns) -> str:
    read = f"{_list(columns.keys)} for the keys and {_list(columns.values)} for the values"
    return f"mend or remove the line; the columns read are {read}"


def _list(positions: tuple[int, ...]) -> str:
    return " and ".join(str(at + 1) for at in positions)


def _problems(row: Row, columns: Columns) -> Iterator[tuple[str, str]]:
    """The label of a column, or nothing for the whole line, and what is wrong."""
    if len(row.fields) != columns.count:
        yield "", f"{len(row.fields)} columns, where the first line has {columns.count}"
        return
    limits = columns.limits or (None,) * len(columns.keys)
    for at, limit in zip(columns.keys, limits, strict=True):
        message = _key_problem(row.fields[at].strip(" \t"), columns.lowest, limit)
        if message:
            yield f", {columns.label(at)}", message
    for at, dtype in zip(columns.values, columns.dtypes, strict=True):
        message = _value_problem(row.fields[at].strip(" \t"), dtype, columns.allow_nan)
        if message:
            yield f", {columns.label(at)}", message


def _key_problem(text: str, lowest: int, limit: int | None) -> str | None:
    if not text:
        return "an id is missing"
    if not INTEGER.fullmatch(text):
        return f"{shortened(text)!r} is not an integer"
    key = integer_of(text)
    if key is None:
        return f"the id {shortened(text)} is too large"
    if key < lowest:
        return f"the id {text} is negative" if key < 0 else f"the id is {text}, with one_based ids count from 1"
    if key - lowest > _LARGEST_KEY:
        return f"the id {text} is too large"
    if limit is not None and key - lowest >= limit:
        return f"the id {text} lies outside of the shape, where this dimension has {limit}"
    return None


def integer_of(text: str) -> int | None:
    """The integer that a text stands for, None where it is longer than any of 64 bits."""
    base = 16 if text[:2] in ("0x", "0X") else 10
    digits = text.lstrip("-")[2 if base == 16 else 0 :].lstrip("0")
    return None if len(digits) > _DIGITS else int(f"{'-' * (text[0] == '-')}{digits or '0'}", base)


def shortened(text: str) -> str:
    """A text as messages show it."""
    return text if len(text) <= 2 * _DIGITS else f"{text[:_DIGITS]}… of {len(text):,} characters"


def _value_problem(text: str, dtype: np.dtype, allow_nan: bool) -> str | None:
    if not text:
        return None if allow_nan and dtype.kind == "f" else "a value is missing"
    if dtype.kind == "f":
        return float_problem(text, dtype, allow_nan)
    if dtype.kind == "b":
        return None if text.lower() in _TRUTH else f"{shortened(text)!r} is not a bool"
    if not INTEGER.fullmatch(text):
        return f"{shortened(text)!r} is not an integer, as dtype={dtype} asks for"
    info = np.iinfo(dtype)
    number = integer_of(text)
    in_range = number is not None and info.min <= number <= info.max
    return None if in_range else f"{shortened(text)} is out of range for dtype={dtype}"


def float_problem(text: str, dtype: np.dtype, allow_nan: bool) -> str | None:
    """Why a text is no float of this dtype, None where it is one."""
    if allow_nan and text in _stand_for_missing():
        return None
    if not _FLOAT.fullmatch(text):
        return f"{shortened(text)!r} is not a number"
    number = float(text)
    if allow_nan:
        return None
    if math.isnan(number):
        return "the value is NaN"
    return None if abs(number) <= _LARGEST_FLOAT[dtype] else f"{text} is infinite, or too large for dtype={dtype}"


def _stand_for_missing() -> list[str]:
    from pyarrow.csv import ConvertOptions

    texts: list[str] = ConvertOptions().null_values
    return texts
