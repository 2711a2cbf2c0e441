"""Which loops are dynamic, whose workers take tiles of each other, and into how many tiles such a loop is cut.

A tile is never split, so the last one to end may keep the other workers waiting for as long as it takes. Tiles are all
of one size, as small as what it costs to take one allows:

    tiles = predicted time / TILE_NS, at most so many as a proof of the schedule can look at

Sizes that fall as a loop goes on (guided: Polychronopoulos & Kuck 1987, factoring: Hummel, Schonberg & Flynn 1992)
need fewer tiles, but their first ones are the largest, which is of no use where the longest iterations come first.

Where arrays show how much work each iteration has (`orion.cost.contents`), tiles have about as much work each instead,
those that still have more than others are begun first (longest processing time first: Graham 1969), and their number is
by the time that this predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from orion.analysis.one_loop import AnalysedLoop
from orion.arrays.partition import even_bounds
from orion.cost.candidate import Candidate, Strategy
from orion.cost.contents import Floats, bounds_of_work, decided_loops, heaviness, work_by_contents
from orion.cost.extents import coordinate_ranges
from orion.cost.grid import predicted_ns
from orion.cost.sizes import Sizes
from orion.cost.worth import work_ns
from orion.dependence.access import LoopDependences
from orion.dependence.early_exits import ends_early
from orion.ir.program import LoopNest
from orion.plan.deal import Deal, Even
from orion.plan.plan import Fused, LoopPlan, Tiled, Weighed, Written
from orion.sets.maps import Maps

TILE_NS = 5_000
"""The least predicted time of a tile: a hundred times what taking one costs, 46 ns (`docs/project/decisions.md`)."""

MOST_FREE, MOST_TILES = 4096, 256
"""The most tiles of a loop no two of whose iterations are in conflict, and of others. With as many, to make and prove
the schedule takes 15 to 40 ms the first time."""

UNEVEN, EVEN_ENOUGH = 1 / 1000, 1.05
"""Tiles of one size are good enough where none has more of the work than this: whoever runs the last one keeps nobody
waiting for longer; and where none has so much more than the average."""

Span = tuple[int, int]


def is_dynamic(candidate: Candidate | None, analysis: LoopDependences, nest: LoopNest, sizes: Sizes) -> bool:
    """Whether a loop that is shared out by a candidate is dynamic, where that was asked for."""
    return sizes.dynamic and candidate is not None and may_be_dynamic(analysis, nest)


def may_be_dynamic(analysis: LoopDependences, nest: LoopNest) -> bool:
    """Whether workers may take tiles of a loop that were dealt to others.

    Not where tiles have arrays of their own, which the worker keeps that they were dealt to, or add to copies of
    arrays, which it prepares, or of replicated ones; and not where the loop may end early: its tiles are begun in their
    order then. Nor where updates of buffers are applied in a fixed order.
    """
    if any(one.deterministic for one in nest.buffered) or nest.replicas:
        return False
    return not (analysis.private or analysis.sums or ends_early(nest.body))


def first_deal(candidate: Candidate | None, nest: LoopNest, sizes: Sizes) -> Deal:
    """How a loop is dealt out before anything was measured: evenly. Where dynamic loops are asked for its shares follow
    the times of workers on several nodes, which cannot take tiles of each other; not where the loop may end early, as
    workers that are in vain are none the slower, nor where each worker has copies of arrays, which go on from what it
    has done."""
    is_fixed = bool(nest.replicas) or ends_early(nest.body)
    return Even(follows_times=sizes.dynamic and candidate is not None and not is_fixed)


def with_smaller_tiles(plan: LoopPlan, loop: AnalysedLoop, sizes: Sizes, maps: Maps) -> LoopPlan:
    """The plan of a dynamic loop in more tiles than it has otherwise, where these take long enough. Everything else in
    the plan stays, and how many there are does not depend on the number of workers.

    Only the loops of a nest of ranges that are run as written: all loops over a sparse array go through it in the same
    tiles, so that its elements are sorted once, and what a loop in a new order does for each tile costs more than can
    be gained. Only where whole rows stay together, or tiles wait for each other in any case; what is not cut, as a
    wavefront on one worker, stays so. Not where a loop takes a scalar from one of its tiles, which are gone through in
    Python after it.
    """
    if not plan.is_dynamic or not isinstance(plan.form, Written | Fused) or not isinstance(plan.tiles, Tiled):
        return plan
    if sizes.symbolic or plan.nest.elements is not None or plan.analysis.scalars.choices:
        return plan
    cut = {plan.tiles.space, *plan.tiles.time}
    if 0 not in cut:
        return plan
    most = MOST_FREE if plan.strategy is Strategy.INDEPENDENT else MOST_TILES
    spans = coordinate_ranges(plan.analysis.domain, len(plan.nest.dims), sizes.known, maps)
    work = _shown_work(plan, spans, sizes)
    time = _time(plan, loop, sizes, maps) if work is None else float(work.sum())
    blocks = int(min(most, time / TILE_NS) ** (1 / len(cut)))
    grid = (
        max(now, min(blocks, span[1] - span[0])) if dim in cut and now > 1 and span is not None else now
        for dim, (now, span) in enumerate(zip(plan.cuts, spans, strict=True))
    )
    smaller = replace(plan, cuts=tuple(grid))
    return smaller if work is None else _weighed(smaller, work, spans[plan.tiles.space])


def _shown_work(plan: LoopPlan, spans: Sequence[Span | None], sizes: Sizes) -> Floats | None:
    """The predicted time of parts of the space dimension of a loop without conflicts, as arrays show it, where that
    makes tiles of one size uneven, and no bit of a result hangs on where they are cut: each call looks at some elements
    of these arrays only."""
    contents = sizes.contents()
    if not contents or plan.strategy is not Strategy.INDEPENDENT or not isinstance(plan.form, Written):
        return None
    assert isinstance(plan.tiles, Tiled)
    space = plan.tiles.space
    others = [0 if span is None else span[1] - span[0] for dim, span in enumerate(spans) if dim != space]
    span = spans[space]
    if span is None or 0 in others or plan.analysis.scalars.has_results:
        return None
    work = work_by_contents(plan.nest, space, span, sizes, contents)
    if work is None:
        return None
    even = np.add.reduceat(work, even_bounds(work.size, min(MOST_FREE, work.size))[:-1])
    is_uneven = even.max() > max(UNEVEN * work.sum(), EVEN_ENOUGH * even.mean())
    return work * prod(others) if is_uneven else None


def _weighed(plan: LoopPlan, work: Floats, span: Span | None) -> LoopPlan:
    """The plan with blocks of the space dimension, whose range is `span`, that have about as much of the work each."""
    assert isinstance(plan.tiles, Tiled)
    assert span is not None
    space, nest = plan.tiles.space, plan.nest
    cuts = bounds_of_work(work, plan.cuts[space])
    length = -(-(span[1] - span[0]) // work.size)
    heavy = heaviness(np.add.reduceat(work, cuts[:-1]))
    arrays = dict.fromkeys(name for one in decided_loops(nest) if one.var == nest.dims[space] for name in one.arrays)
    bounds = np.minimum(span[0] + cuts * length, span[1])
    return replace(plan, tiles=Weighed(space, (), tuple(arrays), bounds, heavy))


def _time(plan: LoopPlan, loop: AnalysedLoop, sizes: Sizes, maps: Maps) -> float:
    """The time that the loop is sure to take on one worker in one round of those around it, as far as is known: the
    less of two predictions, of which one knows the lengths of arrays that inner loops go through, and the other what
    the operations of a statement cost."""
    here = sizes.at_round(loop.middle_round)
    ranges = coordinate_ranges(plan.analysis.domain, len(plan.nest.dims), here.values, maps)
    if None in ranges:
        return 0.0
    iterations = prod(span[1] - span[0] for span in ranges if span is not None)
    first = predicted_ns(plan.nest, iterations, here.shapes, here.values)
    second = work_ns(loop.work, here, maps)
    return first if second is None else min(first, second)
