"""Rows held in vector registers: loaded once, computed with as whole values, stored where they are assigned.

A row of an array is loaded when it is first used and kept under a name until something may have changed it; a private
row (`wi = W[i].copy()`) is a value under its own name. What cannot be done in registers raises `NotInRegistersError`,
and the statement is then written with NumPy's operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from orion.dataclass import dataclass
from orion.ir.nodes import Binary, Call, Const, Expr, Node, Slice, Stmt, Subscript, Unary, Var, every, holds, walk
from orion.ir.printer import print_expr
from orion.ir.spans import without_spans
from orion.kernel.emit.calls import Calls
from orion.kernel.emit.code import Code, call, infix, number
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.names import Names
from orion.kernel.emit.private import PrivateRows, RowsSpilledError
from orion.kernel.emit.writer import Writer
from orion.kernel.rows.linear import render
from orion.kernel.rows.terms import NotInRegistersError, RowTerms
from orion.typing.value_type import ValueType

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A whole row of an array: which one, what its index is made of, and the code of where it starts."""

    array: str
    index: tuple[Expr, ...]
    names: frozenset[str]
    length: int
    dtype: str

    @property
    def is_stable(self) -> bool:
        """Whether the index is made of scalars alone, so that equal indices mean equal rows."""
        return not holds((Subscript, Call), *self.index)


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """A row in registers, and the code of where it starts."""

    name: str
    start: str


Known = tuple[dict[RowPlace, LoadedRow], dict[tuple[str, str, int], str]]


class Rows(Calls, RowTerms):
    """Emits row expressions that can be computed in registers."""

    def __init__(self, facts: LoopFacts, names: Names, writer: Writer, private: PrivateRows) -> None:
        super().__init__(facts, names, writer)
        self.registers = private.registers
        self.buffers = private.buffers
        self.loaded: dict[RowPlace, LoadedRow] = {}
        self.row_names: dict[RowPlace, str] = {}
        self.touched: dict[RowPlace, None] = {}
        self.written: dict[int, tuple[Stmt, set[str], Collection[str]]] = {}
        """What statements write, arrays and then names, by their identities."""

    def attempt(self, emit: Callable[[], T]) -> T | None:
        """What `emit` gives; None, and no trace of it, where it raises NotInRegistersError."""
        lines, known = len(self.writer.lines), self.known()
        try:
            return emit()
        except NotInRegistersError:
            del self.writer.lines[lines:]
            self.go_back_to(known)
            return None

    def known(self) -> Known:
        """The rows that are in registers, and the subscripts that have been checked."""
        return dict(self.loaded), dict(self.inside)

    def go_back_to(self, known: Known) -> None:
        """Forget what was found since then: it may not have been run."""
        self.loaded, self.inside = dict(known[0]), dict(known[1])

    def variable(self, name: str) -> Code:
        if name in self.registers:
            raise RowsSpilledError(frozenset({name}))
        return super().variable(name)

    def element(self, subscript: Subscript) -> str:
        if subscript.base.name in self.registers:
            raise RowsSpilledError(frozenset({subscript.base.name}))
        return super().element(subscript)

    # ------------------------------------------------------------ row expressions

    def row_length(self, kind: ValueType) -> int | None:
        return self.facts.register_row(kind)

    def row(self, expr: Expr, in_sum: bool = False) -> Code:
        """The code of a row expression; raises NotInRegistersError where it has no such form. `in_sum`: its elements
        are terms of a sum, which need not be rounded as written."""
        kind = self.type_of(expr)
        length = self.row_length(kind)
        if length is None:
            raise NotInRegistersError
        return render(self.term(expr, length, kind.dtype), kind.dtype, in_sum and self.facts.fastmath).code

    def scalar_factor(self, expr: Expr, dtype: str) -> Code:
        """A scalar in a row expression; given a name first where it takes work."""
        code = self.operand(expr, dtype)
        if self.writer.in_place or all(_is_plain(part) for part in walk(expr)):
            return code
        name = self.names.fresh("factor")
        self.writer.add(f"{name} = {code.text}")
        return Code(name, dtype)

    # ------------------------------------------------------------ rows of arrays

    def leaf(self, expr: Subscript | Var) -> str:
        """The name under which a row is in registers; loads it where it is not yet."""
        if isinstance(expr, Var) and self.facts.array(expr.name) is None:
            if expr.name not in self.registers:
                raise NotInRegistersError
            return self.names.user(expr.name)
        place = self.place(expr)
        if place in self.loaded:
            return self.loaded[place].name
        self.touched[place] = None
        start = self.start(expr)
        load = f"load_row({self.names.user(place.array)}, {start}, {place.length})"
        if self.writer.in_place:
            return load
        return self.keep(place, start, load).name

    def keep(self, place: RowPlace, start: str, value: str) -> LoadedRow:
        """Put a row in registers under its name."""
        row = LoadedRow(self.row_name(place), start)
        self.writer.add(f"{row.name} = {value}")
        if place.is_stable:
            self.loaded[place] = row
        return row

    def place(self, expr: Subscript | Var) -> RowPlace:
        """Which row of which array; raises NotInRegistersError for anything but a whole row of a C-contiguous array."""
        base = expr if isinstance(expr, Var) else expr.base
        index = () if isinstance(expr, Var) else expr.index
        kind = self.facts.array(base.name)
        length = self.facts.register_row(self.type_of(expr))
        if kind is None or not kind.c_contiguous or length is None or base.name not in self.facts.shapes:
            raise NotInRegistersError
        leading, rest = index[: kind.ndim - 1], index[kind.ndim - 1 :]
        whole = all(isinstance(part, Slice) and part.lower is part.upper is part.step is None for part in rest)
        if not whole or len(leading) < kind.ndim - 1 or any(self.is_row(part) for part in leading):
            raise NotInRegistersError
        names = frozenset(part.name for part in every(Var, *leading))
        return RowPlace(base.name, tuple(without_spans(part) for part in leading), names, length, kind.dtype)

    def is_row(self, part: Expr) -> bool:
        return isinstance(part, Slice) or self.type_of(part).rank > 0

    def row_name(self, place: RowPlace) -> str:
        if place not in self.row_names:
            index = "_".join(print_expr(part) for part in place.index) or "all"
            self.row_names[place] = self.names.fresh(f"{place.array}_{index}")
        return self.row_names[place]

    def start(self, expr: Subscript | Var) -> str:
        """The code of where a row starts, in elements from the start of its array."""
        if isinstance(expr, Var):
            return "0"
        name = expr.base.name
        kind = self.facts.array(name)
        assert kind is not None
        base = self.names.user(name)
        at: Code | None = None
        for axis, part in enumerate(expr.index[: kind.ndim - 1]):
            subscript = self.row_subscript(expr, axis, part, base)
            if at is None:
                at = subscript
            else:
                scaled = infix("*", at, self.extent(name, axis), "int64")
                at = infix("+", scaled, subscript, "int64")
        if at is None:
            return "0"
        text = infix("*", at, number(self.facts.stride(name), "int64"), "int64").text
        return text if self.writer.in_place else self.named_start(expr, text)

    def row_subscript(self, expr: Subscript, axis: int, part: Expr, base: str) -> Code:
        if self.is_proved(expr, axis):
            return self.operand(part, "int64")
        return call("int64", self.index(expr, axis, part, base), dtype="int64")

    def named_start(self, expr: Subscript, text: str) -> str:
        """Where a row starts, under a name where computing it twice would be work."""
        if not self.is_checked(expr.span):
            return text
        name = self.names.fresh(f"{expr.base.name}_at")
        self.writer.add(f"{name} = {text}")
        return name


def _is_plain(part: Node) -> bool:
    return isinstance(part, Var | Const | Unary) or (isinstance(part, Binary) and part.op != "@")
