"""Subscripts and bounds that are elements of arrays of integers which nothing writes: values that two iterations may
share, or not, as the arrays are.

Of r at p and s at q of one array it is used that p = q makes r = s, and what the plan takes the array to be: that it
has no negative element, no two equal ones, or never goes down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from orion.ir.assumed import Property
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Bind,
    Dim,
    Elements,
    Expr,
    Node,
    Range,
    Slice,
    Subscript,
    Tuple,
    Update,
    Var,
    every,
    names_in,
)
from orion.ir.rewriting import rewrite
from orion.ir.types import ArrayType, Types
from orion.sets.coalesced import coalesced
from orion.verify.conflicts import Conflict, any_parameters, union
from orion.verify.events import Element, Event, Iterations
from orion.verify.subscripts import affine, wrapped
from orion.verify.text_values import Scope, UnprovedError, Value, compared

if TYPE_CHECKING:
    import islpy as isl


def constant_arrays(function: Function, types: Types) -> dict[str, int]:
    """The arrays of integers of which a function reads elements and does nothing else, with their axes."""
    nodes: tuple[Node, ...] = function.body
    whole = Counter(node.name for node in every(Var, *nodes))
    for element in every(Subscript, *nodes):
        whole[element.base.name] -= not any(isinstance(part, Slice) for part in element.index)
    for node in every((Assign, Update), *nodes):
        whole.update(part.base.name for part in _parts(node.target) if isinstance(part, Subscript))
    whole.update(node.row.base.name for node in every(Bind, *nodes))
    found = {}
    for name in function.given:
        kind = types.get(name)
        if whole[name] == 0 and isinstance(kind, ArrayType) and np.dtype(kind.dtype).kind in "iu":
            found[name] = kind.ndim
    return found


def _parts(target: Expr) -> tuple[Expr, ...]:
    return target.items if isinstance(target, Tuple) else (target,)


class ElementsRead:
    """The elements that an event reads, gathered while its text is read. `arrays` are those of which elements are
    values, with their axes."""

    def __init__(self, arrays: Mapping[str, int]) -> None:
        self.arrays = arrays
        self.found: dict[str, Element] = {}

    def value(self, scope: Scope, expr: Expr) -> Value | None:
        """The value of an expression of elements; None where it is not affine in them."""

        here = scope.sharing()
        here.names.update(scope.of_elements)

        def named(part: Expr) -> Expr:
            return self._named(here, part) if isinstance(part, Subscript) else part

        try:
            return here.value(rewrite(expr, named))
        except UnprovedError:
            return None

    def bounds(self, scope: Scope, space: Range | Elements) -> tuple[Value | None, ...]:
        """Start and stop of a range with step 1, where nothing else is known of them."""
        if isinstance(space, Elements) or affine(scope, space.step) != {"": 1}:
            return ()
        ends = space.start, space.stop
        return tuple(self.value(scope, end) if affine(scope, end) is None else None for end in ends)

    def on_axis(self, scope: Scope, index: Expr, at: str, length: Value) -> Iterator[str]:
        """Where a subscript is on an axis."""
        value = None if isinstance(index, Slice) else self.value(scope, index)
        if value is not None:
            yield wrapped(value, "==", at, length)

    def _named(self, scope: Scope, part: Subscript) -> Expr:
        array, own = part.base.name, {element.name for element in self.found.values()} | scope.of_elements.keys()
        if self.arrays.get(array) != len(part.index) or not own.isdisjoint(names_in(*part.index)):
            return part  # an element at a place that is one is no value of its own
        at: list[str] = []
        for axis, index in enumerate(part.index):
            length, place = scope.value(Dim(array, axis, part.span)), f"p{axis}__"
            at += [compared({}, "<=", {place: 1}), compared({place: 1}, "<", length)]
            at.append(wrapped(scope.value(index), "==", place, length))
        key = f"{array} {at}"
        if key not in self.found:
            name = f"element{len(self.found)}__"
            self.found[key] = Element(name, array, len(part.index), tuple(at))
        name = self.found[key].name
        scope.names[name] = {name: 1}
        return Var(name, part.span)


# ---------------------------------------------------------------- what two events have in common


def narrowed(
    conflict: Conflict, found: Iterations, held: Mapping[str, Set[Property]], context: isl.Context, *, of_rounds: bool
) -> Conflict:
    """A conflict without the iterations that do not touch one element where arrays are what they are taken to be.
    `of_rounds`: it is of different rounds of the loops around, in which all else that is not known may differ."""
    events = [event for event in found.events if event.array == conflict.array]
    if not held or not any(event.elements for event in events):
        return conflict
    parts = [
        _meeting(found, first, second, held, context, of_rounds)
        for first in events
        for second in events
        if first.is_write or second.is_write
    ]
    pairs = any_parameters(coalesced(union(parts)))
    return replace(conflict, relation=conflict.relation.intersect(pairs))


def _meeting(
    found: Iterations,
    first: Event,
    second: Event,
    held: Mapping[str, Set[Property]],
    context: isl.Context,
    of_rounds: bool,
) -> isl.Map:
    touched = [found.placed_by(event, context) for event in (first, second)]
    reads = [[*_reads(found, event, context)] for event in (first, second)]
    if of_rounds:
        touched = [any_parameters(one) for one in touched]
        reads = [[(array, any_parameters(one)) for array, one in side] for side in reads]
    pairs = touched[0].apply_range(touched[1].reverse())
    for side, place in enumerate(reads):
        for number, (array, one) in enumerate(place):
            for other_array, other in place[number:]:
                if array == other_array:
                    both = one.range_product(other).intersect_range(_related(one, held.get(array, set()))).domain()
                    pairs = pairs.intersect_range(both) if side else pairs.intersect_domain(both)
    for array, one in reads[0]:
        for other_array, other in reads[1]:
            if array == other_array:
                related = _related(one, held.get(array, set())).unwrap()
                pairs = pairs.intersect(one.apply_range(related).apply_range(other.reverse()))
    return _of_iterations(pairs, len(found.dims))


def _reads(found: Iterations, event: Event, context: isl.Context) -> Iterator[tuple[str, isl.Map]]:
    for element in event.elements:
        yield element.array, found.read(event, element, context)


def _of_iterations(pairs: isl.Map, dims: int) -> isl.Map:
    import islpy as isl

    for side in (isl.dim_type.in_, isl.dim_type.out):
        pairs = pairs.project_out(side, dims, pairs.dim(side) - dims)
    return pairs


def _related(place: isl.Map, held: Set[Property]) -> isl.Set:
    """The pairs ((p, r), (q, s)) of any two elements of an array that is such."""
    import islpy as isl

    axes = place.dim(isl.dim_type.out) - 1
    own, other = [f"p{axis}" for axis in range(axes)], [f"q{axis}" for axis in range(axes)]
    names = ", ".join((*own, "r")), ", ".join((*other, "s"))
    every_pair = f"[[{names[0]}] -> [{names[1]}]]"
    equal = " and ".join(f"{p} = {q}" for p, q in zip(own, other, strict=True))
    impossible = [f"{equal} and r != s"]
    if Property.DISTINCT in held:
        impossible += [f"r = s and {p} != {q}" for p, q in zip(own, other, strict=True)]
    if Property.NOT_NEGATIVE in held:
        impossible += ["r < 0", "s < 0"]
    if Property.SORTED in held and axes == 1:
        impossible += ["p0 < q0 and r > s", "q0 < p0 and s > r"]
    context = place.get_ctx()
    found = isl.Set(f"{{ {every_pair} }}", context)
    for one in impossible:
        found = found.subtract(isl.Set(f"{{ {every_pair} : {one} }}", context))
    return found
