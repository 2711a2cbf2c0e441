"""Which loops are dynamic: their workers take tiles of each other, which wait for each other as ever."""

from __future__ import annotations

from orion.cost.candidate import Candidate
from orion.cost.sizes import Sizes
from orion.dependence.access import LoopDependences
from orion.dependence.early_exits import ends_early
from orion.ir.program import LoopNest


def is_dynamic(candidate: Candidate | None, analysis: LoopDependences, nest: LoopNest, sizes: Sizes) -> bool:
    """Whether a loop that is shared out by a candidate is dynamic, where that was asked for.

    Not where tiles have arrays of their own, which the worker keeps that they were dealt to, or add to copies of
    arrays, which it prepares; and not where the loop may end early: its tiles are begun in their order then.
    """
    return sizes.dynamic and candidate is not None and not (analysis.private or analysis.sums or ends_early(nest.body))
