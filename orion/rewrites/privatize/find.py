"""Arrays of which every iteration may have its own, because none hands anything in them to another.

Let D be the iterations of a nest of ranges and X an array. R and W are what they read and write of it: (x, v) → e, with
x the iteration, v the coordinates of the loops inside it, e the element. W! ⊆ W are the writes that are sure to happen,
and (x, u) ≺ (x, v) is the written order inside an iteration. X is private where

    (a)  ∀ (x, v) → e ∈ R  ∃ u:  (x, u) → e ∈ W!  and  (x, u) ≺ (x, v)      what is read was written just before
    (b)  W(D) ⊆ W!(max D)                                                   the last iteration writes it all again
    (c)  max D is greatest in every dimension of D
    (d)  and the same in every round of serial loops around, in which it is not empty, and whatever values a bound has
         that is computed while the function runs.

By (a) no value flows between iterations, nor into the loop, so that the dependences on X are due to its memory alone.
By (b) what the last iteration leaves in X is what the loop leaves. So iterations may run in any order if the last one
works on X and those that run beside it on memory of their own: (c) and (d) say which tile of a grid has it, the last.
(a) is that of Maydan, Amarasinghe and Lam 1993, *Array data-flow analysis and its use in array privatization*; (b)
stands for copying last values out, for which see Tu and Padua 1993, *Automatic array privatization*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass, replace
from orion.dependence.access import Dependence, LoopDependences, PrivateArray
from orion.dependence.bounds import fix_parameters
from orion.dependence.conflicts import CapReached, capped
from orion.dependence.model import Space, access_relation, inner_constraints, own_space
from orion.dependence.references import Reference, collect_references, loop_scope
from orion.ir.function import Function
from orion.ir.nodes import Const, Dim, For, Range, Var, names_in
from orion.ir.program import LoopNest, OfNewOrder, form_of
from orion.ir.types import ArrayType, Types
from orion.sets.affine import Affine
from orion.sets.maps import Maps
from orion.sets.names import extent_name, isl_name, number_text, parameter_list

if TYPE_CHECKING:
    import islpy as isl


def with_private_arrays(
    analysis: LoopDependences,
    nest: LoopNest,
    types: Types,
    changing: Collection[str] = (),
    maps: Maps | None = None,
) -> LoopDependences:
    """The analysis of a loop without the dependences on arrays that are private to its iterations, which it names.

    `changing` are isl's names of what has other values in other rounds of the serial loops around it.
    """
    if analysis.reasons or analysis.scalars.carried:
        return analysis
    names = private_arrays(nest, types, written_first(analysis.dependences), maps=maps)
    if not names or last_iteration(analysis.domain, changing) is None:
        return analysis
    gone = {name: tuple(d for d in analysis.dependences if d.array == name) for name in names}
    rest = tuple(dependence for dependence in analysis.dependences if dependence.array not in gone)
    private = tuple(PrivateArray(name, found[0].source.span, found) for name, found in gone.items())
    return replace(analysis, dependences=rest, private=private)


def with_shared_arrays(analysis: LoopDependences) -> LoopDependences:
    """Return the analysis of a loop whose iterations share the arrays that could be private."""
    back = (dependence for one in analysis.private for dependence in one.dependences)
    return replace(analysis, dependences=(*analysis.dependences, *back), private=())


def without_private_arrays(
    dependences: tuple[Dependence, ...], loop: For, function: Function, types: Types, maps: Maps | None = None
) -> tuple[Dependence, ...]:
    """Of the dependences that a `for` carries, those on arrays that are not private to its trips."""
    wanted = written_first(dependences)
    if not wanted or not isinstance(loop.space, Range):
        return dependences
    nest = LoopNest(0, form_of(loop), (loop,), (loop.space.var,), loop.body, True, function)
    private = private_arrays(nest, types, wanted, maps=maps)
    return tuple(dependence for dependence in dependences if dependence.array not in private)


def written_first(dependences: Iterable[Dependence]) -> tuple[str, ...]:
    """The arrays whose first access in the text that has a dependence is a write: no others can be private."""
    first: dict[str, tuple[object, bool]] = {}
    for access in (access for d in dependences for access in (d.source, d.sink)):
        key = access.span, access.is_write  # a read comes first where both are at one place
        first[access.array] = min(first.get(access.array, key), key)
    return tuple(array for array, (_, is_write) in first.items() if is_write)


def private_arrays(
    nest: LoopNest,
    types: Types,
    among: Iterable[str],
    values: Mapping[str, int] | None = None,
    maps: Maps | None = None,
) -> tuple[str, ...]:
    """The arrays in `among` that are private to the iterations of a nest of ranges in written order.

    For all sizes or, where `values` are given, for these values of isl's parameters. What is made in isl is noted in
    `maps`.
    """
    bounds = names_in(*nest.ranges)
    wanted = [name for name in among if name not in bounds and _can_be_copied(types.get(name))]
    if not wanted or nest.elements is not None or isinstance(nest.form, OfNewOrder) or not nest.ordered:
        return ()
    scope = loop_scope(nest, types)
    space = own_space(nest, types, scope)
    if space.reasons:
        return ()
    references = collect_references(nest, types, scope)
    written = {reference.array for reference in references if reference.is_write}
    touching = {name: [r for r in references if r.array == name] for name in wanted if name in written}
    maps = maps or Maps()
    given = _lengths(nest.function, touching) if values is None else _equal_to(values)
    return tuple(n for n, own in touching.items() if _may_be_private(own) and _is_private(own, space, given, maps))


def _may_be_private(references: Sequence[Reference]) -> bool:
    """Whether some write that is sure to happen stands before each read, or in one loop with it: what (a) needs."""
    firsts = [one.place[0] for one in references if one.is_write and not one.is_may]
    return all(firsts and min(firsts) <= one.place[0] for one in references if not one.is_write)


def _can_be_copied(kind: object) -> bool:
    """Whether memory made for a tile can stand for the array: it has no gaps, and may be written."""
    return isinstance(kind, ArrayType) and kind.c_contiguous and kind.writeable


@dataclass(frozen=True, slots=True)
class Placed:
    """A reference and its relation (x, v) → e. `is_sure`: it happens for every (x, v), and touches all of these e."""

    reference: Reference
    relation: isl.Map
    is_sure: bool


def _is_private(references: Sequence[Reference], space: Space, known: str, maps: Maps) -> bool:
    """Whether an array is, where parameters are in the isl set `known`."""
    import islpy as isl

    context = maps.context
    given = isl.Set(known, context)
    iterations = maps.set(space.text()).intersect_params(given)
    try:
        with capped(context):
            if not maps.once(("corner", space.text(), known), lambda: _ends_in_corner(iterations)):
                return False
        placed = {k: place_reference(one, space, given, maps) for k, one in enumerate(references) if one.is_write}
        with capped(context):
            if not _last_writes_all(placed.values(), iterations):
                return False
        placed |= {k: place_reference(one, space, given, maps) for k, one in enumerate(references) if not one.is_write}
        orders = {
            (write, read): maps.map(_before(references[write], references[read], len(space.dims)))
            for read in placed
            for write in placed
            if placed[write].is_sure and references[write].is_write and not references[read].is_write
        }
        with capped(context):
            return all(_is_covered(k, placed, orders) for k, one in enumerate(references) if not one.is_write)
    except CapReached:
        name = references[0].array
        maps.give_up(f"whether iterations may have their own `{name}` was not found out; they are taken to share it")
        return False


def _lengths(function: Function, names: Collection[str]) -> str:
    """The isl set of parameters with the lengths that arrays have which the function makes, as far as these are
    plain."""
    equal: dict[str, str] = {}
    for one in function.local_arrays:
        for axis, length in enumerate(one.lengths):
            match length:
                case _ if one.name not in names:
                    pass
                case Const(int(value)):
                    equal[extent_name(one.name, axis)] = number_text(value)
                case Var(name):
                    equal[extent_name(one.name, axis)] = isl_name(name)
                case Dim(array, other):
                    equal[extent_name(one.name, axis)] = extent_name(array, other)
    parameters = sorted({*equal, *(value for value in equal.values() if value.isidentifier())})
    return f"{parameter_list(parameters)}{{ : {' and '.join(f'{name} = {value}' for name, value in equal.items())} }}"


def _equal_to(values: Mapping[str, int]) -> str:
    """The isl set of parameters with these values.

    >>> _equal_to({"n": 4, "m": 3})
    '[m, n] -> { : n = 4 and m = 3 }'
    """
    equal = " and ".join(f"{name} = {number_text(value)}" for name, value in values.items())
    return f"{parameter_list(values)}{{ : {equal} }}"


def place_reference(reference: Reference, space: Space, given: isl.Set, maps: Maps) -> Placed:
    """A reference with its relation, for parameters in the set `given`."""
    access = access_relation(*(_as_dimensions(reference, space) if reference.inner else (reference, space)), maps)
    is_sure = access.exact and not access.is_may
    is_sure = is_sure and all(isinstance(loop.step, Affine) and loop.step.value for loop in reference.inner)
    relation = maps.map(access.relation)
    return Placed(reference, relation if given.plain_is_universe() else relation.intersect_params(given), is_sure)


def _as_dimensions(reference: Reference, space: Space) -> tuple[Reference, Space]:
    """A reference without inner loops, whose variables are dimensions instead."""
    forms = [form for loop in reference.inner for form in (loop.start, loop.stop, loop.step)]
    names = {name for form in forms if isinstance(form, Affine) for name in form.names}
    dims = (*space.dims, *(loop.var for loop in reference.inner))
    inside = [text for loop in reference.inner for text in inner_constraints(loop)]
    wider = replace(space, dims=dims, constraints=(*space.constraints, *inside), names=space.names | names - {*dims})
    return replace(reference, inner=()), wider


# ---------------------------------------------------------------- the three conditions


def _is_covered(read: int, placed: Mapping[int, Placed], orders: Mapping[tuple[int, int], isl.Map]) -> bool:
    """(a) for one read."""
    rest = placed[read].relation
    for write, one in placed.items():
        if (write, read) in orders:
            rest = rest.subtract(orders[write, read].apply_range(one.relation))
    return bool(rest.is_empty())


def _before(write: Reference, read: Reference, dims: int) -> str:
    """The isl map (x, v) → (x, u) to the instances of a write that come before an instance of a read in iteration x."""
    names = [f"x{d}" for d in range(dims)]
    inputs = [*names, *(f"v{level}" for level in range(len(read.inner)))]
    outputs = [*names, *(f"u{level}" for level in range(len(write.inner)))]
    return f"{{ [{', '.join(inputs)}] -> [{', '.join(outputs)}] : {_comes_first(write, read, 0)} }}"


def _comes_first(write: Reference, read: Reference, level: int) -> str:
    """That the write comes first, given that the two are in the same trips of the loops further out than `level`."""
    here, there = write.place[level], read.place[level]
    if here != there:
        return "true" if here < there else "false"
    step = write.inner[level].step  # both are in this loop
    assert isinstance(step, Affine)
    assert step.value
    sign = "<" if step.value > 0 else ">"
    further = _comes_first(write, read, level + 1)
    return f"(u{level} {sign} v{level} or (u{level} = v{level} and {further}))"


def _last_writes_all(placed: Iterable[Placed], iterations: isl.Set) -> bool:
    """(b)."""
    import islpy as isl

    last, dims = iterations.lexmax(), iterations.dim(isl.dim_type.set)
    written: isl.Set | None = None
    kept: isl.Set | None = None
    for one in (one for one in placed if one.reference.is_write):
        relation = one.relation.project_out(isl.dim_type.in_, dims, one.relation.dim(isl.dim_type.in_) - dims)
        written = relation.range() if written is None else written.union(relation.range())
        if one.is_sure:
            again = relation.intersect_domain(last).range()
            kept = again if kept is None else kept.union(again)
    return written is None or (kept is not None and bool(written.is_subset(kept)))


def last_iteration(domain: str, changing: Collection[str]) -> isl.Set | None:
    """The last iteration of a loop, if it is the same one in all rounds of the loops around it: (d). `changing` are the
    parameters of the domain that have other values in other rounds."""
    import islpy as isl

    try:
        last = isl.Set(domain).lexmax()
    except isl.Error:  # there may be none
        return None
    for name in changing:
        position = last.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            last = last.project_out(isl.dim_type.param, position, 1)
    return last if isl.Map.from_range(last).is_single_valued() else None


def ends_at_one_place(domain: str, values: Mapping[str, int], maps: Maps) -> bool:
    """Whether a loop has one last iteration for all parameters without `values`. The last tile then has it: a grid is
    cut for all iterations that there may be."""
    import islpy as isl

    fixed = fix_parameters(maps.set(domain), values)
    return last_iteration(str(fixed), fixed.get_var_names(isl.dim_type.param)) is not None


def _ends_in_corner(iterations: isl.Set) -> bool:
    """(c)."""
    import islpy as isl

    pairs = isl.Map.from_domain_and_range(iterations.lexmax(), iterations)
    everything = isl.Map.universe(pairs.get_space())
    return all(
        pairs.intersect(everything.order_lt(isl.dim_type.in_, d, isl.dim_type.out, d)).is_empty()
        for d in range(iterations.dim(isl.dim_type.set))
    )
