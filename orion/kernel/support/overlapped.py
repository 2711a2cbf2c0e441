"""How copies of arrays are pulled together while workers go on with their next steps (`orion.elastic(overlap=True)`).

After its k-th steps a worker with the copy x posts y[k], and the array is c[k]:

    y[k] = x - a (y[k-1] - c[k-1])      c[k] = c[k-1] + a Σ (y[k-1] - c[k-1])      y[1] = x,  c[1] = c

so that steps and pull are of the same y[k-1], as in the paper, and what a worker needs of others was posted before its
steps. It waits for nobody who is no further behind than that. Each computes a part of the elements of c[k], those of
worker after worker: one order of operations for each element. c[k] is the array where k is odd, a second one where it
is even; posted are the last two y of each worker. After its last steps a worker is pulled once more, without steps, and
those who have the most leave the array as it is then.

Who takes part in the k-th pull has to be known before all have come to it. A worker posts, with y[k], whether it was
its last one: so after k - 1 it is known. `clocks` have, beside the clock of a worker, round · 2⁴⁰ + 2 k + whether it
was the last; and round · 2⁴⁰ + 1 once it was pulled once more, until when nobody changes the c[k] that it needs for
that."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from orion.kernel.calling import (
    CLOCK_STRIDE,
    COUNT,
    FLUSHES,
    GIVEN,
    POSTED,
    ROUND,
    ROUND_BITS,
    SETTLED,
    WAITS,
    WORKER,
)
from orion.kernel.support.buffers import are_numbers, is_there
from orion.kernel.support.intrinsics import load_acquire, must_leave, rested, store_release, walk_function
from orion.kernel.support.replicas import BLOCK


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def alpha_overlapped(clocks: Any, moving: float) -> float:  # pragma: no cover - compiled
    """The alpha of each worker: where all have the greatest that is stable, a part `moving` of it at most."""
    workers = 0
    for other in range(len(clocks) // CLOCK_STRIDE):
        workers += load_acquire(clocks, other * CLOCK_STRIDE) < 1 << 62
    return float(min(moving / max(workers, 1), 2 * moving / (workers + 2)))


@register_jitable  # type: ignore[untyped-decorator]
def posted_by(clocks: Any, other: int, round: int) -> Any:  # pragma: no cover - compiled
    """How often a worker has posted in a round, and whether that was the last time."""
    has_left = load_acquire(clocks, other * CLOCK_STRIDE) >= (round + 1) << ROUND_BITS  # looked at first
    found = load_acquire(clocks, other * CLOCK_STRIDE + POSTED)
    steps = found - (round << ROUND_BITS)
    if steps <= 0:
        return 0, has_left
    return steps >> 1, bool(steps & 1)


@register_jitable  # type: ignore[untyped-decorator]
def is_settled(clocks: Any, other: int, round: int) -> bool:  # pragma: no cover - compiled
    """Whether a worker has been pulled for the last time in a round."""
    return bool(load_acquire(clocks, other * CLOCK_STRIDE + SETTLED) > round << ROUND_BITS)


@register_jitable  # type: ignore[untyped-decorator]
def is_past(clocks: Any, other: int, round: int, count: int) -> bool:  # pragma: no cover - compiled
    """Whether a worker has posted so often, or is done with all that others could change."""
    have, is_last = posted_by(clocks, other, round)
    return bool(have >= count or (is_last and (have == 0 or is_settled(clocks, other, round))))


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def await_posts(clocks: Any, notes: Any, count: int, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until all others have posted so often, or are done; False where the loop is to be left."""
    for other in range(len(clocks) // CLOCK_STRIDE):
        spins = 0
        while other != notes[WORKER] and not is_past(clocks, other, notes[ROUND], count):
            if must_leave(control):
                return False
            spins = rested(spins)
        notes[WAITS] += spins > 0
    return True


@register_jitable  # type: ignore[untyped-decorator]
def with_posts(clocks: Any, notes: Any, count: int) -> Any:  # pragma: no cover - compiled
    """The workers that post so often, in order, once all have posted once less, or for the last time; this one does."""
    workers = len(clocks) // CLOCK_STRIDE
    there, found = np.empty(workers, np.int64), 0
    for other in range(workers):
        have, is_last = posted_by(clocks, other, notes[ROUND])
        if other == notes[WORKER] or have >= count or not is_last:
            there[found] = other
            found += 1
    return there[:found]


@register_jitable  # type: ignore[untyped-decorator]
def rank_in(there: Any, worker: int) -> int:  # pragma: no cover - compiled
    rank = 0
    while there[rank] != worker:
        rank += 1
    return rank


@register_jitable  # type: ignore[untyped-decorator]
def move_part(
    posts: Any, before: Any, after: Any, givers: Any, first: int, last: int, alpha: float
) -> int:  # pragma: no cover - compiled
    """Some elements of the array after a pull of these workers; an element that is not a number, or -1."""
    total, wrong = np.empty(BLOCK, before.dtype), -1
    for start in range(first, last, BLOCK):
        size = min(BLOCK, last - start)
        total[:] = 0
        for k in range(len(givers)):
            post = posts[givers[k]]
            for e in range(size):
                total[e] += alpha * (post[start + e] - before[start + e])
        for e in range(size):
            if total[e] - total[e] != 0:
                wrong = start + e
            after[start + e] = before[start + e] + total[e]
    return wrong


@register_jitable  # type: ignore[untyped-decorator]
def work_out(
    shared: Any, all_posts: Any, alpha: float, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """A worker's part of the array after the pull before, and by how much its copy is moved by then, which goes where
    it posts next; False where the loop is to be left."""
    workers, count, worker = len(all_posts) // 2, notes[COUNT] + 1, notes[WORKER]
    earlier, spare = (count - 1) & 1, all_posts[2 * workers]
    before, after = (shared, spare) if earlier else (spare, shared)
    posts = all_posts[earlier * workers : (earlier + 1) * workers]
    there, givers = with_posts(clocks, notes, count), with_posts(clocks, notes, count - 1)
    rank, n = rank_in(there, worker), len(shared)
    wrong = move_part(posts, before, after, givers, rank * n // len(there), (rank + 1) * n // len(there), alpha)
    moved, last = all_posts[(count & 1) * workers + worker], posts[worker]
    for e in range(n):
        moved[e] = alpha * (last[e] - before[e])
    return bool(are_numbers(number, wrong, control))


@register_jitable  # type: ignore[untyped-decorator]
def work_out_last(
    shared: Any, all_posts: Any, alpha: float, number: int, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """By how much a worker's copy is moved by what it has posted last, once all others have posted as often; in place
    of what it had posted before that, which nobody reads any more."""
    workers, parity, wrong = len(all_posts) // 2, notes[COUNT] & 1, -1
    before = shared if parity else all_posts[2 * workers]
    last = all_posts[parity * workers + notes[WORKER]]
    moved = all_posts[(1 - parity) * workers + notes[WORKER]]
    for e in range(len(moved)):
        moved[e] = alpha * (last[e] - before[e])
        if moved[e] - moved[e] != 0:  # infinite, or not a number
            wrong = e
    return bool(are_numbers(number, wrong, control))


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def move_own(own: Any, posted: Any, notes: Any, posts: bool) -> None:  # pragma: no cover - compiled
    """Move a worker's copy by what was worked out, here or at home; `posts`: post it in place of that."""
    mine, all_posts, pull = own.reshape(-1), posted.reshape((len(posted), -1)), notes[COUNT] + 1
    row = all_posts[(pull & 1) * (len(posted) // 2) + notes[WORKER]]
    for e in range(len(mine)):
        if pull > 1:
            mine[e] -= row[e]
        if posts:
            row[e] = mine[e]


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def pull_posted(
    own: Any, centre: Any, posted: Any, alpha: float, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """This worker's part of the array after the pull before, and its own copy pulled and posted; False where the loop
    is to be left."""
    shared, all_posts, goes_on = centre.reshape(-1), posted.reshape((len(posted), -1)), True
    if notes[COUNT]:
        goes_on = work_out(shared, all_posts, alpha, number, clocks, notes, control)
    move_own(own, posted, notes, True)
    return bool(goes_on)


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def has_posted(clocks: Any, notes: Any, is_last: bool) -> None:  # pragma: no cover - compiled
    """Tell the others that this worker has posted once more, or for the last time."""
    notes[COUNT] += 1
    notes[FLUSHES] += 1
    told = (notes[ROUND] << ROUND_BITS) + 2 * notes[COUNT] + is_last
    store_release(clocks, notes[WORKER] * CLOCK_STRIDE + POSTED, told)


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def settle_own(
    own: Any, centre: Any, posted: Any, alpha: float, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """Pull a worker's copy by what it has posted last, once all others have posted as often."""
    all_posts = posted.reshape((len(posted), -1))
    goes_on = work_out_last(centre.reshape(-1), all_posts, alpha, number, notes, control)
    move_own(own, posted, notes, False)
    return bool(goes_on)


@register_jitable  # type: ignore[untyped-decorator]
def settles(clocks: Any, notes: Any) -> int:  # pragma: no cover - compiled
    """Whether a worker that was pulled for the last time is to leave the array as it is after the last pull: 1; or 0
    where others post more often; or -1 where their last pulls are to be waited for."""
    for other in range(len(clocks) // CLOCK_STRIDE):
        have, is_last = posted_by(clocks, other, notes[ROUND])
        if have > notes[COUNT] or not is_last:
            return 0
    for other in range(len(clocks) // CLOCK_STRIDE):
        if posted_by(clocks, other, notes[ROUND])[0] and not is_settled(clocks, other, notes[ROUND]):
            return -1
    return 1


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def await_settled(clocks: Any, notes: Any, control: Any) -> Any:  # pragma: no cover - compiled
    """Tell that this worker's copy is pulled for the last time; whether the array is now to be left as it is, and
    False for the loop to be left. It is where no other worker posts more often: wait for the last pulls of all."""
    store_release(clocks, notes[WORKER] * CLOCK_STRIDE + SETTLED, (notes[ROUND] << ROUND_BITS) + 1)
    found, spins = settles(clocks, notes), 0
    while found < 0:
        if must_leave(control):
            return False, False
        spins = rested(spins)
        found = settles(clocks, notes)
    return found == 1, True


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def settle_array(
    own: Any, centre: Any, posted: Any, alpha: float, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """This worker's part of the array after the last pull."""
    shared, all_posts = centre.reshape(-1), posted.reshape((len(posted), -1))
    workers, parity = len(posted) // 2, notes[COUNT] & 1
    before = shared if parity else all_posts[2 * workers]
    posts = all_posts[parity * workers : (parity + 1) * workers]
    there = with_posts(clocks, notes, notes[COUNT])
    rank, n = rank_in(there, notes[WORKER]), len(shared)
    wrong = move_part(posts, before, shared, there, rank * n // len(there), (rank + 1) * n // len(there), alpha)
    return bool(are_numbers(number, wrong, control))


# ------------------------------------------------------------ workers of other nodes


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def await_given(clocks: Any, notes: Any, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until what the copy is moved by at the next pull has come from the home node; False where the loop is to be
    left. At the first pull it is not moved."""
    if not notes[COUNT]:
        return True
    needed, given = (notes[ROUND] << ROUND_BITS) + notes[COUNT] + 1, clocks[GIVEN:]
    notes[WAITS] += load_acquire(given, notes[WORKER] * CLOCK_STRIDE) < needed
    return bool(is_there(given, notes[WORKER], needed, control))


@walk_function
def posts_are_there(clocks: Any, notes: Any) -> bool:  # pragma: no cover - compiled
    """At home, called from Python: whether there is what `await_posts` waits for."""
    for other in range(len(clocks) // CLOCK_STRIDE):
        if other != notes[WORKER] and not is_past(clocks, other, notes[ROUND], notes[COUNT]):
            return False
    return True


@walk_function
def give_last(
    centre: Any, posted: Any, alpha: float, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """`work_out_last`, called from Python."""
    return bool(work_out_last(centre, posted, alpha, number, notes, control))


@walk_function
def settle_for(
    centre: Any, posted: Any, alpha: float, number: int, clocks: Any, notes: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """`settle_array`, called from Python."""
    return bool(settle_array(centre, centre, posted, alpha, number, clocks, notes, control))


# called from Python
take_post, give, settles_for = (walk_function(one) for one in (has_posted.py_func, work_out, settles))
