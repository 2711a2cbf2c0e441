"""The memory of an actor: the segments that it has mapped or made for its node, and what the driver puts there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from orion.arrays.storage import Storage
from orion.errors import StorageError
from orion.runtime.ray.orders import AheadRows, Filling, Ready
from orion.runtime.ray.regions import Section
from orion.runtime.ray.reordered import SentAhead
from orion.runtime.ray.segments import Block, Bytes, SegmentName, create_segment, open_segment, remove_name, token_in


class ActorMemory:
    """What every worker of a group does with memory, and the first one of a node for all there."""

    def __init__(self) -> None:
        self._memory: dict[int, Bytes] = {}
        self._ahead: dict[Block, list[AheadRows]] = {}
        self._lock = Lock()
        """Rows are kept while another thread of this process runs a program, or makes ready for one."""

    def can_open(self, name: SegmentName, token: bytes) -> bool:
        """Whether this process can map a segment of another process, and finds there what that one wrote."""
        try:
            return token_in(open_segment(name)) == token
        except (OSError, ValueError):
            return False

    def attach(self, names: Mapping[int, SegmentName]) -> None:
        """Map segments, those of an earlier attempt too."""
        for number, name in names.items():
            self._memory[number] = open_segment(name)

    def remove_names(self, names: Mapping[int, SegmentName]) -> None:
        """Remove the files of segments that were made here; those who have mapped them keep them."""
        for name in names.values():
            remove_name(name)

    def create(
        self, sizes: Mapping[int, int], anonymous: bool, storage: Storage
    ) -> dict[int, SegmentName] | StorageError:
        """Make this node's copies of segments, all zero, and say how they are opened, or why there are none."""
        names = {}
        try:
            for number, size in sizes.items():
                names[number], self._memory[number] = create_segment(size, anonymous, storage)
        except StorageError as error:
            return error
        return names

    def read(self, parts: list[tuple[Block, Section]]) -> list[NDArray[Any]]:
        """The contents of parts of blocks."""
        return [region.of(self._array(block)).copy() for block, region in parts]

    def keep_ahead(self, rows: AheadRows) -> None:
        """Keep rows, which come while a program runs, until the shuffle is done that they belong to (`SentAhead`).
        Those of another one of the same array are not needed any more."""
        own = replace(rows, data=rows.data.copy())  # not in the store of Ray, which has less room
        with self._lock:
            if rows.block.segment in self._memory:
                kept = self._ahead.get(rows.block, [])
                self._ahead[rows.block] = [*(one for one in kept if one.number == rows.number), own]

    def _fill(self, order: Ready) -> None:
        """Make this node's memory ready for a run."""
        self._memory[order.memory][:] = 0
        for filling in order.fillings:
            region = filling.region
            if isinstance(region, SentAhead):
                self._put_ahead(filling, region)
            else:
                region.put(self._array(filling.block), filling.data)

    def _put_ahead(self, filling: Filling, sent: SentAhead) -> None:
        """Put rows that were sent ahead to their places, or let go of them."""
        with self._lock:
            kept = {one.at: one for one in self._ahead.pop(filling.block, ()) if one.number == sent.number}
        missing = [at for at in sent.at if at not in kept]
        if missing:
            raise RuntimeError(f"{len(missing)} of {len(sent.at)} messages with rows of a shuffle are not there")
        for at in sent.at:
            kept[at].rows.put(self._array(filling.block), kept[at].data)

    def _drop(self, segments: tuple[int, ...]) -> None:
        """Let go of segments."""
        with self._lock:
            for segment in segments:
                self._memory.pop(segment, None)
            for block in [block for block in self._ahead if block.segment in segments]:
                del self._ahead[block]

    def _array(self, block: Block) -> NDArray[Any]:
        return block.on(self._memory[block.segment])
