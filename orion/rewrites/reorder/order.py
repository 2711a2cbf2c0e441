"""A new order for the statements of a region: isl's schedule, with the loops inside a tile in the best order.

isl's scheduler finds bands of loops that may be interchanged (Bondhugula et al. 2008; Verdoolaege and Janssens 2017). A
band with a loop that carries no dependence, or with two loops, is *planned*: boxes of its coordinates are what workers
share out. Inside a box its loops are tiled for the cache where that pays, and the innermost one goes through memory
element by element. A band of one loop that carries dependences stays a serial loop around what is inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from orion.cost.strides import JUMP, innermost_cost, innermost_first, jam_gains, tuple_names
from orion.dataclass import dataclass, field, replace
from orion.dependence.conflicts import capped
from orion.dependence.region import Region
from orion.dependence.relations import Relations
from orion.ir.types import Types
from orion.rewrites.band import Band
from orion.rewrites.lockstep.apply import can_lockstep
from orion.rewrites.lockstep.chains import LONG_CHAIN, chain_cycles
from orion.rewrites.reorder.bands import describe_band
from orion.rewrites.tile.sizes import Memory, tile_sizes
from orion.sets.coalesced import coalesced
from orion.sets.names import isl_value, number_of

if TYPE_CHECKING:
    import islpy as isl

PIECES = (64, 32, 16, 12, 4)
"""The most pieces of a dependence relation that the scheduler is given as they are, by the number of loops."""

MAX_WEIGHT = 400.0
"""The most that the dependences which the scheduler is given may weigh (`weight`): up to a tenth of a second."""

MAX_NEAR = 5000
"""The most that a piece of what the scheduler keeps near may weigh (`quickly_near`): those of PolyBench weigh less than
300."""

MAX_OPERATIONS = 100_000
"""isl operations that one search for an order may cost; those of PolyBench take fewer than 40,000. An operation is a
step of the simplex method, and takes from 0.1 to 100 µs, as tableaus grow."""

MAX_COEFFICIENT = 4
"""The largest factor of a loop of the source in a coordinate of a new order. Without a limit, isl took minutes to find
an order for some nests of four statements; and a coordinate such as 6135 i + 3060 j has few trips with anything in
them."""

NUMBER = re.compile(r"(?<!\w)\d+")
"""A number in a text of isl's."""

PLANNED = "planned"
"""The mark on bands whose boxes are shared out."""


@dataclass(frozen=True, slots=True)
class Order:
    """A schedule tree with marks.

    `bands` are the planned bands, by their number in the marks. `trips` is what a trip of the innermost loops costs in
    memory, as written and in this order, over the statements with the most loops. `variables` are the names of new
    loops, by depth. `shared` is the number of statements with loops in planned bands, `free` is how many of those with
    the most loops are in bands where a loop carries nothing. `memory` is what tile sizes depend on.
    """

    tree: isl.Schedule
    bands: tuple[Band, ...]
    trips: tuple[int, int]
    variables: tuple[str, ...]
    shared: int
    free: int
    memory: Memory


@dataclass(frozen=True, slots=True)
class Given:
    """What isl's scheduler is given: what a new order must keep, and the pairs that it is better near each other."""

    dependences: isl.UnionMap
    near: isl.UnionMap


def new_order(
    region: Region, relations: Relations, given: Given, variables: Sequence[str], memory: Memory, types: Types
) -> Order:
    """The best of the orders that isl's scheduler finds for a region, marked; `variables` name its loops by depth.

    Tried are: statements together where that lets data be used again, and, where that leaves statements out of planned
    bands or innermost loops jumping through memory, a loop of its own for each strongly connected component of the
    dependences.
    """
    together = _marked(region, relations, given, variables, memory, types, apart=False)
    if len(region.statements) == 1:
        return together
    if together.shared == len(region.statements) and together.trips[1] < JUMP:
        return together
    apart = _marked(region, relations, given, variables, memory, types, apart=True)
    return max(together, apart, key=lambda order: (order.shared, -order.trips[1], order.free))


def _marked(
    region: Region,
    relations: Relations,
    given: Given,
    variables: Sequence[str],
    memory: Memory,
    types: Types,
    apart: bool,
) -> Order:
    import islpy as isl

    constraints = isl.ScheduleConstraints.on_domain(relations.domain).set_proximity(given.near)
    constraints = constraints.set_validity(given.dependences).set_coincidence(given.dependences)
    context = relations.domain.get_ctx()
    context.set_schedule_serialize_sccs(int(apart))
    context.set_schedule_max_coefficient(MAX_COEFFICIENT)
    with capped(context, MAX_OPERATIONS):
        schedule = constraints.compute_schedule()
    if not has_small_coefficients(schedule):
        return Order(schedule, (), (0, 0), tuple(variables), 0, 0, memory)
    costs = {statement.name: innermost_cost(statement) for statement in region.statements}
    marker = _Marker(region, relations, tuple(variables), memory, types)
    root = marker.visit(schedule.get_root().child(0))
    most = max(len(statement.loops) for statement in region.statements)
    deepest = [statement.name for statement in region.statements if len(statement.loops) == most]
    trips = sum(costs[name] for name in deepest), sum((costs | marker.costs)[name] for name in deepest)
    return Order(root.get_schedule(), tuple(marker.bands), trips, tuple(variables), marker.shared, marker.free, memory)


def has_small_coefficients(schedule: isl.Schedule) -> bool:
    """Whether no coordinate has a factor above `MAX_COEFFICIENT`: the scheduler keeps to that where it looks for bands
    of several loops, not where it looks for a loop that carries as many dependences as possible."""
    import islpy as isl

    parts: list[isl.PwAff] = []

    def look(node: isl.ScheduleNode) -> bool:
        if node.get_type() == isl.schedule_node_type.band:
            coordinates = node.band_get_partial_schedule()
            for position in range(coordinates.dim(isl.dim_type.out)):
                coordinates.get_at(position).foreach_pw_aff(parts.append)
        return True

    schedule.get_root().every_descendant(look)
    affine: list[isl.Aff] = []
    for part in parts:
        part.foreach_piece(lambda _, value: affine.append(value))
    return all(
        abs(number_of(value.get_coefficient_val(isl.dim_type.in_, position))) <= MAX_COEFFICIENT
        for value in affine
        for position in range(value.dim(isl.dim_type.in_))
    )


def simplified(dependences: isl.UnionMap, domain: isl.UnionSet) -> isl.UnionMap:
    """The dependences as the scheduler is given them. They may be more, so that it finds no order that is not legal.

    Conditions that hold for every so many iterations only, such as `x mod 3 = 0`, make it very slow: they are left out,
    and where it would be slow all the same, so is what follows from the domain.
    """
    return _weighed(dependences, domain)[0]


def _weighed(dependences: isl.UnionMap, domain: isl.UnionSet) -> tuple[isl.UnionMap, float]:
    """The dependences as the scheduler is given them, and their weight."""
    found = coalesced(dependences.remove_divs())
    heavy = weight(found)
    if heavy <= MAX_WEIGHT:
        return found, heavy
    found = coalesced(_within(found, domain))
    return found, weight(found)


def _within(dependences: isl.UnionMap, domain: isl.UnionSet) -> isl.UnionMap:
    """The dependences without what follows from the domain."""
    return dependences.gist_domain(domain).gist_range(domain)


def _stays_too_heavy(dependences: isl.UnionMap, domain: isl.UnionSet) -> bool:
    """Whether dependences are too heavy for the scheduler without what follows from the domain, too: found relation by
    relation, as that takes long."""
    import islpy as isl

    found = coalesced(dependences.remove_divs())
    if weight(found) <= MAX_WEIGHT:
        return False
    total = 0.0
    for relation in _maps(found):
        total += weight(coalesced(_within(isl.UnionMap.from_map(relation), domain)))
        if total > MAX_WEIGHT:
            return True
    return False


def weight(dependences: isl.UnionMap) -> float:
    """How long the scheduler takes for dependences, roughly: Σ 2^(n − d) · max(1, d/8)⁶ · max(1, b/8)³ over their
    pieces, with n inequalities in d free dimensions, and b bits in the largest coefficient.

    It goes over to the dual of each piece (Feautrier 1992, Farkas' lemma), where all but d of the n multipliers are
    eliminated, which may double the inequalities each time. What they are tested for redundancy with grows with d: 17
    inequalities in 12 dimensions took 5.5 s, where 12 in 7 took 2 ms. With coefficients such as 98295 and 32765, as
    `c // 32765` has them, it did not end in a minute where the rest weighed 211.
    """
    return sum(_weight(piece) for relation in _maps(dependences) for piece in _basic_maps(relation))


def _weight(piece: isl.BasicMap) -> float:
    import islpy as isl

    dims = sum(piece.dim(kind) for kind in (isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param))
    constraints = piece.get_constraints()
    free = dims - sum(constraint.is_equality() for constraint in constraints)
    kinds = (isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param)
    bits = 8 if _has_no_number_above(255, piece) else _largest(constraints, kinds).bit_length()
    return float(2.0 ** max(0, len(constraints) - dims) * max(1.0, free / 8) ** 6 * max(1.0, bits / 8) ** 3)


def _largest(constraints: Iterable[isl.Constraint], kinds: Iterable[isl.dim_type]) -> int:
    """The largest coefficient of a dimension, without its sign."""
    factors = (
        constraint.get_coefficient_val(kind, position)
        for constraint in constraints
        for kind in kinds
        for position in range(constraint.dim(kind))
    )
    return max((abs(number_of(factor)) for factor in factors), default=0)


def _has_no_number_above(limit: int, piece: isl.BasicMap) -> bool:
    """Whether neither a coefficient nor a constant of a relation without divisions is larger, by its text: reading
    them one by one takes ten times as long."""
    import islpy as isl

    return not piece.dim(isl.dim_type.div) and all(int(one) <= limit for one in NUMBER.findall(str(piece)))


def as_given(relations: Relations) -> Given | None:
    """What the scheduler is given for a region; None where it would take too long: its time grows fast with the pieces
    of a relation between two statements, and a limit of operations alone would not end it soon."""
    if _stays_too_heavy(relations.dependences, relations.domain):
        return None
    found, heavy = _weighed(relations.dependences, relations.domain)
    few = all(_pieces(relation) <= PIECES[min(_loops(relation), len(PIECES) - 1)] for relation in _maps(found))
    if not few or heavy > MAX_WEIGHT:
        return None
    return Given(found, quickly_near(simplified(relations.flow, relations.domain)))


def quickly_near(flow: isl.UnionMap) -> isl.UnionMap:
    """The part of a relation that the scheduler can keep near without a long search: no matter of what is right.

    It keeps the distances of what it is given as near pairs small. With constraints whose coefficients of dimensions
    are not all 0, 1 and -1 that took it over 20 seconds for small nests. And it looks for integers in the dual of each
    piece, where constants are coefficients: twelve inequalities between eight dimensions took 5 s with constants such
    as 127, as integers of 8 bits lead to, and 1 ms with a twentieth of these.
    """
    kept = flow.subtract(flow)
    for relation in _maps(flow):
        if all(_is_quickly_near(piece) for piece in _basic_maps(relation)):
            kept = kept.union(relation)
    return kept


def _is_quickly_near(piece: isl.BasicMap) -> bool:
    """Whether it has unit coefficients, and few inequalities or small constants: 2^(n − d) · b³ is at most `MAX_NEAR`,
    with n constraints on d dimensions, and b bits in the largest constant."""
    import islpy as isl

    kinds = (isl.dim_type.in_, isl.dim_type.out)
    if piece.dim(isl.dim_type.div):
        return False
    constraints = piece.get_constraints()
    bits = 1
    if not _has_no_number_above(1, piece):
        if _largest(constraints, kinds) > 1:
            return False
        bits = max((abs(number_of(one.get_constant_val())) for one in constraints), default=0).bit_length()
    every = (*kinds, isl.dim_type.param)
    dims = sum(piece.involves_dims(kind, position, 1) for kind in every for position in range(piece.dim(kind)))
    return bool(2.0 ** max(0, len(constraints) - dims) * bits**3 <= MAX_NEAR)


def _maps(dependences: isl.UnionMap) -> list[isl.Map]:
    found: list[isl.Map] = []
    dependences.foreach_map(found.append)
    return found


def _basic_maps(relation: isl.Map) -> list[isl.BasicMap]:
    found: list[isl.BasicMap] = []
    relation.foreach_basic_map(found.append)
    return found


def _pieces(relation: isl.Map) -> int:
    return len(_basic_maps(relation))


def _loops(relation: isl.Map) -> int:
    import islpy as isl

    return int(relation.dim(isl.dim_type.in_))


@dataclass
class _Marker:
    region: Region
    relations: Relations
    variables: tuple[str, ...]
    memory: Memory
    types: Types
    costs: dict[str, int] = field(default_factory=dict)
    bands: list[Band] = field(default_factory=list)
    shared: int = 0
    free: int = 0
    last_order: list[int] = field(default_factory=list)
    unroll_and_jam: list[tuple[str, str]] = field(default_factory=list)
    cache_tiles: tuple[tuple[int, int], ...] = ()

    def visit(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        """Mark the outermost bands below `node` that can be shared out; returns the node in its place."""
        import islpy as isl

        kind = node.get_type()
        if kind == isl.schedule_node_type.band:
            if is_shared(node):
                return self.planned(node)
            return self.visit(node.child(0)).parent()
        if kind != isl.schedule_node_type.leaf:
            for position in range(node.n_children()):
                node = self.visit(node.child(position)).parent()
        return node

    def has(self, rewrite: str) -> bool:
        """Whether a rewrite is not left out."""
        return rewrite not in self.region.nest.function.without

    def planned(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        import islpy as isl

        number = len(self.bands)
        self.bands.append(describe_band(node, self.relations, self.variables, number))
        names, depth = tuple_names(node.get_domain()), node.get_schedule_depth()
        inside = [one for one in self.region.statements if one.name in names and len(one.loops) > depth]
        self.shared += len(inside)
        most = max(len(one.loops) for one in self.region.statements)
        self.free += sum(len(one.loops) == most for one in inside) if has_free_member(node) else 0
        self.unroll_and_jam, self.cache_tiles = [], ()
        node = self.inside(node, is_planned=True)
        chained = False
        if node.band_n_member() > 1 and not has_free_member(node) and not holds_band(node.child(0)):
            between, maps = self.bands[number].dependences, self.relations.maps
            chained = self.has("lockstep") and can_lockstep(between, self.last_order, maps)
        order = tuple(self.last_order) if chained else ()
        below = [statement for statement in self.region.statements if statement.name in names]
        lockstep = chained and chain_cycles(below, self.types) >= LONG_CHAIN
        found = replace(
            self.bands[number], in_lockstep=lockstep, unroll_and_jam=tuple(self.unroll_and_jam), loop_order=order
        )
        self.bands[number] = replace(found, cache_tiles=self.cache_tiles)
        return node.insert_mark(isl.Id(f"{PLANNED}:{number}", context=node.get_ctx()))

    def inside(self, node: isl.ScheduleNode, is_planned: bool = False) -> isl.ScheduleNode:
        """Put the loops of all bands from `node` downwards into the best order; tile those that use data again.

        The tiles of the planned band are boxes, which need no loops of isl's.
        """
        import islpy as isl

        kind = node.get_type()
        if kind == isl.schedule_node_type.leaf:
            return node
        for position in range(node.n_children()):
            node = self.inside(node.child(position)).parent()
        if kind != isl.schedule_node_type.band:
            return node
        order, costs = innermost_first(node, self.region)
        self.costs = costs | self.costs  # those of a band further in stay
        if node.band_n_member() > 1 and node.band_get_permutable():
            self.last_order = order[::-1]
            node = reordered(node, self.last_order)
            gains, depth = jam_gains(node, self.region), node.get_schedule_depth()
            if self.has("tile") and node.band_n_member() > 2 and has_free_member(node):
                sizes = tile_sizes(node, self.region, self.memory)
                if is_planned:
                    self.cache_tiles = tuple(zip(self.last_order, sizes, strict=True))
                else:
                    depth += node.band_n_member()
                node = tiled(node, sizes)
            names = self.variables[depth : depth + len(gains) + 1]
            gains = gains if self.has("jam") else []
            self.unroll_and_jam += [(name, names[-1]) for name, gain in zip(names, gains, strict=False) if gain]
        return node


def is_shared(node: isl.ScheduleNode) -> bool:
    """Whether the boxes of a band can be shared out: a member carries nothing, or two can be cut at the same time."""
    return has_free_member(node) or (node.band_n_member() > 1 and node.band_get_permutable())


def holds_band(node: isl.ScheduleNode) -> bool:
    """Whether there is a band in the tree from a node downwards."""
    import islpy as isl

    return not node.every_descendant(lambda inner: inner.get_type() != isl.schedule_node_type.band)


def has_free_member(node: isl.ScheduleNode) -> bool:
    """Whether a loop of the band carries no dependence."""
    return any(node.band_member_get_coincident(member) for member in range(node.band_n_member()))


def reordered(node: isl.ScheduleNode, order: Sequence[int]) -> isl.ScheduleNode:
    """A permutable band with its members in another order."""
    if list(order) == sorted(order):
        return node
    schedule = node.band_get_partial_schedule()
    free = [node.band_member_get_coincident(member) for member in order]
    found = schedule
    for position, member in enumerate(order):
        found = found.set_at(position, schedule.get_at(member))
    node = node.delete().insert_partial_schedule(found).band_set_permutable(1)
    for position, value in enumerate(free):
        node = node.band_member_set_coincident(position, int(value))
    return node


def tiled(node: isl.ScheduleNode, sizes: Sequence[int]) -> isl.ScheduleNode:
    """A permutable band in tiles for the cache."""
    import islpy as isl

    found = isl.MultiVal.zero(node.band_get_space())
    for member, size in enumerate(sizes):
        found = found.set_val(member, isl_value(size, node.get_ctx()))
    return node.band_tile(found)
