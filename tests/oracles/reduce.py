"""Makes a failing nest smaller: statements, branches and operands go, as long as it fails in the same way."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

import numpy as np

from tests.oracles.bounded import SIZES
from tests.oracles.nests import HELPER, Nest

Fails = Callable[[Nest], bool]
BLOCKS = ("body", "orelse")


def reduced(nest: Nest, fails: Fails, seconds: float = 60.0) -> Nest:
    """A nest that cannot be made simpler by one step, or the best that is found in that time."""
    end = monotonic() + seconds
    while True:
        for simpler in simpler_nests(nest):
            if monotonic() > end:
                return nest
            if runs(simpler) and fails(simpler):
                nest = simpler
                break
        else:
            return nest


def runs(nest: Nest) -> bool:
    """Whether the undecorated function can be run on the arguments of both sizes, or leaves an array."""
    try:
        with np.errstate(all="ignore"):
            for size in SIZES:
                nest.function()(**nest.arguments(size))
    except IndexError:
        return True
    except Exception:
        return False
    return True


def simpler_nests(nest: Nest) -> Iterator[Nest]:
    """All nests that are one step simpler, the biggest steps first."""
    tree = ast.parse(nest.source)
    yield from (with_tree(nest, found) for found in without_statements(tree))
    yield from (with_tree(nest, found) for found in with_smaller_expressions(tree))
    for name, (small, large) in nest.integers.items():
        if small > 2:
            yield replace(nest, integers={**nest.integers, name: (small - 1, large - 1)})


def with_tree(nest: Nest, tree: ast.Module) -> Nest:
    """The nest with another function; parameters that it does not use are left out."""
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    used = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    tree.body = [one for one in tree.body if one is function or HELPER in used]
    function.args.args = [argument for argument in function.args.args if argument.arg in used]
    kept = {argument.arg for argument in function.args.args}
    arrays = {name: spec for name, spec in nest.arrays.items() if name in kept}
    integers = {name: pair for name, pair in nest.integers.items() if name in kept}
    scalars = {name: pair for name, pair in nest.scalars.items() if name in kept}
    source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return replace(nest, source=source, arrays=arrays, integers=integers, scalars=scalars)


def without_statements(tree: ast.Module) -> Iterator[ast.Module]:
    """The function without one statement, and with a block of a branch or loop in place of that."""
    for number, node in enumerate(ast.walk(tree)):
        for block in BLOCKS:
            statements = getattr(node, block, None)
            if not isinstance(statements, list) or isinstance(node, ast.Module):
                continue
            for position, statement in enumerate(statements):
                for instead in ([], getattr(statement, "body", []), getattr(statement, "orelse", [])):
                    if not instead and (len(statements) == 1 and block == "body"):
                        continue
                    found = copy.deepcopy(tree)
                    getattr(nth(found, number), block)[position : position + 1] = copy.deepcopy(instead)
                    yield found


def with_smaller_expressions(tree: ast.Module) -> Iterator[ast.Module]:
    """The function with one expression replaced by a part of it, or a number by one that is nearer to 0."""
    for number, node in enumerate(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            for position, child in enumerate(value if isinstance(value, list) else [value]):
                for part in parts_of(child, node):
                    found = copy.deepcopy(tree)
                    owner = nth(found, number)
                    if isinstance(value, list):
                        getattr(owner, name)[position] = copy.deepcopy(part)
                    else:
                        setattr(owner, name, copy.deepcopy(part))
                    yield found
    for number, node in enumerate(ast.walk(tree)):  # range(a, b, c) → range(a, b) → range(b)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            for kept in ((1,), (0, 1)):
                if len(node.args) > len(kept):
                    found = copy.deepcopy(tree)
                    call = nth(found, number)
                    call.args = [call.args[k] for k in kept]  # type: ignore[attr-defined]
                    yield found


def parts_of(node: object, parent: ast.AST) -> Iterator[ast.expr]:
    """What an expression may be replaced by."""
    match node:
        case ast.BinOp(left, _, right):
            yield from (left, right)
        case ast.IfExp(_, then, orelse):
            yield from (then, orelse)
        case ast.Call(ast.Name(name), arguments) if name != "range":
            yield from arguments
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.BoolOp(_, operands):
            yield from operands
        case ast.Tuple(items) if isinstance(parent, ast.Return):
            yield from items
        case ast.Subscript(_, _, ast.Load()):
            yield ast.Constant(1)
        case ast.Constant(int(number)) if number > 0:
            yield ast.Constant(number - 1)
        case _:
            pass


def nth(tree: ast.Module, number: int) -> ast.AST:
    """The node that `ast.walk` comes to as number `number`."""
    return next(node for position, node in enumerate(ast.walk(tree)) if position == number)
