"""What makes a strategy: when it is legal, in which order its tiles run, and what is said of it.

Let Δ be the set of differences δ = y − x over all dependences x → y of a loop (over all conflicting pairs, for an
unordered one), and let d, e be loop dimensions. A strategy says which Δ it takes; `orion.analysis.rules` has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.cost.candidate import Candidate, Strategy
from orion.dataclass import dataclass, field
from orion.dependence.access import Dependence
from orion.dependence.conflicts import CapReached, capped
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl

Ints = NDArray[np.int64]
Wait = tuple[int, int, int]
"""A tile, one that it waits for, and the lag: 1 where that is the one of the round before, else 0."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the rules decide on: the difference sets of the dependences, and the dimensions that can be cut. `relaxed`:
    there are buffers, whose updates are none of them. What takes too long to tell is noted in `maps`."""

    deltas: tuple[isl.Set, ...]
    dims: int
    cuttable: tuple[int, ...]
    ordered: bool
    relaxed: bool
    maps: Maps = field(default_factory=Maps, compare=False)

    def all_within(self, union: Sequence[Sequence[tuple[int, str]]]) -> bool:
        """Whether all differences lie in a union, as `is_within` has it."""
        return all(is_within(deltas, union, self.maps) for deltas in self.deltas)


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a loop whose dimensions are cut into `grid` blocks each: `blocks` has those of each tile, int64
    (dimensions, tiles). Blocks of the dimension `space` are shared out, tiles follow one another along `time`."""

    grid: tuple[int, ...]
    blocks: Ints
    space: int
    time: tuple[int, ...]


def at_once(tiles: Tiles) -> Ints:
    """All tiles may run in the first step."""
    return np.zeros(tiles.blocks.shape[1], np.int64)


def no_waits(tiles: Tiles, ranked: Ints) -> Iterator[Wait]:
    """No tile waits for another one."""
    return iter(())


def says_nothing(pairs: Sequence[Dependence], dims: Sequence[str]) -> Iterator[tuple[str, Dependence]]:
    """Nothing is said against it where a weaker one is taken."""
    return iter(())


@dataclass(frozen=True, slots=True)
class Tiling:
    """A row of the table.

    `names` are those that it has in plans, strongest first. `ordered`: for loops in their order only (True), for loops
    in any order only (False), or for both. `legal` has all candidates that are legal; none means that it does not
    apply, and must mean so wherever some δ of Δ may be other than the strategy takes. A candidate has `time` where, and
    only where, tiles wait for each other. `steps` is the time step of each tile, and `waits` says what each waits for,
    of all tiles ranked by step and number: of two tiles that hold conflicting iterations, one must wait for the other,
    perhaps by way of others, in the order of the loop where that is ordered; and for the other one of the round before.
    `words` says in one sentence what it does, given the names of the space dimension and of the time dimensions.
    `against` names the candidates that it does not have because of some pair of accesses, each with that pair, for
    plans that take a weaker one.
    """

    names: tuple[Strategy, ...]
    legal: Callable[[Question], list[Candidate]]
    words: Callable[[str, str], str]
    ordered: bool | None = None
    steps: Callable[[Tiles], Ints] = at_once
    waits: Callable[[Tiles, Ints], Iterator[Wait]] = no_waits
    against: Callable[[Sequence[Dependence], Sequence[str]], Iterator[tuple[str, Dependence]]] = says_nothing


def shared_out(space: str) -> str:
    """What every strategy does with blocks of its space dimension."""
    return f"blocks of {space} are shared out among the workers"


def difference_sets(dependences: Iterable[Dependence], dims: int, maps: Maps) -> tuple[isl.Set, ...]:
    """The distinct sets of differences of the dependences, over the loop dimensions."""
    import islpy as isl

    sets = []
    for relation in dict.fromkeys(dependence.relation for dependence in dependences):
        deltas = maps.map(relation).deltas()
        sets.append(deltas.project_out(isl.dim_type.set, dims, deltas.dim(isl.dim_type.set) - dims))
    return tuple(sets)


def is_within(deltas: isl.Set, union: Sequence[Sequence[tuple[int, str]]], maps: Maps | None = None) -> bool:
    """Whether isl proves `deltas` to lie in a union of intersections of half-spaces and hyperplanes through 0.

    `union` is a list of alternatives, each a list of conditions (dimension, "=", ">=" or "<=").

    >>> import islpy as isl
    >>> is_within(isl.Set("{ [0, 1] }"), [[(0, "=")]]), is_within(isl.Set("{ [1, -1] }"), [[(0, "="), (1, ">=")]])
    (True, False)
    >>> is_within(isl.Set("{ [1, -1] }"), [[(0, ">="), (1, "<=")]])
    True
    """
    import islpy as isl

    everything = isl.Set.universe(deltas.get_space())
    allowed, zero = isl.Set.empty(deltas.get_space()), isl.Val.zero(deltas.get_ctx())
    for conditions in union:
        part = everything
        for d, sign in conditions:
            bounds = {"=": part.fix_val, ">=": part.lower_bound_val, "<=": part.upper_bound_val}
            part = bounds[sign](isl.dim_type.set, d, zero)
        allowed = allowed.union(part)
    try:
        with capped(deltas.get_ctx()):
            return bool(deltas.is_subset(allowed))
    except CapReached:
        if maps is not None:
            maps.give_up("how far apart iterations that meet are was not found out; they are taken to rule tiles out")
        return False
