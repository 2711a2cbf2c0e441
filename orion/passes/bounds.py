"""Names for what the bounds of loops are made of where that is no affine function of sizes.

    for i in range(n * n):                i_stop = n * n
        a[i] = 0.0                        for i in range(i_stop):
                                              a[i] = 0.0

Products of sizes and quotients by them have values when a call begins, though isl has no text for them: with a name, a
bound is a parameter like any other, whose value each call gives (`orion.cost.extents.named_values`). What may fail, as
`n // m` does for m = 0, is computed where it was: it gets a name only in the bounds of a loop that stands outside of
all others. What cannot fail gets one before the outermost loop or branch around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from orion.dataclass import dataclass, field, replace
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Call,
    Choose,
    Const,
    Count,
    Expr,
    For,
    Range,
    Stmt,
    Unary,
    Var,
    every,
    walk,
)  # fmt: skip
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand
from orion.ir.spans import without_spans
from orion.ir.types import Types
from orion.passes.local_arrays import definitions
from orion.passes.sizes import is_size, sizes_before
from orion.typing.expression_types import Typing
from orion.typing.infer import infer_types, with_local_arrays


def name_bounds(function: Function, types: Types) -> Function:
    """The function with names for those parts of the bounds of its loops that are made of sizes and are not affine."""
    spaces = [loop.space for loop in every(For, *function.body)]
    bounds = [bound for space in spaces if isinstance(space, Range) for bound in (space.start, space.stop)]
    if not any(_is_not_affine(part) for bound in bounds for part in walk(bound)):
        return function
    typing = infer_types(function, with_local_arrays(types, function))
    namer = _Namer(typing, {*function.params}, sizes_before(function, typing), {*typing.names, *function.params})
    body = tuple(one for statement in function.body for one in namer.at_top(statement, definitions(function)))
    return function if body == function.body else replace(function, body=body)


@dataclass(slots=True)
class _Namer:
    """`arrays` are there when a call begins, `sizes` the names that have values then, as far as the function has been
    gone through, `taken` all that are in use. `given` has the names that were given, by what they stand for."""

    typing: Typing
    arrays: set[str]
    sizes: set[str]
    taken: set[str]
    given: dict[Expr, str] = field(default_factory=dict)

    def at_top(self, statement: Stmt, once: dict[str, Expr]) -> Iterator[Stmt]:
        """A statement outside of all loops, after what gives the names that it uses. `once` are the names that are
        assigned only there, with their values."""
        before: list[Stmt] = []

        def named(inner: Stmt) -> tuple[Stmt, ...]:
            if not isinstance(inner, For) or not isinstance(inner.space, Range):
                return (inner,)
            space, is_first = inner.space, inner.span == statement.span and isinstance(statement, For)
            start = self.named(space.start, f"{space.var}_start", is_first, before)
            may_fail = is_first and self.is_size(space.start, True)
            stop = self.named(space.stop, f"{space.var}_stop", may_fail, before)
            return (replace(inner, space=replace(space, start=start, stop=stop)),)

        found = expand((statement,), named)
        yield from before
        yield from found
        self.sizes |= {name for name, value in once.items() if _gives(statement, name) and self.is_size(value, True)}

    def named(self, bound: Expr, name: str, may_fail: bool, before: list[Stmt]) -> Expr:
        """A bound with names for parts of it."""
        if not self.is_size(bound, may_fail):
            return self.with_names_in(bound, lambda part: self.named(part, name, may_fail, before))
        if not any(map(_is_not_affine, walk(bound))) or self.typing.of(bound).dtype != "int64":
            return bound
        key = without_spans(bound)
        if key not in self.given:
            self.given[key] = fresh(name, self.taken)
            before.append(Assign(Var(self.given[key], bound.span), bound, bound.span))
        return Var(self.given[key], bound.span)

    def with_names_in(self, bound: Expr, named: Callable[[Expr], Expr]) -> Expr:
        match bound:
            case Unary("-" | "+", operand):
                return replace(bound, operand=named(operand))
            case Binary("+" | "-" | "*" | "//" | "%", left, right):
                return replace(bound, left=named(left), right=named(right))
            case Call("min" | "max", parts):
                return replace(bound, arguments=tuple(map(named, parts)))
            case _:
                return bound

    def is_size(self, expr: Expr, may_fail: bool) -> bool:
        """Whether an expression has a value when a call begins."""
        return is_size(expr, self.arrays, self.sizes, may_fail=may_fail)


def _gives(statement: Stmt, name: str) -> bool:
    return isinstance(statement, Assign) and name in assigned_names([statement])


def _is_not_affine(part: object) -> bool:
    match part:
        case Count() | Choose() | Binary("&" | "|" | "^" | "<<" | ">>" | "**" | "/"):
            return True
        case Call(function):
            return function not in ("min", "max", "len", INTEGER)
        case Binary("*", left, right):
            return not (_is_number(left) or _is_number(right))
        case Binary("//" | "%", _, right):
            return not _is_number(right)
        case _:
            return False


def _is_number(expr: Expr) -> bool:
    match expr:
        case Const():
            return True
        case Unary(_, operand):
            return _is_number(operand)
        case Binary(_, left, right):
            return _is_number(left) and _is_number(right)
        case _:
            return False
