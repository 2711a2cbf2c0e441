"""The Python of a file: all of a script, or the cells of a notebook, each as a file of its own."""

from __future__ import annotations

import ast
import io
import json
import linecache
import re
from pathlib import Path
from typing import Any

from orion.dataclass import dataclass
from orion.source import Span

MAGIC = re.compile(r"^(\s*)(?:[%!?].*|.*\?)$")
"""A line that IPython takes for itself: a magic, a command of the shell, a question."""
PYTHON_CELLS = ("time", "timeit", "capture", "prun", "python", "python3")
"""The magics of whole cells below which stands Python."""


class LoadError(Exception):
    """The file cannot be read, or does not hold what was asked for."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some of a program: the name by which `linecache` has its text, and its tree."""

    file: str
    tree: ast.Module


def parts_of(path: Path) -> list[Part]:
    """The program that a file holds; of a notebook, a part per cell. LoadError where it cannot be had or parsed."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror or error}") from None
    if path.suffix != ".ipynb":
        return [Part(str(path), _parsed(data, str(path)))]
    return [part_named(f"{path}, cell {name}", text) for name, text in _cells(data, path)]


def part_named(file: str, text: str) -> Part:
    """A program that is in no file, kept under a name for all who ask `linecache`. LoadError where it is no Python."""
    lines = [*io.StringIO(text, newline=None)]  # `splitlines` would break lines at form feeds, which Python does not
    linecache.cache[file] = (len(text), None, lines, file)
    return Part(file, _parsed(text.encode(), file))


def _parsed(data: bytes, file: str) -> ast.Module:
    try:
        return ast.parse(data, filename=file)
    except (SyntaxError, ValueError) as error:
        where = Span(file, error.lineno or 1, 0, 1, 0) if isinstance(error, SyntaxError) else file
        raise LoadError(f"{where}: not a Python file: {error}") from None


def _cells(data: bytes, path: Path) -> list[tuple[str, str]]:
    """The Python of the cells of a notebook, without what is IPython's, each with the number that stands beside it, or
    else its place among them."""
    try:
        notebook: Any = json.loads(data)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        found = [("".join(cell["source"]), cell.get("execution_count")) for cell in cells]
    except (ValueError, KeyError, TypeError):
        raise LoadError(f"{path}: not a notebook of Jupyter's format 4") from None
    return [(f"In[{count}]" if count else str(place), _python(text)) for place, (text, count) in enumerate(found, 1)]


def _python(text: str) -> str:
    """The lines of a cell as Python has them: `pass` in place of those that are IPython's."""
    lines = [line.rstrip("\n") for line in io.StringIO(text, newline=None)]
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and first[2:].split()[:1] not in [[name] for name in PYTHON_CELLS]:
        return ""
    return "".join(MAGIC.sub(r"\1pass", line) + "\n" for line in lines)
