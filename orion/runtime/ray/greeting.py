"""Connections between processes on different nodes: one of them listens, and tells the other by way of Ray where, with
a token; whoever connects shows the token first, and is told that it is taken.

The token is 32 random bytes. Until it is shown nothing else that comes is looked at. The token and what follows are not
encrypted, no more than what Ray sends is.
"""

from __future__ import annotations

import hmac
import secrets
import selectors
import socket
import struct
import time
from contextlib import suppress

GREETING = struct.Struct("<32sq")
"""The token, and the number of the worker that connects."""

TAKEN = b"+"
"""The answer to it."""

CONNECT_SECONDS = 5.0

MOST_STRANGERS = 64
"""How many connections there can be of those who have not shown the token yet; the oldest is closed for another one."""

ASK_SECONDS = 30
"""How often the system of the other end is asked whether it is there while nothing is sent, so that what watches
connections between the two (a firewall) sees that this one is used."""

LOST_SECONDS, LOST_TIMES = 10, 3
"""After how long it is asked again where it does not answer, and after how many times the connection is broken."""

Address = tuple[str, int, bytes]
"""Host, port and token."""


def connected(address: Address, own: int) -> socket.socket:
    """A connection of worker `own` to whoever listens there. OSError where it cannot be made, or is not taken."""
    host, port, token = address
    made = socket.create_connection((host, port), CONNECT_SECONDS)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        notice_loss(made)
        made.sendall(GREETING.pack(token, own))
        if made.recv(len(TAKEN)) != TAKEN:
            raise ConnectionRefusedError("the connection was not taken")
    except BaseException:
        made.close()
        raise
    return made


def notice_loss(connection: socket.socket) -> None:
    """Have the system say when the other end is gone without a word, as far as it can. Not by TCP_USER_TIMEOUT, which
    also breaks a connection whose other end is there and does not read, as before its run begins."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, ASK_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, LOST_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, LOST_TIMES)


def worker_greeting(greeting: bytes | bytearray, token: bytes) -> int | None:
    """The worker that a greeting is from; None where it does not have the token."""
    shown, worker = GREETING.unpack(greeting)
    return int(worker) if hmac.compare_digest(shown, token) else None


class Door:
    """Where some workers connect to this process, once each. To be closed when they have, or have not."""

    def __init__(self, host: str) -> None:
        self._token = secrets.token_bytes(32)
        self._server = socket.create_server((host, 0))
        self._server.setblocking(False)
        self.address: Address = (host, self._server.getsockname()[1], self._token)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._strangers: dict[socket.socket, bytearray] = {}
        self._known: dict[int, socket.socket] = {}
        self._seen: set[int] = set()

    def take(self, workers: int, seconds: float) -> dict[int, socket.socket]:
        """The connections of so many workers, by their numbers; TimeoutError where they are not there in time."""
        end = time.monotonic() + seconds
        while len(self._known) < workers:
            ready = self._selector.select(max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"{workers - len(self._known)} workers did not connect within {seconds:g} s")
            for key, _ in ready:
                if key.fileobj is self._server:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)
        known, self._known = self._known, {}
        return known

    def close(self) -> None:
        """Close everything but the connections that were taken. Safe to call again."""
        for one in (self._server, *self._strangers, *self._known.values()):
            one.close()
        self._selector.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionError):  # whoever it was is gone
            made, _ = self._server.accept()
            made.setblocking(False)
            if len(self._strangers) >= MOST_STRANGERS:
                self._drop(next(iter(self._strangers)))
            self._strangers[made] = bytearray()
            self._selector.register(made, selectors.EVENT_READ)

    def _read(self, made: socket.socket) -> None:
        if made not in self._strangers:  # dropped since it was found to have something to read
            return
        greeting = self._strangers[made]
        try:
            part = made.recv(GREETING.size - len(greeting))
        except BlockingIOError:
            return
        except OSError:
            part = b""
        greeting += part
        if part and len(greeting) < GREETING.size:
            return
        worker = worker_greeting(greeting, self._token) if part else None
        if worker is None or worker in self._seen:
            self._drop(made)
            return
        self._selector.unregister(made)
        del self._strangers[made]
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        notice_loss(made)
        made.send(TAKEN)  # the first byte that is sent here: the system has room for it
        self._known[worker] = made
        self._seen.add(worker)

    def _drop(self, made: socket.socket) -> None:
        self._selector.unregister(made)
        del self._strangers[made]
        made.close()
