"""How orders get to the actors and outcomes back: through pipes on the driver's own machine, as Ray calls
elsewhere.

A Ray call takes about a millisecond there and back, as long as a short loop runs; a pipe takes a tenth of
that. And a pipe tells at once when the process at its other end has died.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
from collections.abc import Sequence
from typing import Any, Protocol

import ray
from ray.exceptions import RayActorError

from orion.runtime.ray.orders import Outcome, RunOrder

LENGTH = struct.Struct("<Q")
READ_BYTES = 1 << 20


class LostError(Exception):
    """A worker is no more; `number` is its number, or None where that is not known."""

    def __init__(self, number: int | None, why: str) -> None:
        super().__init__(why)
        self.number = number


class Line(Protocol):
    """Orders out, outcomes in, for one run at a time."""

    def start(self, orders: Sequence[RunOrder | None]) -> None:
        """Send order k to worker k; None asks it only to answer."""

    def wait(self, seconds: float) -> dict[int, Outcome]:
        """The outcomes by worker, once all that are due are there or the time is up. LostError where a worker
        died.
        """

    def is_alive(self) -> bool:
        """False where a worker is known to have died since the last run."""

    def close(self) -> None:
        """Let go of what the line holds; safe to call again."""

    @property
    def due(self) -> int:
        """The number of workers that may have been sent an order in this run."""


class RayLine:
    """Orders as Ray calls."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = actors
        self._references: list[Any] = []
        self.due = 0

    def start(self, orders: Sequence[RunOrder | None]) -> None:
        """Send order k to actor k. Where Ctrl-C loses the reference to a call, its outcome stays due for ever."""
        self._references, self.due = [], 0
        for actor, order in zip(self._actors, orders, strict=False):
            self.due += 1
            self._references.append(actor.run.remote(order))

    def wait(self, seconds: float) -> dict[int, Outcome]:
        """The outcomes so far, at most `seconds` later all of them."""
        if not self._references:
            return {}
        done, _ = ray.wait(self._references, num_returns=len(self._references), timeout=seconds)
        return {self._references.index(reference): _outcome_of(reference) for reference in done}

    def is_alive(self) -> bool:
        """True: Ray tells of a death only with the next call."""
        return True

    def close(self) -> None:
        """There is nothing to let go of."""


def _outcome_of(reference: Any) -> Outcome:
    """The outcome of a call that is done; where the order or the outcome could not be unpickled, one that says so."""
    try:
        outcome: Outcome = ray.get(reference)
    except RayActorError as error:
        raise LostError(None, str(error).strip().splitlines()[0]) from error
    except Exception as error:
        return Outcome(error=error)
    return outcome


class Channel:
    """The driver's ends of the two pipes of one actor, and how far the order and the outcome of a run have got.

    Ctrl-C can come after a read or a write, before Python has taken down what it returned. So the two are one
    step of the interpreter here: `extend` over `map`, which calls the one and notes what it returns.
    """

    def __init__(self, orders: int, outcomes: int) -> None:
        self._orders, self.outcomes = orders, outcomes
        self._open = [orders, outcomes]
        self._order = memoryview(b"")
        self._sent: list[int] = []
        self._parts: list[bytes] = []

    def begin(self, order: bytes) -> None:
        """Take an order, yet to be sent."""
        self._sent, self._parts = [], []
        self._order = memoryview(LENGTH.pack(len(order)) + order)

    def send(self) -> None:
        """Send what has not been sent of the order. BrokenPipeError where nobody reads any more."""
        while rest := self._order[sum(self._sent) :]:
            self._sent.extend(map(os.write, (self._orders,), (rest,)))

    def receive(self) -> None:
        """Read what there is of the outcome. EOFError where nobody can write any more."""
        self._parts.extend(map(os.read, (self.outcomes,), (READ_BYTES,)))
        if not self._parts[-1]:
            raise EOFError

    def received(self) -> bytes | None:
        """The outcome, or None where it is not complete yet."""
        data = b"".join(self._parts)
        is_complete = len(data) >= LENGTH.size and len(data) == LENGTH.size + LENGTH.unpack_from(data)[0]
        return data[LENGTH.size :] if is_complete else None

    def close(self) -> None:
        """Close both ends; safe to call again."""
        while self._open:
            os.close(self._open.pop())


class PipeLine:
    """Orders through a pair of pipes per actor, each of which reads them in one endless call (`serve`)."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._channels: list[Channel] = []
        self._found: dict[int, Outcome] = {}
        self.due = 0
        far: list[int] = []
        opened = []
        try:
            for actor in actors:
                order_read, order_write = os.pipe()
                outcome_read, outcome_write = os.pipe()
                self._channels.append(Channel(order_write, outcome_read))
                far += [order_read, outcome_write]
                opened.append(actor.open_pipes.remote(pipe_path(order_read), pipe_path(outcome_write)))
            ray.get(opened)
        except BaseException:
            self.close()
            raise
        finally:
            for end in far:
                os.close(end)
        self._served = [actor.serve.remote() for actor in actors]

    def start(self, orders: Sequence[RunOrder | None]) -> None:
        """Send order k to actor k."""
        self._found, self.due = {}, 0
        for number, order in enumerate(orders):
            self._channels[number].begin(pickle.dumps(order, pickle.HIGHEST_PROTOCOL))
            self.due += 1
            self._send(number)

    def wait(self, seconds: float) -> dict[int, Outcome]:
        """The outcomes so far, at most `seconds` later all of them."""
        while True:
            for number in self._waiting():
                self._send(number)  # the rest, where Ctrl-C came in between
                data = self._channels[number].received()
                if data is not None:
                    self._found[number] = _decoded(data)
            waiting = self._waiting()
            if not waiting or not (ready := self._readable(waiting, seconds)):
                return self._found
            for number in ready:
                try:
                    self._channels[number].receive()
                except EOFError as error:
                    raise LostError(number, "its process has ended") from error

    def is_alive(self) -> bool:
        """Whether no actor has died. Between runs a pipe can only have something to read because its other
        end is gone.
        """
        return not self._readable(list(range(len(self._channels))), 0)

    def close(self) -> None:
        """Close the pipes: actors that read them come to the end of their call. Safe to call again."""
        for channel in self._channels:
            channel.close()

    def _waiting(self) -> list[int]:
        return [number for number in range(self.due) if number not in self._found]

    def _send(self, number: int) -> None:
        try:
            self._channels[number].send()
        except BrokenPipeError as error:
            raise LostError(number, "its process has ended") from error

    def _readable(self, numbers: Sequence[int], seconds: float) -> list[int]:
        """The workers among `numbers` whose pipes can be read, or have no other end any more."""
        poll = select.poll()
        number_of = {self._channels[number].outcomes: number for number in numbers}
        for descriptor in number_of:
            poll.register(descriptor, select.POLLIN)
        return [number_of[descriptor] for descriptor, _ in poll.poll(seconds * 1000)]


def _decoded(data: bytes) -> Outcome:
    """An outcome; where it cannot be unpickled here, one that says so."""
    try:
        outcome: Outcome = pickle.loads(data)
    except Exception as error:
        error.add_note("while the outcome of a run was read")
        return Outcome(error=error)
    return outcome


# ---------------------------------------------------------------- messages through a pipe


def pipe_path(descriptor: int) -> str:
    """How another process of this machine opens a pipe of this one."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def write_message(descriptor: int, data: bytes) -> None:
    """Write a message. BrokenPipeError where nobody reads any more."""
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_message(descriptor: int) -> bytes:
    """Read a message. EOFError where nobody can write any more."""
    (length,) = LENGTH.unpack(_read(descriptor, LENGTH.size))
    return _read(descriptor, length)


def _read(descriptor: int, length: int) -> bytes:
    parts = []
    while length:
        part = os.read(descriptor, min(length, READ_BYTES))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
