"""The type of a value in a loop: dtype, rank and lengths."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import reduce

import numpy as np

from orion.dataclass import dataclass, replace
from orion.ir.nodes import Const, Expr, Unary, Var
from orion.ir.spans import NOWHERE
from orion.typing.dtypes import Kind, promote


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of one value.

    `dtype` is a NumPy dtype name, "none" for None, or "tuple" (then `items` are the types of its parts). A
    `weak` value is a Python scalar: it takes the dtype of what it meets. `rank` is 0 for a scalar, 1 for a row,
    2 for a matrix. `lengths` has an entry per axis: an expression without spans such as `Dim("W", 1)`, so that
    equal lengths compare equal; None where it is not known.
    """

    dtype: str
    weak: bool = False
    rank: int = 0
    lengths: tuple[Expr | None, ...] = ()
    items: tuple[ValueType, ...] = ()

    @property
    def kind(self) -> Kind:
        return Kind(self.dtype, self.weak)

    @property
    def is_integer(self) -> bool:
        return self.dtype.startswith(("int", "uint"))

    @property
    def fits_int64(self) -> bool:
        """Whether it is an integer that 64 bits with a sign hold."""
        return self.is_integer and self.dtype != "uint64"

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")


INT = ValueType("int64", weak=True)
FLOAT = ValueType("float64", weak=True)
COMPLEX = ValueType("complex128", weak=True)
BOOL = ValueType("bool", weak=True)
NONE = ValueType("none")
ONE = Const(1, NOWHERE)


def scalar(kind: Kind) -> ValueType:
    return ValueType(kind.dtype, kind.weak)


def as_row(kind: ValueType) -> ValueType:
    """A tuple of numbers as the row that NumPy makes of it; any other value as it is."""
    if not kind.items:
        return kind
    dtype = np.result_type(*(part.dtype for part in kind.items)).name
    return ValueType(dtype, False, 1, (Const(len(kind.items), NOWHERE),))


def shaped(kind: Kind, like: ValueType) -> ValueType:
    """A value of that kind with the rank and lengths of `like`; the elements of an array are never weak."""
    return ValueType(kind.dtype, kind.weak and like.rank == 0, like.rank, like.lengths)


Limits = tuple[int, int]
"""The smallest and the largest of some integers."""


def join(first: ValueType, second: ValueType, limits: Limits | None = None) -> ValueType | None:
    """The type of a name that is given values of both types; None where there is none.

    `limits` are those of the values of a Python integer, where they are known. One that may not fit the narrow integer
    that it shares a name with stays a Python integer: nothing is computed, so that NumPy's promotion does not apply.

    >>> join(FLOAT, ValueType("float32"))
    ValueType(dtype='float32', weak=False, rank=0, lengths=(), items=())
    >>> join(INT, ValueType("uint8"), (0, 9)).dtype, join(INT, ValueType("uint8"), (0, 999)).dtype
    ('uint8', 'int64')
    """
    if first == second:
        return first
    if first.rank != second.rank or len(first.items) != len(second.items):
        return None
    if "tuple" in (first.dtype, second.dtype):
        items = [join(a, b) for a, b in zip(first.items, second.items, strict=True)]
        known = tuple(item for item in items if item is not None)
        return replace(first, items=known) if len(known) == len(items) else None
    if "none" in (first.dtype, second.dtype):
        return None
    kind = INT.kind if _outgrows(first, second, limits) else promote(first.kind, second.kind)
    lengths = tuple(a if a == b else None for a, b in zip(first.lengths, second.lengths, strict=True))
    return ValueType(kind.dtype, kind.weak, first.rank, lengths)


def _outgrows(first: ValueType, second: ValueType, limits: Limits | None) -> bool:
    """Whether one is a Python integer that may not fit the other, an integer of fewer than 64 bits."""
    python, other = (first, second) if first.weak else (second, first)
    if python != INT or other.weak or not other.is_integer or np.dtype(other.dtype).itemsize == 8:
        return False
    room = dtype_limits(other.dtype)
    return limits is None or not (room[0] <= limits[0] and limits[1] <= room[1])


def dtype_limits(dtype: str) -> Limits:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def literal_limits(expr: Expr) -> Limits | None:
    """The value of an integer constant, twice; None for any other expression."""
    match expr:
        case Const(int(value)):
            return int(value), int(value)
        case Unary("-", Const(int(value))):
            return -int(value), -int(value)
        case _:
            return None


def join_limits(first: Limits | None, second: Limits | None) -> Limits | None:
    return None if first is None or second is None else (min(first[0], second[0]), max(first[1], second[1]))


def join_values(types: Sequence[ValueType], values: Sequence[Expr], single: Set[str]) -> ValueType | None:
    """The type of a value that is one of several, such as `a if test else b`; None where there is none."""
    weak = [literal_limits(value) for kind, value in zip(types, values, strict=True) if kind == INT]
    limits = reduce(join_limits, weak) if weak else None
    found, *others = sorted(types, key=lambda kind: kind.weak)  # narrow integers first, so that limits hold for all
    for other in others:
        joined = join(found, other, limits)
        if joined is None:
            return None
        found = joined
    fits = all(not kind.weak or fits_single(value, single) for kind, value in zip(types, values, strict=True))
    return found if fits else not_single(found)


def fits_single(value: Expr | None, single: Set[str]) -> bool:
    """Whether a Python number is known to be one of single precision: a constant, an integer one exactly, or one of the
    names `single`, which are given such alone."""
    match value:
        case Var(name):
            return name in single
        case Const(int(number)):
            return int(np.float32(number)) == number
        case Const(float() | complex() as number):
            parts = np.array([np.real(number), np.imag(number)])
            return bool((np.isfinite(parts.astype(np.float32)) | ~np.isfinite(parts)).all())
        case Unary("-" | "+", operand):
            return fits_single(operand, single)
        case _:
            return False


def not_single(kind: ValueType) -> ValueType:
    """The type of a scalar that is one of NumPy's of single precision in some places and a Python number in others that
    may not fit it: a Python number, of double precision. Others are left as they are.

    >>> not_single(ValueType("float32")).dtype, not_single(ValueType("int8")).dtype
    ('float64', 'int8')
    """
    found = {"float32": FLOAT, "complex64": COMPLEX}.get(kind.dtype)
    return kind if found is None or kind.rank or kind.weak else found


def broadcast(*values: ValueType) -> ValueType:
    """The shape of an element-by-element operation (its dtype is to be replaced); ValueError where shapes do not fit.

    Of two different symbolic lengths the first is taken; that they are equal is to be checked when the loop is called.
    """
    rank = max(value.rank for value in values)
    lengths: list[Expr | None] = []
    for axis in range(-rank, 0):
        lengths.append(_common([value.lengths[axis] for value in values if value.rank >= -axis]))
    return ValueType("", rank=rank, lengths=tuple(lengths))


def _common(lengths: list[Expr | None]) -> Expr | None:
    longer = [length for length in lengths if length != ONE]
    if not longer:
        return ONE
    fixed = {length.value for length in longer if isinstance(length, Const)}
    if len(fixed) > 1:
        raise ValueError(" and ".join(str(value) for value in sorted(fixed, key=str)))
    known = [length for length in longer if length is not None]
    return known[0] if known else None


def fits(value: complex, dtype: str) -> bool:
    """Whether NumPy converts a Python number to the dtype rather than raise an OverflowError.

    >>> fits(300, "uint8"), fits(2.5, "uint8"), fits(np.inf, "int64"), fits(1e300, "float32")
    (False, True, False, True)
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iu":
        return True
    limits = np.iinfo(kind)
    assert not isinstance(value, complex)
    return bool(np.isfinite(value)) and int(limits.min) <= int(value) <= int(limits.max)
