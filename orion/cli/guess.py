"""Argument types guessed from how a function uses its parameters, for plans without a call.

What is gone over with `for … in` is sparse; what is subscripted, or has a shape, is a dense array; the rest are
scalars. The rank of an array is the largest number of subscripts it is given, and one more where what such a subscript
names is used as a row (`W[i] @ H[j]`, `W[i].copy()`, added to a row). What subscripts, bounds and operands of `&` and
`<<` are made from is an integer, everything else floating point.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from orion.dataclass import dataclass, field, replace
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Call,
    Choose,
    Count,
    Dim,
    Elements,
    Expr,
    For,
    Node,
    Range,
    Slice,
    Subscript,
    Unary,
    Update,
    Var,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.types import ArgumentType, ArrayType, ScalarType, SparseType, Types
from orion.passes.element_stores import elements_by_key
from orion.typing.functions import Form, form_of, reads_row

BITWISE = frozenset({"&", "|", "^", "<<", ">>"})
ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Known:
    """What the user says of the arguments: ranks of dense arrays, numbers of keys of sparse ones, dtypes, scalars."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    sparse: Mapping[str, int] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    """Scalars by the name of their Python type: "int", "float" or "bool"."""


def guess_types(function: Function, known: Known | None = None) -> Types:
    """The types of a function's parameters, in order, as far as its own body tells them.

    Sparse arrays have 32-bit integer keys and float32 values, dense ones float64 elements, scalars are Python numbers;
    `known` goes before every guess.
    """
    known = known or Known()
    said = {name: SparseType(keys, "int32", ("float32",)) for name, keys in known.sparse.items()}
    integers = _integers(function)
    sparse = _sparse_arrays(function, integers) | said
    ranks = _Ranks(function, known, sparse).find()

    def kind(name: str) -> ArgumentType:
        if name in sparse:
            values = sparse[name].value_dtypes
            dtype = known.dtypes.get(name)
            return replace(sparse[name], value_dtypes=(dtype,) * len(values) if dtype else values)
        if ranks.get(name, 0) > 0:
            dtype = known.dtypes.get(name, "int64" if name in integers else "float64")
            return ArrayType(dtype, ranks[name])
        if name in known.dtypes:
            return ScalarType(known.dtypes[name])
        python = known.scalars.get(name, "int" if name in integers else "float")
        return ScalarType(
            {"int": "int64", "float": "float64", "bool": "bool", "complex": "complex128"}[python], weak=True
        )

    return {name: kind(name) for name in function.params}


def _nodes(function: Function) -> Iterator[Node]:
    for statement in function.body:
        yield from walk(statement)


def _sparse_arrays(function: Function, integers: Container[str]) -> dict[str, SparseType]:
    found, by_key = {}, elements_by_key(function)
    for node in _nodes(function):
        if isinstance(node, Elements):
            values = tuple("int64" if value in integers else "float32" for value in node.values)
            found[node.array] = SparseType(len(node.keys), "int32", values, node.single, node.array in by_key)
    return found


def _integers(function: Function) -> frozenset[str]:
    """The names whose values, or whose elements, are used in a subscript, a slice, the bounds of a `range` or an
    operation on bits, and those that such a name is made from."""
    found: set[str] = set()
    for node in _nodes(function):
        for part in _integer_parts(node):
            if part is not None:
                found |= names_in(part)
    count = -1
    while count < len(found):
        count = len(found)
        for node in _nodes(function):
            match node:
                case Assign(Var(name), value) | Update(Var(name), _, value) if name in found:
                    found |= set(_made_from(value))
                case Binary(op, left, right) if op in BITWISE:
                    found |= {*_made_from(left), *_made_from(right)}
                case Unary("~", operand):
                    found |= set(_made_from(operand))
                case _:
                    pass
    return frozenset(found)


def _integer_parts(node: Node) -> tuple[Expr | None, ...]:
    """The parts of a node that are integers wherever it stands."""
    match node:
        case Subscript(_, index):
            return index
        case Range():
            return (node.start, node.stop, node.step)
        case Slice():
            return (node.lower, node.upper, node.step)
        case _:
            return ()


def _made_from(value: Expr) -> Iterator[str]:
    """The names that are integers where a value is one."""
    match value:
        case Var(name) | Subscript(Var(name)):
            yield name
        case Unary(_, operand):
            yield from _made_from(operand)
        case Binary(op, left, right) if op != "/":
            yield from _made_from(left)
            yield from _made_from(right)
        case Choose(_, then, orelse):
            yield from _made_from(then)
            yield from _made_from(orelse)
        case Call("min" | "max" | "abs", arguments):
            for argument in arguments:
                yield from _made_from(argument)
        case _:
            pass


class _Ranks:
    """The ranks of arrays and of the names bound to their parts, raised until nothing changes."""

    def __init__(self, function: Function, known: Known, sparse: Mapping[str, SparseType]) -> None:
        self.function = function
        self.known = known.ranks
        self.arrays = frozenset(function.params) - frozenset(sparse)
        self.ranks: dict[str, int] = dict(known.ranks)
        self.locals: dict[str, int] = {}

    def find(self) -> dict[str, int]:
        for node in _nodes(self.function):
            self.note_subscripts(node)
        for _ in range(ROUNDS):
            before = (dict(self.ranks), dict(self.locals))
            for node in _nodes(self.function):
                self.note_rows(node)
            if before == (self.ranks, self.locals):
                break
        return self.ranks

    def note_subscripts(self, node: Node) -> None:
        match node:
            case Subscript(Var(name), index):
                self.raise_to(name, len(index))
            case Dim(name, axis):
                self.raise_to(name, axis + 1 if axis >= 0 else -axis)
            case Call("len" | "attribute:size" | "attribute:shape" | "attribute:dtype", (Var(name), *_)) | Count(name):
                self.raise_to(name, 1)
            case _:
                pass

    def note_rows(self, node: Node) -> None:
        match node:
            case Binary("@", left, right):
                self.require(left, 1)
                self.require(right, 1)
            case Call(name, arguments) if reads_row(name):
                for argument in arguments[: 2 if form_of(name) is Form.PRODUCT else 1]:
                    self.require(argument, 1)
            case Assign(Var(name), value) if name not in self.arrays:
                self.locals[name] = max(self.locals.get(name, 0), self.rank(value))
                self.require(value, self.locals[name])
            case Bind(name, row):
                self.locals[name] = max(self.locals.get(name, 0), self.rank(row))
                self.require(row, self.locals[name])
            case Assign(Subscript() as target, value) | Update(target, _, value):
                self.require(target, self.rank(value))
            case For(Elements(_, _, values)):
                self.locals |= dict.fromkeys(values, 0)
            case _:
                pass

    def raise_to(self, name: str, rank: int) -> None:
        if name in self.arrays and name not in self.known:
            self.ranks[name] = max(self.ranks.get(name, 0), rank)

    def require(self, expr: Expr, rank: int) -> None:
        """Note that an expression is of at least this rank, where it is (made from) a single array or name."""
        match expr:
            case Subscript(Var(name), index):
                self.raise_to(name, rank + len(index) - sum(isinstance(part, Slice) for part in index))
            case Var(name) if name in self.arrays:
                self.raise_to(name, rank)
            case Var(name):
                self.locals[name] = max(self.locals.get(name, 0), rank)
            case Unary(_, operand):
                self.require(operand, rank)
            case Binary(op, left, right) if op != "@" and self.rank(expr) < rank:
                for part in (left, right):
                    if not isinstance(part, Var):  # a name by itself may as well be a scalar
                        self.require(part, rank)
            case Call(".copy", (first, *_)):
                self.require(first, rank)
            case _:
                pass

    def rank(self, expr: Expr) -> int:
        """The rank of an expression, by what is known of the arrays in it."""
        match expr:
            case Subscript(Var(name), index):
                whole = self.ranks.get(name, self.locals.get(name, 0))
                return max(0, whole - len(index) + sum(isinstance(part, Slice) for part in index))
            case Var(name):
                return (self.ranks if name in self.arrays else self.locals).get(name, 0)
            case Binary("@", left, right):
                return max(0, self.rank(left) + self.rank(right) - 2)
            case Binary(_, left, right):
                return max(self.rank(left), self.rank(right))
            case Unary(_, operand):
                return self.rank(operand)
            case Call(name) if reads_row(name) and name != ".copy":
                return 0
            case Call(name, arguments) if name.startswith("np.") or name == ".copy":
                return max(map(self.rank, arguments), default=0)
            case _:
                return 0
