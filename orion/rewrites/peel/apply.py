"""A planned loop made into a serial loop around planned loops, round by round.

    for t in range(rounds):         # carries dependences over A
        for i in range(1, n - 1):   # does not: the workers share it out in every round
            B[i] = A[i - 1] + A[i + 1]
        for i in range(n):
            A[i] = B[i]

The order of iterations stays as it is, so that nothing need be proved: what is parallel is decided for each loop inside
by itself. (Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, 5.8: loops around a parallel one.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from orion.analysis.analyses import Analyses
from orion.analysis.limits import with_limits
from orion.analysis.one_loop import AnalysedLoop, is_shared_out, is_single, may_be_shared
from orion.ir.program import Program, Repeat, RunLoop, Step, with_loops
from orion.ir.types import Types
from orion.passes.between import PeeledLoop
from orion.passes.split import Splitter
from orion.rewrites.rewrite import Replacement, Site, Tried
from orion.typing.infer import with_local_arrays

Inside = Callable[[Program, AnalysedLoop, Types, Analyses], Tried]
"""What is tried for a serial loop inside of one that is peeled, where peeling that too does not help."""


def peeled(site: Site, *, distributes: bool, inside: Inside | None = None) -> Tried:
    """The program with the outer loop of a serial nest made a `Repeat` (statements that run once: taken apart), and the
    loops that it then has inside, if that makes one of them parallel, or lets it be inspected.

    `distributes`: also where statements in it, apart from the loops, then run once, on one worker. The loops in
    statements that run once are always found: so the plan has something to say of them.
    """
    peeler = _Peeler(site, distributes and "distribute" not in site.without, inside)
    return peeler.peeled(site.program, site.number, site.types)


class _Peeler:
    def __init__(self, site: Site, distributes: bool, inside: Inside | None) -> None:
        self.analyses, self.without = site.analyses, site.without
        self.distributes, self.inside = distributes, inside

    def peeled(self, program: Program, number: int, types: Types) -> Tried:
        nest = program.nests[number]
        name = "distribute" if is_single(nest) else "peel"
        if name in self.without:
            return None
        taken = self.analyses.peeled_loop(nest, types)
        if taken is None or not (taken.is_plain or self.distributes):
            return None
        peeled = peel_outer_loop(program, number, taken)
        count = len(peeled.nests) - len(program.nests) + 1
        inside, found, names = self.loops_inside(peeled, number, count, types)
        if not (is_single(nest) or is_shared_out(found) or self.are_inspected_there(program, number, found, types)):
            return None
        return Replacement(inside, tuple(found), (), (name, *names, *("distribute",) * (not taken.is_plain)))

    def are_inspected_there(self, program: Program, number: int, found: list[AnalysedLoop], types: Types) -> bool:
        """Whether loops in a loop may run in tiles that an inspection finds, and itself may not."""
        inspectable = self.analyses.of(program, number, types).loop.inspectable
        return inspectable is None and any(one.inspectable is not None for one in found)

    def loops_inside(
        self, program: Program, number: int, count: int, types: Types
    ) -> tuple[Program, list[AnalysedLoop], list[str]]:
        """`count` planned loops from `number` on, those that are serial peeled too where that helps."""
        found: list[AnalysedLoop] = []
        names: list[str] = []
        last = number + count
        while number < last:
            analysis = self.analyses.of(program, number, types)
            loop = with_limits(analysis.loop, analysis.given_up)
            changed = None if may_be_shared(loop) and not is_single(loop.nest) else self.better(program, loop, types)
            if changed is None:
                found.append(loop)
                number += 1
                continue
            program, types = changed.program, with_local_arrays(types, changed.program.function)
            found += changed.loops
            names += changed.rewrites
            last += len(changed.loops) - 1
            number += len(changed.loops)
        return program, found, names

    def better(self, program: Program, loop: AnalysedLoop, types: Types) -> Tried:
        found = self.peeled(program, loop.nest.number, types)
        return found or (self.inside(program, loop, types, self.analyses) if self.inside else None)


def peel_outer_loop(program: Program, number: int, peeled_loop: PeeledLoop) -> Program:
    """The program with planned loop `number` made into a serial loop around the loops in its body; statements that run
    once, into the planned loops in them and what stands between these. `peeled_loop` is what `peel_loop` makes of it.
    """
    nest = program.nests[number]
    splitter = Splitter(program.function, nest.ordered)

    def change(old: int) -> Iterator[Step]:
        if old == number:
            yield from splitter.steps(peeled_loop.before)
            inside = splitter.steps(peeled_loop.body)
            yield from inside if peeled_loop.loop is None else [Repeat(peeled_loop.loop, inside)]
        else:
            splitter.nests.append(replace(program.nests[old], number=len(splitter.nests)))
            yield RunLoop(len(splitter.nests) - 1)

    steps = with_loops(program.steps, change)
    variables = (*program.variables, *(name for name, kind in peeled_loop.names if kind.dtype != "bool"))
    tests = (*program.tests, *(name for name, kind in peeled_loop.names if kind.dtype == "bool"))
    unique = tuple(dict.fromkeys(variables)), tuple(dict.fromkeys(tests))
    return Program(program.function, tuple(splitter.nests), steps, *unique)
