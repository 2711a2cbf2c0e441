"""Arrays that are written out, as new arrays whose elements are given values one by one.

x = np.array([z[0], 0.0])         x = np.empty(2)
                                  x[0] = z[0]
                                  x[1] = 0.0
"""

from __future__ import annotations

from collections.abc import Iterator

from orion.dataclass import dataclass
from orion.ir.as_statements import as_branches
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.lifting import Lifter
from orion.ir.nodes import Assign, Call, Const, Dtype, Expr, Stmt, Subscript, Tuple, Var, every, names_in
from orion.ir.refuse import unsupported
from orion.ir.rewriting import expand, with_new
from orion.passes.writes import helper_writes
from orion.typing.expression_types import Typing

LITERAL = "np.array"


def fill_by_elements(function: Function, typing: Typing) -> Function:
    """The function without arrays that are written out. UnsupportedLoopError where one may not be evaluated whenever
    the statement is."""
    if not any(map(_is_literal, every(Call, *function.body))):
        return function
    filler = _Filler(function, typing, {*function.params, *assigned_names(function.body)})
    body = expand(function.body, filler.direct)
    writes = helper_writes(function, {name: kind.rank for name, kind in typing.names.items()})
    lifter = Lifter(_is_literal, filler.lift, filler.instead, writes)
    return with_new(function, body=lifter.block(body))


def _is_literal(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == LITERAL


@dataclass(frozen=True, slots=True)
class _Filler:
    function: Function
    typing: Typing
    taken: set[str]

    def direct(self, statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name) as target, Call() as value) if _is_literal(value) and name not in names_in(value):
                return tuple(self.filled(target, value))
        return (statement,)

    def lift(self, expr: Call, before: list[Stmt]) -> Expr:
        name = f"array_{expr.span.line}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        found = Var(name, expr.span)
        before += self.filled(found, expr)
        return found

    def instead(self, expr: Expr, why: str) -> Expr:
        what = "an array that is written out is not supported here"
        hint = "give it a name first"
        source = self.function.source
        text = as_branches(expr.span, source)
        raise unsupported(what, expr.span, source, why=why, hint=hint, is_for_numba=True, replacement=text)

    def filled(self, target: Var, value: Call) -> Iterator[Stmt]:
        """The statements that make the array, and give its elements their values."""
        kind, span = self.typing.of(value), value.span
        lengths: list[Expr] = [length for length in kind.lengths if length is not None]
        shape = lengths[0] if len(lengths) == 1 else Tuple(tuple(lengths), span)
        yield Assign(target, Call("np.empty", (shape, Dtype(kind.dtype, span)), span), span)
        for place, element in _elements(value.arguments[0]):
            index = tuple(Const(number, element.span) for number in place)
            yield Assign(Subscript(target, index, element.span), element, element.span)


def _elements(value: Expr, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Expr]]:
    if isinstance(value, Tuple):
        for number, item in enumerate(value.items):
            yield from _elements(item, (*place, number))
    else:
        yield place, value
