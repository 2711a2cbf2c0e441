"""How long a schedule takes, by the times of its tiles: list scheduling (Graham 1969).

A worker runs the tiles that it owns in their order, each as soon as what it waits for is done and has come; where
workers take tiles of each other, a free one takes the first tile in the serial order that waits for nothing any more.
What a tile sends to another node leaves when it is done, one message after the other on the way out of its node; its
worker goes on when it has sent all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.schedule.schedule import Ints, Schedule

Seconds = NDArray[np.float64]
MOST_TILES, WINDOW = 50_000, 8
"""Rounds that overlap are simulated one after the other up to so many tiles; else so many of them, of which the later
half is taken to be as all are."""

MOST_ADDED = 100_000
"""Of more rounds than this only so many, evenly spread, are added up."""


@dataclass(frozen=True, slots=True)
class Network:
    """What goes from node to node takes `latency` seconds and its bytes over `bandwidth`, in bytes per second; each
    node sends one message at a time. A worker runs no tile for `sending` seconds while it sends a message."""

    bandwidth: float
    latency: float
    sending: float

    def seconds(self, size: float, messages: float = 1) -> float:
        """The time of so many messages, of so many bytes together, one after the other."""
        return size / self.bandwidth + messages * (self.latency + self.sending)


@dataclass(frozen=True, slots=True, eq=False)
class TileGraph:
    """The tiles of a loop as they are simulated. `serial` are all tiles in an order that keeps every wait, `owner[t]`
    is the worker of tile t, which is on node `place[w]`; `waits` are (offsets, tiles, lags) as in a `Schedule`.
    `sends[t]` has (node, bytes) for what tile t sends when it is done. `takes_tiles` as in a `Schedule`."""

    serial: Ints
    owner: Ints
    place: tuple[int, ...]
    waits: tuple[Ints, Ints, Ints]
    sends: Mapping[int, Sequence[tuple[int, int]]]
    takes_tiles: bool

    @classmethod
    def of(cls, schedule: Schedule) -> TileGraph:
        """The tiles of a schedule on one node."""
        waits = schedule.wait_offsets, schedule.waits, schedule.lags
        place = (0,) * schedule.workers
        return cls(schedule.serial_tiles(), schedule.owner, place, waits, {}, schedule.takes_tiles)

    @property
    def workers(self) -> int:
        return len(self.place)


@dataclass(frozen=True, slots=True, eq=False)
class RoundTimes:
    """The times of tiles in the rounds of a loop: `seconds`, float64 (samples, tiles), in the rounds `sampled`, int64
    (samples,), of `measured`. There are `rounds` to be predicted; `overlap` where they do."""

    seconds: Seconds
    sampled: Ints
    measured: int
    rounds: int
    overlap: bool

    def places(self, rounds: int) -> Seconds:
        """Where the samples are among so many rounds."""
        scale = (rounds - 1) / max(1, self.measured - 1)
        return np.asarray(self.sampled, np.float64) * scale

    def over_all(self, values: Sequence[float] | Seconds, rounds: int) -> float:
        """The sum over so many rounds, given the values at the samples; between two it is taken to be linear.

        >>> import numpy as np
        >>> RoundTimes(np.zeros((2, 1)), np.array([0, 4]), 5, 5, False).over_all([1.0, 5.0], 5)
        15.0
        """
        if rounds <= 0:
            return 0.0
        count = min(rounds, MOST_ADDED)
        at = np.linspace(0, rounds - 1, count)
        return float(np.interp(at, self.places(rounds), values).mean() * rounds)


def makespan(tiles: TileGraph, seconds: Seconds, slower: float, network: Network) -> float:
    """The time from the beginning of a round to its end, float64 (tiles,) being the seconds of each tile by itself,
    which takes so many times as long, `slower`, beside tiles of all other workers.

    >>> import numpy as np
    >>> none = np.zeros(5, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    >>> four = TileGraph(np.arange(4), np.array([0, 0, 1, 1]), (0, 0), none, {}, False)
    >>> makespan(four, np.array([1.0, 2.0, 3.0, 4.0]), 1.0, Network(1e9, 1e-5, 0.0))
    7.0
    """
    if tiles.takes_tiles:
        return _TakenRounds(tiles).next(slower * seconds)
    if not tiles.waits[1].size and not tiles.sends:
        loads = np.bincount(tiles.owner, weights=seconds, minlength=tiles.workers)
        place = np.array(tiles.place)
        return max((side_by_side(loads[place == node], slower) for node in {*tiles.place}), default=0.0)
    return _Rounds(tiles, network).next(slower * seconds)


def side_by_side(loads: Seconds, slower: float) -> float:
    """The time until all workers of a node are done that share what they run on. By itself each takes `loads[w]`
    seconds; while all run, all are so many times as slow, and the less the fewer run: one that is left alone is not.

    >>> side_by_side(np.array([1.0, 3.0]), 2.0), side_by_side(np.array([2.0, 2.0]), 2.0)
    (4.0, 4.0)
    """
    steps = np.diff(np.sort(loads), prepend=0.0)
    others = np.arange(loads.size - 1, -1, -1)
    return float((steps * (1.0 + (slower - 1.0) * others / max(1, loads.size - 1))).sum())


def slowdown(loads: Seconds, seconds: Seconds) -> float:
    """How many times as slow the workers of a node are while all run, if rounds in which they take `loads` by
    themselves, float64 (rounds, workers), take these `seconds`, float64 (rounds,).

    >>> slowdown(np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([4.0, 4.0]))
    2.0
    """
    quick, slow = (sum(side_by_side(own, factor) for own in loads) for factor in (1.0, 2.0))
    return max(1.0, 1.0 + (float(seconds.sum()) - quick) / (slow - quick)) if slow > quick else 1.0


def time_of_rounds(tiles: TileGraph, runs: RoundTimes, slower: float, network: Network) -> float:
    """The time of all rounds of a loop, whose tiles take so many times as long, `slower`, beside those of all other
    workers. Where rounds overlap, a tile begins as soon as those are done that it waits for in its round and the one
    before; else all workers meet between two rounds."""
    if not runs.overlap:
        return runs.over_all([makespan(tiles, each, slower, network) for each in runs.seconds], runs.rounds)
    simulated, seconds = _rounds(tiles, network), slower * runs.seconds
    if runs.rounds * tiles.owner.size <= MOST_TILES:
        nearest = np.abs(runs.places(runs.rounds)[:, None] - np.arange(runs.rounds)).argmin(axis=0)
        return max((simulated.next(seconds[k]) for k in nearest), default=0.0)
    ends = [simulated.next(seconds[0]) for _ in range(WINDOW)]
    later = [_each_further(tiles, each, network) for each in seconds]
    return ends[0] + runs.over_all(later, runs.rounds - 1)


def _each_further(tiles: TileGraph, seconds: Seconds, network: Network) -> float:
    """How much later each of many rounds that overlap ends than the one before it, where all take as long."""
    rounds, half = _rounds(tiles, network), WINDOW // 2
    ends = [rounds.next(seconds) for _ in range(WINDOW)]
    return (ends[-1] - ends[half - 1]) / (WINDOW - half)


class _Rounds:
    """Rounds of a loop, one after the other: when workers and the ways out of nodes are free, and when tiles of the
    round before were done."""

    def __init__(self, tiles: TileGraph, network: Network) -> None:
        self.tiles, self.network = tiles, network
        self.free = [0.0] * tiles.workers
        self.link = [0.0] * (max(tiles.place, default=0) + 1)
        self.before: list[float] = []
        self.came_before: dict[tuple[int, int], float] = {}

    def next(self, seconds: Seconds) -> float:
        """Go through a round, and say when all is done."""
        tiles, free, place = self.tiles, self.free, self.tiles.place
        offsets, waits, lags = (part.tolist() for part in tiles.waits)
        owner, taken = tiles.owner.tolist(), seconds.tolist()
        done, came = [0.0] * len(owner), dict[tuple[int, int], float]()
        for tile in tiles.serial.tolist():
            worker = owner[tile]
            node, start = place[worker], free[worker]
            for at in range(offsets[tile], offsets[tile + 1]):
                other = waits[at]
                ends, arrived = (done, came) if not lags[at] else (self.before, self.came_before)
                if ends:
                    start = max(start, self._there(ends[other], arrived, other, place[owner[other]], node))
            free[worker] = done[tile] = start + taken[tile]
            for target, size in tiles.sends.get(tile, ()):
                free[worker] += self.network.sending
                self.link[node] = max(self.link[node], free[worker]) + size / self.network.bandwidth
                came[tile, target] = self.link[node] + self.network.latency
        self.before, self.came_before = done, came
        return max([*free, *came.values()], default=0.0)

    def _there(self, end: float, came: Mapping[tuple[int, int], float], tile: int, source: int, node: int) -> float:
        """When a worker on a node knows that a tile is done, and has what it sends."""
        return end if source == node else came.get((tile, node), end + self.network.latency)


class _TakenRounds:
    """Rounds of a loop whose workers take tiles: a free one takes the first that waits for nothing any more, and
    goes on to the next round once none of this one is left."""

    def __init__(self, tiles: TileGraph) -> None:
        self.tiles = tiles
        self.free = [0.0] * tiles.workers
        self.before: list[float] = []
        offsets, waits, lags = tiles.waits
        waiting = np.repeat(np.arange(tiles.owner.size), np.diff(offsets[: tiles.owner.size + 1]))
        self.rank = np.empty(tiles.serial.size, np.int64)
        self.rank[tiles.serial] = np.arange(tiles.serial.size)
        self.after = _pairs(waits[lags == 0], waiting[lags == 0])
        self.missing = np.bincount(waiting[lags == 0], minlength=tiles.owner.size)
        self.earlier = _pairs(waiting[lags > 0], waits[lags > 0])

    def next(self, seconds: Seconds) -> float:
        """Go through a round, and say when all is done."""
        missing, taken = self.missing.tolist(), seconds.tolist()
        may_begin = [max((self.before[t] for t in self.earlier.get(tile, ()) if self.before), default=0.0)
                     for tile in range(len(taken))]  # fmt: skip
        later = [(may_begin[tile], tile) for tile, count in enumerate(missing) if not count]
        ready, done = list[tuple[int, int]](), [0.0] * len(taken)
        heapify(later)
        heapify(self.free)
        for _ in range(len(taken)):
            now = max(self.free[0], 0.0 if ready else later[0][0])
            while later and later[0][0] <= now:
                _, tile = heappop(later)
                heappush(ready, (int(self.rank[tile]), tile))
            _, tile = heappop(ready)
            done[tile] = now + taken[tile]
            heapreplace(self.free, done[tile])
            for other in self.after.get(tile, ()):
                missing[other] -= 1
                may_begin[other] = max(may_begin[other], done[tile])
                if not missing[other]:
                    heappush(later, (may_begin[other], other))
        self.before = done
        return max(self.free, default=0.0)


def _pairs(keys: Ints, values: Ints) -> dict[int, list[int]]:
    """The values of each key."""
    found: dict[int, list[int]] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        found.setdefault(key, []).append(value)
    return found


def _rounds(tiles: TileGraph, network: Network) -> _Rounds | _TakenRounds:
    """Rounds as they are gone through."""
    return _TakenRounds(tiles) if tiles.takes_tiles else _Rounds(tiles, network)
