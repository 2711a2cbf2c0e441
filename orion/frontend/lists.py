"""Lists that a loop makes item by item, as the arrays that they are in the end.

    losses = []                          for i in range(n):            # with `losses` a new array of n numbers before
    for i in range(n):                       losses[i] = e
        losses.append(e)                 return losses                 # a list again for the caller
    return losses

    [e for x in xs]                      the same

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
    if not makes_lists(definition):
        return {}
    numpys = frozenset(name for name, value in outer.items() if value is np)
    used, scoped = Counter(names_of(definition)), scoped_names(definition)
    found = {}
    for block in blocks_of(definition):
        for at, statement in enumerate(block):
            name = new_list(statement)
            if name is None or name in scoped:
                continue
            loop = next((one for one in block[at + 1 :] if name in names_of(one)), None)
            if not isinstance(loop, ast.For) or not _appends(loop, name):
                continue
            rest = block[block.index(loop) + 1 :]
            if used[name] == 2 + sum(uses_of(one, name, numpys) for one in rest) and names_of(loop).count(name) == 1:
                found[name] = loop
    return found


def scoped_names(definition: ast.FunctionDef) -> set[str]:
    """The arguments of a function, and of those in it, and the names that are not its own."""
    nodes = [*ast.walk(definition)]
    scoped = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    return scoped | {part.arg for part in nodes if isinstance(part, ast.arg)}


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


def makes_lists(definition: ast.FunctionDef) -> bool:
    """Whether any statement of a function gives a name a new list."""
    return any(new_list(statement) is not None for block in blocks_of(definition) for statement in block)


def blocks_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """All sequences of statements in a function, but for those of functions in it."""
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
            for statement in block:
                if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
                    yield from blocks_of(statement)


def names_of(node: ast.AST) -> list[str]:
    """All names in some code, as often as they stand there."""
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _appends(loop: ast.For, name: str) -> bool:
    """Whether each iteration appends one item to a list, and none leaves the loop or ends before."""
    items = [found for one in loop.body if isinstance(one, ast.Expr) and (found := appended(one)) and found[0] == name]
    returns = any(isinstance(node, ast.Return) for node in ast.walk(loop))
    leaves = returns or any(isinstance(one, ast.Break | ast.Continue) for one in _own_level(loop.body))
    return len(items) == 1 and name not in names_of(items[0][1]) and not leaves and not loop.orelse


def _own_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop that are in no further loop."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.With):
            yield from _own_level([*statement.body, *getattr(statement, "orelse", ())])


def uses_of(node: ast.AST, name: str, numpys: Set[str]) -> int:
    """How often a list is returned, counted, or what a function of NumPy's is given alone."""
    match node:
        case ast.Return(ast.Name(other)) if other == name:
            return 1
        case ast.Return(ast.Tuple(items)):
            whole = sum(isinstance(item, ast.Name) and item.id == name for item in items)
            return whole + sum(uses_of(item, name, numpys) for item in items)
        case ast.Call(ast.Attribute(ast.Name(module)), [ast.Name(other)], []) if other == name:
            return int(module in numpys)
        case ast.Call(ast.Name("len"), [ast.Name(other)], []) if other == name:
            return 1
        case _:
            return sum(uses_of(part, name, numpys) for part in ast.iter_child_nodes(node))


# ---------------------------------------------------------------- comprehensions


def write_lists_apart(definition: ast.FunctionDef) -> None:
    """Write `[e for x in xs if c]` and `np.array` of it, as the value of an assignment or a `return`, as a loop that
    makes a list, `a, b = [], 0.0` as two assignments, `a = [x]` of a list that grows as `a = []`, `a.append(x)`, and
    `a = np.array(a)` of a list with another name for the list."""
    expressions = (node for node in ast.walk(definition) if isinstance(node, ast.Expr))
    growing = {found[0] for node in expressions if (found := appended(node)) is not None}
    taken = {*names_of(definition), *(part.arg for part in ast.walk(definition) if isinstance(part, ast.arg))}
    for block in [*blocks_of(definition)]:
        _name_apart(block, taken)
        changed: list[ast.stmt] = []
        apart = (one for whole in block for one in _one_by_one(whole))
        for statement in (one for whole in apart for one in _with_items(whole, growing)):
            changed += _as_loops(statement, taken, definition)
        block[:] = changed


def _name_apart(block: list[ast.stmt], taken: set[str]) -> None:
    """Give lists whose names are given an array later in the block names of their own until then."""
    for at, statement in enumerate(block):
        name = new_list(statement)
        end = next((k for k, later in enumerate(block) if k > at and _is_array_of(later, name)), None)
        if name is None or end is None:
            continue
        own, given = fresh_name(f"{name}_list", taken), block[end]
        assert isinstance(given, ast.Assign)
        for node in (node for part in (*block[at:end], given.value) for node in ast.walk(part)):
            if isinstance(node, ast.Name) and node.id == name:
                node.id = own


def _is_array_of(statement: ast.stmt, name: str | None) -> bool:
    """Whether a statement gives a list's name an array of it: `name = np.array(name)`."""
    match statement:
        case ast.Assign([ast.Name(target)], ast.Call(ast.Attribute(ast.Name(), function), [ast.Name(made)])):
            return name == target == made and function in ARRAYS
        case _:
            return False


def _one_by_one(statement: ast.stmt) -> list[ast.stmt]:
    match statement:
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
            names = {name for part in targets for name in names_of(part)}
            used = {name for part in values for name in names_of(part)}
            are_names = all(isinstance(target, ast.Name) for target in targets)
            has_lists = any(isinstance(value, ast.List) and not value.elts for value in values)
            if are_names and has_lists and used.isdisjoint(names):
                pairs = zip(targets, values, strict=True)
                return [ast.copy_location(ast.Assign([target], value), statement) for target, value in pairs]
    return [statement]


def _with_items(statement: ast.stmt, growing: Set[str]) -> list[ast.stmt]:
    """An assignment of a list that begins with items, as one of an empty list to which they are appended."""
    match statement:
        case ast.Assign([ast.Name(name) as target], ast.List([_, *_] as items) as value) if name in growing:
            if name in names_of(value) or any(isinstance(item, ast.Starred) for item in items):
                return [statement]
            empty = ast.copy_location(ast.List([], ast.Load()), value)
            found: list[ast.stmt] = [ast.copy_location(ast.Assign([target], empty), statement)]
            for item in items:
                called = ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load())
                found.append(ast.Expr(ast.Call(called, [item], [])))
            for node in (node for one in found[1:] for node in ast.walk(one)):
                if not hasattr(node, "lineno"):
                    ast.copy_location(node, value)
            return found
        case _:
            return [statement]


def _as_loops(statement: ast.stmt, taken: set[str], definition: ast.FunctionDef) -> list[ast.stmt]:
    """A statement of a function, where its value is a comprehension or an array of one, after a loop that makes the
    list."""
    made = _comprehension(statement)
    if made is None:
        return [statement]
    names = names_of(definition)
    match statement:
        case ast.Assign([ast.Name(name)], ast.ListComp()):
            return [statement] if name in names_of(made) else _loop_of(made, name, taken, names)
    name = fresh_name(f"items_{statement.lineno}", taken)
    items = ast.copy_location(ast.Name(name, ast.Load()), made)
    match statement:
        case ast.Assign(value=ast.Call() as call) | ast.Return(ast.Call() as call):
            call.args = [items]
        case ast.Return():
            statement.value = items
    return [*_loop_of(made, name, taken, names), statement]


def _comprehension(statement: ast.stmt) -> ast.ListComp | None:
    """The comprehension over one iterable that a statement makes a list of."""
    match statement:
        case ast.Assign([ast.Name()], value) | ast.Return(ast.expr() as value):
            pass
        case _:
            return None
    match value:
        case ast.Call(ast.Attribute(ast.Name(), function), [made], []) if function in ARRAYS:
            pass
        case made:
            pass
    match made:
        case ast.ListComp(_, [ast.comprehension(is_async=0)]):
            return None if any(isinstance(node, ast.NamedExpr | ast.Lambda) for node in ast.walk(made)) else made
        case _:
            return None


def _loop_of(made: ast.ListComp, name: str, taken: set[str], names: list[str]) -> list[ast.stmt]:
    """A comprehension as a loop that makes the list `name`; its variables are its own, so that those of `names`, all
    that the function mentions, have other names in it."""
    (part,) = made.generators
    own = names_of(part.target)
    others = Counter(names) - Counter(
        [*names_of(made.elt), *own, *(one for test in part.ifs for one in names_of(test))]
    )
    renamed = {one: fresh_name(one, taken) for one in own if one in others}
    for node in (node for code in (part.target, made.elt, *part.ifs) for node in ast.walk(code)):
        if isinstance(node, ast.Name) and node.id in renamed:
            node.id = renamed[node.id]
    first = ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load()))
    body: ast.stmt = ast.Expr(ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append"), [made.elt], []))
    for test in reversed(part.ifs):
        body = ast.If(test, [body], [])
    loop = ast.For(part.target, part.iter, [body], [])
    for new in (first, loop):
        for node in ast.walk(new):
            if not hasattr(node, "lineno"):
                ast.copy_location(node, made)
    return [first, loop]


def fresh_name(name: str, taken: set[str]) -> str:
    """A name like this that is not taken, and now is."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
