"""One nest in other guises: its integers written in unusual ways, arguments of few bits, arrays of other dtypes or too
short for its subscripts, subscripts that go around the end of an axis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.oracles.around import going_around
from tests.oracles.bounded import SIZES
from tests.oracles.narrow import narrowed
from tests.oracles.nests import ArraySpec, Nest
from tests.oracles.spelling import Choose, respelled

INTEGERS = ("int32", "int16", "int8", "uint8", "uint16", "uint32")
"""Dtypes of arrays in place of int64. With uint64 NumPy computes a float of some sums."""

SHORTER = (1, 1, 1, 2)
"""How many elements an axis has less than it had."""


def varied(nest: Nest, choose: Choose) -> Nest:
    """The nest, or one that is like it but for some of what is said above."""
    if not nest.has_views and not choose(range(8)):
        nest = narrowed(nest, choose)
    if not choose(range(3)):
        nest = replace(nest, source=respelled(nest.source, choose, 3))
    if not choose(range(6)):
        nest = with_other_dtypes(nest, choose)
    if not choose(range(12)):
        nest = with_short_array(nest, choose)
    return going_around(nest, choose) if not choose(range(10)) else nest


# ---------------------------------------------------------------- dtypes


def with_other_dtypes(nest: Nest, choose: Choose) -> Nest:
    """The nest with some arrays of float32, or of integers narrower than int64; the nest as it was where NumPy refuses
    to compute with those.

    By decision a scalar of Orion's does not change its dtype when it is first given an element, and sums have 64 bits:
    such arrays are not among those that scalars are made of.
    """
    arrays = dict(nest.arrays)
    for name in changeable(nest, choose):
        arrays[name] = replace(arrays[name], dtype=choose(INTEGERS) if is_integer(arrays[name]) else "float32")
    found = replace(nest, arrays=arrays)
    return nest if error_of(found) else found


def changeable(nest: Nest, choose: Choose) -> Sequence[str]:
    """The arrays that get another dtype. Where a scalar is given elements and is no sum, all floats have one dtype."""
    floats = [name for name, spec in nest.arrays.items() if not is_integer(spec)]
    integers = [name for name, spec in nest.arrays.items() if is_integer(spec)]
    if mentions(nest, "s", "prod") or re.search(r"\bt [+-]=", nest.source):
        floats = []
    elif not mentions(nest, "t", "u", "low", "high"):
        floats = [name for name in floats if choose((True, True, False))]
    if mentions(nest, "c", "d"):
        integers = []
    return [*floats, *(name for name in integers if choose((True, True, False)))]


def is_integer(spec: ArraySpec) -> bool:
    return np.dtype(spec.dtype).kind in "iu"


def mentions(nest: Nest, *names: str) -> bool:
    return re.search(rf"\b({'|'.join(names)})\b", nest.source) is not None


def error_of(nest: Nest) -> type[Exception] | None:
    """What the undecorated function raises at one of the sizes."""
    try:
        with np.errstate(all="ignore"):
            for size in SIZES:
                nest.function()(**nest.arguments(size))
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        return type(error)
    return None


# ---------------------------------------------------------------- subscripts that leave their arrays


def with_short_array(nest: Nest, choose: Choose) -> Nest:
    """The nest with one axis of an array so short at the small size that some subscript leaves it, mostly. Where slices
    are then cut, so that their lengths differ, the nest stays as it was."""
    axes = [(name, axis) for name, spec in nest.arrays.items() for axis, extent in enumerate(spec.small) if extent > 2]
    if not axes:
        return nest
    name, axis = choose(axes)
    spec, extents = nest.arrays[name], list(nest.arrays[name].small)
    extents[axis] = max(1, extents[axis] - choose(SHORTER))
    found = replace(nest, arrays={**nest.arrays, name: replace(spec, small=tuple(extents))})
    return found if error_of(found) in (None, IndexError) else nest
