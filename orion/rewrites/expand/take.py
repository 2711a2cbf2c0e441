"""Scalars that tie loops to their order in arrays, where loops are parallel then."""

from __future__ import annotations

from orion.rewrites.expand.apply import apply
from orion.rewrites.rewrite import OfScalars

EXPAND = OfScalars(
    "expand", "a scalar that each iteration begins anew has a place for each of them", apply, is_in_memory=True
)
