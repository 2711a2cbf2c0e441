"""Loops that are there twice: in one of the texts some subscripts are not looked at, as a test before it has shown that
they are inside of their arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from orion.ir.constants import constant_value
from orion.ir.nodes import Range, Stmt, Subscript
from orion.kernel.emit.assignments import Assignments
from orion.kernel.emit.ranged import Key, Ranged, gathered_subscripts, ranged_subscripts

Version = tuple[frozenset[Key], tuple[str, ...]]
"""One of the two texts of a loop: the subscripts that are inside of their arrays in it, and where there are any that go
along with its variable, the names of the first and the last value of that."""


class Versions(Assignments):
    """Adds loops in two versions. `extremes` are what the least and the greatest element of an array are called."""

    extremes: dict[str, tuple[str, str]]

    def versions(self, space: Range, body: tuple[Stmt, ...], start: str, stop: str) -> Iterator[Version]:
        """Yield the versions of a loop: one, or two where a test before the loop shows that some subscripts are inside
        of their arrays. `start` and `stop` are the code of its bounds."""
        step = constant_value(space.step)
        ranged = {one.key: one for one in ranged_subscripts(body, space.var) if self.is_open(one.subscript, one.axis)}
        tests = dict(self.gathers_inside(body))
        if self.writer.in_place or not step or not (ranged or tests):
            yield frozenset(), ()
            return
        ends: tuple[str, ...] = ()
        if ranged:
            first, last = ends = tuple(self.names.fresh(f"{space.var}_at_{end}") for end in ("first", "last"))
            self.writer.add(f"{first} = int64({start})")
            self.writer.add(f"{last} = int64({stop}) {'-' if step > 0 else '+'} 1")
        keys = frozenset((*ranged, *tests))
        found = [test for one in ranged.values() for test in self.ends_inside(one, space.var, ends)]
        known = self.known()
        with self.writer.block(f"if likely({' and '.join(dict.fromkeys((*found, *tests.values())))}):"):
            yield keys, ends
        self.go_back_to(known)
        with self.writer.block("else:"):
            yield frozenset(), ()

    def head_between(self, space: Range, first: str, last: str) -> str:
        """The head of a loop whose first and last value are known to be as near as an array is long: its range need not
        be held."""
        sign = "+" if (constant_value(space.step) or 0) > 0 else "-"
        stepped = "" if constant_value(space.step) == 1 else f", {self.bound(space.step).text}"
        return f"for {self.names.user(space.var)} in range({first}, {last} {sign} 1{stepped}):"

    def is_open(self, subscript: Subscript, axis: int) -> bool:
        """Whether a subscript has to be checked when the loop runs."""
        if self.is_proved(subscript, axis) or self.facts.array(subscript.base.name) is None:
            return False
        kind = self.type_of(subscript.index[axis])
        return kind.dtype == "int64" and not kind.rank

    def ends_inside(self, one: Ranged, variable: str, ends: Sequence[str]) -> Iterator[str]:
        """Tests that a subscript is inside of its array in the first and in the last trip."""
        extent = self.extent(one.subscript.base.name, one.axis).text
        rest = self.expression(one.rest(variable)).text
        for end in ends:
            place = f"({rest}) + {end}" if one.direction > 0 else f"({rest}) - {end}"
            yield f"is_inside({end if rest == '0' and one.direction > 0 else place}, {extent})"

    def gathers_inside(self, body: tuple[Stmt, ...]) -> Iterator[tuple[Key, str]]:
        """Yield the subscripts of an innermost loop that are elements of looked-through arrays. Each has a test that
        shows all elements of its array to be inside."""
        for one in gathered_subscripts(body, self.extremes):
            kind = self.type_of(one.subscript.index[one.axis])
            is_integer = not kind.rank and np.dtype(kind.dtype).kind in "iu"
            if is_integer and not self.is_proved(one.subscript, one.axis) and self.facts.array(one.subscript.base.name):
                extent = self.extent(one.subscript.base.name, one.axis).text
                yield one.key, " and ".join(f"is_inside({name}, {extent})" for name in self.extremes[one.array])
