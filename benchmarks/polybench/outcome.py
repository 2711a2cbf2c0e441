"""What is found out about one kernel, and how far two results are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

RIGHT = 1e-10
"""The largest relative error of a right result: sums inside one iteration may be added in another order."""

SLOWER = 1.05
"""Times serial Numba from which a kernel counts as slower."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a result compares with another: the same bits, or else the largest relative error of any array."""

    bitwise: bool
    error: float

    @property
    def is_right(self) -> bool:
        return self.bitwise or self.error <= RIGHT

    def __str__(self) -> str:
        if self.bitwise:
            return "same bits"
        return f"{self.error:.1e}" if self.is_right else f"WRONG {self.error:.1e}"


def agreement(arrays: Mapping[str, Any], expected: Mapping[str, Any], names: tuple[str, ...]) -> Agreement:
    """Compare the named arrays. Integers are compared exactly."""
    bitwise = all(np.array_equal(arrays[name].view(np.uint8), expected[name].view(np.uint8)) for name in names)
    return Agreement(bitwise, max(relative_error(arrays[name], expected[name]) for name in names))


def relative_error(array: Any, expected: Any) -> float:
    """The largest difference over the largest magnitude expected; infinite for integers that differ and for NaN."""
    if np.array_equal(array, expected):
        return 0.0
    if expected.dtype.kind != "f" or not np.isfinite(array).all():
        return float("inf")
    return float(np.max(np.abs(array - expected)) / np.max(np.abs(expected)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One kernel: what Orion makes of it, whether that is right, and seconds of each measurement.

    `strategies` has one per loop that the user wrote, `runs_on` is the number of workers at the measured size.
    `refused` is the first line of the refusal; `failed` says what else went wrong. `tiny` compares with plain Python,
    `at_size` with serial Numba. `first_call` is seconds of the first run at that size, compiling included.
    """

    kernel: str
    strategies: tuple[str, ...] = ()
    runs_on: int | None = None
    refused: str = ""
    failed: str = ""
    tiny: Agreement | None = None
    at_size: Agreement | None = None
    first_call: float | None = None
    serial: tuple[float, ...] = ()
    prange: tuple[float, ...] = ()
    orion: tuple[float, ...] = ()

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Outcome:
        """From what `to_dict` gave, or a part of it."""
        agreements = {name: Agreement(**facts[name]) for name in ("tiny", "at_size") if facts.get(name)}
        tuples = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
        return cls(**{**facts, **agreements, **tuples})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_accepted(self) -> bool:
        return bool(self.strategies)

    @property
    def is_right(self) -> bool:
        """Whether Orion ran it at both sizes with the right result."""
        return all(result is not None and result.is_right for result in (self.tiny, self.at_size))

    @property
    def is_slower(self) -> bool:
        """Whether Orion takes more than 5 % longer than serial Numba."""
        ratio = self.ratio("orion", "serial")
        return ratio is not None and ratio > SLOWER

    def median(self, contender: str) -> float | None:
        seconds = getattr(self, contender)
        return median(seconds) if seconds else None

    def ratio(self, of: str, over: str) -> float | None:
        """One contender's median time over another's, where both were measured."""
        times = self.median(of), self.median(over)
        return None if times[0] is None or times[1] is None else times[0] / times[1]
