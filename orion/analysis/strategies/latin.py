"""2d and nd of loops in any order: iterations that conflict agree in one of several dimensions.

Legal over a set of dimensions when Δ ⊆ {δ_d = 0} ∪ … ∪ {δ_e = 0}, d … e in the set: two (2d) or more (nd). Two tiles
that differ in their block of every dimension of the set have nothing in common, so the tiles of one step of a Latin
square (hypercube) may run at once (Wei et al. 2019, section 4.3, for two dimensions).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from orion.analysis.strategies.tiling import Ints, Question, Tiles, Tiling, Wait, shared_out
from orion.cost.candidate import Candidate, Strategy


def legal(question: Question) -> list[Candidate]:
    """Those of the smallest sets of dimensions that are enough."""
    if question.ordered:
        return []
    for size in range(2, len(question.cuttable) + 1):
        found = [
            Candidate(Strategy.TWO_D if size == 2 else Strategy.ND, space, tuple(d for d in dims if d != space))
            for dims in combinations(question.cuttable, size)
            if question.all_within([[(d, "=")] for d in dims])
            for space in dims
        ]
        if found:
            return found
    return []


def steps(tiles: Tiles) -> Ints:
    """With p the block of the space dimension and q, r, … those of the time dimensions, each time dimension contributes
    the digit (q − p) mod max(blocks), so that tiles of one step differ in every block."""
    found = np.zeros(tiles.blocks.shape[1], np.int64)
    own = tiles.blocks[tiles.space]
    for dim in tiles.time:
        width = max(tiles.grid[tiles.space], tiles.grid[dim])
        found = found * width + (tiles.blocks[dim] - own) % width
    return found


def waits(tiles: Tiles, ranked: Ints) -> Iterator[Wait]:
    """A tile waits for the one that last used one of its time blocks before it, and in the round before, for the last
    one to use it."""
    for dim in tiles.time:
        for block in range(tiles.grid[dim]):
            chain = ranked[tiles.blocks[dim][ranked] == block].tolist()
            yield from zip(chain[1:], chain[:-1], [0] * (len(chain) - 1), strict=True)
            yield chain[0], chain[-1], 1


def words(space: str, time: str) -> str:
    return f"{shared_out(space)}; blocks of {time} go from worker to worker"


LATIN = Tiling((Strategy.TWO_D, Strategy.ND), legal, words, ordered=False, steps=steps, waits=waits)
