"""Loops whose `break`s end them for the iteration that comes there first, under the conditions on sizes that it takes.

    { p : no subscript leaves its array }  =  complement of the parameters of the iterations that leave one

The accesses of an iteration that would not run may lie outside of an array where those before it do not: the loop is
shared out in calls in which those of all iterations lie inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from orion.dependence.bounds import bounds_checks
from orion.dependence.conditions import as_assumed, free_of_all
from orion.dependence.given_sizes import GivenSizes
from orion.dependence.model import model_loop
from orion.ir.assigned import own_level
from orion.ir.assumed import OfSizes
from orion.ir.function import Function
from orion.ir.nodes import Break, For, If, Stmt
from orion.ir.program import Program, new_numbers
from orion.ir.rewriting import expand
from orion.ir.types import Types
from orion.passes.split import split_program
from orion.sets.maps import Maps
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.narrow import with_local_integers


def apply(function: Function, types: Types, typing: Typing, places: frozenset[Span]) -> tuple[Function, ...]:
    """The function with the loops that have their `break`s at these places, where there are sizes at which no iteration
    leaves an array; none where there is no such loop."""
    program, numbers = split_program(function, types), new_numbers(function.body)
    inside = dict(_conditions(program, with_local_integers(types, typing), places))
    if not inside:
        return ()
    given = {index: next(numbers) for index in inside}
    body = expand(function.body, lambda statement: (_with_exit(statement, given),))
    assumed = (replace(one, index=given[index]) for index, one in inside.items() if one.names)
    return (replace(function, body=body, assumed=(*function.assumed, *assumed)),)


def _conditions(program: Program, types: Types, places: frozenset[Span]) -> Iterator[tuple[int, OfSizes]]:
    """The conditions under which no subscript leaves its array, of each loop with such `break`s that has one."""
    known, maps = GivenSizes.of(program.function, types).known, Maps()
    for nest in program.nests:
        loop = nest.loops[-1]
        if not any(isinstance(one, Break) and one.span in places for one in own_level(loop.body)):
            continue
        model = model_loop(program, nest.number, types)
        checks, domain = bounds_checks(program, nest.number, types, model), model.space.text()
        sizes = None if checks.unchecked else free_of_all([one.outside for one in checks.checks], domain, known, maps)
        if sizes is not None:
            yield loop.index, as_assumed(loop.index, sizes)


def _with_exit(statement: Stmt, given: Mapping[int, int]) -> Stmt:
    """A loop with `break`s that the first iteration to come there ends it by, and another number."""
    if not isinstance(statement, For) or statement.index not in given:
        return statement
    return replace(statement, body=_marked(statement.body), index=given[statement.index])


def _marked(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements of a loop with its `break`s marked, not those of loops in it."""
    found: list[Stmt] = []
    for statement in body:
        match statement:
            case Break():
                found.append(replace(statement, is_first=True))
            case If(_, then, orelse):
                found.append(replace(statement, body=_marked(then), orelse=_marked(orelse)))
            case _:
                found.append(statement)
    return tuple(found)
