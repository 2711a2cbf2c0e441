"""What a variant of a function takes to hold of a call: a condition on its sizes and integers, or a property of an
array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

from orion.dataclass import dataclass, field


class Property(StrEnum):
    """What one pass over the elements of an array of integers shows."""

    NOT_NEGATIVE = "has no negative element"
    SORTED = "never goes down"
    DISTINCT = "has no two equal elements"


@dataclass(frozen=True, slots=True)
class OfSizes:
    """A condition on extents and integer arguments under which a `for` of the source is parallel.

    `index` is that of the `for`. `constraint` is the text of isl over `names`, such as `(lo >= 0 or hi <= 0)`. The
    iteration space of a nest with the `for` lies within it, and so does all that is found of it. It is looked at in
    each call before the function is run so.
    """

    index: int
    constraint: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Covers:
    """That an array of integers begins with 0 and ends with the extent of another array `of` along an axis."""

    of: str
    axis: int

    def __str__(self) -> str:
        return f"begins with 0 and ends with {self.of}.shape[{self.axis}]"


Has = Property | Covers


@dataclass(frozen=True, slots=True)
class Held:
    """What an array holds, by a number that nothing else has that it held. `copy` gives it, as long as whoever looked
    keeps it; else None."""

    version: int
    copy: Callable[[], Any] = field(compare=False)


@dataclass(frozen=True, slots=True)
class OfArray:
    """A property of an array under which a `for` of the source is parallel. No size tells whether it holds: elements
    have to be looked at in each call (`orion.cost.sizes.Sizes.shown`)."""

    index: int
    array: str
    has: Has


@dataclass(frozen=True, slots=True)
class OfWorkers:
    """That a call has so many workers at least. No bit of a result may depend on whether it holds."""

    index: int
    least: int


Assumed = OfSizes | OfArray | OfWorkers


def held_by(assumed: Iterable[Assumed]) -> Mapping[str, frozenset[Property]]:
    """The properties that arrays have where conditions hold, by arrays."""
    found: dict[str, frozenset[Property]] = {}
    for one in assumed:
        if isinstance(one, OfArray) and isinstance(one.has, Property):
            found[one.array] = found.get(one.array, frozenset()) | {one.has}
    return found
