"""Functions made from text, for tests that are tables of source code."""

from __future__ import annotations

import inspect
import linecache
import textwrap
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

from orion.frontend.parse import parse_function
from orion.ir.function import Function

_numbers = count()


def defined(text: str, **names: Any) -> FunctionType:
    """The first function that the text defines, as if the text stood in a file; it sees `np` and `names`."""
    file = f"<test {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"np": np, **names}
    exec(compile(text, file, "exec"), scope)
    found = (value for value in scope.values() if inspect.isfunction(value))
    return next(function for function in found if function.__code__.co_filename == file)


def from_text(text: str, **names: Any) -> Function:
    """The function of the text in the loop language."""
    return parse_function(defined(textwrap.dedent(text).lstrip("\n"), **names))


def from_body(body: str, params: str = "a, b, W, n", **names: Any) -> Function:
    """A function with that body in the loop language."""
    return from_text(f"def f({params}):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n", **names)
