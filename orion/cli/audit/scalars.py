"""What Numba makes of the scalars of a `prange` loop: private ones, reductions, and those that carry a value.

Numba gives each thread its own copy of a name that the body assigns. A read that needs the value of the iteration
before then sees another one, and what the last iteration leaves is not what is read after the loop. Reductions are as
Numba's documentation has them: `+=`, `-=`, `*=`, `/=`, and `max` and `min` of the name and something else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orion.cli.audit.flow import Flow, Use, flow_of
from orion.cli.audit.values import Finding, Race, Side, Verdict
from orion.dataclass import dataclass
from orion.frontend.locate import span_of
from orion.source import SourceText, Span

OPERATORS = {ast.Add: "+", ast.Sub: "+", ast.Mult: "*", ast.Div: "*"}


@dataclass(frozen=True, slots=True)
class Scalars:
    """The names of a loop body.

    `reductions` are those that Numba combines, `exposed` those that take their values from before the iteration,
    `settled` those that all iterations set, or none. `findings` are what the names make of the loop.
    """

    assigned: frozenset[str]
    reductions: frozenset[str]
    exposed: frozenset[str]
    settled: frozenset[str]
    findings: tuple[Finding, ...]


def scalars_of(
    loop: ast.For,
    function: ast.FunctionDef | None,
    iterations: tuple[str, str],
    source: SourceText,
    *,
    is_inner: bool = False,
) -> Scalars:
    """Return the roles of the names that a loop over `prange` assigns. `iterations` are the texts of two of them.
    `is_inner` is whether the loop stands in another one over `prange`."""
    flow = flow_of(loop)
    reader = _Reader(loop, function, flow, iterations, source, is_inner)
    reductions, findings = set[str](), list[Finding]()
    variable = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    for name in flow.writes:
        if name in variable:
            findings.append(Finding(Verdict.UNKNOWN, "AUD125", f"the body assigns the loop variable `{name}`"))
        elif reader.is_reduction(name):
            reductions.add(name)
        else:
            findings += reader.of(name)
    findings += reader.variable_after(variable - flow.writes.keys())
    return Scalars(
        frozenset(flow.writes), frozenset(reductions), frozenset(flow.exposed), frozenset(flow.settled), tuple(findings)
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    loop: ast.For
    function: ast.FunctionDef | None
    flow: Flow
    iterations: tuple[str, str]
    source: SourceText
    is_inner: bool

    # ------------------------------------------------------------ reductions

    def is_reduction(self, name: str) -> bool:
        """Whether Numba combines a name: one operator everywhere, and no other use in the loop."""
        operators = {_updated(use.statement, name) for use in self.flow.writes[name]}
        reads = {id(use.statement) for use in self.flow.reads.get(name, [])}
        updates = {id(use.statement) for use in self.flow.writes[name]}
        return len(operators) == 1 and None not in operators and reads == updates

    def recurs(self, name: str) -> bool:
        """Whether a name is only updated by itself, in a form that Numba takes for a reduction and refuses."""
        reads = {id(use.statement) for use in self.flow.reads.get(name, [])}
        own = [use.statement for use in self.flow.writes[name] if _reads_itself(use.statement, name)]
        return (
            bool(own) and any(_updated(one, name) is None for one in own) and not _is_logic(own, name) and bool(reads)
        )

    # ------------------------------------------------------------ others

    def of(self, name: str) -> Iterator[Finding]:
        """Return what a name that is no reduction makes of the loop."""
        use = self.flow.exposed.get(name)
        writes = self.flow.writes[name]
        if use is not None and any(_updated_in_tuple(write.statement, name) for write in writes):
            reason = f"line {writes[0].node.lineno} may be a reduction of `{name}` to Numba"
            yield Finding(Verdict.UNKNOWN, "AUD121", reason, hint=f"write `{name} += …` in a line of its own")
        elif use is not None and self.recurs(name) and not self.is_inner:  # Numba takes an inner loop for `range`
            reason = (
                f"Numba refuses the update of `{name}`: it is no sum, product, `max` or `min` of `{name}` and a value"
            )
            yield Finding(Verdict.UNKNOWN, "AUD125", reason, hint=f"write `{name} += …`, `*=`, or `max` and `min`")
        elif use is not None and use.is_sure and any(write.is_sure for write in writes):
            yield self.carried(name, use, next(write for write in reversed(writes) if write.is_sure))
        elif use is not None:
            yield self.perhaps_carried(name, use, writes[0])
        else:
            yield from self.last(name, writes)

    def carried(self, name: str, read: Use, write: Use) -> Finding:
        first, second = self.iterations
        sides = Side(first, True, self.span(write), name), Side(second, False, self.span(read), name)
        race = Race(name, name, "stale read", *sides)
        reason = (
            f"`{name}` passes a value from one iteration to the next: iteration {second} reads in line "
            f"{read.node.lineno} what iteration {first} sets in line {write.node.lineno}. Each thread has its own "
            f"`{name}`, so that the first iteration of a thread reads another value"
        )
        hint = f"compute `{name}` in each iteration from the loop variable and from arrays"
        return Finding(Verdict.RACE, "AUD102", reason, hint=hint, race=race)

    def perhaps_carried(self, name: str, read: Use, write: Use) -> Finding:
        condition = f"no iteration reads `{name}` in line {read.node.lineno} before it sets it itself"
        if self.only_constants(name) or not any(one.is_sure for one in self.flow.writes[name]):
            condition = f"no iteration sets `{name}` in line {write.node.lineno}"
        lines = f"line {write.node.lineno}) before it is read (line {read.node.lineno})"
        reason = (
            f"a condition decides whether an iteration sets `{name}` ({lines}; Numba does not hand it on from one "
            "iteration to the next"
        )
        return Finding(Verdict.CONDITIONAL, "AUD112", reason, condition)

    def last(self, name: str, writes: list[Use]) -> Iterator[Finding]:
        """Return what is to be said of a name that each iteration sets anew, and that is read after the loop."""
        after = read_after(self.function, self.loop, name)
        if after is None:
            return
        node, is_sure = after
        write = writes[-1]
        told = (
            f"`{name}` is read after the loop, in line {node.lineno}, and Numba does not keep what the last iteration "
            "set"
        )
        hint = f"store what iterations find in an array, and take `{name}` from it after the loop"
        if is_sure and write.is_sure and not isinstance(write.statement, ast.For) and self.varies(write):
            first, second = self.iterations
            span = self.span(write)
            race = Race(name, name, "overwritten value", Side(first, True, span, name), Side(second, True, span, name))
            reason = f"iterations {first} and {second} both set `{name}` in line {write.node.lineno}; {told}"
            yield Finding(Verdict.RACE, "AUD103", reason, hint=hint, race=race)
        elif isinstance(write.statement, ast.For):
            yield Finding(Verdict.UNKNOWN, "AUD103", told, hint=hint)
        else:
            condition = f"no iteration sets `{name}` in line {write.node.lineno}"
            yield Finding(Verdict.CONDITIONAL, "AUD112", told, condition, hint=hint)

    def variable_after(self, names: set[str]) -> Iterator[Finding]:
        for name in names:
            after = read_after(self.function, self.loop, name)
            if after is not None:
                reason = f"the loop variable `{name}` is read after the loop, in line {after[0].lineno}"
                yield Finding(Verdict.UNKNOWN, "AUD103", reason)

    def varies(self, write: Use) -> bool:
        """Whether the value of an assignment mentions the loop variable as a subscript, or alone."""
        value = getattr(write.statement, "value", None)
        variable = {one.id for one in ast.walk(self.loop.target) if isinstance(one, ast.Name)}
        match value:
            case ast.Name(name):
                return name in variable
            case ast.Subscript(_, ast.Name(name)):
                return name in variable
            case _:
                return False

    def only_constants(self, name: str) -> bool:
        values = [getattr(use.statement, "value", None) for use in self.flow.writes[name]]
        return all(isinstance(value, ast.Constant) for value in values)

    def span(self, use: Use) -> Span:
        return span_of(use.node, self.source)


def _updated(statement: ast.stmt, name: str) -> str | None:
    """Return the operator by which a statement updates a name, in a form that Numba knows."""
    match statement:
        case ast.AugAssign(ast.Name(target), op, value) if target == name and not _mentions(value, name):
            return OPERATORS.get(type(op))
        case ast.Assign([ast.Name(target)], value) if target == name:
            return _combined(value, name)
        case _:
            return None


def _updated_in_tuple(statement: ast.stmt, name: str) -> bool:
    """Whether an assignment to several names updates this one in a form that Numba knows."""
    match statement:
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
            own = [value for target, value in zip(targets, values, strict=True) if getattr(target, "id", "") == name]
            return any(_combined(value, name) is not None for value in own)
        case _:
            return False


def _combined(value: ast.expr, name: str) -> str | None:
    match value:
        case ast.BinOp(ast.Name(left), op, right) if left == name and not _mentions(right, name):
            return OPERATORS.get(type(op))
        case ast.BinOp(left, ast.Add() | ast.Mult() as op, ast.Name(right)) if right == name and not _mentions(
            left, name
        ):
            return OPERATORS.get(type(op))
        case ast.Call(ast.Name("max" | "min" as function), [first, second], []):
            others = [one for one in (first, second) if not (isinstance(one, ast.Name) and one.id == name)]
            return function if len(others) == 1 and not _mentions(others[0], name) else None
        case _:
            return None


def _reads_itself(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.AugAssign(ast.Name(target)):
            return target == name
        case ast.Assign([ast.Name(target)], value):
            return target == name and _mentions(value, name)
        case _:
            return False


def _is_logic(statements: list[ast.stmt], name: str) -> bool:
    """Whether the updates are `x = x or …`, which compiles to branches that are no reduction."""
    return all(isinstance(getattr(one, "value", None), ast.BoolOp | ast.IfExp) for one in statements)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def read_after(function: ast.FunctionDef | None, loop: ast.For, name: str) -> tuple[ast.expr, bool] | None:
    """Return the first read of a name that may come after a loop and before anything gives the name a value, and
    whether it is sure; None where there is none. What a loop around runs again counts."""
    for statements, is_sure in _following(function.body, loop, is_sure=True) if function else ():
        flow = Flow(frozenset())
        flow.block(statements)
        if name in flow.exposed:
            use = flow.exposed[name]
            return use.node, use.is_sure and is_sure  # type: ignore[return-value]
        if name in flow.must:
            return None
    return None


def _following(body: list[ast.stmt], loop: ast.For, *, is_sure: bool) -> list[tuple[list[ast.stmt], bool]]:
    """The blocks of statements that run after a loop, the nearest first."""
    for number, statement in enumerate(body):
        if statement is loop:
            return [(body[number + 1 :], is_sure)]
        if not any(one is loop for one in ast.walk(statement)):
            continue
        again = isinstance(statement, ast.For | ast.While)
        for block in ("body", "orelse", "finalbody"):
            inner = getattr(statement, block, [])
            if any(one is loop for part in inner for one in ast.walk(part)):
                found = _following(inner, loop, is_sure=is_sure and not again)
                around = [([statement], False)] if again else []
                return [*found, *around, (body[number + 1 :], is_sure and not again)]
    return []
