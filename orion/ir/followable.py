"""Which steps may be followed as instructions (`orion.kernel.instructions`), as far as their text says.

Planning asks this for what it costs to start a loop, the runtime for what it starts how: it is one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from orion.dataclass import dataclass
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Break,
    Call,
    Choose,
    Compare,
    Const,
    Continue,
    Count,
    Dim,
    For,
    If,
    Logic,
    Node,
    Pass,
    Range,
    Tuple,
    Unary,
    Update,
    Var,
    While,
    every,
    walk,
)
from orion.ir.program import Branch, Repeat, RunLoop, Scalars, Step, blocks_of

FOLLOWED = (
    Assign, Update, If, While, For, Break, Continue, Pass, Range, Tuple,
    Const, Var, Dim, Count, Unary, Binary, Compare, Logic, Choose, Call,
)  # fmt: skip
CALLS = {
    "abs", "min", "max", "float", "int", "bool", "np.sqrt", "math.sqrt", "np.abs", "np.absolute", "np.fabs", INTEGER,
}  # fmt: skip
OPERATORS = {"+", "-", "*", "/", "//", "%", "**", "&", "|", "^"}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}


@dataclass(frozen=True, slots=True)
class Together:
    """Steps that come one after the other and may be followed; `is_repeated`: in a loop that is not."""

    steps: tuple[Step, ...]
    is_repeated: bool


def followable(
    steps: Sequence[Step], may_start: Callable[[int], bool], shown: Iterable[int] = ()
) -> Iterator[Together]:
    """Yield the steps that may be followed; where a step may not, those inside it. They start several planned loops, or
    one several times, and `may_start` allows each. `shown` are the lines of serial loops with progress bars: these may
    not be followed."""
    yield from _found(steps, may_start, frozenset(shown), is_repeated=False)


def _found(
    steps: Sequence[Step], may_start: Callable[[int], bool], shown: frozenset[int], *, is_repeated: bool
) -> Iterator[Together]:
    for may_be, group in groupby(steps, lambda step: _may_be(step, may_start, shown, is_inside=False)):
        together = tuple(group)
        if may_be:
            trimmed = _trimmed(together)
            if _starts(trimmed) > 1:
                yield Together(trimmed, is_repeated)
            continue
        for step in together:
            for block in blocks_of(step):
                yield from _found(block, may_start, shown, is_repeated=is_repeated or isinstance(step, Repeat))


def _may_be(step: Step, may_start: Callable[[int], bool], shown: frozenset[int], *, is_inside: bool) -> bool:
    match step:
        case RunLoop(number):
            return may_start(number)
        case Scalars(body):
            return all(map(_is_known, body)) and (is_inside or not any(map(_leaves, body)))
        case Repeat(loop, inner):
            head = step.space if isinstance(loop, For) else loop.test
            lines = {one.span.line for one in every(For, loop)}
            is_plain = head is not None and _is_known(head) and lines.isdisjoint(shown)
            return is_plain and all(_may_be(one, may_start, shown, is_inside=True) for one in inner)
        case Branch(statement, sides):
            inner = tuple(one for side in sides for one in side)
            return _is_known(statement.test) and all(
                _may_be(one, may_start, shown, is_inside=is_inside) for one in inner
            )


def _is_known(node: Node) -> bool:
    """Whether there are instructions for all that stands in a statement, or an expression."""
    return all(_is_known_alone(part) for part in walk(node))


def _is_known_alone(part: Node) -> bool:
    match part:
        case Call(function, _, _, keywords):
            return function in CALLS and not keywords
        case Binary(op):
            return op in OPERATORS
        case Compare(ops):
            return COMPARISONS.issuperset(ops)
        case Const(value):
            return isinstance(value, int | float)
        case Assign(Tuple(), value):
            return isinstance(value, Tuple)
        case _:
            return isinstance(part, FOLLOWED)


def _leaves(node: Node) -> bool:
    """Whether a statement leaves, or goes on with, a loop around it."""
    if isinstance(node, Break | Continue):
        return True
    return isinstance(node, If) and any(map(_leaves, (*node.body, *node.orelse)))


def _trimmed(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps from the first to the last one with planned loops."""
    starting = [k for k, step in enumerate(steps) if not isinstance(step, Scalars)]
    return tuple(steps[starting[0] : starting[-1] + 1]) if starting else ()


def _starts(steps: Iterable[Step]) -> int:
    """How often planned loops are started, as far as steps say: those in serial loops more than once."""
    found = 0
    for step in steps:
        inner = sum(_starts(block) for block in blocks_of(step))
        found += 1 if isinstance(step, RunLoop) else 2 * inner if isinstance(step, Repeat) else inner
    return found


def started_by(steps: Iterable[Step]) -> Iterator[int]:
    """The planned loops in steps."""
    for step in steps:
        if isinstance(step, RunLoop):
            yield step.number
        for block in blocks_of(step):
            yield from started_by(block)
