"""How many of their outer loops neighbouring planned loops may share, so that those stay parallel.

Let two loops stand one after the other, with the same ranges in their d outermost dimensions. Run as one, iteration x
of the first is followed by iteration x of the second, and comes before all iterations of both that are later. With R_a
the relation of an access a of the first loop (iteration → element) and R_b of one of the second, at least one of them a
write, the pairs of iterations that touch the same element are

    C = R_b⁻¹ ∘ R_a,    and the fused loop is legal where  C ⊆ {x → y : (x_0, …, x_{d-1}) ≼ (y_0, …, y_{d-1})},

and where, with A the names that either body assigns, no variable of a shared loop is in A: a body that follows in the
same trip would read what the one before it has assigned. No dependence then goes backwards ("fusion-preventing": Allen
and Kennedy; Wolfe, *High Performance Compilers for Parallel Computing*, section 9.8). It carries nothing that the two
loops did not where even

    C ⊆ {x → y : x_0 = y_0, …, x_{d-1} = y_{d-1}}

(Kennedy and McKinley 1993, *Maximizing loop parallelism and improving data locality via loop fusion and distribution*,
section 3: no "parallelism-inhibiting" dependence). Only then are loops fused here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.dependence.access import Access
from orion.dependence.conflicts import CapReached, capped
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl

MAX_OPERATIONS = 200_000
"""isl operations that one pair of accesses may cost. Past it the pair is taken to keep its loops apart."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The number of outer loops that two neighbours may share, and the accesses that keep them from sharing more."""

    depth: int
    against: tuple[Access, Access] | None = None


def shared_depth(first: Iterable[Access], second: Iterable[Access], most: int, maps: Maps) -> Shared:
    """The greatest d ≤ `most` with C ⊆ {x_0 = y_0, …, x_{d-1} = y_{d-1}} for all pairs of accesses of two loops."""
    found, known = Shared(most), set[tuple[str, str]]()
    second = tuple(second)
    for a in first:
        for b in second:
            if a.array != b.array or not (a.is_write or b.is_write) or (a.relation, b.relation) in known:
                continue
            known.add((a.relation, b.relation))
            depth = _depth_of(a, b, found.depth, maps)
            if depth < found.depth:
                found = Shared(depth, (a, b))
            if not found.depth:
                return found
    return found


def _depth_of(a: Access, b: Access, most: int, maps: Maps) -> int:
    pairs_a, pairs_b = maps.map(a.relation), maps.map(b.relation)
    try:
        with capped(maps.context, MAX_OPERATIONS):
            pairs = pairs_a.apply_range(pairs_b.reverse())
            return next((depth for depth in range(most) if not _agree(pairs, depth)), most)
    except CapReached:
        return 0


def _agree(pairs: isl.Map, dim: int) -> bool:
    """Whether both ends of all pairs have the same coordinate in a dimension."""
    import islpy as isl

    same = isl.Map.universe(pairs.get_space()).equate(isl.dim_type.in_, dim, isl.dim_type.out, dim)
    return bool(pairs.is_subset(same))
