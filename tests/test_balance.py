"""The rule by which tiles are dealt out anew between calls: seconds in, shares out."""

import numpy as np
import pytest

from orion.plan.deal import ByTimes, Even, dealt_by_times, owners, shares
from orion.runtime.balance import CALLS, COST, LEAST, MOST_CALLS, Balance, Measured


class Machine:
    """Workers that take the inverse of their speeds for a block; calls are dealt out as the rule says."""

    def __init__(self, blocks, workers, noise=0.0, work=None):
        self.balance, self.blocks, self.workers = Balance(), blocks, workers
        self.work = np.ones(blocks) if work is None else work
        self.deal, self.deals = Even(follows_times=True), 0
        self.random, self.noise = np.random.default_rng(3), noise

    def call(self, speeds):
        """Run a call, and return how long it took."""
        owner = owners(self.deal, self.blocks, self.workers, in_turn=False)
        seconds = np.bincount(owner, self.work) / speeds
        seconds = seconds * self.random.uniform(1 - self.noise, 1 + self.noise, self.workers)
        found = self.balance.note(Measured(np.bincount(owner)[None].astype(float), seconds[None]))
        if found is not None:
            self.deal = dealt_by_times(found, self.blocks, self.balance.calls + 1)
            self.deals += 1
        return seconds.max()


def test_a_slow_worker_gets_less_after_a_few_calls_and_all_again_when_it_is_fast():
    machine = Machine(32, 2)
    slow = np.array([1.0, 0.5])
    assert [machine.call(slow) for _ in range(CALLS + 1)] == [32.0] * CALLS + [22.0]
    assert machine.deal == ByTimes((22, 10), (1.0, 0.5), CALLS + 1)
    for _ in range(5):
        machine.call(slow)
    assert machine.deals == 1
    taken = [machine.call(np.ones(2)) for _ in range(8 * CALLS)]
    assert taken[0] == 22
    assert taken[-1] == 16
    assert machine.deal == Even(follows_times=True)


def test_four_workers_of_four_speeds():
    machine = Machine(64, 4)
    speeds = np.array([1.0, 0.8, 0.5, 0.25])
    for _ in range(CALLS):
        machine.call(speeds)
    assert machine.call(speeds) <= 64 / speeds.sum() * 1.1


def test_work_that_is_uneven_is_dealt_out_too():
    machine = Machine(64, 2, work=np.linspace(0.1, 2, 64))
    taken = [machine.call(np.ones(2)) for _ in range(40)]
    best = machine.work.sum() / 2
    assert taken[0] > 1.4 * best
    assert taken[-1] < best / (1 - LEAST)


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_noise_moves_nothing(noise):
    machine = Machine(32, 4, noise)
    for _ in range(500):
        machine.call(np.ones(4))
    assert machine.deals == 0


def test_a_call_that_was_disturbed_moves_nothing():
    machine = Machine(32, 2)
    for call in range(100):
        machine.call(np.array([1.0, 0.3 if call % CALLS == 0 else 1.0]))
    assert machine.deals == 0


def test_a_worker_whose_speed_goes_up_and_down_is_followed_ever_more_seldom():
    machine = Machine(32, 2)
    for call in range(400):
        machine.call(np.array([1.0, 0.4 if call // (CALLS + 1) % 2 else 1.0]))
    assert machine.deals < 4
    for speed in (1.0, 0.4, 1.0):  # it stays what it is for longer: all is as before
        taken = [machine.call(np.array([1.0, speed])) for _ in range(2 * MOST_CALLS)]
        assert taken[-1] < 32 / (1 + speed) * 1.1


def test_nothing_is_dealt_out_anew_for_less_than_that_costs():
    machine = Machine(32, 2)
    machine.work = machine.work * 1e-4  # 1.6 ms a call, and 1.07 ms when dealt out well
    slow = np.array([1.0, 0.5])
    calls = 0
    while not machine.deals:
        machine.call(slow)
        calls += 1
    assert calls == pytest.approx(COST / (3.2e-3 - 2.2e-3), rel=0.05)


def test_what_costs_more_to_deal_out_must_have_lost_more():
    machine = Machine(32, 2)
    machine.balance.cost = 95.0  # 10 are lost in each call
    calls = [machine.call(np.array([1.0, 0.5])) for _ in range(12)]
    assert calls == [32.0] * 10 + [22.0] * 2


def test_blocks_too_large_to_help_stay_where_they_are():
    machine = Machine(2, 2)
    for _ in range(50):
        machine.call(np.array([1.0, 0.3]))
    assert machine.deals == 0


def test_a_worker_that_has_measured_nothing_says_nothing():
    balance = Balance()
    for _ in range(10):
        assert balance.note(Measured(np.array([[4.0, 4.0]]), np.array([[1.0, 0.0]]))) is None


def test_calls_that_run_other_loops_are_not_added_up():
    """An `if` may decide which loops run: those of one kind in a row say something."""
    balance = Balance()
    one = Measured(np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]))
    both = Measured(np.array([[4.0, 4.0], [8.0, 8.0]]), np.array([[1.0, 3.0], [2.0, 6.0]]))
    assert [balance.note(found) for found in (one, one, both, both, one, one)] == [None] * 6
    assert balance.note(one) == pytest.approx((1.0, 1 / 3))


def test_loops_of_a_program_have_one_speed_of_each_worker():
    tiles = np.array([[4.0, 4.0], [2.0, 2.0]])
    found = Measured(tiles, np.array([[4.0, 8.0], [1.0, 2.0]]))
    np.testing.assert_allclose(found.speeds, [1.0, 0.5])
    assert found.saved() == pytest.approx((8 - 6) + (2 - 1.5))  # 6 and 2 blocks of the one, 3 and 1 of the other
    assert found.saved() > LEAST * found.longest


@pytest.mark.parametrize("blocks", [4, 7, 8, 32])
@pytest.mark.parametrize("speeds", [(1.0, 1.0, 1.0), (1.0, 0.5, 0.25), (1.0, 1.0, 1e-9)])
def test_no_other_shares_are_done_earlier(blocks, speeds):
    def time(counts):
        return max(count / speed for count, speed in zip(counts, speeds, strict=True))

    found = shares(speeds, blocks)
    assert sum(found) == blocks
    assert min(found) >= 1
    for first in range(1, blocks - 1):
        for second in range(1, blocks - first):
            assert time(found) <= time((first, second, blocks - first - second)) * (1 + 1e-12)


@pytest.mark.parametrize("in_turn", [False, True])
def test_owners_have_their_shares(in_turn):
    deal = ByTimes((3, 1, 4), (0.75, 0.25, 1.0), 4)
    found = owners(deal, 8, 3, in_turn=in_turn)
    assert np.bincount(found).tolist() == [3, 1, 4]
    assert (np.diff(found) >= 0).all() != in_turn
    even = owners(Even(follows_times=True), 8, 2, in_turn=in_turn)
    assert owners(deal, 8, 2, in_turn=in_turn).tolist() == even.tolist()  # it is one for three workers
