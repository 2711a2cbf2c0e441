"""The actors of a session and the memory that they share with the driver: what is replaced as a whole when an
actor is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import perf_counter, perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary, finalize, ref

from orion.arrays.storage import Storage
from orion.aside import aside
from orion.dataclass import dataclass, replace
from orion.runtime.backend import ProgramCall
from orion.runtime.failures import left_without_error
from orion.runtime.memory import RunMemory, place_of
from orion.runtime.notice import said_if_slow
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recording, measured_run
from orion.runtime.profile.records import NONE_BROUGHT, NONE_SENT, FetchedRows
from orion.runtime.ray.announced import Announcements, Announcers
from orion.runtime.ray.dealing import Dealings
from orion.runtime.ray.group import Group
from orion.runtime.ray.looks import place_there
from orion.runtime.ray.mirrors import Mirrors
from orion.runtime.ray.orders import Outcome, RunOrder
from orion.runtime.ray.same_programs import module_not_found
from orion.runtime.ray.segments import remove_name
from orion.runtime.ray.store import PlacedRun, Store, call_if_alive


@dataclass(frozen=True, eq=False)
class KnownProgram:
    """What the driver keeps for a program: its number, and the segment of its flags and results."""

    number: int
    segment: int
    memory: RunMemory


NOT_SENT = object()
"""In place of the exchange of a program that an actor does not know."""


class News:
    """What one actor has not been told yet: segments that are gone, programs that have ended. `programs` are
    those it knows, each with the exchange that it knows (None on one node), and `announced` what it knows of the rows
    that their tiles touch.

    It counts as told when a run with the order has ended well. Until then it is told again, which does no harm.
    """

    def __init__(self) -> None:
        self.dropped: list[int] = []
        self.ended: list[int] = []
        self.programs: dict[int, object] = {}
        self.announced: dict[int, Announcements] = {}

    def told(self, order: RunOrder, exchange: object, announced: Announcements) -> None:
        """The actor has done what an order says, and knows what nodes send each other in its program, and what was
        announced of it."""
        self.programs[order.program] = exchange
        self.announced[order.program] = announced
        del self.dropped[: len(order.dropped)]
        del self.ended[: len(order.ended)]

    def end(self, program: int) -> None:
        """A program has ended."""
        self.programs.pop(program, None)
        self.announced.pop(program, None)
        self.ended.append(program)


class Team:
    """A group of actors with the store of the arrays that it works on. `held` are the CPUs of the cluster
    that other sessions of this process hold, `store` is what a team before this one has left, `standstill` how many
    seconds a worker may be stopped by a signal, and `storage` where the arrays are held.
    """

    def __init__(self, workers: int, held: int, store: Store | None, standstill: float, storage: Storage) -> None:
        self.group = Group(workers, held, standstill)
        is_usable = store is not None and self.group.shares_memory
        self._store = store if store is not None and is_usable else Store(self.group.shares_memory, storage)
        self._programs: WeakKeyDictionary[PreparedProgram, KnownProgram] = WeakKeyDictionary()
        self._news = [News() for _ in range(workers)]
        self._mirrors = Mirrors(self.group, self._store)
        self._dealings = Dealings()
        self._announcers = Announcers()
        self._numbers, self._runs = count(1), count(1)
        self._attached: set[int] = set()
        self.sent_bytes = 0
        """The contents of arrays that nodes sent to each other in the last run."""

    def run(self, call: ProgramCall) -> Any:
        """Run a program on the first `prepared.workers` actors."""
        began = perf_counter()
        prepared, arguments, recording, noted = call.prepared, call.arguments, call.recording, call.noted
        program = self._program(prepared)
        placed = self._store.place(prepared, arguments)
        if len(set(self.group.nodes[: prepared.workers])) > 1:
            self._mirrors.read(prepared, self._announcers.reads(prepared, self.group.nodes, arguments))
        with self._copying(recording, placed.bytes_in()):
            placed.copy_in(self._mirrors.up_to_date.differs)
            program.memory.reset()
            self._tell_dropped()
            self._mirrors.prepare(prepared, program.segment, placed)
        filled_in = perf_counter() - began
        announced = self._announced(prepared, placed, arguments)
        measured = None if recording is None else recording.number
        orders = self._orders(prepared, program, placed, announced, measured)
        self._mirrors.send_ahead(prepared, placed)
        with measured_run(recording) as took:
            place, have_met = partial(self._place, prepared, program), partial(program.memory.have_met, len(orders))
            outcomes = self.group.run(orders, program.memory.abort, place, have_met)
            took += [outcome.measured for outcome in outcomes if outcome.measured is not None]
        _raise_failure(prepared, outcomes, self.group.nodes)
        noted.updates = program.memory.all_notes()
        for worker, outcome in enumerate(outcomes):  # those of other nodes are not in this memory
            for notes, own in zip(noted.updates, outcome.notes, strict=False):
                notes[worker : worker + 1] = own
        noted.shuffled = self._mirrors.shuffled
        noted.sent = tuple(outcome.carried for outcome in outcomes if outcome.carried != NONE_SENT)
        noted.fetched = tuple(_fetched(outcomes, self.group.nodes))
        noted.brought = tuple(outcome.brought for outcome in outcomes if outcome.brought != NONE_BROUGHT)
        self.sent_bytes = sum(outcome.sent_bytes for outcome in outcomes)
        for news, order in zip(self._news, orders, strict=False):
            news.told(order, self._mirrors.exchange_of(prepared, placed), announced)
        with self._copying(recording, placed.bytes_out()):
            self._mirrors.fetch(prepared, placed)
            self._mirrors.keep(prepared, placed, outcomes[0].held)
            placed.copy_out()
        exchange = self._mirrors.exchange_of(prepared, placed) if outcomes[0].busy else None
        if exchange is not None:
            self._dealings.note(prepared, exchange, [outcome.busy for outcome in outcomes], filled_in)
        return outcomes[0].returned

    def dealt(self, prepared: PreparedProgram) -> PreparedProgram:
        """A program as its tiles are dealt out to these workers now."""
        return self._dealings.dealt(prepared)

    def _place(self, prepared: PreparedProgram, program: KnownProgram, worker: int) -> str:
        """Where a worker is in the run under way."""
        node = self.group.nodes[worker]
        if node == self.group.driver_node:
            return place_of(prepared, program.memory, worker)
        return place_there(node, prepared, self._mirrors.names(node)[program.segment], worker)

    @contextmanager
    def _copying(self, recording: Recording | None, size: int) -> Iterator[None]:
        """Around what copies `size` bytes on the driver's node, and others to other nodes or from them."""
        if recording is None:
            yield
            return
        start, before = perf_counter_ns(), self.group.moved
        try:
            yield
        finally:
            recording.copied(start, size + self.group.moved - before)

    def leave_store(self) -> Store | None:
        """End the actors, and leave the arrays where they are for the next team, so that views of them stay what they
        are. None where an actor may still write to them, or others could not open them: arrays are let go of then."""
        self._mirrors.close()
        self.group.close()
        self._programs.clear()
        if self._store.anonymous and self.group.has_ended():
            return self._store
        self._store.close()
        return None

    def close(self) -> None:
        """End the actors, and let go of the arrays. Safe to call again."""
        self._mirrors.close()
        self.group.close()
        self._store.close()
        self._programs.clear()

    # ------------------------------------------------------------ what the actors are told

    def _program(self, prepared: PreparedProgram) -> KnownProgram:
        known = self._programs.get(prepared)
        if known is None:
            with said_if_slow(prepared.program.function.name):
                aside(lambda: _compile(prepared))
            known = KnownProgram(next(self._numbers), *self._store.run_memory(prepared))
            self._programs[prepared] = known
            finalize(prepared, call_if_alive, ref(self), Team._end, known.number).atexit = False
        return known

    def _end(self, program: int) -> None:
        for news in self._news:
            news.end(program)

    def _tell_dropped(self) -> None:
        dropped = list(self._store.dropped)
        self._mirrors.forget(dropped)
        for news in self._news:
            news.dropped.extend(dropped)
        del self._store.dropped[: len(dropped)]

    def _orders(
        self,
        prepared: PreparedProgram,
        program: KnownProgram,
        placed: PlacedRun,
        announced: Announcements,
        measured: int | None,
    ) -> list[RunOrder]:
        if not self._store.anonymous:
            self._attach_files()
        segments = {program.segment, *placed.segments()}
        run = next(self._runs)
        orders = []
        nodes = self.group.nodes
        for number, (news, node) in enumerate(zip(self._news[: prepared.workers], nodes, strict=False)):
            names = self._mirrors.names(node)
            exchange = self._mirrors.exchange_of(prepared, placed)
            sent = None if news.programs.get(program.number, NOT_SENT) is exchange else prepared
            opened = {number: names[number] for number in segments}
            told = (tuple(news.dropped), tuple(news.ended))
            parts = (run, program.segment, opened, placed.loops, placed.given, *told)
            rows: Announcements | None = None
            if news.announced.get(program.number, ()) is not announced or sent is not None:
                rows = announced if nodes.index(node) == number else tuple(one.of_worker() for one in announced)
            orders.append(RunOrder(program.number, sent, None if sent is None else exchange, *parts, measured, rows))
        return orders

    def _announced(
        self, prepared: PreparedProgram, placed: PlacedRun, arguments: Mapping[str, object]
    ) -> Announcements:
        """What tiles of a program touch of arrays that are served; nothing where one node has all."""
        exchange = self._mirrors.exchange_of(prepared, placed)
        return () if exchange is None else self._announcers.of(prepared, exchange, arguments)

    # ------------------------------------------------------------ segments without /proc

    def _attach_files(self) -> None:
        """Have every actor map the segments that are files, and remove the files."""
        names = self._store.names.copy()  # arrays may go meanwhile, and their segments with them
        new = {number: name for number, name in names.items() if number not in self._attached}
        if new:
            self.group.attach(self.group.driver_node, new)
            self._attached |= new.keys()
        for name in new.values():
            remove_name(name)


def _compile(prepared: PreparedProgram) -> None:
    """Compile the kernels here first, so that the actors find them in the disk cache, and errors come before
    any order.
    """
    from orion.kernel.build.compile import compile_kernel

    for loop in prepared.loops:
        compile_kernel(loop.kernel)


def _fetched(outcomes: Sequence[Outcome], nodes: Sequence[str]) -> Iterator[FetchedRows]:
    """What each node was sent of rows that tiles had announced, with how long the one of its workers waited for them
    that waited longest; none of nodes that were sent none."""
    for number, outcome in enumerate(outcomes):
        if outcome.fetched.messages and nodes.index(nodes[number]) == number:
            own = [one.fetched.waited for one, node in zip(outcomes, nodes, strict=False) if node == nodes[number]]
            yield replace(outcome.fetched, waited=max(own))


def _raise_failure(prepared: PreparedProgram, outcomes: list[Outcome], nodes: Sequence[str]) -> None:
    for outcome, node in zip(outcomes, nodes, strict=False):
        if outcome.error is not None and (refused := module_not_found(outcome.error, node)):
            raise refused from outcome.error
        if outcome.error is not None:
            raise outcome.error
    if any(outcome.left for outcome in outcomes):
        raise left_without_error(prepared)
