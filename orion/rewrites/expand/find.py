"""Scalars that each iteration of a loop begins anew and that tie a loop inside it to its order.

    for i in range(n):
        s = 0.0
        for j in range(m):
            s += x[i, j]
            y[j] += x[i, j]
            out[i, j] = s + y[j]

One place for s in all iterations of i makes these follow one another, whatever else they do. With a place for each
(scalar expansion: Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, 5.3) an iteration (i, j) needs
(i, j - 1), which has s, and (i - 1, j), which has y[j], and both loops may be in another order. It is the same where

    the loop's variable goes through c, c + 1, … with a number c that is not negative, so that it is a place in an array
    as long as the end of the range, and nothing in the loop assigns it or ends an iteration early;
    the first that mentions s in its body gives it a value, at the top level of that;
    nothing outside of the loop mentions s, nor is it the variable of a loop;
    every value of s is a float64, as the elements of the array are.
"""

from __future__ import annotations

from dataclasses import replace

from orion.dependence.scalars import carries
from orion.ir.assigned import assigned_places, assignments, leaves_loop
from orion.ir.constants import constant_value
from orion.ir.function import Function
from orion.ir.nodes import Assign, Const, For, Range, Return, Update, Var, count_names, every, holds
from orion.ir.program import SYNTHETIC
from orion.passes.view_names import written_names
from orion.typing.expression_types import Typing


def expandable(loop: For, function: Function, typing: Typing) -> tuple[str, ...]:
    """The scalars of a loop that get a place for each of its iterations, where its loops may gain by that."""
    space = loop.space
    if loop.index == SYNTHETIC or not isinstance(space, Range) or not _counts_up(space) or not _is_plain(loop):
        return ()
    given = {one.target.name for one in loop.body if isinstance(one, Assign) and isinstance(one.target, Var)}
    inner = [one.body for one in every(For, *loop.body) if isinstance(one.space, Range)]
    tied = sorted(name for name in given if any(carries(name, body, function) for body in inner))
    found = tuple(name for name in tied if _is_alone(name, loop, function) and _is_float(name, loop, typing))
    return found if found and _hands_on(loop, function, typing) else ()


def _counts_up(space: Range) -> bool:
    first = constant_value(space.start)
    return constant_value(space.step) == 1 and first is not None and first >= 0


def _is_plain(loop: For) -> bool:
    """Whether every iteration goes through the whole body, with the loop's own variable."""
    assert isinstance(loop.space, Range)
    if any(leaves_loop(statement) or holds(Return, statement) for statement in loop.body):
        return False
    return loop.space.var not in assigned_places(loop.body)


def _is_alone(name: str, loop: For, function: Function) -> bool:
    """Whether nothing but the loop mentions a scalar, and the first in its body that does gives it a value."""
    if name in {*function.params, *function.in_turn, *function.running}:
        return False
    first = next(one for one in loop.body if count_names((one,), name))
    begins = isinstance(first, Assign) and isinstance(first.target, Var) and not count_names((first.value,), name)
    return begins and count_names(function.body, name) == count_names((loop,), name)


def _is_float(name: str, loop: For, typing: Typing) -> bool:
    """Whether all that a scalar is given are float64s, or numbers, by simple assignments."""
    given = [one for one in every((Assign, Update), *loop.body) if one.target == Var(name, one.target.span)]
    if len(given) < sum(one == name for statement in loop.body for one, _ in assignments(statement)):
        return False
    kind = typing.names.get(name)
    kinds = [typing.of(one.value).dtype for one in given if not isinstance(one.value, Const)]
    return kind is not None and not kind.rank and {kind.dtype, *kinds} == {"float64"}


def _hands_on(loop: For, function: Function, typing: Typing) -> bool:
    """Whether iterations may find in an array what others wrote: some array is written, and mentioned elsewhere too, or
    updated. Where there is none, the loop is parallel without."""
    written = written_names(replace(function, body=loop.body), typing)
    updates = {name for one in every(Update, *loop.body) for name in written if count_names((one.target,), name)}
    return any(name in updates or count_names(loop.body, name) > 1 for name in written)
