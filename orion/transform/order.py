"""A new order for the statements of a region: isl's schedule, with the loops inside a tile in the best order.

isl's scheduler finds bands of loops that may be interchanged (Bondhugula et al. 2008; Verdoolaege and Janssens 2017). A
band with a loop that carries no dependence, or with two loops, is *planned*: boxes of its coordinates are what workers
share out. Inside a box its loops are tiled for the cache where that pays, and the innermost one goes through memory
element by element. A band of one loop that carries dependences stays a serial loop around what is inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orion.dependence.region import Region
from orion.dependence.relations import Relations
from orion.transform.bands import Band, describe_band
from orion.transform.lockstep import can_lockstep
from orion.transform.strides import innermost_cost, innermost_first

if TYPE_CHECKING:
    import islpy as isl

CACHE_TILES = (256, 64, 32)
"""Iterations per cache tile of the loops of a band, innermost first; those further out are not tiled."""

PIECES = (64, 32, 16, 12, 4)
"""The most pieces of a dependence relation that the scheduler is given as they are, by the number of loops."""

PLANNED = "planned"
"""The mark on bands whose boxes are shared out."""


@dataclass(frozen=True, slots=True)
class Order:
    """A schedule tree with marks.

    `bands` are the planned bands, by their number in the marks. `trips` is what a trip of the innermost loops costs in
    memory, as written and in this order. `variables` are the names of new loops, by depth. `shared` is the number of
    statements in planned bands.
    """

    tree: isl.Schedule
    bands: tuple[Band, ...]
    trips: tuple[int, int]
    variables: tuple[str, ...]
    shared: int


def new_order(region: Region, relations: Relations, variables: Sequence[str]) -> Order:
    """The best of the orders that isl's scheduler finds for a region, marked; `variables` name its loops by depth.

    Tried are: statements together where that lets data be used again, and, where that leaves statements out of planned
    bands, a loop of its own for each strongly connected component of the dependences.
    """
    together = _marked(region, relations, variables, apart=False)
    if together.shared == len(region.statements):
        return together
    return max(together, _marked(region, relations, variables, apart=True), key=lambda order: order.shared)


def _marked(region: Region, relations: Relations, variables: Sequence[str], apart: bool) -> Order:
    import islpy as isl

    constraints = isl.ScheduleConstraints.on_domain(relations.domain)
    constraints = constraints.set_validity(relations.dependences).set_coincidence(relations.dependences)
    constraints = constraints.set_proximity(relations.flow)
    relations.domain.get_ctx().set_schedule_serialize_sccs(int(apart))
    schedule = constraints.compute_schedule()
    costs = {statement.name: innermost_cost(statement) for statement in region.statements}
    marker = _Marker(region, relations, tuple(variables), dict(costs))
    root = marker.visit(schedule.get_root().child(0))
    trips = sum(costs.values()), sum(marker.costs.values())
    return Order(root.get_schedule(), tuple(marker.bands), trips, tuple(variables), marker.shared)


def is_simple(dependences: isl.UnionMap) -> bool:
    """Whether the scheduler can be given the dependences: its time grows fast with the pieces of a relation between two
    statements, and that time does not count as operations, so that a limit on those would not end it."""
    maps: list[isl.Map] = []
    dependences.foreach_map(maps.append)
    return all(_pieces(relation) <= PIECES[min(_loops(relation), len(PIECES) - 1)] for relation in maps)


def _pieces(relation: isl.Map) -> int:
    found: list[isl.BasicMap] = []
    relation.foreach_basic_map(found.append)
    return len(found)


def _loops(relation: isl.Map) -> int:
    import islpy as isl

    return int(relation.dim(isl.dim_type.in_))


@dataclass
class _Marker:
    region: Region
    relations: Relations
    variables: tuple[str, ...]
    costs: dict[str, int]
    bands: list[Band] = field(default_factory=list)
    shared: int = 0
    last_order: list[int] = field(default_factory=list)

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

    def planned(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        import islpy as isl

        number = len(self.bands)
        self.bands.append(describe_band(node, self.relations, self.variables, number))
        self.shared += node.get_domain().n_set()
        node = self.inside(node)
        if node.band_n_member() > 1 and not has_free_member(node) and not holds_band(node.child(0)):
            ok = can_lockstep(self.bands[number].dependences, self.last_order)
            self.bands[number] = replace(self.bands[number], in_lockstep=ok)
        return node.insert_mark(isl.Id(f"{PLANNED}:{number}", context=node.get_ctx()))

    def inside(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        """Put the loops of all bands from `node` downwards into the best order; tile those that use data again."""
        import islpy as isl

        kind = node.get_type()
        if kind == isl.schedule_node_type.leaf:
            return node
        for position in range(node.n_children()):
            node = self.inside(node.child(position)).parent()
        if kind == isl.schedule_node_type.band and node.band_n_member() > 1 and node.band_get_permutable():
            order, costs = innermost_first(node, self.region)
            self.costs |= costs
            self.last_order = order[::-1]
            node = reordered(node, self.last_order)
            if node.band_n_member() > 2 and has_free_member(node):
                node = tiled(node)
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


def tiled(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """A permutable band in tiles for the cache."""
    import islpy as isl

    members = node.band_n_member()
    sizes = isl.MultiVal.zero(node.band_get_space())
    for member in range(members):
        size = CACHE_TILES[min(members - 1 - member, len(CACHE_TILES) - 1)]
        sizes = sizes.set_val(member, isl.Val.int_from_si(node.get_ctx(), size))
    return node.band_tile(sizes)
