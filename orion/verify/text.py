"""A proof of the text that is run for a loop in another order: translation validation (Pnueli et al. 1998), by isl.

The loops that stand for one of the source are read as they are, after all passes, and two things are proved of them,
for all sizes, and for all limits of a box:

1. What is run for a box of a planned band is each instance x of a statement whose place p(x) lies in the box, once, in
   an order in which x → y implies that x is run before y. For sweeps in tiles that is proved of a tile
   (`orion.verify.text_tiles`).
2. The loops that stand for the one of the source, one after the other and in the rounds of the serial loops around
   them, run each instance of its statements once, and x → y, where x and y are not of the same band in the same round,
   implies that x is run in a loop before that of y or in an earlier round.

With what `orion.verify.prove` and `orion.verify.prove_order` prove of boxes against one another, all dependences go
forwards in what is run. That needs no trust in isl's schedule, in its loop generation, or in what makes tiles, strips
and boxes of it. What is taken for granted: the statements, their domains and dependences (`orion.dependence`), integers
without overflow, and that a kernel runs its text. A proof that isl does not end within `MAX_OPERATIONS`, or a text
that is not affine, is no proof: it is said what could not be proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from orion.analysis.one_loop import Origin
from orion.dataclass import dataclass, field
from orion.dependence.conflicts import CapReached, capped
from orion.errors import PlanError
from orion.ir.assigned import assigned_places
from orion.ir.assumed import OfSizes
from orion.ir.nodes import For, Range, names_in
from orion.ir.program import LoopNest, Repeat, RunLoop, Step, blocks_of
from orion.ir.types import ArrayType, Types
from orion.passes.between import SYNTHETIC
from orion.plan.plan import FunctionPlan, LoopPlan, Reordered
from orion.sets.names import extent_name, isl_name, parameter_list
from orion.verify.statements import Claim, Source, live_after, read_source
from orion.verify.stored import prove_stored
from orion.verify.text_buffers import left_open
from orion.verify.text_sets import Found, Path
from orion.verify.text_tiles import one_tile
from orion.verify.text_values import Scope, UnprovedError
from orion.verify.text_walk import Walk

if TYPE_CHECKING:
    import islpy as isl

MAX_OPERATIONS = 10_000_000
"""isl operations that the proof of the text of one loop may cost: some seconds."""


def source_of(plan: FunctionPlan, origin: Origin) -> Source:
    """What the statements of a loop of the source that is run in another order are, and what must keep its order."""
    import islpy as isl

    outer = origin.nest.loops[0]
    claims = [Claim(one.name, one.loops, one.body) for one in origin.statements]
    function, types = plan.program.function, dict(plan.types)
    if claims and claims[0].loops[0] != outer:
        prove_stored(function, outer, claims[0].loops[0], types, live_after(function.body, outer))
    return read_source(function, types, outer, claims, isl.Context())


def prove_text(plan: FunctionPlan, loop: LoopPlan, source: Source) -> tuple[str, ...]:
    """Prove 1 and 2 of a loop of the source that is run in another order. `PlanError` where one does not hold; what
    could not be proved is returned, a sentence each."""
    proof = _Proof(plan, loop, dict(plan.types), source, source.context)
    try:
        proof.run()
    except PlanError as error:
        raise PlanError(f"{loop.nest.span}: {error}") from None
    return tuple(f"{loop.nest.span}: not proved: {sentence}" for sentence in proof.unproved)


@dataclass(frozen=True)
class _Box:
    """The box of a planned band: its text, and where it stands."""

    part: LoopPlan
    path: Path
    rounds: tuple[str, ...]


@dataclass
class _Proof:
    plan: FunctionPlan
    loop: LoopPlan
    types: Types
    source: Source
    context: isl.Context
    boxes: list[_Box] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def run(self) -> None:
        import islpy as isl

        self.forwards = once_and_forwards(self.source)
        self.parts = {part.nest.number: part for part in self.loop.parts}
        forms = {number: part.form for number, part in self.parts.items() if isinstance(part.form, Reordered)}
        self.places = {number: isl.UnionMap(form.places, self.context) for number, form in forms.items()}
        self.attempt("that the loops run each iteration once, and one after the other", self.prove_loops)
        for box in self.boxes:
            name = f"({', '.join(box.part.nest.dims)})"
            self.attempt(f"what is run for a box of {name}", partial(self.prove_box, box))

    def attempt(self, what: str, prove: Callable[[], None]) -> None:
        import islpy as isl

        try:
            with capped(self.context, MAX_OPERATIONS):
                prove()
        except UnprovedError as error:
            self.unproved.append(f"{what}: {error}")
        except (CapReached, isl.Error):
            self.unproved.append(f"{what}: it would take isl too long")

    # ------------------------------------------------------------ the loops one after the other

    def prove_loops(self) -> None:
        walk = self.walk(Path(), set(), [part for part in self.loop.parts if not part.nest.limits])
        scope = Scope(self.numbers)
        found = self.steps(_steps_of(self.plan.program.steps, set(self.parts)), walk, scope, ())
        _check_names(walk)
        expected = {s.name: s.domain for s in self.source.statements}
        self.compare(walk, found, expected, "of the loop")

    def walk(self, path: Path, live: set[str], parts: Iterable[LoopPlan]) -> Walk:
        """Goes through texts of these parts, with their buffers."""
        import islpy as isl

        buffers = {buffer.name: buffer for part in parts for buffer in part.nest.buffers}
        source = self.source
        walk = Walk(
            self.context, source.statements, self.forwards, source.is_exact, source.leaving, path, live, buffers
        )
        extents = [
            extent_name(name, axis)
            for name, kind in self.types.items()
            if isinstance(kind, ArrayType)
            for axis in range(kind.ndim)
        ]
        known = " and ".join(f"{name} >= 0" for name in extents) or "true"
        path.enter(isl.Set(f"{parameter_list(extents)}{{ : {known} }}", self.context))
        for condition in self.source.known:  # a text may have the name or what it stands for
            path.enter(condition)
        for one in self.plan.program.function.assumed:
            if isinstance(one, OfSizes):
                path.enter(walk.condition(one.constraint))
        return walk

    def steps(self, steps: Iterable[Step], walk: Walk, scope: Scope, rounds: tuple[str, ...]) -> Found:
        """What steps of the program run, one after the other."""
        return walk.in_sequence([self.step(step, walk, scope, rounds) for step in steps])

    def step(self, step: Step, walk: Walk, scope: Scope, rounds: tuple[str, ...]) -> Found:
        match step:
            case RunLoop(number):
                part = self.parts[number]
                return self.once(part.nest, walk, scope) if not part.nest.limits else self.band(part, walk, rounds)
            case Repeat(_, inner) if step.space is not None:
                own = (*rounds, isl_name(step.space.var))
                here, depth = scope.inner(), len(walk.path.exact)
                found = walk.loop(step.space, here, lambda inside: self.steps(inner, walk, inside, own))
                return walk.left(found, here, depth)
            case _:
                raise UnprovedError(f"a `{type(step).__name__}` around loops in another order")

    def once(self, nest: LoopNest, walk: Walk, scope: Scope) -> Found:
        """Statements that one worker runs."""
        inside = scope.inner()
        inside.forget(assigned_places(nest.body))
        return walk.block(nest.body, inside)

    def band(self, part: LoopPlan, walk: Walk, rounds: tuple[str, ...]) -> Found:
        """The instances that have places in a band, in one round of the loops around it."""
        self.boxes.append(_Box(part, walk.path.copy(), rounds))
        return self.in_band(part, [f"c{number} = {name}" for number, name in enumerate(rounds)], rounds)

    def in_band(self, part: LoopPlan, conditions: Sequence[str], names: Sequence[str]) -> Found:
        """The instances whose places in a band are as the conditions on c0, c1, … say."""
        import islpy as isl

        found: Found = {}
        domains = {s.name: s.domain for s in self.source.statements}
        for places in _maps(self.places[part.nest.number]):
            dims = [f"c{number}" for number in range(places.dim(isl.dim_type.out))]
            text = f"{parameter_list(names)}{{ [{', '.join(dims)}] : {' and '.join(conditions) or 'true'} }}"
            name = places.get_tuple_name(isl.dim_type.in_)
            found[name] = places.intersect_range(isl.Set(text, self.context)).domain().intersect(domains[name])
        return found

    # ------------------------------------------------------------ a box

    def prove_box(self, box: _Box) -> None:
        nest, form = box.part.nest, box.part.form
        is_time_tiled = isinstance(form, Reordered) and form.is_time_tiled
        if is_time_tiled:
            self.prove_permutable(box.part)
        body, limits = one_tile(nest) if is_time_tiled else (nest.body, nest.limits)
        names = [*box.rounds, *(name for pair in limits for name in pair)]
        walk = self.walk(box.path, set(names), [box.part])
        scope = Scope(self.numbers)
        scope.forget(assigned_places(body))
        found = walk.block(body, scope)
        _check_names(walk)
        unfilled = left_open(found, walk.buffers)
        if unfilled is not None:
            raise PlanError(f"the generated loops use the buffer `{unfilled}` where nothing is copied to it")
        found = {name: values for name, values in found.items() if name in {s.name for s in walk.statements}}
        conditions = [f"c{number} = {name}" for number, name in enumerate(box.rounds)]
        for number, (first, end) in enumerate(limits, start=len(box.rounds)):
            conditions.append(f"{first} <= c{number} < {end}")
        self.compare(walk, found, self.in_band(box.part, conditions, names), f"of a box of ({', '.join(nest.dims)})")

    def prove_permutable(self, part: LoopPlan) -> None:
        """That tiles of any size may be run one after the other in lexicographic order: no dependence goes backwards in
        any coordinate."""
        import islpy as isl

        places = self.places[part.nest.number]
        moved = self.source.union().apply_domain(places).apply_range(places).deltas()
        dims = [f"c{k}" for k in range(len(part.nest.limits))]
        fine = isl.UnionSet(f"{{ [{', '.join(dims)}] : {' and '.join(f'{dim} >= 0' for dim in dims)} }}", self.context)
        if not moved.is_subset(fine):
            raise PlanError(f"a dependence goes backwards in a coordinate of tiles of ({', '.join(part.nest.dims)})")

    def compare(self, walk: Walk, found: Found, expected: Found, where: str) -> None:
        """PlanError where what is run is not what should be."""
        for name, wanted in expected.items():
            run = found.get(name, wanted.subtract(wanted))
            for missing, what in ((wanted.subtract(run), "leave out"), (run.subtract(wanted), "run too much")):
                exception = walk.witness(missing)
                if exception is not None:
                    raise PlanError(f"the generated loops {what} {where}: {exception.sample()}")
        for name in found.keys() - expected.keys():
            if not walk.is_impossible(found[name]):
                raise PlanError(f"the generated loops run too much {where}: {found[name].sample()}")


def once_and_forwards(source: Source) -> dict[tuple[str, str], list[isl.Map]]:
    """What is to go forwards: x → y, and x → x, as no instance may be run twice."""
    import islpy as isl

    found = {ends: [*relations] for ends, relations in source.forwards.items()}
    for statement in source.statements:
        same = isl.Map.identity(statement.domain.get_space().map_from_set())
        found.setdefault((statement.name, statement.name), []).append(same)
    return found


def _maps(relation: isl.UnionMap) -> list[isl.Map]:
    found: list[isl.Map] = []
    relation.foreach_map(found.append)
    return found


def _steps_of(steps: Sequence[Step], numbers: set[int]) -> tuple[Step, ...]:
    """The steps that stand for a loop of the source, whose planned loops have these numbers: whole serial loops that
    are not in the source, or planned loops."""
    places = [at for at, step in enumerate(steps) if _numbers((step,)) & numbers]
    if places and places != [*range(places[0], places[-1] + 1)]:
        raise PlanError("something else stands between the parts of a loop in another order")
    own = tuple(steps[at] for at in places)
    if len(own) == 1 and not isinstance(own[0], RunLoop):
        loop = own[0].loop if isinstance(own[0], Repeat) else None
        if not isinstance(loop, For) or loop.index != SYNTHETIC:
            return next(_steps_of(block, numbers) for block in blocks_of(own[0]) if _numbers(block) & numbers)
    return own


def _numbers(steps: Iterable[Step]) -> set[int]:
    found: set[int] = set()
    for step in steps:
        found |= {step.number} if isinstance(step, RunLoop) else set()
        for block in blocks_of(step):
            found |= _numbers(block)
    return found


def _check_names(walk: Walk) -> None:
    """PlanError where the text changes a name that statements use, other than their loop variables."""
    variables = {loop.space.var for s in walk.statements for loop in s.loops if isinstance(loop.space, Range)}
    used = {name for statement in walk.statements for name in names_in(*statement.body)}
    changed = (walk.changed - variables) & used
    if changed:
        raise PlanError(f"the generated loops change {', '.join(sorted(changed))}, which the loop uses")
