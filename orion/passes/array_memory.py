"""Which memory a new array takes: such as no name needs any more, of the same dtype and lengths."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from orion.dataclass import dataclass, field, replace
from orion.ir.nodes import Binary, Call, Dim, Expr, Node, Subscript, Unary, Var, every, names_in
from orion.ir.renaming import renamed
from orion.ir.rewriting import rewrite
from orion.ir.spans import with_span, without_spans
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.functions import is_elementwise
from orion.typing.value_type import ValueType

Key = tuple[object, ...]
N = TypeVar("N", bound=Node)


@dataclass(slots=True)
class Memory:
    """`typing` has the types of all names, `changing` are the names that the function assigns, `taken` all names.
    `arrays` are the arrays by what they may hold, in the order in which they were first needed; `given` those of the
    caller. `known` has the lengths of arrays that are made, where they are the same in the whole function, `made_for`
    the names for which they are made."""

    typing: Typing
    changing: Collection[str]
    taken: set[str]
    arrays: dict[Key, list[str]] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    known: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    made_for: dict[str, set[str]] = field(default_factory=dict)

    def with_given(self, name: str, kind: ValueType) -> None:
        """Note an array of the caller's."""
        self.given.add(name)
        self.note(name, kind)

    def note(self, name: str, kind: ValueType) -> None:
        self.typing = self.typing.having({name: kind})

    def chosen(self, name: str, value: Expr, item: int | None, busy: Collection[str], place: Span) -> str:
        """The array that a value is written into, which the name then stands for; of a tuple, item number `item`. None
        of those that are `busy`, and none that the value reads at other places than it writes."""
        kind = self.kind(value) if item is None else self.kind(value).items[item]
        kind = replace(kind, lengths=tuple(self.lasting(length) for length in kind.lengths))
        known = all(length is not None for length in kind.lengths)
        key: Key = (isinstance(value, Subscript), kind.dtype, kind.lengths) if known else (name, place)
        found = self.arrays.setdefault(key, [])
        for array in found:
            if array not in busy and (array not in names_in(value) or reads_by_elements(value, array)):
                self.made_for[array].add(name)
                return array
        array = self.fresh(name)
        found.append(array)
        self.made_for[array] = {name}
        self.note(array, kind)
        if known:
            self.known[array] = tuple(length for length in kind.lengths if length is not None)
        return array

    def kind(self, value: Expr) -> ValueType:
        return self.typing.of(value)

    def with_lengths(self, node: N) -> N:
        """Code that asks for lengths of arrays of the caller's, not of such as are made of these."""

        def change(expr: Expr) -> Expr:
            match expr:
                case Dim(array, axis) if array in self.known:
                    return with_span(self.known[array][axis], expr.span)
                case Call("len", (Var(array),)) if array in self.known:
                    return with_span(self.known[array][0], expr.span)
                case _:
                    return expr

        return rewrite(node, change) if self.known else node

    def lasting(self, length: Expr | None) -> Expr | None:
        """A length, where it is the same in the whole function; else None."""
        if length is None:
            return None
        length = renamed(length, {name + GIVEN: name for name in self.given})
        named = names_in(length) | {part.array for part in every(Dim, length)}
        return without_spans(length) if named.isdisjoint(self.changing) else None

    def fresh(self, name: str) -> str:
        """The name itself where no array has it yet, else one like it."""
        if all(name not in group for group in self.arrays.values()) and name not in self.given:
            return name
        number = 1
        while f"{name}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{name}_{number}")
        return f"{name}_{number}"

    def fresh_scalar(self, name: str) -> str:
        """A new name."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


GIVEN = " as it is given"
"""What is added to the name of an argument, where the name stands for other arrays too."""


def reads_by_elements(value: Expr, array: str) -> bool:
    """Whether each element of a value is made of the element of an array at the same place, if of any of that array.

    >>> from orion.ir.nodes import Binary, Call, Var
    >>> from orion.ir.spans import NOWHERE
    >>> x = Var("x", NOWHERE)
    >>> reads_by_elements(Binary("*", x, x, NOWHERE), "x"), reads_by_elements(Call("np.cumsum", (x,), NOWHERE), "x")
    (True, False)
    """
    match value:
        case Var():
            return True
        case Binary(op, left, right) if op != "@":
            return reads_by_elements(left, array) and reads_by_elements(right, array)
        case Unary(_, operand):
            return reads_by_elements(operand, array)
        case Call(function, arguments) if is_elementwise(function):
            return all(reads_by_elements(part, array) for part in arguments)
        case _:
            return array not in names_in(value)
