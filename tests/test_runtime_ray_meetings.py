"""Meetings of workers of several nodes, with threads for workers and queues for the network, some of them slow: what is
pulled is the same on all nodes, bit for bit, and what one worker after the other computes."""

import threading
import time
from dataclasses import replace
from queue import Queue
from types import SimpleNamespace

import numpy as np
import pytest

from orion.kernel.calling import (
    CLOCK_STRIDE,
    CONTROL_SIZE,
    END_HERE,
    FIRST_HERE,
    LOCKS,
    NOTES_SIZE,
    PAST_ALL,
    ROUND,
    ROUND_BITS,
    WORKER,
)
from orion.kernel.support.buffers import left_of
from orion.kernel.support.carried import set_clock
from orion.kernel.support.replicas import average_with_momentum, meet, meeting_is_over, pull_all
from orion.runtime.memory import RunMemory
from orion.runtime.ray.between import nothing_between
from orion.runtime.ray.brings import Nodes
from orion.runtime.ray.carrier import NOTHING_KNOWN, Carrier, Line
from orion.runtime.ray.centre import Centre
from orion.runtime.ray.inbox import Landing
from orion.runtime.ray.meetings import Meetings
from orion.runtime.ray.overlapped_centre import OverlappedCentre
from orion.runtime.ray.predicted_meetings import at_meetings
from tests.trials import TIMES

pytestmark = pytest.mark.timeout(120)

ALPHA, STEP, MOMENTUM = 0.21, 0.7, 0.5
SIZE = 300


class Node:
    """What the workers of a node share: the array, all copies, clocks."""

    def __init__(self, number, names, place, lines):
        workers = len(place)
        self.arrays = {"w": np.ones(SIZE), "copies": np.ones((workers, SIZE)), "outer": np.zeros(SIZE)}
        empty = np.zeros(0, np.int64)
        self.clocks, self.notes = np.zeros(CLOCK_STRIDE * workers, np.int64), np.zeros((workers, NOTES_SIZE), np.int64)
        self.memory = RunMemory(
            np.zeros((2, CONTROL_SIZE), np.int64), (), empty, (), (), (self.clocks, self.clocks.copy()),
            np.zeros(CLOCK_STRIDE * LOCKS, np.int64), (self.notes, self.notes.copy()), (empty, empty), ({}, {}),
        )  # fmt: skip
        own = [worker for worker, node in enumerate(place) if node == number]
        for worker, notes in enumerate(self.notes):
            notes[[WORKER, ROUND, FIRST_HERE, END_HERE]] = worker, -1, own[0], own[-1] + 1
        self.failed = []
        given = Nodes(names, place, number, lines), self.memory, self.arrays, self.fail
        where = number, own, names, place
        self.carrier = Carrier(1, *where, self.memory, self.arrays, lines, self.fail, names[0], NOTHING_KNOWN)
        self.meetings = Meetings(1, number, *given)
        between = replace(
            nothing_between(self.memory), carrier=self.carrier, meetings=self.meetings,
            centre=Centre(1, number, *given), overlapped=OverlappedCentre(1, number, *given),
        )  # fmt: skip
        self.landing = Landing(self.arrays, self.memory, None, between)

    def fail(self, error):
        self.failed.append(error)
        self.memory.abort()


class Network:
    """Nodes that are sent messages in the order in which each other one sends them, after a while."""

    def __init__(self, place, rng, slow):
        names, self.queues, self.threads = [f"n{node}" for node in range(max(place) + 1)], {}, []
        self.nodes = []
        for number in range(len(names)):
            lines = {name: self._line(number, other) for other, name in enumerate(names) if other != number}
            self.nodes.append(Node(number, names, place, lines))
        for (_, to), queue in self.queues.items():
            delays = rng.random(1000) * slow
            self.threads.append(threading.Thread(target=self._carry, args=(queue, self.nodes[to].landing, delays)))
            self.threads[-1].start()

    def _line(self, sender, to):
        queue = self.queues[sender, to] = Queue()
        return Line(lambda delivery: queue.put(sent(delivery)), lambda: 0)

    def _carry(self, queue, landing, delays):
        for delay in delays:
            delivery = queue.get()
            if delivery is None:
                return
            time.sleep(delay)
            landing.put(delivery)

    def close(self):
        for queue in self.queues.values():
            queue.put(None)
        for thread in self.threads:
            thread.join()


def sent(delivery):
    """A message with its contents as they are now."""
    brought = tuple(replace(one, values=one.values.copy()) for one in delivery.results)
    pieces = tuple(replace(one, data=one.data.copy()) for one in delivery.pieces)
    return replace(delivery, pieces=pieces, results=brought)


def work(node, worker, pulls, values, delays, with_outer):
    """A worker that pulls so many times in each round, and adds some values to its copy before each."""
    notes, control, (w, copies, outer) = node.notes[worker], node.memory.control[0], node.arrays.values()
    for round, count in enumerate(pulls):
        node.ready.wait()
        left_of(notes, round, 1)
        for k in range(count):
            time.sleep(delays[round, k])
            copies[worker] += values[round, k]
            shared = 0, node.clocks, notes, control
            if not meet(node.clocks, notes, control):
                return
            if with_outer:
                is_well = average_with_momentum(copies, w, outer, STEP, MOMENTUM, *shared)
            else:
                is_well = pull_all(copies, w, ALPHA, *shared)
            if not is_well or not meeting_is_over(node.clocks, notes, control):
                return
        set_clock(node.clocks, worker, (round + 1) << ROUND_BITS)
        node.ready.wait()


def simulated(pulls, values, with_outer):
    """The array, the copies and the momentum, one worker after the other."""
    workers, rounds = pulls.shape
    w, copies, outer = np.ones(SIZE), np.ones((workers, SIZE)), np.zeros(SIZE)
    for round in range(rounds):
        for k in range(pulls[:, round].max(initial=0)):
            there = [worker for worker in range(workers) if pulls[worker, round] > k]
            total = np.zeros(SIZE)
            for worker in there:
                copies[worker] += values[worker, round, k]
            for worker in there:
                if with_outer:
                    total += copies[worker]
                else:
                    difference = ALPHA * (copies[worker] - w)
                    copies[worker] -= difference
                    total += difference
            if with_outer:
                difference = w - total / len(there)
                outer[:] = MOMENTUM * outer + difference
                w -= STEP * (difference + MOMENTUM * outer)
                copies[there] = w
            else:
                w += total
    return w, copies, outer


def run(place, pulls, values, rng, slow, with_outer, late=False):
    """The nodes after some rounds, and what each has sent. With `late` their threads begin when workers have done all,
    who meet nobody of another node then."""
    network = Network(place, rng, slow)
    try:
        replica = SimpleNamespace(array="w", copies="copies", outer=("outer",) if with_outer else ())
        plan = SimpleNamespace(nest=SimpleNamespace(replicas=(replica,)))
        workers, rounds = pulls.shape
        threads = []
        for number, node in enumerate(network.nodes):
            own = [worker for worker in range(workers) if place[worker] == number]
            busy = [worker for worker in own if pulls[worker].any()]
            node.ready = threading.Barrier(len(busy) + 1)
            node.clocks[[worker * CLOCK_STRIDE for worker in range(workers) if not pulls[worker].any()]] = PAST_ALL
            for worker in busy:
                given = node, worker, pulls[worker], values[worker], rng.random((rounds, 6)) * slow, with_outer
                threads.append(threading.Thread(target=work, args=given, daemon=True))
                threads[-1].start()
        for round in range(rounds):
            part = SimpleNamespace(number=0, round=round, loop=SimpleNamespace(plan=plan))
            for node in network.nodes:
                node.meetings.begin(part)
            for node in network.nodes if not late else ():
                node.meetings.go()
            for node in network.nodes:
                node.ready.wait()
            for node in network.nodes:
                node.ready.wait()
            for node in network.nodes if late else ():
                node.meetings.go()
            for node in network.nodes:
                node.meetings.wait()
                assert node.failed == []
                busy = node.clocks[::CLOCK_STRIDE] < PAST_ALL
                assert (node.clocks[::CLOCK_STRIDE][busy] == (round + 1) << ROUND_BITS).all()
        for thread in threads:
            thread.join()
    finally:
        network.close()
    return network.nodes


@pytest.mark.parametrize("with_outer", [False, True], ids=["sync", "outer"])
@pytest.mark.parametrize("part", range(TIMES))
def test_nodes_have_the_same_bits_however_slow_they_are(part, with_outer):
    for seed in range(part, 40 * TIMES, TIMES):
        rng = np.random.default_rng([seed, with_outer])
        place = sorted([*range(nodes := int(rng.integers(2, 4))), *rng.integers(0, nodes, rng.integers(0, 3)).tolist()])
        workers, rounds = len(place), int(rng.integers(1, 4))
        pulls = rng.integers(0, 6, (workers, rounds))
        if seed % 2:
            pulls[:] = np.minimum(pulls.max(), 2 + rng.integers(0, 2, pulls.shape))  # as blocks of one size have it
        values = rng.normal(size=(workers, rounds, 6, SIZE))
        found = run(place, pulls, values, rng, [0.0, 0.0005, 0.003][seed % 3], with_outer)
        w, copies, outer = simulated(pulls, values, with_outer)
        has_tiles, momentum = pulls.any(axis=1).tolist(), 8 * SIZE * with_outer
        for node in found:
            np.testing.assert_array_equal(node.arrays["w"], w)
            np.testing.assert_array_equal(node.arrays["outer"], outer)
        np.testing.assert_array_equal(found[0].arrays["copies"], copies)
        for number, node in enumerate(found):
            own = [worker for worker in range(workers) if place[worker] == number]
            np.testing.assert_array_equal(node.arrays["copies"][own], copies[own])
        expected = [at_meetings(column.tolist(), has_tiles, place, 8 * SIZE, momentum) for column in pulls.T]
        assert sum(node.meetings.sent.bytes for node in found) == sum(one.bytes for one in expected)


@pytest.mark.parametrize("with_outer", [False, True], ids=["sync", "outer"])
def test_workers_that_meet_nobody_of_another_node_do_not_wait_for_their_thread(with_outer):
    """What they have pulled comes to the home node all the same, whenever the thread looks."""
    rng = np.random.default_rng(0)
    place, pulls = [0, 1, 1, 1], np.array([[0, 0], [1, 5], [0, 1], [2, 2]])
    values = rng.normal(size=(4, 2, 6, SIZE))
    found = run(place, pulls, values, rng, 0.0, with_outer, late=True)
    w, copies, _ = simulated(pulls, values, with_outer)
    for node in found:
        np.testing.assert_array_equal(node.arrays["w"], w)
        np.testing.assert_array_equal(node.arrays["copies"], copies)
    assert [node.meetings.sent.meetings for node in found] == [0, 7]
