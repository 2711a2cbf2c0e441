"""Whether tiles that wait for each other can only run one after another, at the sizes of a call.

    for i in range(n):
        for k in range(4):
            A[i] += A[i + k + 1] * w[k]         # tiles of (i, i + k): those that hold iterations lie on a diagonal

Tiles with blocks along a space dimension s and a time dimension t start when those before them in s and in t are done.
Where the iterations lie in a thin strip along a line that rises in both, the tiles that hold any follow one another
along it: no two of them run at the same time, and each meeting costs for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from orion.cost.candidate import Candidate

if TYPE_CHECKING:
    import islpy as isl

THIN = 0.5
"""A strip that has less than so much of a block along t at each index of s is thin."""


def is_chain(domain: isl.Set, candidate: Candidate, lengths: Sequence[int | None], grid: Sequence[int]) -> bool:
    """Whether the tiles of a candidate with time dimensions run one after another. `domain` has the iterations, without
    parameters, `lengths` those of its dimensions, and `grid` the numbers of blocks.

    >>> import islpy as isl
    >>> from orion.cost.candidate import Strategy
    >>> strip = isl.Set("{ [s, t] : 0 <= s < 800 and s <= t < s + 4 }")
    >>> square = isl.Set("{ [s, t] : 0 <= s < 800 and 0 <= t < 800 }")
    >>> [is_chain(one, Candidate(Strategy.TWO_D, 0, (1,)), (800, 803), (8, 8)) for one in (strip, square)]
    [True, False]
    """
    length = lengths[candidate.space]
    if not candidate.time or length is None or length < 2:
        return False
    return all(_is_thin(domain, candidate.space, time, lengths[time], grid[time]) for time in candidate.time)


def _is_thin(domain: isl.Set, space: int, time: int, length: int | None, blocks: int) -> bool:
    import islpy as isl

    if length is None or blocks < 2:
        return False
    first, last = (int(end.to_python()) for end in (domain.dim_min_val(space), domain.dim_max_val(space)))
    lows = []
    for at in np.linspace(first, last, 3).astype(int).tolist():
        here = domain.fix_val(isl.dim_type.set, space, isl.Val.int_from_si(domain.get_ctx(), at))
        if here.is_empty():
            continue
        low, high = (int(end.to_python()) for end in (here.dim_min_val(time), here.dim_max_val(time)))
        if high - low + 1 > THIN * length / blocks:
            return False
        lows.append(low)
    return len(lows) > 1 and lows == sorted(lows) and lows[0] < lows[-1]
