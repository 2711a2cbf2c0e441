"""Names that stand for one array here and for another there: two that change places, one that is given a new array.

    for t in range(T):                              for t in range(0, T - 1, 2):
        for i in range(1, n - 1):                       for i in range(1, n - 1):
            v[i] = f(u[i - 1], u[i + 1])                    v[i] = f(u[i - 1], u[i + 1])
        u, v = v, u                                     for i in range(1, n - 1):
                                                            u[i] = f(v[i - 1], v[i + 1])
                                                    if T is odd: the first of the two once more

Python only gives the arrays other names; nothing is copied. What the names stand for at one place of a program is one
of a few: the program is written out for each of them (`orion.passes.array_states`), as a finite automaton is, so that
a name is one array in all that follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function, Stands
from orion.ir.nodes import Assign, Choose, Expr, For, If, Stmt, Subscript, Tuple, Var, every, names_in
from orion.ir.rewriting import expand
from orion.ir.types import ArrayType, Types
from orion.passes.array_memory import GIVEN, Memory
from orion.passes.array_states import States, TooManyStatesError
from orion.passes.local_arrays import definitions
from orion.passes.picking import is_picked
from orion.typing.expression_types import Typing
from orion.typing.infer import argument_value, infer_types


def with_one_array_a_name(function: Function, types: Types) -> Function:
    """The function with no name that stands for several arrays at different times. UnsupportedLoopError where what a
    name stands for takes too many forms."""
    arrays = {name for name, kind in types.items() if isinstance(kind, ArrayType)}
    if not _may_move(function, arrays):
        return function
    typing = _typed(function, types, arrays & assigned_names(function.body))
    moving = _moving(function, arrays, typing)
    if not moving:
        return function
    plain = replace(function, body=expand(function.body, lambda statement: _as_branches(statement, typing)))
    loops = [node.index for node in every(For, *plain.body)]
    memory = _memory(function, types, typing)
    states = States(plain, moving, memory, 1 + max(loops, default=-1))
    try:
        body = states.written_out()
    except TooManyStatesError as error:
        if moving.isdisjoint(arrays):
            return function  # names of rows, which may stay as they are
        raise error.refusal from None
    unsure = exposed_reads(function.body, function.params)
    sure = {array for array, names in memory.made_for.items() if names.isdisjoint(unsure)}
    used = {loop.index for loop in every(For, *body)}
    stands = tuple(
        Stands(loop, name, array)
        for loop, names in sorted(states.stands.items())
        for name, array in sorted(names.items())
        if loop in used
    )
    sure |= exposed_reads(body, function.params).keys() - memory.made_for.keys()  # in a round that is written apart
    return replace(function, body=body, sure=function.sure | sure, stands=stands, turns=tuple(states.turns))


def _memory(function: Function, types: Types, typing: Typing) -> Memory:
    """The arrays of the caller, and none that the function makes yet."""
    assigned = assigned_names(function.body)
    memory = Memory(typing, assigned - types.keys() - definitions(function).keys(), {*function.params, *assigned})
    for name, kind in types.items():
        if isinstance(kind, ArrayType):
            memory.with_given(name, argument_value(name, kind))
    return memory


def _may_move(function: Function, arrays: set[str]) -> bool:
    """Whether a name is given another name or a part of itself, or an argument that is an array is given anything: only
    then are types looked at."""
    pairs = [pair for node in every(Assign, *function.body) for pair in assigned_pairs(node)]
    return any(name in arrays or _others(value) or _of_itself(name, value) for name, value in pairs)


def _of_itself(name: str, value: Expr) -> bool:
    return isinstance(value, Subscript) and name in names_in(value)


def _typed(function: Function, types: Types, given_anew: set[str]) -> Typing:
    """The types of all names, where arguments that are given other arrays are names like others."""
    names = {name: name + GIVEN for name in given_anew}
    first = (
        Assign(Var(name, function.span), Var(given, function.span), function.span) for name, given in names.items()
    )
    changed = replace(
        function, params=tuple(names.get(name, name) for name in function.params), body=(*first, *function.body)
    )
    return infer_types(changed, {names.get(name, name): kind for name, kind in types.items()})


def _as_branches(statement: Stmt, typing: Typing) -> tuple[Stmt, ...]:
    """`x = a if c else b` of arrays as an `if` with an assignment in each branch."""
    match statement:
        case Assign(Var() as target, Choose(test, then, orelse), span) if typing.of(then).rank and _others(then):
            body, other = (_as_branches(Assign(target, value, span), typing) for value in (then, orelse))
            return (If(test, body, other, span),)
        case _:
            return (statement,)


def assigned_pairs(node: Assign) -> Iterator[tuple[str, Expr]]:
    """The names that an assignment gives values to, each with what is written for it; the whole right side where that
    is not taken apart there."""
    match node:
        case Assign(Var(name), value):
            yield name, value
        case Assign(Tuple(targets), Tuple(values)) if len(targets) == len(values):
            yield from ((t.name, value) for t, value in zip(targets, values, strict=True) if isinstance(t, Var))
        case Assign(Tuple(targets), value):
            yield from ((t.name, value) for t in targets if isinstance(t, Var))


def _others(value: Expr) -> set[str]:
    """The names that a value may be another name for, as a whole."""
    match value:
        case Var(name):
            return {name}
        case Choose(_, then, orelse):
            return _others(then) | _others(orelse)
        case _:
            return set()


def _moving(function: Function, arrays: set[str], typing: Typing) -> frozenset[str]:
    """The names of arrays that stand for several: arguments that are given arrays, names that are given others, and
    those that are given what an array picks of themselves, which cannot be put where it is taken from. A name that is
    given another once, and for good, is not one (`orion.passes.views`), unless that other is one."""
    pairs = [
        (name, value)
        for node in every(Assign, *function.body)
        for name, value in assigned_pairs(node)
        if typing.name(name).rank
    ]
    times: dict[str, int] = {}
    for name, _ in pairs:
        times[name] = times.get(name, 0) + 1
    links = [(name, other) for name, value in pairs for other in _others(value)]
    found = times.keys() & arrays
    found |= {name for pair in links for name in pair if times.get(name, 0) > 1}
    found |= {name for name, value in pairs if _of_itself(name, value) and is_picked(value, typing)}
    return frozenset(_connected(found, links))


def _connected(found: set[str], links: Iterable[tuple[str, str]]) -> set[str]:
    pairs = list(links)
    size = -1
    while size < len(found):
        size = len(found)
        found = found | {name for pair in pairs if not found.isdisjoint(pair) for name in pair}
    return found
