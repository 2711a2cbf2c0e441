"""From the accesses of the iterations of a loop to tiles: the executor's half of an inspection.

Ways to cut a loop into tiles, of which that with the least predicted time is taken:

    components   iterations that touch nothing in common, even by way of others, in as many tiles as there are workers
    pieces       parts of the loop as it is written, cut where a chain ends, each run when those that it needs are done
    levels       iterations that need none of each other, level by level (Anderson, Saad: *Solving sparse triangular
                 linear systems on parallel computers*, Int. J. High Speed Computing 1(1), 1989)
    colours      of a loop in any order: iterations of one colour are in conflict with none of each other
    blocks       of a loop in any order: the elements in blocks, a tile for each set of blocks that iterations touch;
                 those that write no block which another touches run at the same time

Pieces keep the order in which the loop goes through memory, which levels do not: on a grid of 1000 × 1000 points a
sweep in the order of levels took 4.4 times as long on one worker as the loop as written, in pieces 1.15 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.dependence.inspection import Inspection, Order
from orion.kernel.build.cache import in_words, tell_not_kept
from orion.kernel.build.machine_code import give_up_cache
from orion.kernel.inspector.levels import colours, components, far_accesses, levels, pieces
from orion.kernel.inspector.tiles import dealt_out, needs

Ints = NDArray[np.int64]

ACCESS_NS, CHAIN_NS = 0.7, 1.5
"""What an access takes beside the operations of an iteration, and what an iteration waits for the one before it that it
needs: 1.0 ns were measured of an iteration that counts, 7.7 ns of one of a triangular solve with 2.9 accesses."""

LISTED_NS, NEAR, NEAR_NS, STRIDE, STRIDE_NS, FAR_NS = 2.0, 8, 1.5, 64, 6.0, 22.0
"""What it takes more to get the number of an iteration from a list; where that is not the next one but one of the
`NEAR` after it, or of the `STRIDE`; and where it is another, which finds nothing of its own in the first-level cache:
26 ns were measured of the same solve, in levels."""

TILE_NS, WAIT_NS, SHARED = 400.0, 400.0, 1.25
"""What a tile costs beside its iterations, how long it takes until another worker knows that it is done, and how much
longer iterations take where several workers share the memory: 8.2 ms of a solve on one worker were 5.8 on two in 5,000
tiles, 9.6 were 8.8 in 13,000, and the same loop without dependences took 5.8 and 4.4."""

PIECES = 4096
LEAST_PIECE, LONGEST_PIECE, LONGER = 64, 1024, 4
LEAST_AVERAGE = 8
"""Pieces, or levels, that have fewer iterations than this on average are not looked at."""

ENOUGH = 1.5
"""Where tiles are predicted to take at most so many times what the work is, shared out evenly, no others are tried."""

BLOCKS = 4
MOST_BLOCKS, MOST_SETS = 31, 1024
"""How many blocks of elements there are for each worker, and how many of them and sets of them at most."""


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Iterations, counted from 0, in tiles."""

    kind: Order
    order: Ints
    offsets: Ints


@dataclass(frozen=True, slots=True)
class Costs:
    """What is known of a loop before it is inspected: `iteration_ns` are predicted of the operations of an iteration,
    `far_ns` of an access to an element that is not near those before, `check_ns` of finding out that nothing has
    changed, shared out among the `rounds` that a call makes of the loop. `first` is the coordinate of the first
    iteration, `elements` the number of elements. `in_pieces`: tiles are to be pieces."""

    elements: int
    first: int
    ordered: bool
    in_pieces: bool
    iteration_ns: float
    far_ns: float
    check_ns: float
    rounds: float


@dataclass(frozen=True, slots=True)
class Listed:
    """What the inspector of a loop has listed, on which `spent_ns` were spent, and what is known of the loop."""

    ends: Ints
    places: Ints
    spent_ns: float
    costs: Costs


def inspected(found: Listed, workers: int) -> Inspection:
    """The tiles of a loop for so many workers."""
    compile_all()
    begin = perf_counter_ns()
    level = levels(found.ends, found.places, found.costs.elements)
    follows = np.diff(level, prepend=level[:1]) == 1  # most likely it needs the one before it
    cost = _costs(found, follows)
    best: tuple[float, _Tiles, tuple[Any, ...]] | None = None
    as_written = _Tiles(Order.PIECES, np.arange(found.ends.size), np.array([0, found.ends.size]))
    ways = (
        tiles for tiles in _ways(found, level, cost, workers) if tiles.kind is Order.PIECES or not found.costs.in_pieces
    )
    for tiles in chain(ways, [as_written]):
        if tiles is as_written and best is not None:
            break
        need_offsets, needed = needs(tiles.order, tiles.offsets, found.ends, found.places, found.costs.elements)
        owner, turn, makespan = dealt_out(need_offsets, needed, _tile_costs(tiles, cost, follows), workers, WAIT_NS)
        if best is None or makespan < best[0]:
            best = makespan, tiles, (need_offsets, needed, owner, turn)
        if makespan < ENOUGH * cost.sum() / workers:
            break
    assert best is not None
    makespan, tiles, (need_offsets, needed, owner, turn) = best
    return Inspection(
        kind=tiles.kind,
        workers=workers,
        order=tiles.order + found.costs.first,
        offsets=tiles.offsets,
        need_offsets=need_offsets,
        needs=needed,
        owner=owner,
        turn=turn,
        depth=int(level.max(initial=0)),
        serial_ns=float(cost.sum()),
        tiles_ns=makespan + found.costs.check_ns,
        rounds=found.costs.rounds,
        inspection_ns=found.spent_ns + perf_counter_ns() - begin,
        accesses=(_narrow(found.ends), _narrow(found.places)),
    )


def _narrow(values: Ints) -> NDArray[Any]:
    """Integers in half the memory, where they fit."""
    return values.astype(np.int32) if values.max(initial=0) < 2**31 else values


def _costs(found: Listed, follows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The predicted time of each iteration in the order of the source."""
    counts = np.diff(found.ends, prepend=0)
    costs: NDArray[np.float64] = found.costs.iteration_ns + ACCESS_NS * counts + CHAIN_NS * follows
    costs += found.costs.far_ns * far_accesses(found.ends, found.places, 2 * NEAR)
    return costs


@cache
def compile_all() -> None:
    """Compile what looks at accesses, which is not to count as time that this takes. Where no file can be written the
    next process compiles it anew."""
    ends, places = np.arange(1, 3), np.array([1, 0])
    level = _compiled(levels, ends, places, 1)
    _compiled(components, ends, places, 1)
    _compiled(colours, ends, places, 1)
    _compiled(far_accesses, ends, places, 1)
    offsets, needed = _compiled(needs, np.arange(2), _compiled(pieces, level, 1), ends, places, 1)
    _compiled(dealt_out, offsets, needed, np.ones(2), 2, WAIT_NS)


def _compiled(function: Any, *arguments: Any) -> Any:
    """What a function returns, which is compiled for that."""
    try:
        return function(*arguments)
    except OSError as error:
        tell_not_kept(in_words(error))
        give_up_cache([function])
        return function(*arguments)


def _tile_costs(tiles: _Tiles, cost: NDArray[np.float64], follows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The predicted time of each tile, in nanoseconds. `follows` are the iterations that wait for the one before them
    anyway, while the next ones are got from the list."""
    gap = np.diff(tiles.order, prepend=tiles.order[0] - 1)
    jumps = np.where((gap > STRIDE) | (gap < 1), FAR_NS, np.where(gap > NEAR, STRIDE_NS, np.where(gap > 1, NEAR_NS, 0)))
    each = cost[tiles.order] + np.where(follows[tiles.order], 0.0, LISTED_NS) + jumps
    found: NDArray[np.float64] = TILE_NS + SHARED * np.add.reduceat(each, tiles.offsets[:-1])
    return found


def _ways(found: Listed, level: Ints, cost: NDArray[np.float64], workers: int) -> Iterator[_Tiles]:
    """The ways to cut a loop into tiles, each of which keeps the order of conflicting iterations in every tile and from
    each tile to those with greater numbers; of a loop in any order, that they are in some order."""
    count, depth = found.ends.size, int(level.max(initial=0))
    apart = None
    if depth > 1:
        apart = _by_components(components(found.ends, found.places, found.costs.elements), cost, workers)
    if apart is not None:
        yield apart
    for starts in _starts_of_pieces(level, depth, workers):
        if count >= LEAST_AVERAGE * (starts.size - 1) or depth == 1:
            yield _Tiles(Order.PIECES, np.arange(count), starts)
    if not found.costs.ordered and depth > 1 and apart is None:
        yield from _by_blocks(found, cost, workers)
        colour = colours(found.ends, found.places, found.costs.elements)
        if colour is not None and colour.max() < depth:
            yield _by_levels(Order.COLOURS, colour, workers)
    if depth > 1 and apart is None and count >= LEAST_AVERAGE * depth:
        yield _by_levels(Order.LEVELS, level, workers)


def _starts_of_pieces(level: Ints, depth: int, workers: int) -> Iterator[Ints]:
    """Where pieces begin: short ones, so that few must wait, and then longer ones, of which each worker finds less
    often that it must."""
    longest = min(LONGEST_PIECE, max(LEAST_PIECE, level.size // PIECES))
    if depth == 1:
        yield pieces(level, max(longest, -(-level.size // (4 * workers))))
        return
    short = pieces(level, longest)
    yield short
    long = pieces(level, LONGER * longest)
    if 2 * long.size < short.size:
        yield long


def _by_components(component: Ints, cost: NDArray[np.float64], workers: int) -> _Tiles | None:
    """One tile for each worker, of whole components, in the order of their elements; None where one is too large."""
    weights = np.bincount(component + 1, weights=cost)
    free, weights = weights[0], weights[1:]
    share = cost.sum() / workers
    if weights.size and weights.max() > 1.1 * share:
        return None
    reached = np.cumsum(weights) - weights / 2
    part_of = np.minimum((reached / (weights.sum() / workers or 1.0)).astype(np.int16), workers - 1)
    part = np.empty(component.size, np.int16)
    touches = component >= 0
    part[touches] = part_of[component[touches]]
    if free:
        loose = np.flatnonzero(~touches)
        part[loose] = (np.arange(loose.size) * workers // loose.size).astype(np.int16)
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part, minlength=workers)
    return _Tiles(Order.COMPONENTS, order, np.concatenate(([0], np.cumsum(sizes[sizes > 0]))))


def _by_levels(kind: Order, level: Ints, workers: int) -> _Tiles:
    """Each level, or colour, in as many tiles as there are workers, or fewer where it has few iterations."""
    depth = int(level.max())
    order = np.argsort(level, kind="stable")
    begins = np.searchsorted(level[order], np.arange(1, depth + 2))
    sizes = np.diff(begins)
    parts = np.clip(sizes // LEAST_AVERAGE, 1, workers)
    of_level = np.repeat(np.arange(depth), parts)
    number = np.arange(of_level.size) - np.repeat(np.cumsum(parts) - parts, parts)
    offsets = begins[of_level] + number * sizes[of_level] // parts[of_level]
    return _Tiles(kind, order, np.append(offsets, level.size))


def _by_blocks(found: Listed, cost: NDArray[np.float64], workers: int) -> Iterator[_Tiles]:
    """A tile for each set of blocks that iterations touch, in an order in which workers find tiles without a block in
    common with those that others run; nothing where there are too many sets. Blocks have about as many accesses each.

    As rows and columns of a matrix are cut into strata for factorization by several workers (Gemulla, Nijkamp, Haas,
    Sismanis: *Large-scale matrix factorization with distributed stochastic gradient descent*, KDD 2011).
    """
    blocks = min(MOST_BLOCKS, BLOCKS * workers)
    element, writes = found.places >> 1, (found.places & 1).astype(np.bool_)
    written = np.zeros(found.costs.elements, np.bool_)
    written[element[writes]] = True
    reached = np.cumsum(np.bincount(element, minlength=found.costs.elements))
    block = np.minimum(reached * blocks // max(1, int(reached[-1])), blocks - 1)
    bits = np.where(written, np.int64(1) << block, 0)[element]
    both = _together(found, np.where(writes, bits, 0)) << MOST_BLOCKS | _together(found, bits)
    sets, which = np.unique(both, return_inverse=True)
    if not 2 <= sets.size <= MOST_SETS:
        return
    numbers = _without_common_blocks(sets, np.bincount(which, weights=cost).astype(np.float64), workers)
    tile = numbers[which]
    order = np.argsort(tile.astype(np.int16), kind="stable")
    yield _Tiles(Order.BLOCKS, order, np.concatenate(([0], np.cumsum(np.bincount(tile)))))


def _together(found: Listed, bits: Ints) -> Ints:
    """The bits of all accesses of each iteration together."""
    counts = np.diff(found.ends, prepend=0)
    some = np.flatnonzero(counts)
    masks = np.zeros(counts.size, np.int64)
    if some.size:
        masks[some] = np.bitwise_or.reduceat(bits, (found.ends - counts)[some])
    return masks


def _without_common_blocks(sets: Ints, times: NDArray[np.float64], workers: int) -> Ints:
    """The place of each set in an order in which workers take them: whoever is free first takes, of the sets that write
    no block which those that others are at touch, and touch none which these write, the one that takes longest."""
    waiting = np.argsort(-times, kind="stable")
    runs: list[tuple[float, int]] = []  # until when somebody is at which set
    found = np.empty(sets.size, np.int64)
    now, number = 0.0, 0
    written, touched = sets >> MOST_BLOCKS, sets & ((1 << MOST_BLOCKS) - 1)
    while waiting.size:
        runs = [one for one in runs if one[0] > now]
        busy = np.array([one for _, one in runs], np.int64)
        wrote, reached = (np.bitwise_or.reduce(of_sets[busy], initial=0) for of_sets in (written, touched))
        free = np.flatnonzero((written[waiting] & reached | touched[waiting] & wrote) == 0)
        if free.size and len(runs) < workers:
            one = int(waiting[free[0]])
            waiting = np.delete(waiting, free[0])
            runs.append((now + times[one], one))
            found[one] = number
            number += 1
        else:
            now = min(until for until, _ in runs)
    return found
