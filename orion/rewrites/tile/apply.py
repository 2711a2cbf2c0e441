"""The loops of a box in tiles for the cache: smaller boxes, one after the other.

What is run for a box of a band has the limits of the box as variables, and runs any box; so the tiles of a box are
boxes too, with limits of their own. They lie at multiples of their sizes, as isl's tiling of the band has them, whose
order `prove_order` has proved.
"""

from __future__ import annotations

from collections.abc import Sequence

from orion.dataclass import dataclass
from orion.ir.nodes import Assign, Binary, Call, Const, Expr, For, Range, Stmt, Var
from orion.ir.rewriting import rewrite
from orion.passes.between import SYNTHETIC
from orion.source import Span


@dataclass(frozen=True, slots=True)
class CacheTile:
    """A coordinate of a band in tiles of `size`: its variable, those of the limits of a box, and the bounds that it has
    in any box, from `low` up to but not including `high`."""

    dim: str
    limits: tuple[str, str]
    low: Expr
    high: Expr
    size: int


def in_cache_tiles(body: tuple[Stmt, ...], tiles: Sequence[CacheTile], span: Span) -> tuple[Stmt, ...]:
    """What is run for a box, tile by tile; `tiles` are the coordinates from the outermost loop to the innermost."""
    own = {name: Var(f"{tile.dim}_{end}", span) for tile in tiles for name, end in zip(tile.limits, ENDS, strict=True)}
    found = tuple(
        rewrite(statement, lambda part: own.get(part.name, part) if isinstance(part, Var) else part)
        for statement in body
    )
    for tile in reversed(tiles):
        found = (_loop(tile, found, span),)
    return found


ENDS = ("start", "stop")


def _loop(tile: CacheTile, body: tuple[Stmt, ...], span: Span) -> For:
    first, end = (Var(name, span) for name in tile.limits)
    at, start, stop = (Var(f"{tile.dim}_{name}", span) for name in ("tile", *ENDS))
    size = Const(tile.size, span)
    low = Call("max", (first, tile.low), span)
    begin = Binary("*", Binary("//", low, size, span), size, span)
    assigned = (
        Assign(start, Call("max", (first, at), span), span),
        Assign(stop, Call("min", (end, Binary("+", at, size, span)), span), span),
    )
    trips = Range(at.name, begin, Call("min", (end, tile.high), span), size, span)
    return For(trips, (*assigned, *body), SYNTHETIC, span)
