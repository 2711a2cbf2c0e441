"""The conditions under which loops of a function are parallel that are not so for all sizes and integers.

    def shift(a, m, n):
        for i in range(n):
            a[i + m] = a[i]

and those on arrays of integers that subscripts are read from:

    def permute(out, perm, x):
        for i in range(len(x)):
            out[perm[i]] = x[i]

The function is analysed once more under them (`orion.dependence.conditions`, `properties`): a variant that runs in the
calls in which all of them hold. Where one does not, the function is run as it is for any values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from orion.dependence.access import Dependence
from orion.dependence.conditions import as_assumed, free_of
from orion.dependence.given_sizes import GivenSizes
from orion.dependence.properties import properties_without
from orion.ir.assumed import Assumed, OfArray
from orion.ir.nodes import For, children
from orion.ir.types import Types
from orion.plan.plan import Verdict
from orion.plan.variants import Variant
from orion.plan.verdicts import without_sums
from orion.sets.maps import Maps


def assumed_for(written: Variant, maps: Maps, types: Types) -> tuple[Assumed, ...]:
    """The conditions under which more of the loops of a program, as it is written, are parallel."""
    known = GivenSizes.of(written.program.function, types).known
    verdicts = {verdict.index: verdict for verdict in written.verdicts}
    found: list[Assumed] = []
    for number in range(len(written.loops)):
        nest = written.program.nests[number]
        found += _conditions(nest.loops[0], (), verdicts, known, maps, partial(without_sums, nest=nest, types=types))
    return tuple(found)


def _conditions(
    loop: For,
    around: tuple[For, ...],
    verdicts: Mapping[int, Verdict],
    known: frozenset[str],
    maps: Maps,
    without_sums: Callable[[tuple[Dependence, ...], For], tuple[Dependence, ...]],
) -> Iterator[Assumed]:
    """The conditions under which a loop is parallel, perhaps with copies of arrays that it adds to, or, where there are
    none for it, those of the loops in it."""
    verdict = verdicts.get(loop.index)
    if verdict is not None and not verdict.reasons:
        if not verdict.carried:
            return
        found = free_of(verdict.carried, len(around), known, maps)
        if found is not None:
            yield as_assumed(loop.index, found)
            return
        rest = without_sums(verdict.carried, loop)  # where there are others, they need less without these
        properties = (properties_without(rest, maps) if rest else ()) or properties_without(verdict.carried, maps)
        if properties:
            yield from (OfArray(loop.index, array, one) for array, one in properties)
            return
    for inner in _loops_in(loop):
        yield from _conditions(inner, (*around, loop), verdicts, known, maps, without_sums)


def _loops_in(loop: For) -> Iterator[For]:
    """The loops directly in the body of a loop, in branches too."""
    waiting = [*loop.body][::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, For):
            yield node
        else:
            waiting += children(node)[::-1]  # type: ignore[arg-type]
