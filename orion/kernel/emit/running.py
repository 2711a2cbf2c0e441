"""The tests by which kernels keep running minima and maxima."""

from __future__ import annotations

from orion.passes.extremes import AGAINST, NANS_WIN


def is_taken(op: str, new: str, old: str) -> str:
    """The test for whether a value is taken in place of the one before, by an op of `orion.passes.extremes`.

    >>> is_taken("<", "v", "m"), is_taken("!<", "v", "m"), is_taken("n<", "v", "m")
    ('v < m', 'not v < m', 'v < m or v != v')
    """
    if op.startswith(AGAINST):
        return f"not {new} {op[1:]} {old}"
    test = f"{new} {op.removeprefix(NANS_WIN)} {old}"
    return f"{test} or {new} != {new}" if op.startswith(NANS_WIN) else test
