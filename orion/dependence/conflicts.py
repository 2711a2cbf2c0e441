"""Pairs of accesses by which different iterations conflict, as exact relations.

For accesses a and b with relations R_a, R_b (iteration → element), at least one of them a write, iterations x ≠ y
conflict where R_a(x) ∩ R_b(y) ≠ ∅, that is

    C = (R_b⁻¹ ∘ R_a) \\ identity.

In an ordered loop the one that comes first is the source: C ∩ {x ≺ y}, ≺ being the lexicographic order of
iterations (Feautrier 1991, *Dataflow analysis of array and scalar references*; here by memory, not by value:
overwritten writes count too). In an unordered loop C itself must not happen at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from orion.dependence.access import Access, Dependence
from orion.dependence.reads import NOTHING_HELD, Held, has_common_reads, meeting, prepare_reads
from orion.reasons import Reason
from orion.sets.coalesced import coalesced
from orion.sets.maps import Maps
from orion.sets.names import number_of

if TYPE_CHECKING:
    import islpy as isl

KINDS = {(True, False): "flow", (False, True): "anti", (True, True): "output"}
MAX_OPERATIONS = 2_000_000
"""isl operations that one pair of accesses may cost. Past it the pair is taken to conflict in every way."""


class CapReached(Exception):  # noqa: N818 - a signal inside this stage, never shown to users
    """An isl computation went past its limit of operations."""


@contextmanager
def capped(context: isl.Context, limit: int | None = None) -> Iterator[None]:
    """Limit what isl may spend inside the block; raises `CapReached` past it. Whoever asked goes on with the careful
    answer, and notes that (`Maps.give_up`). Parse isl text outside: a parse that
    hits the limit looks like a syntax error. A block around it counts anew after it."""
    import islpy as isl

    around = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS if limit is None else limit)
    try:
        yield
    except (isl.Error, TypeError) as error:  # past the limit a number has no text, of which islpy says no more
        if "operations" in str(error) or (isinstance(error, TypeError) and _is_past(context)):
            raise CapReached from error
        raise
    finally:
        context.set_max_operations(around)
        context.reset_operations()


def _is_past(context: isl.Context) -> bool:
    """Whether isl has spent what it may: it makes no text then, not even of a number."""
    import islpy as isl

    try:
        return isl.Val.int_from_si(context, 0).to_str() is None
    except isl.Error:
        return True


Found = tuple[str, tuple[int | None, ...], tuple[str, ...], bool] | None


class _Relations:
    """Conflict relations of accesses: many have the same, and isl is asked once."""

    def __init__(self, domain: str, dims: int, held: Held, maps: Maps) -> None:
        self.maps = maps
        self.held = held
        self.domain = domain
        self.dims = dims
        self.of_loop = domain, dims, tuple(held.items())

    def between(self, first: Access, second: Access, ordered: bool) -> Found:
        """Relation text, distance, direction and exactness of the conflicts of two accesses, or None where none."""
        key = "conflict", first.relation, second.relation, first.by_reads, second.by_reads, ordered, self.of_loop
        return self.maps.once(key, lambda: self._compute(first, second, ordered))

    def _compute(self, first: Access, second: Access, ordered: bool) -> Found:
        a, b = self.maps.map(first.relation), self.maps.map(second.relation)
        by_reads = bool(self.held) and has_common_reads(first, second)
        for access in (first, second) if by_reads else ():
            prepare_reads(access, self.held, self.maps)
        try:
            with capped(self.maps.context):
                relation = conflict_relation(a, b, ordered)
                if by_reads:
                    relation = relation.intersect(meeting(first, second, self.held, self.maps))
                if relation.is_empty():
                    return None
                return (*described(relation, self.dims, self.maps), True)
        except CapReached:
            text = self.maps.text(coalesced(everything(self.maps.set(self.domain), ordered)))
            return text, (None,) * self.dims, ("*",) * self.dims, False


def conflict_relation(a: isl.Map, b: isl.Map, ordered: bool) -> isl.Map:
    """{x → y : a(x) ∩ b(y) ≠ ∅, x ≠ y}, and x ≺ y for an ordered loop."""
    return _distinct(a.apply_range(b.reverse()), ordered)


def everything(domain: isl.Set, ordered: bool) -> isl.Map:
    """Every pair of different iterations; in an ordered loop, the earlier one first."""
    import islpy as isl

    return _distinct(isl.Map.from_domain_and_range(domain, domain), ordered)


def _distinct(pairs: isl.Map, ordered: bool) -> isl.Map:
    """The pairs whose second iteration comes after the first; of an unordered loop, whose two iterations differ."""
    import islpy as isl

    space = pairs.get_space()
    return pairs.intersect(isl.Map.lex_lt(space.domain())) if ordered else pairs.subtract(isl.Map.identity(space))


def described(relation: isl.Map, dims: int, maps: Maps) -> tuple[str, tuple[int | None, ...], tuple[str, ...]]:
    """The text of a relation, its distance and its direction, as `Dependence` has them."""
    relation = coalesced(relation)
    text = maps.text(relation)
    return (text, *maps.once(("distance", text, dims), lambda: distance_vector(relation, dims)))


def distance_vector(relation: isl.Map, dims: int) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """The first `dims` components of the distance and of the direction of a relation, as `Dependence` has them."""
    import islpy as isl

    deltas = relation.project_out(isl.dim_type.param, 0, relation.dim(isl.dim_type.param)).deltas()
    vectors = [_component(deltas, dim) for dim in range(dims)]
    return tuple(value for value, _ in vectors), tuple(sign for _, sign in vectors)


def _component(deltas: isl.Set, dim: int) -> tuple[int | None, str]:
    """The value of one component of a difference without parameters where it is constant, and its sign."""
    import islpy as isl

    count = deltas.dim(isl.dim_type.set)
    line = deltas.project_out(isl.dim_type.set, dim + 1, count - dim - 1).project_out(isl.dim_type.set, 0, dim)
    low, high = line.dim_min_val(0), line.dim_max_val(0)
    if low.is_int() and low.eq(high):
        value = number_of(low)
        return value, "<" if value > 0 else ">" if value < 0 else "="
    return None, _sign(low, high)


def _sign(low: isl.Val, high: isl.Val) -> str:
    if low.is_pos():
        return "<"
    if high.is_neg():
        return ">"
    if low.is_zero():
        return "<="
    return ">=" if high.is_zero() else "*"


def find_dependences(
    accesses: Iterable[Access], domain: str, dims: int, ordered: bool, maps: Maps, held: Held = NOTHING_HELD
) -> tuple[Dependence, ...]:
    """The dependences between the accesses, in program order of their sources, one per pair and direction, where arrays
    have the properties `held`."""
    relations = _Relations(domain, dims, held, maps)
    found: list[Dependence] = []
    for a, b in combinations_with_replacement(tuple(accesses), 2):
        if a.array == b.array and (a.is_write or b.is_write):
            found += _pair(a, b, relations, ordered)
            if ordered and a is not b:
                found += _pair(b, a, relations, ordered)
    return tuple(found)


def _pair(source: Access, sink: Access, relations: _Relations, ordered: bool) -> Iterator[Dependence]:
    result = relations.between(source, sink, ordered)
    if result is not None:
        relation, distance, direction, exact = result
        kind = KINDS[source.is_write, sink.is_write] if ordered else "conflict"
        cap = None if exact else _cap_reason(source, sink)
        exact = exact and source.exact and sink.exact
        yield Dependence(source.array, kind, source, sink, relation, distance, direction, exact, cap)


def _cap_reason(source: Access, sink: Access) -> Reason:
    message = f"comparing `{source.text}` with `{sink.text}` would take too long, so they are taken to meet everywhere"
    return Reason.of("ORN109", message, source.span, sink.span)
