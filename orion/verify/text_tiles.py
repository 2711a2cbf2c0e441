"""The tiles of sweeps in the text that is run for a box: what is run for one of them stands for all.

For each coordinate of the box, from `first` up to `end`, the text has

    for start in range(first, end, size):
        stop = min(end, start + size)

with a size of at least 1. So the intervals from `start` up to `stop` are what lies between `first` and `end`, each
value once and in order, whatever the size. What is inside runs a box between `start` and `stop` in every coordinate,
and the boxes come in lexicographic order. They may where no dependence goes backwards in any coordinate, which is
proved besides (`orion.verify.text`).
"""

from __future__ import annotations

from collections.abc import Sequence

from orion.errors import PlanError
from orion.ir.nodes import Assign, Binary, Call, Const, Expr, For, Range, Stmt, Var
from orion.ir.program import LoopNest

Limits = tuple[tuple[str, str], ...]


def one_tile(nest: LoopNest) -> tuple[tuple[Stmt, ...], Limits]:
    """What is run for a tile, and the names of its limits in each coordinate. PlanError where the text is another."""
    sizes = {name for statement in nest.body if (name := _size(statement)) is not None}
    body, limits = tuple(s for s in nest.body if _size(s) is None), list[tuple[str, str]]()
    for first, end in nest.limits:
        found = _tile_loop(body, first, end, sizes)
        if found is None:
            raise PlanError(f"the loop over tiles from `{first}` up to `{end}` does not go through all in between")
        limits.append(found[0])
        body = found[1]
    return body, tuple(limits)


def _size(statement: Stmt) -> str | None:
    """The name that a statement sets to 1 at least."""
    match statement:
        case Assign(Var(name), value) if _is_positive(value):
            return name
        case _:
            return None


def _is_positive(value: Expr) -> bool:
    match value:
        case Const(int(number)):
            return number >= 1
        case Call("max", parts):
            return any(_is_positive(part) for part in parts)
        case _:
            return False


def _tile_loop(
    body: Sequence[Stmt], first: str, end: str, sizes: set[str]
) -> tuple[tuple[str, str], tuple[Stmt, ...]] | None:
    match body:
        case (
            For(
                Range(start, Var(first_), Var(end_), Var(size)),
                (Assign(Var(stop), Call("min", (Var(last), Binary("+", Var(from_), Var(size_))))), *inner),
            ),
        ) if (first_, end_, last, from_, size_) == (first, end, end, start, size) and size in sizes:
            return (start, stop), tuple(inner)
        case _:
            return None
