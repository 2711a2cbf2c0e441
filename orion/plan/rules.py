"""The strategies and when each is legal, strongest first.

Let Δ be the set of differences δ = y − x over all dependences x → y of a loop (over all conflicting pairs, for an
unordered one), and let d, e be loop dimensions.

    independent        Δ = ∅
    1d                 Δ ⊆ {δ_d = 0}                                for some d
    2d, nd unordered   Δ ⊆ {δ_d = 0} ∪ … ∪ {δ_e = 0}                 for some set of two (2d) or more (nd) dimensions
    2d ordered         Δ ⊆ {δ_d ≥ 0} ∩ {δ_e ≥ 0}                     for some d, e: a permutable band

1d: blocks of d have nothing in common. Unordered 2d and nd: two tiles that differ in their block of every dimension
of the set have nothing in common, so the tiles of one step of a Latin square (hypercube) may run at once (Wei et
al. 2019, section 4.3, for two dimensions). Ordered 2d: a tile needs only tiles whose blocks are no later in both
dimensions (Wolf & Lam 1991), and inside a tile the written order holds.

Each rule answers with all candidates that are legal; none means that it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import TYPE_CHECKING

from orion.cost.candidate import Candidate
from orion.dependence.access import Dependence
from orion.dependence.conflicts import CapReached, capped
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Question:
    """What the rules decide on: the difference sets of the dependences, and the dimensions that can be cut. What takes
    too long to tell is noted in `maps`."""

    deltas: tuple[isl.Set, ...]
    dims: int
    cuttable: tuple[int, ...]
    ordered: bool
    maps: Maps = field(default_factory=Maps, compare=False)

    def all_within(self, union: Sequence[Sequence[tuple[int, str]]]) -> bool:
        """Whether all differences lie in a union, as `is_within` has it."""
        return all(is_within(deltas, union, self.maps) for deltas in self.deltas)


Rule = Callable[[Question], list[Candidate]]


def difference_sets(dependences: Iterable[Dependence], dims: int, maps: Maps) -> tuple[isl.Set, ...]:
    """The distinct sets of differences of the dependences, over the loop dimensions."""
    import islpy as isl

    sets = []
    for relation in dict.fromkeys(dependence.relation for dependence in dependences):
        deltas = maps.map(relation).deltas()
        sets.append(deltas.project_out(isl.dim_type.set, dims, deltas.dim(isl.dim_type.set) - dims))
    return tuple(sets)


def independent(question: Question) -> list[Candidate]:
    """Legal when Δ = ∅; the blocks of any dimension may be shared out."""
    return [] if question.deltas else [Candidate("independent", d) for d in question.cuttable]


def one_dimensional(question: Question) -> list[Candidate]:
    """Legal along d when Δ ⊆ {δ_d = 0}."""
    return [Candidate("1d", d) for d in question.cuttable if question.all_within([[(d, "=")]])]


def latin(question: Question) -> list[Candidate]:
    """Unordered: legal over a set of dimensions when every δ is zero in one of them; the smallest such sets."""
    if question.ordered:
        return []
    for size in range(2, len(question.cuttable) + 1):
        found = [
            Candidate("2d" if size == 2 else "nd", space, tuple(d for d in dims if d != space))
            for dims in combinations(question.cuttable, size)
            if question.all_within([[(d, "=")] for d in dims])
            for space in dims
        ]
        if found:
            return found
    return []


def permutable(question: Question) -> list[Candidate]:
    """Ordered: legal along d and e when Δ ⊆ {δ_d ≥ 0, δ_e ≥ 0}."""
    if not question.ordered:
        return []
    fine = [d for d in question.cuttable if question.all_within([[(d, ">=")]])]
    return [Candidate("2d", d, (e,)) for d, e in permutations(fine, 2)]


RULES: tuple[Rule, ...] = (independent, one_dimensional, latin, permutable)


def legal_candidates(question: Question) -> list[Candidate]:
    """The candidates of the strongest rule that applies; empty where the loop is serial."""
    for rule in RULES:
        candidates = rule(question)
        if candidates:
            return candidates
    return []


def is_within(deltas: isl.Set, union: Sequence[Sequence[tuple[int, str]]], maps: Maps | None = None) -> bool:
    """Whether isl proves `deltas` to lie in a union of intersections of half-spaces and hyperplanes through 0.

    `union` is a list of alternatives, each a list of conditions (dimension, "=" or ">=").

    >>> import islpy as isl
    >>> is_within(isl.Set("{ [0, 1] }"), [[(0, "=")]]), is_within(isl.Set("{ [1, -1] }"), [[(0, "="), (1, ">=")]])
    (True, False)
    """
    import islpy as isl

    everything = isl.Set.universe(deltas.get_space())
    allowed, zero = isl.Set.empty(deltas.get_space()), isl.Val.zero(deltas.get_ctx())
    for conditions in union:
        part = everything
        for d, sign in conditions:
            bound = part.lower_bound_val if sign == ">=" else part.fix_val
            part = bound(isl.dim_type.set, d, zero)
        allowed = allowed.union(part)
    try:
        with capped(deltas.get_ctx()):
            return bool(deltas.is_subset(allowed))
    except CapReached:
        if maps is not None:
            maps.give_up("how far apart iterations that meet are was not found out; they are taken to rule tiles out")
        return False
