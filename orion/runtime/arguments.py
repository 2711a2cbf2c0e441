"""The arguments of kernels: from what the user passed to flat arrays, in the order in which a kernel takes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.layout import TileLayout
from orion.arrays.sparse import SparseArray
from orion.aside import aside
from orion.dataclass import dataclass, field
from orion.kernel.calling import Argument, tile_boxes
from orion.plan.plan import Inspected, LoopPlan
from orion.runtime.local_arrays import LocalArray
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.runtime.returned import stand_in
from orion.schedule.schedule import Ints


@dataclass(frozen=True, slots=True)
class LoopData:
    """The arrays that one loop works on in one run: `extents` as in `orion.kernel.calling`, and the arguments
    of its kernel, None where an argument is a scalar or a result. `layout` has the elements that it goes through.
    """

    extents: Ints
    arguments: tuple[Any, ...]
    layout: TileLayout | None = None


@dataclass(slots=True)
class GivenArrays:
    """The arguments of one run, with the memory of those that are dense arrays; a view that cannot be written is made
    once for all loops. They are looked through where they are whole: a node may have parts of them."""

    arguments: Mapping[str, object]
    are_whole: bool = True
    _fixed: dict[str, NDArray[Any]] = field(default_factory=dict)
    _extremes: dict[str, dict[str, int]] = field(default_factory=dict)

    def memory(self, name: str, writeable: bool) -> NDArray[Any]:
        """The memory of a dense array, as kernels take it that write it or do not."""
        if writeable:
            return dense_memory(self.arguments[name])
        if name not in self._fixed:
            self._fixed[name] = read_only(dense_memory(self.arguments[name]))
        return self._fixed[name]

    def extreme(self, name: str, kind: str) -> int:
        """The `least` or the `greatest` element of an array of integers."""
        if not self.are_whole:
            return NOT_LOOKED[kind]
        if name not in self._extremes:
            self._extremes[name] = extremes(self.memory(name, False))
        return self._extremes[name][kind]


LARGEST = int(np.iinfo(np.int64).max)

NOT_LOOKED = {"least": -1, "greatest": 0}
"""The extremes of an array that nobody has looked through: elements may be any number."""


def extremes(array: NDArray[Any]) -> dict[str, int]:
    """The least and the greatest element of an array of integers. Each has 64 bits with a sign: no array is as long as
    the largest of these."""
    if not array.size:
        return NOT_LOOKED
    return {"least": min(int(array.min()), LARGEST), "greatest": min(int(array.max()), LARGEST)}


class DataSource:
    """Makes the `LoopData` of one loop, run after run, from the arrays that the user passes. Nothing is
    copied.

    Between runs it keeps none of the arrays alive.
    """

    def __init__(self, loop: PreparedLoop) -> None:
        self._loop = loop
        self._sparse = loop.sparse
        self._boxes = read_only(tile_boxes(loop.schedule)) if loop.sparse is None else None
        self._last: tuple[Callable[[], SparseArray | None], Callable[[], TileLayout | None]] | None = None

    def data(self, given: GivenArrays) -> LoopData:
        """The data for a run with these arguments."""
        name = self._sparse
        if name is None:
            assert self._boxes is not None
            return loop_data(self._loop, given, self._boxes, None)
        array = given.arguments[name]
        assert isinstance(array, SparseArray)
        layout = self._layout(array)
        return loop_data(self._loop, given, read_only(layout.offsets), layout)

    def _layout(self, array: SparseArray) -> TileLayout:
        """The array in the tiles of the schedule; the same as last time, where somebody still holds it."""
        if self._last is not None and self._last[0]() is array:
            known = self._last[1]()
            if known is not None and array.has_present_values(known):
                return known
        layout = aside(lambda: tile_layout(self._loop, array))
        self._last = ref(array), ref(layout)
        return layout


def begin_stores(
    prepared: PreparedProgram, layouts: Sequence[TileLayout | None], arguments: Mapping[str, object]
) -> None:
    """Have sparse arrays know that loops are about to store their values. `layouts` are those of all loops."""
    for name in prepared.stored:
        array = arguments[name]
        assert isinstance(array, SparseArray)
        pairs = zip(prepared.loops, layouts, strict=True)
        own = {id(layout): layout for loop, layout in pairs if loop.sparse == name and layout is not None}
        for layout in own.values():  # one, or the second has no present values any more
            array.begin_stores(layout)


def tile_layout(loop: PreparedLoop, array: SparseArray) -> TileLayout:
    """A sparse array in the tiles of a loop over its elements."""
    return array.layout(loop.schedule.bounds, "ascending" if loop.plan.ordered else "shuffled")


def loop_data(loop: PreparedLoop, given: GivenArrays, extents: Ints, layout: TileLayout | None) -> LoopData:
    """The data of one loop, whose elements are in `layout` where it goes over a sparse array."""
    return LoopData(extents, tuple([_argument(a, given, layout, loop.plan) for a in loop.kernel.arguments]), layout)


def _argument(argument: Argument, given: GivenArrays, layout: TileLayout | None, plan: LoopPlan) -> Any:
    match argument.kind:
        case "array":
            return given.memory(argument.name, argument.writeable)
        case "key" if layout is not None:
            return read_only(layout.keys[argument.position])
        case "value" if layout is not None:
            values = layout.values[argument.position]
            return values if argument.writeable else read_only(values)
        case "order":
            return read_only(order_of(plan))
        case "least" | "greatest":
            return given.extreme(argument.name, argument.kind)
        case "count":
            return len(given.arguments[argument.name])  # type: ignore[arg-type]
        case _:
            return None


def order_of(plan: LoopPlan) -> Ints:
    """The coordinates of an inspected loop, tile after tile."""
    assert isinstance(plan.tiles, Inspected)
    return plan.tiles.inspection.order


def dense_memory(array: object) -> NDArray[Any]:
    """The memory of a dense argument: an ndarray itself, or the padded storage of a `DenseArray`."""
    if isinstance(array, np.ndarray):
        return array
    assert isinstance(array, DenseArray | LocalArray)
    return array.storage


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written: what a kernel was compiled for where it does not write. Another type
    would be compiled anew.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def skeleton_arguments(prepared: PreparedProgram, arguments: Mapping[str, object]) -> tuple[object, ...]:
    """The arguments of the skeleton, in the order of the user's function."""
    return tuple([stand_in(arguments[name], name) for name in prepared.program.function.params])
