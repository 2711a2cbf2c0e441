"""Updates that go from node to node: what has changed in an array since the others were told, and theirs added to it.

An array is taken as rows of `width` neighbouring elements, in its memory; the last one may be shorter. `base` has the
elements as all nodes know them: what this one has to tell is the difference. So workers apply updates as they do
alone, and nothing is collected twice.
"""

from __future__ import annotations

from typing import Any

from orion.kernel.calling import ACKED, CLOCK_STRIDE
from orion.kernel.support.buffers import add_at, fence, lock, unlock
from orion.kernel.support.intrinsics import load_acquire, store_release, walk_function

RUN = 64
"""So many neighbouring elements of the last axis have a lock together, where updates are sums of single elements
(`orion.kernel.emit.flush`)."""

AT_ONCE, RUNS = 0, -1
"""In place of the elements that have a lock together: none have, or runs of `RUN`."""


@walk_function
def read_clocks(clocks: Any, workers: Any, found: Any) -> None:  # pragma: no cover - compiled
    """The clocks of some workers. What they tell of has been applied to what is read after this; who has a later one
    by then has seen what was written before this."""
    fence()
    for k in range(len(workers)):
        found[k] = load_acquire(clocks, workers[k] * CLOCK_STRIDE)


@walk_function
def set_clock(clocks: Any, worker: int, value: int) -> None:  # pragma: no cover - compiled
    """Set the clock of a worker of another node, whose updates are in the arrays of this one."""
    store_release(clocks, worker * CLOCK_STRIDE, value)


@walk_function
def set_acknowledged(clocks: Any, worker: int, value: int) -> None:  # pragma: no cover - compiled
    """Note which clock of a worker of this node all others have acknowledged; what they told before is here."""
    store_release(clocks, worker * CLOCK_STRIDE + ACKED, value)


@walk_function
def weigh(now: Any, base: Any, width: int, least: float, rows: Any, weights: Any) -> int:  # pragma: no cover - compiled
    """The importance of what is to be told of each of some rows, Σ |δ| / max(|v|, least), 0 for none (Wei et al., SoCC
    2015). Returns how many rows have any."""
    changed = 0
    for k in range(len(rows)):
        row, total, any_changed = rows[k], 0.0, False
        for at in range(row * width, min((row + 1) * width, len(now))):
            value, known = now[at], base[at]
            if value != known and not (value != value and known != known):
                any_changed = True
                share = abs(float(value) - float(known)) / max(abs(float(value)), least)
                total += share if share == share else 1.0
        weights[k] = max(total, 1e-300) if any_changed else 0.0
        changed += any_changed
    return changed


@walk_function
def take(now: Any, base: Any, width: int, rows: Any, told: Any) -> None:  # pragma: no cover - compiled
    """What is to be told of some rows, into `told` (rows, width); the others know it from now on."""
    for k in range(len(rows)):
        first = rows[k] * width
        for column in range(width):
            at = first + column
            if at >= len(now):
                told[k, column] = 0
                continue
            value, known = now[at], base[at]
            told[k, column] = value - known if value != known else 0
            base[at] = value


@walk_function
def add(
    now: Any, base: Any, width: int, axis: int, rows: Any, told: Any, together: int, locks: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """Add what another node tells of some rows. `together` elements have a lock together, or those of `RUNS`, the last
    axis having `axis` elements, or there are none (`AT_ONCE`). False where the loop is to be left."""
    runs = (axis + RUN - 1) // RUN
    held = -1
    for k in range(len(rows)):
        first = rows[k] * width
        for column in range(min(width, len(now) - first)):
            update, at = told[k, column], first + column
            if update == 0:
                continue
            if together == AT_ONCE:
                add_at(now, (at,), update)
            else:
                part = at // axis * runs + at % axis // RUN if together == RUNS else at // together
                if part != held:
                    if held >= 0:
                        unlock(locks, held)
                    if not lock(locks, part, control):
                        return False
                    held = part
                now[at] += update
            base[at] += update
        if held >= 0:
            unlock(locks, held)
            held = -1
    return True
