"""Sweeps in tiles, as loops: those of the source with bounds that keep them inside of a tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orion.analysis.one_loop import TimeTiles
from orion.cost.caches import Caches
from orion.dataclass import dataclass
from orion.dependence.region import Place, Region, Statement
from orion.ir.nodes import Assign, Binary, Call, Compare, Const, Dim, Expr, For, If, Logic, Range, Stmt, Var
from orion.passes.between import SYNTHETIC
from orion.rewrites.band import Band
from orion.rewrites.time_tiles.find import spots_of
from orion.source import Span

SHARE = 2
"""A tile may touch one part of so many of the second-level cache of a core."""

LONGEST = 1024
"""The longest tile in space: with arrays of one dimension a tile is in the first-level cache then."""

SHORTEST = 4
"""The shortest: below it too few rounds fit into a tile to be worth it."""

INNER = 8
"""The size in the second coordinate of space, where there are two."""


def in_time_tiles(region: Region, band: Band, time_tiles: TimeTiles, caches: Caches) -> tuple[Stmt, ...]:
    """What is run for a box of the band: its tiles one after the other, each in the written order."""
    span = region.nest.span
    sizes = [f"{dim}_size" for dim in band.dims]
    tile = [(f"{dim}_start", f"{dim}_stop") for dim in band.dims]
    body: Stmt = _Clipped(region, tile, time_tiles).rounds()
    for (start, stop), (first, end), size in reversed([*zip(tile, band.limits, sizes, strict=True)]):
        further = Binary("+", Var(start, span), Var(size, span), span)
        last = Assign(Var(stop, span), Call("min", (Var(end, span), further), span), span)
        space = Range(start, Var(first, span), Var(end, span), Var(size, span), span)
        body = For(space, (last, body), SYNTHETIC, span)
    return (*tile_sizes(time_tiles, sizes, caches, span), body)


@dataclass(frozen=True, slots=True)
class _Clipped:
    """The loops of a region inside of a tile, given the names of its limits in each coordinate."""

    region: Region
    limits: Sequence[tuple[str, str]]
    time_tiles: TimeTiles

    @property
    def span(self) -> Span:
        return self.region.nest.span

    def rounds(self) -> For:
        loop = self.region.nest.loops[0]
        assert isinstance(loop.space, Range)
        space = self.within(loop.space, *(Var(name, self.span) for name in self.limits[0]))
        return For(space, tuple(self.block(loop.body, 1, list(self.region.statements))), SYNTHETIC, loop.span)

    def block(self, body: Sequence[Stmt], level: int, statements: list[Statement]) -> Iterator[Stmt]:
        """The statements of the body of a loop at depth `level` - 1, of which `statements` are those of the region."""
        if level > len(self.time_tiles.slopes):
            yield from body
            return
        spots = [*spots_of(self.region.statements, range(1, len(self.time_tiles.slopes) + 1))]
        fixed = {spot.places[level - 1]: spot.fixed[level - 1 :] for spot in spots}
        for place in sorted({statement.place[: level + 1] for statement in statements}):
            inside = [statement for statement in statements if statement.place[: level + 1] == place]
            if fixed[place][0] is None:
                yield self.loop(inside[0].loops[level], place, level, inside)
            else:
                own = inside[0].body if len(inside[0].loops) == level else (inside[0].loops[level],)
                yield If(self.guard(place, level, fixed[place]), own, (), self.span)

    def loop(self, loop: For, place: Place, level: int, inside: list[Statement]) -> For:
        assert isinstance(loop.space, Range)
        first, end = (self.moved(name, place, level) for name in self.limits[level])
        body = tuple(self.block(loop.body, level + 1, inside))
        return For(self.within(loop.space, first, end), body, SYNTHETIC, loop.span)

    def guard(self, place: Place, level: int, fixed: Sequence[Expr | None]) -> Expr:
        """Whether what has no loop for the coordinates from `level` on, but is `fixed` in them, lies inside of the
        tile."""
        tests: list[Expr] = []
        for further, at in enumerate(fixed, level):
            assert at is not None
            first, end = (self.moved(name, place, further) for name in self.limits[further])
            tests.append(Compare(("<=", "<"), (first, at, end), self.span))
        return tests[0] if len(tests) == 1 else Logic("and", tuple(tests), self.span)

    def moved(self, limit: str, place: Place, level: int) -> Expr:
        """The limit of a coordinate as one of the loop variable: c = s t + x + f, so x = c − s t − f."""
        slope, shift = self.time_tiles.slopes[level - 1], dict(self.time_tiles.shifts)[level - 1, place]
        t: Expr = Var(self.region.nest.dims[0], self.span)
        moved = t if slope == 1 else Binary("*", Const(slope, self.span), t, self.span)
        found = Binary("-", Var(limit, self.span), moved, self.span)
        return Binary("-", found, Const(shift, self.span), self.span) if shift else found

    def within(self, space: Range, first: Expr, end: Expr) -> Range:
        start, stop = Call("max", (space.start, first), space.span), Call("min", (space.stop, end), space.span)
        return Range(space.var, start, stop, space.step, space.span)


def tile_sizes(time_tiles: TimeTiles, names: Sequence[str], caches: Caches, span: Span) -> tuple[Stmt, ...]:
    """Assignments of the sizes of a tile to `names`, one for each coordinate, from the extents of arrays.

    With R bytes for each value of the coordinates of space, a tile of b values and b / s rounds touches the bytes of
    2 b values: 2 b R = C / SHARE, with C bytes in the cache; with two coordinates of space 4 b b' R, where b' is INNER.
    """
    shared = 2 if len(time_tiles.slopes) == 1 else 4 * INNER
    total: Expr = Const(1, span)
    for array, size, axes in time_tiles.rows:
        row: Expr = Const(size, span)
        for axis in axes:
            row = Binary("*", row, Dim(array, axis, span), span)
        total = Binary("+", total, row, span)
    fitting = Binary("//", Const(caches.second // SHARE // shared, span), total, span)
    first = Call("max", (Const(SHORTEST, span), Call("min", (fitting, Const(LONGEST, span)), span)), span)
    inner = [Const(INNER, span)] * (len(time_tiles.slopes) - 1)
    least = Call("min", (Var(names[1], span), *inner), span) if inner else Var(names[1], span)
    rounds = Call("max", (Const(1, span), Binary("//", least, Const(max(time_tiles.slopes), span), span)), span)
    values = [rounds, first, *inner]
    return tuple(Assign(Var(names[k], span), values[k], span) for k in (*range(1, len(values)), 0))
