"""Worker 0 of a program that has run before, which alone goes through the skeleton: the others follow instructions.

What a worker does between loops is Python, for which the workers of a run take turns. Where a program is run again and
again, the others stay in compiled code (`orion.kernel.parking`), and worker 0 posts what there is to do: a planned
loop, or followed steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from orion.dataclass import dataclass
from orion.ir.recent import addresses
from orion.kernel.calling import GO
from orion.kernel.instructions import AT, ENDLESS, LEFT, MEETINGS, ROUNDS, RUN, RUNNING, STARTS
from orion.kernel.parking import AWAY, BOX, OWN_STATE, REGISTERS, ROWS, STATE, TABLE
from orion.runtime.arguments import read_only
from orion.runtime.barrier import make_barrier
from orion.runtime.followed.part import Following
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart
from orion.runtime.threads.backend import LoadedProgram
from orion.runtime.threads.pool import Pool
from orion.runtime.worker import NO_BLOCK, AbortedError, Worker
from orion.schedule.schedule import Ints

ONE_LOOP = read_only(np.array([[RUN, 0, 0, 0]], np.int64))
"""The instructions of a planned loop by itself."""

NO_REGISTERS = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class Posted:
    """Instructions that workers are to follow. Each worker has its `parts` of the loops, and its table. Those other
    than 0 have registers and states here, and find them by what stands in their boxes."""

    rows: Ints
    parts: tuple[tuple[LoopPart, ...], ...]
    tables: tuple[Any, ...]
    registers: Ints
    states: Ints
    boxes: Ints


class Leading:
    """What the workers of a loaded program need to be led: made once, and kept from run to run."""

    def __init__(self, loaded: LoadedProgram) -> None:
        from orion.kernel.build.compile import left_by
        from orion.kernel.build.follow import Table
        from orion.kernel.build.walker import gatherer, leader

        self.loaded = loaded
        self.errors: list[Exception] = []
        self._lead, self._gather = leader(), gatherer()
        self._left_by, self._table = left_by, Table
        self._known: dict[Any, Posted] = {}
        self._posted: Posted | None = None

    @property
    def memory(self) -> RunMemory:
        return self.loaded.memory

    def of_loop(self, number: int) -> Posted:
        """What is posted for a planned loop."""
        return self._of(number, ONE_LOOP, 1, [(parts[number],) for parts in self.loaded.parts])

    def of_steps(self, number: int, following: Following) -> Posted:
        """What is posted for followed steps."""
        variant = following.variant
        parts = [followed[number].parts for followed in self.loaded.followed]
        return self._of((number, id(variant)), variant.rows, len(variant.first), parts)

    def _of(self, key: Any, rows: Ints, registers: int, parts: Sequence[tuple[LoopPart, ...]]) -> Posted:
        if key not in self._known:
            workers = self.loaded.workers
            walked = map(make_barrier(workers).walked_by, range(workers))
            flags = (self.memory.meeting, self.memory.control[-1])
            tables = tuple(
                self._table([*(part.row() for part in own), (0, False, NO_BLOCK, NO_BLOCK, *meeting, *flags)])
                for own, meeting in zip(parts, walked, strict=True)
            )
            own, states = (np.zeros((workers, size), np.int64) for size in (registers, ROUNDS + len(parts[0])))
            boxes = np.zeros((workers, BOX), np.int64)
            for worker in range(workers):
                found = {ROWS: rows, REGISTERS: own[worker], TABLE: tables[worker].rows, OWN_STATE: states[worker]}
                for place, array in found.items():
                    boxes[worker, place : place + 2] = *addresses([array]), len(array)
            self._known[key] = Posted(rows, tuple(parts), tables, own, states, boxes)
        return self._known[key]

    def run(self, posted: Posted, registers: Ints, state: Ints, pool: Pool) -> None:
        """Have all workers follow what is posted, with these registers and this state of worker 0."""
        boxes = pool.boxes_for(self.loaded.workers)
        self._posted, pool.leading = posted, self
        boxes[1:, ROWS:] = posted.boxes[1:, ROWS:]
        arguments = (boxes, posted.rows, registers, posted.tables[0].rows, state, self.memory.control)
        try:
            if self._lead(*arguments, False):
                pool.park(serve, self.loaded.workers)
                self._lead(*arguments, True)
        except BaseException as error:
            self._leave(pool)
            if not isinstance(error, Exception):
                raise
            self._note(error, posted, 0, state)
        if (self.memory.control[:, 0] != GO).any():
            self.memory.abort()
            raise AbortedError

    def _leave(self, pool: Pool) -> None:
        """Have the others leave, and wait until they have: whatever point `run` was left at, some may still be away
        from what was posted. Further Ctrl-Cs don't hurry it."""
        while True:
            try:
                self.memory.abort()
                pool.park(serve, self.loaded.workers)
                self._gather(pool.boxes_for(self.loaded.workers), self.memory.control)
                return
            except KeyboardInterrupt:
                continue

    def note(self, error: Exception, worker: int) -> None:
        """Note what is wrong with what another worker follows, and have all leave."""
        assert self._posted is not None
        self._note(error, self._posted, worker, self._posted.states[worker])
        self.memory.abort()

    def _note(self, error: Exception, posted: Posted, worker: int, state: Ints) -> None:
        part = posted.parts[worker][state.item(RUNNING)]
        try:
            self._left_by(error, part.loop.kernel, part.control)
        except Exception as better:
            self.errors.append(better)


def serve(pool: Pool, worker: int) -> None:
    """What another worker does while it is parked: it follows what is posted, by whatever program."""
    from orion.kernel.build.walker import server

    box = pool.boxes[worker]
    try:
        server()(box.reshape(1, BOX))
    except Exception as error:
        pool.leading.note(error, worker)
        box[STATE] = AWAY


class Leader(Worker):
    """Worker 0, which leads the others."""

    def __init__(self, leading: Leading, pool: Pool) -> None:
        loaded = leading.loaded
        super().__init__(0, loaded.workers, loaded.parts[0], loaded.memory, loaded.meet, loaded.followed[0])
        self._leading, self._pool = leading, pool

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        """Have all workers run their parts of a loop. Returns the new values of its outputs."""
        posted, part = self._leading.of_loop(number), self.parts[number]
        for (own,) in posted.parts:
            own.begin_round(values)
        part.begin_results(values)
        state = np.array([0, self.barriers, 0, 0, 0, ENDLESS, part.round], np.int64)
        self._leading.run(posted, NO_REGISTERS, state, self._pool)
        results = self.results_of(part, values) if part.outputs else ()
        for (own,) in posted.parts:
            own.round += 1
        return results

    def go_on(self, number: int, following: Following, starts: int = ENDLESS) -> None:
        """Have all workers follow steps."""
        posted = self._leading.of_steps(number, following)
        rounds = [part.round for part in posted.parts[0]]
        state = np.array([0, self.barriers, 0, 0, following.at, starts, *rounds], np.int64)
        self._leading.run(posted, following.registers, state, self._pool)
        following.at, following.unspent, self.barriers = state.item(AT), state.item(STARTS), state.item(MEETINGS)
        for own in posted.parts:
            for part, round in zip(own, state[ROUNDS:].tolist(), strict=True):
                part.round = round
        if state.item(LEFT):
            raise following.error(state.item(LEFT) - 1, self.followed[number].steps)
