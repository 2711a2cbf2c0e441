"""The arrays of a program in memory that the driver and the actors of its machine share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.exchange import Exchange
from orion.arrays.foreign import identity_of
from orion.arrays.frozen import is_frozen
from orion.arrays.layout import TileLayout
from orion.arrays.sparse import SparseArray
from orion.arrays.storage import IN_MEMORY, Storage
from orion.aside import aside
from orion.dataclass import dataclass, field
from orion.ir.types import Shapes
from orion.kernel.calling import Argument
from orion.runtime.arguments import NOT_LOOKED, begin_stores, skeleton_arguments, tile_layout
from orion.runtime.local_arrays import LocalArray
from orion.runtime.memory import RunMemory, allocate_run_memory
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.runtime.ray.identity import IdentityMap
from orion.runtime.ray.segments import Arena, Block, Bytes, SegmentName, create_segment
from orion.runtime.ray.up_to_date import bring_up_to_date


@dataclass(frozen=True, slots=True)
class LoopBlocks:
    """What one loop works on: its extents (None: the boxes of the schedule's tiles), and the arguments of its
    kernel: a block for an array, a number for a count, None for a scalar or a result. `version` is that of the values
    of its elements.
    """

    extents: Block | None
    arguments: tuple[Block | int | None, ...]
    version: int = 0


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """The arguments of one run. `copies` are (caller's array, shared copy, whether it is written) and `dense`
    the blocks of all dense arrays, by name; `own` are Orion's own, with how often each was shuffled, and how last, and
    `local` those without contents, which the function makes. `shapes` are those of the dense arrays, without padding.
    `layouts` are held so that none goes before the run is over: each sparse array itself holds only the one that was
    asked for last. A loop over ranges has None. `stored` are the sparse arrays whose values the program stores, with
    the version that these have when it ends.
    """

    loops: tuple[LoopBlocks, ...]
    given: tuple[object, ...]
    copies: Mapping[str, tuple[NDArray[Any], NDArray[Any], bool]]
    dense: Mapping[str, Block]
    shapes: Shapes
    own: Mapping[str, tuple[int, Exchange | None]]
    local: frozenset[str]
    layouts: tuple[TileLayout | None, ...]
    stored: Mapping[str, int]

    def segments(self) -> set[int]:
        """The segments that the arrays lie in."""
        blocks = (b for loop in self.loops for b in (loop.extents, *loop.arguments))
        return {block.segment for block in (*blocks, *self.dense.values()) if isinstance(block, Block)}

    def bytes_in(self) -> int:
        """The bytes that `copy_in` looks at."""
        return sum(source.nbytes for source, _, _ in self.copies.values())

    def bytes_out(self) -> int:
        """The bytes that `copy_out` copies."""
        return sum(source.nbytes for source, _, is_written in self.copies.values() if is_written)

    def copy_in(self, differs: Callable[[Block, int, int], None]) -> None:
        """Bring the shared copies up to date. `differs` is told of blocks and their rows before these change."""
        for name, (source, shared, _) in self.copies.items():
            bring_up_to_date(shared, source, partial(differs, self.dense[name]))

    def copy_out(self) -> None:
        """Give the caller what the run wrote."""
        for target, shared, is_written in self.copies.values():
            if is_written:
                copy_in_pieces(target, shared)


PIECE_BYTES = 1 << 26


def copy_in_pieces(target: NDArray[Any], source: NDArray[Any]) -> None:
    """`target[...] = source`, with a chance for signal handlers in between."""
    rows = max(1, PIECE_BYTES * max(1, len(source)) // max(1, source.nbytes)) if source.ndim else 0
    for start in range(0, len(source), rows) if rows else ():
        target[start : start + rows] = source[start : start + rows]
    if not rows:
        target[...] = source


@dataclass(slots=True, weakref_slot=True)
class Store:
    """The segments of this process. A segment goes when nothing lies in it any more; `dropped` are those that
    have, until the one who tells the actors takes them out.

    `anonymous`: whether segments have no name (see `orion.runtime.ray.segments`). Those of arrays are where `storage`
    says.
    """

    anonymous: bool
    storage: Storage = IN_MEMORY
    names: dict[int, SegmentName] = field(default_factory=dict)
    _memory: WeakValueDictionary[int, Bytes] = field(default_factory=WeakValueDictionary)
    dropped: list[int] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _copies: IdentityMap[tuple[Block, NDArray[Any]]] = field(default_factory=IdentityMap)
    _frozen: IdentityMap[tuple[Block, NDArray[Any]]] = field(default_factory=IdentityMap)
    _dense: IdentityMap[tuple[Block, ref[NDArray[Any]]]] = field(default_factory=IdentityMap)
    _layouts: IdentityMap[tuple[Block, ...]] = field(default_factory=IdentityMap)

    def close(self) -> None:
        """Let go of all arrays. Those that somebody else holds keep their segments."""
        self._copies.clear()
        self._frozen.clear()
        self._dense.clear()
        self._layouts.clear()

    def create(self, size: int, storage: Storage = IN_MEMORY) -> tuple[int, Bytes]:
        """A new segment: its number and its memory."""
        number = next(self._numbers)
        # Arrays outlive the session: they must not keep the store.
        drop = partial(call_if_alive, ref(self), Store._drop, number)
        self.names[number], memory = create_segment(size, self.anonymous, storage, drop)
        self._memory[number] = memory
        return number, memory

    def array(self, block: Block) -> NDArray[Any]:
        """The array of a block. KeyError where its segment is gone."""
        return block.on(self._memory[block.segment])

    def _drop(self, number: int) -> None:
        del self.names[number]
        self.dropped.append(number)

    # ------------------------------------------------------------ what a program needs

    def run_memory(self, prepared: PreparedProgram) -> tuple[int, RunMemory]:
        """A segment with the flags and results of a program."""
        number, memory = self.create(run_memory_size(prepared))
        return number, allocate_run_memory(prepared, Arena(number, memory).allocate, posts=True)

    def place(self, prepared: PreparedProgram, arguments: Mapping[str, object]) -> PlacedRun:
        """Every array of a run in shared memory. A `DistArray` is moved there when it is first seen and
        stays; of an ndarray there is a copy, still to be brought up to date unless the array is frozen.
        """
        copies: dict[str, tuple[NDArray[Any], NDArray[Any], bool]] = {}
        dense: dict[str, Block] = {}
        for name, value in arguments.items():
            if isinstance(value, LocalArray):
                dense[name] = self._own(value)
            elif isinstance(value, DenseArray):
                dense[name] = self._moved(value)
            elif isinstance(value, np.ndarray) and is_frozen(value):
                dense[name] = self._frozen_copy(value)
            elif isinstance(value, np.ndarray):
                dense[name], shared = self._copy(value)
                copies[name] = value, shared, name in prepared.written
        layouts: list[TileLayout | None] = []
        loops = tuple(self._loop(loop, arguments, dense, layouts) for loop in prepared.loops)
        begin_stores(prepared, layouts, arguments)
        kinds = (np.ndarray, DenseArray, LocalArray)
        shapes = {name: value.shape for name, value in arguments.items() if isinstance(value, kinds)}
        arrays = ((name, value) for name, value in arguments.items() if isinstance(value, DenseArray))
        own = {name: (array.shuffles, array.last_shuffle) for name, array in arrays}
        local = frozenset(name for name, value in arguments.items() if isinstance(value, LocalArray))
        given = skeleton_arguments(prepared, arguments)
        stored = {name: arguments[name].version for name in prepared.stored}  # type: ignore[attr-defined]
        return PlacedRun(loops, given, copies, dense, shapes, own, local, tuple(layouts), stored)

    def _loop(
        self,
        loop: PreparedLoop,
        arguments: Mapping[str, object],
        dense: Mapping[str, Block],
        layouts: list[TileLayout | None],
    ) -> LoopBlocks:
        """The blocks of one loop. The layout of its sparse array, or None, is added to `layouts`."""
        array = None if loop.sparse is None else arguments[loop.sparse]
        parts: tuple[Block, ...] = ()
        layout: TileLayout | None = None
        if isinstance(array, SparseArray):
            parts, layout = self._layout(loop, array)
        layouts.append(layout)
        dims = array.ndim if isinstance(array, SparseArray) else 0

        def block(argument: Argument) -> Block | int | None:
            match argument.kind:
                case "array":
                    return dense[argument.name]
                case "key":
                    return parts[1 + argument.position]
                case "value":
                    return parts[1 + dims + argument.position]
                case "count":
                    return len(arguments[argument.name])  # type: ignore[arg-type]
                case "least" | "greatest":
                    return NOT_LOOKED[argument.kind]
                case _:
                    return None

        version = array.version if isinstance(array, SparseArray) else 0
        return LoopBlocks(parts[0] if parts else None, tuple(block(a) for a in loop.kernel.arguments), version)

    # ------------------------------------------------------------ arrays

    def _copy(self, array: NDArray[Any]) -> tuple[Block, NDArray[Any]]:
        identity = identity_of(array)
        found = self._copies.get(identity)
        if found is None or found[0].shape != array.shape or found[1].dtype != array.dtype:
            found = self._empty(array.shape, array.dtype)
            self._copies[identity] = found
        return found

    def _frozen_copy(self, array: NDArray[Any]) -> Block:
        """The block of an array that nobody may write to, filled once."""
        found = self._frozen.get(array)
        if found is None or found[0].shape != array.shape or found[1].dtype != array.dtype:
            found = self._empty(array.shape, array.dtype)
            copy_in_pieces(found[1], array)
            self._frozen[array] = found
        return found[0]

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Block, NDArray[Any]]:
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        number, memory = self.create(size, self.storage)
        block = Block(number, 0, shape, dtype.str)
        return block, block.on(memory)

    def _own(self, array: LocalArray) -> Block:
        """The block of an array without contents: its storage is in shared memory from now on."""
        found = self._dense.get(array)
        if found is not None and array.has_storage and found[1]() is array.storage:
            return found[0]
        block, shared = self._empty(array.shape, array.dtype)
        array.storage = shared
        self._dense[array] = block, ref(shared)
        return block

    def _moved(self, array: DenseArray) -> Block:
        found = self._dense.get(array)
        if found is not None and found[1]() is array.storage:
            return found[0]
        block, shared = self._empty(array.storage.shape, array.storage.dtype)
        shared[...] = array.storage
        array.replace_storage(shared)
        self._dense[array] = block, ref(shared)
        return block

    def _layout(self, loop: PreparedLoop, array: SparseArray) -> tuple[tuple[Block, ...], TileLayout]:
        """A sparse array in the tiles of a loop, and its blocks: offsets, keys, values."""
        layout = aside(lambda: tile_layout(loop, array))
        found = self._layouts.get(layout)
        if found is None:
            found, layout = self._move_layout(array, layout)
            self._layouts[layout] = found
        return found, layout

    def _move_layout(self, array: SparseArray, layout: TileLayout) -> tuple[tuple[Block, ...], TileLayout]:
        parts = (layout.offsets, *layout.keys, *layout.values)
        size = Arena()
        blocks = [size.block(part.shape, part.dtype) for part in parts]
        number, memory = self.create(size.size, self.storage)
        blocks = [Block(number, block.offset, block.shape, block.dtype) for block in blocks]
        shared = [block.on(memory) for block in blocks]
        for part, place in zip(parts, shared, strict=True):
            place[...] = part
        keys = len(layout.keys)
        moved = array.replace_storage(tuple(shared[1 : 1 + keys]), tuple(shared[1 + keys :]))
        return tuple(blocks), moved


def call_if_alive(owner: ref[Any], method: Callable[..., None], *values: Any) -> None:
    """Call a method of an object, unless that is gone. (A `WeakMethod` complains when the interpreter ends.)"""
    found = owner()
    if found is not None:
        method(found, *values)


def run_memory_size(prepared: PreparedProgram) -> int:
    """Bytes of the flags and results of a program."""
    arena = Arena()
    allocate_run_memory(prepared, arena.allocate, posts=True)
    return arena.size
