"""relaxed: all that iterations conflict over are arrays with buffers, whose updates the user lets be late, or
replicas, of which each worker has its own.

Legal when Δ = ∅ without the accesses to these arrays; the blocks of any dimension may be shared out. How late updates
are is kept while the loop runs (`orion.kernel.support.buffers`), by bounded staleness (Ho et al., NIPS 2013): a worker
that begins its iterations c … c + F - 1 waits until each other has applied the updates of its first c + F - d, with d
the most that they may be late. Buffers in loops of other strategies are kept so too.
"""

from __future__ import annotations

from orion.analysis.strategies.tiling import Question, Tiling, shared_out
from orion.cost.candidate import Candidate, Strategy


def legal(question: Question) -> list[Candidate]:
    if question.deltas or not question.relaxed:
        return []
    return [Candidate(Strategy.RELAXED, d) for d in question.cuttable]


def words(space: str, time: str) -> str:
    return f"{shared_out(space)}; what else iterations share may be late, in buffers or copies"


RELAXED = Tiling((Strategy.RELAXED,), legal, words)
