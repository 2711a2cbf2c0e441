"""What lists the elements of an array with a buffer that iterations of a loop touch, before they run: several nodes
then fetch these before a tile needs them, and no others (`orion.runtime.ray.announced`).

It is the inspector of the loop (`orion.dependence.inspector`) for that array alone: the part of the body that computes
its subscripts, as in the bulk prefetching of Orion (Wei et al., EuroSys 2019). Nothing hangs on the order of what it
lists, and reads are listed as updates are. There is none where a subscript needs what the loop changes.
Of loops that repeat the same updates, as one over epochs, it is that of the loop in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from orion.dependence.access import LoopDependences
from orion.dependence.address_slice import NoInspectorError, slice_for
from orion.dependence.early_exits import ends_early
from orion.dependence.inspection import Inspectable
from orion.dependence.inspector import inspector_of
from orion.dependence.repeated import repeated_dims
from orion.ir.function import Buffered
from orion.ir.program import LoopNest, OfSource
from orion.ir.renaming import renamed
from orion.ir.types import ArrayType, Types


@dataclass(frozen=True, slots=True)
class Announcer:
    """What lists the rows of `array` that a loop touches: the elements that its first `leading` subscripts say. What it
    lists are those of iterations of dimension `dim` of the loop, in all of those around it."""

    array: str
    leading: int
    dim: int
    lists: Inspectable

    def __repr__(self) -> str:
        return f"<Announcer: {self.array} by {', '.join(self.lists.reads)}>"


def announcers(nest: LoopNest, types: Types, analysis: LoopDependences) -> tuple[Announcer, ...]:
    """Those of the arrays with buffers of a loop that have one, and whose updates are sums."""
    if nest.elements is not None or not isinstance(nest.form, OfSource) or nest.copied_in:
        return ()
    if analysis.reasons or analysis.scalars.carried or ends_early(nest.body):
        return ()
    return tuple(_announcers(nest, types))


def _announcers(nest: LoopNest, types: Types) -> Iterator[Announcer]:
    names = {one.name: one.array for one in nest.buffered}
    dim = next((k for k in range(len(nest.loops)) if k not in repeated_dims(nest)), 0)
    as_written = _with_names(replace(nest, loops=nest.loops[dim:]), names)
    for one in nest.buffered:
        if one.apply is None and isinstance(types.get(one.array), ArrayType):
            try:
                yield _announcer(as_written, one, dim, types)
            except NoInspectorError:
                continue  # nodes have all of it


def _with_names(nest: LoopNest, names: dict[str, str]) -> LoopNest:
    """The loop as if it updated arrays themselves: so no subscript may be read from them."""
    function = replace(nest.function, body=tuple(renamed(one, names) for one in nest.function.body))
    loops = tuple(renamed(one, names) for one in nest.loops)
    return replace(nest, loops=loops, body=tuple(renamed(one, names) for one in nest.body), function=function)


def _announcer(nest: LoopNest, one: Buffered, dim: int, types: Types) -> Announcer:
    found = slice_for(nest, types, one.array)
    (keyed,) = found.keyed
    if keyed != tuple(range(len(keyed))):
        raise NoInspectorError("what is told apart of it is not contiguous", one.span)
    return Announcer(one.array, len(keyed), dim, inspector_of(found, nest.function, types, in_pieces=False))
