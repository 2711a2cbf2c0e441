"""What a Ray actor does: it is one worker, keeps what it has compiled and mapped, and runs its part of programs."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.calling import tile_boxes
from orion.runtime.arguments import LoopData, read_only
from orion.runtime.barrier import KERNEL
from orion.runtime.failures import failure_in
from orion.runtime.memory import RunMemory, allocate_run_memory
from orion.runtime.parts import LoopPart, Walk, loop_parts
from orion.runtime.prepared import PreparedProgram
from orion.runtime.ray.orders import Outcome, RunOrder
from orion.runtime.ray.segments import Arena, Block, Bytes, SegmentName, open_segment
from orion.runtime.ray.store import LoopBlocks
from orion.runtime.skeleton import Skeleton, make_skeleton
from orion.runtime.worker import AbortedError, Worker


@dataclass(frozen=True, eq=False)
class ActorProgram:
    """A program as one actor keeps it."""

    prepared: PreparedProgram
    skeleton: Skeleton
    memory: RunMemory
    parts: tuple[LoopPart, ...]
    boxes: tuple[NDArray[np.int64] | None, ...]
    meet: Walk


class WorkerActor:
    """Worker `number` of `workers`."""

    def __init__(self, number: int, workers: int) -> None:
        self._number = number
        self._workers = workers
        self._programs: dict[int, ActorProgram] = {}
        self._memory: dict[int, Bytes] = {}

    def can_open(self, name: SegmentName) -> bool:
        """Whether this process can map a segment of the driver's."""
        try:
            open_segment(name)
        except OSError:
            return False
        return True

    def attach(self, names: dict[int, SegmentName]) -> None:
        """Map segments."""
        for number, name in names.items():
            if number not in self._memory:
                self._memory[number] = open_segment(name)

    def run(self, order: RunOrder) -> Outcome:
        """Run this worker's part of a program."""
        try:
            return self._run(order)
        except BaseException as error:
            return Outcome(error=_sendable(error))

    def _run(self, order: RunOrder) -> Outcome:
        self._forget(order)
        self.attach(order.segments)
        program = self._program(order)
        try:
            for part, blocks, boxes in zip(program.parts, order.loops, program.boxes, strict=True):
                part.begin(self._data(program, part, blocks, boxes))
            worker = Worker(self._number, program.prepared.workers, program.parts, program.memory, program.meet)
            return Outcome(program.skeleton(worker, *order.given))
        except AbortedError:
            return Outcome(error=failure_in(program.prepared, program.memory), left=True)
        except BaseException as error:
            program.memory.abort()
            return Outcome(error=failure_in(program.prepared, program.memory) or _sendable(error))
        finally:
            for part in program.parts:
                part.end()

    def _program(self, order: RunOrder) -> ActorProgram:
        known = self._programs.get(order.program)
        if known is None:
            assert order.prepared is not None
            known = self._load(order.prepared, order.memory)
            self._programs[order.program] = known
        return known

    def _load(self, prepared: PreparedProgram, segment: int) -> ActorProgram:
        from orion.kernel.compile import compile_kernel

        walks = tuple(compile_kernel(loop.kernel).walk for loop in prepared.loops)
        memory = allocate_run_memory(prepared, Arena(segment, self._memory[segment]).allocate)
        return ActorProgram(
            prepared=prepared,
            skeleton=make_skeleton(prepared),
            memory=memory,
            parts=loop_parts(prepared, memory, walks, self._number, prepared.workers, in_slices=False),
            boxes=tuple(None if loop.sparse else read_only(tile_boxes(loop.schedule)) for loop in prepared.loops),
            meet=compile_kernel(KERNEL).walk,
        )

    def _forget(self, order: RunOrder) -> None:
        for program in order.ended:
            self._programs.pop(program, None)
        for segment in order.dropped:
            self._memory.pop(segment, None)

    def _data(
        self, program: ActorProgram, part: LoopPart, blocks: LoopBlocks, boxes: NDArray[np.int64] | None
    ) -> LoopData:
        extents = boxes if blocks.extents is None else read_only(self._array(blocks.extents))
        assert extents is not None
        values: list[Any] = []
        for argument, found in zip(part.loop.kernel.arguments, blocks.arguments, strict=True):
            if isinstance(found, Block):
                array = self._array(found)
                values.append(array if argument.kind == "array" and argument.writeable else read_only(array))
            else:
                values.append(found)
        return LoopData(extents, tuple(values))

    def _array(self, block: Block) -> NDArray[Any]:
        return block.on(self._memory[block.segment])


def _sendable(error: BaseException) -> BaseException:
    """The error with its traceback as a note; one that cannot be pickled as a RuntimeError with its text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"in a Ray actor:\n{text}")
    return error
