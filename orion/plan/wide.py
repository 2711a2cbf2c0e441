"""Ranges that 64 bits with a sign do not hold, of which the bounds are known before anything runs; and loops in another
order, whose bounds are sums of other terms than those that the function has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from orion.analysis.one_loop import AnalysedLoop, AsOne, AsWritten, InBand, InTimeTiles, OutsideBands
from orion.cost.extents import evaluated
from orion.errors import of_user, too_wide
from orion.ir.function import Function
from orion.ir.nodes import For, Range, walk

LEAST, GREATEST = -(2**63), 2**63 - 1
FAR = 2**48
"""Integers below it may be multiplied by the sizes of tiles and added up in any order."""


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


def may_leave_64_bits(loops: Iterable[AnalysedLoop], values: Mapping[str, int]) -> bool:
    """Whether one of the loops that are in another order has integers so far from 0 that what is computed for its
    bounds may take more than 64 bits, though what the function computes does not."""
    relations = (relation for loop in loops for relation in _relations(loop))
    terms = {term for relation in relations for term in re.findall(r"\w+", relation)}
    return any(abs(int(term) if term.isdecimal() else values.get(term, 0)) >= FAR for term in terms)


def _relations(loop: AnalysedLoop) -> list[str]:
    """The isl texts that the bounds of a loop in another order are made from."""
    match loop.form:
        case InBand(origin=origin, places=places) | InTimeTiles(origin=origin, places=places):
            own = [loop.analysis.domain, places]
        case OutsideBands(origin=origin):
            own = [loop.analysis.domain]
        case AsWritten() | AsOne():
            return []
    return [*own, origin.analysis.domain, *(access.relation for access in origin.analysis.accesses)]


def _check(space: Range, function: Function, values: Mapping[str, int]) -> None:
    start, stop, step = (evaluated(bound, values) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return
    if not (LEAST <= step <= GREATEST and fits_a_range(start, stop, step)):
        raise of_user(OverflowError(too_wide(start, stop, space.span, function.source)))
