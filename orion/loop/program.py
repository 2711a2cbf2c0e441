"""A function taken apart into planned loops, the scalar statements between them, and serial loops around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from orion.errors import PlanError, UnsupportedLoopError
from orion.loop.dimensions import leaves_loop, perfect_loops
from orion.loop.ir import (
    Assign,
    Bind,
    Const,
    Elements,
    Expr,
    For,
    Function,
    Node,
    Range,
    Return,
    Stmt,
    Subscript,
    Tuple,
    Var,
    walk,
)  # fmt: skip
from orion.loop.nest import LoopNest, Program, Repeat, RunLoop, Scalars, Step
from orion.loop.refuse import unsupported
from orion.loop.source import Span
from orion.loop.types import ArrayType, SparseType, Types

SYNTHETIC = -1
"""`For.index` of a loop that is not in the source: one trip around statements that run once, on one worker."""


def split_program(function: Function, types: Types, ordered: bool | None = None) -> Program:
    """The planned loops of a function, and the steps that run them.

    A loop over the elements of a sparse array is planned by itself (unordered unless `ordered` is True). A perfect nest of
    ranges is planned as a whole (ordered unless `ordered` is False). A loop over a range around loops over elements is a
    `Repeat`. Statements between loops that touch no array are `Scalars`; those that do are a planned loop of one trip,
    whose `For.index` is `SYNTHETIC`, so that they run once and on one worker.
    """
    splitter = _Splitter(function, types, ordered)
    steps = splitter.steps(function.body)
    return Program(function, tuple(splitter.nests), steps)


def open_outer_loop(program: Program, number: int, types: Types) -> Program:
    """The program with planned loop `number` made into a serial loop around the loops in its body.

    PlanError where `is_openable` says that the loop has no such form.
    """
    nest = program.nests[number]
    if not is_openable(nest, types):
        raise PlanError(f"loop {number} is not a serial loop around other loops and scalar statements")
    splitter = _Splitter(program.function, types, nest.ordered)
    steps = splitter.opened(program, program.steps, number)
    return Program(program.function, tuple(splitter.nests), steps)


def is_openable(nest: LoopNest, types: Types) -> bool:
    """Whether the body of the outermost loop consists of loops over ranges and of scalar statements only."""
    outer = nest.loops[0]
    if outer.index == SYNTHETIC or isinstance(outer.space, Elements):
        return False
    others = [statement for statement in outer.body if not isinstance(statement, For)]
    arrays = array_names(types)
    return len(others) < len(outer.body) and not any(
        touches(statement, arrays) or leaves_loop(statement) for statement in others
    )


def array_names(types: Types) -> frozenset[str]:
    """The arguments that are arrays, dense or sparse."""
    return frozenset(name for name, kind in types.items() if isinstance(kind, ArrayType | SparseType))


def touches(node: Node, arrays: frozenset[str]) -> bool:
    """Whether the code reads or writes elements of an array, or goes over one. Extents (`Dim`, `Count`) are no elements."""
    return any(
        isinstance(part, Subscript | Elements | Bind) or (isinstance(part, Var) and part.name in arrays)
        for part in walk(node)
    )


@dataclass(slots=True)
class _Splitter:
    function: Function
    types: Types
    ordered: bool | None
    nests: list[LoopNest] = field(default_factory=list)

    def steps(self, body: Iterable[Stmt], *, is_repeated: bool = False) -> tuple[Step, ...]:
        found: list[Step] = []
        for kind, group in groupby(body, self.kind):
            statements = tuple(group)
            if kind == "loop":
                found += [self.loop(statement) for statement in statements if isinstance(statement, For)]
            elif kind == "once":
                found.append(self.once(statements))
            elif kind == "return":
                found += self.result(statements, body)
            else:
                self.check_scalars(statements, is_repeated)
                found.append(Scalars(statements))
        return tuple(found)

    def kind(self, statement: Stmt) -> str:
        match statement:
            case For():
                return "loop"
            case Return():
                return "return"
            case _:
                return "once" if touches(statement, array_names(self.types)) else "scalars"

    def loop(self, loop: For) -> Step:
        over_elements = isinstance(loop.space, Elements)
        inner = (node for node in walk(loop) if isinstance(node, Elements) and node is not loop.space)
        if not any(True for _ in inner):
            return self.nest(loop, ordered=self.is_ordered(over_elements))
        if over_elements:
            raise self.misplaced(loop)
        return self.repeat(loop)

    def is_ordered(self, over_elements: bool) -> bool:
        return not over_elements if self.ordered is None else self.ordered

    def nest(self, loop: For, ordered: bool) -> RunLoop:
        self.check_returns(loop.body)
        loops = perfect_loops(loop)
        space = loop.space
        dims = space.keys if isinstance(space, Elements) else tuple(_variable(inner) for inner in loops)
        self.nests.append(LoopNest(len(self.nests), loops, dims, loops[-1].body, ordered, self.function))
        return RunLoop(len(self.nests) - 1)

    def repeat(self, loop: For) -> Repeat:
        if touches(loop.space, array_names(self.types)):
            why = "the rounds of a loop around loops over elements are counted before the loops run"
            raise self.refuse("the bounds read an array", loop.space.span, why, "pass the bound as an argument")
        return Repeat(loop, self.steps(loop.body, is_repeated=True))

    # ------------------------------------------------------------ statements between loops

    def once(self, statements: tuple[Stmt, ...]) -> RunLoop:
        """One trip around statements that touch arrays: not every worker may run them."""
        for statement in statements:
            if any(isinstance(node, Elements) for node in walk(statement)):
                raise self.misplaced(statement)
            if leaves_loop(statement):
                raise self.leaves(statement)
        span = statements[0].span
        trip = Range(self.fresh("once"), Const(0, span), Const(1, span), Const(1, span), span)
        return self.nest(For(trip, statements, SYNTHETIC, span), ordered=True)

    def result(self, statements: tuple[Stmt, ...], body: Iterable[Stmt]) -> list[Step]:
        """The final `return`; what it reads from arrays is computed by one worker first."""
        last = statements[0]
        assert isinstance(last, Return)
        if last is not tuple(body)[-1] or body is not self.function.body:
            raise self.early_return(last)
        if last.value is None or not touches(last.value, array_names(self.types)):
            return [Scalars((last,))]
        parts = last.value.items if isinstance(last.value, Tuple) else (last.value,)
        names = tuple(Var(self.fresh(f"result_{number}"), last.span) for number in range(len(parts)))
        pairs = zip(names, parts, strict=True)
        step = self.once(tuple(Assign(name, part, last.span) for name, part in pairs))
        value: Expr = Tuple(names, last.span) if isinstance(last.value, Tuple) else names[0]
        return [step, Scalars((Return(value, last.span),))]

    def check_scalars(self, statements: tuple[Stmt, ...], is_repeated: bool) -> None:
        self.check_returns(statements)
        for statement in statements:
            if is_repeated and leaves_loop(statement):
                raise self.leaves(statement)

    def check_returns(self, body: tuple[Stmt, ...]) -> None:
        for node in (node for statement in body for node in walk(statement)):
            if isinstance(node, Return):
                raise self.early_return(node)

    def fresh(self, name: str) -> str:
        taken = {node.name for statement in self.function.body for node in walk(statement) if isinstance(node, Var)}
        while name in taken or name in self.function.params:
            name += "_"
        return name

    # ------------------------------------------------------------ opening a nest

    def opened(self, program: Program, steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
        """The steps with loop `number` opened; all loops are numbered anew."""
        return tuple(self.renumbered(program, step, number) for step in steps)

    def renumbered(self, program: Program, step: Step, number: int) -> Step:
        match step:
            case RunLoop(found) if found == number:
                return self.repeat(program.nests[number].loops[0])
            case RunLoop(found):
                self.nests.append(replace(program.nests[found], number=len(self.nests)))
                return RunLoop(len(self.nests) - 1)
            case Repeat(loop, inner):
                return Repeat(loop, self.opened(program, inner, number))
            case _:
                return step

    # ------------------------------------------------------------ refusals

    def refuse(self, what: str, span: Span, why: str, hint: str) -> UnsupportedLoopError:
        return unsupported(what, span, self.function.source, why=why, hint=hint)

    def misplaced(self, statement: Stmt) -> UnsupportedLoopError:
        elements = next(node for node in walk(statement) if isinstance(node, Elements) and node.span != statement.span)
        what = "a loop over elements inside an `if`, a `while` or another loop over elements is not supported"
        why = "how the elements are shared out is planned before the function runs"
        hint = "put it at the top level of the function or of a loop over a range, with the `if` inside"
        return self.refuse(what, elements.span, why, hint)

    def leaves(self, statement: Stmt) -> UnsupportedLoopError:
        what = "leaving a round of a loop around planned loops is not supported"
        why = "all workers must run the same rounds"
        hint = "call the function once per round, and decide between the calls"
        return self.refuse(what, statement.span, why, hint)

    def early_return(self, statement: Return) -> UnsupportedLoopError:
        what = "`return` is only supported as the last statement of the function"
        why = "iterations may run in another order and in other processes"
        return self.refuse(what, statement.span, why, "set a scalar or an array element, and return at the end")


def _variable(loop: For) -> str:
    assert isinstance(loop.space, Range)
    return loop.space.var
