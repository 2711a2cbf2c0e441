"""Loops over all segments of an array as one loop over its elements, which is shared out or inspected as a whole."""

from __future__ import annotations

from orion.rewrites.coalesce.apply import apply
from orion.rewrites.coalesce.find import find
from orion.rewrites.rewrite import UnderConditions

COALESCE = UnderConditions(
    "coalesce", "loops over the segments of an array are one over its elements", find, apply, comes_last=True
)
