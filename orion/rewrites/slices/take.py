"""Statements over slices as loops, which are shared out, tiled and fused like any other."""

from __future__ import annotations

from orion.rewrites.rewrite import UnderConditions
from orion.rewrites.slices.apply import apply
from orion.rewrites.slices.find import find

SLICES = UnderConditions("slices", "statements over slices are loops", find, apply)
