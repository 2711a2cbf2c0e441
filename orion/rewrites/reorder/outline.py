"""What the loops of a new order are, but for the text of what runs inside planned bands.

A plan needs to know the serial loops around planned bands, which statements each of them runs, and no more. The text
inside, by far the longest part of the work, is made where a kernel is wanted (`orion.rewrites.reorder.generate`).

Until then a piece runs its *outline*: each of its statements in the loops that it was written in, those of them left
out whose variables are variables of the serial loops around. It reads and writes the same arrays and scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from orion.cost.strides import tuple_names
from orion.dataclass import dataclass, replace
from orion.dependence.region import Region, Statement
from orion.ir.nodes import Assign, Dim, Expr, Range, Stmt, Var
from orion.ir.types import Types
from orion.passes.between import SYNTHETIC
from orion.rewrites.band import Band
from orion.rewrites.reorder.expressions import from_isl, parameter_expressions
from orion.rewrites.reorder.order import PLANNED, Order
from orion.rewrites.reorder.writer import Writer
from orion.rewrites.tile.apply import CacheTile
from orion.sets.names import isl_name
from orion.source import Span

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Leaf:
    """What is run for a box of a band, or once where there is no band."""

    band: Band | None
    outline: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Around:
    """A serial loop around other pieces."""

    space: Range
    pieces: tuple[Piece, ...]


Piece = Leaf | Around

Tiles = tuple[tuple[CacheTile, ...], ...]
"""The coordinates of each band that are run in tiles for the cache."""


def outline(region: Region, order: Order, types: Types) -> tuple[Piece, ...]:
    """The pieces of a new order, in turn.

    KeyError where a bound of a serial loop uses a name that is neither an extent nor a scalar of the function.
    """
    writer = Writer({}, known_names(region, order, types), region.nest.span)
    return tuple(_Outliner(region, order, known_extents(types, region.nest.span), writer).pieces(top(order.tree)))


def cache_tiles(region: Region, order: Order, types: Types) -> Tiles:
    """The coordinates of all bands that are run in tiles. KeyError where one has no bounds that can be written."""
    return tuple(tuple(_tiles_of(band, region, order, types)) for band in order.bands)


def _tiles_of(band: Band, region: Region, order: Order, types: Types) -> Iterator[CacheTile]:
    import islpy as isl

    if not band.cache_tiles:
        return
    span, names = region.nest.span, known_names(region, order, types)
    domain = isl.Set(band.domain, order.tree.get_ctx())
    build = ast_build((), isl.Set(known_extents(types, span), domain.get_ctx()))
    for coordinate, size in band.cache_tiles:
        last = domain.dim_max(coordinate)
        bounds = domain.dim_min(coordinate), last.add_constant_val(isl.Val.one(domain.get_ctx()))
        low, high = (from_isl(build.expr_from_pw_aff(bound), names, span) for bound in bounds)
        yield CacheTile(band.dims[coordinate], band.limits[coordinate], low, high, size)


def known_names(region: Region, order: Order, types: Types) -> dict[str, Expr]:
    """What isl's names stand for in the loops of a new order."""
    span = region.nest.span
    names: dict[str, Expr] = {name: Var(name, span) for s in region.statements for name in s.space.names}
    names |= parameter_expressions(types, span) | {name: Var(name, span) for name in order.variables}
    return names | {name: Var(name, span) for band in order.bands for limits in band.limits for name in limits}


def known_extents(types: Types, span: Span) -> str:
    """What holds of the extents of arrays, as an isl set."""
    extents = [name for name, expr in parameter_expressions(types, span).items() if isinstance(expr, Dim)]
    return f"[{', '.join(extents)}] -> {{ : {' and '.join(f'{name} >= 0' for name in extents) or 'true'} }}"


def top(tree: isl.Schedule) -> isl.ScheduleNode:
    """The node below that of all instances."""
    return tree.get_root().child(0)


def leaves(node: isl.ScheduleNode) -> Iterator[tuple[isl.ScheduleNode, int | None]]:
    """The nodes of the pieces that are no serial loops, in turn, with the numbers of their bands."""
    import islpy as isl

    if node.get_type() == isl.schedule_node_type.mark:
        yield node.child(0), int(node.mark_get_id().get_name().removeprefix(f"{PLANNED}:"))
    elif _is_single(node):
        yield node, None
    else:
        for position in range(node.n_children()):
            yield from leaves(node.child(position))


def _is_single(node: isl.ScheduleNode) -> bool:
    """Whether all below a node is run by one worker."""
    import islpy as isl

    return node.get_type() != isl.schedule_node_type.filter and not holds_mark(node)


@dataclass
class _Outliner:
    """Goes down the tree to the planned bands."""

    region: Region
    order: Order
    known: str
    writer: Writer

    def pieces(self, node: isl.ScheduleNode) -> Iterable[Piece]:
        import islpy as isl

        kind = node.get_type()
        if kind == isl.schedule_node_type.mark or _is_single(node):
            for inner, number in leaves(node):
                yield Leaf(None if number is None else self.order.bands[number], tuple(self.outlines(inner)))
        elif kind == isl.schedule_node_type.band:
            yield self.around(node, 0)
        else:
            for position in range(node.n_children()):
                yield from self.pieces(node.child(position))

    def around(self, node: isl.ScheduleNode, member: int) -> Around:
        """The loop of a member of a serial band, around those of the further members and what is below."""
        depth = node.get_schedule_depth() + member
        last = member == node.band_n_member() - 1
        inner = tuple(self.pieces(node.child(0))) if last else (self.around(node, member + 1),)
        return Around(self.trips(node, depth), inner)

    def trips(self, node: isl.ScheduleNode, depth: int) -> Range:
        """The range of the coordinate at `depth`, given those of the loops around it."""
        import islpy as isl

        places = node.child(0).get_prefix_schedule_union_map().intersect_domain(node.get_domain())
        values = isl.Set.from_union_set(places.range())
        values = values.project_out(isl.dim_type.set, depth + 1, values.dim(isl.dim_type.set) - depth - 1)
        values = hull(fixed(values, self.order.variables[:depth]))
        values = values.set_tuple_name("trip")
        build = ast_build(self.order.variables[depth:], isl.Set(self.known, values.get_ctx()))
        tree = build.node_from_schedule(
            isl.Schedule.from_domain(isl.UnionSet.from_set(values))
            .get_root().child(0)
            .insert_partial_schedule(isl.MultiUnionPwAff.from_union_map(
                isl.UnionMap.from_map(isl.Map("{ trip[i] -> [i] }", values.get_ctx()))
            ))
            .get_schedule()
        )  # fmt: skip
        if tree.get_type() == isl.ast_node_type.if_:
            tree = tree.if_get_then_node()  # without the condition the range is empty, or its loops are
        if tree.get_type() != isl.ast_node_type.for_:
            raise KeyError("the trips of a serial loop are no single range")
        return self.writer.range(tree)

    # ------------------------------------------------------------ outlines

    def outlines(self, node: isl.ScheduleNode) -> Iterator[Stmt]:
        """The statements below a node, each in its loops, in the order that the tree has them in."""
        statements = {statement.name: statement for statement in self.region.statements}
        outer = node.get_prefix_schedule_multi_union_pw_aff() if node.get_schedule_depth() else None
        for name in dict.fromkeys(_in_turn(node)):
            yield from self.in_loops(statements[name], {} if outer is None else _fixed_dims(outer, name))

    def in_loops(self, statement: Statement, outer: dict[str, int]) -> tuple[Stmt, ...]:
        """A statement in its loops; `outer` has the depth of the serial loop that a dimension is the variable of."""
        span, body = self.region.nest.span, statement.body
        for loop, dim in reversed([*zip(statement.loops, statement.space.dims, strict=True)]):
            assert isinstance(loop.space, Range)
            if dim in outer and dim == isl_name(loop.space.var):
                value = Var(self.order.variables[outer[dim]], span)
                body = (Assign(Var(loop.space.var, span), value, span), *body)
            else:
                body = (replace(loop, body=body, index=SYNTHETIC, span=span),)
        return body


def _in_turn(node: isl.ScheduleNode) -> Iterator[str]:
    """The names of the statements below a node, some more than once."""
    import islpy as isl

    if node.get_type() == isl.schedule_node_type.leaf:
        yield from tuple_names(node.get_domain())
    for position in range(node.n_children()):
        yield from _in_turn(node.child(position))


def _fixed_dims(outer: isl.MultiUnionPwAff, name: str) -> dict[str, int]:
    """The loop dimensions of a statement that are variables of serial loops around it, with the depths of those."""
    import islpy as isl

    found: dict[str, int] = {}
    for depth in range(outer.dim(isl.dim_type.out)):
        parts: list[isl.PwAff] = []
        outer.get_at(depth).foreach_pw_aff(parts.append)
        for part in parts:
            if part.get_space().get_tuple_name(isl.dim_type.in_) == name:
                found.setdefault(str(part).partition("[(")[2].partition(")]")[0], depth)
    return found


# ---------------------------------------------------------------- in isl


def ast_build(variables: Iterable[str], context: isl.Set) -> isl.AstBuild:
    """isl's loop generation, with names for the loops from the outermost on.

    Without `%` in place of divisions that round down: where isl looks for numerators that are not negative, it made
    `z % 2` of `(z + n) % 2` in a condition.
    """
    import islpy as isl

    names = list(variables)
    ids = isl.IdList.alloc(context.get_ctx(), len(names))
    for name in names:
        ids = ids.add(isl.Id(name, context=context.get_ctx()))
    context.get_ctx().set_ast_build_prefer_pdiv(0)
    return isl.AstBuild.from_context(context).set_iterators(ids)


def holds_mark(node: isl.ScheduleNode) -> bool:
    """Whether a planned band is below a node."""
    import islpy as isl

    return not node.every_descendant(lambda inner: inner.get_type() != isl.schedule_node_type.mark)


def hull(values: isl.Set) -> isl.Set:
    """A convex set around a set, with the steps that its pieces have in common. isl looks for one with integers that
    the set says no more of than inequalities, and may not end: these are left out first."""
    return values.remove_unknown_divs().simple_hull().to_set()


def fixed(values: isl.Set, names: Iterable[str]) -> isl.Set:
    """The values of the last dimension where the earlier ones are equal to parameters of these names."""
    import islpy as isl

    known = list(names)
    dims = [f"d{k}" for k in range(values.dim(isl.dim_type.set))]
    equal = " and ".join(f"{dim} = {name}" for dim, name in zip(dims, known, strict=False)) or "true"
    text = f"[{', '.join(known)}] -> {{ [{', '.join(dims)}] : {equal} }}"
    return values.intersect(isl.Set(text, values.get_ctx())).project_out(isl.dim_type.set, 0, len(known))
