"""Methods of NumPy's functions of each element, `np.add.at`: refused, with what to write instead."""

from __future__ import annotations

import ast

import numpy as np

from orion.frontend.parse_calls import BEFORE
from orion.frontend.scope import Scope

OPERATORS = {
    np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/", np.floor_divide: "//", np.remainder: "%",
    np.power: "**", np.bitwise_and: "&", np.bitwise_or: "|", np.bitwise_xor: "^",
    np.left_shift: "<<", np.right_shift: ">>",
}  # fmt: skip
FOLDS = {np.add: "np.sum", np.multiply: "np.prod", np.maximum: "np.max", np.minimum: "np.min"}
"""What their `reduce` is called."""


def refuse_ufunc_method(node: ast.Call, scope: Scope) -> None:
    """Raise UnsupportedLoopError for a call of such a method."""
    match node.func:
        case ast.Attribute(owner, method) if isinstance(ufunc := scope.value(owner), np.ufunc):
            pass
        case _:
            return
    why = f"of `{ast.unparse(owner)}` only calls are compiled"
    hint = f"write it as a loop, or {BEFORE}".format(ast.unparse(node))
    text = None
    if method == "at":
        hint = _in_a_loop(node, owner, ufunc, scope) or hint
    elif method == "reduce" and ufunc in FOLDS and node.args:
        text = _as_fold(node, FOLDS[ufunc])
        hint = f"write `{text}`"
    raise scope.refuse(node, f"`{ast.unparse(node.func)}` is not supported", why, hint, replaced_by=text)


def _as_fold(node: ast.Call, name: str) -> str:
    """`np.add.reduce(A, 1)` as `np.sum(A, 1)`; along the first axis where the call names none."""
    has_axis = len(node.args) > 1 or any(keyword.arg == "axis" for keyword in node.keywords)
    first = [] if has_axis else [ast.keyword("axis", ast.Constant(0))]
    return ast.unparse(ast.Call(ast.Name(name), node.args, [*node.keywords, *first]))


def _in_a_loop(node: ast.Call, owner: ast.expr, ufunc: np.ufunc, scope: Scope) -> str:
    """What to write for `np.add.at(array, subscript, value)`; empty where it is called otherwise. Only types tell
    whether a subscript is a number or an array: an element of something is taken for a number."""
    if len(node.args) not in (2, 3) or node.keywords:
        return ""
    array, index, *values = node.args
    place, name = scope.free("k"), ast.unparse(index)
    target = ast.unparse(ast.Subscript(array, index, ast.Load()))
    one = _with_one(target, [ast.unparse(value) for value in values], owner, ufunc)
    if not isinstance(index, ast.Name):
        return f"write `{one}`; where that picks several elements, so for each of them, in a loop"
    if name in scope.counters:
        return f"write `{one}`"
    each = [_at(value, place) for value in values]
    loop = _with_one(f"{ast.unparse(array)}[{_at(index, place)}]", each, owner, ufunc)
    return f"write `{loop}` in a loop, `for {place} in range(len({name})):`; where `{name}` is a number, `{one}`"


def _at(value: ast.expr, place: str) -> str:
    """An element of an array; a number that is written out stays what it is."""
    text = ast.unparse(value)
    match value:
        case ast.Constant() | ast.UnaryOp(_, ast.Constant()):
            return text
        case ast.Name() | ast.Subscript() | ast.Attribute() | ast.Call():
            return f"{text}[{place}]"
    return f"({text})[{place}]"


def _with_one(target: str, values: list[str], owner: ast.expr, ufunc: np.ufunc) -> str:
    """The statement that changes one element."""
    if values and ufunc in OPERATORS:
        return f"{target} {OPERATORS[ufunc]}= {values[0]}"
    return f"{target} = {ast.unparse(owner)}({', '.join([target, *values])})"
