"""Which arrays code may write through the names that it has for them: views, and parameters of helper functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from orion.dataclass import dataclass, field
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Bind,
    Call,
    Choose,
    Expr,
    Node,
    Return,
    Slice,
    Subscript,
    Tuple,
    Update,
    Var,
    every,
    walk,
)
from orion.typing.functions import may_be_view, writes

Ranks = Mapping[str, int | None]
"""Name → its number of dimensions; None, or no entry, where that is not known."""


def viewed_names(expr: Expr) -> Iterator[str]:
    """The names of the arrays that the value of an expression may share memory with.

    >>> from orion.ir.spans import NOWHERE
    >>> row = Subscript(Var("W", NOWHERE), (Var("i", NOWHERE),), NOWHERE)
    >>> list(viewed_names(Call(".ravel", (row,), NOWHERE))), list(viewed_names(Call(".copy", (row,), NOWHERE)))
    (['W'], [])
    """
    for place in viewed_places(expr):
        yield place.base.name if isinstance(place, Subscript) else place.name


def viewed_places(expr: Expr) -> Iterator[Var | Subscript]:
    """The parts of arrays that the value of an expression may share memory with."""
    match expr:
        case Var() | Subscript():
            yield expr
        case Call(name, (owner, *_)) if may_be_view(name):
            yield from viewed_places(owner)
        case Call(name, arguments) if name.startswith("helper:"):
            for argument in arguments:
                yield from viewed_places(argument)
        case Choose(_, then, orelse):
            yield from viewed_places(then)
            yield from viewed_places(orelse)
        case _:
            pass


def rank_of(expr: Expr, ranks: Ranks) -> int | None:
    """The number of dimensions of an expression that may be a view; None where it is not known.

    >>> from orion.ir.spans import NOWHERE
    >>> rank_of(Subscript(Var("W", NOWHERE), (Var("i", NOWHERE),), NOWHERE), {"W": 2})
    1
    """
    match expr:
        case Var(name):
            return ranks.get(name)
        case Subscript(Var(name), index):
            rank = ranks.get(name)
            return None if rank is None else max(0, rank - sum(not isinstance(part, Slice) for part in index))
        case Call(name, (owner, *_)) if may_be_view(name):
            return rank_of(owner, ranks)
        case _:
            return None


def local_ranks(body: tuple[Node, ...], ranks: Ranks) -> dict[str, int | None]:
    """`ranks`, and those of the names that statements give to parts of arrays."""
    found = dict(ranks)
    known = set(ranks)
    for node in every((Assign, Bind), *body):
        for name, value in _bindings(node):
            rank = rank_of(value, found)
            found[name] = rank if name not in known or found[name] == rank else None
            known.add(name)
    return found


def written_parameters(function: Function, helper: str, ranks: tuple[int | None, ...] = ()) -> tuple[int, ...]:
    """The positions of the parameters whose elements the helper function may write.

    `ranks` are the numbers of dimensions of the arguments, as far as they are known: a scalar cannot be written.
    Names bound to a parameter or to a part of it count as that parameter.
    """
    body = next(candidate for candidate in function.helpers if candidate.name == helper)
    effects = _effects(function, body, ranks)
    return tuple(position for position, name in enumerate(body.params) if name in effects.written)


def written_names(function: Function) -> set[str]:
    """The parameters whose elements the function, or a helper that it calls, may write."""
    return _effects(function, function, ()).written


def _effects(function: Function, body: Function, ranks: tuple[int | None, ...]) -> _Effects:
    given = dict(zip(body.params, ranks, strict=False))
    shared = {name: frozenset({name}) for name in body.params if given.get(name) != 0}
    effects = _Effects(function, local_ranks(body.body, given), shared)
    before: dict[str, frozenset[str]] = {}
    while before != effects.shared:  # until no name is found to share memory with a further parameter
        before = dict(effects.shared)
        for statement in body.body:
            for node in walk(statement):
                effects.note(node)
    return effects


def returns_views(function: Function, helper: str) -> bool:
    """Whether a helper function may return a part of one of its arguments rather than new values."""
    body = next(candidate for candidate in function.helpers if candidate.name == helper)
    effects = _effects(function, body, ())
    values = [node.value for node in every(Return, *body.body)]
    parts = [part for value in values for part in (value.items if isinstance(value, Tuple) else (value,))]
    return any(part is not None and effects.parameters(part) for part in parts)


@dataclass(slots=True)
class _Effects:
    """What a helper function does to its parameters: which ones a name shares memory with, which are written."""

    function: Function
    ranks: Ranks
    shared: dict[str, frozenset[str]]
    written: set[str] = field(default_factory=set)

    def note(self, node: Node) -> None:
        for name, value in _bindings(node):
            if rank_of(value, self.ranks) != 0:
                self.shared[name] = self.shared.get(name, frozenset()) | self.parameters(value)
        match node:
            case Assign(Subscript(base)) | Update(Subscript(base)) | Update(Var() as base):
                self.written |= self.parameters(base)
            case Assign(Tuple(items)):
                for item in items:
                    self.written |= self.parameters(item.base) if isinstance(item, Subscript) else frozenset()
            case Call():
                for position in written_positions(node, self.function, self.ranks):
                    self.written |= self.parameters(node.arguments[position])
            case _:
                pass

    def parameters(self, value: Expr) -> frozenset[str]:
        return frozenset().union(*(self.shared.get(name, frozenset()) for name in viewed_names(value)))


def written_positions(call: Call, function: Function, ranks: Ranks) -> tuple[int, ...]:
    """The positions of the arguments of a call that it may write in place."""
    if call.function.startswith("helper:"):
        given = tuple(rank_of(argument, ranks) for argument in call.arguments)
        return written_parameters(function, call.function.removeprefix("helper:"), given)
    return (0,) if writes(call.function) else ()


def helper_writes(function: Function, ranks: Ranks) -> Callable[[Call], bool]:
    """Whether a call is one of a helper that may write an array."""
    return lambda call: call.function.startswith("helper:") and bool(written_positions(call, function, ranks))


def _bindings(node: Node) -> Iterator[tuple[str, Expr]]:
    """The names that the node assigns, each with what it may share memory with after that."""
    match node:
        case Assign(Var(name), value) | Bind(name, value):
            yield name, value
        case Assign(Tuple(targets), Tuple(values)) if len(targets) == len(values):
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, Var):
                    yield target.name, value
        case Assign(Tuple(targets), value):
            for target in targets:
                if isinstance(target, Var):
                    yield target.name, value
        case _:
            pass
