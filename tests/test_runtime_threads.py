"""Programs on threads: the same result on any number of workers, errors and interruptions that leave the
session usable.
"""

import re
import signal
import sys
import threading
import time

import numpy as np
import pytest

import orion
from tests.runtime_programs import NAMES, assert_same, cases, divides, gather, integers, mix, outcome


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_workers_gives_the_serial_result(name):
    with orion.session("serial", force_parallel=True):
        expected = outcome(name)
    for workers in (1, 2, 3, 4):
        with orion.session("threads", workers, force_parallel=True):
            assert_same(outcome(name), expected)


@pytest.mark.parametrize("name", ["wavefront", "stencil", "sums"])
def test_ordered_loops_give_what_python_gives(name):
    function, arguments = cases()[name]
    undecorated = {key: np.array(value) if np.ndim(value) else value for key, value in arguments.items()}
    expected = function.serial(**undecorated)
    with orion.session("threads", 3, force_parallel=True):
        assert function(**arguments) == expected
    for key, value in undecorated.items():
        np.testing.assert_array_equal(arguments[key], value)


def test_many_short_runs_in_a_row():
    with orion.session("serial"):
        expected = integers(60)
        _mix(expected, rounds=300)
    with orion.session("threads", 3, force_parallel=True):
        W = integers(60)
        H, R = integers(40), cases()["rotated"][1]["R"]
        for _ in range(300):
            mix(R, W, H, 1, 5)
    np.testing.assert_array_equal(W, expected)


def _mix(W, rounds):
    mix(cases()["rotated"][1]["R"], W, integers(40), rounds, 5)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_subscript_out_of_bounds_is_the_caller_s_error(workers):
    a, out, index = np.arange(100.0), np.zeros(10_000), np.zeros(10_000, np.int64)
    index[[5_000, 9_000]] = 100, -101
    with orion.session("threads", workers, force_parallel=True):
        with pytest.raises(orion.OutOfBoundsError, match=r"(?s)(100|-101).*`a`.*out\[i\] = a\[index\[i\]\]"):
            gather(a, index, out)
        index[:] = 99
        gather(a, index, out)
    assert set(out) == {99.0}


def test_an_error_between_loops_is_raised_once_and_leaves_the_pool_usable():
    with orion.session("threads", 4, force_parallel=True):
        a = np.zeros(1000)
        with pytest.raises(ZeroDivisionError):
            divides(a, 4)
        assert divides(a, 2) == -0.5


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_at_the_next_tile(workers):
    """Enough rounds for minutes; the signal comes after a fraction of a second."""
    arguments = cases()["rotated"][1] | {"rounds": 50_000_000}
    with orion.session("threads", workers, force_parallel=True):
        mix(**(arguments | {"rounds": 1}))
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            mix(**arguments)
        assert time.monotonic() - start < 30
        assert_same(outcome("two loops"), outcome("two loops"))


def own_threads(before=()):
    """The workers' threads, without those that were there `before`: earlier tests may have left some, or they end."""
    found = [thread for thread in threading.enumerate() if re.fullmatch(r"orion-\d+", thread.name)]
    return [thread for thread in found if thread not in before]


def test_only_the_threads_that_plans_use_are_started():
    few, more, before = np.zeros(3), np.zeros(100), own_threads()
    with orion.session("threads", 1000):
        divides(few, 2)  # too short to be shared out
        assert own_threads(before) == []
    with orion.session("threads", 5, force_parallel=True):
        divides(few, 2)
        assert len(own_threads(before)) == 2
        divides(more, 2)
        assert len(own_threads(before)) == 4
        divides(few, 2)
    assert few.tolist() == [-4.5] * 3
    assert set(more) == {-1.5}


def test_a_system_that_starts_no_more_threads_is_told_of(monkeypatch):
    def refused(*_):
        raise RuntimeError("can't start new thread")

    with orion.session("threads", 3, force_parallel=True):
        with monkeypatch.context() as patch:
            patch.setattr("orion.runtime.threads.pool.OwnThread", refused)
            with pytest.raises(orion.ArgumentError, match=r"(?s)cannot start 3 threads.*can't start new thread, aft"):
                outcome("sums")
        assert_same(outcome("rotated"), outcome("rotated"))


def test_callers_in_several_threads_take_turns():
    with orion.session("threads", 2, force_parallel=True):
        expected, results = outcome("rotated"), []
        callers = [threading.Thread(target=lambda: results.append(outcome("rotated"))) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert len(results) == 4
    for result in results:
        assert_same(result, expected)


def test_ending_the_session_from_another_thread_waits_for_the_loop():
    arguments = cases()["rotated"][1] | {"rounds": 20_000}
    expected = cases()["rotated"][1] | {"rounds": 20_000}
    with orion.session("threads", 2, force_parallel=True):
        mix(**(arguments | {"rounds": 1, "W": integers(60), "H": integers(40)}))
        caller = threading.Thread(target=mix, kwargs=arguments, daemon=True)
        caller.start()
        time.sleep(0.1)
        orion.shutdown()
        caller.join(60)
        assert not caller.is_alive()
    with orion.session("serial"):
        mix(**expected)
    np.testing.assert_array_equal(arguments["W"], expected["W"])


def test_arrays_are_changed_in_place_and_not_kept():
    W = integers(60)
    with orion.session("threads", 2, force_parallel=True):
        references = sys.getrefcount(W)
        mix(cases()["rotated"][1]["R"], W, integers(40), 1, 5)
        assert sys.getrefcount(W) == references
    assert not np.array_equal(W, integers(60))
