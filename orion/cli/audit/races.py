"""Races over elements of arrays: conflicts that are there whatever the sizes and the data, with two iterations each.

A conflict is a race where both accesses are exact and made in every call in which the loop and the loops in it are long
enough: with P the parameters at which it is there, and L those at which all these loops make so many trips and all
subscripts lie within their arrays, L ⊆ P and L ≠ ∅. Else sizes, or data, decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from orion.cli.audit.accesses import Model
from orion.cli.audit.bounds import outside
from orion.cli.audit.points import Meeting, meeting_of
from orion.cli.audit.stores import Differences, Store
from orion.dataclass import dataclass
from orion.dependence.access import Access, Dependence
from orion.dependence.conflicts import CapReached, capped, conflict_relation
from orion.dependence.references import InnerLoop
from orion.sets.affine import Affine, Form, affine_form
from orion.sets.names import isl_name, parameter_list

if TYPE_CHECKING:
    import islpy as isl

TRIPS = (2, 3, 5, 9)
"""How many trips loops are taken to make at least: the fewest at which a conflict is there come first."""

LOST, STALE, EARLY, OVERWRITTEN = "lost update", "stale read", "early write", "overwritten value"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A race over an element: the accesses of its two iterations and what follows."""

    first: Access
    second: Access
    met: Meeting
    effect: str


class Races:
    """Looks for races among the dependences of a loop."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.maps = model.maps
        self.differences = Differences(model)
        self.references = {id(access): one for access, one in zip(model.accesses, model.references, strict=True)}
        self.long: dict[int, isl.Set] = {}

    def first(self, dependences: Iterable[Dependence]) -> Conflict | None:
        """Return a race among dependences, a lost update before others."""
        import islpy as isl

        dependences = [one for one in dependences if _is_sure(one)]
        order = (self.lost, self.stale, self.overwritten)
        try:
            with capped(self.maps.context):
                return next((found for look in order for one in dependences if (found := look(one))), None)
        except (CapReached, isl.Error):  # past the limit isl cannot read either
            return None

    # ------------------------------------------------------------ kinds of races

    def lost(self, one: Dependence) -> Conflict | None:
        """Two updates of an element, each a read and a write."""
        if one.kind != "output":
            return None
        stores = [self.store(end) for end in (one.source, one.sink)]
        if not all(store is not None and store.is_update for store in stores):
            return None
        found = self.conflict(one, self.map(one.source), self.map(one.sink), LOST)
        if found is None or all(store is not None and store.accumulates for store in stores):
            return found
        return self.with_differences(one, found)

    def stale(self, one: Dependence) -> Conflict | None:
        """A read of an element that the reading iteration does not write, and another does."""
        if one.kind == "output":
            return None
        own = self.written(one.array)
        source, sink = self.map(one.source), self.map(one.sink)
        if one.kind == "flow":
            return self.conflict(one, source, sink.subtract(own), STALE)
        return self.conflict(one, source.subtract(own), sink, EARLY)

    def overwritten(self, one: Dependence) -> Conflict | None:
        """Two stores of different values in an element."""
        if one.kind != "output":
            return None
        found = self.conflict(one, self.map(one.source), self.map(one.sink), OVERWRITTEN)
        return self.with_differences(one, found)

    def with_differences(self, one: Dependence, found: Conflict | None) -> Conflict | None:
        """Return a conflict of two stores where they are seen to be of different values."""
        first, second = self.references[id(one.source)], self.references[id(one.sink)]
        return found if found and self.differences.differ(first, second, found.met) else None

    def conflict(self, one: Dependence, first: isl.Map, second: isl.Map, effect: str) -> Conflict | None:
        """Return the conflict of two accesses where it is there at all sizes of long loops."""
        pairs = conflict_relation(first, second, ordered=True)
        if pairs.is_empty():
            return None
        met = pairs.params()
        for trips in TRIPS:
            sizes = self.sizes(trips)
            if not sizes.is_empty() and sizes.is_subset(met):
                found = meeting_of(first, second, pairs, sizes)
                return None if found is None else Conflict(one.source, one.sink, found, effect)
        return None

    # ------------------------------------------------------------ parts

    def store(self, access: Access) -> Store | None:
        subscript = self.references[id(access)].subscript
        return self.differences.stores.get(id(subscript)) if subscript is not None else None

    def map(self, access: Access) -> isl.Map:
        return self.maps.map(access.relation)

    def written(self, array: str) -> isl.Map:
        """Return all that an iteration may write of an array."""
        every = [self.map(one) for one in self.model.accesses if one.array == array and one.is_write]
        found = every[0]
        for one in every[1:]:
            found = found.union(one)
        return found

    # ------------------------------------------------------------ sizes

    def sizes(self, trips: int) -> isl.Set:
        """Return the sizes at which all loops make so many trips, and all subscripts are within their arrays."""
        if trips not in self.long:
            found = self.maps.set(self._long_text(trips))
            for reference in self.model.references:
                if not reference.is_may:
                    for text in outside(reference, self.model.space):
                        found = found.subtract(self.maps.set(text).params())
            self.long[trips] = found
        return self.long[trips]

    def _long_text(self, trips: int) -> str:
        constraints, names = [], set[str]()
        for start, stop, step in self._ranges():
            low, high = (start, stop) if (step.value or 0) > 0 else (stop, start)
            length = trips * abs(step.value or 1)
            constraints += [f"{upper} - ({lower}) >= {length}" for upper in high.as_upper for lower in low.as_lower]
            names |= start.names | stop.names
        return f"{parameter_list(names)}{{ : {' and '.join(constraints) or 'true'} }}"

    def _ranges(self) -> Iterator[tuple[Affine, Affine, Affine]]:
        """The ranges of the loop, and of those in it that have the same trips in every iteration."""
        (space,) = self.model.nest.ranges
        yield from _affine(*(affine_form(one, self.model.scope) for one in (space.start, space.stop, space.step)))
        own = {isl_name(space.var), *self.model.space.dims}
        seen: set[InnerLoop] = set()
        for reference in self.model.references:
            inside = own.union(*({loop.var} for loop in reference.inner))
            for loop in reference.inner:
                for forms in _affine(loop.start, loop.stop, loop.step):
                    if loop not in seen and not any(one.names & inside for one in forms):
                        seen.add(loop)
                        yield forms


def _affine(start: Form, stop: Form, step: Form) -> Iterator[tuple[Affine, Affine, Affine]]:
    """The bounds and the step of a range where all are affine, and the step is a number."""
    if isinstance(start, Affine) and isinstance(stop, Affine) and isinstance(step, Affine) and step.value:
        yield start, stop, step


def _is_sure(one: Dependence) -> bool:
    return one.exact and not one.source.is_may and not one.sink.is_may
