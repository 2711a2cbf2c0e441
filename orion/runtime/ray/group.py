"""The actors of a session: started together, told to run programs, and replaced together when one is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError

from orion.errors import WorkerLostError, describe
from orion.runtime.ray.actor import WorkerActor
from orion.runtime.ray.cluster import kill_actors, start_actors
from orion.runtime.ray.orders import Outcome, RunOrder
from orion.runtime.ray.segments import SegmentName

START_SECONDS = 60.0
LOOK_SECONDS = 0.05
LEAVE_SECONDS = 10.0
"""How long workers may take to leave a run that was aborted before they are ended by force."""


class Group:
    """One actor per worker. Once `is_whole` is False they have been ended, and there must be another group."""

    def __init__(self, workers: int) -> None:
        self.actors = start_actors(WorkerActor, [(w, workers) for w in range(workers)], START_SECONDS)
        self.is_whole = True

    def can_open(self, name: SegmentName) -> bool:
        """Whether every actor can map a segment of the driver's."""
        return all(ray.get([actor.can_open.remote(name) for actor in self.actors]))

    def attach(self, names: dict[int, SegmentName]) -> None:
        """Have every actor map segments now."""
        ray.get([actor.attach.remote(names) for actor in self.actors])

    def run(self, orders: Sequence[RunOrder], abort: Callable[[], None]) -> list[Outcome]:
        """Send each worker its order, one message each, and wait for all outcomes.

        `abort` makes the workers leave; it is called where one is lost, and at Ctrl-C.
        """
        references: list[Any] = []
        try:
            references += [a.run.remote(order) for a, order in zip(self.actors, orders, strict=False)]
            return self._outcomes(references, abort)
        except RayActorError as error:
            self._leave(references, abort)
            self.close()
            raise _lost(error) from error
        except BaseException:
            self._leave(references, abort)
            raise

    def close(self) -> None:
        """End the actors."""
        self.is_whole = False
        kill_actors(self.actors)

    def _outcomes(self, references: list[Any], abort: Callable[[], None]) -> list[Outcome]:
        """All outcomes, looking now and then for one that tells the other workers to leave."""
        late = references
        while late:
            done, late = ray.wait(references, num_returns=len(references), timeout=LOOK_SECONDS)
            if late and any(outcome.error is not None or outcome.left for outcome in ray.get(done)):
                abort()
        return list(ray.get(references))

    def _leave(self, references: list[Any], abort: Callable[[], None]) -> None:
        """Wait until no worker works on the run any more; those that don't leave in time are ended, and the group with them."""
        end = time.monotonic() + LEAVE_SECONDS
        while True:
            try:
                abort()
                _, late = ray.wait(references, num_returns=len(references), timeout=max(0.0, end - time.monotonic()))
                if late:
                    self.close()
                return
            except KeyboardInterrupt:
                continue


def _lost(error: RayActorError) -> WorkerLostError:
    why = str(error).strip().splitlines()[0]
    hint = "the next run starts new workers; NumPy arrays are as they were before this one"
    return WorkerLostError(describe("a worker died while it ran a loop", why=why, hint=hint))
