"""Schedules: every pair of conflicting tiles is ordered, for every strategy, grid and number of workers."""

from dataclasses import replace
from itertools import combinations, product
from time import process_time
from types import SimpleNamespace

import islpy as isl
import numpy as np
import pytest

import orion
from orion.analysis.rules import STRATEGIES, tiling_of
from orion.analysis.strategies.relaxed import RELAXED
from orion.analysis.strategies.tiling import Question
from orion.cost.candidate import Strategy
from orion.plan.deal import Even
from orion.plan.plan import Reordered, Tiled, Written
from orion.schedule.build import build_schedule
from orion.verify.tiles import reachable

NOTHING = SimpleNamespace(body=())
"""Loops without statements."""


EVEN = Even(follows_times=False)


def plan(space, time, ordered, in_turn=False, dynamic=False, deal=EVEN):
    form = Reordered(None, None, "", is_time_tiled=False) if in_turn else Written()
    strategy = (Strategy.ONE_D, Strategy.TWO_D, Strategy.ND)[len(time)]
    return SimpleNamespace(
        form=form,
        tiles=Tiled(space, time),
        strategy=strategy,
        ordered=ordered,
        nest=NOTHING,
        is_dynamic=dynamic,
        deal=deal,
    )


def bounds(grid):
    return [np.arange(blocks + 1) for blocks in grid]


def conflict(a, b, space, time, ordered):
    """Whether tiles with block numbers a and b may hold conflicting iterations."""
    dims = (space, *time)
    if ordered and time:
        return all(b[d] >= a[d] for d in dims) or all(a[d] >= b[d] for d in dims)
    return any(a[d] == b[d] for d in dims)


CASES = [
    (grid, space, time, ordered)
    for grid, space, time, ordered in [
        ((8,), 0, (), False), ((5,), 0, (), True),
        ((8, 8), 0, (), False), ((8, 8), 1, (), False),
        ((8, 8), 0, (1,), False), ((8, 8), 1, (0,), False), ((3, 5), 0, (1,), False), ((5, 3), 0, (1,), False),
        ((8, 8), 0, (1,), True), ((3, 5), 1, (0,), True), ((1, 4), 0, (1,), True),
        ((4, 4, 4), 0, (1, 2), False), ((4, 3, 5), 1, (0, 2), False), ((2, 3, 1), 2, (0, 1), False),
        ((4, 4, 4), 0, (1,), False),
    ]
]  # fmt: skip


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize(("grid", "space", "time", "ordered"), CASES)
def test_conflicting_tiles_are_ordered_within_a_round_and_across_rounds(grid, space, time, ordered, workers, in_turn):
    workers = min(workers, grid[space])
    schedule = build_schedule(plan(space, time, ordered, in_turn), bounds(grid), workers)
    blocks = np.indices(grid).reshape(len(grid), -1).T
    after = reachable(schedule)
    assert not after.diagonal().any()
    twice = two_rounds(schedule)
    count = schedule.tiles
    for a in range(count):
        for b in range(count):
            if not conflict(blocks[a], blocks[b], space, time, ordered):
                continue
            if a != b:
                assert after[a, b] or after[b, a]
            if ordered and a != b and all(blocks[b] >= blocks[a]):
                assert after[a, b]
            assert twice[a, count + b], f"tile {b} of the next round may start before tile {a}"


def closure(edges):
    """What is reached in any number of steps, by squaring."""
    while True:
        further = edges | ((edges.astype(np.float32) @ edges.astype(np.float32)) > 0)
        if (further == edges).all():
            return edges
        edges = further


@pytest.mark.parametrize("workers", [1, 3, 4])
@pytest.mark.parametrize(("grid", "space", "time", "ordered"), CASES)
def test_what_is_reachable_is_the_closure_of_orders_and_waits(grid, space, time, ordered, workers):
    schedule = build_schedule(plan(space, time, ordered), bounds(grid), min(workers, grid[space]))
    edges = np.zeros((schedule.tiles, schedule.tiles), bool)
    for order in schedule.order:
        edges[order[:-1], order[1:]] = True
    waiting = np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))
    now = schedule.lags == 0
    edges[schedule.waits[now], waiting[now]] = True
    np.testing.assert_array_equal(reachable(schedule), closure(edges))


def test_tiles_that_wait_for_each_other_are_reached_from_themselves():
    schedule = build_schedule(plan(0, (1,), True), bounds((4, 4)), 2)
    after = reachable(replace(schedule, lags=np.zeros_like(schedule.lags)))  # the first tile waits for the last one
    assert after.diagonal().any()
    np.testing.assert_array_equal(after, closure(after))


def swept(a, n):
    for _ in range(n):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = a[i - 1, j] + 2 * a[i + 1, j] - a[i, j - 1] + a[i, j + 1]


def test_a_schedule_for_many_workers_is_proved_in_seconds():
    start = process_time()
    found = orion.parallel_for(swept)._preparations.plain.prepare(
        {"a": np.ones((400, 400), np.int64), "n": 4}, 64, True
    )
    assert found.program.workers == 64
    assert found.program.loops[0].schedule.tiles == 64 * 64
    assert process_time() - start < 20  # it was minutes


def two_rounds(schedule):
    """Reachability over two rounds of the loop without a barrier between them."""
    count = schedule.tiles
    edges = np.zeros((2 * count, 2 * count), bool)
    for order in schedule.order:
        line = np.concatenate([order, order + count])
        edges[line[:-1], line[1:]] = True
    waiting = np.repeat(np.arange(count), np.diff(schedule.wait_offsets))
    for tile, before, lag in zip(waiting, schedule.waits, schedule.lags, strict=True):
        edges[before, tile + count * lag] = True
        if lag == 0:
            edges[before + count, tile + count] = True
    return closure(edges)


def test_tiles_of_one_step_of_a_latin_square_share_no_block():
    schedule = build_schedule(plan(0, (1,), False), bounds((8, 8)), 4)
    rows, columns = np.indices((8, 8)).reshape(2, -1)
    for step in range(8):
        here = schedule.step == step
        assert len(set(rows[here])) == len(set(columns[here])) == 8


def test_the_serial_order_does_not_depend_on_the_workers():
    orders = [build_schedule(plan(0, (1,), False), bounds((8, 8)), w).serial_tiles() for w in (1, 2, 3, 4)]
    assert all(np.array_equal(orders[0], order) for order in orders)


def test_a_dropped_wait_is_noticed():
    schedule = build_schedule(plan(0, (1,), False), bounds((4, 4)), 2)
    now = np.flatnonzero(schedule.lags == 0)[0]
    offsets = schedule.wait_offsets - (schedule.wait_offsets > now)
    fewer = {"waits": np.delete(schedule.waits, now), "lags": np.delete(schedule.lags, now)}
    broken = replace(schedule, wait_offsets=offsets, **fewer)
    assert reachable(broken).sum() < reachable(schedule).sum()


# ---------------------------------------------------------------- every strategy keeps what it takes


def difference_sets(dims, ordered):
    """Small sets of differences: of loops in their order, those whose first component that is not 0 is positive."""
    vectors = [v for v in product((-1, 0, 1), repeat=dims) if any(v)]
    if ordered:
        vectors = [v for v in vectors if next(filter(None, v)) > 0]
    yield from combinations(vectors, 1)
    if dims == 2:
        yield from combinations(vectors, 2)
    axes = [v for v in vectors if sum(map(abs, v)) == 1]
    yield from (axes[:count] for count in range(2, len(axes) + 1))
    if not ordered and dims == 3:
        yield [(0, 1, 1), (1, 0, 1), (1, 1, 0)]


def neighbours(block, difference, grid):
    """The blocks of iterations that are a small difference away from those of a block."""
    for crossed in product((0, 1), repeat=len(grid)):
        other = tuple(b + d * c for b, d, c in zip(block, difference, crossed, strict=True))
        if all(0 <= b < size for b, size in zip(other, grid, strict=True)):
            yield other


def kept(schedule, grid, differences, ordered):
    """Whether tiles that hold iterations so far apart are in order, in one round and across rounds."""
    after, twice = reachable(schedule), two_rounds(schedule)
    for tile, block in enumerate(np.ndindex(*grid)):
        for difference in differences:
            for other in neighbours(block, difference, grid):
                later = np.ravel_multi_index(other, grid)
                if tile != later and not (after[tile, later] or (not ordered and after[later, tile])):
                    return False
                if not (twice[tile, schedule.tiles + later] and twice[later, schedule.tiles + tile]):
                    return False
    return True


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: "-".join(one.names))
def test_a_strategy_keeps_every_difference_that_it_takes(strategy):
    tried = set()
    for ordered, dims in product((True, False), (1, 2, 3)):
        grid = (3, 4, 2)[:dims]
        for differences in [[], *difference_sets(dims, ordered)]:
            deltas = tuple(isl.Set(f"{{ {list(d)} }}") for d in differences)
            for one in strategy.legal(Question(deltas, dims, tuple(range(dims)), ordered, strategy is RELAXED)):
                assert tiling_of(one.strategy, ordered) is strategy
                tiles = Tiled(one.space, one.time)
                known = {"form": Written(), "tiles": tiles, "strategy": one.strategy, "ordered": ordered}
                loop = SimpleNamespace(**known, nest=NOTHING, is_dynamic=False, deal=EVEN)
                cut = tuple(size if d in (one.space, *one.time) else 1 for d, size in enumerate(grid))
                schedule = build_schedule(loop, bounds(cut), min(3, cut[one.space]))
                assert kept(schedule, cut, differences, ordered), (one, differences)
                tried.add(one.strategy)
    # `serial` is what is left, `wavefront` what the planner calls a 2d of another order, and the tiles of `inspected`
    # are those that an inspector has found (tests/test_inspector.py)
    assert tried == {name for name in strategy.names if name not in ("serial", "wavefront", "inspected")}
