"""What a loop of the everyday list says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Nature(StrEnum):
    """What a loop allows, whatever a compiler makes of it."""

    PARALLEL = "parallel"  # iterations of a loop with nearly all of the work are independent, or only add or compare
    WAVEFRONT = "wavefront"  # iterations depend on neighbours in two or more dimensions, diagonals do not
    SCAN = "scan"  # a recurrence with an associative step: running sums, maxima, linear recurrences, compaction
    SEARCH = "search"  # ends early, where it has found something
    SERIAL = "serial"  # each iteration needs the one before, and no known rewriting helps


@dataclass(frozen=True, slots=True)
class Case:
    """A function with loops, and what to call it with.

    `arguments(n)` gives new arguments, the same for the same n: arrays that the function may change. With n = `small`
    plain Python takes about 20 ms; with n = `large` compiled code takes about 20 ms on one core.
    """

    kind: str  # the kind of program: "k-means", "heat equation"
    function: Callable[..., Any]  # as a user writes it, without a decorator
    arguments: Callable[[int], tuple[Any, ...]]
    small: int
    large: int
    nature: Nature
    why: str  # one sentence: why it is of this nature

    @property
    def name(self) -> str:
        return self.function.__name__
