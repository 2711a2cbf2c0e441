"""Elastic averaging: the share of time in which workers do no steps, simulated up to 1,024 workers and measured on few.

    python -m benchmarks.elastic [--repeats N] [--ray] [--most 1024]

Measured: a loop with four replicas on one to four workers of this machine, next to a simulation event by event of the
schedule that the runtime made: which iterations each worker has, and so which pulls. Step, pull and meeting are timed
by themselves on one and two workers, as the best of runs, which other work on the machine hardly touches; by how much
workers slow each other down, or have no core of their own, is measured on as many that are pulled but once.

Simulated: workers without shared memory that exchange as many bytes as LeNet has, 431,080 parameters in eight arrays.

    in turn         the centre's node exchanges with worker after worker, array by array (EASGD of the paper of 2015)
    packed          the same, all arrays in one message
    tree            all workers at once, sums up a binary tree and the centre down it (Sync EASGD of SC 2017)
    parts           all workers at once, each pulls its part of the elements of all, as the runtime does it in memory
    overlapped      the same while workers do their next steps: `orion.elastic(overlap=True)`

The time of a step next to that of a message is chosen: so that of "in turn" on four workers 87 % is communication, as
You, Buluç and Demmel measured it. They had 14 % with all three changes, and 91.5 % weak scaling on 4,253 cores. By how
much steps vary is chosen, too (`--varies`): one worker that is late keeps all others waiting.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

import orion
from orion.cores import cores
from orion.simulate import Network

SHAPES = ((64, 100), (64, 64), (64,), (10, 64))
LENET = (500, 20, 25_000, 50, 400_000, 500, 5_000, 10)
"""Parameters of its arrays: two convolutions and two dense layers, each with its offsets."""

NETWORKS = {"1 GB/s, 100 µs": Network(1e9, 1e-4, 0.0), "10 GB/s, 2 µs": Network(1e10, 2e-6, 0.0)}
WORKERS = (1, 2, 3, 4)
STEPS, PERIODS = 640, 400


@orion.parallel_for
def train(targets, times, a, b, c, d, step):
    for s in range(targets.shape[0]):
        for _ in range(times):
            for i in range(a.shape[0]):
                for k in range(a.shape[1]):
                    a[i, k] -= step * (a[i, k] - targets[s])
                for k in range(b.shape[1]):
                    b[i, k] -= step * (b[i, k] - targets[s])
                c[i] -= step * (c[i] - targets[s])
        for i in range(d.shape[0]):
            for k in range(d.shape[1]):
                d[i, k] -= step * (d[i, k] - targets[s])


# ---------------------------------------------------------------- events


@dataclass(frozen=True)
class Costs:
    """Seconds of a step, of pulling as many elements as the arrays have, of a meeting of workers, and of a call."""

    step: float
    pull: float
    meeting: float
    call: float = 0.0

    def __str__(self) -> str:
        return ", ".join(f"{1e6 * one:.2f}" for one in (self.step, self.pull, self.meeting, self.call))


def simulated(pulls: Sequence[Sequence[int]], costs: Costs, overlaps: bool, slower: float) -> tuple[float, float]:
    """The seconds of a run whose workers have so many steps before each of their pulls, and the share of it in which a
    worker, on average, does no steps. Steps take `slower` times as long.

    >>> simulated([[2], [1]], Costs(1.0, 1.0, 0.0), False, 1.0)
    (3.0, 0.5)
    """
    clocks, done = np.zeros(len(pulls)), np.zeros(len(pulls))
    posted: list[NDArray[np.float64]] = [np.zeros(len(pulls))]
    for number in range(max(map(len, pulls))):
        there = [worker for worker, own in enumerate(pulls) if number < len(own)]
        for worker in there:
            done[worker] += slower * costs.step * pulls[worker][number]
            clocks[worker] += slower * costs.step * pulls[worker][number]
        meeting = costs.meeting * (len(there) > 1)
        if overlaps:
            before = posted[-1][there].max()
            clocks[there] = np.maximum(clocks[there], before) + costs.pull + meeting
        else:
            clocks[there] = clocks[there].max() + costs.pull + meeting
        posted.append(clocks.copy())
    if overlaps:  # the last pull, without steps
        clocks[:] = clocks.max() + costs.pull + costs.meeting * (len(pulls) > 1)
    end = float(clocks.max()) + costs.call
    return end, float(1 - done.mean() / end)


def pulls_of(workers: int, sync_every: int, arguments: tuple[object, ...]) -> list[list[int]]:
    """The steps before each pull of each worker, from the schedule that a call has."""
    schedule = train.plan(*arguments).schedule(workers)
    edges = schedule.bounds[0]
    counts = [int(sum(edges[tile + 1] - edges[tile] for tile in own)) for own in schedule.order]
    return [[min(sync_every, count - k) for k in range(0, count, sync_every)] for count in counts if count]


# ---------------------------------------------------------------- this machine


def arguments_for(policy: object, times: int) -> tuple[object, ...]:
    replicas = [orion.replicate(np.ones(shape), policy=policy) for shape in SHAPES]  # type: ignore[arg-type]
    return (np.random.default_rng(0).normal(size=STEPS), times, *replicas, 0.01)


def best_of(policy: object, workers: int, times: int, backend: str, repeats: int) -> float:
    """The least time of runs."""
    with orion.session(backend, workers, force_parallel=True):
        arguments = arguments_for(policy, times)
        train(*arguments)
        train(*arguments)
        found = []
        for _ in range(repeats):
            begin = time.perf_counter()
            train(*arguments)
            found.append(time.perf_counter() - begin)
    return min(found)


def costs_here(times: int, overlaps: bool, backend: str, repeats: int) -> Costs:
    """What a step, a pull and a meeting take here."""

    def best(workers: int, every: int, own: int) -> float:
        return best_of(orion.elastic(sync_every=every, overlap=overlaps), workers, own, backend, repeats)

    rare, few = best(1, STEPS, times), best(1, STEPS, 0)
    step = (rare - few) / STEPS
    pull = (best(1, 1, times) - rare) / (STEPS - 1)
    meeting = (best(2, 1, times) - best(2, STEPS, times)) / (STEPS // 2 - 1) - pull
    return Costs(step, pull, max(0.0, meeting), few - pull)


def show_here(backend: str, repeats: int) -> None:
    """Runs next to their simulation."""
    print(
        f"\n{backend}: {STEPS:,} steps; µs of step, pull, meeting and call; ms of the best run; the share without steps"
    )
    print("work  overlap  every  workers    run, ms  simulated      off  no steps, run  simulated")
    for times in (1, 8):
        for overlaps in (False, True):
            costs = costs_here(times, overlaps, backend, repeats)
            print(f"x{times} {overlaps}: {costs}")
            for workers in WORKERS:
                rare = best_of(orion.elastic(sync_every=STEPS, overlap=overlaps), workers, times, backend, repeats)
                slower = max(1.0, (rare - costs.call - costs.pull) * workers / (costs.step * STEPS))
                for every in (2, 10):
                    show_run(Asked(times, overlaps, every, workers), costs, slower, backend, repeats)


@dataclass(frozen=True)
class Asked:
    """A run: the work of a step, whether pulls overlap steps, after how many they are, and of how many workers."""

    times: int
    overlaps: bool
    every: int
    workers: int


def show_run(asked: Asked, costs: Costs, slower: float, backend: str, repeats: int) -> None:
    policy = orion.elastic(sync_every=asked.every, overlap=asked.overlaps)
    took = best_of(policy, asked.workers, asked.times, backend, repeats)
    with orion.session("threads", asked.workers, force_parallel=True):
        pulls = pulls_of(asked.workers, asked.every, arguments_for(policy, asked.times))
    crowd = max(1.0, asked.workers / max(2, cores()))  # a meeting is measured of two
    costs = replace(costs, pull=costs.pull * crowd, meeting=costs.meeting * crowd)
    found, share = simulated(pulls, costs, asked.overlaps, slower)
    measured = 1 - slower * costs.step * STEPS / asked.workers / took
    row = f"x{asked.times:<3}  {asked.overlaps!s:7}  {asked.every:5}  {asked.workers:7} {1e3 * took:10.2f}"
    print(f"{row} {1e3 * found:10.2f} {found / took - 1:+8.1%} {measured:14.1%} {share:10.1%}", flush=True)


# ---------------------------------------------------------------- many workers


def exchange_seconds(how: str, workers: int, network: Network) -> float:
    """The seconds of one exchange of all workers with the centre."""
    size, levels = 4 * sum(LENET), ceil(log2(workers))
    match how:
        case "in turn":
            return workers * 2 * network.seconds(size, len(LENET))
        case "packed":
            return workers * 2 * network.seconds(size)
        case "tree":
            return 2 * levels * network.seconds(size)
        case _:  # halves, quarters, … up, and down again
            return 2 * network.seconds(size * (workers - 1) / workers, levels)


def many(how: str, workers: int, step: float, varies: float, network: Network) -> float:
    """The seconds of a period of some steps, which take `step`, and one exchange."""
    rng = np.random.default_rng(workers)
    clocks, exchanged = np.zeros(workers), 0.0
    takes = exchange_seconds(how, workers, network)
    for _ in range(PERIODS):
        posted = clocks.max()
        clocks = clocks + step * rng.lognormal(-varies * varies / 2, varies, workers)
        if how == "overlapped":  # what all posted before these steps is exchanged during them
            exchanged = max(exchanged, posted) + takes
            clocks = np.maximum(clocks, exchanged)
        else:
            clocks[:] = clocks.max() + takes
    return float(clocks.mean()) / PERIODS


def step_for(share: float, network: Network) -> float:
    """The step of which "in turn" on four workers spends such a share of the time on communication."""
    return exchange_seconds("in turn", 4, network) * (1 - share) / share


def show_many(varies: float, most: int) -> None:
    ways = ("in turn", "packed", "tree", "parts", "overlapped")
    for name, network in NETWORKS.items():
        step = step_for(0.87, network)
        for every in (1, 4, 10):
            print(f"\n{name}: {every} steps of {1e3 * step:.2f} ms between exchanges, which vary by {varies:.0%}")
            print("workers" + "".join(f"{how:>12}" for how in ways) + "  weak scaling of the last")
            workers = 1
            while workers <= most:
                found = [many(how, workers, every * step, varies / every**0.5, network) for how in ways]
                shares = "".join(f"{max(0.0, 1 - every * step / period):12.1%}" for period in found)
                print(f"{workers:7,}{shares} {every * step / found[-1]:9.1%}", flush=True)
                workers *= 4 if workers > 2 else 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=150, help="runs, of which the best counts")
    parser.add_argument("--ray", action="store_true", help="the same on Ray's actors")
    parser.add_argument("--most", type=int, default=1024, help="workers that are simulated")
    parser.add_argument("--varies", type=float, default=0.05, help="standard deviation of steps over their mean")
    parser.add_argument("--only-many", action="store_true", help="measure nothing")
    options = parser.parse_args()
    for backend in () if options.only_many else ("threads", *(["ray"] if options.ray else [])):
        show_here(backend, options.repeats)
    show_many(options.varies, options.most)


if __name__ == "__main__":
    main()
