"""Workers that stay in compiled code between runs, and what has them follow instructions.

Each has a box of 64-bit integers: what it is doing, and where that lies which it is to do next. Worker 0 posts that to
the others, and does its own part; nobody takes the interpreter for it. A worker that has waited for a while leaves its
box, and sleeps until it is called back.

    AWAY → PARKED      by its worker, which has come in
    PARKED → POSTED    by worker 0, after it has written what to do (release); its worker sees it with acquire
    POSTED → PARKED    by its worker, when that is done (release); worker 0 waits for it with acquire
    AWAY → POSTED      by worker 0, which then wakes the worker
    PARKED → CALLED    by worker 0: the worker is wanted elsewhere
    PARKED → AWAY, CALLED → AWAY    by its worker, which leaves

All are compare-and-exchange, but for those from POSTED, and to POSTED where the worker is away: nobody else changes the
box then.
"""

from __future__ import annotations

AWAY, PARKED, POSTED, CALLED = range(4)
STATE = 0
ROWS, REGISTERS, TABLE, OWN_STATE = 8, 10, 12, 14
"""The elements of a box; of arrays the address, the next one has the length, of tables the number of rows. What both
sides look at is on a line of memory of its own."""

BOX = 16

IDLE_SPINS, IDLE_YIELDS = 300, 6_000
"""How often a parked worker looks for something to do before it lets others have its core, and before it sleeps."""

SPINS = 300
"""How often worker 0 looks whether others are done before it lets others have its core."""
