"""All tests, two at a time: those without Ray, and beside them the types and then those with Ray, which mostly wait.

    python tests/suite.py                                 # or: make test
    python tests/suite.py tests/test_scans.py -k random   # with arguments of pytest
    ORION_TRIALS=3 python tests/suite.py                  # all combinations of parameters, three times the random tests

What is left out if no more trials are asked for, `tests/trials.py` says. Compiled code is never freed: processes grow
by about a megabyte with each loop. Tests are therefore run in parts, each by processes of its own, and those on Ray
apart, as its workers are the first to be killed where memory runs out. What runs beside the others says what it has to
say after them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

PARTS = 3
"""So many for the tests without Ray."""

TYPES = [sys.executable, "-m", "mypy"]
NONE = pytest.ExitCode.NO_TESTS_COLLECTED


def run(given: Sequence[str]) -> int:
    """Run all parts; the exit code is that of the first one that fails. No tests at all are a failure too."""
    if not are_named(given):
        drawn_by = os.environ.setdefault("ORION_SAMPLE", date.today().isoformat())
        print(f"combinations of parameters are drawn by ORION_SAMPLE={drawn_by}", flush=True)
    *parts, on_ray = commands(given)
    with ThreadPoolExecutor(1) as others:
        try:
            beside = [others.submit(run_beside, command) for command in (TYPES, on_ray)]
            codes = [subprocess.run(command, env=surroundings(), check=False).returncode for command in parts]
            types, ray = [told(*one.result()) for one in beside]
        except KeyboardInterrupt:
            others.shutdown(cancel_futures=True)
            raise
    codes.append(ray)
    failed = [code for code in (types, *codes) if code not in (0, NONE)]
    return failed[0] if failed else min(codes)


def surroundings() -> dict[str, str]:
    """The environment of the tests, in which Python keeps bytecode even if it does not here, as in many containers:
    hundreds of processes import Orion, workers of Ray above all, and to each one that is half a second of a core."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_beside(command: Sequence[str]) -> tuple[int, str]:
    """Run a command beside others: its exit code, and what it says."""
    ended = subprocess.run(command, env=surroundings(), check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ended.returncode, ended.stdout.decode(errors="replace")


def told(code: int, said: str) -> int:
    print(said, flush=True)
    return code


def commands(given: Sequence[str]) -> Iterator[list[str]]:
    """How pytest is called for each part. Tests that are named are one part."""
    pytest_on_two = [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "worksteal", *given]
    without_ray, on_ray = ([*pytest_on_two, "-m", f"not timing and {which}"] for which in ("not ray", "ray"))
    if are_named(given):
        yield without_ray
        yield on_ray
    else:
        files = sorted(map(str, Path("tests").glob("test_*.py")))
        for part in range(PARTS):
            yield [*without_ray, *files[part::PARTS], *(["orion"] if part == 0 else [])]
        yield [*on_ray, *(file for file in files if "mark.ray" in Path(file).read_text("utf-8"))]


def are_named(given: Sequence[str]) -> bool:
    """Whether files or tests are among the arguments."""
    return any(Path(one.partition("::")[0]).exists() for one in given)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
