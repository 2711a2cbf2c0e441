"""Which sizes and integers a call gives values for, as conditions on these are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from orion.dataclass import dataclass
from orion.dependence.references import definitions
from orion.ir.assigned import assigned_names
from orion.ir.assumed import OfSizes
from orion.ir.function import Function
from orion.ir.types import ArrayType, ScalarType, Types
from orion.passes.local_arrays import definitions as given_once
from orion.passes.sizes import is_size
from orion.sets.affine import Form, parameter
from orion.sets.names import extent_name, isl_name


@dataclass(frozen=True, slots=True)
class GivenSizes:
    """`forms` are those of integers that keep their values, and of names that are given once; `known` are the
    parameters of isl that a call has values for."""

    forms: Mapping[str, Form]
    known: frozenset[str]

    @classmethod
    def of(cls, function: Function, types: Types) -> GivenSizes:
        fixed = {name for one in function.assumed if isinstance(one, OfSizes) for name in one.names}
        changed = assigned_names(function.body) | fixed
        integers = [name for name in function.given if _is_integer(types, name) and name not in changed]
        extents = {one for name in function.given for one in _extents(types, name)}
        forms = {**{name: parameter(name) for name in integers}, **definitions(function)}
        return cls(forms, frozenset({*map(isl_name, (*integers, *_named(function, types, integers))), *extents}))


def _named(function: Function, types: Types, integers: Iterable[str]) -> set[str]:
    """The names that the function gives once, whose values are made of integers and extents that the call gives."""
    changed = assigned_names(function.body)
    arrays = {name for name in function.given if isinstance(types[name], ArrayType) and name not in changed}
    known = {*integers}
    for name, value in given_once(function).items():
        if is_size(value, arrays, known, may_fail=True):
            known.add(name)
    return known.difference(integers)


def _is_integer(types: Types, name: str) -> bool:
    kind = types[name]
    return isinstance(kind, ScalarType) and np.dtype(kind.dtype).kind in "iu"


def _extents(types: Types, name: str) -> Iterator[str]:
    kind = types[name]
    if isinstance(kind, ArrayType):
        yield from (extent_name(name, axis) for axis in range(kind.ndim))
