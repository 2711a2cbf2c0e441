"""Functions that Orion cannot analyse, and Numba can compile: they run as they are, compiled, on one worker.

What stands in the way is told in a warning, once; planning and explaining such a function raise it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from orion.aside import aside
from orion.dataclass import dataclass
from orion.errors import OrionError
from orion.frontend.outside import SETTLED, Outside, taken

PLAIN = (bool, int, float, complex, str, np.generic, type(None))


@dataclass(frozen=True, slots=True)
class Unanalysed:
    """A function compiled as it is, for arguments of these types, while what it takes from outside stays the same."""

    run: Callable[..., Any]
    outside: Outside


def kinds_of(arguments: Mapping[str, object]) -> tuple[object, ...] | None:
    """What a compiled function depends on of its arguments; None where some are none that Numba takes as they are."""
    found = [_kind(value) for value in arguments.values()]
    return None if None in found else tuple(found)


def _kind(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable
    if isinstance(value, tuple):
        inner = [_kind(item) for item in value]
        return None if None in inner else (type(value), *inner)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None  # Numba takes it for one without a sign
    return type(value) if isinstance(value, PLAIN) else None


def compiled_as_it_is(function: FunctionType, arguments: Mapping[str, object], why: OrionError) -> Unanalysed:
    """The function compiled by Numba. Raises `why`, with what Numba says of it, where that does not compile it, or
    would do something else than Python: arrays from outside would be constants."""
    return aside(lambda: _compiled(function, arguments, why))


def _compiled(function: FunctionType, arguments: Mapping[str, object], why: OrionError) -> Unanalysed:
    from orion.kernel.build.function_key import function_key
    from orion.kernel.build.whole import DiffersError, NotCompiledError, compile_whole, otherwise

    outside = outside_of_whole(function)
    if other := otherwise(function):
        why.add_note(f"Numba does not run it as it is either: {other}")
        raise why
    given = tuple(arguments.values())
    try:
        run = compile_whole(function, given, function_key(outside, given))
    except DiffersError as error:
        why.add_note(f"Numba does not run it as it is either: {error}")
        raise why from None
    except NotCompiledError as error:
        more = _wider(arguments) if error.is_silent else ""
        why.add_note(f"Numba cannot compile it as it is either: {error}{more}")
        raise why from None
    return Unanalysed(run, outside)


def outside_of_whole(function: FunctionType) -> Outside:
    """What a function that is compiled as it is takes from outside, and its helpers too."""
    return taken(_looked_up(function))


def _wider(arguments: Mapping[str, object]) -> str:
    """What may help where Numba gives no reason: it does not find one type for Python's integers and narrower ones."""
    arrays = [(name, value.dtype) for name, value in arguments.items() if isinstance(value, np.ndarray)]
    narrow = [name for name, dtype in arrays if dtype.kind in "iu" and dtype.itemsize < 8]
    made = ", ".join(f"{name}.astype(np.int64)" for name in narrow)
    return f"; with integers of 64 bits it may, `{', '.join(narrow)} = {made}` before the call" if narrow else ""


def _looked_up(function: FunctionType) -> Iterator[tuple[FunctionType, list[tuple[str, ...]]]]:
    """The functions that are compiled, with what they may look up outside: in modules, and in modules of these, each
    name that stands in one of the functions, also in a text."""
    from orion.kernel.build.whole import names_outside, outside_of, texts_in, with_helpers

    functions = with_helpers(function)
    inner = sorted({name for one in functions for name in (*names_outside(one), *texts_in(one))})
    for one in functions:
        values = outside_of(one)
        deeper = [(name, *path) for name, value in values.items() for path in _paths(value, inner, frozenset())]
        yield one, [*((name,) for name in names_outside(one)), *deeper]


def _paths(value: object, names: Iterable[str], around: frozenset[int]) -> Iterator[tuple[str, ...]]:
    """The paths to what may be looked up in a module."""
    if not isinstance(value, ModuleType) or value.__name__ in SETTLED or id(value) in around:
        return
    for name in names:
        if hasattr(value, name):
            yield (name,)
            yield from ((name, *path) for path in _paths(getattr(value, name), names, around | {id(value)}))
