"""Kills, most of them at random moments (`tests.kill`): the results are those of a run in which nobody dies.
And programs that end, of which nothing is left (`tests.ended_programs`)."""

import random

import pytest

from tests.ended_programs import end_of
from tests.kill import SHARES, all_kills, counted
from tests.killed_driver import driver_kills
from tests.ray_nodes import SOON
from tests.trials import ALL

pytestmark = [
    pytest.mark.all("test_nothing_is_left_of_a_program_that_ends", "test_kills_are_shared_out_among_the_kinds"),
    pytest.mark.ray,
    pytest.mark.timeout(300),
]


def test_no_kill_of_a_worker_changes_a_result():
    """Where calls take less time than one did before, on a machine that others use, all kills may come after them."""
    counts = {"worker": 3, "again": 1, "idle": 2} if ALL else {"worker": 2, "again": 1, "idle": 1}
    for seed in (1, 2, 3):
        found = [one for _, _, lives in all_kills(counts, seed) for one in lives]
        assert [one.wrong for one in found] == [""] * sum(counts.values())
        if any(one.is_inside for one in found):
            return
    pytest.fail("no kill came while a call ran")


def test_no_kill_on_another_node_or_of_that_node_changes_a_result():
    counts = {"elsewhere": 1, "node": 1, "idle_there": 2 if ALL else 1}
    found = [one for _, _, lives in all_kills(counts, 1, SOON) for one in lives]
    assert [one.wrong for one in found] == [""] * sum(counts.values())


def test_drivers_that_are_killed_while_they_write_a_checkpoint_are_followed_by_one_that_goes_on():
    _, lives = driver_kills("threads", 4, random.Random(1))
    assert [wrong for *_, wrong in lives] == [""] * 4
    assert any(is_inside for _, is_inside, _, _ in lives)


@pytest.mark.parametrize("how", ["shutdown", "interrupt", "kill"])
def test_nothing_is_left_of_a_program_that_ends(how):
    assert end_of(how, None).told == ""


def test_kills_are_shared_out_among_the_kinds():
    assert counted(sum(SHARES.values()), [*SHARES]) == SHARES
    assert counted(10, ["worker", "node"]) == {"worker": 7, "node": 3}
