"""Workers that stand still: stopped ones are taken for lost, and the call is done again; others are warned of."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import orion
from orion.arrays.dense import array
from orion.kernel.calling import FLAG_STRIDE
from orion.runtime.memory import allocate_run_memory, place_of
from orion.runtime.ray import standstill
from orion.runtime.ray.standstill import Standstill
from tests.runtime_programs import cases, integers, mix

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]


def given(rounds):
    return cases()["rotated"][1] | {"H": array(integers(40)), "rounds": rounds}


@pytest.fixture(scope="module")
def two_actors():
    with orion.session("ray", 2, force_parallel=True) as session:
        mix(**given(1))
        yield session


@pytest.fixture(scope="module")
def expected():
    arrays = given(60_000)
    with orion.session("serial"):
        mix(**arrays)
    return arrays


def test_a_stopped_worker_is_replaced(two_actors, expected, monkeypatch):
    monkeypatch.setattr(standstill, "STOPPED_SECONDS", 2.0)
    mine, victim = given(60_000), two_actors._backend._team.group.processes[1]
    threading.Timer(0.3, os.kill, [victim, signal.SIGSTOP]).start()
    with pytest.warns(orion.WorkerReplacedWarning, match="worker 1 died"):
        mix(**mine)
    np.testing.assert_array_equal(mine["W"], expected["W"])
    np.testing.assert_array_equal(mine["H"].to_numpy(), expected["H"].to_numpy())
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)


def test_one_that_is_stopped_while_the_other_dies(two_actors, expected):
    mix(**given(1))
    mine, (dead, stopped) = given(60_000), two_actors._backend._team.group.processes
    for process, number in ((stopped, signal.SIGSTOP), (dead, signal.SIGKILL)):
        threading.Timer(0.3, os.kill, [process, number]).start()
    start = time.monotonic()
    with pytest.warns(orion.WorkerReplacedWarning, match="worker 0 died"):
        mix(**mine)
    assert time.monotonic() - start < 60
    np.testing.assert_array_equal(mine["W"], expected["W"])


def test_one_that_goes_on_soon_enough_is_left_alone(two_actors, expected):
    mix(**given(1))
    mine, victim = given(60_000), two_actors._backend._team.group.processes[1]
    for seconds, number in ((0.3, signal.SIGSTOP), (2.5, signal.SIGCONT)):
        threading.Timer(seconds, os.kill, [victim, number]).start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mix(**mine)
    assert two_actors._backend._team.group.processes[1] == victim
    np.testing.assert_array_equal(mine["W"], expected["W"])


def test_one_that_does_nothing_is_warned_of_with_its_place(two_actors, expected, monkeypatch):
    mix(**given(1))
    monkeypatch.setattr(standstill, "STILL_SECONDS", 2.0)
    mine, victim = given(60_000), two_actors._backend._team.group.processes[1]
    for seconds, number in ((0.3, signal.SIGSTOP), (6.0, signal.SIGCONT)):
        threading.Timer(seconds, os.kill, [victim, number]).start()
    told = r"worker 1 \(process \d+\) has done nothing for \d+ s: it was stopped by a signal; .* of `mix`"
    with pytest.warns(orion.StandstillWarning, match=told) as found:
        mix(**mine)
    assert found[0].filename == __file__
    assert sum(str(one.message).startswith("worker 1") for one in found) == 1
    np.testing.assert_array_equal(mine["W"], expected["W"])


def test_where_a_worker_is():
    arguments = given(3)
    prepared = mix._preparation.prepare(arguments, 2, True).program
    memory, (loop,) = allocate_run_memory(prepared), prepared.loops
    assert place_of(prepared, memory, 0) == "no tile of `mix` is done"
    where = f"the loop over i, j in line {loop.plan.nest.span.line} of `mix`"
    for tile in range(loop.schedule.tiles):
        memory.done[0][FLAG_STRIDE * tile] = 1
    assert place_of(prepared, memory, 1) == f"it has done its tiles of {where}"
    first, *_ = loop.schedule.order[0].tolist()
    memory.done[0][FLAG_STRIDE * first] = 2
    assert place_of(prepared, memory, 1) == f"it is in tile {loop.schedule.order[1][0]} of {where}, round 2"
    assert place_of(prepared, memory, 0) == f"it is in tile {loop.schedule.order[0][1]} of {where}, round 2"


def test_a_process_that_computes_is_never_told_of(monkeypatch):
    monkeypatch.setattr(standstill, "STILL_SECONDS", 0.5)
    monkeypatch.setattr(standstill, "LOOK_SECONDS", 0.0)
    look, end = Standstill({0: os.getpid()}, lambda _: ""), time.monotonic() + 1.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while time.monotonic() < end:
            assert look.stopped([0]) is None
    assert Standstill({0: 2**22 + 1}, lambda _: "").stopped([0]) is None
