"""Transports between two processes of one machine without Ray: shared memory, a read of the other one's memory, a
socket.
"""

from __future__ import annotations

import ctypes
import os
import socket
from multiprocessing.connection import Connection
from time import thread_time

import numpy as np

from benchmarks.transports.pair import Bytes
from orion.kernel.build.walker import meeting_walk
from orion.kernel.calling import CONTROL_SIZE, FLAG_STRIDE
from orion.runtime.ray.segments import create_segment, open_segment

FLAG_BYTES = 4096


class Flags:
    """The flags of the two sides in shared memory, set and waited for as Orion's workers do: by a compiled walk over
    a tile."""

    def __init__(self, memory: Bytes, is_left: bool) -> None:
        words = memory[:FLAG_BYTES].view(np.int64)
        self.done, self.control = words[: 4 * FLAG_STRIDE], words[-CONTROL_SIZE:]
        self._walk = meeting_walk()
        own = 0 if is_left else 1
        # Two tiles that wait for nothing, the flags; two that wait for those, and set flags that nobody looks at.
        self._waits = np.array([0, 0, 0, 1, 2]), np.array([0, 1]), np.zeros(2, np.int64)
        self._own, self._other = np.array([own]), np.array([3 - own])
        self._sent = self._received = 0
        self._has_clock, self.waited = False, 0.0

    def set(self) -> None:
        """Say that the payload is there."""
        self._walk(self._own, self._sent, *self._waits, self.done, self.control)
        self._sent += 1

    def wait(self) -> None:
        """Wait until the other side has said so."""
        start = thread_time() if self._has_clock else 0.0
        self._walk(self._other, self._received, *self._waits, self.done, self.control)
        self._received += 1
        if self._has_clock:
            self.waited += thread_time() - start

    def begin_clock(self) -> None:
        """From now on add up, as `waited`, the processor seconds of waiting: asking for them takes time, so that they
        are not asked for where rounds are timed."""
        self._has_clock, self.waited = True, 0.0


class SegmentSide:
    """A segment that both have mapped, one half for each direction: what is written there is there for the other."""

    may_overwrite = False  # the buffer is what the other one reads: it is written again once that one has answered

    def __init__(self, pipe: Connection, is_left: bool, size: int) -> None:
        if is_left:
            name, self._memory = create_segment(FLAG_BYTES + 2 * size, anonymous=True)
            pipe.send(name)
            pipe.recv()
        else:
            self._memory = open_segment(pipe.recv())
            pipe.send("opened")
        halves = self._memory[FLAG_BYTES : FLAG_BYTES + size], self._memory[FLAG_BYTES + size :]
        self.buffer, self._got = halves if is_left else halves[::-1]
        self.flags = Flags(self._memory, is_left)

    def send(self) -> None:
        """Set the flag."""
        self.flags.set()

    def receive(self) -> Bytes:
        """Wait for the flag."""
        self.flags.wait()
        return self._got

    def close(self) -> None:
        """The memory goes with the last array on it."""


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class ReadingSide:
    """Each has its payload in memory of its own, and the other one reads it there by `process_vm_readv`, with one copy
    by the system, into memory that was allocated before. Where it is was said once, before; the flag says when."""

    may_overwrite = False  # a read of memory that is written meanwhile would be torn

    def __init__(self, pipe: Connection, is_left: bool, size: int) -> None:
        self.buffer, self._got = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        if is_left:
            name, self._memory = create_segment(FLAG_BYTES, anonymous=True)
            pipe.send((name, os.getpid(), self.buffer.ctypes.data))
            self._process, address = pipe.recv()
        else:
            name, self._process, address = pipe.recv()
            self._memory = open_segment(name)
            pipe.send((os.getpid(), self.buffer.ctypes.data))
        self.flags = Flags(self._memory, is_left)
        self._there, self._here = _Vector(address, size), _Vector(self._got.ctypes.data, size)
        self._read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        self._read.restype = ctypes.c_ssize_t
        self._read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong] + [ctypes.c_void_p] + [ctypes.c_ulong] * 2

    def send(self) -> None:
        """Set the flag."""
        self.flags.set()

    def receive(self) -> Bytes:
        """Wait for the flag, and read."""
        self.flags.wait()
        count = self._read(self._process, ctypes.byref(self._here), 1, ctypes.byref(self._there), 1, 0)
        if count != self._got.nbytes:
            raise OSError(ctypes.get_errno(), f"process_vm_readv read {count} of {self._got.nbytes} bytes")
        return self._got

    def close(self) -> None:
        """There is nothing to let go of."""


class SocketSide:
    """A TCP connection, sent from the buffer and received into memory that was allocated before."""

    def __init__(self, pipe: Connection, is_left: bool, size: int) -> None:
        self.buffer, self._got = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        if is_left:
            with socket.create_server(("127.0.0.1", 0)) as server:
                pipe.send(server.getsockname())
                self._socket, _ = server.accept()
        else:
            self._socket = socket.create_connection(pipe.recv())
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self) -> None:
        """Send all of the buffer."""
        rest = memoryview(self.buffer)
        while rest:
            rest = rest[self._socket.sendmsg([rest]) :]

    def receive(self) -> Bytes:
        """Receive as many bytes."""
        rest = memoryview(self._got)
        while rest:
            count = self._socket.recv_into(rest)
            if not count:
                raise EOFError
            rest = rest[count:]
        return self._got

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
