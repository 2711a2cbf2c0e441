"""The alias check: kernels are compiled on the promise that what a loop writes overlaps nothing else that it
is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.sparse import SparseArray
from orion.errors import AliasError, describe
from orion.ir.cures import hold

NO_PARTS: Mapping[str, str] = {}

MAX_WORK = 100_000
"""Candidate solutions tried to find out whether two strided views share an element (a few milliseconds)."""


def check_aliases(memory: Mapping[str, NDArray[Any]], written: Set[str], parts: Mapping[str, str] = NO_PARTS) -> None:
    """Raise `AliasError` where two arrays share an element and one of them is written, or an array that is
    written has one element at two places. `memory` is by argument name; `parts` are arguments that are parts of others,
    such as the array of a buffer, with what they are called.

    Views of one array that interleave without sharing an element, such as `a[::2]` and `a[1::2]`, pass. So
    hard a case that it cannot be told counts as sharing.
    """
    for name in written & memory.keys():
        if overlaps_itself(memory[name]):
            what = f"`{name}` has elements that share memory with each other, and the loop writes `{name}`"
            why = f"its shape is {memory[name].shape}, its strides are {memory[name].strides} bytes"
            raise AliasError(describe(what, why=why, hint=hold(name, f"{name}.copy()")))
    for (first, left), (second, right) in combinations(memory.items(), 2):
        if (first in written or second in written) and np.may_share_memory(left, right) and _share(left, right):
            name = first if first in written else second
            said = {one: parts.get(one, one) for one in (first, second)}
            what = f"`{said[first]}` and `{said[second]}` share memory, and the loop writes `{said[name]}`"
            why = "it was planned for arrays that are independent of each other"
            hint = _apart(first, second, written) if parts.keys().isdisjoint(said) else _same(said, parts)
            raise AliasError(describe(what, why=why, hint=hint))


def _same(said: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """What to write for arrays of which one is known by a buffer: its own array is the one that the loop reads."""
    own = next(words for name, words in said.items() if name in parts)
    other = next((words for name, words in said.items() if words != own), own)
    maker = own.split(".")[0]
    return f"make `{maker}` of the array that is given as `{other}` itself, not of a view of it, or of another array"


def check_sparse_aliases(arguments: Mapping[str, object], written: Set[str]) -> None:
    """Raise `AliasError` where one sparse array is given under two names and its values are stored under one of them:
    a loop over the other would not wait for that."""
    sparse = [(name, value) for name, value in arguments.items() if isinstance(value, SparseArray)]
    for (first, left), (second, right) in combinations(sparse, 2):
        if left is right and (first in written or second in written):
            name = first if first in written else second
            what = f"`{first}` and `{second}` are the same sparse array, and the loop stores values of `{name}`"
            why = "it was planned for arrays that are independent of each other"
            raise AliasError(describe(what, why=why, hint="write the loops over one array"))


def _apart(first: str, second: str, written: Set[str]) -> str:
    """What to write for two arrays of which one is written, or both: a copy of one, which is not what Python does."""
    if first in written and second in written:
        other = f"that changes `{first}` and `{second}` apart, where Python changes one array"
        return f"{hold(second, f'{second}.copy()')}; {other}: for that, write the loop over one array"
    read, changed = (second, first) if first in written else (first, second)
    other = (
        f"the loop then reads in it what was there before the call, where Python reads what is written to `{changed}`"
    )
    return f"pass `{read}.copy()` for `{read}`, which is only read; {other}: for that, write the loop over one array"


def overlaps_itself(array: NDArray[Any]) -> bool:
    """Whether two subscripts of an array may stand for the same memory.

    They do not where, of the axes with more than one index, each stride is at least as long as all that the
    axes with smaller strides span:

        |stride_k| >= itemsize + sum of (n_j - 1) |stride_j| over the axes j with smaller strides

    Slicing, transposing and reversing an array that fulfils this give one that does. Only what `as_strided`
    and its like make does not; some of that is refused though no two elements meet.

    >>> base = np.zeros(10)
    >>> overlaps_itself(base[::-2]), overlaps_itself(np.lib.stride_tricks.as_strided(base, (4, 4), (8, 8)))
    (False, True)
    """
    if array.flags.c_contiguous or not array.size:
        return False
    span = array.itemsize
    for stride, count in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < span:
            return True
        span += (count - 1) * stride
    return False


def _share(left: NDArray[Any], right: NDArray[Any]) -> bool:
    try:
        return np.shares_memory(left, right, max_work=MAX_WORK)  # type: ignore[arg-type] # the stubs know only -1 and 0
    except np.exceptions.TooHardError:
        return True
