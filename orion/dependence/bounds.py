"""Whether every subscript stays inside its array, decided before anything runs.

For an access whose subscripts are affine the iterations that leave the array are a set with parameters (extents and
integer arguments); with the parameters fixed to the values of a call, it is empty or it has a witness.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.dependence.conflicts import CapReached, capped
from orion.dependence.model import Model, Space, inner_constraints, model_loop
from orion.dependence.references import Reference
from orion.errors import OutOfBoundsError, describe
from orion.ir.assigned import own_level
from orion.ir.function import Function, in_users_words, written_names
from orion.ir.nodes import Break, Continue, Return, Stmt
from orion.ir.program import Branch, LoopNest, Program, Repeat, RunLoop, Scalars, Step, blocks_of
from orion.ir.types import Types
from orion.sets.affine import Affine, NotAffine
from orion.sets.names import extent_name, isl_name, isl_value, parameter_list
from orion.source import Span

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """The iterations for which one subscript leaves one axis of its array, as the text of an isl set.

    `names` are its parameters. `is_certain`: the access happens in every iteration, so that a member of the set is
    an error for sure. `wraps`: the text of the set of iterations where the subscript is negative, and counts from
    the end. `near` has all of either, or more: of the constraints only those on what the subscript is made of, so that
    where it is empty for values of its parameters `near_names`, other integers of a call do not count. `made_of` are
    the names that the subscript is made of.
    """

    array: str
    axis: int
    text: str
    span: Span
    outside: str
    wraps: str
    names: frozenset[str]
    is_certain: bool
    near: str
    near_names: frozenset[str]
    made_of: frozenset[str]


MOST_AXES = 32
"""How many dimensions arrays have."""

Place = tuple[Span, int]
"""A subscript: where the element stands, and the axis."""


@dataclass(frozen=True, slots=True)
class BoundsChecks:
    """The checks of one loop, and the subscripts that no check covers: the spans of the elements, with the axes."""

    checks: tuple[BoundsCheck, ...]
    unchecked: frozenset[Place]


def all_checks(parts: Iterable[BoundsChecks]) -> BoundsChecks:
    """The checks of loops that are run as one: those of each."""
    parts = tuple(parts)
    unchecked = frozenset[Place]().union(*(part.unchecked for part in parts))
    return BoundsChecks(tuple(check for part in parts for check in part.checks), unchecked)


def bounds_checks(program: Program, number: int, types: Types, model: Model | None = None) -> BoundsChecks:
    """The bounds checks of planned loop `number`, from its model where that is known; they hold for all shapes."""
    model = model or model_loop(program, number, types)
    space = model.space
    is_sure = bool(_is_sure(program.steps, number)) and space.around_is_exact
    checks: list[BoundsCheck] = []
    unchecked: set[Place] = set()
    for reference in model.references:
        for axis, form in enumerate(reference.axes):
            if isinstance(form, Affine) and not space.reasons:
                checks.append(_check(reference, axis, form, space, is_sure))
            elif isinstance(form, Affine | NotAffine):
                unchecked.add((reference.span, axis))
    return BoundsChecks(tuple(dict.fromkeys(checks)), frozenset(unchecked))


def _is_sure(steps: tuple[Step, ...], number: int) -> bool | None:
    """Whether a planned loop is run whenever the function is, in every round of the loops around it; None where it is
    not in `steps`. Not so in an `if` or a `while`, where a round may be left, and after a `return` that may be taken.
    """
    sure = True
    for step in steps:
        if isinstance(step, RunLoop) and step.number == number:
            return sure
        for block in blocks_of(step):
            found = _is_sure(block, number)
            if found is not None:
                return found and sure and _runs_all_rounds(step)
        sure = sure and not _may_leave(step)
    return None


def _runs_all_rounds(step: Step) -> bool:
    return isinstance(step, Repeat) and step.space is not None and not _leaves(step.loop.body)


def _may_leave(step: Step) -> bool:
    match step:
        case Scalars(body):
            return _leaves(body)
        case Branch(statement):
            return _leaves((statement,))
        case _:
            return False


def _leaves(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(statement, Break | Continue | Return) for statement in own_level(body))


def _check(reference: Reference, axis: int, form: Affine, space: Space, is_sure: bool) -> BoundsCheck:
    extent = extent_name(reference.array, axis)
    inner = list(chain.from_iterable(inner_constraints(loop) for loop in reference.inner))
    constraints = [*space.constraints, *space.equations, *inner, *(guard.text for guard in reference.guards)]
    bounds = [f for loop in reference.inner for f in (loop.start, loop.stop, loop.step)]
    hidden = [*space.values, *(loop.var for loop in reference.inner), *space.around]
    names = {*space.names, *form.names, extent} | {name for guard in reference.guards for name in guard.names}
    names |= {name for bound in bounds if isinstance(bound, Affine) for name in bound.names}
    names -= {*space.dims, *hidden}
    dims = ", ".join((*space.dims, *hidden))

    def members(condition: str, held: Sequence[str] = constraints, names: Collection[str] = names) -> str:
        return f"{parameter_list(names)}{{ [{dims}] : {' and '.join((*held, condition))} }}"

    outside = members(f"({form.text} >= {extent} or {form.text} < -{extent})")
    near = _near(form, constraints, {*space.dims, *hidden})
    near_names = names.intersection(chain.from_iterable(map(_words, (*near, form.text, extent))))
    is_certain = is_sure and not reference.is_may and all(isinstance(bound, Affine) for bound in bounds)
    return BoundsCheck(
        reference.array, axis, reference.text, reference.span, outside, members(f"{form.text} < 0"),
        frozenset(names), is_certain, members(f"({form.text} >= {extent} or {form.text} < 0)", near, near_names),
        frozenset(near_names), _words(form.text),
    )  # fmt: skip


def _near(form: Affine, constraints: Sequence[str], dims: Collection[str]) -> list[str]:
    """The constraints that have a dimension in common with a subscript, or with one of these."""
    reached, left, found = {*_words(form.text)} & {*dims}, list(constraints), list[str]()
    while more := [one for one in left if not reached.isdisjoint(_words(one))]:
        found += more
        left = [one for one in left if one not in more]
        reached |= {name for one in more for name in _words(one) if name in dims}
    return found


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", text))


def prove_bounds(checks: BoundsChecks, values: Mapping[str, int], nest: LoopNest) -> frozenset[Place]:
    """The subscripts proved to lie in `[0, extent)` for these parameter values.

    `values` gives extents and integer arguments by their isl names; a check with a parameter that is not among them
    proves nothing, nor does one that would take isl too long. Raises `OutOfBoundsError` where an access that is sure to
    happen leaves its array.
    """
    import islpy as isl

    open_places = {*checks.unchecked}
    for check in checks.checks:
        if not check.names <= values.keys():
            open_places.add((check.span, check.axis))
            continue
        if _is_empty(check.near, tuple((name, values[name]) for name in sorted(check.near_names))):
            continue
        side = _side(check.outside, check.wraps, tuple((name, values[name]) for name in sorted(check.names)))
        if side is Side.OUTSIDE and check.is_certain:
            raise OutOfBoundsError(_message(check, fix_parameters(isl.Set(check.outside), values), values, nest))
        if side is not Side.INSIDE:
            open_places.add((check.span, check.axis))
    return frozenset((check.span, check.axis) for check in checks.checks) - open_places


class Side(Enum):
    """Where a subscript lies: in `[0, extent)` in all iterations, outside of the array in some, or nobody knows."""

    INSIDE, OUTSIDE, UNKNOWN = range(3)


@lru_cache(maxsize=4096)
def _is_empty(text: str, known: tuple[tuple[str, int], ...]) -> bool:
    """Whether a set has no members for values of its parameters; False where isl would take too long."""
    import islpy as isl

    context = isl.Context()
    try:
        with capped(context):
            return bool(fix_parameters(isl.Set(text, context), dict(known)).is_empty())
    except CapReached:
        return False


@lru_cache(maxsize=4096)
def _side(outside: str, wraps: str, known: tuple[tuple[str, int], ...]) -> Side:
    """Where a subscript lies, given the sets of iterations where it is outside and where it is negative, for values of
    their parameters. Most are the same from call to call, also where one integer differs."""
    import islpy as isl

    context, values = isl.Context(), dict(known)
    try:
        with capped(context):
            if not fix_parameters(isl.Set(outside, context), values).is_empty():
                return Side.OUTSIDE
            return Side.INSIDE if fix_parameters(isl.Set(wraps, context), values).is_empty() else Side.UNKNOWN
    except CapReached:
        return Side.UNKNOWN


def fix_parameters(relation: isl.Set, values: Mapping[str, int]) -> isl.Set:
    """`relation` with each parameter that has a value fixed to it."""
    import islpy as isl

    for position in range(relation.dim(isl.dim_type.param)):
        name = relation.get_dim_name(isl.dim_type.param, position)
        if name in values:
            relation = relation.fix_val(isl.dim_type.param, position, isl_value(values[name], relation.get_ctx()))
    return relation


def _message(check: BoundsCheck, outside: isl.Set, values: Mapping[str, int], nest: LoopNest) -> str:
    extent, function = values[extent_name(check.array, check.axis)], nest.function
    array, text = (in_users_words(words, function) for words in (check.array, check.text))
    where, made_of = _reached(check, outside, function), _made_of(check, values, function)
    others = [f"pass another `{name}`" for name in made_of if name in function.given]
    larger = f"make `{array}` larger in dimension {check.axis}"
    inside = f", which takes subscripts in {-extent} … {extent - 1} there" if extent else ""
    last = "narrow the loop" if where else f"write another subscript{inside}"
    facts = [f"`{array}.shape[{check.axis}]` is {extent}", *(f"`{name}` is {n}" for name, n in made_of.items()), *where]
    return describe(
        f"`{text}` leaves `{array}`",
        span=check.span,
        source=function.source,
        why=", and ".join([", ".join(facts[:-1] or facts), *facts[1:][-1:]]),
        hint=", ".join([larger, *others]) + f", or {last}",
    )


def _reached(check: BoundsCheck, outside: isl.Set, function: Function) -> list[str]:
    """Say which iteration leaves the array; nothing where its subscript is the same in all."""
    import islpy as isl

    point, names = outside.sample_point(), (outside.get_dim_name(isl.dim_type.set, d) for d in range(outside.n_dim()))
    dims = {str(name): d for d, name in enumerate(names)}
    if check.made_of.isdisjoint(dims):
        return []
    said = {isl_name(name): name for name in written_names(function)}  # others are of Orion's making
    where = [
        f"{in_users_words(said[name], function)} = {point.get_coordinate_val(isl.dim_type.set, d).to_python()}"
        for name, d in dims.items()
        if name in said
    ]
    return [f"the loop reaches {', '.join(where)}"] if where else []


def _made_of(check: BoundsCheck, values: Mapping[str, int], function: Function) -> dict[str, int]:
    """Return the names of the user's that stay the same in the loop and that a subscript is made of, with values."""
    names = {*function.params, *written_names(function)}
    said = {isl_name(name): name for name in names}
    said |= {extent_name(name, axis): f"{name}.shape[{axis}]" for name in names for axis in range(MOST_AXES)}
    return {said[name]: values[name] for name in sorted(check.made_of & check.names & said.keys())}
