"""Functions that write nothing but arrays of their own, by their text, and loops with values in the places of calls.

A helper that the compiler cannot look into (it calls itself, or takes arrays of several ranks) does no harm where it
only reads, and nothing that it is given is written in the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orion.cli.audit.fresh import NUMPY, SUBMODULES, inputs_of, is_fresh
from orion.cli.audit.modules import Module

OPAQUE = "value_of_"
"""How the names of such values begin."""

BUILTINS = frozenset({
    "abs", "bool", "complex", "divmod", "enumerate", "float", "int", "isinstance", "len", "max", "min", "pow", "range",
    "prange", "round", "sum", "tuple", "zip", "reversed", "ValueError", "RuntimeError", "TypeError", "print",
})  # fmt: skip
METHODS = frozenset({
    "all", "any", "argmax", "argmin", "argsort", "astype", "conj", "copy", "cumsum", "dot", "flatten", "item", "max",
    "mean", "min", "nonzero", "prod", "ravel", "repeat", "reshape", "round", "std", "sum", "transpose", "var",
})  # fmt: skip
WRITING = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "shuffle", "seed", "at", "save", "errstate"})
MAX_FUNCTIONS = 60


def is_pure(module: Module, definition: ast.FunctionDef, around: tuple[ast.FunctionDef, ...] = ()) -> bool:
    """Whether a function, and all that it calls, writes nothing but arrays that it makes."""
    waiting, seen = [(module, definition, around)], set[int]()
    while waiting:
        own, function, outer = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        if len(seen) > MAX_FUNCTIONS or not _writes_own(function):
            return False
        for call in (one for part in function.body for one in ast.walk(part) if isinstance(one, ast.Call)):
            if is_harmless(call):
                continue
            found = (
                own.find(call.func.id, (*outer, function))
                if isinstance(call.func, ast.Name)
                else own.find_in(call.func)
            )
            if found is None or not _fits(call, found[1]):
                return False
            waiting.append(found)
    return True


def _fits(call: ast.Call, definition: ast.FunctionDef) -> bool:
    """Whether a call gives a function its own parameters only, and not an `out` of `vectorize` or `stencil`."""
    head = definition.args
    names = {one.arg for one in (*head.posonlyargs, *head.args, *head.kwonlyargs)}
    return len(call.args) <= len(head.posonlyargs) + len(head.args) and all(one.arg in names for one in call.keywords)


def is_harmless(call: ast.Call) -> bool:
    """Whether a call of NumPy, of Python itself or of an array's method writes nothing."""
    if any(keyword.arg in ("copy", "out", None) for keyword in call.keywords):
        return False
    match call.func:
        case ast.Name(name):
            return name in BUILTINS
        case ast.Attribute(ast.Name(owner), name) if owner in NUMPY:
            return name not in WRITING and len(call.args) <= inputs_of(owner, name)
        case ast.Attribute(ast.Attribute(ast.Name(owner), part), name) if owner in NUMPY:
            return name not in WRITING and part in SUBMODULES
        case ast.Attribute(_, name):
            return name in METHODS
        case _:
            return False


def _writes_own(function: ast.FunctionDef) -> bool:
    given: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Global() | ast.Nonlocal() | ast.With() | ast.Yield() | ast.Await() | ast.Delete() | ast.ClassDef():
                return False
            case ast.Assign(targets, value):
                for target in targets:
                    for name in _plain_names(target):
                        given.setdefault(name, []).append(value if isinstance(target, ast.Name) else None)
            case ast.For(target, iterated):
                number = ast.Constant(0) if _is_range(iterated) else None
                for name in _plain_names(target):
                    given.setdefault(name, []).append(number)
    fresh = {name for name, values in given.items() if all(map(is_fresh, values))}
    fresh -= {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    return all(name in fresh for name in _changed(function))


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("range", "prange")


def _changed(function: ast.FunctionDef) -> Iterator[str]:
    """The names of what a function changes in place; "" for what has none."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            base = node.value
            yield base.id if isinstance(base, ast.Name) and isinstance(node, ast.Subscript) else ""
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _plain_names(target: ast.expr) -> list[str]:
    match target:
        case ast.Name(name):
            return [name]
        case ast.Tuple(items) | ast.List(items):
            return [name for item in items for name in _plain_names(item)]
        case _:
            return []


# ---------------------------------------------------------------- loops


class Opaque(ast.NodeTransformer):
    """Writes values in the place of calls of pure functions, each an element of an array of its own for every trip of
    the loops around it. `names` are the functions of NumPy that are such too."""

    def __init__(
        self, module: Module, around: tuple[ast.FunctionDef, ...], loop: ast.For, names: frozenset[str]
    ) -> None:
        self.module, self.around, self.names = module, around, names
        self.written = self.written_names(loop)
        self.loops: list[str] = []
        self.count = 0

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self.visit(node.iter)
        own = _plain_names(node.target)
        self.loops += own
        node.body = [self.visit(one) for one in node.body]
        del self.loops[len(self.loops) - len(own) :]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node:
            case ast.Assign([ast.Tuple(items)], ast.Call() as call) if self.is_opaque(call):
                node.value = ast.copy_location(ast.Tuple([self.value(call) for _ in items], ast.Load()), call)
                return node
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self.value(node) if self.is_opaque(node) else self.generic_visit(node)

    def is_opaque(self, call: ast.Call) -> bool:
        """Whether a call only reads, and reads nothing that the loop writes."""
        if self.written & {one.id for one in ast.walk(call) if isinstance(one, ast.Name)}:
            return False
        inner = [one for one in ast.walk(call) if isinstance(one, ast.Call)]
        return self.is_chosen(call) and all(is_harmless(one) or self.is_helper(one) for one in inner)

    def is_chosen(self, call: ast.Call) -> bool:
        return self.is_helper(call) or (ast.unparse(call.func) in self.names and is_harmless(call))

    def is_helper(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Name):
            found = self.module.find(call.func.id, self.around)
        else:
            found = self.module.find_in(call.func)
        return found is not None and _fits(call, found[1]) and is_pure(*found)

    def written_names(self, loop: ast.For) -> set[str]:
        """Return the names of what a loop changes in place, and of names that it gives what may be a view."""
        found, given = set[str](), list[tuple[ast.expr, ast.expr]]()
        for node in ast.walk(loop):
            match node:
                case ast.Subscript(value, ctx=ast.Store()) | ast.Attribute(value, ctx=ast.Store()):
                    found |= _names(value)
                case ast.AugAssign(ast.Name(name)):
                    found.add(name)
                case ast.Call() if not (is_harmless(node) or self.is_helper(node)):
                    found |= _names(node)
                case ast.Assign(targets, value):
                    given += [(target, value) for target in targets]
                case ast.For(target, value) if not _is_range(value):
                    given.append((target, value))
        for _ in range(3):
            for target, value in given:
                if found & set(_plain_names(target)) and not is_fresh(value):
                    found |= _names(value)
        return found

    def value(self, call: ast.Call) -> ast.expr:
        self.count += 1
        array = ast.Name(f"{OPAQUE}{self.count}", ast.Load())
        index: ast.expr = ast.Tuple([ast.Name(one, ast.Load()) for one in self.loops], ast.Load())
        index = index.elts[0] if isinstance(index, ast.Tuple) and len(index.elts) == 1 else index
        made = ast.copy_location(ast.Subscript(array, index, ast.Load()), call)
        for node in ast.walk(made):
            ast.copy_location(node, call)
        return made


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
