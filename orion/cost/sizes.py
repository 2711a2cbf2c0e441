"""The numbers that the plan of a call depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orion.cost.caches import Caches
from orion.cost.extents import parameter_values
from orion.dataclass import dataclass, field, replace
from orion.dependence.inspection import NOT_INSPECTED, InspectedLoops
from orion.ir.assumed import Has, Held
from orion.ir.types import Shapes

Shown = frozenset[tuple[str, Has | Held, bool]]
"""Arrays with properties that they were shown to have or not to have, of some it may not be known; and what they hold,
of those whose contents were asked for."""

NOTHING_SHOWN: Shown = frozenset()


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be shown of arrays in each call: `properties` that they may have, in sets of those that are of use
    together; and which arrays' `contents` decide where tiles are cut and in which order they are begun. No bit of a
    result hangs on the latter, and so whether they are still the same may be asked of some elements only."""

    properties: frozenset[frozenset[tuple[str, Has]]]
    contents: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of one call: shapes, integer arguments, element counts of sparse arrays, workers, and caches.

    `named` are the values of names that the function gives once, by the others (`n, m = A.shape`), and `round` those of
    the variables of serial loops in one of their rounds, for what is predicted of it.

    `shown` are the properties of arrays that a pass over them has shown in this call.

    `inspected` are loops with what was found of them for arrays of subscripts as they are in this call.

    `symbolic`: there is no call, and unknown sizes stand for any. `dynamic`: workers are to take tiles that others have
    not begun, where they may.
    """

    shapes: Shapes = field(default_factory=dict)
    integers: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    workers: int = 1
    force_parallel: bool = False
    symbolic: bool = False
    dynamic: bool = False
    caches: Caches = field(default_factory=Caches)
    named: Mapping[str, int] = field(default_factory=dict)
    round: Mapping[str, int] = field(default_factory=dict)
    shown: Shown = NOTHING_SHOWN
    inspected: InspectedLoops = NOT_INSPECTED

    def at_round(self, variables: Iterable[tuple[str, int]]) -> Sizes:
        """The same in a round of serial loops, whose variables have these values."""
        return replace(self, round={**self.round, **dict(variables)})

    @property
    def known(self) -> dict[str, int]:
        """The values of isl parameters that hold for the whole call: extents, integers, and names given once."""
        return parameter_values(self.shapes, {**self.named, **self.integers})

    def contents(self) -> dict[str, Any]:
        """What arrays hold, of those whose contents were asked for."""
        found = {array: held.copy() for array, held, _ in self.shown if isinstance(held, Held)}
        return {array: copy for array, copy in found.items() if copy is not None}

    @property
    def values(self) -> dict[str, int]:
        """What is known of symbols for predictions: also the variables of serial loops, as in the round."""
        return self.known | parameter_values({}, self.round)
