"""Accesses by values that are read from arrays, and what properties of these arrays keep apart.

    out[perm[i]] = x[i]                 touches out[v], where v is what perm has at i

For every read, the value is an integer of its own beside the coordinates of an iteration. Of two reads r at g and s at
h of one array, which nothing writes meanwhile, is known (an uninterpreted function: Pugh & Wonnacott, "Constraint-based
array dependence analysis", TOPLAS 1998; by properties as in Mohammadi et al., "Sparse computation data dependence
simplification for efficient compiler-generated inspectors", PLDI 2019):

    always                  g = h  →  r = s
    NOT_NEGATIVE            r ≥ 0,  s ≥ 0
    DISTINCT                g ≠ h  →  r ≠ s
    SORTED (of one axis)    g < h  →  r ≤ s

and two accesses meet where there are such values with which they touch one element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from orion.dependence.access import Access
from orion.dependence.references import Axis, InnerLoop, Interval, Reference
from orion.ir.assumed import Property
from orion.sets.affine import Affine, Form, OfReads, Read
from orion.sets.maps import Maps
from orion.sets.names import extent_name, parameter_list

if TYPE_CHECKING:
    import islpy as isl

Held = Mapping[str, Set[Property]]
"""The properties that arrays have, by arrays."""

NOTHING_HELD: Held = MappingProxyType({})


def reads_in(reference: Reference) -> tuple[Read, ...]:
    """The reads in the subscripts of an access, and in the bounds of the inner loops around it."""
    return tuple(dict.fromkeys(read for form in _of_reads(reference) for read in form.reads))


def valued_forms(reference: Reference) -> tuple[Affine, ...]:
    """The forms that subscripts and bounds have of the values that they read."""
    return tuple(form.form for form in _of_reads(reference))


def _of_reads(reference: Reference) -> Iterator[OfReads]:
    forms = [form for axis in reference.axes for form in _forms(axis)]
    forms += [form for loop in reference.inner for form in (loop.start, loop.stop)]
    yield from (form for form in forms if isinstance(form, OfReads))


def with_values(reference: Reference) -> Reference:
    """The access with the values of its reads as names."""
    return replace(
        reference,
        axes=tuple(_valued_axis(axis) for axis in reference.axes),
        inner=tuple(InnerLoop(one.var, _valued(one.start), _valued(one.stop), one.step) for one in reference.inner),
    )


def _forms(axis: Axis) -> Iterator[Form]:
    if isinstance(axis, Interval):
        yield from (form for form in (axis.lower, axis.upper) if form is not None)
    else:
        yield axis


def _valued_axis(axis: Axis) -> Axis:
    if isinstance(axis, Interval):
        lower, upper = (None if form is None else _valued(form) for form in (axis.lower, axis.upper))
        return Interval(lower, upper, axis.step)
    return _valued(axis)


def _valued(form: Form) -> Form:
    return form.form if isinstance(form, OfReads) else form


def place_of(read: Read, dims: tuple[str, ...]) -> str:
    """{dims → (place, value)} of a read, as isl text; `dims` are those of an access by reads. A negative subscript
    counts from the end."""
    names = frozenset[str]().union(*(form.names for form in read.subscripts))
    conditions, outputs = [], []
    for axis, form in enumerate(read.subscripts):
        output, extent = f"p{axis}__", extent_name(read.array, axis)
        text, names = form.text, names | {extent}
        at = f"(({text} >= 0 and {output} = {text}) or ({text} < 0 and {output} = {text} + {extent}))"
        conditions.append(f"0 <= {output} < {extent} and {at}")
        outputs.append(output)
    target = ", ".join((*outputs, "v__"))
    inside = " and ".join((*conditions, f"v__ = {read.name}"))
    return f"{parameter_list(names.difference(dims))}{{ [{', '.join(dims)}] -> [{target}] : {inside} }}"


# ---------------------------------------------------------------- what two accesses have in common


def has_common_reads(one: Access, other: Access) -> bool:
    """Whether two accesses are by values that are read from one array."""
    return not {array for array, _ in one.by_reads.reads}.isdisjoint(array for array, _ in other.by_reads.reads)


def prepare_reads(access: Access, held: Held, maps: Maps) -> None:
    """Read the texts that `meeting` needs: past a limit of operations, reading looks like an error in the text."""
    if access.by_reads.reads:
        maps.map(access.by_reads.relation)
    for array, place in access.by_reads.reads:
        _related(maps.map(place), held.get(array, frozenset()), maps)


def meeting(one: Access, other: Access, held: Held, maps: Maps) -> isl.Map:
    """{x → y : one touches in x what other touches in y}, for instances of their statements or iterations of their
    loop, where arrays have these properties."""
    a, b = maps.map(one.by_reads.relation), maps.map(other.by_reads.relation)
    places = [[(array, maps.map(place)) for array, place in access.by_reads.reads] for access in (one, other)]
    pairs = _consistent(a, places[0], held, maps).apply_range(_consistent(b, places[1], held, maps).reverse())
    for array, first in places[0]:
        for same, second in places[1]:
            if array == same:
                related = _related(first, held.get(array, frozenset()), maps)
                pairs = pairs.intersect(first.apply_range(related).apply_range(second.reverse()))
    return _of_instances(pairs, one.by_reads.dims, other.by_reads.dims)


def _of_instances(pairs: isl.Map, dims: int, others: int) -> isl.Map:
    import islpy as isl

    for side, count in ((isl.dim_type.in_, dims), (isl.dim_type.out, others)):
        pairs = pairs.project_out(side, count, pairs.dim(side) - count)
    return pairs


def _consistent(touched: isl.Map, places: list[tuple[str, isl.Map]], held: Held, maps: Maps) -> isl.Map:
    """What an access touches, by values that its reads may have in one iteration."""
    for number, (array, first) in enumerate(places):
        for same, second in places[number:]:
            if array == same:
                related = _related(first, held.get(array, frozenset()), maps)
                touched = touched.intersect_domain(first.range_product(second).intersect_range(related.wrap()).domain())
    return touched


def _related(place: isl.Map, properties: Set[Property], maps: Maps) -> isl.Map:
    """{(g, r) → (h, s)} for any two reads of an array with these properties."""
    import islpy as isl

    axes = place.dim(isl.dim_type.out) - 1
    own, others = [f"g{axis}" for axis in range(axes)], [f"h{axis}" for axis in range(axes)]
    same = " and ".join(f"{g} = {h}" for g, h in zip(own, others, strict=True))
    apart = " or ".join(f"{g} != {h}" for g, h in zip(own, others, strict=True))
    parts = [f"(({same} and r = s) or {apart})"]
    if Property.NOT_NEGATIVE in properties:
        parts.append("r >= 0 and s >= 0")
    if Property.DISTINCT in properties:
        parts.append(f"(({same}) or r != s)")
    if Property.SORTED in properties and axes == 1:
        parts.append("((g0 <= h0 and r <= s) or (g0 >= h0 and r >= s))")
    pair = f"[{', '.join((*own, 'r'))}] -> [{', '.join((*others, 's'))}]"
    return maps.map(f"{{ {pair} : {' and '.join(parts)} }}")
