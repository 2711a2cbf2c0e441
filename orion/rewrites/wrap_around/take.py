"""Scalars that one iteration passes to the next, computed by each iteration itself, where loops are parallel then."""

from __future__ import annotations

from orion.rewrites.rewrite import OfScalars
from orion.rewrites.wrap_around.apply import apply

WRAP_AROUND = OfScalars("wrap_around", "what an iteration reads of the one before it is computed again", apply)
