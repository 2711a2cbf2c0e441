"""`orion.scale` while a call is under way: other workers go on at a round's end, with the same bits."""

import signal
import threading
import time

import numpy as np
import pytest

import orion
from orion.runtime import prepared
from orion.runtime.threads.elastic import ElasticRun, Stop
from orion.runtime.threads.pool import Pool
from tests.runtime_programs import cases, divides, in_two_layouts, integers, mix, mix_and_sum, smooth, sums, tensor


@orion.parallel_for
def waves(A, rounds):
    """A wavefront in each round, and something between them."""
    most = 0
    for t in range(rounds):
        for i in range(1, A.shape[0]):
            for j in range(1, A.shape[1]):
                A[i, j] = (A[i, j] + 3 * A[i - 1, j] + A[i, j - 1] + most) % 1009
        for i in range(A.shape[0]):
            most = max(most, A[i, t % 50])
    return most


@orion.parallel_for(schedule="dynamic")
def taken(A, rounds):
    for _ in range(rounds):
        for i in range(A.shape[0]):
            for j in range(1, A.shape[1]):
                A[i, j] = (A[i, j] * 3 + A[i, j - 1]) % 1009
        for j in range(A.shape[1]):
            A[0, j] += A[1, j]


@orion.parallel_for
def counted(bins, keys, rounds):
    """A loop that adds to copies of an array."""
    for t in range(rounds):
        for k in range(keys.shape[0]):
            bins[keys[k]] += t
        for k in range(bins.shape[0]):
            bins[k] = bins[k] % 1009


def arguments(name):
    generator = np.random.default_rng(5)
    R, T = cases()["rotated"][1]["R"], cases()["tensor"][1]["T"]
    return {
        "rotated": (mix, (R, integers(60), integers(40), 20, 5)),
        "rotated, and sums": (mix_and_sum, (R, integers(60), integers(40), 12)),
        "two layouts": (in_two_layouts, (R, integers(60), integers(40), 12)),
        "tensor": (tensor, (T, integers(20), integers(16), integers(12), 12)),
        "wavefront": (waves, (integers(60, 50), 12)),
        "dynamic": (taken, (integers(60, 50), 300)),
        "copies": (counted, (np.zeros(2000, np.int64), generator.integers(0, 2000, 20_000), 12)),
        "sums": (sums, (integers(700), 12)),
        "compiled rounds": (smooth, (integers(500), integers(500, seed=6), 2000)),
    }[name]


NAMES = (
    "rotated", "rotated, and sums", "two layouts", "tensor", "wavefront", "dynamic", "copies", "sums",
    "compiled rounds",
)  # fmt: skip


@pytest.fixture
def scaled_to(monkeypatch):
    """Has `orion.scale` called when worker 0 comes to its third step, as by a signal handler, and again when those
    workers have come that were asked for before."""

    def scaled(counts):
        look, left, steps = ElasticRun.look, list(counts), [0]

        def looking(run):
            steps[0] += 1
            if left and steps[0] > 2 and run.loaded.workers == run.asked_last:
                orion.scale(left.pop(0))
            look(run)

        monkeypatch.setattr(ElasticRun, "look", looking)

    return scaled


def outcome(function, given):
    with np.errstate(over="ignore"):
        found = function(*given)
    return found, [np.asarray(one).tolist() for one in given if isinstance(one, np.ndarray)]


def workers_of(function):
    return [workers for _, workers in function.last_run.worker_counts]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counts", [(2, 4, 1), (4, 1, 3)])
def test_bits_are_those_of_one_worker(name, counts, scaled_to):
    function, given = arguments(name)
    with orion.session("threads", 1, force_parallel=True):
        expected = outcome(function, given)
    function, given = arguments(name)
    scaled_to(counts[1:])
    with orion.session("threads", counts[0], force_parallel=True) as session:
        assert outcome(function, given) == expected
        assert session.workers == counts[2]
    assert workers_of(function) == list(counts)


@pytest.mark.parametrize("name", ["rotated", "rotated, and sums", "copies", "sums"])
def test_a_call_that_began_on_one_worker(name, scaled_to, monkeypatch):
    """Its loops are shared out where they are cut into blocks, and would not be too short for it."""
    function, given = arguments(name)
    scaled_to([3])
    with orion.session("threads", 1, force_parallel=True):
        expected = outcome(function, given)
    assert workers_of(function) == [1]
    monkeypatch.setattr(prepared, "is_short", lambda plan: False)
    function, given = arguments(name)
    scaled_to([3, 2])
    with orion.session("threads", 1, force_parallel=True):
        assert outcome(function, given) == expected
    assert workers_of(function) == [1, 3, 2]


@pytest.mark.parametrize("name", ["wavefront", "dynamic", "sums", "compiled rounds"])
def test_they_are_those_of_the_undecorated_function(name, scaled_to):
    function, given = arguments(name)
    expected = outcome(function.serial, given)
    function, given = arguments(name)
    scaled_to([4, 1])
    with orion.session("threads", 2, force_parallel=True):
        assert outcome(function, given) == expected
    assert workers_of(function) == [2, 4, 1]


@pytest.mark.parametrize("name", ["rotated", "wavefront", "dynamic"])
def test_in_the_middle_of_training_in_several_calls(name, scaled_to):
    function, given = arguments(name)
    with orion.session("threads", 1, force_parallel=True):
        expected = [outcome(function, given) for _ in range(4)]
    function, given = arguments(name)
    found, workers = [], []
    with orion.session("threads", 2, force_parallel=True):
        for number in range(4):
            if number == 1:
                scaled_to([4])
            elif number == 3:
                orion.scale(1)
            found.append(outcome(function, given))
            workers.append(workers_of(function))
    assert found == expected
    assert workers == [[2], [2, 4], [4], [1]]


def long_call():
    return integers(900, 900), 60


def test_another_thread_scales(monkeypatch):
    """It does not wait: the call goes on with other workers."""
    given, expected = long_call(), long_call()
    look, has_begun = ElasticRun.look, threading.Event()
    with orion.session("threads", 1):
        waves(*expected)
    with orion.session("threads", 2, force_parallel=True) as session:
        monkeypatch.setattr(ElasticRun, "look", lambda run: (has_begun.set(), look(run)))
        runner = threading.Thread(target=waves, args=given)
        runner.start()
        assert has_begun.wait(60)
        for workers in (4, 1, 3):
            time.sleep(0.05)
            orion.scale(workers)
            assert session.workers == workers
        runner.join()
    np.testing.assert_array_equal(given[0], expected[0])
    counts = waves.last_run.worker_counts
    assert counts[0] == (0.0, 2)
    assert [at for at, _ in counts] == sorted(at for at, _ in counts)


def test_a_signal_handler_scales():
    given, expected = long_call(), long_call()
    with orion.session("threads", 1):
        waves(*expected)
    before = signal.signal(signal.SIGALRM, lambda *_: orion.scale(3))
    try:
        with orion.session("threads", 2, force_parallel=True) as session:
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            waves(*given)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert session.workers in (2, 3)  # 2 where the call was over before
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(given[0], expected[0])


@pytest.mark.parametrize("at", ["grow", "wait", "change", "_give"])
@pytest.mark.parametrize("is_after", [False, True])
def test_ctrl_c_while_it_scales(at, is_after, scaled_to, monkeypatch):
    scaled_to([4])
    function, given = arguments("wavefront")
    original, seen = getattr(Pool, at), []

    def interrupted(pool, *others):
        seen.append(at)
        if is_after:
            original(pool, *others)
        if len(seen) == 2 or at == "change":
            raise KeyboardInterrupt
        if not is_after:
            original(pool, *others)

    with orion.session("threads", 2, force_parallel=True):
        monkeypatch.setattr(Pool, at, interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(*given)
        monkeypatch.setattr(Pool, at, original)
        function, given = arguments("wavefront")
        expected = outcome(function.serial, arguments("wavefront")[1])
        assert outcome(function, given) == expected


def test_an_error_after_it_has_scaled(scaled_to):
    scaled_to([4])
    with orion.session("threads", 2, force_parallel=True):
        with pytest.raises(ZeroDivisionError):
            divides(np.zeros(1000), 9)  # in its seventh round
        function, given = arguments("sums")
        assert outcome(function, given) == outcome(function.serial, arguments("sums")[1])


def test_a_subscript_outside_after_it_has_scaled(scaled_to):
    @orion.parallel_for
    def through(a, b, at, rounds):
        for t in range(rounds):
            for i in range(a.shape[0]):
                b[i] = a[at[i] + (t // 7) * 500]
            for i in range(a.shape[0]):
                a[i] = b[i] + 1

    a, b = np.zeros(1000), np.zeros(1000)
    scaled_to([4])
    with orion.session("threads", 2, force_parallel=True), pytest.raises(orion.OutOfBoundsError):
        through(a, b, np.arange(1000), 12)


def test_no_threads_for_so_many_workers_leaves_those_that_there_are(scaled_to, monkeypatch):
    scaled_to([4])
    function, given = arguments("wavefront")
    grow = Pool.grow

    def failing(pool, members):
        if members == 4:
            raise orion.ArgumentError("this process cannot start 4 threads")
        grow(pool, members)

    monkeypatch.setattr(Pool, "grow", failing)
    with orion.session("threads", 2, force_parallel=True):
        assert outcome(function, given) == outcome(function.serial, arguments("wavefront")[1])
        assert workers_of(function) == [2]
        with pytest.raises(orion.ArgumentError, match="cannot start 4 threads"):
            function(*given)


def test_workers_leave_at_one_place():
    """However far each has come when it is chosen, and whatever number of rounds it begins at once."""
    for seed in range(20):
        stop, done = Stop(4), [0] * 4

        def go(worker, stop=stop, done=done, seed=seed):
            generator = np.random.default_rng([seed, worker])
            while (count := stop.begin(worker, int(generator.integers(1, 9)))) > 0:
                done[worker] += count

        threads = [threading.Thread(target=go, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.001)
        stop.settle()
        for thread in threads:
            thread.join(10)
        assert len(set(done)) == 1
