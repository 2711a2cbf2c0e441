"""How workers share the tiles of inspected and dynamic loops: each takes those that were dealt to it, and what others
have not begun where it would have to wait long.

Tiles need others that come before them in a serial order only, which every worker knows. So the first tile that nobody
has begun can run as soon as those that run now are done, whoever runs them: on a busy machine, where a worker may have
no core for a while, the others go on. (A worker that waited for tiles of one without a core took 90 times as long as
one worker alone, over many short tiles.)

Where a worker's tiles are given with how many others must be begun before them, it takes those of others first. So go
loops whose blocks move from worker to worker step by step: else, where one is slow, the others run ahead of it through
their own, and have to wait at the end for what comes after its tile. (Simulated for the epochs of an SGD in 8 × 8
tiles, a worker being stopped half of the time, 2 ms at once: 1.9 % of the time is lost so, and 0.4 % by steps.)

A tile has a line of flags. Its first element says how many rounds of it are done, its second how many are begun.
"""

from __future__ import annotations

from typing import Any

from orion.kernel.calling import FLAG_STRIDE
from orion.kernel.support.intrinsics import compare_exchange, load_acquire, must_leave, rested, support_function

PATIENCE, IMPATIENCE = 1000, 20
"""How often a worker looks whether its next tile may run before it takes one of another worker, and how often after it
has done so, as long as it need not wait."""

LOOKED_AT = 32
"""How many tiles, from the first one on that nobody has begun, a worker looks at to find one that may run. A slow
worker keeps those waiting that need its tile, which are often the first, but not those behind them."""

SPINS_BEFORE_YIELD = 4000
"""How often it looks before it lets other threads have the core."""

NO_MORE, LEFT = -1, -2
"""In place of a tile: all are begun, or the loop is to be left."""


@support_function  # type: ignore[untyped-decorator]
def _may_run(
    tile: int, round: int, wait_offsets: Any, waits: Any, lags: Any, done: Any
) -> bool:  # pragma: no cover - compiled
    for k in range(wait_offsets[tile], wait_offsets[tile + 1]):
        if load_acquire(done, waits[k] * FLAG_STRIDE) < round + 1 - lags[k]:
            return False
    return True


@support_function  # type: ignore[untyped-decorator]
def _past_begun(tiles: Any, place: int, end: int, round: int, done: Any) -> int:  # pragma: no cover - compiled
    """The first place from `place` on, before `end`, of a tile that nobody has begun."""
    while place < end and load_acquire(done, tiles[place] * FLAG_STRIDE + 1) > round:
        place += 1
    return place


@support_function  # type: ignore[untyped-decorator]
def take(
    tiles: Any, own: int, other: int, patience: int, round: int, wait_offsets: Any, waits: Any, lags: Any, done: Any,
    control: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """The next tile for a worker, which then has begun it, and where it goes on. `tiles` are its own, after these all
    tiles in their serial order, and then for each of its own how many of that order must be begun before it
    (`orion.runtime.parts.tiles_to_take`): `own` counts those of the first that are begun, and the first `other` of the
    second are; it looks past some of these that have to wait. Fewer than all tiles are its own alone: workers of other
    nodes share no flags that it could take theirs by. Waits until there is one that may run."""
    count = wait_offsets.size - 1
    if tiles.size < count:
        count = 0
    dealt = (tiles.size - count) // 2 if count else tiles.size
    spins = 0
    while True:
        if must_leave(control):
            return LEFT, own, other, patience
        is_ahead = False
        while own < dealt:
            tile = tiles[own]
            if load_acquire(done, tile * FLAG_STRIDE + 1) > round:
                own += 1
                continue
            first = tiles[dealt + count + own] if count else 0
            other = _past_begun(tiles, dealt + other, dealt + first, round, done) - dealt
            is_ahead = other < first
            if is_ahead:
                break
            if _may_run(tile, round, wait_offsets, waits, lags, done):
                own += 1
                if compare_exchange(done, tile * FLAG_STRIDE + 1, round, round + 1):
                    return tile, own, other, PATIENCE if spins else patience
            else:
                break
        if own == dealt or is_ahead or spins >= patience:
            other = _past_begun(tiles, dealt + other, dealt + count, round, done) - dealt
            if other == count and own == dealt:
                return NO_MORE, own, other, patience
            for place in range(other, min(other + LOOKED_AT, count)):
                tile = tiles[dealt + place]
                if load_acquire(done, tile * FLAG_STRIDE + 1) > round:
                    continue
                is_able = _may_run(tile, round, wait_offsets, waits, lags, done)
                if is_able and compare_exchange(done, tile * FLAG_STRIDE + 1, round, round + 1):
                    return tile, own, other, IMPATIENCE
        spins = rested(spins, SPINS_BEFORE_YIELD)
