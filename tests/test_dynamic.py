"""`schedule="dynamic"`: workers take tiles of each other, and results have the same bits, whoever runs which tile."""

import numpy as np
import pytest
from numba import njit

import orion
from benchmarks.slow_worker import best_share
from benchmarks.uneven import walks
from orion.errors import ArgumentError
from orion.kernel.calling import CONTROL_SIZE, FLAG_STRIDE
from orion.plan.plan import Inspected
from orion.schedule import build
from orion.verify.tiles import reachable_next
from tests.oracles import nest_check
from tests.oracles.interpreted import Order, Turns, kernel_code, run_with
from tests.oracles.nest_strategy import random_nest
from tests.runtime_programs import NAMES, assert_same, cases
from tests.test_promise import case
from tests.trials import TIMES, times


def dynamic(function):
    """The same function, with dynamic loops."""
    return orion.parallel_for(ordered=function._preparations.plain._options.ordered, schedule="dynamic")(
        function.__wrapped__
    )


def outcome(function, arguments):
    result = function(**arguments)
    return result, {key: np.array(v) for key, v in arguments.items() if isinstance(v, np.ndarray | orion.DenseArray)}


@pytest.fixture(scope="module")
def expected():
    with orion.session("serial"):
        return {name: outcome(*cases()[name]) for name in NAMES}


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_one_worker(name, workers, expected):
    function = dynamic(cases()[name][0])
    with orion.session(workers=workers, force_parallel=True):
        for _ in range(3):
            assert_same(outcome(function, cases()[name][1]), expected[name])
        plan = function.plan(**cases()[name][1])
        assert any(loop.is_dynamic for loop in plan.function.loops)
        plan.check()


@pytest.mark.parametrize("name", ["sgd", "tensor", "sweep", "ordered"])
def test_floats_have_the_bits_of_the_static_schedule(name):
    function, fresh = case(name)
    found = []
    for one in (function, dynamic(function)):
        given = fresh()
        with orion.session(workers=3, force_parallel=True):
            one(*given)
        found.append([np.array(array).tobytes() for array in given if isinstance(array, np.ndarray)])
    assert found[0] == found[1]
    assert found[0]


class Stealing(Turns):
    """Notes how many tiles were run by another worker than they were dealt to."""

    def __init__(self, order, owners):
        super().__init__(order)
        self.owners, self.stolen = owners, 0

    def take(self, tiles, *others):
        found = super().take(tiles, *others)
        own = tiles[: (len(tiles) - (len(others[4]) - 1)) // 2]
        self.stolen += found[0] >= 0 and found[0] not in own
        return found


@pytest.mark.parametrize("name", [name for name in NAMES if name != "sweeps"])
def test_any_worker_may_run_any_tile(name, expected):
    """In the interpreter, where a random choice decides who takes which of the tiles that may run."""
    stolen = 0
    for seed in range(4 * TIMES):
        function, arguments = dynamic(cases()[name][0]), cases()[name][1]
        prepared = function._preparations.plain.prepare(arguments, 3, True)
        turns = Stealing(Order(seed), None)
        codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
        result = run_with(turns, prepared.program, codes, {**arguments, **prepared.local.take()})
        dense = {k: np.array(v) for k, v in arguments.items() if isinstance(v, np.ndarray | orion.DenseArray)}
        assert_same((result, dense), expected[name])
        stolen += turns.stolen
    assert stolen


@pytest.mark.parametrize("tile_ns", [1, 5000])
def test_random_nests_have_the_results_of_plain_python(tile_ns, monkeypatch):
    monkeypatch.setattr("orion.plan.dynamic.TILE_NS", tile_ns)
    tried = 0
    for number in range(times(60, 12)):
        nest = random_nest(11, number)
        function = nest.function()
        try:
            plain = nest_check.plain_result(function, nest)
        except (IndexError, *nest_check.NO_NEST):
            continue
        try:
            prepared = nest_check.prepare(
                orion.parallel_for(schedule="dynamic")(function), nest, max(nest_check.WORKERS), force=True
            )
        except nest_check.REFUSALS:
            continue
        tried += any(loop.plan.is_dynamic for loop in prepared.program.loops)
        if not nest_check.is_in_vectors(prepared):
            nest_check.check_results(prepared, nest, plain)
    assert tried > times(15, 2)


def test_a_worker_without_a_core_is_not_waited_for():
    """All tiles are run though only one worker ever takes any."""
    function, arguments = dynamic(cases()["wavefront"][0]), cases()["wavefront"][1]
    prepared = function._preparations.plain.prepare(arguments, 2, True)
    (loop,) = prepared.program.loops

    class Alone(Turns):
        def take(self, tiles, own, other, patience, round, wait_offsets, *others):
            done, count = others[2], len(wait_offsets) - 1
            if self.running == 1 and any(done[tile * FLAG_STRIDE + 1] <= round for tile in range(count)):
                self.waiting[1] = lambda: all(done[tile * FLAG_STRIDE + 1] > round for tile in range(count))
                self.give_way()
            return super().take(tiles, own, other, patience, round, wait_offsets, *others)

    run_with(Alone(Order(1)), prepared.program, [kernel_code(loop.kernel.text)], arguments)
    plain = cases()["wavefront"][1]
    cases()["wavefront"][0].serial(**plain)
    np.testing.assert_array_equal(arguments["A"], plain["A"])


@pytest.mark.parametrize("name", ["rotated", "tensor"])
def test_waits_of_a_static_schedule_are_not_enough_and_that_is_found(name, monkeypatch):
    """Tiles of one block of the space dimension do not wait there for each other: one worker runs them."""
    monkeypatch.setattr("orion.schedule.build._in_turn", lambda *_: ())
    with pytest.raises(orion.PlanError, match="does not keep a dependence"):
        dynamic(cases()[name][0])._preparations.plain.prepare(cases()[name][1], 3, True)


def test_rounds_of_dynamic_loops_overlap_as_those_of_static_ones():
    for name in ("rotated", "tensor"):
        function, arguments = cases()[name]
        with orion.session(workers=3, force_parallel=True):
            static, taken = (one.plan(**arguments) for one in (function, dynamic(function)))
        assert [loop.rounds_overlap for loop in taken.loops] == [loop.rounds_overlap for loop in static.loops] == [True]
        taken.check()
        after = reachable_next(taken.schedule())
        assert after.diagonal().all()  # a tile is done in a round before it begins in the next
        assert not after.all()


class Held(Turns):
    """The worker that takes the last tile of a round is not done with it until another has begun one of the next."""

    held = 0

    def finish(self, tile, round, done):
        begun = done[1::FLAG_STRIDE]
        if round == 0 and (begun[:-1] > 0).all():  # one line more than tiles
            self.held += 1
            self.waiting[self.running] = lambda: bool((begun > 1).any())
            self.give_way()
        super().finish(tile, round, done)


def test_a_worker_begins_the_next_round_while_another_is_in_a_tile_of_this_one(expected):
    function, arguments = dynamic(cases()["rotated"][0]), cases()["rotated"][1]
    prepared = function._preparations.plain.prepare(arguments, 3, True)
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    turns = Held(Order(1))
    result = run_with(turns, prepared.program, codes, arguments)
    assert turns.held == 1
    dense = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}
    assert_same((result, dense), expected["rotated"])


def test_tiles_that_do_not_wait_for_their_block_in_the_round_before_are_found(monkeypatch):
    real = build._in_turn
    function, arguments = cases()["rotated"]
    with orion.session(workers=3, force_parallel=True):
        plan = dynamic(function).plan(**arguments)
        plan.check()
        monkeypatch.setattr(build, "_in_turn", lambda *given: [one for one in real(*given) if one[2] == 0])
        with pytest.raises(orion.PlanError, match="does not keep a dependence"):
            plan.check()


def compiled_take():
    """`take` as Python can call it."""
    from orion.kernel.support.taking import take

    return njit(take.py_func)


def test_tiles_behind_one_that_has_to_wait_are_taken():
    """Tile 1 waits for tile 0, which a slow worker has begun: tile 2 need not."""
    from orion.kernel.support.taking import NO_MORE

    take = compiled_take()
    done, control = np.zeros(FLAG_STRIDE * 3, np.int64), np.zeros(CONTROL_SIZE, np.int64)
    done[1] = 1  # begun
    waits = np.array([0, 0, 1, 1]), np.array([0]), np.array([0])
    found = take(np.arange(3), 0, 0, 20, 0, *waits, done, control)
    assert (found[0], found[2]) == (2, 1)
    done[2 * FLAG_STRIDE] = done[0] = 1
    found = take(np.arange(3), *found[1:], 0, *waits, done, control)
    assert found[0] == 1
    done[FLAG_STRIDE] = 1
    assert take(np.arange(3), *found[1:], 0, *waits, done, control)[0] == NO_MORE


def test_tiles_of_earlier_steps_are_begun_first():
    """Worker 0 has tiles 0 and 2, of which the second may not begin before all of the first step are: 0 and 1."""
    from orion.kernel.support.taking import NO_MORE

    take = compiled_take()
    done, control = np.zeros(FLAG_STRIDE * 3, np.int64), np.zeros(CONTROL_SIZE, np.int64)
    free = np.zeros(4, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    tiles, found, taken = np.array([0, 2, 0, 1, 2, 0, 2]), (0, 0, 0, 20), []
    while (found := take(tiles, *found[1:], 0, *free, done, control))[0] != NO_MORE:
        taken.append(found[0])
    assert taken == [0, 1, 2]
    done[:] = 0
    done[FLAG_STRIDE + 1] = 1  # another worker has begun tile 1: no need to wait for its end
    found, taken = (0, 0, 0, 20), []
    while (found := take(tiles, *found[1:], 0, *free, done, control))[0] != NO_MORE:
        taken.append(found[0])
    assert taken == [0, 2]


def test_tiles_are_given_with_those_of_earlier_steps():
    from orion.runtime.parts import tiles_to_take

    function, arguments = dynamic(cases()["rotated"][0]), cases()["rotated"][1]
    prepared = function._preparations.plain.prepare(arguments, 2, True)
    (loop,) = prepared.program.loops
    schedule = loop.schedule
    for own in schedule.order:
        given = tiles_to_take(loop, own)
        np.testing.assert_array_equal(given[: own.size], own)
        np.testing.assert_array_equal(given[own.size : own.size + schedule.tiles], schedule.serial_tiles())
        earlier = [(schedule.step < schedule.step[tile]).sum() for tile in own]
        np.testing.assert_array_equal(given[own.size + schedule.tiles :], earlier)


@pytest.mark.parametrize(("speed", "steps", "share"), [(1.0, 1, 0.5), (0.5, 1, 1 / 1.5), (0.5, 10**6, 1.0)])
def test_the_least_time_that_the_benchmark_compares_with(speed, steps, share):
    """Tiles in parts of any size; or the longest one, which is nearly all of the work."""
    function = orion.parallel_for(schedule="dynamic")(walks)
    work = np.ones(1024, np.int64)
    work[0] = steps
    with orion.session(workers=2, force_parallel=True):
        assert best_share(function, (work, np.zeros(1024)), speed) == pytest.approx(share, rel=0.01)


def test_what_is_not_dynamic_says_so_and_runs_as_ever():
    @orion.parallel_for(schedule="dynamic")
    def count(bins, of):
        for k in range(of.shape[0]):
            bins[of[k]] += 1

    @orion.parallel_for(schedule="dynamic")
    def first(a, limit):
        found = -1
        for i in range(a.shape[0]):
            if a[i] > limit:
                found = i
                break
        return found

    bins, of = np.zeros(10, np.int64), np.arange(40_000) % 7
    with orion.session(workers=2, force_parallel=True):
        count(bins, of)
        assert not any(loop.is_dynamic for loop in count.plan(bins, of).loops)
        assert first(np.arange(50_000.0), 40_000.5) == 40_001
        assert not any(loop.is_dynamic for loop in first.plan(np.arange(50_000.0), 1.0).loops)
    np.testing.assert_array_equal(bins, np.bincount(of, minlength=10))


def test_loops_that_an_inspection_has_found_take_tiles_in_any_case():
    @orion.parallel_for
    def through(x, idx, y):
        for i in range(x.shape[0]):
            x[i] = x[idx[i]] * 0.5 + y[i]

    x, y = np.arange(9000.0), np.ones(9000)
    idx = np.maximum(np.arange(9000) - 37, 0)
    with orion.session(workers=2, force_parallel=True):
        through(x, idx, y)
        (loop,) = through.plan(x, idx, y, inspect=True).loops
    assert isinstance(loop.tiles, Inspected)
    assert loop.takes_tiles
    assert not loop.is_dynamic


def test_plans_say_which_loops_are_dynamic():
    function, arguments = cases()["rotated"]
    with orion.session(workers=2, force_parallel=True):
        static, taken = (one.plan(**arguments) for one in (function, dynamic(function)))
    for plan, expected in ((static, False), (taken, True)):
        assert [loop["is_dynamic"] for loop in plan.to_dict()["loops"]] == [expected]
        assert ("they take tiles of each other" in str(plan)) is expected


@pytest.mark.parametrize("schedule", ["guided", None, 3, True])
def test_another_schedule_is_refused(schedule):
    with pytest.raises(ArgumentError, match='write "static" or "dynamic"'):
        orion.parallel_for(schedule=schedule)(lambda a: None)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_results_on_ray(expected):
    with orion.session("ray", 2, force_parallel=True):
        for name in ("rotated", "wavefront", "sums"):
            assert_same(outcome(dynamic(cases()[name][0]), cases()[name][1]), expected[name])


# ------------------------------------------------------------ smaller tiles


def weighted(steps, out):
    """Cells that need their neighbours, with unequal work in them."""
    for i in range(1, out.shape[0]):
        for j in range(1, out.shape[1]):
            x = 0.5 * (out[i - 1, j] + out[i, j - 1])
            for _ in range(steps[i, j]):
                x = 3.7 * x * (1.0 - x)
            out[i, j] = x


def total_of(steps, out):
    total = 0.0
    for i in range(out.shape[0]):
        x = 0.5
        for _ in range(steps[i]):
            x = 3.7 * x * (1.0 - x)
        total += x
    return total


def uneven_cases():
    steps = np.sort(np.minimum(np.random.default_rng(1).zipf(1.5, 20_000), 5000))[::-1].copy()
    return {
        "independent": (walks, lambda: (steps, np.zeros(steps.size))),
        "wavefront": (weighted, lambda: (steps[: 120 * 120].reshape(120, 120), np.full((120, 120), 0.25))),
        "sum": (total_of, lambda: (steps, np.zeros(steps.size))),
    }


@pytest.mark.parametrize("name", ["independent", "wavefront", "sum"])
def test_tiles_of_uneven_loops_are_smaller_and_bits_are_the_same_on_any_number_of_workers(name, monkeypatch):
    monkeypatch.setattr("orion.plan.dynamic.TILE_NS", 100)
    function, fresh = uneven_cases()[name]
    static, taking = orion.parallel_for(function), orion.parallel_for(schedule="dynamic")(function)
    found, grids = set(), set()
    for workers in (1, 2, 3, 4):
        given = fresh()
        with orion.session(workers=workers, force_parallel=True):
            result = taking(*given)
            if workers > 1:  # on one a wavefront is not cut
                grids.add(taking.last_run.plan.schedule().grid)
            (dealt,) = static.plan(*given).loops
        found.add((result, given[1].tobytes()))
    assert len(found) == len(grids) == 1
    ((grid,), ((result, written),)) = grids, found
    assert np.prod(grid) > np.prod(dealt.cuts)
    plain = fresh()
    expected = function(*plain)
    assert written == plain[1].tobytes()
    assert result == expected or result == pytest.approx(expected, rel=1e-12)  # sums are rounded in blocks


def test_the_plan_shows_the_tiles_that_run():
    function, fresh = uneven_cases()["independent"]
    taking = orion.parallel_for(schedule="dynamic")(function)
    with orion.session(workers=2):
        plan = taking.plan(*fresh())
        taking(*fresh())
        ran = taking.last_run.plan.schedule()
    (blocks,) = plan.loops[0].cuts
    assert blocks > 500
    assert ran.grid == plan.schedule().grid == (blocks,)
    assert f"in {blocks} blocks of i" in str(plan)
    assert plan.to_dict()["loops"][0]["blocks"] == [blocks]
    assert f"{blocks} blocks of i" in plan._repr_html_()
    plan.check()


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_same_in_the_smallest_tiles(name, workers, expected, monkeypatch):
    monkeypatch.setattr("orion.plan.dynamic.TILE_NS", 1)
    with orion.session(workers=workers, force_parallel=True):
        assert_same(outcome(dynamic(cases()[name][0]), cases()[name][1]), expected[name])


def test_short_loops_keep_their_tiles():
    @orion.parallel_for(schedule="dynamic")
    def double(a):
        for i in range(a.shape[0]):
            a[i] = 2.0 * a[i]

    with orion.session(workers=2, force_parallel=True):
        assert double.plan(np.zeros(100_000)).loops[0].cuts == (32,)
