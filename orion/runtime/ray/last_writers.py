"""The last writer of each cell, and who lacks what it wrote: tiles gone through in a serial order.

The tiles of one step are gone through together, as they see what tiles of earlier steps have written: all that they
touch as arrays of cells (`orion.runtime.ray.cells`), with the tile of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.runtime.ray.cells import Cells, ramps
from orion.runtime.ray.regions import Mask, Section
from orion.runtime.waits import Waits
from orion.schedule.distinct import distinct
from orion.schedule.footprints import Footprint
from orion.schedule.schedule import Ints, Schedule

MOST_TOGETHER = 1 << 23
"""Tiles are gone through in groups of which each pair of a tile and a cell has a number below this, or one by one."""


@dataclass(frozen=True, slots=True)
class Send:
    """What the worker of a tile sends to a node when the tile is done."""

    node: str
    regions: tuple[Section, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """How a loop uses the cells of an array: bool (nodes, *cells) and int16 (*cells).

    `first[n]` are those that node n must have as they are when the loop begins. `writer` is the worker that writes a
    cell last, -1 for one that is not written, and `after[n]` the written ones that node n has after the loop.
    """

    first: Mask
    writer: NDArray[np.int16]
    after: Mask

    @property
    def written(self) -> Mask:
        """The cells that are written."""
        return np.asarray(self.writer >= 0)


class ApartError(Exception):
    """A loop cannot be shared out among nodes, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """Which tiles touch which cells, in the order of tiles, each pair once; and whether they may write them."""

    tiles: Ints
    cells: Ints
    written: Mask


def touched(prints: Sequence[Footprint], cells: Cells, tiles: Ints) -> Touched:
    """What some tiles touch of an array, by its footprints."""
    count = cells.count
    keys = [np.zeros(0, np.int64)]
    seen: set[tuple[bool, bytes]] = set()
    for one in prints:
        which, rows = ramps(np.searchsorted(one.tile, tiles), np.searchsorted(one.tile, tiles, "right"))
        low, high = one.low[rows], one.high[rows]
        key = one.is_write, which.tobytes() + low.tobytes() + high.tobytes()
        if key in seen:
            continue
        seen.add(key)
        box, cell = cells.inside(low, high)
        keys.append(2 * (which[box] * count + cell) + (not one.is_write))  # what is written comes first of its kind
    ordered = np.sort(np.concatenate(keys))
    ordered = ordered[np.append(True, ordered[1:] >> 1 != ordered[:-1] >> 1)[: len(ordered)]]
    tile, cell = np.divmod(ordered >> 1, max(1, count))
    return Touched(tiles[tile], cell, ordered % 2 == 0)


class _Array:
    """What is known of the cells of an array while tiles are gone through, by their numbers. Times are numbers of
    tiles, counted on from round to round."""

    def __init__(self, cells: Cells, nodes: int) -> None:
        count = cells.count
        self.cells = cells
        self.last = np.full(count, -1, np.int64)
        """When a cell was written last; -1 for one that was not."""
        self.holds = np.zeros((count, nodes), np.bool_)
        """The nodes that have it as it is."""
        self.first = np.zeros((count, nodes), np.bool_)
        """The nodes that must have had it as it was at the beginning."""
        self.taker = np.full((count, nodes), -1, np.int64)
        """For which tile it was sent to a node since it was written last; -1 where it was not."""
        self.sent: list[Ints] = []
        """(tile that wrote it, node, cell) of what is sent."""


class LastWriters:
    """Goes through the tiles of a loop; worker w is on node `place[w]`."""

    def __init__(self, schedule: Schedule, names: Sequence[str], place: Sequence[int], cells: Mapping[str, Cells]):
        self._schedule = schedule
        self._names = names
        self._node = np.array(place, np.int64)[schedule.owner]
        self._arrays = {array: _Array(own, len(names)) for array, own in cells.items()}
        waiting = np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))
        self._waits = [np.stack([waiting, schedule.waits, schedule.lags], axis=1)]

    def go(self, prints: Sequence[Footprint], rounds: int) -> None:
        """Go through all tiles, in each round. ApartError where tiles of one step may write the same cells."""
        schedule, (waits,) = self._schedule, self._waits
        tile, before, lag = waits.T
        if (schedule.step[before] >= schedule.step[tile])[lag == 0].any():
            raise ApartError("tiles wait for each other in another order than that of their steps")
        ranked = schedule.serial_tiles()
        steps = np.split(ranked, np.flatnonzero(np.diff(schedule.step[ranked])) + 1)
        own = {name: [one for one in prints if one.array == name] for name in self._arrays}
        for number in range(rounds):
            for tiles in steps:
                for name, array in self._arrays.items():
                    together = max(1, MOST_TOGETHER // max(1, array.cells.count))
                    groups = [tiles[start : start + together] for start in range(0, len(tiles), together)]
                    found = [touched(own[name], array.cells, group) for group in groups]
                    for one in found:
                        self._touch(array, number, one)
                    for one in found:
                        self._write(array, number, one)

    def _touch(self, array: _Array, number: int, found: Touched) -> None:
        """Tiles touch cells of an array: they come after those that wrote them last, and have them sent."""
        schedule, count = self._schedule, len(self._names)
        node, last = self._node[found.tiles], array.last[found.cells]
        place = found.cells * count + node
        array.first.reshape(-1)[place[last < 0]] = True
        others = (last >= 0) & (schedule.owner[last % schedule.tiles] != schedule.owner[found.tiles])
        self._wait(number, found.tiles[others], last[others])
        missing = others & ~array.holds.reshape(-1)[place]
        sent, where = np.unique(place[missing], return_index=True)  # for the first tile of several of a node
        array.taker.reshape(-1)[sent] = (number * schedule.tiles + found.tiles[missing])[where]
        before = last[missing][where] % schedule.tiles
        array.sent.append(np.stack([before, sent % count, sent // count], axis=1))
        array.holds.reshape(-1)[place] = True

    def _write(self, array: _Array, number: int, found: Touched) -> None:
        """Tiles may write cells of an array. ApartError where one of another worker may too, in the same step."""
        schedule = self._schedule
        tiles, cells = found.tiles[found.written], found.cells[found.written]
        if not cells.size:
            return
        before, now = array.last[cells], number * schedule.tiles + tiles
        array.last[cells] = now
        is_beside = (before >= number * schedule.tiles) & (
            schedule.step[before % schedule.tiles] == schedule.step[tiles]
        )
        owners = schedule.owner[
            np.stack([np.where(is_beside, before % schedule.tiles, tiles), array.last[cells] % schedule.tiles])
        ]
        if (owners != schedule.owner[tiles]).any():
            raise ApartError(
                f"as far as is known, tiles with no order between them write the same elements of `{array.cells.array}`"
            )
        self._follow_takers(array, number, tiles, cells)
        array.taker[cells] = -1
        array.holds[cells] = False
        array.holds[cells, self._node[tiles]] = True

    def _follow_takers(self, array: _Array, number: int, tiles: Ints, cells: Ints) -> None:
        """Tiles that may write cells come after those for which they were sent to some node, so that what they send
        there comes after that. ApartError where one of them is of the same step."""
        schedule = self._schedule
        taker = array.taker[cells]
        entry, node = np.nonzero(taker >= 0)
        tile, value = tiles[entry], taker[entry, node]
        before = value % schedule.tiles
        others = schedule.owner[before] != schedule.owner[tile]
        is_beside = (value >= number * schedule.tiles) & (schedule.step[before] == schedule.step[tile])
        if (others & is_beside).any():
            raise ApartError("as far as is known, tiles with no order between them touch the same elements")
        self._wait(number, tile[others], value[others])

    def _wait(self, number: int, tiles: Ints, before: Ints) -> None:
        """Tiles wait for others, by their times."""
        count = self._schedule.tiles
        keys = distinct(before * count + tiles)
        before, tiles = np.divmod(keys, count)
        self._waits.append(np.stack([tiles, before % count, number - before // count], axis=1))

    # ------------------------------------------------------------ what was found

    def waits(self) -> Waits:
        """What tiles wait for, as in a schedule."""
        waiting, before, lags = np.unique(np.concatenate(self._waits), axis=0).astype(np.int64).T
        offsets = np.searchsorted(waiting, np.arange(self._schedule.tiles + 1)).astype(np.int64)
        return offsets, before.copy(), lags.copy()

    def sends(self) -> dict[int, tuple[Send, ...]]:
        """Flags for all tiles that are waited for on another node, with the cells that go there."""
        sent: dict[tuple[int, int], tuple[Section, ...]] = {}
        offsets, before, _ = self.waits()
        node = np.repeat(self._node, np.diff(offsets))
        for key in zip(*(part[node != self._node[before]].tolist() for part in (before, node)), strict=True):
            sent[key] = ()
        for _, array in sorted(self._arrays.items()):
            for key, cells in _grouped(array.sent):
                sent[key] = (*sent.get(key, ()), *array.cells.regions_of(cells))
        found: dict[int, tuple[Send, ...]] = {}
        for (tile, to), regions in sorted(sent.items()):
            found[tile] = (*found.get(tile, ()), Send(self._names[to], regions))
        return found

    def usage(self, name: str, overlap: bool) -> Usage:
        """The use of an array."""
        array, schedule = self._arrays[name], self._schedule
        written = array.last >= 0
        writer = np.where(written, schedule.owner[array.last % schedule.tiles], -1).astype(np.int16)
        after = array.holds & written[:, None]
        if overlap:  # has been sent for the next round
            after |= array.first & written[:, None]
        shape = array.cells.shape
        first, after = (np.ascontiguousarray(one.T).reshape(-1, *shape) for one in (array.first, after))
        return Usage(first, writer.reshape(shape), after)


def _grouped(sent: Sequence[Ints]) -> Iterator[tuple[tuple[int, int], Ints]]:
    """The cells of each (tile, node), each once."""
    rows = np.concatenate([np.zeros((0, 3), np.int64), *sent])
    if not len(rows):
        return
    rows = np.unique(rows, axis=0)
    starts = np.flatnonzero(np.append(True, (rows[1:, :2] != rows[:-1, :2]).any(axis=1)))
    for part in np.split(rows, starts[1:]):
        yield (int(part[0, 0]), int(part[0, 1])), part[:, 2]
