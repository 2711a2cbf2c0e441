"""A function split into loops and analysed: its variants, for any sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain, dropwhile

from orion.analysis.one_loop import AnalysedLoop, is_shared_out, is_single, may_be_shared, origin_of
from orion.cost.caches import Caches
from orion.dataclass import dataclass, replace
from orion.errors import UnsupportedLoopError
from orion.ir.assumed import OfWorkers
from orion.ir.function import Function
from orion.ir.nodes import For, every, holds
from orion.ir.program import Program
from orion.ir.types import ArgumentType, Types
from orion.passes.split import split_program
from orion.plan.assume import assumed_for
from orion.plan.plan import Verdict
from orion.plan.rewriting import Seen, first_loops, variants_of
from orion.plan.rounded import ROUNDING, any_floats
from orion.plan.variants import Variant
from orion.rewrites.rewrite import OfFunction, OfScalars, Rewrite, UnderConditions
from orion.rewrites.shared_locals.take import is_serial
from orion.sets.maps import Maps
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.infer import infer_types, with_local_arrays
from orion.typing.narrow import with_local_integers


@dataclass(frozen=True, slots=True)
class AnalysedFunction:
    """A function and its loops analysed; the types of its parameters and of all names."""

    function: Function
    types: Mapping[str, ArgumentType]
    typing: Typing
    variants: tuple[Variant, ...]
    maps: Maps


Noted = tuple[tuple[str, int], ...]
"""Names of rewrites of a whole function, with the lines of the loops that they were made for."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A form of a function that is split into loops, with the types of all names, and what is `known` of integers
    among them. What is seen of its loops is kept until the analysis is finished."""

    types: dict[str, ArgumentType]
    typing: Typing
    program: Program
    known: Types
    seen: Seen


@dataclass(frozen=True, slots=True)
class _Analyser:
    """What the analysis of a function depends on beside itself. The forms that rewrites give it have `maps` in common:
    most of their statements are the same."""

    ordered: bool | None
    caches: Caches
    rewrites: tuple[Rewrite, ...]
    maps: Maps

    def analyse(self, function: Function, types: Types, noted: Noted = ()) -> AnalysedFunction:
        """A function with its variants, which note rewrites of the whole function."""
        return self.finished(self.begun(function, types), noted)

    def begun(self, function: Function, types: Types) -> _Begun:
        types = with_local_arrays(types, function)
        typing = infer_types(function, types)
        program = split_program(function, types, self.ordered)
        self.maps.given_up()  # of another form
        seen = Seen(function, self.rewrites, self.caches, self.maps)
        return _Begun(types, typing, program, with_local_integers(types, typing), seen)

    def finished(self, begun: _Begun, noted: Noted) -> AnalysedFunction:
        found = variants_of(begun.program, begun.known, begun.seen)
        variants = tuple(replace(variant, rewrites=noted) for variant in found)
        return AnalysedFunction(begun.program.function, begun.types, begun.typing, variants, self.maps)

    def for_workers(self, function: Function, types: Types, noted: Noted) -> AnalysedFunction:
        """The same of a form that a rewrite gives a function, for some numbers of workers perhaps. No bit of a result
        may depend on whether there are so many: where sums are rounded by blocks, it is for any number."""
        other = self.analyse(function, types, noted)
        rounded = [loop for loop in other.variants[0].loops if _is_rounded_by_blocks(loop, other.typing)]
        inside = {one.index for loop in rounded for one in every(For, _source_of(loop))}
        assumed = tuple(one for one in function.assumed if not isinstance(one, OfWorkers) or one.index not in inside)
        return other if assumed == function.assumed else self.analyse(replace(function, assumed=assumed), types, noted)

    def rewritten(self, found: AnalysedFunction, rewrite: OfFunction) -> AnalysedFunction:
        """The function with a rewrite applied to all its loops, one after the other, that are no longer serial then."""
        tried: set[Span] = set()
        while (loop := _next(found, rewrite, tried)) is not None:
            tried.add(loop.nest.span)
            before = found
            forms = (self.with_arrays(before, rewrite, names, loop) for names in rewrite.find(loop, before.typing))
            found = next((form for form in forms if form is not None), before)
        return found

    def with_arrays(
        self, found: AnalysedFunction, rewrite: OfFunction, names: tuple[str, ...], loop: AnalysedLoop
    ) -> AnalysedFunction | None:
        """The function with a rewrite applied to these arrays, if a loop is no longer serial then. One that is shared
        out with copies of what it adds to stays that where a loop in it would be serial."""
        span = loop.nest.span
        function = rewrite.apply(found.function, found.types, found.typing, names)
        noted = (*found.variants[0].rewrites, (rewrite.name, span.line))
        if function is None:
            return None
        try:
            begun = self.begun(function, found.types)
            if any(is_serial(one, span) for one in first_loops(begun.program, begun.known, begun.seen)):
                return None
            other = self.finished(begun, noted)
        except UnsupportedLoopError:
            return None
        is_worse = may_be_shared(loop) and _count_serial(other.variants[0]) > _count_serial(found.variants[0])
        return None if is_worse else other

    def with_scalars(self, found: AnalysedFunction, rewrite: OfScalars) -> AnalysedFunction:
        """The function with a rewrite of its scalars, where more of its loops are parallel then: in place of what it
        was, or before that where the rewrite is for some calls only."""
        function, lines = rewrite.apply(found.function, found.typing)
        if not lines:
            return found
        noted = (*found.variants[-1].rewrites, *((rewrite.name, line) for line in lines))
        try:
            other = self.for_workers(function, found.types, noted)
        except UnsupportedLoopError:
            return found
        if _parallel(other.variants[0]) <= _parallel(found.variants[0]):
            return found
        if rewrite.is_in_memory and _count_serial(other.variants[0]) >= _count_serial(found.variants[0]):
            return found
        is_for_all = other.function.assumed == found.function.assumed
        return other if is_for_all else replace(found, variants=(*other.variants, *found.variants))

    def under_conditions(self, found: AnalysedFunction, rewrite: UnderConditions) -> AnalysedFunction:
        """A function with the variants of the forms that a rewrite gives it before those that it has, from the first
        form on in which loops that are new can be shared out, or inspected."""
        first = found.variants[0]
        places = [(loop.nest.span.line, rewrite.find(loop, first.typing)) for loop in first.loops]
        there = frozenset(span for _, inside in places for span in inside)
        assumed = dict.fromkeys((first.program.function.assumed, found.function.assumed))  # of other loops of it
        given = [replace(found.function, assumed=one) for one in assumed]
        functions = [one for each in given if there for one in rewrite.apply(each, found.types, found.typing, there)]
        if not functions:
            return found
        noted = (*found.variants[-1].rewrites, *((rewrite.name, line) for line, inside in places if inside))
        try:
            forms = [self.for_workers(function, found.types, noted).variants for function in functions]
        except UnsupportedLoopError:
            return found
        old = {loop.index for loop in every(For, *found.function.body)}
        better = dropwhile(lambda form: not any(_shares_out(variant, old) for variant in form), forms)
        return replace(found, variants=(*chain.from_iterable(better), *found.variants))

    def with_condition(self, written: AnalysedFunction, found: AnalysedFunction, types: Types) -> AnalysedFunction:
        """A function with the variants that run where a condition on sizes and integers holds, before those that run
        for any, if there is a condition under which more of its loops are parallel: as it is `written`, where arrays
        that iterations make are their own, or as rewrites have `found` it."""
        for one in (written, found) if found.function != written.function else (found,):
            assumed = assumed_for(one.variants[-1], one.maps, with_local_integers(one.types, one.typing))
            if assumed:
                function = replace(one.function, assumed=(*one.function.assumed, *assumed))
                better = self.analyse(function, types, one.variants[0].rewrites)
                if _has_more_parallel(better.variants[0], one.variants[0]):
                    return replace(found, variants=(*better.variants, *found.variants))
        return found


def analyse_function(
    function: Function, types: Types, ordered: bool | None, caches: Caches, rewrites: tuple[Rewrite, ...]
) -> AnalysedFunction:
    """Split a function into loops and analyse them, for `caches`, with rewrites in the order in which they are
    tried."""
    analyser = _Analyser(ordered, caches, rewrites, Maps())
    written = found = analyser.analyse(function, types)
    for one in rewrites:
        if isinstance(one, OfFunction) and one.name not in function.without:
            found = analyser.rewritten(found, one)
        elif isinstance(one, OfScalars) and one.name not in function.without:
            found = analyser.with_scalars(found, one)
        elif isinstance(one, UnderConditions) and one.name not in function.without and not one.comes_last:
            found = analyser.under_conditions(found, one)
    found = analyser.with_condition(written, found, types)
    for one in rewrites:
        if isinstance(one, UnderConditions) and one.name not in function.without and one.comes_last:
            found = analyser.under_conditions(found, one)
    return found


def _shares_out(variant: Variant, old: Collection[int]) -> bool:
    """Whether loops of a variant are parallel, or may be inspected, that have new `for`s, or stand for such as a new
    order of them."""
    loops = (_source_of(loop) for loop in variant.loops if may_be_shared(loop) or loop.inspectable is not None)
    return any(one.index >= 0 and one.index not in old for loop in loops for one in every(For, loop))


def _source_of(loop: AnalysedLoop) -> For:
    """The outermost loop of the program that a planned loop stands for."""
    origin = origin_of(loop)
    return (loop if origin is None else origin).nest.loops[0]


def _is_rounded_by_blocks(loop: AnalysedLoop, typing: Typing) -> bool:
    """Whether a loop that is shared out adds up, or multiplies, floats of several iterations: block by block then, and
    one after the other where it is serial."""
    if not may_be_shared(loop):
        return False
    names = [one.name for one in loop.analysis.scalars.reductions if one.op in ROUNDING]
    names += [] if loop.summed is None else [one.name for one in loop.summed.analysis.sums]
    names += [one.name for one in loop.analysis.scalars.accumulations]
    return any_floats(names, typing)


def _next(found: AnalysedFunction, rewrite: OfFunction, tried: set[Span]) -> AnalysedLoop | None:
    """The next loop that a rewrite applies to, of those that were not tried."""
    loops = (loop for loop in found.variants[0].loops if loop.nest.span not in tried)
    return next((loop for loop in loops if rewrite.find(loop, found.typing)), None)


def _parallel(variant: Variant) -> tuple[int, bool]:
    """How many loops of the source are parallel in a variant; whether any loop is, if only in another order."""
    return _count_parallel(variant), is_shared_out(variant.loops)


def _count_serial(variant: Variant) -> int:
    """How many planned loops of a variant one worker runs, with loops in them."""
    serial = (loop.nest for loop in variant.loops if not may_be_shared(loop))
    return sum(not is_single(nest) or holds(For, *nest.body) for nest in serial)


def _has_more_parallel(variant: Variant, other: Variant) -> bool:
    """Whether a `for` is parallel in a variant that is not so in another, or needs copies of arrays there, and none of
    those in both the other way round. Rewrites may have made `for`s that are in one of them alone."""
    mine, theirs = ({one.index: _grade(one) for one in each.verdicts} for each in (variant, other))
    gains = [mine[index] - theirs[index] for index in mine.keys() & theirs.keys()]
    return any(gain > 0 for gain in gains) and all(gain >= 0 for gain in gains)


def _grade(verdict: Verdict) -> int:
    """2 of a `for` that is parallel, 1 of one that is with copies of arrays that it adds to, 0 of others."""
    return 2 if verdict.is_parallel else int(bool(verdict.copies))


def _count_parallel(analysed: Variant) -> int:
    return sum(verdict.is_parallel for verdict in analysed.verdicts)
