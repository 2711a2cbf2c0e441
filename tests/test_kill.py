"""Ten kills of workers at random moments (`tests.kill`): the results are those of a run in which nobody dies."""

import random

import pytest

from tests.kill import PROGRAMS, kills

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_no_kill_changes_a_result(program):
    _, found = kills(program, 5, 2, random.Random(1))
    assert [one.wrong for one in found] == [""] * 5
    assert any(one.is_again for one in found)
