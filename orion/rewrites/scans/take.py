"""Loops whose iterations hand scalars on, in two passes over blocks of iterations."""

from __future__ import annotations

from orion.rewrites.rewrite import UnderConditions
from orion.rewrites.scans.apply import apply
from orion.rewrites.scans.find import find

SCANS = UnderConditions("scans", "scalars that iterations hand on are computed in two passes over blocks", find, apply)
