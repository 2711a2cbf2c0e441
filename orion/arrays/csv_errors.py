"""Where in a text file an entry is wrong. Slow, and only used once it is known that one is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from orion.arrays.csv_columns import Columns
from orion.arrays.csv_lines import Row, read_rows
from orion.errors import DataFormatError, describe

_INTEGER = re.compile(r"-?[0-9]+|0[xX][0-9a-fA-F]+")
_TRUTH = frozenset(("0", "1", "true", "false"))
_LARGEST_KEY = int(np.iinfo(np.int64).max) - 1
_LARGEST_FLOAT = {kind: float(np.finfo(kind).max) for kind in map(np.dtype, ("float32", "float64"))}


def first_error(path: str, separator: str, columns: Columns, found: str) -> DataFormatError:
    """The error for the first line that is wrong. `found` is what is known already, in case no line stands
    out.
    """
    for row in read_rows(path, separator, columns.lines_before_data):
        for label, message in _problems(row, columns):
            place = f"{path}, line {row.number}{label}: {message}"
            return DataFormatError(describe(f"{place}\n    | {row.text[:100]}", hint=_hint(columns)))
    return DataFormatError(f"{path} cannot be read: {found}")


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
        message = _key_problem(row.fields[at].strip(), columns.lowest, limit)
        if message:
            yield f", {columns.label(at)}", message
    for at, dtype in zip(columns.values, columns.dtypes, strict=True):
        message = _value_problem(row.fields[at].strip(), dtype, columns.allow_nan)
        if message:
            yield f", {columns.label(at)}", message


def _key_problem(text: str, lowest: int, limit: int | None) -> str | None:
    if not text:
        return "an id is missing"
    if not _INTEGER.fullmatch(text):
        return f"{text!r} is not an integer"
    key = _integer(text)
    if key < lowest:
        return f"the id {text} is negative" if key < 0 else f"the id is {text}, with one_based ids count from 1"
    if key - lowest > _LARGEST_KEY:
        return f"the id {text} is too large"
    if limit is not None and key - lowest >= limit:
        return f"the id {text} lies outside of the shape, where this dimension has {limit}"
    return None


def _integer(text: str) -> int:
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def _value_problem(text: str, dtype: np.dtype, allow_nan: bool) -> str | None:
    if not text:
        return None if allow_nan and dtype.kind == "f" else "a value is missing"
    if dtype.kind == "f":
        return _float_problem(text, dtype, allow_nan)
    if dtype.kind == "b":
        return None if text.lower() in _TRUTH else f"{text!r} is not a bool"
    if not _INTEGER.fullmatch(text):
        return f"{text!r} is not an integer, as dtype={dtype} asks for"
    info = np.iinfo(dtype)
    return None if info.min <= _integer(text) <= info.max else f"{text} is out of range for dtype={dtype}"


def _float_problem(text: str, dtype: np.dtype, allow_nan: bool) -> str | None:
    if allow_nan and text in _stand_for_missing():
        return None
    try:
        number = float(text.replace("_", "?"))
    except ValueError:
        return f"{text!r} is not a number"
    if allow_nan:
        return None
    if math.isnan(number):
        return "the value is NaN"
    return None if abs(number) <= _LARGEST_FLOAT[dtype] else f"{text} is infinite, or too large for dtype={dtype}"


def _stand_for_missing() -> list[str]:
    from pyarrow.csv import ConvertOptions

    texts: list[str] = ConvertOptions().null_values
    return texts
