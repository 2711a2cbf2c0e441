"""Decision whether a new order of loops is worth its synchronisation, from sizes alone.

Both figures are rough: the predicted work of the loop as written, and the cost of the workers' barriers in the new
order. They do not depend on the number of workers, so the bits of a result do not either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import prod

import numpy as np

from orion.cost.extents import UNKNOWN_TRIPS, WHILE_TRIPS, coordinate_ranges, evaluated
from orion.cost.grid import OPERATIONS, elements_in, predicted_ns, trips_of
from orion.cost.sizes import Sizes
from orion.cost.strides import JUMP, STILL, trip_cost
from orion.dataclass import dataclass, replace
from orion.dependence.region import Statement
from orion.dependence.study import Study
from orion.ir.nodes import (
    Binary,
    Call,
    For,
    If,
    Node,
    Range,
    Stmt,
    Subscript,
    Update,
    Var,
    While,
    children,
    every,
    holds,
)  # fmt: skip
from orion.ir.program import LoopNest, Program, Repeat, RunLoop, Step, blocks_of
from orion.ir.types import Shapes
from orion.sets.maps import Maps
from orion.sets.names import isl_name
from orion.typing.functions import Cost, cost_of

OPERATION_NS = 0.3
VECTOR_NS = 0.04
"""An operation by itself, and as part of a vector instruction: between 0.02 and 0.06 were measured of PolyBench's
kernels in the cache, 0.1 to 0.5 of those with sums or divisions."""

SLOW_NS = 5.0
DIVISION_NS = 3.5
NEAR_JUMP_NS, FAR_JUMP_NS, FAR_NS = 0.5, 2.0, 0.15
"""An access that does not go to the next element: to an array in the second-level cache, to a larger one; and one that
goes to the next element of a larger one, which may still be in the third-level cache."""

ITEM_BYTES = 8

WAKE_NS = 30_000
"""What the first start of other workers in a call costs."""

SYNC_NS = 3_000
"""What starting a loop once more costs all workers together, in followed steps: 1 µs was measured
where every worker has a core, and what one has written must get to the other."""

STARTED_NS = 40_000
"""The same where tests and scalar statements between the loops keep a serial loop in Python. 10 µs were measured on one
worker and about 40 on two."""

SHARE = 0.3
"""The part of the work that meeting may cost at most."""

UNKNOWN_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Work:
    """The instances of a statement, as the text of an isl set over the `variables` of its loops, and what one does.
    `is_vector`: trips of the innermost loop do not depend on each other, and go through memory element by element.
    `arrays` are those that it goes along, by how many subscripts, and whether in jumps.
    """

    domain: str
    variables: tuple[str, ...]
    body: tuple[Stmt, ...]
    is_vector: bool = False
    arrays: tuple[tuple[str, int, bool], ...] = ()

    def nanoseconds(self, values: Mapping[str, int], sizes: Sizes) -> float:
        """The predicted time of one instance, with these values of parameters and loop variables."""
        shapes, cache = sizes.shapes, sizes.caches.second
        cost = VECTOR_NS if self.is_vector else OPERATION_NS
        compute = sum(_operations(part, cost, values, shapes) for part in self.body)
        memory = sum(_access_ns(shapes.get(array, ()), along, jumps, cache) for array, along, jumps in self.arrays)
        return max(compute, memory)


def _access_ns(shape: Sequence[int], along: int, jumps: bool, cache: int) -> float:
    """The time of an access to what `along` subscripts leave of an array: an element, or a row of them."""
    row = prod(shape[along:])
    if prod(shape) * ITEM_BYTES <= cache:
        return NEAR_JUMP_NS if jumps else 0.0
    return max(FAR_JUMP_NS if jumps else 0.0, FAR_NS * row)


def work_of(study: Study | None) -> tuple[Work, ...]:
    """Return the work of a loop's statements; nothing without a study."""
    return () if study is None else work_of_statements(study, study.region.statements)


def work_of_statements(study: Study, statements: Iterable[Statement]) -> tuple[Work, ...]:
    """Return the work of some statements of a loop."""
    carried = {one.loop.index: {dependence.array for dependence in one.dependences} for one in study.carried}
    return tuple(_work_of(statement, carried[statement.loops[-1].index]) for statement in statements)


def _work_of(statement: Statement, carried: Set[str]) -> Work:
    """The work of a statement, given what its innermost loop carries dependences over."""
    innermost = np.eye(len(statement.space.dims))[-1]
    moving = {(array, len(matrix), trip_cost(matrix, innermost)) for array, _, matrix in statement.subscripts}
    jumping = {(array, along) for array, along, cost in moving if cost == JUMP}
    arrays = {(array, along, (array, along) in jumping) for array, along, cost in moving if cost != STILL}
    holds_loop = holds((For, While), *statement.body)
    is_vector = not (carried - _sums(statement) or jumping or holds_loop)
    variables = tuple(loop.space.var for loop in statement.loops if isinstance(loop.space, Range))
    return Work(statement.domain, variables, statement.body, is_vector, tuple(sorted(arrays)))


def _sums(statement: Statement) -> set[str]:
    """Return the scalars that a statement only adds to: a vector holds several partial sums."""
    targets = [part.target for part in statement.body if isinstance(part, Update) and part.op in ("+", "-")]
    return {target.name for target in targets if isinstance(target, Var)}


def _operations(
    statement: Stmt, cost: float, values: Mapping[str, int], shapes: Shapes, unknown: int = UNKNOWN_TRIPS
) -> float:
    """The time of the operations of a statement, most of which take `cost`; those on rows are vector instructions.
    Loops make `unknown` trips of which nothing is known."""

    def inside(body: Iterable[Stmt], cost: float) -> float:
        return sum(_operations(part, cost, values, shapes, unknown) for part in body)

    match statement:
        case For(space, body):
            return cost + trips_of(space, values, unknown) * inside(body, OPERATION_NS)
        case While(_, body):
            return cost + min(unknown, WHILE_TRIPS) * inside(body, OPERATION_NS)
        case If(_, body, orelse):
            return cost + inside((*body, *orelse), cost)
    elements = {id(node): count for node, count in elements_in(statement, shapes)}
    counts = [elements[id(node)] for node in (statement, *every(OPERATIONS, statement))]
    plain = sum(cost if count == 1 else max(OPERATION_NS, VECTOR_NS * count) for count in counts)
    return plain + sum(SLOW_NS * elements[id(node)] for node in _slow(statement))


def body_ns(body: Iterable[Stmt], values: Mapping[str, int], shapes: Shapes) -> float:
    """Return the predicted time of statements that run once, as far as the iterations of their loops are known."""
    return sum(_operations(part, OPERATION_NS, values, shapes) for part in body)


def chained_ns(body: Iterable[Stmt], values: Mapping[str, int], shapes: Shapes) -> float:
    """Return the predicted time of statements each run of which waits for the previous one, also for its divisions.

    Inner loops with an unknown number of iterations are left out.
    """
    body = tuple(body)
    divisions = sum(one.op == "/" for one in every(Binary, *body))
    return DIVISION_NS * divisions + sum(_operations(part, OPERATION_NS, values, shapes, unknown=0) for part in body)


def _slow(node: Node) -> Iterator[Node]:
    """The operations in some code that no vector instruction does: functions such as exp, powers, divisions of
    integers. Those in subscripts do not count."""
    if isinstance(node, Subscript):
        return
    is_call = isinstance(node, Call) and cost_of(node.function) is Cost.SLOW
    if is_call or (isinstance(node, Binary) and node.op in ("**", "//", "%")):
        yield node
    for part in children(node):
        yield from _slow(part)


def least_ns(works: tuple[Work, ...], sizes: Sizes, maps: Maps) -> float | None:
    """Return `work_ns` as if no dependence prevented vector instructions."""
    return work_ns(tuple(replace(one, is_vector=True) for one in works), sizes, maps)


def work_ns(works: tuple[Work, ...], sizes: Sizes, maps: Maps) -> float | None:
    """Return the predicted time of the statements on one worker, by the bounding boxes of their domains; None where
    unknown."""
    values = sizes.values
    key = "work", id(works), tuple(values.items()), sizes.caches
    return maps.once(key, lambda: (works, _work_ns(works, values, sizes, maps)))[1]  # no other gets the identity


def _work_ns(works: tuple[Work, ...], values: Mapping[str, int], sizes: Sizes, maps: Maps) -> float | None:
    total = 0.0
    for work in works:
        dims = len(work.variables)
        ranges = [span for span in coordinate_ranges(work.domain, dims, values, maps) if span is not None]
        if len(ranges) < dims:
            return None
        middle = {isl_name(name): sum(span) // 2 for name, span in zip(work.variables, ranges, strict=True)}
        instances = prod(float(end - start) for start, end in ranges)
        total += instances * work.nanoseconds({**values, **middle}, sizes)
    return total if works else None


def work_of_parts(
    program: Program,
    parts: Iterable[tuple[LoopNest, int | None, tuple[Work, ...], tuple[tuple[str, int], ...]]],
    sizes: Sizes,
    around: int,
    maps: Maps,
) -> float:
    """Return the predicted time of the loops that replace one, in one round of the `around` outermost loops.

    Each part has its nest, the number of its iterations if known, its work, and its middle round.
    """
    total, values = 0.0, sizes.values
    for nest, iterations, works, middle in parts:
        number, time = nest.number, work_ns(works, sizes.at_round(middle), maps)
        if time is None and iterations is not None:
            time = predicted_ns(nest, iterations, sizes.shapes, values)
        total += (time or 0.0) * barriers_of(program, range(number, number + 1), values, around)
    return total


@dataclass(frozen=True, slots=True)
class Changes:
    """Cost of the loops that replace one of the source, in one call, in nanoseconds on one worker.

    `work` is None where it is unknown. `rounds` has per loop the rounds of the serial loops around it, each of which
    starts it. `in_python`: Python starts the loops, not compiled code.
    """

    work: float | None
    rounds: tuple[tuple[float, ...], ...]
    in_python: bool

    @property
    def barriers(self) -> float:
        """Number of starts of the loops."""
        return sum(map(prod, self.rounds))

    @property
    def start_ns(self) -> float:
        """Cost of one start."""
        return STARTED_NS if self.in_python else SYNC_NS


def is_worthwhile(changes: Sequence[Changes]) -> bool:
    """Whether barriers cost little next to the work, as far as that is known:

    WAKE_NS + Σ barriers · (SYNC_NS or STARTED_NS)  ≤  SHARE · Σ work

    The changes of a program are judged together, since either all of them are made or none.
    """
    known = [one for one in changes if one.work is not None]
    return not known or barrier_ns(known) <= SHARE * sum(one.work or 0.0 for one in known)


def barrier_ns(changes: Iterable[Changes]) -> float:
    """Return the time that all workers together spend on starting the loops."""
    return WAKE_NS + sum(one.barriers * one.start_ns for one in changes)


def barriers_of(program: Program, numbers: range, values: Mapping[str, int], around: int) -> float:
    """Return how often workers start the planned loops in `numbers`, in one round of the `around` outermost loops."""
    return sum(prod(rounds[around:]) for rounds in starts_of(program, numbers, values))


def starts_of(program: Program, numbers: range, values: Mapping[str, int]) -> tuple[tuple[float, ...], ...]:
    """Return the rounds of the serial loops around each planned loop in `numbers`, outermost first."""
    return tuple(rounds for number, rounds in _rounds(program.steps, (), values) if number in numbers)


def depth_of(program: Program, number: int) -> int:
    """Return the number of serial loops around a planned loop."""
    return next(len(rounds) for found, rounds in _rounds(program.steps, (), {}) if found == number)


def _rounds(
    steps: tuple[Step, ...], around: tuple[float, ...], values: Mapping[str, int]
) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Every planned loop with the numbers of rounds of the loops around it."""
    for step in steps:
        if isinstance(step, RunLoop):
            yield step.number, around
        inside = around
        if isinstance(step, Repeat):
            inside = (*around, rounds_of(step, values))
        for block in blocks_of(step):
            yield from _rounds(block, inside, values)


def middle_round(around: Iterable[Range], values: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The values of the variables of serial loops, outermost first, in the middle of their ranges; without those whose
    bounds are not known."""
    found: dict[str, int] = {}
    for space in around:
        known = {**values, **{isl_name(name): value for name, value in found.items()}}
        first, last, step = (evaluated(bound, known) for bound in (space.start, space.stop, space.step))
        if first is not None and last is not None and step:
            found[space.var] = first + len(range(first, last, step)) // 2 * step
    return tuple(found.items())


def rounds_of(step: Repeat, values: Mapping[str, int]) -> float:
    """The rounds of a serial loop, as far as its bounds are known."""
    return UNKNOWN_ROUNDS if step.space is None else trips_of(step.space, values, UNKNOWN_ROUNDS)
