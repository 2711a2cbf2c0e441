"""A loop of an audited function as a function of its own: what it reads from outside are its parameters.

Sizes that the function computes before the loop, such as `n, m = A.shape`, go with it, so that their relations are
known.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType

from orion.cli.audit.find import is_prange_call
from orion.cli.audit.fresh import SIZES, Finder, is_fresh
from orion.cli.audit.modules import Module
from orion.cli.audit.purity import Opaque
from orion.cli.audit.scalars import Scalars
from orion.cli.audit.values import Site
from orion.dataclass import dataclass
from orion.frontend.locate import Located
from orion.source import SourceText

NAME = "audited"
MAKERS = frozenset({"zeros", "ones", "empty", "full"})
Part = tuple[str | int, ...]
"""A name, and numbers of items in what it stands for."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A loop as a function. `ranks` are those of arrays that the function around makes, `roots` the names that each
    name may share memory with, `unresolved` the functions that it calls whose source is not found."""

    function: FunctionType
    located: Located
    ranks: Mapping[str, int]
    roots: Mapping[str, frozenset[Part]]
    others: Mapping[str, str]
    unresolved: tuple[str, ...]


def extract(
    site: Site,
    module: Module,
    names: frozenset[str],
    source: SourceText,
    scalars: Scalars,
    opaque: frozenset[str] | None = None,
) -> Extracted:
    """Return the loop of a site as a function; `names` are those of `prange`. With `opaque`, values stand for calls of
    helpers that only read, and of these functions of NumPy."""
    context = Context(site.around[-1] if site.around else None, site.loop, partial(module.definition, site.around))
    outer = {name for one in site.around for name in (*_parameters(one), *_stored(one))}
    loop = with_ranges(copy.deepcopy(site.loop), names)
    if opaque is not None:
        reader = Opaque(module, site.around, loop, opaque)
        reader.written |= context.sharing(reader.written)
        loop = ast.fix_missing_locations(reader.visit(loop))
    own = (scalars.assigned | _targets(loop)) - scalars.exposed
    read = _read(loop) - own
    sizes = context.sizes_for(read)
    constants = {name: value for name, value in context.constants().items() if name in read - scalars.assigned}
    module.supply(loop, outer, site.around)
    unresolved = _unresolved(loop, {*outer, *own}, module.globals)
    given = {name for statement in sizes for name in _stored(statement)} | constants.keys()
    read |= {name for statement in sizes for name in _read(statement)}
    others = {name for name in read if name not in outer and (name in module.globals or hasattr(builtins, name))}
    params = sorted(read - given - others - {one.partition(".")[0] for one in unresolved} | (scalars.exposed & given))
    definition = _definition(params, [*map(copy.deepcopy, sizes), loop], loop)
    function = _compiled(definition, module.file, {**module.globals, **constants, "range": range})
    located = Located(definition, source)
    return Extracted(function, located, context.ranks(), context.roots(), context.kinds(), unresolved)


def _targets(loop: ast.For) -> set[str]:
    return {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}


def _unresolved(loop: ast.For, own: set[str], known: Mapping[str, object]) -> tuple[str, ...]:
    """The functions that a loop calls of whose names nothing is known."""
    found = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Call):
            path = _path(node.func)
            if path and path[0] not in own and path[0] not in known and not hasattr(builtins, path[0]):
                found.add(".".join(path))
    return tuple(sorted(found))


def _path(node: ast.expr) -> list[str]:
    match node:
        case ast.Name(name):
            return [name]
        case ast.Attribute(owner, name) if path := _path(owner):
            return [*path, name]
        case _:
            return []


def with_ranges(node: ast.For, names: frozenset[str]) -> ast.For:
    """Write `range` for `prange` in a loop, and in the loops in it."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and is_prange_call(call, names):
            call.func = ast.copy_location(ast.Name("range", ast.Load()), call.func)
    return node


def _definition(params: Iterable[str], body: list[ast.stmt], loop: ast.For) -> ast.FunctionDef:
    head = ast.arguments(
        posonlyargs=[],
        args=[ast.copy_location(ast.arg(name), loop) for name in params],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    definition = ast.FunctionDef(NAME, head, body, [], None, None)
    return ast.copy_location(definition, loop)


def _compiled(definition: ast.FunctionDef, file: str, namespace: dict[str, object]) -> FunctionType:
    """Return the function of a definition: it is compiled to byte code, and not run."""
    whole = compile(ast.Module([copy.deepcopy(definition)], []), file, "exec", dont_inherit=True)
    code = next(one for one in whole.co_consts if isinstance(one, CodeType) and one.co_name == NAME)
    return FunctionType(code, namespace, NAME)


def _parameters(function: ast.FunctionDef) -> list[str]:
    head = function.args
    named = [one.arg for one in (*head.posonlyargs, *head.args, *head.kwonlyargs)]
    return named + [one.arg for one in (head.vararg, head.kwarg) if one]


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _read(node: ast.AST) -> set[str]:
    updated = {
        one.target.id for one in ast.walk(node) if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)
    }
    return updated | {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


class Context:
    """What the function around a loop does before it, as far as the loop's names are concerned."""

    def __init__(self, function: ast.FunctionDef | None, loop: ast.For, find: Finder) -> None:
        self.function, self.loop, self.find = function, loop, find
        self.bound = set(_parameters(function)) if function else set()
        self.values: dict[str, list[ast.expr | None]] = {name: [None] for name in self.bound}
        self.before: list[ast.stmt] = list(_before(function.body, loop)) if function else []
        for statement in ast.walk(function) if function else ():
            for name, value in _given(statement):
                self.bound.add(name)
                self.values.setdefault(name, []).append(value)

    def once(self, name: str) -> ast.expr | None:
        """Return the only value that a name is given in the function; None where there are others."""
        values = self.values.get(name, [])
        return values[0] if len(values) == 1 else None

    def is_fixed(self, name: str) -> bool:
        return len(self.values.get(name, [])) <= 1

    def constants(self) -> dict[str, int | float]:
        """Return the names that are given one number in the function, and nothing else."""
        found: dict[str, int | float] = {}
        for name in self.values:
            match self.once(name):
                case ast.Constant(int() | float() as value) if type(value) is not bool and self.stands_before(name):
                    found[name] = value
        return found

    def stands_before(self, name: str) -> bool:
        return any(name in _stored(one) for one in self.before)

    def sizes_for(self, names: set[str]) -> list[ast.stmt]:
        """Return the assignments before the loop that say what sizes among these names are, in their order."""
        wanted, found = set(names), list[ast.stmt]()
        for statement in reversed(self.before):
            given = [name for name, _ in _given(statement)]
            if isinstance(statement, ast.Assign) and wanted.intersection(given) and self.is_size(statement):
                found.append(statement)
                wanted |= _read(statement)
        return found[::-1]

    def is_size(self, statement: ast.Assign) -> bool:
        """Whether an assignment gives names sizes of arrays that stay, or sums of them, and nothing else does."""
        inside = {one for target in statement.targets for one in ast.walk(target)}
        given = {one.id for one in inside if isinstance(one, ast.Name)}
        plain = all(isinstance(one, ast.Name | ast.Tuple | ast.expr_context) for one in inside)
        fixed = all(self.is_fixed(name) for name in (*given, *_read(statement)))
        return plain and fixed and len(statement.targets) == 1 and _is_size(statement.value)

    def ranks(self) -> dict[str, int]:
        """Return the ranks of arrays, as far as the function shows them: shapes that it makes them with, or unpacks,
        and subscripts."""
        found: dict[str, int] = {}
        for node in ast.walk(self.function) if self.function else ():
            for name, rank in _shown_rank(node):
                found[name] = max(rank, found.get(name, 0))
        return {name: rank for name, rank in found.items() if name in self.values and self.is_fixed(name)}

    def kinds(self) -> dict[str, str]:
        """Return the names that are given something that is no array: dictionaries, lists and sets."""
        found = {}
        for name, values in self.values.items():
            for value in values:
                match value:
                    case (
                        ast.Dict()
                        | ast.DictComp()
                        | ast.Call(ast.Attribute(ast.Name("Dict"), _))
                        | ast.Call(ast.Name("dict" | "Dict"))
                    ):
                        found[name] = "a dictionary"
                    case ast.Tuple():
                        found[name] = "a tuple"
                    case ast.Set() | ast.SetComp() | ast.Call(ast.Name("set")):
                        found[name] = "a set"
                    case (
                        ast.List()
                        | ast.ListComp()
                        | ast.Call(ast.Name("list" | "List"))
                        | ast.Call(ast.Attribute(_, "List" | "empty_list"))
                    ):
                        found[name] = "a list"
        return found

    def sharing(self, names: set[str]) -> set[str]:
        """Return the names that may share memory with some of these."""
        roots = self.roots()
        own = [roots[name] for name in names if name in roots]
        return {name for name, parts in roots.items() if any(may_share(parts, one) for one in own)}

    def numbered(self) -> set[str]:
        """Return the names whose items of different numbers are apart: parameters and their items."""
        found = set(self.values)
        for _ in range(4):
            found = {name for name in found if all(_is_item(value, found) for value in self.values[name])}
        return found

    def roots(self) -> dict[str, frozenset[Part]]:
        """Return the parts of which each name may be a view, or another name."""
        roots: dict[str, set[Part]] = {name: {(name,)} for name in self.values}
        numbered = self.numbered()
        for _ in range(4):
            for name, values in self.values.items():
                for value in values:
                    for first, *rest in _shared(value, self.find):
                        items = rest if first in numbered else ()
                        roots[name] |= {(*one, *items) for one in roots.get(str(first), {(first,)}) if len(one) < 6}
        return {
            name: frozenset(one for one in found if one != (name,) or len(found) == 1) for name, found in roots.items()
        }


def _before(body: list[ast.stmt], loop: ast.For) -> Iterator[ast.stmt]:
    """The statements that have run whenever the loop begins, in their order."""
    for statement in body:
        if statement is loop:
            return
        if any(one is loop for one in ast.walk(statement)):
            for block in ("body", "orelse", "finalbody"):
                inner = getattr(statement, block, [])
                if any(one is loop for part in inner for one in ast.walk(part)):
                    yield from _before(inner, loop)
            return
        yield statement


def _given(statement: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a statement gives values, with these where they are written out."""
    match statement:
        case ast.Assign(targets, value):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, value
                elif (
                    isinstance(target, ast.Tuple)
                    and isinstance(value, ast.Tuple)
                    and len(target.elts) == len(value.elts)
                ):
                    for one, part in zip(target.elts, value.elts, strict=True):
                        yield from ((name, part if isinstance(one, ast.Name) else None) for name in _names(one))
                else:
                    for place, name in enumerate(_names(target)):
                        yield name, ast.Subscript(value, ast.Constant(place), ast.Load())
        case ast.AnnAssign(ast.Name(name), _, value):
            yield name, value
        case ast.AugAssign(ast.Name(name)):
            yield name, None
        case ast.For(target, iterated) | ast.comprehension(target, iterated):
            whole = None if is_fresh(iterated) else ast.Subscript(iterated, ast.Name(""), ast.Load())
            yield from ((name, whole) for name in _names(target))
        case ast.NamedExpr(ast.Name(name), value):
            yield name, value
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from ((name, None) for name in _names(target))


def _names(target: ast.expr) -> list[str]:
    """The names that a target stores, not those in its subscripts."""
    match target:
        case ast.Name(name):
            return [name]
        case ast.Tuple(items) | ast.List(items):
            return [name for item in items for name in _names(item)]
        case ast.Starred(value):
            return _names(value)
        case _:
            return []


def _is_size(value: ast.expr) -> bool:
    match value:
        case ast.Name():
            return True
        case ast.Constant(int()):
            return True
        case ast.Attribute(ast.Name(), "shape" | "size"):
            return True
        case ast.Subscript(ast.Attribute(ast.Name(), "shape"), ast.Constant(int())):
            return True
        case ast.Call(ast.Name("len"), [ast.Name()], []):
            return True
        case ast.Tuple(items):
            return all(map(_is_size, items))
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right):
            return _is_size(left) and _is_size(right)
        case _:
            return False


def _shown_rank(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names of arrays of which a node shows the rank, or a lower bound."""
    match node:
        case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(_, maker), [shape, *_])) if maker in MAKERS:
            yield name, _rank_of_shape(shape)
        case ast.Assign([ast.Tuple(items)], ast.Attribute(ast.Name(name), "shape")):
            yield name, len(items)
        case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(int(axis))) if axis >= 0:
            yield name, axis + 1
        case ast.Subscript(ast.Name(name), ast.Tuple(items)):
            plain = all(not isinstance(one, ast.Constant) or isinstance(one.value, int) for one in items)
            yield name, len(items) if plain else 0


def _rank_of_shape(shape: ast.expr) -> int:
    match shape:
        case ast.Tuple(items):
            return len(items)
        case ast.Constant(int()):
            return 1
        case _:
            return 0


def _is_item(value: ast.expr | None, numbered: set[str]) -> bool:
    match value:
        case None | ast.Name():
            return value is None or value.id in numbered
        case ast.Subscript(base, ast.Constant(int())):
            return _is_item(base, numbered)
        case _:
            return False


def _shared(value: ast.expr | None, find: Finder) -> Iterator[Part]:
    """The parts that a value may share memory with: a name, and the numbers of items, which are apart."""
    parts: list[ast.expr] = []
    match value:
        case ast.Name(name):
            yield (name,)
        case ast.Subscript(ast.Name() | ast.Subscript() as base, ast.Constant(int(place))):
            yield from ((*one, place) for one in _shared(base, find))
        case ast.Attribute(_, name) if name in SIZES:
            return
        case ast.Subscript(base) | ast.Attribute(base) | ast.Starred(base) | ast.NamedExpr(_, base):
            parts = [base]
        case ast.Tuple(items) | ast.List(items) | ast.BoolOp(_, items):
            parts = items
        case ast.IfExp(_, then, orelse):
            parts = [then, orelse]
        case ast.Call(function, arguments, keywords) if not is_fresh(value, find):
            owner = [function.value] if isinstance(function, ast.Attribute) else []
            parts = [*owner, *arguments, *(one.value for one in keywords)]
    for part in parts:
        yield from _shared(part, find)


def may_share(one: frozenset[Part], other: frozenset[Part]) -> bool:
    """Whether two names, which stand for these parts, may share memory: one is a part of the other."""
    return any(a[: len(b)] == b[: len(a)] for a in one for b in other)
