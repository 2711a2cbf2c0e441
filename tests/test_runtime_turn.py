"""Whose turn it is to use the workers of a backend."""

import os
import signal
import threading

import pytest

from orion.errors import PlanError
from orion.runtime.turn import Turn


@pytest.fixture
def events():
    return []


@pytest.fixture
def turn(events):
    return Turn(lambda: events.append("end"), lambda: events.append("forget"))


def test_an_end_asked_for_by_another_thread_waits_for_the_run(turn, events):
    is_running, may_end = threading.Event(), threading.Event()

    def action():
        is_running.set()
        may_end.wait(10)
        events.append("ran")

    runner = threading.Thread(target=turn.run, args=(action,))
    runner.start()
    is_running.wait(10)
    closer = threading.Thread(target=turn.close)
    closer.start()
    closer.join(0.1)
    assert closer.is_alive()
    may_end.set()
    closer.join(10)
    runner.join(10)
    assert events == ["ran", "end"]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_an_end_asked_for_inside_of_a_run_comes_after_it(turn, events, error):
    """As by a signal handler: it must not wait for what it interrupts."""

    def action():
        turn.close()
        events.append("ran")
        if error:
            raise error

    if error:
        with pytest.raises(error):
            turn.run(action)
    else:
        turn.run(action)
    assert events == ["ran", "end"]
    assert turn.run(lambda: 5) == 5
    turn.close()
    assert events == ["ran", "end", "end"]


def test_a_run_inside_of_a_run_is_refused(turn):
    with pytest.raises(PlanError, match="while a loop runs"):
        turn.run(lambda: turn.run(lambda: None))
    assert turn.run(lambda: 5) == 5


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_off_in_the_middle_of_a_run_begins_anew(turn, events):
    is_running, may_end = threading.Event(), threading.Event()
    runner = threading.Thread(target=turn.run, args=(lambda: (is_running.set(), may_end.wait(20)),))
    runner.start()
    is_running.wait(10)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(10)
            assert turn.run(lambda: 5) == 5
            assert events == ["forget"]
            status = 0
        finally:
            os._exit(status)
    may_end.set()
    runner.join(10)
    assert os.waitpid(child, 0)[1] == 0
    assert events == []
