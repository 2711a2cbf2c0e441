"""The iteration domain of a loop and its access relations, as isl sets and maps.

An iteration is named by its coordinates in the loop dimensions: the key of a sparse array, the value of the
variable of a `range` with step 1, the trip number of a `range` with another step. A loop over a sparse array has
one dimension more, `n`, which tells apart elements with equal keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from orion.dataclass import dataclass, replace
from orion.dependence.access import NO_READS, Access, ByReads
from orion.dependence.reads import place_of, reads_in, valued_forms, with_values
from orion.dependence.references import InnerLoop, Interval, Reference, collect_references, loop_scope
from orion.dependence.scalars import live_after
from orion.ir.assigned import assigned_places
from orion.ir.assumed import OfSizes
from orion.ir.nodes import For, Range, Var, every, walk
from orion.ir.program import LoopNest, Program, Repeat, RunLoop, Step, blocks_of
from orion.ir.types import SparseType, Types
from orion.reasons import Reason
from orion.sets.affine import Affine, Form, NotAffine, affine_form, has_unit_step, parameter, step_form
from orion.sets.conditions import all_of
from orion.sets.maps import Maps
from orion.sets.names import extent_name, isl_name, number_text, parameter_list, product_text

if TYPE_CHECKING:
    import islpy as isl

ELEMENT = "n__"
"""The isl name of the dimension that tells apart elements with equal keys."""


@dataclass(frozen=True, slots=True)
class Space:
    """The iteration space of a loop, in pieces of isl text.

    `dims` are its isl dimensions; `constraints` hold in its domain; `values` gives each loop variable that is not
    its own coordinate (`i = start + step * trip`) as an equation; `names` are the isl parameters in all of these.
    `reasons` say why the domain is over-approximated, where it is. `around` are the variables of the serial loops
    around, and `around_is_exact` says whether the constraints on those are all that there is to know of them.
    """

    dims: tuple[str, ...]
    constraints: tuple[str, ...]
    equations: tuple[str, ...]
    values: tuple[str, ...]
    names: frozenset[str]
    reasons: tuple[NotAffine, ...]
    around: tuple[str, ...] = ()
    around_is_exact: bool = True

    def text(self) -> str:
        """The domain as the text of an isl set."""
        inside = " and ".join((*self.constraints, *self.equations)) or "true"
        hidden = f"exists {', '.join(self.values)}: " if self.values else ""
        return f"{parameter_list(self.names)}{{ [{', '.join(self.dims)}] : {hidden}{inside} }}"


@dataclass(frozen=True, slots=True)
class Known:
    """What holds of the parameters of a nest, such as the variables of loops around it: constraints as isl text, and
    the parameters in them."""

    constraints: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()


NOTHING = Known()


@dataclass(frozen=True, slots=True)
class Model:
    """A planned loop as all of its analyses see it: its references, its iteration space by itself (`own`), and the one
    with what is `known` of the serial loops around it (`space`). Their variables are parameters within their ranges.
    `live_after` are the scalars whose values are needed after it."""

    nest: LoopNest
    references: tuple[Reference, ...]
    own: Space
    known: Known
    space: Space
    live_after: frozenset[str]


def model_loop(program: Program, number: int, types: Types) -> Model:
    """The model of planned loop `number`. A bound that is not affine leaves its dimension unbounded there."""
    nest = program.nests[number]
    scope = loop_scope(nest, types)
    own = own_space(nest, types, scope)
    around = loops_around(program.steps, number) or ()
    known = _around(around, scope)
    space = _within(own, around, known, scope)
    return Model(nest, collect_references(nest, types, scope), own, known, space, live_after(program, number))


def own_space(nest: LoopNest, types: Types, scope: Mapping[str, Form] | None = None) -> Space:
    """The iteration space of a nest by itself, without what is known of loops around it; `scope` is its `loop_scope`,
    if known already."""
    if nest.elements is not None:
        space = _element_space(nest, types)
    else:
        space = _range_space(nest, loop_scope(nest, types) if scope is None else scope)
    inside = {loop.index for loop in every(For, *nest.loops[:1])}
    held = (one for one in nest.function.assumed if isinstance(one, OfSizes) and one.index in inside)
    conditions = tuple(dict.fromkeys((one.constraint, one.names) for one in held))
    if not conditions:
        return space
    constraints, names = all_of(conditions)
    return replace(space, constraints=(*space.constraints, *constraints), names=space.names | names)


def used_names(model: Model) -> frozenset[str]:
    """The isl names of the parameters that the bounds and subscripts of a nest mention. What these read is among its
    references, with its own subscripts."""
    space, references = model.own, model.references
    forms = [form for reference in references for form in _forms(reference)]
    own = {*space.dims, *space.values, *(loop.var for reference in references for loop in reference.inner)}
    names = {name for form in forms if isinstance(form, Affine) for name in form.names}
    names |= {name for reference in references for form in valued_forms(reference) for name in form.names}
    names |= {name for reference in references for guard in reference.guards for name in guard.names}
    return space.names | names - own


def loops_around(steps: tuple[Step, ...], number: int) -> tuple[Range, ...] | None:
    """The ranges of the serial loops around planned loop `number`, outermost first; None where it is not in `steps`.

    Those that say nothing of their variable (a `while`, a bound that is assigned in the body) are left out.
    """
    for step in steps:
        if isinstance(step, RunLoop) and step.number == number:
            return ()
        for block in blocks_of(step):
            inner = loops_around(block, number)
            if inner is not None:
                space = step.space if isinstance(step, Repeat) and _keeps_its_range(step) else None
                return inner if space is None else (space, *inner)
    return None


def _keeps_its_range(repeat: Repeat) -> bool:
    """Whether the variable of a serial loop, and what its bounds are made of, have the same values all through a
    round: `for t in range(n):` with `n -= 1` in its body says nothing of t and n."""
    changed = assigned_places(repeat.loop.body)
    return repeat.space is not None and changed.keys().isdisjoint({repeat.space.var, *_known(repeat.space)})


def _bounds(outer: Range, scope: Mapping[str, Form]) -> list[Form]:
    return [affine_form(bound, {**scope, **_known(outer)}) for bound in (outer.start, outer.stop, outer.step)]


def _around(around: tuple[Range, ...], scope: Mapping[str, Form]) -> Known:
    """What holds of the variables of loops around a nest: they lie within their ranges."""
    constraints: list[str] = []
    names = {isl_name(outer.var) for outer in around}
    for outer in around:
        bounds = _bounds(outer, scope)
        constraints += inner_constraints(InnerLoop(isl_name(outer.var), *bounds))
        names |= {name for form in bounds if isinstance(form, Affine) for name in form.names}
    return Known(tuple(constraints), frozenset(names))


def _within(space: Space, around: tuple[Range, ...], known: Known, scope: Mapping[str, Form]) -> Space:
    """`space` with what is known of the variables of the loops around it, which are parameters."""
    forms = (form for outer in around for form in _bounds(outer, scope))
    return replace(
        space,
        constraints=(*space.constraints, *known.constraints),
        names=space.names | known.names,
        around=tuple(isl_name(outer.var) for outer in around),
        around_is_exact=all(isinstance(form, Affine) for form in forms) and all(map(has_constant_step, around)),
    )


def _known(outer: Range) -> dict[str, Form]:
    """Names in the bounds of a loop around stand for themselves."""
    bounds = (outer.start, outer.stop, outer.step)
    return {node.name: parameter(node.name) for bound in bounds for node in walk(bound) if isinstance(node, Var)}


def _element_space(nest: LoopNest, types: Types) -> Space:
    elements = nest.elements
    assert elements is not None
    kind = types[elements.array]
    assert isinstance(kind, SparseType)
    names = [isl_name(dim) for dim in nest.dims]
    extents = [extent_name(elements.array, axis) for axis in range(len(names))]
    constraints = [f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True)]
    constraints.append(f"{ELEMENT} = 0" if kind.unique_keys else f"0 <= {ELEMENT}")
    return Space((*names, ELEMENT), tuple(constraints), (), (), frozenset(extents), ())


def _range_space(nest: LoopNest, scope: Mapping[str, Form]) -> Space:
    dims: list[str] = []
    constraints: list[str] = []
    equations: list[str] = []
    values: list[str] = []
    reasons: list[NotAffine] = []
    names: set[str] = set()
    for space in nest.ranges:
        start, stop = (affine_form(bound, scope) for bound in (space.start, space.stop))
        step = step_form(space.step, scope)
        var = isl_name(space.var)
        forms = [form for form in (start, stop, step) if isinstance(form, Affine)]
        reasons += [form for form in (start, stop, step) if isinstance(form, NotAffine)]
        names |= {name for form in forms for name in form.names}
        if has_unit_step(space):
            dims.append(var)
            constraints += _between(var, start, stop)
        else:
            trip = trip_name(space)
            dims.append(trip)
            values.append(var)
            constraints.append(f"{trip} >= 0")
            equations += _trip(var, trip, start, stop, step)
    own = set(dims) | set(values)
    return Space(
        tuple(dims), tuple(constraints), tuple(equations), tuple(values), frozenset(names - own), tuple(reasons)
    )


def has_constant_step(space: Range) -> bool:
    form = affine_form(space.step, {})
    return isinstance(form, Affine) and form.value not in (None, 0)


def trip_name(space: Range) -> str:
    """The isl name of the trip number of a loop whose step is not 1."""
    return f"{isl_name(space.var)}__trip"


def _between(var: str, start: Form, stop: Form) -> Iterator[str]:
    if isinstance(start, Affine):
        yield from (f"{bound} <= {var}" for bound in start.as_lower)
    if isinstance(stop, Affine):
        yield from (f"{var} < {bound}" for bound in stop.as_upper)


def _trip(var: str, trip: str, start: Form, stop: Form, step: Form) -> Iterator[str]:
    """`var = start + step * trip`, on the right side of `stop`; nothing where the step is not a constant."""
    if not isinstance(step, Affine) or step.value in (None, 0):
        return
    if isinstance(start, Affine):
        yield f"{var} = {start.text} + {product_text(step.value, trip)}"
    if isinstance(stop, Affine):
        yield f"{var} < {stop.text}" if step.value > 0 else f"{var} > {stop.text}"


# ---------------------------------------------------------------- accesses


def access_relation(reference: Reference, space: Space, maps: Maps | None = None, name: str = "") -> Access:
    """The access that a reference makes, with its relation from iterations, named by `name`, to array elements. The
    relation is noted in `maps`.

    Subscripts that are not affine stand for every element of their axis (the access is then not `exact`). A subscript
    that may be negative is where Python wraps it to.
    """
    blur = [reference.blur] if reference.blur else []
    blur += [form for form in _forms(reference) if isinstance(form, NotAffine)]
    relation = _plain_relation(reference, space, maps or Maps(), name) or _wrapped_relation(reference, space, name)
    reason = _reason(reference, blur[0]) if blur else None
    exact = not blur and _is_exact(reference)
    by_reads = NO_READS if reference.blur else _by_reads(reference, space)
    place = reference.span
    return Access(
        reference.array, reference.text, reference.is_write, reference.is_may, relation, exact, reason, place, by_reads
    )


def _by_reads(reference: Reference, space: Space) -> ByReads:
    """An access of the values that it reads, if it does."""
    reads = reads_in(reference)
    if not reads:
        return NO_READS
    inner = tuple(loop.var for loop in reference.inner)
    dims = (*space.dims, *space.values, *inner, *(read.name for read in reads))
    relation = _wrapped_relation(with_values(reference), space, "", dims)
    return ByReads(len(space.dims), relation, tuple((read.array, place_of(read, dims)) for read in reads))


def _plain_relation(reference: Reference, space: Space, maps: Maps, name: str) -> str | None:
    """The relation of an access whose subscripts are affine and never negative, made without a long text; None for
    others."""
    axes = [axis for axis in reference.axes if isinstance(axis, Affine)]
    if reference.blur is not None or len(axes) < len(reference.axes):
        return None
    constraints, names = _members(reference, space)
    hidden = [*space.values, *(loop.var for loop in reference.inner)]
    dims = (*space.dims, *hidden)
    inside = f"[{', '.join(dims)}] : {' and '.join(constraints) or 'true'}"
    domain = f"{parameter_list(names.difference(dims))}{{ {inside} }}"

    def text() -> str | None:
        relation = maps.access(domain, dims, reference.array, axes)
        return None if relation is None else maps.text(without_inputs(relation, len(space.dims), name))

    key = "access", domain, dims, reference.array, tuple([form.text for form in axes]), len(space.dims), name
    found = maps.once(key, text)
    maps.plain.update(() if found is None else (found,))
    return found


def without_inputs(relation: isl.Map, dims: int, name: str) -> isl.Map:
    """The relation for the first `dims` of its inputs, whatever the others are; its inputs with a name."""
    import islpy as isl

    count = relation.dim(isl.dim_type.in_)
    if count > dims:
        relation = relation.project_out(isl.dim_type.in_, dims, count - dims)
    return relation.set_tuple_name(isl.dim_type.in_, name) if name else relation


def _members(reference: Reference, space: Space) -> tuple[list[str], set[str]]:
    """What holds of an iteration that makes the access, and of the inner loops there; the names in that."""
    constraints = [*space.constraints, *space.equations]
    for loop in reference.inner:
        constraints += inner_constraints(loop)
    constraints += (guard.text for guard in reference.guards)
    names = set(space.names) | {name for guard in reference.guards for name in guard.names}
    bounds = [form for loop in reference.inner for form in (loop.start, loop.stop, loop.step)]
    return constraints, names | {name for form in bounds if isinstance(form, Affine) for name in form.names}


def _wrapped_relation(reference: Reference, space: Space, name: str, inputs: tuple[str, ...] = ()) -> str:
    """The relation as text, from `inputs`, if these are given."""
    outputs = [f"x{axis}" for axis in range(len(reference.axes))]
    constraints, names = _members(reference, space)
    names |= {extent_name(reference.array, axis) for axis in range(len(outputs))}
    for axis, (output, subscript) in enumerate(zip(outputs, reference.axes, strict=True)):
        extent = extent_name(reference.array, axis)
        constraints.append(f"0 <= {output} < {extent}")
        if reference.blur is None:
            constraints += _axis_constraints(output, subscript, extent)
    inputs = inputs or space.dims
    hidden = [one for one in (*space.values, *(loop.var for loop in reference.inner)) if one not in inputs]
    bound = {*inputs, *hidden}
    names |= {name for form in _forms(reference) if isinstance(form, Affine) for name in form.names}
    exists = f"exists {', '.join(hidden)}: " if hidden else ""
    target = f"{isl_name(reference.array)}[{', '.join(outputs)}]"
    inside = f"{exists}{' and '.join(constraints)}"
    return f"{parameter_list(names - bound)}{{ {name}[{', '.join(inputs)}] -> {target} : {inside} }}"


def _is_exact(reference: Reference) -> bool:
    """Whether every step in the reference is one that the relation says in full."""
    slices = [axis.step for axis in reference.axes if isinstance(axis, Interval)]
    steps = [loop.step for loop in reference.inner]
    return all(map(_is_plain_step, slices)) and all(isinstance(s, Affine) and s.value for s in steps)


def _forms(reference: Reference) -> Iterator[Form]:
    for subscript in reference.axes:
        if isinstance(subscript, Interval):
            yield from (form for form in (subscript.lower, subscript.upper, subscript.step) if form is not None)
        else:
            yield subscript
    for loop in reference.inner:
        yield from (_as_bound(form) for form in (loop.start, loop.stop, loop.step))


def _as_bound(form: Form) -> Form:
    return NotAffine("ORN107", form.why, form.span, form.hint) if isinstance(form, NotAffine) else form


def inner_constraints(loop: InnerLoop) -> Iterator[str]:
    """What holds for the variable of an inner loop; nothing on a side whose bound is not affine."""
    if not isinstance(loop.step, Affine) or loop.step.value == 0:
        return
    if loop.step.value is None:
        yield from _either_way(loop)
        return
    if loop.step.value == 1:
        yield from _between(loop.var, loop.start, loop.stop)
        return
    low, high = (loop.start, loop.stop) if loop.step.value > 0 else (loop.stop, loop.start)
    if isinstance(low, Affine):
        yield f"{low.text} {'<=' if low is loop.start else '<'} {loop.var}"
    if isinstance(high, Affine):
        yield f"{loop.var} {'<=' if high is loop.start else '<'} {high.text}"
    if isinstance(loop.start, Affine):
        yield f"({loop.var} - {loop.start.text}) mod {number_text(abs(loop.step.value))} = 0"


def _either_way(loop: InnerLoop) -> Iterator[str]:
    """What holds for the variable of a loop whose step has an unknown sign."""
    if isinstance(loop.start, Affine) and isinstance(loop.stop, Affine) and isinstance(loop.step, Affine):
        step, start, stop = loop.step.text, loop.start.text, loop.stop.text
        up, down = f"{start} <= {loop.var} < {stop}", f"{stop} < {loop.var} <= {start}"
        yield f"(({step} > 0 and {up}) or ({step} < 0 and {down}))"


def _axis_constraints(output: str, subscript: Form | Interval, extent: str) -> Iterator[str]:
    if isinstance(subscript, Affine):
        yield _wrapped(output, "=", subscript, extent)
    elif isinstance(subscript, Interval):
        if not _is_plain_step(subscript.step):
            return  # every element of the axis: an over-approximation of a slice with a step
        if isinstance(subscript.lower, Affine):
            yield _wrapped(output, ">=", subscript.lower, extent)
        if isinstance(subscript.upper, Affine):
            yield _wrapped(output, "<", subscript.upper, extent)


def _is_plain_step(step: Form | None) -> bool:
    return step is None or (isinstance(step, Affine) and step.value == 1)


def _wrapped(output: str, relation: str, form: Affine, extent: str) -> str:
    """`output relation form`, where a negative index counts from the end of the axis."""
    index = form.text
    if form.value is not None:
        return f"{output} {relation} {index}" if form.value >= 0 else f"{output} {relation} {index} + {extent}"
    return (
        f"(({index} >= 0 and {output} {relation} {index}) or ({index} < 0 and {output} {relation} {index} + {extent}))"
    )


def _reason(reference: Reference, blur: NotAffine) -> Reason:
    message = f"`{reference.text}` is taken to touch every element it could: {blur.why}"
    return Reason.of(blur.code, message, blur.span, hint=blur.hint or None)
