"""What a `for` goes through, as ranges: arrays, `enumerate`, `zip`, `reversed`, tuples, `np.ndindex`, `numba.prange`.

    for x in v:                       for x_index in range(len(v)):                   x = v[x_index]
    for i, x in enumerate(v):         for i in range(len(v)):                         x = v[i]
    for x, y in zip(v, w):            for x_index in range(min(len(v), len(w))):      x = v[x_index]; y = w[x_index]
    for i in reversed(range(n)):      for i in range(n - 1, -1, -1):
    for i, j in np.ndindex(n, m):     for i_index in range(n): for j_index in range(m):   i, j = i_index, j_index
    for (i, j), x in np.ndenumerate(A):  the same, with x = A[i, j]
    for x in v[a:b]:                  for x_index in range(x_first, min(x_last, len(v))):  x = v[x_index]
    for x in np.sort(v):              x_items = np.sort(v), and over that

An iterable is a number of items and the item at each place (`Items`). A range that stands alone stays one. What Python
evaluates once, before the first iteration, is given a name there if it could be something else in a later one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from orion.dataclass import dataclass, replace
from orion.frontend.parse_expressions import parse_expression
from orion.frontend.ranges import from_last_to_first, literal_step, range_bounds, read_range, times, trips_of
from orion.frontend.rewritten_loops import given_name
from orion.frontend.scope import Scope, assigned_names
from orion.ir.constants import constant_value
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Expr,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Var,
    every,
    names_in,
)  # fmt: skip
from orion.ir.rewriting import with_parts
from orion.ir.spans import NOWHERE, without_spans
from orion.ir.sums import difference, literal, plus, total
from orion.source import Replacement, Span
from orion.typing.rewritten_names import names_of_items

FUNCTIONS = {
    "builtins": ("range", "enumerate", "zip", "reversed"),
    "numba": ("prange",),
    "numpy": ("ndindex", "ndenumerate"),
}
"""What makes iterables, by the package that it is of."""

Item = Expr | tuple["Item", ...]
"""What a target is given: a value, or what each of a tuple of targets is."""


@dataclass(frozen=True, slots=True)
class Items:
    """The items of an iterable: those at the places from `start` up to the least of `stops`."""

    stops: tuple[Expr, ...]
    at: Callable[[Expr], Item]
    start: Expr

    def from_zero(self) -> Items:
        """The same with places from 0 on."""
        if constant_value(self.start) == 0:
            return self
        stops = tuple(difference(stop, self.start) for stop in self.stops)
        return Items(stops, lambda place: self.at(total(self.start, place)), Const(0, self.start.span))

    def backwards(self, span: Span) -> Items:
        """The same from the last to the first."""
        items = self.from_zero()
        last = plus(_least(items.stops, span), -1)
        return replace(items, at=lambda place: items.at(difference(last, place)))

    def by_steps(self, width: int) -> Items:
        """Every so many of them."""
        if width == 1:
            return self
        stops = tuple(trips_of(self.start, stop, width) for stop in self.stops)
        return Items(stops, lambda place: self.at(total(self.start, times(place, width))), Const(0, self.start.span))


@dataclass(frozen=True, slots=True)
class Iteration:
    """A `for` as ranges, the outermost first; what is run `before` them, and what each iteration begins with."""

    loops: tuple[Range, ...]
    before: tuple[Stmt, ...] = ()
    first: tuple[Stmt, ...] = ()


def iteration(node: ast.For, scope: Scope) -> Iteration | None:
    """A `for` as ranges; None where it goes through the keys and values of a sparse array."""
    source = node.iter
    reader = _Reader(node, scope)
    match maker(source, scope):
        case "range" | "prange":
            return Iteration((read_range(node.target, source, scope),))
        case "ndindex" | "ndenumerate" as name:
            return reader.each_index() if name == "ndindex" else reader.each_element()
        case "reversed" if maker(inner := _only(source, scope), scope) == "range":
            return Iteration((from_last_to_first(read_range(node.target, inner, scope), inner, scope),))
        case "" if isinstance(source, ast.Name) and scope.is_plain(source.id) and _is_pair(node.target):
            return None
        case _:
            return reader.by_place()


def _is_pair(target: ast.expr) -> bool:
    """Whether it takes what may be keys and values of a sparse array; more than two names take a row apart."""
    match target:
        case ast.Tuple(parts):
            return len(parts) == 2 or not all(isinstance(part, ast.Name) for part in parts)
        case _:
            return False


def maker(node: ast.expr, scope: Scope) -> str:
    """The name of the function that makes an iterable; nothing for other expressions."""
    value = scope.value(node.func) if isinstance(node, ast.Call) else None
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    name = str(getattr(value, "__name__", ""))
    return name if name in FUNCTIONS.get(package, ()) else ""


def _only(node: ast.expr, scope: Scope) -> ast.expr:
    """The one argument of `reversed`."""
    assert isinstance(node, ast.Call)
    if len(node.args) != 1 or node.keywords:
        raise scope.refuse(node, "`reversed` takes one argument")
    return node.args[0]


# ---------------------------------------------------------------- items


class _Reader:
    """Reads what a `for` goes through. `before` is what is run before it, `changed` are the names that may have other
    values in later iterations."""

    def __init__(self, node: ast.For, scope: Scope) -> None:
        self.node, self.scope = node, scope
        self.before: list[Stmt] = []

    @cached_property
    def changed(self) -> set[str]:
        stored = assigned_names(ast.walk(self.node))
        return names_in(*(self.scope.variable(name, NOWHERE) for name in stored))

    def once(self, expr: Expr, name: str) -> Expr:
        """An expression as it is before the first iteration: a name that keeps it, where it may be another later."""
        reads = (
            part for part in every((Call, Subscript), expr) if not (isinstance(part, Call) and part.function == "len")
        )
        if isinstance(expr, Const) or (names_in(expr).isdisjoint(self.changed) and next(reads, None) is None):
            return expr
        return self.kept(expr, name)

    def kept(self, expr: Expr, name: str) -> Var:
        kept = Var(self.scope.free(f"{name}_{self.node.lineno}_{len(self.before)}"), expr.span)
        self.before.append(Assign(kept, expr, expr.span))
        return kept

    def array(self, base: Var) -> Var:
        """An array by a name that stands for it in all iterations."""
        return self.kept(base, "items") if base.name in self.changed else base

    def parsed(self, node: ast.expr, name: str) -> Expr:
        return with_parts(parse_expression(node, self.scope), lambda part: self.once(part, name))

    # ------------------------------------------------------------ a `for` by places

    def by_place(self) -> Iteration:
        """A loop over the places of the items. Its variable is what `enumerate` counts with, where that begins at 0."""
        node, span = self.node, self.scope.span(self.node, until=self.node.iter)
        found = self.items(node.iter)
        names = [part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)]
        counter = self.counter()
        place = counter if names.count(counter) == 1 else self.scope.free(f"{names[0]}_index")
        first = tuple(self.given(node.target, found.at(Var(place, span)), place))
        space = Range(place, found.start, _least(found.stops, span), Const(1, span), span)
        return Iteration((space,), tuple(self.before), first)

    def nothing(self, node: ast.expr) -> Exception:
        """The refusal of a loop without iterations."""
        text = None if self.node.orelse else ""
        what, hint = "this goes through nothing", "leave the loop out"
        return self.scope.refuse(node, what, "", hint, replaced_by=text, place=self.node)

    def counter(self) -> str:
        match self.node.iter, self.node.target:
            case ast.Call(_, [_], []), ast.Tuple([ast.Name(name), _]) if (
                maker(self.node.iter, self.scope) == "enumerate"
            ):
                return name
            case _:
                return ""

    def given(self, target: ast.expr, item: Item, place: str) -> Iterator[Stmt]:
        """What gives the targets of a `for` their values."""
        span = self.scope.span(target)
        match target, item:
            case ast.Name(name), _ if not isinstance(item, tuple | Tuple):
                if not (isinstance(item, Var) and item.name == name == place):
                    yield Assign(Var(name, span), item, span)
            case ast.Tuple(parts) | ast.List(parts), tuple() if len(parts) == len(item):
                for part, value in zip(parts, item, strict=True):
                    yield from self.given(part, value, place)
            case ast.Tuple(parts) | ast.List(parts), Subscript():
                names = tuple(Var(part.id, span) for part in parts if isinstance(part, ast.Name))
                if len(names) < len(parts):
                    raise self.refused(target)
                yield Assign(Tuple(names, span), item, span)
            case ast.Name(name), tuple() if not any(isinstance(one, tuple | Tuple) for one in item):
                raise self.refused(target, names_of_items(span, name, len(item), self.scope.source))
            case _:
                raise self.refused(target)

    def refused(self, target: ast.expr, names: Replacement | None = None) -> Exception:
        what = f"`{ast.unparse(target)}` does not take what this goes through apart"
        hint = "write as many names as there are items, and a name of its own for each item that is a tuple"
        return self.scope.refuse(target, what, "", hint, replacement=names)

    # ------------------------------------------------------------ a range for each dimension

    def each_index(self) -> Iteration:
        """`for i, j in np.ndindex(A.shape)`, `np.ndindex(n, m)` or `np.ndindex((n, m))`."""
        source = self.node.iter
        assert isinstance(source, ast.Call)
        names = self.index_names(self.node.target)
        given = source.args[0].elts if len(source.args) == 1 and isinstance(source.args[0], ast.Tuple) else source.args
        if len(given) == 1 and len(names) > 1:
            match parse_expression(given[0], self.scope):
                case Call("attribute:shape", (Var() as array,)):
                    return self.over_axes(array, names)
        if source.keywords or len(given) != len(names):
            raise self.not_apart()
        return self.counting(names, [self.parsed(length, "length") for length in given])

    def each_element(self) -> Iteration:
        """`for (i, j), x in np.ndenumerate(A)`."""
        match self.node.iter, self.node.target:
            case ast.Call(_, [ast.Name() as array], []), ast.Tuple([keys, ast.Name(value)]):
                base = self.array(Var(array.id, self.scope.span(array)))
                found = self.over_axes(base, self.index_names(keys))
                element = Subscript(base, tuple(Var(space.var, base.span) for space in found.loops), base.span)
                return replace(found, first=(*found.first, Assign(Var(value, base.span), element, base.span)))
        raise self.not_apart(
            "write `for (i, j), x in np.ndenumerate(A):`, with a name for the array and each dimension"
        )

    def index_names(self, target: ast.expr) -> list[str]:
        parts: list[ast.expr] = getattr(target, "elts", [])
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        if not names or len(names) < len(parts):
            hint = "write a name for each dimension: `for i, j in np.ndindex(A.shape):`"
            raise self.scope.refuse(target, "the subscripts are not taken apart into names", "", hint)
        if len(names) > 1 and _breaks(self.node.body):
            hint = "write one `for … in range(…)` inside another, and leave both: by a flag, or a `return`"
            raise self.not_apart(hint, "its `break` would leave the innermost of several loops")
        return names

    def not_apart(self, hint: str = "write one `for … in range(…)` inside another", why: str = "") -> Exception:
        return self.scope.refuse(self.node.iter, f"`{ast.unparse(self.node.iter)}` is not taken apart", why, hint)

    def over_axes(self, array: Var, names: list[str]) -> Iteration:
        """A range for each axis of an array, which must be as many as there are names."""
        place = f"length_{self.node.lineno}_{len(self.before)}"
        lengths = [Var(self.scope.free(f"{place}_{axis}"), array.span) for axis in range(len(names))]
        shape: Expr = Call("attribute:shape", (array,), array.span)
        self.before.append(Assign(Tuple(tuple(lengths), array.span), shape, array.span))
        return self.counting(names, lengths)

    def counting(self, names: Sequence[str], lengths: Sequence[Expr]) -> Iteration:
        """Ranges from 0 on. The names get their values in an iteration: there may be none, and it may change them."""
        places = [self.scope.free(f"{name}_index") for name in names]
        loops = tuple(
            Range(place, Const(0, end.span), end, Const(1, end.span), end.span)
            for place, end in zip(places, lengths, strict=True)
        )
        pairs = zip(names, loops, strict=True)
        first = tuple(Assign(Var(name, space.span), Var(space.var, space.span), space.span) for name, space in pairs)
        return Iteration(loops, tuple(self.before), first)

    # ------------------------------------------------------------ items

    def items(self, node: ast.expr) -> Items:
        """The items of an iterable; an error where they cannot be told."""
        match maker(node, self.scope), node:
            case "range" | "prange", _:
                return self.numbers(node)
            case "enumerate", ast.Call():
                return self.enumerated(node)
            case "zip", ast.Call():
                return self.side_by_side(node)
            case "reversed", ast.Call():
                return self.from_behind(node)
            case "ndindex" | "ndenumerate", _:
                raise self.refusal(node)
            case _, ast.Tuple([]) | ast.List([]):
                raise self.nothing(node)
            case _, ast.Tuple(parts) | ast.List(parts):
                return _one_by_one([self.parsed(part, "item") for part in parts], self.scope.span(node))
            case _:
                return self.of_array(node)

    def numbers(self, node: ast.expr) -> Items:
        start, stop, by = range_bounds(node, self.scope)
        step = literal_step(by, node, self.scope)
        start = self.once(start, "start")
        trips = trips_of(start, stop, step)
        return Items((trips,), lambda place: total(start, times(place, step)), Const(0, trips.span))

    def enumerated(self, node: ast.Call) -> Items:
        begin = [part.value for part in node.keywords if part.arg == "start"] + node.args[1:]
        if not node.args or len(begin) > 1 or len(node.args) + len(node.keywords) > 2:
            raise self.refusal(node)
        inner = self.items(node.args[0]).from_zero()
        first = self.parsed(begin[0], "start") if begin else Const(0, self.scope.span(node))
        if isinstance(first, Const) and not isinstance(first.value, int):
            raise self.scope.refuse(begin[0], "`enumerate` begins at an integer", "", "write `int(…)`")
        return replace(inner, at=lambda place: (total(first, place), inner.at(place)))

    def side_by_side(self, node: ast.Call) -> Items:
        if not node.args:
            raise self.nothing(node)
        strict = [part for part in node.keywords if not (part.arg == "strict" and _is_false(part.value))]
        if strict:
            why = "whether the lengths are equal is not looked at"
            raise self.scope.refuse(node, f"`{ast.unparse(node)}` is not supported", why, "leave `strict` out")
        each = [self.items(part) for part in node.args]
        if len({without_spans(one.start) for one in each}) > 1:
            each = [one.from_zero() for one in each]
        stops = {without_spans(stop): stop for one in each for stop in one.stops}
        return Items(tuple(stops.values()), lambda place: tuple(one.at(place) for one in each), each[0].start)

    def from_behind(self, node: ast.Call) -> Items:
        source = _only(node, self.scope)
        if maker(source, self.scope) in ("enumerate", "zip", "reversed"):
            why = "Python's `reversed` takes no iterators"
            raise self.scope.refuse(node, f"`{ast.unparse(node)}` is not supported", why)
        return self.items(source).backwards(self.scope.span(node))

    def of_array(self, node: ast.expr) -> Items:
        """The rows or elements of an array; one that has no name, or may be another later, is given one."""
        match parse_expression(node, self.scope):
            case Tuple(values, span):
                return _one_by_one([self.once(value, "item") for value in values], span)
            case Subscript(base, (Slice(lower, upper, step, span),)) if (width := _width(step)) > 0:
                return self.of_slice(self.array(base), lower, upper).by_steps(width)
            case Subscript(base, (Slice(None, None, step, span),)) if _width(step) == -1:
                return self.of_slice(self.array(base), None, None).backwards(span)
            case Subscript(base, index, span) if not any(isinstance(part, Slice) for part in index):
                row, parts = self.array(base), tuple(self.once(part, "row") for part in index)
                count = Call("len", (Subscript(row, parts, span),), span)
                return Items((count,), lambda place: Subscript(row, (*parts, place), span), Const(0, span))
            case Var() | Call() | Subscript() | Binary() as array:
                items = self.array(array) if isinstance(array, Var) else self.kept(array, "items")
                count = Call("len", (items,), array.span)
                return Items((count,), lambda place: Subscript(items, (place,), array.span), Const(0, array.span))
        raise self.refusal(node)

    def of_slice(self, base: Var, lower: Expr | None, upper: Expr | None) -> Items:
        """The rows or elements of `v[lower:upper]`, at the places that they have in `v`: bounds that are negative count
        from the end, and places before the first or past the last are none."""
        span = base.span
        length = Call("len", (base,), span)
        start = Const(0, span) if lower is None else self.place(lower, length, "first")
        stops: tuple[Expr, ...] = (length,)
        if upper is not None:
            known = constant_value(upper)
            last = self.place(upper, length, "last")
            stops = (plus(length, known),) if known is not None and known < 0 else (last, length)
        return Items(stops, lambda at: Subscript(base, (at,), span), start)

    def place(self, bound: Expr, length: Expr, name: str) -> Expr:
        """A bound of a slice as a place from 0 on."""
        zero = Const(0, bound.span)
        known = constant_value(bound)
        if known is not None:
            return literal(known, bound.span) if known >= 0 else Call("max", (plus(length, known), zero), bound.span)
        kept = self.once(bound, name)
        if self.scope.is_counted(kept):
            return kept
        below = Call("max", (Binary("+", kept, length, bound.span), zero), bound.span)
        return Choose(Compare(("<",), (kept, zero), bound.span), below, kept, bound.span)

    def refusal(self, node: ast.expr) -> Exception:
        what = f"a loop over `{ast.unparse(node)}` is not supported"
        why = "a `for` goes over a range, over arrays, or over the elements of a sparse array that is an argument"
        is_computed = isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp)
        found = given_name(node, "values", self.scope) if is_computed else None
        return self.scope.refuse(node, what, why, "write `for i in range(…):` and use subscripts", replacement=found)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a `break` leaves the loop that this is the body of."""
    for statement in body:
        match statement:
            case ast.Break():
                return True
            case ast.If(_, then, orelse) if _breaks(then) or _breaks(orelse):
                return True
            case ast.For(orelse=orelse) | ast.While(orelse=orelse) if _breaks(orelse):
                return True
    return False


def _width(step: Expr | None) -> int:
    """The step of a slice; 0 for one that is not a number."""
    return 1 if step is None else constant_value(step) or 0


def _least(stops: tuple[Expr, ...], span: Span) -> Expr:
    return stops[0] if len(stops) == 1 else Call("min", stops, span)


def _one_by_one(values: list[Expr], span: Span) -> Items:
    """The values of a tuple: one that is chosen by the place, or a sum where they are evenly spaced."""
    count, zero = literal(len(values), span), Const(0, span)
    numbers = [constant_value(value) for value in values]
    first, *others = numbers
    if first is not None and others and others[0] is not None:
        step = others[0] - first
        if numbers == [first + step * place for place in range(len(values))]:
            return Items((count,), lambda place: total(literal(first, span), times(place, step)), zero)
    return Items((count,), lambda place: _chosen(values, place), zero)


def _chosen(values: list[Expr], place: Expr) -> Item:
    if all(isinstance(value, Tuple) for value in values):
        parts = [[*value.items] for value in values if isinstance(value, Tuple)]
        if len({len(one) for one in parts}) == 1:
            return tuple(_chosen([*column], place) for column in zip(*parts, strict=True))
    *before, found = values
    for number, value in reversed([*enumerate(before)]):
        test = Compare(("==",), (place, literal(number, value.span)), value.span)
        found = Choose(test, value, found, value.span)
    return found
