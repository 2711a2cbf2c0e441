"""All tests, two at a time: first those without Ray, then those with it.

    python tests/suite.py                                 # or: make test
    python tests/suite.py tests/test_scans.py -k random   # with arguments of pytest
    ORION_TRIALS=4 python tests/suite.py                  # random tests try four times as much

Tests on Ray are in processes of their own, for those of the others grow to gigabytes: compiled code is never freed, and
workers of Ray are the first to be killed where memory runs out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

KINDS = ("not timing and not ray", "not timing and ray")
NONE = pytest.ExitCode.NO_TESTS_COLLECTED


def run(given: Sequence[str]) -> int:
    """Run the tests of both kinds; the exit code is that of the first kind that fails. Where there are none of either
    kind, that is a failure too."""
    codes = [subprocess.run([*command(kind), *given], check=False).returncode for kind in KINDS]
    failed = [code for code in codes if code not in (0, NONE)]
    return failed[0] if failed else min(codes)


def command(kind: str) -> list[str]:
    """How pytest is called for one kind of tests."""
    return [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "worksteal", "-m", kind]


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
