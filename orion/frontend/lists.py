"""Lists that a loop makes item by item, as the arrays that they are in the end.

    losses = []                          for i in range(n):            # with `losses` a new array of n numbers before
    for i in range(n):                       losses[i] = e
        losses.append(e)                 return losses                 # a list again for the caller
    return losses

    np.array([e for x in xs])            the same, and an array of it

Each iteration of one loop appends one item, so that there are as many as trips; after the loop the list is returned, or
functions are given it that do the same with an array. What its items are is told where types are known
(`orion.passes.lists`).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set

import numpy as np

ARRAYS = ("array", "asarray")
"""NumPy's functions that make an array of a list."""


def growing_lists(definition: ast.FunctionDef, outer: Mapping[str, object]) -> dict[str, ast.For]:
    """The names of such lists in the source of a function, with the loops that make them; `outer` are the names that it
    has from outside, of which some are NumPy's."""
    numpys = frozenset(name for name, value in outer.items() if value is np)
    nodes = [*ast.walk(definition)]
    used = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    scoped = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    scoped |= {part.arg for part in nodes if isinstance(part, ast.arg)}
    found = {}
    for block in _blocks(definition):
        for at, statement in enumerate(block):
            name = new_list(statement)
            if name is None or name in scoped:
                continue
            loop = next((one for one in block[at + 1 :] if name in _names(one)), None)
            if not isinstance(loop, ast.For) or not _appends(loop, name):
                continue
            rest = block[block.index(loop) + 1 :]
            if used[name] == 2 + sum(_uses(one, name, numpys) for one in rest) and _names(loop).count(name) == 1:
                found[name] = loop
    return found


def appended(statement: ast.Expr) -> tuple[str, ast.expr] | None:
    """The list and the item of `name.append(item)`."""
    match statement.value:
        case ast.Call(ast.Attribute(ast.Name(name), "append"), [item], []) if not isinstance(item, ast.Starred):
            return name, item
        case _:
            return None


def new_list(statement: ast.stmt) -> str | None:
    """The name that a statement gives a new list."""
    match statement:
        case ast.Assign([ast.Name(name)], ast.List([])) | ast.AnnAssign(ast.Name(name), _, ast.List([])):
            return name
        case _:
            return None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """All sequences of statements in a function, but for those of functions in it."""
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
            for statement in block:
                if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
                    yield from _blocks(statement)


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _appends(loop: ast.For, name: str) -> bool:
    """Whether each iteration appends one item to a list, and none leaves the loop or ends before."""
    items = [found for one in loop.body if isinstance(one, ast.Expr) and (found := appended(one)) and found[0] == name]
    returns = any(isinstance(node, ast.Return) for node in ast.walk(loop))
    leaves = returns or any(isinstance(one, ast.Break | ast.Continue) for one in _own_level(loop.body))
    return len(items) == 1 and name not in _names(items[0][1]) and not leaves and not loop.orelse


def _own_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop that are in no further loop."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.With):
            yield from _own_level([*statement.body, *getattr(statement, "orelse", ())])


def _uses(node: ast.AST, name: str, numpys: Set[str]) -> int:
    """How often a list is returned, counted, or what a function of NumPy's is given alone."""
    match node:
        case ast.Return(ast.Name(other)) if other == name:
            return 1
        case ast.Return(ast.Tuple(items)):
            whole = sum(isinstance(item, ast.Name) and item.id == name for item in items)
            return whole + sum(_uses(item, name, numpys) for item in items)
        case ast.Call(ast.Attribute(ast.Name(module)), [ast.Name(other)], []) if other == name:
            return int(module in numpys)
        case ast.Call(ast.Name("len"), [ast.Name(other)], []) if other == name:
            return 1
        case _:
            return sum(_uses(part, name, numpys) for part in ast.iter_child_nodes(node))


# ---------------------------------------------------------------- comprehensions


def write_lists_apart(definition: ast.FunctionDef) -> None:
    """Write `np.array([e for x in xs])`, as the value of an assignment or a `return`, as a loop that makes a list, and
    `a, b = [], 0.0` as two assignments."""
    taken = {*_names(definition), *(part.arg for part in ast.walk(definition) if isinstance(part, ast.arg))}
    for block in [*_blocks(definition)]:
        changed: list[ast.stmt] = []
        for statement in (one for whole in block for one in _one_by_one(whole)):
            changed += [*_as_loop(statement, taken, _names(definition)), statement]
        block[:] = changed


def _one_by_one(statement: ast.stmt) -> list[ast.stmt]:
    match statement:
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
            names = {name for part in targets for name in _names(part)}
            used = {name for part in values for name in _names(part)}
            are_names = all(isinstance(target, ast.Name) for target in targets)
            has_lists = any(isinstance(value, ast.List) and not value.elts for value in values)
            if are_names and has_lists and used.isdisjoint(names):
                pairs = zip(targets, values, strict=True)
                return [ast.copy_location(ast.Assign([target], value), statement) for target, value in pairs]
    return [statement]


def _as_loop(statement: ast.stmt, taken: set[str], names: list[str]) -> list[ast.stmt]:
    """The statements before one of which a comprehension is the value; it is changed to use the list."""
    match statement:
        case ast.Assign([ast.Name()], ast.Call() as call) | ast.Return(ast.Call() as call):
            pass
        case _:
            return []
    match call:
        case ast.Call(
            ast.Attribute(ast.Name(), function),
            [ast.ListComp(item, [ast.comprehension(target, iterable, [], 0)]) as made],
            [],
        ) if function in ARRAYS and not any(isinstance(node, ast.NamedExpr | ast.Lambda) for node in ast.walk(made)):
            pass
        case _:
            return []
    own = [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
    others = Counter(names) - Counter([*_names(item), *own])
    renamed = {name: _fresh(name, taken) for name in own if name in others}
    for part in (target, item):
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id in renamed:
                node.id = renamed[node.id]
    name = _fresh(f"items_{statement.lineno}", taken)
    first = ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load()), lineno=made.lineno)
    append = ast.Expr(ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append"), [item], []))
    loop = ast.For(target, iterable, [append], [])
    call.args = [ast.copy_location(ast.Name(name, ast.Load()), made)]
    for new in (first, loop):
        for node in ast.walk(new):
            if not hasattr(node, "lineno") or node in (first, loop):
                ast.copy_location(node, made)
    return [first, loop]


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
