"""What a `for` goes through, as ranges: arrays, `enumerate`, `zip`, `reversed`, tuples, `np.ndindex`, `numba.prange`.

    for x in v:                       for x_index in range(len(v)):                   x = v[x_index]
    for i, x in enumerate(v):         for i in range(len(v)):                         x = v[i]
    for x, y in zip(v, w):            for x_index in range(min(len(v), len(w))):      x = v[x_index]; y = w[x_index]
    for i in reversed(range(n)):      for i in range(n - 1, -1, -1):
    for i, j in np.ndindex(A.shape):  for i in range(A.shape[0]): for j in range(A.shape[1]):
    for (i, j), x in np.ndenumerate(A):  the same, with x = A[i, j]
    for x in v[a:b]:                  for x_index in range(x_first, min(x_last, len(v))):  x = v[x_index]
    for x in np.sort(v):              x_items = np.sort(v), and over that

An iterable is a number of items and the item at each place (`Items`). A range that stands alone stays one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from orion.frontend.parse_expressions import parse_expression
from orion.frontend.scope import Scope
from orion.ir.constants import as_literal, constant_value
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
)  # fmt: skip
from orion.ir.spans import without_spans
from orion.source import Span

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
    """The items of an iterable: those at the places from `start` up to the least of `stops`; what is run `before`."""

    stops: tuple[Expr, ...]
    at: Callable[[Expr], Item]
    start: Expr
    before: tuple[Stmt, ...] = ()

    def from_zero(self) -> Items:
        """The same with places from 0 on."""
        if constant_value(self.start) == 0:
            return self
        stops = tuple(_difference(stop, self.start) for stop in self.stops)
        return Items(stops, lambda place: self.at(_sum(self.start, place)), Const(0, self.start.span), self.before)


@dataclass(frozen=True, slots=True)
class Iteration:
    """A `for` as ranges, the outermost first; what is run `before` them, and what each iteration begins with."""

    loops: tuple[Range, ...]
    before: tuple[Stmt, ...] = ()
    first: tuple[Stmt, ...] = ()


def iteration(node: ast.For, scope: Scope) -> Iteration | None:
    """A `for` as ranges; None where it goes through the keys and values of a sparse array."""
    source = node.iter
    match _maker(source, scope):
        case "range" | "prange":
            return Iteration((_range(node.target, source, scope),))
        case "ndindex":
            return _each_index(node, scope)
        case "ndenumerate":
            return _each_element(node, scope)
        case "reversed" if _maker(inner := _only(source, scope), scope) == "range":
            return Iteration((_backwards(_range(node.target, inner, scope), inner, scope),))
        case "enumerate" if isinstance(node.target, ast.Tuple) and isinstance(node.target.elts[0], ast.Name):
            return _by_place(node, node.target.elts[0].id, scope)
        case "" if isinstance(source, ast.Name) and scope.is_plain(source.id) and _is_pair(node.target):
            return None
        case _:
            return _by_place(node, "", scope)


def _is_pair(target: ast.expr) -> bool:
    """Whether it takes what may be keys and values of a sparse array; more than two names take a row apart."""
    match target:
        case ast.Tuple(parts):
            return len(parts) == 2 or not all(isinstance(part, ast.Name) for part in parts)
        case _:
            return False


def _maker(node: ast.expr, scope: Scope) -> str:
    """The name of the function that makes an iterable; nothing for other expressions."""
    value = scope.value(node.func) if isinstance(node, ast.Call) else None
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    name = str(getattr(value, "__name__", ""))
    return name if name in FUNCTIONS.get(package, ()) else ""


def _by_place(node: ast.For, counter: str, scope: Scope) -> Iteration:
    """A `for` over the places of its items: `counter` is the name that has the place, where it begins at 0."""
    found = items(node.iter, scope)
    span = scope.span(node, until=node.iter)
    names = [part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)]
    place = counter if names.count(counter) == 1 and _starts_at_zero(node.iter) else scope.free(f"{names[0]}_index")
    first = tuple(_given(node.target, found.at(Var(place, span)), place, scope))
    space = Range(place, found.start, _least(found.stops, span), Const(1, span), span)
    return Iteration((space,), found.before, first)


def _least(stops: tuple[Expr, ...], span: Span) -> Expr:
    return stops[0] if len(stops) == 1 else Call("min", stops, span)


def _starts_at_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords


def _given(target: ast.expr, item: Item, place: str, scope: Scope) -> Iterator[Stmt]:
    """What gives the targets of a `for` their values."""
    span = scope.span(target)
    match target, item:
        case ast.Name(name), _ if not isinstance(item, tuple | Tuple):
            if not (isinstance(item, Var) and item.name == name == place):
                yield Assign(Var(name, span), item, span)
        case ast.Tuple(parts) | ast.List(parts), tuple() if len(parts) == len(item):
            for part, value in zip(parts, item, strict=True):
                yield from _given(part, value, place, scope)
        case ast.Tuple(parts) | ast.List(parts), Subscript() if all(isinstance(part, ast.Name) for part in parts):
            yield Assign(Tuple(tuple(Var(part.id, span) for part in parts), span), item, span)  # type: ignore[attr-defined]
        case _:
            what = f"`{ast.unparse(target)}` does not take what this goes through apart"
            hint = "write as many names as there are items, and a name of its own for each item that is a tuple"
            raise scope.refuse(target, what, "", hint)


# ---------------------------------------------------------------- ranges


def _range(target: ast.expr, node: ast.expr, scope: Scope) -> Range:
    if not isinstance(target, ast.Name):
        raise scope.refuse(target, "a range has one loop variable", "", "write `for i in range(…):`")
    return Range(target.id, *_bounds(node, scope), scope.span(node))


def _bounds(node: ast.expr, scope: Scope) -> tuple[Expr, Expr, Expr]:
    assert isinstance(node, ast.Call)
    if not 1 <= len(node.args) <= 3 or node.keywords:
        raise scope.refuse(node, "`range` takes one to three bounds", "", "write `range(start, stop, step)`")
    span = scope.span(node)
    bounds = [parse_expression(argument, scope) for argument in node.args]
    if len(bounds) == 1:
        bounds = [Const(0, span), *bounds]
    if len(bounds) == 2:
        bounds = [*bounds, Const(1, span)]
    step = as_literal(bounds[2])
    if isinstance(step, Const) and step.value == 0:
        raise scope.refuse(node.args[2], "the step of a range is 0")
    return bounds[0], bounds[1], step


def _step(step: Expr, node: ast.expr, scope: Scope) -> int:
    found = constant_value(step)
    if found is None:
        what = "the step of this range is not a number"
        raise scope.refuse(node, what, "how many items it has depends on its sign", "write the step as a number")
    return found


def _backwards(space: Range, node: ast.expr, scope: Scope) -> Range:
    """The same values from the last to the first."""
    step = _step(space.step, node, scope)
    trips = _trips(space.start, space.stop, step)
    if abs(step) == 1:
        last = _plus(space.stop, -step)
    else:
        last = _sum(space.start, _times(_plus(trips, -1), step))
    return Range(space.var, last, _plus(space.start, -step), _number(-step, space.span), space.span)


def _trips(start: Expr, stop: Expr, step: int) -> Expr:
    """How many values a range has, if it has any; else 0 or less."""
    if step < 0:
        return _trips(stop, start, -step)
    apart = stop if constant_value(start) == 0 else _plus(stop, -(constant_value(start) or 0))
    if constant_value(start) is None:
        apart = Binary("-", stop, start, stop.span)
    return apart if step == 1 else Binary("//", _plus(apart, step - 1), _number(step, stop.span), stop.span)


def _each_index(node: ast.For, scope: Scope) -> Iteration:
    """`for i, j in np.ndindex(A.shape)`, `np.ndindex(n, m)` or `np.ndindex((n, m))`."""
    assert isinstance(node.iter, ast.Call)
    names = _index_names(node.target, node, scope)
    match [parse_expression(argument, scope) for argument in node.iter.args]:
        case [Call("attribute:shape", (Var() as array,))]:
            return _over_axes(array, names, node, scope)
        case [Tuple(lengths)] if len(lengths) == len(names):
            return Iteration(_counting(names, lengths))
        case lengths if len(lengths) == len(names):
            return Iteration(_counting(names, lengths))
    what = f"`{ast.unparse(node.iter)}` is not taken apart"
    raise scope.refuse(node.iter, what, "", "write one `for … in range(…)` inside another")


def _each_element(node: ast.For, scope: Scope) -> Iteration:
    """`for (i, j), x in np.ndenumerate(A)`."""
    match node.iter, node.target:
        case ast.Call(_, [ast.Name() as array], []), ast.Tuple([keys, ast.Name(value)]):
            base = Var(array.id, scope.span(array))
            found = _over_axes(base, _index_names(keys, node, scope), node, scope)
            element = Subscript(base, tuple(Var(space.var, base.span) for space in found.loops), base.span)
            return replace(found, first=(Assign(Var(value, base.span), element, base.span),))
    hint = "write `for (i, j), x in np.ndenumerate(A):`, with a name for each dimension"
    raise scope.refuse(node.iter, f"`{ast.unparse(node.iter)}` is not taken apart", "", hint)


def _index_names(target: ast.expr, node: ast.For, scope: Scope) -> list[str]:
    parts: list[ast.expr] = getattr(target, "elts", [])
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    if not names or len(names) < len(parts):
        hint = "write a name for each dimension: `for i, j in np.ndindex(A.shape):`"
        raise scope.refuse(target, "the subscripts are not taken apart into names", "", hint)
    if len(names) > 1 and _may_be_left(node):
        what = f"`{ast.unparse(node.iter)}` is not taken apart"
        why = "a `break` would leave the innermost of several loops"
        raise scope.refuse(node.iter, what, why, "write one `for … in range(…)` inside another")
    return names


def _over_axes(array: Var, names: list[str], node: ast.For, scope: Scope) -> Iteration:
    """A range for each axis of an array, which must be as many as there are names."""
    lengths = [Var(scope.free(f"{_named('length', node.iter)}_{axis}"), array.span) for axis in range(len(names))]
    shape: Expr = Call("attribute:shape", (array,), array.span)
    before = Assign(Tuple(tuple(lengths), array.span), shape, array.span)
    return Iteration(_counting(names, lengths), (before,))


def _counting(names: Sequence[str], lengths: Sequence[Expr]) -> tuple[Range, ...]:
    """Ranges from 0 on."""
    pairs = zip(names, lengths, strict=True)
    return tuple(Range(name, Const(0, end.span), end, Const(1, end.span), end.span) for name, end in pairs)


def _may_be_left(node: ast.For) -> bool:
    """Whether a `break` may leave a loop, or an `else` follows it."""
    inner = (part for statement in node.body for part in ast.walk(statement))
    return bool(node.orelse) or any(isinstance(part, ast.Break) for part in inner)


# ---------------------------------------------------------------- items


def items(node: ast.expr, scope: Scope) -> Items:
    """The items of an iterable; an error where they cannot be told."""
    match _maker(node, scope), node:
        case "range" | "prange", _:
            return _numbers(node, scope)
        case "enumerate", ast.Call():
            return _enumerated(node, scope)
        case "zip", ast.Call():
            return _side_by_side(node, scope)
        case "reversed", ast.Call():
            return _from_behind(node, scope)
        case "ndindex" | "ndenumerate", _:
            raise _refusal(node, scope)
        case _, ast.Tuple(parts) | ast.List(parts) if parts:
            return _one_by_one([parse_expression(part, scope) for part in parts], scope.span(node))
        case _:
            return _of_array(node, scope)


def _numbers(node: ast.expr, scope: Scope) -> Items:
    start, stop, by = _bounds(node, scope)
    step = _step(by, node, scope)
    trips = _trips(start, stop, step)
    return Items((trips,), lambda place: _sum(start, _times(place, step)), Const(0, trips.span))


def _enumerated(node: ast.Call, scope: Scope) -> Items:
    begin = [part.value for part in node.keywords if part.arg == "start"] + node.args[1:]
    if not node.args or len(begin) > 1 or len(node.args) + len(node.keywords) > 2:
        raise _refusal(node, scope)
    first = parse_expression(begin[0], scope) if begin else Const(0, scope.span(node))
    inner = items(node.args[0], scope).from_zero()
    return replace(inner, at=lambda place: (_sum(first, place), inner.at(place)))


def _side_by_side(node: ast.Call, scope: Scope) -> Items:
    strict = [part for part in node.keywords if not (part.arg == "strict" and _is_false(part.value))]
    if strict or not node.args:
        why = "whether the lengths are equal is not looked at"
        raise scope.refuse(node, f"`{ast.unparse(node)}` is not supported", why, "leave `strict` out")
    each = [items(part, scope) for part in node.args]
    if len({without_spans(one.start) for one in each}) > 1:
        each = [one.from_zero() for one in each]
    stops = {without_spans(stop): stop for one in each for stop in one.stops}
    before = tuple(statement for one in each for statement in one.before)
    return Items(tuple(stops.values()), lambda place: tuple(one.at(place) for one in each), each[0].start, before)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _from_behind(node: ast.Call, scope: Scope) -> Items:
    source = _only(node, scope)
    if _maker(source, scope) in ("enumerate", "zip"):
        raise scope.refuse(node, f"`{ast.unparse(node)}` is not supported", "Python's `reversed` takes no iterators")
    inner = items(source, scope).from_zero()
    last = _plus(_least(inner.stops, scope.span(node)), -1)
    return replace(inner, at=lambda place: inner.at(Binary("-", last, place, place.span)))


def _only(node: ast.expr, scope: Scope) -> ast.expr:
    """The one argument of `reversed`."""
    assert isinstance(node, ast.Call)
    if len(node.args) != 1 or node.keywords:
        raise scope.refuse(node, "`reversed` takes one argument")
    return node.args[0]


def _one_by_one(values: list[Expr], span: Span) -> Items:
    """The values of a tuple: one that is chosen by the place, or a sum where they are evenly spaced."""
    count, zero = _number(len(values), span), Const(0, span)
    numbers = [constant_value(value) for value in values]
    first, *others = numbers
    if first is not None and others and others[0] is not None:
        step = others[0] - first
        if numbers == [first + step * place for place in range(len(values))]:
            return Items((count,), lambda place: _sum(_number(first, span), _times(place, step)), zero)
    return Items((count,), lambda place: _chosen(values, place), zero)


def _chosen(values: list[Expr], place: Expr) -> Item:
    if all(isinstance(value, Tuple) for value in values):
        parts = [[*value.items] for value in values if isinstance(value, Tuple)]
        if len({len(one) for one in parts}) == 1:
            return tuple(_chosen([*column], place) for column in zip(*parts, strict=True))
    *before, found = values
    for number, value in reversed([*enumerate(before)]):
        test = Compare(("==",), (place, _number(number, value.span)), value.span)
        found = Choose(test, value, found, value.span)
    return found


def _of_array(node: ast.expr, scope: Scope) -> Items:
    """The rows or elements of an array; one that has no name is given one."""
    array = parse_expression(node, scope)
    span, zero = array.span, Const(0, array.span)
    match array:
        case Tuple(values):
            return _one_by_one([*values], span)
        case Var():
            return Items((Call("len", (array,), span),), lambda place: Subscript(array, (place,), span), zero)
        case Subscript(base, index) if not any(isinstance(part, Slice) for part in index):
            count = Call("len", (array,), span)
            return Items((count,), lambda place: Subscript(base, (*index, place), span), zero)
        case Subscript(base, (Slice(lower, upper, None),)):
            return _of_slice(base, lower, upper, node, scope)
        case Call() | Subscript() | Binary():
            name = Var(scope.free(_named("items", node)), span)
            made = Assign(name, array, span)
            return Items((Call("len", (name,), span),), lambda place: Subscript(name, (place,), span), zero, (made,))
    raise _refusal(node, scope)


def _of_slice(base: Var, lower: Expr | None, upper: Expr | None, node: ast.expr, scope: Scope) -> Items:
    """The rows or elements of `v[lower:upper]`, at the places that they have in `v`: bounds that are negative count
    from the end, and places before the first or past the last are none."""
    span = base.span
    length = Call("len", (base,), span)
    before: list[Stmt] = []

    def place(bound: Expr, name: str) -> Expr:
        known = constant_value(bound)
        if known is not None:
            below = _plus(length, known)
            return _number(known, span) if known >= 0 else Call("max", (below, Const(0, span)), span)
        if scope.is_counted(bound):
            return bound
        kept = Var(scope.free(_named(name, node)), span)
        before.append(Assign(kept, bound, span))
        below = Call("max", (Binary("+", kept, length, span), Const(0, span)), span)
        return Choose(Compare(("<",), (kept, Const(0, span)), span), below, kept, span)

    start = Const(0, span) if lower is None else place(lower, "first")
    stops: tuple[Expr, ...] = (length,)
    if upper is not None:
        last = place(upper, "last")
        known = constant_value(upper)
        stops = (_plus(length, known),) if known is not None and known < 0 else (last, length)
    return Items(stops, lambda at: Subscript(base, (at,), span), start, tuple(before))


def _named(name: str, node: ast.expr) -> str:
    """A name for a value that stands at some place in the source."""
    return f"{name}_{node.lineno}_{node.col_offset}"


def _refusal(node: ast.expr, scope: Scope) -> Exception:
    what = f"a loop over `{ast.unparse(node)}` is not supported"
    why = "a `for` goes over a range, over arrays, or over the elements of a sparse array that is an argument"
    return scope.refuse(node, what, why, "write `for i in range(…):` and use subscripts")


# ---------------------------------------------------------------- sums as a person would write them


def _number(value: int, span: Span) -> Expr:
    return as_literal(Const(value, span))


def _plus(expr: Expr, number: int) -> Expr:
    known = constant_value(expr)
    if known is not None:
        return _number(known + number, expr.span)
    if not number:
        return expr
    return Binary("+" if number > 0 else "-", expr, Const(abs(number), expr.span), expr.span)


def _sum(left: Expr, right: Expr) -> Expr:
    known = constant_value(left)
    return Binary("+", left, right, right.span) if known is None else _plus(right, known)


def _difference(left: Expr, right: Expr) -> Expr:
    known = constant_value(right)
    return Binary("-", left, right, left.span) if known is None else _plus(left, -known)


def _times(expr: Expr, factor: int) -> Expr:
    return expr if factor == 1 else Binary("*", _number(factor, expr.span), expr, expr.span)
