"""Parts of arrays that have names of their own."""

from __future__ import annotations

from collections.abc import Sequence

from orion.ir.assigned import bound_rows
from orion.ir.nodes import Stmt
from orion.ir.types import ArrayType, Types


def views_in(body: Sequence[Stmt], types: Types) -> dict[str, set[str]]:
    """Return the names of parts of arrays, each with the arrays that it may be a part of, also through other names."""
    arrays = {name for name, kind in types.items() if isinstance(kind, ArrayType)}
    return {name: bases & arrays for name, bases in bound_rows(body).items()}
