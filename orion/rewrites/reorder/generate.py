"""A schedule tree → what runs inside planned bands, by isl's loop generation (Verdoolaege, Grosser and Cohen 2015).

The inside of a band is generated for a box of its coordinates, whose limits are parameters. A statement is preceded by
assignments that give its loop variables the values that they had in the written loops, so that its text stays as the
user wrote it. Serial loops around planned bands: see `orion.rewrites.reorder.outline`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from orion.cost.strides import tuple_names
from orion.dataclass import dataclass, replace
from orion.dependence.conflicts import CapReached, capped
from orion.dependence.region import Region
from orion.ir.nodes import Stmt
from orion.ir.types import Types
from orion.rewrites.band import Band
from orion.rewrites.jam.apply import in_register_tiles
from orion.rewrites.lockstep.apply import FEW_ROWS, in_lockstep
from orion.rewrites.reorder.order import Order
from orion.rewrites.reorder.outline import Tiles, ast_build, known_extents, known_names, leaves, top
from orion.rewrites.reorder.writer import Writer
from orion.rewrites.skewed_buffers.apply import in_skewed_buffers
from orion.rewrites.skewed_buffers.find import find_skew
from orion.rewrites.skewed_buffers.halfspaces import InexactError
from orion.rewrites.tile.apply import in_cache_tiles

if TYPE_CHECKING:
    import islpy as isl

MAX_OPERATIONS = 500_000
"""isl operations that the loops of one box may cost to make, some 0.3 s."""

MAX_COPIES = 12
"""How often the statements of a nest may stand in the loops of one box, together: PolyBench's do 5 times at most. Rows
side by side make eight of each: 33 of them took LLVM a minute, and 13 took 5 s to write and 14 s to prove."""

Body = tuple[Band | None, tuple[Stmt, ...]]
"""A band, with buffers if it is run in them, and what is run for a box of it, in which the limits of the box are
variables; None and what is run once."""


def generate(region: Region, order: Order, types: Types, tiles: Tiles) -> tuple[Body, ...]:
    """What is run by the pieces of a new order that are no serial loops, in turn. `tiles` are those of each band.

    KeyError where a bound uses a name that is neither an extent nor a scalar of the function.
    """
    span = region.nest.span
    writer = Writer({s.name: s for s in region.statements}, known_names(region, order, types), span)
    return tuple(_Generator(region, types, order, tiles, known_extents(types, span), writer).bodies())


@dataclass
class _Generator:
    region: Region
    types: Types
    order: Order
    tiles: Tiles
    known: str
    writer: Writer

    def bodies(self) -> Iterator[Body]:
        for node, number in leaves(top(self.order.tree)):
            yield self.once(node) if number is None else self.box(node, number)

    def once(self, node: isl.ScheduleNode) -> Body:
        return None, tuple(self.writer.statements_of(self.scan(node, None)))

    def box(self, node: isl.ScheduleNode, number: int) -> Body:
        band = self.order.bands[number]
        body = tuple(self.writer.statements_of(self.scan(node, band)))
        skewed = self.skewed(node, band, body)
        if skewed is not None:
            return skewed
        together = in_lockstep(body, self.order.variables) if band.in_lockstep else body
        short_chains = band.loop_order and not band.in_lockstep  # their rows are best one after the other
        if together == body and not short_chains:
            together = in_register_tiles(body, band.unroll_and_jam)
        return band, in_cache_tiles(together, self.tiles[number], self.writer.span)

    def scan(self, node: isl.ScheduleNode, band: Band | None) -> isl.AstNode:
        """The program that runs all instances below a node, inside the limits of a box of the band if it is one.

        isl takes loops apart so that no tests are left in them, which for some nests gives thousands of loops. Past
        limits each coordinate is one loop, with tests inside.
        """
        import islpy as isl

        domain = self.instances(node, band)
        context = isl.Set(self.known, domain.get_ctx())
        inside = node.child(0) if band is not None and band.cache_tiles else node  # below the loops over tiles
        copied = copy_below(isl.ScheduleNode.from_domain(domain).child(0), inside).get_schedule()
        build = ast_build(self.order.variables[node.get_schedule_depth() :], context)
        try:
            with capped(domain.get_ctx(), MAX_OPERATIONS):
                program = build.node_from_schedule(copied)
            if copies_in(program) <= MAX_COPIES:
                return program
        except CapReached:
            pass
        return build.node_from_schedule(copied.get_root().map_descendant_bottom_up(as_one_loop).get_schedule())

    def skewed(self, node: isl.ScheduleNode, band: Band, body: tuple[Stmt, ...]) -> Body | None:
        """A band in skewed buffers, if it can be: where those do not pay, it runs `body` in lockstep."""
        below = [s for s in self.region.statements if s.name in tuple_names(node.get_domain())]
        around, function = self.order.variables[: band.around], self.region.nest.function
        is_out = "skewed_buffers" in function.without
        skew = None if is_out else find_skew(band, below, around, self.types, function, self.order.memory)
        if skew is None:
            return None
        band, otherwise = replace(band, skew=skew), in_lockstep(body, self.order.variables, FEW_ROWS)
        try:
            return band, in_skewed_buffers(band, below[0], self.writer.names, self.writer.span, otherwise)
        except InexactError:
            return None

    def instances(self, node: isl.ScheduleNode, band: Band | None) -> isl.UnionSet:
        """All instances below a node, inside the limits of a box of the band if it is one."""
        prefix = node.get_prefix_schedule_union_map().intersect_domain(node.get_domain())
        domain = within(node.get_domain(), prefix, self.order.variables[: node.get_schedule_depth()])
        return domain if band is None else domain.intersect(in_box(band, domain.get_ctx()))


def copies_in(program: isl.AstNode) -> int:
    """How many statements stand in the text of a program."""
    import islpy as isl

    found = 0

    def count(node: isl.AstNode) -> bool:
        nonlocal found
        found += node.get_type() == isl.ast_node_type.user
        return True

    program.foreach_descendant_top_down(count)
    return found


def as_one_loop(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """The node with each of its coordinates gone through by a single loop, if it is a band."""
    import islpy as isl

    if node.get_type() == isl.schedule_node_type.band:
        for member in range(node.band_n_member()):
            node = node.band_member_set_ast_loop_type(member, isl.ast_loop_type.atomic)
    return node


def within(instances: isl.UnionSet, prefix: isl.UnionMap, names: Iterable[str]) -> isl.UnionSet:
    """The instances that are run in one round of the loops around them, whose variables are parameters."""
    import islpy as isl

    known = ", ".join(names)
    if not known:
        return instances
    here = isl.UnionSet(f"[{known}] -> {{ [{known}] }}", instances.get_ctx())
    return instances.intersect(prefix.intersect_range(here).domain())


def in_box(band: Band, context: isl.Context) -> isl.UnionSet:
    """The instances of a band whose coordinates lie in the box between its limits."""
    import islpy as isl

    names = [f"c{k}" for k in range(band.around)]
    limits = [name for pair in band.limits for name in pair]
    inside = " and ".join(f"{first} <= {dim} < {end}" for dim, (first, end) in zip(band.dims, band.limits, strict=True))
    box = isl.UnionSet(f"[{', '.join(limits)}] -> {{ [{', '.join((*names, *band.dims))}] : {inside} }}", context)
    return isl.UnionMap(band.places, context).intersect_range(box).domain()


def copy_below(target: isl.ScheduleNode, source: isl.ScheduleNode) -> isl.ScheduleNode:
    """The tree below `source`, put below `target`, which is a leaf with other instances; returns the node in its
    place."""
    import islpy as isl

    kind = source.get_type()
    if kind == isl.schedule_node_type.leaf:
        return target
    if kind == isl.schedule_node_type.band:
        target = target.insert_partial_schedule(source.band_get_partial_schedule())
        return copy_below(target.child(0), source.child(0)).parent()
    if kind not in (isl.schedule_node_type.sequence, isl.schedule_node_type.set):
        return copy_below(target, source.child(0))
    count = source.n_children()
    filters = isl.UnionSetList.alloc(target.get_ctx(), count)
    for position in range(count):
        filters = filters.add(source.child(position).filter_get_filter())
    target = target.insert_sequence(filters)
    for position in range(count):
        below = copy_below(target.child(position).child(0), source.child(position).child(0))
        target = below.parent().parent()
    return target
