"""Which columns of a text file hold the keys and the values, and what may be in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orion.arrays.files.lines import Row
from orion.dataclass import dataclass
from orion.errors import ArgumentError, DataFormatError, describe

Column = str | int


@dataclass(frozen=True)
class Columns:
    """Columns are positions counted from 0. `names` are those of the header, if there is one."""

    count: int
    names: tuple[str, ...] | None
    keys: tuple[int, ...]
    values: tuple[int, ...]
    dtypes: tuple[np.dtype, ...]
    lines_before_data: int
    bytes_before_data: int
    limits: tuple[int, ...] | None
    lowest: int
    allow_nan: bool

    @property
    def header(self) -> bool:
        """Whether the first line names the columns."""
        return self.names is not None

    def label(self, column: int) -> str:
        """How messages call a column: counted from 1, as lines are, with its name."""
        return f"column {column + 1}" + (f" ({self.names[column]!r})" if self.names else "")


def find_columns(
    path: str,
    first: Row,
    *,
    keys: Column | Sequence[Column],
    values: Column | Sequence[Column],
    header: bool | None,
    dtypes: tuple[np.dtype, ...],
    limits: tuple[int, ...] | None,
    lowest: int,
    allow_nan: bool,
) -> Columns:
    """Resolve `keys` and `values` against the first line of the file. `DataFormatError` if a column is not
    there.
    """
    wanted_keys, wanted_values = _as_tuple(keys), _as_tuple(values)
    wanted = (*wanted_keys, *wanted_values)
    if not wanted_keys or not wanted_values or len(set(wanted)) < len(wanted):
        raise ArgumentError(describe(f"keys={keys!r} and values={values!r} do not name different columns"))
    if limits is not None and len(limits) != len(wanted_keys):
        raise ArgumentError(f"the shape {limits} has {len(limits)} dimensions, there are {len(wanted_keys)} keys")
    by_name = any(isinstance(c, str) for c in wanted)
    if header is False and by_name:
        raise ArgumentError(
            describe("columns are asked for by name, but header=False", hint="count columns from 0 instead")
        )
    has_header = header if header is not None else by_name or _is_header(first, wanted)
    names = tuple(f.strip() for f in first.fields) if has_header else None
    return Columns(
        count=len(first.fields),
        names=names,
        keys=tuple(_position(path, first, names, c) for c in wanted_keys),
        values=tuple(_position(path, first, names, c) for c in wanted_values),
        dtypes=dtypes,
        lines_before_data=first.line.number if has_header else first.line.number - 1,
        bytes_before_data=first.line.end if has_header else first.line.start,
        limits=limits,
        lowest=lowest,
        allow_nan=allow_nan,
    )


def _as_tuple(columns: Column | Sequence[Column]) -> tuple[Column, ...]:
    return (columns,) if isinstance(columns, str | int) else tuple(columns)


def _is_header(first: Row, wanted: tuple[Column, ...]) -> bool:
    """Whether no entry asked for is a number: one bad id in the first line does not make it a header."""
    entries = [first.fields[c] for c in wanted if isinstance(c, int) and c < len(first.fields)]
    return bool(entries) and not any(_is_number(entry) for entry in entries)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _position(path: str, first: Row, names: tuple[str, ...] | None, column: Column) -> int:
    count = len(first.fields)
    if isinstance(column, int):
        if 0 <= column < count:
            return column
        found = f"no column at position {column}: its lines have {count}, counted from 0"
    else:
        assert names is not None
        if names.count(column) == 1:
            return names.index(column)
        found = f"{'no' if column not in names else 'more than one'} column {column!r}"
    raise DataFormatError(
        describe(
            f"{path}, line {first.line.number}: {found}\n    | {first.text[:100]}",
            hint="if the columns are separated by something else, say sep=",
        )
    )
