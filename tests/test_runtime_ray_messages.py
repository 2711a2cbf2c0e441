"""What the driver and the actors say to each other, without Ray: orders, outcomes, deliveries, aborts."""

import gc
import os
import pickle
import random
import select
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orion.arrays.dense import array
from orion.arrays.storage import IN_MEMORY
from orion.errors import WorkerLostError
from orion.kernel.calling import ABORT, GO
from orion.runtime.backend import ProgramCall
from orion.runtime.memory import RunMemory
from orion.runtime.ray import orders
from orion.runtime.ray.between import nothing_between
from orion.runtime.ray.inbox import Inbox, Landing
from orion.runtime.ray.lines import Channel, ChannelLine, LostError, read_message, write_message
from orion.runtime.ray.mirrors import Mirrors
from orion.runtime.ray.orders import Delivery, Filling, Outcome, Piece
from orion.runtime.ray.regions import Region, Scattered
from orion.runtime.ray.segments import Block
from orion.runtime.ray.store import Store
from tests.runtime_programs import cases, integers, mix, sparse_integers, values_only

ray_exceptions = pytest.importorskip("ray.exceptions")

# ---------------------------------------------------------------- pipes


@pytest.fixture
def interruptions():
    """KeyboardInterrupt at random places of what a `Channel` does, until stopped."""

    def interrupt(signum, frame):
        if frame.f_code in {getattr(Channel, name).__code__ for name in ("send", "receive", "received")}:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def again_after_ctrl_c(step):
    while True:
        try:
            return step()
        except KeyboardInterrupt:
            continue


def ends_of_pipes():
    (order_read, order_write), (outcome_read, outcome_write) = os.pipe(), os.pipe()
    return (order_write, outcome_read), (order_read, outcome_write)


def ends_of_sockets():
    drivers, actors = (one.detach() for one in socket.socketpair())
    return (drivers, drivers), (actors, actors)


@pytest.mark.parametrize("ends", [ends_of_pipes, ends_of_sockets])
def test_ctrl_c_loses_nothing_of_an_order_or_outcome(interruptions, ends):
    drivers, (order_read, outcome_write) = ends()
    channel = Channel(*drivers)
    messages = [random.Random(k).randbytes(300_000) for k in range(40)]

    def echo():
        for _ in messages:
            write_message(outcome_write, read_message(order_read))

    actor = threading.Thread(target=echo, daemon=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    actor.start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])

    def receive():
        while not channel.send():
            select.select([], [channel.orders], [], 10)
        while (data := channel.received()) is None:
            if select.select([channel.outcomes], [], [], 10)[0]:
                channel.receive()
        return data

    for message in messages:
        channel.begin(message)
        assert again_after_ctrl_c(receive) == message
    signal.setitimer(signal.ITIMER_REAL, 0)
    channel.close()
    channel.close()


def refuse():
    raise ZeroDivisionError("cannot be read here")


class Unreadable:
    def __reduce__(self):
        return refuse, ()


class Actor:
    """A `WorkerActor` whose methods are called in threads of this process."""

    def __init__(self, worker):
        self.__ray_ready__ = None
        for name in ("open_pipes", "connect_orders", "serve"):
            call = self.caller(getattr(worker, name))
            setattr(
                self, name, SimpleNamespace(remote=call, options=lambda call=call, **_: SimpleNamespace(remote=call))
            )

    def caller(self, method):
        def call(*values):
            thread = threading.Thread(target=quietly, args=(method, *values), daemon=True)
            thread.start()
            return thread

        def quietly(method, *values):
            with suppress(TypeError):
                method(*values)

        return call


@pytest.fixture(params=[True, False], ids=["pipes", "sockets"])
def line(request, monkeypatch):
    from orion.runtime.ray import lines
    from orion.runtime.ray.actor import WorkerActor

    worker = WorkerActor()
    monkeypatch.setattr(lines.ray, "get", lambda threads: [thread.join() for thread in threads])
    line = ChannelLine([Actor(worker)], [request.param], "127.0.0.1")
    line.worker = worker
    yield line
    line.close()


def answer(line, order):
    line.start([order])
    return line.wait(20.0)[0]


def test_an_order_that_an_actor_cannot_read_is_an_error_of_the_run(line):
    outcome = answer(line, Unreadable())
    assert isinstance(outcome.error, ZeroDivisionError)
    assert line.is_alive()


def test_an_outcome_that_cannot_be_written_or_read_is_an_error_of_the_run(line):
    line.worker.run = lambda order: Outcome(returned=threading.Lock())
    assert isinstance(answer(line, "order").error, TypeError)
    line.worker.run = lambda order: Outcome(returned=Unreadable())
    assert isinstance(answer(line, "order").error, ZeroDivisionError)
    line.worker.run = lambda order: Outcome(returned=order)
    assert answer(line, "order").returned == "order"


def test_an_actor_that_ends_its_endless_call_is_lost(line):
    line.worker.run = lambda order: Outcome(returned=order)
    line.worker._answer = lambda order: pickle.dumps(Outcome()) if b"first" in order else 5
    answer(line, "order")  # the actor waits inside of the real method
    assert answer(line, "first").error is None
    with pytest.raises(LostError):
        answer(line, "order")
    assert not line.is_alive()


# ---------------------------------------------------------------- deliveries


class Memory:
    """Where deliveries land in these tests: an array, and a control word."""

    def __init__(self):
        self.a = np.zeros(4)
        self.run = RunMemory(
            np.zeros((1, 8), np.int64), (), np.zeros(0, np.int64), (), (), (), np.zeros(0, np.int64), (), (), ()
        )
        self.landing = Landing({"a": self.a}, self.run, lambda *values: None, nothing_between(self.run))

    @property
    def is_aborted(self):
        return self.run.control[0, 0] == ABORT


def delivery(run, number, place, value, array="a", sender=1):
    piece = Piece(Region(array, ((place, place + 1),)), np.array([value]))
    return Delivery(run, sender, number, (), (piece,), ())


def test_deliveries_reach_their_own_run_in_the_order_of_their_sender():
    inbox, first, second = Inbox(), Memory(), Memory()
    inbox.deliver(delivery(2, 0, 1, 5.0))
    inbox.deliver(delivery(1, 1, 0, 4.0))
    inbox.begin(1, first.landing)
    assert first.a.tolist() == [0, 0, 0, 0]
    inbox.deliver(delivery(1, 0, 0, 3.0))
    assert first.a.tolist() == [4, 0, 0, 0]
    assert inbox.end(1) is None
    inbox.deliver(delivery(1, 2, 2, 6.0))
    inbox.begin(2, second.landing)
    inbox.deliver(delivery(1, 3, 3, 7.0))
    assert first.a.tolist() == [4, 0, 0, 0]
    assert second.a.tolist() == [0, 5, 0, 0]


def test_a_run_that_never_began_leaves_nothing_behind():
    inbox, memory = Inbox(), Memory()
    inbox.deliver(delivery(1, 0, 0, 1.0))
    inbox.begin(2, memory.landing)
    inbox.deliver(delivery(1, 1, 1, 1.0))
    inbox.end(2)
    assert not memory.a.any()
    assert inbox._kept == {}


def test_an_abort_ends_its_own_run_only():
    inbox, memory = Inbox(), Memory()
    inbox.abort(1, memory.run)
    assert memory.is_aborted
    memory.run.control[:] = GO
    inbox.begin(1, memory.landing)
    inbox.end(1)
    inbox.abort(1, memory.run)
    assert not memory.is_aborted
    inbox.abort(2, memory.run)
    assert memory.is_aborted


def test_a_delivery_that_cannot_be_put_ends_the_run():
    inbox, memory = Inbox(), Memory()
    inbox.begin(1, memory.landing)
    inbox.deliver(delivery(1, 0, 0, 1.0, array="unknown"))
    inbox.deliver(delivery(1, 1, 1, 1.0))
    assert memory.is_aborted
    assert not memory.a.any()
    assert isinstance(inbox.end(1), KeyError)
    assert inbox.end(2) is None


# ---------------------------------------------------------------- what the driver sends


class FakeGroup:
    """A group of actors that note what they are told."""

    driver_node = "a"
    shares_memory = True

    def __init__(self, workers, held=0, standstill=10.0, nodes=""):
        self.nodes = tuple(nodes or "a" * workers)
        self.orders, self.fillings, self.error = [], [], None

    def create(self, node, sizes, anonymous, storage):
        return dict.fromkeys(sizes)

    def make_ready(self, run_memory, fillings, workers):
        self._fail()
        self.fillings.append(fillings)

    def run(self, orders, abort, place, have_met):
        self.orders.append([replace(order, prepared=order.prepared is not None) for order in orders])
        self._fail()
        return [Outcome(returned=order.run) for order in orders]

    def close(self):
        pass

    def _fail(self):
        error, self.error = self.error, None
        if error is not None:
            raise error


def prepared_program(function, arguments, workers=2):
    return function._preparations.plain.prepare(arguments, workers, True).program


class Remote:
    """A store, and the mirrors of it on node b."""

    def __init__(self):
        self.store = Store(anonymous=True)
        self.group = FakeGroup(2, nodes="ab")
        self.mirrors = Mirrors(self.group, self.store)

    def prepare(self, function, arguments):
        """The blocks of sparse arrays that a run sends to b, and those that its loops use."""
        program = prepared_program(function, arguments)
        placed = self.store.place(program, arguments)
        number, _ = self.store.run_memory(program)
        self.mirrors.prepare(program, number, placed)
        self.placed = placed
        kinds = zip(program.loops[0].kernel.arguments, placed.loops[0].arguments, strict=True)
        used = {placed.loops[0].extents} | {block for argument, block in kinds if argument.kind in ("key", "value")}
        return {filling.block for filling in self.group.fillings[-1]["b"]} & used, used


def test_a_node_is_sent_the_elements_that_it_does_not_have_yet():
    remote, R = Remote(), sparse_integers((60, 40), 3000)
    both = {"R": R, "W": integers(60), "H": integers(40), "rounds": 1, "c": 1}
    sent, used = remote.prepare(values_only, {"R": R})
    assert sent == used
    more, used = remote.prepare(mix, both)
    assert more == used - sent
    assert len(more) == 2  # the keys
    assert remote.prepare(mix, both)[0] == set()


def test_what_ctrl_c_kept_from_a_node_is_sent_again():
    remote, R = Remote(), sparse_integers((60, 40), 3000)
    remote.group.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        remote.prepare(values_only, {"R": R})
    sent, used = remote.prepare(values_only, {"R": R})
    assert sent == used


def test_the_layouts_of_a_run_stay_for_as_long_as_it_does():
    function, arguments = cases()["two layouts"]
    program = prepared_program(function, arguments)
    assert program.loops[0].schedule.grid != program.loops[1].schedule.grid
    store = Store(anonymous=True)
    placed = store.place(program, arguments)
    for blocks, layout in zip(placed.loops, placed.layouts, strict=True):
        np.testing.assert_array_equal(store.array(blocks.extents), layout.offsets)


# ---------------------------------------------------------------- a team


@pytest.fixture
def team(monkeypatch):
    from orion.runtime.ray import team

    monkeypatch.setattr(team, "Group", FakeGroup)
    return team.Team(2, 0, None, 10.0, IN_MEMORY)


def test_an_actor_is_told_again_until_a_run_has_ended_well(team):
    function, arguments = cases()["rotated"]
    program = prepared_program(function, arguments)
    team.group.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        team.run(ProgramCall(program, arguments))
    gc.collect()  # the traceback
    arguments["W"] = integers(60)
    team.run(ProgramCall(program, arguments))
    arguments["H"] = integers(40)
    team.run(ProgramCall(program, arguments))
    team.run(ProgramCall(program, arguments))
    assert [[order.prepared for order in orders] for orders in team.group.orders] == [
        [True, True], [True, True], [False, False], [False, False],
    ]  # fmt: skip
    assert [len(orders[0].dropped) for orders in team.group.orders] == [0, 1, 1, 0]


def test_what_is_told_of_programs_does_not_grow(team):
    for _ in range(3):
        function, arguments = cases()["rotated"]
        team.run(ProgramCall(prepared_program(function, arguments), arguments))
        function._preparations.plain._prepared.clear()
    assert [len(orders[0].ended) for orders in team.group.orders] == [0, 1, 1]
    assert not any(news.programs for news in team._news)


def test_a_team_that_is_closed_keeps_no_arrays(team):
    from weakref import ref

    function, arguments = cases()["rotated"]
    arguments["W"] = array(arguments["W"])
    program = prepared_program(function, arguments)
    team.run(ProgramCall(program, arguments))
    copy = ref(team._store._copies.get(arguments["H"])[1])
    store = ref(team._store)
    team.close()
    assert copy() is None
    del team._store, team._mirrors
    assert store() is None
    np.testing.assert_array_equal(arguments["W"].to_numpy(), integers(60))


def test_a_worker_that_dies_while_it_starts_is_lost(monkeypatch):
    from orion.runtime.ray import group

    def start_actors(*values):
        raise ray_exceptions.RayActorError()

    monkeypatch.setattr(group, "start_actors", start_actors)
    with pytest.raises(WorkerLostError, match="died before the loop began"):
        group.Group(2, 0, 10.0)


# ---------------------------------------------------------------- what nodes are sent before a run


def test_fillings_are_cut_into_messages(monkeypatch):
    """Rows of large arrays go one message after the other; what cannot be cut stays whole."""
    monkeypatch.setattr(orders, "FILL_BYTES", 100)
    block = Block(1, 0, (10, 5), "<f8")
    source, found = np.arange(50.0).reshape(10, 5), np.zeros((10, 5))
    places = (np.array([0, 9], np.int32),)
    fillings = [
        Filling(block, Region("a", ((1, 8),)), source[1:8]),
        Filling(block, Region("a", ((8, 9), (1, 5))), source[8:9, 1:5]),
        Filling(block, Scattered("a", places), source[places]),
    ]
    messages = list(orders.messages_of(fillings))
    assert [sum(part.data.nbytes for part in message) for message in messages] == [80, 80, 80, 72, 80]
    for part in (part for message in messages for part in message):
        assert part.block is block
        part.region.put(found, part.data)
    expected = source.copy()
    expected[8, 0] = 0
    np.testing.assert_array_equal(found, expected)
    assert list(orders.messages_of(())) == [()]  # flags and results are made zero
