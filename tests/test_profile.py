"""`orion.profile` on threads: what it measures, what it says, and that results have the same bits."""

import html
import json
import re
import signal
import statistics
import threading
import time
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, OutOfBoundsError
from orion.inspect.profiles.bottleneck import Kind
from tests.runtime_programs import NAMES, assert_same, cases, divides, gather, outcome
from tests.test_followed import downwards, eliminate, grown, norms


@orion.parallel_for
def triangle(a, out):
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(i):
            total += np.sin(a[j] * a[i])
        out[i] = total


@orion.parallel_for
def relax(A, rounds):
    for _ in range(rounds):
        for i in range(1, A.shape[0]):
            for j in range(1, A.shape[1]):
                A[i, j] = 0.3 * (A[i - 1, j] + A[i, j - 1] + A[i, j])


@orion.parallel_for
def double(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]


@pytest.fixture
def two():
    with orion.session("threads", 2, force_parallel=True) as session:
        yield session


@orion.parallel_for
def scattered(W, idx, y):
    for i in range(len(idx)):
        W[idx[i]] = W[idx[i]] * 0.5 + y[i]


@orion.parallel_for
def best(a):
    at, high = 0, -1.0
    for i in range(len(a)):
        if a[i] > high:
            high, at = a[i], i
    return high, at


@orion.parallel_for
def first_above(a, limit):
    found = -1
    for i in range(len(a)):
        if a[i] > limit:
            found = i
            break
    return found


def in_rounds():
    """Loops in compiled rounds, an inspected one, chosen values, an early exit: function and arguments."""
    generator = np.random.default_rng(5)
    numbers = generator.integers(0, 1000, (40, 30))
    return {
        "eliminate": (eliminate, (generator.random((40, 40)) + 40 * np.eye(40),)),
        "downwards": (downwards, (numbers, np.zeros((2, 30), np.int64))),
        "grown": (grown, (np.arange(500), 6)),
        "norms": (norms, (np.arange(500), 6)),
        "best": (best, (generator.random(5000),)),
        "early exit": (first_above, (generator.random(50_000), 0.999)),
        "scattered": (scattered, (generator.random(4000), generator.permutation(4000) // 2, generator.random(4000))),
    }


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", in_rounds())
def test_results_of_rounds_and_choices_are_those_without_a_profile(name, workers):
    def result():
        function, arguments = in_rounds()[name]
        if name == "scattered":
            function.plan(*arguments, inspect=True)
        returned = function(*arguments)
        return repr(returned), [np.array(one) for one in arguments if isinstance(one, np.ndarray)]

    with orion.session("threads", workers, force_parallel=True):
        expected = result()
        with orion.profile():
            for _ in range(3):
                found = result()
                assert found[0] == expected[0]
                for mine, other in zip(found[1], expected[1], strict=True):
                    np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_without_a_profile(name, workers):
    with orion.session("threads", workers, force_parallel=True):
        expected = outcome(name)
        with orion.profile() as profile:
            for _ in range(6):  # some rounds have a tile that runs alone
                assert_same(outcome(name), expected)
    assert profile.numbers.calls == 6
    assert {one.worker for one in profile.numbers.workers} == set(range(workers))


def test_every_tile_is_counted(two):
    function, arguments = cases()["rotated"]
    with orion.profile() as profile:
        function(**arguments)
    (loop,) = profile.numbers.loops
    assert loop.runs == 3 * loop.label.tiles == 3 * 64
    assert loop.rounds == 3
    assert loop.label.strategy == "2d"


def test_times_add_up(two):
    a, out = np.random.default_rng(1).random(3000), np.zeros(3000)
    with orion.profile() as profile:
        for _ in range(3):
            triangle(a, out)
    numbers = profile.numbers
    assert 0 < numbers.running <= numbers.wall
    for one in numbers.workers:
        assert one.total <= numbers.running * 1.01
        assert one.total >= numbers.running * 0.5
    driver = numbers.outside + numbers.own + numbers.planning + numbers.preparing + numbers.queueing
    assert abs(driver + numbers.running - numbers.wall) < 0.05 * numbers.wall


def test_nothing_is_measured_outside_of_the_statement(two):
    with orion.profile() as profile:
        double(np.ones(1000))
    double(np.ones(1000))
    assert profile.numbers.calls == 1
    assert not two.profiles


def test_profiles_may_stand_in_each_other(two):
    with orion.profile() as outer:
        double(np.ones(1000))
        with orion.profile() as inner:
            double(np.ones(1000))
    assert (outer.numbers.calls, inner.numbers.calls) == (2, 1)


def test_a_profile_is_used_once(two):
    with orion.profile() as profile:
        double(np.ones(1000))
    with pytest.raises(ArgumentError, match="one `with` statement"):
        profile.__enter__()


def test_calls_of_all_threads_are_in_it(two, tmp_path):
    with orion.profile() as profile:
        callers = [threading.Thread(target=lambda: double(np.ones(1000))) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(60)
    assert profile.numbers.calls == 4
    assert profile.numbers.outside <= profile.numbers.wall
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [one["args"]["name"] for one in events if one["name"] == "thread_name"]
    assert len([name for name in names if name.startswith("driver")]) == len({one.ident for one in callers})


def test_profiles_may_begin_and_end_while_other_threads_call(two):
    is_over = threading.Event()
    failures = []

    def call():
        try:
            while not is_over.is_set():
                double(np.ones(1000))
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for _ in range(30):
        with orion.profile() as profile:
            time.sleep(0.005)
            str(profile)
    is_over.set()
    for caller in callers:
        caller.join(60)
    assert not failures
    assert profile.numbers.outside >= 0


def test_a_session_inside_is_not_in_it_and_that_is_said(two):
    with orion.profile() as profile, orion.session("threads", 1):
        double(np.ones(1000))
    assert profile.numbers.calls == 0
    assert "No loop of this session ran" in str(profile)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_raises_is_measured_until_then(workers):
    with orion.session("threads", workers, force_parallel=True):
        with orion.profile() as profile:
            double(np.ones(1000))
            with pytest.raises(OutOfBoundsError):
                gather(np.arange(9), np.arange(2000) % 7 + 3, np.zeros(2000, np.int64))
            with pytest.raises(ZeroDivisionError):
                divides(np.ones(500), 5)
            double(np.ones(1000))
        assert (profile.numbers.calls, profile.numbers.failed) == (4, 2)
        assert "2 of which raised" in str(profile)
        with pytest.raises(ZeroDivisionError), orion.profile() as profile:
            divides(np.ones(500), 5)
        assert profile.numbers.failed == 1


def test_ctrl_c_leaves_what_was_measured(two):
    a, out = np.random.default_rng(1).random(60_000), np.zeros(60_000)
    triangle(a[:100], out[:100])
    triangle.plan(a, out)
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt), orion.profile() as profile:
        triangle(a, out)
    assert profile.numbers.failed == 1
    assert {one.worker for one in profile.numbers.workers} == {0, 1}
    assert sum(one.compute for one in profile.numbers.workers) > 0
    assert "1 call, 1 of which raised" in str(profile)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_function_without_a_plan_is_told(two):
    @orion.parallel_for
    def grows(n):
        found = [0]
        while len(found) < n:
            found.append(len(found))
        return len(found)

    grows(10)
    with orion.profile() as profile:
        grows(20_000_000)
    assert profile.bottleneck.kind is Kind.SERIAL
    assert "`grows` runs as it is" in profile.bottleneck.sentence
    assert grows.last_run is None


# ---------------------------------------------------------------- planted bottlenecks


@pytest.mark.timing
def test_uneven_tiles(two):
    a, out = np.random.default_rng(1).random(6000), np.zeros(6000)
    triangle(a, out)
    with orion.profile() as profile:
        for _ in range(4):
            triangle(a, out)
    assert profile.bottleneck.kind in (Kind.UNEVEN, Kind.WORKER), str(profile)
    slowest = max(profile.numbers.loops[0].workers, key=lambda one: one.compute)
    assert slowest.compute > 1.3 * min(one.compute for one in profile.numbers.loops[0].workers)


@pytest.mark.timing
def test_too_small_tiles(two):
    A = np.ones((9, 9))
    relax(A, 4)
    with orion.profile() as profile:
        for _ in range(50):
            relax(A, 4)
    assert profile.bottleneck.kind is Kind.SMALL, str(profile)
    assert "too small tiles" in repr(profile)


@pytest.mark.timing
def test_the_driver_between_calls(two):
    a = np.ones(1000)
    double(a)
    with orion.profile() as profile:
        for _ in range(5):
            double(a)
            time.sleep(0.02)
    assert profile.bottleneck.kind is Kind.DRIVER
    assert "in the program between calls" in profile.bottleneck.sentence


@pytest.mark.timing
def test_the_driver_that_plans(two):
    @orion.parallel_for
    def new(a):
        for i in range(a.shape[0]):
            a[i] = 3.0 * a[i] + 1.0

    with orion.profile() as profile:
        new(np.ones(1000))
    assert profile.bottleneck.kind is Kind.DRIVER
    assert re.search("planning|compiling", profile.bottleneck.sentence)


def beside_another(elements=8_000_000):
    """How many times as long one of two threads takes to copy an array as a thread that is alone: this machine's
    memory, without Orion."""
    arrays = [(np.zeros(elements), np.ones(elements)) for _ in range(2)]

    def seconds(together):
        took, meet = [], threading.Barrier(together)

        def copy(target, source):
            np.copyto(target, source)
            meet.wait()
            start = time.perf_counter()
            for _ in range(4):
                np.copyto(target, source)
            took.append(time.perf_counter() - start)

        threads = [threading.Thread(target=copy, args=pair) for pair in arrays[:together]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(took)

    return statistics.median(seconds(2) / seconds(1) for _ in range(5))


@pytest.mark.timing
def test_memory_that_two_workers_lack(two):
    """One that moves 16 bytes for a multiplication, where this machine's memory feeds one core and not two."""
    if (slower := beside_another()) < 1.5:
        pytest.skip(f"two cores copy at {slower:.2f} times the time of one: this machine's memory is enough for both")
    a = np.ones(16_000_000)
    double(a)
    with orion.profile() as profile:
        for _ in range(8):
            double(a)
    assert profile.bottleneck.kind is Kind.MEMORY, f"{slower:.2f}\n{profile}"
    assert profile.bottleneck.sentence.startswith("Memory bandwidth is the bottleneck")


def test_one_tile_is_tried_alone(two):
    """Whether it is memory that workers lack depends on the machine, and on what else runs there."""
    a = np.ones(4_000_000)
    double(a)
    with orion.profile() as profile:
        for _ in range(6):
            double(a)
    (loop,) = profile.numbers.loops
    assert loop.alone > 0
    assert loop.together > 0


# ---------------------------------------------------------------- what is shown


def measured(name="two loops", calls=2):
    function, arguments = cases()[name]
    function(**arguments)
    with orion.profile() as profile:
        for _ in range(calls):
            function(**arguments)
    return profile


def test_the_trace_has_a_track_for_the_driver_and_each_worker(two, tmp_path):
    profile = measured()
    profile.save_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"]
    tracks = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert tracks == {0: "driver", 1: "worker 0", 2: "worker 1"}
    slices = [one for one in events if one["ph"] == "X"]
    kinds = {one["cat"] for one in slices}
    assert {"call", "planning", "preparation", "run", "loop"} <= kinds
    assert len([one for one in slices if one["cat"] == "call"]) == 2
    assert len([one for one in slices if one["cat"] == "loop"]) == 2 * 2 * 6  # calls, workers, loops in rounds
    wall = profile.numbers.wall / 1e3
    for one in slices:
        assert 0 <= one["ts"] <= one["ts"] + one["dur"] <= wall
    for track in (1, 2):  # parts of a worker follow each other
        loops = sorted(
            (one["ts"], one["ts"] + one["dur"]) for one in slices if (one["tid"], one["cat"]) == (track, "loop")
        )
        assert all(before[1] <= after[0] for before, after in pairwise(loops))


def test_the_timeline_has_a_row_for_the_driver_and_each_worker(two, tmp_path):
    profile = measured()
    profile.save_svg(tmp_path / "profile.svg")
    picture = ET.fromstring((tmp_path / "profile.svg").read_text())
    words = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"driver", "worker 0", "worker 1"} <= set(words)
    titles = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert any("computing" in title for title in titles)
    width = float(picture.get("width"))
    for one in picture.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(one.get("x")) + float(one.get("width")) <= width + 1


def test_a_notebook_shows_picture_tables_and_sentence(two):
    profile = measured()
    page = profile._repr_html_()
    ET.fromstring(page.replace("<style>", "<style><![CDATA[").replace("</style>", "]]></style>"))
    assert "<svg" in page
    assert page.count("worker 0</th>") == 2
    assert html.escape(profile.bottleneck.sentence) in page


def test_as_data_it_is_plain_and_has_the_same_numbers(two):
    profile = measured()
    data = json.loads(json.dumps(profile.to_dict()))
    assert data["calls"] == 2
    assert len(data["loops"]) == 2
    assert {one["worker"] for one in data["workers"]} == {0, 1}
    assert data["bottleneck"]["kind"] == profile.bottleneck.kind
    assert data["seconds"] == profile.numbers.wall / 1e9


def test_an_empty_profile_can_be_shown_and_saved(two, tmp_path):
    with orion.profile() as profile:
        pass
    assert "No loop" in str(profile)
    profile.save_trace(tmp_path / "trace.json")
    profile.save_svg(tmp_path / "profile.svg")
    assert profile.to_dict()["loops"] == []
    assert "No loop" in profile._repr_html_()


def test_sums_go_on_when_calls_are_no_longer_kept(two, monkeypatch):
    monkeypatch.setattr("orion.runtime.profile.collector.KEPT_PARTS", 10)
    profile = measured(calls=3)
    assert profile.numbers.calls == 3
    assert len(profile._collected.calls) + profile._collected.left_out == 3
    assert profile._collected.left_out > 0


def test_the_table_has_a_row_for_each_worker_and_the_sentence(two):
    function, arguments = cases()["two loops"]
    function(**arguments)
    with orion.profile() as profile:
        function(**arguments)
    text = str(profile)
    assert text.count("\n  worker 0") == text.count("\n  worker 1") == 2
    for word in ("compute", "wait", "transfer", "tiles", "driver", "workers run"):
        assert word in text
    assert " ".join(text.split()).endswith(profile.bottleneck.sentence)
    assert max(map(len, text.splitlines())) <= 110
