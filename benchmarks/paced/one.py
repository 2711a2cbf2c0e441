"""Trainings on a cluster of hosts, by a driver on the first of them: what `benchmarks.paced` starts there.

python -m benchmarks.paced.one --only topics --address 10.77.0.1:6379 --hosts NAME NAME
"""

from __future__ import annotations

import argparse
import subprocess
import warnings
from collections.abc import Sequence
from typing import Any

import orion
from benchmarks.hosts.one import settle
from benchmarks.paced.programs import PROGRAMS, Program
from benchmarks.process import tell, time_limit
from orion.arrays.sending import Sending
from orion.runtime.profile.records import CallRecord
from tests.hosts import LINK, traffic

FAST = 2000
"""Megabits per second of links while data is brought to the hosts, and while the demand is measured."""

FLUSHES = 40
"""The demand is that of sending all that has changed so many times in a pass."""

LOOSE = 2
"""In passes: the `max_delay` where only single rows are sent meanwhile. All is sent after half of it, if not before at
the end of a pass."""

ORDERS = ("magnitude", "round_robin", "random", "fifo")
POLICIES = ("often", "bound", *ORDERS)
EPOCHS = {"factorization": (2, 4, 6), "topics": (6, 12, 18)}


def shape(names: Sequence[str], megabits: float) -> None:
    """Give the links of hosts another rate."""
    kilobits, burst = max(1, round(megabits * 1000)), max(16, round(megabits / 4))
    for name in names:
        rate = ("root", "tbf", "rate", f"{kilobits}kbit", "burst", f"{burst}kb", "latency", "100ms")
        subprocess.run(["tc", "-n", name, "qdisc", "change", "dev", LINK, *rate], check=True)


def seconds_of(record: CallRecord) -> float:
    """From when the first worker began the loop to when the last was through with it: data is there before, and
    results are brought home after."""
    parts = [part for worker in record.workers for part in worker.parts]
    return (max(part.end for part in parts) - min(part.start for part in parts)) / 1e9


def trained(program: Program, policy: str, epochs: int, batch: int, names: Sequence[str]) -> dict[str, Any]:
    """What a training took, sent and reached."""
    # all is sent after half of what updates may be late, counted in a worker's own iterations
    often = max(2, 2 * program.iterations // len(names) // FLUSHES)
    delay = often if policy == "often" else LOOSE * program.iterations
    send = Sending(policy, batch, 0.0) if policy in ORDERS else None
    before = [traffic(name) for name in names]
    with orion.profile():
        program.run(delay, send, epochs)
    gone = [traffic(name).since(one) for name, one in zip(names, before, strict=True)]
    last = program.function.last_run
    return {
        "policy": policy,
        "epochs": epochs,
        "seconds": seconds_of(last.record),
        "sent": sum(one.bytes for one in last.sent),
        "early": sum(one.early for one in last.sent) / max(1, sum(one.rows for one in last.sent)),
        "messages": sum(one.messages for one in last.sent),
        "looking": max((one.looking for one in last.sent), default=0.0),
        "latest": max(one.latest for one in last.late),
        "carried": sum(one.bytes for one in gone),
        "contents": sum(one.contents for one in gone),
        "loss": program.loss(),
    }


def demand(program: Program, names: Sequence[str], batch: int) -> float:
    """The megabits per second that a host would send where all that changes is sent `FLUSHES` times in a pass, to each
    of the others, if that took no time."""
    trained(program, "bound", 1, batch, names)
    passes = [trained(program, "bound", 2, batch, names)["seconds"] / 2 for _ in range(3)]
    return (len(names) - 1) * FLUSHES * program.late * 8e-6 / sorted(passes)[1]


def main() -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=PROGRAMS, required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--address", required=True)
    parser.add_argument("--hosts", nargs="+", required=True)
    parser.add_argument("--shares", nargs="+", type=float, required=True, help="links, as shares of the demand")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--epochs", nargs="+", type=int)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each training")
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    program, number = PROGRAMS[options.only](options.scale), 0
    with orion.session("ray", len(options.hosts), address=options.address, force_parallel=True):
        shape(options.hosts, FAST)
        with time_limit("the demand", options.limit):
            wanted = demand(program, options.hosts, 100_000)
        for share in options.shares:
            # a message takes a hundredth of a pass
            batch = max(2_000, min(100_000, round(share * program.late * FLUSHES / 100)))
            for epochs in options.epochs or EPOCHS[options.only]:
                for policy in options.policies:
                    shape(options.hosts, FAST)
                    with time_limit(f"{policy}, {epochs} passes at {share:g}", options.limit):
                        program.run(LOOSE * program.iterations, None, 0)  # data is there
                        settle(options.hosts)
                        shape(options.hosts, wanted * share)
                        found = trained(program, policy, epochs, batch, options.hosts)
                    known = {"name": options.only, "about": program.about, "share": share, "demand": wanted}
                    number += 1
                    tell({f"{number}": {**known, "megabits": wanted * share, "batch": batch, **found}})


if __name__ == "__main__":
    main()
