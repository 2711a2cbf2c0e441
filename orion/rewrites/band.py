"""A band of loops of a new order, with what rewrites have found for its boxes."""

from __future__ import annotations

from orion.analysis.one_loop import TimeTiles
from orion.dataclass import dataclass
from orion.dependence.access import Dependence
from orion.source import Span


@dataclass(frozen=True, slots=True)
class Layout:
    """How a box holds an array.

    `steps` are M_p and M_q, `constants` c₀, an item per axis. `offsets` has for each access, by its place in the
    source, what it adds to (e, d), `writes` those of accesses that write; `slopes` for each outer coordinate what a
    trip of it adds. (e, d) goes from `first` on, beside the corner of the box; `extents` are how far. `inside` is the
    isl set, as text, of the parameters for which all accesses are to elements of the array.
    """

    array: str
    steps: tuple[tuple[int, ...], tuple[int, ...]]
    constants: tuple[tuple[tuple[str, int], ...], ...]
    offsets: tuple[tuple[Span, tuple[int, int]], ...]
    writes: tuple[tuple[int, int], ...]
    slopes: tuple[tuple[int, int], ...]
    first: tuple[int, int]
    extents: tuple[int, int]
    stride: int
    inside: str
    name: str = ""

    @property
    def length(self) -> int:
        return self.extents[1] * self.stride


@dataclass(frozen=True, slots=True)
class Skew:
    """A band that can be run in skewed buffers: those, the inequalities of its iterations over its coordinates, and the
    coordinates of its statement in terms of them. A box has `lanes` trips of p and `steps` of p + q."""

    layouts: tuple[Layout, ...]
    domain: tuple[tuple[tuple[str, int], ...], ...]
    variables: tuple[tuple[tuple[str, int], ...], ...]
    lanes: int
    steps: int


@dataclass(frozen=True, slots=True)
class Band:
    """A band whose boxes are shared out: the names of its coordinates, those of the limits of a box (first
    coordinate, one past the last) in each, its domain as the text of an isl set, and its dependences (`relation`,
    `distance` and `direction` are over the coordinates). `places` is the isl union map, as text, from the instances
    of statements to the coordinates of the `around` loops around the band and of the band. `formulas` has for each
    coordinate what it is in terms of the loop variables of the source, for the statement with the most loops.
    `in_lockstep`: see `orion.rewrites.lockstep.apply`. `unroll_and_jam` are the loops of which several trips are made
    together, as the variables of the loop and of the innermost one: see `orion.rewrites.jam.apply`. `loop_order` are
    the coordinates of a band in lockstep from the outermost loop to the innermost. `skew`: see
    `orion.rewrites.skewed_buffers.find`. `time_tiles`: see `orion.rewrites.time_tiles.find`; inside of a box the loops
    are as written."""

    around: int
    places: str
    dims: tuple[str, ...]
    limits: tuple[tuple[str, str], ...]
    domain: str
    dependences: tuple[Dependence, ...]
    formulas: tuple[str, ...] = ()
    in_lockstep: bool = False
    unroll_and_jam: tuple[tuple[str, str], ...] = ()
    loop_order: tuple[int, ...] = ()
    cache_tiles: tuple[tuple[int, int], ...] = ()
    skew: Skew | None = None
    time_tiles: TimeTiles | None = None

    @property
    def rewrites(self) -> tuple[str, ...]:
        """The names of the rewrites of an order that it has."""
        own = (
            ("tile", bool(self.cache_tiles)),
            ("lockstep", self.in_lockstep),
            ("jam", bool(self.unroll_and_jam) and not self.in_lockstep),
            ("time_tiles", self.time_tiles is not None),
        )
        return tuple(name for name, is_there in own if is_there)
