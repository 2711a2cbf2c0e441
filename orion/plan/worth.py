"""Whether a new order of loops is worth its synchronisation, predicted from sizes before anything runs.

Both figures are rough: a prediction of the work of the loop as written, and what the workers pay to meet each other as
often as the new loops make them. They do not depend on the number of workers, and so neither do the bits of a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from orion.dependence.names import extent_name, isl_name
from orion.dependence.study import Study
from orion.loop.ir import Binary, Call, Const, Dim, Expr, Node, Range, Stmt, Unary, Update, Var, walk
from orion.loop.nest import Program, Repeat, RunLoop, Step
from orion.plan.extents import coordinate_ranges

OPERATION_NS = 0.3
SYNC_NS = 3_000
"""What starting a loop once more costs all workers together, in a compiled serial loop: 1 µs was measured where every
worker has a core. Started from Python it is 10 to 20 µs; that is done where a round is long enough for it."""

SHARE = 0.3
"""The part of the work that meeting may cost at most."""

UNKNOWN_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Work:
    """A statement's instances, as the text of an isl set, and the operations of one."""

    domain: str
    dims: int
    operations: int


def work_of(study: Study | None) -> tuple[Work, ...]:
    """What the statements of a loop have to do; nothing is known without a study."""
    if study is None:
        return ()
    return tuple(
        Work(s.domain, len(s.space.dims), sum(_operations(part) for part in s.body)) for s in study.region.statements
    )


def _operations(statement: Stmt) -> int:
    return 1 + sum(isinstance(node, Binary | Unary | Call | Update) for node in walk(statement))


def work_ns(works: tuple[Work, ...], values: Mapping[str, int]) -> float | None:
    """The predicted time of the statements on one worker, from the boxes around their domains; None where unknown."""
    total = 0.0
    for work in works:
        ranges = [span for span in coordinate_ranges(work.domain, work.dims, values) if span is not None]
        if len(ranges) < work.dims:
            return None
        total += OPERATION_NS * work.operations * prod(float(end - start) for start, end in ranges)
    return total if works else None


def is_worthwhile(work: float | None, meetings: float) -> bool:
    """Whether meeting so often costs little next to the work, as far as it is known."""
    return work is None or meetings * SYNC_NS <= SHARE * work


def meetings_of(program: Program, numbers: range, values: Mapping[str, int], around: int) -> float:
    """How often the workers start one of the planned loops in `numbers`, in one round of the `around` loops
    outermost."""
    return sum(prod(rounds[around:]) for number, rounds in _rounds(program.steps, (), values) if number in numbers)


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
        elif isinstance(step, Repeat):
            space = step.loop.space
            rounds = _trips(space, values) if isinstance(space, Range) else UNKNOWN_ROUNDS
            yield from _rounds(step.steps, (*around, rounds), values)


def _trips(space: Range, values: Mapping[str, int]) -> float:
    start, stop, step = (evaluated(bound, values) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return UNKNOWN_ROUNDS
    return max(0, len(range(start, stop, step)))


def evaluated(expr: Node, values: Mapping[str, int]) -> int | None:
    """The value of an integer expression over extents and integer arguments; None where it has other names.

    >>> from orion.loop.source import Span
    >>> span = Span("f.py", 1, 0, 1, 1)
    >>> evaluated(Binary("+", Dim("A", 0, span), Const(2, span), span), {"A__0": 5})
    7
    """
    match expr:
        case Const(int(value)):
            return value
        case Var(name):
            return values.get(isl_name(name))
        case Dim(array, axis):
            return values.get(extent_name(array, axis))
        case Unary("-", operand):
            inner = evaluated(operand, values)
            return None if inner is None else -inner
        case Binary(op, left, right):
            return _binary(op, left, right, values)
        case Call("min" | "max" as name, parts):
            found = [value for value in (evaluated(part, values) for part in parts) if value is not None]
            return None if len(found) < len(parts) else min(found) if name == "min" else max(found)
        case _:
            return None


def _binary(op: str, left: Expr, right: Expr, values: Mapping[str, int]) -> int | None:
    one, other = evaluated(left, values), evaluated(right, values)
    if one is None or other is None:
        return None
    match op:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "//" if other:
            return one // other
        case "%" if other:
            return one % other
        case _:
            return None
