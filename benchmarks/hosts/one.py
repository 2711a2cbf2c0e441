"""Programs on a cluster of hosts, by a driver on the first of them: what `benchmarks.hosts` starts there.

python -m benchmarks.hosts.one --only SGD-MF --scales 1 --address 10.77.0.1:6379 --hosts NAME NAME
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import median
from time import perf_counter
from typing import Any

import orion
from benchmarks.hosts.parts import parts_of
from benchmarks.hosts.programs import PROGRAMS, SCALES, Program
from benchmarks.process import tell, time_limit
from orion.runtime.profile.records import CallRecord
from tests.hosts import Traffic, traffic

WARM_UPS = 4
IDLE_SECONDS = 3.0
SETTLED_BYTES, SETTLED_SECONDS, MOST_SECONDS = 20_000, 0.5, 60.0
"""Links have settled when they carry less than so many bytes in so many seconds; it is waited for so many at most."""

PAYLOAD, LATENCY = 0.956, 2e-4
"""What predictions take of links: the part of their rate that is left beside the headers of whole packets (1,448 bytes
of 1,514), and the seconds that a small message of a connection takes one way (`make transports`)."""

PROFILED = 3
"""So many calls are profiled, and the one in the middle is told."""


@dataclass(frozen=True)
class Watched:
    """What the links of hosts carry while nobody calls anything, bytes of contents and with headers per second."""

    names: tuple[str, ...]
    idle: tuple[float, ...]
    idle_contents: float

    @classmethod
    def over(cls, names: Sequence[str], seconds: float) -> Watched:
        """Look at the links for a while."""
        before = [traffic(name) for name in names]
        time.sleep(seconds)
        gone = [traffic(name).since(one) for name, one in zip(names, before, strict=True)]
        return cls(tuple(names), tuple(one.bytes / seconds for one in gone), sum(o.contents for o in gone) / seconds)


@dataclass(frozen=True)
class Called:
    """One call: its seconds, the bytes that nodes have sent each other and that went between the driver and nodes, as
    the runtime counts them, and what went out of each host."""

    seconds: float
    sent: int
    moved: int
    gone: tuple[Traffic, ...]

    def carried(self, watched: Watched) -> float:
        """Bytes on all links with headers, and without what they carry anyway."""
        return sum(one.bytes for one in self.gone) - sum(watched.idle) * self.seconds

    def contents(self, watched: Watched) -> float:
        """Bytes on all links without headers, and without what they carry anyway."""
        return sum(one.contents for one in self.gone) - watched.idle_contents * self.seconds

    def busiest(self, watched: Watched) -> float:
        """Bytes on the link that carried most, with headers."""
        return max(one.bytes - idle * self.seconds for one, idle in zip(self.gone, watched.idle, strict=True))


def settle(names: Sequence[str]) -> None:
    """Wait until links carry hardly anything: on slow ones something may go on for seconds after the first calls with
    large arrays."""
    end, last = perf_counter() + MOST_SECONDS, [traffic(name) for name in names]
    while perf_counter() < end:
        time.sleep(SETTLED_SECONDS)
        now = [traffic(name) for name in names]
        if sum(one.since(before).bytes for one, before in zip(now, last, strict=True)) < SETTLED_BYTES:
            return
        last = now


def called(program: Program, number: int, session: orion.Session, names: Sequence[str]) -> Called:
    """Call a program, and count."""
    group = session._backend._team.group  # type: ignore[attr-defined]
    moved, before = group.moved, [traffic(name) for name in names]
    start = perf_counter()
    program.call(number)
    seconds = perf_counter() - start
    gone = tuple(traffic(name).since(one) for name, one in zip(names, before, strict=True))
    return Called(seconds, session._backend._team.sent_bytes, group.moved - moved, gone)  # type: ignore[attr-defined]


def profiled(program: Program, first: int) -> CallRecord:
    """What a profile tells of a call, of several the one that took neither the most nor the least time."""
    found = []
    for number in range(first, first + PROFILED):
        with orion.profile():
            program.call(number)
        found.append(program.function.last_run.record)
    return sorted(found, key=lambda record: record.end - record.start)[PROFILED // 2]


def alone(program: Program, calls: int) -> float:
    """The seconds of a call on one worker of this host."""
    taken = []
    with orion.session("threads", 1):
        for number in range(calls + 1):
            start = perf_counter()
            program.call(number)
            taken.append(perf_counter() - start)
    return median(taken[1:])


def on_hosts(
    program: Program, session: orion.Session, names: Sequence[str], calls: int, megabits: float
) -> dict[str, Any]:
    """What the plan says of a program, and what calls of it took."""
    estimate = program.estimate(len(names), PAYLOAD * megabits * 1e6 / 8, LATENCY)
    why = [loop.why_one_node for loop in estimate.loops if loop.why_one_node]
    for number in range(WARM_UPS):
        program.call(number)
    settle(names)
    watched = Watched.over(names, IDLE_SECONDS)
    found = sorted([called(program, n, session, names) for n in range(calls)], key=lambda one: one.seconds)
    middle = found[calls // 2]
    return {
        "predicted": estimate.bytes,
        "expected": estimate.seconds,
        "why": why,
        "seconds": middle.seconds,
        "sent": middle.sent,
        "moved": middle.moved,
        "contents": middle.contents(watched),
        "carried": middle.carried(watched),
        "again": sum(one.again for one in middle.gone),
        "busiest": middle.busiest(watched),
        **asdict(parts_of(profiled(program, calls))),
    }


def main() -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--scales", nargs="+", type=float, default=SCALES)
    parser.add_argument("--address", required=True)
    parser.add_argument("--hosts", nargs="+", required=True)
    parser.add_argument("--megabits", type=float, required=True, help="of each link, per second")
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each program of a size")
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    with orion.session("ray", len(options.hosts), address=options.address, force_parallel=True) as session:
        for name, scale in product(options.only, options.scales):
            what = f"{name} at scale {scale:g}"
            with time_limit(what, options.limit):
                program = PROGRAMS[name](scale)
                known = {"name": name, "about": program.about, "scale": scale, "alone": alone(program, options.calls)}
                with orion.session("threads", len(options.hosts), force_parallel=True):
                    program.measure()
                tell({what: {**known, **on_hosts(program, session, options.hosts, options.calls, options.megabits)}})


if __name__ == "__main__":
    main()
