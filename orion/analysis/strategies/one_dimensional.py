"""1d: iterations that conflict have the same index of one dimension, whose blocks have nothing in common.

Legal along d when Δ ⊆ {δ_d = 0}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orion.analysis.strategies.tiling import Question, Tiling, shared_out
from orion.cost.candidate import Candidate, Strategy
from orion.dependence.access import Dependence


def legal(question: Question) -> list[Candidate]:
    return [Candidate(Strategy.ONE_D, d) for d in question.cuttable if question.all_within([[(d, "=")]])]


def words(space: str, time: str) -> str:
    return f"{shared_out(space)}; iterations with the same {space} stay on one worker, in turn"


def against(pairs: Sequence[Dependence], dims: Sequence[str]) -> Iterator[tuple[str, Dependence]]:
    for position, name in enumerate(dims):
        across = [pair for pair in pairs if pair.distance[position] != 0]
        if across:
            yield f"1d along {name}", across[0]


ONE_DIMENSIONAL = Tiling((Strategy.ONE_D,), legal, words, against=against)
