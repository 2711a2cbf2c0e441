"""Arrays that the rounds of a serial loop make for themselves, as arrays that all workers share.

    for t in range(rounds):
        B = A.copy()
        for i in range(1, n - 1):
            A[i] = B[i - 1] + B[i + 1]

As an array of its own, B goes with the iteration of t that makes it, and only one worker can run that. As a parameter
that each round fills again (`orion.passes.local_arrays`) it is shared by the workers, which then run the loop over i
together. Where iterations of the outer loop can be shared out, each keeps the arrays that it makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orion.analysis.one_loop import AnalysedLoop
from orion.cost.caches import USUAL, Caches
from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assigned_names
from orion.ir.nodes import For, Function, walk
from orion.ir.program import OfSource, OfStatements
from orion.ir.source import Span
from orion.ir.types import ArgumentType, Types
from orion.passes.between import separate
from orion.passes.local_arrays import make_arrays
from orion.passes.split import split_program
from orion.plan.analysed import Seen, variants_of
from orion.plan.assume import assumed_for
from orion.plan.variants import Variant
from orion.sets.maps import Maps
from orion.typing.expression_types import Typing, with_names
from orion.typing.infer import argument_value, infer_types, with_made
from orion.typing.narrow import with_local_integers


@dataclass(frozen=True, slots=True)
class AnalysedFunction:
    """A function and its loops analysed; the types of its parameters and of all names, also those of copies that are
    made before loops."""

    function: Function
    types: Mapping[str, ArgumentType]
    typing: Typing
    variants: tuple[Variant, ...]
    maps: Maps


def analyse_function(
    function: Function, types: Types, ordered: bool | None, caches: Caches = USUAL
) -> AnalysedFunction:
    """Split a function into loops and analyse them, for `caches`. Arrays that serial loops make are shared by the
    workers where loops inside can then be shared out."""
    found = _analyse(function, types, ordered, caches)
    tried: set[Span] = set()
    if "shared_locals" in function.without:
        return _with_condition(found, types, ordered, caches)
    while (loop := _next_serial(found, tried)) is not None:
        tried.add(loop.nest.span)
        shared = _with_shared(found, loop, ordered, caches)
        if shared is not None and not any(_is_serial(one, loop.nest.span) for one in shared.variants[0].loops):
            found = shared
    return _with_condition(found, types, ordered, caches)


def _with_condition(found: AnalysedFunction, types: Types, ordered: bool | None, caches: Caches) -> AnalysedFunction:
    """A function with the variants that run where a condition on sizes and integers holds, before those that run for
    any, if there is a condition under which more of its loops are parallel."""
    assumed = assumed_for(found.variants[-1], found.maps, with_local_integers(found.types, found.typing))
    if not assumed:
        return found
    assumed = (*found.function.assumed, *assumed)
    better = _analyse(replace(found.function, assumed=assumed), types, ordered, caches)
    is_better = _count_parallel(better.variants[0]) > _count_parallel(found.variants[0])
    if not is_better:
        return found
    typing = replace(better.typing, names={**found.typing.names, **better.typing.names})
    types = {**found.types, **better.types}
    return replace(found, types=types, typing=typing, variants=(*better.variants, *found.variants))


def _count_parallel(analysed: Variant) -> int:
    return sum(verdict.is_parallel for verdict in analysed.verdicts)


def _analyse(function: Function, types: Types, ordered: bool | None, caches: Caches) -> AnalysedFunction:
    types = with_made(types, function)
    typing = infer_types(function, types)
    program = split_program(function, types, ordered)
    seen = Seen()
    variants = variants_of(program, with_local_integers(types, typing), caches, seen=seen)
    for variant in variants:
        program = variant.program
        types = with_made(types, program.function)
        copies = {one.name: argument_value(one.name, types[one.name]) for one in program.function.made}
        typing = with_names(typing, program.variables, program.tests)
        typing = replace(typing, arguments=types, names={**copies, **typing.names})
    return AnalysedFunction(function, types, typing, variants, seen.analyses.maps)


def _next_serial(found: AnalysedFunction, tried: set[Span]) -> AnalysedLoop | None:
    """A serial loop with loops inside that makes arrays, or statements that run once with such loops in them."""
    for loop in found.variants[0].loops:
        span = loop.nest.span
        if span not in tried and _is_serial(loop, span) and _made_in(loop, found.typing):
            return loop
    return None


def _is_serial(loop: AnalysedLoop, span: Span) -> bool:
    """Whether a loop, which begins there, is serial as a whole, with loops of the source in it."""
    nest = loop.nest
    is_whole = nest.span == span and isinstance(nest.form, OfSource | OfStatements) and not loop.candidates
    nodes = (node for statement in nest.loops[0].body for node in walk(statement))
    return is_whole and any(isinstance(node, For) and node.index >= 0 for node in nodes)


def _made_in(loop: AnalysedLoop, typing: Typing) -> list[str]:
    """The arrays that a loop makes."""
    arrays = {name for name, kind in typing.names.items() if kind.rank} - {*loop.nest.function.params}
    return sorted(assigned_names(loop.nest.loops[0].body) & arrays)


def _with_shared(
    found: AnalysedFunction, loop: AnalysedLoop, ordered: bool | None, caches: Caches
) -> AnalysedFunction | None:
    try:
        function = make_arrays(found.function, found.typing, _made_in(loop, found.typing))
        return _analyse(separate(function, found.types), found.types, ordered, caches)
    except UnsupportedLoopError:
        return None
