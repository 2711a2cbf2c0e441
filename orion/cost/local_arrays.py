"""The sizes of the arrays that a function makes, from those of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from orion.cost.extents import evaluated, parameter_values
from orion.cost.sizes import Sizes
from orion.dataclass import dataclass, replace
from orion.errors import ArgumentError, UnsupportedLoopError, describe
from orion.ir.function import Function, LocalArray
from orion.ir.nodes import INTEGER, NARROW, Call, Const, Count, Expr, names_in
from orion.ir.printer import print_expr
from orion.ir.refuse import as_said, unsupported
from orion.ir.rewriting import rewrite
from orion.ir.types import Shapes
from orion.source import Span


@dataclass(frozen=True, slots=True)
class SizedLocalArray:
    """An array that the function makes, in memory that all workers share. `shape` and `nbytes` are None where sizes are
    unknown. `is_returned`: the caller gets it, so that each call has new memory for it; else one call after the other
    uses the same."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    nbytes: int | None
    is_returned: bool
    span: Span


MOST_ITEMS = 2**27
"""Of a list, so that it takes a gigabyte at most: `for step in range(10**9)` is often left after a few trips."""


def local_shapes(made: Iterable[LocalArray], function: Function, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shapes of arrays that a function makes, as far as sizes are known.

    Raises `ArgumentError` where an array that is sure to be made would have a negative length, and where arrays of
    different lengths meet in what one is made of; `UnsupportedLoopError` where one is made with several shapes, or is a
    list that may get too long.
    """
    values = parameter_values(sizes.shapes, sizes.integers)
    found: dict[str, tuple[int, ...]] = {}
    for one in made:
        for pair in (*one.alike, *one.one_shape):
            first, second = (_evaluated(one, length, values, sizes.counts, function) for length in pair)
            if first is not None and second is not None and first != second:
                refused = _of_several_shapes if pair in one.one_shape or 1 in (first, second) else _unlike
                raise refused(one, pair, (first, second), function)
        lengths = [_evaluated(one, length, values, sizes.counts, function) for length in one.lengths]
        known = tuple(length for length in lengths if length is not None)
        if len(known) < len(lengths):
            continue
        if one.is_sure and any(length < 0 for length in known):
            raise _negative(one, known, function)
        found[one.name] = tuple(max(0, length) for length in known)
        if one.is_list and prod(found[one.name]) > MOST_ITEMS:
            raise _too_long(one, found[one.name], function)
        values = parameter_values({**sizes.shapes, **found}, sizes.integers)  # others may be as long as this one
    return found


def with_local_shapes(made: Sequence[LocalArray], function: Function, sizes: Sizes) -> Sizes:
    """The sizes of a call with those of arrays that the function makes."""
    return replace(sizes, shapes={**sizes.shapes, **local_shapes(made, function, sizes)}) if made else sizes


def names_in_lengths(made: Sequence[LocalArray]) -> set[str]:
    """The integer arguments that the sizes of arrays depend on."""
    lengths = [length for one in made for length in one.lengths]
    lengths += [length for one in made for pair in (*one.alike, *one.one_shape) for length in pair]
    return names_in(*lengths)


def local_arrays_at(function: Function, shapes: Shapes) -> tuple[SizedLocalArray, ...]:
    """What a plan says of the arrays that a function makes."""
    found = []
    for one in function.local_arrays:
        shape = shapes.get(one.name)
        nbytes = None if shape is None else prod(shape) * np.dtype(one.dtype).itemsize
        found.append(SizedLocalArray(one.name, one.dtype, shape, nbytes, one.is_returned, one.span))
    return tuple(found)


def _evaluated(
    one: LocalArray, length: Expr, values: Mapping[str, int], counts: Mapping[str, int], function: Function
) -> int | None:
    def change(part: Expr) -> Expr:
        match part:
            case Call(called, (inner,)) if called == NARROW and evaluated(inner, values) is not None:
                raise _narrow(one, inner, function)
            case Count(array, span) if array in counts:
                return Const(counts[array], span)
            case Call(called, (inner,)) if called == INTEGER:
                return inner
            case _:
                return part

    return evaluated(rewrite(length, change), values)


def _said(one: LocalArray, function: Function) -> str:
    return as_said(one.name, one.span, function)


def _narrow(one: LocalArray, length: Expr, function: Function) -> ArgumentError:
    what = f"the length of the array `{_said(one, function)}` may not fit the integers that it is computed with"
    why = f"`{print_expr(length)}` is computed in fewer than 64 bits, or without a sign"
    hint = "write `int(n)` for an integer n of it"
    return ArgumentError(describe(what, span=one.span, source=function.source, why=why, hint=hint))


def _negative(one: LocalArray, shape: tuple[int, ...], function: Function) -> ArgumentError:
    lengths = ", ".join(map(print_expr, one.lengths))
    what = f"the array `{_said(one, function)}` would have a negative length"
    why = f"({lengths}) is {shape} here"
    return ArgumentError(describe(what, span=one.span, source=function.source, why=why, hint="pass other sizes"))


def _of_several_shapes(
    one: LocalArray, pair: tuple[Expr, Expr], lengths: tuple[int, int], function: Function
) -> UnsupportedLoopError:
    what = f"the array `{_said(one, function)}` is made with different shapes"
    why = f"an axis of it is as long as {print_expr(pair[0])}, {lengths[0]}, and {print_expr(pair[1])}, {lengths[1]}"
    hint = "use two names, or pass arrays of the same lengths"
    error = unsupported(what, one.span, function.source, why=why, hint=hint, is_for_numba=True)
    error.is_of_sizes = True
    return error


def _too_long(one: LocalArray, shape: tuple[int, ...], function: Function) -> UnsupportedLoopError:
    what = f"the list `{_said(one, function)}` is not supported where it may have {shape[0]} items"
    why = "memory for all items that it may get is taken when it is made"
    error = unsupported(
        what, one.span, function.source, why=why, hint="let fewer trips append to it", is_for_numba=True
    )
    error.is_of_sizes = True
    return error


def _unlike(one: LocalArray, pair: tuple[Expr, Expr], lengths: tuple[int, int], function: Function) -> ArgumentError:
    what = f"the arrays that `{_said(one, function)}` is made of differ in length: {lengths[0]} and {lengths[1]}"
    why = f"these are {print_expr(pair[0])} and {print_expr(pair[1])}"
    hint = "pass arrays of the same lengths, or write a loop"
    return ArgumentError(describe(what, span=one.span, source=function.source, why=why, hint=hint))
