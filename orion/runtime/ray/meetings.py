"""What brings copies of arrays to the meetings of workers of several nodes (`orion.replicate`): a thread of the first
worker of each node, while a loop runs whose workers all meet.

Each node has the array and room for the copies of all workers. When all workers of a node have come to a meeting that
are to come, or have done all of their iterations, the thread sends each other node one message: the copies of those who
have come, of all replicas of the loop. When the messages of the other nodes are there it puts their copies beside those
of its own workers and sets their clocks, and the workers pull all copies together as they do on one node
(`orion.kernel.support.replicas`): every node the same ones, by the same operations in the same order, and so to the
same bits. That is an all-gather, in which a node sends each other one its own copies; no sums are sent, as sums of sums
have other bits.

**What has come is kept aside** until the workers of this node have done their parts of the meeting before. Of meeting m
that is in place m & 1. Another node sends the copies of meeting m + 2 after it has had those of this node for m + 1;
these are sent when all workers here have come to m + 1, and the thread, which does one thing after the other, has taken
what was kept for m out of place m & 1 before. So nothing is overwritten that is still to be taken, and nothing comes to
the memory of copies while workers pull. For the same reason no clock of another node is set before the workers here
have done their parts: who has done all of its iterations after meeting m still counts as one of those at m.

**The end of a round.** A node whose workers have all done their iterations says so, by a message without copies, and
has no part in later meetings, whose copies it is not sent. Where others meet more often than it does, the array goes on
without it: the first node of those that met most often sends it the array as it is, with the momentum of the outer
step, and the home node the copies that have gone on since, too. So when a round is over the array is the same on all
nodes, and copies are at home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.ir.replicas import Replica
from orion.kernel.calling import COUNT, PAST_ALL, ROUND, ROUND_BITS
from orion.runtime.parts import LoopPart
from orion.runtime.ray.beside import Pause
from orion.runtime.ray.brings import Brings
from orion.runtime.ray.orders import Brought, Flag, Piece, meeting_of
from orion.runtime.ray.regions import Region
from orion.schedule.schedule import Ints

LEFT_SECONDS = 0.05
"""How often a thread that waits for other nodes looks whether the run was left."""

LEVEL = 0
"""In place of the number of a meeting, which begins with 1: the array is as it is after the last one."""


@dataclass(frozen=True, eq=False)
class Mirrored:
    """One replica on a node: the `copies` of all workers as (workers, elements), and what was kept `aside` of those of
    other nodes, (2, workers, elements)."""

    replica: Replica
    copies: NDArray[Any]
    aside: NDArray[Any]


class Meetings(Brings):
    """Those of a node in a run."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._replicas = tuple[Mirrored, ...]()
        self._arriving: dict[int, list[int]] = {}
        """The workers of each node, of the message that is being read."""
        self._there: dict[tuple[int, int], list[int]] = {}
        """The workers of nodes that have come to meetings, (node, meeting): those that have not been let in."""
        self._met: dict[int, int] = {}
        """The number of the last meeting of each node all of whose workers have done their iterations."""
        self._is_level = False
        self._last: dict[int, int] = {}
        """The last meeting of each worker so far."""

    # ------------------------------------------------------------ a round of a loop

    def begin(self, part: LoopPart) -> None:
        """Be ready for a round: nobody has begun it on any node."""
        if self.loop != part.number:
            self.loop = part.number
            self._replicas = tuple(map(self._mirrored, part.loop.plan.nest.replicas))
        self._base = part.round << ROUND_BITS
        self._arriving, self._there, self._met, self._last = {}, {}, {}, {}
        self._is_level = False
        self._clocks(self._here)  # compiles what reads them, or takes it from the disk

    def _mirrored(self, one: Replica) -> Mirrored:
        copies = self._arrays[one.copies]
        workers, elements = len(self._nodes.place), prod(copies.shape[1:])
        aside = np.empty((2, workers, elements), copies.dtype)  # what nobody touches takes no room
        return Mirrored(one, copies.reshape(len(copies), elements), aside)

    # ------------------------------------------------------------ what comes from other nodes

    def room(self, loop: int, number: int, meeting: int, workers: Ints) -> tuple[NDArray[Any], Any]:
        """Where the copies of replica `number` go that some workers bring to a meeting: an array, (workers, elements)
        or more, and an index there."""
        self._check(loop)
        place = self._replicas[number].aside[meeting & 1]
        first, count = workers.item(0), len(workers)
        if count == workers.item(-1) + 1 - first:
            return place[first : first + count], ...
        return place, workers

    def note(self, loop: int, who: int, meeting: int) -> None:
        """Note that worker `who` of another node has come to a meeting; or, by -1 - its number, that a node has told of
        all, none of whom come any more where there were none; or, of `LEVEL`, that the array is here as it is after the
        last meeting."""
        self._check(loop)
        with self._news:
            if who >= 0:
                self._arriving.setdefault(self._nodes.place[who], []).append(who)
                return
            node = -1 - who
            workers = self._arriving.pop(node, [])
            if meeting == LEVEL:
                self._is_level = True
            elif workers:
                self._there[node, meeting] = workers
            else:
                self._met[node] = meeting - 1
            self._news.notify_all()

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        meeting = 0
        with_us = [node for node in self._nodes.others if self._has_tiles(node)]
        while with_us:
            meeting += 1
            there = self._await_own(meeting)
            if not len(there):
                break
            self._send_copies(meeting, there, with_us)
            with_us = self._let_in(meeting, with_us)
        self._await_clocks(self._base + (1 << ROUND_BITS))
        own = self._count_own()
        for node in self._nodes.others:
            self._deliver(node, (self._told(own + 1),))
        self._level(own)

    def _has_tiles(self, node: int) -> bool:
        return bool((self._clocks(self._nodes.workers_of(node)) < PAST_ALL).any())

    def _await_own(self, meeting: int) -> Ints:
        """Wait until all workers of this node have come to a meeting, or have done all; those that have come."""
        clocks = self._await_clocks(self._base + 2 * meeting - 1)
        there: Ints = self._here[clocks >> ROUND_BITS == self._base >> ROUND_BITS]
        return there

    def _await_clocks(self, least: int) -> Ints:
        """Wait until the clocks of all workers of this node are at least so far; the clocks."""
        pause = Pause()
        while ((clocks := self._clocks(self._here)) < least).any():
            self._leave_if_over()
            pause()
        return clocks

    def _count_own(self) -> int:
        """Note the last meeting of each worker of this node, by its own count, and return the number of meetings.

        Workers that meet nobody of another node do not wait for this thread: it may not have seen them meet.
        """
        notes = self._memory.notes[self.loop]
        own = {worker: int(notes[worker, COUNT]) for worker in self._here.tolist() if self._is_in_round(notes[worker])}
        self._last.update(own)
        met = max(own.values(), default=0)
        self._note(meetings=met)
        return met

    def _is_in_round(self, notes: Ints) -> bool:
        return bool(notes[ROUND] == self._base >> ROUND_BITS)

    def _send_copies(self, meeting: int, there: Ints, nodes: Sequence[int]) -> None:
        """Send other nodes the copies of the workers here that are at a meeting."""
        index = slice(there.item(0), there.item(-1) + 1) if there.item(-1) - there.item(0) < len(there) else there
        brought = tuple(
            Brought(self.loop, number, meeting, there, one.copies[index]) for number, one in enumerate(self._replicas)
        )
        flags = tuple(Flag(meeting_of(self.loop), worker, meeting) for worker in there.tolist())
        for node in nodes:
            self._deliver(node, (*flags, self._told(meeting)), brought)

    def _told(self, meeting: int) -> Flag:
        return Flag(meeting_of(self.loop), -1 - self._nodes.own, meeting)

    def _let_in(self, meeting: int, nodes: Sequence[int]) -> list[int]:
        """Let the workers of other nodes in that have come to a meeting: all here have done their parts of the one
        before. The nodes of these."""
        found = []
        for node in nodes:
            workers = self._awaited(node, meeting)
            for one in self._replicas if workers else ():
                one.copies[workers] = one.aside[meeting & 1][workers]
            if workers:
                found.append(node)
                self._last.update(dict.fromkeys(workers, meeting))
            for worker in self._busy_of(node):
                self._set_clock(worker, 2 * meeting - 1 if worker in workers else 1 << ROUND_BITS)
        return found

    def _busy_of(self, node: int) -> list[int]:
        """The workers of a node that have tiles."""
        workers = self._nodes.workers_of(node)
        return workers[self._clocks(workers) < PAST_ALL].tolist()  # type: ignore[no-any-return]

    def _awaited(self, node: int, meeting: int) -> list[int]:
        """Wait until a node has told who of its workers come to a meeting: these."""
        self._await(lambda: (node, meeting) in self._there or self._met.get(node, meeting) < meeting)
        return self._there.pop((node, meeting), [])

    def _await(self, is_so: Callable[[], bool]) -> None:
        with self._news:
            while not self._news.wait_for(is_so, LEFT_SECONDS):
                self._leave_if_over()

    # ------------------------------------------------------------ the end of a round

    def _level(self, own: int) -> None:
        """Have the array be the same on all nodes, and copies at home; this one has met `own` times."""
        others = self._nodes.others
        self._await(lambda: all(node in self._met for node in others))
        met = {**self._met, self._nodes.own: own}
        most = max(met.values())
        giver = min(node for node in met if met[node] == most)
        if own < most:
            self._await(lambda: self._is_level)
        for node in others if self._nodes.own == giver else ():
            if met[node] < most:
                pieces = tuple(self._after_last(node, met[node]))
                self._deliver(node, (self._told(LEVEL),), pieces=pieces)
        for worker in (worker for node in others for worker in self._busy_of(node)):
            self._set_clock(worker, 1 << ROUND_BITS)

    def _after_last(self, node: int, met: int) -> Iterator[Piece]:
        """What a node lacks that has met so often, and no more."""
        for one in self._replicas:
            sections = [Region(array) for array in (one.replica.array, *one.replica.outer)]
            gone_on = sorted(worker for worker, last in self._last.items() if last > met) if node == 0 else ()
            sections += [Region(one.replica.copies, ((worker, worker + 1),)) for worker in gone_on]
            yield from (Piece(section, section.of(self._arrays[section.array])) for section in sections)
