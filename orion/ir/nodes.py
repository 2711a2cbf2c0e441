"""The loop language: what a decorated function becomes. Every value here is frozen and compares by content.

    function  = Function(name, params, body)
    stmt      = Assign(target, value)            x = e        a[i] = e        (x, y) = e
              | Update(target, op, value)        x += e       a[i] += e
              | Bind(name, row)                  w = W[i]     (w is a view: another name for a part of W)
              | Evaluate(value)                  f(W[i])
              | If(test, body, orelse) | While(test, body) | For(space, body)
              | Break | Continue | Return(value) | Pass
    space     = Range(var, start, stop, step)                  for i in range(start, stop, step)
              | Elements(array, keys, values, single)          for (i, j), r in array
    expr      = Const(value) | Word(value) | Dtype(name) | Var(name) | Dim(array, axis) | Count(array)
              | Unary(op, operand) | Binary(op, left, right) | Compare(ops, operands) | Logic(op, operands)
              | Choose(test, then, orelse) | Call(function, arguments) | Subscript(base, index) | Tuple(items)
              | Slice(lower, upper, step)                      only inside an index

A `Call` names its function canonically: "np.sqrt" for NumPy however it was imported, "abs" for a builtin, ".copy" for a
method (the object is the first argument), "helper:norm" for a function of the user's, "attribute:T" for an attribute of
an array. `len(a)`, `a.size`, `a.ndim`, `a.dtype` and negative axes of a `Dim` depend on the types of the arguments:
`orion.passes.attributes` replaces them by `Dim`, `Count`, `Const` and `Dtype`. Comparisons with None, by `is`, and
with strings are settled by `orion.passes.options`. INTEGER and NARROW are made by
`orion.typing.narrow`, of integers that are narrower than Python's.

After `orion.passes.views` no name stands for a view any more where that could be resolved: uses are the rows
themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar, overload

from orion.dataclass import dataclass, fields
from orion.ir.kept import Keeping, kept
from orion.source import Span

# ---------------------------------------------------------------- expressions


class Compound(Keeping):
    """An expression, or the space of a loop, with others in it: it keeps what is found in it, as statements do."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Const:
    value: int | float | complex | bool | None
    span: Span


@dataclass(frozen=True, slots=True)
class Word:
    """A string, which is only compared: `orion.passes.options` settles that."""

    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype as an argument of a call: `np.zeros(n, np.float32)`. `name` is NumPy's, such as "float32"."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar, a whole array, a private row, or a loop variable."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Dim:
    """`array.shape[axis]`; `len(array)` of a dense array is `Dim(array, 0)`."""

    array: str
    axis: int
    span: Span


@dataclass(frozen=True, slots=True)
class Count:
    """`array.size` of a dense array; `len(array)` or `array.nnz` of a sparse one: its number of elements."""

    array: str
    span: Span


@dataclass(frozen=True, slots=True)
class Unary(Compound):
    """`op` is one of "-", "+", "not", "~"."""

    op: str
    operand: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Binary(Compound):
    """`op` is one of + - * / // % ** @ & | ^ << >>."""

    op: str
    left: Expr
    right: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Compare(Compound):
    """A chain of comparisons: `operands[0] ops[0] operands[1] ops[1] …`."""

    ops: tuple[str, ...]
    operands: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Logic(Compound):
    """`op` is "and" or "or"; evaluation stops at the first operand that decides."""

    op: str
    operands: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Choose(Compound):
    """`then if test else orelse`."""

    test: Expr
    then: Expr
    orelse: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Call(Compound):
    function: str
    arguments: tuple[Expr, ...]
    span: Span
    keywords: tuple[tuple[str, Expr], ...] = ()


INTEGER = "integer:"
"""A function: a NumPy integer as the Python integer of the same value; one of uint64 that has no sign is past all."""

NARROW = "narrow:"
"""A function: the result of an operation that may leave its dtype, as it is. No analysis may look into it."""

LIST = "list:"
"""A function: a list of as many items as its argument says, of which a loop gives each its value."""

STORE = "store:"
"""A function, and a statement by itself: value number `arguments[0]` of the element of a sparse array, that which the
iteration is for, becomes `arguments[1]`, a scalar of its dtype (`orion.passes.element_stores`)."""

RETURNED = "returned:"
"""A function: the part of its first argument, which is a part of an array, at the slices that are the others. It stands
in what a function returns, alone or in a copy (`path[:k][::-1].copy()`)."""

RAISE = "raise:"
"""How functions begin whose calls are returned: nothing is then returned, but an error of that class raised, with the
text that the first argument is; where there are others, it is a format for them (`orion.frontend.raising`)."""

PART = "part:"
"""A function: the part of its first argument at the subscripts that are the others. The parser gives that a name."""


@dataclass(frozen=True, slots=True)
class Slice(Compound):
    lower: Expr | None
    upper: Expr | None
    step: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Subscript(Compound):
    """`base[index]`. Fewer subscripts than dimensions name a whole row, as in NumPy."""

    base: Var
    index: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Tuple(Compound):
    items: tuple[Expr, ...]
    span: Span


Expr = (
    Const | Word | Dtype | Var | Dim | Count
    | Unary | Binary | Compare | Logic | Choose | Call | Slice | Subscript | Tuple
)  # fmt: skip

# ---------------------------------------------------------------- iteration


@dataclass(frozen=True, slots=True)
class Range(Compound):
    """`for var in range(start, stop, step)`."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Elements(Compound):
    """`for (keys…), values… in array` over the stored elements of a sparse array.

    `single`: the value is one name (`r`), not a tuple of names (`(r, weight)`).
    """

    array: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    single: bool
    span: Span


# ---------------------------------------------------------------- statements


class Walked(Keeping):
    """A statement: it keeps what `walk` and `every` find in it, for the many who ask."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Assign(Walked):
    target: Var | Subscript | Tuple
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Update(Walked):
    """An in-place operator, `target op= value`; `op` is the binary operator, without "="."""

    target: Var | Subscript
    op: str
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Bind(Walked):
    """`name = array[index]` where the right side is a view, so that writing `name` in place writes the array.

    Only those remain after view resolution whose uses cannot be replaced by one row.
    """

    name: str
    row: Subscript
    span: Span


@dataclass(frozen=True, slots=True)
class Evaluate(Walked):
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class If(Walked):
    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class While(Walked):
    test: Expr
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class For(Walked):
    """`index` counts the `for`s of the function in textual order, from 0. `span` is that of the `for` line."""

    space: Range | Elements
    body: tuple[Stmt, ...]
    index: int
    span: Span


@dataclass(frozen=True, slots=True)
class Break(Walked):
    """`word` is what the user wrote: a `return` in a loop stands as a `break` (`orion.passes.leaving`). `is_first`:
    iterations after the one that comes here first may run all the same (`orion.rewrites.early_exits`)."""

    span: Span
    word: str = "break"
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Continue(Walked):
    span: Span


@dataclass(frozen=True, slots=True)
class Return(Walked):
    value: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Pass(Walked):
    span: Span


Stmt = Assign | Update | Bind | Evaluate | If | While | For | Break | Continue | Return | Pass
Node = Expr | Stmt | Range | Elements


A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


def children(node: Node) -> list[Node]:
    """The nodes directly below `node`, in source order."""
    found: list[Node] = []
    for name in PARTS[type(node)]:
        value = getattr(node, name)
        if type(value) is tuple:
            for item in value:  # a keyword argument is a pair: (name, expression)
                found.append(item[1] if type(item) is tuple else item)
        elif value is not None:
            found.append(value)
    return found


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, depth first, in source order."""
    return iter(_walked(node))


@kept
def _walked(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Walked):
        return (node, *(part for child in children(node) for part in _walked(child)))
    found: list[Node] = []
    waiting: list[Node] = [node]
    while waiting:
        current = waiting.pop()
        found.append(current)
        if PARTS[type(current)]:
            waiting += children(current)[::-1]
    return tuple(found)


@overload
def every(kinds: type[A], *nodes: Node) -> Iterator[A]: ...
@overload
def every(kinds: tuple[type[A], type[B]], *nodes: Node) -> Iterator[A | B]: ...
@overload
def every(kinds: tuple[type[A], type[B], type[C]], *nodes: Node) -> Iterator[A | B | C]: ...
@overload
def every(kinds: tuple[type[A], type[B], type[C], type[D]], *nodes: Node) -> Iterator[A | B | C | D]: ...
def every(kinds: Any, *nodes: Node) -> Iterator[Any]:
    """The nodes of some classes among `nodes` and all below them, in the order of `walk`."""
    wanted = kinds if type(kinds) is tuple else (kinds,)
    return chain.from_iterable([_of_kinds(node, wanted) for node in nodes])


def holds(kinds: type | tuple[type, ...], *nodes: Node) -> bool:
    """Whether there is a node of some classes among `nodes` and all below them."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    return any(_of_kinds(node, wanted) for node in nodes)


@kept
def _of_kinds(node: Node, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    if not isinstance(node, Walked):
        return tuple([part for part in _walked(node) if type(part) in kinds])
    if _classes(node).isdisjoint(kinds):
        return ()
    if isinstance(node, For | While | If):
        own = [node] if type(node) in kinds else []
        return (*own, *(part for child in children(node) for part in _of_kinds(child, kinds)))
    known = _by_class(node)
    found = [pair for kind in kinds for pair in known.get(kind, ())]
    return tuple([part for _, part in (found if len(kinds) == 1 else sorted(found, key=itemgetter(0)))])


@kept
def _classes(node: Node) -> frozenset[type]:
    return frozenset(map(type, _walked(node)))


@kept
def _by_class(node: Node) -> dict[type, list[tuple[int, Node]]]:
    """The nodes in a statement by their class, each with its place in the order of `walk`."""
    found: dict[type, list[tuple[int, Node]]] = {}
    for number, part in enumerate(_walked(node)):
        found.setdefault(type(part), []).append((number, part))
    return found


def names_in(*nodes: Node) -> set[str]:
    """The names that the code mentions, where it reads them or assigns them; not the variables that loops bind."""
    return {name for node in nodes for name in _names(node)}


def count_names(nodes: Iterable[Node], *names: str) -> int:
    """How often the code mentions one of the names."""
    return sum(_names(node).get(name, 0) for node in nodes for name in names)


@kept
def _names(node: Node) -> dict[str, int]:
    """How often the code mentions each name."""
    found: dict[str, int] = {}
    if isinstance(node, If | While | For):
        for part in children(node):
            for name, count in _names(part).items():
                found[name] = found.get(name, 0) + count
        return found
    for part in _walked(node):
        if type(part) is Var:
            found[part.name] = found.get(part.name, 0) + 1
    return found


NODE_CLASSES = (
    Const, Word, Dtype, Var, Dim, Count, Unary, Binary, Compare, Logic, Choose, Call, Slice, Subscript, Tuple,
    Range, Elements,
    Assign, Update, Bind, Evaluate, If, While, For, Break, Continue, Return, Pass,
)  # fmt: skip

IS_NODE = frozenset(NODE_CLASSES)
"""The same, to look one up in."""

HOLDERS = ("Expr", "Stmt", "Var", "Subscript", "Tuple", "Range", "Elements")
"""The names of types of nodes in the annotations of fields."""

PARTS = {
    kind: tuple(field.name for field in fields(kind) if any(name in str(field.type) for name in HOLDERS))
    for kind in NODE_CLASSES
}
"""Node class → the fields that hold nodes: one, None, or a tuple of them."""
