"""How the programs of a team are dealt out to its workers, call by call (`orion.runtime.balance` has the rule)."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from weakref import WeakKeyDictionary, ref

import numpy as np

from orion.aside import aside
from orion.plan.deal import ByTimes
from orion.runtime.balance import COST, Balance, Measured
from orion.runtime.prepared import PreparedProgram
from orion.runtime.ray.exchange import ProgramExchange


class Dealing:
    """How one program is dealt out: `program` has other shares than as it was prepared, None where it has not."""

    def __init__(self) -> None:
        self.program: PreparedProgram | None = None
        self._balance = Balance()
        self._dealt_in: float | None = None
        """How many seconds it took to deal it out anew, before the first call with that deal."""

    def note(self, ran: PreparedProgram, measured: Measured, filled_in: float) -> bool:
        """Note a call, before which nodes were sent what they lacked in so many seconds: whether it is dealt out anew
        for the next one."""
        if self._dealt_in is not None:
            self._balance.cost, self._dealt_in = max(COST, self._dealt_in + filled_in), None
        speeds = self._balance.note(measured)
        if speeds is None:
            return False
        start = perf_counter()
        dealt = aside(lambda: ran.dealt_by(speeds, self._balance.calls + 1))
        is_uneven = any(isinstance(loop.plan.deal, ByTimes) for loop in dealt.loops)
        self.program, self._dealt_in = dealt if is_uneven else None, perf_counter() - start
        return True


class Dealings:
    """Those of all programs of a team, kept as long as the programs are."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[PreparedProgram, Dealing] = WeakKeyDictionary()
        self._made: WeakKeyDictionary[PreparedProgram, ref[Dealing]] = WeakKeyDictionary()

    def dealt(self, prepared: PreparedProgram) -> PreparedProgram:
        """A program as it is dealt out now."""
        known = self._of.get(prepared)
        return prepared if known is None or known.program is None else known.program

    def note(
        self, ran: PreparedProgram, exchange: ProgramExchange, busy: Sequence[Sequence[int]], filled_in: float
    ) -> None:
        """Note a call that has run a program on several nodes, in whose loops worker w was busy for `busy[w]`
        nanoseconds, and before which nodes were sent what they lacked in `filled_in` seconds."""
        measured = measured_of(ran, exchange, busy)
        if measured is None:
            return
        made = self._made.get(ran)
        known = self._of.setdefault(ran, Dealing()) if made is None else made()
        if known is not None and known.note(ran, measured, filled_in) and known.program is not None:
            self._made[known.program] = ref(known)


def measured_of(prepared: PreparedProgram, exchange: ProgramExchange, busy: Sequence[Sequence[int]]) -> Measured | None:
    """What a call has measured of the loops of a program that follow times, and have run on all workers; None where
    there are none."""
    workers = prepared.workers
    blocks, seconds = [], []
    for number, (loop, one) in enumerate(zip(prepared.loops, exchange.loops, strict=True)):
        taken = [own[number] for own in busy]
        schedule, space = loop.schedule, loop.plan.space
        if space is None or not loop.follows_times or one.is_at_home or schedule.workers != workers or not any(taken):
            continue
        tiles = np.bincount(schedule.owner, minlength=workers)
        blocks.append(tiles * schedule.grid[space] // schedule.tiles)
        seconds.append(taken)
    return Measured(np.array(blocks, np.float64), np.array(seconds) / 1e9) if blocks else None
