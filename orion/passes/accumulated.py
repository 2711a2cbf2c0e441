"""The numbers of accumulators keep their types: what `combine` gives is of the kind of `init`."""

from __future__ import annotations

from orion.ir.function import Function
from orion.ir.refuse import unsupported
from orion.typing.expression_types import Typing


def refuse_other_numbers(function: Function, typing: Typing) -> None:
    """UnsupportedLoopError where combining would give a number of an accumulator another type than `init` has."""
    for one in function.accumulated:
        for number, (name, dtype) in enumerate(zip(one.names, one.dtypes, strict=True)):
            kind = typing.names[name]
            if kind.dtype != dtype or kind.rank:
                which = f"number {number} of `{one.source}`" if one.is_tuple else f"`{one.source}`"
                found = f"an array of {kind.dtype}" if kind.rank else kind.dtype
                what = f"what `{one.written}` gives for {which} is {found}, and `init` has {dtype} there"
                hint = "give an `init` of the kind of what is added: 0.0, not 0, for floats"
                raise unsupported(what, one.span, function.source, hint=hint, is_for_numba=False)
