"""What names stand for in audited files, without running them: functions by their definitions, numbers, modules.

Of other modules only NumPy, `math` and `cmath` are known. A function of the audited package is made of its definition
alone: neither its decorators nor its defaults are evaluated.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import copy
import linecache
import math
import operator
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from orion.cli.audit.raising import without_raising
from orion.cli.cells import LoadError, Part, parts_of
from orion.dataclass import dataclass, field

SCALARS = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "intp", "uintp",
)  # fmt: skip
NUMBA = ModuleType("numba")
"""What loops read from Numba's package that they could read from NumPy's."""
NUMBA.__dict__.update({"prange": range} | {name: getattr(np, name) for name in SCALARS})
MODULES = {"numpy": np, "math": math, "cmath": cmath, "builtins": builtins, "numba": NUMBA}
OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
MAX_DEPTH = 12
"""Files that a name may be imported through, and helpers inside helpers."""
LARGEST = 2**62
MAX_NODES = 4000
"""Nodes of the tree of a helper."""


class Unresolved(Exception):  # noqa: N818 - a signal inside this module
    """A name stands for nothing that is known without running the file."""


@dataclass(slots=True)
class Module:
    """A file: its names at the top level, and what they were found to stand for. `globals` is what functions see."""

    file: str
    path: Path | None
    tree: ast.Module
    library: Library
    bound: dict[str, ast.stmt] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)
    globals: dict[str, Any] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    made: dict[int, FunctionType] = field(default_factory=dict)
    space: ModuleType | None = None

    def note(self) -> None:
        """Note what the statements of the top level bind, those in `try` and `if` too."""
        for statement in _top_level(self.tree.body):
            for name in _bound_names(statement):
                if name in self.bound and not isinstance(statement, ast.Import | ast.ImportFrom):
                    self.twice.add(name)
                self.bound.setdefault(name, statement)

    def supply(
        self, node: ast.AST, own: Set[str], around: tuple[ast.FunctionDef, ...] = (), depth: int = MAX_DEPTH
    ) -> None:
        """Give `globals` what code reads beside its `own` names, as far as that is known."""
        for name in _loaded_names(node):
            if name in own or name in self.globals or name in self.missing:
                continue
            try:
                self.globals[name] = self.value(name, around, depth)
            except Unresolved:
                self.missing.add(name)
        for owner, name in _attributes(node):
            found = self.globals.get(owner) if owner not in own else None
            other = self.library.spaces.get(id(found))
            if other is not None and not hasattr(found, name):
                with suppress(Unresolved):
                    setattr(found, name, other.value(name, (), depth - 1))

    def namespace(self) -> ModuleType:
        """Return the module as what `import` binds, empty: `supply` adds what code reads from it."""
        if self.space is None:
            self.space = ModuleType(self.path.stem if self.path else self.file)
            self.library.spaces[id(self.space)] = self
        return self.space

    def value(self, name: str, around: tuple[ast.FunctionDef, ...], depth: int) -> Any:
        """Return what a name stands for. Raises `Unresolved`."""
        if depth == 0 or name in self.twice:
            raise Unresolved
        for function in reversed(around):
            inner = [one for one in ast.walk(function) if isinstance(one, ast.FunctionDef) and one.name == name]
            if len(inner) == 1 and inner[0] not in around:
                return self.function(inner[0], around, depth)
        statement = self.bound.get(name)
        match statement:
            case ast.FunctionDef():
                return self.function(statement, (), depth)
            case ast.Import(names):
                return _module(next(one.name for one in names if _bound_as(one) == name))
            case ast.ImportFrom(names=names):
                return self.imported(statement, next(one.name for one in names if _bound_as(one) == name), depth)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return self.constant(value, depth)
            case _:
                raise Unresolved

    def find(self, name: str, around: tuple[ast.FunctionDef, ...] = (), depth: int = MAX_DEPTH) -> Found | None:
        """Return the definition of a function that a name stands for, with its module and the functions around it."""
        if depth == 0 or name in self.twice:
            return None
        for number, function in reversed(list(enumerate(around))):
            inner = [one for one in ast.walk(function) if isinstance(one, ast.FunctionDef) and one.name == name]
            if len(inner) == 1:
                return self, inner[0], around[: number + 1]
            if any(isinstance(one, ast.Name | ast.arg) and _stores(one, name) for one in ast.walk(function)):
                return None
        match self.bound.get(name):
            case ast.FunctionDef() as definition:
                return self, definition, ()
            case ast.ImportFrom() as statement:
                original = next(one.name for one in statement.names if _bound_as(one) == name)
                other = self.library.imported_by(self, statement, original)
                return None if other is None else other.find(original, (), depth - 1)
            case _:
                return None

    def find_in(self, node: ast.expr) -> Found | None:
        """Return the definition of a function of another module, `module.function`."""
        match node:
            case ast.Attribute(ast.Name(owner), name):
                statement = self.bound.get(owner)
                if not isinstance(statement, ast.ImportFrom):
                    return None
                original = next(one.name for one in statement.names if _bound_as(one) == owner)
                other = self.library.part_of(self, statement, original)
                return None if other is None else other.find(name)
            case _:
                return None

    def definition(self, around: tuple[ast.FunctionDef, ...], call: ast.Call) -> ast.FunctionDef | None:
        """Return the definition of the function that a call names, if its source is found."""
        found = self.find(call.func.id, around) if isinstance(call.func, ast.Name) else self.find_in(call.func)
        return None if found is None else found[1]

    def function(self, definition: ast.FunctionDef, around: tuple[ast.FunctionDef, ...], depth: int) -> FunctionType:
        """Return a function that has this definition, and nothing in its head that could run code."""
        if id(definition) not in self.made:
            if sum(1 for _ in ast.walk(definition)) > MAX_NODES:
                raise Unresolved
            plain = _plain(definition)
            code = compile(ast.Module([plain], []), self.file, "exec", dont_inherit=True)
            body = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == definition.name)
            if body.co_freevars:
                raise Unresolved
            made = FunctionType(body, self.globals, definition.name, _defaults(plain))
            made.__kwdefaults__ = _keyword_defaults(plain)
            self.made[id(definition)] = made
            own = {*body.co_varnames, *body.co_cellvars}
            self.supply(plain, own, (*around, definition), depth - 1)
        return self.made[id(definition)]

    def imported(self, statement: ast.ImportFrom, name: str, depth: int) -> Any:
        if not statement.level and statement.module in MODULES:
            found = getattr(MODULES[statement.module], name, None)
            if found is None:
                raise Unresolved
            return found
        if name == "prange":
            return range
        if not statement.level and statement.module == "numba":
            return _attribute(NUMBA, name)
        part = self.library.part_of(self, statement, name)
        if part is not None:
            return part.namespace()
        other = self.library.imported_by(self, statement, name)
        if other is None:
            raise Unresolved
        found = other.value(name, (), depth - 1)
        other.globals.setdefault(name, found)
        return found

    def constant(self, value: ast.expr, depth: int) -> Any:
        """Return a number, or a tuple of such, that an expression is written as."""
        match value:
            case ast.Constant(int() | float() | complex() as number):
                return number
            case ast.Constant(str() as text):
                return text
            case ast.UnaryOp(ast.USub(), operand):
                return -self.number(operand, depth)
            case ast.BinOp(left, op, right) if type(op) in OPERATORS:
                return self.computed(op, self.number(left, depth), self.number(right, depth))
            case ast.Tuple(items):
                return tuple(self.number(item, depth) for item in items)
            case ast.Name(name):
                return self.value(name, (), depth - 1)
            case ast.Attribute(ast.Name(owner), name):
                found = self.value(owner, (), depth - 1)
                return _attribute(found, name)
            case ast.Attribute(
                ast.Call(ast.Attribute(ast.Name("np" | "numpy"), "finfo" | "iinfo" as name), [kind]), limit
            ):
                return self.limit(name, kind, limit)
            case ast.Call(ast.Attribute(ast.Name("np" | "numpy"), name), [argument], []) if hasattr(np, name):
                kind = getattr(np, name)
                if isinstance(kind, type) and issubclass(kind, np.number):
                    return kind(self.number(argument, depth))
            case ast.Call(ast.Call() | ast.Name() | ast.Attribute(), [ast.Name(plain)]) if plain in self.bound:
                return self.value(plain, (), depth - 1)  # a decorator called with a function
        raise Unresolved

    @staticmethod
    def limit(name: str, kind: ast.expr, limit: str) -> Any:
        """Return what `np.finfo(kind).limit` is."""
        word = kind.value if isinstance(kind, ast.Constant) else getattr(kind, "attr", "")
        try:
            found = getattr(getattr(np, name)(word), limit)
        except (AttributeError, TypeError, ValueError):
            raise Unresolved from None
        return float(found) if name == "finfo" else int(found)

    def number(self, value: ast.expr, depth: int) -> Any:
        found = self.constant(value, depth)
        if not isinstance(found, int | float | complex | np.number):
            raise Unresolved
        return found

    @staticmethod
    def computed(op: ast.operator, left: Any, right: Any) -> Any:
        try:
            found = OPERATORS[type(op)](left, right)
        except (ArithmeticError, TypeError, ValueError):
            raise Unresolved from None
        if isinstance(found, int) and abs(found) > LARGEST:
            raise Unresolved
        return found


Found = tuple[Module, ast.FunctionDef, tuple[ast.FunctionDef, ...]]
"""A function, its module, and the functions around it."""


@dataclass(slots=True)
class Library:
    """The files of an audit, each read once. `roots` are folders that packages may lie in."""

    roots: tuple[Path, ...]
    read: dict[Path, Module | None] = field(default_factory=dict)
    spaces: dict[int, Module] = field(default_factory=dict)

    def module(self, part: Part, path: Path | None) -> Module:
        """Return a file, or a cell of a notebook, as a module."""
        part = without_raising(
            part, [one for one in ast.walk(part.tree) if isinstance(one, ast.For) and "prange" in ast.dump(one.iter)]
        )
        made = Module(part.file, path, part.tree, self)
        made.note()
        return made

    def at(self, path: Path) -> Module | None:
        """Return the module of a file; None where there is none that can be read."""
        path = path.resolve()
        if path not in self.read:
            self.read[path] = None
            try:
                if path.is_file():
                    (part,) = parts_of(path)
                    linecache.checkcache(part.file)
                    self.read[path] = self.module(part, path)
            except (LoadError, RecursionError, MemoryError):
                pass
        return self.read[path]

    def imported_by(self, module: Module, statement: ast.ImportFrom, name: str) -> Module | None:
        """Return the module that `from … import name` takes a name from."""
        parts = (statement.module or "").split(".") if statement.module else []
        for folder in self.folders(module, statement):
            base = folder.joinpath(*parts)
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                found = self.at(path) if parts or path.name == "__init__.py" else None
                if found is not None and found is not module and name in found.bound:
                    return found
        return None

    def part_of(self, module: Module, statement: ast.ImportFrom, name: str) -> Module | None:
        """Return the module that `from package import name` binds."""
        parts = (statement.module or "").split(".") if statement.module else []
        paths = (folder.joinpath(*parts, f"{name}.py") for folder in self.folders(module, statement))
        return next((found for path in paths if (found := self.at(path)) is not None), None)

    def folders(self, module: Module, statement: ast.ImportFrom) -> list[Path]:
        """Return the folders that an import begins at."""
        if not statement.level:
            return [*self.roots, *([module.path.parent] if module.path else [])]
        if module.path is None:
            return []
        folder = module.path.parent
        for _ in range(statement.level - 1):
            folder = folder.parent
        return [folder]


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for block in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                yield from _top_level(getattr(statement, block, []))
        for handler in getattr(statement, "handlers", []):
            yield from _top_level(handler.body)


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.Import(names) | ast.ImportFrom(names=names):
            yield from map(_bound_as, names)
        case ast.Assign(targets):
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(name)) | ast.AugAssign(target=ast.Name(name)):
            yield name
        case ast.For(target=target):
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def _stores(node: ast.Name | ast.arg, name: str) -> bool:
    return node.arg == name if isinstance(node, ast.arg) else node.id == name and isinstance(node.ctx, ast.Store)


def _bound_as(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _loaded_names(node: ast.AST) -> list[str]:
    return sorted({one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)})


def _attributes(node: ast.AST) -> set[tuple[str, str]]:
    found = (one for one in ast.walk(node) if isinstance(one, ast.Attribute))
    return {(one.value.id, one.attr) for one in found if isinstance(one.value, ast.Name)}


def _module(full: str) -> Any:
    if full in MODULES:
        return MODULES[full]
    raise Unresolved


def _attribute(owner: object, name: str) -> Any:
    if not isinstance(owner, ModuleType):
        raise Unresolved
    found = getattr(owner, name, None)
    if found is None:
        raise Unresolved
    return found


def _plain(definition: ast.FunctionDef) -> ast.FunctionDef:
    """Return a definition without decorators and annotations, with defaults that are written as constants."""
    plain = copy.deepcopy(definition)
    plain.decorator_list, plain.returns = [], None
    head = plain.args
    for argument in (*head.posonlyargs, *head.args, *head.kwonlyargs):
        argument.annotation = None
    if head.vararg or head.kwarg:
        raise Unresolved
    head.defaults = [ast.copy_location(ast.Constant(_literal(one)), one) for one in head.defaults]
    head.kw_defaults = [one and ast.copy_location(ast.Constant(_literal(one)), one) for one in head.kw_defaults]
    return plain


def _literal(value: ast.expr) -> Any:
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, bool | int | float | complex | str) else None


def _defaults(plain: ast.FunctionDef) -> tuple[Any, ...] | None:
    return tuple(one.value for one in plain.args.defaults if isinstance(one, ast.Constant)) or None


def _keyword_defaults(plain: ast.FunctionDef) -> dict[str, Any] | None:
    pairs = zip(plain.args.kwonlyargs, plain.args.kw_defaults, strict=True)
    return {one.arg: value.value for one, value in pairs if isinstance(value, ast.Constant)} or None
