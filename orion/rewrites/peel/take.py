"""When a serial loop is peeled: where all that is in it are loops, and one of these is parallel."""

from __future__ import annotations

from orion.analysis.one_loop import is_single
from orion.rewrites.peel.apply import peeled
from orion.rewrites.rewrite import OfLoop, Site, Tried


def take(site: Site, best: Tried) -> Tried:
    """A serial loop with nothing but loops in it, peeled; `best` for any other."""
    if is_single(site.loop.nest) or site.loop.candidates:
        return best
    return site.once("peel", lambda one: peeled(one, distributes=False)) or best


PEEL = OfLoop("peel", "a serial loop is run round by round, the loops in it are shared out", take, may_not_pay=False)
