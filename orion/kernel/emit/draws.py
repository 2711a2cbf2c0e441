"""Random numbers by key as what is compiled for them: the limits, the seed, the number of keys, the keys, the place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from orion.ir.function import Function
from orion.ir.nodes import Call, Const, Expr, Tuple
from orion.ir.rewriting import rewrite_function
from orion.keyed_random import padding

T = TypeVar("T")
NO_SITE = -1
ROWS = {
    "orion.random": ("uniform_of", 0),
    "orion.random.normal": ("normal_of", 0),
    "orion.random.integers": ("integer_between", 2),
}
"""Function → what is called for it, and how many limits stand before the seed."""


def arranged(function: str, given: Sequence[T], zero: T) -> tuple[str, list[T], int, list[T], bool]:
    """What is called; the limits and the seed; the number of keys; the keys, with zeros after them; whether it has
    limits, and so a place to tell.

    >>> arranged("orion.random", ["seed", "i"], "0")
    ('uniform_of', ['seed'], 1, ['i', '0'], False)
    """
    called, limits = ROWS[function]
    first, keys = [*given[: limits + 1]], given[limits + 1 :]
    return called, first, len(keys), [*keys, *[zero] * padding(len(keys))], limits > 0


def with_draws(helper: Function) -> Function:
    """A function that is compiled as it is, with what is compiled for random numbers in it."""

    def changed(expr: Expr) -> Expr:
        if not (isinstance(expr, Call) and expr.function in ROWS):
            return expr
        span = expr.span
        given = [Call("int64", (argument,), span) for argument in expr.arguments]
        zero = Call("int64", (Const(0, span),), span)
        called, first, count, keys, has_limits = arranged(expr.function, given, zero)
        site = (Const(NO_SITE, span),) if has_limits else ()
        return Call(called, (*first, Const(count, span), Tuple(tuple(keys), span), *site), span)

    return rewrite_function(helper, changed)
