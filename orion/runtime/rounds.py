"""Serial loops around planned ones as compiled functions, where their rounds are short.

The skeleton is Python, which takes some 10 µs to start a planned loop: much where a round of a serial loop does little
(a time step over a small grid, a column of a factorization). Such a serial loop is compiled as a whole: the same walks
in the same order. Where workers meet is settled before it runs, so that it is the same in every round. The variables of
such loops have no values afterwards: the loop language sees to that where ranges are gone through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from orion.cost.grid import predicted_ns
from orion.ir.nodes import INTEGER, Binary, Call, Const, Count, Dim, Expr, For, Unary, Var, every
from orion.ir.printer import print_expr
from orion.ir.program import Program, Repeat, RunLoop, Step, blocks_of
from orion.ir.spans import NOWHERE
from orion.runtime.prepared import OUTPUTS, PreparedLoop, conflict

SHORT_NS = 1_000_000
"""Rounds are compiled where every planned loop in them is predicted to take less than this on one worker."""

WALK = ("tiles", "extents", "wait_offsets", "waits", "lags", "done", "control")
INDENT = "    "


@dataclass(frozen=True, slots=True)
class Started:
    """A planned loop in a compiled serial loop. `passed` are the positions of the arguments of its kernel that are the
    same in every round."""

    number: int
    passed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rounds:
    """A serial loop as a function that each worker calls once:

        rounds(first, last, start, step, state, <meeting>, <loops>, <values>)

    It runs rounds `first` … `last` - 1; in round k the variable is start + k * step. `state`, int64, has the place in
    `loops` of the loop that is running, how often the workers have met, and the round of each of `loops`. For the
    meeting, and then for each loop, there are the arguments of its walk without the round (`WALK`, then the kernel's
    that are passed). `values` are expressions of the skeleton with their dtypes. `open` are the loops that may have
    been run since the last meeting when the function returns. `lines` is the function's text; it calls `meet` and
    `walk0`, ….
    """

    repeat: Repeat
    loops: tuple[Started, ...]
    values: tuple[tuple[Expr, str], ...]
    open: frozenset[int]
    lines: tuple[str, ...]


class NotCompiledError(Exception):
    """A serial loop has something in it that only the skeleton can do."""


def compiled_rounds(program: Program, loops: Sequence[PreparedLoop], shown: Collection[int] = ()) -> tuple[Rounds, ...]:
    """The outermost serial loops of a program that are compiled. `shown` are the lines of those with progress bars,
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
    text = _Text(loops, variables, barriers.before)
    lines = text.function(repeat, inside)
    return Rounds(repeat, tuple(text.started), tuple(text.values), still_open, tuple(lines))


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


# ---------------------------------------------------------------- the function's text


@dataclass
class _Text:
    """Writes the function. `variables` are those of the serial loops; they are prefixed, all other names are new."""

    loops: Sequence[PreparedLoop]
    variables: set[str]
    meets: set[int]
    started: list[Started] = field(default_factory=list)
    values: list[tuple[Expr, str]] = field(default_factory=list)

    def function(self, repeat: Repeat, inside: Sequence[int]) -> list[str]:
        """The lines of the function."""
        space = repeat.space
        assert space is not None
        body = [f"{INDENT}for trip in range(first, last):", f"{INDENT * 2}{_local(space.var)} = start + trip * step"]
        self.started = [Started(number, tuple(self._passed(number))) for number in inside]
        body += self._block(repeat.steps, INDENT * 2)
        parameters = ["first", "last", "start", "step", "state", *(f"{name}_meeting" for name in WALK)]
        for place, started in enumerate(self.started):
            parameters += [f"{name}{place}" for name in WALK]
            parameters += [f"argument{place}_{position}" for position in started.passed]
        parameters += [f"value{k}" for k in range(len(self.values))]
        return [f"def rounds({', '.join(parameters)}):", *body]

    def _passed(self, number: int) -> Iterator[int]:
        for position, argument in enumerate(self.loops[number].kernel.arguments):
            if argument.kind != "scalar":
                yield position

    def _block(self, steps: Iterable[Step], indent: str) -> list[str]:
        lines: list[str] = []
        for step in steps:
            if isinstance(step, RunLoop):
                lines += [indent + line for line in self._start(step.number)]
            else:
                assert isinstance(step, Repeat)
                space = step.space
                assert space is not None
                bounds = ", ".join(self._bound(expr) for expr in (space.start, space.stop, space.step))
                lines.append(f"{indent}for {_local(space.var)} in range({bounds}):")
                lines += self._block(step.steps, indent + INDENT)
        return lines or [f"{indent}pass"]

    def _start(self, number: int) -> list[str]:
        """The lines that run a loop, and meet before it where that is needed."""
        place = next(k for k, started in enumerate(self.started) if started.number == number)
        arguments = [f"argument{place}_{position}" for position in range(len(self.loops[number].kernel.arguments))]
        for position, argument in enumerate(self.loops[number].kernel.arguments):
            if argument.kind == "scalar":
                arguments[position] = self._scalar(argument.name, argument.dtype)
        lines = _walk("meet", "_meeting", 1, []) if number in self.meets else []
        return [*lines, f"state[0] = {place}", *_walk(f"walk{place}", str(place), place + 2, arguments)]

    def _scalar(self, name: str, dtype: str) -> str:
        return _local(name) if name in self.variables else self._value(Var(name, NOWHERE), dtype)

    def _value(self, expr: Expr, dtype: str) -> str:
        known = [(print_expr(value), kind) for value, kind in self.values]
        if (print_expr(expr), dtype) in known:
            return f"value{known.index((print_expr(expr), dtype))}"
        self.values.append((expr, dtype))
        return f"value{len(known)}"

    def _bound(self, expr: Expr) -> str:
        """A bound of an inner serial loop: integers and what Python and compiled code do alike with them."""
        match expr:
            case Const(int(value)):
                return str(value)
            case Var(name):
                return self._scalar(name, "int64")
            case Dim() | Count():
                return self._value(expr, "int64")
            case Unary("+", operand):
                return self._bound(operand)
            case Call(function, (Var(name),)) if function == INTEGER and name not in self.variables:
                return self._value(expr, "int64")
            case Unary("-", operand):
                return f"(-{self._bound(operand)})"
            case Binary("+" | "-" | "*" as op, left, right):
                return f"({self._bound(left)} {op} {self._bound(right)})"
            case Binary("//" | "%" as op, left, Const(int(divisor))) if divisor > 0:
                return f"({self._bound(left)} {op} {divisor})"
            case Call("min" | "max" as name, parts):
                return f"{name}({', '.join(self._bound(part) for part in parts)})"
            case _:
                raise NotCompiledError


def _local(name: str) -> str:
    return f"variable_{name}"


def _walk(function: str, suffix: str, place: int, arguments: Sequence[str]) -> list[str]:
    """The lines that call a walk, count its rounds at `state[place]`, and return where it was left."""
    first, *others = (f"{name}{suffix}" for name in WALK)
    return [
        f"{function}({', '.join([first, f'state[{place}]', *others, *arguments])})",
        f"if is_left(control{suffix}) or is_alarmed(control{suffix}) and is_to_leave(control{suffix}):",
        f"{INDENT}end_raising(has_raised(control{suffix}))",
        f"{INDENT}return",
        f"state[{place}] += 1",
    ]
