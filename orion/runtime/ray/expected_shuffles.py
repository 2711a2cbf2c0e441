"""Shuffles that are expected: while loops run, nodes are sent the rows that the next one will bring them.

An array that was shuffled twice in a row by the same numbers, for one epoch and then for the next, will be shuffled so
again: who comes to which share then is known (`orion.arrays.exchange`). Rows are taken from the array's image, as it
was when the loops began. Where they or the numbers turn out to be others, what was sent is let go of; what was not sent
in time is sent after the shuffle, as without this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import count
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orion.arrays.exchange import Exchange
from orion.arrays.shuffled import LAST_EPOCH
from orion.dataclass import dataclass, field
from orion.own_threads import OwnThread
from orion.runtime.ray.cluster import is_running
from orion.runtime.ray.group import Group
from orion.runtime.ray.orders import AheadRows
from orion.runtime.ray.regions import Mask
from orion.runtime.ray.reordered import Rows, SentAhead, lacking_rows
from orion.runtime.ray.segments import Block
from orion.schedule.schedule import Ints

LOOK_SECONDS = 0.005

AHEAD_BYTES = 1 << 20
"""About so many bytes are sent at a time: what else the driver has to say to a node waits for them."""


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
    so far; rows have `columns` without padding. `had` are the rows of nodes, bool (rows,), `at` how many of those that
    a node will lack it was sent, and `came` the places for which they have come, by the `at` of messages. A node is
    `done` that was sent all, or to which a message got lost."""

    number: int
    block: Block
    exchange: Exchange
    image: NDArray[Any]
    changes: int
    columns: int
    had: Mapping[str, Mask]
    at: Counter[str] = field(default_factory=Counter)
    came: dict[str, dict[int, Ints]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    bytes: int = 0

    @cached_property
    def order(self) -> Ints:
        """Row `order[i]` will come to place i."""
        return self.exchange.order()

    @cached_property
    def places(self) -> Mapping[str, Ints]:
        """The places at which nodes will lack rows."""
        return {node: lacking_rows(self.order, had) for node, had in self.had.items()}

    def is_of(self, exchange: Exchange | None, changes: int) -> bool:
        """Whether it was this shuffle, of the array as it is, that was expected."""
        return (self.exchange, self.changes) == (exchange, changes)

    def next_message(self, node: str) -> AheadRows | None:
        """What a node is sent next; None where there is nothing more."""
        if node in self.done or node not in self.had:
            return None
        low = self.at[node]
        rows = Rows(self.places[node][low : low + rows_of_message(self.image)], self.columns)
        if not len(rows.places):
            self.done.add(node)
            return None
        self.at[node] += len(rows.places)
        data = Rows(self.order[rows.places], self.columns).of(self.image)
        self.bytes += data.nbytes
        return AheadRows(self.block, self.number, low, rows, data)

    def has_come(self, node: str, message: AheadRows) -> None:
        """A node has what it was sent."""
        self.came.setdefault(node, {})[message.at] = message.rows.places

    def is_lost(self, node: str) -> None:
        """A message has not come: what is left is sent after the shuffle."""
        self.done.add(node)

    def places_of(self, node: str) -> Ints:
        """The places for which rows have come to a node."""
        return np.concatenate([np.empty(0, np.int64), *self.came.get(node, {}).values()])

    def taken_by(self, node: str, *, is_used: bool) -> SentAhead:
        """What tells a node to put these rows to their places, or to let go of them."""
        return SentAhead(self.number, tuple(self.came.get(node, ())) if is_used else ())


class UnderWay(NamedTuple):
    """A message on its way to a node, and what to wait for."""

    expected: Expected
    message: AheadRows
    reference: Any


class ExpectedShuffles:
    """Those of the arrays of a session, of which nodes are sent rows between `go` and `pause`."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._expected: dict[Block, Expected] = {}
        self._numbers = count(1)
        self._under_way: dict[str, UnderWay] = {}
        self._in_vain: set[Block] = set()
        self._thread: OwnThread | None = None
        self._stop = Event()

    def is_worth_it(self, block: Block, exchange: Exchange, changes: int) -> bool:
        """Whether to `expect` this shuffle of the array of a block, as it is now: not where that is done already, nor
        where the array has changed between what was sent and the shuffle before."""
        found = self._expected.get(block)
        return not (found is not None and found.is_of(exchange, changes)) and block not in self._in_vain

    def expect(
        self, block: Block, exchange: Exchange, image: NDArray[Any], changes: int, columns: int, had: Mapping[str, Mask]
    ) -> None:
        """Expect a shuffle of the array of a block (see `Expected`), and no other one."""
        self.forget(block)
        if exchange.epoch <= LAST_EPOCH and block not in self._in_vain:
            self._expected[block] = Expected(next(self._numbers), block, exchange, image, changes, columns, had)

    def take(self, block: Block) -> Expected | None:
        """What was expected of the array of a block, once what is on its way has come."""
        found = self._expected.pop(block, None)
        if found is not None:
            self._group.moved += found.bytes
            self._arrive(self._group.wait_for_ahead({node: one.reference for node, one in self._under_way.items()}))
        return found

    def forget(self, block: Block) -> None:
        """Expect nothing of an array, which has changed, or is gone. Nodes let go of what they keep with the next that
        they are sent of it, or with the array."""
        found = self._expected.pop(block, None)
        if found is not None and found.bytes:
            self._group.moved += found.bytes
            self._in_vain.add(block)

    def drop(self, blocks: Iterable[Block]) -> None:
        """Arrays that are gone."""
        for block in blocks:
            self.forget(block)
            self._in_vain.discard(block)

    def go(self) -> None:
        """Begin to send, or go on with it."""
        if any(one.had.keys() - one.done for one in self._expected.values()):
            self._stop.clear()
            with suppress(RuntimeError):  # the system gives no thread: rows are sent after the shuffle then
                self._thread = OwnThread(self._send, "orion-ahead")
                self._thread.start()

    def pause(self) -> None:
        """Send nothing more."""
        self._stop.set()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(LOOK_SECONDS)
        self._thread = None

    def _send(self) -> None:
        """Send each node one message after the other: what is on its way is in memory, and in front of what else the
        driver may have to say to it."""
        while not self._stop.is_set() and is_running():
            for node in self._idle_nodes():
                self._send_next(node)
            if not self._under_way:
                return
            references = {node: one.reference for node, one in self._under_way.items()}
            self._arrive(self._group.done_ahead(references, LOOK_SECONDS))

    def _idle_nodes(self) -> list[str]:
        nodes = {node for one in self._expected.values() for node in one.had}
        return [node for node in nodes if node not in self._under_way]

    def _send_next(self, node: str) -> None:
        for one in self._expected.values():
            message = one.next_message(node)
            if message is None:
                continue
            reference = self._group.send_ahead(node, message)
            if reference is not None:
                self._under_way[node] = UnderWay(one, message, reference)
                return
            one.is_lost(node)

    def _arrive(self, outcomes: Mapping[str, bool]) -> None:
        """Note what has come to nodes, or has been lost."""
        for node, is_there in outcomes.items():
            one = self._under_way.pop(node)
            if is_there:
                one.expected.has_come(node, one.message)
            else:
                one.expected.is_lost(node)


def rows_of_message(array: NDArray[Any]) -> int:
    """How many rows of an array are sent at a time."""
    return max(1, AHEAD_BYTES * len(array) // max(1, array.nbytes))
