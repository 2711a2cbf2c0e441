"""Scalars made from rows in registers: dot products, sums, extrema, means and norms."""

from __future__ import annotations

from orion.ir.nodes import Binary, Call, Dtype, Expr
from orion.kernel.emit.code import Code, call, infix, number
from orion.kernel.rows.linear import render
from orion.kernel.rows.rows import Rows
from orion.kernel.rows.terms import NotInRegistersError
from orion.typing.functions import Form, form_of

FOLDS = {"np.max": "row_max", ".max": "row_max", "np.min": "row_min", ".min": "row_min"}


class Folds(Rows):
    """Emits folds of rows in registers.

    While `only_registers` is True, a fold of rows that are not in registers raises NotInRegistersError; else it is
    left to functions of rows in memory.
    """

    only_registers = False

    def call(self, expr: Call) -> Code:
        kind = self.type_of(expr)
        if kind.rank == 0:
            folded = self.attempt(lambda: self.fold(expr))
            if folded is not None:
                return self.converted(folded, kind.dtype)
            if self.only_registers and self.takes_a_row(expr.arguments):
                raise NotInRegistersError
        return super().call(expr)

    def takes_a_row(self, arguments: tuple[Expr, ...]) -> bool:
        return any(not isinstance(argument, Dtype) and self.type_of(argument).rank == 1 for argument in arguments)

    def binary(self, op: str, left: Expr, right: Expr, expr: Expr) -> Code:
        kind = self.type_of(expr)
        if op == "@" and kind.rank == 0:
            product = self.attempt(lambda: self.dot(left, right, kind.dtype))
            if product is not None:
                return product
            if self.only_registers:
                raise NotInRegistersError
        return super().binary(op, left, right, expr)

    def fold(self, expr: Call) -> Code | None:
        """A dot product, sum, extremum, mean or norm of rows in registers; None for any other call."""
        name, arguments = expr.function, expr.arguments
        dtype = self.type_of(expr).dtype
        if expr.keywords:
            return None
        if form_of(name) is Form.PRODUCT and len(arguments) == 2:
            return self.dot(*arguments, dtype)
        if len(arguments) != 1 or self.type_of(arguments[0]).rank != 1:
            return None
        (argument,) = arguments
        if form_of(name) is Form.SUM:
            return self.sum(argument, dtype)
        if name in FOLDS:
            return call(FOLDS[name], self.row(argument), dtype=self.type_of(argument).dtype)
        if name in ("np.mean", ".mean"):
            length = self.facts.register_row(self.type_of(argument))
            total = self.sum(argument, dtype)
            return infix("/", total, number(length or 0, dtype), dtype)
        if name == "np.linalg.norm":
            return call("np.sqrt", self.dot(argument, argument, dtype), dtype=dtype)
        return None

    def dot(self, left: Expr, right: Expr, dtype: str) -> Code:
        kinds = self.type_of(left), self.type_of(right)
        if any(kind.rank != 1 for kind in kinds):
            raise NotInRegistersError
        length = self.facts.register_row(kinds[0])
        if length is None:
            raise NotInRegistersError
        rows = [render(self.term(part, length, dtype), dtype, self.facts.fastmath).code for part in (left, right)]
        return call("dot" if self.facts.fastmath else "dot_in_order", *rows, dtype=dtype)

    def sum(self, argument: Expr, dtype: str) -> Code:
        match argument:
            case Binary("*", left, right) if (
                self.facts.fastmath and self.takes_a_row((left,)) and self.takes_a_row((right,))
            ):
                return self.dot(left, right, dtype)
        function = "row_sum" if self.facts.fastmath else "row_sum_in_order"
        return call(function, self.row(argument, in_sum=True), dtype=self.type_of(argument).dtype)
