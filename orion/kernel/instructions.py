"""The instructions by which the walker runs planned loops and what stands between them (`orion.kernel.build.walker`).

They are rows of four integers, (operation, a, b, c), run one after the other; r[k] is register k, 64 bits, an integer
or the bits of a float. Functions differ in what stands between their loops, so that compiling that for each would cost
more than the loops take that it starts. A few nanoseconds for an instruction are little beside the start of a loop.

| operation | does |
|---|---|
| COPY a b | r[a] = r[b] |
| ADD, SUBTRACT, MULTIPLY a b c | r[a] = r[b] op r[c] of integers; left where the result has more than 64 bits |
| WADD, WSUBTRACT, WMULTIPLY, WDIVIDE, WREMAINDER a b c | the same as NumPy does: they wrap around, and by 0 give 0 |
| DIVIDE, REMAINDER a b c | the quotient rounded down, and what then remains; left where r[c] is 0 |
| LEAST, MOST, AND, OR, XOR a b c | r[a] = r[b] op r[c] of integers |
| LESS, AT_MOST, SAME a b c | r[a] = whether r[b] < r[c], r[b] <= r[c], r[b] == r[c] |
| FADD, FSUBTRACT, FMULTIPLY, FDIVIDE a b c | r[a] = r[b] op r[c] of floats, by IEEE 754 |
| PDIVIDE, POWER a b c | the same as Python divides and raises to powers; left where it raises an error |
| FLESS, FAT_MOST, FSAME a b c | comparisons of floats |
| FLOAT a b, EXACT a b | the float nearest to an integer; EXACT: left where it is another number |
| TRUNCATE a b | the integer part of a float; left where it has more than 64 bits |
| FABS, ROOT, PROOT a b | of floats; PROOT: left where r[b] is less than 0 |
| SINGLE a b | the bits of a float as one of 32 bits |
| PUT a b c | slot b of the block of loop a = r[c] |
| TRIP a b c | go on at row c where r[a] is not before the stop r[b] of a range; left where its step r[b + 1] is 0 |
| NEXT a b c | r[a] = r[a] + r[b + 1], and go on at row c; neither where the sum has more than 64 bits: the range ends |
| JUMP a | go on at row a |
| WHEN a b c | go on at row c where r[a] is not 0 and b is 1, or r[a] is 0 and b is 0 |
| MEET | wait for all workers |
| START | end here where no more loops may be started; else one fewer may |
| RUN a | run this worker's tiles of loop a |
| BEGIN, BEGIN_BYTE a b c | worker 0: the array at slot b of the block of loop c begins with r[a] |
| LOAD, LOAD_BYTE a b c | r[a] = the first element of the array at slot b of the block of loop c, as its round had it |
| SUM, FSUM, PRODUCT, FPRODUCT a b c | r[a] = r[a] op all elements of that array, from the first to the last |
| LEAST_OF, MOST_OF, FLEAST_OF, FMOST_OF a b c | the same; NaN where one of the floats is |
| ALL, ANY a b c | the same of truth values, a byte each |
| LAST a b c | r[a] = the number of the last element of that array that is not NOWHERE, -1 where all are |
| CHOOSE, FCHOOSE a b c | r[a] = the number of the element of that array, of integers or floats, that is taken |
| PICK, PICK_BYTE a b c | r[a] = element r[a] of that array |

CHOOSE goes through the elements whose places, in the array at slot r[a + 1], are not NOWHERE. It takes the first, and
then each that compares with the one before as r[a + 2] says: 0 <, 1 <=, 2 >, 3 >=; with AGAINST more, each that does
not compare so; with NANS_WIN more, NaN too. -1 where there is none.

An instruction that is "left" changes nothing: the walker ends, and says in its state at which row. Loops are counted
from 0 in the order of the table that the walker is given, which has a row for each, and a last one for the meeting: the
entry of the kernel, 0 for the meeting; the address of the walk that runs its tiles; and the address and the length of
the blocks that its rounds have in turn (twice the same where there is one), of the tiles, wait_offsets, waits, lags,
done, control (`orion.kernel.calling`).
"""

from __future__ import annotations

(
    COPY, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, WADD, WSUBTRACT, WMULTIPLY, WDIVIDE, WREMAINDER, LEAST, MOST,
    AND, OR, XOR, LESS, AT_MOST, SAME, FADD, FSUBTRACT, FMULTIPLY, FDIVIDE, PDIVIDE, POWER, FLESS, FAT_MOST, FSAME,
    FLOAT, EXACT, TRUNCATE, FABS, ROOT, PROOT, SINGLE, PUT, TRIP, NEXT, JUMP, WHEN, MEET, START, RUN, BEGIN,
    BEGIN_BYTE, LOAD, LOAD_BYTE, SUM, FSUM, PRODUCT, FPRODUCT, LEAST_OF, MOST_OF, FLEAST_OF, FMOST_OF, ALL, ANY, LAST,
    CHOOSE, FCHOOSE, PICK, PICK_BYTE,
) = range(62)  # fmt: skip

COMPARISONS = "<", "<=", ">", ">="
AGAINST, NANS_WIN = 4, 8
"""What CHOOSE is told to compare by."""

Row = tuple[int, int, int, int]
"""An instruction; what it does not use is 0."""

ENTRY, WALK = 0, 1
BLOCK, OTHER, TILES, WAIT_OFFSETS, WAITS, LAGS, DONE, CONTROL = range(2, 18, 2)
"""The columns of the table; of arrays that of the address, the next one has the length."""

COLUMNS = 18

RUNNING, MEETINGS, LEFT, WORKER, AT, STARTS, ROUNDS = range(7)
"""The elements of the state that the walker changes: the loop that is running; how often the workers have met; one past
the row that was left, 0 for none; the number of the worker; the row to go on at; how many loops it may start before it
ends there; and from there on the round of each loop."""

ENDLESS = (1 << 63) - 1
"""More loops than are ever started."""
