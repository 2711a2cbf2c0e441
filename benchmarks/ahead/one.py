"""Epochs on a cluster of hosts, each after a shuffle, by a driver on the first of them: what `benchmarks.ahead` starts
there.

    python -m benchmarks.ahead.one --address 10.77.0.1:6379 --hosts NAME NAME
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

import orion
from benchmarks.hosts.one import settle
from benchmarks.paced.one import FAST, seconds_of, shape
from benchmarks.process import tell, time_limit
from tests.hosts import traffic

ROWS, COLUMNS, UNITS = 40_000, 128, 768


@orion.parallel_for
def epoch(X, W, out):  # type: ignore[no-untyped-def]
    """What a layer of a network makes of each sample."""
    for s in range(X.shape[0]):
        for k in range(W.shape[0]):
            out[s] += np.tanh(X[s] @ W[k])


def epochs(part: float, step: int, count: int, names: Sequence[str], scale: float) -> list[dict[str, Any]]:
    """What epochs took whose numbers are `step` apart: the next shuffle is expected where that is 1."""
    rng = np.random.default_rng(0)
    X = orion.array(rng.standard_normal((int(ROWS * scale), COLUMNS)).astype(np.float32))
    W = orion.array(rng.standard_normal((UNITS, COLUMNS)).astype(np.float32))
    out, found = orion.zeros(len(X), np.float32), []
    for number in range(count + 2):  # the first two show what the others will be
        if number == 2:
            settle(names)
            before = [traffic(name) for name in names]
        begun = perf_counter()
        X.shuffle(exchange=part, seed=3, ranks=len(names), epoch=number * step)
        shuffled = perf_counter()
        with orion.profile():
            epoch(X, W, out)
        ended = perf_counter()
        last = epoch.last_run
        assert last is not None
        assert last.record is not None
        rows = {"rows": last.shuffled.rows, "ahead": last.shuffled.ahead}
        found.append({"shuffle": shuffled - begun, "call": ended - shuffled, "loop": seconds_of(last.record), **rows})
    settle(names)
    gone = sum(traffic(name).since(one).bytes for name, one in zip(names, before, strict=True)) if count else 0
    return [{**one, "carried": gone / count} for one in found[2:]]


def main() -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--hosts", nargs="+", required=True)
    parser.add_argument("--links", nargs="+", type=float, required=True, help="megabits per second")
    parser.add_argument("--parts", nargs="+", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=300.0)
    options = parser.parse_args()
    number = 0
    with orion.session("ray", len(options.hosts), address=options.address, force_parallel=True):
        for megabits in options.links:
            for part in options.parts:
                for kind, step in (("after", 2), ("ahead", 1)):
                    with time_limit(f"{kind}, {part:g} at {megabits:g} Mbit/s", options.limit):
                        shape(options.hosts, FAST)
                        epochs(part, step, 0, options.hosts, options.scale)  # compiled
                        shape(options.hosts, megabits)
                        for found in epochs(part, step, options.epochs, options.hosts, options.scale):
                            number += 1
                            tell({f"{number}": {"kind": kind, "megabits": megabits, "part": part, **found}})


if __name__ == "__main__":
    main()
