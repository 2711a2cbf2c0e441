"""Whether a text is what a function was compiled from: Python may run other code than its file says.

A file is saved while a job runs, or an old `__pycache__` is taken for a file that was saved twice within a second. The
text is compiled once more, and its code compared with that of the function.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType

_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})

_OF_PYTEST = ("@py_assert", "@pytest_ar", "@py_format", "@py_builtins")
"""How names begin that no Python has."""


def is_source_of(text: str, function: FunctionType) -> bool:
    """Whether `function` was compiled from the `text` of its file, or of its cell of a notebook.

    One that pytest has written other code for, as it has an `assert`, is taken for what its text says.
    """
    return _is_in_compiled(text, function.__code__)


@lru_cache(maxsize=4)  # it is asked several times of each function
def is_compiled_from(own: str, code: CodeType) -> bool:
    """Whether `code` is what Python makes of the text of its function alone, at the lines that it has in its file."""
    try:
        unit = compile(own, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return any(_alike(one, code) for one in _compiled_at(unit, code))


@lru_cache(maxsize=4)  # it is asked several times of each function
def _is_in_compiled(text: str, code: CodeType) -> bool:
    try:
        tree = _parsed(text)
    except (SyntaxError, ValueError):
        return False
    if any(name.startswith(_OF_PYTEST) for one in (code, *_inner(code)) for name in (*one.co_names, *one.co_varnames)):
        return True
    around = [one for one in tree.body if _first_line(one) <= code.co_firstlineno <= (one.end_lineno or 0)]
    # Notebooks compile each statement for itself: then it makes no difference what is imported above it.
    alone = compile(ast.Module(around, []), code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    whole = _compiled(text, code.co_filename, code.co_flags & _FUTURE)
    return any(_alike(one, code) for unit in (alone, whole) for one in _compiled_at(unit, code))


@lru_cache(maxsize=4)  # a file has several functions
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@lru_cache(maxsize=4)
def _compiled(text: str, file: str, flags: int) -> CodeType:
    code: CodeType = compile(_parsed(text), file, "exec", flags, dont_inherit=True)
    return code


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _compiled_at(unit: CodeType, code: CodeType) -> Iterator[CodeType]:
    """The codes in a unit that have the name and the place of `code`, with or without its decorators."""
    for one in _inner(unit):
        is_named_so = one.co_name == code.co_name and one.co_firstlineno <= code.co_firstlineno
        if is_named_so and code.co_firstlineno <= max((line for _, _, line in one.co_lines() if line), default=0):
            yield one


def _inner(code: CodeType) -> Iterator[CodeType]:
    """All codes inside of one."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _inner(one)


def _alike(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same with the same names and constants, of the same types and signs."""
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
        and one.co_cellvars == other.co_cellvars
        and len(one.co_consts) == len(other.co_consts)
        and all(_same_constant(*pair) for pair in zip(one.co_consts, other.co_consts, strict=True))
    )


def _same_constant(one: object, other: object) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _alike(one, other)
    if isinstance(one, frozenset) and isinstance(other, frozenset):  # printed in any order
        return sorted(map(repr, one)) == sorted(map(repr, other))
    return type(one) is type(other) and repr(one) == repr(other)
