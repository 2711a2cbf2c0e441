"""Tiles that are dealt out by measured times between calls on several nodes: the same bits, the bytes that are
predicted, and plans that say so."""

import numpy as np
import pytest

import orion
from orion.arrays.dense import DenseArray
from orion.kernel.calling import FLAG_STRIDE
from orion.plan.deal import ByTimes, Even
from orion.runtime.balance import CALLS, Measured
from orion.runtime.ray import dealing
from orion.runtime.ray.node_worker import NodeWorker
from tests import test_promise as promise
from tests.oracles.interpreted import Order, kernel_code
from tests.oracles.nodes import Earlier, run_on_nodes
from tests.ray_nodes import session_on
from tests.runtime_programs import NAMES, assert_same, cases
from tests.test_runtime_exchange import MORE, dense_of

SPEEDS = {2: (0.3, 1.0), 3: (1.0, 0.4, 0.7)}


def dynamic(function):
    return orion.parallel_for(ordered=function._preparations.plain._options.ordered, schedule="dynamic")(
        function.__wrapped__
    )


def simulated_cases():
    """Loops of every strategy, with integers: those that are quick in the interpreter."""
    found = {name: (lambda name=name: cases()[name]) for name in NAMES if name != "sweeps"}
    return found | {name: (lambda name=name: (MORE[name][0], MORE[name][1]())) for name in MORE}


SIMULATED = simulated_cases()


def dealt(function, arguments, speeds):
    """What a call would run that is dealt out by such speeds, and its plan."""
    found = dynamic(function)._preparations.plain.prepare(arguments, len(speeds), True)
    program = found.program.dealt_by(speeds, 4)
    return found, program, found.plan.dealt_as(loop.plan.deal for loop in program.loops)


@pytest.mark.parametrize("nodes", ["ab", "aab"])
@pytest.mark.parametrize("name", SIMULATED)
def test_unequal_shares_give_the_serial_result_and_send_what_is_predicted(name, nodes):
    function, arguments = SIMULATED[name]()
    found, program, plan = dealt(function, arguments, SPEEDS[len(nodes)])
    plain = SIMULATED[name]()[1]
    with orion.session("serial"):
        expected = function(**plain), {k: np.array(v) for k, v in dense_of(plain).items()}
    codes = [kernel_code(loop.kernel.text) for loop in program.loops]
    result, _, sent = run_on_nodes(program, codes, {**arguments, **found.local.take()}, Order(1), nodes, "a")
    assert_same((result, {k: np.array(v) for k, v in dense_of(arguments).items()}), expected)
    estimate = plan.estimate(nodes=2)
    if len(nodes) == 2 and estimate.bytes is not None:
        assert estimate.workers == 2
        assert estimate.bytes == sent


def test_every_strategy_is_among_those_that_are_dealt_out():
    strategies = set()
    for name in SIMULATED:
        _, program, plan = dealt(*SIMULATED[name](), SPEEDS[2])
        strategies |= {str(loop.plan.strategy) for loop in program.loops if isinstance(loop.plan.deal, ByTimes)}
        copies = [bool(loop.plan.copies) for loop in program.loops if isinstance(loop.plan.deal, ByTimes)]
        strategies |= {"copies"} if any(copies) else set()
        for loop in program.loops:
            if isinstance(loop.plan.deal, ByTimes):
                tiles = np.bincount(loop.schedule.owner) * loop.schedule.grid[loop.plan.space] // loop.schedule.tiles
                assert tuple(tiles.tolist()) == loop.plan.deal.blocks
        plan.check(2)
    assert strategies >= {"independent", "1d", "2d", "nd", "wavefront", "copies"}


def first_rows(schedule):
    """The rows of worker 0, whose blocks of dimension 0 come first."""
    return int(schedule.bounds[0][np.bincount(schedule.owner)[0] // schedule.grid[1]])


def test_a_node_that_has_a_part_is_sent_the_rest():
    """From equal shares to others: what moves is what changes hands, and back again."""
    function, arguments = cases()["rotated"]
    function = dynamic(function)
    found = function._preparations.plain.prepare(arguments, 2, True)
    codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
    moved, earlier = [], Earlier()
    other = found.program.dealt_by((0.3, 1.0), 3)
    for program in (found.program, found.program, other, found.program):
        run_on_nodes(program, codes, arguments, Order(1), "ab", "a", earlier)
        moved.append(earlier.filled["W"])
    rows = [first_rows(one.loops[0].schedule) for one in (found.program, other)]
    assert moved == [60 - rows[0], 0, rows[0] - rows[1], 0]
    assert rows[0] > rows[1]


@pytest.mark.parametrize("name", ["rotated", "wavefront", "tensor"])
def test_times_of_tiles_are_without_waiting(name, monkeypatch):
    """A walk whose time is taken finds all done that its tiles wait for; that of a static loop may wait."""
    late = {True: 0, False: 0}
    real = NodeWorker._walk_some

    def walk_some(worker, part, start, stop):
        offsets, waits, lags = part.waits
        for tile in part.tiles[start:stop].tolist():
            for entry in range(offsets[tile], offsets[tile + 1]):
                is_own = waits[entry] in part.tiles
                is_done = part.flags[0][waits[entry] * FLAG_STRIDE] >= part.round + 1 - lags[entry]
                late[part.loop.follows_times] += not (is_own or is_done)
        real(worker, part, start, stop)

    monkeypatch.setattr(NodeWorker, "_walk_some", walk_some)
    for make in (dynamic, lambda function: function):
        function, arguments = cases()[name]
        found = make(function)._preparations.plain.prepare(arguments, 3, True)
        codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
        run_on_nodes(found.program, codes, {**arguments, **found.local.take()}, Order(2), "abb", "a")
    assert late[True] == 0
    assert late[False] > 0


def test_plans_say_that_shares_are_unequal():
    function, arguments = cases()["rotated"]
    _, _, plan = dealt(function, arguments, (0.5, 1.0))
    blocks = plan.loops[0].deal.blocks
    assert f"unequal shares, {blocks[0]} and {blocks[1]} blocks of" in str(plan)
    assert "since call 4: workers were measured at speeds of 0.5 and 1" in " ".join(str(plan).split())
    assert plan.to_dict()["loops"][0]["deal"] == {"blocks": list(blocks), "speeds": [0.5, 1.0], "since": 4}
    assert "unequal shares" in plan._repr_html_()
    even = function.plan(**arguments)
    assert even.to_dict()["loops"][0]["deal"] is None
    assert "unequal" not in str(even)


def test_static_loops_stay_as_they_are():
    function, arguments = cases()["rotated"]
    program = function._preparations.plain.prepare(arguments, 2, True).program
    assert program.dealt_by((0.3, 1.0), 4).loops == program.loops


# ------------------------------------------------------------ on Ray


@pytest.fixture(scope="module")
def pair():
    """A session of two workers, on a node each."""
    with session_on((1, 1)) as session:
        yield session


class Clock:
    """Stands for the times of workers: those of blocks that all take as long, on workers of these speeds."""

    def __init__(self, monkeypatch):
        self.speeds = np.ones(2)
        real = dealing.measured_of

        def measured_of(*given):
            found = real(*given)
            assert (found.seconds > 0).all()  # both have computed
            return Measured(found.tiles, found.tiles / self.speeds)

        monkeypatch.setattr(dealing, "measured_of", measured_of)


FOLLOWED = {
    "epochs": promise.case("epochs"),
    "sweep": promise.case("sweep"),
    "counts": (MORE["counts"][0], lambda: tuple(MORE["counts"][1]().values())),
}


@pytest.mark.all("test_calls_in_a_profile_are_measured_too", "test_what_moves_with_tiles_is_counted")
@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_worker_that_becomes_slow_and_fast_again_is_followed(name, pair, monkeypatch):
    function, fresh = FOLLOWED[name]
    taking, clock, deals = dynamic(function), Clock(monkeypatch), []
    ours, theirs = fresh(), fresh()
    for call in range(5 * CALLS):
        clock.speeds = np.array([1.0, 0.4 if call < 2 * CALLS else 1.0])
        shown = taking.plan(*ours)
        result = taking(*ours)
        plan = taking.last_run.plan
        with orion.session("threads", 2, force_parallel=True):
            assert function(*theirs) == result
        assert bytes_of(ours) == bytes_of(theirs)
        assert shown.to_dict() == plan.to_dict()
        estimate = plan.estimate(nodes=2)
        assert estimate.bytes is None or estimate.bytes == pair._backend._team.sent_bytes
        deals.append(next(loop.deal for loop in plan.function.loops if loop.deal.follows_times))
    even, slow = Even(follows_times=True), deals[CALLS]
    assert slow.blocks[0] > slow.blocks[1]
    assert slow.since == CALLS + 1
    assert slow.speeds == pytest.approx((1.0, 0.4), rel=0.01)
    assert deals == [even] * CALLS + [slow] * 3 * CALLS + [even] * CALLS


def bytes_of(arguments):
    return [np.asarray(one).tobytes() for one in arguments if isinstance(one, np.ndarray | DenseArray)]


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_what_moves_with_tiles_is_counted(pair, monkeypatch):
    """Node 1 gets more of the rows of `W`, and of the elements: it is sent these once, and has them when it gives them
    back, but for what has been written since."""
    function, clock, moved = dynamic(cases()["rotated"][0]), Clock(monkeypatch), []
    arguments = cases()["dist arrays"][1]
    elements, rows = [], []
    for call in range(6 * CALLS):
        clock.speeds = np.array([0.4 if call < 2 * CALLS else 1.0, 1.0])
        before = pair._backend._team.group.moved if pair._backend._team else 0
        function(**arguments)
        moved.append(pair._backend._team.group.moved - before)
        schedule = function.last_run.plan.schedule()
        layout = arguments["R"].layout(schedule.bounds, "shuffled")
        elements.append(int(np.diff(layout.offsets)[schedule.owner == 1].sum()))
        rows.append(60 - first_rows(schedule))
    changed = [call for call in range(1, len(rows)) if rows[call] != rows[call - 1]]
    assert changed[0] == CALLS
    assert len(changed) == 2
    more = moved[CALLS] - (elements[CALLS] - elements[0]) * (4 + 4 + 8) - (rows[CALLS] - rows[0]) * 8
    assert 0 <= more <= 40 * 8  # two keys of 4 bytes and a value; and what is first used there of `H`
    assert moved[changed[1]] <= 40 * 8
    assert [moved[call] for call in range(1, len(moved)) if call not in changed] == [0] * (len(moved) - 3)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_calls_in_a_profile_are_measured_too(pair, monkeypatch):
    function, clock = dynamic(cases()["rotated"][0]), Clock(monkeypatch)
    clock.speeds = np.array([0.4, 1.0])
    arguments = cases()["rotated"][1]
    with orion.profile() as profile:
        for _ in range(CALLS + 1):
            function(**arguments)
    assert profile.numbers.calls == CALLS + 1
    assert isinstance(function.last_run.plan.loops[0].deal, ByTimes)
