"""Arrays with buffers as carriers bring them from node to node: as rows, and which node is told of which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.sending import Sending
from orion.dataclass import dataclass, replace
from orion.plan.relaxed import How, RelaxedArray
from orion.runtime.memory import Posted
from orion.runtime.ray.announced import Announced
from orion.runtime.ray.choice import Choice
from orion.runtime.ray.regions import Mask
from orion.schedule.schedule import Ints

SHORT_RUN = 64
"""The elements of a row of an array of one dimension that nodes have whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What a node tells others of, of an array: of `rows` while the loop runs, those in `wanted[node]` to a node (or
    all, of an array that nodes have whole), and of `last` the home node alone, when it is done: no other node touches
    them. `fetches` are the rows that it is sent itself, and `given` those that it sends to others: the home node."""

    rows: Ints
    wanted: Mapping[str, Mask]
    last: Ints
    fetches: Ints
    given: Mapping[str, Ints]


NO_ROWS = np.zeros(0, np.int64)


def told_whole(rows: int) -> Told:
    """Of an array that all nodes have whole."""
    return Told(np.arange(rows), {}, NO_ROWS, NO_ROWS, {})


def told_announced(announced: Announced, nodes: Sequence[str], own: int) -> Told:
    """Of an array of which nodes have what their tiles touch; this one is number `own` of the `nodes`. The home node
    has all, and so is told of what several others touch as these are."""
    by_node = [rows.astype(np.int64) for rows in announced.rows]
    touched = np.zeros(announced.count, np.uint16)
    for rows in by_node:
        touched[rows] += 1
    is_shared = touched[by_node[own]] > 1
    rows = by_node[own][is_shared]
    wanted, marks = {}, np.zeros(announced.count, np.bool_)
    for number, node in enumerate(nodes):
        if number == own:
            continue
        marks[by_node[number]] = True
        wanted[node] = marks[rows] if number else np.ones(len(rows), np.bool_)
        marks[by_node[number]] = False
    if own:
        return Told(rows, wanted, by_node[own][~is_shared], by_node[own], {})
    return Told(rows, wanted, NO_ROWS, NO_ROWS, dict(zip(nodes[1:], by_node[1:], strict=True)))


@dataclass(eq=False)
class Feed:
    """The rows that a node is sent, as they are when the loop begins; `at`: so many have been."""

    values: NDArray[Any]
    at: int = 0

    @property
    def is_over(self) -> bool:
        """Whether all have been sent."""
        return self.at == len(self.values)

    def next(self, count: int) -> tuple[int, NDArray[Any]]:
        """The number of the next row, and up to so many of them."""
        first = self.at
        self.at = min(first + count, len(self.values))
        return first, self.values[first : self.at]


@dataclass(frozen=True, eq=False)
class Carried:
    """An array that is kept alike on nodes, as rows of `width` elements: `now` and `base` are its elements in their
    memory, the last axis of which has `axis`. Weights of `choice` are those of `told.rows`. It is those of array `one`;
    where its updates are no sums, these updates: all that workers of this node have applied, and what others were told.
    """

    number: int
    now: NDArray[Any]
    base: NDArray[Any]
    width: int
    axis: int
    together: int
    sending: Sending
    choice: Choice
    told: Told
    feeds: Mapping[str, Feed]
    one: RelaxedArray
    snapshots: tuple[NDArray[Any], ...]
    marks: NDArray[Any]

    @property
    def row_bytes(self) -> int:
        """The bytes of a row and of its number."""
        return self.sent_width * self.sent_dtype.itemsize + 8

    @property
    def sent_width(self) -> int:
        """How many numbers are sent of a row."""
        return self.width * (1 + len(self.snapshots))

    @property
    def sent_dtype(self) -> np.dtype[Any]:
        """Of which dtype they are."""
        return np.result_type(self.now.dtype, *(one.dtype for one in self.snapshots))

    def with_snapshots(self, rows: Ints, told: NDArray[Any], take: Callable[[], object]) -> NDArray[Any]:
        """What is sent of some rows: what there is to be told, which `take` puts into `told`, and the snapshots that go
        with it. These are of the first update that others do not know. A worker may apply another one meanwhile: its
        snapshot is then taken for an older one than it is, and what came since is accounted for twice at most."""
        if not self.snapshots:
            take()
            return told
        places = np.minimum(rows[:, None] * self.width + np.arange(self.width), len(self.now) - 1)
        kept = [one[places] for one in self.snapshots]
        self.marks[places] = 0
        take()
        return np.concatenate([told, *kept], axis=1).astype(self.sent_dtype, copy=False)

    @property
    def rows_of_batch(self) -> int:
        """The rows of a message."""
        return max(1, self.sending.batch // self.row_bytes)

    @property
    def fed_rows_of_batch(self) -> int:
        """The same of rows that tiles have announced, whose numbers the other end knows."""
        return max(1, self.sending.batch // (self.row_bytes - 8))

    def wanted(self, node: str, chosen: Ints) -> Ints | slice:
        """Which of those that are `chosen`, by their places in `told.rows`, a node is told of."""
        return np.flatnonzero(self.told.wanted[node][chosen]) if self.told.wanted else slice(None)


def carried_whole(number: int, one: RelaxedArray, array: NDArray[Any]) -> Carried:
    """An array that all nodes have whole, and alike, when the loop begins."""
    width = max(1, array.shape[-1] if array.ndim > 1 else min(SHORT_RUN, array.size))
    base = array.reshape(-1).copy()
    told = told_whole(-(-array.size // width))
    return _carried(number, one, array, width, base, told, {}, least_of(base))


def carried_posted(number: int, one: RelaxedArray, posted: Posted, shape: tuple[int, ...]) -> Carried:
    """An array of this shape whose updates are no sums: nodes tell each other of these, which workers have posted, with
    the snapshots that go with them."""
    name, none = one.buffered.name, np.zeros(0, np.uint8)
    updates, marks = posted["posted", name], posted.get(("posted marks", name), none)
    updates[:] = marks[:] = 0
    snapshots = tuple(posted["posted", snapshot] for snapshot in one.buffered.snapshots)
    return replace(carried_whole(number, one, updates.reshape(shape)), snapshots=snapshots, marks=marks)


def carried_announced(number: int, one: RelaxedArray, array: NDArray[Any], count: int, told: Told) -> Carried:
    """An array of `count` rows of which a node has none when the loop begins, and the home node all. Rows that come are
    added to what is there, as updates are; those that come before them are not lost then, in whichever order."""
    width = array.size // count
    now = array.reshape(count, width)
    base = np.zeros(now.shape, now.dtype)  # memory that nobody touches takes no room
    if len(told.fetches):
        now[told.fetches] = 0
    else:
        base[told.rows] = now[told.rows]
    feeds = {node: Feed(now[rows]) for node, rows in told.given.items()}
    return _carried(number, one, array, width, base.reshape(-1), told, feeds, least_of(base[told.rows]))


def _carried(
    number: int,
    one: RelaxedArray,
    array: NDArray[Any],
    width: int,
    base: NDArray[Any],
    told: Told,
    feeds: Mapping[str, Feed],
    least: float,
) -> Carried:
    sending, together = one.buffered.sending, elements_together(one, array.shape)
    choice = Choice(sending, len(told.rows), least)
    now, axis = array.reshape(-1), array.shape[-1]
    none = np.zeros(0, np.uint8)
    return Carried(number, now, base, width, axis, together, sending, choice, told, feeds, one, (), none)


def elements_together(one: RelaxedArray, shape: tuple[int, ...]) -> int:
    """How many neighbouring elements have a lock together while updates are applied (`orion.kernel.emit.flush`)."""
    from orion.kernel.support.carried import AT_ONCE, RUNS

    if one.how is How.AT_ONCE:
        return AT_ONCE
    if one.how is How.DENSE and one.leading == len(shape):
        return RUNS
    return int(np.prod(shape[max(1, one.leading) :], dtype=np.int64))


def least_of(values: NDArray[Any]) -> float:
    """What values are taken for at least, in importance: a hundredth of their mean size, or 1 where all are 0."""
    with np.errstate(all="ignore"):
        mean = float(np.abs(values.astype(np.float64)).mean()) / 100 if values.size else 0.0
    return mean if 0 < mean < np.inf else 1.0
