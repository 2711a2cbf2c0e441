"""Which tests are run, and with which of their parameters: what `make test`, `make test-all` and the rest have.

`make test` has every test once. Of a test with several parameters it takes so many combinations that each value of each
parameter is among them, and of several numbers of workers the least and the greatest. A test of 20 loops, each of four
dtypes and on one, two and four workers, so has some 22 combinations, not 240: each loop and each dtype on four workers,
and one loop on one. It runs a fifth of these, always the same ones.

Tests with the marker `all` are no part of it: kills, clusters of several nodes, installations. The marker names the
tests that hold the same promise in a smaller form. On a whole file it names those of its own tests that stay.
`tests/test_suite.py` holds that there are such tests, and that `make test` has them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence, Set
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.uncompiled import is_mostly_uncompiled

EVERY = {
    "test_advice", "test_inspect_data", "test_inspect_svg", "test_inspect_text", "test_kernel_refusals", "test_promise",
    "test_same_functions", "test_schedule_build", "test_shown_shares", "test_stop",
}  # fmt: skip
"""Files of which a fifth of all combinations is run: they take little, or are what nothing else tries. So are tests of
files of elements (`SPILLED` in `tests/conftest.py`), which compile nothing."""

ONE_IN = 5
VARYING = re.compile(r"^from tests\.trials import", re.MULTILINE)

Values = dict[str, Any]
"""The parameters of a test and their values."""


def covering(items: Sequence[pytest.Item], every: Set[str], mode: str) -> list[pytest.Item]:
    """Return the tests of a mode (`MODE` in `tests/trials.py`) in their order. Files of `every` are as in `EVERY`."""
    if mode == "all":
        return [*items]
    once = {item.nodeid for item in of_make_test(items, every)}
    if mode == "once":
        return [item for item in items if item.nodeid in once]
    return [item for item in items if item.nodeid not in once or tries_more(item.path)]


def of_make_test(items: Iterable[pytest.Item], every: Set[str]) -> list[pytest.Item]:
    """Return the tests of `make test`."""
    kept: list[pytest.Item] = []
    for test, alike in groupby(filter(is_once, items), lambda item: item.nodeid.partition("[")[0]):
        found = {item.nodeid: item for item in alike}
        is_whole = Path(test.partition("::")[0]).stem in EVERY | every
        names = found.keys() if is_whole else chosen({name: parameters(item) for name, item in found.items()})
        drawn = one_in(ONE_IN, names)
        kept += [item for name, item in found.items() if name in drawn]
    return kept


def is_once(item: pytest.Item) -> bool:
    """Return whether `make test` has a test: whether it has no marker `all`, or is what the marker names."""
    marker = item.get_closest_marker("all")
    return marker is None or item.name.partition("[")[0] in marker.args


def tries_more(path: Path) -> bool:
    """Return whether the tests of a file try more where everything is tried than in `make test`."""
    return is_mostly_uncompiled(path.stem) or bool(VARYING.search(path.read_text("utf-8")))


def parameters(item: pytest.Item) -> Values:
    return item.callspec.params if hasattr(item, "callspec") else {}


def one_in(number: int, names: Iterable[str]) -> set[str]:
    """Return one of each so many names, one at least.

    >>> len(one_in(3, "abcdefg"))
    3
    """
    drawn = sorted(names, key=lambda name: (zlib.crc32(name.encode()), name))
    return set(drawn[: -(-len(drawn) // number)])


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
