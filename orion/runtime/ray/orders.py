"""What the driver and the actors say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orion.runtime.prepared import PreparedProgram
from orion.runtime.ray.segments import SegmentName
from orion.runtime.ray.store import LoopBlocks


@dataclass(frozen=True, slots=True)
class RunOrder:
    """One worker's part in one run of a program.

    `program` is its number; `prepared` is the program itself, where this actor does not know it yet. `run` counts the runs of
    the session. `memory` is the segment of flags and results, `segments` how this machine's segments are opened, `dropped` those
    that are no longer needed, as are the programs `ended`. `given` are the arguments of the skeleton.
    """

    program: int
    prepared: PreparedProgram | None
    run: int
    memory: int
    segments: dict[int, SegmentName]
    loops: tuple[LoopBlocks, ...]
    given: tuple[object, ...]
    dropped: tuple[int, ...]
    ended: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a worker's run ended: `returned` is what the skeleton returned; `error` why it failed; `left` where it left the program
    because another worker failed or the run was aborted."""

    returned: Any = None
    error: BaseException | None = None
    left: bool = False
