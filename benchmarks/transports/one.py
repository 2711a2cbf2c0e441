"""One transport in a process of its own: what `benchmarks.transports` starts.

python -m benchmarks.transports.one socket --sizes 1024 1048576
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from benchmarks.process import tell
from benchmarks.transports.contenders import BY_NAME
from benchmarks.transports.counters import begin_peak, cpu_seconds, loopback_bytes, peak
from benchmarks.transports.pair import Pair, PlainPair

FEWEST, MOST = 5, 2000
BATCH = 100
"""So many rounds are begun together; where they took too long there are no more: on a busy machine a round may take a
thousand times as long as the first ones did."""

COUNTED = 1 << 20
"""From this size on memory and bytes of the network are counted."""


def measured(pair: Pair, size: int, seconds: float) -> dict[str, Any]:
    """What payloads of a size take: seconds of rounds, and per byte that was handed over processor seconds of both
    sides, of others, and of both sides while they turn round waiting for a flag, bytes of the network and bytes of
    memory at the peak over those before."""
    pair.prepare(size)
    first = pair.rounds(2, False)  # brings all pages in
    pair.rounds(2, True)
    count = max(FEWEST, min(MOST, int(seconds / max(first))))
    network, sides, others = loopback_bytes(), cpu_seconds(pair.sides), cpu_seconds(pair.others)
    handed, all_rounds = rounds_within(pair, count, False, 3 * seconds)
    total = 2 * size * all_rounds
    found: dict[str, Any] = {
        "handed": handed,
        "cpu": (cpu_seconds(pair.sides) - sides) / total,
        "cpu_others": (cpu_seconds(pair.others) - others) / total,
    }
    found["touched"], more = rounds_within(pair, count, True, 3 * seconds)
    if size >= COUNTED:
        found["network"] = (loopback_bytes() - network) / (total + 2 * size * more)
        before = sum(map(begin_peak, pair.sides))
        pair.rounds(1, False)
        found["memory"] = (sum(map(peak, pair.sides)) - before) / size
    if isinstance(pair, PlainPair):
        waited = min(count, BATCH)
        found["waiting"] = pair.waiting(waited) / (2 * size * (waited + 1))
    return found


def rounds_within(pair: Pair, count: int, touched: bool, seconds: float) -> tuple[list[float], int]:
    """The seconds of at most `count` rounds, fewer where they take longer than `seconds`, and how many there were with
    those that do not count."""
    taken: list[float] = []
    end, batches = perf_counter() + seconds, 0
    while len(taken) < count and (len(taken) < FEWEST or perf_counter() < end):
        taken += pair.rounds(min(BATCH if taken else FEWEST, count - len(taken)), touched)
        batches += 1
    return taken, len(taken) + batches


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=BY_NAME)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1 << 20])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--torn", type=int, default=0, help="so many messages whose source is overwritten at once")
    options = parser.parse_args(arguments)
    contender = BY_NAME[options.name]
    pair = contender.make()
    try:
        for size in options.sizes:
            tell({"step": f"{size} bytes"})
            if options.torn:
                pair.prepare(size)
                tell({str(size): pair.torn(options.torn)})  # type: ignore[attr-defined]
            else:
                tell({str(size): measured(pair, size, options.seconds)})
    finally:
        pair.close()


if __name__ == "__main__":
    main()
