"""`orion.profile` on Ray actors: results keep their bits, actors send their times, a slow one is found."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import orion
from orion.inspect.profiles.bottleneck import Kind
from tests.dying import kill_in_the_middle
from tests.ray_nodes import session_on
from tests.runtime_programs import NAMES, assert_same, cases, divides, outcome
from tests.trials import one_in

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


@orion.parallel_for
def heavy(a, rounds):
    for i in range(a.shape[0]):
        value = a[i]
        for _ in range(rounds):
            value = np.sin(value) + 0.5
        a[i] = value


@pytest.fixture(scope="module")
def expected():
    with orion.session("serial"):
        return {name: outcome(name) for name in NAMES}


@pytest.fixture(scope="module")
def actors():
    with orion.session("ray", 2, force_parallel=True) as session:
        yield session


@pytest.fixture(scope="module")
def nodes():
    """A session over two nodes, the first of which is the driver's."""
    with session_on((1, 1)) as session:
        yield session


@pytest.mark.parametrize("name", NAMES)
def test_results_of_actors_are_those_without_a_profile(name, actors, expected):
    with orion.profile() as profile:
        for _ in range(3):
            assert_same(outcome(name), expected[name])
    assert {one.worker for one in profile.numbers.workers} == {0, 1}
    tiles = sum(loop.label.tiles * loop.rounds for loop in profile.numbers.loops)
    assert sum(loop.runs for loop in profile.numbers.loops) == tiles
    for one in profile.numbers.workers:
        assert 0 <= one.compute <= one.total <= profile.numbers.wall


def test_what_is_copied_to_actors_is_counted(actors):
    function, arguments = cases()["rotated"]
    with orion.profile() as profile:
        function(**arguments)
    size = arguments["W"].nbytes + arguments["H"].nbytes
    assert profile.numbers.copied == 2 * size
    assert profile.numbers.copying > 0
    assert profile.numbers.sent == 0
    assert function.last_run.bytes_moved == 2 * size


def test_an_error_in_an_actor_leaves_its_times(actors):
    with orion.profile() as profile, pytest.raises(ZeroDivisionError):
        divides(np.ones(50_000), 5)
    assert profile.numbers.failed == 1
    assert profile.numbers.workers


@pytest.mark.timing
def test_a_stopped_and_continued_actor_is_the_slow_worker(actors):
    """One actor has its core only for a third of the time."""
    a = np.random.default_rng(2).random(200_000)
    heavy(a, 100)
    process = actors._backend._team.group.processes[1]
    is_over = threading.Event()

    def hinder():
        while not is_over.is_set():
            os.kill(process, signal.SIGSTOP)
            time.sleep(0.02)
            os.kill(process, signal.SIGCONT)
            time.sleep(0.01)

    hindering = threading.Thread(target=hinder)
    hindering.start()
    try:
        with orion.profile() as profile:
            for _ in range(3):
                heavy(a, 300)
    finally:
        is_over.set()
        hindering.join()
        os.kill(process, signal.SIGCONT)
    found = profile.bottleneck
    assert found.kind is Kind.WORKER, str(profile)
    shares = {one.worker: one.cpu / one.compute for one in profile.numbers.loops[0].workers}
    assert shares[1] < 0.75
    assert shares[1] < shares[0]


@pytest.mark.timing
def test_large_arguments_for_little_work_are_a_slow_link(actors):
    @orion.parallel_for
    def touch(a):
        for i in range(a.shape[0]):
            a[i] += 1

    a = np.zeros(10_000_000, np.int64)
    touch(a)
    for _attempt in range(3):  # a machine that is busy with other things has other bottlenecks
        with orion.profile() as profile:
            for _ in range(3):
                touch(a)
        assert profile.numbers.copied == 6 * a.nbytes
        assert profile.numbers.copying > 0
        if profile.bottleneck.kind is Kind.LINK:
            break
    else:
        pytest.fail(str(profile))


@pytest.mark.all("test_runtime_ray.py::test_a_run_whose_worker_dies_is_done_again")
def test_a_call_that_is_done_again_is_in_it_once(actors):
    """The times are those of the workers that have done it."""
    a = np.random.default_rng(2).random(100_000)
    expected = a.copy()
    with orion.session("threads", 1):
        heavy(expected, 1000)
    heavy(np.ones(100_000), 2)
    heavy.plan(a, 1000)
    with orion.profile() as profile:
        killing = kill_in_the_middle(actors._backend._team.group.processes[1])
        with pytest.warns(orion.WorkerReplacedWarning, match="is done again"):
            heavy(a, 1000)
    killing.join()
    np.testing.assert_array_equal(a, expected)
    assert (profile.numbers.calls, profile.numbers.failed) == (1, 0)
    (loop,) = profile.numbers.loops
    assert loop.runs == loop.label.tiles


@pytest.mark.all("test_an_error_in_an_actor_leaves_its_times")
def test_ctrl_c_leaves_what_the_driver_has_measured(actors):
    a = np.random.default_rng(2).random(200_000)
    heavy(a[:1000], 2)
    heavy.plan(a, 3_000)
    threading.Timer(0.7, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt), orion.profile() as profile:
        heavy(a, 3_000)
    assert profile.numbers.failed == 1
    assert "1 of which raised" in str(profile)
    with orion.profile() as profile:
        heavy(a, 2)
    assert profile.numbers.calls == 1


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_results_of_nodes_are_those_without_a_profile(name, nodes, expected):
    with orion.profile() as profile:
        for _ in range(2):
            assert_same(outcome(name), expected[name])
    assert {one.worker for one in profile.numbers.workers} == {0, 1}
    if name == "rotated":
        assert profile.numbers.sent > 0
        assert profile.numbers.messages > 0
        assert "between nodes" in str(profile)
        assert any(one.transfer for one in profile.numbers.workers)
