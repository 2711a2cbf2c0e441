"""Arrays with buffers that are served though they are small: of less than a megabyte, nodes have the whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from orion.plan import served
from orion.preparations import Preparations


@contextmanager
def served_from(least: int, *functions: Any) -> Iterator[None]:
    """Arrays are served from so many bytes on. Functions that other files call as well have stages of their own here:
    what they keep of a call says which arrays are served."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served, "SERVED_BYTES", least)
        for function in functions:
            patch.setattr(function, "_preparations", _stages(function, least))
        yield


@cache
def _stages(function: Any, least: int) -> Preparations:
    """The same ones for all tests, so that nothing is compiled for each of them."""
    return Preparations(function.__wrapped__, function.options, function._preparations.lines)
