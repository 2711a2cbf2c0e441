"""Functions whose variables have other names: of functions that generated text calls, or of what it is made of."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Iterator
from dataclasses import replace

from orion.ir.python_names import MODULES
from orion.kernel.emit.names import RESERVED
from tests.oracles.nests import Nest
from tests.oracles.spelling import Choose

PYTHONS = tuple(name for name in dir(builtins) if name[0].islower() and not keyword.iskeyword(name))
SKELETONS = ("worker", "worker_", "bars", "kept", "skeleton", "numbers", "tile_2", "walk_2", "turn", "state", "value0")
NAMES = tuple(sorted({*PYTHONS, *MODULES, *RESERVED, *SKELETONS}))
"""All names that generated text gives a meaning of its own."""

COMMON = ("max", "min", "abs", "len", "int", "float", "range", "sum", "np", "math", "orion", "tile", "walk", "control")
"""Those that it is most likely to use."""


def with_other_names(nest: Nest, choose: Choose) -> Nest:
    """The nest with half of its variables called like something else."""
    tree = ast.parse(nest.source)
    bound = [name for name in dict.fromkeys(bound_names(tree)) if "row" not in name]  # `Nest.has_views` looks for it
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(bound)
    others: dict[str, str] = {}
    for name in bound:
        other = choose(COMMON) if choose((True, False)) else choose(NAMES)
        if choose((True, False)) and other not in taken:
            others[name] = other
            taken.add(other)
    _Renamer(others).visit(tree)
    arrays, integers, scalars = (
        {others.get(name, name): value for name, value in group.items()}
        for group in (nest.arrays, nest.integers, nest.scalars)
    )
    return replace(nest, source=ast.unparse(tree) + "\n", arrays=arrays, integers=integers, scalars=scalars)


def bound_names(tree: ast.AST) -> Iterator[str]:
    """The parameters and variables of a function, as often as they are bound."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


class _Renamer(ast.NodeTransformer):
    def __init__(self, others: dict[str, str]) -> None:
        self.others = others

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.others.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self.others.get(node.arg, node.arg))
