"""The ranks of arrays that are passed to helper functions, from what these do with them."""

from __future__ import annotations

from collections.abc import Mapping

from orion.cli.guess import Known, guess_types
from orion.ir.function import Function
from orion.ir.nodes import Call, Expr, Slice, Subscript, Var, every
from orion.ir.types import ArrayType, ScalarType, Types

ROUNDS = 4


def types_of(function: Function, ranks: Mapping[str, int], scalars: Mapping[str, str]) -> Types:
    """Return the guessed types of a function's parameters. What its helpers take as arrays are arrays."""
    known = dict(ranks)
    own = dict.fromkeys((one.name for one in function.helpers), Known())
    for _ in range(ROUNDS):
        before = dict(known), dict(own)
        for one in (function, *function.helpers):
            given = Known(ranks=known, scalars=scalars) if one is function else own[one.name]
            kinds = {each.name: guess_types(each, own[each.name]) for each in function.helpers}
            found = _passed(one, kinds, guess_types(one, given), dict(given.ranks))
            if one is function:
                known = found
            else:
                own[one.name] = Known(ranks=found)
        if before == (known, own):
            break
    return guess_types(function, Known(ranks=known, scalars=scalars))


def _passed(
    function: Function, helpers: Mapping[str, Types], types: Types, ranks: dict[str, int]
) -> dict[str, int]:
    """Return the ranks of the parameters of a function that it passes on to helpers as arrays."""
    for call in every(Call, *function.body):
        kinds = helpers.get(call.function, {})
        for argument, kind in zip(call.arguments, kinds.values(), strict=False):
            if isinstance(kind, ArrayType):
                _raise(argument, kind.ndim, types, ranks)
    return ranks


def _raise(argument: Expr, rank: int, types: Types, ranks: dict[str, int]) -> None:
    match argument:
        case Subscript(Var(name), index):
            rank += len(index) - sum(isinstance(part, Slice) for part in index)
        case Var(name):
            pass
        case _:
            return
    kind = types.get(name)
    if isinstance(kind, ScalarType) or (isinstance(kind, ArrayType) and kind.ndim < rank):
        ranks[name] = rank
