"""How much tests try: `make test` tries each thing once, `make test-all` everything (`ORION_TESTS=all`).

- Random tests try three times as much there, or more where each trial takes long (`times`).
- Tests with several parameters run with all combinations there. In `make test` they run with some that have all values:
  `tests/covering.py` chooses for pytest, `combined` for loops inside of a test, `worker_counts` among numbers of
  workers.
- All kernels are compiled there. In `make test` the interpreter runs most of them in many files: `tests/uncompiled.py`.
- Tests with the marker `all` run only there: kills, clusters of several nodes, installations.

`ORION_TESTS=rest` is what `make test-all` adds to `make test`: `make test-sample` draws from it.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

MODE = os.environ.get("ORION_TESTS", "once")
"""What is run: `once`, `all` or `rest`."""

ALL = MODE in ("all", "rest")
"""Whether every combination is tried."""

TIMES = 3 if ALL else 1
"""How often random tests try what they try once in `make test`."""


def combined(*values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Combinations of one value of each kind: all, or so many that each value is among them.

    >>> list(combined("abc", (1, 2))) if not ALL else [("a", 1), ("b", 2), ("c", 1)]
    [('a', 1), ('b', 2), ('c', 1)]
    """
    if ALL:
        return itertools.product(*values)
    longest = max(map(len, values))
    return itertools.islice(zip(*map(itertools.cycle, values), strict=True), longest)


def worker_counts(*workers: int) -> Sequence[int]:
    """Return all these numbers of workers, or the least and the greatest."""
    return workers if ALL else (workers[0], workers[-1])


def times(number: int, few: int) -> int:
    """Return how often something is tried, or how much of it has to be found then: `few`, or three times `number`."""
    return TIMES * (number if ALL else few)


def one_in(number: int, values: Sequence[Any]) -> Sequence[Any]:
    """Return all these values, or the first of each so many."""
    return values if ALL else values[::number]
