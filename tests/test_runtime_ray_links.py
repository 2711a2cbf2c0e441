"""Connections between workers of different nodes, without Ray: what arrives, where, and what if it does not."""

import os
import resource
import socket
import threading
import time
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orion.kernel.build.walker import meeting_walk
from orion.kernel.calling import ABORT, FLAG_STRIDE
from orion.runtime.memory import RunMemory
from orion.runtime.ray import greeting
from orion.runtime.ray.between import nothing_between
from orion.runtime.ray.greeting import GREETING, MOST_STRANGERS, Door, connected
from orion.runtime.ray.inbox import Inbox, Landing
from orion.runtime.ray.links import BrokenLinkError, Receiver, connect
from orion.runtime.ray.orders import CopiedParts, Delivery, Flag, Piece, Results
from orion.runtime.ray.regions import Region, Scattered
from orion.runtime.ray.wire import Scratch, as_bytes, packed
from orion.runtime.worker import AbortedError

pytestmark = pytest.mark.timeout(60)

TILES = 4


class Node:
    """What the workers of a node share: arrays, flags, results, copies. Two workers take part in the run."""

    def __init__(self, **arrays):
        self.arrays = arrays
        flags = np.zeros(FLAG_STRIDE * (TILES + 1), np.int64)
        outputs = ((np.zeros((2, TILES)),),)
        copies = ((np.zeros((2, 3, 5, 2)),),)
        self.memory = RunMemory(
            np.zeros((2, 8), np.int64),
            (flags,),
            np.zeros(FLAG_STRIDE * 4, np.int64),
            outputs,
            copies,
            (),
            np.zeros(0, np.int64),
            (),
            (),
            (),
        )
        self.landing = Landing(arrays, self.memory, meeting_walk(), nothing_between(self.memory))

    def flag(self, tile):
        return int(self.memory.done[0][FLAG_STRIDE * tile])

    @property
    def is_aborted(self):
        return self.memory.control[0, 0] == ABORT


def eventually(is_so):
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.0005)


def never():
    return False


class Pair:
    """The connection from worker 1 to worker 0, and the inbox of that one."""

    def __init__(self):
        self.inbox, self.arrived = Inbox(), []
        self.receiver = Receiver("127.0.0.1", self.inbox, lambda *what: self.arrived.append(what))
        self.link = connect(self.receiver.address, 1, 0)
        self.numbers = iter(range(10**6))

    def begin(self, run, node):
        self.inbox.begin(run, node.landing)
        self.receiver.wake()

    def end(self, run):
        error = self.inbox.end(run)
        self.receiver.wake()
        return error

    def send(self, run, names, *pieces, flags=(), results=(), is_aborted=never):
        found = Delivery(run, 1, next(self.numbers), flags, pieces, results)
        self.link.send(found, sorted(names), is_aborted)

    def close(self):
        self.link.close()
        self.receiver.close()


@pytest.fixture
def pair():
    before = set(os.listdir("/proc/self/fd"))
    made = Pair()
    yield made
    made.close()
    assert set(os.listdir("/proc/self/fd")) <= before


def piece(array, box, source):
    region = Region(array, box)
    return Piece(region, region.of(source))


def test_contents_of_every_kind_arrive_where_they_belong(pair):
    there = Node(a=np.zeros((6, 4)), b=np.zeros((5, 7, 3), np.complex64), c=np.zeros(3, bool))
    here = Node(
        a=np.arange(24.0).reshape(6, 4),
        b=(np.arange(105) * (1 + 2j)).astype(np.complex64).reshape(5, 7, 3),
        c=np.array([True, False, True]),
    )
    boxes = {"a": ((1, 4),), "b": ((1, 3), (2, 6)), "c": ((1, 3),)}
    pieces = [piece(name, box, here.arrays[name]) for name, box in boxes.items()]
    pieces += [piece("a", ((0, 6), (3, 4)), here.arrays["a"]), piece("a", ((2, 2),), here.arrays["a"])]
    results = (
        Results(0, 0, 1, np.array([1, 3]), np.array([2.5, 4.5])),
        CopiedParts(0, 0, 1, np.array([0, 2]), 1, np.arange(12.0).reshape(2, 3, 2)),
    )
    pair.begin(1, there)
    pair.send(1, boxes, *pieces, flags=(Flag(0, 2, 4),), results=results)
    eventually(lambda: there.flag(2) == 5)
    for name in "bc":
        region = Region(name, boxes[name])
        np.testing.assert_array_equal(region.of(there.arrays[name]), region.of(here.arrays[name]))
    expected = np.zeros((6, 4))
    expected[1:4], expected[:, 3] = here.arrays["a"][1:4], here.arrays["a"][:, 3]
    np.testing.assert_array_equal(there.arrays["a"], expected)
    assert there.arrays["b"].astype(bool).sum() == 2 * 4 * 3
    np.testing.assert_array_equal(there.memory.outputs[0][0], [[0, 0, 0, 0], [0, 2.5, 0, 4.5]])
    copies = there.memory.copies[0][0]
    np.testing.assert_array_equal(copies[1, [0, 2], 1:4], np.arange(12.0).reshape(2, 3, 2))
    assert copies.astype(bool).sum() == 11
    eventually(lambda: pair.arrived == [(1, 0, sum(p.data.nbytes for p in pieces) + 16 + 96)])
    assert pair.end(1) is None


def test_contiguous_contents_are_sent_from_the_array_itself():
    a = np.zeros((6, 4))
    pieces = (piece("a", ((1, 3),), a), piece("a", ((0, 6), (1, 2)), a))
    _, rows, column = packed(Delivery(1, 0, 0, (), pieces, ()), ["a"], Scratch())
    a[:] = 1
    assert bytes(rows) == as_bytes(np.ones(8))
    assert bytes(column) == as_bytes(np.zeros(6))


def test_no_message_is_torn_when_its_source_is_overwritten_at_once(pair):
    sizes = (1, 100, 10_000, 400_000)
    there = Node(**{f"a{k}": np.zeros(size) for k, size in enumerate(sizes)}, wide=np.zeros((300, 300)))
    here = {name: array.copy() for name, array in there.arrays.items()}
    boxes = dict.fromkeys(here, ()) | {"wide": ((10, 290), (5, 200))}
    pair.begin(1, there)
    for number in range(1, 1001):
        name = sorted(here)[number % 5]
        source, region = here[name], Region(name, boxes[name])
        source[...] = number
        pair.send(1, here, piece(name, boxes[name], source), flags=(Flag(0, 0, number),))
        source[...] = -1.0
        eventually(lambda number=number: there.flag(0) == number + 1)
        found = region.of(there.arrays[name])
        assert found.min() == found.max() == number
    assert pair.end(1) is None


def test_what_comes_early_waits_for_its_run_and_what_comes_late_is_read_away(pair):
    first, second, data = Node(a=np.zeros(200_000)), Node(a=np.zeros(200_000)), np.ones(200_000)
    names = ["a"]
    early = threading.Thread(
        target=lambda: [pair.send(run, names, piece("a", (), run * data), flags=(Flag(0, 0, 0),)) for run in (1, 2)]
    )
    early.start()
    time.sleep(0.05)
    assert not pair.arrived
    pair.begin(1, first)
    eventually(lambda: first.flag(0) == 1)
    np.testing.assert_array_equal(first.arrays["a"], data)
    assert pair.end(1) is None
    pair.send(1, names, piece("a", (), 5 * data), flags=(Flag(0, 1, 0),))
    pair.begin(2, second)
    eventually(lambda: second.flag(0) == 1)
    eventually(lambda: len(pair.arrived) == 3)
    early.join()
    assert (first.arrays["a"] == 1).all()
    assert (second.arrays["a"] == 2).all()
    assert second.flag(1) == 0
    assert pair.end(2) is None


def test_a_sender_that_is_aborted_leaves_and_can_send_in_the_next_run(pair):
    a, there = np.ones(4_000_000), Node(a=np.zeros(4_000_000))
    with pytest.raises(AbortedError):  # more than the system takes, and run 1 never begins there
        pair.send(1, ["a"], piece("a", (), a), is_aborted=lambda: True)
    pair.begin(2, there)
    pair.send(2, ["a"], piece("a", ((0, 9),), 2 * a), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    assert there.arrays["a"].sum() == 18
    assert pair.end(2) is None


def test_a_run_that_ends_while_a_message_is_read_is_not_written_to_any_more(pair):
    a, there, go = np.ones(4_000_000), Node(a=np.zeros(4_000_000)), threading.Event()
    pair.begin(1, there)
    views = packed(Delivery(1, 1, 0, (Flag(0, 0, 0),), (piece("a", (), a),), ()), ["a"], Scratch())

    def slowly():
        pair.link._socket.setblocking(True)
        pair.link._socket.sendall(views[0])
        pair.link._socket.sendall(views[1][:1000])
        go.wait()
        pair.link._socket.sendall(views[1][1000:])
        pair.link._socket.setblocking(False)

    sender = threading.Thread(target=slowly)
    sender.start()
    eventually(lambda: there.arrays["a"][124] == 1)
    assert pair.end(1) is None
    go.set()
    sender.join()
    eventually(lambda: pair.arrived)
    assert there.arrays["a"].sum() == 125
    assert there.flag(0) == 0


def test_a_message_that_cannot_be_put_ends_the_run_and_the_next_one_goes_on(pair):
    there, a = Node(a=np.zeros(10)), np.ones(10)
    pair.begin(1, there)
    pair.send(1, ["a"], piece("a", ((0, 12),), np.ones(12)), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.is_aborted)
    error = pair.end(1)
    assert isinstance(error, ValueError)
    assert "96 bytes" in str(error)
    there = Node(a=np.zeros(10))
    pair.begin(2, there)
    pair.send(2, ["a"], piece("a", (), a), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    assert pair.end(2) is None


def test_a_worker_that_is_gone_ends_the_run_that_it_takes_part_in(pair):
    there = Node(a=np.zeros(10))
    other = connect(pair.receiver.address, 5, 0)  # not one of the two workers of the run
    pair.begin(1, there)
    pair.send(1, ["a"], piece("a", (), np.ones(10)), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    other.close()
    time.sleep(0.05)
    assert not there.is_aborted
    pair.link.close()
    eventually(lambda: there.is_aborted)
    error = pair.end(1)
    assert isinstance(error, BrokenLinkError)
    assert error.worker == 1


def test_a_sender_learns_that_nobody_reads(pair):
    pair.receiver.close()
    pair.receiver.close = lambda: None

    def send_on():
        for _ in range(100):
            pair.send(1, ["a"], piece("a", (), np.ones(100_000)))

    with pytest.raises(BrokenLinkError) as raised:
        send_on()
    assert raised.value.worker == 0


def test_who_does_not_have_the_token_is_refused(pair):
    host, port, _ = pair.receiver.address
    there = Node(a=np.zeros(10))
    pair.begin(1, there)
    for wrong in (bytes(32), b"GET / HTTP/1.1\r\n\r\n" + bytes(40)):
        with socket.create_connection((host, port), 5) as stranger:
            stranger.sendall(wrong if len(wrong) > 32 else GREETING.pack(wrong, 1))
            stranger.settimeout(5)
            with suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
    assert not there.is_aborted
    pair.send(1, ["a"], piece("a", (), np.ones(10)), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    assert pair.end(1) is None


def test_a_connection_that_cannot_be_made_is_an_error_of_the_system():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        connect(("127.0.0.1", port, bytes(32)), 0, 1)


@pytest.mark.parametrize("answer", [None, ("127.0.0.1", 1, bytes(32)), ConnectionError()])
def test_deliveries_are_calls_of_ray_where_a_connection_cannot_be_made(monkeypatch, answer):
    actor = pytest.importorskip("orion.runtime.ray.actor")

    def answer_of(_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    def method(call):
        return SimpleNamespace(options=lambda concurrency_group: SimpleNamespace(remote=call))

    monkeypatch.setattr(actor, "answer_of", answer_of)
    called, worker, delivery = [], actor.WorkerActor(), Delivery(1, 0, 0, (), (), ())
    worker._actors = (None, SimpleNamespace(listen=method(lambda: None), deliver=method(called.append)))
    worker._connect_to([1], worker._links)
    worker._way(1, [], Node().memory, worker._links)(delivery)
    assert called == [delivery]


def test_numbers_of_deliveries_do_not_matter_to_a_connection(pair):
    there = Node(a=np.zeros(2))
    pair.begin(1, there)
    found = Delivery(1, 1, 7, (Flag(0, 0, 0),), (piece("a", (), np.ones(2)),), ())
    pair.link.send(found, ["a"], never)
    pair.link.send(replace(found, number=3, flags=(Flag(0, 1, 0),)), ["a"], never)
    eventually(lambda: there.flag(1) == 1)
    assert pair.end(1) is None


def test_an_early_message_without_contents_is_not_forgotten(pair):
    there = Node(a=np.zeros(2))
    pair.send(1, ["a"], flags=(Flag(0, 0, 0),))
    eventually(lambda: pair.receiver._early)
    pair.begin(1, there)
    eventually(lambda: there.flag(0) == 1)
    assert pair.end(1) is None


def test_regions_that_lean_arrive(pair):
    there, here = Node(a=np.zeros((5, 6, 2))), np.arange(60.0).reshape(5, 6, 2)
    band = Region("a", ((1, 4), (0, 2)), (1, 0, 1))
    pair.begin(1, there)
    pair.send(1, ["a"], Piece(band, band.of(here)), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    expected = np.zeros_like(here)
    for row in (1, 2, 3):
        expected[row, row : row + 2] = here[row, row : row + 2]
    np.testing.assert_array_equal(there.arrays["a"], expected)
    assert pair.end(1) is None


def test_scattered_elements_arrive(pair):
    there, here = Node(a=np.zeros((5, 6, 2)), b=np.zeros(7)), Node(a=np.arange(60.0).reshape(5, 6, 2), b=np.arange(7.0))
    some = Scattered("a", (np.array([4, 0, 4], np.int32), np.array([1, 5, 0], np.int32)))
    rows, row = Scattered("a", (np.array([2], np.int32),)), Scattered("b", (np.array([6, 1], np.int32),))
    pieces = [Piece(part, part.of(here.arrays[part.array])) for part in (row, some, rows)]
    pair.begin(1, there)
    pair.send(1, ["b", "a"], *pieces, piece("b", ((3, 5),), here.arrays["b"]), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    expected = {name: np.zeros_like(array) for name, array in here.arrays.items()}
    for part in (row, some, rows, Region("b", ((3, 5),))):
        part.put(expected[part.array], part.of(here.arrays[part.array]))
    for name, array in expected.items():
        np.testing.assert_array_equal(there.arrays[name], array)
    assert pair.end(1) is None


def test_memory_of_messages_is_used_again():
    scratch, a = Scratch(), np.arange(4000.0).reshape(40, 100)
    columns = [Delivery(1, 0, 0, (), (piece("a", ((0, 40), (k, k + 3)), a), piece("a", ((0, 9), (k, k + 1)), a)), ())
               for k in range(3)]  # fmt: skip
    sent = [packed(delivery, ["a"], scratch) for delivery in columns]
    assert len({np.frombuffer(view, np.uint8).ctypes.data for _, *views in sent for view in views}) == 2
    _, wide, narrow = sent[-1]
    np.testing.assert_array_equal(np.frombuffer(wide).reshape(40, 3), a[:, 2:5])
    np.testing.assert_array_equal(np.frombuffer(narrow), a[:9, 2])


@pytest.fixture
def impatient(monkeypatch):
    """Connections that count as broken where nobody is there for two seconds."""
    for name in ("ASK_SECONDS", "LOST_SECONDS", "LOST_TIMES"):
        monkeypatch.setattr(greeting, name, 1)


def test_a_sender_that_nobody_reads_waits_and_the_receiver_does_not_grow(impatient, pair):
    a, names = np.ones(250_000), ["a"]
    there, sent = Node(a=np.zeros(250_000)), []

    def send_on():
        for number in range(40):  # 80 MB, of a run that has not begun
            pair.send(1, names, piece("a", (), a), flags=(Flag(0, 0, number),))
            sent.append(number)

    thread = threading.Thread(target=send_on)
    tracemalloc.start()
    thread.start()
    time.sleep(3)
    assert len(sent) < 20  # what the system has room for
    pair.begin(1, there)
    thread.join()
    eventually(lambda: there.flag(0) == 40)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert pair.end(1) is None


def test_strangers_who_say_nothing_keep_nobody_out(pair):
    host, port, _ = pair.receiver.address
    there = Node(a=np.zeros(10))
    pair.begin(1, there)
    strangers = [socket.create_connection((host, port), 5) for _ in range(MOST_STRANGERS + 20)]
    other = connect(pair.receiver.address, 0, 0)
    other.send(Delivery(1, 0, 0, (Flag(0, 1, 0),), (), ()), ["a"], never)
    pair.send(1, ["a"], piece("a", (), np.ones(10)), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == there.flag(1) == 1)
    assert len(pair.receiver._incoming) == MOST_STRANGERS + 1  # the last of them made room for `other`
    for stranger in strangers:
        stranger.close()
    other.close()
    eventually(lambda: len(pair.receiver._incoming) == 1)


def test_who_gives_up_before_the_first_message_ends_no_run(pair):
    there = Node(a=np.zeros(10))
    pair.begin(1, there)
    connect(pair.receiver.address, 0, 0).close()
    eventually(lambda: len(pair.receiver._incoming) == 1)
    pair.send(1, ["a"], piece("a", (), np.ones(10)), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    assert pair.end(1) is None


def test_a_process_that_can_open_no_more_connections_keeps_those_that_it_has(pair):
    there, before = Node(a=np.zeros(10)), resource.getrlimit(resource.RLIMIT_NOFILE)
    pair.begin(1, there)
    with socket.socket() as another:
        with open(os.devnull) as free:
            resource.setrlimit(resource.RLIMIT_NOFILE, (free.fileno(), before[1]))
        try:
            another.settimeout(20)
            with suppress(ConnectionResetError):
                another.connect(pair.receiver.address[:2])
                assert another.recv(1) == b""
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    pair.send(1, ["a"], piece("a", (), np.ones(10)), flags=(Flag(0, 0, 0),))
    eventually(lambda: there.flag(0) == 1)
    with pytest.raises(OSError, match="refused"):
        connect(pair.receiver.address, 0, 0)


@pytest.fixture
def door():
    door = Door("127.0.0.1")
    yield door
    door.close()


def test_a_door_takes_each_worker_once_and_nobody_else(door):
    host, port, token = door.address
    strangers = [socket.create_connection((host, port), 5) for _ in range(MOST_STRANGERS + 20)]
    strangers[-1].sendall(b"GET / HTTP/1.1")
    with socket.create_connection((host, port), 5) as false, socket.create_connection((host, port), 5) as again:
        false.sendall(GREETING.pack(bytes(32), 1))
        workers = [threading.Thread(target=lambda n=n: made.append(connected(door.address, n))) for n in (0, 1)]
        made = []
        for worker in workers:
            worker.start()
        known = door.take(2, 20.0)
        for worker in workers:
            worker.join()
        again.sendall(GREETING.pack(token, 1))
        assert known.keys() == {0, 1}
        with pytest.raises(TimeoutError, match="1 workers did not connect"):
            door.take(1, 0.2)
        assert false.recv(1) == again.recv(1) == b""
    door.close()
    for one in made:
        one.sendall(b"word")
    assert [one.recv(4) for one in known.values()] == [b"word", b"word"]
    for one in (*strangers, *made, *known.values()):
        one.close()


def test_who_does_not_answer_gets_no_connection(monkeypatch):
    monkeypatch.setattr(greeting, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(OSError, match="timed out"):
        connect(("127.0.0.1", server.getsockname()[1], bytes(32)), 0, 1)


def test_two_workers_that_send_each_other_a_lot_at_once_do_not_wait_for_each_other(pair):
    back = Pair()
    here, there = Node(a=np.zeros(500_000)), Node(a=np.zeros(500_000))
    pair.begin(1, there)
    back.begin(1, here)

    def send_on(way):
        for number in range(30):
            way.send(1, ["a"], piece("a", (), np.full(500_000, float(number))), flags=(Flag(0, 0, number),))

    threads = [threading.Thread(target=send_on, args=(way,)) for way in (pair, back)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: here.flag(0) == there.flag(0) == 30)
    assert here.arrays["a"].min() == there.arrays["a"].min() == 29
    back.close()
