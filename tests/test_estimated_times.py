"""`f.measure`, and times in `plan.estimate`: what is measured, what a schedule takes by that, and what is said where
nothing is known. Times themselves are compared by `make estimates`."""

import itertools
import json
import time

import numpy as np
import pytest

import orion
from orion import measuring
from orion.arrays.dense import array
from orion.measured import LoopSpeeds, Measurement, block_shares, loop_names
from orion.simulate import Network, RoundTimes, TileGraph, makespan, side_by_side, slowdown, time_of_rounds
from tests.runtime_programs import NAMES, cases, mix

FAST = Network(1e9, 0.0, 0.0)


@orion.parallel_for
def double(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]


@orion.parallel_for
def rounds(a, count):
    for _ in range(count):
        for i in range(1, a.shape[0] - 1):
            a[i] = 0.5 * (a[i - 1] + a[i + 1])


@orion.parallel_for
def until_small(a):
    total = a.shape[0] * 1.0
    while total > 1.0:
        total = 0.0
        for i in range(a.shape[0]):
            a[i] *= 0.5
            total += a[i]
    return total


@orion.parallel_for
def store(R):
    for (i, j), r in R:
        R[i, j] = 2 * r


def measured(function, workers, arguments, **options):
    with orion.session(workers=workers, force_parallel=True):
        found = function.measure(*arguments, **options)
        return found, function.plan(*arguments)


# ---------------------------------------------------------------- what is measured


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_arrays_stay_as_they_are_and_times_are_known(name, workers):
    function, arguments = cases()[name]
    before = cases()[name][1]
    found, plan = measured(function, workers, arguments.values(), seconds=0.02)
    for key, value in arguments.items():
        if isinstance(value, np.ndarray | orion.DenseArray):
            np.testing.assert_array_equal(np.asarray(value), np.asarray(before[key]))
    assert {loop.name for loop in found.loops} >= {*loop_names(plan.function.loops)}
    estimate = plan.estimate()
    assert estimate.unmeasured is None
    assert estimate.seconds > 0
    assert estimate.seconds_on_one > 0
    assert str(found).startswith(f"{function.__name__}: measured in ")
    assert json.loads(estimate.to_json())["speedup"] == pytest.approx(estimate.seconds_on_one / estimate.seconds)


def test_each_tile_of_each_loop_has_a_time():
    found, plan = measured(rounds, 2, (np.ones(4000), 3), seconds=1.0)
    (loop,) = [one for one in found.loops if one.name in loop_names(plan.function.loops)]
    assert loop.seconds.shape[1] == plan.schedule().tiles
    assert (loop.seconds >= 0).all()
    assert loop.seconds.sum() > 0
    assert found.is_whole


def test_of_many_rounds_some_are_run():
    with orion.session(workers=2, force_parallel=True):
        found = towards_mean.measure(np.ones(1000), 20_000, seconds=0.05)
        estimate = towards_mean.plan(np.ones(1000), 20_000).estimate()
    assert not found.is_whole
    assert [loop.rounds for loop in estimate.loops] == [20_000, 20_000]
    for loop in found.loops[:2]:
        assert loop.rounds == 20_000
        assert 2 < len(loop.sampled) < 15_000
        assert loop.sampled.max() > 15_000  # evenly spread, up to the end


@orion.parallel_for
def towards_mean(a, count):
    for _ in range(count):
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i]
        for i in range(a.shape[0]):
            a[i] = 0.5 * (a[i] + total / a.shape[0])


def test_where_rounds_depend_on_data_they_are_those_of_the_measured_call():
    with orion.session(workers=2, force_parallel=True):
        until_small.measure(np.ones(1000), seconds=1.0)
        (loop,) = until_small.plan(np.ones(1000)).estimate().loops
        assert loop.rounds == 10
        estimate = until_small.plan(np.ones(2000)).estimate()
        assert estimate.seconds is None
        assert "how often loops run is not known" in estimate.unmeasured


def test_a_call_whose_rounds_depend_on_data_ends_when_the_time_is_over():
    with orion.session(workers=2, force_parallel=True):
        a = np.full(100_000, 1e300)
        found = until_small.measure(a, seconds=1e-6)
        assert not found.is_whole
        assert (a == 1e300).all()
        assert "seconds=" in until_small.plan(a).estimate().unmeasured


@pytest.mark.parametrize("schedule", ["static", "dynamic"])
def test_tiles_that_workers_take_from_each_other_are_measured_one_by_one(schedule):
    function = orion.parallel_for(schedule=schedule)(double.serial)
    found, plan = measured(function, 2, (np.ones(4_000_000),), seconds=0.1)
    loop = found.loops[0]
    assert loop.seconds.shape[1] == plan.schedule().tiles
    assert np.count_nonzero(loop.seconds) > plan.schedule().tiles // 2


def test_inspected_loops_are_measured():
    @orion.parallel_for
    def scatter(x, to):
        for k in range(len(to)):
            x[to[k]] = x[to[k]] * 0.5 + k

    x, to = np.ones(5000), np.random.default_rng(1).integers(0, 5000, 5000)
    with orion.session(workers=2, force_parallel=True):
        scatter.plan(x, to, inspect=True)
        scatter.measure(x, to, seconds=0.05)
        estimate = scatter.plan(x, to).estimate()
    assert estimate.seconds > 0
    assert (x == 1).all()


@pytest.mark.parametrize("taken", [0.05, 0.0])
def test_on_all_workers_that_were_measured_a_call_has_the_last_word(taken, monkeypatch):
    """Tiles take longer beside others, or waking and meeting less than was measured, as a call on all of them says."""
    run_locally = measuring.run_locally

    def run(prepared, loaded, *others):
        if loaded.workers == 1:
            run_locally(prepared, loaded, *others)
        elif taken:  # to sleep for no time is to give the core away
            time.sleep(taken)

    monkeypatch.setattr(measuring, "run_locally", run)
    a = np.ones(4_000_000)  # its tiles take some milliseconds: far more than a call that does nothing
    found, plan = measured(double, 2, (a,), seconds=1.0)
    seconds = plan.estimate().seconds
    if taken:
        assert found.loops[0].beside > 1
        assert seconds == pytest.approx(taken, rel=0.2)
    else:
        assert found.loops[0].beside == 1
        assert found.wake == found.meet == 0
        assert seconds <= sum(one.seconds_per_round for one in found.loops) + 2 * found.call


# ---------------------------------------------------------------- what cannot be measured


def test_elements_that_are_stored_have_their_values_again():
    R = orion.sparse((np.arange(20), np.arange(20)), np.ones(20), shape=(20, 20))
    with orion.session(workers=2, force_parallel=True):
        store.measure(R, seconds=0.01)
        assert store.plan(R).estimate().seconds > 0
    assert (R.to_scipy().data == 1).all()


@pytest.mark.parametrize("seconds", [0, -1.0, True, "1", float("nan"), float("inf")])
def test_seconds_are_a_number_above_0(seconds):
    with pytest.raises(orion.ArgumentError, match="`seconds` is a number above 0"):
        double.measure(np.ones(10), seconds=seconds)


def test_an_argument_may_be_called_seconds():
    @orion.parallel_for
    def wait(a, seconds):
        for i in range(a.shape[0]):
            a[i] = a[i] + seconds

    with orion.session(workers=1):
        assert wait.measure(np.ones(10), seconds=3.0).loops
        assert wait.measure(np.ones(10), 3.0).loops


def test_errors_of_the_loop_are_those_of_a_call():
    @orion.parallel_for
    def gather(a, to):
        for i in range(to.shape[0]):
            a[i] = a[to[i]] + 1

    with orion.session(workers=1), pytest.raises(orion.OutOfBoundsError):
        gather.measure(np.ones(10), np.full(10, 99))


@pytest.mark.parametrize(
    ("name", "value"), [("bandwidth", 0), ("latency", -1.0), ("bandwidth", "1"), ("latency", True)]
)
def test_networks_are_numbers_above_0(name, value):
    with orion.session(workers=2, force_parallel=True), pytest.raises(orion.PlanError, match=f"`{name}` is a number"):
        double.plan(np.ones(10)).estimate(**{name: value})


def test_nothing_is_known_before():
    @orion.parallel_for
    def triple(a):
        for i in range(a.shape[0]):
            a[i] = 3.0 * a[i]

    with orion.session(workers=2, force_parallel=True):
        plan = triple.plan(np.ones(10))
        assert plan.estimate().seconds is None
        assert "f.measure" in str(plan.estimate())
        with pytest.raises(orion.PlanError, match=r"f\.measure"):
            plan.scaling()


def test_memory_that_does_not_suffice_is_refused_with_the_numbers():
    with orion.session(workers=4, force_parallel=True):
        plan = mix.plan(**cases()["rotated"][1])
        need = plan.estimate(nodes=2).memory
        assert plan.estimate(nodes=2, memory=max(need)).memory == need
        with pytest.raises(orion.PlanError, match=rf"needs {max(need):,} bytes for dense arrays, and has memory=100"):
            plan.estimate(nodes=2, memory=100)


# ---------------------------------------------------------------- schedules by the times of tiles


def graph(owner, waits, lags=None, place=None, sends=None, takes=False, workers=None):
    """Tiles with what each waits for, as lists."""
    offsets = np.cumsum([0, *map(len, waits)])
    found = np.array([tile for own in waits for tile in own], np.int64)
    lags = np.zeros(found.size, np.int64) if lags is None else np.array(lags, np.int64)
    place = (0,) * (workers or max(owner) + 1) if place is None else place
    order = np.arange(len(owner))
    return TileGraph(order, np.array(owner), place, (offsets, found, lags), sends or {}, takes)


def test_a_chain_over_workers_takes_the_sum():
    tiles = graph([0, 1, 0, 1], [[], [0], [1], [2]])
    assert makespan(tiles, np.array([1.0, 2.0, 3.0, 4.0]), 1.0, FAST) == 10.0


def test_tiles_that_wait_for_nothing_take_what_the_busiest_worker_does():
    tiles = graph([0, 1, 0, 1], [[]] * 4)
    assert makespan(tiles, np.array([1.0, 2.0, 3.0, 5.0]), 1.0, FAST) == 7.0


@pytest.mark.parametrize(("slower", "expected"), [(1.0, 5.0), (2.0, 8.0), (1.5, 6.5)])
def test_a_worker_that_is_left_alone_is_not_slowed_down(slower, expected):
    """They take 3 and 5 seconds by themselves; with half of what they run on each, 8 together."""
    tiles = graph([0, 1, 1], [[]] * 3)
    assert makespan(tiles, np.array([3.0, 1.0, 4.0]), slower, FAST) == pytest.approx(expected)


def test_workers_of_other_nodes_share_nothing():
    tiles = graph([0, 1], [[]] * 2, place=(0, 1))
    assert makespan(tiles, np.array([3.0, 5.0]), 2.0, FAST) == 5.0


def test_the_slowdown_is_that_which_explains_the_time():
    loads = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]])
    for factor in (1.0, 1.7, 3.0):
        assert slowdown(loads, np.array([side_by_side(own, factor) for own in loads])) == pytest.approx(factor)
    assert slowdown(np.array([[0.0, 2.0]]), np.array([3.0])) == 1.0  # one ran alone


def test_a_free_worker_takes_the_next_tile():
    tiles = graph([0, 0, 0, 1], [[]] * 4, takes=True)
    assert makespan(tiles, np.array([1.0, 1.0, 1.0, 1.0]), 1.0, FAST) == 2.0
    chain = graph([0, 0, 0, 1], [[], [0], [1], []], takes=True)
    assert makespan(chain, np.array([1.0, 1.0, 1.0, 1.0]), 1.0, FAST) == 3.0


def test_a_tile_that_has_to_wait_keeps_no_worker():
    """Worker 1 takes what is behind the tile that waits for the long one."""
    tiles = graph([0, 0, 0, 0], [[], [0], [], []], takes=True, workers=2)
    assert makespan(tiles, np.array([4.0, 1.0, 2.0, 2.0]), 1.0, FAST) == 5.0


def test_workers_that_take_tiles_go_on_to_rounds_that_overlap():
    """In each round one tile is long, which waits for itself in the round before: the others are done beside it."""
    tiles = graph([0, 0, 0], [[0], [1], [2]], [1, 1, 1], takes=True, workers=2)
    each = np.array([[2.0, 1.0, 1.0]])
    apart, together = (RoundTimes(each, np.array([0]), 1, 50, overlap) for overlap in (False, True))
    assert time_of_rounds(tiles, apart, 1.0, FAST) == pytest.approx(100)
    uneven = np.array([[3.0, 1.0, 1.0]])
    apart, together = (RoundTimes(uneven, np.array([0]), 1, 50, overlap) for overlap in (False, True))
    assert time_of_rounds(tiles, apart, 1.0, FAST) == pytest.approx(150)
    assert time_of_rounds(tiles, together, 1.0, FAST) == pytest.approx(150)  # a chain of three seconds each
    free = graph([0, 0, 0], [[]] * 3, takes=True, workers=2)
    assert time_of_rounds(free, together, 1.0, FAST) == pytest.approx(125)
    many = RoundTimes(uneven, np.array([0]), 1, 1_000_000, overlap=True)
    assert time_of_rounds(free, many, 1.0, FAST) == pytest.approx(2_500_000, rel=1e-5)


def test_what_is_sent_takes_the_link_and_the_latency():
    tiles = graph([0, 1], [[], [0]], place=(0, 1), sends={0: [(1, 3000)]})
    assert makespan(tiles, np.array([1.0, 2.0]), 1.0, Network(1000.0, 0.5, 0.0)) == pytest.approx(1 + 3 + 0.5 + 2)
    two = graph([0, 0, 1], [[], [], [0, 1]], place=(0, 1), sends={0: [(1, 2000)], 1: [(1, 2000)]})
    assert makespan(two, np.array([1.0, 1.0, 1.0]), 1.0, Network(1000.0, 0.0, 0.0)) == pytest.approx(1 + 2 + 2 + 1)


def test_a_worker_that_sends_runs_no_tile_meanwhile():
    """The first message leaves at 1.5, the second tile begins then and its own message leaves at 3."""
    two = graph([0, 0, 1], [[], [], [0, 1]], place=(0, 1), sends={0: [(1, 0)], 1: [(1, 0)]})
    assert makespan(two, np.array([1.0, 1.0, 1.0]), 1.0, Network(1000.0, 0.0, 0.5)) == pytest.approx(3 + 1)


def test_rounds_that_overlap_do_not_wait_for_the_slowest_worker():
    waits, lags = [[], [0], [1]], [0, 0]
    pipe = graph([0, 1, 2], waits, lags)
    each = np.array([[1.0, 1.0, 1.0]])
    apart = RoundTimes(each, np.array([0]), 1, 100, overlap=False)
    together = RoundTimes(each, np.array([0]), 1, 100, overlap=True)
    assert time_of_rounds(pipe, apart, 1.0, FAST) == pytest.approx(300)
    assert time_of_rounds(pipe, together, 1.0, FAST) == pytest.approx(102)
    many = RoundTimes(each, np.array([0]), 1, 1_000_000, overlap=True)
    assert time_of_rounds(pipe, many, 1.0, FAST) == pytest.approx(1_000_002, rel=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_times_in_other_tiles_have_the_same_sum(seed):
    generator = np.random.default_rng(seed)
    old, new = (np.unique([0, 40, *generator.integers(0, 41, 5)]) for _ in range(2))
    shares = block_shares(old, new)
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    each = generator.random(len(old) - 1)
    by_element = np.repeat(each / np.diff(old), np.diff(old))
    expected = [by_element[low:high].sum() for low, high in itertools.pairwise(new)]
    np.testing.assert_allclose(shares @ each, expected)


def test_even_tiles_scale_perfectly_where_nothing_else_takes_time():
    a = np.ones(1 << 20)
    with orion.session(workers=2, force_parallel=True):
        plan = triple_all.plan(a)
        names = tuple(loop_names(plan.function.loops))
        bounds = (np.array([0, a.size]),)
        loops = tuple(
            LoopSpeeds(name, 1, bounds, np.array([0]), np.array([[1.0]]), None, 0) for name in names
        )  # fmt: skip
        plan.measurements.keep(
            Measurement("triple_all", plan.sizes, 1, loops, 0.0, None, 0.0, None, 0.1, is_whole=True)
        )
        found = plan.scaling(64)
    assert [workers for workers, _ in found.points] == [1, 2, 4, 8, 16, 32, 64]
    np.testing.assert_allclose([workers * seconds for workers, seconds in found.points], 1.0, rtol=1e-6)
    assert found.pays_up_to is None
    assert "More workers pay up to the end." in str(found)


@orion.parallel_for
def triple_all(a):
    for i in range(a.shape[0]):
        a[i] = 3.0 * a[i]


def test_distributed_arrays_stay_as_they_are():
    a = array(np.arange(1000.0))
    measured(double, 2, (a,), seconds=0.01)
    np.testing.assert_array_equal(a.to_numpy(), np.arange(1000.0))
