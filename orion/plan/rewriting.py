"""The variants of a program: its loops rewritten, before sizes are known."""

from __future__ import annotations

from collections.abc import Iterable

from orion.analysis.analyses import Analyses, Analysis
from orion.analysis.limits import against_stronger, with_limits
from orion.analysis.one_loop import AnalysedLoop, origin_of
from orion.cost.caches import USUAL, Caches
from orion.cost.worth import depth_of, work_of
from orion.dataclass import dataclass, replace
from orion.ir.function import Function
from orion.ir.program import Program
from orion.ir.types import Types
from orion.plan.plan import Verdict
from orion.plan.variants import Changed, Variant
from orion.plan.verdicts import verdicts
from orion.rewrites.fuse.found import Found
from orion.rewrites.reorder.apply import Deferred
from orion.rewrites.rewrite import OfArrays, OfLoop, OfNeighbours, Rewrite, Site, Tried
from orion.sets.maps import Maps
from orion.typing.expression_types import Typing, with_names
from orion.typing.infer import infer_types, with_local_arrays


def first_loops(program: Program, types: Types, seen: Seen) -> tuple[AnalysedLoop, ...]:
    """The loops of the first variant of a program, as far as that is known without the verdicts on its `for`s."""
    loops = [one for one in seen.rewrites if isinstance(one, OfLoop)]
    return _Rewriter(program, types, loops, seen, judges=False).variant(program.function.without)[0].loops


def variants_of(program: Program, types: Types, seen: Seen) -> tuple[Variant, ...]:
    """The variants of a program, in the order in which they are tried: with all rewrites that apply; without one
    after the other of those that do not pay at some sizes, the last in the table first; and as the source has it.
    `seen` keeps what is found of loops."""
    loops = [one for one in seen.rewrites if isinstance(one, OfLoop)]
    found: list[Variant] = []
    without: frozenset[str] | None = program.function.without
    while without is not None:
        variant, plain = _Rewriter(program, types, loops, seen).variant(without)
        names = {name for one in variant.changed for name in one.rewrites}
        last = next((one.name for one in reversed(loops) if one.may_not_pay and one.name in names), None)
        found.append(variant)
        without = None if last is None else without | {last}
    if found[-1].changed:
        found.append(plain)
    neighbours = [one for one in seen.rewrites if isinstance(one, OfNeighbours)]
    return tuple(_with_neighbours(variant, neighbours, types) for variant in found)


@dataclass(slots=True)
class _First:
    """A planned loop before anything is changed, and its verdicts once they were asked for. What was not found out of
    it is noted by who looked: the analysis, the verdicts, or the rewrites that were tried. The program is kept, so
    that no other has its identity."""

    program: Program
    site: Site
    unknown: tuple[str, ...]
    verdicts: tuple[Verdict, ...] | None = None
    unjudged: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()

    @property
    def given_up(self) -> tuple[str, ...]:
        return (*self.unknown, *self.unjudged, *self.untried)


class Seen:
    """What was found of the loops of a function and of its variants, by the identity of their program and their number.
    `rewrites` are those that are tried: the tiles of new orders are made for `caches`."""

    def __init__(
        self, function: Function, rewrites: Iterable[Rewrite], caches: Caches = USUAL, maps: Maps | None = None
    ) -> None:
        self.rewrites = tuple(one for one in rewrites if one.name not in function.without)
        self.caches = caches
        self.analyses = Analyses((one.take for one in self.rewrites if isinstance(one, OfArrays)), maps or Maps())
        self._found: dict[tuple[int, int], _First] = {}

    def look(self, program: Program, number: int, types: Types) -> _First:
        key = id(program), number
        if key not in self._found:
            found, maps = self.analyses.of(program, number, types), self.analyses.maps
            site = Site(program, number, types, found, self.analyses, self.caches, frozenset(), {})
            self._found[key] = _First(program, site, (*found.given_up, *maps.given_up()))
        return self._found[key]

    def judge(self, first: _First) -> tuple[Verdict, ...]:
        """The verdicts on the `for`s of a planned loop."""
        if first.verdicts is None:
            found, maps = first.site.analysis, self.analyses.maps
            nest, analysis = found.loop.nest, found.loop.analysis
            first.verdicts = verdicts(nest, analysis, found.study, first.site.types, found.live_after, maps)
            first.unjudged = maps.given_up()
        return first.verdicts


def _typing_of(program: Program, types: Types) -> Typing:
    """The types of the names of a program: those of its function, and those that rewrites have given it."""
    function = program.function
    own = with_local_arrays({name: kind for name, kind in types.items() if name in function.params}, function)
    return with_names(infer_types(function, own), program.variables, program.tests)


class _Rewriter:
    """Makes one variant of a program."""

    def __init__(
        self, program: Program, types: Types, rewrites: Iterable[OfLoop], seen: Seen, *, judges: bool = True
    ) -> None:
        self.source, self.types, self.rewrites, self.seen, self.judges = program, types, tuple(rewrites), seen, judges
        self.loops: list[AnalysedLoop] = []
        self.written: list[AnalysedLoop] = []
        self.judged: list[Verdict] = []
        self.changed: list[Changed] = []
        self.deferred: list[Deferred] = []

    def variant(self, without: frozenset[str]) -> tuple[Variant, Variant]:
        """The program with all its loops as they are best, and that with its loops as the source has them."""
        program, types = self.source, self.types
        while len(self.loops) < len(program.nests):
            number = len(self.loops)
            first = self.seen.look(program, number, types)
            self.judged += self.seen.judge(first) if self.judges else ()
            best: Tried = None
            site = replace(first.site, without=without)
            for one in self.rewrites:
                if one.name not in without:
                    best = one.take(site, best)
            first.untried += self.seen.analyses.maps.given_up()
            loop = with_limits(first.site.loop, first.given_up)
            self.written.append(replace(loop, nest=self.source.nests[len(self.written)]))
            if best is None:
                self.loops.append(loop)
                continue
            self.note(first.site.analysis, loop, best.loops, depth_of(program, number), best.rewrites)
            self.deferred += best.deferred
            program = best.program
            types = with_local_arrays(types, program.function)
        judged, changed, deferred = tuple(self.judged), tuple(self.changed), tuple(self.deferred)
        typings = (_typing_of(one, self.types) for one in (program, self.source))
        found = Variant(program, tuple(self.loops), judged, changed, deferred, NONE, (), next(typings))
        return found, Variant(self.source, tuple(self.written), judged, (), (), NONE, (), next(typings))

    def note(
        self, first: Analysis, loop: AnalysedLoop, found: Iterable[AnalysedLoop], around: int, names: Iterable[str]
    ) -> None:
        """That loops were found to stand for one."""
        begin, nest = len(self.loops), loop.nest
        self.loops += found
        if origin_of(self.loops[begin]) is None:  # peeled, as the loop as a whole is not known to be parallel
            capped = tuple(against_stronger(reason, self.loops[begin]) for reason in loop.capped)
            self.loops[begin] = replace(self.loops[begin], capped=(*capped, *self.loops[begin].capped))
        numbers, names = range(begin, len(self.loops)), tuple(dict.fromkeys(names))
        self.changed.append(Changed(numbers, around, work_of(first.study), nest.span.line, names))


NONE = Found((), ())
"""No neighbours that may be run as one."""


def _with_neighbours(variant: Variant, rewrites: Iterable[OfNeighbours], types: Types) -> Variant:
    """The variant with what is found of its neighbours."""
    owners = {number: k for k, one in enumerate(variant.changed) for number in one.numbers}
    for one in rewrites:
        found = one.find(variant.program, variant.loops, owners, types)
        variant = replace(variant, neighbours=found)
    return variant
