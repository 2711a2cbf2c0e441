"""serial: what is left where no other strategy is legal."""

from __future__ import annotations

from orion.cost.candidate import Strategy
from orion.plan.strategies.tiling import Tiling

SERIAL = Tiling(
    (Strategy.SERIAL,), lambda question: [], lambda space, time: "one worker runs every iteration, one after another"
)
