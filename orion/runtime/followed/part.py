"""One worker's part of followed steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.errors import of_user
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Break,
    Const,
    Continue,
    Count,
    Dim,
    Expr,
    For,
    If,
    Pass,
    Range,
    Stmt,
    Update,
    While,
)  # fmt: skip
from orion.ir.python_names import PythonNames
from orion.ir.rewriting import rewrite
from orion.kernel.instructions import AT, LEFT, MEETINGS, ROUNDS, STARTS
from orion.runtime.arguments import read_only
from orion.runtime.blas import limited_rounds
from orion.runtime.failures import by_all, past_64_bits
from orion.runtime.followed.expressions import FLOATS, KINDS, MIXED, Number, Type, Whole
from orion.runtime.followed.steps import Followed, followed_steps
from orion.runtime.followed.writer import Instructions, instructions_of
from orion.runtime.parts import LoopPart
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.schedule.schedule import Ints

Follow = Any
"""What follows instructions (`orion.kernel.build.follow`)."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Instructions as arrays."""

    written: Instructions
    rows: Ints
    first: Ints


@dataclass(eq=False)
class FollowedSteps:
    """Followed steps of a loaded program, with the instructions for values of the classes that there were so far. They
    do not keep the program: what is loaded of it goes with it."""

    followed: Followed
    loops: tuple[PreparedLoop, ...]
    function: Function
    follow: Follow
    _variants: dict[tuple[Type, ...], Variant | None] = field(default_factory=dict)

    def variant_for(self, values: Sequence[Any]) -> Variant | None:
        """The instructions for these values, the extents of arrays last; None where they cannot be followed."""
        kinds = tuple(map(type, values[: len(self.followed.reads)]))
        if kinds not in self._variants:
            found = instructions_of(self.followed, self.loops, kinds)
            self._variants[kinds] = None if found is None else _as_arrays(found)
        return self._variants[kinds]


def _as_arrays(found: Instructions) -> Variant:
    rows = np.array(found.rows, np.int64).reshape(-1, 4)
    return Variant(found, read_only(rows), np.array(found.first, np.int64))


@dataclass(slots=True, eq=False)
class FollowedPart:
    """One worker's part of followed steps: what follows their instructions, and the parts of the loops that they start.
    `table` is made when it is first needed. `at_once` is how many loops were started last without looking whether
    other workers are asked for."""

    steps: FollowedSteps
    parts: tuple[LoopPart, ...]
    follow: Callable[..., None]
    table: Any = None
    at_once: int = 1

    def go_on(self, following: Following, meeting: Sequence[Any], of_worker: tuple[int, int], starts: int) -> int:
        """Follow the steps until they are done, or so many loops were started, given the arguments of the walk of the
        barrier, and of the worker its number and how often it has met the others. How often it has met them then."""
        number, meetings = of_worker
        state = np.array([0, meetings, 0, number, following.at, starts, *(part.round for part in self.parts)], np.int64)
        if self.table is None:
            self.table = self.steps.follow.table([*(part.row() for part in self.parts), (0, False, *meeting)])
        self.follow(following.variant.rows, following.registers, self.table, state)
        following.at, following.unspent = state.item(AT), state.item(STARTS)
        for part, round in zip(self.parts, state[ROUNDS:].tolist(), strict=True):
            part.round = round
        if state.item(LEFT):
            raise by_all(following.error(state.item(LEFT) - 1, self.steps))
        return state.item(MEETINGS)


class Following:
    """Steps that are being followed: the registers, and the row `at` which to go on. `values` are those that they were
    given; `unspent` is how many more loops they might have started last."""

    def __init__(self, variant: Variant, values: Sequence[Any]) -> None:
        """OverflowError where a register cannot hold a value."""
        self.variant, self.values = variant, values
        self.registers = variant.first.copy()
        self.at = self.unspent = 0
        floats = self._floats
        for register, value in zip(variant.written.given, values, strict=True):
            (floats if isinstance(value, float) else self.registers)[register] = value

    @property
    def _floats(self) -> NDArray[np.float64]:
        return self.registers.view(np.float64)

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.variant.rows)

    def copy(self) -> Following:
        """The same, for another worker."""
        found = Following(self.variant, self.values)
        found.registers[:], found.at = self.registers, self.at
        return found

    def found(self) -> tuple[Any, ...]:
        """The values of the variables that the steps change."""
        return tuple([self._value(*one) for one in self.variant.written.found])

    def _value(self, register: int, kind: Type, tag: int) -> Any:
        if kind is Number:
            return KINDS[self.registers.item(tag)](self._floats.item(register))
        if kind is Whole:
            return KINDS[self.registers.item(tag)](self.registers.item(register))
        if kind in FLOATS:
            return kind(self._floats.item(register))
        return kind(self.registers.item(register))

    def error(self, row: int, steps: FollowedSteps) -> Exception:
        """What Python says where a row was left: it works out the statement again."""
        written, followed, function = self.variant.written, steps.followed, steps.function
        place = written.places[row]
        known = {
            name: self._value(written.homes[name], kind, written.tags.get(name, 0))
            for name, kind in place.kinds.items()
            if kind is not MIXED and name in written.homes
        }
        extents = dict(zip(followed.extents, self.values[len(followed.reads) :], strict=True))
        names = PythonNames.of(function, known)
        text = _text(rewrite(place.node, lambda part: _known(part, extents)), names)
        try:
            exec(text, names.space(), {names.variable(name): value for name, value in known.items()})
        except Exception as error:
            return of_user(error, place.node.span, function.source)
        what = "a power here is complex, or has" if "**" in text else "an integer here has"
        why = "what stands between loops is compiled: integers have 64 bits, 53 where they meet floats or are divided"
        return past_64_bits(f"{what} more than 64 bits", place.node.span, function.source, why)


def _text(node: Stmt | Expr, names: PythonNames) -> str:
    """What Python is to work out of a statement, or of a test."""
    match node:
        case For(Range(_, start, stop, step)):
            return f"range({', '.join(map(names.expr, (start, stop, step)))})"
        case Assign() | Update():
            return "\n".join(text for text, _ in names.statement(node, ""))
        case If(test) | While(test):
            return names.expr(test)
        case Pass() | Break() | Continue():
            return "pass"
        case _:
            return names.expr(node)  # type: ignore[arg-type]


def _known(part: Expr, extents: dict[Expr, int]) -> Expr:
    return Const(extents[part], part.span) if isinstance(part, Dim | Count) and part in extents else part


# ---------------------------------------------------------------- of a loaded program


def followed_of(prepared: PreparedProgram, shown: Collection[int] = ()) -> tuple[FollowedSteps, ...]:
    """The followed steps of a program; `shown` are the lines of loops with progress bars."""
    found = followed_steps(prepared.program, prepared.loops, shown)
    if not found:
        return ()
    from orion.kernel.build.follow import Follow

    loops, function = prepared.loops, prepared.program.function
    kernels = ([loops[number].kernel for number in one.loops] for one in found)
    return tuple(FollowedSteps(one, loops, function, Follow(own)) for one, own in zip(found, kernels, strict=True))


def followed_parts(steps: Iterable[FollowedSteps], parts: Sequence[LoopPart]) -> tuple[FollowedPart, ...]:
    """A worker's parts of followed steps, given its parts of all loops."""
    found = []
    for one in steps:
        started = tuple(parts[number] for number in one.followed.loops)
        found.append(FollowedPart(one, started, limited_rounds(one.follow, [part.walk for part in started])))
    return tuple(found)
