"""independent: no two iterations conflict, any blocks may run at once.

Legal when Δ = ∅ and nothing is relaxed; the blocks of any dimension may be shared out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orion.analysis.strategies.tiling import Question, Tiling, shared_out
from orion.cost.candidate import Candidate, Strategy
from orion.dependence.access import Dependence


def legal(question: Question) -> list[Candidate]:
    return (
        [] if question.deltas or question.relaxed else [Candidate(Strategy.INDEPENDENT, d) for d in question.cuttable]
    )


def words(space: str, time: str) -> str:
    return f"{shared_out(space)}; no iteration needs another"


def against(pairs: Sequence[Dependence], dims: Sequence[str]) -> Iterator[tuple[str, Dependence]]:
    yield Strategy.INDEPENDENT, pairs[0]


INDEPENDENT = Tiling((Strategy.INDEPENDENT,), legal, words, against=against)
