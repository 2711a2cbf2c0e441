"""The actors of a session: started together, told to run programs, and replaced together when one is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from orion.arrays.storage import Storage
from orion.errors import StorageError, WorkerLostError, describe
from orion.runtime.ray.actor import DELIVER, WorkerActor
from orion.runtime.ray.cluster import connection, is_running, kill_actors, nodes_of, own_address, own_node, start_actors
from orion.runtime.ray.lines import SERVE, ChannelLine, Line, LostError, RayLine
from orion.runtime.ray.links import BrokenLinkError
from orion.runtime.ray.looks import Here, There
from orion.runtime.ray.orders import AheadRows, Filling, Order, Outcome, Ready, RunOrder, messages_of
from orion.runtime.ray.processes import end_stopped, have_ended
from orion.runtime.ray.regions import Section
from orion.runtime.ray.same_programs import not_made, refuse_others
from orion.runtime.ray.segments import TOKEN, Block, SegmentName, can_be_anonymous, create_segment, token_in
from orion.runtime.ray.standstill import Standstill

START_SECONDS = 60.0
LOOK_SECONDS = 0.05
LEAVE_SECONDS = 0.5
"""How long workers may take to leave a run that was aborted before they are ended by force. Those that run a loop leave
where it next looks up; one that imports or compiles may take longer."""


END_SECONDS = 5.0
"""How long processes that were killed may take to end."""


class NotBegunError(WorkerLostError):
    """A worker died before any was told to run the loop: nothing has changed, and others can run it."""


class Group:
    """One actor per worker. Once `is_whole` is False they are being ended, and there must be another group.

    Worker w is process `processes[w]` on node `nodes[w]`; those of the driver's own node come first, and
    those of a node follow one another. `shares_memory` says whether the actors of the driver's node can open
    its anonymous segments. `standstill` is how many seconds a worker may be stopped by a signal.
    """

    def __init__(self, workers: int, held: int, standstill: float) -> None:
        self._standstill_seconds = standstill
        actors: list[Any] = []
        try:
            actors = start_actors(WorkerActor, workers, (DELIVER, SERVE), START_SECONDS, held)
            self._connect(actors)
        except RayActorError as error:
            kill_actors(actors)
            if error.actor_init_failed:
                raise not_made(error) from error
            raise _not_begun(_lost_actor(error)) from error
        except BaseException:
            kill_actors(actors)
            raise
        self.is_whole = True
        self.moved = 0
        """The bytes that have gone between the driver and other nodes."""

    def _connect(self, actors: list[Any]) -> None:
        self._connection, self.driver_node = connection(), own_node()
        places = nodes_of(actors)
        refuse_others(ray.get([actor.versions.remote() for actor in actors]), places)
        order = sorted(range(len(actors)), key=lambda w: (places[w] != self.driver_node, places[w], w))
        self.actors = [actors[w] for w in order]
        self.nodes = tuple(places[w] for w in order)
        connected = [a.connect.remote(w, self.nodes, tuple(self.actors)) for w, a in enumerate(self.actors)]
        self.processes: tuple[int, ...] = tuple(ray.get(connected))
        self.shares_memory = can_be_anonymous() and self._can_open()
        near = [self.shares_memory and node == self.driver_node for node in self.nodes]
        try:
            self._line: Line = ChannelLine(self.actors, near, own_address())
        except (OSError, RayTaskError):  # a firewall may be between nodes that Ray has a way through
            self._line = RayLine(self.actors)

    # ------------------------------------------------------------ memory

    def attach(self, node: str, names: Mapping[int, SegmentName]) -> None:
        """Have the actors of a node map segments now."""
        self._prepared({w: self.actors[w].attach.remote(names) for w in self._on(node)})

    def create(self, node: str, sizes: Mapping[int, int], anonymous: bool, storage: Storage) -> dict[int, SegmentName]:
        """Make a node's copies of segments, where `storage` says. Those that are files with names are mapped by its
        actors, and the names removed. StorageError where the node's disk has no room for them."""
        leader = self._leader(node)
        (names,) = self._prepared({leader: self.actors[leader].create.remote(sizes, anonymous, storage)})
        if isinstance(names, StorageError):
            names.add_note(f"that was on the node {node}, where each node holds what its workers own")
            raise names
        if not anonymous:
            self._prepared({w: self.actors[w].attach.remote(names) for w in self._on(node)[1:]})
            self._prepared({leader: self.actors[leader].remove_names.remote(names)})
        return dict(names)

    def make_ready(self, run_memory: int, fillings: Mapping[str, tuple[Filling, ...]], workers: int) -> None:
        """Make the memory of nodes ready for a run of the first workers, all of which answer. Each node is sent a few
        megabytes at a time. NotBegunError where a worker is lost."""
        self.moved += sum(part.data.nbytes for parts in fillings.values() for part in parts)
        leaders = {self._leader(node): messages_of(parts) for node, parts in fillings.items()}
        standstill = self._standstill(range(workers), lambda _: "it ran no tile")
        try:
            for several in zip_longest(*leaders.values()):
                told: list[Order] = [None] * workers
                for worker, parts in zip(leaders, several, strict=True):
                    told[worker] = None if parts is None else Ready(run_memory, parts)
                for outcome in self._outcomes(told, lambda: None, standstill):
                    if outcome.error is not None:
                        raise outcome.error
        except LostError as error:
            self.close()
            raise _not_begun(error) from error
        except BaseException:
            self._leave(lambda: None)  # who fills memory leaves by itself
            raise

    def send_ahead(self, node: str, rows: AheadRows) -> Any:
        """Send a node rows that it will need after a shuffle, while its workers run a program; what to wait for. None
        where they cannot be sent: there is no room, or the worker is gone, as the run will find."""
        with suppress(RayError, MemoryError):
            return self.actors[self._leader(node)].keep_ahead.options(concurrency_group=DELIVER).remote(rows)
        return None

    def done_ahead(self, under_way: Mapping[str, Any], seconds: float) -> dict[str, bool]:
        """Of what is under way to nodes that of which the fate is known, and whether it has come; looked for so many
        seconds, or until there is any."""
        try:
            done = ray.wait(list(under_way.values()), timeout=seconds)[0]
        except RayError:
            return dict.fromkeys(under_way, False)
        return {node: _is_well(reference) for node, reference in under_way.items() if reference in done}

    def wait_for_ahead(self, under_way: Mapping[str, Any]) -> dict[str, bool]:
        """The same of all that is under way. NotBegunError where a worker is lost."""
        if not under_way:
            return {}
        standstill = self._standstill([self._leader(node) for node in under_way], lambda _: "it ran no tile")
        found: dict[str, bool] = {}
        while left := {node: reference for node, reference in under_way.items() if node not in found}:
            found |= self.done_ahead(left, LOOK_SECONDS)
            stopped = standstill.stopped([self._leader(node) for node in left])
            if stopped is not None:
                self.close()
                raise _not_begun(LostError(*stopped))
        return found

    def read(self, node: str, parts: list[tuple[Block, Section]]) -> list[Any]:
        """The contents of parts of blocks on a node."""
        leader = self._leader(node)
        try:
            (found,) = self._answers({leader: self.actors[leader].read.remote(parts)})
        except LostError as error:
            self.close()
            raise _lost(error) from error
        self.moved += sum(data.nbytes for data in found)
        return list(found)

    # ------------------------------------------------------------ runs

    def run(
        self,
        orders: Sequence[RunOrder],
        abort: Callable[[], None],
        place: Callable[[int], str],
        have_met: Callable[[], bool],
    ) -> list[Outcome]:
        """Send each worker its order, one message each, and wait for all outcomes.

        None begins before all are there, for a loop that has begun and runs again would change arrays twice: those of
        the driver's node alone meet before, and `have_met` says whether they have, and NotBegunError where one is lost
        before; others have just answered (`make_ready`).

        Where one fails or is lost, and at Ctrl-C, the others are made to leave: those of the driver's node by
        `abort`. `place` says where a worker is in the run, for what is said of one that stands still.
        """
        standstill = self._standstill(range(len(orders)), place)

        def abort_all() -> None:
            abort()
            for actor, node in zip(self.actors[: len(orders)], self.nodes, strict=False):
                if node != self.driver_node:
                    actor.abort.options(concurrency_group=DELIVER).remote(orders[0].program, orders[0].run)

        try:
            return self._outcomes(orders, abort_all, standstill)
        except LostError as error:
            self._leave(abort_all)
            self.close()
            begun = {*self.nodes[: len(orders)]} != {self.driver_node} or have_met()
            raise (_lost(error) if begun else _not_begun(error)) from error
        except BaseException:
            self._leave(abort_all)
            raise

    def _outcomes(self, orders: Sequence[Order], abort: Callable[[], None], standstill: Standstill) -> list[Outcome]:
        self._line.start(orders)
        while len(found := self._line.wait(LOOK_SECONDS)) < len(orders):
            stopped = standstill.stopped([w for w in range(len(orders)) if w not in found])
            if stopped is not None:
                raise LostError(*stopped)
            _raise_broken(found)
            if any(outcome.error is not None or outcome.left for outcome in found.values()):
                abort()
        _raise_broken(found)
        return [found[number] for number in range(len(orders))]

    def is_usable(self) -> bool:
        """Whether the actors are there, as far as is known: they end with the connection that started them."""
        return self.is_whole and is_running() and connection() == self._connection and self._line.is_alive()

    def close(self) -> None:
        """End the actors. Safe to call again, as where Ctrl-C came in between."""
        self.is_whole = False
        self._line.close()
        kill_actors(self.actors)
        end_stopped(self._processes_here())

    def has_ended(self) -> bool:
        """Whether no process of the group on this machine is there any more, soon after `close`: nobody but this one
        writes to memory that they shared."""
        return have_ended(self._processes_here(), END_SECONDS)

    def _processes_here(self) -> list[int]:
        return [p for p, node in zip(self.processes, self.nodes, strict=True) if node == self.driver_node]

    def _can_open(self) -> bool:
        """Whether every actor of the driver's node can map an anonymous segment of the driver's."""
        name, memory = create_segment(TOKEN, anonymous=True)
        memory[:TOKEN] = np.frombuffer(os.urandom(TOKEN), np.uint8)
        here = [self.actors[w] for w in self._on(self.driver_node)]
        return all(ray.get([actor.can_open.remote(name, token_in(memory)) for actor in here]))

    def _on(self, node: str) -> list[int]:
        return [w for w, place in enumerate(self.nodes) if place == node]

    def _leader(self, node: str) -> int:
        return self.nodes.index(node)

    def _prepared(self, calls: Mapping[int, Any]) -> list[Any]:
        """What workers answer before a run begins."""
        try:
            return self._answers(calls)
        except LostError as error:
            self.close()
            raise _not_begun(error) from error

    def _answers(self, calls: Mapping[int, Any]) -> list[Any]:
        """What workers answer to calls, by their numbers. LostError where one dies, or is stopped for long."""
        standstill = self._standstill(calls, lambda _: "it ran no tile")
        references = list(calls.values())
        while references and (left := ray.wait(references, num_returns=len(references), timeout=LOOK_SECONDS)[1]):
            stopped = standstill.stopped([w for w, one in calls.items() if one in left])
            if stopped is not None:
                raise LostError(*stopped)
        try:
            return list(ray.get(references))
        except RayActorError as error:
            raise _lost_actor(error) from error

    def _standstill(self, workers: Iterable[int], place: Callable[[int], str]) -> Standstill:
        """What looks for those of some workers that stand still."""
        processes: dict[str, dict[int, int]] = {}
        for number in workers:
            processes.setdefault(self.nodes[number], {})[number] = self.processes[number]
        looks = [Here(p) if node == self.driver_node else There(node, p) for node, p in processes.items()]
        return Standstill(looks, self._standstill_seconds, place)

    def _leave(self, abort: Callable[[], None]) -> None:
        """Wait until no worker works on the run any more; those that don't leave in time are ended, and the
        group with them.
        """
        end = time.monotonic() + LEAVE_SECONDS
        while self.is_whole:
            try:
                abort()
                if len(self._line.wait(LOOK_SECONDS)) == self._line.due:
                    return
                if time.monotonic() > end:
                    self.close()
            except LostError:
                self.close()
            except KeyboardInterrupt:
                continue


def _raise_broken(found: Mapping[int, Outcome]) -> None:
    """LostError where the connection with a worker is broken, whether that has died or cannot be reached any more."""
    for outcome in found.values():
        if isinstance(outcome.error, BrokenLinkError):
            raise LostError(outcome.error.worker, str(outcome.error))


def _is_well(reference: Any) -> bool:
    """Whether a call that is over has done what it should."""
    try:
        ray.get(reference)
    except RayError:
        return False
    return True


def _lost_actor(error: RayActorError) -> LostError:
    return LostError(None, str(error).strip().splitlines()[0])


def _lost(error: LostError) -> WorkerLostError:
    hint = "the next call starts new workers; NumPy arrays are as they were before this one, of Orion's own see below"
    return WorkerLostError(describe(f"{_which(error)} died while it ran a loop", why=str(error), hint=hint))


def _not_begun(error: LostError) -> NotBegunError:
    hint = "nothing has changed, and the next run starts new workers; see what ends them, such as a lack of memory"
    return NotBegunError(describe(f"{_which(error)} died before the loop began", why=str(error), hint=hint))


def _which(error: LostError) -> str:
    return "a worker" if error.number is None else f"worker {error.number}"
