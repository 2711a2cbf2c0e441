"""Values that are arrays, element by element: what stands at one place of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from orion.dataclass import dataclass, field, replace
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Count,
    Dim,
    Expr,
    Node,
    Stmt,
    Subscript,
    Unary,
    Var,
    every,
    walk,
)
from orion.ir.renaming import fresh
from orion.typing.expression_types import Typing
from orion.typing.functions import is_elementwise, known
from orion.typing.value_type import ValueType

ELEMENTS_OF = (".copy", "np.copy", "np.outer", "np.expand_dims")
"""Functions whose results have the elements of their arguments, or products of them."""

Fits = Callable[[ValueType], bool]


class At(Protocol):
    """Gives the element of an array, or of a part of one, that goes along the last axes of the result, but for so many
    after it; None where it has no form as an expression."""

    def __call__(self, part: Var | Subscript, after: int = 0, /) -> Expr | None: ...


def element_of(value: Expr, name: str, index: tuple[Var, ...], typing: Typing, fits: Fits) -> Expr | None:
    """What is to be stored at `index` of the array `name`, where the array is given the value; None where that has no
    form as an expression. Storing it converts to the dtype of the array.

    `fits` tells whether the last of the subscripts may be those of a value: that its lengths fit is checked when the
    function is called. Elements are computed from elements of the same dtypes, so that they are NumPy's.
    """

    def at(part: Var | Subscript, after: int = 0) -> Expr | None:
        kind = typing.of(part)
        if not isinstance(part, Var) or not fits(kind) or after:
            return None
        return Subscript(part, index[len(index) - kind.rank :], part.span)

    match value:
        case Call(function) if (row := known(function)) and row.fill is not None:
            return _constant(row.fill, typing.of(value), value)
        case Call("np.full" | "np.full_like", (_, filling, *_)):
            found = filling if not typing.of(filling).rank and is_plain(filling) else None
        case Call("np.arange", (end,)) if typing.of(end).is_integer:
            found = index[-1]
        case Call(".astype", (array, *_)):
            found = element_at(array, typing, at)
        case _:
            found = element_at(value, typing, at)
    is_own = found is not None and any(
        node.base.name == name and node.index != index for node in every(Subscript, found)
    )
    return None if is_own else found


def element_at(part: Expr, typing: Typing, at: At) -> Expr | None:
    """The element of a value that is computed element by element, where `at` gives that of an array or of a part of
    one; None where it has no form as an expression."""

    def elements(parts: Iterable[Expr]) -> tuple[Expr, ...] | None:
        found = [element_at(one, typing, at) for one in parts]
        known = tuple(one for one in found if one is not None)
        return known if len(known) == len(found) else None

    if typing.of(part).rank == 0:
        return part if is_plain(part) else None
    match part:
        case Var() | Subscript():
            return at(part)
        case Call(".copy" | "np.copy", (array,)):
            return element_at(array, typing, at)
        case Call("np.outer", (left, right)) if typing.of(left).rank == typing.of(right).rank == 1:
            row = element_at(left, typing, lambda inner, after=0: at(inner, after + 1))
            column = element_at(right, typing, at)
            return None if row is None or column is None else Binary("*", row, column, part.span)
        case Call("np.expand_dims", (row, Const(axis))) if typing.of(row).rank == 1:
            after = int(axis in (1, -1))
            return element_at(row, typing, lambda inner, more=0: at(inner, more + after))
        case Binary(op, left, right) if op != "@" and (both := elements((left, right))):
            return replace(part, left=both[0], right=both[1])
        case Unary(_, operand) if one := elements((operand,)):
            return replace(part, operand=one[0])
        case Compare(_, operands) if found := elements(operands):
            return replace(part, operands=found)
        case Call(function, arguments) if (
            is_elementwise(function) and not part.keywords and (found := elements(arguments))
        ):
            return replace(part, arguments=found)
        case _:
            return None


@dataclass(slots=True)
class NamedScalars:
    """Names for the scalars in values that are arrays: `before` are the statements that give them. `typing` knows those
    names; they are like `name` and not among those `taken`."""

    typing: Typing
    name: str
    taken: set[str]
    before: list[Stmt] = field(default_factory=list)

    def taken_out(self, value: Expr) -> Expr:
        """A value that is computed element by element, with names for the scalars in it that are not cheap: they are
        computed once, as NumPy does it."""
        if self.typing.of(value).rank == 0:
            return value if is_plain(value) else self.named(value)
        match value:
            case Binary(op, left, right) if op != "@":
                return replace(value, left=self.taken_out(left), right=self.taken_out(right))
            case Unary(_, operand):
                return replace(value, operand=self.taken_out(operand))
            case Compare(_, operands):
                return replace(value, operands=tuple(map(self.taken_out, operands)))
            case Call("np.full" | "np.full_like", (shape, filling, *rest)):
                return replace(value, arguments=(shape, self.taken_out(filling), *rest))
            case Call(".astype", (array, *rest)):
                return replace(value, arguments=(self.taken_out(array), *rest))
            case Call(function, arguments) if is_elementwise(function) or function in ELEMENTS_OF:
                return replace(value, arguments=tuple(map(self.taken_out, arguments)))
            case _:
                return value

    def named(self, scalar: Expr) -> Var:
        """A name that is given the value before."""
        name = Var(fresh(self.name, self.taken), scalar.span)
        self.typing = self.typing.having({name.name: self.typing.of(scalar)})
        self.before.append(Assign(name, scalar, scalar.span))
        return name


def _constant(value: int, kind: ValueType, place: Expr) -> Const:
    """A constant of the type of an array's elements."""
    if kind.dtype == "bool":
        return Const(bool(value), place.span)
    return Const(value if kind.is_integer else float(value), place.span)


def is_plain(part: Expr) -> bool:
    """Whether a scalar may be computed once for each element: it is cheap."""
    match part:
        case Const() | Var() | Dim() | Count():
            return True
        case Unary(_, operand):
            return is_plain(operand)
        case Binary(_, left, right):
            return is_plain(left) and is_plain(right)
        case Subscript(_, index):
            return all(is_plain(one) for one in index)
        case _:
            return False


def cannot_fail(scalar: Expr) -> bool:
    """Whether computing a scalar raises nothing: it is made of names, numbers, and functions that NumPy has of each."""
    return all(map(_raises_nothing, walk(scalar)))


def _raises_nothing(part: Node) -> bool:
    match part:
        case Const() | Var() | Dim() | Count() | Unary() | Binary("+" | "-" | "*"):
            return True
        case Binary("**", _, Const(int(power))):
            return power >= 0
        case Call(function):
            return function.startswith("np.") and is_elementwise(function) and function != "np.power"  # of integers
        case _:
            return False
