"""Kills workers at random moments, between calls and in the middle of them, and compares results with those of a run
in which nobody dies.

    python tests/kill.py                  # 100 kills, half of them in each program; `make kill` does the same
    python tests/kill.py --kills 10 --seed 3

The programs: SGD matrix factorization, whose factors are Orion's own arrays, and Gauss-Seidel sweeps over a NumPy
array. Each kill is one of a worker process, chosen at random, within the time of a call or shortly after it. Exits with
1 where a result differs, where a call raises, or where one warns of a worker that died between calls.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from threading import Timer
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orion
from tests.test_promise import epochs as sgd

CALLS = 3
"""The calls of a program between two comparisons; the kill falls into one of them."""


@orion.parallel_for
def gauss_seidel(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@dataclass(frozen=True)
class Program:
    """`fresh()` gives new arguments, the same each time; `call` runs it on them."""

    name: str
    fresh: Callable[[], tuple[Any, ...]]
    call: Callable[..., None]

    def run(self, arguments: tuple[Any, ...]) -> list[bytes]:
        """The arrays after all calls."""
        for _ in range(CALLS):
            self.call(*arguments)
        arrays = [one for one in arguments if isinstance(one, np.ndarray | orion.DenseArray)]
        return [np.asarray(one).tobytes() for one in arrays]


def factors(ratings: int = 100_000) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2000, ratings), rng.integers(0, 1500, ratings)
    data = orion.sparse(keys, rng.random(ratings, np.float32), shape=(2000, 1500))
    W, H = (orion.uniform((n, 16), dtype="float32", seed=n) for n in (2000, 1500))
    return data, W, H, np.float32(0.01), np.float32(0.02), 200


PROGRAMS = (
    Program("sgd", factors, sgd),
    Program("gauss_seidel", lambda: (np.random.default_rng(0).random((1200, 1200)), 150), gauss_seidel),
)


@dataclass(frozen=True)
class Kill:
    """What one kill did: seconds after the first call began, whether a call was done again, what all calls took."""

    program: str
    at: float
    is_again: bool
    seconds: float
    wrong: str


def kills(program: Program, count: int, workers: int, chance: random.Random) -> tuple[float, list[Kill]]:
    """So many kills, and the seconds that the calls take without one."""
    with orion.session("threads", workers, force_parallel=True):
        expected = program.run(program.fresh())
    with orion.session("ray", workers, force_parallel=True) as session:
        usual = inf
        for _ in range(3):  # the first one starts the workers
            arguments = program.fresh()
            start = time.perf_counter()
            program.run(arguments)
            usual = min(usual, time.perf_counter() - start)
        return usual, [one_kill(program, expected, session, usual, chance) for _ in range(count)]


def one_kill(program: Program, expected: list[bytes], session: Any, usual: float, chance: random.Random) -> Kill:
    program.call(*program.fresh())  # where the last one died after all calls, there are new workers now
    arguments = program.fresh()
    at, victim = chance.uniform(0, 1.1 * usual), chance.choice(session._backend._team.group.processes)
    timer = Timer(at, os.kill, [victim, signal.SIGKILL])
    wrong, start = "", time.perf_counter()
    timer.start()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            if program.run(arguments) != expected:
                wrong = "another result"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    timer.join()
    again = [one for one in told if issubclass(one.category, orion.WorkerReplacedWarning)]
    if len(again) > 1 or (again and at > seconds):
        wrong = wrong or f"warned {len(again)} times of one death"
    return Kill(program.name, at, bool(again), seconds, wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description="Kills workers at random moments, and compares results.")
    parser.add_argument("--kills", type=int, default=100, help="how many, over all programs (default: 100)")
    parser.add_argument("--workers", type=int, default=2, help="workers of the session (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="what moments and victims are drawn from (default: 0)")
    options = parser.parse_args()
    chance, bad = random.Random(options.seed), 0
    for number, program in enumerate(PROGRAMS):
        count = (options.kills + number) // len(PROGRAMS)
        usual, found = kills(program, count, options.workers, chance)
        inside = [one.seconds for one in found if one.is_again]
        outside = [one.seconds for one in found if not one.is_again]
        bad += sum(bool(one.wrong) for one in found)
        print(
            f"{program.name}: {count} kills, {count - sum(bool(one.wrong) for one in found)} results the same; "
            f"{CALLS} calls take {usual:.2f} s, with a kill inside of one {_median(inside)} ({len(inside)}), "
            f"between two {_median(outside)} ({len(outside)})"
        )
        for one in found:
            if one.wrong:
                print(f"  at {one.at:.3f} s: {one.wrong}")
    sys.exit(1 if bad else 0)


def _median(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} s" if seconds else "–"


if __name__ == "__main__":
    main()
