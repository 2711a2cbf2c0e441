"""The analyses of planned loops, each made once: the variants of a program have most of their loops in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from orion.analysis.analyse_nest import analyse_nest, changing_names
from orion.analysis.one_loop import AnalysedLoop, AsWritten
from orion.dataclass import dataclass, replace
from orion.dependence.model import loops_around, model_loop
from orion.dependence.scalars import live_after_each
from orion.dependence.study import Study, study_loop
from orion.ir.nodes import Range
from orion.ir.program import LoopNest, Program
from orion.ir.types import Types
from orion.passes.between import PeeledLoop, peel_loop
from orion.sets.maps import Maps

Take = Callable[[AnalysedLoop, Program, Types, Maps], AnalysedLoop]
"""What gives a loop of a program arrays of its own, or leaves it as it is (`orion.rewrites.rewrite.OfArrays`)."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """A planned loop with what is known of it, and of its statements where it is a nest of affine ranges. `live_after`
    are the scalars whose values are needed after it. `given_up`: what was not found out, because it would take too
    long."""

    loop: AnalysedLoop
    study: Study | None
    live_after: frozenset[str]
    given_up: tuple[str, ...]

    def of(self, nest: LoopNest) -> Analysis:
        """The same for a nest that differs from its own by no more than its number."""
        if nest is self.loop.nest:
            return self
        assert isinstance(self.loop.form, AsWritten)
        form = AsWritten(replace(self.loop.form.model, nest=nest))
        study = self.study and replace(self.study, region=replace(self.study.region, nest=nest))
        return replace(self, loop=replace(self.loop, nest=nest, form=form), study=study)


@dataclass(frozen=True, slots=True, eq=False)
class _Key:
    """All that the analysis of a planned loop depends on, for one function with one set of types."""

    nest: LoopNest
    around: tuple[Range, ...]
    changing: frozenset[str]
    live_after: frozenset[str]

    def __hash__(self) -> int:
        return hash((self.nest.span, len(self.nest.loops), self.live_after, self.changing))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key):
            return NotImplemented
        mine, its = self.nest, other.nest
        return (
            mine.function is its.function
            and (mine.loops, mine.ordered, mine.form) == (its.loops, its.ordered, its.form)
            and (self.around, self.changing, self.live_after) == (other.around, other.changing, other.live_after)
        )


class Analyses:
    """The analyses of the loops of a program and of its variants. What they make in isl is in `maps`, and `takes` are
    what is made of each."""

    def __init__(self, takes: Iterable[Take], maps: Maps) -> None:
        self.takes = tuple(takes)
        self.maps = maps
        self._found: dict[_Key, Analysis] = {}
        self._peeled_loops: dict[tuple[int, int], tuple[LoopNest, PeeledLoop | None]] = {}
        self._live: dict[int, tuple[Program, dict[int, frozenset[str]]]] = {}

    def of(self, program: Program, number: int, types: Types) -> Analysis:
        """The analysis of planned loop `number`: it is not one in another order."""
        nest = program.nests[number]
        around = loops_around(program.steps, number) or ()
        key = _Key(nest, around, changing_names(program, number), self._live_after(program)[number])
        found = self._found.get(key)
        if found is None:
            model = model_loop(program, number, types)
            study = study_loop(program, number, types, model, self.maps)
            loop = analyse_nest(program, number, types, study, model, self.maps)
            for take in self.takes:
                loop = take(loop, program, types, self.maps)
            found = self._found[key] = Analysis(loop, study, model.live_after, self.maps.given_up())
        return found.of(nest)

    def peeled_loop(self, nest: LoopNest, types: Types) -> PeeledLoop | None:
        """What is run in place of a planned loop where it is taken apart: see `orion.passes.between.peel_loop`."""
        key = id(nest.loops[0]), id(nest.function)
        if key not in self._peeled_loops:
            self._peeled_loops[key] = (
                nest,
                peel_loop(nest, types),
            )  # the nest is kept, so that no other has its identities
        return self._peeled_loops[key][1]

    def _live_after(self, program: Program) -> dict[int, frozenset[str]]:
        if id(program) not in self._live:
            self._live[id(program)] = program, live_after_each(program)  # kept, so that no other has its identity
        return self._live[id(program)][1]
