"""One verdict per `for` of the source: the dependences that it carries, and whether it is parallel by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from orion.dependence.access import Dependence, LoopDependences
from orion.dependence.region import known_of
from orion.dependence.repeated import repeated_reasons
from orion.dependence.study import Study, study_nest
from orion.ir.assigned import assigned_by, own_level
from orion.ir.function import written_names
from orion.ir.kept import kept
from orion.ir.nodes import (
    Assign,
    Break,
    Continue,
    Expr,
    For,
    If,
    Node,
    Range,
    Subscript,
    Var,
    While,
    children,
    every,
    names_in,
)
from orion.ir.program import LoopNest, OfNewOrder, form_of
from orion.ir.types import Types
from orion.passes.between import SYNTHETIC
from orion.passes.dimensions import is_dimension, perfect_loops
from orion.plan.plan import FunctionPlan, Verdict
from orion.reasons import Reason, ReasonKind
from orion.rewrites.array_sums.find import sum_into
from orion.rewrites.privatize.find import without_private_arrays
from orion.sets.maps import Maps

SAID = ("carried", "reasons", "copies", "private")
"""What a verdict says of its `for`."""


def verdicts(
    nest: LoopNest, analysis: LoopDependences, study: Study | None, types: Types, after: frozenset[str], maps: Maps
) -> tuple[Verdict, ...]:
    """The verdicts on all `for`s of a planned loop, in textual order. `after` are the scalars that are needed after it.

    Those of a nest of affine ranges come from its statements (`study`), those of other planned loops from the
    analysis of the loop as a whole. A `for` further in is looked at by itself, with the loops around it fixed.
    """
    planned = _planned(nest, analysis, study, types, maps)
    found = {verdict.index: verdict for verdict in planned if verdict.index != SYNTHETIC}
    for loop in _inner_loops(nest.loops[0]):
        if loop.index not in found:
            found |= {verdict.index: verdict for verdict in _inner(loop, nest, after, types, maps)}
    loops = {loop.index: loop for loop in (nest.loops[0], *_inner_loops(nest.loops[0]))}
    return tuple(_with_copies(found[index], loops[index], nest, types) for index in sorted(found))


def verdicts_of_source(plan: FunctionPlan) -> tuple[Verdict, ...]:
    """Return one verdict per `for` of the source, in textual order, whatever loops a plan has: of a `for` that became
    several loops what is said of these together. One that is run once at most carries nothing, and may be gone."""
    known = {verdict.index: verdict for verdict in plan.verdicts}
    found = []
    for number, one in enumerate(plan.program.function.fors):
        parts = [known[loop] for loop in one.loops if loop in known]
        said = {name: tuple(dict.fromkeys(item for part in parts for item in getattr(part, name))) for name in SAID}
        if any(part.carried and not part.copies for part in parts):
            said["copies"] = ()
        found.append(Verdict(number, one.line, **said))
    return tuple(found)


def _with_copies(verdict: Verdict, loop: For, nest: LoopNest, types: Types) -> Verdict:
    """The verdict on a `for` with the arrays that copies make it parallel of, if they do."""
    if verdict.reasons or isinstance(nest.form, OfNewOrder):
        return verdict
    arrays = tuple(dict.fromkeys(dependence.array for dependence in verdict.carried))
    return verdict if without_sums(verdict.carried, loop, nest, types) else replace(verdict, copies=arrays)


def without_sums(
    dependences: tuple[Dependence, ...], loop: For, nest: LoopNest, types: Types
) -> tuple[Dependence, ...]:
    """Of the dependences that a `for` carries, those that are not on arrays which it only adds to: copies of these,
    combined afterwards, would do."""
    own = LoopNest(nest.number, form_of(loop), (loop,), (), loop.body, nest.ordered, nest.function)
    sums = {name for name in {one.array for one in dependences} if sum_into(name, own, types)}
    return tuple(one for one in dependences if one.array not in sums)


def _planned(
    nest: LoopNest, analysis: LoopDependences, study: Study | None, types: Types, maps: Maps
) -> Iterator[Verdict]:
    if study is not None:
        yield from _studied(study, nest, types, maps)
    elif nest.elements is not None:
        yield Verdict(nest.loops[0].index, nest.span.line, analysis.dependences, analysis.reasons)
    else:
        several = len(nest.loops) > 1
        own = tuple(d for private in analysis.private for d in private.dependences) if several else ()
        for depth, loop in enumerate(nest.loops):  # what is private to iterations may not be to trips of one loop
            carried = tuple(d for d in (*analysis.dependences, *own) if _carries(d, depth, maps))
            rest = without_private_arrays(carried, loop, nest.function, types, maps)
            names = _gone(carried, rest) if several or rest else tuple(array.name for array in analysis.private)
            yield Verdict(loop.index, loop.span.line, rest, analysis.reasons, private=names)


def _gone(carried: tuple[Dependence, ...], rest: tuple[Dependence, ...]) -> tuple[str, ...]:
    """The arrays of dependences that do not count."""
    kept = {id(one) for one in rest}
    return tuple(dict.fromkeys(one.array for one in carried if id(one) not in kept))


def _studied(study: Study, nest: LoopNest, types: Types, maps: Maps) -> Iterator[Verdict]:
    """The verdicts on all `for`s of a study: arrays that are private to the trips of one carry nothing."""
    for one in study.carried:
        rest = without_private_arrays(one.dependences, one.loop, nest.function, types, maps)
        repeats = tuple(repeated_reasons(nest)) if one.loop.index == nest.loops[0].index else ()
        yield Verdict(one.loop.index, one.loop.span.line, rest, repeats, private=_gone(one.dependences, rest))


def _inner(loop: For, nest: LoopNest, after: frozenset[str], types: Types, maps: Maps) -> Iterator[Verdict]:
    """The verdicts on a `for` in the body of a planned loop, and on those in it that are affine too."""
    if isinstance(loop.space, Range):
        loops = perfect_loops(loop)
        dims = tuple(inner.space.var for inner in loops if isinstance(inner.space, Range))
        own = LoopNest(nest.number, form_of(loop), loops, dims, loops[-1].body, True, nest.function)
        outside = _names_outside(nest.loops[0], loop)
        study = study_nest(own, types, after | outside, known_of(_loops_around(nest.loops[0], loop)), maps)
        if study is not None:
            yield from _studied(study, nest, types, maps)
            return
    message = f"{_why_not_studied(loop, nest)}: it is taken to be serial"
    yield Verdict(loop.index, loop.span.line, (), (Reason(ReasonKind.BLOCKS, "ORN107", message, (loop.span,), ""),))


def _why_not_studied(loop: For, nest: LoopNest) -> str:
    """Why the dependences between the trips of an inner loop are not looked for."""
    if not isinstance(loop.space, Range):
        return "goes over the stored elements of a sparse array"
    written = written_names(nest.function)
    read = every(Subscript, *_values((loop.space.start, loop.space.stop, loop.space.step), nest))
    arrays = dict.fromkeys(f"`{one.base.name}`" for one in read if one.base.name in written)
    if arrays:
        return f"goes over a range that is read from {' and '.join(arrays)}"
    leaving = next((one for one in own_level(loop.body) if isinstance(one, Break | Continue)), None)
    if leaving is not None:
        return f"has a `{leaving.word if isinstance(leaving, Break) else 'continue'}` in line {leaving.span.line}"
    if not is_dimension(loop, _loops_around(nest.loops[0], loop)):
        return "goes over a range whose bounds or step are not sums of integers and of constant multiples of integers"
    return "uses scalars from outside of it, or subscripts, in a way that is not analysed"


def _values(bounds: Iterable[Expr], nest: LoopNest) -> list[Expr]:
    """Bounds of a loop, and what a nest sets the names in them to."""
    found, waiting, seen = list(bounds), names_in(*bounds), set[str]()
    set_to = [(one.target.name, one.value) for one in every(Assign, *nest.body) if isinstance(one.target, Var)]
    while waiting:
        seen |= waiting
        values = [value for name, value in set_to if name in waiting]
        found += values
        waiting = names_in(*values) - seen
    return found


def _inner_loops(loop: For) -> list[For]:
    return list(every(For, loop))


def _loops_around(outer: For, inner: For) -> list[For]:
    """The loops in `outer`, and itself, that `inner` stands in."""
    loops = [outer, *_inner_loops(outer)]
    return [loop for loop in loops if loop is not inner and any(node is inner for node in every(For, loop))]


def _names_outside(outer: Node, inner: For) -> frozenset[str]:
    """The names that are used in `outer` but not inside of `inner`, nor as the variable of a loop next to it: `inner`
    may assign the variables of loops around it."""
    if outer is inner:
        return frozenset()
    if all(part is not inner for part in every(For, outer)):
        return _free_names(outer)
    return frozenset[str]().union(*(_names_outside(part, inner) for part in children(outer)))


@kept
def _free_names(node: Node) -> frozenset[str]:
    """The names that are used in code, but for the variables of loops in the bodies of these."""
    if isinstance(node, For):
        inside = frozenset[str]().union(*map(_free_names, node.body))
        return inside.difference(assigned_by(node)).union(names_in(node.space))
    if isinstance(node, If | While):
        return frozenset[str]().union(*map(_free_names, children(node)))
    return frozenset(names_in(node))


def _carries(dependence: Dependence, depth: int, maps: Maps) -> bool:
    """Whether the difference may be zero in all loops around the one at `depth` and is not in its own."""
    import islpy as isl

    deltas = maps.map(dependence.relation).deltas()
    names = [f"d{d}" for d in range(deltas.dim(isl.dim_type.set))]
    zero = " and ".join([*(f"{name} = 0" for name in names[:depth]), f"{names[depth]} != 0"])
    here = maps.set(f"{{ [{', '.join(names)}] : {zero} }}")
    return not deltas.intersect(here).is_empty()
