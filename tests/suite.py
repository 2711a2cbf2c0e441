"""All tests, two at a time: first those without Ray, then those with it.

    python tests/suite.py                                 # or: make test
    python tests/suite.py tests/test_scans.py -k random   # with arguments of pytest
    ORION_TRIALS=3 python tests/suite.py                  # all combinations of parameters, three times the random tests

What is left out if no more trials are asked for, `tests/trials.py` says. Compiled code is never freed: processes grow
by about a megabyte with each loop. Tests are therefore run in parts, each by processes of its own, and those on Ray
apart, as its workers are the first to be killed where memory runs out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PARTS = 3
"""So many for the tests without Ray."""

NONE = pytest.ExitCode.NO_TESTS_COLLECTED


def run(given: Sequence[str]) -> int:
    """Run all parts; the exit code is that of the first one that fails. No tests at all are a failure too."""
    codes = [subprocess.run(command, check=False).returncode for command in commands(given)]
    failed = [code for code in codes if code not in (0, NONE)]
    return failed[0] if failed else min(codes)


def commands(given: Sequence[str]) -> Iterator[list[str]]:
    """How pytest is called for each part. Tests that are named are one part."""
    pytest_on_two = [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "worksteal", *given]
    without_ray = [*pytest_on_two, "-m", "not timing and not ray"]
    if any(Path(one.partition("::")[0]).exists() for one in given):
        yield without_ray
    else:
        files = sorted(map(str, Path("tests").glob("test_*.py")))
        for part in range(PARTS):
            yield [*without_ray, *files[part::PARTS], *(["orion"] if part == 0 else [])]
    yield [*pytest_on_two, "-m", "not timing and ray"]


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
