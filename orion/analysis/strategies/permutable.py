"""2d of loops in their order, called wavefront where that is another than the written one: a permutable band.

Legal along d and e when Δ ⊆ {δ_d ≥ 0} ∩ {δ_e ≥ 0}: a tile needs only tiles whose blocks are no later in both dimensions
(Wolf & Lam 1991), and inside a tile the loop's order holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from orion.analysis.strategies.tiling import Ints, Question, Tiles, Tiling, Wait, shared_out
from orion.cost.candidate import Candidate, Strategy


def legal(question: Question) -> list[Candidate]:
    if not question.ordered:
        return []
    fine = [d for d in question.cuttable if question.all_within([[(d, ">=")]])]
    return [Candidate(Strategy.TWO_D, d, (e,)) for d, e in permutations(fine, 2)]


def steps(tiles: Tiles) -> Ints:
    """Anti-diagonals."""
    (time,) = tiles.time
    found: Ints = tiles.blocks[tiles.space] + tiles.blocks[time]
    return found


def waits(tiles: Tiles, ranked: Ints) -> Iterator[Wait]:
    """A tile waits for its neighbours one block earlier in either dimension; the first one for the last of the round
    before."""
    (time,) = tiles.time
    number = np.arange(ranked.size).reshape(tiles.grid)
    for dim in (tiles.space, time):
        later, earlier = np.moveaxis(number, dim, 0)[1:].ravel(), np.moveaxis(number, dim, 0)[:-1].ravel()
        yield from ((tile, before, 0) for tile, before in zip(later.tolist(), earlier.tolist(), strict=True))
    yield 0, ranked.size - 1, 1


def words(space: str, time: str) -> str:
    return f"{shared_out(space)}; a tile starts when the tiles before it in {space} and {time} are done"


PERMUTABLE = Tiling((Strategy.TWO_D, Strategy.WAVEFRONT), legal, words, ordered=True, steps=steps, waits=waits)
