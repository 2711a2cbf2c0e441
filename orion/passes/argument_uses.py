"""What a function does with an argument, for errors that say what to pass instead."""

from __future__ import annotations

from orion.ir.cures import Used
from orion.ir.function import Function
from orion.ir.nodes import Assign, Call, Expr, Range, Subscript, Var, every, names_in
from orion.passes.writes import written_names


def use_of(function: Function, name: str) -> Used:
    """What the function, as it is parsed, does with one of its parameters."""
    values = _values_of(function, name)
    indices = [part for place in every(Subscript, *function.body) for part in place.index]
    bounds = [bound for one in every(Range, *function.body) for bound in (one.start, one.stop, one.step)]
    is_index = any(values & _as_they_are(expr) for expr in (*indices, *bounds))
    return Used(is_written=name in written_names(function), is_index=is_index)


def _values_of(function: Function, name: str) -> set[str]:
    """The name, and those of scalars that are its elements as they are: `k = lab[i]`."""
    found = {name}
    for one in every(Assign, *function.body):
        if isinstance(one.target, Var) and isinstance(one.value, Var | Subscript) and found & _as_they_are(one.value):
            found.add(one.target.name)
    return found


def _as_they_are(expr: Expr) -> set[str]:
    """The names in an expression whose values it has without a call that would make integers of them."""
    return names_in(expr) - {name for call in every(Call, expr) for name in names_in(call)}
