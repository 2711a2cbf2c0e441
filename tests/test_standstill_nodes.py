"""Workers on other nodes than the driver that are stopped: they are taken for lost as those of its own node are."""

import os
import re
import signal
import warnings

import numpy as np
import pytest

import orion
from orion.runtime.ray import standstill
from orion.runtime.ray.processes import have_ended
from tests.dying import send_in_the_middle
from tests.ray_nodes import session_on
from tests.runtime_programs import long_mix, mix
from tests.test_standstill import PLACE

pytestmark = [
    pytest.mark.all("test_standstill.py::test_a_stopped_worker_is_replaced"),
    pytest.mark.ray,
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def two_nodes():
    """A session whose second worker is on another node than the driver."""
    with session_on((1, 1), standstill=3.5) as session:
        mix(**long_mix(1))
        yield session


def test_a_worker_of_another_node_that_is_stopped_in_a_call(two_nodes, monkeypatch):
    """It is told of while it may still go on, and replaced when it does not; its node ends the process."""
    monkeypatch.setattr(standstill, "STILL", 0.4)
    mine, want, victim = long_mix(500), long_mix(500), two_nodes._backend._team.group.processes[1]
    with orion.session("serial"):
        mix(**want)
    send_in_the_middle(victim, (victim, signal.SIGSTOP))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mix(**mine)
    which = rf"process {victim} on node [0-9.]+"
    still = rf"worker 1 \({which}\) has done nothing for \d+ s: it was stopped by a signal; {PLACE}"
    lost = (
        rf"worker 1 died .*its {which} was stopped by a signal, and not told to go on; {PLACE}\); the call of `mix` is"
    )
    assert [sum(bool(re.match(one, str(found.message))) for found in told) for one in (still, lost)] == [1, 1]
    np.testing.assert_array_equal(mine["W"], want["W"])
    np.testing.assert_array_equal(mine["H"].to_numpy(), want["H"].to_numpy())
    assert have_ended([victim], 10.0)


def test_a_worker_of_another_node_that_is_stopped_between_two_calls_is_replaced_without_a_word(two_nodes):
    victim, mine, want = two_nodes._backend._team.group.processes[1], long_mix(3), long_mix(3)
    with orion.session("serial"):
        mix(**want)
    os.kill(victim, signal.SIGSTOP)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mix(**mine)
    np.testing.assert_array_equal(mine["W"], want["W"])
    assert have_ended([victim], 10.0)
