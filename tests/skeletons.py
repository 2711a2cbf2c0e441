"""Random functions of short loops with anything between them, against Python, as many as are asked for.

    python -m tests.skeletons --count 700 --workers 2 --seed 0

Most kernels are run by the interpreter. Prints those that do otherwise than Python, with their text, and how many there
were.
"""

from __future__ import annotations

import argparse
import sys
import time

import pytest

import orion
from tests.test_followed_random import Seen, check
from tests.uncompiled import mostly_uncompiled


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    taken = wrong = 0
    start = time.perf_counter()
    with pytest.MonkeyPatch.context() as patch, mostly_uncompiled():
        seen = Seen(patch)
        with orion.session("threads", asked.workers, force_parallel=True):
            for seed in range(asked.seed, asked.seed + asked.count):
                try:
                    taken += check(seed, asked.workers, seen)
                except Exception as error:
                    wrong += 1
                    print(f"{type(error).__name__}: {error}\n", flush=True)
    followed = f"{sum(seen.answers)} of {len(seen.answers)} groups of steps were followed"
    print(f"{asked.count} functions, {taken} taken, {wrong} wrong, {followed}, {time.perf_counter() - start:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
