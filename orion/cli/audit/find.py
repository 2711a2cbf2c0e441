"""The loops over `numba.prange` in a syntax tree, and what the decorators of their functions say."""

from __future__ import annotations

import ast

from orion.cli.audit.values import Site
from orion.dataclass import dataclass

PRANGE = "prange"
COMPILERS = frozenset({"jit", "njit", "generated_jit", "jit_module"})
OTHERS = ("cython", "Cython")
"""Packages with a `prange` of their own."""

NOT_KNOWN = ast.Name("")
"""What a name stands for that is assigned more than once."""


def find_loops(tree: ast.Module, file: str) -> list[Site]:
    """Return the loops over `prange` in textual order, those inside others too."""
    finder = _Finder(file, prange_names(tree), _Decorators(tree))
    finder.block(tree, (), is_inner=False)
    return sorted(finder.found, key=lambda one: (one.loop.lineno, one.loop.col_offset))


def prange_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that stand for `numba.prange` somewhere in a file."""
    found, others = {PRANGE}, set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {alias.asname or alias.name for alias in node.names if alias.name == PRANGE}
            (others if (node.module or "").startswith(OTHERS) else found).update(names)
    for _ in range(2):  # a name for a name
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(_is_prange(part, found) for part in _choices(node.value)):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found - others)


def _choices(value: ast.expr) -> tuple[ast.expr, ...]:
    return (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)


def _is_prange(node: ast.expr, names: set[str] | frozenset[str]) -> bool:
    match node:
        case ast.Name(name):
            return name in names
        case ast.Attribute(ast.Name(owner), attribute):
            return attribute == PRANGE and not owner.startswith(OTHERS)
        case _:
            return False


def is_prange_call(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression calls `prange`."""
    return isinstance(node, ast.Call) and _is_prange(node.func, names)


@dataclass(slots=True)
class _Finder:
    """Walks a tree by functions and loops, and notes the loops over `prange`."""

    file: str
    names: frozenset[str]
    decorators: _Decorators
    found: list[Site]

    def __init__(self, file: str, names: frozenset[str], decorators: _Decorators) -> None:
        self.file, self.names, self.decorators, self.found = file, names, decorators, []

    def block(self, top: ast.AST, around: tuple[ast.FunctionDef, ...], *, is_inner: bool) -> None:
        """Note the loops below a node. The walk keeps a list of its own: trees may be deep."""
        waiting = [(child, around, is_inner) for child in ast.iter_child_nodes(top)]
        while waiting:
            node, functions, inner = waiting.pop()
            if isinstance(node, ast.FunctionDef):
                functions, inner = (*functions, node), False
            elif isinstance(node, ast.For) and is_prange_call(node.iter, self.names):
                self.found.append(Site(self.file, node, functions, self.parallel(functions), inner))
                inner = True
            waiting += [(child, functions, inner) for child in ast.iter_child_nodes(node)]

    def parallel(self, functions: tuple[ast.FunctionDef, ...]) -> bool | None:
        """Return what the decorators of the innermost compiled function say of `parallel`."""
        for function in reversed(functions):
            found = self.decorators.option(function)
            if found is not None:
                return found.value
        return None


@dataclass(frozen=True, slots=True)
class _Said:
    """The option `parallel` of a decorator: None where it is not known."""

    value: bool | None


class _Decorators:
    """The decorators of a file, those with names and options from variables too."""

    def __init__(self, tree: ast.Module) -> None:
        self.assigned: dict[str, ast.expr] = {}
        self.aliases: set[str] = set(COMPILERS)
        self.calls: dict[str, _Said] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign([ast.Name(name)], value):
                    self.assigned[name] = NOT_KNOWN if name in self.assigned else value
                case ast.ImportFrom():
                    self.aliases |= {one.asname for one in node.names if one.asname and one.name in COMPILERS}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self.note_call(node)

    def note_call(self, node: ast.Call) -> None:
        """Note `njit(parallel=True)(f)` and `njit(f, parallel=True)`."""
        names = [one.id for one in node.args[:1] if isinstance(one, ast.Name)]
        if names:
            maker = node.func if isinstance(node.func, ast.Call) else node
            said = self.said(maker)
            if said is not None:
                self.calls[names[0]] = said

    def option(self, function: ast.FunctionDef) -> _Said | None:
        """Return what the decorators of a function say; None where none of them compiles."""
        for decorator in function.decorator_list:
            said = self.said(decorator)
            if said is not None:
                return said
        return self.calls.get(function.name)

    def said(self, node: ast.expr, depth: int = 4) -> _Said | None:
        """Return what an expression says that stands for a compiling decorator; None where it is no such."""
        if depth == 0:
            return None
        match node:
            case ast.Name(name) if name in self.aliases:
                return _Said(value=False)
            case ast.Attribute(_, name) if name in COMPILERS:
                return _Said(value=False)
            case ast.Name(name) if name in self.assigned:
                return self.said(self.assigned[name], depth - 1)
            case ast.Call(ast.Name("partial") | ast.Attribute(_, "partial"), [made, *_], keywords):
                return self.with_options(self.said(made, depth - 1), keywords)
            case ast.Call(made, _, keywords):
                return self.with_options(self.said(made, depth - 1), keywords)
            case _:
                return None

    def with_options(self, said: _Said | None, keywords: list[ast.keyword]) -> _Said | None:
        if said is None:
            return None
        for keyword in keywords:
            if keyword.arg == "parallel":
                said = _Said(self.truth(keyword.value))
            elif keyword.arg is None:
                said = self.spread(keyword.value, said)
        return said

    def truth(self, value: ast.expr) -> bool | None:
        """Return whether an option is on; None where the file does not say."""
        if isinstance(value, ast.Name) and value.id in self.assigned:
            value = self.assigned[value.id]
        return bool(value.value) if isinstance(value, ast.Constant) else None

    def spread(self, value: ast.expr, said: _Said) -> _Said:
        """Return what `**options` say, from a dictionary that the file writes out."""
        if isinstance(value, ast.Name):
            value = self.assigned.get(value.id, value)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
            options = {one.arg: one.value for one in value.keywords}
            return _Said(self.truth(options["parallel"])) if "parallel" in options else said
        if not isinstance(value, ast.Dict) or None in value.keys:
            return _Said(None)
        for key, option in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "parallel":
                return _Said(self.truth(option))
        return said
