"""When statements between loops are taken apart from these, so that one worker runs them, once in each round.

    for t in range(rounds):
        total = 0.0                 # one worker
        for i in range(n):          # all workers
            total += x[i]
        y[t] = total                # one worker

(Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, 5.1: loop distribution.)
"""

from __future__ import annotations

from orion.analysis.one_loop import is_single
from orion.rewrites.compare import depth_on_one_worker
from orion.rewrites.peel.apply import peeled
from orion.rewrites.rewrite import OfLoop, Site, Tried


def take(site: Site, best: Tried) -> Tried:
    """What is run on one worker taken apart, where less is left on it then than in `best`: there, what is not a loop is
    not worth it."""
    if is_single(site.loop.nest):
        return site.once("distribute", _apart)
    if best is not None and depth_on_one_worker(best) < 2:
        return best  # what one worker runs is a loop at most
    other = None if site.loop.candidates else site.once("distribute", _apart)
    if best is None or other is None:
        return best or other
    return other if depth_on_one_worker(other) < depth_on_one_worker(best) else best


def _apart(site: Site) -> Tried:
    return peeled(site, distributes=True)


DISTRIBUTE = OfLoop(
    "distribute", "statements between loops are apart, so that these are shared out", take, may_not_pay=True
)
