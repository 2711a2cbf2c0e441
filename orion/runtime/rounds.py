"""Followed serial loops: those around planned ones that are instructions, as their rounds are short.

The skeleton is Python, which takes some 10 µs to start a planned loop: much where a round of a serial loop does little
(a time step over a small grid, a column of a factorization). Such a serial loop is instructions that the walker
follows: the same walks in the same order. Where workers meet is settled before it runs, so that it is the same in every
round. The variables of such loops have no values afterwards: the loop language sees to that where ranges are gone
through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from orion.cost.grid import predicted_ns
from orion.ir.nodes import INTEGER, Binary, Call, Const, Count, Dim, Expr, For, Unary, Var, every
from orion.ir.printer import print_expr
from orion.ir.program import Program, Repeat, RunLoop, Step, blocks_of
from orion.ir.spans import NOWHERE
from orion.kernel.calling import first_slots
from orion.kernel.instructions import (
    ADD,
    COPY,
    DIVIDE,
    JUMP,
    LEAST,
    MEET,
    MOST,
    MULTIPLY,
    PUT,
    REMAINDER,
    RUN,
    SET,
    SUBTRACT,
    TRIP,
    Row,
)  # fmt: skip
from orion.runtime.prepared import OUTPUTS, PreparedLoop, conflict

SHORT_NS = 1_000_000
"""Rounds are instructions where every planned loop in them is predicted to take less than this on one worker."""

INT64 = "int64"


@dataclass(frozen=True, slots=True)
class Rounds:
    """A serial loop as instructions that each worker follows (`orion.kernel.instructions`).

    `loops` are those that it starts, in the order of the walker's table. Registers 0, 1 and 2 have the start, the stop
    and the step of its range. `values` are expressions of the skeleton with their dtypes, which are the same in all
    rounds: `given` has the register of each that is an integer of the instructions, `fixed` the places of those that
    are arguments of kernels, as (loop, position, value). `open` are the loops that may have been run since the last
    meeting when the instructions are done.
    """

    repeat: Repeat
    loops: tuple[int, ...]
    values: tuple[tuple[Expr, str], ...]
    given: tuple[tuple[int, int], ...]
    fixed: tuple[tuple[int, int, int], ...]
    open: frozenset[int]
    rows: tuple[Row, ...]
    registers: int


class NotCompiledError(Exception):
    """A serial loop has something in it that only the skeleton can do."""


def compiled_rounds(program: Program, loops: Sequence[PreparedLoop], shown: Collection[int] = ()) -> tuple[Rounds, ...]:
    """The outermost serial loops of a program that are instructions. `shown` are the lines of those with progress bars,
    which are not."""
    return tuple(_found(program.steps, loops, shown))


def _found(steps: Iterable[Step], loops: Sequence[PreparedLoop], shown: Collection[int]) -> Iterator[Rounds]:
    for step in steps:
        rounds = None if isinstance(step, Repeat) and _is_shown(step, shown) else _compiled(step, loops)
        if rounds is not None:
            yield rounds
            continue
        for inner in blocks_of(step):
            yield from _found(inner, loops, shown)


def _is_shown(repeat: Repeat, shown: Collection[int]) -> bool:
    return not {loop.span.line for loop in every(For, repeat.loop)}.isdisjoint(shown)


def _compiled(step: Step, loops: Sequence[PreparedLoop]) -> Rounds | None:
    try:
        return _rounds(step, loops) if isinstance(step, Repeat) else None
    except NotCompiledError:
        return None


def _rounds(repeat: Repeat, loops: Sequence[PreparedLoop]) -> Rounds:
    inside = sorted(_numbers([repeat]))
    variables = set(_variables([repeat]))
    if not all(_is_short(loops[number]) for number in inside):
        raise NotCompiledError
    barriers = Barriers(loops)
    still_open = barriers.after([repeat], frozenset())
    writer = _Writer(loops, inside, variables, barriers.before)
    writer.all(repeat)
    given = tuple((register, value) for value, register in writer.given.items())
    values, rows = tuple(writer.values), tuple(writer.rows)
    fixed = tuple(sorted(writer.fixed))
    return Rounds(repeat, tuple(inside), values, given, fixed, still_open, rows, writer.registers)


def _is_short(loop: PreparedLoop) -> bool:
    """Whether a loop is one over ranges without results or copies whose predicted time is short, or unknown."""
    if (
        loop.plan.nest.late
        or loop.sparse is not None
        or any(a.kind in (*OUTPUTS, "copies") for a in loop.kernel.arguments)
    ):
        return False
    iterations = loop.plan.iterations
    return iterations is None or predicted_ns(loop.plan.nest, iterations, {}, {}) < SHORT_NS


def _numbers(steps: Iterable[Step]) -> Iterator[int]:
    """The planned loops in steps that are nothing but planned loops and serial loops over ranges."""
    for step in steps:
        if isinstance(step, RunLoop):
            yield step.number
        elif isinstance(step, Repeat) and step.space is not None:
            yield from _numbers(step.steps)
        else:
            raise NotCompiledError


def _variables(steps: Iterable[Step]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Repeat) and step.space is not None:
            yield step.space.var
            yield from _variables(step.steps)


# ---------------------------------------------------------------- where the workers meet


@dataclass
class Barriers:
    """Before which loops the workers meet: wherever a loop may have been run since the last meeting that this one must
    not overlap with. `before` has their numbers."""

    loops: Sequence[PreparedLoop]
    before: set[int] = field(default_factory=set)

    def after(self, steps: Iterable[Step], pending: frozenset[int]) -> frozenset[int]:
        """The loops that may be under way after `steps`, given those before them."""
        for step in steps:
            if isinstance(step, RunLoop):
                if step.number in self.before or self._must_meet(step.number, pending):
                    self.before.add(step.number)
                    pending = frozenset()
                pending |= {step.number}
            elif isinstance(step, Repeat):
                entered: frozenset[int] | None = None
                while entered != pending:  # grows with each round, and so ends
                    entered = pending
                    pending |= self.after(step.steps, pending)
        return pending

    def _must_meet(self, number: int, pending: frozenset[int]) -> bool:
        own = self.loops[number]
        if number in pending and not own.plan.rounds_overlap:
            return True
        return any(other != number and conflict(self.loops[other], own) for other in pending)


# ---------------------------------------------------------------- the instructions

OPERATIONS = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "//": DIVIDE, "%": REMAINDER, "min": LEAST, "max": MOST}


@dataclass
class _Writer:
    """Writes the instructions. `variables` are those of the serial loops, `known` their registers."""

    loops: Sequence[PreparedLoop]
    inside: Sequence[int]
    variables: set[str]
    meets: set[int]
    rows: list[Row] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    values: list[tuple[Expr, str]] = field(default_factory=list)
    given: dict[int, int] = field(default_factory=dict)
    fixed: set[tuple[int, int, int]] = field(default_factory=set)
    registers: int = 0

    def all(self, repeat: Repeat) -> None:
        """Write those of a whole serial loop, whose range is in the first registers."""
        self._range(repeat, self._new(3))

    def _new(self, count: int = 1) -> int:
        self.registers += count
        return self.registers - count

    def _add(self, operation: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        """The row of a new instruction."""
        self.rows.append((operation, a, b, c))
        return len(self.rows) - 1

    def _steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, RunLoop):
                self._start(step.number)
                continue
            assert isinstance(step, Repeat)
            space, first = step.space, self._new(3)
            assert space is not None
            for place, bound in enumerate((space.start, space.stop, space.step)):
                self._add(COPY, first + place, self._bound(bound))
            self._range(step, first)

    def _range(self, repeat: Repeat, first: int) -> None:
        """A serial loop over the range whose start, stop and step are in three registers."""
        space = repeat.space
        assert space is not None
        variable = self.known.setdefault(space.var, self.registers)
        self.registers = max(self.registers, variable + 1)
        test = self._add(TRIP)
        self._add(COPY, variable, first)
        self._steps(repeat.steps)
        self._add(ADD, first, first, first + 2)
        self._add(JUMP, test)
        self.rows[test] = TRIP, first, first + 1, len(self.rows)

    def _start(self, number: int) -> None:
        """Run a loop, and meet before it where that is needed."""
        place, kernel = self.inside.index(number), self.loops[number].kernel
        if number in self.meets:
            self._add(MEET)
        for position, (slot, argument) in enumerate(zip(first_slots(kernel), kernel.arguments, strict=True)):
            if argument.kind != "scalar":
                continue
            if argument.name not in self.variables:
                self.fixed.add((place, position, self._value(Var(argument.name, NOWHERE), argument.dtype)))
            elif argument.dtype == INT64:
                self._add(PUT, place, slot, self.known[argument.name])
            else:
                raise NotCompiledError
        self._add(RUN, place)

    def _value(self, expr: Expr, dtype: str) -> int:
        """The number of a value."""
        known = [(print_expr(value), kind) for value, kind in self.values]
        if (print_expr(expr), dtype) not in known:
            self.values.append((expr, dtype))
            return len(known)
        return known.index((print_expr(expr), dtype))

    def _integer(self, expr: Expr) -> int:
        """The register of an integer that is the same in all rounds."""
        value = self._value(expr, INT64)
        if value not in self.given:
            self.given[value] = self._new()
        return self.given[value]

    def _bound(self, expr: Expr) -> int:
        """The register of a bound of an inner serial loop: integers and what Python and the walker do alike with
        them."""
        match expr:
            case Const(int(value)):
                self._add(SET, register := self._new(), value)
                return register
            case Var(name):
                return self.known[name] if name in self.variables else self._integer(expr)
            case Dim() | Count():
                return self._integer(expr)
            case Unary("+", operand):
                return self._bound(operand)
            case Call(function, (Var(name),)) if function == INTEGER and name not in self.variables:
                return self._integer(expr)
            case Unary("-", operand):
                return self._of("-", self._bound(Const(0, expr.span)), self._bound(operand))
            case Binary("+" | "-" | "*" as op, left, right):
                return self._of(op, self._bound(left), self._bound(right))
            case Binary("//" | "%" as op, left, Const(int(divisor)) as right) if divisor > 0:
                return self._of(op, self._bound(left), self._bound(right))
            case Call("min" | "max" as name, parts):
                return reduce(lambda one, other: self._of(name, one, other), map(self._bound, parts))
            case _:
                raise NotCompiledError

    def _of(self, operation: str, left: int, right: int) -> int:
        self._add(OPERATIONS[operation], register := self._new(), left, right)
        return register
