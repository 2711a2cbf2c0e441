"""The numbers that the plan of a call depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orion.loop.types import Shapes
from orion.transform.caches import Caches


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of one call: shapes, integer arguments, element counts of sparse arrays, workers, and caches.

    `symbolic`: there is no call, and unknown sizes stand for any.
    """

    shapes: Shapes = field(default_factory=dict)
    integers: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    workers: int = 1
    force_parallel: bool = False
    symbolic: bool = False
    caches: Caches = field(default_factory=Caches)
