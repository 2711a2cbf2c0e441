"""The alias check: kernels are compiled on the promise that what a loop writes overlaps nothing else that it
is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.errors import AliasError, describe

MAX_WORK = 100_000
"""Candidate solutions tried to find out whether two strided views share an element (a few milliseconds)."""


def check_aliases(memory: Mapping[str, NDArray[Any]], written: Set[str]) -> None:
    """Raise `AliasError` where two arrays share an element and one of them is written. `memory` is by
    argument name.

    Views of one array that interleave without sharing an element, such as `a[::2]` and `a[1::2]`, pass. So
    hard a case that it cannot be told counts as sharing.
    """
    for (first, left), (second, right) in combinations(memory.items(), 2):
        if (first in written or second in written) and np.may_share_memory(left, right) and _share(left, right):
            name = first if first in written else second
            what = f"`{first}` and `{second}` share memory, and the loop writes `{name}`"
            why = "it was planned for arrays that are independent of each other"
            hint = f"pass a copy, such as {second}.copy(), or write the loop over one array"
            raise AliasError(describe(what, why=why, hint=hint))


def _share(left: NDArray[Any], right: NDArray[Any]) -> bool:
    try:
        return np.shares_memory(left, right, max_work=MAX_WORK)  # type: ignore[arg-type] # the stubs know only -1 and 0
    except np.exceptions.TooHardError:
        return True
