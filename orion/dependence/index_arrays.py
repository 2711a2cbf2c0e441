"""Arrays of integers of which a function does nothing but read elements: what they hold stays the same all through a
call, so that two reads of one place have the same value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.kept import kept
from orion.ir.nodes import Assign, Expr, Slice, Subscript, Tuple, Update, Var, every
from orion.ir.program import LoopNest
from orion.ir.types import ArrayType, Types
from orion.sets.affine import Form, IndexArray


@kept
def only_read(function: Function) -> frozenset[str]:
    """The arrays that the caller gives and of which the function does nothing but read elements, one by one: each has
    one value all through a call."""
    subscripts = [*every(Subscript, *function.body)]
    elements = Counter(one.base.name for one in subscripts if not any(isinstance(part, Slice) for part in one.index))
    mentions = Counter(node.name for node in every(Var, *function.body))
    written = {name for node in every((Assign, Update), *function.body) for name in _written(node.target)}
    found = {name for name in function.given if mentions[name] == elements[name]}
    return frozenset(found - written - assigned_names(function.body))


def _written(target: Expr) -> Iterator[str]:
    parts = target.items if isinstance(target, Tuple) else (target,)
    yield from (part.base.name for part in parts if isinstance(part, Subscript))


def index_arrays(nest: LoopNest, types: Types) -> dict[str, Form]:
    """The forms of such arrays of integers in the scope of a loop."""
    found: dict[str, Form] = {}
    for name in sorted(only_read(nest.function)):
        kind = types.get(name)
        if isinstance(kind, ArrayType) and np.dtype(kind.dtype).kind in "iu":
            found[name] = IndexArray("ORN103", f"`{name}` is an array", nest.span, axes=kind.ndim)
    return found
