"""Sets with parameters for the proof of a text: what holds at a place in it; parameters taken away and renamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass, field
from orion.sets.coalesced import coalesced as in_fewer_pieces
from orion.verify.text_values import UnprovedError

if TYPE_CHECKING:
    import islpy as isl

Found = dict[str, "isl.Set"]
"""Statement → its instances that a piece of text runs. Other keys are what `orion.verify.text_buffers` notes."""

MAX_PIECES = 32
"""The most pieces of a set."""

MAX_COALESCING = 20_000_000
"""The most that putting pieces of a set together may cost, as `coalesced` counts it: two seconds."""


@dataclass
class Path:
    """What holds at some place in the text: the conditions (`exact`), a convex set around each of them (`hulls`), and
    one around all up to it (`around`): those cost less."""

    exact: list[isl.Set] = field(default_factory=list)
    hulls: list[isl.Set] = field(default_factory=list)
    around: list[isl.Set] = field(default_factory=list)

    def enter(self, condition: isl.Set) -> None:
        import islpy as isl

        hull = isl.Set.from_basic_set(condition.simple_hull())
        self.exact.append(condition)
        self.hulls.append(hull)
        self.around.append(self.around[-1].intersect(hull) if self.around else hull)

    def leave(self, depth: int) -> None:
        del self.exact[depth:], self.hulls[depth:], self.around[depth:]

    def copy(self) -> Path:
        return Path([*self.exact], [*self.hulls], [*self.around])

    def nearby(self) -> isl.Set:
        """A convex set around all conditions."""
        return self.around[-1]

    def about(self, values: isl.Set) -> isl.Set:
        """A convex set around the conditions that are on parameters of a set alone."""
        names = parameters(values)
        found = self.around[0]
        for hull in self.hulls:
            if parameters(hull) <= names:
                found = found.intersect(hull)
        return found


def part_within(relation: isl.Map | isl.Set, conditions: Sequence[isl.Set]) -> isl.Map | isl.Set | None:
    """A part of a relation that is not empty and in one piece of each condition."""
    import islpy as isl

    is_map = isinstance(relation, isl.Map)
    split = [[isl.Set.from_basic_set(piece) for piece in one.get_basic_sets()] for one in conditions]
    for piece in relation.get_basic_maps() if is_map else relation.get_basic_sets():
        alone = isl.Map.from_basic_map(piece) if is_map else isl.Set.from_basic_set(piece)
        if not alone.is_empty() and (found := _piece_within(alone, split)) is not None:
            return found
    return None


def _piece_within(piece: isl.Map | isl.Set, conditions: Sequence[Sequence[isl.Set]]) -> isl.Map | isl.Set | None:
    """The same of one piece. The condition that leaves the fewest possibilities is gone into first (Haralick and
    Elliott 1980, *Increasing tree search efficiency for constraint satisfaction problems*)."""
    if not conditions:
        return piece
    left = []
    for pieces in conditions:
        left.append([part for one in pieces if not (part := piece.intersect_params(one)).is_empty()])
        if not left[-1]:
            return None
    fewest = min(range(len(left)), key=lambda number: len(left[number]))
    others = [pieces for number, pieces in enumerate(conditions) if number != fewest]
    found = (_piece_within(part, others) for part in left[fewest])
    return next((part for part in found if part is not None), None)


def united(one: Found, other: Found) -> Found:
    return one | {key: coalesced(one[key].union(new)) if key in one else new for key, new in other.items()}


def coalesced(values: isl.Set) -> isl.Set:
    """The set in fewer pieces. UnprovedError where it has very many or they are intricate: isl's limit of operations
    does not count here. Each constraint of a piece is compared with each other piece, a linear program of as many rows
    as that one has constraints and as many columns as it has variables (Verdoolaege 2015, *Integer set coalescing*)."""
    pieces = values.get_basic_sets() if values.n_basic_set() > 1 else []
    if len(pieces) > MAX_PIECES:
        raise UnprovedError("a set that falls into too many pieces")
    constraints = sum(piece.n_constraint() for piece in pieces)
    if constraints**2 * max((piece.total_dim() for piece in pieces), default=0) > MAX_COALESCING:
        raise UnprovedError("a set whose pieces have too many conditions")
    return in_fewer_pieces(values)


def parameters(values: isl.Set) -> frozenset[str]:
    import islpy as isl

    return frozenset(values.get_dim_name(isl.dim_type.param, k) for k in range(values.dim(isl.dim_type.param)))


def has_parameter(values: isl.Set, name: str) -> bool:
    import islpy as isl

    return bool(values.find_dim_by_name(isl.dim_type.param, name) >= 0)


def without(values: isl.Set, name: str) -> isl.Set:
    """The set for any value of a parameter."""
    import islpy as isl

    position = values.find_dim_by_name(isl.dim_type.param, name)
    if position < 0:
        return values
    return coalesced(values.project_out(isl.dim_type.param, position, 1).remove_redundancies())


def renamed(values: isl.Set, name: str, new: str) -> isl.Set:
    import islpy as isl

    position = values.find_dim_by_name(isl.dim_type.param, name)
    return values if position < 0 else values.set_dim_name(isl.dim_type.param, position, new)
