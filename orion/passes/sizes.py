"""Sizes that get their names in loops or branches, as sizes that have them before.

    for t in range(steps):                      n = pos.shape[0]
        n = pos.shape[0]                        for t in range(steps):
        acc = np.zeros(n)                           acc = np.zeros(n)
        for i in range(n):                          for i in range(n):
            acc[i] = mass[i] * pos[i]                   acc[i] = mass[i] * pos[i]

Most of them come from helpers (`orion.passes.inline`). A name that is given outside of all loops stands for its value
in the bounds of loops, in subscripts and in the lengths of arrays; one that each round gives again is any number. The
value is the same at every place that gives it, it cannot fail, and nothing reads the name before it is given, so that
giving it earlier, once, is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from orion.ir.assigned import assigned_by, assigned_names, assignments
from orion.ir.constants import BITS
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Bind,
    Call,
    Choose,
    Compare,
    Const,
    Count,
    Dim,
    Expr,
    For,
    If,
    Node,
    Pass,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Var,
    While,
    every,
    names_in,
)  # fmt: skip
from orion.ir.rewriting import expand
from orion.ir.spans import without_spans
from orion.passes.local_arrays import definitions, make_arrays
from orion.typing.expression_types import Typing


def with_sizes_first(function: Function, typing: Typing) -> Function:
    """The function with the names of sizes that are given in its loops and branches given before these."""
    once = definitions(function)
    same = _given_the_same(function) - once.keys()
    if not same:
        return function
    others = every((Assign, Bind, For), *function.body)  # an update in place leaves an array as long as it was
    arrays = {*function.params} - {name for node in others for name in assigned_by(node)}
    known = sizes_before(function, typing)
    moved: set[str] = set()
    body: list[Stmt] = []
    for statement in function.body:
        for name, value in _pairs_in(statement):
            may_fail = name in once
            is_known = name in same or may_fail
            if is_known and name not in moved and is_size(value, arrays, known, may_fail=may_fail):
                known.add(name)
                if name in same:
                    moved.add(name)
                    body.append(Assign(Var(name, value.span), value, value.span))
            same.discard(name)  # it is given before all other places that give it, or stays as it is
        body.append(statement)
    return replace(function, body=_without(tuple(body), moved)) if moved else function


def with_arrays(function: Function, typing: Typing, names: Collection[str]) -> Function:
    """The function with the local arrays `names` among its parameters (`make_arrays`): names of their lengths are names
    of sizes then."""
    return with_sizes_first(make_arrays(function, typing, names), typing)


def sizes_before(function: Function, typing: Typing) -> set[str]:
    """The integers that the caller gives and nothing changes."""
    kept = {*function.params} - assigned_names(function.body)
    kinds = {name: typing.names[name] for name in kept if name in typing.names}
    return {name for name, kind in kinds.items() if not kind.rank and kind.dtype == "int64"}


def is_size(expr: Expr, arrays: Set[str], sizes: Set[str], *, may_fail: bool) -> bool:
    """Whether an expression is an integer made of extents of these arrays and of these names. `may_fail`: it may also
    divide by some of them."""
    match expr:
        case Const(int()):
            return True
        case Dim(array) | Count(array):
            return array in arrays
        case Var(name):
            return name in sizes
        case Unary("-" | "+", operand):
            parts: tuple[Expr, ...] = (operand,)
        case Binary("//" | "%", left, Const(int(divisor))) if divisor:
            parts = (left,)
        case Binary("+" | "-" | "*" | "//" | "%" as op, left, right) if may_fail or op in "+-*":
            parts = left, right
        case Binary("&" | "|" | "^", left, right):
            parts = left, right
        case Binary("<<" | ">>", left, Const(int(shift))) if 0 <= shift < BITS:
            parts = (left,)
        case Binary("**", left, right) if may_fail:
            parts = left, right
        case Call("int" | "math.floor" | "math.ceil" | "math.trunc", (real,)) if not expr.keywords:
            return _is_real(real, arrays, sizes, may_fail=may_fail)
        case Call(function, parts) if function in OF_INTEGERS and parts and not expr.keywords:
            pass
        case Choose(Compare((_,), parts), then, orelse):
            parts = *parts, then, orelse
        case _:
            return False
    return all(is_size(part, arrays, sizes, may_fail=may_fail) for part in parts)


OF_INTEGERS = frozenset({"min", "max", "np.minimum", "np.maximum", "abs", "round", "np.int64", INTEGER})
"""Functions of integers that are integers."""


def _is_real(expr: Expr, arrays: Set[str], sizes: Set[str], *, may_fail: bool) -> bool:
    """Whether an expression is a number made of sizes by arithmetic."""
    match expr:
        case Binary("/", left, Const(int(divisor))) if divisor:
            parts: tuple[Expr, ...] = (left,)
        case Binary("+" | "-" | "*" | "/" as op, left, right) if may_fail or op != "/":
            parts = left, right
        case Const(float()):
            return True
        case _:
            return is_size(expr, arrays, sizes, may_fail=may_fail)
    return all(_is_real(part, arrays, sizes, may_fail=may_fail) for part in parts)


def _given_the_same(function: Function) -> set[str]:
    """The names that the function gives one value wherever it gives them one, and that nothing reads before."""
    counts = Counter(name for statement in function.body for name, _ in assignments(statement))
    values: dict[str, list[Expr]] = {}
    for name, value in (pair for statement in function.body for pair in _pairs_in(statement)):
        values.setdefault(name, []).append(without_spans(value))
    found = {name for name, given in values.items() if len(given) == counts[name] and _are_the_same(given)}
    found = (found - {*function.params}) & _needed(function, {name: given[0] for name, given in values.items()})
    return found - exposed_reads(function.body, ()).keys() if found else found


def _needed(function: Function, values: Mapping[str, Expr]) -> set[str]:
    """The names that bounds of loops, subscripts and arguments of functions are made of."""
    places: list[Node] = [part for one in every(Subscript, *function.body) for part in one.index]
    places += (loop.space for loop in every(For, *function.body))
    places += every(Call, *function.body)
    found: set[str] = set()
    waiting = names_in(*places)
    while waiting:
        found |= waiting
        waiting = names_in(*(values[name] for name in waiting if name in values)) - found
    return found


def _are_the_same(values: Sequence[Expr]) -> bool:
    """Whether the values are one, with no numbers in them but integers: 1 and True are equal, but not the same."""
    return all(one == values[0] for one in values) and all(type(one.value) is int for one in every(Const, *values))


def _pairs_in(statement: Stmt) -> Iterator[tuple[str, Expr]]:
    """The names that assignments in a statement give a value that is written there, with the value."""
    for node in every(Assign, statement):
        match node:
            case Assign(Var(name), value):
                yield name, value
            case Assign(Tuple(targets), Tuple(values)) if len(targets) == len(values):
                yield from ((to.name, value) for to, value in zip(targets, values, strict=True) if isinstance(to, Var))


def _without(body: tuple[Stmt, ...], names: Set[str]) -> tuple[Stmt, ...]:
    """The body of a function without what gives these names a value, but for the first that does."""
    left = set(names)

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name)) if name in names:
                return ()
            case Assign(Tuple(targets), Tuple(values)):
                pairs = [*zip(targets, values, strict=False)]
                rest = [pair for pair in pairs if not isinstance(pair[0], Var) or pair[0].name not in names]
                return (statement,) if len(rest) == len(pairs) else _assigned(rest, statement)
            case For(_, ()) | While(_, ()) | If(_, (), _):
                return (replace(statement, body=(Pass(statement.span),)),)
            case _:
                return (statement,)

    def at_top(statement: Stmt) -> Iterator[Stmt]:
        given = statement.target.name if isinstance(statement, Assign) and isinstance(statement.target, Var) else ""
        if given in left:
            left.discard(given)
            yield statement
        else:
            yield from expand((statement,), change)

    return tuple(new for statement in body for new in at_top(statement))


def _assigned(pairs: Iterable[tuple[Expr, Expr]], statement: Assign) -> tuple[Stmt, ...]:
    """An assignment with these of its targets and values."""
    targets, values = zip(*pairs, strict=True) if pairs else ((), ())
    if len(targets) <= 1:
        return tuple(replace(statement, target=to, value=value) for to, value in zip(targets, values, strict=True))
    return (replace(statement, target=Tuple(targets, statement.span), value=Tuple(values, statement.span)),)
