"""Planned loops that stand for one place of the source and of which the same is told: where two arrays take turns, a
loop is planned once for each turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from orion.dataclass import dataclass, replace
from orion.inspect.text.words import counted
from orion.plan.plan import LoopPlan

Exchanged = tuple[str, str]
"""Two arrays."""


@dataclass(frozen=True, slots=True)
class Section:
    """A loop as it is shown; `at` is its number among those of the source. `alike` has an entry for each further loop
    of which the same is told: the arrays that are exchanged there, None where none are."""

    at: int
    loop: LoopPlan
    alike: tuple[Exchanged | None, ...] = ()

    def words(self) -> tuple[str, ...]:
        """Return a sentence on the loops of which the same is told."""
        found = []
        for pair in dict.fromkeys(self.alike):
            number = self.alike.count(pair)
            how = "is" if number == 1 else "are"
            but = "" if pair is None else f" with `{pair[0]}` and `{pair[1]}` exchanged"
            found.append(f"{counted(number, 'more planned loop')} of this line {how} the same{but}")
        return tuple(found)


def folded(loops: Mapping[int, LoopPlan], told: Callable[[LoopPlan], str]) -> tuple[Section, ...]:
    """Return the sections of loops, which come by their numbers: those of which the same is told are one. `told` is
    what is told of a loop."""
    found: list[tuple[Section, list[str]]] = []
    number = Counter(loop.nest.span for loop in loops.values())
    for own, loop in loops.items():
        words = re.findall(r"\w+|[^\w\s]", told(loop)) if number[loop.nest.span] > 1 else []
        for at, (section, others) in enumerate(found):
            if section.loop.nest.span != loop.nest.span:
                continue
            is_same, pair = _compared(others, words, {one.array for one in loop.analysis.accesses})
            if is_same:
                found[at] = replace(section, alike=(*section.alike, pair)), others
                break
        else:
            found.append((Section(own, loop), words))
    return tuple(section for section, _ in found)


def _compared(one: Sequence[str], other: Sequence[str], arrays: set[str]) -> tuple[bool, Exchanged | None]:
    """Whether two texts are the same, or would be with two arrays exchanged, and these arrays.

    >>> _compared(["A", "of", "B"], ["B", "of", "A"], {"A", "B"}), _compared(["A"], ["A"], {"A"})
    ((True, ('A', 'B')), (True, None))
    >>> _compared(["A", "of", "B"], ["A", "of", "A"], {"A", "B"})
    (False, None)
    """
    if list(one) == list(other):
        return True, None
    differing = next(((a, b) for a, b in zip(one, other, strict=False) if a != b), None)
    if differing is None or not arrays.issuperset(differing):
        return False, None
    turned = dict([differing, differing[::-1]])
    is_same = [turned.get(word, word) for word in one] == list(other)
    return is_same, differing if is_same else None
