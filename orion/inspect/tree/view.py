"""The tree of the source's loops: how each runs, its share of the work, and its seconds. Every view of a plan or of a
run shows it first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from orion.dataclass import dataclass, replace
from orion.inspect.text.fors import IN_TURN, loops_around, rounds_in_words
from orion.inspect.text.telling import signature
from orion.inspect.text.where import where_the_work_is
from orion.inspect.tree.words import Parts, how_it_is_inside, how_it_runs, how_parts_run, part_of_work
from orion.ir.function import Function, SourceFor, in_users_words
from orion.ir.nodes import Call, For, Var, every, walk
from orion.ir.program import Repeat, Step, blocks_of
from orion.ir.types import ArrayType, Types
from orion.plan.called import code_of, header_of
from orion.plan.parallelism import LITTLE
from orion.plan.plan import FunctionPlan, Inside, LoopPlan, Member, ReorderedSingle, Single, is_of_source
from orion.plan.shares import predicted_ns, shares
from orion.plan.source_plans import source_plans
from orion.source import SourceText, Span

MOST = 10
"""How many loops a view shows; the rest is a line."""

Place = tuple[int, ...]
"""Where a loop stands: the lines of the calls of helpers in whose place it is, outermost first, and its own."""


def place_of(span: Span) -> Place:
    """Return where a span stands in the source of a function."""
    return span.place


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of a call, and of the loops that stand for each place of its source. `shared` is the part of the loops'
    seconds in which workers share a loop out, between 0 and 1; None where the loops took no time."""

    call: float
    loops: Mapping[Place, float]
    shared: float | None = None


def seconds_of(call: float, loops: Iterable[tuple[Span, float, bool]]) -> Seconds:
    """Return the seconds of a call and of its planned loops, added up by their places in the source. Each loop comes
    with its seconds and whether one worker runs it, though there are more."""
    found: dict[Place, float] = {}
    alone = 0.0
    for span, seconds, is_alone in loops:
        found[place_of(span)] = found.get(place_of(span), 0.0) + seconds
        alone += seconds * is_alone
    total = sum(found.values())
    return Seconds(call, found, 1.0 - alone / total if total > 0.0 else None)


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A loop of the source, or an array statement that runs as one.

    `text` is its header as written and `depth` the number of loops around it. `how` is how it runs, in words, and
    `parts` has a sentence on each planned loop where several stand for it. `share` is its part of the measured
    seconds, of the predicted ones where no run was measured, and of the predicted work where neither is known; None for
    loops around others and further in. `predicted` and `measured` are seconds, None where unknown. `is_inner`: it
    stands inside of a loop that is planned. `weight` is its part of the predicted work, whatever was measured.
    """

    line: int
    depth: int
    text: str
    how: str
    parts: tuple[str, ...] = ()
    share: float | None = None
    predicted: float | None = None
    measured: float | None = None
    is_inner: bool = False
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Effect:
    """What an option would change about the loop of the source in line `line`: `how` it would run with it."""

    option: str
    line: int
    how: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The loops of a function in textual order, under its signature and verdict. `predicted` and `measured` are the
    seconds of the whole call, `unpredicted` says why the first are not known though the function was measured, and
    `options` what options would change. `shared` is the part of the measured seconds that is shared out, else of the
    predicted ones; None where neither is known."""

    function: str
    verdict: str
    lines: tuple[TreeLine, ...]
    predicted: float | None = None
    measured: float | None = None
    options: tuple[Effect, ...] = ()
    unpredicted: str = ""
    shared: float | None = None

    def in_letters(self, letters: Callable[[str], str]) -> Tree:
        """Return the tree in the characters that `letters` writes."""
        lines = tuple(replace(line, text=letters(line.text), how=letters(line.how)) for line in self.lines)
        options = tuple(replace(one, how=letters(one.how)) for one in self.options)
        return replace(
            self, function=letters(self.function), verdict=letters(self.verdict), lines=lines, options=options
        )

    def shown(self, most: int | None = MOST) -> tuple[tuple[TreeLine, ...], int]:
        """Return at most so many lines (all for None), those with most of the work and the loops around them, and how
        many are left out. Loops further in go first."""
        if most is None or len(self.lines) <= most:
            return self.lines, 0
        kept = {at for at, line in enumerate(self.lines) if not line.is_inner}
        if len(kept) > most:
            kept = self._costliest(sorted(kept), most)
        return tuple(self.lines[at] for at in sorted(kept)), len(self.lines) - len(kept)

    def _costliest(self, places: Sequence[int], most: int) -> set[int]:
        kept: set[int] = set()
        for at in sorted(places, key=lambda at: -self.lines[at].weight):
            wanted = {at, *self._around(at)}
            if len(kept | wanted) <= most:
                kept |= wanted
        return kept

    def _around(self, at: int) -> Iterator[int]:
        """The lines of the loops around one."""
        depth = self.lines[at].depth
        for before in range(at - 1, -1, -1):
            if self.lines[before].depth < depth:
                depth = self.lines[before].depth
                yield before


NO_SECONDS = Seconds(0.0, {})


@dataclass(frozen=True, slots=True)
class _Builder:
    """What the lines of a tree are made from. `whiles` are those of the source that stand around planned loops."""

    plan: FunctionPlan
    parts: Parts
    groups: dict[Place, list[LoopPlan]]
    whiles: Mapping[Place, tuple[int, int]]
    nanoseconds: float | None
    predicted: Seconds
    measured: Seconds

    @property
    def function(self) -> Function:
        return self.plan.program.function

    def lines(self) -> Iterator[tuple[Place, TreeLine]]:
        """The lines with their places, in no order; none of a function that has nothing but statements."""
        if not self.plan.loops or not (self.function.fors or any(map(is_of_source, self.plan.loops))):
            return
        fors = {place_of(one.span): one for one in self.function.fors}
        inside = {place: one for group in self.groups.values() for loop in group for place, one in _inside(loop)}
        around = {place_of(outer.span) for loop in self.plan.loops for outer in loops_around(loop, self.plan)}
        deeper = self._in_statements()
        for place, one in fors.items():
            line = TreeLine(one.line, one.depth + deeper[place], header_of(one, self.function.source), "")
            if place in self.groups:
                yield place, self._filled(line, place)
            elif place in around:
                yield place, replace(line, how=rounds_in_words(one.span, self.plan))
            elif place in inside:
                yield place, replace(line, how=inside[place], is_inner=True)
            else:
                yield place, replace(line, how=self._replaced(one))
        for place in self.groups.keys() - fors.keys():
            statement = self._statement(place)
            if statement is not None:
                yield place, replace(statement, depth=statement.depth + deeper[place])
        for place, (depth, _) in self.whiles.items():
            text = code_of(self.function.source, place[-1])
            yield place, TreeLine(place[-1], depth + deeper[place], text, IN_TURN)

    def _in_statements(self) -> Counter[Place]:
        """How many statements with lines of their own, as a `while`, stand around the loops at each place."""
        found: Counter[Place] = Counter()
        for place, group in self.groups.items():
            for loop in (one for one in group if isinstance(one.form, Single)):
                inside = _loops_in(loop, self.function)
                is_around = len(inside) > 1 and min(one.span.column for one in inside) > loop.nest.span.column
                if is_around and self._statement(place) is not None:
                    found += Counter({place_of(node.span) for node in every(For, *loop.nest.body)})
        places = {place_of(one.span) for one in self.function.fors} | self.groups.keys() | self.whiles.keys()
        for outer, (_, end) in self.whiles.items():
            found += Counter(place for place in places if outer[0] < place[0] <= end)
        return found

    def _replaced(self, outer: SourceFor) -> str:
        """How a `for` runs that no planned loop stands for, by the loops in it: its rounds may run in another loop,
        and one that has a single iteration at most is gone."""
        after = [one for one in self.function.fors if one.span > outer.span]
        inside = list(takewhile(lambda one: one.depth > outer.depth, after))
        return IN_TURN if any(place_of(one.span) in self.groups for one in inside) else "once at most"

    def _statement(self, place: Place) -> TreeLine | None:
        """The line of what is not a `for` of the function: a statement, or a loop of a helper. None where it is not
        worth one."""
        group = self.groups[place]
        first = group[0]
        share = sum(part_of_work(loop, self.parts) for loop in group)
        if (
            not any(map(is_of_source, group))
            and share < LITTLE
            and not any(_is_of_arrays(one, dict(self.plan.types)) for one in group)
        ):
            return None
        depth = len({place_of(outer.span) for outer in loops_around(first, self.plan)})
        text = code_of(self.function.source, first.nest.span.line)
        return self._filled(TreeLine(first.nest.span.line, depth, text, ""), place)

    def _filled(self, line: TreeLine, place: Place) -> TreeLine:
        group = self.groups[place]
        is_counted = not all(map(self._is_counted_elsewhere, group))
        weight = sum(part_of_work(loop, self.parts) for loop in group) if is_counted else 0.0
        return replace(
            line,
            how=in_users_words(how_it_runs(group, self.plan, self.parts, self.nanoseconds), self.function),
            parts=tuple(
                in_users_words(one, self.function) for one in how_parts_run(group, self.plan, self.parts)
            ),
            share=self._share(place, weight) if is_counted else None,
            weight=weight,
            predicted=self.predicted.loops.get(place),
            measured=self.measured.loops.get(place),
        )  # fmt: skip

    def _share(self, place: Place, weight: float) -> float:
        """The part of the loops' seconds, measured or else predicted by what was measured, that those at a place have;
        of the predicted work where neither is known."""
        for seconds in (self.measured, self.predicted):
            total = sum(seconds.loops.values())
            if total > 0.0:
                return seconds.loops.get(place, 0.0) / total
        return weight

    def _is_counted_elsewhere(self, loop: LoopPlan) -> bool:
        """Whether another line has the share of a loop: of neighbours that are run as one the first has it."""
        if isinstance(loop.form, Inside):
            return True
        if not isinstance(loop.form, Member):
            return False
        alike = (one for group in self.groups.values() for one in group if one.nest.number == loop.nest.number)
        return next(alike) is not loop


def _is_of_arrays(loop: LoopPlan, types: Types) -> bool:
    """Whether statements fill an array, or call a function of whole ones: their time depends on its size."""
    if not isinstance(loop.form, Single):
        return not isinstance(loop.form, ReorderedSingle)
    arguments = (argument for call in every(Call, *loop.nest.body) for argument in call.arguments)
    return any(isinstance(one, Var) and isinstance(types.get(one.name), ArrayType) for one in arguments)


def tree_of(plan: FunctionPlan, predicted: Seconds | None = None, measured: Seconds | None = None) -> Tree:
    """Return the tree of a planned function, with what is known of its seconds."""
    lines = placed_lines(plan, predicted, measured)
    shared = next((one.shared for one in (measured, predicted) if one and one.shared is not None), None)
    return Tree(
        signature(plan),
        in_users_words(where_the_work_is(plan, shared), plan.program.function),
        tuple(line for _, line in lines),
        predicted.call if predicted else None,
        measured.call if measured else None,
        shared=shared,
    )


def placed_lines(
    plan: FunctionPlan, predicted: Seconds | None = None, measured: Seconds | None = None
) -> list[tuple[Place, TreeLine]]:
    """Return the lines of the tree of a planned function, with their places in the source."""
    parts = {one.loop.nest.number: one.part for one in shares(plan)}
    groups = groups_of(plan)
    nanoseconds = None if plan.sizes.symbolic else predicted_ns(plan)
    whiles = dict(_whiles(plan.program.steps, plan.program.function.source, 0))
    builder = _Builder(plan, parts, groups, whiles, nanoseconds, predicted or NO_SECONDS, measured or NO_SECONDS)
    return sorted(builder.lines(), key=lambda one: one[0])


def groups_of(plan: FunctionPlan) -> dict[Place, list[LoopPlan]]:
    """Return the planned loops of the source, by the places that they stand for."""
    groups: dict[Place, list[LoopPlan]] = {}
    for loop in source_plans(plan):
        groups.setdefault(_place_of_loop(loop, plan), []).append(loop)
    return groups


def _place_of_loop(loop: LoopPlan, plan: FunctionPlan) -> Place:
    """Where a planned loop stands: statements that run once stand where the only loop of the source in them does."""
    inside = _loops_in(loop, plan.program.function) if isinstance(loop.form, Single) else []
    return place_of(inside[0].span) if len(inside) == 1 else place_of(loop.nest.span)


def _loops_in(loop: LoopPlan, function: Function) -> list[SourceFor]:
    """The outermost loops of the source in statements that run once."""
    written = {place_of(one.span): one for one in function.fors}
    places = dict.fromkeys(place_of(node.span) for node in every(For, *loop.nest.body))
    found = [written[place] for place in places if place in written]
    least = min((one.depth for one in found), default=0)
    return [one for one in found if one.depth == least]


def _whiles(steps: Iterable[Step], source: SourceText, depth: int) -> Iterator[tuple[Place, tuple[int, int]]]:
    """Each `while` of the source around planned loops: how many `for`s are around it, and its last line."""
    for step in steps:
        inner = depth
        if isinstance(step, Repeat):
            span = step.loop.span
            if isinstance(step.loop, For):
                inner += step.loop.index >= 0
            elif not span.inlined and source.line(span.line).lstrip().startswith("while "):
                lines = [
                    node.span.end_line for one in step.loop.body for node in walk(one) if node.span.file == span.file
                ]
                yield place_of(span), (depth, max(lines, default=span.line))
        for block in blocks_of(step):
            yield from _whiles(block, source, inner)


def _inside(loop: LoopPlan) -> Iterator[tuple[Place, str]]:
    """The `for`s in a planned loop, and what happens to each."""
    dims = {id(node): dim for dim, node in enumerate(loop.nest.loops)} if loop.nest.elements is None else {}
    for node in every(For, loop.nest.loops[0]):
        yield place_of(node.span), how_it_is_inside(node, dims.get(id(node)), loop)
