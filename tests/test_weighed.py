"""Dynamic loops whose work arrays show before they run: tiles of about as much work each, the heavy ones first."""

from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

import orion
from benchmarks.uneven import walks
from orion.cost.contents import bounds_of_work, heaviness
from orion.errors import PlanError
from orion.plan.plan import Weighed
from orion.runtime.contents import PATIENCE
from orion.verify.proved import proved_schedule
from tests.test_dynamic import total_of


def by_bounds(starts, values, out):
    for i in range(out.shape[0]):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total = 0.5 * total + values[p]
        out[i] = total


def by_scalars(starts, values, out):
    for i in range(out.shape[0]):
        first = starts[i]
        last = min(starts[i + 1], values.shape[0])
        total = 0.0
        for p in range(first, last):
            total = 0.5 * total + values[p]
        out[i] = total


def backwards(steps, out):
    for i in range(out.shape[0] - 1, -1, -1):
        x = 0.5
        for _ in range(2 * steps[i]):
            x = 3.7 * x * (1.0 - x)
        out[i] = x


def sometimes(steps, out):
    for i in range(out.shape[0]):
        x = 0.5
        if out[i] >= 0.0:
            for _ in range(1, steps[i] + 1):
                x = 3.7 * x * (1.0 - x)
        out[i] = x


def nested(steps, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            x = 0.5
            for _ in range(steps[i]):
                x = 3.7 * x * (1.0 - x)
            out[i, j] = x


def zipf(count, most=20_000):
    return np.sort(np.minimum(np.random.default_rng(0).zipf(1.5, count), most))


def cases():
    """Functions and their arguments, and the trips of the inner loop in each iteration, by coordinate."""
    steps = zipf(4000)
    starts = np.concatenate([[0], np.cumsum(steps)])
    values, out = np.random.default_rng(1).random(starts[-1]), lambda: np.zeros(steps.size)
    return {
        "counts": (walks, lambda: (steps, out()), steps),
        "bounds": (by_bounds, lambda: (starts, values, out()), steps),
        "scalars": (by_scalars, lambda: (starts, values, out()), steps),
        "backwards": (backwards, lambda: (steps, out()), steps[::-1]),
        "sometimes": (sometimes, lambda: (steps, out()), steps),
        "narrow": (walks, lambda: (steps.astype(np.uint16), out()), steps),
        "nested": (nested, lambda: (steps, np.zeros((steps.size, 3))), steps),
        "dist arrays": (walks, lambda: (orion.array(steps), orion.array(out())), steps),
    }


def dynamic(function):
    return orion.parallel_for(schedule="dynamic")(function)


def result(arguments):
    return np.array(arguments[-1]).tobytes()


@pytest.mark.parametrize("name", cases())
def test_tiles_have_about_as_much_work_each_and_the_heavy_ones_come_first(name):
    function, fresh, trips = cases()[name]
    taking = dynamic(function)
    with orion.session(workers=2):
        plan = taking.plan(*fresh())
    (loop,) = plan.loops
    assert isinstance(loop.tiles, Weighed)
    schedule = plan.schedule()
    bounds = schedule.bounds[0]
    assert np.diff(bounds).min() >= 1
    assert bounds[-1] - bounds[0] == trips.size
    cuts = bounds[:-1] - bounds[0]
    work, longest = np.add.reduceat(trips, cuts), np.maximum.reduceat(trips, cuts)
    assert (work - longest).max() <= 1.5 * trips.sum() / schedule.tiles
    order = schedule.serial_tiles()
    assert work[order[0]] >= work.max() / 2
    heavy = np.flatnonzero(schedule.heavy[order])
    assert heavy.size
    np.testing.assert_array_equal(heavy, np.arange(heavy.size))
    assert (work[order[: heavy.size - 1]] >= work[order[1 : heavy.size]] / 2.2).all()
    plan.check()


@pytest.mark.parametrize("name", cases())
def test_results_have_the_bits_of_the_static_schedule_on_any_number_of_workers(name):
    function, fresh, _ = cases()[name]
    with orion.session("serial"):
        orion.parallel_for(function)(*(given := fresh()))
    expected, grids = result(given), set()
    for workers in (1, 2, 3, 4):
        taking, given, again = dynamic(function), fresh(), fresh()
        with orion.session(workers=workers, force_parallel=True):
            taking(*given)
            plan = taking.last_run.plan
            assert isinstance(plan.loops[0].tiles, Weighed)
            grids.add(plan.schedule().grid)
            taking.replay(taking.last_run, *again)
        assert result(given) == result(again) == expected
    assert len(grids) == 1


def test_the_plan_that_is_shown_is_the_one_that_runs():
    function, fresh, _ = cases()["counts"]
    taking, given = orion.parallel_for(ordered=False, schedule="dynamic")(function), fresh()
    with orion.session(workers=2):
        plan = taking.plan(*given)
        taking(*given)
    ran = taking.last_run.plan
    shown, run = plan.schedule(), ran.schedule()
    np.testing.assert_array_equal(shown.bounds[0], run.bounds[0])
    np.testing.assert_array_equal(shown.serial_tiles(), run.serial_tiles())
    blocks = plan.loops[0].cuts[0]
    assert f"in {blocks} blocks of i with about as much work each, by the contents of `steps`" in " ".join(
        str(plan).split()
    )
    assert "those with most work first" in " ".join(str(plan).split())
    assert plan.to_dict()["loops"][0]["weighed_by"] == ["steps"]
    rank = np.argsort(run.serial_tiles())
    tiles = np.searchsorted(run.bounds[0], ran.serial_order()[:, 0], side="right") - 1
    assert (np.diff(rank[tiles]) >= 0).all()


def test_other_contents_are_planned_for_anew_and_a_replay_keeps_the_tiles_of_its_run():
    taking, steps, out = dynamic(walks), zipf(4000), np.zeros(4000)
    with orion.session(workers=2):
        taking(steps, out)
        run, bits = taking.last_run, out.tobytes()
        taking(steps, out)
        assert taking.last_run.plan is run.plan
        steps[:] = steps[::-1].copy()
        taking(steps, out)
        other = taking.last_run.plan
        taking.replay(run, steps[::-1].copy(), out)
    assert out.tobytes() == bits
    assert other.schedule().heavy[0] > 0
    assert run.plan.schedule().heavy[0] == 0
    assert run.plan.schedule().heavy[-1] > 0


def test_a_replay_takes_arguments_of_other_contents_but_not_of_other_sizes():
    taking, steps, out, again = dynamic(walks), zipf(4000), np.zeros(4000), np.zeros(4000)
    with orion.session(workers=2):
        taking(steps, out)
        run = taking.last_run
        few = np.minimum(steps, 3)
        taking.replay(run, few, out)
        taking(few, again)
        assert not isinstance(taking.last_run.plan.loops[0].tiles, Weighed)
        assert out.tobytes() == again.tobytes()
        with pytest.raises(PlanError, match="not one for these arguments"):
            taking.replay(run, steps, np.zeros(3999))


def test_nobody_plans_for_contents_that_are_new_in_every_call():
    taking, out, plans = dynamic(walks), np.zeros(4000), []
    with orion.session(workers=2):
        for number in range(PATIENCE + 3):
            taking(np.roll(zipf(4000), 100 * number), out)
            plans.append(taking.last_run.plan)
    weighed = [isinstance(plan.loops[0].tiles, Weighed) for plan in plans]
    assert weighed == [True] * PATIENCE + [False] * 3
    assert plans[-1] is plans[-2]


def test_loops_are_weighed_only_where_it_is_of_use_and_no_bit_hangs_on_it():
    def own_counts(steps, out):
        for i in range(out.shape[0]):
            steps[i] = steps[i] + 1
        for i in range(out.shape[0]):
            for _ in range(steps[i]):
                out[i] = 0.5 * out[i] + 1.0

    def by_values(steps, out):
        for i in range(out.shape[0]):
            x = 0.5
            for _ in range(steps[int(out[i])]):
                x = 3.7 * x * (1.0 - x)
            out[i] = x

    def by_chain(steps, out):
        for i in range(out.shape[0]):
            a = steps[i]
            b = a + a
            c = b + b
            d = c + c
            e = d + d
            f = e + e
            g = f + f
            x = 0.5
            for _ in range(g // 64):
                x = 3.7 * x * (1.0 - x)
            out[i] = x

    uneven, even, out = zipf(4000), np.full(4000, 500), np.zeros(4000)
    with orion.session(workers=2):
        plans = [dynamic(function).plan(uneven, out) for function in (total_of, own_counts, by_values, by_chain)]
        plans.append(dynamic(walks).plan(even, out))
        plans.append(orion.parallel_for(walks).plan(uneven, out))
        with pytest.raises(orion.OutOfBoundsError, match=r"`steps\[i\]` leaves `steps`"):
            dynamic(walks).plan(uneven, np.zeros(5000))
    for plan in plans:
        for loop in plan.loops:
            assert not isinstance(loop.tiles, Weighed)
            assert not plan.schedule_of(loop).heavy.any()


def test_arguments_are_not_kept():
    taking, steps, out = dynamic(walks), zipf(4000), np.zeros(4000)
    with orion.session(workers=2):
        taking(steps, out)
        held = ref(steps)
        del steps
        assert held() is None


def test_a_plan_with_wrong_bounds_is_refused():
    function, fresh, _ = cases()["counts"]
    with orion.session(workers=2):
        plan = dynamic(function).plan(*fresh())
    (loop,) = plan.loops
    bounds = loop.tiles.bounds.copy()
    bounds[-1] -= 1
    wrong = Weighed(0, (), loop.tiles.arrays, bounds, loop.tiles.heavy)
    broken = replace(plan, function=replace(plan.function, loops=(replace(loop, tiles=wrong),)))
    with pytest.raises(PlanError, match="leaves out iterations"):
        broken.check()
    assert proved_schedule(loop, plan.schedule().bounds, 2, {}).tiles == loop.cuts[0]


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_any_work(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 300))
    work = np.minimum(random.zipf(1.2 + random.random(), count), 10**9).astype(float)
    for blocks in {1, count, 1 + count // 2, 1 + count // 7}:
        bounds = bounds_of_work(work, blocks)
        assert (bounds[0], bounds[-1], bounds.size) == (0, count, blocks + 1)
        assert (np.diff(bounds) > 0).all()
        share = work.sum() / blocks
        each, longest = np.add.reduceat(work, bounds[:-1]), np.maximum.reduceat(work, bounds[:-1])
        assert (each - longest).max() <= share * (1 + 1e-6)


def test_heaviness_of_equal_work_is_none():
    assert not heaviness(np.full(9, 3.0)).any()
    assert heaviness(np.array([1.0, 1.0, 1.0, 1.0, 16.0, 4.0])).tolist() == [0, 0, 0, 0, 2, 0]
