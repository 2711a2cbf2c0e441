"""Ranges that 64 bits with a sign do not hold, of which the bounds are known before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from orion.errors import of_user, too_wide
from orion.loop.ir import For, Function, Range, walk
from orion.plan.extents import evaluated

LEAST, GREATEST = -(2**63), 2**63 - 1


def check_ranges(function: Function, values: Mapping[str, int]) -> None:
    """Raise OverflowError, with the bounds, for a range whose bounds are known by `values`, the values of isl's
    parameters, where one of them, or their distance, takes more than 64 bits."""
    for statement in function.body:
        for node in walk(statement):
            if isinstance(node, For) and isinstance(node.space, Range):
                _check(node.space, function, values)


def fits_a_range(start: int, stop: int, step: int = 1) -> bool:
    """Whether 64 bits with a sign hold the bounds of a range, and their distance where it has values.

    >>> fits_a_range(-5, 2**63 - 5), fits_a_range(-5, 2**63 - 6), fits_a_range(2**63 - 1, -(2**63))
    (False, True, True)
    """
    is_empty = stop <= start if step > 0 else stop >= start
    return min(start, stop) >= LEAST and max(start, stop) <= GREATEST and (is_empty or abs(stop - start) <= GREATEST)


def _check(space: Range, function: Function, values: Mapping[str, int]) -> None:
    start, stop, step = (evaluated(bound, values) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return
    if not (LEAST <= step <= GREATEST and fits_a_range(start, stop, step)):
        raise of_user(OverflowError(too_wide(start, stop, space.span, function.source)))
