"""The home node pulls for workers of others, on threads and queues, some of them slow: the bits are those of as many
workers on one node, whatever comes late."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import orion
from orion.kernel.calling import CLOCK_STRIDE, COUNT, FIRST_HERE, PAST_ALL, ROUND_BITS
from orion.kernel.support.buffers import left_of
from orion.kernel.support.carried import set_clock
from orion.kernel.support.overlapped import (
    await_given,
    await_posts,
    await_settled,
    has_posted,
    move_own,
    pull_posted,
    settle_array,
    settle_own,
)
from orion.kernel.support.replicas import await_turn, give_turn, pull_freely, pulled_at_home
from orion.runtime.ray.predicted_meetings import one_by_one
from tests.test_runtime_ray_meetings import SIZE, Network
from tests.trials import TIMES

pytestmark = pytest.mark.timeout(120)

ALPHA = 0.17
POLICIES = {
    "overlapped": orion.elastic(overlap=True, alpha=ALPHA),
    "centre": orion.elastic(mode="round_robin", alpha=ALPHA),
}


def in_turn(node, worker, _):
    notes, control, clocks = node.notes[worker], node.memory.control[0], node.clocks
    if notes[FIRST_HERE] > 0:
        return pulled_at_home(clocks, notes, control)
    if not await_turn(clocks, notes, control):
        return False
    if not pull_freely(node.arrays["copies"][worker], node.arrays["w"], ALPHA, 0, control):
        return False
    give_turn(clocks, notes)
    return True


def meanwhile(node, worker, is_last):
    notes, control, clocks = node.notes[worker], node.memory.control[0], node.clocks
    own, posted, shared = node.arrays["copies"][worker], node.arrays["posted"], (clocks, notes, control)
    if notes[FIRST_HERE] > 0:
        if not await_given(*shared):
            return False
        move_own(own, posted, notes, True)
        has_posted(clocks, notes, is_last)
        if is_last:
            if not await_given(*shared):
                return False
            move_own(own, posted, notes, False)
        return True
    given = own, node.arrays["w"], posted, ALPHA, 0, *shared
    if not await_posts(clocks, notes, notes[COUNT], control) or not pull_posted(*given):
        return False
    has_posted(clocks, notes, is_last)
    if is_last:
        if not await_posts(clocks, notes, notes[COUNT], control) or not settle_own(*given):
            return False
        settles, goes_on = await_settled(*shared)
        return goes_on and (not settles or settle_array(*given))
    return True


PULLS = {"overlapped": meanwhile, "centre": in_turn}


def work(node, worker, pulls, values, delays, pull):
    """A worker that pulls so many times in each round, and adds some values to its copy before each."""
    for round, count in enumerate(pulls):
        node.ready.wait()
        left_of(node.notes[worker], round, 1)
        for k in range(count):
            time.sleep(delays[round, k])
            node.arrays["copies"][worker] += values[round, k]
            if not pull(node, worker, k == count - 1):
                return
        set_clock(node.clocks, worker, (round + 1) << ROUND_BITS)
        node.ready.wait()


def run(kind, place, pulls, values, rng, slow):
    """The nodes after some rounds."""
    workers, rounds = pulls.shape
    network = Network(place, rng, slow)
    try:
        posted = ("posted",) if kind == "overlapped" else ()
        replica = SimpleNamespace(array="w", copies="copies", posted=posted, policy=POLICIES[kind])
        plan = SimpleNamespace(nest=SimpleNamespace(replicas=(replica,)))
        order = [range(int(own.any())) for own in pulls]
        threads = []
        for number, node in enumerate(network.nodes):
            node.arrays["posted"] = np.full((2 * workers + 1, SIZE), np.nan)
            node.thread = getattr(node.landing.between, kind)
            busy = [worker for worker in range(workers) if place[worker] == number and pulls[worker].any()]
            node.ready = threading.Barrier(len(busy) + 1)
            node.clocks[[worker * CLOCK_STRIDE for worker in range(workers) if not pulls[worker].any()]] = PAST_ALL
            for worker in busy:
                given = node, worker, pulls[worker], values[worker], rng.random((rounds, 6)) * slow, PULLS[kind]
                threads.append(threading.Thread(target=work, args=given, daemon=True))
                threads[-1].start()
        for round in range(rounds):
            loop = SimpleNamespace(plan=plan, schedule=SimpleNamespace(order=order))
            for node in network.nodes:
                node.thread.begin(SimpleNamespace(number=0, round=round, loop=loop))
            for node in network.nodes:
                node.thread.go()
            for _ in range(2):
                for node in network.nodes:
                    node.ready.wait()
            for node in network.nodes:
                node.thread.wait()
                assert node.failed == []
                busy = node.clocks[::CLOCK_STRIDE] < PAST_ALL
                assert (node.clocks[::CLOCK_STRIDE][busy] == (round + 1) << ROUND_BITS).all()
        for thread in threads:
            thread.join()
    finally:
        network.close()
    return network.nodes


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("part", range(TIMES))
def test_the_bits_are_those_of_one_node_however_slow_others_are(part, kind):
    for seed in range(part, 30 * TIMES, TIMES):
        rng = np.random.default_rng(seed)
        place = sorted([*range(nodes := int(rng.integers(2, 4))), *rng.integers(0, nodes, rng.integers(0, 3)).tolist()])
        workers, rounds = len(place), int(rng.integers(1, 4))
        pulls = rng.integers(0, 6, (workers, rounds))
        if seed % 2:
            pulls[:] = np.minimum(pulls.max(), 2 + rng.integers(0, 2, pulls.shape))  # as blocks of one size have it
        values, slow = rng.normal(size=(workers, rounds, 6, SIZE)), [0.0, 0.0005, 0.003][seed % 3]
        found = run(kind, place, pulls, values, rng, slow)
        (alone,) = run(kind, [0] * workers, pulls, values, rng, slow)
        np.testing.assert_array_equal(found[0].arrays["w"], alone.arrays["w"])
        for worker, node in enumerate(place):
            for there in {found[node], found[0]} if pulls[worker, -1] else {found[node]}:
                np.testing.assert_array_equal(there.arrays["copies"][worker], alone.arrays["copies"][worker])
        sent = sum(node.thread.sent.bytes for node in found)
        assert sent == sum(one_by_one(column.tolist(), place, 8 * SIZE, in_turn=True).bytes for column in pulls.T)


@pytest.mark.parametrize("kind", POLICIES)
def test_a_node_without_tiles_says_nothing(kind):
    """Nobody waits for what it would say: it might come when another loop has begun."""
    pulls, values = np.array([[2], [0]]), np.ones((2, 1, 6, SIZE))
    found = run(kind, [0, 1], pulls, values, np.random.default_rng(0), 0.0)
    assert [node.thread.sent.messages for node in found] == [0, 0]
