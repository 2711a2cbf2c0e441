"""The decorated functions of a file or a notebook, without running it.

To import a training script is to run it. Instead its top level is read with `ast`, and only this much of it is
executed, in its order:

- imports (so the modules that it imports do run, as for any tool that has to know what a name means);
- assignments of simple values to names: literals, arithmetic on them and on names, `np.pi`, `np.float32(0.1)`,
  `np.array([…])` of such;
- function definitions, without their decorators, annotations and any default that is not a simple value;
- for functions with the decorator that is looked for (`orion.parallel_for`), that decorator, also where it is called
  with a function of the file: `fast = parallel_for(plain)`;
- `try` statements, of which again only the above.

Everything else is passed over: calls, loops, `if` (`if __name__ == "__main__":` too), classes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from orion.cli.cells import LoadError, Part, parts_of
from orion.dataclass import dataclass
from orion.frontend.scope import assigned_names
from orion.source import Span

SIMPLE = (
    ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp, ast.Compare, ast.BoolOp,
    ast.IfExp, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip
SCALARS = frozenset({
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_",
    "float", "int", "bool", "complex", "complex64", "complex128",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The decorated functions of a file by name, with their syntax trees; `hidden` has the names and places of those
    defined inside other functions or classes, which are out of reach. `not_run` has the names that statements at the
    top level assign which were passed over, with their places."""

    functions: dict[str, object]
    definitions: dict[str, ast.FunctionDef]
    hidden: tuple[tuple[str, Span], ...]
    not_run: dict[str, Span]


def load_functions(path: Path, decorator: Callable[..., object], parts: Sequence[Part] | None = None) -> LoadedFile:
    """The functions at the top level of a Python file, or of a notebook's cells, that have this decorator, under
    whatever name, as it makes them; `parts` are what is loaded in the place of what the file holds.

    LoadError where the file cannot be had or parsed, or a name that it imports cannot be.
    """
    parts = parts_of(path) if parts is None else parts
    loader = _Loader(path, decorator, {"__name__": path.stem, "__file__": str(path), "__builtins__": __builtins__})
    with _importing_as(path):
        for part in parts:
            loader.file = part.file
            loader.run(part.tree.body)
    top = set(map(id, loader.seen))
    hidden = tuple(
        (node.name, Span(part.file, node.lineno, node.col_offset, node.lineno, node.col_offset))
        for part in parts
        for node in ast.walk(part.tree)
        if isinstance(node, ast.FunctionDef) and id(node) not in top and any(map(loader.is_ours, node.decorator_list))
    )
    not_run = {name: place for name, place in loader.not_run.items() if name not in loader.namespace}
    return LoadedFile(loader.functions, loader.definitions, hidden, not_run)


@contextmanager
def _importing_as(path: Path) -> Iterator[None]:
    """Let imports find what they would find if the file were run: the modules beside it first."""
    before = list(sys.path)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.path[:] = before


class _Loader:
    """Executes the chosen statements one by one in a namespace of their own."""

    def __init__(self, path: Path, decorator: Callable[..., object], namespace: dict[str, Any]) -> None:
        self.path = path
        self.file = str(path)
        self.decorator = decorator
        self.namespace = namespace
        self.functions: dict[str, object] = {}
        self.definitions: dict[str, ast.FunctionDef] = {}
        self.seen: list[ast.FunctionDef] = []
        self.plain: dict[str, ast.FunctionDef] = {}
        self.not_run: dict[str, Span] = {}

    def run(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.Import() | ast.ImportFrom():
                    self.import_names(statement)
                case ast.Assign(targets=[ast.Name()], value=value) if self.is_simple(value):
                    self.execute(statement)
                case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value) if self.is_simple(value):
                    self.execute(ast.copy_location(ast.Assign([target], value), statement))
                case ast.Assign([ast.Name(name)], ast.Call(made, [ast.Name(plain)])) if self.makes(made, statement):
                    self.decorate(name, plain, statement)
                case ast.FunctionDef():
                    self.define(statement)
                case ast.Try():
                    self.attempt(statement)
                case _:
                    place = Span(self.file, statement.lineno, 0, statement.lineno, 0)
                    self.not_run |= dict.fromkeys(assigned_names(ast.walk(statement)), place)

    def makes(self, made: ast.expr, statement: ast.Assign) -> bool:
        """Whether a call, with simple options, decorates a function of the file."""
        call = statement.value
        assert isinstance(call, ast.Call)
        known = isinstance(call.args[0], ast.Name) and call.args[0].id in self.plain
        return known and self.is_ours(made) and all(self.is_simple(keyword.value) for keyword in call.keywords)

    def decorate(self, name: str, plain: str, statement: ast.Assign) -> None:
        """Note a function that is decorated by a call."""
        self.execute(statement)
        self.functions[name] = self.namespace[name]
        self.definitions[name] = self.plain[plain]

    def execute(self, statement: ast.stmt) -> None:
        module = ast.fix_missing_locations(ast.Module([statement], []))
        try:
            exec(compile(module, self.file, "exec", dont_inherit=True), self.namespace)
        except NameError:
            pass  # made from something that was passed over; whoever needs it will say so
        except Exception as error:
            place = Span(self.file, statement.lineno, 0, statement.lineno, 0)
            raise LoadError(f"{place}: {type(error).__name__}: {error}") from error

    def import_names(self, statement: ast.Import | ast.ImportFrom) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.level:
            self.namespace.setdefault("__package__", self.package())
        self.execute(statement)

    def package(self) -> str:
        """The dotted name of the package that the file is in, which is made importable; empty where it is in none."""
        folder, parts = self.path.resolve().parent, list[str]()
        while (folder / "__init__.py").exists():
            parts.insert(0, folder.name)
            folder = folder.parent
        sys.path.insert(0, str(folder))
        return ".".join(parts)

    def define(self, definition: ast.FunctionDef) -> None:
        ours = [decorator for decorator in definition.decorator_list if self.is_ours(decorator)]
        plain = self.without_effects(definition, ours)
        self.execute(plain)
        self.plain[definition.name] = definition
        if ours:
            self.functions[definition.name] = self.namespace[definition.name]
            self.definitions[definition.name] = definition
            self.seen.append(definition)

    def without_effects(self, definition: ast.FunctionDef, decorators: list[ast.expr]) -> ast.FunctionDef:
        """The definition with nothing in its head that could run code, other than these decorators."""
        head = definition.args
        every = (*head.posonlyargs, *head.args, *head.kwonlyargs)
        bare = [ast.copy_location(ast.arg(argument.arg), argument) for argument in every]
        first, second = len(head.posonlyargs), len(head.posonlyargs) + len(head.args)
        parameters = ast.arguments(
            posonlyargs=bare[:first],
            args=bare[first:second],
            vararg=head.vararg and ast.arg(head.vararg.arg),
            kwonlyargs=bare[second:],
            kw_defaults=[value and self.simple_or_none(value) for value in head.kw_defaults],
            kwarg=head.kwarg and ast.arg(head.kwarg.arg),
            defaults=[self.simple_or_none(value) for value in head.defaults],
        )
        plain = ast.FunctionDef(definition.name, parameters, definition.body, decorators, None)
        return ast.copy_location(plain, definition)

    def simple_or_none(self, value: ast.expr) -> ast.expr:
        return value if self.is_simple(value) else ast.copy_location(ast.Constant(None), value)

    def attempt(self, statement: ast.Try) -> None:
        """The body of a `try`, or its handlers where the body cannot be executed."""
        try:
            self.run(statement.body)
        except LoadError as error:
            if not isinstance(error.__cause__, ImportError):
                raise
            for handler in statement.handlers:
                self.run(handler.body)
        else:
            self.run(statement.orelse)

    def is_ours(self, decorator: ast.expr) -> bool:
        """Whether it is the decorator looked for, with simple options or none."""
        if isinstance(decorator, ast.Call):
            simple = all(self.is_simple(keyword.value) for keyword in decorator.keywords)
            return simple and not decorator.args and self.is_ours(decorator.func)
        return self.value(decorator) is self.decorator

    def value(self, node: ast.expr) -> Any:
        """The object that a name, or a name in a module, stands for; None where it is neither."""
        if isinstance(node, ast.Name):
            return self.namespace.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        return None

    def is_simple(self, value: ast.expr) -> bool:
        """Whether to evaluate the expression is harmless."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                is_scalar = name in SCALARS and not node.keywords
                if not is_scalar and self.value(node.func) is not np.array:  # no larger than it is written
                    return False
            elif not isinstance(node, (*SIMPLE, ast.keyword)):
                return False
        return True
