"""When the statements of a loop are run in another order: where that makes it parallel, or faster on one worker too."""

from __future__ import annotations

from dataclasses import replace

from orion.analysis.one_loop import is_single, is_without_waits
from orion.cost.strides import JUMP, cannot_gain
from orion.cost.worth import work_of
from orion.dependence.model import model_loop
from orion.dependence.study import Study, study_loop
from orion.rewrites.reorder.analyse import analyse_parts
from orion.rewrites.reorder.apply import Rewritten, rewrite_loop
from orion.rewrites.rewrite import OfLoop, OfOrder, Replacement, Site, Tried
from orion.rewrites.stored_sums.apply import with_stored_sums


def take(site: Site, best: Tried) -> Tried:
    """A new order, or `best`: loops without tiles that wait, in a serial one, are preferred to a new order of the
    whole, if nothing else is in it."""
    if is_single(site.loop.nest):
        return best
    if best is not None and ("time_tiles" in best.rewrites or all(map(is_without_waits, best.loops))):
        return best
    is_fine = bool(site.loop.candidates) or (best is not None and all(inner.candidates for inner in best.loops))
    found = site.once(("reorder", is_fine), lambda one: reordered(one, must_gain=is_fine))
    return best if found is None or _loses_vectors(found, site.study) else found


def reordered(site: Site, *, must_gain: bool) -> Tried:
    """The program with a nest of ranges in a better order, and its new loops: where one of those is parallel and, if
    the nest is parallel without it (`must_gain`), the new order is faster on one worker too."""
    loop, study = site.loop, site.study
    if loop.analysis.private:
        return None  # a new order may mix what iterations have in arrays of their own
    if must_gain and loop.analysis.scalars.choices:
        return None  # in a new order one worker would go through all that they are taken from
    if study is None or (must_gain and is_without_waits(loop) and cannot_gain(study.region)):
        return None
    found = rewrite_loop(site.program, study, site.types, site.maps, site.caches)
    names: tuple[str, ...] = ("reorder",)
    if must_gain and (found is None or not _is_faster(found)):
        stored = _with_stored_sums(site)
        if stored is None:
            return None
        (study, found), names = stored, ("stored_sums", "reorder")
    if found is None:
        return None
    loops = tuple(replace(one, rewrites=(*names, *one.rewrites)) for one in analyse_parts(found, site, study))
    deferred = () if found.deferred is None else (found.deferred,)
    return Replacement(found.program, loops, deferred, names) if any(new.candidates for new in loops) else None


def _with_stored_sums(site: Site) -> tuple[Study, Rewritten] | None:
    """A nest with its sums kept in array elements, where its innermost loops then no longer jump through memory."""
    if "stored_sums" in site.without:
        return None
    summed = with_stored_sums(site.program, site.number, site.types)
    if summed is None:
        return None
    study = study_loop(summed, site.number, site.types, model_loop(summed, site.number, site.types), site.maps)
    found = None if study is None else rewrite_loop(summed, study, site.types, site.maps, site.caches)
    if study is None or found is None or not (found.trips[1] < JUMP <= found.trips[0] and _is_faster(found)):
        return None
    return study, found


def _is_faster(found: Rewritten) -> bool:
    """Whether a new order is better than a parallel loop as written: its innermost loops go through memory in smaller
    steps, several of their chains of dependent trips are run at a time, or elements stay in registers for several trips
    of the loops around them."""
    gains = any(band is not None and (band.in_lockstep or band.unroll_and_jam) for band in found.bands)
    return gains or found.trips[1] < found.trips[0]


def _loses_vectors(better: Replacement, study: Study | None) -> bool:
    """Whether a new order only has tiles that wait, where the innermost loops as written are run in vectors: inside of
    such tiles one iteration follows another, which no two workers make up for."""
    shared = [loop for loop in better.loops if loop.candidates]
    works = work_of(study)
    depth = max((len(one.variables) for one in works), default=0)
    are_vectors = all(one.is_vector for one in works if len(one.variables) == depth)
    return are_vectors and not any(map(is_without_waits, shared))


REORDER = OfLoop("reorder", "statements run in the order of loops that isl's scheduler finds", take, may_not_pay=False)
STORED_SUMS = OfOrder("stored_sums", "sums are kept in array elements, so that loops can change places")
TILE = OfOrder("tile", "tiles that fit into a cache")
JAM = OfOrder("jam", "several trips of outer loops at a time, with elements in registers")
LOCKSTEP = OfOrder("lockstep", "several chains of iterations that wait are run side by side")
SKEWED_BUFFERS = OfOrder("skewed_buffers", "anti-diagonals of a tile are rows of a buffer")
