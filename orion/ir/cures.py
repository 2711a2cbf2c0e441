"""What to write instead of an argument that a loop cannot work on.

Loops change arrays in place. So what is told either works on the memory of what the user holds, or has the user hold
what the loop changes: "pass a copy" alone would throw the result away. Looks at values, which only errors may.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from orion.dataclass import dataclass
from orion.ir.matrix_cures import Stored, of_matrix
from orion.ir.types import SparseType

SUPPORTED_KINDS = "biufc"
TOGETHER = "; texts of two arrays that the loop compares need one numbering, that of both joined by np.concatenate"


@dataclass(frozen=True, slots=True)
class Used:
    """What a function does with an argument (`orion.passes.argument_uses`): it may write its elements, and makes
    subscripts or bounds of ranges of them. `is_iterated`: it goes through it as through a sparse array; `stored`: how
    it stores elements of a matrix."""

    is_written: bool = True
    is_index: bool = False
    is_iterated: bool = False
    stored: Stored | None = None


UNKNOWN = Used()
"""What is said where nobody knows the function."""


def hold(name: str, made: str, used: Used = UNKNOWN) -> str:
    """The hint to hold another array from then on.

    >>> hold("a", "a.copy()")
    'write `a = a.copy()` before the call, and use that from then on: the loop changes it in place'
    """
    what = f"write `{name} = {made}` before the call"
    return f"{what}, and use that from then on: the loop changes it in place" if used.is_written else what


def over_elements(array: str, kind: SparseType, keys: tuple[str, ...] = ()) -> str:
    """The header of a loop over the elements of a sparse array, whose keys it calls so where they are given.

    >>> over_elements("ratings", SparseType(2, "int32", ("float64", "int8"), single=False))
    'for (i, j), (v0, v1) in ratings:'
    """
    names = ", ".join(keys or "ijklmnop"[: kind.ndim])
    values = "value" if kind.single else f"({', '.join(f'v{k}' for k in range(len(kind.value_dtypes)))})"
    return f"for {names if kind.ndim == 1 else f'({names})'}, {values} in {array}:"


def there_and_back(name: str, made: str, back: str, used: Used) -> str:
    """The hint to pass another array, and to bring its elements back where the loop has written them."""
    what = f"write `{name}_array = {made}` before the call and pass `{name}_array`"
    return f"{what}; `{back}` then brings back what the loop has written" if used.is_written else what


def _same_memory(made: str, more: str = "") -> str:
    return f"pass `{made}`, which is the same memory{more}"


def other_dtype(name: str, dtype: np.dtype[Any], word: str, used: Used = UNKNOWN) -> str:
    """What to write for a number or an array, `word` says which, of a dtype that compiled loops do not work on."""
    match word:
        case "scalar":
            return _scalar(name, dtype)
        case "dense array":
            return _dtype_of_array(f"{name}.view", dtype, used)
    return _dtype_of_array(name, dtype, used)


def _scalar(name: str, dtype: np.dtype[Any]) -> str:
    match dtype.kind:
        case "c":
            return f"pass `complex({name})`"
        case "f":
            return f"pass `float({name})`"
        case "M" | "m":
            return f"pass `int({name}.view(np.int64))`"
    return "pass a number that stands for it"


def _dtype_of_array(name: str, dtype: np.dtype[Any], used: Used) -> str:
    if dtype.names:
        return _same_memory(f"{name}[{dtype.names[0]!r}]", ", and so each field that the loop uses")
    match dtype.kind:
        case "c":
            return hold(name, f"{name}.astype(np.complex128)", used)
        case "U" | "S":
            return _numbered(name)
        case "M" | "m":
            return _same_memory(f"{name}.view(np.int64)", " as numbers")
        case "f":
            return hold(name, f"{name}.astype(np.{'float32' if dtype.itemsize < 4 else 'float64'})", used)
    return hold(name, f"{name}.astype(np.float64)", used) + "; of other dtypes likewise"


def _numbered(name: str) -> str:
    made = f"np.unique({name}, return_inverse=True)"
    return f"number its texts, `{name}_texts, {name}_array = {made}`, and pass `{name}_array`{TOGETHER}"


# ---------------------------------------------------------------- Python objects as elements

DTYPES = {"b": "bool", "i": "np.int64", "u": "np.uint64", "f": "float", "c": "complex"}
"""What to convert Python's numbers to, by the kind of array that NumPy makes of them."""


def of_objects(name: str, array: np.ndarray[Any, Any], used: Used = UNKNOWN) -> str:
    """What to write for an array of objects, by what these are.

    >>> of_objects("a", np.array([1, 2], object), Used(is_written=False))
    'write `a = a.astype(np.int64)` before the call'
    """
    items = array.ravel().tolist()
    if any(map(_is_row, items)):
        return "its elements are rows: " + _in_one_array(name, items)
    if items and all(isinstance(item, str | bytes) for item in items):
        return _numbered(name)
    dtype = _dtype_for(items, used)
    if dtype is None:
        return "pass the numbers that its elements hold, in an array for each of their attributes"
    return hold(name, f"{name}.astype({dtype})", used)


def _dtype_for(items: list[Any], used: Used) -> str | None:
    """The dtype that holds some objects; None where they are not numbers."""
    kind = np.array(items, dtype=None if items else float).dtype.kind
    if kind in "fO" and used.is_index and all(isinstance(item, float | int) and item == item // 1 for item in items):
        return DTYPES["i"]
    if kind in DTYPES:
        return DTYPES[kind]
    try:
        np.array(items, dtype=object).astype(float)  # fractions, None for what is missing
    except (TypeError, ValueError, OverflowError):
        return None
    return DTYPES["f"]


def _is_row(item: Any) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, str | bytes)


def _in_one_array(name: str, rows: list[Any]) -> str:
    """What to write for rows of their own lengths."""
    held = [list(row) if _is_row(row) else [row] for row in rows]
    joined = name if all(isinstance(row, list | tuple | np.ndarray) for row in rows) else f"[*map(list, {name})]"
    made = f"np.concatenate({joined})"
    integers = {np.array(row).dtype.kind for row in held if row} <= {"i", "u"}
    if integers and not all(held):  # of an empty list NumPy makes floats
        made += ".astype(np.int64)"
    both = f"`{name}_array, {name}_starts = {made}, np.cumsum([0, *map(len, {name})])`"
    row = f"`{name}_array[{name}_starts[i]:{name}_starts[i + 1]]`"
    return f"pass them as one array, and where each of them starts, {both}; {row} is then `{name}[i]`"


def other_kind(name: str, value: Any, used: Used = UNKNOWN) -> str:
    """What to write for an argument that is neither a number nor an array."""
    if hasattr(value, "tocoo"):  # some of SciPy's matrices are dicts
        return of_matrix(name, getattr(value, "format", ""), is_iterated=used.is_iterated, stored=used.stored)
    match value:
        case list() | tuple() | range():
            return _sequence(name, value, used)
        case dict():
            return _dict(name, value)
        case str():
            text = f"`np.frombuffer({name}.encode(), np.uint8)`, an array of its characters where they are ASCII"
            return f"pass {text}, or a number that stands for the whole"
        case None:
            return "pass a number, such as -1 or np.nan; in place of an array, one that changes nothing: `np.ones(n)`"
        case np.ma.MaskedArray():
            mask = f"np.ma.getmaskarray({name})"
            return _same_memory(f"{name}.data", f"; what is masked is `{mask}`, an argument of its own")
        case np.ndarray():
            return _same_memory(f"np.asarray({name})")
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        return _frame(name, value, used)
    if hasattr(value, "to_numpy") and hasattr(value, "index") and hasattr(value, "dtype"):
        return _series(name, value, used)
    return _object(name, value)


def _object(name: str, value: Any) -> str:
    """What to write for an object that is no array: as a number, where it is one."""
    if isinstance(value, slice):
        numbers = f"`start, stop, step = {name}.indices(len(a))`"
        return f"pass its numbers, {numbers}, and write `a[start:stop:step]` in the function"
    for method in ("total_seconds", "timestamp"):
        if callable(getattr(value, method, None)):
            return f"pass a number, `{name}.{method}()`"
    if hasattr(value, "__float__"):
        return f"pass `float({name})`"
    return "pass the numbers and arrays that it holds"


def _dict(name: str, value: dict[Any, Any]) -> str:
    items = [*value.values()]
    kind = np.array(items, dtype=None if items else float).dtype.kind if not any(map(_is_row, items)) else "O"
    if kind not in DTYPES:
        return "pass arrays, indexed by integers, of the numbers that it holds"
    return f"pass arrays, indexed by integers: `np.array(list({name}.values()), dtype={DTYPES[kind]})`, say"


def _sequence(name: str, value: Any, used: Used) -> str:
    try:
        kind = np.array(value).dtype.kind
    except ValueError:
        return "its rows differ in length: " + _in_one_array(name, [*value])
    if kind == "O" and any(map(_is_row, value)):
        return "its items are rows: " + _in_one_array(name, [*value])
    made = f"np.array({name})"
    if isinstance(value, list):
        text = there_and_back(name, made, f"{name}[:] = {name}_array.tolist()", used)
        return text + (" (dtype=float for fractions)" if kind in "iu" and used.is_written else "")
    return f"pass its items one by one, or {hold(name, made, used)}"


def _frame(name: str, value: Any, used: Used) -> str:
    kinds = set(value.dtypes)
    if len(kinds) == 1 and isinstance(kind := kinds.pop(), np.dtype) and kind.kind in SUPPORTED_KINDS:
        return there_and_back(name, f"np.array({name})", f"{name}[:] = {name}_array", used)
    column = f"{name}[{value.columns[0]!r}]"
    text = there_and_back(name, f"np.array({column})", f"{column} = {name}_array", used)
    return f"pass the columns that the loop uses, one by one: {text}"


def _series(name: str, value: Any, used: Used) -> str:
    kind = getattr(value.dtype, "kind", "O")
    if kind not in SUPPORTED_KINDS:
        made = f"np.unique({name}, return_inverse=True)"
        return f"number its entries, `{name}_texts, {name}_array = {made}`, and pass `{name}_array`{TOGETHER}"
    made = f"np.array({name})" if isinstance(value.dtype, np.dtype) else f"np.array({name}, dtype=float)"
    text = there_and_back(name, made, f"{name}[:] = {name}_array", used)
    is_column = used.is_written and isinstance(value.name, str)
    return f"{text} (into a frame: `frame[{value.name!r}] = {name}_array`)" if is_column else text
