"""Functions of the user's compiled as they are, by Numba alone: what Orion's analysis does not take.

Subscripts are checked, and errors are Python's. Helpers, which Numba wants compiled too, are: the function is given
copies of them in its globals.
"""

from __future__ import annotations

import dis
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from random import Random
from secrets import token_hex
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaWarning
from numba.core.registry import CPUDispatcher

from orion import keyed_random
from orion.arrays.parts import are_small
from orion.frontend.outside import SETTLED
from orion.frontend.parse_calls import plain_function
from orion.kernel.build.builtin_functions import IN_PLACE
from orion.kernel.build.differing import differing
from orion.kernel.build.failing import Lines
from orion.kernel.build.folder import check_current_folder
from orion.kernel.build.function_files import load_function, save_function
from orion.kernel.build.function_words import in_user_words
from orion.kernel.build.looking import LookingCompiler, is_local
from orion.kernel.build.machine_code import set_up_compiler
from orion.kernel.build.perf import is_on, name_for_perf

LOOKED_UP = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"})
"""Instructions that look up a name outside of their function."""

RANDOM = "random numbers would come from a state of its own"


class NotCompiledError(Exception):
    """Numba does not compile a function; the text says why, in one line. `is_silent`: Numba itself does not say it."""

    is_silent = False


class DiffersError(NotCompiledError):
    """It would do something else than Python; the text says what."""


def compile_whole(function: FunctionType, arguments: tuple[object, ...], key: str | None) -> Callable[..., Any]:
    """The function as machine code, for arguments of these types: from disk, where a process has kept it by `key`, or
    compiled, and kept unless `key` is None. Raises NotCompiledError where Numba has none for it, or would compute
    something else than Python.

    >>> def total(pairs):
    ...     found = []
    ...     for a, b in pairs:
    ...         found.append(a * b)
    ...     return found
    >>> compile_whole(total, (((1, 2), (3, 4)),), None)(((1, 2), (3, 4)))
    [2, 12]
    """
    if numba.config.DISABLE_JIT:
        raise NotCompiledError("NUMBA_DISABLE_JIT is set")
    check_current_folder()
    set_up_compiler()
    made: dict[FunctionType, Any] = {}
    lines = Lines(key or token_hex(12))
    compiled = compiled_copy(function, made, partial(lines.pipeline, LookingCompiler))
    if is_on() or key is None or not load_function(compiled, key):  # perf wants its object file, which LLVM takes
        _compile(compiled, arguments, made)
        if key is not None:
            save_function(compiled, key)
    code = function.__code__
    name_for_perf(compiled, f"orion::{function.__name__}:{code.co_filename}:{code.co_firstlineno}")

    def run(*given: Any) -> Any:
        try:
            found = compiled(*given)
        except Exception as error:
            raise lines.error_of(error) from None
        return _as_python_has_it(found, _to_copy(found))

    return run


def _compile(compiled: Any, arguments: tuple[object, ...], made: Mapping[FunctionType, Any]) -> None:
    """Compile a function with its helpers, `made`. Raises NotCompiledError."""
    try:
        with warnings.catch_warnings():  # of types that it tries and does not take, and of its own progress
            warnings.simplefilter("ignore", NumbaWarning)
            compiled.compile(tuple(numba.typeof(value) for value in arguments))
    except Exception as error:  # Numba raises many kinds, of which not all are its own
        raise _not_compiled(error) from error
    if what := next(filter(None, map(differing, _with_local(made.values()))), ""):
        raise DiffersError(what)
    if _holds_dict(compiled.nopython_signatures[-1].return_type):
        raise NotCompiledError("a dict of values of several types cannot be returned")


def _with_local(dispatchers: Iterable[Any]) -> list[Any]:
    """Compiled functions, with those defined in them that were compiled on their own."""
    found = list(dispatchers)
    for one in found:
        for compiled in one.overloads.values():
            kinds = compiled.type_annotation.typemap.values()
            local = {kind.dispatcher for kind in kinds if isinstance(kind, numba.types.Dispatcher)}
            found += [other for other in local if is_local(other) and other not in found]
    return found


def _as_python_has_it(value: Any, to_copy: Set[int]) -> Any:
    """What a function returned, with Python's dicts and lists in place of Numba's, and some arrays copied."""
    if type(value) is tuple:
        return tuple(_as_python_has_it(one, to_copy) for one in value)
    if isinstance(value, numba.typed.Dict):
        keys, values = _keys_and_values(value)  # NaN is found by no subscript
        return {key: _as_python_has_it(one, to_copy) for key, one in zip(keys, values, strict=True)}
    if isinstance(value, numba.typed.List):
        return [_as_python_has_it(one, to_copy) for one in value]
    return value.copy(order="K") if id(value) in to_copy else value


@numba.njit  # type: ignore[untyped-decorator]
def _keys_and_values(found: Any) -> Any:  # pragma: no cover - compiled
    return list(found.keys()), list(found.values())


def _to_copy(value: Any) -> Set[int]:
    """The arrays among what a function returned, alone or in tuples, that are small parts of one that it made."""
    made: dict[int, list[Any]] = {}
    for one in value if type(value) is tuple else (value,):
        if isinstance(one, np.ndarray) and hasattr(one.base, "refcount"):  # memory of Numba's
            memory: Any = one.base
            made.setdefault(memory.data, []).append(one)
    return {id(one) for parts in made.values() if are_small(parts, memoryview(parts[0].base).nbytes) for one in parts}


def _holds_dict(kind: Any) -> bool:
    """Whether values of a type are, or hold, dicts that Numba has no Python objects for."""
    parts = getattr(kind, "types", ())
    return isinstance(kind, numba.types.LiteralStrKeyDict) or any(map(_holds_dict, parts))


def names_outside(function: FunctionType) -> Iterator[str]:
    """The names that code may look up outside of the function, and attributes that it may look up in them."""
    for code in _codes(function):
        yield from (*code.co_names, *code.co_freevars)


def texts_in(function: FunctionType) -> Iterator[str]:
    """The texts in the code of a function that may be names, as for `getattr`."""
    for code in _codes(function):
        yield from (one for one in code.co_consts if isinstance(one, str) and one.isidentifier())


def _codes(function: FunctionType) -> list[CodeType]:
    """The code of a function, and of those that are defined in it."""
    found = [function.__code__]
    for code in found:
        found += [one for one in code.co_consts if isinstance(one, CodeType)]
    return found


def helpers_of(function: FunctionType) -> dict[str, FunctionType]:
    """The functions in Python that it may call by a name of its own, decorated ones too."""
    found = {}
    for name, value in outside_of(function).items():
        plain = plain_function(value)
        if plain is not None and not isinstance(value, CPUDispatcher):
            found[name] = plain
    return found


def outside_of(function: FunctionType) -> dict[str, Any]:
    """What a function takes from outside, by name."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found: dict[str, Any] = {}
    for code in _codes(function):
        for one in dis.get_instructions(code):
            if one.opname in LOOKED_UP and one.argval in cells:
                found[one.argval] = _content(cells[one.argval])
            elif one.opname in LOOKED_UP and one.argval in function.__globals__:
                found[one.argval] = function.__globals__[one.argval]
    return found


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def compiled_copy(
    function: FunctionType, made: dict[FunctionType, Any], pipeline: Callable[[FunctionType], type]
) -> Any:
    """The dispatcher of a function; `made` are those that there are, by functions, and `pipeline` gives the class of
    the compiler of each."""
    helpers = helpers_of(function)
    space = {**IN_PLACE, **function.__globals__}
    closure = tuple(CellType(_content(cell)) for cell in function.__closure__ or ())
    copy = FunctionType(function.__code__, space, function.__name__, function.__defaults__, closure or None)
    copy.__kwdefaults__ = function.__kwdefaults__
    made[function] = found = numba.njit(copy, boundscheck=True, error_model="python", pipeline_class=pipeline(function))
    cells: Mapping[str, CellType] = dict(zip(function.__code__.co_freevars, closure, strict=True))
    for name, helper in helpers.items():
        inner = made.get(helper) or compiled_copy(helper, made, pipeline)
        if name in cells:
            cells[name].cell_contents = inner
        else:
            space[name] = inner
    return found


def otherwise(function: FunctionType) -> str:
    """What Numba would do otherwise than Python in the function and its helpers: arrays from outside are constants to
    it, and random numbers come from a state of its own. Empty where there is nothing."""
    for one in with_helpers(function):
        defaults = {} if one is function else _defaults(one)
        for name, value in (*_reached(one), *defaults.items()):
            if _may_change(value):
                return f"`{name}` from outside would be a constant to it"
            if _is_random(value):
                return RANDOM
            if _is_of_user(value) and "getattr" in names_outside(one):
                return "`getattr` of a module would be a constant to it"
            if value is keyed_random.random:
                return "`orion.random` is compiled in loops that are analysed alone"
    return ""


def _is_of_user(value: object) -> bool:
    """Whether an object is a module whose names may stand for something else later."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in SETTLED


def _defaults(function: FunctionType) -> dict[str, object]:
    """The defaults of parameters of a helper; those of the function itself are arguments of each call."""
    code, values = function.__code__, function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(last, values, strict=True)), **(function.__kwdefaults__ or {})}


def _reached(function: FunctionType) -> Iterator[tuple[str, object]]:
    """What a function may look up outside, by name: also in modules, by any name that stands in its code."""
    names = {*names_outside(function)}
    waiting, seen = [*outside_of(function).items()], set[int]()
    for name, value in waiting:
        yield name, value
        if isinstance(value, ModuleType) and id(value) not in seen:
            seen.add(id(value))
            waiting += [(f"{name}.{one}", getattr(value, one)) for one in sorted(names) if hasattr(value, one)]


def _may_change(value: object) -> bool:
    """Whether an object may have other contents in the next call."""
    if isinstance(value, tuple):
        return any(map(_may_change, value))
    return isinstance(value, np.ndarray | list | dict | set | bytearray)


def with_helpers(function: FunctionType) -> list[FunctionType]:
    """The function, and all functions that it calls directly or through one another."""
    found = [function]
    for one in found:
        found += [helper for helper in helpers_of(one).values() if helper not in found]
    return found


def _is_random(value: object) -> bool:
    """Whether an object draws random numbers: a module, a generator, or a method of one."""
    if isinstance(value, ModuleType):
        return value.__name__ in ("random", "numpy.random")
    sources = Random, np.random.Generator, np.random.RandomState
    return isinstance(value, sources) or isinstance(getattr(value, "__self__", None), sources)


def _not_compiled(error: Exception) -> NotCompiledError:
    """Numba's error as ours."""
    text = in_user_words(error)
    found = NotCompiledError(text or "it gives no reason")
    found.is_silent = not text
    return found
