"""Workers of actors that take times while a profile is on."""

from __future__ import annotations

from orion.runtime.parts import LoopPart
from orion.runtime.profile.timed import Timed
from orion.runtime.ray.node_worker import NodeWorker


class TimedNodeWorker(Timed, NodeWorker):
    """A worker of a run that goes over several nodes, and takes times."""

    def _walk_some(self, part: LoopPart, start: int, stop: int) -> None:
        compute, cpu = self._compute, self._cpu
        if start < stop:
            self.walk_timed(part, start, stop)
        self.busy[part.number].in_tiles += self._compute - compute
        self.busy[part.number].of_core += self._cpu - cpu
        self.check(part)

    def _wait_apart(self, part: LoopPart, tile: int) -> None:
        """The walk waits before each tile by itself, and notes how long."""

    def takes_tiles(self, part: LoopPart) -> bool:
        """Whether this worker takes tiles of others: not where these may be on other nodes."""
        return False

    def samples_alone(self) -> bool:
        """Whether the workers of a run can stand still for one: flags of other nodes take too long."""
        return False
