"""What to write instead of an argument that a loop cannot work on.

Loops change arrays in place. So what is told either works on the memory of what the user holds, or has the user hold
what the loop changes: "pass a copy" alone would throw the result away. Looks at values, which only errors may.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SUPPORTED_KINDS = "biufc"
TOGETHER = "; texts of two arrays that the loop compares need one numbering, that of both joined by np.concatenate"


def hold(name: str, made: str) -> str:
    """The hint to hold another array from then on.

    >>> hold("a", "a.copy()")
    'write `a = a.copy()` before the call, and use that from then on: the loop changes it in place'
    """
    return f"write `{name} = {made}` before the call, and use that from then on: the loop changes it in place"


def _there_and_back(name: str, made: str, back: str) -> str:
    what = f"write `{name}_array = {made}` before the call and pass `{name}_array`"
    return f"{what}; `{back}` then brings back what the loop has written"


def _same_memory(made: str, more: str = "") -> str:
    return f"pass `{made}`, which is the same memory{more}"


def other_dtype(name: str, dtype: np.dtype[Any], word: str) -> str:
    """What to write for a number or an array, `word` says which, of a dtype that compiled loops do not work on."""
    match word:
        case "scalar":
            return _scalar(name, dtype)
        case "dense array":
            return _dtype_of_array(f"{name}.view", dtype)
    return _dtype_of_array(name, dtype)


def _scalar(name: str, dtype: np.dtype[Any]) -> str:
    match dtype.kind:
        case "c":
            return f"pass `complex({name})`"
        case "f":
            return f"pass `float({name})`"
        case "M" | "m":
            return f"pass `int({name}.view(np.int64))`"
    return "pass a number that stands for it"


def _dtype_of_array(name: str, dtype: np.dtype[Any]) -> str:
    if dtype.names:
        return _same_memory(f"{name}[{dtype.names[0]!r}]", ", and so each field that the loop uses")
    match dtype.kind:
        case "O":
            more = "; complex numbers and other dtypes likewise, and texts are numbered first"
            return hold(name, f"{name}.astype(float)") + more
        case "c":
            return hold(name, f"{name}.astype(np.complex128)")
        case "U" | "S":
            made = f"np.unique({name}, return_inverse=True)"
            return f"number its texts, `{name}_texts, {name}_array = {made}`, and pass `{name}_array`{TOGETHER}"
        case "M" | "m":
            return _same_memory(f"{name}.view(np.int64)", " as numbers")
        case "f":
            return hold(name, f"{name}.astype(np.{'float32' if dtype.itemsize < 4 else 'float64'})")
    return hold(name, f"{name}.astype(np.float64)") + "; of other dtypes likewise"


def other_kind(name: str, value: Any) -> str:
    """What to write for an argument that is neither a number nor an array."""
    match value:
        case list() | tuple() | range():
            return _sequence(name, value)
        case dict():
            return f"pass arrays, indexed by integers: `np.array(list({name}.values()))`, say"
        case str():
            return "pass a number that stands for it"
        case None:
            return "pass a number, such as -1 or np.nan; in place of an array, one that changes nothing: `np.ones(n)`"
        case np.ma.MaskedArray():
            mask = f"np.ma.getmaskarray({name})"
            return _same_memory(f"{name}.data", f"; what is masked is `{mask}`, an argument of its own")
        case np.ndarray():
            return _same_memory(f"np.asarray({name})")
    if hasattr(value, "tocoo"):
        return f"pass `orion.from_scipy({name})`, made once, before the loops that use it"
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        return _frame(name, value)
    if hasattr(value, "to_numpy") and hasattr(value, "index") and hasattr(value, "dtype"):
        return _series(name, value)
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return _foreign_array(name, value)
    return "pass the numbers and arrays that it holds"


def _sequence(name: str, value: Any) -> str:
    try:
        kind = np.array(value).dtype.kind
    except ValueError:
        rows = f"`{name}_array, {name}_starts = np.concatenate({name}), np.cumsum([0, *map(len, {name})])`"
        return f"its rows differ in length: pass them as one array, and where each of them starts, {rows}"
    made = f"np.array({name})"
    if isinstance(value, list):
        back = f"{name}[:] = {name}_array.tolist()"
        return _there_and_back(name, made, back) + (" (dtype=float for fractions)" if kind in "iu" else "")
    return f"pass its items one by one, or {hold(name, made)}"


def _frame(name: str, value: Any) -> str:
    kinds = set(value.dtypes)
    if len(kinds) == 1 and isinstance(kind := kinds.pop(), np.dtype) and kind.kind in SUPPORTED_KINDS:
        return _there_and_back(name, f"np.array({name})", f"{name}[:] = {name}_array")
    column = f"{name}[{value.columns[0]!r}]"
    text = _there_and_back(name, f"np.array({column})", f"{column} = {name}_array")
    return f"pass the columns that the loop uses, one by one: {text}"


def _series(name: str, value: Any) -> str:
    kind = getattr(value.dtype, "kind", "O")
    if kind not in SUPPORTED_KINDS:
        made = f"np.unique({name}, return_inverse=True)"
        return f"number its entries, `{name}_texts, {name}_array = {made}`, and pass `{name}_array`{TOGETHER}"
    made = f"np.array({name})" if isinstance(value.dtype, np.dtype) else f"np.array({name}, dtype=float)"
    text = _there_and_back(name, made, f"{name}[:] = {name}_array")
    return f"{text} (into a frame: `frame[{value.name!r}] = {name}_array`)" if isinstance(value.name, str) else text


def _foreign_array(name: str, value: Any) -> str:
    try:
        writeable = np.asarray(value).flags.writeable and np.shares_memory(np.asarray(value), np.asarray(value))
    except Exception:  # whatever the object's own conversion raises
        writeable = False
    return _same_memory(f"np.asarray({name})") if writeable else hold(name, f"np.array({name})")
