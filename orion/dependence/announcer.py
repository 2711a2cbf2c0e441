"""What lists the elements of an array that iterations of a loop touch, before they run: several nodes then have these,
and no others, of an array that no partition of the loop's fits.

It is the inspector of the loop (`orion.dependence.inspector`) for that array alone: the part of the body that computes
its subscripts, as in the bulk prefetching of Orion (Wei et al., EuroSys 2019). Nothing hangs on the order of what it
lists, and reads are listed as updates are. There is none where a subscript needs what the loop changes. Of loops that
repeat the same updates, as one over epochs, it is that of the loop in them.

An array with a buffer is fetched while the loop runs (`orion.runtime.ray.announced`); one that the loop only reads is
sent before it, as far as a node does not have it yet (`orion.runtime.ray.exchange`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orion.dataclass import dataclass, replace
from orion.dependence.access import LoopDependences
from orion.dependence.address_slice import NoInspectorError, slice_for
from orion.dependence.early_exits import ends_early
from orion.dependence.inspection import Inspectable
from orion.dependence.inspector import inspector_of
from orion.dependence.repeated import repeated_dims
from orion.ir.nodes import Elements, For, Subscript, every
from orion.ir.program import LoopNest, OfSource
from orion.ir.renaming import renamed
from orion.ir.types import ArrayType, Types


@dataclass(frozen=True, slots=True)
class Announcer:
    """What lists the elements of `array` that a loop touches, told apart by the subscripts `keyed`. What it lists are
    those of iterations of dimension `dim` of the loop, in all of those around it. `is_read`: the loop only reads it."""

    array: str
    keyed: tuple[int, ...]
    dim: int
    lists: Inspectable
    is_read: bool

    def __repr__(self) -> str:
        return f"<Announcer: {self.array} by {', '.join(self.lists.reads)}>"


def announcers(nest: LoopNest, types: Types, analysis: LoopDependences) -> tuple[Announcer, ...]:
    """Those of the arrays with buffers of a loop whose updates are sums, and of arrays that it only reads by subscripts
    which are not affine."""
    if nest.elements is not None or not isinstance(nest.form, OfSource) or nest.copied_in:
        return ()
    if analysis.reasons or analysis.scalars.carried or ends_early(nest.body):
        return ()
    if any(isinstance(one.space, Elements) for one in every(For, *nest.body)):
        return ()
    return tuple(_announcers(nest, types, analysis))


def _announcers(nest: LoopNest, types: Types, analysis: LoopDependences) -> Iterator[Announcer]:
    dim = next((k for k in range(len(nest.loops)) if k not in repeated_dims(nest)), 0)
    as_written = _with_names(replace(nest, loops=nest.loops[dim:]), {one.name: one.array for one in nest.buffered})
    late = [one.array for one in nest.buffered if one.apply is None]
    for array in (*late, *_read_anywhere(nest, analysis)):
        if isinstance(types.get(array), ArrayType):
            try:
                found = slice_for(as_written, types, array)
                lists = inspector_of(found, as_written.function, types, in_pieces=False)
                yield Announcer(array, found.keyed[0], dim, lists, array not in late)
            except NoInspectorError:
                continue  # nodes have all of it


def _read_anywhere(nest: LoopNest, analysis: LoopDependences) -> tuple[str, ...]:
    """The arrays that a loop only reads, and of which it is not known what."""
    buffered = {name for one in nest.function.late for name in one.names}
    written = {one.array for one in analysis.accesses if one.is_write}
    in_bounds = {one.base.name for one in every(Subscript, *(loop.space for loop in nest.loops))}
    found = dict.fromkeys(one.array for one in analysis.accesses if not one.exact)
    return tuple(one for one in found if one not in written | in_bounds | buffered)


def _with_names(nest: LoopNest, names: Mapping[str, str]) -> LoopNest:
    """The loop as if it updated arrays themselves: so no subscript may be read from them."""
    function = replace(nest.function, body=tuple(renamed(one, names) for one in nest.function.body))
    loops = tuple(renamed(one, names) for one in nest.loops)
    return replace(nest, loops=loops, body=tuple(renamed(one, names) for one in nest.body), function=function)
