"""In words: why iterations conflict, and why a stronger strategy is not legal."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from orion.analysis.rules import stronger_than
from orion.cost.candidate import Strategy
from orion.dataclass import dataclass, field
from orion.dependence.access import Access, Dependence
from orion.dependence.bounds import fix_parameters
from orion.dependence.choices import directions
from orion.dependence.conflicts import CapReached, capped
from orion.ir.function import Function, written_names
from orion.ir.nodes import Expr, names_in
from orion.ir.printer import print_expr
from orion.ir.program import LoopNest
from orion.ir.types import ScalarType, Types
from orion.plan.iterations import in_source_names, iterations_in_words, loop_in_words, pair_in_words
from orion.reasons import Hint, Reason, ReasonKind
from orion.sets.affine import Affine, affine_form, parameter
from orion.sets.maps import Maps
from orion.sets.names import isl_name, number_of
from orion.source import Span

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Told:
    """What reasons are told of: a loop in a call. `known` are the values of isl's parameters there. `has_values`: the
    coordinates of its iterations are values of what its dimensions are called by, in all statements."""

    nest: LoopNest
    known: Mapping[str, int] = field(default_factory=dict)
    maps: Maps = field(default_factory=Maps)
    has_values: bool = True


def blocking_reasons(dependences: Iterable[Dependence], told: Told, symbolic: bool = False) -> tuple[Reason, ...]:
    """One reason per pair of accesses that conflict, in program order; one alone where they meet only by what is not
    known of the place where a loop begins. `symbolic`: no sizes are known."""
    dependences = tuple(dependences)
    start = None if symbolic else unknown_start(dependences, told)
    if start is not None:
        return (start,)
    needed = {dependence.sink.span for dependence in dependences if dependence.kind == "flow"}
    found = []
    for dependence in by_pair(dependences):
        reason = dependence.reason
        message = describe_pair(dependence, told)
        spans = (dependence.source.span, dependence.sink.span)
        if reason is None:
            hint = _hint(dependence, needed) if all(directions(told.nest)) else Hint.STEP
            found.append(Reason(ReasonKind.BLOCKS, "ORN101", message, spans, hint))
        else:
            said = reason.message if reason.row.about_scalar else f"{message}; {reason.message}"
            found.append(Reason(ReasonKind.BLOCKS, reason.code, said, spans, reason.hint))
    return tuple(dict.fromkeys(found))


def in_turn(reasons: Iterable[Reason], function: Function) -> tuple[Reason, ...]:
    """Reasons in the order in which they are told, in names of the source."""
    ordered = sorted(reasons, key=lambda reason: reason.row.last)
    return tuple(in_source_names(reason, function) for reason in ordered)


def by_pair(dependences: Iterable[Dependence]) -> list[Dependence]:
    """One dependence per unordered pair of places in the source, in program order; flow before anti before output."""
    rank = {"flow": 0, "conflict": 0, "anti": 1, "output": 2}
    chosen: dict[object, Dependence] = {}
    for dependence in dependences:
        key = dependence.array, frozenset((dependence.source.span.in_source, dependence.sink.span.in_source))
        if key not in chosen or rank[dependence.kind] < rank[chosen[key].kind]:
            chosen[key] = dependence
    return sorted(chosen.values(), key=lambda d: (min(d.source.span, d.sink.span), max(d.source.span, d.sink.span)))


def describe_pair(dependence: Dependence, told: Told) -> str:
    """What two accesses have in common, in which iterations, and an example."""
    first, second = _place(dependence.source), _place(dependence.sink)
    meets = "meets" if is_certain(dependence) else "may meet"
    pair = f"{first} {meets} itself" if first == second else f"{first} {meets} {second}"
    example = witness(dependence, told)
    return f"{pair} in {iterations_in_words(dependence, told.nest)}" + (f" (e.g. {example})" if example else "")


def is_certain(dependence: Dependence) -> bool:
    """Whether the accesses of a dependence are sure to meet in its iterations."""
    return dependence.exact and not (dependence.source.is_may or dependence.sink.is_may)


def _place(access: Access) -> str:
    verb = "written" if access.is_write else "read"
    may = ", perhaps" if access.is_may else ""
    return f"`{access.text}` ({verb} in line {access.span.line}{may})"


def witness(dependence: Dependence, told: Told) -> str:
    """Two iterations of the call that conflict, as "i=0, j=1 and i=0, j=2"; empty where isl gives none."""
    nest, pair = told.nest, possible_pair(dependence, told)
    if pair is None or not told.has_values:
        return ""
    if dependence.kind == "conflict":  # neither comes first: name the smaller one first
        pair = min(pair), max(pair)
    return pair_in_words(pair, nest, told.known)


def possible_pair(dependence: Dependence, told: Told) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The coordinates of two iterations that conflict, source first; None where too little is known of subscripts or
    bounds to give such that are possible in the call."""
    if dependence.reason is not None and dependence.reason.code in WITHOUT_EXAMPLE:
        return None
    if not all(_is_known(space.start, told) for space in told.nest.ranges):
        return None
    dims, known, maps = len(told.nest.dims), told.known, told.maps
    key = "witness", dependence.relation, dims, tuple(known.items())
    return maps.once(key, lambda: witness_pair(dependence, dims, known, maps))


def witness_pair(
    dependence: Dependence, dims: int, known: Mapping[str, int], maps: Maps | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The coordinates of two iterations that conflict, source first, where isl's parameters have the values `known`;
    None where isl gives none, or not soon."""
    import islpy as isl

    relation = (maps or Maps()).map(dependence.relation)
    try:
        with capped(relation.get_ctx()):
            relation = fix_parameters(relation.wrap(), known).unwrap()
            apart = relation.subtract(_same_key(relation, dims))
            pairs = (relation if apart.is_empty() else apart).wrap()
            usual = _from_zero(pairs)  # where bounds are read from arrays isl knows nothing of them
            point = pairs.sample_point() if usual.is_empty() else usual.lexmin().sample_point()
    except CapReached:
        return None
    if point.is_void():
        return None

    def coordinates(start: int) -> tuple[int, ...]:
        return tuple(number_of(point.get_coordinate_val(isl.dim_type.set, start + d)) for d in range(dims))

    return coordinates(0), coordinates(relation.dim(isl.dim_type.in_))


def happens(dependence: Dependence, told: Told) -> bool:
    """Whether a dependence has iterations at the sizes of a call, as far as isl finds that soon."""
    relation = told.maps.map(dependence.relation)
    try:
        with capped(relation.get_ctx()):
            return not fix_parameters(relation.wrap(), told.known).is_empty()
    except CapReached:
        return True


WITHOUT_EXAMPLE = frozenset({"ORN103", "ORN107"})
"""Reasons by which accesses, or iterations, are taken to be more than they are."""


def _from_zero(iterations: isl.Set) -> isl.Set:
    """Those of some coordinates that are not negative."""
    import islpy as isl

    for dim in range(iterations.dim(isl.dim_type.set)):
        iterations = iterations.lower_bound_val(isl.dim_type.set, dim, isl.Val.zero(iterations.get_ctx()))
    return iterations


def _same_key(relation: isl.Map, dims: int) -> isl.Map:
    """The pairs of iterations that agree in all loop dimensions: elements of a sparse array with one key."""
    import islpy as isl

    pairs = isl.Map.universe(relation.get_space())
    for dim in range(dims):
        pairs = pairs.equate(isl.dim_type.in_, dim, isl.dim_type.out, dim)
    return pairs


def _hint(dependence: Dependence, needed: Container[Span]) -> str:
    """What would remove the dependence. `needed` are the places that read what another iteration wrote: there a copy
    from before the loop would have old values."""
    if dependence.kind == "anti":
        if dependence.source.span in needed:
            return ""
        return Hint.COPY.format(array=dependence.array)
    if dependence.kind == "output":
        return Hint.ELEMENTS.format(array=dependence.array)
    return Hint.NEEDED if dependence.kind == "flow" else ""


def not_stronger(strategy: Strategy, dependences: Iterable[Dependence], told: Told) -> tuple[Reason, ...]:
    """Why the strategies stronger than the one taken are not legal: the pairs that rule them out."""
    pairs = by_pair(dependences)
    if not pairs:
        return ()
    found = [said for stronger in stronger_than(strategy) for said in stronger.against(pairs, told.nest.dims)]
    return tuple(_against(name, pair, told) for name, pair in found)


def _against(strategy: str, pair: Dependence, told: Told) -> Reason:
    code = pair.reason.code if pair.reason else "ORN101"
    spans = (pair.source.span, pair.sink.span)
    return Reason(ReasonKind.RULES_OUT, code, f"not {strategy}: {describe_pair(pair, told)}", spans, "")


def unknown_range(nest: LoopNest, types: Types) -> Reason:
    """Why a loop is not cut whose bounds nobody knows before it runs, or are no integers."""
    bounds = names_in(*(bound for space in nest.ranges for bound in (space.start, space.stop)))
    truth = sorted(name for name in bounds if types.get(name) == ScalarType("bool", True))
    if truth:
        message = f"`{truth[0]}`, in a bound of the loop, is a truth value"
        return Reason.of("ORN108", message, nest.span, hint=Hint.TRUTH.format(name=truth[0]))
    message = "the bounds of the loop are computed while the function runs: its iterations cannot be shared out before"
    return Reason.of("ORN108", message, nest.span)


def unknown_start(dependences: Iterable[Dependence], told: Told) -> Reason | None:
    """Why a loop is serial that begins at a place which is not known before it runs: only negative values of its
    variable would have its iterations meet. None for any other loop."""
    pairs = tuple(dependences)
    space = next((one for one in told.nest.ranges if not _is_known(one.start, told)), None)
    if space is None or not pairs or any(one.reason is not None for one in pairs):
        return None
    try:
        for one in pairs:
            relation = told.maps.map(one.relation)
            with capped(relation.get_ctx()):
                if not _from_zero(fix_parameters(relation.wrap(), told.known)).is_empty():
                    return None
    except CapReached:
        return None
    written = written_names(told.nest.function)
    is_written = names_in(space.start) <= written  # else a name of it was given anew
    begin = f"at `{print_expr(space.start)}`, which" if is_written else "where it"
    values = f"values of `{space.var}`" if space.var in written else "subscripts"
    message = (
        f"{loop_in_words(told.nest, told.nest.ranges.index(space))} begins {begin} is not known before it runs: "
        f"negative {values} would count from the end of `{pairs[0].array}`"
    )
    return Reason(ReasonKind.BLOCKS, "ORN108", message, (told.nest.span,), Hint.RANGE)


def _is_known(start: Expr, told: Told) -> bool:
    """Whether the first value of a loop is known before it runs, or in the loops around it."""
    given = {*told.nest.function.given, *told.nest.dims}
    names = {name for name in names_in(start) if name not in given and isl_name(name) not in told.known}
    is_affine = isinstance(affine_form(start, {name: parameter(name) for name in names_in(start)}), Affine)
    return is_affine and not names


def few_blocks(nest: LoopNest, dim: str, blocks: int, workers: int) -> Reason:
    """Why fewer workers run a loop than there are: a dimension has so many blocks. Coordinates of a new order have no
    name in the source."""
    what = f"`{dim}` has only" if dim in written_names(nest.function) else "the loop has only"
    message = f"{what} {blocks} block{'s' * (blocks != 1)} for {workers} workers"
    return Reason(ReasonKind.SIZES, "ORN121", message, (nest.span,), "")


def one_by_one(nest: LoopNest) -> Reason:
    """Why no tiles are taken that wait for each other."""
    message = "each tile would wait for the one before it: those that hold iterations lie along a line at these sizes"
    return Reason.of("ORN126", message, nest.span)
