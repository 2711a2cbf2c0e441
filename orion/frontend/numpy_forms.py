"""Calls of NumPy that are written as others: deviations along an axis, and the limits of dtypes.

| in the source | becomes |
|---|---|
| `np.var(A, axis=0)`, `A.var(0)` | `np.mean(np.square(A - np.expand_dims(np.mean(A, axis=0), 0)), axis=0)` |
| `np.std(A, axis=0)` | `np.sqrt` of that |
| `np.iinfo(np.int64).max`, `np.finfo(float).eps` | the number |
| `np.finfo(a.dtype).eps` | `finfo:eps(a.dtype)`, the number once types are known (`orion.passes.attributes`) |
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from orion.frontend.scope import Scope, constant
from orion.ir.nodes import Binary, Call, Expr
from orion.typing.functions import FLOAT_LIMITS, INTEGER_LIMITS

Parse = Callable[[ast.expr, Scope], Expr]
LIMITS = {np.iinfo: ("iinfo", INTEGER_LIMITS), np.finfo: ("finfo", FLOAT_LIMITS)}
"""NumPy's classes of limits → what they are called, and which of their attributes are known."""


def deviation_along(node: ast.Call, scope: Scope, parse: Parse) -> Expr | None:
    """A deviation or variance along one axis of an array with a name, or of a part of one; None for any other call."""
    name, array, rest = _called(node, scope)
    axis = rest[0] if len(rest) == 1 and not node.keywords else None
    if not rest and len(node.keywords) == 1 and node.keywords[0].arg == "axis":
        axis = node.keywords[0].value
    if name not in ("std", "var") or axis is None or not isinstance(array, ast.Name | ast.Subscript):
        return None
    span, along, values = scope.span(node), parse(axis, scope), parse(array, scope)

    def mean(of: Expr) -> Expr:
        return Call("np.mean", (of,), span, (("axis", along),))

    apart = Binary("-", values, Call("np.expand_dims", (mean(values), along), span), span)
    found = mean(Call("np.square", (apart,), span))
    return found if name == "var" else Call("np.sqrt", (found,), span)


def _called(node: ast.Call, scope: Scope) -> tuple[str, ast.expr | None, list[ast.expr]]:
    """The function of NumPy's that is called, or the method, the array that it is given first, and what it is given
    beside that."""
    function = scope.value(node.func)
    for name in ("std", "var"):
        if function is getattr(np, name) and node.args:
            return name, node.args[0], node.args[1:]
    match node.func:
        case ast.Attribute(ast.Name(owner) as array, name) if scope.is_plain(owner):
            return name, array, node.args
        case _:
            return "", None, []


def limit_of_dtype(node: ast.Attribute, scope: Scope, parse: Parse) -> Expr | None:
    """A limit of a dtype: a number, or what becomes one once types are known; None for any other attribute."""
    match node.value:
        case ast.Call(function, [given], []) if (found := LIMITS.get(scope.value(function))) is not None:  # type: ignore[call-overload]
            name, known = found
        case _:
            return None
    span = scope.span(node)
    if node.attr in known:
        if isinstance(given, ast.Attribute) and given.attr == "dtype" and not scope.is_helper:
            return Call(f"{name}:{node.attr}", (parse(given, scope),), span)
        if (limit := dtype_limit(name, node.attr, _dtype_of(given, scope))) is not None:
            return constant(limit, span)
    what = f"`{ast.unparse(node)}` is not supported"
    why = f"of a dtype that is named, or an array's, {', '.join(f'`{one}`' for one in known)} are known"
    raise scope.refuse(node, what, why, f"write `np.{name}(x.dtype).max`, or pass `{ast.unparse(node)}` as an argument")


def _dtype_of(given: ast.expr, scope: Scope) -> object:
    value = given.value if isinstance(given, ast.Constant) else scope.value(given)
    return value if isinstance(value, type | str | np.dtype) else None


def dtype_limit(name: str, attribute: str, dtype: object) -> object:
    """A limit of a dtype; None where it has none of that kind.

    >>> dtype_limit("iinfo", "max", "int8"), dtype_limit("finfo", "eps", np.float32), dtype_limit("iinfo", "max", float)
    (127, np.float32(1.1920929e-07), None)
    """
    try:
        return getattr(np.iinfo(dtype) if name == "iinfo" else np.finfo(dtype), attribute)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return None
