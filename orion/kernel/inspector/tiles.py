"""Which tiles of an inspected loop need which, and which worker runs them when."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from orion.kernel.inspector.levels import compiled


@compiled
def needs(order: Any, offsets: Any, ends: Any, places: Any, elements: int) -> Any:  # pragma: no cover - compiled
    """Which tiles each tile needs: those before it that hold an iteration in conflict with one of its own, as far as
    that is not said by another one that it needs for the same element. Tile t has the iterations
    `order[offsets[t] : offsets[t + 1]]`. Returned are offsets, (tiles + 1,), and the tiles, int64.

    Of each element the last tile that wrote it is kept, and those that have read it since.
    """
    tiles = offsets.size - 1
    wrote = np.full(elements, -1, np.int32)
    readers = np.full(elements, -1, np.int64)  # the first link of a chain of readers
    link, reader = np.empty(places.size, np.int64), np.empty(places.size, np.int32)
    links = 0
    seen = np.full(tiles, -1, np.int32)
    found = np.empty(max(16, 4 * tiles), np.int64)
    begin = np.zeros(tiles + 1, np.int64)
    count = 0
    for tile in range(tiles):
        for at in range(offsets[tile], offsets[tile + 1]):
            i = order[at]
            for k in range(ends[i - 1] if i else 0, ends[i]):
                element = places[k] >> 1
                other = wrote[element]
                if other >= 0 and other != tile and seen[other] != tile:
                    seen[other] = tile
                    if count == found.size:
                        found = np.concatenate((found, np.empty(found.size, np.int64)))
                    found[count] = other
                    count += 1
                if places[k] & 1:
                    chain = readers[element]
                    while chain >= 0:
                        other = reader[chain]
                        if other != tile and seen[other] != tile:
                            seen[other] = tile
                            if count == found.size:
                                found = np.concatenate((found, np.empty(found.size, np.int64)))
                            found[count] = other
                            count += 1
                        chain = link[chain]
                    readers[element] = -1
                    wrote[element] = tile
                elif readers[element] < 0 or reader[readers[element]] != tile:
                    link[links], reader[links] = readers[element], tile
                    readers[element] = links
                    links += 1
        begin[tile + 1] = count
    return begin, found[:count]


@compiled
def dealt_out(begin: Any, needed: Any, cost: Any, workers: int, wait: float) -> Any:  # pragma: no cover - compiled
    """A worker for each tile, its turn among the tiles of that worker, and when all are done, in nanoseconds: the
    worker that is free first takes, of the tiles that are ready, the one after its last one, or else the first (Graham:
    *Bounds on multiprocessing timing anomalies*, SIAM J. Appl. Math. 17(2), 1969).

    A tile waits `wait` nanoseconds longer for what another worker has run.
    """
    tiles = cost.size
    follow_begin, follow = _followers(begin, needed, tiles)
    missing = begin[1:] - begin[:-1]
    owner, turn = np.full(tiles, -1, np.int64), np.zeros(tiles, np.int64)
    done, ready_at = np.zeros(tiles, np.float64), np.zeros(tiles, np.float64)
    free, turns = np.zeros(workers, np.float64), np.zeros(workers, np.int64)
    last = np.full(workers, -2, np.int64)
    later, ready = [(0.0, 0)], [0]  # tiles by when their needs are done, and those of which that is so by now
    later.pop()
    ready.pop()
    for tile in range(tiles):
        if missing[tile] == 0:
            heapq.heappush(ready, tile)
    for _ in range(tiles):
        worker = int(np.argmin(free))
        now = free[worker]
        while ready and owner[ready[0]] >= 0:
            heapq.heappop(ready)
        if not ready:
            now = max(now, later[0][0])
        while later and later[0][0] <= now:
            heapq.heappush(ready, heapq.heappop(later)[1])
        tile = last[worker] + 1
        if tile < 0 or tile >= tiles or owner[tile] >= 0 or missing[tile] > 0 or ready_at[tile] > now:
            tile = heapq.heappop(ready)
            while owner[tile] >= 0:
                tile = heapq.heappop(ready)
        start = now
        for k in range(begin[tile], begin[tile + 1]):
            start = max(start, done[needed[k]] + (wait if owner[needed[k]] != worker else 0.0))
        owner[tile], turn[tile], last[worker] = worker, turns[worker], tile
        turns[worker] += 1
        done[tile] = free[worker] = start + cost[tile]
        for k in range(follow_begin[tile], follow_begin[tile + 1]):
            other = follow[k]
            missing[other] -= 1
            ready_at[other] = max(ready_at[other], done[tile])
            if missing[other] == 0:
                heapq.heappush(later, (ready_at[other], other))
    return owner, turn, free.max()


@compiled
def _followers(begin: Any, needed: Any, tiles: int) -> Any:  # pragma: no cover - compiled
    """Which tiles need each tile, as offsets and tiles."""
    offsets = np.zeros(tiles + 1, np.int64)
    for tile in needed:
        offsets[tile + 1] += 1
    for tile in range(tiles):
        offsets[tile + 1] += offsets[tile]
    found, at = np.empty(needed.size, np.int64), offsets[:-1].copy()
    for tile in range(tiles):
        for k in range(begin[tile], begin[tile + 1]):
            found[at[needed[k]]] = tile
            at[needed[k]] += 1
    return offsets, found
