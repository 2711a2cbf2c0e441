"""The Ray backend of a session: one actor per worker, arrays in memory that they share with the driver."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from orion.arrays.base import DistArray
from orion.arrays.storage import Storage
from orion.cores import cores
from orion.errors import ArgumentError, RescaledError, WorkerLostError, WorkerReplacedWarning, describe
from orion.ir.recent import Recent
from orion.runtime.backend import LocalBackend, ProgramCall, RunsAgain
from orion.runtime.local_arrays import LocalArray
from orion.runtime.prepared import PreparedProgram
from orion.runtime.ray.before_images import BeforeImages, written_by
from orion.runtime.ray.cluster import NoRoomError, cluster_cpus
from orion.runtime.ray.group import NotBegunError
from orion.runtime.ray.membership import membership
from orion.runtime.ray.start import Start
from orion.runtime.ray.store import Store
from orion.runtime.ray.team import Team
from orion.runtime.turn import Turn
from orion.tracebacks import warn_in_users_line

R = TypeVar("R")

ATTEMPTS = 3
"""How often a run is tried whose workers die."""


class RayBackend:
    """Ray actors that own the partitions. Ray and the actors are started with the first run."""

    def __init__(self, workers: int | None, address: str | None, standstill: float, storage: Storage) -> None:
        self._address, self._standstill, self._storage = address, standstill, storage
        self._turn = Turn(self._end, self._forget)
        self._team: Team | None = None
        self._parents_team: Team | None = None
        self._start: Start | None = None
        self._driver = LocalBackend(1)
        self._images = BeforeImages()
        self._had_team = False
        self._store: Store | None = None
        self.workers = workers or self._available()

    def run(self, call: ProgramCall) -> Any:
        """Run a program. One that is scheduled for a single one of several workers is run by the driver,
        where its data is.
        """
        if call.prepared.workers == 1 < self.workers:
            return self._driver.run(call)
        call.noted.counts.append((0.0, call.prepared.workers))
        return self._turn.run(lambda: self._run(call))

    def dealt(self, prepared: PreparedProgram) -> PreparedProgram:
        """A program as its tiles are dealt out to the workers now, by the times of calls before."""
        team = self._team
        return prepared if team is None else team.dealt(prepared)

    @property
    def cluster_cpus(self) -> int:
        """The CPUs of the cluster that the actors hold now."""
        return self.workers if self._team is not None and self._team.group.is_usable() else 0

    def again(self, call: ProgramCall, recent: Recent, own: Mapping[str, LocalArray]) -> RunsAgain | None:
        """Actors are told of each call."""
        return None

    def between_runs(self, action: Callable[[], R]) -> R:
        """Call `action` while no program runs, neither on actors nor on the driver."""
        return self._turn.run(lambda: self._driver.between_runs(action))

    def scale(self, workers: int) -> None:
        """Have so many actors, from now on where there are some already. ArgumentError where the cluster has no room
        for them: there are then as many as before."""
        self._turn.run(lambda: self._scale(workers))

    def _scale(self, workers: int) -> None:
        before, has_team = self.workers, self._team is not None
        self._leave_team()
        store, self._store = self._store, None
        self._end_all()
        self.workers, self._store = workers, store
        if not has_team:
            return
        try:
            self._wait_for_start()
        except BaseException:
            self.workers = before
            raise

    def close(self) -> None:
        """End the actors, and Ray as far as Orion started or joined it, once the run under way is over."""
        self._turn.close()
        self._driver.close()

    def _run(self, call: ProgramCall) -> Any:
        prepared, arguments = call.prepared, call.arguments
        if call.recording is not None:
            call.recording.enter(prepared, arguments)
        if prepared.workers > self.workers:  # another thread has scaled the session meanwhile
            raise RescaledError(
                f"the program is scheduled for {prepared.workers} workers, the session has {self.workers}"
            )
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                with self._images.of(prepared, arguments):
                    return self._try(call)
            except NotBegunError:
                if not attempts_left:
                    raise
            except WorkerLostError as error:
                if self._images.not_kept:
                    error.lost = tuple(n for n in sorted(written_by(prepared)) if isinstance(arguments[n], DistArray))
                    error.add_note(_what_is_lost(error.lost, self._images.not_kept))
                    raise
                if not attempts_left:
                    error.add_note(f"this was attempt {ATTEMPTS}; no data was lost: all arrays are as they were before")
                    raise
                warn_in_users_line(WorkerReplacedWarning(_told(error, prepared, self._store is not None)))
        raise AssertionError("the last attempt returns or raises")

    def _try(self, call: ProgramCall) -> Any:
        """Run a program. Where a worker is lost the others are ended, and arrays are as they were before."""
        try:
            return self._usable_team().run(call)
        except WorkerLostError:
            self._leave_team()
            self._images.restore(in_place=self._store is not None)
            raise

    def _usable_team(self) -> Team:
        """The team of the session; a new one where there is none yet, or actors have died since the last run."""
        if self._parents_team is not None:
            hint = 'use orion.init(backend="threads") here, or start the process by "spawn", not "fork"'
            raise ArgumentError(describe("this process was forked off from one that uses Ray", hint=hint))
        if self._team is not None and not self._team.group.is_usable():
            self._leave_team()
        if self._team is None:
            self._start_with_what_is_left()
            assert self._team is not None
        return self._team

    def _start_with_what_is_left(self) -> None:
        """Start the team. Where the cluster had room for one in this session, and has room for fewer workers now, as a
        node is gone for good, RescaledError: there are then as many as it has room for."""
        try:
            self._wait_for_start()
        except NoRoomError as error:
            if not self._had_team or not error.room:
                raise
            before, self.workers = self.workers, error.room
            told = f"there is room for {self.workers} workers on Ray, where there were {before}; loops go on with these"
            warn_in_users_line(WorkerReplacedWarning(f"{told} (`orion.scale(workers={before})` when there is more)"))
            raise RescaledError from error
        self._had_team = True

    def _wait_for_start(self) -> None:
        """Start Ray and the actors, or wait for a start under way: after Ctrl-C it goes on, for the next run."""
        while True:
            start = self._start
            is_over = start is None or start.is_done
            if self._team is not None:  # looked at after `is_over`, before which a start under way sets it
                return
            if start is None or is_over:
                start = self._start = Start(self._start_team, self._end_all)
            start.result()

    def _start_team(self) -> None:
        atexit.register(self._end_at_exit)
        try:
            membership.join(self, self._address, self.workers)
            held = membership.held_by_others(self)
            self._team = Team(self.workers, held, self._store, self._standstill, self._storage)
            self._store = None
        except BaseException:
            self._end_all()  # Ray too: actors that were killed while they started may hold their CPUs for long
            raise

    def _leave_team(self) -> None:
        """End the team; its arrays stay where they are for the next one, if nobody else may still write to them."""
        if self._team is not None:
            self._store = self._team.leave_store()
            self._team = None

    def _end_team(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._team is not None:
            self._team.close()
            self._team = None

    def _end(self) -> None:
        """End everything. Where Ctrl-C comes in between, the next call does the rest. What is being started ends as
        soon as it is there, which nobody waits for."""
        if self._start is None or not self._start.give_up():
            self._end_all()

    def _end_all(self) -> None:
        self._end_team()
        membership.leave(self)
        atexit.unregister(self._end_at_exit)

    def _end_at_exit(self) -> None:
        """At the end of the process, which waits for what is being started, but for one more Ctrl-C: then the system
        ends the processes of a Ray that was started here, and a cluster that was joined those of its own."""
        with suppress(KeyboardInterrupt):
            self._turn.end_now()
            if self._start is not None:
                self._start.wait()

    def _forget(self) -> None:
        """In a process that was forked off. The handles are kept: to let go of them would end the actors."""
        self._parents_team, self._team = self._team, None
        self._start = None

    def _available(self) -> int:
        """The number of workers where none was asked for: a CPU of the cluster each."""
        if self._address is None:
            return cores()
        start = Start(lambda: membership.join(self, self._address, 1), lambda: membership.leave(self))
        try:
            start.result()
        except BaseException:
            start.give_up()
            raise
        return max(1, cluster_cpus())


def _what_is_lost(lost: tuple[str, ...], why: str) -> str:
    parts = f"these DistArrays hold only a part of the results: {', '.join(lost)}; no copy was kept, as {why}"
    return f"{parts}; all other arrays are as they were"


def _told(error: WorkerLostError, prepared: PreparedProgram, in_place: bool) -> str:
    why = f" ({error.__cause__})" if error.__cause__ is not None else ""
    what = f"{str(error).splitlines()[0]}{why}"
    done = f"the call of `{prepared.program.function.name}` is done again by new workers, from the same arrays"
    return f"{what}; {done}{'' if in_place else ' (views of them are to be taken again)'}"
