"""The type of a value in a loop: dtype, rank and lengths."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orion.loop.dtypes import Kind, promote
from orion.loop.ir import Const, Expr
from orion.loop.spans import NOWHERE


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


INT = ValueType("int64", weak=True)
FLOAT = ValueType("float64", weak=True)
BOOL = ValueType("bool", weak=True)
NONE = ValueType("none")
ONE = Const(1, NOWHERE)


def scalar(kind: Kind) -> ValueType:
    return ValueType(kind.dtype, kind.weak)


def shaped(kind: Kind, like: ValueType) -> ValueType:
    """A value of that kind with the rank and lengths of `like`; the elements of an array are never weak."""
    return ValueType(kind.dtype, kind.weak and like.rank == 0, like.rank, like.lengths)


def join(first: ValueType, second: ValueType) -> ValueType | None:
    """The type of a name that is given values of both types; None where there is none.

    >>> join(FLOAT, ValueType("float32"))
    ValueType(dtype='float32', weak=False, rank=0, lengths=(), items=())
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
    kind = promote(first.kind, second.kind)
    lengths = tuple(a if a == b else None for a, b in zip(first.lengths, second.lengths, strict=True))
    return ValueType(kind.dtype, kind.weak, first.rank, lengths)


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
