"""The types of a loop's arguments: what planning and compiling may depend on. Shapes are kept apart (`Shapes`)."""

from __future__ import annotations

from collections.abc import Mapping

from orion.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A scalar. A `weak` one is a Python `int`, `float` or `bool`: it takes the type of what it meets (NEP 50).

    >>> ScalarType("float64", weak=True)
    ScalarType(dtype='float64', weak=True)
    """

    dtype: str
    weak: bool = False


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A dense array. `c_contiguous`: rows follow one another without gaps, other than padding at the end of a row
    where `padded`. `aligned`: every row starts on a 64-byte boundary. `dtype` is a NumPy dtype name in native byte
    order.
    """

    dtype: str
    ndim: int
    c_contiguous: bool = True
    aligned: bool = False
    padded: bool = False
    writeable: bool = True


@dataclass(frozen=True, slots=True)
class SparseType:
    """A sparse array of `ndim` keys and one or more values per element.

    `single` is True where an element's value is one scalar, False where it is a tuple. `unique_keys` is True only
    where no two elements are known to have the same keys.
    """

    ndim: int
    key_dtype: str
    value_dtypes: tuple[str, ...]
    single: bool = True
    unique_keys: bool = False


ArgumentType = ScalarType | ArrayType | SparseType
Types = Mapping[str, ArgumentType]
"""Argument name to type."""

Shapes = Mapping[str, tuple[int, ...]]
"""Array name to shape; for a sparse array, one past the largest key present in each dimension."""
