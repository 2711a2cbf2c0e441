"""How much tests try: `ORION_TRIALS=3 make test` has them try more than a commit has to pass.

- Random tests try so many times as much. Where each try takes long, they try fewer if no more is asked for (`times`).
- From 3 on, tests with several parameters run with all combinations of these. Else each value of each of them is tried
  once at least: `tests/covering.py` for those of pytest, `combined` for what a test goes through by itself; of several
  numbers of workers the least and the greatest. `make test` draws a third of those of pytest by the day.
- From 3 on, all kernels are compiled. Else the interpreter runs most of them in many files: `tests/uncompiled.py`.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

TIMES = int(os.environ.get("ORION_TRIALS", "1"))

ALL = 3
"""With so many trials every combination is tried."""


def combined(*values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Combinations of one value of each kind: all, or so many that each value is among them.

    >>> list(combined("abc", (1, 2))) if TIMES < ALL else [("a", 1), ("b", 2), ("c", 1)]
    [('a', 1), ('b', 2), ('c', 1)]
    """
    if TIMES >= ALL:
        return itertools.product(*values)
    longest = max(map(len, values))
    return itertools.islice(zip(*map(itertools.cycle, values), strict=True), longest)


def worker_counts(*workers: int) -> Sequence[int]:
    """Of numbers of workers all, or the least and the greatest."""
    return workers if TIMES >= ALL else (workers[0], workers[-1])


def times(number: int, few: int) -> int:
    """How often something is tried, or how much of it has to be found then: `few` times of it for each trial, or
    `number` where everything is tried."""
    return TIMES * (number if TIMES >= ALL else few)


def one_in(number: int, values: Sequence[Any]) -> Sequence[Any]:
    """Of these values all, or the first one of each so many."""
    return values if TIMES >= ALL else values[::number]
