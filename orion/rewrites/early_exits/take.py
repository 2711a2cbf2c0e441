"""Loops that a `break` or a `return` ends, shared out: iterations after the one that ends them may run."""

from __future__ import annotations

from orion.rewrites.early_exits.apply import apply
from orion.rewrites.early_exits.find import find
from orion.rewrites.rewrite import UnderConditions

EARLY_EXITS = UnderConditions("early_exits", "iterations after the one that ends a loop may run", find, apply)
