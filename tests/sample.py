"""A sample of what `make test` leaves to `make test-all`: files of tests in the order of a hash of the tree.

Each commit so draws other files, and a few commits have seen all of them. Two files run at a time, each in a process of
its own. When the time is over no test begins any more, in none of the processes (`end_if_over`).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

AT_ONCE = 2
UNTIL = "ORION_TESTS_UNTIL"
"""The variable that says when no further test is to begin, in seconds since 1970."""

TREE = ("orion/**/*.py", "tests/**/*.py", "examples/**/*.py", "docs/**/*.md", "docs/*.py", "*.md", "pyproject.toml")
"""Which files the tests depend on."""

OVER = "the time of the sample is over"
FINE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def run(seconds: float, given: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run as many files as there is time for; 0 where no test fails. `given` are arguments for pytest."""
    last = time.time() + seconds
    files = in_order(with_more(), tree_hash())

    def run_in_time(file: str) -> int | None:
        return run_file(file, given, {**variables, UNTIL: str(last)}) if time.time() < last else None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        codes = [code for code in pool.map(run_in_time, files) if code is not None]
    print(f"{len(codes)} of {len(files)} files with tests that only `make test-all` runs")
    return max(codes, default=0)


def run_file(file: str, given: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a file: 0 where no test fails, else what it says is printed."""
    command = [sys.executable, "-m", "pytest", "-m", "not timing", *given, file]
    ended = subprocess.run(command, env=variables, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = ended.stdout.decode(errors="replace").strip()
    is_fine = ended.returncode in FINE
    print(f"{file}: {said.splitlines()[-1] if is_fine and said else said}", flush=True)
    return 0 if is_fine else ended.returncode


def end_if_over(session: pytest.Session) -> None:
    """Have no further test begin where the time is over."""
    if time.time() > float(os.environ.get(UNTIL, "inf")):
        session.shouldstop = OVER


def pass_if_over(session: pytest.Session) -> None:
    """Have a session that ended so pass if its tests did."""
    if session.shouldstop == OVER:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.OK


def with_more() -> Iterator[str]:
    """The files whose tests may do more in `make test-all` than in `make test`."""
    from tests.covering import tries_more

    for path in Path("tests").glob("test_*.py"):
        text = path.read_text("utf-8")
        if tries_more(path) or "parametrize" in text or "mark.all" in text:
            yield str(path)


def in_order(files: Iterator[str], tree: str) -> list[str]:
    """The files in an order that the tree decides."""
    return sorted(files, key=lambda file: hashlib.sha256(f"{tree} {file}".encode()).digest())


def tree_hash() -> str:
    """A hash of these files, whether they are committed or not."""
    found = hashlib.sha256()
    for path in sorted({path for pattern in TREE for path in Path().glob(pattern)}):
        found.update(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()
