"""Text of audited files without the `raise` statements of helper functions, and with `a.shape` for `np.shape(a)`.

What a call that raises does after it does not count, and so a `raise` is nothing to the audit: the rest of the function
is taken to be reached. Lines and columns stay as they are.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator

from orion.cli.cells import LoadError, Part, part_named

MARK = "<audited> "
"""How names of files begin whose texts are such."""


def file_of(name: str) -> str:
    """Return the name of a file as its user knows it."""
    return name.removeprefix(MARK)


def without_raising(part: Part, loops: list[ast.For]) -> Part:
    """Return a program without the `assert` and `raise` statements of its functions, but for `raise` in these loops.
    Shapes become attributes."""
    spans = [(loop.lineno, loop.end_lineno or loop.lineno) for loop in loops]
    found: list[tuple[ast.stmt | ast.expr, str]] = [
        (statement, words)
        for function in ast.walk(part.tree)
        if isinstance(function, ast.FunctionDef)
        for statement, words in _replaced(function)
        if isinstance(statement, ast.Assert) or not any(first <= statement.lineno <= last for first, last in spans)
    ]
    found = [*_shapes(part.tree), *found]  # a shape in a statement goes first, while that stands in its place
    lines = list(linecache.getlines(part.file))
    if not found or not lines:
        return part
    for statement, words in found:
        _write(lines, statement, words)
    try:
        return part_named(f"{MARK}{part.file}", "".join(lines))
    except LoadError:
        return part


def _shapes(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """The calls of `np.shape` with a name, each with what it stands for. The shorter text keeps the columns."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("np" | "numpy"), "shape"), [ast.Name(array)], []):
                if node.lineno == node.end_lineno:
                    yield node, f"{array}.shape"


def _replaced(function: ast.FunctionDef) -> list[tuple[ast.Raise | ast.Assert, str]]:
    """The `raise` statements of a function itself, with what stands in their places."""
    last, found = _tail(function.body), []
    waiting: list[ast.AST] = [*function.body]
    values: list[ast.expr] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise | ast.Assert):
            found.append(node)
        if isinstance(node, ast.Return) and node.value is not None:
            values.append(node.value)
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    returned = "return"
    if values:
        count = len(values[0].elts) if isinstance(values[0], ast.Tuple) else 1
        returned = f"return {', '.join('0' * count)}"
    return [(one, returned if one in last and isinstance(one, ast.Raise) else "pass") for one in found]


def _tail(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements with which a function may end."""
    match body[-1]:
        case ast.If(_, then, orelse) if orelse:
            return [*_tail(then), *_tail(orelse)]
        case last:
            return [last]


def _write(lines: list[str], statement: ast.stmt | ast.expr, words: str) -> None:
    """Write words in the place of a part of the text; lines have as many characters as before where they fit."""
    first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
    start = len(lines[first].encode()[: statement.col_offset].decode(errors="ignore"))
    end = len(lines[last].encode()[: statement.end_col_offset].decode(errors="ignore"))
    rest = lines[last][end:]
    width = end - start if first == last else 0
    lines[first] = lines[first][:start] + words.ljust(width) + rest
    for number in range(first + 1, last + 1):
        lines[number] = "\n"
