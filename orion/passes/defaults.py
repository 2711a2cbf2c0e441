"""Numbers that a call leaves to their defaults are constants of the function that it runs.

    def codes(x, out, bits=16):             called without `bits`
        for i in range(len(x)):                 for i in range(len(x)):
            for b in range(bits):                   for b in range(16):

Numba does the same: the loop over b is unrolled then. A call with `bits` runs another function, for any value of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orion.ir.assigned import assigned_names
from orion.ir.constants import as_literal
from orion.ir.function import Function
from orion.ir.nodes import Bind, Const, Count, Dim, Elements, Expr, Subscript, Var, every
from orion.ir.rewriting import rewrite, with_new

Defaults = Mapping[str, int | float | bool]

NO_DEFAULTS: Defaults = MappingProxyType({})


def with_defaults(function: Function, defaults: Defaults) -> Function:
    """The function for calls that leave these of its parameters to their defaults: those that it only reads are none of
    its parameters any more, but among its constants."""
    others = assigned_names(function.body) | {node.base.name for node in every(Subscript, *function.body)}
    others |= {node.array for node in every((Dim, Count, Elements), *function.body)}
    others |= {name for node in every(Bind, *function.body) for name in (node.name, node.row.base.name)}
    known = {name: value for name, value in defaults.items() if name in function.params and name not in others}
    known = {name: value for name, value in known.items() if isinstance(value, float) or abs(value) < 2**63}
    if not known:
        return function

    def change(expr: Expr) -> Expr:
        return as_literal(Const(known[expr.name], expr.span)) if isinstance(expr, Var) and expr.name in known else expr

    body = tuple(rewrite(statement, change) for statement in function.body)
    params = tuple(name for name in function.params if name not in known)
    return with_new(function, body=body, params=params, constants=(*function.constants, *known.items()))
