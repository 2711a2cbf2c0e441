"""A plan: how each loop of a function is run, and the proof that it may be."""

from __future__ import annotations

from dataclasses import dataclass

from orion.dependence.access import Dependence, LoopDependences
from orion.loop.nest import LoopNest, Program
from orion.loop.types import ArgumentType
from orion.reasons import Reason


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an array lives while the loop runs, and what that moves.

    `kind` is "partitioned" (along array dimension `dim`, in the blocks of the space dimension), "rotated" (along
    `dim`, its blocks going from worker to worker), "replicated" (read by all) or "served" (kept in one place).
    `loop_dim` is the loop dimension whose blocks cut it: iteration x of it touches elements x + halo[0] … x +
    halo[1] of `dim`. `bytes_moved` is what one run of the loop moves between workers, or None where sizes are
    unknown.
    """

    array: str
    kind: str
    dim: int | None
    loop_dim: int | None
    is_written: bool
    bytes_moved: int | None
    halo: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one `for` of the source: the dependences it carries, and whether it is parallel by itself."""

    index: int
    line: int
    carried: tuple[Dependence, ...]

    @property
    def is_parallel(self) -> bool:
        return not self.carried


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """How one loop is run.

    `strategy` is "independent", "1d", "2d", "nd" or "serial". `space` is the loop dimension whose blocks are shared
    out among the workers, and `time` those along which the tiles follow one another (both are empty where the loop
    is serial). `cuts` is the number of blocks of each loop dimension. `runs_on` is the number of workers it will
    use. `iterations` is their number, or an upper bound of it, where sizes are known. `rounds_overlap`: where the
    loop stands in a serial one, no subscript depends on the round, so that a tile of the next round need only wait
    for the tiles of this round that share a block with it; where False, a round must be done before the next
    begins.
    """

    nest: LoopNest
    strategy: str
    space: int | None
    time: tuple[int, ...]
    cuts: tuple[int, ...]
    ordered: bool
    analysis: LoopDependences
    verdicts: tuple[Verdict, ...]
    placements: tuple[Placement, ...]
    reasons: tuple[Reason, ...]
    runs_on: int
    iterations: int | None
    rounds_overlap: bool = True

    @property
    def is_parallel(self) -> bool:
        return self.strategy != "serial"

    @property
    def is_written_by_user(self) -> bool:
        """False for statements between loops that touch arrays: they run once, as a loop of one trip."""
        return self.nest.loops[0].index >= 0

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        return self.analysis.dependences


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """The plans of all loops of a function, in textual order, and the program they are part of."""

    program: Program
    loops: tuple[LoopPlan, ...]
    types: tuple[tuple[str, ArgumentType], ...]
