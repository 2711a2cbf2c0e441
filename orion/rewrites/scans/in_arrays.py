"""Elements of an array that iterations hand on, as scalars.

    for i in range(1, n):                 s = a[1 - 1]
        a[i] = a[i - 1] + x[i]            for i in range(1, n):
                                              s = s + x[i]
                                              a[i] = s

It is the same where the loop mentions the array nowhere but in

    one store, a[i + c], at the top level of its body,
    reads of the element that the iteration before stored, up to and in that store, and
    reads of its own element,

and the scalar holds every value that an element can, and no others: float64 and int64.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_names
from orion.ir.constants import constant_value
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Const,
    Expr,
    For,
    Range,
    Subscript,
    Update,
    Var,
    count_names,
    every,
    names_in,
)  # fmt: skip
from orion.ir.renaming import fresh
from orion.ir.rewriting import rewrite
from orion.ir.spans import without_spans
from orion.ir.sums import difference, plus
from orion.typing.expression_types import Typing
from orion.typing.value_type import ValueType

DTYPES = ("float64", "int64")


@dataclass(frozen=True, slots=True)
class Moved:
    """A scalar in place of elements of an array; `begins` is what it is when the loop begins."""

    scalar: str
    begins: Subscript


@dataclass(frozen=True, slots=True)
class WithScalars:
    """A loop with scalars in place of elements that iterations hand on, and the types with those of the scalars."""

    loop: For
    moved: tuple[Moved, ...]
    typing: Typing


@dataclass(frozen=True, slots=True)
class Store:
    """The only store to an array in a loop, statement number `at` of its body. `own` and `before` are the subscripts of
    the element that an iteration stores and of that which the one before it did."""

    at: int
    array: str
    own: tuple[Expr, ...]
    before: tuple[Expr, ...]

    @classmethod
    def of(cls, at: int, loop: For) -> Store | None:
        """What a statement in a loop stores, if it goes along one axis of an array with the loop."""
        statement, space = loop.body[at], loop.space
        step = constant_value(space.step) if isinstance(space, Range) else None
        match statement:
            case Assign(Subscript(Var(array), index)) | Update(Subscript(Var(array), index)) if step in (1, -1):
                pass
            case _:
                return None
        assert isinstance(space, Range)
        moving = [place for place, one in enumerate(index) if space.var in names_in(one)]
        others = names_in(*(one for one in index if space.var not in names_in(one)))
        if len(moving) != 1 or not others.isdisjoint(assigned_names(loop.body)):
            return None
        (place,) = moving
        if not _is_along(index[place], space.var):
            return None
        before = tuple(plus(one, -step) if k == place else one for k, one in enumerate(index))
        return cls(at, array, index, before)

    def is_own(self, index: tuple[Expr, ...]) -> bool:
        return _are_equal(index, self.own)

    def is_before(self, index: tuple[Expr, ...]) -> bool:
        return _are_equal(index, self.before)


def _is_along(index: Expr, variable: str) -> bool:
    match index:
        case Var(name) | Binary("+" | "-", Var(name), Const()):
            return name == variable
        case _:
            return False


def _are_equal(one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
    return len(one) == len(other) and all(
        without_spans(left) == without_spans(right) or constant_value(difference(left, right)) == 0
        for left, right in zip(one, other, strict=True)
    )


def with_scalars(loop: For, typing: Typing, function: Function) -> WithScalars:
    """The loop with a scalar for each array of which iterations read what the one before stored."""
    taken, moved, kinds = {*typing.names, *function.params}, list[Moved](), dict[str, ValueType]()
    for array in [one.array for one in _stores(loop, typing)]:
        store = next(one for one in _stores(loop, typing) if one.array == array)
        if any(store.is_before(one.index) for one in _reads(loop, store)):
            name = fresh(f"{array}_before", taken)
            moved.append(Moved(name, _at_begin(store, loop)))
            kinds[name] = ValueType(typing.name(array).dtype)
            loop = _with_scalar(loop, store, name)
    return WithScalars(loop, tuple(moved), typing.having(kinds))


def stored_last(loop: For, typing: Typing) -> Set[str]:
    """The arrays of which iterations read no element but their own, and that before they store it."""
    return {
        store.array
        for store in _stores(loop, typing)
        if all(store.is_own(one.index) for one in _reads(loop, store))
        and not count_names(loop.body[store.at + 1 :], store.array)
    }


def _stores(loop: For, typing: Typing) -> Iterator[Store]:
    """The stores to arrays that the loop mentions nowhere else but in reads of the stored element, and before it of the
    one that the iteration before stored."""
    for at in range(len(loop.body)):
        store = Store.of(at, loop)
        kind = None if store is None else typing.names.get(store.array)
        if store is None or kind is None or kind.rank != len(store.own) or kind.dtype not in DTYPES:
            continue
        reads, late = _reads(loop, store), loop.body[at + 1 :]
        after = [one for one in every(Subscript, *late) if one.base.name == store.array]
        is_only = len(reads) + 1 == count_names(loop.body, store.array)
        are_known = all(store.is_own(one.index) or store.is_before(one.index) for one in reads)
        if is_only and are_known and all(store.is_own(one.index) for one in after):
            yield store


def _reads(loop: For, store: Store) -> list[Subscript]:
    """The elements of the array that a loop mentions beside the one that it stores."""
    statement = loop.body[store.at]
    assert isinstance(statement, Assign | Update)
    found = [one for one in every(Subscript, *loop.body) if one.base.name == store.array]
    found.remove(statement.target)  # type: ignore[arg-type]  # `a[i] += …` reads it, too, and so may a value
    return found


def _at_begin(store: Store, loop: For) -> Subscript:
    """The element that the first iteration finds stored."""
    space, span = loop.space, loop.body[store.at].span
    assert isinstance(space, Range)
    variable, start = space.var, space.start
    element = Subscript(Var(store.array, span), store.before, span)
    found = rewrite(element, lambda one: start if isinstance(one, Var) and one.name == variable else one)
    assert isinstance(found, Subscript)
    return found


def _with_scalar(loop: For, store: Store, name: str) -> For:
    """The loop with a scalar in place of the element that the iteration before stored."""

    def change(one: Expr) -> Expr:
        is_it = isinstance(one, Subscript) and one.base.name == store.array and store.is_before(one.index)
        return Var(name, one.span) if is_it else one

    body = [rewrite(one, change) for one in loop.body[: store.at + 1]]
    statement = body[-1]
    assert isinstance(statement, Assign | Update)
    target, span = statement.target, statement.span
    value = statement.value
    if isinstance(statement, Update):
        value = Binary(statement.op, target, value, span)
    given = (Assign(Var(name, span), value, span), Assign(target, Var(name, span), span))
    return replace(loop, body=(*body[:-1], *given, *loop.body[store.at + 1 :]))
