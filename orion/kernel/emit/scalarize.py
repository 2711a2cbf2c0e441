"""Row statements rewritten as loops over elements: no temporary rows, no views, any layout and dtype.

`W[i] -= step * g` becomes `for k in range(n): W[i, k] -= step * g[k]`, `G += np.outer(x, d)` a loop of such statements
about rows, `for k in range(n): G[k] += x[k] * d`, and a fold inside an expression, such as
`(W[i] * x).sum()`, a loop that runs before. Python computes the right side as a whole before it writes: so scalars in
it are computed before the loop, and where it reads the array that it writes, it must be at the same places.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Dim,
    Dtype,
    Expr,
    For,
    Logic,
    Node,
    Range,
    Slice,
    Stmt,
    Subscript,
    Unary,
    Update,
    Var,
    every,
    walk,
)  # fmt: skip
from orion.ir.rewriting import rewrite
from orion.ir.spans import NOWHERE
from orion.kernel.emit.calls import CHECKED
from orion.kernel.emit.expressions import Expressions
from orion.kernel.emit.facts import LoopFacts
from orion.source import Span
from orion.typing.functions import Form, form_of, is_dtype, is_elementwise, known
from orion.typing.value_type import INT, ValueType


class NotElementwiseError(Exception):
    """The statement is not one about elements at the same places of its rows."""


class Scalarizer:
    """Rewrites one statement. `buffers` are the private rows kept in memory; new scalars are declared in `scope`."""

    def __init__(self, scope: Expressions, buffers: frozenset[str]) -> None:
        self.scope = scope
        self.buffers = buffers
        self.before: list[Stmt] = []
        self.row_variable = ""
        self.span = NOWHERE

    @property
    def facts(self) -> LoopFacts:
        return self.scope.facts

    def statement(self, statement: Stmt) -> list[Stmt]:
        """The statements that do the same; raises NotElementwiseError where there are none."""
        self.span = statement.span
        match statement:
            case Assign(Var() | Subscript() as target, value) | Update(Var() | Subscript() as target, _, value):
                if self.type_of(target).rank == 0:
                    return self.with_folds_before(statement)
                return self.row_statement(statement, target, value)
            case _:
                raise NotElementwiseError

    def type_of(self, expr: Expr) -> ValueType:
        return self.facts.typing.of(expr)

    # ------------------------------------------------------------ rows

    def row_statement(self, statement: Assign | Update, target: Var | Subscript, value: Expr) -> list[Stmt]:
        """A statement about rows as a loop over one about elements, one about matrices over one about their rows."""
        if self.overlaps(target, value):
            raise NotElementwiseError
        is_matrix = self.type_of(target).rank > 1 and isinstance(target, Subscript)
        length = 0 if is_matrix else self.length_of(target)
        self.row_variable = self.scope.declare_row_variable()
        inner = partial(self.part, shape=self.shape_of(target)) if is_matrix else partial(self.element, length=length)
        place = inner(target)
        assert isinstance(place, Subscript)
        new = replace(statement, target=place, value=inner(value))  # this may add to what comes before
        return [*self.before, self.loop(new, target)]

    def shape_of(self, matrix: Expr) -> tuple[int, ...]:
        """The lengths of a matrix for this call."""
        lengths = [self.facts.literal_length(length) for length in self.type_of(matrix).lengths]
        known = tuple(length for length in lengths if length is not None)
        if len(known) < len(lengths):
            raise NotElementwiseError
        return known

    def part(self, expr: Expr, shape: tuple[int, ...]) -> Expr:
        """Part number `row_variable` of the first axis of an expression of that shape. What has fewer dimensions is in
        each part as a whole; it is computed again there, and so must be cheap."""
        kind = self.type_of(expr)
        if kind.rank == 0:
            return self.scalar(expr)
        if self.shape_of(expr) != shape[len(shape) - kind.rank :]:
            raise NotElementwiseError
        if kind.rank < len(shape):
            return self.cheap(expr)

        def inner(part: Expr) -> Expr:
            return self.part(part, shape)

        match expr:
            case Var() if self.facts.array(expr.name) is not None:
                rows: tuple[Expr, ...] = (Var(self.row_variable, expr.span), *_whole(kind.rank - 1, expr.span))
                return Subscript(expr, rows, expr.span)
            case Subscript():
                return self.element_of_row(expr)
            case Unary(op, operand) if op != "not":
                return Unary(op, inner(operand), expr.span)
            case Binary(op, left, right) if op != "@":
                return Binary(op, inner(left), inner(right), expr.span)
            case Call("np.outer", (left, right), keywords=()):
                return Binary("*", self.element(left, shape[0]), self.cheap(right), expr.span)
            case Call(name, arguments, keywords=()) if is_elementwise(name):
                return replace(expr, arguments=tuple(inner(argument) for argument in arguments))
            case _:
                raise NotElementwiseError

    def cheap(self, row: Expr) -> Expr:
        """A row that may be computed for each row of a matrix."""
        nodes = (part for part in walk(row) if not isinstance(part, Const | Slice | Dim))
        if not all(isinstance(part, Var | Subscript) for part in nodes):
            raise NotElementwiseError
        return row

    def loop(self, statement: Stmt, row: Expr) -> For:
        span = self.span
        length = self.type_of(row).lengths[0]
        assert length is not None
        return For(Range(self.row_variable, Const(0, span), length, Const(1, span), span), (statement,), -1, span)

    def length_of(self, row: Expr) -> int:
        """The length of a row for this call."""
        kind = self.type_of(row)
        length = self.facts.literal_length(kind.lengths[0]) if kind.rank == 1 else None
        if length is None:
            raise NotElementwiseError
        return length

    def overlaps(self, target: Var | Subscript, value: Expr) -> bool:
        """Whether the right side reads the array which is written at other places of the row."""
        array = target.base.name if isinstance(target, Subscript) else target.name
        reads = [part for part in every(Subscript, value) if part.base.name == array]
        pattern = self.pattern(target)
        return any(self.type_of(part).rank > 0 and self.pattern(part) != pattern for part in reads)

    def pattern(self, row: Var | Subscript) -> tuple[bool, ...]:
        """Which axes of the array are scalar subscripts."""
        name, index = (row.base.name, row.index) if isinstance(row, Subscript) else (row.name, ())
        rank = self.facts.typing.name(name).rank
        given = tuple(not isinstance(part, Slice) for part in index)
        return (*given, *(False,) * (rank - len(given)))

    # ------------------------------------------------------------ elements

    def element(self, expr: Expr, length: int) -> Expr:
        """Element number `row_variable` of a row expression; a scalar expression as it is."""
        kind = self.type_of(expr)
        if kind.rank == 0:
            return self.scalar(expr)
        if self.length_of(expr) != length:
            raise NotElementwiseError

        def inner(part: Expr) -> Expr:
            return self.element(part, length)

        match expr:
            case Var(name):
                return self.element_of_name(name, expr.span)
            case Subscript():
                return self.element_of_row(expr)
            case Unary(op, operand) if op != "not":
                return Unary(op, inner(operand), expr.span)
            case Binary("**", left, Const(0.5)) if self.type_of(left).rank:  # so NumPy does for rows
                return Call("np.sqrt", (inner(left),), expr.span)
            case Binary(op, left, right) if op != "@":
                return Binary(op, inner(left), inner(right), expr.span)
            case Compare(ops, operands) if len(ops) == 1:
                return Compare(ops, tuple(inner(operand) for operand in operands), expr.span)
            case Call(name, (owner,)) if form_of(name) is Form.COPY:
                return inner(owner)
            case Call(name) if (row := known(name)) and row.fill is not None:
                return Const(row.fill, expr.span)
            case Call("np.where", (test, then, orelse)):
                return Choose(inner(test), inner(then), inner(orelse), expr.span)
            case Call(".astype", (owner, Dtype(dtype))):
                return Call(f"np.{dtype}", (inner(owner),), expr.span)
            case Call(name, arguments, keywords=()) if is_elementwise(name) or is_dtype(name) or name == "abs":
                return Call(name, tuple(inner(argument) for argument in arguments), expr.span)
            case _:
                raise NotElementwiseError

    def element_of_name(self, name: str, span: Span) -> Expr:
        if name not in self.buffers and self.facts.array(name) is None:
            raise NotElementwiseError
        return Subscript(Var(name, span), (Var(self.row_variable, span),), span)

    def element_of_row(self, row: Subscript) -> Expr:
        """Element number `row_variable` of a row; of a matrix, that row."""
        if self.facts.array(row.base.name) is None:
            raise NotElementwiseError
        pattern = self.pattern(row)
        parts = [*row.index, *[Slice(None, None, None, row.span)] * (len(pattern) - len(row.index))]
        is_whole = all(p.lower is p.upper is p.step is None for p in parts if isinstance(p, Slice))
        if not is_whole or pattern.count(False) != self.type_of(row).rank:
            raise NotElementwiseError
        first = pattern.index(False)
        index = tuple(
            Var(self.row_variable, row.span) if axis == first
            else part if isinstance(part, Slice) else self.row_index(row, axis, part)
            for axis, part in enumerate(parts)
        )  # fmt: skip
        return Subscript(row.base, index, row.span)

    def row_index(self, row: Subscript, axis: int, part: Expr) -> Expr:
        """A subscript of a row, computed once before the loop, and checked there where it is not proved."""
        if self.type_of(part).rank > 0:
            raise NotElementwiseError
        if self.facts.is_proved(row, axis) or (isinstance(part, Var) and part.name in self.scope.row_variables):
            return self.scalar(part)
        arguments = (row.base, Const(axis, part.span), self.scalar(part))
        return self.named("at", Call(CHECKED, arguments, row.span), INT)

    def scalar(self, expr: Expr) -> Expr:
        """A scalar of a row expression; one that reads memory or calls a function is computed before the loop."""
        if all(self.is_plain(part) for part in walk(expr)):
            return expr
        return self.named("factor", self.without_folds(expr), self.type_of(expr))

    def is_plain(self, part: Node) -> bool:
        """Whether a part of a scalar can be computed for every element: no product of rows, no check of a divisor."""
        match part:
            case Binary(op, left, right):
                return op != "@" and not self.scope.may_divide_by_zero(op, left, right)
            case _:
                return isinstance(part, Var | Const | Unary | Dim)

    def named(self, wish: str, value: Expr, kind: ValueType) -> Var:
        name = self.scope.declare(wish, kind)
        self.before.append(Assign(Var(name, value.span), value, self.span))
        return Var(name, value.span)

    # ------------------------------------------------------------ folds

    def with_folds_before(self, statement: Assign | Update) -> list[Stmt]:
        """A scalar statement with the sums and products of rows in it taken out."""
        value = self.without_folds(statement.value)
        if not self.before:
            raise NotElementwiseError
        target = statement.target
        assert isinstance(target, Var | Subscript)
        if isinstance(statement, Update):
            return [*self.before, Update(target, statement.op, value, statement.span)]
        return [*self.before, Assign(target, value, statement.span)]

    def without_folds(self, expr: Expr) -> Expr:
        if any(isinstance(part, Choose | Logic) or is_chain(part) for part in walk(expr)):
            raise NotElementwiseError  # a fold in it may not be evaluated
        return rewrite(expr, self.fold)

    def fold(self, expr: Expr) -> Expr:
        match expr:
            case Binary("@", left, right):
                return self.sum_of(expr, self.product(left, right))
            case Call(name, (left, right), keywords=()) if form_of(name) is Form.PRODUCT:
                return self.sum_of(expr, self.product(left, right))
            case Call(name, (row,), keywords=()) if form_of(name) is Form.SUM and self.type_of(row).rank == 1:
                return self.sum_of(expr, row)
            case Call("np.linalg.norm", (row,), keywords=()) if self.type_of(row).rank == 1:
                if self.type_of(row).dtype[0] != "f":  # NumPy computes the squares as floats
                    row = Call(".astype", (row, Dtype("float64", expr.span)), expr.span)
                return Call("np.sqrt", (self.sum_of(expr, self.product(row, row)),), expr.span)
            case _:
                return expr

    def product(self, left: Expr, right: Expr) -> Expr:
        if not self.type_of(left).rank == self.type_of(right).rank == 1:
            raise NotElementwiseError
        if self.length_of(left) != self.length_of(right):
            raise NotElementwiseError
        return Binary("*", left, right, left.span)

    def sum_of(self, expr: Expr, row: Expr) -> Expr:
        kind, span = self.type_of(expr), expr.span
        total = self.scope.declare("total", kind)
        outer, self.row_variable = self.row_variable, self.scope.declare_row_variable()
        term = self.element(row, self.length_of(row))
        self.before.append(Assign(Var(total, span), Const(0, span), self.span))
        self.before.append(self.loop(Update(Var(total, span), "+", term, self.span), row))
        self.row_variable = outer
        return Var(total, span)


def _whole(axes: int, span: Span) -> tuple[Slice, ...]:
    return (Slice(None, None, None, span),) * axes


def is_chain(node: Node) -> bool:
    """Whether it is a comparison whose last operands may not be evaluated: `a < b < c`."""
    return isinstance(node, Compare) and len(node.ops) > 1
