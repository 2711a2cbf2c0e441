"""What a rewrite is: by what it is given, which says who takes it and when.

Each is one value in a folder of its own, and one row of `orion.pipeline.REWRITES`; those who take them go through that
table in its order, and note the names of those that they took.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from orion.analysis.analyses import Analyses, Analysis
from orion.analysis.one_loop import AnalysedLoop
from orion.cost.caches import Caches
from orion.dataclass import dataclass, field
from orion.dependence.study import Study
from orion.ir.function import Function
from orion.ir.program import Program
from orion.ir.types import Types
from orion.rewrites.fuse.found import Found
from orion.rewrites.reorder.apply import Deferred
from orion.sets.maps import Maps
from orion.source import Span
from orion.typing.expression_types import Typing


@dataclass(frozen=True, slots=True)
class Replacement:
    """A program with one of its planned loops replaced by `loops`, the names of the rewrites that did it, and what is
    still to be made of these loops (`orion.plan.deferred_bodies`)."""

    program: Program
    loops: tuple[AnalysedLoop, ...]
    deferred: tuple[Deferred, ...]
    rewrites: tuple[str, ...]


Tried = Replacement | None
"""What a rewrite makes of a loop; None where it does not apply."""


@dataclass(frozen=True, slots=True)
class Site:
    """Planned loop `number` of a program, as rewrites find it. `without` are the names of those that are left out here.
    `made` keeps what was made of the loop, for other variants of the program."""

    program: Program
    number: int
    types: Types
    analysis: Analysis
    analyses: Analyses
    caches: Caches
    without: frozenset[str]
    made: dict[Hashable, Tried] = field(compare=False, repr=False)

    @property
    def loop(self) -> AnalysedLoop:
        return self.analysis.loop

    @property
    def study(self) -> Study | None:
        return self.analysis.study

    @property
    def maps(self) -> Maps:
        return self.analyses.maps

    def once(self, key: Hashable, make: Callable[[Site], Tried]) -> Tried:
        """What `make` makes of the loop, made at the first call with that key."""
        if key not in self.made:
            self.made[key] = make(self)
        return self.made[key]


@dataclass(frozen=True, slots=True)
class OfLoop:
    """A rewrite of a planned loop. `take` is given what the rewrites before it made of the loop, and gives that or
    something better. `may_not_pay`: there are sizes at which it costs more than it gains, so that the function has a
    variant without it, and with the others."""

    name: str
    does: str
    take: Callable[[Site, Tried], Tried]
    may_not_pay: bool


@dataclass(frozen=True, slots=True)
class OfArrays:
    """A rewrite that gives tiles arrays of their own: `take` gives the loop with what is known of it then, or as it
    is."""

    name: str
    does: str
    take: Callable[[AnalysedLoop, Program, Types, Maps], AnalysedLoop]


@dataclass(frozen=True, slots=True)
class OfOrder:
    """A part of a new order: `orion.rewrites.reorder` looks for it while it makes one."""

    name: str
    does: str


@dataclass(frozen=True, slots=True)
class OfFunction:
    """A rewrite of a whole function. `find` gives arrays that a loop of it makes, where it applies to it: several
    choices in the order in which they are tried. `apply` gives the function with these changed; None where it has no
    such form."""

    name: str
    does: str
    find: Callable[[AnalysedLoop, Typing], tuple[tuple[str, ...], ...]]
    apply: Callable[[Function, Types, Typing, tuple[str, ...]], Function | None]


@dataclass(frozen=True, slots=True)
class OfScalars:
    """A rewrite of the scalars of a whole function: `apply` gives the function with it, and the lines of the loops that
    it is another for. It is taken where more loops are parallel then. `is_in_memory`: scalars are elements of arrays
    then, which takes longer, so that it is taken only where fewer loops are serial, too."""

    name: str
    does: str
    apply: Callable[[Function, Typing], tuple[Function, tuple[int, ...]]]
    is_in_memory: bool = False


@dataclass(frozen=True, slots=True)
class UnderConditions:
    """A rewrite of a whole function that holds under conditions on sizes or arrays, which `apply` adds to those that
    the function has. `find` gives the places of what it changes of a loop, and `apply` is given those of all loops. It
    gives the forms that the function has then, in the order in which they are tried; none where it has no such form.
    The function as it was is run in other calls. `comes_last`: it is for loops that no condition makes parallel as they
    are written."""

    name: str
    does: str
    find: Callable[[AnalysedLoop, Typing], frozenset[Span]]
    apply: Callable[[Function, Types, Typing, frozenset[Span]], tuple[Function, ...]]
    comes_last: bool = False


@dataclass(frozen=True, slots=True)
class OfNeighbours:
    """A rewrite that runs neighbouring planned loops as one. `find` is given the loops of a program, and the loop of
    the source by number that several of them stand for."""

    name: str
    does: str
    find: Callable[[Program, tuple[AnalysedLoop, ...], dict[int, int], Types], Found]


Rewrite = OfLoop | OfArrays | OfOrder | OfFunction | OfScalars | UnderConditions | OfNeighbours
