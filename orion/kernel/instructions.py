"""The instructions by which the walker runs serial loops around planned ones (`orion.kernel.build.walker`).

They are rows of four integers, (operation, a, b, c), run one after the other; r[k] is register k, an int64. Serial
loops differ in what stands in them, so that compiling a function for each would cost more than the rounds take that it
runs. A dozen nanoseconds for an instruction are little beside the start of a planned loop.

| operation | does |
|---|---|
| SET a b | r[a] = b |
| COPY a b | r[a] = r[b] |
| ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, LEAST, MOST a b c | r[a] = r[b] op r[c], the quotient rounded down |
| PUT a b c | slot b of the block of loop a = r[c] |
| TRIP a b c | go on at row c where r[a] is not before the stop r[b] of a range with step r[b + 1] |
| JUMP a | go on at row a |
| MEET | wait for all workers |
| RUN a | run this worker's tiles of loop a |

Loops are counted from 0 in the order of the table that the walker is given, which has a row for each, and a last one
for the meeting: the entry of the kernel, 0 for the meeting; whether workers take tiles of each other; and the address
and the length of the block, the tiles, wait_offsets, waits, lags, done, control (`orion.kernel.calling`).
"""

from __future__ import annotations

SET, COPY, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, LEAST, MOST, PUT, TRIP, JUMP, MEET, RUN = range(14)

Row = tuple[int, int, int, int]
"""An instruction; what it does not use is 0."""

ENTRY, TAKES = 0, 1
BLOCK, TILES, WAIT_OFFSETS, WAITS, LAGS, DONE, CONTROL = range(2, 16, 2)
"""The columns of the table; of arrays that of the address, the next one has the length."""

COLUMNS = 16

RUNNING, MEETINGS, ROUNDS = 0, 1, 2
"""The elements of the state that the walker changes: the loop that is running, how often the workers have met, and from
there on the round of each loop."""
