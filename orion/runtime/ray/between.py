"""The threads of a node that bring something to other nodes, or from there, while loops run: which of them for which
loop."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.plan.plan import LoopPlan
from orion.runtime.memory import RunMemory
from orion.runtime.profile.records import BroughtCopies
from orion.runtime.ray.beside import Beside
from orion.runtime.ray.brings import Nodes
from orion.runtime.ray.carrier import Carrier, idle_carrier
from orion.runtime.ray.centre import Centre
from orion.runtime.ray.meetings import Meetings
from orion.runtime.ray.overlapped_centre import OverlappedCentre


@dataclass(frozen=True, eq=False)
class Between:
    """Those of a node in a run: `carrier` has updates that may be late, the others copies of arrays, of workers that
    meet, that pull one by one, and that go on while copies are pulled."""

    carrier: Carrier
    meetings: Meetings
    centre: Centre
    overlapped: OverlappedCentre

    def of(self, plan: LoopPlan) -> Beside | None:
        """That of a loop which runs on several nodes; None where it needs none."""
        if plan.nest.replicas:
            policy = plan.nest.replicas[0].policy
            if policy.overlaps:
                return self.overlapped
            return self.centre if policy.pulls_at_home else self.meetings
        return self.carrier if plan.relaxed.has_clocks else None

    def pulling(self, loop: int) -> Meetings | Centre | OverlappedCentre:
        """What takes copies of arrays that come for a loop."""
        at_home = (self.centre, self.overlapped)
        return next((one for one in at_home if one.loop == loop), self.meetings)

    def stop(self) -> None:
        """End in the middle of a round that is left."""
        for one in (self.carrier, self.meetings, self.centre, self.overlapped):
            one.stop()

    @property
    def brought(self) -> BroughtCopies:
        """What was sent of copies of arrays in this run."""
        return self.meetings.sent + self.centre.sent + self.overlapped.sent


def nothing_between(memory: RunMemory) -> Between:
    """Those of a run on one node, or of loops without late updates and copies."""
    given = Nodes(("",), (0,), 0, {}), memory, NO_ARRAYS, _ignored
    return Between(idle_carrier(memory), Meetings(0, 0, *given), Centre(0, 0, *given), OverlappedCentre(0, 0, *given))


NO_ARRAYS: dict[str, NDArray[Any]] = {}


def _ignored(error: BaseException) -> None:
    pass
