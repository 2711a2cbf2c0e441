"""Updates between nodes of loops whose tiles wait for each other, with threads for workers and queues for the network,
some of them slow: none is later than was said, none is lost, and nobody waits for ever."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from orion.arrays.sending import AT_THE_BOUND
from orion.errors import Span
from orion.ir.function import Buffered
from orion.kernel.calling import (
    ACKED,
    ACKS,
    CLOCK_STRIDE,
    COUNT,
    NOTES_SIZE,
    PAST_ALL,
    ROUND,
    ROUND_BITS,
    WORKER,
    resting,
)
from orion.kernel.support.buffers import begin_tile, has_applied, may_begin
from orion.kernel.support.carried import set_acknowledged, set_clock
from orion.plan.relaxed import How, RelaxedArray
from orion.runtime.ray.acknowledged import Ack, Acknowledged, ack_in, ack_of
from tests.test_runtime_ray_meetings import Network
from tests.trials import TIMES

pytestmark = pytest.mark.timeout(120)

LATE = RelaxedArray(
    Buffered("late", "w", "late", (), (), (), None, 1, 8, False, AT_THE_BOUND, Span("f.py", 1, 0, 1, 1)), How.AT_ONCE, 1
)
"""Element v of the array says how many iterations worker v has made, by its own count, of which this node knows."""


ROUNDS = 2


class Loop:
    """What the workers of all nodes do, tile after tile; `made[v]` are the iterations of worker v, by its count."""

    def __init__(self, network, place, max_delay, tiles, rng, slow):
        self.nodes, self.place, self.max_delay, self.tiles = network.nodes, place, max_delay, tiles
        self.every = max(1, max_delay // 4)
        self.rng, self.slow = rng, slow
        self.too_late, self.all_wait = [], rng.random() < 0.5

    def look(self, worker, k):
        """Whether all updates that must be there are."""
        own = self.nodes[self.place[worker]].arrays["w"]
        for other, made in enumerate(self.made):
            needed = max((one for one in made if one <= k - self.max_delay), default=0) if other != worker else 0
            if own[other] < needed:
                self.too_late.append((worker, k, other, needed, int(own[other])))

    def tile(self, worker, round, iterations, delays):
        """False where the loop is to be left."""
        node, (every, max_delay) = self.nodes[self.place[worker]], (self.every, self.max_delay)
        notes, control, shown = node.notes[worker], node.memory.control[0], node.arrays["w"]
        before = int(notes[COUNT]) if notes[ROUND] == round else 0
        if not begin_tile(node.clocks, notes, round, every, max_delay, True, control):
            return False
        shown[worker] += notes[COUNT] - before  # those that it counts on from are no updates
        left = every
        for at in range(iterations):
            if left == 0:
                shown[worker] += every
                has_applied(node.clocks, notes, every, max_delay)
                if not may_begin(node.clocks, notes, every, max_delay, True, control):
                    return False
                left = every
            left -= 1
            time.sleep(delays[at])
            k = int(notes[COUNT]) + every - left
            self.look(worker, k)
            self.made[worker].append(k)
        shown[worker] += every - left
        has_applied(node.clocks, notes, every - left, max_delay)
        set_clock(node.clocks, worker, resting(round))
        return True

    def work(self, worker, rng):
        """All rounds of a worker."""
        for round in range(ROUNDS):
            self.nodes[self.place[worker]].ready.wait()
            if not self.go_round(worker, round, rng):
                return
            set_clock(self.nodes[self.place[worker]].clocks, worker, (round + 1) << ROUND_BITS)
            self.nodes[self.place[worker]].ready.wait()

    def go_round(self, worker, round, rng):
        """Each tile waits for the one before of the next worker, as blocks that go from worker to worker do, or of all
        workers. False where the loop is to be left."""
        neighbour = (worker + 1) % len(self.place)
        awaited = self.ended if self.all_wait else [self.ended[neighbour]]
        for at, iterations in enumerate(self.tiles[worker]):
            for ended in awaited:
                if 0 < at <= len(ended):
                    ended[at - 1].wait()
            time.sleep(rng.random() * self.slow)
            if not self.tile(worker, round, iterations, rng.random(iterations) * self.slow * (rng.random() < 0.5)):
                return False
            self.ended[worker][at].set()
        return True

    def begin(self):
        """Nobody has made an iteration of a round."""
        self.made = [[] for _ in self.place]
        self.ended = [[threading.Event() for _ in own] for own in self.tiles]
        for node in self.nodes:
            node.arrays["w"][:] = 0


def has_all(loop):
    """Whether the home node has all updates of a round, and nobody has made another number of iterations."""
    counts = [max(own.arrays["w"][v] for own in loop.nodes) for v in range(len(loop.place))]
    assert loop.nodes[0].arrays["w"].tolist() == counts
    for own, count, made in zip(loop.tiles, counts, loop.made, strict=True):
        assert len(made) == sum(own)
        assert made == sorted(set(made))
        assert count >= len(made)


def run(place, max_delay, tiles, rng, slow):
    """The loop when it is over; `slow` are how many seconds messages and iterations take at most."""
    network = Network(place, rng, slow[0])
    try:
        loop = Loop(network, place, max_delay, tiles, rng, slow[1])
        relaxed = SimpleNamespace(arrays=(LATE,), max_delay=max_delay)
        plan = SimpleNamespace(relaxed=relaxed, counts_on=True)
        threads = []
        for number, node in enumerate(network.nodes):
            node.arrays["w"] = np.zeros(len(place), np.int64)
            node.notes[:, ACKS] = 1
            busy = [worker for worker, own in enumerate(tiles) if place[worker] == number and own]
            node.ready = threading.Barrier(len(busy) + 1)
            node.clocks[[worker * CLOCK_STRIDE for worker, own in enumerate(tiles) if not own]] = PAST_ALL
            for worker in busy:
                given = worker, np.random.default_rng(rng.integers(1 << 30))
                threads.append(threading.Thread(target=loop.work, args=given, daemon=True))
                threads[-1].start()
        for round in range(ROUNDS):
            loop.begin()
            for node in network.nodes:
                node.carrier.begin(SimpleNamespace(number=0, round=round, loop=SimpleNamespace(plan=plan)))
            for node in network.nodes:
                node.carrier.go()
            for _ in range(2):
                for node in network.nodes:
                    node.ready.wait(60)
            for node in network.nodes:
                node.carrier.wait()
                assert node.failed == []
                while (node.clocks[::CLOCK_STRIDE] < (round + 1) << ROUND_BITS).any():
                    time.sleep(0.001)  # messages are on their way
            has_all(loop)
        for thread in threads:
            thread.join()
    finally:
        for node in network.nodes:
            node.memory.abort()  # whoever waits for ever
        network.close()
    return loop


@pytest.mark.parametrize("part", range(TIMES))
@pytest.mark.parametrize("max_delay", [1, 3, 8, 40])
def test_no_update_is_later_than_was_said(part, max_delay):
    rng = np.random.default_rng(100 * part + max_delay)
    for _ in range(6):
        nodes = rng.integers(2, 4)
        place = sorted([*range(nodes), *rng.integers(nodes, size=rng.integers(0, 3)).tolist()])
        lengths = range(30) if rng.random() < 0.5 else (0, 1, 2, 30)
        tiles = [rng.choice(lengths, rng.integers(1, 7)).tolist() for _ in place]
        if rng.random() < 0.3:
            tiles[rng.integers(len(place))] = []
        loop = run(place, max_delay, tiles, rng, rng.choice([0, 0.0003, 0.002, 0.01], 2))
        assert loop.too_late == []


def test_a_tile_waits_for_what_was_said_of_itself_not_of_one_before():
    """Who has rested may be unknown to somebody elsewhere who has begun meanwhile, however late updates may be."""
    clocks, notes, control = np.zeros(2 * CLOCK_STRIDE, np.int64), np.zeros(NOTES_SIZE, np.int64), np.zeros(8, np.int64)
    notes[[WORKER, COUNT, ACKS]] = 0, 100, 1
    set_acknowledged(clocks, 0, 1 + 100)
    set_clock(clocks, 1, resting(0))
    has_begun = threading.Event()

    def begin():
        assert begin_tile(clocks, notes, 0, 10, 1000, True, control)
        has_begun.set()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    assert not has_begun.wait(0.1)
    assert clocks[0] == 1 + 101  # shown, to be acknowledged
    set_acknowledged(clocks, 0, 1 + 101)
    assert has_begun.wait(30)
    thread.join()


# ---------------------------------------------------------------- one node's part


@pytest.fixture
def two():
    """Worker 0 is on this node, workers 1 and 2 on another; clocks go up to 80 late."""
    clocks, notes = np.zeros(3 * CLOCK_STRIDE, np.int64), np.zeros((3, ACKS + 1), np.int64)
    return SimpleNamespace(
        clocks=clocks, notes=notes, acks=Acknowledged(0, 0, clocks, notes, (0, 1, 1), np.array([0]), 80)
    )


def acknowledged(two):
    return two.clocks[ACKED]


def test_a_clock_counts_once_the_other_node_has_it(two):
    assert acknowledged(two) == 1  # nobody has begun
    two.acks.note(ack_of(Ack(1, 0), 3), 30)
    assert acknowledged(two) == 30
    two.acks.note(ack_of(Ack(1, 0), 3), 20)  # told before, come after
    assert acknowledged(two) == 30


def test_a_node_that_is_through_need_not_be_asked(two):
    two.acks.note_clock(1, 1 << ROUND_BITS)
    assert acknowledged(two) == 1
    two.acks.note_clock(2, PAST_ALL)
    assert acknowledged(two) == PAST_ALL


@pytest.mark.parametrize(("come", "asked", "is_due"), [(11, 0, True), (10, 0, False), (5, 5, True), (0, 0, False)])
def test_what_somebody_may_wait_for_is_told_at_once(come, asked, is_due, two):
    two.acks.note_clock(2, 1)
    first = two.acks.due()
    two.acks.told(first, np.zeros(1, np.int64))
    assert first.of == {1: [(ack_of(Ack(0, 2), 3), 1)]}
    if come:
        two.acks.note_clock(2, come)
    if asked:
        two.acks.note(ack_of(Ack(0, 2), 3), asked)
    assert two.acks.due().is_due == is_due


@pytest.mark.parametrize("counts_on", [True, False])
def test_what_comes_late_of_another_loop_says_nothing(counts_on):
    network = Network([0, 1], np.random.default_rng(0), 0)
    try:
        node = network.nodes[0]
        node.arrays["w"] = np.zeros(2, np.int64)
        plan = SimpleNamespace(relaxed=SimpleNamespace(arrays=(LATE,), max_delay=8), counts_on=counts_on)
        node.carrier.begin(SimpleNamespace(number=0, round=0, loop=SimpleNamespace(plan=plan)))
        before = node.clocks.copy()
        for number, clock in ((1, PAST_ALL), (ack_of(Ack(1, 0), 2), 500)):
            node.carrier.set_clock(1, number, clock)
        np.testing.assert_array_equal(node.clocks, before)
        assert node.memory.clocks[1][CLOCK_STRIDE] == PAST_ALL
    finally:
        network.close()


def test_a_clock_of_rest_is_not_acknowledged(two):
    two.acks.note_clock(1, 30)
    two.acks.note_clock(1, resting(0))
    assert two.acks.due().of == {1: [(ack_of(Ack(0, 1), 3), 30)]}


@pytest.mark.parametrize(
    ("told", "clock", "began", "must"),
    [
        (0, 1, 1, True),  # the first tile begins
        (1, 15, 1, False),
        (1, 21, 1, True),  # a quarter of 80 further
        (15, 16, 16, True),  # another tile, whose end and begin were not seen
        (15, resting(0), 1, True),
        (resting(0), resting(0), 1, False),
        (resting(0), 1 << ROUND_BITS, 1, True),
        (1 << ROUND_BITS, 1 << ROUND_BITS, 1, False),
    ],
)
def test_when_others_must_be_told(told, clock, began, must, two):
    two.notes[0, ACKS] = 1
    two.acks.told(two.acks.due(), np.array([1 if told else 0]))  # the first tile
    two.notes[0, ACKS] = began
    assert two.acks.must_tell(np.array([clock]), np.array([told])) == must


def test_numbers_stand_for_a_node_and_a_worker():
    found = {ack_of(Ack(node, worker), 5): (node, worker) for node in range(4) for worker in range(5)}
    assert len(found) == 20
    assert max(found) < 0
    assert {number: ack_in(number, 5) for number in found} == found
