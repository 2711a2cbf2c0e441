"""Two processes that hand a payload to and fro, and how that is timed.

A round: the left one sends the payload, the right one has it and sends another of its own back. With `touched` each
writes the payload before it sends it, where the transport wants it, and reads all of what it has got: as loops do, and
so that a transport which copies nothing still pays for memory.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class Side(Protocol):
    """One of the two ends, for payloads of one size. `buffer` is where the payload to be sent is written."""

    buffer: Bytes

    def send(self) -> None:
        """Send what is in the buffer, which may be written again when the other side has answered."""

    def receive(self) -> Bytes:
        """What the other side has sent, to be read until the next time."""

    def close(self) -> None:
        """Let go of what it holds."""


class Pair(Protocol):
    """Both ends. `sides` are the numbers of the two processes, `others` of those that work for them."""

    sides: tuple[int, int]
    others: tuple[int, ...]

    def prepare(self, size: int) -> None:
        """Be ready for payloads of `size` bytes."""

    def rounds(self, count: int, touched: bool) -> list[float]:
        """The seconds of each of `count` rounds; one more goes before them."""

    def close(self) -> None:
        """End the other process."""


def write(buffer: Bytes, value: int) -> None:
    """Write a payload: all of its bytes."""
    buffer.fill(value & 0xFF)


def read(payload: Bytes) -> int:
    """Read a payload: all of its bytes."""
    return int(payload.view(np.uint64).sum())


def timed_rounds(
    buffer: Callable[[], Bytes], there_and_back: Callable[[], Bytes], count: int, touched: bool
) -> list[float]:
    """The seconds of so many rounds, after one that does not count: what is in the `buffer` of the round goes to the
    other side, and what comes back is returned."""
    taken = []
    for number in range(count + 1):
        start = perf_counter()
        if touched:
            write(buffer(), number)
        found = there_and_back()
        if touched:
            read(found)
        taken.append(perf_counter() - start)
        del found
    return taken[1:]


def drive(side: Side, count: int, touched: bool) -> list[float]:
    """The left one's rounds, in seconds."""

    def there_and_back() -> Bytes:
        side.send()
        return side.receive()

    return timed_rounds(lambda: side.buffer, there_and_back, count, touched)


def answer(side: Side, count: int, touched: bool) -> None:
    """The right one's rounds."""
    for number in range(count + 1):
        found = side.receive()
        if touched:
            read(found)
            write(side.buffer, number)
        side.send()


MakeSide = Callable[[Connection, bool, int], Side]
"""Makes a side for payloads of a size: the pipe to the other process, whether it is the left one, bytes."""


class PlainPair:
    """This process and one that it starts, each with a side made by `make`."""

    def __init__(self, make: MakeSide) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._make = make
        self._side: Side | None = None
        self._right = context.Process(target=_be_right, args=(make, far), daemon=True)
        self._right.start()
        far.close()
        process = multiprocessing.current_process().pid
        assert process is not None
        assert self._right.pid is not None
        self.sides = process, self._right.pid
        self.others: tuple[int, ...] = ()

    def prepare(self, size: int) -> None:
        """New sides."""
        self._end_side()
        self._pipe.send(("prepare", size))
        self._side = self._make(self._pipe, True, size)

    def rounds(self, count: int, touched: bool) -> list[float]:
        """The seconds of each round."""
        assert self._side is not None
        self._pipe.send(("rounds", count, touched))
        return drive(self._side, count, touched)

    def waiting(self, count: int) -> float:
        """The processor seconds in which both sides turn round and round until a flag is set, in so many rounds in
        which nothing is touched and one that goes before them."""
        assert self._side is not None
        self._pipe.send(("waiting", count))
        return waiting_in(self._side, partial(drive, self._side, count, False)) + float(self._pipe.recv())

    def torn(self, messages: int) -> int:
        """How many of so many messages, half of them in each direction, were not received as they were sent."""
        assert self._side is not None
        self._pipe.send(("torn", messages // 2))
        return drive_overwriting(self._side, messages // 2) + int(self._pipe.recv())

    def close(self) -> None:
        """End the other process."""
        self._end_side()
        self._pipe.send(("end",))
        self._right.join()
        self._pipe.close()

    def _end_side(self) -> None:
        if self._side is not None:
            self._side.close()
            self._side = None


def _be_right(make: MakeSide, pipe: Connection) -> None:
    side: Side | None = None
    while (order := pipe.recv())[0] != "end":
        match order:
            case ("prepare", size):
                if side is not None:
                    side.close()
                side = None
                side = make(pipe, False, size)
            case ("rounds", count, touched):
                assert side is not None
                answer(side, count, touched)
            case ("waiting", count):
                assert side is not None
                pipe.send(waiting_in(side, partial(answer, side, count, False)))
            case ("torn", count):
                assert side is not None
                pipe.send(answer_overwriting(side, count))
    if side is not None:
        side.close()


def waiting_in(side: Side, action: Callable[[], object]) -> float:
    """The processor seconds in which a side waits for flags in an action: none if it has no flags."""
    flags = getattr(side, "flags", None)
    if flags is None:
        action()
        return 0.0
    flags.begin_clock()
    action()
    return float(flags.waited)


# ---------------------------------------------------------------- messages whose source is overwritten at once

GARBAGE = 0xFF


def drive_overwriting(side: Side, count: int) -> int:
    """Send payloads of one value each, write something else into the buffer as soon as each is sent, and count those
    that come back with two values, or a wrong one."""
    torn = 0
    for number in range(count):
        _send_and_overwrite(side, number)
        torn += is_torn(side.receive(), number)
    return torn


def answer_overwriting(side: Side, count: int) -> int:
    """The right one's part."""
    torn = 0
    for number in range(count):
        torn += is_torn(side.receive(), number)
        _send_and_overwrite(side, number)
    return torn


def _send_and_overwrite(side: Side, number: int) -> None:
    write(side.buffer, number % GARBAGE)
    side.send()
    if getattr(side, "may_overwrite", True):
        write(side.buffer, GARBAGE)


def is_torn(payload: Any, number: int) -> bool:
    """Whether a payload is other than what was sent as number `number`."""
    return bool(payload.min() != number % GARBAGE or payload.max() != number % GARBAGE)
