"""Shuffles that are expected: while loops run, nodes are sent the rows that the next one will bring them.

An array that was shuffled twice in a row by the same numbers, for one epoch and then for the next, will be shuffled so
again: who comes to which share then is known (`orion.arrays.exchange`). Rows are taken from the array's image, as it
was when the loops began. Where they or the numbers turn out to be others, what was sent is let go of; what was not sent
in time is sent after the shuffle, as without this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from threading import Event, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.exceptions import RayError

from orion.arrays.exchange import Exchange
from orion.arrays.shuffled import LAST_EPOCH
from orion.runtime.ray.group import Group
from orion.runtime.ray.orders import FILL_BYTES, AheadRows
from orion.runtime.ray.regions import Mask
from orion.runtime.ray.reordered import Rows, lacking_rows
from orion.runtime.ray.segments import Block
from orion.schedule.schedule import Ints

LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Shuffles:
    """How often an array was shuffled, and how last; `is_regular`: as the time before, for the next epoch."""

    count: int
    last: Exchange | None
    is_regular: bool = False

    @staticmethod
    def after(before: Shuffles | None, count: int, last: Exchange | None) -> Shuffles:
        """What is known of an array that may have been shuffled since it was last looked at."""
        earlier = None if before is None or before.last is None else before.last.next()
        return Shuffles(count, last, last is not None and last == earlier)


@dataclass(eq=False)
class Expected:
    """The next shuffle of an array. `image` is the array as it is before, and `changes` says how often that has changed
    so far; rows have `columns` without padding. `had` are the rows of nodes, bool (rows,), and `sent` the places for
    which a node has been sent rows, all of them where it is `done`."""

    number: int
    block: Block
    exchange: Exchange
    image: NDArray[Any]
    changes: int
    columns: int
    had: Mapping[str, Mask]
    sent: dict[str, list[Ints]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    bytes: int = 0

    @cached_property
    def order(self) -> Ints:
        """Row `order[i]` will come to place i."""
        return self.exchange.order()

    def is_of(self, exchange: Exchange, changes: int) -> bool:
        """Whether it was this shuffle, of the array as it is, that was expected."""
        return (self.exchange, self.changes) == (exchange, changes)

    def messages(self, node: str) -> Iterator[AheadRows]:
        """What a node is still to be sent."""
        places = lacking_rows(self.order, self.had[node])
        some, sent = rows_of_message(self.image), self.sent.setdefault(node, [])
        for low in range(sum(map(len, sent)), len(places), some):
            rows = Rows(places[low : low + some], self.columns)
            data = Rows(self.order[rows.places], self.columns).of(self.image)
            sent.append(rows.places)
            self.bytes += data.nbytes
            yield AheadRows(self.block, self.number, rows, data)
        self.done.add(node)

    def places_of(self, node: str) -> Ints:
        """The places for which a node has been sent rows."""
        return np.concatenate([np.empty(0, np.int64), *self.sent.get(node, ())])


class ExpectedShuffles:
    """Those of the arrays of a session, of which nodes are sent rows between `go` and `pause`."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._expected: dict[Block, Expected] = {}
        self._numbers = count(1)
        self._under_way: dict[str, Any] = {}
        self._thread: Thread | None = None
        self._stop = Event()

    def is_expected(self, block: Block, exchange: Exchange, changes: int) -> bool:
        """Whether it is this shuffle of the array of a block, as it is now, that is expected."""
        found = self._expected.get(block)
        return found is not None and found.is_of(exchange, changes)

    def expect(
        self, block: Block, exchange: Exchange, image: NDArray[Any], changes: int, columns: int, had: Mapping[str, Mask]
    ) -> None:
        """Expect a shuffle of the array of a block (see `Expected`), and no other one."""
        self.forget(block)
        if exchange.epoch <= LAST_EPOCH:
            self._expected[block] = Expected(next(self._numbers), block, exchange, image, changes, columns, had)

    def take(self, block: Block) -> Expected | None:
        """What was expected of the array of a block, once all that was sent for it is there."""
        found = self._expected.pop(block, None)
        if found is not None and found.bytes:
            self._group.moved += found.bytes
            self._group.wait_for_ahead(self._under_way)
            self._under_way.clear()
        return found

    def forget(self, block: Block) -> None:
        """Expect nothing any more. What nodes keep they let go of with the next they are sent, or with the array."""
        found = self._expected.pop(block, None)
        self._group.moved += 0 if found is None else found.bytes

    def go(self) -> None:
        """Begin to send, or go on with it."""
        if any(one.had.keys() - one.done for one in self._expected.values()):
            self._stop.clear()
            with suppress(RuntimeError):  # the system gives no thread: rows are sent after the shuffle then
                self._thread = Thread(target=self._send, name="orion-ahead", daemon=True)
                self._thread.start()

    def pause(self) -> None:
        """Send nothing more."""
        self._stop.set()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(LOOK_SECONDS)
        self._thread = None

    def _send(self) -> None:
        """Send each node one message after the other: what is on its way is in memory."""
        expected = list(self._expected.values())
        nodes = {node for one in expected for node in one.had.keys() - one.done}
        left = {node: chain.from_iterable(one.messages(node) for one in expected if node in one.had) for node in nodes}
        with suppress(RayError):  # a worker is gone, as the run will find
            while left and not self._stop.is_set():
                for node in [node for node in left if node not in self._under_way]:
                    message = next(left[node], None)
                    if message is None:
                        del left[node]
                    else:
                        self._under_way[node] = self._group.send_ahead(node, message)
                for node in self._group.done_ahead(self._under_way, LOOK_SECONDS):
                    del self._under_way[node]


def rows_of_message(array: NDArray[Any]) -> int:
    """How many rows of an array are sent at a time."""
    return max(1, FILL_BYTES * len(array) // max(1, array.nbytes))
