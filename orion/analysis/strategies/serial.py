"""serial: what is left where no other strategy is legal."""

from __future__ import annotations

from orion.analysis.strategies.tiling import Tiling
from orion.cost.candidate import Strategy

SERIAL = Tiling(
    (Strategy.SERIAL,), lambda question: [], lambda space, time: "one worker runs every iteration, one after another"
)
