"""Measurements in a process of its own: what it tells, by line, outlives a crash or a time limit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

# ---------------------------------------------------------------- in the process


def tell(facts: dict[str, Any]) -> None:
    """Say what is found: a JSON object on a line; `step` is what is done at the moment."""
    print(json.dumps(facts), flush=True)


@contextmanager
def time_limit(step: str, limit: float) -> Iterator[None]:
    """End this process where a step takes too long, also inside compiled code: by the alarm that nothing catches."""
    tell({"step": step})
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


# ---------------------------------------------------------------- outside of it


def told_by(arguments: Sequence[str], limit: float, before: Sequence[str] = ()) -> dict[str, Any]:
    """What `python -m …` told, the latest word on each field; `failed` says how it ended if not well. `before` is a
    command that runs it."""
    command = [*before, sys.executable, "-m", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    facts: dict[str, Any] = {}
    for line in ended.stdout.splitlines():
        if line.startswith("{"):
            facts |= json.loads(line)
    step = facts.pop("step", "the beginning")
    if ended.returncode:
        facts["failed"] = why_it_ended(ended, step, limit)
        print(ended.stderr, file=sys.stderr)
    return facts


def why_it_ended(ended: subprocess.CompletedProcess[str], step: str, limit: float) -> str:
    """Why a process did not end well, in one line."""
    if ended.returncode == -signal.SIGALRM:
        return f"more than {limit:g} s for {step}"
    if ended.returncode < 0:
        return f"signal {-ended.returncode} in {step}"
    return (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
