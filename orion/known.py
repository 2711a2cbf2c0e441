"""What is known of a function once the types of its arguments are, and what of it depends on more than types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

from orion.arrays.sparse import SparseArray
from orion.cost.caches import Caches
from orion.cost.extents import named_values, parameter_values
from orion.cost.local_arrays import with_local_shapes
from orion.cost.reached import reached, zero_steps
from orion.cost.sizes import Asked, Sizes
from orion.dataclass import dataclass, field, replace
from orion.dependence.bounds import BoundsChecks
from orion.dependence.conditions import equals
from orion.dependence.flat_rows import stays_in_rows
from orion.dependence.guarded import Guarded, not_proved
from orion.errors import ArgumentError, describe, of_user
from orion.ir.function import Function, LocalArray
from orion.ir.signature import index_value
from orion.ir.types import ScalarType, Shapes, Types
from orion.kernel.calling import KernelSource
from orion.measured import Measurements
from orion.passes.delinearize import shapes_of_rows, with_rows
from orion.passes.steps import with_steps
from orion.plan.deferred_bodies import Bodies
from orion.plan.plan import FunctionPlan
from orion.plan.variants import Variant
from orion.sets.maps import Maps
from orion.typing.expression_types import Typing
from orion.typing.integers_at_call import IntegersAtCall
from orion.typing.lengths import check_lengths, check_unpacked

MAX_STEPS = 8
"""For how many values of the steps of its ranges a function is analysed and compiled anew. With others it is run as it
is for any: in a program that doubles a step in each call, compiling would take longer than what it saves."""

Key = tuple[object, ...]

MAX_KERNELS = 64
"""How many kernels are kept of a function for arguments of some types."""

MAX_SIZES = 1000
"""For how many sizes it is kept whether flattened arrays are arrays of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """What is known of a function once the types of its arguments are (`given`). `variants` are the ways to run it, in
    the order in which they are tried, and `checks` has the bounds checks of all their loops, by the identity of their
    programs. `local_arrays` are those that any of them makes. `guarded` is what is evaluated for some values of a
    scalar only, and may fail. `asked` are the properties of arrays that variants are for, those of each together: they
    are to be shown in each call. `bodies` keeps those that have been made, by the identities of programs, and `kernels`
    those of loops, with what has the identities in their keys (`orion.pipeline`). `measurements` are what
    `f.measure` has measured. `maps` is what the analysis has made in isl, until a plan takes it."""

    given: Types
    function: Function
    typing: Typing
    variants: tuple[Variant, ...]
    checks: Mapping[int, tuple[BoundsChecks, ...]]
    written: frozenset[str]
    parameters: tuple[str, ...]
    caches: Caches
    local_arrays: tuple[LocalArray, ...]
    guarded: tuple[Guarded, ...]
    asked: Asked
    bodies: dict[int, Bodies] = field(default_factory=dict)
    kernels: dict[Key, tuple[KernelSource, Key]] = field(default_factory=dict)
    measurements: Measurements = field(default_factory=Measurements)
    maps: list[Maps] = field(default_factory=list)

    def take_maps(self) -> Maps:
        """What the analysis has made in isl, for the first plan: what it reads is mostly there. Nothing for others, as
        two threads may plan at a time."""
        try:
            return self.maps.pop()
        except IndexError:
            return Maps()

    def stays_in_rows(self, values: Mapping[str, int], longer: frozenset[str]) -> bool:
        """Whether the subscripts of flattened arrays stay within rows, at these values of isl's parameters; see
        `orion.dependence.flat_rows`."""
        return stays_in_rows(self.function, self.checks[id(self.as_written.program)], values, longer)

    @property
    def as_written(self) -> Variant:
        """The program with all loops as the source has them."""
        return self.variants[-1]

    def typing_of(self, plan: FunctionPlan) -> Typing:
        """The types of the names of the program of a plan."""
        program = plan.unfused or plan.program
        return next(variant.typing for variant in self.variants if variant.program is program)

    def deciding(self, shapes: Shapes, integers: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        """The scalars that what is evaluated depends on where it may fail at these sizes, each with what may. What
        is not given counts as large enough."""
        if not self._are_all_given(shapes, integers):
            return tuple((one.name, one.why) for one in self.guarded if one.why)
        known = Sizes(shapes, {name: int(integers[name]) for name in self.parameters})
        values = self.all_sizes(known).known
        checks = self.checks[id(self.as_written.program)]
        return tuple(not_proved(self.guarded, checks, values, self.as_written.loops[0].nest).items())

    def _are_all_given(self, shapes: Shapes, integers: Mapping[str, Any]) -> bool:
        arrays = {name for name, kind in self.given.items() if not isinstance(kind, ScalarType)}
        return arrays <= shapes.keys() and all(name in integers for name in self.parameters)

    def taken_inside(self, sizes: Sizes) -> tuple[str, ...]:
        """The subscripts that are taken to be inside their arrays, because sizes that say so are not given: those that
        Python does not evaluate in every iteration."""
        if self._are_all_given(sizes.shapes, sizes.integers):
            return ()
        return tuple(dict.fromkeys(text for one in self.guarded if not one.why for _, text in one.subscripts))

    def all_sizes(self, sizes: Sizes) -> Sizes:
        """The sizes of a call with those of the arrays that the function makes, and of the names that it gives once."""
        sizes = with_local_shapes(self.local_arrays, self.function, sizes)
        return replace(sizes, named=named_values(self.function, sizes.values))


@dataclass(slots=True)
class Known:
    """What is known of a function for arguments of some types, as it is written and, where it has flattened arrays, as
    a function of arrays of rows (`flat`). `in_rows` has the shapes that this then takes, by those of the arguments and
    the values of `integers`; None where they are no arrays of rows. `in_turn` has what is known of it where loops do
    not combine some scalars, which what they evaluate depends on, by what is known else and these scalars; `at_sizes`
    has which of the two it is, by sizes.

    `at_call`, where it computes subscripts with integers, says which function it is at the sizes and integers of a
    call, or refuses that; `marked` has what is known of those. `by_steps` has what is known of it with numbers for the
    arguments `steps` in the steps of its ranges."""

    function: Function
    flat: Function | None
    typed: Typed | None = None
    typed_flat: Typed | None = None
    integers: tuple[str, ...] = ()
    in_rows: dict[tuple[object, ...], Shapes | None] = field(default_factory=dict)
    in_turn: dict[tuple[Typed, tuple[tuple[str, str], ...]], Typed] = field(default_factory=dict)
    at_sizes: dict[tuple[object, ...], Typed] = field(default_factory=dict)
    at_call: IntegersAtCall | None = None
    marked: dict[Function, Known] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)
    by_steps: dict[tuple[int, ...], Known] = field(default_factory=dict)

    def at(self, types: Types, shapes: Shapes, arguments: Mapping[str, Any]) -> Known:
        """What is known of it at these sizes and integers, some of which need not be given."""
        function = self.function if self.at_call is None else self.at_call.at(shapes, arguments)
        if function is self.function:
            return self._stepped(types, shapes, arguments)
        if function not in self.marked:
            known = Known(function, with_rows(function, types), integers=self.integers, steps=self.steps)
            self.marked[function] = known
        return self.marked[function]._stepped(types, shapes, arguments)

    def _stepped(self, types: Types, shapes: Shapes, arguments: Mapping[str, Any]) -> Known:
        """What is known of it with the steps of its ranges as numbers, where they are given and are steps."""
        values = tuple([int(arguments[name]) for name in self.steps if name in arguments])
        if self.steps and values not in self.by_steps:
            check_steps(self.function, shapes, arguments)
        if not self.steps or len(values) < len(self.steps) or not all(0 < abs(value) < 2**63 for value in values):
            return self
        if values not in self.by_steps:
            if len(self.by_steps) >= MAX_STEPS:
                return self
            numbers = dict(zip(self.steps, values, strict=True))
            assumed = tuple(equals(self.steps[name], name, value) for name, value in numbers.items())
            function = replace(with_steps(self.function, numbers), assumed=assumed)
            integers = (*self.integers, *self.steps)
            self.by_steps[values] = Known(function, with_rows(function, types), integers=integers)
        return self.by_steps[values]


def shapes_in_rows(flat: Function, typed: Typed, shapes: Shapes, integers: Mapping[str, Any]) -> Shapes | None:
    """The shapes with those of flattened arrays as arrays of rows, None where they are none at these sizes."""
    rows = shapes_of_rows(flat.rows, shapes, integers)
    if rows is None:
        return None
    arrays = {one.array for one in flat.rows}
    given = {name: shape for name, shape in shapes.items() if name not in arrays} | rows
    numbers = {name: index_value(name, integers[name]) for name in typed.parameters if name in integers}
    longer = frozenset(name for name, shape in rows.items() if prod(shape) < shapes[name][0])
    return given if typed.stays_in_rows(parameter_values(given, numbers), longer) else None


def check_keys(names: Iterable[str], arguments: Mapping[str, Any]) -> None:
    """ArgumentError where a sparse array whose elements are found by their keys has a key more than once."""
    for name in names:
        array = arguments[name]
        if isinstance(array, SparseArray) and not array.unique_keys:
            what = f"argument `{name}` has keys that occur more than once"
            why = f"the loop stores or reads its elements by their keys, `{name}[…]`, and nobody can say which is meant"
            hint = "add up, or leave out, elements with equal keys where the array is made"
            raise ArgumentError(describe(what, why=why, hint=hint))


def check_steps(function: Function, shapes: Shapes, arguments: Mapping[str, Any]) -> None:
    """Raise Python's `ValueError` where the step of a range that a call is sure to come to is 0."""
    integers = {name: int(value) for name, value in arguments.items() if isinstance(value, bool | int | np.integer)}
    for step in zero_steps(function, Sizes(shapes, integers)):
        what, why = "range() arg 3 must not be zero", "the step is 0"
        raise of_user(ValueError(describe(what, span=step.span, source=function.source, why=why)))


def check_sizes(typed: Typed, sizes: Sizes) -> None:
    """ArgumentError where arrays that meet in an operation have other lengths than it needs."""
    function, shapes = typed.function, sizes.shapes
    check_unpacked(function, reached(function, sizes), shapes)
    check_lengths(reached(function, sizes), typed.typing, shapes, function.source)
