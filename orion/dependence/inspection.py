"""What an inspector is asked of a loop, and what it has found: loops whose dependences hang on the contents of arrays
of subscripts are run in the order that these allow (Saltz, Mirchandaney, Crowley: *Run-time parallelization and
scheduling of loops*, IEEE Trans. Computers 40(5), 1991).

An inspector is a function made of the loop (`orion.dependence.inspector`), which runs once for the arrays of
subscripts as they are and lists the elements that each iteration touches. What is found, `Inspection`, says in which
tiles the iterations may run, and is kept until these arrays change.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, fields
from orion.ir.function import Function

Ints = NDArray[np.int64]

ENDS, PLACES = "orion_ends", "orion_places"
"""The arrays that an inspector writes: for each iteration where the list of its accesses ends, and the list."""

FIRST, END = "orion_first", "orion_end"
"""The iterations that an inspector lists, as half-open range of their numbers from 0: several may list parts."""

OUTSIDE = -1
"""An access in the list that leaves its array: the loop then runs as it is written, and says so."""


SWITCH = "ORION_INSPECTIONS"
"""The environment variable with the folder in which inspections are kept for other processes."""


def extent_argument(array: str, axis: int) -> str:
    """What an inspector calls the length of an array along an axis.

    >>> extent_argument("x", 0)
    'orion_extent_0_x'
    """
    return f"orion_extent_{axis}_{array}"


class Order(StrEnum):
    """In which tiles the iterations of an inspected loop run."""

    COMPONENTS = "parts that touch nothing in common"
    PIECES = "pieces of the loop, each when those that it needs are done"
    LEVELS = "levels of iterations that need none of each other"
    COLOURS = "colours of iterations that have nothing in common"
    BLOCKS = "iterations that touch the same blocks of elements"


@dataclass(frozen=True, slots=True)
class Inspectable:
    """A loop of which the elements that its iterations touch can be listed before it runs.

    `function` lists them: of iterations of `for` number `loop`, in their order, every access to one of `arrays`, as
    twice the number of the element and 1 more where it is written. Elements of several arrays are numbered one array
    after the other, and what `keyed` says of an array are the subscripts by which elements are told apart: elements
    that only differ in others count as one. `reads` are the arrays whose contents decide, and `integers` the arguments.
    `in_pieces`: tiles must be parts of the loop as it is written, since it gives scalars values that hang on the order
    of its iterations.
    """

    loop: int
    arrays: tuple[str, ...]
    keyed: tuple[tuple[int, ...], ...]
    function: Function
    reads: tuple[str, ...]
    integers: tuple[str, ...]
    in_pieces: bool

    def __repr__(self) -> str:
        return f"<Inspectable: for number {self.loop}, {', '.join(self.arrays)} by {', '.join(self.reads)}>"


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """In which tiles the iterations of a loop may run, for arrays of subscripts as they are.

    Tile t has the iterations with the coordinates `order[offsets[t] : offsets[t + 1]]`, in this order, and runs when
    all tiles `needs[need_offsets[t] : need_offsets[t + 1]]` are done, each of which has a smaller number. `owner` and
    `turn` are the worker of a tile and its turn among those of that worker.

    `depth` is the number of iterations of the longest chain, of which each needs the one before it; `serial_ns` and
    `tiles_ns` are the predicted times of the loop as it is written and in these tiles, with what it takes to find out
    in each call that nothing has changed, shared out among its `rounds`: how often a call runs the loop. `accesses` are
    what the inspector has listed (`ends`, `places`), for the checker."""

    kind: Order
    workers: int
    order: Ints
    offsets: Ints
    need_offsets: Ints
    needs: Ints
    owner: Ints
    turn: Ints
    depth: int
    serial_ns: float
    tiles_ns: float
    rounds: float
    inspection_ns: float
    accesses: tuple[Ints, Ints]

    def __repr__(self) -> str:
        return f"<Inspection: {self.order.size} iterations in {self.tiles} tiles, {self.kind}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """As other processes get it, who run it: without the accesses."""
        none = np.zeros(0, np.int64)
        return Inspection, (*(getattr(self, one.name) for one in fields(self)[:-1]), (none, none))

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return int(self.owner.size)

    @property
    def is_listed(self) -> bool:
        """Whether iterations stand in tiles in another order than that of the loop: kernels then need the list."""
        return self.kind is not Order.PIECES

    @property
    def bounds(self) -> Ints:
        """Where the tiles begin and end: in the list, or, where that is as the loop is written, in coordinates."""
        return self.offsets if self.is_listed or not self.order.size else self.offsets + self.order[0]

    @property
    def pays(self) -> bool:
        """Whether the tiles are predicted to take less time than the loop as it is written."""
        return self.tiles_ns < GAIN * self.serial_ns


GAIN = 0.9
"""Tiles are taken where they are predicted to take at most so much of the time of the loop as it is written."""


InspectedLoops = tuple[tuple[Inspectable, Inspection], ...]
"""Loops with what was found of them."""

NOT_INSPECTED: InspectedLoops = ()
