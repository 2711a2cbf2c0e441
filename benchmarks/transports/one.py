"""One transport in a process of its own: what `benchmarks.transports` starts.

python -m benchmarks.transports.one socket --sizes 1024 1048576
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from benchmarks.process import tell
from benchmarks.transports.contenders import BY_NAME
from benchmarks.transports.counters import begin_peak, cpu_seconds, loopback_bytes, peak
from benchmarks.transports.pair import Pair

FEWEST, MOST = 5, 2000
COUNTED = 1 << 20
"""From this size on memory and bytes of the network are counted."""


def measured(pair: Pair, size: int, seconds: float) -> dict[str, Any]:
    """What payloads of a size take: seconds of rounds, and per byte that was handed over processor seconds of both
    sides and of others, bytes of the network and bytes of memory at the peak over those before."""
    pair.prepare(size)
    first = pair.rounds(2, False)  # brings all pages in
    pair.rounds(2, True)
    count = max(FEWEST, min(MOST, int(seconds / max(first))))
    network, sides, others = loopback_bytes(), cpu_seconds(pair.sides), cpu_seconds(pair.others)
    handed = pair.rounds(count, False)
    total = 2 * size * (count + 1)
    found: dict[str, Any] = {
        "handed": handed,
        "cpu": (cpu_seconds(pair.sides) - sides) / total,
        "cpu_others": (cpu_seconds(pair.others) - others) / total,
        "touched": pair.rounds(count, True),
    }
    if size >= COUNTED:
        found["network"] = (loopback_bytes() - network) / (2 * total)
        before = sum(map(begin_peak, pair.sides))
        pair.rounds(1, False)
        found["memory"] = (sum(map(peak, pair.sides)) - before) / size
    return found


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
