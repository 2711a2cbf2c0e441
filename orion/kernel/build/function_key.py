"""Names for the machine code of functions that Numba compiles as they are: hashes of all that the code depends on.

The code depends on the function and its helpers, on the types of the arguments, and on what compiles it. It also
depends on values from outside, which Numba makes constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, ModuleType

import numpy as np

from orion.frontend.outside import MISSING, SETTLED, Outside, Version
from orion.kernel.build.modules import key_of

FOUND_BY_NAME = (BuiltinFunctionType, type, np.ufunc, type(np.sum))
"""What a name in one of the settled modules says all of."""


PLAIN = (bool, int, float, complex, str, bytes, EllipsisType, type(None))
"""Types, and none that are derived from them, of values whose text says all."""


class _UnknownError(Exception):
    """A value that no text stands for in every process."""


def function_key(outside: Outside, arguments: tuple[object, ...]) -> str | None:
    """The name of a function's machine code for arguments of these types; None where it takes something from outside
    that is not the same in another process by its text."""
    from numba import typeof

    functions = {version.function: number for number, version in enumerate(outside.functions)}
    try:
        parts = [_version(version) for version in outside.functions]
        parts += [f"{name}={_described(value, functions)}" for _, name, value in outside.names]
        parts += [_described(value, functions) for _, value in outside.cells]
        parts += [f".{name}={_described(value, functions)}" for _, name, value in outside.attributes]
        kinds = [_type_name(value, str(typeof(value))) for value in arguments]
    except _UnknownError:
        return None
    return key_of(*parts, *kinds, np.__version__, _compiler())


def _type_name(value: object, name: str) -> str:
    if isinstance(value, tuple) and type(value) is not tuple:
        raise _UnknownError  # a class of the user's
    return name


@cache
def _compiler() -> str:
    """What compiles such functions, and checks them: the text of Orion's part of it."""
    return "\0".join(file.read_text("utf-8") for file in sorted(Path(__file__).parent.glob("*.py")))


def _version(version: Version) -> str:
    defaults = [*(version.defaults or ()), *(value for _, value in version.keywords)]
    return f"{code_text(version.function.__code__)} {[_described(value, {}) for value in defaults]}"


def code_text(code: CodeType) -> str:
    """All that the meaning of code and its line numbers depend on, as text; not the file, whose name a notebook makes
    anew for each process.

    >>> text = "def f(x):\\n    return x + 1"
    >>> first, again, other = (compile(text + more, name, "exec") for more, name in (("", "a"), ("", "b"), ("0", "a")))
    >>> code_text(first) == code_text(again), code_text(first) == code_text(other)
    (True, False)
    """
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_firstlineno
    names = code.co_qualname, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    tables = code.co_code, code.co_linetable, code.co_exceptiontable
    return repr((counts, names, tables, _constants(code.co_consts)))


def _constants(values: Iterable[object]) -> list[str]:
    return [code_text(one) if isinstance(one, CodeType) else _described(one, {}) for one in values]


def _described(value: object, functions: Mapping[FunctionType, int]) -> str:
    """A text that stands for a value in every process. `functions` are those whose code is told of, with numbers."""
    kind = type(value)
    if value is MISSING:
        return "missing"
    if kind in (tuple, frozenset):
        inner = _constants(value)  # type: ignore[arg-type]
        return f"{kind.__name__} {inner if kind is tuple else sorted(inner)}"
    if kind in PLAIN or (isinstance(value, np.generic) and kind.__module__ == "numpy"):
        return f"{kind.__name__} {value!r}"
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in SETTLED:
        return f"module {value.__name__}"
    if isinstance(value, FunctionType) and value in functions:
        return f"function {functions[value]}"
    if isinstance(value, FOUND_BY_NAME) and _module_of(value) in SETTLED:
        return f"{kind.__name__} {_module_of(value)}.{getattr(value, '__qualname__', value.__name__)}"
    raise _UnknownError


def _module_of(value: object) -> str:
    named = getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else "builtins")
    return str(named).partition(".")[0]
