"""Which steps of a function are followed as instructions, and where their workers meet.

The skeleton is Python, which takes some 4 to 20 µs to start a planned loop: much where a loop does little (a level of a
graph search, a column of a factorization, a step over a small grid). So where two planned loops come one after the
other, or one again and again, and what stands between them is scalars, the walker runs all of it: the same walks in the
same order. Where workers meet is settled before, so that it is the same in every round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from orion.dataclass import dataclass, field
from orion.ir.assigned import assigned_names
from orion.ir.exposed import exposed_reads, exposure
from orion.ir.followable import Together, followable, started_by
from orion.ir.nodes import (
    Break,
    Continue,
    Count,
    Dim,
    Expr,
    holds,
    names_in,
    walk,
)
from orion.ir.program import Branch, Program, Repeat, RunLoop, Scalars, Step, blocks_of, statements_between
from orion.runtime.prepared import OUTPUTS, PreparedLoop, conflict
from orion.runtime.walk import all_steps

SHORT_NS = 1_000_000
"""Steps are followed where every planned loop in them is predicted to take less than this on one worker."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Steps that come one after the other, and are followed.

    `loops` are those that they start, in the order of the walker's table, `meets` those before which the workers meet;
    `open` are the loops that may have been run since the last meeting at the end. `reads` are the scalars whose values
    they may need, `extents` those of arrays, `changed` the scalars with other values afterwards that are needed then.
    """

    steps: tuple[Step, ...]
    loops: tuple[int, ...]
    reads: tuple[str, ...]
    extents: tuple[Expr, ...]
    changed: tuple[str, ...]
    meets: frozenset[int]
    open: frozenset[int]


def followed_steps(
    program: Program, loops: Sequence[PreparedLoop], shown: Collection[int] = ()
) -> tuple[Followed, ...]:
    """The steps of a program that may be followed, those in others only where these are not. `shown` are the lines of
    loops with progress bars, which are not."""

    def may_start(number: int) -> bool:
        return is_short(loops[number]) and program.nests[number].span.line not in shown

    groups = followable(program.steps, may_start, shown)
    found = (_followed(program, loops, one) for one in groups)
    return tuple(one for one in found if one is not None)


def _followed(program: Program, loops: Sequence[PreparedLoop], found: Together) -> Followed | None:
    """The steps with what is known of them; None where they may need scalars that have no values yet."""
    steps, function = found.steps, program.function
    reads = exposed_by(steps, loops)
    unsure = exposed_reads(function.body, (*function.params, *dict(function.constants)))
    kept = {name for loop in loops for name in (*loop.inputs, *loop.outputs)}
    if (reads & unsure.keys()) - kept:
        return None
    barriers = Barriers(loops)
    still_open = barriers.after(steps, frozenset())
    extents = (part for one in statements_between(steps) for part in walk(one) if isinstance(part, Dim | Count))
    needed = _needed_by(program.steps, {id(step) for step in steps}, loops) | (reads if found.is_repeated else set())
    return Followed(
        steps,
        tuple(sorted(set(started_by(steps)))),
        tuple(sorted(reads)),
        tuple(dict.fromkeys(extents)),
        tuple(sorted(changed_by(steps, loops) & needed)),
        frozenset(barriers.before),
        still_open,
    )


def _needed_by(steps: Iterable[Step], followed: Collection[int], loops: Sequence[PreparedLoop]) -> set[str]:
    """The scalars that other steps than the `followed`, known by identity, read before they give them a value."""
    found: set[str] = set()
    for step in steps:
        if id(step) in followed:
            continue
        if any(id(inner) in followed for inner in all_steps([step])):
            found |= mentioned_by(step, loops)
            for block in blocks_of(step):
                found |= _needed_by(block, followed, loops)
        else:
            found |= exposed_by([step], loops)
    return found


def is_short(loop: PreparedLoop) -> bool:
    """Whether a loop is one over ranges whose predicted time is short, or unknown, and whose results the walker can
    put together."""
    if loop.plan.nest.late or loop.sparse is not None or loop.plan.copies or loop.plan.nest.function.accumulated:
        return False
    if any(argument.kind == "ended" for argument in loop.kernel.arguments):
        return False
    return loop.predicted_ns is None or loop.predicted_ns < SHORT_NS


# ---------------------------------------------------------------- names


def mentioned_by(step: Step, loops: Sequence[PreparedLoop]) -> set[str]:
    """The scalars that a step mentions, without what is in it."""
    match step:
        case RunLoop(number):
            return {*loops[number].inputs, *loops[number].outputs}
        case Scalars(body):
            return names_in(*body)
        case Repeat(loop, _):
            space = step.space
            return names_in(loop.test) if space is None else names_in(space)  # type: ignore[union-attr]
        case Branch(statement, _):
            return names_in(statement.test)


def exposed_by(steps: Iterable[Step], loops: Sequence[PreparedLoop]) -> set[str]:
    """The scalars that steps may read before they give them a value."""
    return _exposed(steps, loops)[0]


def _exposed(steps: Iterable[Step], loops: Sequence[PreparedLoop]) -> tuple[set[str], set[str]]:
    """These, and those that have a value after the steps for sure."""
    reads: set[str] = set()
    defined: set[str] = set()
    for step in steps:
        match step:
            case RunLoop(number):
                own, sure = set(loops[number].inputs), set(loops[number].outputs)
            case Scalars(body):
                found = exposure(body)
                own, sure = set(found.reads), set(found.defined)
            case Repeat(_, inner):
                own = mentioned_by(step, loops) | _exposed(inner, loops)[0]
                own -= set() if step.space is None else {step.space.var} - names_in(step.space)
                sure = set()
            case Branch(_, (first, second)):
                then, orelse = _exposed(first, loops), _exposed(second, loops)
                own, sure = mentioned_by(step, loops) | then[0] | orelse[0], then[1] & orelse[1]
        reads |= own - defined
        defined |= sure
    return reads, defined


def changed_by(steps: Iterable[Step], loops: Sequence[PreparedLoop]) -> set[str]:
    """The scalars that steps give other values."""
    found: set[str] = set()
    for step in steps:
        if isinstance(step, RunLoop):
            found |= set(loops[step.number].outputs)
        elif isinstance(step, Scalars):
            found |= set(assigned_names(step.body))
        elif isinstance(step, Repeat) and step.space is not None:
            found.add(step.space.var)
        for block in blocks_of(step):
            found |= changed_by(block, loops)
    return found


# ---------------------------------------------------------------- where the workers meet


@dataclass
class Barriers:
    """Before which loops the workers meet: wherever a loop may have been run since the last meeting that this one must
    not overlap with. `before` has their numbers."""

    loops: Sequence[PreparedLoop]
    before: set[int] = field(default_factory=set)

    def after(self, steps: Iterable[Step], pending: frozenset[int]) -> frozenset[int]:
        """The loops that may be under way after `steps`, given those before them. After a loop with results all have
        met."""
        for step in steps:
            if isinstance(step, RunLoop):
                if step.number in self.before or self._must_meet(step.number, pending):
                    self.before.add(step.number)
                    pending = frozenset()
                has_results = any(a.kind in OUTPUTS for a in self.loops[step.number].kernel.arguments)
                pending = frozenset() if has_results else pending | {step.number}
            elif isinstance(step, Repeat):
                entered: frozenset[int] | None = None
                while entered != pending:  # grows with each round, and so ends
                    entered = pending
                    pending |= self.after(step.steps, pending)
                    if holds((Break, Continue), *statements_between(step.steps)):
                        pending |= frozenset(started_by(step.steps))  # it may be left after any of them
            elif isinstance(step, Branch):
                pending = frozenset().union(*(self.after(side, pending) for side in step.sides))
        return pending

    def _must_meet(self, number: int, pending: frozenset[int]) -> bool:
        own = self.loops[number]
        if number in pending and not own.plan.rounds_overlap:
            return True
        return any(other != number and conflict(self.loops[other], own) for other in pending)
