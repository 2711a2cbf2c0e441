"""`return` inside loops, as a `break` of each loop around it and a `return` after the outermost one.

A planned loop is compiled by itself, and what stands between loops is run by every worker: neither can end the function
from inside. So

    for i in range(n):                    returned = 0
        if a[i] == x:                     for i in range(n):
            return i                          if a[i] == x:
    return -1                                     returned_1 = i
                                                  returned = 1
                                                  break
                                          if returned == 1:
                                              return returned_1
                                          return -1
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from orion.dataclass import dataclass, field, replace
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import Assign, Break, Compare, Const, Expr, For, If, Return, Stmt, Var, While, every, holds
from orion.ir.rewriting import is_raised, with_new, with_parts
from orion.source import Span


def leave_by_break(function: Function, arrays: Collection[str]) -> Function:
    """The function without a `return` inside a loop; what it returns, and when, is the same.

    `arrays` are its arrays. They are returned by name: nothing is run between the `break` and the `return`."""
    if not any(_holds_return(statement) for statement in function.body):
        return function
    leaver = _Leaver({*function.params, *assigned_names(function.body)}, arrays)
    return with_new(function, body=leaver.block(function.body))


def _holds_return(statement: Stmt) -> bool:
    """Whether a `return` stands in a loop in the statement."""
    loops = every((For, While), statement)
    return holds(Return, *loops)


@dataclass(slots=True)
class _Leaver:
    """`taken` are the names of the function, `arrays` those of its arrays; `places` counts the `return`s that were
    replaced; `changing` are the names that the outermost loop around gives values to."""

    taken: set[str]
    arrays: Collection[str]
    changing: set[str] = field(default_factory=set)
    flag: str = ""
    places: int = 0
    found: list[Stmt] = field(default_factory=list)

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Statements that are in no loop."""
        return tuple(new for statement in body for new in self.statement(statement))

    def statement(self, statement: Stmt) -> Iterator[Stmt]:
        match statement:
            case If(_, body, orelse):
                yield replace(statement, body=self.block(body), orelse=self.block(orelse))
            case For() | While() if _holds_return(statement):
                self.flag, self.found = self.flag or self.fresh("returned"), []
                self.changing = assigned_names((statement,))
                loop = self.loop(statement)
                yield Assign(Var(self.flag, statement.span), Const(0, statement.span), statement.span)
                yield loop
                yield from self.found
            case _:
                yield statement

    def loop(self, loop: For | While) -> For | While:
        return replace(loop, body=self.inside(loop.body))

    def inside(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Statements of a loop."""
        found: list[Stmt] = []
        for statement in body:
            match statement:
                case Return(value, span):
                    return (*found, *self.leave(value, span))
                case If(_, then, orelse):
                    found.append(replace(statement, body=self.inside(then), orelse=self.inside(orelse)))
                case For() | While() if _holds_return(statement):
                    found.append(self.loop(statement))
                    test = Compare(("!=",), (Var(self.flag, statement.span), Const(0, statement.span)), statement.span)
                    found.append(If(test, (Break(statement.span, "return"),), (), statement.span))
                case _:
                    found.append(statement)
        return tuple(found)

    def leave(self, value: Expr | None, span: Span) -> Iterator[Stmt]:
        """What stands for `return value`; the `return` itself is noted, to stand after the outermost loop."""
        self.places += 1
        kept: list[Stmt] = []
        result = None if value is None else with_parts(value, lambda part: self.kept(part, kept, span))
        yield from kept
        yield Assign(Var(self.flag, span), Const(self.places, span), span)
        yield Break(span, "raise" if is_raised(value) else "return")
        test = Compare(("==",), (Var(self.flag, span), Const(self.places, span)), span)
        self.found.append(If(test, (Return(result, span),), (), span))

    def kept(self, part: Expr, before: list[Stmt], span: Span) -> Expr:
        """A part of what is returned as it is after the loop: a name that keeps it, unless it is the same there."""
        stays = isinstance(part, Var) and (part.name not in self.changing or part.name in self.arrays)
        if isinstance(part, Const) or stays:
            return part
        name = Var(self.fresh(f"returned_{self.places}"), part.span)
        before.append(Assign(name, part, span))
        return name

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name
