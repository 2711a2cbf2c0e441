"""A name for each value of a scalar, where loops are parallel then."""

from __future__ import annotations

from orion.rewrites.rename.apply import apply
from orion.rewrites.rewrite import OfScalars

RENAME = OfScalars("rename", "a scalar with several values in an iteration is several names", apply)
