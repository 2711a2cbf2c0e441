"""Connections between workers of different nodes, one in each direction that is used: a worker sends from the memory of
arrays, and one thread of the other process reads into it.

A message is some integers and then contents (`orion.runtime.ray.wire`). `send` returns when the system has all of it,
so that arrays may be written again. A receiver reads contents only to where they belong, and does not read on a
connection whose next message is of a run that has not begun there; messages of runs that are over it reads away.

So a sender cannot fill the memory of a receiver. What has been sent and not been put where it belongs is in the
buffers of the system, whose size the system bounds; when they are full, the sender waits. Besides, each connection has
the table of contents of one message, and memory for its largest part that is not contiguous where it belongs. Two
workers that send to each other never wait for each other: the threads that read do nothing else.

Whoever connects shows a token first (`orion.runtime.ray.greeting`).
"""

from __future__ import annotations

import secrets
import select
import selectors
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import ioctl
from itertools import islice
from termios import TIOCOUTQ

import numpy as np

from orion.own_threads import OwnThread
from orion.runtime.ray.greeting import (
    GREETING,
    MOST_STRANGERS,
    TAKEN,
    Address,
    connected,
    notice_loss,
    worker_greeting,
)
from orion.runtime.ray.inbox import EarlyError, Inbox
from orion.runtime.ray.orders import Delivery, Flag
from orion.runtime.ray.wire import HEADER_WORDS, LatePlace, Place, Scratch, as_bytes, packed, unpacked
from orion.runtime.worker import AbortedError

LOOK_MILLISECONDS = 50
"""How often a sender that waits looks whether its run was aborted."""

MOST_PARTS = 512
"""How many parts of memory one call sends (the system's own limit is 1024)."""

READ_BYTES = 1 << 20
"""How much is read in one go, during which a run cannot end."""

AWAY_BYTES = 1 << 16
"""How much is read away in one go."""


class BrokenLinkError(Exception):
    """The connection with a worker is broken, and why."""

    def __init__(self, worker: int, why: str) -> None:
        super().__init__(worker, why)
        self.worker = worker

    def __str__(self) -> str:
        return f"its connection is broken: {self.args[1]}"


def connect(address: Address, own: int, other: int) -> Link:
    """A connection from worker `own` to worker `other`. OSError where it cannot be made, or is not taken."""
    made = connected(address, own)
    made.setblocking(False)
    return Link(made, other)


class Link:
    """The sender's end of a connection to a worker."""

    def __init__(self, connection: socket.socket, worker: int) -> None:
        self._socket, self._worker = connection, worker
        self._unsent: deque[memoryview] = deque()
        self._scratch = Scratch()
        self._poll = select.poll()
        self._poll.register(connection, select.POLLOUT)

    def send(self, delivery: Delivery, arrays: Sequence[str], is_aborted: Callable[[], bool]) -> None:
        """Send a delivery; arrays that it is from may be written when this returns. AbortedError where the run was
        aborted meanwhile, BrokenLinkError where nobody reads any more."""
        self._unsent.extend(packed(delivery, arrays, self._scratch))
        try:
            self._send(is_aborted)
        except BaseException:
            # The other end has read a part of the message, and reads the rest of it before the next one.
            self._unsent = deque(memoryview(bytes(view)) for view in self._unsent)
            raise

    def unsent(self) -> int:
        """How many bytes of what was sent the other end has not got, as far as the system says; 0 where it does not."""
        found = bytearray(4)
        try:
            ioctl(self._socket, TIOCOUTQ, found)
        except OSError:
            return 0
        return int.from_bytes(found, sys.byteorder)

    def close(self) -> None:
        """Close the connection; safe to call again."""
        self._socket.close()

    def _send(self, is_aborted: Callable[[], bool]) -> None:
        while self._unsent:
            try:
                self._drop(self._socket.sendmsg(list(islice(self._unsent, MOST_PARTS))))
            except BlockingIOError:
                if is_aborted():
                    raise AbortedError from None
                self._poll.poll(LOOK_MILLISECONDS)
            except OSError as error:
                raise BrokenLinkError(self._worker, str(error)) from error

    def _drop(self, count: int) -> None:
        """Forget bytes that were sent."""
        while count:
            first = self._unsent.popleft()
            if count < len(first):
                self._unsent.appendleft(first[count:])
            count -= min(count, len(first))


# ---------------------------------------------------------------- the other end

Arrived = Callable[[int, int, int], None]
"""Called with the sender of a message, its number and its bytes once it is where it belongs."""


class Receiver:
    """Takes connections of workers on other nodes, and puts what they send where it belongs: in one thread."""

    def __init__(self, host: str, inbox: Inbox, arrived: Arrived) -> None:
        self._inbox, self._arrived = inbox, arrived
        self._token = secrets.token_bytes(32)
        self._server = socket.create_server((host, 0))
        self._server.setblocking(False)
        self.address: Address = (host, self._server.getsockname()[1], self._token)
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._is_closed = False
        self._incoming: dict[_Incoming, None] = {}
        self._early: list[_Incoming] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ, self._accept)
        self._selector.register(self._woken, selectors.EVENT_READ, self._go_on)
        self._thread = OwnThread(self._serve, "orion-receiver")
        self._thread.start()

    def wake(self) -> None:
        """Look again at connections whose next message was early: a run has begun, or ended."""
        with suppress(OSError):  # it is woken already, or closed
            self._wake.send(b"w")

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        self.wake()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while not self._is_closed:
                for key, _ in self._selector.select():
                    key.data()
        finally:
            for incoming in self._incoming:
                incoming.close()
            self._server.close()
            self._selector.close()
            self._woken.close()
            self._wake.close()

    def _accept(self) -> None:
        try:
            made, _ = self._server.accept()
        except (BlockingIOError, ConnectionError):  # whoever it was is gone
            return
        except OSError:  # no more of them can be opened: whoever wants one is refused, and makes calls of Ray
            self._selector.unregister(self._server)
            self._server.close()
            return
        made.setblocking(False)
        with suppress(OSError):  # where it is closed already; a read tells
            notice_loss(made)
        strangers = [incoming for incoming in self._incoming if incoming.is_stranger]
        if len(strangers) >= MOST_STRANGERS:
            self._drop(strangers[0])
        incoming = _Incoming(made, self._token, self._inbox, self._arrived)
        self._incoming[incoming] = None
        self._attend(incoming)

    def _attend(self, incoming: _Incoming) -> None:
        self._selector.register(incoming.socket, selectors.EVENT_READ, lambda: self._read(incoming))

    def _drop(self, incoming: _Incoming) -> None:
        self._selector.unregister(incoming.socket)
        del self._incoming[incoming]
        incoming.close()

    def _read(self, incoming: _Incoming) -> None:
        if incoming not in self._incoming:  # closed since it was found to have something to read
            return
        try:
            incoming.read()
        except EarlyError:
            self._selector.unregister(incoming.socket)
            self._early.append(incoming)
        except Exception as error:
            self._drop(incoming)
            incoming.tell(error)

    def _go_on(self) -> None:
        self._woken.recv(4096)
        early, self._early = self._early, []
        for incoming in early:
            self._attend(incoming)
            self._read(incoming)  # its message may be here already but for its contents, and have none


class _Incoming:
    """The receiver's end of a connection: memory that is to be filled next, and what to do when it is."""

    def __init__(self, connection: socket.socket, token: bytes, inbox: Inbox, arrived: Arrived) -> None:
        self.socket = connection
        self._token, self._inbox, self._arrived = token, inbox, arrived
        self._worker: int | None = None
        self._is_used = False
        self._messages = 0
        self._greeting = bytearray(GREETING.size)
        self._header = np.zeros(HEADER_WORDS, np.int64)
        self._tables, self._scratch = Scratch(), Scratch()
        self._table = self._data = np.zeros(0, np.int64)
        self._run: int | None = None
        """The run of the message whose contents are read."""
        self._left = 0
        """The bytes of it that have not been read."""
        self._places: deque[Place | LatePlace] = deque()
        """Where they go; nowhere where they are read away. What is read now goes to the first one."""
        self._flags: tuple[Flag, ...] = ()
        self._views = deque([memoryview(self._greeting)])
        self._then = self._greeted

    @property
    def is_stranger(self) -> bool:
        """Whether it has not shown the token."""
        return self._worker is None

    def read(self) -> None:
        """Read what there is, of one message: other connections have their turn. EarlyError where it is of a run that
        has not begun, EOFError or OSError where nothing can come any more."""
        before = self._messages
        with suppress(BlockingIOError):
            while self._messages == before:
                if not self._views:
                    self._then()
                elif self._run is None:
                    self._fill()
                else:
                    self._fill_contents(self._run)

    def tell(self, error: BaseException) -> None:
        """Say that the connection is broken, if it was ever used: whoever gave up before that makes calls of Ray."""
        if self._worker is not None and self._is_used:
            self._inbox.lose(self._worker, BrokenLinkError(self._worker, str(error) or "it was closed"))

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _fill(self) -> int:
        """Read into the first of the views, and return how many bytes."""
        count = self.socket.recv_into(self._views[0][:READ_BYTES])
        if not count:
            raise EOFError
        view = self._views.popleft()[count:]
        if view:
            self._views.appendleft(view)
        return count

    def _fill_contents(self, run: int) -> None:
        with self._inbox.during(run) as landing:
            if landing is None and self._places:
                self._read_away()
            self._left -= self._fill()

    def _read_away(self) -> None:
        self._places, self._flags = deque(), ()
        spare = as_bytes(self._scratch.array((min(self._left, AWAY_BYTES),), np.dtype(np.uint8)))
        whole, rest = divmod(self._left, AWAY_BYTES)
        self._views = deque([spare] * whole + [spare[:rest]] * bool(rest))
        self._then = self._put

    # ------------------------------------------------------------ when memory is filled

    def _greeted(self) -> None:
        worker = worker_greeting(self._greeting, self._token)
        if worker is None:
            raise EOFError
        self.socket.send(TAKEN)  # the first byte that is sent here: the system has room for it
        self._worker = worker
        self._begin()

    def _begin(self) -> None:
        """The next message."""
        self._run = None
        self._views.append(as_bytes(self._header))
        self._then = self._headed

    def _headed(self) -> None:
        self._is_used = True
        self._table = self._tables.array((int(self._header[3]),), np.dtype(np.int64))
        self._views.append(as_bytes(self._table))
        self._then = self._told

    def _told(self) -> None:
        run, size = int(self._header[0]), int(self._header[4])
        contents = None
        try:
            with self._inbox.during(run) as landing:
                contents = None if landing is None else unpacked(self._table, landing)
            if contents is not None and contents.nbytes != size:
                raise ValueError(f"a message has {size} bytes, its contents {contents.nbytes}")
        except EarlyError:
            raise
        except Exception as error:
            self._inbox.fail(run, error)
            contents = None
        self._run, self._left = run, size
        if contents is None:
            self._read_away()
        else:
            self._places, self._flags = deque(place for place in contents.places if place.nbytes), contents.flags
            self._next_place()

    def _next_place(self) -> None:
        if self._places:
            self._data = self._places[0].memory(self._scratch)
            self._views.append(as_bytes(self._data))
            self._then = self._placed
        else:
            self._then = self._put

    def _placed(self) -> None:
        run, place = int(self._header[0]), self._places.popleft()
        try:
            with self._inbox.during(run) as landing:
                if landing is not None:
                    place.fill(self._data)
        except Exception as error:
            self._inbox.fail(run, error)
        self._next_place()

    def _put(self) -> None:
        run, sender, number, _, size = self._header.tolist()
        try:
            with self._inbox.during(run) as landing:
                if landing is not None:
                    for flag in self._flags:
                        landing.set(flag)
            self._arrived(sender, number, size)
        except Exception as error:
            self._inbox.fail(run, error)
        self._messages += 1
        self._begin()
