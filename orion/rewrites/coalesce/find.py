"""Loops over the segments of an array in which nothing but the bounds depends on the segment.

    for c in range(len(first) - 1):                 # the colours, or the levels
        for k in range(first[c], first[c + 1]):     # the vertices of one
            i = order[k]
            …

Where `first` begins with 0, never goes down, and ends with `len(order)`, and all of its segments are gone through,
these lie one behind the other and cover all k, each once:

    first[0] = 0,  first[c] ≤ first[c + 1],  first[m] = n   ⟹   Σ_c [first[c], first[c + 1])  =  [0, n)  in order

so that one loop over `range(len(order))` runs the same iterations in the same order. (Polychronopoulos, *Loop
coalescing: a compiler transformation for parallel machines*, 1987; there for bounds that are known.)
"""

from __future__ import annotations

from collections.abc import Iterator

from orion.analysis.one_loop import AnalysedLoop, AsWritten, may_be_shared
from orion.dataclass import dataclass
from orion.ir.assigned import assigned_names, assigned_places, holds_break
from orion.ir.constants import constant_value
from orion.ir.function import Function
from orion.ir.nodes import Expr, For, Node, Range, Return, Stmt, Subscript, Var, children, every, holds, names_in
from orion.ir.spans import without_spans
from orion.ir.sums import plus
from orion.ir.types import ArrayType
from orion.source import Span
from orion.typing.expression_types import Typing


@dataclass(frozen=True, slots=True)
class Segments:
    """Two loops over the segments of an array, `count` of them, whose starts are in `starts`: `inner` goes through an
    axis of `array`."""

    inner: For
    starts: str
    count: Expr
    array: str
    axis: int


def find(loop: AnalysedLoop, typing: Typing) -> frozenset[Span]:
    """The places of the loops over segments in a loop that is serial."""
    if may_be_shared(loop) or not isinstance(loop.form, AsWritten):
        return frozenset()
    return frozenset(one.span for one in every(For, *loop.nest.loops[:1]) if segments(one, typing) is not None)


def segments(loop: For, typing: Typing) -> Segments | None:
    """What a loop goes through, if it is one over the segments of an array.

    Its body is one loop, which no statement leaves; of its variable nothing is made but the bounds of that; the array
    of starts is written nowhere inside.
    """
    match loop:
        case For(Range(c, first, last, step), (For(Range(k, start, stop, inner_step), body) as inner,)):
            pass
        case _:
            return None
    match start, stop:
        case Subscript(Var(starts), (Var(at),)), Subscript(Var(ends), (end,)) if starts == ends and at == c:
            pass
        case _:
            return None
    if (constant_value(first), constant_value(step), constant_value(inner_step)) != (0, 1, 1):
        return None
    if without_spans(end) != without_spans(plus(Var(c, loop.span), 1)):
        return None
    if holds_break(body) or holds(Return, *body) or {c, starts} & (names_in(*body) | assigned_names(body)):
        return None
    found = next(_gone_through(k, body, typing), None)
    return None if found is None or k in assigned_places(body) else Segments(inner, starts, last, *found)


def is_read_elsewhere(loop: For, function: Function) -> bool:
    """Whether the number of the segment is read anywhere but in the two loops and in others over a variable of that
    name: it would have another value there."""
    assert isinstance(loop.space, Range)
    name = loop.space.var

    def reads(node: Node) -> bool:
        match node:
            case Var(read):
                return read == name
            case For(span=span) if span == loop.span:
                return False
            case For(Range(var) as space) if var == name:
                return any(map(reads, children(space)))
            case _:
                return any(map(reads, children(node)))

    return name in function.params or any(reads(statement) for statement in function.body)


def _gone_through(variable: str, body: tuple[Stmt, ...], typing: Typing) -> Iterator[tuple[str, int]]:
    """The axes of arrays that a variable itself is a subscript of."""
    for one in every(Subscript, *body):
        for axis, part in enumerate(one.index):
            if (
                isinstance(part, Var)
                and part.name == variable
                and isinstance(typing.arguments.get(one.base.name), ArrayType)
            ):
                yield one.base.name, axis
