"""How code that cannot be compiled is refused."""

from __future__ import annotations

from collections.abc import Iterable

from orion.errors import UnsupportedLoopError, describe
from orion.loop.ir import Expr
from orion.loop.printer import print_expr
from orion.loop.source import SourceText, Span


def unsupported(what: str, span: Span, source: SourceText, *, why: str = "", hint: str = "") -> UnsupportedLoopError:
    """The error to raise for a piece of the user's source: what, where, why, and what to write instead."""
    return UnsupportedLoopError(describe(what, span=span, source=source, why=why, hint=hint))


def no_truth_value(op: str, operands: Iterable[Expr], span: Span, source: SourceText) -> UnsupportedLoopError:
    """An error for an `and` or `or` of values that are not truth values: the hint has the same as a conditional
    expression."""
    first, *others = map(print_expr, operands)
    sides = f" {op} ".join(others), first
    then, orelse = sides if op == "and" else sides[::-1]
    hint = f"write `{then} if {first} else {orelse}`"
    return unsupported(f"the value of this `{op}` is not a truth value", span, source, hint=hint)
