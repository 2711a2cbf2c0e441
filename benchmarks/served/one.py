"""Passes of sparse logistic regression on a cluster of hosts, by a driver on the first of them: what
`benchmarks.served` starts there.

    python -m benchmarks.served.one --address 10.77.0.1:6379 --hosts NAME NAME
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orion
from benchmarks.hosts.one import settle
from benchmarks.paced.one import FAST, seconds_of, shape
from benchmarks.process import tell, time_limit
from orion.plan import served
from tests.hosts import traffic

SAMPLES, FEATURES, EACH = 100_000, 1 << 22, 30
STEP = 0.05
TRIPS = 2000
ECHO = """
import socket, sys
at = socket.create_server(("0.0.0.0", 7007))
made, _ = at.accept()
made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while asked := made.recv(8):
    made.sendall(asked)
"""


@orion.parallel_for
def one_pass(indptr, indices, values, labels, w, late, step):  # type: ignore[no-untyped-def]
    """A pass of logistic regression by SGD."""
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            late[indices[p]] -= step * g * values[p]


def samples(scale: float = 1.0) -> tuple[NDArray[Any], ...]:
    """Samples whose features are as often as words are: few in many samples, most in one or two. Labels are those of a
    model with some noise."""
    rng = np.random.default_rng(0)
    count, features = int(SAMPLES * scale), int(FEATURES * scale)
    rank = rng.zipf(1.3, count * EACH) + rng.integers(0, 1000, count * EACH)
    indices = (rank * 2_654_435_761) % features  # neighbours in rank are no neighbours in memory
    truth, values = rng.standard_normal(features), rng.random(count * EACH)
    margin = (truth[indices] * values).reshape(count, EACH).sum(axis=1)
    labels = (margin + rng.standard_normal(count) > 0).astype(np.float64)
    return np.arange(count + 1) * EACH, indices, values, labels


def loss(data: Sequence[NDArray[Any]], w: NDArray[Any]) -> float:
    """The mean logistic loss."""
    _, indices, values, labels = data
    margin = (w[indices] * values).reshape(len(labels), -1).sum(axis=1) * np.where(labels > 0, 1.0, -1.0)
    return float(np.log1p(np.exp(-margin)).mean())


def trip_seconds(names: Sequence[str], address: str) -> float:
    """What a question of eight bytes to the first host and its answer take, from the second one."""
    with subprocess.Popen(["ip", "netns", "exec", names[0], sys.executable, "-c", ECHO]) as server:
        ask = (
            "import socket, time\n"
            f"for _ in range(100):\n try: made = socket.create_connection(({address!r}, 7007)); break\n"
            " except OSError: time.sleep(0.05)\n"
            "made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n"
            "begun = time.perf_counter()\n"
            f"for _ in range({TRIPS}):\n made.sendall(bytes(8)); made.recv(8)\n"
            f"print((time.perf_counter() - begun) / {TRIPS})\n"
        )
        command = ["ip", "netns", "exec", names[1], sys.executable, "-c", ask]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        server.kill()
    return float(told)


def measured(data: Sequence[NDArray[Any]], w: NDArray[Any], names: Sequence[str]) -> dict[str, Any]:
    """What a pass took and moved."""
    late = orion.buffer(w, max_delay=2 * len(data[3]))
    before, begun = [traffic(name) for name in names], perf_counter()
    with orion.profile():
        one_pass(*data, w, late, STEP)
    seconds = perf_counter() - begun
    settle(names)
    gone = sum(traffic(name).since(one).bytes for name, one in zip(names, before, strict=True))
    last = one_pass.last_run
    assert last is not None
    assert last.record is not None
    found = {"call": seconds, "loop": seconds_of(last.record), "carried": gone, "loss": loss(data, w)}
    return {**found, "told": sum(one.bytes for one in last.sent), **fetched(last)}


def fetched(last: Any) -> dict[str, float]:
    """What the nodes fetched; of times those of the node that waited longest."""
    every = last.fetched
    slowest = max(every, key=lambda one: one.waited, default=None)
    return {
        "rows": sum(one.rows for one in every), "messages": sum(one.messages for one in every),
        "bytes": sum(one.bytes for one in every), "fetching": slowest.seconds if slowest else 0.0,
        "waited": slowest.waited if slowest else 0.0,
    }  # fmt: skip


def main() -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--hosts", nargs="+", required=True)
    parser.add_argument("--links", nargs="+", type=float, required=True, help="megabits per second")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=300.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    data, number, least = samples(options.scale), 0, served.SERVED_BYTES
    with orion.session("ray", len(options.hosts), address=options.address, force_parallel=True):
        for kind in ("whole", "served"):
            served.SERVED_BYTES = least if kind == "served" else 1 << 62
            w = np.zeros(int(FEATURES * options.scale) + (kind == "whole"))  # another size: planned anew
            for megabits in options.links:
                shape(options.hosts, FAST)
                w[:] = 0
                with time_limit(f"{kind}, {megabits:g} Mbit/s", options.limit):
                    measured(data, w, options.hosts)  # what is compiled is, and the samples are there
                    shape(options.hosts, megabits)
                    trip = trip_seconds(options.hosts, options.address.partition(":")[0])
                    for turn in range(options.passes):
                        if turn == options.passes - 1:  # once with other samples at each place
                            data = (*data[:1], np.roll(data[1], EACH), np.roll(data[2], EACH), np.roll(data[3], 1))
                        found = measured(data, w, options.hosts)
                        known = {"kind": kind, "megabits": megabits, "pass": turn, "trip": trip}
                        number += 1
                        tell({f"{number}": {**known, "is_new": turn == options.passes - 1, **found}})


if __name__ == "__main__":
    main()
