"""The places in Orion's source that say what to write instead, and which of them a message came from.

A place is a text: what a call is given as `hint`, or a row of a table has. Where it is a name, it is what the function
around gives that name. `{}` stands for what is filled in.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parents[1] / "orion"
STAGES = ("frontend", "passes", "typing", "ir", "reasons.py")
"""What is looked through: what comes of the source of a function, before anything of a call is known but its types."""

POSITIONS = {"refuse": 3, "refuse_expr": 3, "TypeProblem": 2, "Refusal": 2, "Code": 2, "Known": 2}
KEYWORDS = ("hint", "instead")
"""Where functions take a hint by position, and what it is called."""

GAP = "\0"


@dataclass(frozen=True)
class Site:
    """A text, in a file, in lines of one function; of a table, in no lines."""

    file: str
    text: str
    first: int = 0
    last: int = 0

    @property
    def key(self) -> str:
        """The file, and how the text begins."""
        return f"{self.file}: {self.text.replace(GAP, '{}')[:64]}"

    def says(self, hint: str) -> bool:
        return re.fullmatch(re.escape(self.text).replace(re.escape(GAP), ".*"), hint, re.DOTALL) is not None

    def is_in(self, frames: list[tuple[str, int]]) -> bool:
        """Whether an error went through the function; one that only makes errors leaves no frame, but its file may."""
        return not self.last or any(file == self.file for file, _ in frames)


def all_sites() -> list[Site]:
    """The places of all stages, each text of a file once."""
    files = (path for stage in STAGES for path in sorted((PACKAGE / stage).rglob("*.py")) or [PACKAGE / stage])
    found = {site.key: site for path in files for site in _sites_of(path)}
    return [*found.values()]


def frames_of(error: BaseException | None) -> list[tuple[str, int]]:
    """The lines of Orion's that an error went through, and those of what caused it."""
    found: list[tuple[str, int]] = []
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            path = Path(trace.tb_frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                found.append((str(path.relative_to(PACKAGE)), trace.tb_lineno))
            trace = trace.tb_next
        error = error.__cause__ or error.__context__
    return found


def _sites_of(path: Path) -> Iterator[Site]:
    tree, file = ast.parse(path.read_text()), str(path.relative_to(PACKAGE))
    module = importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    inside = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        around = [one for one in inside if one.lineno <= call.lineno <= (one.end_lineno or 0)]
        innermost = max(around, key=lambda one: one.lineno, default=None)
        lines = (innermost.lineno, innermost.end_lineno or 0) if innermost else (0, 0)
        hint = _hint_of(call)
        for text in () if hint is None else _texts(hint, module, innermost, 0):
            if text.strip(GAP):
                yield Site(file, text, *lines)


def _hint_of(call: ast.Call) -> ast.expr | None:
    """What a call is given as a hint."""
    name = ast.unparse(call.func).rpartition(".")[2]
    by_name = next((keyword.value for keyword in call.keywords if keyword.arg in KEYWORDS), None)
    at = POSITIONS.get(name)
    if at is not None and call.args and isinstance(call.args[-1], ast.Starred):
        return call.args[-1].value
    return call.args[at] if by_name is None and at is not None and at < len(call.args) else by_name


def _texts(node: ast.expr, module: ModuleType, function: ast.FunctionDef | None, depth: int) -> Iterator[str]:
    """The texts that an expression may be."""
    match node:
        case ast.Constant(str(text)):
            yield text
        case ast.JoinedStr(parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else _inner(part, module) for part in parts)
        case ast.IfExp(_, then, orelse):
            yield from _texts(then, module, function, depth)
            yield from _texts(orelse, module, function, depth)
        case ast.BinOp(left, ast.Add(), right):
            for one in _texts(left, module, function, depth):
                yield from (one + other for other in _texts(right, module, function, depth))
        case ast.Name(name) if function is not None and depth < 3 and (given := _given(name, function)):
            for value in given:
                yield from _texts(value, module, function, depth + 1)
        case ast.Name() | ast.Attribute() if isinstance(found := _value(node, module), str | tuple):
            yield re.sub(r"\{[^{}]*\}", GAP, found[-1] if isinstance(found, tuple) else found)
        case ast.Subscript(table) | ast.Call(ast.Attribute(table, "get")) if isinstance(_value(table, module), dict):
            values = _value(table, module)
            assert isinstance(values, dict)
            yield from (re.sub(r"\{[^{}]*\}", GAP, text) for text in values.values() if isinstance(text, str))
        case ast.Call(ast.Name("did_you_mean"), [_, _, otherwise]):
            yield from _texts(otherwise, module, function, depth)
        case ast.Call(ast.Attribute(text, "format")):
            yield from (re.sub(r"\{[^{}]*\}", GAP, one) for one in _texts(text, module, function, depth))
        case _:
            yield GAP


def _inner(part: ast.expr, module: ModuleType) -> str:
    value = _value(part.value, module) if isinstance(part, ast.FormattedValue) else None
    return re.sub(r"\{[^{}]*\}", GAP, value) if isinstance(value, str) else GAP


def _value(node: ast.expr, module: ModuleType) -> object:
    """What a global name, or an attribute of one, stands for."""
    match node:
        case ast.Name(name):
            return getattr(module, name, None)
        case ast.Attribute(owner, name):
            return getattr(_value(owner, module), name, None)
        case _:
            return None


def _given(name: str, function: ast.FunctionDef) -> list[ast.expr]:
    """The values that a function gives a name."""
    found: list[ast.expr] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Name(one)], value) if one == name:
                found.append(value)
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
                found += [v for n, v in zip(names, values, strict=True) if isinstance(n, ast.Name) and n.id == name]
    return found
