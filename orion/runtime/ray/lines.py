"""How orders get to the actors and outcomes back: through pipes on the driver's own machine, through sockets to other
nodes, and as Ray calls where there can be none of these.

A Ray call takes about a millisecond there and back, and more to another node, as long as a short loop runs; a pipe or a
socket takes a tenth of that. And they tell at once when the process at the other end has died.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import ray
from ray.exceptions import RayActorError

from orion.runtime.ray.greeting import CONNECT_SECONDS, Door
from orion.runtime.ray.orders import Order, Outcome

SERVE = "serve"
"""The concurrency group of the endless call in which actors read orders."""

LENGTH = struct.Struct("<Q")
READ_BYTES = 1 << 20


class LostError(Exception):
    """A worker is no more; `number` is its number, or None where that is not known."""

    def __init__(self, number: int | None, why: str) -> None:
        super().__init__(why)
        self.number = number


class Line(Protocol):
    """Orders out, outcomes in, for one run at a time."""

    def start(self, orders: Sequence[Order]) -> None:
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

    def start(self, orders: Sequence[Order]) -> None:
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
    """The driver's ends of the two pipes of one actor, or of its socket, which is both, and how far the order and the
    outcome of a run have got.

    Ctrl-C can come after a read or a write, before Python has taken down what it returned. So the two are one
    step of the interpreter here: `extend` over `map`, which calls the one and notes what it returns.
    """

    def __init__(self, orders: int, outcomes: int) -> None:
        self.orders, self.outcomes = orders, outcomes
        self._open = {orders, outcomes}
        self._order = memoryview(b"")
        self._sent: list[int] = []
        self._parts: list[bytes] = []
        os.set_blocking(orders, False)  # who does not read must not keep others from being sent theirs

    def begin(self, order: bytes) -> None:
        """Take an order, yet to be sent."""
        self._sent, self._parts = [], []
        self._order = memoryview(LENGTH.pack(len(order)) + order)

    def send(self) -> bool:
        """Send what has not been sent of the order, as far as the system takes it now: whether that is all. OSError
        where nobody reads any more."""
        with suppress(BlockingIOError):
            while rest := self._order[sum(self._sent) :]:
                self._sent.extend(map(os.write, (self.orders,), (rest,)))
        return sum(self._sent) == len(self._order)

    def receive(self) -> None:
        """Read what there is of the outcome. EOFError or OSError where nobody can write any more."""
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


class ChannelLine:
    """Orders through a channel per actor, each of which reads them in one endless call (`serve`): a pair of pipes to
    those that are `near`, and a socket to others, which connect to `host` from their nodes. OSError where they cannot.
    """

    def __init__(self, actors: Sequence[Any], near: Sequence[bool], host: str) -> None:
        self._channels: dict[int, Channel] = {}
        self._found: dict[int, Outcome] = {}
        self.due = 0
        try:
            self._open_pipes({number: one for number, one in enumerate(actors) if near[number]})
            if not all(near):
                self._open_sockets([one for number, one in enumerate(actors) if not near[number]], host)
        except BaseException:
            self.close()
            raise
        self._served = [actor.serve.options(concurrency_group=SERVE).remote() for actor in actors]

    def _open_pipes(self, actors: Mapping[int, Any]) -> None:
        far: list[int] = []
        opened = []
        try:
            for number, actor in actors.items():
                order_read, order_write = os.pipe()
                outcome_read, outcome_write = os.pipe()
                self._channels[number] = Channel(order_write, outcome_read)
                far += [order_read, outcome_write]
                opened.append(actor.open_pipes.remote(pipe_path(order_read), pipe_path(outcome_write)))
            ray.get(opened)
        finally:
            for end in far:
                os.close(end)

    def _open_sockets(self, actors: Sequence[Any], host: str) -> None:
        door = Door(host)
        try:
            asked = [actor.connect_orders.remote(door.address) for actor in actors]
            for number, made in door.take(len(actors), CONNECT_SECONDS).items():
                descriptor = made.detach()
                self._channels[number] = Channel(descriptor, descriptor)
            ray.get(asked)
        finally:
            door.close()

    def start(self, orders: Sequence[Order]) -> None:
        """Send order k to actor k."""
        self._found, self.due = {}, 0
        for number, order in enumerate(orders):
            self._channels[number].begin(pickle.dumps(order, pickle.HIGHEST_PROTOCOL))
            self.due += 1
            self._send(number)

    def wait(self, seconds: float) -> dict[int, Outcome]:
        """The outcomes so far, at most `seconds` after the last one all of them."""
        while True:
            unsent = [number for number in self._waiting() if not self._send(number)]
            for number in self._waiting():
                data = self._channels[number].received()
                if data is not None:
                    self._found[number] = _decoded(data)
            waiting = self._waiting()
            if not waiting:
                return self._found
            ready = self._ready(waiting, unsent, seconds)
            if not ready:
                self._look()
                return self._found
            for number in ready - {*unsent}:
                self._receive(number)

    def is_alive(self) -> bool:
        """Whether no actor has died. Between runs there can only be something to read because the other end is
        gone.
        """
        return not self._ready(self._channels, (), 0)

    def close(self) -> None:
        """Close the channels: actors that read them come to the end of their call. Safe to call again."""
        for channel in self._channels.values():
            channel.close()

    def _waiting(self) -> list[int]:
        return [number for number in range(self.due) if number not in self._found]

    def _send(self, number: int) -> bool:
        try:
            return self._channels[number].send()
        except OSError as error:
            raise LostError(number, _why(error)) from error

    def _receive(self, number: int) -> None:
        try:
            self._channels[number].receive()
        except (EOFError, OSError) as error:
            raise LostError(number, _why(error)) from error

    def _look(self) -> None:
        """LostError where Ray says that an actor is gone, as with its whole node, from which nothing comes at all."""
        ended, _ = ray.wait(self._served, num_returns=len(self._served), timeout=0)
        for reference in ended:
            raise LostError(self._served.index(reference), "its process or its node is gone")

    def _ready(self, reading: Iterable[int], writing: Sequence[int], seconds: float) -> set[int]:
        """The workers of which there is something to read or that can be written to, or whose other end is gone. Those
        that are written to are not read before."""
        poll = select.poll()
        number_of: dict[int, int] = {}
        for number in reading:
            channel, is_writing = self._channels[number], number in writing
            descriptor = channel.orders if is_writing else channel.outcomes
            number_of[descriptor] = number
            poll.register(descriptor, select.POLLOUT if is_writing else select.POLLIN)
        return {number_of[descriptor] for descriptor, _ in poll.poll(seconds * 1000)}


def _why(error: Exception) -> str:
    """Why a worker is lost whose channel is broken."""
    is_ended = isinstance(error, EOFError | BrokenPipeError | ConnectionResetError)
    return "its process has ended" if is_ended else f"its connection is broken: {error}"


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
