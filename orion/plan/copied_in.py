"""Whether copies that are made before loops, for reads to see what was there before, cost less than they gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from orion.cost.grid import predicted_ns
from orion.cost.sizes import Sizes
from orion.cost.worth import Work, least_ns
from orion.ir.nodes import For, every
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.plan.variants import Variant
from orion.reasons import Reason
from orion.sets.maps import Maps

BYTE_NS = 0.1
"""What a byte of a copy costs: it is read, written, and read once more. Loops over 4 million elements took 0.75 ns per
element longer on one core."""

SHARE = 0.5
"""The part of the time of the serial loop that its copies may cost at most: two workers then take as long as one, no
longer."""


def why_not_copied_in(analysed: Variant, plan: FunctionPlan, sizes: Sizes) -> dict[int, Reason]:
    """Why copies made before loops are not worth it at these sizes, by the number of the `for` in the source.

    The number of workers does not count, like everywhere where loops are changed.
    """
    if sizes.symbolic or sizes.force_parallel:
        return {}
    pairs = zip(plan.loops, analysed.loops, strict=True)
    costly = [loop for loop, known in pairs if loop.nest.copied_in and not _pays(known.work, loop, plan, sizes)]
    return {loop.nest.loops[0].index: _reason(loop, plan) for loop in costly}


def with_costly_copies(plan: FunctionPlan, reasons: dict[int, Reason]) -> FunctionPlan:
    """The plan of a function with reasons added to the loops that hold these `for`s of the source."""

    def said(loop: LoopPlan) -> LoopPlan:
        own = tuple(reasons[index] for index in _indices(loop) if index in reasons)
        return replace(loop, reasons=(*loop.reasons, *own)) if own else loop

    return replace(plan, loops=tuple(map(said, plan.loops)))


def _indices(loop: LoopPlan) -> Iterator[int]:
    nodes = every(For, loop.nest.loops[0])
    return (node.index for node in nodes)


def _pays(works: tuple[Work, ...], loop: LoopPlan, plan: FunctionPlan, sizes: Sizes) -> bool:
    """Whether the copies for a loop cost at most SHARE of what it has to do, as far as that is known:

    BYTE_NS · bytes  ≤  SHARE · work

    The serial loop is taken to be vectorized where that can be: anti dependences do not stand against it. In a serial
    loop both are those of one round.
    """
    copied, work = copied_bytes(loop, plan), least_ns(works, sizes, Maps())
    if work is None and loop.iterations is not None:
        work = predicted_ns(loop.nest, loop.iterations, sizes.shapes, sizes.values)
    return copied is None or work is None or BYTE_NS * copied <= SHARE * work


def copied_bytes(loop: LoopPlan, plan: FunctionPlan) -> int | None:
    """The bytes of the copies that are made before a loop; None where a size is not known."""
    names = {one.copy for one in loop.nest.copied_in}
    found = [one.nbytes for one in plan.local_arrays if one.name in names]
    known = [size for size in found if size is not None]
    return sum(known) if len(known) == len(found) else None


def _reason(loop: LoopPlan, plan: FunctionPlan) -> Reason:
    names = " and ".join(f"`{one.array}`" for one in loop.nest.copied_in)
    size = copied_bytes(loop, plan) or 0
    copies = "a copy" if len(loop.nest.copied_in) == 1 else "copies"
    message = f"{copies} of {names} made before the loop, {size:,} bytes, would cost more than running it serially"
    return Reason.of("ORN124", message, loop.nest.span)
