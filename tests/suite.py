"""The tests, two at a time: those without Ray, and beside them the types and then those with Ray, which mostly wait.

    python tests/suite.py                                 # or: make test
    python tests/suite.py --all                           # or: make test-all
    python tests/suite.py --sample 20                     # or: make test-sample
    python tests/suite.py tests/test_scans.py -k random   # with arguments of pytest

What `make test` leaves to `make test-all`, `tests/trials.py` and `tests/covering.py` say; `tests/sample.py` runs a
sample of that, for so many minutes. Compiled code is never freed: processes grow by about a megabyte with each
loop. Tests are therefore run in parts, each by processes of its own, and those on Ray apart, as its workers are the
first to be killed where memory runs out. What runs beside the others says what it has to say after them, and all
failures are said again at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import failures, sample

PARTS = {"once": 3, "all": 9}
"""How many parts the tests without Ray of a mode have."""

TYPES = [sys.executable, "-m", "mypy"]
NONE = pytest.ExitCode.NO_TESTS_COLLECTED


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--all", action="store_true", help="all combinations, more random tests, what takes long")
    parser.add_argument("--sample", type=float, metavar="MINUTES", help="so much of what only --all runs")
    asked, given = parser.parse_known_args(arguments)
    if asked.sample is not None:
        return failures.told_again(lambda kept: sample.run(60 * asked.sample, given, kept), surroundings("rest"))
    return failures.told_again(lambda kept: run(given, kept), surroundings("all" if asked.all else "once"))


def run(given: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run all parts; the exit code is that of the first one that fails. No tests at all are a failure too."""
    *parts, on_ray = commands(given, PARTS[variables["ORION_TESTS"]])
    with ThreadPoolExecutor(1) as others:
        try:
            beside = [others.submit(run_beside, command, variables) for command in (TYPES, on_ray)]
            codes = [subprocess.run(command, env=variables, check=False).returncode for command in parts]
            types, ray = [told(*one.result()) for one in beside]
        except KeyboardInterrupt:
            others.shutdown(cancel_futures=True)
            raise
    codes.append(ray)
    failed = [code for code in (types, *codes) if code not in (0, NONE)]
    return failed[0] if failed else min(codes)


def surroundings(mode: str) -> dict[str, str]:
    """The environment of the tests of a mode (`MODE` in `tests/trials.py`), in which Python keeps bytecode even if it
    does not here, as in many containers: hundreds of processes import Orion, workers of Ray above all, and to each one
    that is half a second of a core."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"ORION_TESTS": mode}


def run_beside(command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
    """Run a command beside others: its exit code, and what it says."""
    ended = subprocess.run(command, env=variables, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ended.returncode, ended.stdout.decode(errors="replace")


def told(code: int, said: str) -> int:
    print(said, flush=True)
    return code


def commands(given: Sequence[str], parts: int) -> Iterator[list[str]]:
    """How pytest is called for each part, and last for the tests on Ray. Tests that are named are one part."""
    pytest_on_two = [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "worksteal", *given]
    without_ray, on_ray = ([*pytest_on_two, "-m", f"not timing and {which}"] for which in ("not ray", "ray"))
    if are_named(given):
        yield without_ray
        yield on_ray
    else:
        files = sorted(map(str, Path("tests").glob("test_*.py")))
        for part in range(parts):
            yield [*without_ray, *files[part::parts], *(["orion"] if part == 0 else [])]
        yield [*on_ray, *(file for file in files if "mark.ray" in Path(file).read_text("utf-8"))]


def are_named(given: Sequence[str]) -> bool:
    """Whether files or tests are among the arguments."""
    return any(Path(one.partition("::")[0]).exists() for one in given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
