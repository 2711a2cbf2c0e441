"""Types of arguments guessed from what helper functions do with what they are given, beside what the loop does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orion.cli.guess import Known, guess_types
from orion.dataclass import dataclass, field
from orion.ir.function import Function
from orion.ir.nodes import Assign, Binary, Bind, Call, Expr, Slice, Subscript, Tuple, Unary, Var, every
from orion.ir.types import ArgumentType, ArrayType, ScalarType, Types

ROUNDS = 5
DEPTH = 3
"""Names for names that are followed from an argument to an array."""


@dataclass(slots=True)
class _Guess:
    """What is known of the parameters of a function: ranks, dtypes of arrays, and kinds of scalars."""

    function: Function
    ranks: dict[str, int] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)

    def types(self) -> Types:
        first = guess_types(self.function)
        ranks = {name: max(rank, _rank(first.get(name))) for name, rank in self.ranks.items()}
        return guess_types(self.function, Known(ranks, {}, self.dtypes, self.scalars))

    def known(self) -> tuple[dict[str, int], dict[str, str], dict[str, str]]:
        return dict(self.ranks), dict(self.dtypes), dict(self.scalars)


def types_of(function: Function, ranks: Mapping[str, int]) -> Types:
    """Return the guessed types of a function's parameters, of which these ranks are known."""
    own = {one.name: _Guess(one) for one in function.helpers}
    outer = _Guess(function, dict(ranks))
    for _ in range(ROUNDS):
        before = [one.known() for one in (outer, *own.values())]
        kinds = {name: one.types() for name, one in own.items()}
        for one in (outer, *own.values()):
            _take_from_calls(one, kinds)
        if before == [one.known() for one in (outer, *own.values())]:
            break
    return outer.types()


def _take_from_calls(guess: _Guess, helpers: Mapping[str, Types]) -> None:
    """Note what helpers take of the parameters that a function passes on, and what is done with parts of them."""
    types = guess.types()
    for node in every(Subscript, *guess.function.body):
        if node.base.name not in types:
            _take(guess, node.base, ArrayType("float64", len(node.index)), types, DEPTH)
    for statement in every(Assign, *guess.function.body):
        if isinstance(statement.target, Tuple) and isinstance(statement.value, Subscript | Var):
            _take(guess, statement.value, ArrayType("float64", 1), types, DEPTH)
    for call in every(Call, *guess.function.body):
        kinds = helpers.get(call.function.removeprefix("helper:"), {})
        for argument, kind in zip(call.arguments, kinds.values(), strict=False):
            _take(guess, argument, kind, types, DEPTH)


def _take(guess: _Guess, argument: Expr, kind: ArgumentType, types: Types, depth: int) -> None:
    """Note that an argument is of a kind."""
    match argument:
        case Subscript(Var(name), index):
            added = len(index) - sum(isinstance(part, Slice) for part in index)
        case Var(name):
            added = 0
        case Unary(_, operand) if isinstance(kind, ScalarType):
            _take(guess, operand, kind, types, depth)
            return
        case Binary("+" | "-" | "*", left, right) if isinstance(kind, ScalarType):
            for part in (left, right):
                _take(guess, part, kind, types, depth)
            return
        case _:
            return
    if name not in types:
        for value in _values(guess.function, name) if depth else ():
            _take(guess, value, kind, types, depth - 1)
        return
    rank = added + (kind.ndim if isinstance(kind, ArrayType) else 0)
    if rank > _rank(types[name]):
        guess.ranks[name] = rank
    if isinstance(kind, ArrayType | ScalarType) and kind.dtype == "int64":
        if rank or _rank(types[name]):
            guess.dtypes.setdefault(name, "int64")
        else:
            guess.scalars.setdefault(name, "int")


def _rank(kind: ArgumentType | None) -> int:
    return kind.ndim if isinstance(kind, ArrayType) else 0


def _values(function: Function, name: str) -> Iterator[Expr]:
    """What a function gives a name of its own."""
    for node in every((Assign, Bind), *function.body):
        match node:
            case Assign(Var(own), value) if own == name:
                yield value
            case Bind(own, row) if own == name:
                yield row
