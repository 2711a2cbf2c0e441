"""What failed is said once more at the end: of a long log people see the last part first, and servers may keep no more.

Each run of pytest adds its failures to one file, which `tests/suite.py` prints when all have ended. Runs that tests
begin do not: their failures are asked for.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

KEPT = "ORION_TESTS_FAILURES"
"""The variable that names the file."""

FILE = os.environ.pop(KEPT, None)
"""The file, for this run alone: what it starts has no such variable."""


def keep(reporter: pytest.TerminalReporter) -> None:
    """Add what failed in this run, if it is asked for. Its processes tell the first one, which has the file."""
    failed = [report for outcome in ("failed", "error") for report in reporter.stats.get(outcome, ())]
    if FILE is None or not failed:
        return
    with open(FILE, "a", encoding="utf-8") as kept:
        kept.writelines(f"\n---- {report.nodeid}\n{report.longreprtext}\n" for report in failed)


def told_again(run: Callable[[Mapping[str, str]], int], variables: Mapping[str, str]) -> int:
    """Run tests in this environment, then print what failed; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "failures")
        code = run({**variables, KEPT: str(file)})
        if file.exists():
            print(f"\nWhat failed, once more:\n{file.read_text('utf-8', 'replace')}", flush=True)
    return code
