"""What a profile has measured, as the numbers that its bottleneck is told by. Times are nanoseconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.runtime.profile.collector import Collector, LoopSums, TilesOfWorker, WorkerSums
from orion.runtime.profile.records import LoopLabel


@dataclass(frozen=True, slots=True)
class WorkerNumbers:
    """One worker's time: in tiles (`cpu`: on a core), waiting for others, moving data between nodes, and the rest: the
    start of loops, scalars, and what the profile itself takes."""

    worker: int
    tiles: int
    compute: int
    cpu: int
    wait: int
    transfer: int
    other: int

    @property
    def total(self) -> int:
        return self.compute + self.wait + self.transfer + self.other


@dataclass(frozen=True, slots=True)
class Rate:
    """The nanoseconds of a core per iteration in the tiles of one worker: of its fastest tiles, in the middle, and of
    its slowest (quantiles at 10, 50 and 90 %)."""

    worker: int
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class LoopNumbers:
    """One loop. `rounds` is how often it ran, `runs` how many tiles, `tile_ns` what one took of a core on average.
    `uneven` is the time of the longest tiles over that of those in the middle. `alone` and `together` are the times of
    one tile while the other workers stood still and while they did not; 0 where there is no sample."""

    label: LoopLabel
    calls: int
    rounds: int
    workers: tuple[WorkerNumbers, ...]
    rates: tuple[Rate, ...] = ()
    uneven: float = 1.0
    alone: int = 0
    together: int = 0

    @property
    def runs(self) -> int:
        return sum(one.tiles for one in self.workers)

    @property
    def compute(self) -> int:
        return sum(one.compute for one in self.workers)

    @property
    def cpu(self) -> int:
        return sum(one.cpu for one in self.workers)

    @property
    def total(self) -> int:
        return sum(one.total for one in self.workers)

    @property
    def tile_ns(self) -> float:
        return self.cpu / self.runs if self.runs else 0.0


@dataclass(frozen=True, slots=True)
class Numbers:
    """A whole profile. `wall` is its length, `outside` the part of it in which no call was under way, without what the
    profile took to add them up (`own`). The driver's time
    in calls: `planning` until it was known what to run, `queueing` for another thread's call, `preparing` all else
    outside of the workers, `copying` arguments. `unplanned` is that of functions that ran as they are. `running` is
    the time in which workers ran, and `workers` are the sums of each."""

    wall: int
    outside: int = 0
    own: int = 0
    planning: int = 0
    queueing: int = 0
    preparing: int = 0
    copying: int = 0
    copied: int = 0
    sent: int = 0
    messages: int = 0
    running: int = 0
    unplanned: int = 0
    calls: int = 0
    failed: int = 0
    workers: tuple[WorkerNumbers, ...] = ()
    loops: tuple[LoopNumbers, ...] = ()
    functions: tuple[tuple[str, int], ...] = field(default=())


def numbers_of(collected: Collector) -> Numbers:
    """The numbers of a profile."""
    with collected.lock:
        return _numbers(collected)


def _numbers(collected: Collector) -> Numbers:
    sums, wall = collected.sums, collected.wall()
    loops = [_loop(label, one) for label, one in collected.loops.items() if one.workers]
    return Numbers(
        wall=wall,
        outside=max(0, wall - collected.inside() - collected.own),
        own=collected.own,
        planning=sums.planning,
        queueing=sums.queueing,
        preparing=sums.preparing,
        copying=sums.copying,
        copied=sums.copied,
        sent=sums.sent,
        messages=sums.messages,
        running=sums.running,
        unplanned=sums.unplanned,
        calls=sums.calls,
        failed=sums.failed,
        workers=_workers(collected.workers),
        loops=tuple(sorted(loops, key=lambda one: -one.total)),
        functions=tuple(collected.unplanned.items()),
    )


def _workers(found: dict[int, WorkerSums]) -> tuple[WorkerNumbers, ...]:
    return tuple(
        WorkerNumbers(
            number, one.tiles, one.compute, one.cpu, one.wait, one.transfer,
            max(0, one.length - one.compute - one.wait - one.transfer),
        )
        for number, one in sorted(found.items())
    )  # fmt: skip


def _loop(label: LoopLabel, sums: LoopSums) -> LoopNumbers:
    rates = tuple(
        rate for number, one in sorted(sums.tiles.items()) if (rate := _rate(number, one)) is not None
    )  # fmt: skip
    return LoopNumbers(
        label=label,
        calls=sums.calls,
        rounds=max(one.rounds for one in sums.workers.values()),
        workers=_workers(sums.workers),
        rates=rates,
        uneven=_uneven(list(sums.tiles.values())),
        alone=sums.alone,
        together=sums.together,
    )


def _rate(worker: int, tiles: TilesOfWorker) -> Rate | None:
    has_work = tiles.work > 0
    if not tiles.rounds or not has_work.any():
        return None
    rates: NDArray[np.float64] = tiles.cpu[has_work] / (tiles.work[has_work] * tiles.rounds)
    low, middle, high = np.quantile(rates, (0.1, 0.5, 0.9)).tolist()
    return Rate(worker, low, middle, high)


def _uneven(tiles: list[TilesOfWorker]) -> float:
    """How much longer the longest tiles take than those in the middle, whoever runs them."""
    means = [one.cpu / max(1, one.rounds) for one in tiles if one.cpu.size]
    if not means:
        return 1.0
    middle, high = np.quantile(np.concatenate(means), (0.5, 0.95)).tolist()
    return float(high / middle) if middle > 0 else 1.0
