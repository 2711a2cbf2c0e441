"""Loops that do the same updates of buffers again and again, such as one over epochs.

    for r in range(rounds):
        for i in range(n):
            late[group[i]] += given[i]

Without the dependences over the array of a buffer nothing would keep the rounds apart: each worker would do all of some
rounds, and see none of the others' before its first one ends. That is not what is meant by updates that may be late.
So a loop whose variable a `for` in it, with updates of a buffer, does not mention keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterator

from orion.ir.nodes import For, Node, Range, Subscript, Update, every, names_in
from orion.ir.program import LoopNest
from orion.reasons import Reason
from orion.source import Span


def repeated_dims(nest: LoopNest) -> dict[int, Span]:
    """The dimensions of a nest along which updates of buffers repeat, with where."""
    late = {one.name for one in nest.buffered}
    found: dict[int, Span] = {}
    for dim, loop in enumerate(nest.loops):
        if not isinstance(loop.space, Range) or not late:
            continue
        for inner in every(For, *loop.body):
            updates = [one for one in _updates(inner) if one.target.base.name in late]  # type: ignore[union-attr]
            if updates and loop.space.var not in _mentioned(inner):
                found.setdefault(dim, updates[0].span)
    return found


def repeated_reasons(nest: LoopNest) -> Iterator[Reason]:
    """Why a loop keeps its order all of whose dimensions repeat updates."""
    found = repeated_dims(nest)
    if len(found) == len(nest.loops):
        for dim, span in found.items():
            message = f"each `{nest.dims[dim]}` repeats the same updates of a buffer, which its rounds must not mix"
            yield Reason.of("ORN132", message, span)


def _updates(loop: For) -> Iterator[Update]:
    return (one for one in every(Update, loop) if isinstance(one.target, Subscript))


def _mentioned(loop: For) -> set[str]:
    """The names in a loop, those in its bounds and those of inner loops included."""
    inside: list[Node] = [loop.space, *loop.body]
    for one in every(For, *loop.body):
        inside.append(one.space)
    return names_in(*inside)
