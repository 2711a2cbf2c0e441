"""Compiled loops compared with the same functions run by Python, for tests of single statements."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import orion


def assert_as_serial(function: Callable[..., Any], *arguments: Any, workers: tuple[int, ...] = (1, 2), **options: Any):
    """On every number of workers, forced to share the loop, what Python gives: the same result, arrays, or error."""
    compiled = orion.parallel_for(**options)(function)
    expected = copies(arguments)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        returned = outcome(function, expected)
        for count in workers:
            mine = copies(arguments)
            with orion.session(workers=count, force_parallel=True):
                found = outcome(compiled, mine)
            if isinstance(returned, type):
                assert isinstance(found, type), f"{returned.__name__} expected, {found} returned"
                assert issubclass(found, returned), f"{returned} expected, {found} raised"
                continue
            np.testing.assert_allclose(found, returned, rtol=1e-6, equal_nan=True) if returned is not None else None
            assert kinds(found) == kinds(returned), f"{found!r} returned, expected {returned!r}"
            for a, b in zip(mine, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12, err_msg=f"{count} workers")
                assert np.asarray(a).dtype.kind in "f" or np.array_equal(a, b)


def copies(arguments: Sequence[Any]) -> list[Any]:
    """The arguments with arrays of their own."""
    return [argument.copy(order="K") if isinstance(argument, np.ndarray) else argument for argument in arguments]


def kinds(returned: Any) -> Any:
    """The types of the scalars that are returned. A sum of narrow integers has 64 bits, and is Python's own."""
    if isinstance(returned, tuple):
        return tuple(map(kinds, returned))
    is_narrow = isinstance(returned, np.integer) and returned.itemsize < 8
    return int if is_narrow else type(returned)


def outcome(function: Callable[..., Any], arguments: list[Any]) -> Any:
    """What the function returns, or the type of the error that it raises."""
    try:
        return function(*arguments)
    except orion.UnsupportedLoopError:
        raise
    except Exception as error:
        return type(error)
