"""inspected: iterations run in an order that the contents of arrays of subscripts allow, found before the loop runs.

No set of differences is asked: which iterations are in conflict is listed by an inspector
(`orion.dependence.address_slice`), and the tiles are made of what it has found (`orion.plan.inspected`). So there is no
candidate here.
"""

from __future__ import annotations

from orion.analysis.strategies.tiling import Tiling
from orion.cost.candidate import Strategy

INSPECTED = Tiling(
    (Strategy.INSPECTED,),
    lambda question: [],
    lambda space, time: f"tiles of {space}, found by looking at its subscripts, run when those that they need are done",
)
