"""From Ctrl-C to KeyboardInterrupt: how long it takes, whether the next call is right, and what it costs kernels.

    python -m benchmarks.interrupts
    python -m benchmarks.interrupts --moments 5 --skip costs
    python -m benchmarks.interrupts --rounds 15 --skip moments

Long loops, first compile, planning of a large nest, `read_csv` and the start of Ray are interrupted at random moments:
by SIGINT to the whole process group, as a terminal sends it, in a process of their own (`benchmarks.interrupted`). The
costs are those of kernels with looks in their loops to the same ones without, in turns; they are told with the interval
that holds 95 % of the medians of samples drawn from the rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.interrupted import LONG

SHORTEST, LONGEST = 0.05, 2.0
"""Seconds after which a long loop gets its signal."""

ONCE = ("compile", "plan", "read_csv")


@dataclass(frozen=True)
class Moment:
    """One interruption: seconds until KeyboardInterrupt, None where it never came; whether the next call was right."""

    seconds: float | None
    is_right: bool


class Child:
    """A process that is interrupted."""

    def __init__(self, name: str, backend: str, workers: int) -> None:
        command = [sys.executable, "-m", "benchmarks.interrupted", name, backend, str(workers)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._expect("ready")

    def uninterrupted(self) -> float:
        """How long it takes without a signal."""
        begun = self._begin("whole")
        return float(self._expect("finished")[1]) - begun

    def interrupted(self, delay: float) -> Moment | None:
        """Interrupt it after some seconds; None where it had ended before."""
        self._begin()
        time.sleep(delay)
        sent = time.monotonic()
        os.killpg(self._process.pid, signal.SIGINT)
        word, *found = self._expect("left", "late", "lost")
        if word == "lost":
            return Moment(None, is_right=True)
        return Moment(max(0.0, float(found[0]) - sent), found[1] == "True") if word == "left" else None

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _begin(self, word: str = "") -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        self._expect("begins")
        return time.monotonic()

    def _expect(self, *expected: str) -> list[str]:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            words = line.split()
            if words and words[0] in expected:
                return words
        raise RuntimeError(f"the process ended with {self._process.wait()}")


@contextmanager
def child(name: str, backend: str, workers: int) -> Iterator[Child]:
    """A process for one case."""
    found = Child(name, backend, workers)
    try:
        yield found
    finally:
        found.close()


def moments(name: str, backend: str, workers: int, number: int) -> list[Moment]:
    """Interrupt one case at random moments; of those that end by themselves, before they do."""
    chance, found = random.Random(f"{name} {backend} {workers}"), list[Moment]()
    with child(name, backend, workers) as process:
        longest = LONGEST if name in LONG else min(process.uninterrupted() for _ in range(2))
        while len(found) < number:
            moment = process.interrupted(chance.uniform(SHORTEST, longest))
            found += [moment] if moment else []
    return found


def table_of_moments(number: int, only: list[str]) -> Table:
    """Interrupt everything, and tell how it went."""
    table = Table("what", "on", "workers", "median s", "most s", "came", "next call right")
    cases = [(name, backend, workers) for name in LONG for backend in ("threads", "ray") for workers in (1, 2)]
    cases += [(name, "threads", 2) for name in ONCE] + [("ray", "ray", 2)]
    for name, backend, workers in cases:
        if only and name not in only:
            continue
        found = moments(name, backend, workers, number)
        came = [moment.seconds for moment in found if moment.seconds is not None]
        times = (f"{median(came):.3f}", f"{max(came):.3f}") if came else ("-", "-")
        right = f"{sum(moment.is_right for moment in found)}/{number}"
        table.add_row(name, backend, str(workers), *times, f"{len(came)}/{number}", right)
        Console(stderr=True).print(name, backend, workers, *times, f"{len(came)}/{number}", right)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=20, help="interruptions of each case")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each kernel")
    parser.add_argument("--skip", choices=("moments", "costs"), help="leave out one of the tables")
    parser.add_argument("--only", nargs="*", default=[], help="these cases alone")
    chosen = parser.parse_args()
    console = Console()
    if chosen.skip != "moments":
        console.print(table_of_moments(chosen.moments, chosen.only))
    if chosen.skip != "costs":
        from benchmarks.interrupts_costs import table_of_costs

        console.print(table_of_costs(chosen.rounds, chosen.only))


if __name__ == "__main__":
    main()
