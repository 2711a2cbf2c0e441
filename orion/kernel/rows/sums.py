"""Updates of rows in memory, `row += …` and `row -= …`, element by element: what registers would compute, for rows of
any length and layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orion.ir.nodes import Expr, Subscript, Var
from orion.ir.spans import without_spans
from orion.kernel.emit.code import Code
from orion.kernel.emit.scalarize import NotElementwiseError, Scalarizer
from orion.kernel.rows.terms import NotInRegistersError, RowTerms
from orion.typing.value_type import ValueType

if TYPE_CHECKING:
    from orion.kernel.rows.rows import Rows


class ElementTerms(RowTerms):
    """Terms whose rows are in memory: each stands for its element number `scalarizer.row_variable`."""

    def __init__(self, scope: Rows, scalarizer: Scalarizer) -> None:
        self.scope = scope
        self.scalarizer = scalarizer
        self.elements: dict[Expr, Subscript] = {}

    def type_of(self, expr: Expr) -> ValueType:
        return self.scope.type_of(expr)

    def row_length(self, kind: ValueType) -> int | None:
        if kind.rank != 1 or kind.dtype not in ("float32", "float64"):
            return None
        return self.scope.facts.literal_length(kind.lengths[0])

    def leaf(self, expr: Subscript | Var) -> str:
        return self.scope.element(self.element(expr))

    def element(self, row: Subscript | Var) -> Subscript:
        """The element of a row; the same one for the same row, so that it is found to be the same in sums."""
        key = without_spans(row)
        if key not in self.elements:
            try:
                found = self.scalarizer.element(row, self.scalarizer.length_of(row))
            except NotElementwiseError as error:
                raise NotInRegistersError from error
            assert isinstance(found, Subscript)
            self.elements[key] = found
        return self.elements[key]

    def scalar_factor(self, expr: Expr, dtype: str) -> Code:
        return self.scope.scalar_factor(expr, dtype)
