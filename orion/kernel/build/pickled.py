"""Functions sent by value: those of a script or a notebook, which the receiver cannot import. With a function goes the
text that it and its helpers were written in, since loops are compiled from that."""

from __future__ import annotations

import io
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import cast

from orion.frontend.parse_calls import plain_function
from orion.frontend.scope import outer_names

Texts = dict[str, str]
"""The text of each file, or cell of a notebook."""


def to_bytes(function: FunctionType) -> bytes:
    """A function that `from_bytes` makes again in any process."""
    from numba import cloudpickle

    texts = {one.__code__.co_filename: _text(one) for one in _family(function)}
    return cast(bytes, cloudpickle.dumps((function, texts)))


def from_bytes(data: bytes) -> FunctionType:
    """The function of `to_bytes`, with its text where `inspect` finds it."""
    from numba import cloudpickle

    function, texts = cast(tuple[FunctionType, Texts], cloudpickle.loads(data))
    for file, text in texts.items():
        if "".join(linecache.getlines(file)) != text:
            linecache.cache[file] = (len(text), None, [*io.StringIO(text)], file)  # form feeds end no line
    return function


def _text(function: FunctionType) -> str:
    return "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))


def _family(function: FunctionType) -> list[FunctionType]:
    """The function and those that it calls, at any distance, that go by value too."""
    found = [function]
    for one in found:
        names = outer_names(one)
        called = (plain_function(names.get(name)) for name in _names(one.__code__))
        found += [other for other in called if other is not None and other not in found and _goes_by_value(other)]
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars


def _goes_by_value(function: FunctionType) -> bool:
    return function.__module__ == "__main__" or "<locals>" in function.__qualname__
