"""What the accesses of the iterations of a loop say of the order in which these may run.

Accesses are listed iteration by iteration, as an inspector writes them (`orion.dependence.inspection`): `places[k]` is
twice the number of an element, plus 1 where it is written, and those of iteration i end before `ends[i]`. Two accesses
of different iterations are in conflict where they are to one element and one of them writes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from orion.kernel.support.intrinsics import kept

compiled = kept(nogil=True)


@compiled
def levels(ends: Any, places: Any, elements: int) -> Any:  # pragma: no cover - compiled
    """The level of each iteration, from 1 on: one more than the greatest of those before it that are in conflict with
    it, int32 (iterations,)."""
    wrote, read = np.zeros(elements, np.int32), np.zeros(elements, np.int32)
    level = np.empty(ends.size, np.int32)
    first = 0
    for i in range(ends.size):
        last, found = ends[i], np.int32(0)
        for k in range(first, last):
            element = places[k] >> 1
            found = max(found, wrote[element])
            if places[k] & 1:
                found = max(found, read[element])
        found += 1
        level[i] = found
        for k in range(first, last):
            element = places[k] >> 1
            if places[k] & 1:
                wrote[element] = found
            else:
                read[element] = max(read[element], found)
        first = last
    return level


MOST_COLOURS = 63


@compiled
def colours(ends: Any, places: Any, elements: int) -> Any:  # pragma: no cover - compiled
    """A colour for each iteration, from 1 on, so that those in conflict have others: in their order each takes the
    first that none before it in conflict with it has, int32 (iterations,). None where more than `MOST_COLOURS` are
    needed.

    Of each element the colours of iterations that write it, and that read it, are kept as bits (Welsh, Powell: *An
    upper bound for the chromatic number of a graph*, Computer Journal 10(1), 1967).
    """
    wrote, read = np.zeros(elements, np.int64), np.zeros(elements, np.int64)
    colour = np.empty(ends.size, np.int32)
    first = 0
    for i in range(ends.size):
        taken = np.int64(0)
        for k in range(first, ends[i]):
            element = places[k] >> 1
            taken |= wrote[element]
            if places[k] & 1:
                taken |= read[element]
        found = 0
        while taken >> found & 1:
            found += 1
        if found == MOST_COLOURS:
            return None
        colour[i] = found + 1
        for k in range(first, ends[i]):
            if places[k] & 1:
                wrote[places[k] >> 1] |= np.int64(1) << found
            else:
                read[places[k] >> 1] |= np.int64(1) << found
        first = ends[i]
    return colour


@compiled
def components(ends: Any, places: Any, elements: int) -> Any:  # pragma: no cover - compiled
    """For each iteration the number of the least element of its component, int64 (iterations,): of two in conflict it
    is the same. -1 where an iteration touches nothing that is written.

    Disjoint sets of elements, joined where one iteration touches both, with path halving (Tarjan, van Leeuwen:
    *Worst-case analysis of set union algorithms*, J. ACM 31(2), 1984).
    """
    written = np.zeros(elements, np.bool_)
    for place in places:
        if place & 1:
            written[place >> 1] = True
    parent = np.arange(elements)
    found = np.full(ends.size, -1, np.int64)
    first = 0
    for i in range(ends.size):
        root = -1
        for k in range(first, ends[i]):
            element = places[k] >> 1
            if not written[element]:
                continue
            while parent[element] != element:
                parent[element] = parent[parent[element]]
                element = parent[element]
            if root < 0:
                root = element
            elif element < root:
                parent[root] = element
                root = element
            else:
                parent[element] = root
        found[i] = root
        first = ends[i]
    for i in range(ends.size):
        root = found[i]
        while root >= 0 and parent[root] != root:
            root = parent[root]
        found[i] = root
    return found


@compiled
def pieces(level: Any, longest: int) -> Any:  # pragma: no cover - compiled
    """Where the pieces of a loop begin, and its end: in no piece the level falls, and none has more than `longest`
    iterations. A loop goes along a chain where levels rise, and begins another one where they fall; pieces of one such
    part are equally long."""
    found = np.empty(level.size + 1, np.int64)
    count, begun = 0, 0
    for i in range(1, level.size + 1):
        if i == level.size or level[i] < level[i - 1]:
            length = i - begun
            parts = -(-length // longest)
            for part in range(parts):
                found[count] = begun + part * length // parts
                count += 1
            begun = i
    found[count] = level.size
    return found[: count + 1]


@compiled
def far_accesses(ends: Any, places: Any, near: int) -> Any:  # pragma: no cover - compiled
    """How many accesses of each iteration are not `near` that of the one before it which comes as many accesses after
    its first, in places, int32 (iterations,)."""
    found = np.zeros(ends.size, np.int32)
    before, first = 0, 0
    for i in range(1, ends.size):
        before, first = first, ends[i - 1]
        for k in range(first, ends[i]):
            other = before + k - first
            if other >= first or abs(places[k] - places[other]) > near:
                found[i] += 1
    return found
