"""Several iterations of outer loops in one trip of the innermost (register tiling, unroll-and-jam).

Of a permutable band with loops p, q and the innermost s

    for p in range(…):
        for q in range(…):
            for s in range(low(p, q), high(p, q)):
                S(p, q, s)

the trips p … p + R - 1 and q … q + R - 1 are made together: R² statements in one trip of s, p before q. An element that
stays where it is along p or q is then loaded once for R of them; and where the trips of s are a chain, each waiting for
the one before, the processor has R² chains to work on. Trips of s that not all of them have are made by each alone,
those before the common ones before, the others after; and so is what stands before or after the loop over s, which are
statements with coordinates s ≤ low(p, q) or s ≥ high(p, q) - 1. Where there are any, those two trips are none of the
common ones, whose coordinates are then larger than all before and smaller than all after. In a permutable band every
dependence has a difference δ ≥ 0 in each of these loops (those around being equal), and then none is turned around:

    within a trip of s, by (δ_p, δ_q) ≥ 0; between trips, by δ_s ≥ 0;
    from an early part to a later one, because a dependence from a later part to an earlier one would have δ_s < 0.

Sources: Wolf and Lam 1991; Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, section 8.4.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import reduce
from itertools import product
from typing import TypeVar

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_places
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
    Subscript,
    Var,
    While,
    holds,
    names_in,
)  # fmt: skip
from orion.ir.rewriting import rewrite
from orion.passes.between import SYNTHETIC
from orion.source import Span

N = TypeVar("N", bound=Node)
Loops = Container[tuple[str, str]]

TRIPS = {1: 8, 2: 4}
"""Trips of a loop made together, by the number of loops. Product of two matrices of 480², one core: 17 GFlop/s with
none, 23 with 4 or 8 of one loop, 58 with 4 × 4 of two, 50 to 56 with 4 × 8."""


def in_register_tiles(body: tuple[Stmt, ...], jammed: Loops) -> tuple[Stmt, ...]:
    """The statements of a box with loops jammed wherever they stand as above. `jammed` has the variables of each loop
    and of the innermost one of its band."""
    return tuple(_changed(statement, jammed) for statement in body)


def _changed(statement: Stmt, jammed: Loops) -> Stmt:
    match statement:
        case If(test, body, orelse, span):
            return If(test, in_register_tiles(body, jammed), in_register_tiles(orelse, jammed), span)
        case For(space, body, index, span):
            nest = _nest(statement, jammed)
            if nest is not None:
                return nest.loops()
            return _unswitched(statement, jammed) or For(space, in_register_tiles(body, jammed), index, span)
        case _:
            return statement


def _unswitched(loop: For, jammed: Loops) -> Stmt | None:
    """A loop with `if`s in it that are the same for all its trips, as a nest to be jammed where none of them holds."""
    same = tuple(part for part in loop.body if _is_same(part, loop))
    plain = replace(loop, body=tuple(part for part in loop.body if part not in same))
    nest = _nest(plain, jammed) if same and plain.body else None
    if nest is None:
        return None
    tests = tuple(part.test for part in same if isinstance(part, If))
    test = Logic("or", tests, loop.span) if len(tests) > 1 else tests[0]
    return If(test, (loop,), (nest.loops(),), loop.span)


def _is_same(statement: Stmt, loop: For) -> bool:
    """Whether it is an `if` of isl's program, which has the place of its loops in the source, that is the same for all
    trips of a loop. Those of the source belong to statements."""
    if not isinstance(statement, If) or statement.orelse or statement.span != loop.span:
        return False
    if holds(Subscript, statement.test):
        return False
    return not names_in(statement.test) & {_variable(loop), *assigned_places(loop.body)}


def _nest(loop: For, jammed: Loops) -> _Jammed | None:
    """A loop to be jammed and those inside it down to the innermost: two loops with nothing between them around it, or
    one with statements before and after it. None where the loop is not the outermost of such a nest."""
    found = [loop]
    while len(found[-1].body) == 1 and isinstance(found[-1].body[0], For):
        found.append(found[-1].body[0])
    before: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()
    inside = [number for number, part in enumerate(found[-1].body) if _loops_in(part)]
    if len(found) == 1 and inside:
        (place, *others) = inside
        inner = loop.body[place]
        if others or not isinstance(inner, For):
            return None
        before, after = loop.body[:place], loop.body[place + 1 :]
        found.append(inner)
    *outer, innermost = found
    if not 1 <= len(outer) <= 2 or any(map(_loops_in, innermost.body)) or not all(map(_has_step_one, found)):
        return None
    if not all((_variable(one), _variable(innermost)) in jammed for one in outer):
        return None
    if len(outer) == 2 and _variable(outer[0]) in names_in(_space(outer[1])):
        return None
    return _Jammed(tuple(outer), before, innermost, after, loop.span)


def _loops_in(statement: Stmt) -> bool:
    return holds((For, While), statement)


def _has_step_one(loop: For) -> bool:
    match loop.space:
        case Range(step=Const(value=1)):
            return True
        case _:
            return False


def _variable(loop: For) -> str:
    assert isinstance(loop.space, Range)
    return loop.space.var


@dataclass(frozen=True)
class _Jammed:
    """Writes a nest with its outer loops jammed."""

    outer: tuple[For, ...]
    before: tuple[Stmt, ...]
    innermost: For
    after: tuple[Stmt, ...]
    span: Span

    @property
    def count(self) -> int:
        """The trips of each loop that are made together."""
        return TRIPS[len(self.outer)]

    def loops(self) -> For:
        """The strips of the outermost loop, whose inside is that of the others."""
        return self.strips(0, {})

    def strips(self, level: int, fixed: dict[str, Expr]) -> For:
        """The loop over strips of the loop at a level; those further out are in the strips that `fixed` says."""
        space = _space(self.outer[level])
        strip = f"{space.var}_strip"
        here = fixed | {space.var: Var(strip, self.span)}
        end = self.plus(Var(strip, self.span), self.count)
        ends: Expr = Compare((">",), (end, space.stop), self.span)
        if level + 1 < len(self.outer):
            together: tuple[Stmt, ...] = (self.strips(level + 1, here),)
            alone = self.rest(space, strip, self.outer[level].body)
        else:
            together, alone = self.together(here), self.apart(fixed, space, strip)
            tests = self.tests(here)
            ends = Logic("or", (ends, *tests), self.span) if tests else ends
        body = (If(ends, (alone,), together, self.span),)
        trips = Range(strip, space.start, space.stop, Const(self.count, self.span), self.span)
        return For(trips, body, SYNTHETIC, self.span)

    def rest(self, space: Range, strip: str, body: tuple[Stmt, ...]) -> For:
        """The trips of one strip, one after the other."""
        end = self.plus(Var(strip, self.span), self.count)
        stop = Call("min", (end, space.stop), self.span)
        return self.over(space, Var(strip, self.span), stop, body)

    def apart(self, fixed: dict[str, Expr], space: Range, strip: str) -> For:
        """The trips of a strip of the last jammed loop one after the other, for each of the trips further out."""
        return self.rest(space, strip, self.each(fixed, (*self.before, self.innermost, *self.after)))

    def together(self, strips: dict[str, Expr]) -> tuple[Stmt, ...]:
        """All trips of the strips in one trip of the innermost loop."""
        space, every = _space(self.innermost), list(self.trips(strips))
        plain = self.plain()
        common = tuple(_with(statement, values) for values in every for statement in plain)
        first, last = (Var(f"{space.var}_{end}", self.span) for end in ("low", "high"))
        bounds: list[Stmt] = []
        start, stop = space.start, space.stop
        early, late = self.before, self.after
        if names_in(space.start) & set(strips) or self.before:
            start = first
            early = (*early, self.over(space, space.start, Call("min", (first, space.stop), self.span), plain))
            most = self.plus(self.extreme("max", space.start, every), int(bool(self.before)))
            bounds.append(Assign(first, most, self.span))
        if names_in(space.stop) & set(strips) or self.after:
            stop = last
            late = (self.over(space, Call("max", (last, space.start), self.span), space.stop, plain), *late)
            least = self.plus(self.extreme("min", space.stop, every), -int(bool(self.after)))
            bounds.append(Assign(last, Call("max", (start, least), self.span), self.span))
        loop = self.over(space, start, stop, common)
        jammed = (*self.each(strips, early), loop, *self.each(strips, late))
        if not (self.before or self.after):
            return (*bounds, *jammed)
        # Without a common trip, those before it may lie beyond the statements beside a row.
        alone = self.each(strips, (*self.before, self.innermost, *self.after))
        return (*bounds, If(Compare((">=",), (start, stop), self.span), alone, jammed, self.span))

    def each(self, strips: dict[str, Expr], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements for every trip of the strips, one after the other."""
        if body:
            for name, first in reversed(strips.items()):
                space = replace(_space(self.innermost), var=name)
                body = (self.over(space, first, self.plus(first, self.count), body),)
        return body

    def over(self, space: Range, start: Expr, stop: Expr, body: tuple[Stmt, ...]) -> For:
        """A loop from `start` to `stop`."""
        return For(Range(space.var, start, stop, Const(1, self.span), self.span), body, SYNTHETIC, self.span)

    def extreme(self, name: str, bound: Expr, every: Iterable[dict[str, Expr]]) -> Expr:
        """The largest or smallest value of a bound in all trips of the strips."""
        different = dict.fromkeys(_with(bound, values) for values in every)
        return reduce(lambda left, right: Call(name, (left, right), self.span), different)

    def trips(self, strips: dict[str, Expr]) -> Iterable[dict[str, Expr]]:
        """The values of the jammed variables in each trip of the strips, in their order."""
        for offsets in product(range(self.count), repeat=len(strips)):
            yield {name: self.plus(strips[name], k) for name, k in zip(strips, offsets, strict=True)}

    def plus(self, expr: Expr, value: int) -> Expr:
        return Binary("+", expr, Const(value, self.span), self.span) if value else expr

    # -------------------------------------------------------- statements that only some trips have

    def tests(self, strips: dict[str, Expr]) -> tuple[Expr, ...]:
        """The conditions under which some trip of the strips has more to do than `plain`."""
        rare = [s.test for s in self.innermost.body if isinstance(s, If) and _is_same(s, self.innermost)]
        return tuple(dict.fromkeys(_with(test, values) for values in self.trips(strips) for test in rare))

    def plain(self) -> tuple[Stmt, ...]:
        """What a trip does where none of the conditions holds."""
        return tuple(statement for statement in self.innermost.body if not _is_same(statement, self.innermost))


def _space(loop: For) -> Range:
    assert isinstance(loop.space, Range)
    return loop.space


def _with(node: N, values: dict[str, Expr]) -> N:
    """The node with variables replaced by their values in one trip."""
    return rewrite(node, lambda part: values.get(part.name, part) if isinstance(part, Var) else part)
