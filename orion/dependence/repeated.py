"""Loops that do the same updates of buffers again and again, such as one over epochs.

    for r in range(rounds):
        for i in range(n):
            late[group[i]] += given[i]

Without the dependences over the array of a buffer nothing would keep the rounds apart: each worker would do all of some
rounds, and see none of the others' before its first one ends. That is not what is meant by updates that may be late.
So a loop whose variable a `for` in it, with updates of a buffer, does not mention where it says which (in bounds,
subscripts and conditions) keeps its order, as one with a step that falls from epoch to epoch does; unless that one goes
over the elements of the array with something that the loop around it has computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from orion.ir.nodes import Assign, For, If, Node, Range, Subscript, Update, Var, While, every, names_in
from orion.ir.program import LoopNest
from orion.reasons import Reason
from orion.source import Span


def repeated_dims(nest: LoopNest) -> dict[int, Span]:
    """The dimensions of a nest along which updates of buffers repeat, with where."""
    late, copies = {one.name for one in nest.buffered}, {one.name for one in nest.replicas}
    found: dict[int, Span] = {}
    for dim, loop in enumerate(nest.loops):
        if not isinstance(loop.space, Range) or not (late or copies):
            continue
        for inner in every(For, *loop.body):
            updates = [*_updates_of(inner, late), *_changes_of(inner, copies)]
            if updates and loop.space.var not in _deciding(inner) and not _goes_over(inner, late | copies, loop):
                found.setdefault(dim, updates[0].span)
    return found


def repeated_reasons(nest: LoopNest) -> Iterator[Reason]:
    """Why a loop keeps its order all of whose dimensions repeat updates."""
    found = repeated_dims(nest)
    if len(found) == len(nest.loops):
        what = "a buffer" if nest.buffered else "a replica"
        for dim, span in found.items():
            message = f"each `{nest.dims[dim]}` repeats the same updates of {what}, which its rounds must not mix"
            yield Reason.of("ORN132", message, span)


def counted_dim(nest: LoopNest) -> int:
    """The dimension of a nest whose iterations are those that a worker makes between pulls of its copies of arrays: the
    outermost that does not only repeat what is in it. Buffers count those of the innermost."""
    repeated = repeated_dims(nest) if nest.replicas else {}
    last = len(nest.loops) - 1
    return next((dim for dim in range(last) if dim not in repeated), last) if nest.replicas else last


def _updates_of(loop: For, names: Set[str]) -> Iterator[Update]:
    updates = (one for one in every(Update, loop) if isinstance(one.target, Subscript))
    return (one for one in updates if one.target.base.name in names)  # type: ignore[union-attr]


def _changes_of(loop: For, names: Set[str]) -> Iterator[Assign | Update]:
    return (one for one in every((Assign, Update), loop) if _array(one.target) in names)


def _array(target: Node) -> str:
    match target:
        case Subscript(base):
            return base.name
        case Var(name):
            return name
        case _:
            return ""


def _goes_over(inner: For, names: Set[str], outer: For) -> bool:
    """Whether a loop goes over the elements of an array with what an iteration of the loop around it has computed, as
    in `for k …: x[k] -= step * g`."""
    changes = [*_changes_of(inner, names)]
    if not changes or not isinstance(inner.space, Range):
        return False
    variable = inner.space.var
    if not all(isinstance(one.target, Subscript) and _has(one.target, variable) for one in changes):
        return False
    inside = {id(one) for one in every((Assign, Update), inner)}
    before = {_array(one.target) for one in every((Assign, Update), outer) if id(one) not in inside} - names
    return bool(before & _mentioned(inner))


def _has(target: Subscript, variable: str) -> bool:
    return any(isinstance(part, Var) and part.name == variable for part in target.index)


def _deciding(loop: For) -> set[str]:
    """The names that decide which updates a loop makes: in its bounds and those of inner loops, in subscripts, and in
    conditions. What an update is may be another one in each round."""
    bounds = [one.space for one in (loop, *every(For, *loop.body))]
    subscripts = [part for one in every(Subscript, loop) for part in one.index]
    return names_in(*bounds, *subscripts, *(one.test for one in every((If, While), loop)))


def _mentioned(loop: For) -> set[str]:
    """The names in a loop, those in its bounds and those of inner loops included."""
    inside: list[Node] = [loop.space, *loop.body]
    for one in every(For, *loop.body):
        inside.append(one.space)
    return names_in(*inside)
