"""isl's program → statements of the loop language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.dependence.region import Statement
from orion.ir.nodes import Assign, Binary, Const, Expr, For, If, Range, Stmt, Var
from orion.passes.between import SYNTHETIC
from orion.rewrites.reorder.expressions import from_isl, operator_name
from orion.sets.affine import has_unit_step
from orion.source import Span

if TYPE_CHECKING:
    import islpy as isl


@dataclass
class Writer:
    """Turns isl's program into statements of the loop language."""

    statements: Mapping[str, Statement]
    names: Mapping[str, Expr]
    span: Span

    def statements_of(self, node: isl.AstNode) -> list[Stmt]:
        import islpy as isl

        kind = node.get_type()
        if kind == isl.ast_node_type.block:
            children = node.block_get_children()
            return [s for k in range(children.n_ast_node()) for s in self.statements_of(children.get_at(k))]
        if kind == isl.ast_node_type.if_:
            test = from_isl(node.if_get_cond(), self.names, self.span)
            orelse = self.statements_of(node.if_get_else_node()) if node.if_has_else_node() else []
            return [If(test, tuple(self.statements_of(node.if_get_then_node())), tuple(orelse), self.span)]
        if kind == isl.ast_node_type.for_:
            return [self.loop(node)]
        return self.instance(node.user_get_expr())

    def loop(self, node: isl.AstNode) -> For:
        return For(self.range(node), tuple(self.statements_of(node.for_get_body())), SYNTHETIC, self.span)

    def range(self, node: isl.AstNode) -> Range:
        """The range of a `for` node."""
        name = node.for_get_iterator().id_get_id().get_name()
        start = from_isl(node.for_get_init(), self.names, self.span)
        one = Const(1, self.span)
        if node.for_is_degenerate():
            return Range(name, start, _plus_one(start), one, self.span)
        condition = node.for_get_cond()
        stop = from_isl(condition.op_get_arg(1), self.names, self.span)
        if operator_name(condition) == "le":
            stop = _plus_one(stop)
        return Range(name, start, stop, from_isl(node.for_get_inc(), self.names, self.span), self.span)

    def instance(self, call: isl.AstExpr) -> list[Stmt]:
        """A statement, preceded by the values of its loop variables."""
        statement = self.statements[call.op_get_arg(0).id_get_id().get_name()]
        found: list[Stmt] = []
        for position, loop in enumerate(statement.loops):
            space = loop.space
            assert isinstance(space, Range)
            value = from_isl(call.op_get_arg(position + 1), self.names, self.span)
            found.append(Assign(Var(space.var, self.span), value_at(space, value), self.span))
        return [*found, *statement.body]


def value_at(space: Range, coordinate: Expr) -> Expr:
    """The value of a loop variable: its coordinate where the step is 1, that of a trip for any other step."""
    if has_unit_step(space):
        return coordinate
    trips = Binary("*", space.step, coordinate, coordinate.span)
    return Binary("+", space.start, trips, coordinate.span)


def _plus_one(expr: Expr) -> Expr:
    """expr + 1, shorter where it can be."""
    if isinstance(expr, Const) and isinstance(expr.value, int):
        return Const(expr.value + 1, expr.span)
    if isinstance(expr, Binary) and expr.op == "-" and expr.right == Const(1, expr.span):
        return expr.left
    return Binary("+", expr, Const(1, expr.span), expr.span)
