"""The source of a function object, and the spans of its syntax tree in the file it came from."""

from __future__ import annotations

import ast
import inspect
import linecache
from functools import lru_cache
from pathlib import Path
from types import FunctionType

from orion.dataclass import dataclass, field
from orion.errors import UnsupportedLoopError, describe
from orion.frontend.same_source import is_compiled_from, is_source_of
from orion.source import SourceText, Span


@dataclass(frozen=True, slots=True)
class Located:
    """A function's definition as a syntax tree whose line and column numbers are those of the file."""

    definition: ast.FunctionDef
    source: SourceText


@dataclass(frozen=True, slots=True)
class FileLines:
    """The lines of a file as they were once; none where it has none."""

    file: str
    lines: tuple[str, ...] = field(repr=False)


NO_LINES = FileLines("", ())


def lines_now(function: FunctionType) -> FileLines:
    """The lines of the file of a function as they are now. A function that was just defined is one of these; later,
    somebody may have saved another text in the file."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    return FileLines(file, tuple(linecache.getlines(file, function.__globals__)))


def locate(function: FunctionType, lines: FileLines = NO_LINES) -> Located:
    """Find and parse the source of a function, nested and indented ones too, in the `lines` of its file where they are
    given.

    Raises `UnsupportedLoopError` where there is no source (`exec`, the plain interactive prompt), where it no longer is
    the source of this function, and for a generator or a coroutine.
    """
    if function.__code__.co_name == "<lambda>":
        return _lambda(function)
    try:
        whole = lines if lines.file == function.__code__.co_filename else lines_now(function)
        found, first = _own_lines(function, whole)
    except (OSError, TypeError) as error:
        raise _without_source(function) from error
    source = SourceText(function.__code__.co_filename, first, tuple(line.rstrip("\r\n") for line in found))
    text = _in_place(found, first)
    definition = _definition(function, text, source)
    if not is_compiled_from(text, function.__code__) and not is_source_of("".join(whole.lines), function):
        raise _without_source(function, _OTHER_TEXT)
    return Located(definition, source)


def _own_lines(function: FunctionType, lines: FileLines) -> tuple[list[str], int]:
    """The lines of a function, and the number of the first."""
    first = function.__code__.co_firstlineno
    if lines.file != function.__code__.co_filename or len(lines.lines) < first or hasattr(function, "__wrapped__"):
        return inspect.getsourcelines(function)
    return list(_block(lines, first)), first


@lru_cache(maxsize=4)  # it is asked several times of each function
def _block(lines: FileLines, first: int) -> tuple[str, ...]:
    return tuple(inspect.getblock(lines.lines[first - 1 :]))


def _in_place(lines: list[str], first: int) -> str:
    """The lines of a function alone, at the lines and columns that they have in the file: one that is indented stands
    below an `if`."""
    nested = lines[0][:1].isspace()
    return "\n" * (first - 1 - nested) + "if True:\n" * nested + "".join(lines)


def _definition(function: FunctionType, text: str, source: SourceText) -> ast.FunctionDef:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise _without_source(function) from error
    body = tree.body[0].body if isinstance(tree.body[0], ast.If) else tree.body
    definition = body[0]
    span = Span(source.file, source.first_line, 0, source.first_line, len(source.lines[0]))
    if not isinstance(definition, ast.FunctionDef) or inspect.isgeneratorfunction(function):
        kind = "a generator" if inspect.isgeneratorfunction(function) else "not a function written with `def`"
        what = f"`{function.__name__}` is {kind}"
        hint = "write the loop in a plain function, `def name(arguments): …`"
        raise UnsupportedLoopError(describe(what, span=span, source=source, hint=hint))
    code = function.__code__
    arguments = definition.args
    params = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if definition.name != code.co_name or params != list(code.co_varnames[: len(params)]):
        raise _without_source(function, _OTHER_TEXT)
    return definition


def _lambda(function: FunctionType) -> Located:
    """A lambda as a function that returns its value: that of the text at the places where its code stands."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError as error:
        raise _without_source(function) from error
    names = list(code.co_varnames[: code.co_argcount])
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column is not None]
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and [one.arg for one in node.args.args] == names and _holds(node, places)
    ]
    if not lines or not found or not is_source_of("".join(lines), function):
        raise _without_source(function, _OTHER_TEXT if lines else "")
    node = found[-1]  # the innermost one
    source = SourceText(code.co_filename, 1, tuple(line.rstrip("\r\n") for line in lines))
    value = ast.copy_location(ast.Return(node.body), node.body)
    definition = ast.FunctionDef("<lambda>", node.args, [value], [], None, None)
    return Located(ast.copy_location(definition, node), source)


def _holds(node: ast.Lambda, places: list[tuple[int, int]]) -> bool:
    """Whether all places are inside of the value of a lambda, or are where it begins."""
    body = node.body
    first, last = (node.lineno, node.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    own = [place for place in places if place != (node.lineno, 0)]
    return bool(own) and all(first <= place <= last for place in own)


_OTHER_TEXT = (
    "Python runs other code than its file says: the file was saved after the import, or twice within a second, so that "
    "`__pycache__` holds what it said before"
)


def _without_source(function: FunctionType, why: str = "") -> UnsupportedLoopError:
    name, file = getattr(function, "__name__", repr(function)), function.__code__.co_filename
    hint = "import the module anew: `importlib.reload`, after `__pycache__` was removed"
    if not why and Path(file).is_absolute():
        is_there = Path(file).is_file()
        what = "holds no text of Python" if is_there else "is not there: moved, deleted, or installed as `.pyc`"
        why = f"Orion compiles a loop from its source text, and the file {file} {what}"
        hint = "put the file back, or install the package with its sources"
    elif not why:
        why = "Orion compiles a loop from its source text, which exec and the plain prompt do not keep"
        hint = "define the function in a file or in a notebook cell"
    return UnsupportedLoopError(describe(f"the source of `{name}` cannot be read", why=why, hint=hint))


def span_of(
    node: ast.expr | ast.stmt | ast.arg | ast.keyword, source: SourceText, until: ast.AST | None = None
) -> Span:
    """The span of a node (to the end of `until`, where given), in characters: `ast` counts columns in UTF-8 bytes."""
    last = until if until is not None else node
    line, end_line = node.lineno, getattr(last, "end_lineno", None) or node.lineno
    column = _characters(source.line(line), node.col_offset)
    end_column = _characters(source.line(end_line), getattr(last, "end_col_offset", None) or node.col_offset)
    return Span(source.file, line, column, end_line, end_column)


def _characters(line: str, octets: int) -> int:
    return octets if line.isascii() else len(line.encode()[:octets].decode(errors="ignore"))
