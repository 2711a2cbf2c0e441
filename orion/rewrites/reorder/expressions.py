"""isl's expressions → expressions of the loop language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from orion.ir.nodes import INTEGER, Binary, Call, Choose, Compare, Const, Dim, Expr, Logic, Unary, Var
from orion.ir.types import ArrayType, ScalarType, SparseType, Types
from orion.sets.names import extent_name, isl_name
from orion.source import Span

if TYPE_CHECKING:
    import islpy as isl

BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "//", "fdiv_q": "//", "pdiv_q": "//", "pdiv_r": "%", "zdiv_r": "%"}
COMPARE = {"eq": "==", "le": "<=", "lt": "<", "ge": ">=", "gt": ">"}
LOGIC = {"and_": "and", "and_then": "and", "or_": "or", "or_else": "or"}
EXTREME = ("min", "max")


def parameter_expressions(types: Types, span: Span) -> dict[str, Expr]:
    """What the isl parameters of array extents stand for. All other parameters are scalars of the same name."""
    found: dict[str, Expr] = {}
    for name, kind in types.items():
        if isinstance(kind, ArrayType | SparseType):
            found |= {extent_name(name, axis): Dim(name, axis, span) for axis in range(kind.ndim)}
        else:
            found[isl_name(name)] = as_python_integer(Var(name, span), kind)
    return found


def as_python_integer(scalar: Var, kind: ScalarType) -> Expr:
    """A scalar in bounds and subscripts that are made: what isl computes with has no dtype that it could leave."""
    is_narrow = np.dtype(kind.dtype).kind in "iu" and kind.dtype != "int64"
    return Call(INTEGER, (scalar,), scalar.span) if is_narrow else scalar


def from_isl(expr: isl.AstExpr, names: Mapping[str, Expr], span: Span) -> Expr:
    """The expression that isl made, with its names looked up. KeyError for a name that is not among `names`."""
    import islpy as isl

    kind = expr.get_type()
    if kind == isl.ast_expr_type.id:
        return names[expr.id_get_id().get_name()]
    if kind == isl.ast_expr_type.int:
        return Const(int(expr.int_get_val().to_python()), span)
    parts = [from_isl(expr.op_get_arg(k), names, span) for k in range(expr.op_get_n_arg())]
    return _operation(operator_name(expr), parts, span)


def operator_name(expr: isl.AstExpr) -> str:
    """The name of the operator of an expression of type op. KeyError for one that the loop language has not."""
    import islpy as isl

    wanted = expr.op_get_type()
    names = (*BINARY, *COMPARE, *LOGIC, *EXTREME, "minus", "cond", "select", "call")
    for name in names:
        if getattr(isl.ast_expr_op_type, name) == wanted:
            return name
    raise KeyError(wanted)


def _operation(name: str, parts: list[Expr], span: Span) -> Expr:
    if name in EXTREME:
        return reduce(lambda left, right: Call(name, (left, right), span), parts)
    if name in COMPARE:
        return Compare((COMPARE[name],), tuple(parts), span)
    if name in LOGIC:
        return Logic(LOGIC[name], tuple(parts), span)
    if name == "minus":
        return Unary("-", parts[0], span)
    if name in ("cond", "select"):
        return Choose(parts[0], parts[1], parts[2], span)
    return Binary(BINARY[name], parts[0], parts[1], span)
