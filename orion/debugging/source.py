"""The source of a debugged function: without what is only for debugging, to be planned; and with its planned loops
going through their tiles, to be run. Lines are those of the user's file in both."""

from __future__ import annotations
import __future__

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType

from orion.dataclass import dataclass
from orion.frontend.locate import FileLines, locate

_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})

DEBUGGERS = ("pdb", "ipdb", "pudb", "debugpy")

Loops = Sequence[ast.For]
"""The `for`s of a perfect nest, outermost first."""


# ------------------------------------------------------------ what is planned


def without_debugging(function: FunctionType, lines: FileLines) -> tuple[FunctionType, FileLines]:
    """Return the function, and the lines of its file, without calls of `print`, `breakpoint` and `pdb.set_trace`, and
    without the `if`s that hold nothing else. The function itself where it has none."""
    definition = locate(function, lines).definition
    found = list(_debugging_statements(definition, function))
    if not found:
        return function, lines
    text = [line.encode() for line in lines.lines]
    for node, is_needed in sorted(found, key=lambda pair: (pair[0].lineno, pair[0].col_offset), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, after = text[first][: node.col_offset], text[last][node.end_col_offset or 0 :]
        is_alone = not before.strip() and not after.partition(b"#")[0].strip()
        word = b"pass" if is_needed or not is_alone else b""
        text[first : last + 1] = [before + word + after] + [b"\n"] * (last - first)
    changed = FileLines(lines.file, tuple(line.decode() for line in text))
    tree = ast.parse("".join(changed.lines))
    at = definition.lineno
    same = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.lineno == at)
    return made_of(same, function, {}), changed


def _debugging_statements(definition: ast.AST, function: FunctionType) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the statements that are only for debugging, and whether a block needs something in its place."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(definition, name, None)
        if isinstance(block, list):
            found = [one for one in block if _is_debugging(one, function)]
            yield from ((one, len(found) == len(block)) for one in found)
            for one in block:
                if one not in found:
                    yield from _debugging_statements(one, function)


def _is_debugging(node: ast.stmt, function: FunctionType) -> bool:
    match node:
        case ast.Expr(ast.Call(ast.Name("print" | "breakpoint" as name))):
            own = function.__globals__.get(name, getattr(builtins, name))
            is_own = name in (*function.__code__.co_varnames, *function.__code__.co_freevars)
            return own is getattr(builtins, name) and not is_own and not any(map(_changes_names, ast.walk(node)))
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(module), "set_trace" | "breakpoint"))):
            return module in DEBUGGERS
        case ast.Import(names):
            return all(one.name in DEBUGGERS for one in names)
        case ast.If(test, body, []):
            changes = any(map(_changes_names, ast.walk(test)))
            return not changes and all(_is_debugging(one, function) for one in body)
        case _:
            return False


def _changes_names(node: ast.AST) -> bool:
    return isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)


# ------------------------------------------------------------ what is run


@dataclass(frozen=True, slots=True)
class Hook:
    """How a loop goes through its tiles: number `loop` of the plan, by its elements where it `is_sparse`, else by the
    points of its perfectly nested ranges, of which there are `dims`."""

    loop: int
    dims: int
    is_sparse: bool


def with_hooks(definition: ast.FunctionDef, hooks: Mapping[tuple[int, int], Hook], name: str) -> ast.FunctionDef:
    """Change the loops that stand at these lines and columns; their hooks are methods of what has this `name`."""
    changed = _Changed(hooks, name).visit(definition)
    assert isinstance(changed, ast.FunctionDef)
    return ast.fix_missing_locations(changed)


class _Changed(ast.NodeTransformer):
    """Puts calls of hooks in place of what loops go through."""

    def __init__(self, hooks: Mapping[tuple[int, int], Hook], name: str) -> None:
        self.hooks, self.name = hooks, name

    def visit_For(self, node: ast.For) -> ast.For:
        hook = self.hooks.get((node.lineno, node.col_offset))
        if hook is None:
            self.generic_visit(node)
            return node
        if hook.is_sparse:
            call = self._call("elements", ast.Constant(hook.loop), node.iter)
            target, body = node.target, node.body
        else:
            loops = nest_of(node)[: hook.dims]
            target, body = _targets(loops), loops[-1].body
            call = self._call("iterations", ast.Constant(hook.loop), self._points(hook.loop, loops))
        new = ast.For(target, ast.copy_location(call, node.iter), body, [], None)
        return ast.copy_location(new, node)

    def _points(self, loop: int, loops: Loops) -> ast.expr:
        """The coordinates and the values of all iterations of ranges, in their written order."""
        names = [f"{self.name}_{k}" for k in range(len(loops))]
        generators = [
            ast.comprehension(
                ast.Tuple([ast.Name(name, ast.Store()), one.target], ast.Store()),
                self._call("numbered", ast.Constant(loop), ast.Constant(k), one.iter), [], 0,
            )
            for k, (name, one) in enumerate(zip(names, loops, strict=True))
        ]  # fmt: skip
        at = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        values: list[ast.expr] = [ast.Name(name_of(one), ast.Load()) for one in loops]
        value = values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())
        return ast.GeneratorExp(ast.Tuple([at, value], ast.Load()), generators)

    def _call(self, method: str, *arguments: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name(self.name, ast.Load()), method, ast.Load())
        return ast.Call(function, list(arguments), [])


def _targets(loops: Loops) -> ast.expr:
    names: list[ast.expr] = [ast.Name(name_of(one), ast.Store()) for one in loops]
    found = names[0] if len(names) == 1 else ast.Tuple(names, ast.Store())
    return ast.copy_location(found, loops[0].target)


def name_of(loop: ast.For) -> str:
    """Return the loop variable, empty where it is no name."""
    return loop.target.id if isinstance(loop.target, ast.Name) else ""


def nest_of(loop: ast.For) -> list[ast.For]:
    """Return the loop and those that stand perfectly nested in it."""
    found = [loop]
    while True:
        inner = [one for one in found[-1].body if not _does_nothing(one)]
        if len(inner) != 1 or not isinstance(inner[0], ast.For):
            return found
        found.append(inner[0])


def _does_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def unused_name(definition: ast.FunctionDef, function: FunctionType) -> str:
    """Return a name that neither the function nor its module has."""
    taken = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)} | function.__globals__.keys()
    name = "orion_debug"
    while any(one.startswith(name) for one in taken):
        name = f"_{name}"
    return name


def made_of(definition: ast.FunctionDef, function: FunctionType, given: Mapping[str, object]) -> FunctionType:
    """Return a function like `function` whose code is that of a definition, at the same lines of the same file.
    `given` are names that its code has from outside, beside its own."""
    own = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = own | {name: CellType(value) for name, value in given.items()}
    inner = ast.copy_location(ast.FunctionDef(**{**vars(definition), "decorator_list": []}), definition)
    names = [ast.copy_location(ast.arg(name), definition) for name in cells]
    outer = ast.FunctionDef("outer", ast.arguments([], names, None, [], [], None, []), [inner], [], None, None)
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, definition)], []))
    flags = function.__code__.co_flags & _FUTURE
    code = compile(module, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    code = _inner(_inner(code, "outer"), definition.name)
    code = code.replace(co_qualname=function.__code__.co_qualname, co_firstlineno=function.__code__.co_firstlineno)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    made.__module__ = function.__module__
    return made


def _inner(code: CodeType, name: str) -> CodeType:
    return next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)


# ------------------------------------------------------------ what may change its order


def ends_early(loops: Loops) -> bool:
    """Whether an iteration of a nest may end it."""
    return any(_leaves(one, is_own=True) for one in loops[-1].body) or any(loop.orelse for loop in loops)


def _leaves(node: ast.AST, *, is_own: bool) -> bool:
    match node:
        case ast.Return():
            return True
        case ast.Break():
            return is_own
        case ast.FunctionDef() | ast.Lambda():
            return False
        case ast.For() | ast.While():
            inner = [*node.body, *node.orelse]
            return any(_leaves(one, is_own=False) for one in inner)
        case _:
            return any(_leaves(one, is_own=is_own) for one in ast.iter_child_nodes(node))


def read_outside(definition: ast.FunctionDef, loop: ast.For, leave_out: Callable[[str], bool]) -> str:
    """Return a name that the loop gives a value which is read outside of it, or an empty string. Another loop that
    gives the name a value before it reads it does not count."""
    stored = {name for name in _stored(loop) if not leave_out(name)}
    for node in _outside(definition, loop, stored):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in stored:
            return node.id
    return ""


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _outside(node: ast.AST, loop: ast.For, stored: set[str]) -> Iterator[ast.AST]:
    """Yield the nodes outside of a loop that may read one of the names as the loop has left it."""
    if node is loop:
        return
    if isinstance(node, ast.For) and not any(one is loop for one in ast.walk(node)):
        yield from ast.walk(node.iter)
        left = stored - _set_first(node)
        yield from (one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in left)
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _outside(child, loop, stored)


def _set_first(loop: ast.For) -> set[str]:
    """The names that every iteration of a loop gives a value before it reads them."""
    found: set[str] = set()
    for one in nest_of(loop):
        found |= _stored(one.target)
    read: set[str] = set()
    for statement in nest_of(loop)[-1].body:
        loads = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - found
        if isinstance(statement, ast.Assign) and all(isinstance(one, ast.Name) for one in statement.targets):
            names = {one.id for one in statement.targets if isinstance(one, ast.Name)}
            values = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            read |= values - found
            found |= names - read
        else:
            read |= loads
    return found
