"""Whether a new order of loops is worth its synchronisation, predicted from sizes before anything runs.

Both figures are rough: a prediction of the work of the loop as written, and what the workers pay to meet each other as
often as the new loops make them. They do not depend on the number of workers, and so neither do the bits of a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from math import prod

from orion.dependence.maps import Maps
from orion.dependence.study import Study
from orion.loop.ir import Binary, Call, For, If, Node, Stmt, Subscript, Unary, Update, children, walk
from orion.loop.nest import Program, Repeat, RunLoop, Step, blocks_of
from orion.loop.types import Shapes
from orion.plan.extents import UNKNOWN_TRIPS, coordinate_ranges, evaluated
from orion.plan.grid import predicted_ns
from orion.plan.plan import LoopPlan

OPERATION_NS = 0.3
VECTOR_NS = 0.1
SLOW_NS = 5.0
SYNC_NS = 3_000
"""What starting a loop once more costs all workers together, in a compiled serial loop: 1 µs was measured where every
worker has a core. Started from Python it is 10 to 20 µs; that is done where a round is long enough for it."""

STARTED_NS = 100_000
"""The same where tests and scalar statements between the loops keep a serial loop in Python. 10 µs were measured on one
worker and about 40 on two; with this the first stays below 5 % of the loop as written."""

SHARE = 0.3
"""The part of the work that meeting may cost at most."""

UNKNOWN_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Work:
    """A statement's instances, as the text of an isl set, and the operations of one; `slow` are those among them that
    no vector instruction does."""

    domain: str
    dims: int
    operations: float
    slow: int = 0


def work_of(study: Study | None) -> tuple[Work, ...]:
    """What the statements of a loop have to do; nothing is known without a study."""
    if study is None:
        return ()
    return tuple(
        Work(s.domain, len(s.space.dims), sum(_operations(part) for part in s.body), sum(map(_slow, s.body)))
        for s in study.region.statements
    )


def _operations(statement: Stmt) -> int:
    """The operations of a statement; a loop in it has trips that nobody knows here."""
    if isinstance(statement, For):
        return 1 + UNKNOWN_TRIPS * sum(map(_operations, statement.body))
    if isinstance(statement, If):
        return 1 + sum(map(_operations, (*statement.body, *statement.orelse)))
    return 1 + sum(isinstance(node, Binary | Unary | Call | Update) for node in walk(statement))


FAST = frozenset({"abs", "min", "max", "int", "float", "sqrt", "minimum", "maximum", "fabs", "float32", "float64"})
"""The functions that vector instructions do, or that cost nothing."""


def _slow(node: Node) -> int:
    """The operations in some code that no vector instruction does: functions such as exp, powers, divisions of
    integers. Those in subscripts do not count."""
    if isinstance(node, Subscript):
        return 0
    if isinstance(node, For):
        return UNKNOWN_TRIPS * sum(map(_slow, node.body))
    is_call = isinstance(node, Call) and node.function.rpartition(".")[2] not in FAST
    is_power = isinstance(node, Binary) and node.op in ("**", "//", "%")
    return int(is_call or is_power) + sum(map(_slow, children(node)))


def least_ns(works: tuple[Work, ...], values: Mapping[str, int]) -> float | None:
    """The same as `work_ns` for loops that the compiler vectorizes where it can."""
    scaled = [replace(one, operations=one.operations * VECTOR_NS + one.slow * SLOW_NS) for one in works]
    time = work_ns(tuple(scaled), values, Maps())
    return None if time is None else time / OPERATION_NS


def work_ns(works: tuple[Work, ...], values: Mapping[str, int], maps: Maps) -> float | None:
    """The predicted time of the statements on one worker, from the boxes around their domains; None where unknown."""
    total = 0.0
    for work in works:
        ranges = [span for span in coordinate_ranges(work.domain, work.dims, values, maps) if span is not None]
        if len(ranges) < work.dims:
            return None
        total += OPERATION_NS * work.operations * prod(float(end - start) for start, end in ranges)
    return total if works else None


def work_of_parts(
    program: Program,
    parts: Iterable[tuple[LoopPlan, tuple[Work, ...]]],
    values: Mapping[str, int],
    shapes: Shapes,
    around: int,
    maps: Maps,
) -> float:
    """The predicted time of planned loops that stand for one, as far as their sizes are known, in one round of the
    `around` loops outermost."""
    total = 0.0
    for loop, works in parts:
        number, time = loop.nest.number, work_ns(works, values, maps)
        if time is None and loop.iterations is not None:
            time = predicted_ns(loop.nest, loop.iterations, shapes)
        total += (time or 0.0) * meetings_of(program, range(number, number + 1), values, around)
    return total


def is_worthwhile(work: float | None, meetings: float, *, in_python: bool = False) -> bool:
    """Whether meeting so often costs little next to the work, as far as it is known. `in_python`: the loops are started
    from Python."""
    return work is None or meetings * (STARTED_NS if in_python else SYNC_NS) <= SHARE * work


def meetings_of(program: Program, numbers: range, values: Mapping[str, int], around: int) -> float:
    """How often the workers start one of the planned loops in `numbers`, in one round of the `around` loops
    outermost."""
    return sum(prod(rounds[around:]) for number, rounds in _rounds(program.steps, (), values) if number in numbers)


def is_started_from_python(steps: Iterable[Step], numbers: range, with_results: Set[int], around: int) -> bool:
    """Whether rounds of the planned loops in `numbers` can only be started from Python (see `orion.runtime.rounds`),
    where `around` serial loops are around all of them: they have results, or there are scalar statements, branches or
    `while`s between them."""
    for step in steps:
        is_around = isinstance(step, Repeat) and around > 0
        if isinstance(step, Repeat) and not is_around:
            inside = [*_steps_in(step)]
            started = [one.number for one in inside if isinstance(one, RunLoop)]
            others = [one for one in inside if not isinstance(one, RunLoop)]
            is_plain = all(isinstance(one, Repeat) and one.space is not None for one in others)
            if any(one in numbers for one in started) and not (is_plain and with_results.isdisjoint(started)):
                return True
        elif any(is_started_from_python(block, numbers, with_results, around - is_around) for block in blocks_of(step)):
            return True
    return False


def _steps_in(step: Step) -> Iterator[Step]:
    yield step
    for block in blocks_of(step):
        for inner in block:
            yield from _steps_in(inner)


def depth_of(program: Program, number: int) -> int:
    """How many serial loops stand around a planned loop."""
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


def rounds_of(step: Repeat, values: Mapping[str, int]) -> float:
    """The rounds of a serial loop, as far as its bounds are known."""
    space = step.space
    if space is None:
        return UNKNOWN_ROUNDS
    start, stop, stride = (evaluated(bound, values) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not stride:
        return UNKNOWN_ROUNDS
    return max(0, len(range(start, stop, stride)))
