"""What the rewrites of a loop compare: how much of it is left on one worker."""

from __future__ import annotations

from orion.analysis.one_loop import is_single, may_be_shared
from orion.cost.worth import depth_of
from orion.ir.nodes import For, If, Stmt, Walked, While, children, every
from orion.ir.program import OfNewOrder
from orion.passes.between import is_split
from orion.rewrites.rewrite import Replacement

MANY = 1000
"""More loops around one another than there are anywhere."""


def depth_on_one_worker(better: Replacement) -> int:
    """How many loops stand around what one worker runs, at most: with branches and `while`s around loops in it more
    than any other, as nothing is known of those. 0 where all is shared out."""
    alone = [loop.nest for loop in better.loops if is_single(loop.nest) or not may_be_shared(loop)]
    if any(map(is_split, every((If, While), *(part for nest in alone for part in nest.body)))):
        return MANY
    own = [0 if is_single(nest) or isinstance(nest.form, OfNewOrder) else len(nest.dims) for nest in alone]
    depths = [dims + max(map(_depth, nest.body)) for dims, nest in zip(own, alone, strict=True)]
    around = [depth_of(better.program, nest.number) for nest in alone]
    return max((depth + outer for depth, outer in zip(depths, around, strict=True)), default=0)


def count_serial(better: Replacement) -> int:
    """How many loops of the source, other than statements that run once, are serial."""
    return sum(not loop.candidates and not is_single(loop.nest) for loop in better.loops)


def _depth(statement: Stmt) -> int:
    """How many loops stand around one another in a statement."""
    below = max((_depth(part) for part in children(statement) if isinstance(part, Walked)), default=0)
    return below + isinstance(statement, For | While)
