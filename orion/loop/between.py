"""What stands between the planned loops of a function, and what may not.

Every worker runs the statements between loops, each on its own copies of the scalars. Statements there that read
or write arrays must run once, on one worker: they become the body of a loop of one trip (`For.index` is
`SYNTHETIC`), which is planned like any other. What `return` reads from arrays is computed in such a loop first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby

from orion.errors import UnsupportedLoopError
from orion.loop.definite import unsure_reads
from orion.loop.dimensions import assigned_names, leaves_loop, perfect_loops
from orion.loop.expression_types import Typing
from orion.loop.infer import infer_types
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
from orion.loop.refuse import unsupported
from orion.loop.types import ArrayType, SparseType, Types
from orion.loop.value_type import ValueType

SYNTHETIC = -1
"""`For.index` of a loop that is not in the source: one trip around statements that run once, on one worker."""


def separate(function: Function, types: Types) -> Function:
    """The function with statements between loops that touch arrays put into loops of one trip.

    Does nothing to a function that has been through it. Raises `UnsupportedLoopError` for what may not stand between
    loops: a loop over elements inside an `if`, an early `return`, a `break` out of a loop around planned loops, an
    array made there.
    """
    separator = _Separator(function, infer_types(function, types), array_names(types))
    body = separator.block(function.body, in_repeat=False)
    separator.check_local_arrays(body)
    separator.check_loop_variables(body, ())
    return replace(function, body=(*separator.zeros(body), *body))


def array_names(types: Types) -> frozenset[str]:
    """The arguments that are arrays, dense or sparse."""
    return frozenset(name for name, kind in types.items() if isinstance(kind, ArrayType | SparseType))


def touches(node: Node, arrays: frozenset[str]) -> bool:
    """Whether the code reads or writes elements of an array, or goes over one. Extents are no elements."""
    return any(
        isinstance(part, Subscript | Elements | Bind) or (isinstance(part, Var) and part.name in arrays)
        for part in walk(node)
    )


def is_repeat(statement: Stmt) -> bool:
    """Whether it is a loop over a range around loops over elements, which are planned one by one."""
    return isinstance(statement, For) and isinstance(statement.space, Range) and bool(_elements(statement))


def _elements(statement: Stmt) -> list[Elements]:
    return [node for node in walk(statement) if isinstance(node, Elements)]


@dataclass(frozen=True, slots=True)
class _Separator:
    function: Function
    typing: Typing
    arrays: frozenset[str]
    results: dict[str, ValueType] = field(default_factory=dict)

    def block(self, statements: tuple[Stmt, ...], *, in_repeat: bool) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for kind, group in groupby(statements, self.kind):
            members = tuple(group)
            if kind == "loop":
                found += [self.loop(member) for member in members if isinstance(member, For)]
            elif kind == "once":
                found.append(self.once(members))
            elif kind == "return":
                found += self.result(members, is_last=not in_repeat and members[-1] is statements[-1])
            else:
                self.check_scalars(members, in_repeat)
                found += members
        return tuple(found)

    def kind(self, statement: Stmt) -> str:
        match statement:
            case For():
                return "loop"
            case Return():
                return "return"
            case _:
                return "once" if touches(statement, self.arrays) else "scalars"

    def loop(self, loop: For) -> For:
        if is_repeat(loop):
            if touches(loop.space, self.arrays):
                why = "the rounds of a loop around loops over elements are counted before those run"
                raise self.refuse(loop.space, "the bounds read an array", why, "pass the bound as an argument")
            return replace(loop, body=self.block(loop.body, in_repeat=True))
        if len(_elements(loop)) > 1:
            raise self.misplaced(_elements(loop)[1])
        self.check_returns(loop.body)
        return loop

    def once(self, statements: tuple[Stmt, ...]) -> For:
        """One trip around statements that touch arrays."""
        for statement in statements:
            if _elements(statement):
                raise self.misplaced(_elements(statement)[0])
            if leaves_loop(statement):
                raise self.leaves(statement)
        self.check_returns(statements)
        span = statements[0].span
        trip = Range(self.fresh("once"), Const(0, span), Const(1, span), Const(1, span), span)
        return For(trip, statements, SYNTHETIC, span)

    def result(self, statements: tuple[Stmt, ...], *, is_last: bool) -> list[Stmt]:
        """The final `return`; what it reads from arrays is computed by one worker first."""
        last = statements[0]
        assert isinstance(last, Return)
        if not is_last or len(statements) > 1:
            raise self.early_return(last)
        if last.value is None:
            return [last]
        parts = last.value.items if isinstance(last.value, Tuple) else (last.value,)
        for part in parts:
            if self.typing.of(part).rank:
                why = "what a function returns is made of scalars; arrays that are arguments change in place"
                raise self.refuse(part, "an array is returned", why, "write into an array that is an argument")
        if not touches(last.value, self.arrays):
            return [last]
        names = tuple(Var(self.fresh(f"result_{number}"), last.span) for number in range(len(parts)))
        self.results.update({name.name: self.typing.of(part) for name, part in zip(names, parts, strict=True)})
        trip = self.once(tuple(Assign(name, part, last.span) for name, part in zip(names, parts, strict=True)))
        value: Expr = Tuple(names, last.span) if isinstance(last.value, Tuple) else names[0]
        return [trip, replace(last, value=value)]

    def fresh(self, name: str) -> str:
        while name in self.typing.names:
            name += "_"
        return name

    def zeros(self, body: tuple[Stmt, ...]) -> list[Stmt]:
        """Assignments of zero to the scalars that may be read before they have a value, such as what only a loop sets.

        A planned loop is given the values that its scalars have before it. Where Python would find a name without a
        value (no trip of the loop was made) the compiled function finds zero. As a Python scalar it takes the dtype
        of what is assigned later.
        """
        found: list[Stmt] = []
        for name, span in unsure_reads(body, {*self.function.params}).items():
            kind = self.results.get(name) or self.typing.name(name)
            value = False if kind.dtype == "bool" else 0 if kind.is_integer else 0.0
            if kind.rank == 0:
                found.append(Assign(Var(name, span), Const(value, span), span))
        return found

    # ------------------------------------------------------------ what may not be

    def check_scalars(self, statements: tuple[Stmt, ...], in_repeat: bool) -> None:
        self.check_returns(statements)
        for statement in statements:
            if in_repeat and leaves_loop(statement):
                raise self.leaves(statement)

    def check_returns(self, body: tuple[Stmt, ...]) -> None:
        for node in (node for statement in body for node in walk(statement)):
            if isinstance(node, Return):
                raise self.early_return(node)

    def check_local_arrays(self, body: tuple[Stmt, ...]) -> None:
        """Arrays that are not arguments may live in one planned loop only: workers do not share them."""
        local = {name for name, kind in self.typing.names.items() if kind.rank} - {*self.function.params}
        homes: dict[str, Stmt] = {}
        for unit in _units(body):
            for name in local & _names(unit):
                if homes.setdefault(name, unit) is not unit or not isinstance(unit, For):
                    raise self.local_array(name, homes[name], body)

    def check_loop_variables(self, body: tuple[Stmt, ...], after: tuple[Stmt, ...]) -> None:
        """The variables of a planned loop have no value after it: its trips are made in any order, on any worker."""
        for number, unit in enumerate(body):
            if not isinstance(unit, For):
                continue
            rest = body[number + 1 :]
            if is_repeat(unit):
                self.check_loop_variables(unit.body, (*unit.body, *rest, *after))
                continue
            loops = perfect_loops(unit)
            names = {name for loop in loops for name in assigned_names((replace(loop, body=()),))}
            others = {*self.typing.names, *self.results} - names
            for name, span in unsure_reads((*rest, *after), others).items():
                what = f"the loop variable `{name}` is read after its loop"
                why = "the iterations of a planned loop may be run in any order, by several workers"
                hint = f"keep it under another name: `last = {name}` in the loop"
                raise unsupported(what, span, self.function.source, why=why, hint=hint)

    def refuse(self, node: Node, what: str, why: str, hint: str) -> UnsupportedLoopError:
        return unsupported(what, node.span, self.function.source, why=why, hint=hint)

    def local_array(self, name: str, home: Stmt, body: tuple[Stmt, ...]) -> UnsupportedLoopError:
        nodes = [node for statement in body for node in walk(statement)]
        if any(isinstance(node, Bind) and node.name == name for node in nodes):
            what = f"`{name}` stands for parts of arrays in more than one loop"
            return self.refuse(home, what, "", f"give the part its name inside the loop that uses `{name}`")
        why = "each worker would have one of its own"
        hint = f"make `{name}` before the call, and pass it as an argument"
        return self.refuse(home, f"the array `{name}` is made between loops", why, hint)

    def misplaced(self, elements: Elements) -> UnsupportedLoopError:
        what = "a loop over elements inside an `if`, a `while` or another loop over elements is not supported"
        why = "how the elements are shared out is planned before the function runs"
        hint = "put it at the top level of the function or of a loop over a range, with the `if` inside"
        return self.refuse(elements, what, why, hint)

    def leaves(self, statement: Stmt) -> UnsupportedLoopError:
        what = "leaving a round of a loop around planned loops is not supported"
        why = "all workers must run the same rounds"
        return self.refuse(statement, what, why, "call the function once per round, and decide between the calls")

    def early_return(self, statement: Return) -> UnsupportedLoopError:
        what = "`return` is only supported as the last statement of the function"
        why = "iterations may run in another order and in other processes"
        return self.refuse(statement, what, why, "set a scalar or an array element, and return at the end")


def _units(body: tuple[Stmt, ...]) -> list[Stmt]:
    """The planned loops, and the statements between them, in textual order."""
    units: list[Stmt] = []
    for statement in body:
        units += _units(statement.body) if isinstance(statement, For) and is_repeat(statement) else [statement]
    return units


def _names(unit: Stmt) -> set[str]:
    return assigned_names((unit,)) | {node.name for node in walk(unit) if isinstance(node, Var)}
