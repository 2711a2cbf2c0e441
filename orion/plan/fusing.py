"""A variant with neighbouring loops run as one, once it is known at the sizes of a call which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orion.analysis.one_loop import AnalysedLoop
from orion.plan.variants import Changed, Variant
from orion.rewrites.fuse.apply import fuse_loops
from orion.rewrites.fuse.found import Found, Fusable


def fused_program(analysed: Variant, chosen: Sequence[Fusable]) -> Variant:
    """The program with some of its neighbours run as one."""
    if not chosen:
        return analysed
    program = fuse_loops(analysed.program, tuple(one.group for one in chosen))
    assert program is not None
    first_of = {one.group.first: one.loop for one in chosen}
    gone = {number for one in chosen for number in one.group.numbers[1:]}
    loops: list[AnalysedLoop] = []
    numbers: list[int] = []
    for number, old in enumerate(analysed.loops):
        if number not in gone:
            loops.append(replace(first_of.get(number, old), nest=program.nests[len(loops)]))
        numbers.append(len(loops) - 1)
    changed = tuple(_renumbered(one, numbers) for one in analysed.changed)
    apart = tuple(replace(one, number=numbers[one.number]) for one in analysed.neighbours.apart)
    outlined = tuple(replace(one, first=numbers[one.first]) for one in analysed.outlined)
    found = replace(analysed, program=program, loops=tuple(loops), changed=changed, outlined=outlined)
    return replace(found, neighbours=Found((), apart))


def _renumbered(changed: Changed, numbers: Sequence[int]) -> Changed:
    inside = changed.numbers
    return replace(changed, numbers=range(numbers[inside[0]], numbers[inside[-1]] + 1)) if inside else changed
