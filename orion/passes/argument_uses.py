"""What a function does with an argument, for errors that say what to pass instead."""

from __future__ import annotations

from orion.ir.cures import Used
from orion.ir.function import Function
from orion.ir.matrix_cures import Stored
from orion.ir.nodes import Assign, Call, Const, Dim, Elements, Expr, For, Range, Subscript, Update, Var, every, names_in
from orion.passes.writes import written_names


def use_of(function: Function, name: str) -> Used:
    """What the function, as it is parsed, does with one of its parameters."""
    values = _values_of(function, name)
    indices = [part for place in every(Subscript, *function.body) for part in place.index]
    bounds = [bound for one in every(Range, *function.body) for bound in (one.start, one.stop, one.step)]
    is_index = any(values & _as_they_are(expr) for expr in (*indices, *bounds))
    return Used(name in written_names(function), is_index, _is_iterated(function, name), _stored(function, name))


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


def _is_iterated(function: Function, name: str) -> bool:
    """Whether it goes through elements, `for (i, j), v in A`, or those of a row, `for j, v in A[i]`: a range then, as
    if that were an array."""
    for space in every((Elements, Range), *function.body):
        match space:
            case Elements(array) | Range(stop=Call("len", (Subscript(Var(array)),))) if array == name:
                return True
    return False


def _stored(function: Function, name: str) -> Stored | None:
    """How it stores elements of a matrix, `A[r[k], c[k]] += v[k]`; None where it does not."""
    for one in every((Assign, Update), *function.body):
        match one.target:
            case Subscript(Var(array), (row, column)) if array == name and (isinstance(one, Assign) or one.op == "+"):
                arrays = _through_all(function, one, row, column)
                return Stored(arrays, isinstance(one, Update))
    return None


def _through_all(function: Function, store: Assign | Update, row: Expr, column: Expr) -> tuple[str, str, str] | None:
    """The arrays of rows, columns and values, where a loop by itself stores an element for each place in these."""
    match row, column, store.value:
        case (
            Subscript(Var(rows), (Var(place),)),
            Subscript(Var(columns), (Var(second),)),
            Subscript(Var(values), (Var(third),)),
        ) if place == second == third:
            pass
        case _:
            return None
    for statement in function.body:
        match statement:
            case For(Range(variable, Const(0), Dim(counted, 0), Const(1)), body) if (
                store in body and variable == place and counted in (rows, columns, values)
            ):
                return rows, columns, values
    return None
