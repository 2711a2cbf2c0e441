"""Arrays of one dimension that are used as if they had more: `A[i * m + j]` is row i, column j of rows of m elements.

The products make such subscripts other than affine, so they are undone (Maslov 1992, *Delinearization: an efficient way
to break multiloop dependence equations*; Grosser et al. 2015, *Optimistic delinearization of parametrically sized
arrays*). With integers q, r and m,

    0 <= r < m   =>   (q, r) -> q * m + r is one-to-one,

so that a call may run the loops with `A.reshape(-1, m)` and `A[i, j]` where, with N the length of A,

    (a)  every use of A is a subscript q * m + r, with one m that keeps its value, m >= 1
    (b)  0 <= r < m in every iteration
    (c)  m divides N, so that negative q count from the end alike, or 0 <= q < N // m in every iteration.

(a) is found here. (b) and (c) are looked at when sizes are known (`orion.dependence.flat_rows`); where they do not hold
the loops run as they are written. Rows of rows, `A[(i * m + j) * p + k]`, are the same once more.

A counter that grows by one in each trip of an inner loop is k + j there, and grows by max(0, m) in each trip of that
around it (`orion.passes.induction`). Where it begins at a constant c, and m >= 1 by (a), it is c + i * m in trip i
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import prod
from typing import Any

from numpy.typing import NDArray

from orion.dataclass import dataclass, field, replace
from orion.ir.assigned import assigned_by, assignments, leaves_loop
from orion.ir.constants import constant_value
from orion.ir.function import Function, Rows
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Const,
    Count,
    Dim,
    Elements,
    Expr,
    For,
    If,
    Node,
    Range,
    Return,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Var,
    While,
    children,
    count_names,
    every,
    holds,
    walk,
)  # fmt: skip
from orion.ir.printer import print_expr
from orion.ir.rewriting import rewrite, rewrite_function
from orion.ir.types import ArrayType, ScalarType, Shapes, Types
from orion.source import Span

MAX_WIDTHS = 3

Terms = Mapping[tuple[str, ...], int]
"""A sum of products: how often each is there, by the texts of its factors in alphabetical order."""


def with_rows(function: Function, types: Types) -> Function | None:
    """The function with the subscripts of flattened arrays taken apart, and these arrays as its `rows`; None where it
    has none."""
    counted, lengths = with_counters(function, types)
    found = _taken_apart(counted, types)
    used = set() if found is None else {print_expr(width) for one in found.rows for width in one.widths}
    return found if lengths <= used else _taken_apart(function, types)


def _taken_apart(function: Function, types: Types) -> Function | None:
    finder = _Finder(function, types)
    finder.block(function.body, {})
    found: dict[str, Rows] = {}
    parts: dict[Subscript, tuple[Expr, ...]] = {}
    for array, uses in finder.uses.items():
        widths = finder.widths(array)
        if widths:
            for node, terms in uses.items():
                parts[node] = tuple(finder.sum(part, node.span) for part in _apart(terms, widths))
            first = next(node for node, terms in uses.items() if _is_product(terms))
            texts = print_expr(first), print_expr(replace(first, index=parts[first]))
            found[array] = Rows(array, tuple(finder.atoms[width] for width in widths), first.span, *texts)

    def change(expr: Expr) -> Expr:
        return replace(expr, index=parts[expr]) if isinstance(expr, Subscript) and expr in parts else expr

    return replace(rewrite_function(function, change), rows=tuple(found.values())) if found else None


def with_row_types(types: Types, rows: Iterable[Rows]) -> Types:
    """The types of the arguments where flattened arrays are given as arrays of rows."""
    changed = dict(types)
    for one in rows:
        kind = types[one.array]
        assert isinstance(kind, ArrayType)
        changed[one.array] = replace(kind, ndim=1 + len(one.widths))
    return changed


def shapes_of_rows(
    rows: Iterable[Rows], shapes: Shapes, integers: Mapping[str, Any]
) -> dict[str, tuple[int, ...]] | None:
    """The shapes of flattened arrays as arrays of as many whole rows as there are, without those that depend on sizes
    that are not given; None where a row would have no elements.

    >>> from orion.source import Span
    >>> span = Span("f.py", 1, 0, 1, 1)
    >>> rows = [Rows("A", (Var("m", span),), span, "A[i * m + j]", "A[i, j]")]
    >>> [shapes_of_rows(rows, {"A": (6,)}, integers) for integers in ({"m": 3}, {"m": 4}, {}, {"m": 0})]
    [{'A': (2, 3)}, {'A': (1, 4)}, {}, None]
    """
    found: dict[str, tuple[int, ...]] = {}
    for one in rows:
        given = [_value(width, shapes, integers) for width in one.widths]
        widths = [width for width in given if width is not None]
        if any(width < 1 for width in widths):
            return None
        if len(widths) < len(given) or one.array not in shapes:
            continue
        found[one.array] = (shapes[one.array][0] // prod(widths), *widths)
    return found


def as_rows(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The whole rows of a flattened array."""
    return array[: prod(shape)].reshape(shape)


def _value(width: Expr, shapes: Shapes, integers: Mapping[str, Any]) -> int | None:
    match width:
        case Var(name) if name in integers:
            return int(integers[name])
        case Dim(array, axis) if array in shapes:
            return shapes[array][axis]
        case _:
            return None


# ---------------------------------------------------------------- counters that go on from row to row


def with_counters(function: Function, types: Types) -> tuple[Function, set[str]]:
    """The function with such counters as products, and the lengths of rows that must then be one at least."""
    lengths: set[str] = set()

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for statement in body:
            match statement, done[-1:]:
                case For(), [Assign(Var(name), value)] if (first := constant_value(value)) is not None and (
                    closed := _without_counter(statement, name, first, function, types)
                ) is not None:
                    done[-1:] = [closed[0]]
                    lengths.add(closed[1])
                case For(_, inner) | While(_, inner), _:
                    done.append(replace(statement, body=block(inner)))
                case _:
                    done.append(statement)
        return tuple(done)

    return replace(function, body=block(function.body)), lengths


def _without_counter(loop: For, name: str, first: int, function: Function, types: Types) -> tuple[For, str] | None:
    """The loop with a counter as a product, and the length of a row; None where it is no such counter: it is set once
    before the loop, once by its last statement, and used nowhere else."""
    match loop:
        case For(
            Range(var, Const(int(start)), _, Const(1)),
            (*body, Assign(Var(target), Binary("+", Var(same), Call("max", (Const(0), width)) | (Dim() as width)))),
        ) if target == same == name and body:
            pass
        case _:
            return None
    nodes = [node for statement in function.body for node in walk(statement)]
    counts = Counter(one for node in nodes for one in assigned_by(node))
    outside = count_names(function.body, name) - count_names((loop,), name)
    inside = Counter(one for statement in body for node in walk(statement) for one in assigned_by(node))
    kept = isinstance(width, Dim) or (isinstance(width, Var) and width.name in types and not counts[width.name])
    leaves = any(leaves_loop(s) or holds(Return, s) for s in body)
    if not kept or leaves or counts[name] != 2 or outside != 1 or inside[var] or name in function.params:
        return None

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Var) or expr.name != name:
            return expr
        trip: Expr = Var(var, expr.span)
        trip = Binary("-", trip, Const(start, expr.span), expr.span) if start else trip
        rows = Binary("*", trip, replace(width, span=expr.span), expr.span)
        return Binary("+", rows, Const(first, expr.span), expr.span) if first else rows

    return replace(loop, body=tuple(rewrite(statement, change) for statement in body)), print_expr(width)


# ---------------------------------------------------------------- the subscripts of a function


@dataclass
class _Finder:
    """Finds all subscripts of arrays that may be flattened, as sums of products of `atoms`, which are named by their
    texts. `mentions` counts the places where a name is used at all, `counts` those that assign it."""

    function: Function
    types: Types
    uses: dict[str, dict[Subscript, Terms]] = field(default_factory=dict)
    atoms: dict[str, Expr] = field(default_factory=dict)
    found: Counter[str] = field(default_factory=Counter)
    mentions: Counter[str] = field(init=False)
    counts: Counter[str] = field(init=False)
    variables: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        body = self.function.body
        self.mentions = Counter(name for node in every((Var, Dim, Count, For), *body) for name in _mentioned(node))
        self.counts = Counter(name for statement in body for name, _ in assignments(statement))
        self.variables = Counter(name for loop in every(For, *body) for name in assigned_by(loop))

    def block(self, body: Sequence[Stmt], known: Mapping[str, Terms]) -> None:
        """Note the subscripts in some statements. `known` are the names that stand for a sum there."""
        here = dict(known)
        for statement in body:
            for part in _own_expressions(statement):
                self.expression(part, here)
            match statement:
                case For(_, inner):
                    again = set(assigned_by(statement))
                    self.block(inner, {n: t for n, t in here.items() if again.isdisjoint(self.names_in(t))})
                case While(_, inner):
                    self.block(inner, here)
                case If(_, then, orelse):
                    self.block(then, here)
                    self.block(orelse, here)
                case _:
                    here |= self.definitions(statement, here)

    def definitions(self, statement: Stmt, known: Mapping[str, Terms]) -> dict[str, Terms]:
        """The names that a statement sets, once and for all that follows, to a sum of what keeps its value."""
        match statement:
            case Assign(Var(name), value):
                pairs = [(name, value)]
            case Assign(Tuple(targets), Tuple(values)) if len(targets) == len(values):
                pairs = [(t.name, v) for t, v in zip(targets, values, strict=True) if isinstance(t, Var)]
            case _:
                return {}
        sums = ((name, self.terms(value, known)) for name, value in pairs if self.counts[name] == 1)
        return {n: terms for n, terms in sums if terms is not None and all(map(self.is_kept, self.names_in(terms)))}

    def is_kept(self, name: str) -> bool:
        """Whether a name has the same value wherever it is the same trip of all loops: those of loops and arguments."""
        return self.counts[name] == self.variables[name] and (name in self.function.params or name in self.variables)

    def expression(self, expr: Node, known: Mapping[str, Terms]) -> None:
        for node in walk(expr):
            if isinstance(node, Subscript) and self.may_be_flat(node):
                terms = self.terms(node.index[0], known)
                uses = self.uses.setdefault(node.base.name, {})
                if terms is not None and uses.get(node, terms) == terms:
                    uses[node] = terms
                    self.found[node.base.name] += 1

    def may_be_flat(self, node: Subscript) -> bool:
        kind = self.types.get(node.base.name)
        plain = isinstance(kind, ArrayType) and kind.ndim == 1 and kind.c_contiguous and not kind.aligned
        return plain and len(node.index) == 1 and not holds(Subscript, node.index[0])

    def widths(self, array: str) -> tuple[str, ...]:
        """The lengths of the rows that all subscripts of an array agree with; none where there are no such."""
        uses = self.uses[array].values()
        if self.found[array] != self.mentions[array]:
            return ()
        inside = {factor for terms in uses for product in terms if len(product) > 1 for factor in product}
        wanted = sorted(name for name in inside if self.is_width(self.atoms[name]))
        if not 0 < len(wanted) <= MAX_WIDTHS:
            return ()
        fitting = (w for w in permutations(wanted) if not any(_is_product(p) for t in uses for p in _apart(t, w)))
        return next(fitting, ())

    def is_width(self, expr: Expr) -> bool:
        match expr:
            case Var(name):
                kind = self.types.get(name)
                return isinstance(kind, ScalarType) and kind.dtype == "int64" and not self.counts[name]
            case Dim(array, _):
                return isinstance(self.types.get(array), ArrayType) and not self.counts[array]
            case _:
                return False

    # ------------------------------------------------------------ sums of products

    def terms(self, expr: Expr, known: Mapping[str, Terms]) -> Terms | None:
        """An integer expression as a sum of products; None where it is more than that."""
        match expr:
            case Const(bool()):
                return None
            case Const(int(value)):
                return _sum([({(): value}, 1)])
            case Var(name) if name in known:
                return known[name]
            case Var() | Dim():
                return self.atom(expr)
            case Unary("-", operand):
                inner = self.terms(operand, known)
                return None if inner is None else _sum([(inner, -1)])
            case Binary("+" | "-" | "*" as op, left, right):
                one, other = self.terms(left, known), self.terms(right, known)
                if one is None or other is None:
                    return None
                return _product(one, other) if op == "*" else _sum([(one, 1), (other, 1 if op == "+" else -1)])
            case Binary("//" | "%") | Call("min" | "max"):
                return self.atom(expr)
            case _:
                return None

    def atom(self, expr: Expr) -> Terms:
        text = print_expr(expr)
        self.atoms.setdefault(text, expr)
        return {(text,): 1}

    def names_in(self, terms: Terms) -> set[str]:
        atoms = {factor for product in terms for factor in product}
        return {name for atom in atoms for node in walk(self.atoms[atom]) for name in _mentioned(node)}

    def sum(self, terms: Terms, span: Span) -> Expr:
        """The expression of a sum, what is added before what is taken away."""
        total: Expr | None = None
        for product, count in sorted(terms.items(), key=lambda term: (term[1] < 0, not term[0])):
            factors = [replace(self.atoms[factor], span=span) for factor in product]
            part: Expr = Const(abs(count), span) if abs(count) != 1 or not factors else factors.pop(0)
            for factor in factors:
                part = Binary("*", part, factor, span)
            if total is None:
                total = Unary("-", part, span) if count < 0 else part
            else:
                total = Binary("-" if count < 0 else "+", total, part, span)
        return Const(0, span) if total is None else total


def _own_expressions(statement: Stmt) -> Iterator[Node]:
    """What a statement is made of, without the statements in it."""
    blocks = {id(inner) for name in ("body", "orelse") for inner in getattr(statement, name, ())}
    yield from (child for child in children(statement) if id(child) not in blocks)


def _mentioned(node: Node) -> Iterator[str]:
    match node:
        case Var(name):
            yield name
        case Dim(array, _) | Count(array):
            yield array
        case For(Elements(array)):
            yield array
        case _:
            pass


# ---------------------------------------------------------------- sums of products


def _sum(parts: Sequence[tuple[Terms, int]]) -> Terms:
    total: Counter[tuple[str, ...]] = Counter()
    for terms, sign in parts:
        for product, count in terms.items():
            total[product] += sign * count
    return {product: count for product, count in total.items() if count}


def _product(one: Terms, other: Terms) -> Terms:
    return _sum([({tuple(sorted((*a, *b))): m * n}, 1) for a, m in one.items() for b, n in other.items()])


def _is_product(terms: Terms) -> bool:
    """Whether two names are multiplied in a sum."""
    return any(len(factors) > 1 for factors in terms)


def _apart(terms: Terms, widths: Sequence[str]) -> tuple[Terms, ...]:
    """The subscripts of the dimensions that a subscript of a flattened array stands for, given the lengths of all but
    the first.

    >>> _apart({("i", "m"): 1, ("j",): 1, (): -1}, ["m"]), _apart({("i", "m"): 1, ("j",): -1, (): -1}, ["m"])
    (({('i',): 1}, {('j',): 1, (): -1}), ({('i',): 1, (): -1}, {('j',): -1, (): -1, ('m',): 1}))
    """
    found: list[Terms] = []
    for width in reversed(widths):
        rows, rest = _divided(terms, width)
        found.insert(0, rest)
        terms = rows
    return (terms, *found)


def _divided(terms: Terms, width: str) -> tuple[Terms, Terms]:
    """q and r of terms = q * width + r. What is only taken away is taken from the end of the row before."""
    rows = {_without(product, width): count for product, count in terms.items() if width in product}
    rest = {product: count for product, count in terms.items() if width not in product}
    if rest and all(count < 0 for count in rest.values()):
        return _sum([(rows, 1), ({(): 1}, -1)]), _sum([(rest, 1), ({(width,): 1}, 1)])
    return rows, rest


def _without(product: tuple[str, ...], factor: str) -> tuple[str, ...]:
    at = product.index(factor)
    return product[:at] + product[at + 1 :]
