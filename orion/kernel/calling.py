"""How a compiled loop is called: the contract between generated kernels and whoever runs them. No Numba here.

A generated kernel is a function of one tile,

    tile(t, round, extents, control, *arguments)

One walker runs the tiles of all loops (`orion.kernel.build.walker`). Each worker calls it once per run of the loop, and
lets go of the GIL meanwhile. It is given the arguments of the kernel in a block (`orion.kernel.build.entries`), which
holds the addresses of arrays: whoever has a block keeps the arrays.

    block = walk.block(extents, control, arguments)      # arguments that are None are put later
    walk.pack(block, extents, control, arguments)        # others, in the same block
    walk.put(block, position, argument)                  # a scalar that is another one in each round
    walk(block, tiles, round, wait_offsets, waits, lags, done, control)

- `tiles`, int64 (n,): the tiles of this worker in the order in which it runs them, `Schedule.order[worker]`.
- `round`, int: how often this loop has been run since `done` was zeroed: 0, 1, …
- `extents`, int64. A loop over elements: `offsets` (tiles + 1,), tile t has elements `offsets[t] … offsets[t + 1]`. A
  nest of ranges: `tile_boxes(schedule)` (tiles, dims, 2); dimensions that the plan does not cut are run through whole.
- `wait_offsets`, `waits`, `lags`, int64: as in `Schedule`.
- `done`, int64 (8 * tiles,): `done[8 * t]` is the number of rounds that tile t has finished. One 64-byte line per tile,
  starting on a 64-byte boundary, zeroed before round 0.
- `control`, int64 (8,): `control[0]` is 0 while all goes well; see below.
- `arguments`: in the order of `KernelSource.arguments`; `Argument` says what each is.

For each tile t of `tiles`: wait until `done[8 * p] >= round + 1 - lag` for every (p, lag) it waits for; leave if
`control[0]` is not 0; run the iterations of the tile in loop order; set `done[8 * t] = round + 1`. Flags are read with
acquire and written with release ordering, so that `done` and `control` may lie in memory shared by processes, and what
a tile wrote is seen by every tile that waits for it.

`control[0]` is one of the codes below. The driver may set ABORT at any time; a walk that meets an error sets the
code, if no other worker has set one before, and `control[1:5]` to (site, subscript, extent, axis), and returns. Where
an update of a buffer is no number (NOT_A_NUMBER) it sets `control[1:3]` to (number of the buffer among those that the
loop updates, place of the element).
`site` indexes `KernelSource.sites`. `walk` itself raises only what has no code (a ValueError by NumPy inside the
loop, MemoryError): it has then set `control[0]` to ABORT first, so that other workers do not wait for ever.

Tiles that may take long look up in between (`orion.kernel.emit.stops`), and so do walks that wait. They look at
`control[5]` only, which is not 0 where there is something to see: EVERYONE where `control[0]` is not 0, or the identity
of a thread of this process that is to handle signals, which it then does. Where a handler raises, the walk of this
thread sets `control[6]` to its identity, `control[0]` to ABORT, and ends with what was raised. A tile that is left is
not done.

In a loop that the first iteration to come to a `break` ends, a tile with such an iteration raises `control[7]` to
`end_mark(t, round)`. Tiles after it in the order of their numbers need not run: a walk that comes to one
then tells that it has not ended, and is done with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from orion.dataclass import dataclass
from orion.source import SourceText, Span
from orion.typing.dtypes import PYTHON_INT, Kind
from orion.typing.functions import FUNCTIONS

if TYPE_CHECKING:
    from orion.schedule.schedule import Ints, Schedule

GO = 0
ABORT = 1
OUT_OF_BOUNDS = 2
NOT_A_NUMBER = 3

ALARM, RAISED = 5, 6
"""The elements of a control row that say who is to look up, and in which thread a signal handler raised."""

ENDED = 7
"""The element of a control row that says which tile has come to a `break` that ends the loop for those after it."""

EVERYONE = 1
"""In place of the identity of a thread, which is never 1."""

LAST_TILE = (1 << 32) - 1
"""More than the number of any tile."""

FLAG_STRIDE = CLOCK_STRIDE = 8
SLOT = 8
"""Bytes of a slot of a block of arguments."""

NOWHERE = int(np.iinfo(np.int64).min)
ANEW = "anew"
"""The op of the "place" that says whether a choice met a NaN after which it begins anew."""

WORKER, ROUND, COUNT, FLUSHES, WAITS, MOST_LATE, APPLIED, LEFT, LAST, UNBOUND, LEAST = range(11)
FIRST_HERE, END_HERE, ACKS, HISTOGRAM = range(11, 15)
"""The elements of the notes of a worker: its number; the round; the iterations of it whose updates it has applied
(or, where all apply them in a fixed order, how often it has; or how often it has pulled its copies of arrays); how
often it has applied updates, has waited for others, how many iterations updates of others were late at most, to how
many elements it has applied some; after how many iterations it does so next, where all do at once; the last of its
tiles, -1 for none: a walk may be given some of them at a time; whether nothing can be late, and nobody waits; the
least clock that it saw when it waited last; the first worker of its node (0 on the home node, on others more), and
the one after the last, who pull all copies there are on this node; which of its clocks other nodes must acknowledge, 0
where there are none whose workers rest between tiles; and then how often updates were late by how much, in
`BINS` parts of what they may be."""

BINS = 16
NOTES_SIZE = HISTOGRAM + BINS

ROUND_BITS = 40
"""A clock has the iterations of a round in so many bits."""

ASKED = 1
POSTED, SETTLED, GIVEN = range(1, 4)
"""The places beside the clock of a worker: to which pull it has come, if the home node is to pull; or, where workers go
on while copies are pulled, how often it has posted, whether it was pulled for the last time, and for which pull it was
given what its copy is moved by, if the home node works that out."""

ACKED = 1
"""The place beside the clock of a worker, where workers rest between tiles: the last that other nodes have
acknowledged."""

PAST_ALL = 1 << 62
"""The clock of a worker for whom nobody waits."""

LOCKS = 1024
"""How many locks there are for the elements that updates are applied to."""

RESULTS = ("partial", "chosen", "place", "ended")
"""The kinds of arguments that have one value per tile, which the walk sets."""

SCALARS = ("scalar", "count", "least", "greatest")
"""The kinds of arguments that are numbers."""

BLAS_CALL = re.compile("|".join([" @ ", *(re.escape(f"{name}(") for name, row in FUNCTIONS.items() if row.calls_blas)]))
"""A call of BLAS in generated source, in which names are those of the table of functions."""

CONTROL_SIZE = 8
AHEAD = 2
"""How many arguments stand in a block ahead of the kernel's own: the extents and `control`."""


def resting(round: int) -> int:
    """The clock of a worker that is in no tile, but has not done all of a round.

    >>> (0 << ROUND_BITS) + 1_000_000 < resting(0) < 1 << ROUND_BITS
    True
    """
    return ((round + 1) << ROUND_BITS) - 1


def end_mark(tile: int, round: int) -> int:
    """What says that a tile has ended a loop in a round: more than for tiles after it, and for rounds before.

    >>> end_mark(3, 0) > end_mark(4, 0), end_mark(9, 1) > end_mark(0, 0), end_mark(9, 0) > 0
    (True, True, True)
    """
    return (round + 1) << 32 | (LAST_TILE - tile)


def neutral(op: str, dtype: str) -> Any:
    """The value that changes nothing when it is combined by `op`.

    >>> neutral("+", "float64"), neutral("and", "bool"), neutral("min", "float32"), neutral("max", "int8")
    (-0.0, True, inf, -128)
    """
    kind = np.dtype(dtype)
    if op == "+" and kind.kind in "fc":
        return -0.0 if kind.kind == "f" else complex(-0.0, -0.0)  # 0.0 + -0.0 is 0.0
    if op in NEUTRAL:
        return NEUTRAL[op]
    if kind.kind == "f":
        return np.inf if op == "min" else -np.inf
    if kind.kind == "b":
        return op == "min"
    limits = np.iinfo(kind)
    return int(limits.max if op == "min" else limits.min)


NEUTRAL = {"+": 0, "*": 1, "and": True, "or": False}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of `walk` after the leading ones.

    What is passed, by `kind`:

    - "partial": array (tiles,), one partial result per tile of reduction `name` by operator `op`; the walk sets those
      of its tiles.
    - "chosen": array (tiles,), the value of scalar `name` at the end of each tile; each begins with the value of the
      argument "scalar" of that name. Those with the same `position` are one choice, by `op`: see
      `orion.dependence.choices`.
    - "place": array (tiles,), component `position` of the iteration that last set the scalar `name`, the first of a
      choice: NOWHERE in component 0 where none in the tile did. One by the op ANEW is 1 where the tile met a NaN; its
      choice begins with NaN.
    - "ended": array (tiles,), 1 where an iteration of the tile came to a `break` that ends the loop, else 0.
    - "carried": array (1,), the value of scalar `name` before the loop, and after it (only where the plan is serial).
    - "copies": array (blocks, *shape): the copies of dense array `name` that tiles work on, each on that of its block
      of the space dimension; `ndim` counts the blocks too.
    - "array": the dense array `name`, shaped as it is; a padded one as its C-contiguous storage, last dimension padded.
    - "key", "value": array (elements,), key or value number `position` of the sparse array `name`, in tile order.
    - "own": this worker's own array for the dense array `name`, of its shape, zeroed: updates that have not been
      applied, or a snapshot of a helper; or its row of an array of the copies of all workers, or of their momentum.
      "listed", "marks": arrays (1 + parts,) and (parts,) of its own, zeroed, of the parts of `name` with updates.
      "notes": its notes, as above.
    - "clocks": array (8 * workers,), "locks": array (8 * LOCKS,), of all workers. "posted": array (elements,), of those
      of a node, to which updates are added that `name` is given, so that other nodes can be told, or, of a snapshot,
      what it was for the first of those that are not told yet; "posted marks": which elements have such; (0,) for none.
    - "count": an int, `len(name)` of a sparse array.
    - "least", "greatest": ints, the least and the greatest element of array `name`, of integers; -1 and 0 where nobody
      has looked.
    - "scalar": the scalar `name`, an int, float or bool.

    `dtype` is the NumPy dtype name that it must have; `contiguous` arrays must be C-contiguous; an array that is not
    `writeable` may be read-only. `ndim` is the number of dimensions of an array. `outside` is what a scalar that the
    loop gives a value has outside of it: a dtype that may have fewer bits, and whether it is Python's own.
    """

    kind: str
    name: str
    dtype: str
    position: int = 0
    op: str = ""
    contiguous: bool = True
    ndim: int = 1
    writeable: bool = True
    outside: Kind = PYTHON_INT
    neutral: Any = None


@dataclass(frozen=True, slots=True)
class Site:
    """A subscript that is checked when the loop runs; `array` and `span` say which."""

    array: str
    span: Span


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A generated kernel before it is compiled.

    `text` is a Python module; `entry` the name of its function of a tile; `name` names the module (the user's function
    and the number of the loop); `lines[k]` is the place in the user's source that line k + 1 of `text` was made from,
    or None; `user` is the user's source, for messages. `extents_ndim` is the number of dimensions of the argument
    `extents`. Where updates are no sums the module has a function `receive`, which applies those that it finds in some
    of the arguments, at the places `receives`, and is given `control` after these; no places where it has none.
    `names` are names of the text, each with what the user calls it. `takes_tiles`: workers take tiles of each other.
    """

    name: str
    text: str
    entry: str
    arguments: tuple[Argument, ...]
    sites: tuple[Site, ...]
    lines: tuple[Span | None, ...]
    user: SourceText
    extents_ndim: int = 1
    receives: tuple[int, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    takes_tiles: bool = False

    @property
    def calls_blas(self) -> bool:
        """Whether iterations may call BLAS: products and linear algebra of matrices, in helpers also products of
        rows. Comments are in the user's words, whose products may be compiled otherwise."""
        code = "\n".join(line for line in self.text.splitlines() if not line.lstrip().startswith("#"))
        return BLAS_CALL.search(code) is not None


class Walk(Protocol):
    """The walk of a kernel, as this module says. `entry` is what a tile is called by in followed serial
    loops."""

    @property
    def entry(self) -> Any: ...
    def block(self, extents: Any, control: Any, arguments: Sequence[Any]) -> Any: ...
    def pack(self, block: Any, extents: Any, control: Any, arguments: Sequence[Any]) -> None: ...
    def put(self, block: Any, position: int, argument: Any) -> None: ...
    def __call__(
        self, block: Any, tiles: Any, round: int, wait_offsets: Any, waits: Any, lags: Any, done: Any, control: Any
    ) -> None: ...


def first_slots(source: KernelSource) -> tuple[int, ...]:
    """Where each argument of a kernel begins in the block that its entry is given (`orion.kernel.build.entries`), after
    the extents and `control`: an array has its address, lengths and strides there."""
    sizes = [1 + 2 * source.extents_ndim, 3]
    for argument in source.arguments:
        is_scalar = argument.kind in SCALARS
        sizes.append(-(-np.dtype(argument.dtype).itemsize // SLOT) if is_scalar else 1 + 2 * argument.ndim)
    return tuple(sum(sizes[:place]) for place in range(2, len(sizes)))


def tile_boxes(schedule: Schedule) -> Ints:
    """The box of each tile of a nest of ranges: an int64 array (tiles, dims, 2) of first and one past last coordinate.

    >>> from orion.schedule.schedule import Schedule
    >>> none = np.zeros(0, np.int64)
    >>> schedule = Schedule(1, (1, 2), (np.array([0, 9]), np.array([1, 4, 8])), np.zeros(2, int), none, none, (none,),
    ...                     none, none, none, False)
    >>> tile_boxes(schedule).tolist()
    [[[0, 9], [1, 4]], [[0, 9], [4, 8]]]
    """
    blocks = np.indices(schedule.grid).reshape(len(schedule.grid), -1)
    ends = [(bounds[block], bounds[block + 1]) for bounds, block in zip(schedule.bounds, blocks, strict=True)]
    boxes = np.array(ends, dtype=np.int64).reshape(len(schedule.grid), 2, schedule.tiles)
    return np.ascontiguousarray(boxes.transpose(2, 0, 1))
