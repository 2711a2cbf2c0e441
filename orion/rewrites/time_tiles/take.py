"""When rounds over arrays are run in tiles of rounds and space: where all loops in a serial one are parallel."""

from __future__ import annotations

from orion.analysis.one_loop import is_without_waits
from orion.rewrites.reorder.analyse import analyse_parts
from orion.rewrites.reorder.apply import rewrite_in_time_tiles
from orion.rewrites.rewrite import OfLoop, Replacement, Site, Tried


def take(site: Site, best: Tried) -> Tried:
    """Rounds in tiles, where peeled they are nothing but loops without tiles that wait."""
    if best is None or not all(map(is_without_waits, best.loops)):
        return best
    return site.once("time_tiles", _in_time_tiles) or best


def _in_time_tiles(site: Site) -> Tried:
    """The program with a serial loop around others in tiles of rounds and space, and its new loop."""
    if site.study is None or site.loop.analysis.private:
        return None
    found = rewrite_in_time_tiles(site.program, site.study, site.types, site.maps, site.caches)
    if found is None:
        return None
    loops = analyse_parts(found, site, site.study)
    return Replacement(found.program, loops, (), ("time_tiles",)) if loops[0].candidates else None


TIME_TILES = OfLoop("time_tiles", "tiles of rounds and space", take, may_not_pay=True)
