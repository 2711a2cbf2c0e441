"""The instructions of followed steps: planned loops, what stands between them, and where workers meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from orion.dataclass import dataclass, field
from orion.ir.nodes import Pass
from orion.ir.program import Branch, Repeat, RunLoop, Scalars, Step
from orion.ir.spans import NOWHERE
from orion.kernel import instructions as do
from orion.kernel.calling import Argument, first_slots
from orion.kernel.instructions import COMPARISONS, Row
from orion.passes.extremes import AGAINST, NANS_WIN
from orion.runtime.choose import choices_among
from orion.runtime.combine import FUNCTIONS
from orion.runtime.followed.expressions import (
    FLOATS,
    INTEGERS,
    KINDS,
    MIXED,
    TRUTHS,
    WHOLES,
    NewTagsError,
    NotFollowedError,
    Number,
    Place,
    Type,
    Value,
    Whole,
)  # fmt: skip
from orion.runtime.followed.scalars import ScalarWriter
from orion.runtime.followed.steps import Followed
from orion.runtime.prepared import OUTPUTS, PreparedLoop
from orion.typing.dtypes import Kind

COMBINED = {
    "+": (do.SUM, do.FSUM), "*": (do.PRODUCT, do.FPRODUCT), "min": (do.LEAST_OF, do.FLEAST_OF),
    "max": (do.MOST_OF, do.FMOST_OF),
}  # fmt: skip
TRUE = {"and": do.ALL, "or": do.ANY}
OUTSIDE: dict[Kind, Type] = {
    Kind("int64", weak=True): int, Kind("float64", weak=True): float, Kind("bool", weak=True): bool,
    Kind("int64"): np.int64, Kind("float64"): np.float64, Kind("bool"): np.bool_,
}  # fmt: skip
"""The classes of scalars outside of loops, where registers hold them."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """The instructions of followed steps, for values of some classes. Registers begin as `first`. Those in `given` get
    the values. The variables that are handed out are `found`: their registers, classes and tags. Row k was written for
    `places[k]`. Variables have the registers `homes`, and for their classes `tags`."""

    rows: tuple[Row, ...]
    first: tuple[int, ...]
    given: tuple[int, ...]
    found: tuple[tuple[int, Type, int], ...]
    places: tuple[Place, ...]
    homes: dict[str, int]
    tags: dict[str, int]


def instructions_of(followed: Followed, loops: Sequence[PreparedLoop], kinds: Sequence[Type]) -> Instructions | None:
    """The instructions of steps, whose variables that are given have values of these classes; None where only Python
    can do something in them."""
    tagged: set[str] = set()
    while True:
        try:
            return _written(followed, loops, kinds, tagged)
        except NewTagsError:
            continue
        except NotFollowedError:
            return None


def _written(
    followed: Followed, loops: Sequence[PreparedLoop], kinds: Sequence[Type], tagged: set[str]
) -> Instructions:
    if not set(kinds) <= set(KINDS):
        raise NotFollowedError
    writer = StepWriter({}, tagged=tagged, loops=loops, followed=followed)
    writer.given = {expr: writer.new() for expr in followed.extents}
    given = (*map(writer.home, followed.reads), *writer.given.values())
    writer.at(Pass(NOWHERE))
    for name, kind in zip(followed.reads, kinds, strict=True):
        writer.put(name, Value(writer.home(name), kind))
    writer.steps(followed.steps)
    found = tuple(writer.found(name) for name in followed.changed)
    rows, first, places = tuple(writer.rows), tuple(writer.first), tuple(writer.places)
    return Instructions(rows, first, given, found, places, dict(writer.homes), dict(writer.tags))


@dataclass
class StepWriter(ScalarWriter):
    """Writes the instructions of steps."""

    loops: Sequence[PreparedLoop] = field(kw_only=True)
    followed: Followed = field(kw_only=True)

    def steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Scalars(body):
                    self.statements(body)
                case RunLoop(number):
                    self.run(number)
                case Branch(statement, (first, second)):
                    self.branch(statement.test, lambda one=first: self.steps(one), lambda one=second: self.steps(one))  # type: ignore[misc]
                case Repeat(loop, inner):
                    self.at(loop)
                    if step.space is not None:
                        self.trips(step.space, lambda: self.steps(inner))
                    else:
                        self.during(loop.test, lambda: self.steps(inner))  # type: ignore[union-attr]

    # ---------------------------------------------------------------- planned loops

    def run(self, number: int) -> None:
        """Run a planned loop, and meet before it where that is needed."""
        loop, place = self.loops[number], self.followed.loops.index(number)
        self.at(loop.plan.nest.loops[0])
        arguments = [*zip(first_slots(loop.kernel), loop.kernel.arguments, strict=True)]
        self.add(do.START)
        if number in self.followed.meets:
            self.add(do.MEET)
        for slot, argument in arguments:
            if argument.kind == "scalar":
                self.add(do.PUT, place, slot, self._passed(self.variable(argument.name), argument.dtype))
            elif argument.kind == "carried":
                begun = self._passed(self.variable(argument.name), argument.dtype)
                self.add(do.BEGIN_BYTE if argument.dtype == "bool" else do.BEGIN, begun, slot, place)
        self.add(do.RUN, place)
        outputs = [pair for pair in arguments if pair[1].kind in (*OUTPUTS, "place")]
        if outputs:
            self.add(do.MEET)
            self._results(loop, place, outputs)

    def _passed(self, value: Value, dtype: str) -> int:
        """A register with a value as a kernel takes it."""
        if dtype == "float64":
            return self.as_float(value)
        if dtype == "float32":
            return self.result(do.SINGLE, MIXED, self.as_float(value)).register
        allowed: Sequence[Type] = {"int64": INTEGERS, "bool": TRUTHS}.get(dtype, ())
        if value.kind not in allowed:
            raise NotFollowedError
        return value.register

    def _results(self, loop: PreparedLoop, place: int, outputs: Sequence[tuple[int, Argument]]) -> None:
        """Give the outputs of a loop their values."""
        if any(cuts[0] == cuts[-1] for cuts in loop.schedule.bounds):
            raise NotFollowedError  # it has no iterations
        found: list[tuple[str, Value, Type, int | None]] = []
        winners = self._winners(loop, place, outputs)
        for slot, argument in outputs:
            if argument.kind == "place":
                continue
            kind = OUTSIDE.get(argument.outside)
            if kind is None or argument.dtype != argument.outside.dtype:
                raise NotFollowedError
            start, name = self.variable(argument.name), argument.name
            if argument.kind == "carried":
                found.append((name, self._loaded(argument, slot, place), kind, None))
            elif argument.kind == "partial":
                value = self._combined(argument, start, slot, place)
                found.append((name, value, kind, self._is_kept(argument, value, start)))
            else:
                is_none = self.result(do.LESS, bool, winners[argument.position], self.constant(0).register).register
                found.append((name, self._picked(argument, start, slot, place, winners, is_none), kind, is_none))
        for name, value, kind, is_kept in found:
            self._found(name, value, kind, is_kept)

    def _found(self, name: str, value: Value, kind: Type, is_kept: int | None) -> None:
        """Give an output its value, which is that before the loop where register `is_kept` says so: then it has the
        class that it had, but that an integer is a float where the others are."""
        start = self.variable(name)
        alike = next((group for group in (WHOLES, FLOATS) if kind in group), ())
        if is_kept is None or start.kind is kind or (start.kind in (int, bool) and kind is float):
            self.put(name, Value(value.register, kind))
            return
        if start.kind in (int, bool) and kind is np.float64:
            start = Value(start.register, float)
        if start.kind not in alike:
            raise NotFollowedError
        tag = self.new()
        if alike is WHOLES:
            self.add(do.COPY, tag, self.tag(start))
        else:
            self.add(do.MOST, tag, self.tag(start), self.constant(KINDS.index(float)).register)
        kept = self.add(do.WHEN, is_kept, 1)
        self.add(do.COPY, tag, self.constant(KINDS.index(kind)).register)
        self.land([kept])
        self.put(name, Value(value.register, Whole if alike is WHOLES else Number, tag))

    def _is_kept(self, argument: Argument, value: Value, start: Value) -> int | None:
        """The register that says whether a reduction is what it was before, where it is then that very number."""
        if argument.op not in ("min", "max"):
            return None
        is_float = argument.dtype == "float64"
        begun = self.as_float(start) if is_float else start.register
        return self.result(do.FSAME if is_float else do.SAME, bool, value.register, begun).register

    def _combined(self, argument: Argument, start: Value, slot: int, place: int) -> Value:
        """A reduction: what it was, and the results of all tiles, from the first to the last."""
        result = self.new()
        if argument.op in TRUE:
            if {start.kind, OUTSIDE[argument.outside]} != {bool} or argument.dtype != "bool":
                raise NotFollowedError  # where it is kept it is Python's, else NumPy's
            self.add(do.COPY, result, start.register)
            self.add(TRUE[argument.op], result, slot, place)
            return Value(result, bool)
        if argument.op not in FUNCTIONS or argument.dtype == "bool":
            raise NotFollowedError
        is_float = argument.dtype == "float64"
        self.add(do.COPY, result, self._passed(start, argument.dtype))
        self.add(COMBINED[argument.op][is_float], result, slot, place)
        return Value(result, float if is_float else int)

    def _loaded(self, argument: Argument, slot: int, place: int) -> Value:
        operation = do.LOAD_BYTE if argument.dtype == "bool" else do.LOAD
        return self.result(operation, MIXED, slot, place)

    def _winners(self, loop: PreparedLoop, place: int, outputs: Sequence[tuple[int, Argument]]) -> dict[int, int]:
        """The registers of the numbers of the tiles that choices are taken from, by the choices' numbers."""
        found = {}
        for choice in choices_among([argument for _, argument in outputs]):
            slot, best = outputs[choice.scalars[0]]
            places = [outputs[k][0] for k in choice.places]
            is_in_order = loop.plan.ordered and len(loop.plan.nest.dims) == 1
            if choice.anew is not None or not (is_in_order or loop.schedule.tiles == 1):
                raise NotFollowedError
            result = self.new(3)
            if choice.op == "last":
                self.add(do.LAST, result, places[0], place)
            else:
                by = choice.op.removeprefix("!").removeprefix(NANS_WIN)
                if by not in COMPARISONS or best.dtype not in ("int64", "float64"):
                    raise NotFollowedError
                code = COMPARISONS.index(by)
                code += do.AGAINST * choice.op.startswith(AGAINST) + do.NANS_WIN * choice.op.startswith(NANS_WIN)
                self.first[result + 1], self.first[result + 2] = places[0], code
                self.add(do.CHOOSE if best.dtype == "int64" else do.FCHOOSE, result, slot, place)
            found[best.position] = result
        return found

    def _picked(
        self, argument: Argument, start: Value, slot: int, place: int, winners: dict[int, int], is_none: int
    ) -> Value:
        """A chosen scalar: that of the tile it is taken from, or what it was."""
        result = self.new()
        self.add(do.COPY, result, self._passed(start, argument.dtype))
        skip = self.add(do.WHEN, is_none, 1)
        self.add(do.COPY, result, winners[argument.position])
        self.add(do.PICK_BYTE if argument.dtype == "bool" else do.PICK, result, slot, place)
        self.land([skip])
        return Value(result, MIXED)

    def found(self, name: str) -> tuple[int, Type, int]:
        """Where a variable is handed out from, its class, and the register of that where it depends."""
        kind = self.kinds.get(name, MIXED)
        if kind is MIXED:
            raise NotFollowedError
        return self.home(name), kind, self.tags.get(name, 0)
