"""Why the array of another library is not taken, and what to pass instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from orion.arrays.foreign import memory_of, obstacle, told, why_not
from orion.dataclass import dataclass
from orion.ir.cures import Used, hold, other_dtype, other_kind, there_and_back

PROTOCOLS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__", "__array__")


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is wrong with an argument, why, and what to write instead."""

    what: str
    why: str
    hint: str


def is_foreign(value: object) -> bool:
    """Whether an object says by its type that it is an array, or has a memory as bytes have. A data frame is none: its
    elements are no `frame[i, j]`."""
    is_array = any(hasattr(type(value), name) for name in PROTOCOLS) or _has_buffer(value)
    return is_array and not isinstance(value, np.ndarray | np.generic) and told(value, "columns") is None


def kind_of(value: object) -> str:
    """The type of an object with its package, and an article.

    >>> from array import array
    >>> kind_of(bytearray(b"ab")), kind_of(array("d"))
    ('a bytearray', 'an array.array')
    """
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    name = kind.__name__ if package in ("builtins", "__main__") else f"{package}.{kind.__name__}"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def refused(name: str, value: Any, used: Used, supported: str) -> Refusal | None:
    """Why a foreign array is not taken; None for an object that is none. `supported` lists the dtypes that are."""
    if not is_foreign(value):
        return None
    match obstacle(value):
        case "gradients":
            what = "requires gradients, which loops of Orion do not record"
            return Refusal(what, "", f"pass `{name}.detach()`, which is the same memory")
        case "device":
            device = told(value, "device") or "another device"
            return Refusal(f"is on {device}, and loops run on the CPU", "", _from_device(name, value, used))
        case "neg" | "conj" as bit:
            verb = {"neg": "negated", "conj": "conjugated"}[bit]
            why = "compiled loops read memory as it is"
            return Refusal(
                f"has elements that are {verb} when they are read", why, hold(name, f"{name}.resolve_{bit}()", used)
            )
    return _of_memory(name, value, used, supported)


def read_only(name: str, value: Any, used: Used) -> Refusal:
    """What to say of a foreign array that nobody may change, and that a loop writes."""
    if isinstance(value, bytes):
        hint = hold(name, f"bytearray({name})", used)
    else:
        hint = _other_kind(name, value, used)
    return Refusal(f"is {kind_of(value)} that cannot be changed in place, and the loop writes it", "", hint)


def copy_of(name: str, value: Any) -> str:
    """What makes a NumPy array of its own of a foreign one.

    >>> copy_of("x", bytearray(b"ab"))
    'np.array(x)'
    """
    has_dlpack_alone = is_foreign(value) and not _is_array_of_numpy(value)
    return f"np.from_dlpack({name}).copy()" if has_dlpack_alone else f"np.array({name})"


def with_copies(text: str, owners: Mapping[str, Any]) -> str:
    """What is said of NumPy arrays, with what copies those that are views of foreign ones, by name.

    >>> with_copies("pass `a.copy()` for `a`", {"a": bytearray(b"ab")})
    'pass `np.array(a)` for `a`'
    """
    for name, owner in owners.items():
        text = re.sub(rf"(?<![\w.]){re.escape(name)}\.copy\(\)", copy_of(name, owner), text)
    return text


def _of_memory(name: str, value: Any, used: Used, supported: str) -> Refusal:
    kind, hint = kind_of(value), _other_kind(name, value, used)
    layout = str(told(value, "layout"))
    if layout.endswith(("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")):
        what = f"is {kind} of the layout {layout}, which is no dense array"
        return Refusal(what, "", hold(name, f"{name}.to_dense()", used))
    found = next(memory_of(value), None)
    if found is not None and not found[0].ndim:
        plain = copy_of(name, value).removesuffix(".copy()")
        number = f"{name}.value" if told(value, "value") is not None else f"{plain}.item()"
        return Refusal(f"is {kind} without dimensions", "", f"pass the number, `{number}`")
    dtype = told(value, "dtype")
    if dtype is None and found is not None:
        dtype = found[0].dtype
    is_other = found is not None or "dtype" in why_not(value)
    if dtype is not None and is_other:
        what = f"is {kind} of dtype {dtype}"
        return Refusal(what, f"compiled loops work on {supported}", _of_dtype(name, value, str(dtype), used) or hint)
    why = why_not(value) or "NumPy cannot view its elements without a copy"
    return Refusal(f"is {kind} whose memory cannot be viewed", why, hint)


def _other_kind(name: str, value: Any, used: Used) -> str:
    is_column = all(told(value, one) is not None for one in ("to_numpy", "index", "dtype"))
    return other_kind(name, value, used) if is_column else hold(name, copy_of(name, value), used)


def _of_dtype(name: str, value: Any, dtype: str, used: Used) -> str:
    """What to write for a dtype that compiled loops do not have, where that is known."""
    if any(word in dtype for word in ("float16", "float8", "float4")):  # single precision has all of their values
        plain = copy_of(name, value).removesuffix(".copy()")
        is_own = callable(told(value, "float"))
        return hold(name, f"{name}.float()" if is_own else f"{plain}.astype(np.float32)", used)
    if "U" in dtype:
        return other_dtype(name, np.dtype(dtype), "array", used)
    return hold(name, f"{copy_of(name, value)}.astype(float)", used) if dtype.startswith((">", "<")) else ""


def _from_device(name: str, value: Any, used: Used) -> str:
    for there, back in (("cpu()", "copy_"), ("get()", "set"), ("copy_to_host()", "copy_to_device")):
        if told(value, there.removesuffix("()")) and told(value, back):
            return there_and_back(name, f"{name}.{there}", f"{name}.{back}({name}_array)", used)
    return hold(name, f"np.array({name})", used)


def _is_array_of_numpy(value: Any) -> bool:
    """Whether `np.array` of it has its elements."""
    return any(hasattr(value, one) for one in ("__array__", "__array_interface__")) or _has_buffer(value)


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True
