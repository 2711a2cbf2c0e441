"""How copies of arrays are pulled together with the arrays (`orion.replicate`, `orion.arrays.policies`).

Clocks are those of `orion.kernel.support.buffers`: round · 2⁴⁰ + how often the worker has pulled in this round; where
all meet twice that, as "has come" and "has done its part" are two steps. Who has done all of its iterations has the
clock of the next round, so that nobody waits for it. At a meeting all have come, and none may leave before all have
done their parts: so who takes part is the same for all of them, and known by the iterations of workers alone. Each of
them pulls the copies of all by a part of the elements, worker after worker: one order of operations for each element.

On several nodes each has the array and, at a meeting, the copies of all workers (`orion.runtime.ray.meetings`), and
pulls them all: its own workers share out the elements among each other, and nobody waits for what those of other nodes
have done. Elements have the same order of operations on all nodes, and the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic, register_jitable

from orion.kernel.calling import (
    ASKED,
    CLOCK_STRIDE,
    COUNT,
    END_HERE,
    FIRST_HERE,
    FLUSHES,
    PAST_ALL,
    ROUND,
    ROUND_BITS,
    WAITS,
    WORKER,
)
from orion.kernel.support.buffers import are_numbers, is_there, lock, unlock
from orion.kernel.support.intrinsics import load_acquire, store_release, walk_function

BLOCK = 512
"""How many elements are pulled under one lock, or worker after worker."""


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def alpha_of(clocks: Any, moving: float) -> float:  # pragma: no cover - compiled
    """The alpha of each worker, where those of all that have tiles in the loop add up to `moving`."""
    workers = 0
    for other in range(len(clocks) // CLOCK_STRIDE):
        workers += load_acquire(clocks, other * CLOCK_STRIDE) < PAST_ALL
    return float(moving / max(workers, 1))


@intrinsic  # type: ignore[untyped-decorator]
def seen_elsewhere(typing: Any, array: Any) -> Any:
    """What is in an array is there for others to see before this, and is read anew after it: others may change it here,
    which arguments of tiles (`NoAlias`) are otherwise taken not to be."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(data, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type])
        builder.asm(kind, "", "r,~{memory}", [pointer], side_effect=True)
        return context.get_dummy_value()

    return types.void(array), generate


# ------------------------------------------------------------ one worker's copy


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def pull(own: Any, centre: Any, alpha: float, number: int, locks: Any, control: Any) -> bool:  # pragma: no cover
    """Pull a worker's copy of array `number` and the array together, part by part; False where the loop is to be
    left."""
    mine, shared = own.reshape(-1), centre.reshape(-1)
    for first in range(0, len(mine), BLOCK):
        part, wrong = first // BLOCK + 31 * number, -1
        if not lock(locks, part, control):
            return False
        for e in range(first, min(first + BLOCK, len(mine))):
            difference = alpha * (mine[e] - shared[e])
            if difference - difference != 0:  # infinite, or not a number
                wrong = e
            mine[e] -= difference
            shared[e] += difference
        unlock(locks, part)
        if not are_numbers(number, wrong, control):
            return False
    return True


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def pull_freely(own: Any, centre: Any, alpha: float, number: int, control: Any) -> bool:  # pragma: no cover
    """The same without locks."""
    mine, shared, wrong = own.reshape(-1), centre.reshape(-1), -1
    for e in range(len(mine)):
        difference = alpha * (mine[e] - shared[e])
        if difference - difference != 0:  # infinite, or not a number
            wrong = e
        mine[e] -= difference
        shared[e] += difference
    return bool(are_numbers(number, wrong, control))


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def keep_copy(into: Any, own: Any) -> None:  # pragma: no cover - compiled
    """Keep what a worker's copy is."""
    kept, mine = into.reshape(-1), own.reshape(-1)
    for e in range(len(mine)):
        kept[e] = mine[e]


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def with_momentum(own: Any, before: Any, velocity: Any, momentum: float) -> None:  # pragma: no cover - compiled
    """Have a worker's copy go on by what an iteration has changed of it and by a part of what came before."""
    mine, kept, speed = own.reshape(-1), before.reshape(-1), velocity.reshape(-1)
    for e in range(len(mine)):
        speed[e] = momentum * speed[e] + (mine[e] - kept[e])
        mine[e] = kept[e] + speed[e]
        kept[e] = mine[e]


# ------------------------------------------------------------ for workers of other nodes


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def pulled_at_home(clocks: Any, notes: Any, control: Any) -> bool:  # pragma: no cover - compiled
    """Tell that this worker has come to a pull, and wait until the home node has pulled its copy
    (`orion.runtime.ray.centre`); False where the loop is to be left."""
    own = notes[WORKER]
    notes[COUNT] += 1
    notes[FLUSHES] += 1
    notes[WAITS] += 1
    come = (notes[ROUND] << ROUND_BITS) + notes[COUNT]
    store_release(clocks, own * CLOCK_STRIDE + ASKED, come)
    return bool(is_there(clocks, own, come, control))


# called from Python
pull_for, pull_freely_for = walk_function(pull.py_func), walk_function(pull_freely.py_func)


# ------------------------------------------------------------ in turn


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def await_turn(clocks: Any, notes: Any, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until the workers before this one have pulled as often as it is about to, and those after it once less;
    False where the loop is to be left."""
    own, turn = notes[WORKER], (notes[ROUND] << ROUND_BITS) + notes[COUNT] + 1
    for other in range(len(clocks) // CLOCK_STRIDE):
        needed = turn if other < own else turn - 1
        notes[WAITS] += other != own and load_acquire(clocks, other * CLOCK_STRIDE) < needed
        if other != own and not is_there(clocks, other, needed, control):
            return False
    return True


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def give_turn(clocks: Any, notes: Any) -> None:  # pragma: no cover - compiled
    """Tell the others that this worker has pulled once more."""
    notes[COUNT] += 1
    notes[FLUSHES] += 1
    store_release(clocks, notes[WORKER] * CLOCK_STRIDE, (notes[ROUND] << ROUND_BITS) + notes[COUNT])


# ------------------------------------------------------------ all workers


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def meet(clocks: Any, notes: Any, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until all others have come as far or have done all; False where the loop is to be left."""
    own = notes[WORKER]
    notes[COUNT] += 1
    come = (notes[ROUND] << ROUND_BITS) + 2 * notes[COUNT] - 1
    store_release(clocks, own * CLOCK_STRIDE, come)
    for other in range(len(clocks) // CLOCK_STRIDE):
        if other != own:
            notes[WAITS] += load_acquire(clocks, other * CLOCK_STRIDE) < come
            if not is_there(clocks, other, come, control):
                return False
    return True


@register_jitable  # type: ignore[untyped-decorator]
def those_there(clocks: Any, notes: Any) -> Any:  # pragma: no cover - compiled
    """The workers at this meeting, in order; how many of them are on this node; and which of these this one is."""
    workers = len(clocks) // CLOCK_STRIDE
    there, count, here, rank = np.empty(workers, np.int64), 0, 0, 0
    for other in range(workers):
        if load_acquire(clocks, other * CLOCK_STRIDE) >> ROUND_BITS == notes[ROUND]:
            if other == notes[WORKER]:
                rank = here
            here += notes[FIRST_HERE] <= other < notes[END_HERE]
            there[count] = other
            count += 1
    return there[:count], here, rank


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def meeting_is_over(clocks: Any, notes: Any, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until all on this node have done their parts; False where the loop is to be left."""
    own = notes[WORKER]
    done = (notes[ROUND] << ROUND_BITS) + 2 * notes[COUNT]
    notes[FLUSHES] += 1
    store_release(clocks, own * CLOCK_STRIDE, done)
    for other in range(notes[FIRST_HERE], notes[END_HERE]):
        if other != own and not is_there(clocks, other, done, control):
            return False
    return True


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def pull_all(
    copies: Any, centre: Any, alpha: float, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """Pull the copies of all workers at a meeting and the array together, this worker's part of the elements; False
    where the loop is to be left."""
    all_copies, shared = copies.reshape((len(copies), -1)), centre.reshape(-1)
    there, here, rank = those_there(clocks, notes)
    last, wrong = (rank + 1) * len(shared) // here, -1
    total = np.empty(BLOCK, shared.dtype)
    for first in range(rank * len(shared) // here, last, BLOCK):
        size = min(BLOCK, last - first)
        total[:] = 0
        for k in range(len(there)):
            own = all_copies[there[k]]
            for e in range(size):
                difference = alpha * (own[first + e] - shared[first + e])
                own[first + e] -= difference
                total[e] += difference
        for e in range(size):
            if total[e] - total[e] != 0:
                wrong = first + e
            shared[first + e] += total[e]
    return bool(are_numbers(number, wrong, control))


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def average(
    copies: Any, centre: Any, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """Have the array, and the copies of all workers at a meeting, be the average of these: this worker's part."""
    all_copies, shared = copies.reshape((len(copies), -1)), centre.reshape(-1)
    there, here, rank = those_there(clocks, notes)
    last, wrong = (rank + 1) * len(shared) // here, -1
    total = np.empty(BLOCK, shared.dtype)
    for first in range(rank * len(shared) // here, last, BLOCK):
        size = min(BLOCK, last - first)
        sum_up(all_copies, there, first, size, total)
        for e in range(size):
            shared[first + e] = total[e] / len(there)
            if total[e] - total[e] != 0:
                wrong = first + e
        spread_out(all_copies, there, first, size, shared)
    return bool(are_numbers(number, wrong, control))


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def average_with_momentum(
    copies: Any, centre: Any, outer: Any, step: float, momentum: float, number: int, clocks: Any, notes: Any,
    control: Any,
) -> bool:  # pragma: no cover - compiled  # fmt: skip
    """The same with a step of Nesterov's towards the average."""
    all_copies, shared, speed = copies.reshape((len(copies), -1)), centre.reshape(-1), outer.reshape(-1)
    there, here, rank = those_there(clocks, notes)
    last, wrong = (rank + 1) * len(shared) // here, -1
    total = np.empty(BLOCK, shared.dtype)
    for first in range(rank * len(shared) // here, last, BLOCK):
        size = min(BLOCK, last - first)
        sum_up(all_copies, there, first, size, total)
        for e in range(size):
            difference = shared[first + e] - total[e] / len(there)
            speed[first + e] = momentum * speed[first + e] + difference
            shared[first + e] -= step * (difference + momentum * speed[first + e])
            if difference - difference != 0:  # infinite, or not a number
                wrong = first + e
        spread_out(all_copies, there, first, size, shared)
    return bool(are_numbers(number, wrong, control))


@register_jitable  # type: ignore[untyped-decorator]
def sum_up(all_copies: Any, there: Any, first: int, size: int, total: Any) -> None:  # pragma: no cover - compiled
    """The sums of the copies of some workers, for `size` elements from `first` on."""
    total[:] = 0
    for k in range(len(there)):
        own = all_copies[there[k]]
        for e in range(size):
            total[e] += own[first + e]


@register_jitable  # type: ignore[untyped-decorator]
def spread_out(all_copies: Any, there: Any, first: int, size: int, shared: Any) -> None:  # pragma: no cover - compiled
    """Have these copies be what the array is."""
    for k in range(len(there)):
        own = all_copies[there[k]]
        for e in range(size):
            own[first + e] = shared[first + e]
