"""Subscripts that go around the end of an axis, `a[(i - 1) % a.shape[0]]`, and values that `and` and `or` decide on.

No set of isl's says where the remainder by a length lies, which may be any: it is inside of its array all the same.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from tests.oracles.nests import Nest
from tests.oracles.spelling import Choose, number, plus, times

NUMBERS = {"f": 0.25, "i": 1, "u": 1}
"""What a value is joined with, by the kind of its array's dtype."""


def going_around(nest: Nest, choose: Choose) -> Nest:
    """The nest with some subscripts of elements taken modulo the length of their axis, and some values joined."""
    tree = ast.parse(nest.source)
    _Turner(nest, choose).visit(tree)
    return replace(nest, source=ast.unparse(ast.fix_missing_locations(tree)) + "\n")


class _Turner(ast.NodeTransformer):
    def __init__(self, nest: Nest, choose: Choose) -> None:
        self.nest, self.choose = nest, choose

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not self.is_of_array(node):
            return node
        assert isinstance(node.value, ast.Name)
        axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        turned = [self.turned(part, node.value.id, axis) for axis, part in enumerate(axes)]
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = turned
        else:
            node.slice = turned[0]
        return node

    def turned(self, part: ast.expr, array: str, axis: int) -> ast.expr:
        if isinstance(part, ast.Slice) or self.choose((True, True, False)):
            return part
        length = ast.parse(f"{array}.shape[{axis}]", mode="eval").body
        moved = self.choose((part, plus(part, number(-1)), plus(times(number(2), part), number(1)), times(part, part)))
        return ast.BinOp(moved, ast.Mod(), length)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        (target,) = node.targets
        if isinstance(target, ast.Subscript) and self.is_of_array(target) and self.is_element(target):
            assert isinstance(target.value, ast.Name)
            kind = np.dtype(self.nest.arrays[target.value.id].dtype).kind
            op = self.choose((None, None, None, ast.Or(), ast.And()))
            if op is not None:
                node.value = ast.BoolOp(op, [node.value, ast.Constant(NUMBERS[kind])])
        return node

    def is_of_array(self, node: ast.Subscript) -> bool:
        """Whether it is an argument's: neither that of `z.shape[0]` nor of a name for a row."""
        return isinstance(node.value, ast.Name) and node.value.id in self.nest.arrays

    def is_element(self, target: ast.Subscript) -> bool:
        axes = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        assert isinstance(target.value, ast.Name)
        has_all = len(axes) == len(self.nest.arrays[target.value.id].small)
        return has_all and not any(isinstance(axis, ast.Slice) for axis in axes)
