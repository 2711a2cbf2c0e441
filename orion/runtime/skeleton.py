"""The skeleton of a program: the Python function that every worker runs from top to bottom.

It is the user's function with each planned loop replaced by a call of the worker's part of it. The statements
between loops work on scalars only, and every worker runs them on its own copies. For the second loop of
`orion.ir.program`:

    def rmse(worker, ratings, W, H):
        total = 0.0
        (total,) = worker.loop(0, total)
        return np.sqrt(total / len(ratings))

An error that such a statement raises is told with the line of the user's that it comes from.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orion.arrays.accumulator import Returned
from orion.dataclass import dataclass, replace
from orion.errors import of_user
from orion.ir.exposed import exposed_reads
from orion.ir.nodes import Elements, Range, Stmt, names_in
from orion.ir.program import Branch, Repeat, RunLoop, Scalars, Step, statements_between
from orion.ir.python_names import PythonNames
from orion.runtime.bars import Bars
from orion.runtime.failures import by_all
from orion.runtime.followed.steps import Followed
from orion.runtime.prepared import PreparedProgram
from orion.runtime.worker import AbortedError, FinishedError
from orion.source import SourceText, Span

Skeleton = Callable[..., Any]
Line = tuple[str, tuple[Span, SourceText] | None]
"""A line of the skeleton, and the place in the user's source that it comes from."""


def make_skeleton(prepared: PreparedProgram, followed: Sequence[Followed] = (), bars: Bars | None = None) -> Skeleton:
    """The compiled skeleton: a function of the worker, then of the arguments of the user's function.

    The steps in `followed` are calls of the worker too, and stand beside as Python for values that only Python can do
    them with. `bars` are shown, if there are any.
    """
    function = prepared.program.function
    writer = _writer(prepared, followed, with_bars=bars is not None)
    lines = writer.lines()
    text = "\n".join(text for text, _ in lines) + "\n"
    file = f"<orion skeleton of {function.name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names, space = writer.names, writer.names.space() | {writer.bars: bars}
    accumulated = function.accumulated
    exec(compile(text, file, "exec"), space)
    made = space[names.entry]

    def skeleton(*arguments: Any) -> Any:
        try:
            if not accumulated:
                return made(*arguments)
            numbers: list[tuple[Any, ...]] = []
            returned = made(*arguments, numbers)
            return Returned(returned, dict(zip((one.source for one in accumulated), numbers, strict=True)))
        except (AbortedError, FinishedError):  # every call ends so on workers other than 0: no place is looked for
            raise
        except Exception as error:
            text, place = _line_of(error, file, lines)
            if place is None:
                raise
            if isinstance(error, NameError):
                error.args = tuple(map(names.in_users_words, error.args))
            told = of_user(error, *place, is_raised=text.lstrip().startswith("raise "))
            raise told if isinstance(error, MemoryError | RecursionError) else by_all(told) from error

    return skeleton


def _line_of(error: Exception, file: str, lines: Sequence[Line]) -> Line:
    """The line that an error was raised in; one without a place where it was not in one of these."""
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file and frame.lineno]
    return lines[inside[-1].lineno - 1] if inside and inside[-1].lineno else ("", None)


def _writer(prepared: PreparedProgram, followed: Sequence[Followed], *, with_bars: bool) -> _Writer:
    function = prepared.program.function
    shown = {bar.line: number for number, bar in reversed([*enumerate(function.bars)])} if with_bars else {}
    return _Writer(
        prepared, followed, PythonNames.of(function, _variables(prepared), "worker", "bars", "kept", "found"), shown
    )


def _variables(prepared: PreparedProgram) -> set[str]:
    """The variables that the skeleton, or a loop that it runs, has."""
    program = prepared.program
    passed = {name for loop in prepared.loops for name in (*loop.inputs, *loop.outputs)}
    own = names_in(*program.function.body, *statements_between(program.steps))
    return {*program.variables, *program.tests}.union(passed, own)


@dataclass(frozen=True)
class _Writer:
    """The writer of a skeleton. `shown` has the numbers of bars by the lines of their loops."""

    prepared: PreparedProgram
    followed: Sequence[Followed]
    names: PythonNames
    shown: Mapping[int, int]

    @property
    def worker(self) -> str:
        return self.names.own["worker"]

    @property
    def bars(self) -> str:
        return self.names.own["bars"]

    @property
    def source(self) -> SourceText:
        return self.prepared.program.function.source

    def lines(self) -> list[Line]:
        """The lines of the skeleton, those of the user's with their places."""
        function, steps = self.prepared.program.function, self.prepared.program.steps
        lines: list[Line] = []
        for helper in function.helpers:
            lines += [(text, (span, helper.source)) for text, span in self.names.helper(helper)]
            lines += [("", None), ("", None)]
        kept = [self.names.own["kept"]] if function.accumulated else []
        params = (self.worker, *map(self.names.variable, function.params), *kept)
        lines.append((f"def {self.names.entry}({', '.join(params)}):", None))
        lines += [(text, None) for text in self.first_values()]
        if not kept:
            return lines + self.block(steps, "    ")
        numbers = (f"({', '.join(map(self.names.variable, one.names))},)" for one in function.accumulated)
        lines.append(("    try:", None))
        lines += self.block(steps, "        ")
        return [*lines, ("    finally:", None), (f"        {kept[0]}[:] = [{', '.join(numbers)}]", None)]

    def first_values(self) -> list[str]:
        """Values for the locals that a loop hands out, or may need, but need not have one before it (`last` of `last =
        a[i]`)."""
        function, loops = self.prepared.program.function, self.prepared.loops
        names = {name for loop in loops for name in loop.outputs}
        exposed = exposed_reads(function.body, function.params)
        names |= exposed.keys() & {name for loop in loops for name in loop.inputs}
        names -= {*function.params, *dict(function.constants)}
        return [f"    {self.names.variable(name)} = 0" for name in sorted(names)]

    def block(self, steps: tuple[Step, ...], indent: str) -> list[Line]:
        """The lines of some steps, with those that are followed as calls."""
        lines: list[Line] = []
        place = 0
        while place < len(steps):
            number = next((k for k, one in enumerate(self.followed) if one.steps[0] is steps[place]), None)
            if number is None:
                lines += self.step(steps[place], indent)
                place += 1
            else:
                lines += self.follow(number, indent)
                place += len(self.followed[number].steps)
        return lines or [(f"{indent}pass", None)]

    def step(self, step: Step, indent: str) -> list[Line]:
        match step:
            case Scalars(body):
                return [line for statement in body for line in self.statement(statement, indent)]
            case RunLoop(number):
                return self.run(number, indent)
            case Repeat():
                return self.repeat(step, indent)
            case Branch():
                return self.branch(step, indent)

    def follow(self, number: int, indent: str) -> list[Line]:
        """Followed steps: a call, and what they are where that finds that only Python can do them."""
        one, found = self.followed[number], self.names.own["found"]
        given = (*map(self.names.variable, one.reads), *map(self.names.expr, one.extents))
        call = f"{found} = {self.worker}.follow({', '.join((str(number), *given))})"
        lines: list[Line] = [(indent + call, None), (f"{indent}if {found} is None:", None)]
        for step in one.steps:
            lines += self.step(step, indent + "    ")
        if one.changed:
            changed = "".join(f"{self.names.variable(name)}, " for name in one.changed)
            lines += [(f"{indent}else:", None), (f"{indent}    {changed}= {found}", None)]
        return lines

    def statement(self, statement: Stmt, indent: str) -> list[Line]:
        return [(text, (span, self.source)) for text, span in self.names.statement(statement, indent)]

    def repeat(self, step: Repeat, indent: str) -> list[Line]:
        """A serial loop, with its bar."""
        space = step.space
        header = self.statement(replace(step.loop, body=()), indent)[0]
        bar = self.shown.get(step.loop.span.line)
        if bar is not None and space is not None:
            through = f"{self.bars}.around({self.worker}, {bar}, {self.trips(space)}, {self.total(bar)})"
            header = (f"{indent}for {self.names.variable(space.var)} in {through}:", header[1])
        return [header, *self.block(step.steps, indent + "    ")]

    def branch(self, step: Branch, indent: str) -> list[Line]:
        first, second = step.sides
        test = step.statement.test
        head: Line = (f"{indent}if {self.names.expr(test)}:", (test.span, self.source))
        lines = [head, *self.block(first, indent + "    ")]
        return [*lines, (f"{indent}else:", None), *self.block(second, indent + "    ")] if second else lines

    def run(self, number: int, indent: str) -> list[Line]:
        """A planned loop, with its bar around it."""
        loop = self.prepared.program.nests[number]
        bar = self.shown.get(loop.span.line)
        if bar is None:
            return [(indent + self.call(number), None)]
        head = f"{indent}with {self.bars}.whole({self.worker}, {bar}, {self.total(bar)}):"
        return [(head, None), (f"{indent}    {self.call(number)}", None)]

    def total(self, number: int) -> str:
        """The number of iterations of a loop of the source with a bar."""
        space = self.prepared.program.function.bars[number].trips
        if space is None:
            return "None"
        return f"len({self.names.variable(space.array) if isinstance(space, Elements) else self.trips(space)})"

    def trips(self, space: Range) -> str:
        return f"range({', '.join(map(self.names.expr, (space.start, space.stop, space.step)))})"

    def call(self, number: int) -> str:
        loop = self.prepared.loops[number]
        inputs, outputs = (map(self.names.variable, names) for names in (loop.inputs, loop.outputs))
        call = f"{self.worker}.loop({', '.join((str(number), *inputs))})"
        return f"({', '.join(outputs)},) = {call}" if loop.outputs else call
