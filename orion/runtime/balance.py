"""When the tiles of a program are dealt out anew to workers that have computed for unequal times, and by which speeds.

A call is a round here. How fast worker w is, where the loops follow times, is what it gets done per second:

    speed(w) = sum over loops of tiles(w) * time of a tile / seconds that w computed

A deal by these speeds says how long each worker would take; the call then takes as long as the one that takes longest.
That is both what a slow node costs and what tiles with more work cost that nobody knew of: the next calls tell.

To deal out anew costs something too: a schedule is made and proved, what nodes exchange is worked out, actors are told
and tiles move with their data. Two things keep noise from moving them back and forth:

- No call by itself says anything: `CALLS` in a row must have lost `LEAST` of their time or more. What disturbs a worker
  once (a page fault, another process, a first call) is in one of them. Each new deal doubles how many calls the next
  one needs, up to `MOST_CALLS`, until as many in a row have lost nothing. A node whose speed goes up and down faster
  than it can be followed is left alone so.
- All that they have lost must be as much as a new deal costs: what is lost by waiting too long, and by dealing out for
  nothing, is then at most twice what is lost by who knows beforehand (to rent or to buy: Karlin, Manasse, Rudolph &
  Sleator 1988). That is `COST`, or what the last one has cost, if that was more: arrays may be large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.plan.deal import shares

CALLS, MOST_CALLS = 3, 48
"""How many calls in a row must lose time, at first and at most; so many that lose none make it the first again."""

LEAST = 0.1
"""The part of its time that such a call loses: times of the same tiles differ by some percent from call to call."""

COST = 0.1
"""What a new deal costs at least, in seconds (`docs/project/decisions.md`)."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a call has measured of the loops that follow times: `tiles`, float64 (loops, workers), are the blocks that
    each worker had, and `seconds`, of the same shape, how long it has computed."""

    tiles: Floats
    seconds: Floats

    @property
    def speeds(self) -> Floats:
        """The speed of each worker, float64 (workers,), the fastest having 1."""
        of_tile = self.seconds.sum(axis=1) / self.tiles.sum(axis=1)
        speeds = (self.tiles * of_tile[:, None]).sum(axis=0) / self.seconds.sum(axis=0)
        found: Floats = speeds / speeds.max()
        return found

    def saved(self) -> float:
        """The seconds by which the call would be shorter, had its blocks been dealt out by the speeds that it shows."""
        speeds = self.speeds
        of_tile = self.seconds.sum(axis=1) / (self.tiles / speeds).sum(axis=1)
        dealt = np.array([shares(speeds.tolist(), int(blocks)) for blocks in self.tiles.sum(axis=1)])
        before, after = ((tiles / speeds).max(axis=1) * of_tile for tiles in (self.tiles, dealt))
        return float((before - after).sum())

    @property
    def longest(self) -> float:
        """The seconds of the workers that take longest, of all loops together."""
        return float(self.seconds.max(axis=1).sum())


class Balance:
    """The rule for one program: is told what calls have measured, and says when to deal out anew."""

    def __init__(self) -> None:
        self.calls = 0
        """How many calls it was told of."""
        self.cost = COST
        """What a new deal costs, in seconds."""
        self._needed, self._quiet = CALLS, 0
        self._forget()

    def _forget(self) -> None:
        self._in_row, self._lost = 0, 0.0
        self._total: Measured | None = None

    def note(self, measured: Measured) -> tuple[float, ...] | None:
        """Note what one more call has measured. The speeds of workers where tiles are to be dealt out by them from the
        next call on, None where they stay where they are."""
        self.calls += 1
        if not (measured.seconds > 0).all():
            return None
        saved = measured.saved()
        if saved < LEAST * measured.longest:
            self._forget()
            self._quiet += 1
            if self._quiet == MOST_CALLS:
                self._needed = CALLS
            return None
        self._quiet = 0
        if self._total is not None and not np.array_equal(self._total.tiles, measured.tiles):
            self._forget()  # other loops have run, or tiles were dealt out in another way
        before = 0.0 if self._total is None else self._total.seconds
        self._total = Measured(measured.tiles, before + measured.seconds)
        self._in_row += 1
        self._lost += saved
        if self._in_row < self._needed or self._lost < self.cost:
            return None
        speeds = self._total.speeds
        self._forget()
        self._needed = min(2 * self._needed, MOST_CALLS)
        return tuple(speeds.tolist())
