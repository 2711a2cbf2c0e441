"""Which of the combinations of parameters of a test are run: with `ORION_TRIALS=3` all, else so many that each value of
each parameter is among them; of several numbers of workers the least and the greatest.

A test of 20 loops, each of four dtypes and on one, two and four workers, so runs some 22 times, not 240: each loop and
each dtype on four workers, and one loop on one.

`make test` runs a third of these, of each test one at least: which, the day says (`ORION_SAMPLE`, which
`tests/suite.py` sets and prints), so that a few days see all of them. Who names files or tests runs all.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence, Set
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.trials import ALL, TIMES

EVERY = {
    "test_advice", "test_inspect_data", "test_inspect_svg", "test_inspect_text", "test_kernel_refusals", "test_promise",
    "test_same_functions", "test_schedule_build", "test_shown_shares", "test_stop",
}  # fmt: skip
"""Files of which all combinations are run: they take little, or are what nothing else tries. So are tests of files of
elements (`SPILLED` in `tests/conftest.py`), which compile nothing."""

ONE_IN = 3

Values = dict[str, Any]
"""The parameters of a test and their values."""


def covering(items: Sequence[pytest.Item], every: Set[str]) -> list[pytest.Item]:
    """Those of the tests that are run, in their order; of the files in `every` and `EVERY` all."""
    kept: set[str] = set()
    for test, alike in groupby(items, lambda item: item.nodeid.partition("[")[0]):
        found = {item.nodeid: item.callspec.params if hasattr(item, "callspec") else {} for item in alike}
        is_whole = TIMES >= ALL or Path(test.partition("::")[0]).stem in EVERY | every
        kept |= found.keys() if is_whole else chosen(found)
    return sampled([item for item in items if item.nodeid in kept])


def sampled(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return one in `ONE_IN` combinations of each test, drawn by `ORION_SAMPLE`; all where that is not set."""
    seed = os.environ.get("ORION_SAMPLE", "") if TIMES < ALL else ""
    if not seed:
        return [*items]
    kept: set[str] = set()
    for _, alike in groupby(items, lambda item: item.nodeid.partition("[")[0]):
        drawn = sorted((zlib.crc32(f"{seed} {item.nodeid}".encode()), item.nodeid) for item in alike)
        kept |= {name for _, name in drawn[: -(-len(drawn) // ONE_IN)]}
    return [item for item in items if item.nodeid in kept]


def chosen(combinations: dict[str, Values]) -> set[str]:
    """The names of combinations that together have all values. Where numbers of workers are among the parameters, each
    other value is there with the largest one.

    >>> pairs = {f"{a}{b}": {"a": a, "b": b} for a in "abcde" for b in "xyz"}
    >>> len(pairs), len(chosen(pairs))
    (15, 6)
    >>> sorted(chosen({f"{a}{workers}": {"a": a, "workers": workers} for a in "abc" for workers in (1, 2)}))
    ['a2', 'b1', 'b2', 'c2']
    >>> sorted(chosen({f"{a}{workers}": {"a": a, "workers": workers} for a in "abc" for workers in (1, 2, 4)}))
    ['a4', 'b1', 'b4', 'c4']
    """
    found: set[str] = set()
    numbers = {workers(values) for values in combinations.values()}
    covered = {("workers", id(number)) for number in numbers - {min(numbers), max(numbers)}}
    for name in sorted(combinations, key=lambda name: (-workers(combinations[name]), zlib.crc32(name.encode()))):
        values = {(parameter, id(value)) for parameter, value in combinations[name].items()}
        if not found or not values <= covered:
            found.add(name)
            covered |= values
    return found


def workers(values: Values) -> int:
    number = values.get("workers", 0)
    return number if isinstance(number, int) else 0
