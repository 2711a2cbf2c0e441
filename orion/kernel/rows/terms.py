"""Row expressions as operations on rows, wherever these are: in registers, or in memory, element by element.

What is computed, and how it is rounded, is decided here and in `orion.kernel.rows.linear` alone, so that it is the same
for rows of any length and layout.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from orion.ir.nodes import Binary, Call, Const, Expr, Subscript, Unary, Var
from orion.kernel.emit.code import Code
from orion.kernel.rows.linear import Apply, Leaf, RowTerm, Scalar
from orion.typing.functions import Form, form_of, known
from orion.typing.value_type import ValueType


class NotInRegistersError(Exception):
    """A row expression that has no form as operations on rows."""


class RowTerms(ABC):
    """Makes terms of row expressions; where the rows are is for classes below to say."""

    @abstractmethod
    def type_of(self, expr: Expr) -> ValueType:
        """The type of an expression."""

    @abstractmethod
    def row_length(self, kind: ValueType) -> int | None:
        """The length of a row of that type; None where it has no form here."""

    @abstractmethod
    def leaf(self, expr: Subscript | Var) -> str:
        """The code of a row of an array, or of a private one; NotInRegistersError where it has none."""

    @abstractmethod
    def scalar_factor(self, expr: Expr, dtype: str) -> Code:
        """A scalar in a row expression; given a name first where it takes work."""

    def term(self, expr: Expr, length: int, dtype: str) -> RowTerm:
        """The operations of an expression of rank 0 or 1, as part of a row of that length and dtype."""
        kind = self.type_of(expr)
        if kind.rank == 0:
            return Scalar(self.scalar_factor(expr, dtype))
        if self.row_length(kind) != length:
            raise NotInRegistersError
        if kind.dtype != dtype:
            return Apply(f"row_as_{dtype}", (self.term(expr, length, kind.dtype),))
        match expr:
            case Unary("-", operand):
                return Apply("neg", (self.term(operand, length, dtype),))
            case Unary("+", operand):
                return self.term(operand, length, dtype)
            case Binary("**", base, Const(2)):
                square = self.term(base, length, dtype)
                return Apply("*", (square, square))
            case Binary("+" | "-" | "*" | "/" as op, left, right):
                return Apply(op, (self.term(left, length, dtype), self.term(right, length, dtype)))
            case Call(name, (owner,)) if form_of(name) is Form.COPY:
                return self.term(owner, length, dtype)
            case Call(name, arguments, keywords=()) if (row := known(name)) and row.lanes:
                return Apply(row.lanes, tuple(self.term(a, length, dtype) for a in arguments))
            case Subscript() | Var():
                return Leaf(self.leaf(expr), dtype)
            case _:
                raise NotInRegistersError
