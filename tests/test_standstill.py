"""Workers that stand still: stopped ones are taken for lost, and the call is done again; others are warned of."""

import os
import signal
import time
import warnings

import numpy as np
import pytest

import orion
from orion.kernel.calling import FLAG_STRIDE
from orion.runtime.memory import allocate_run_memory, place_of
from orion.runtime.ray import standstill
from orion.runtime.ray.looks import Here
from orion.runtime.ray.processes import have_ended
from orion.runtime.ray.standstill import Standstill
from tests.dying import send_in_the_middle
from tests.runtime_programs import long_mix, mix

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


LONG = 1_000
"""Rounds that take workers a second."""


@pytest.fixture(scope="module")
def two_actors():
    with orion.session("ray", 2, force_parallel=True, standstill=3.5) as session:
        mix(**long_mix(1))
        yield session


@pytest.fixture(scope="module")
def expected():
    arrays = long_mix(LONG)
    with orion.session("serial"):
        mix(**arrays)
    return arrays


PLACE = r"it is in tile \d+ of the loop over i, j in line \d+ of `mix`, round \d+"


def test_a_stopped_worker_is_replaced(two_actors, expected):
    mine, victim = long_mix(LONG), two_actors._backend._team.group.processes[1]
    send_in_the_middle(victim, (victim, signal.SIGSTOP))
    told = rf"worker 1 died .*its process {victim} was stopped by a signal, and not told to go on; {PLACE}"
    with pytest.warns(orion.WorkerReplacedWarning, match=told):
        mix(**mine)
    np.testing.assert_array_equal(mine["W"], expected["W"])
    np.testing.assert_array_equal(mine["H"].to_numpy(), expected["H"].to_numpy())
    assert have_ended([victim], 0.0)


@pytest.mark.all("test_a_stopped_worker_is_replaced")
def test_one_that_is_stopped_while_the_other_dies(two_actors, expected):
    mix(**long_mix(1))
    mine, (dead, stopped) = long_mix(LONG), two_actors._backend._team.group.processes
    send_in_the_middle(stopped, (stopped, signal.SIGSTOP), (dead, signal.SIGKILL))
    with pytest.warns(orion.WorkerReplacedWarning, match="worker 0 died"):
        mix(**mine)
    np.testing.assert_array_equal(mine["W"], expected["W"])


def test_one_that_goes_on_soon_enough_is_left_alone(two_actors, expected):
    mix(**long_mix(1))
    mine, victim = long_mix(LONG), two_actors._backend._team.group.processes[1]
    send_in_the_middle(victim, (victim, signal.SIGSTOP), (victim, signal.SIGCONT), apart=1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mix(**mine)
    assert two_actors._backend._team.group.processes[1] == victim
    np.testing.assert_array_equal(mine["W"], expected["W"])


def test_one_that_does_nothing_is_warned_of_with_its_place(two_actors, expected, monkeypatch):
    mix(**long_mix(1))
    monkeypatch.setattr(standstill, "STILL", 0.4)
    mine, victim = long_mix(LONG), two_actors._backend._team.group.processes[1]
    send_in_the_middle(victim, (victim, signal.SIGSTOP), (victim, signal.SIGCONT), apart=2.5)
    told = rf"worker 1 \(process {victim}\) has done nothing for \d+ s: it was stopped by a signal; {PLACE}"
    with pytest.warns(orion.StandstillWarning, match=told) as found:
        mix(**mine)
    assert found[0].filename == __file__
    assert sum(str(one.message).startswith("worker 1") for one in found) == 1
    np.testing.assert_array_equal(mine["W"], expected["W"])


def test_where_a_worker_is():
    arguments = long_mix(3)
    prepared = mix._preparations.plain.prepare(arguments, 2, True).program
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
    monkeypatch.setattr(standstill, "LOOK_SECONDS", 0.0)
    look, end = Standstill([Here({0: os.getpid()})], 0.2, lambda _: ""), time.monotonic() + 1.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while time.monotonic() < end:
            assert look.stopped([0]) is None
    assert Standstill([Here({0: 2**22 + 1})], 0.2, lambda _: "").stopped([0]) is None
