"""Several rows of a box at a time, each a few columns behind the one above (loop skewing, unroll-and-jam).

Where the innermost loop carries a dependence, its trips are a chain: each waits for the one before. With R rows in
lockstep, each L columns behind

    for s in range(low, high):
        S(p, s); S(p + 1, s - L); …; S(p + R - 1, s - L (R - 1))

there are R chains, which a processor works on at the same time. Before `low` and from `high` on, where not all R rows
have a column, the rows are run one after the other, as before. With δ the differences of the dependences, p and q the
last two coordinates of the band in the order of its loops, and all outer ones zero, this keeps them all where

    0 < δ_p < R  implies  δ_q ≥ −L δ_p.

Sources: Wolf and Lam 1991 (skewing); Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, section 8.4
(unroll-and-jam).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from orion.dependence.access import Dependence
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    For,
    If,
    Logic,
    Node,
    Range,
    Stmt,
    Var,
    every,
    holds,
    walk,
)
from orion.ir.rewriting import expand, rewrite
from orion.passes.between import SYNTHETIC
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl

ROWS = 8
"""Rows in lockstep: 4 to 12 measure much the same, 8 best (five-point Gauss-Seidel, float64)."""

LAG = 4
"""How many columns each row is behind the one above. With one, the elements that the rows are at lie a whole number of
pages apart in arrays of 2^k + 1 columns, as tables of two words have, and get in each other's way in the cache: 2.5
times as slow on Zen 4. With four that happens with 2^k + 4 columns, which nobody has."""

FEW_ROWS = 4
"""Rows in lockstep where the loop is but rarely run so: half the code is compiled in half the time."""


def can_lockstep(dependences: Sequence[Dependence], order: Sequence[int], maps: Maps) -> bool:
    """Whether rows may be run in lockstep, and gain by it: each trip of the innermost loop waits for the one before.

    `order` are the dimensions of the dependences from the outermost loop to the innermost.
    """
    import islpy as isl

    *outer, p, q = order
    chained = False
    for dependence in dependences:
        relation = maps.map(dependence.relation)
        pairs = isl.Map.universe(relation.get_space())
        for dim in outer:
            pairs = pairs.equate(isl.dim_type.in_, dim, isl.dim_type.out, dim)
        relation = relation.intersect(pairs)
        names = [f"d{d}" for d in range(relation.dim(isl.dim_type.in_))]
        late = maps.set(f"{{ [{', '.join(names)}] : 0 < d{p} < {ROWS} and d{q} < -{LAG} d{p} }}")
        if not relation.deltas().intersect(late).is_empty():
            return False
        chained = chained or _is_chain(relation, p, q, maps)
    return chained


def _is_chain(relation: isl.Map, p: int, q: int, maps: Maps) -> bool:
    """Whether almost every iteration, not only those on some line, has the next one of its row depend on it."""
    import islpy as isl

    names = [f"d{d}" for d in range(relation.dim(isl.dim_type.in_))]
    step = maps.set(f"{{ [{', '.join(names)}] : d{p} = 0 and d{q} = 1 }}")
    sources = relation.deltas_map().intersect_range(step).domain().unwrap().domain()
    return not sources.is_empty() and bool(sources.affine_hull().is_universe())


def in_lockstep(body: tuple[Stmt, ...], variables: Container[str], together: int = ROWS) -> tuple[Stmt, ...]:
    """The statements of a box with its innermost two loops in lockstep, wherever nothing stands between those two.

    `variables` are those of the box: loops inside its statements are none of its own. `together` rows at a time, at
    most `ROWS`.
    """
    return expand(body, lambda statement: _changed(statement, variables, together))


def _changed(statement: Stmt, variables: Container[str], together: int) -> tuple[Stmt, ...]:
    match statement:
        case For(Range(step=Const(value=1)) as rows, (For(Range(step=Const(value=1)) as columns, body),)):
            is_own = rows.var in variables and columns.var in variables
            if is_own and not holds(For, *body):
                return (_strips(statement, rows, columns, body, together),)
    return (statement,)


def _strips(loop: For, rows: Range, columns: Range, body: tuple[Stmt, ...], count: int) -> For:
    """The loop over strips of R rows."""
    span, p, q = loop.span, rows.var, columns.var
    strip, low, high, column = f"{p}_strip", f"{q}_low", f"{q}_high", f"{q}_step"

    def const(value: int) -> Const:
        return Const(value, span)

    def row(number: int) -> Expr:
        return Binary("+", Var(strip, span), const(number), span) if number else Var(strip, span)

    def run(start: Expr, stop: Expr) -> For:
        """All rows of a strip, one after the other, from column to column."""
        inner = For(Range(q, start, stop, const(1), span), body, SYNTHETIC, span)
        return For(Range(p, Var(strip, span), row(count), const(1), span), (inner,), SYNTHETIC, span)

    def step(number: int) -> tuple[Stmt, ...]:
        """Row `number` in one step of all rows: as many times `LAG` columns behind row 0."""
        here = Binary("-", Var(column, span), const(LAG * number), span) if number else Var(column, span)
        return Assign(Var(p, span), row(number), span), Assign(Var(q, span), here, span), *body

    def extreme(name: str, expr: Expr) -> Expr:
        """The greatest or least bound in a strip, in terms of the column of row 0."""
        if not any(part.name == p for part in every(Var, expr)):
            return _plus(expr, LAG * (count - 1) if name == "max" else 0)
        lanes = [_plus(substituted(expr, p, row(number)), LAG * number) for number in range(count)]
        return reduce(lambda left, right: Call(name, (left, right), span), lanes)

    behind = Binary("*", const(LAG), Binary("-", Var(p, span), Var(strip, span), span), span)
    low_here, high_here = (Binary("-", Var(end, span), behind, span) for end in (low, high))
    together = [part for number in range(count) for part in step(number)]
    core = For(Range(column, Var(low, span), Var(high, span), const(1), span), tuple(together), SYNTHETIC, span)
    apart = For(Range(p, Var(strip, span), _least(row(count), rows.stop), const(1), span), loop.body, SYNTHETIC, span)
    fits = Compare(("<=",), (row(count), rows.stop), span)
    some = Compare(("<",), (Var(low, span), Var(high, span)), span)
    lockstep = (run(columns.start, low_here), core, run(high_here, columns.stop))
    whole: tuple[Stmt, ...] = (
        Assign(Var(low, span), extreme("max", columns.start), span),
        Assign(Var(high, span), extreme("min", columns.stop), span),
        If(Logic("and", (fits, some), span), lockstep, (apart,), span),
    )
    return For(Range(strip, rows.start, rows.stop, const(count), span), whole, SYNTHETIC, span)


def _plus(expr: Expr, value: int) -> Expr:
    return Binary("+", expr, Const(value, expr.span), expr.span) if value else expr


def _least(left: Expr, right: Expr) -> Expr:
    return Call("min", (left, right), left.span)


def substituted(expr: Expr, name: str, value: Expr) -> Expr:
    """The expression with a name replaced by another expression."""
    return rewrite(expr, lambda part: value if isinstance(part, Var) and part.name == name else part)


def new_names(body: tuple[Stmt, ...], variables: Iterable[str]) -> tuple[str, ...]:
    """The integer variables that were introduced in loops in lockstep or in skewed buffers, for these variables."""
    nodes: list[Node] = [node for statement in body for node in walk(statement)]
    ranges = [node.var for node in nodes if isinstance(node, Range)]
    assigned = [node.target.name for node in nodes if isinstance(node, Assign) and isinstance(node.target, Var)]
    endings = ("_strip", "_low", "_high", "_step", "_tile", "_stop", "_start", "_size", *(f"_at{k}" for k in range(9)))
    names, beginnings = dict.fromkeys((*ranges, *assigned)), tuple(f"{variable}_" for variable in variables)
    return tuple(name for name in names if name.startswith(beginnings) and name.endswith(endings))
