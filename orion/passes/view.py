"""A view: a part of an array that a name stands for, and the part of it that a further subscript takes."""

from __future__ import annotations

from orion.dataclass import dataclass
from orion.ir.constants import constant_value
from orion.ir.nodes import Binary, Const, Expr, Slice, Subscript, Var, names_in
from orion.ir.spans import NOWHERE, with_span, without_spans
from orion.source import Span


@dataclass(frozen=True, slots=True)
class View:
    """`base[index]`; without an index, another name for the whole of `base`."""

    base: str
    index: tuple[Expr, ...]

    def at(self, span: Span) -> Var | Subscript:
        """The view as an expression that stands at `span`."""
        base = Var(self.base, span)
        return Subscript(base, tuple(with_span(part, span) for part in self.index), span) if self.index else base

    def mentions(self, name: str) -> bool:
        """Whether the view would be another one if `name` were assigned."""
        return name == self.base or name in self.index_names()

    def index_names(self) -> set[str]:
        """The names in the subscripts."""
        return names_in(*self.index)

    def says_same(self, other: object) -> bool:
        """Whether it is the same part of the same array, wherever in the source it was taken."""
        if not isinstance(other, View):
            return False
        return without_spans(self.at(NOWHERE)) == without_spans(other.at(NOWHERE))


def compose(view: View, index: tuple[Expr, ...], positive: frozenset[str]) -> tuple[Expr, ...] | None:
    """The subscripts of `base` for `view[index]`; None where there are none that surely mean the same.

    Each subscript of `index` goes to the next axis that `view` leaves: in place of `:`, after the start of `a:`, or
    behind the subscripts of `view`. `positive` are names that are never negative: only those may be counted from the
    start of a slice, since a negative subscript counts from its end.

    >>> from orion.ir.printer import print_expr
    >>> from orion.ir.spans import NOWHERE
    >>> i, k = Var("i", NOWHERE), Var("k", NOWHERE)
    >>> rest = Slice(Const(2, NOWHERE), None, None, NOWHERE)
    >>> [print_expr(part) for part in compose(View("W", (i, rest)), (k,), frozenset({"k"}))]
    ['i', '2 + k']
    >>> compose(View("W", (i, rest)), (k,), frozenset()) is None
    True
    """
    waiting = list(index)
    parts: list[Expr] = []
    for part in view.index:
        if not isinstance(part, Slice) or not waiting:
            parts.append(part)
            continue
        inner = _within(part, waiting.pop(0), positive)
        if inner is None:
            return None
        parts.append(inner)
    return (*parts, *waiting)


def _within(outer: Slice, inner: Expr, positive: frozenset[str]) -> Expr | None:
    """The subscript that takes `inner` from what the slice `outer` leaves."""
    if outer.step is not None:
        return None
    if isinstance(inner, Slice) and inner.lower is None and inner.upper is None and inner.step is None:
        return outer
    if outer.lower is None and outer.upper is None:
        return inner
    if (place := _place_in(outer, inner)) is not None:
        return place
    start = outer.lower
    if outer.upper is not None or start is None or not _is_positive(start, positive):
        return None  # where the slice ends would be lost, or where it starts is not known
    if isinstance(inner, Slice):
        return _shifted(inner, start, positive)
    return _sum(start, inner) if _is_positive(inner, positive) else None


def _place_in(outer: Slice, inner: Expr) -> Const | None:
    """The place of an element of a slice, `1` of `2:5`: the array has it where the slice does."""
    first = 0 if outer.lower is None else constant_value(outer.lower)
    last, place = (None if part is None else constant_value(part) for part in (outer.upper, inner))
    if first is None or last is None or place is None or first < 0 or not 0 <= place < last - first:
        return None
    return Const(first + place, inner.span)


def _shifted(inner: Slice, start: Expr, positive: frozenset[str]) -> Slice | None:
    lower = inner.lower
    if inner.upper is not None or inner.step is not None or lower is None or not _is_positive(lower, positive):
        return None
    return Slice(_sum(start, lower), None, None, inner.span)


def _sum(start: Expr, added: Expr) -> Expr:
    if isinstance(start, Const) and isinstance(added, Const):
        assert isinstance(start.value, int)
        assert isinstance(added.value, int)
        return Const(start.value + added.value, added.span)
    return Binary("+", start, added, added.span)


def _is_positive(expr: Expr, positive: frozenset[str]) -> bool:
    match expr:
        case Const(int(value)):
            return value >= 0
        case Var(name):
            return name in positive
        case Binary("+" | "*", left, right):
            return _is_positive(left, positive) and _is_positive(right, positive)
        case _:
            return False
