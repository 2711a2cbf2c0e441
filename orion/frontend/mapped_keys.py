"""Loops over sparse arrays whose subscripts are maps of the keys, written with these as keys.

for (i, j), v in R:                        for (i_group, j), (v, i) in R_by_group:
    W[group[i]] += step * v * H[j]             W[i_group] += step * v * H[j]
    x += bias[i]                               x += bias[i]

Elements with the same key meet in an element of what they write, and this decides which of them may run at the same
time (`orion.analysis`). Where they write `W[group[i]]`, elements meet whose keys have the same `group`: so that is to
be the key, and the key itself a value of the element. Any order of the elements will do where this is done;
`R_by_group` is made by each call for which `group` is another (`orion.arrays.rekeyed`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from orion.dataclass import dataclass
from orion.frontend.syntax import nodes_of
from orion.ir.function import Rekeyed
from orion.ir.renaming import fresh


@dataclass(frozen=True, slots=True)
class _Loop:
    """A `for` over the elements of a parameter, with the names of its keys and values, and which of these, or what maps
    have for them, are subscripts of what it writes: number of the key and name of the map, "" for the key itself."""

    node: ast.For
    array: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    terms: tuple[tuple[int, str], ...]


def write_out_maps(definition: ast.FunctionDef, taken: Collection[str]) -> tuple[Rekeyed, ...]:
    """Write the loops of a function that go through sparse arrays so, and say which arrays they then go through.
    `taken` are names that are no others'."""
    loops = list(_loops(definition))
    if not loops:
        return ()
    names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    used = {*names, *taken, *(one.arg for one in ast.walk(definition.args) if isinstance(one, ast.arg))}

    found: list[Rekeyed] = []
    for loop in loops:
        given = {
            (key, map_): fresh(f"{loop.keys[key]}_{map_}", used) if map_ else loop.keys[key] for key, map_ in loop.terms
        }
        maps = [name for _, name in loop.terms if name]
        kept = tuple(k for k in range(len(loop.keys)) if (k, "") not in loop.terms)
        words = tuple((name, f"{map_}[{loop.keys[key]}]") for (key, map_), name in given.items() if map_)
        name = fresh(f"{loop.array}_by_{'_'.join(maps)}", used)
        _write(loop, given, name, kept)
        found.append(Rekeyed(name, loop.array, len(loop.keys), loop.terms, kept, words))
    ast.fix_missing_locations(definition)
    return tuple(found)


def _write(loop: _Loop, given: dict[tuple[int, str], str], array: str, kept: tuple[int, ...]) -> None:
    node = loop.node
    keys = ast.Tuple([ast.Name(name, ast.Store()) for name in given.values()], ast.Store())
    values = [ast.Name(name, ast.Store()) for name in (*loop.values, *(loop.keys[k] for k in kept))]
    value: ast.expr = values[0] if len(values) == 1 else ast.Tuple([*values], ast.Store())
    target = ast.Tuple([keys, value], ast.Store())
    for part in ast.walk(target):
        ast.copy_location(part, node.target)
    node.target, node.iter = target, ast.copy_location(ast.Name(array, ast.Load()), node.iter)
    named = {(loop.keys[key], map_): name for (key, map_), name in given.items() if map_}
    node.body = [_Named(named).visit(statement) for statement in node.body]


class _Named(ast.NodeTransformer):
    """Puts a name in the place of what a map has for a key."""

    def __init__(self, names: dict[tuple[str, str], str]) -> None:
        self.names = names

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(ast.Name(map_), ast.Name(key)) if (key, map_) in self.names:
                return ast.copy_location(ast.Name(self.names[key, map_], node.ctx), node)
        self.generic_visit(node)
        return node


# ---------------------------------------------------------------- which loops


def _loops(definition: ast.FunctionDef) -> Iterator[_Loop]:
    pairs = [node for node in nodes_of(definition) if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple)]
    if not pairs:
        return
    params = {one.arg for one in ast.walk(definition.args) if isinstance(one, ast.arg)}
    assigned = _assigned(definition)
    changed = {*assigned, *_written(definition), *_handed_on(definition)}
    for node in pairs:
        match node:
            case ast.For(ast.Tuple([ast.Tuple(keys), value]), ast.Name(array), orelse=[]) if array not in assigned:
                values = value.elts if isinstance(value, ast.Tuple) else [value]
                names = [part.id for part in (*keys, *values) if isinstance(part, ast.Name)]
                is_plain = len(names) == len({*names}) == len(keys) + len(values)
                inside = {name for one in node.body for name in _assigned(one)}
                if array not in params or not is_plain or not inside.isdisjoint(names) or array in _written(node):
                    continue
                if any(isinstance(one, ast.Break | ast.Return) for one in ast.walk(node)):
                    continue  # the elements are gone through in the order of their own keys then
                own = tuple(names[: len(keys)])
                terms = _terms(node, own, params - changed)
                if terms is not None and not _only_adds(node):
                    yield _Loop(node, array, own, tuple(names[len(keys) :]), terms)


def _assigned(code: ast.AST) -> set[str]:
    """The names that some code gives a value."""
    return {node.id for node in ast.walk(code) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def _written(code: ast.AST) -> set[str]:
    """The arrays whose elements some code assigns."""
    return {
        node.value.id
        for node in ast.walk(code)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
    }


def _handed_on(code: ast.AST) -> Iterator[str]:
    """The names that calls are given as they are, and those that stand for the same as another name: what is done with
    these is not looked into."""
    for node in ast.walk(code):
        match node:
            case ast.Call(ast.Name(), arguments, keywords):
                given = (*arguments, *(one.value for one in keywords))
                yield from (part.id for part in given if isinstance(part, ast.Name))
            case ast.Assign(_, ast.Name(name)) | ast.Assign(_, ast.Subscript(ast.Name(name), ast.Slice())):
                yield name


def _only_adds(loop: ast.For) -> bool:
    """Whether all arrays that a loop writes are such that it does nothing but add to elements of them: blocks of any
    elements then do so in copies (`orion.rewrites.array_sums`), however few the maps have."""
    written = _written(loop)
    sums = [
        one.target for one in ast.walk(loop) if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add | ast.Sub)
    ]
    added = [one.value.id for one in sums if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name)]
    mentions = [one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and one.id in written]
    return sorted(added) == sorted(mentions)


def _terms(loop: ast.For, keys: tuple[str, ...], maps: set[str]) -> tuple[tuple[int, str], ...] | None:
    """The keys, and maps of keys, that are subscripts of what a loop writes, in the order of the keys; None where there
    is no map among them, or something else is made of keys."""
    found: set[tuple[int, str]] = set()
    for node in ast.walk(loop):
        if not (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)):
            continue
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            match part:
                case ast.Name(name) if name in keys:
                    found.add((keys.index(name), ""))
                case ast.Subscript(ast.Name(map_), ast.Name(name)) if name in keys and map_ in maps:
                    found.add((keys.index(name), map_))
                case _ if any(isinstance(one, ast.Name) and one.id in keys for one in ast.walk(part)):
                    return None
    return tuple(sorted(found)) if any(map_ for _, map_ in found) else None
