"""Signatures of loops, as Numba writes them: `float64[:, :], int64`. Read, and made into arguments of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from orion.dataclass import dataclass
from orion.ir.signature import SUPPORTED

PYTHON = {"int64": int, "float64": float, "bool": bool, "complex128": complex}
"""The scalars that Python's own numbers are."""

OTHER_NAMES = {"boolean": "bool", "intp": "int64", "uintp": "uint64", "int": "int64", "float": "float64",
               "complex": "complex128"}  # fmt: skip
ONE = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(?:=\s*(-?\d+)\s*)?")
WHOLE = re.compile(r"\s*(?:\w+\s*(?:\[[^\]]*\])?)?\s*\((.*)\)\s*")
BETWEEN = re.compile(r",(?![^\[]*\])")

ELEMENTS = (100, 10_000, 1_000_000, 10_000_000)
"""About so many elements the largest arrays of the calls have that a signature without sizes stands for."""

FEW = (2, 1)
"""Values of integers beside the lengths of arrays."""


class SignatureError(ValueError):
    """A signature that cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An argument of a signature: its dtype; the dimensions of an array, each a length, or None where that is open;
    `order` "C", "F", or "A" for any; the value of an integer, if one is said."""

    dtype: str
    dims: tuple[int | None, ...] | None = None
    order: str = "A"
    value: int | None = None

    @property
    def is_array(self) -> bool:
        """Whether it is an array."""
        return self.dims is not None


def parse_signature(signature: str | Sequence[str]) -> tuple[Wanted, ...]:
    """Return the arguments of a signature: a text, or a text for each argument. SignatureError where it is none.

    >>> [one.dims for one in parse_signature("float64[:, 512], int64")]
    [(None, 512), None]
    >>> parse_signature(("float32[::1]", "int64=10")) == parse_signature("void(float32[::1], int64=10)")
    True
    """
    if isinstance(signature, str):
        whole = WHOLE.fullmatch(signature)
        signature = BETWEEN.split(whole[1] if whole else signature)
    return tuple(_argument(text) for text in signature if text.strip())


def _argument(text: str) -> Wanted:
    found = ONE.fullmatch(text)
    name = found and OTHER_NAMES.get(found[1], found[1])
    if found is None or name not in SUPPORTED:
        raise SignatureError(
            f"`{text.strip()}` is no argument of a signature: write a dtype, as `int64`, or an array of one, as "
            f"`float64[:, :]`; dtypes are {', '.join(SUPPORTED)}"
        )
    if found[2] is None:
        return Wanted(name, value=None if found[3] is None else int(found[3]))
    dims = [part.strip() for part in found[2].split(",")]
    if not all(part in (":", "::1") or part.isdecimal() for part in dims) or found[3] or dims.count("::1") > 1:
        raise SignatureError(f"`{text.strip()}`: each dimension is `:`, `::1` for elements in a row, or a length")
    inner = [number for number, part in enumerate(dims) if part == "::1"]
    if inner not in ([], [0], [len(dims) - 1]):
        raise SignatureError(f"`{text.strip()}`: `::1` is the first or the last dimension")
    order = "A" if not inner else "C" if inner[0] == len(dims) - 1 else "F"
    return Wanted(name, tuple(int(part) if part.isdecimal() else None for part in dims), order)


# ------------------------------------------------------------ calls


def calls_of(wanted: Sequence[Wanted]) -> Iterator[tuple[Any, ...]]:
    """Yield arguments of the calls that a signature stands for: of a few sizes where it says none, each with integers
    of the length of arrays and small ones, with all arrays in C order and, where any will do, with none."""
    orders = ("C", "A") if any(one.is_array and one.order == "A" for one in wanted) else ("C",)
    most = max((len(one.dims or ()) for one in wanted), default=0)
    is_open = any(None in (one.dims or ()) for one in wanted)
    lengths = [round(elements ** (1 / most)) for elements in ELEMENTS] if is_open else [1]
    for length, order in product(lengths, orders):
        for number in _numbers(wanted, length):
            yield tuple(_made(one, length, order, number) for one in wanted)


def _numbers(wanted: Sequence[Wanted], length: int) -> Sequence[int]:
    """The values for integers without one."""
    is_asked = any(not one.is_array and one.value is None and one.dtype in ("int64", "int32") for one in wanted)
    lengths = sorted({size for one in wanted for size in (one.dims or ()) if size is not None}, reverse=True)
    return (*(lengths or [length]), *FEW) if is_asked else (1,)


def _made(wanted: Wanted, length: int, order: str, number: int) -> Any:
    """An argument. Arrays are zeros, whose memory is not there until something reads it; those of integers count up, as
    they may be subscripts."""
    if wanted.dims is None:
        value = number if wanted.value is None and np.dtype(wanted.dtype).kind in "iu" else wanted.value or 1
        return PYTHON.get(wanted.dtype, np.dtype(wanted.dtype).type)(value)
    shape = tuple(length if size is None else size for size in wanted.dims)
    if order == "A" and wanted.order == "A":
        array = np.zeros((*shape[:-1], 2 * shape[-1]), wanted.dtype)[..., ::2]
    else:
        array = np.zeros(shape, wanted.dtype, order="F" if wanted.order == "F" else "C")
    if array.dtype.kind in "iu":
        array[...] = (np.arange(array.size) % min(shape)).reshape(shape)
    return array
