"""What a `for` goes through, as ranges: arrays, `enumerate`, `zip`, `reversed`, tuples, `np.ndindex`, `numba.prange`.

    for x in v:                       for x_index in range(len(v)):                   x = v[x_index]
    for i, x in enumerate(v):         for i in range(len(v)):                         x = v[i]
    for x, y in zip(v, w):            for x_index in range(min(len(v), len(w))):      x = v[x_index]; y = w[x_index]
    for i in reversed(range(n)):      for i in range(n - 1, -1, -1):
    for i, j in np.ndindex(A.shape):  for i in range(A.shape[0]): for j in range(A.shape[1]):

An iterable is a number of items and the item at each place (`Items`). A range that stands alone stays one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orion.frontend.parse_expressions import parse_expression
from orion.frontend.refusals import ITERATIONS
from orion.frontend.scope import Scope
from orion.ir.constants import as_literal, constant_value
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Dim,
    Expr,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Var,
)  # fmt: skip
from orion.source import Span

FUNCTIONS = {"builtins": ("range", "enumerate", "zip", "reversed"), "numba": ("prange",), "numpy": ("ndindex",)}
"""What makes iterables, by the package that it is of."""

Item = Expr | tuple["Item", ...]
"""What a target is given: a value, or what each of a tuple of targets is."""


@dataclass(frozen=True, slots=True)
class Items:
    """The items of an iterable: as many as the least of some counts, and the item at a place from 0 on."""

    counts: tuple[Expr, ...]
    at: Callable[[Expr], Item]


@dataclass(frozen=True, slots=True)
class Iteration:
    """A `for` as ranges, the outermost first, and what each iteration begins with."""

    loops: tuple[Range, ...]
    first: tuple[Stmt, ...] = ()


def iteration(node: ast.For, scope: Scope) -> Iteration | None:
    """A `for` as ranges; None where it goes through the keys and values of a sparse array."""
    source = node.iter
    match _maker(source, scope):
        case "range" | "prange":
            return Iteration((_range(node.target, source, scope),))
        case "ndindex":
            return Iteration(tuple(_each_index(node, scope)))
        case "reversed" if _maker(inner := _only(source, scope), scope) == "range":
            return Iteration((_backwards(_range(node.target, inner, scope), inner, scope),))
        case "enumerate" if isinstance(node.target, ast.Tuple) and isinstance(node.target.elts[0], ast.Name):
            return _by_place(node, node.target.elts[0].id, scope)
        case "" if isinstance(source, ast.Name) and isinstance(node.target, ast.Tuple):
            return None
        case _:
            return _by_place(node, "", scope)


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
    count = found.counts[0] if len(found.counts) == 1 else Call("min", found.counts, span)
    first = tuple(_given(node.target, found.at(Var(place, span)), place, scope))
    return Iteration((Range(place, Const(0, span), count, Const(1, span), span),), first)


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
        case ast.Tuple(parts), Subscript():
            what = f"a row is not taken apart into `{ast.unparse(target)}`"
            each = ", ".join(f"row[{number}]" for number in range(len(parts)))
            hint = f"write a name for the row, `row`, and `{ast.unparse(target)} = {each}` in the loop"
            raise scope.refuse(target, what, "how long it is is not looked at", hint)
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


def _each_index(node: ast.For, scope: Scope) -> Iterator[Range]:
    """`for i, j in np.ndindex(A.shape)`, or `np.ndindex(n, m)`: a range for each name."""
    assert isinstance(node.iter, ast.Call)
    names = [part.id for part in getattr(node.target, "elts", ()) if isinstance(part, ast.Name)]
    if not names or len(names) < len(node.target.elts):  # type: ignore[attr-defined]
        hint = "write a name for each dimension: `for i, j in np.ndindex(A.shape):`"
        raise scope.refuse(node.target, "the subscripts are not taken apart into names", "", hint)
    span = scope.span(node.iter)
    match [parse_expression(argument, scope) for argument in node.iter.args]:
        case [Call("attribute:shape", (Var(array),))]:
            lengths: list[Expr] = [Dim(array, axis, span) for axis in range(len(names))]
        case [Tuple(parts)]:
            lengths = [*parts]
        case parts:
            lengths = parts
    if len(lengths) != len(names) or holds_break_in(node):
        what = f"`{ast.unparse(node.iter)}` is not taken apart"
        raise scope.refuse(node.iter, what, "", "write one `for … in range(…)` inside another")
    for name, length in zip(names, lengths, strict=True):
        yield Range(name, Const(0, span), length, Const(1, span), span)


def holds_break_in(node: ast.For) -> bool:
    """Whether a `break` may leave the loop, or an `else` follows it."""
    inner = [part for statement in node.body for part in ast.walk(statement)]
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
        case "", ast.Tuple(parts) | ast.List(parts) if parts:
            return _one_by_one([parse_expression(part, scope) for part in parts], scope.span(node))
        case "", ast.Name() | ast.Subscript():
            return _of_array(parse_expression(node, scope), node, scope)
        case _:
            raise _refusal(node, scope)


def _numbers(node: ast.expr, scope: Scope) -> Items:
    start, stop, by = _bounds(node, scope)
    step = _step(by, node, scope)
    return Items((_trips(start, stop, step),), lambda place: _sum(start, _times(place, step)))


def _enumerated(node: ast.Call, scope: Scope) -> Items:
    begin = [part.value for part in node.keywords if part.arg == "start"] + node.args[1:]
    if not node.args or len(begin) > 1 or len(node.args) + len(node.keywords) > 2:
        raise _refusal(node, scope)
    start = parse_expression(begin[0], scope) if begin else Const(0, scope.span(node))
    inner = items(node.args[0], scope)
    return Items(inner.counts, lambda place: (_sum(start, place), inner.at(place)))


def _side_by_side(node: ast.Call, scope: Scope) -> Items:
    strict = [part for part in node.keywords if not (part.arg == "strict" and _is_false(part.value))]
    if strict or not node.args:
        why = "whether the lengths are equal is not looked at"
        raise scope.refuse(node, f"`{ast.unparse(node)}` is not supported", why, "leave `strict` out")
    each = [items(part, scope) for part in node.args]
    counts = dict.fromkeys(count for one in each for count in one.counts)
    return Items(tuple(counts), lambda place: tuple(one.at(place) for one in each))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _from_behind(node: ast.Call, scope: Scope) -> Items:
    inner = _only(node, scope)
    if _maker(inner, scope) in ("enumerate", "zip"):
        raise scope.refuse(node, f"`{ast.unparse(node)}` is not supported", "Python's `reversed` takes no iterators")
    found = items(inner, scope)
    (count,) = found.counts
    return Items(found.counts, lambda place: found.at(Binary("-", _plus(count, -1), place, place.span)))


def _only(node: ast.expr, scope: Scope) -> ast.expr:
    """The one argument of `reversed`."""
    assert isinstance(node, ast.Call)
    if len(node.args) != 1 or node.keywords:
        raise scope.refuse(node, "`reversed` takes one argument")
    return node.args[0]


def _one_by_one(values: list[Expr], span: Span) -> Items:
    """The values of a tuple: one that is chosen by the place, or a sum where they are evenly spaced."""
    count = _number(len(values), span)
    numbers = [constant_value(value) for value in values]
    first, *others = numbers
    if first is not None and others and others[0] is not None:
        step = others[0] - first
        if numbers == [first + step * place for place in range(len(values))]:
            return Items((count,), lambda place: _sum(_number(first, span), _times(place, step)))
    return Items((count,), lambda place: _chosen(values, place))


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


def _of_array(array: Expr, node: ast.expr, scope: Scope) -> Items:
    """The rows or elements of an array, of a row of one, or of one without its ends: `v`, `A[i]`, `v[1:]`, `v[:-1]`."""
    match array:
        case Var() as base:
            count: Expr = Call("len", (base,), base.span)
            return Items((count,), lambda place: Subscript(base, (place,), base.span))
        case Subscript(base, index) if not any(isinstance(part, Slice) for part in index):
            count = Call("len", (array,), array.span)
            return Items((count,), lambda place: Subscript(base, (*index, place), array.span))
        case Subscript(Var() as base, (Slice(lower, upper, None),)):
            first = 0 if lower is None else constant_value(lower)
            last = 0 if upper is None else constant_value(upper)
            if first is not None and first >= 0 and last is not None and (upper is None or last < 0):
                count = _plus(Call("len", (base,), base.span), last - first)
                return Items((count,), lambda place: Subscript(base, (_plus(place, first),), array.span))
    raise scope.refuse(
        node, f"a loop over `{ast.unparse(node)}` is not supported", "", "give it a name before, and go through that"
    )


def _refusal(node: ast.expr, scope: Scope) -> Exception:
    called = node.func if isinstance(node, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    hint = ITERATIONS.get(name, "write `for i in range(…):` and use subscripts")
    why = "a `for` goes over a range, over arrays, or over the elements of a sparse array that is an argument"
    return scope.refuse(node, f"a loop over `{ast.unparse(node)}` is not supported", why, hint)


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


def _times(expr: Expr, factor: int) -> Expr:
    return expr if factor == 1 else Binary("*", _number(factor, expr.span), expr, expr.span)
