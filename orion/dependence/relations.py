"""The dependences between the statements of a region, and what a new order must keep.

With θ the written order (Feautrier's schedule: textual positions and loop coordinates in turn) and a, b two accesses to
one array, at least one of them a write, the dependences are

    {x → y : a(x) ∩ b(y) ≠ ∅, θ(x) ≺ θ(y)}.

By memory, not by value, and per pair of accesses. An order θ' is legal where θ'(x) ≺ θ'(y) for all of them. Those at
sizes that the arrays do not allow are left out (`orion.dependence.within`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.dependence.access import Access
from orion.dependence.reads import Held, has_common_reads, meeting, prepare_reads
from orion.dependence.region import Region, Statement
from orion.dependence.within import at_sizes, sizes_within
from orion.ir.assumed import held_by
from orion.sets.affine import integer, itself
from orion.sets.coalesced import coalesced
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Pair:
    """The dependences between two accesses, from instances of statements to instances: `instances`, an isl union map.

    `accesses` are all pairs of accesses between which they are: such as the same subscript read twice. What properties
    of arrays keep apart is among them (`kept_apart` leaves it out).
    """

    accesses: tuple[tuple[Access, Access], ...]
    instances: isl.UnionMap
    key: Hashable
    """What the instances are made of: of equal ones they are equal."""

    def made_with(self, held: Held) -> Hashable:
        """The same where arrays have properties, which keep instances apart (`kept_apart`)."""
        one, other = self.accesses[0]
        is_apart = held and has_common_reads(one, other)
        return self.key, (one.by_reads, other.by_reads, *held.items()) if is_apart else ()

    @property
    def array(self) -> str:
        return self.accesses[0][0].array

    @property
    def is_flow(self) -> bool:
        """Whether the first access writes what the second one reads."""
        source, sink = self.accesses[0]
        return source.is_write and not sink.is_write


@dataclass(frozen=True, slots=True)
class Relations:
    """A region in isl: its instances, their written order, all dependences, and those of them that are flow. `maps` is
    what they were made in."""

    domain: isl.UnionSet
    written: isl.UnionMap
    pairs: tuple[Pair, ...]
    dependences: isl.UnionMap
    flow: isl.UnionMap
    maps: Maps


def prepare_maps(region: Region, maps: Maps) -> None:
    """Read the texts that `relations_of` needs: where isl reaches a limit of operations, reading looks like an error
    in the text."""
    depth = max(len(statement.loops) for statement in region.statements)
    for statement in region.statements:
        maps.set(statement.domain)
        written_order(statement, depth, maps)
        for access in statement.accesses:
            maps.map(access.relation)
            prepare_reads(access, held_by(region.nest.function.assumed), maps)


def relations_of(region: Region, maps: Maps) -> Relations:
    """The dependences of a region. Raises isl's error past the limit of operations, where one is set."""
    import islpy as isl

    context = maps.context
    domain, written = isl.UnionSet("{ }", context), isl.UnionMap("{ }", context)
    depth = max(len(statement.loops) for statement in region.statements)
    for statement in region.statements:
        domain = domain.union(isl.UnionSet.from_set(maps.set(statement.domain)))
        written = written.union(isl.UnionMap.from_map(written_order(statement, depth, maps)))
    written = written.intersect_domain(domain)
    before = _Before(depth, maps)
    accesses = [(access, statement) for statement in region.statements for access in statement.accesses]
    wanted: dict[tuple[object, ...], list[tuple[Access, Access]]] = {}
    ends: dict[tuple[str, str], tuple[Statement, Statement]] = {}
    for (a, one), (b, other) in product(accesses, accesses):
        if a.array == b.array and (a.is_write or b.is_write):
            alike = a.relation, b.relation, a.is_write, b.is_write, a.by_reads, b.by_reads
            wanted.setdefault(alike, []).append((a, b))
            ends[a.relation, b.relation] = one, other
    pairs: list[Pair] = []
    sizes: str | None = None
    for accessed in wanted.values():
        source, sink = accessed[0]
        one, other = ends[source.relation, sink.relation]
        found = before.dependences(source, sink, one, other)
        if found is None:
            continue
        sizes = _sizes(region, maps) if sizes is None else sizes
        key = "at sizes", source.relation, sink.relation, before.key(one, other), sizes
        instances = maps.once(key, partial(at_sizes, found, maps.set(sizes)))
        if instances is not None:
            pairs.append(Pair(tuple(accessed), instances, key))
    everything = united((pair.instances for pair in pairs), context)
    flow = united((pair.instances for pair in pairs if pair.is_flow), context)
    return Relations(domain, written, tuple(pairs), coalesced(everything), flow, maps)


def kept_apart(pair: Pair, instances: isl.Map, held: Held, maps: Maps) -> isl.Map:
    """Dependences of a pair without those that properties of the arrays that subscripts are read from rule out."""
    import islpy as isl

    one, other = pair.accesses[0]
    if not held or not has_common_reads(one, other):
        return instances
    met = meeting(one, other, held, maps)
    for side in (isl.dim_type.in_, isl.dim_type.out):
        met = met.set_tuple_name(side, instances.get_tuple_name(side))
    return instances.intersect(met)


def united(parts: Iterable[isl.UnionMap], context: isl.Context) -> isl.UnionMap:
    """The union of relations, by halves: isl copies both sides of each union."""
    import islpy as isl

    found = [*parts] or [isl.UnionMap("{ }", context)]
    while len(found) > 1:
        rest = found[len(found) // 2 * 2 :]
        found = [one.union(other) for one, other in zip(found[::2], found[1::2], strict=False)] + rest
    return found[0]


def _sizes(region: Region, maps: Maps) -> str:
    """The sizes that the arrays of a region allow, or all, where that leaves out no dependence, as isl text."""
    accesses = [(one, statement.space) for statement in region.statements for one in statement.references]
    written = frozenset(one.array for one, _ in accesses if one.is_write)
    touching = [one for statement in region.statements for one in statement.accesses if one.array in written]
    if all(one.relation in maps.plain for one in touching):
        return "{ : }"
    return sizes_within(accesses, written, maps) or "{ : }"


class _Before:
    """The written order of two statements, {x → y : θ(x) ≺ θ(y)}, and the dependences that it leaves."""

    def __init__(self, depth: int, maps: Maps) -> None:
        self.depth = depth
        self.maps = maps

    def dependences(self, source: Access, sink: Access, one: Statement, other: Statement) -> isl.UnionMap | None:
        """The dependences between accesses of two statements; None where there are none."""
        import islpy as isl

        order = self.key(one, other)

        def found() -> isl.UnionMap | None:
            before = self.between(order, one, other)
            if before is None:
                return None
            first, second = (self.maps.map(access.relation) for access in (source, sink))
            relation = first.apply_range(second.reverse()).intersect(before)
            return None if relation.is_empty() else isl.UnionMap.from_map(coalesced(relation))

        return self.maps.once(("dependences", source.relation, sink.relation, order), found)

    def key(self, one: Statement, other: Statement) -> tuple[int, int, int, bool]:
        """Return what decides the order of two statements, names aside: the number of loops around each, how many of
        these they share, and which statement comes first there."""
        together = next((k for k, ends in enumerate(zip(one.place, other.place, strict=False)) if len({*ends}) > 1), -1)
        return len(one.loops), len(other.loops), together, one.place[together] < other.place[together]

    def between(self, key: tuple[int, int, int, bool], one: Statement, other: Statement) -> isl.Map | None:
        """That order; None where no instance comes before another."""
        import islpy as isl

        def found() -> isl.Map | None:
            first, second = (written_order(statement, self.depth, self.maps) for statement in (one, other))
            order = first.lex_lt_map(second)
            return None if order.is_empty() else order

        order = self.maps.once(("before", key), found)
        if order is None:
            return None
        return order.set_tuple_name(isl.dim_type.in_, one.name).set_tuple_name(isl.dim_type.out, other.name)


def written_order(statement: Statement, depth: int, maps: Maps) -> isl.Map:
    """The place of a statement's instances in the written order, `2 * depth + 1` numbers.

    >>> from orion.dependence.model import Space
    >>> space = Space(("i",), (), (), (), frozenset(), ())
    >>> print(written_order(Statement("S1", (None,), (0, 2), (), space, "", ()), 2, Maps()))
    { S1[i] -> [0, i, 2, 0, 0] }
    """
    places = [integer(statement.place[0])]
    for dim, place in zip(statement.space.dims, statement.place[1:], strict=True):
        places += [itself(dim), integer(place)]
    places += [integer(0)] * (2 * depth + 1 - len(places))
    return maps.places(statement.name, statement.space.dims, tuple(places))


def first_broken(dependences: isl.UnionMap, order: isl.UnionMap) -> isl.UnionMap:
    """The dependences x → y that an order does not keep: those where not order(x) ≺ order(y). Empty if it is legal."""
    return dependences.subtract(order.lex_lt_union_map(order))
