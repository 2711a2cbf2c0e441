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


class LostError(Exception):
    """A worker is no more; `number` is its number, or None where that is not known."""

    def __init__(self, number: int | None, why: str) -> None:
        super().__init__(why)
        self.number = number


class Line(Protocol):
    """Orders out, outcomes in, for one run at a time."""

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Send order k to worker k."""

    def wait(self, seconds: float) -> dict[int, Outcome]:
        """The outcomes by worker, once all that are due are there or the time is up. LostError where a worker
        died.
        """

    def is_alive(self) -> bool:
        """False where a worker is known to have died since the last run."""

    @property
    def due(self) -> int:
        """The number of workers that have been sent an order in this run."""


class RayLine:
    """Orders as Ray calls."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = actors
        self._references: list[Any] = []

    @property
    def due(self) -> int:
        return len(self._references)

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Send order k to actor k."""
        self._references = []
        for actor, order in zip(self._actors, orders, strict=False):
            self._references.append(actor.run.remote(order))

    def wait(self, seconds: float) -> dict[int, Outcome]:
        """The outcomes so far, at most `seconds` later all of them."""
        if not self._references:
            return {}
        done, _ = ray.wait(self._references, num_returns=len(self._references), timeout=seconds)
        try:
            return dict(zip((self._references.index(ref) for ref in done), ray.get(done), strict=True))
        except RayActorError as error:
            raise LostError(None, str(error).strip().splitlines()[0]) from error

    def is_alive(self) -> bool:
        """True: Ray tells of a death only with the next call."""
        return True


class PipeLine:
    """Orders through a pair of pipes per actor, each of which reads them in one endless call (`serve`)."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._orders: list[int] = []
        self._outcomes: list[int] = []
        self._found: dict[int, Outcome] = {}
        self._waiting: set[int] = set()
        self.due = 0
        far: list[int] = []
        opened = []
        for actor in actors:
            order_read, order_write = os.pipe()
            outcome_read, outcome_write = os.pipe()
            self._orders.append(order_write)
            self._outcomes.append(outcome_read)
            far += [order_read, outcome_write]
            opened.append(actor.open_pipes.remote(pipe_path(order_read), pipe_path(outcome_write)))
        try:
            ray.get(opened)
        finally:
            for end in far:
                os.close(end)
        self._served = [actor.serve.remote() for actor in actors]

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Send order k to actor k."""
        self._found, self._waiting, self.due = {}, set(), 0
        for number, order in enumerate(orders):
            self.due += 1
            self._waiting.add(number)
            try:
                send(self._orders[number], order)
            except BrokenPipeError as error:
                raise LostError(number, "its process has ended") from error

    def wait(self, seconds: float) -> dict[int, Outcome]:
        """The outcomes so far, at most `seconds` later all of them."""
        while self._waiting and (ready := self._readable(self._waiting, seconds)):
            for number in ready:
                try:
                    self._found[number] = receive(self._outcomes[number])
                except EOFError as error:
                    raise LostError(number, "its process has ended") from error
                self._waiting.discard(number)
        return self._found

    def is_alive(self) -> bool:
        """Whether no actor has died. Between runs a pipe can only have something to read because its other
        end is gone.
        """
        return not self._readable(set(range(len(self._outcomes))), 0)

    def _readable(self, numbers: set[int], seconds: float) -> list[int]:
        """The workers among `numbers` whose pipes can be read, or have no other end any more."""
        poll = select.poll()
        number_of = {self._outcomes[number]: number for number in numbers}
        for descriptor in number_of:
            poll.register(descriptor, select.POLLIN)
        return [number_of[descriptor] for descriptor, _ in poll.poll(seconds * 1000)]

    def close(self) -> None:
        """Close the pipes: actors that read them come to the end of their call."""
        for descriptor in (*self._orders, *self._outcomes):
            os.close(descriptor)


# ---------------------------------------------------------------- messages through a pipe


def pipe_path(descriptor: int) -> str:
    """How another process of this machine opens a pipe of this one."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def send(descriptor: int, message: object) -> None:
    """Write a message. BrokenPipeError where nobody reads any more."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def receive(descriptor: int) -> Any:
    """Read a message. EOFError where nobody can write any more."""
    (length,) = LENGTH.unpack(_read(descriptor, LENGTH.size))
    return pickle.loads(_read(descriptor, length))


def _read(descriptor: int, length: int) -> bytes:
    parts = []
    while length:
        part = os.read(descriptor, min(length, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
