"""Ten kills at random moments (`tests.kill`): the results are those of a run in which nobody dies. Of nodes that
die, which Ray takes 16 s to see, there are two in `test_runtime_ray_clusters.py`."""

import random

import pytest

from tests.kill import SHARES, all_kills, counted
from tests.killed_driver import driver_kills

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


@pytest.mark.parametrize("counts", [{"worker": 3, "again": 1}, {"elsewhere": 2}], ids="+".join)
def test_no_kill_changes_a_result(counts):
    found = [one for _, _, lives in all_kills(counts, 1) for one in lives]
    assert [one.wrong for one in found] == [""] * sum(counts.values())
    assert any(one.is_inside for one in found)


def test_drivers_that_are_killed_while_they_write_a_checkpoint_are_followed_by_one_that_goes_on():
    _, lives = driver_kills("threads", 4, random.Random(1))
    assert [wrong for *_, wrong in lives] == [""] * 4
    assert any(is_inside for _, is_inside, _, _ in lives)


def test_kills_are_shared_out_among_the_kinds():
    assert counted(100, [*SHARES]) == SHARES
    assert counted(10, ["worker", "node"]) == {"worker": 7, "node": 3}
