"""Parameters and loop variables that are given other values: from there on they have another name.

    def f(a, i):                        def f(a, i):
        s = 2 * i                           s = 2 * i
        for i in range(len(a)):             for i_ in range(len(a)):
            a[i] += s                           a[i_] += s

A name has one type, which holds all that it is given: a float among the arguments would make a loop variable of that
name one, which is no subscript. Where the value of the call may be read later, as no trip may have been made, only the
loop's own variable has another name, and gives each value to the parameter. The same holds of the variable of a loop
that a statement behind it gives a value that may be no integer, `i = a[0]`.
"""

from __future__ import annotations

from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function, HelperLocal
from orion.ir.nodes import Assign, Call, For, Range, Stmt, Subscript, Var, every, holds, names_in
from orion.ir.renaming import fresh, renamed
from orion.ir.rewriting import expand, with_new
from orion.ir.types import ScalarType, Types

INTEGER = ScalarType("int64", weak=True)
"""The type of loop variables."""


def with_parameters_given_anew(function: Function, types: Types) -> Function:
    """The function with names of their own for what it gives to parameters; to integers of Python's, where the value of
    the call is not read any more: both then have values that are known when a call begins."""
    changed = assigned_names(function.body)
    names = [name for name in function.params if name in changed and isinstance(types.get(name), ScalarType)]
    taken = {*function.params, *changed, *names_in(*function.body)}
    for name in names:
        if types[name] != INTEGER or not _is_read_from_there(function.body, name):
            own = fresh(f"{name}_", taken)
            body = _from_there(function.body, name, own)
            if body != function.body:
                said = *function.helper_locals, HelperLocal(own, "", name)
                function = with_new(function, body=body, helper_locals=said)
    return _with_variables_given_anew(function, taken)


def _with_variables_given_anew(function: Function, taken: set[str]) -> Function:
    """Return the function with names of their own for what statements behind loops give the variables of these."""
    variables = dict.fromkeys(one.space.var for one in every(For, *function.body) if isinstance(one.space, Range))
    for variable in variables:
        if not any(_gives_what_is_read(statement, variable) for statement in function.body):
            continue
        name = variable
        for place in range(len(function.body)):
            rest = function.body[place:]
            is_new = name in assigned_names(rest[:1]) and name not in exposed_reads(rest, ())
            if is_new and name in assigned_names(function.body[:place]):
                own = fresh(f"{variable}_", taken)
                taken.add(own)
                body = *function.body[:place], *(renamed(one, {name: own}) for one in rest)
                said = *function.helper_locals, HelperLocal(own, "", variable)
                function, name = with_new(function, body=body, helper_locals=said), own
    return function


def _gives_what_is_read(statement: Stmt, name: str) -> bool:
    """Whether a statement gives a name what is read from an array, or what a call returns."""
    match statement:
        case Assign(Var(target), value):
            return target == name and holds((Subscript, Call), value)
        case _:
            return False


def _first(body: tuple[Stmt, ...], name: str) -> int:
    """The place of the first statement that gives a name a value."""
    return next(place for place, statement in enumerate(body) if name in assigned_names((statement,)))


def _is_read_from_there(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether what a parameter is given in the call may be read in the statement that gives it another, or later."""
    return name in exposed_reads(body[_first(body, name) :], ())


def _from_there(body: tuple[Stmt, ...], name: str, own: str) -> tuple[Stmt, ...]:
    first = _first(body, name)
    if not _is_read_from_there(body, name):
        return (*body[:first], *(renamed(statement, {name: own}) for statement in body[first:]))
    return expand(body, lambda statement: (_with_own_variable(statement, name, own),))


def _with_own_variable(statement: Stmt, name: str, own: str) -> Stmt:
    """A loop whose variable is called so, with another one; any other statement as it is."""
    match statement:
        case For(Range(var), body) if var == name and name not in assigned_names(body):
            given = Assign(Var(name, statement.span), Var(own, statement.span), statement.span)
            loop = renamed(statement, {name: own})
            return replace(loop, body=(given, *loop.body))
        case _:
            return statement
