"""How far workers are with the updates that may be late, and who applies one (`orion.buffer`).

Each worker has a clock, an element of `clocks` in a line of its own: 0 before it begins, then round · 2⁴⁰ + 1 + the
iterations of this round whose updates it has applied. Before it begins its iterations c … c + every - 1 it waits until
all others have applied those of their first c + every - max_delay. So when it reads in its k-th iteration,
k < c + every, all updates of others up to their iteration k - max_delay have been applied (bounded staleness: Ho et
al., NIPS 2013). A worker that has done all of its iterations has (round + 1) · 2⁴⁰, and one that has none PAST_ALL.

Where tiles wait for each other, a worker that waits for others would keep those waiting that run ahead of it, for ever.
There a worker that is in no tile rests: its clock is past all of the round, and nobody waits for it, nor for one that
has not begun the round: all that they have done is applied. (Those who take tiles from each other rest at the end,
too.) When it begins a tile its clock goes on from the latest of the others', whose iterations it has waited for: it
shows its old one first, so that whoever looks after that waits, and then looks at the others' (the fence keeps this
order).

Between nodes clocks come late: who rests, as seen from there, may have begun. So nodes acknowledge clocks: `ACKED`,
beside a worker's clock, is the last one of which all other nodes have said that they had it, before they told their
own. Whoever begins there after that goes on from it, or from later. So a worker that waits until its clock was
acknowledged up to k - max_delay before its k-th iteration, and one of the tile that it is in, need not know of those
that begin meanwhile (`orion.runtime.ray.acknowledged`).

`notes` are each worker's own: see `orion.kernel.calling`.
"""

from __future__ import annotations

from typing import Any

from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable

from orion.kernel.calling import (
    ACKED,
    ACKS,
    BINS,
    CLOCK_STRIDE,
    COUNT,
    FLUSHES,
    GO,
    HISTOGRAM,
    LEAST,
    LEFT,
    LOCKS,
    MOST_LATE,
    NOT_A_NUMBER,
    PAST_ALL,
    ROUND,
    ROUND_BITS,
    UNBOUND,
    WAITS,
    WORKER,
    resting,
)
from orion.kernel.support.intrinsics import (
    CLAIMED,
    compare_exchange,
    is_left,
    load_acquire,
    must_leave,
    rested,
    store_release,
)

resting_clock = register_jitable(resting)


@intrinsic  # type: ignore[untyped-decorator]
def fence(typing: Any) -> Any:
    """What was written before is seen by all before anything is read after it."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


# ------------------------------------------------------------ clocks


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def begin_tile(
    clocks: Any, notes: Any, round: int, every: int, max_delay: int, rests: bool, control: Any
) -> bool:  # pragma: no cover - compiled
    """Before the iterations of a tile; False where the loop is to be left."""
    if notes[UNBOUND]:
        return not is_left(control)
    base, own = (round << ROUND_BITS) + 1, notes[WORKER]
    if notes[ROUND] != round:
        notes[ROUND], notes[COUNT] = round, 0
        if not rests:
            store_release(clocks, own * CLOCK_STRIDE, base)
    if rests:
        store_release(clocks, own * CLOCK_STRIDE, base + notes[COUNT])
        fence()
        for other in range(len(clocks) // CLOCK_STRIDE):
            found = load_acquire(clocks, other * CLOCK_STRIDE) - base
            if other != own and notes[COUNT] < found < (1 << ROUND_BITS) - 2:
                notes[COUNT] = found
        if notes[ACKS]:
            notes[COUNT] += 1  # a clock that it has not shown before: whoever acknowledges it knows of this tile
            notes[ACKS] = base + notes[COUNT]
        store_release(clocks, own * CLOCK_STRIDE, base + notes[COUNT])
        fence()
    return bool(may_begin(clocks, notes, every, max_delay, rests, control))


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def may_begin(
    clocks: Any, notes: Any, every: int, max_delay: int, rests: bool, control: Any
) -> bool:  # pragma: no cover - compiled
    """Wait until the next iterations may begin; False where the loop is to be left instead."""
    if notes[UNBOUND]:
        return not is_left(control)
    base, own = (notes[ROUND] << ROUND_BITS) + 1, notes[WORKER]
    needed, least, spins = base + notes[COUNT] + every - max_delay, PAST_ALL, 0
    if notes[ACKS] and not is_acknowledged(clocks, notes, max(needed, notes[ACKS]), control):
        return False
    for other in range(len(clocks) // CLOCK_STRIDE):
        if other == own:
            continue
        found = load_acquire(clocks, other * CLOCK_STRIDE)
        while found < needed and not (rests and found < base):
            if must_leave(control):
                return False
            spins = rested(spins)
            found = load_acquire(clocks, other * CLOCK_STRIDE)
        if found >= base or not rests:
            least = min(least, max(found, base))  # who has not begun has applied none
    notes[WAITS] += spins > 0
    notes[LEAST] = least
    return not is_left(control)


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def has_applied(clocks: Any, notes: Any, iterations: int, max_delay: int) -> None:  # pragma: no cover - compiled
    """Tell the others that the updates of so many more iterations have been applied, and note how late theirs were in
    these: clocks only rise, so that what was seen before them is the most."""
    if notes[UNBOUND]:
        return
    notes[COUNT] += iterations
    notes[FLUSHES] += 1
    now = (notes[ROUND] << ROUND_BITS) + 1 + notes[COUNT]
    store_release(clocks, notes[WORKER] * CLOCK_STRIDE, now)
    if iterations:
        late = max(0, now - notes[LEAST])
        notes[MOST_LATE] = max(notes[MOST_LATE], late)
        notes[HISTOGRAM + late * BINS // (max_delay + 1)] += 1
    fence()


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def is_acknowledged(clocks: Any, notes: Any, needed: int, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until all other nodes have acknowledged this clock of the worker; False where the loop is to be left."""
    acknowledged, own = clocks[ACKED:], notes[WORKER]
    notes[WAITS] += load_acquire(acknowledged, own * CLOCK_STRIDE) < needed
    return bool(is_there(acknowledged, own, needed, control))


@register_jitable  # type: ignore[untyped-decorator]
def is_in_no_tile(clocks: Any, notes: Any, round: int) -> None:  # pragma: no cover - compiled
    """Tell the others that there are no updates that have not been applied, and none to come before its next tile."""
    store_release(clocks, notes[WORKER] * CLOCK_STRIDE, resting_clock(round))


@register_jitable  # type: ignore[untyped-decorator]
def has_done_all(clocks: Any, notes: Any, round: int) -> None:  # pragma: no cover - compiled
    """Tell the others that there are no updates that have not been applied, and none to come for now."""
    store_release(clocks, notes[WORKER] * CLOCK_STRIDE, (round + 1) << ROUND_BITS)


# ------------------------------------------------------------ in a fixed order


@register_jitable  # type: ignore[untyped-decorator]
def left_of(notes: Any, round: int, every: int) -> int:  # pragma: no cover - compiled
    """After how many iterations a worker that begins a tile applies its updates."""
    if notes[ROUND] != round:
        notes[ROUND], notes[COUNT], notes[LEFT] = round, 0, every
    return int(notes[LEFT])


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def my_turn(clocks: Any, notes: Any, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until all others have come as far, and those before this worker have applied their updates; False where the
    loop is to be left. A clock has two steps for each time that updates are applied: come so far, and applied."""
    own = notes[WORKER]
    notes[COUNT] += 1
    come = (notes[ROUND] << ROUND_BITS) + 2 * notes[COUNT] - 1
    store_release(clocks, own * CLOCK_STRIDE, come)
    for other in range(len(clocks) // CLOCK_STRIDE):
        needed = come + 1 if other < own else come
        if other != own and not is_there(clocks, other, needed, control):
            return False
    return True


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def turn_is_over(clocks: Any, notes: Any, control: Any) -> bool:  # pragma: no cover - compiled
    """Tell the next worker, and wait until all have applied their updates; False where the loop is to be left."""
    own = notes[WORKER]
    applied = (notes[ROUND] << ROUND_BITS) + 2 * notes[COUNT]
    notes[FLUSHES] += 1
    store_release(clocks, own * CLOCK_STRIDE, applied)
    for other in range(len(clocks) // CLOCK_STRIDE):
        if other != own and not is_there(clocks, other, applied, control):
            return False
    return True


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def is_there(clocks: Any, other: int, needed: int, control: Any) -> bool:  # pragma: no cover - compiled
    """Wait until the clock of another worker is so far; False where the loop is to be left."""
    spins = 0
    while load_acquire(clocks, other * CLOCK_STRIDE) < needed:
        if must_leave(control):
            return False
        spins = rested(spins)
    return True


# ------------------------------------------------------------ updates


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def lock(locks: Any, part: int, control: Any) -> bool:  # pragma: no cover - compiled
    """Keep others from applying updates to a part of an array; False where the loop is to be left."""
    place, spins = (part & (LOCKS - 1)) * CLOCK_STRIDE, 0
    while not compare_exchange(locks, place, 0, 1):
        if is_left(control):
            return False
        spins = rested(spins)
    return True


@register_jitable  # type: ignore[untyped-decorator]
def unlock(locks: Any, part: int) -> None:  # pragma: no cover - compiled
    store_release(locks, (part & (LOCKS - 1)) * CLOCK_STRIDE, 0)


@register_jitable  # type: ignore[untyped-decorator]
def note_part(marks: Any, part: int) -> bool:  # pragma: no cover - compiled
    """Note that a part of an array is used; whether it was not before."""
    if marks[part]:
        return False
    marks[part] = 1
    return True


@register_jitable  # type: ignore[untyped-decorator]
def note_in_list(marks: Any, listed: Any, part: int) -> bool:  # pragma: no cover - compiled
    """The same in a list too: `listed` has how many there are, and then these."""
    if marks[part]:
        return False
    marks[part] = 1
    listed[0] += 1
    listed[listed[0]] = part
    return True


@intrinsic  # type: ignore[untyped-decorator]
def add_at(typing: Any, array: Any, index: Any, update: Any) -> Any:
    """`array[index] += update`, an element, as one step that no other worker gets in between."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.args[0]
        memory = context.make_array(kind)(context, builder, args[0])
        at = cgutils.unpack_tuple(builder, args[1])
        address = cgutils.get_item_pointer(context, builder, kind, memory, at, wraparound=False)
        operation = "fadd" if isinstance(kind.dtype, types.Float) else "add"
        builder.atomic_rmw(operation, address, args[2], "monotonic")
        return context.get_dummy_value()

    return types.void(array, index, array.dtype), generate


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def tell_not_a_number(number: int, place: int, control: Any) -> None:  # pragma: no cover - compiled
    """Note that an update is not a number: of which array, and where."""
    if compare_exchange(control, 0, GO, CLAIMED):
        control[1] = number
        control[2] = place
        store_release(control, 0, NOT_A_NUMBER)


@register_jitable  # type: ignore[untyped-decorator]
def are_numbers(number: int, wrong: int, control: Any) -> bool:  # pragma: no cover - compiled
    """Whether no element of array `number` was found `wrong`: -1; else note which was."""
    if wrong >= 0:
        tell_not_a_number(number, wrong, control)
    return bool(wrong < 0)
