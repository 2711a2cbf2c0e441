"""Parameters of which each worker has a copy (`orion.replicate`)."""

from __future__ import annotations

from orion.arrays.policies import Policy
from orion.dataclass import dataclass
from orion.source import Span

PARTS = ("array", "copies", "velocities", "outer", "posted")
"""The attributes of a `Replicated` that are parameters."""


@dataclass(frozen=True, slots=True)
class ReplicaPart:
    """A parameter that a call takes from `replica` among its arguments: its attribute `part`."""

    name: str
    replica: str
    part: str

    @property
    def buffer(self) -> str:
        return self.replica

    @property
    def written(self) -> str:
        """What it is called where it is told of."""
        return f"{self.replica}.{self.part}"


@dataclass(frozen=True, slots=True)
class Replica:
    """A parameter that is a copy of another one, `array`, for each worker: `name` in the source.

    `copies` is the parameter that has all of them: number k is that of worker k. `velocities` has their momentum, by
    workers, `velocity` is that of a worker, and `before` its own array of what its copy was before an iteration, where
    the policy has momentum: all empty where not. `outer` has the momentum of the outer step, empty where there is none.
    `posted` is what workers have posted to be pulled while they go on, where they do.
    `span` is the parameter.
    """

    name: str
    array: str
    copies: str
    momentum: tuple[str, ...]
    outer: tuple[str, ...]
    posted: tuple[str, ...]
    policy: Policy
    span: Span

    @property
    def velocities(self) -> str:
        return self.momentum[0]

    @property
    def velocity(self) -> str:
        return self.momentum[1]

    @property
    def before(self) -> str:
        return self.momentum[2]

    @property
    def source(self) -> str:
        """What stands in the source."""
        return self.name

    @property
    def own(self) -> tuple[str, ...]:
        """The arrays of each worker's own."""
        return (self.name, *self.momentum[1:])

    @property
    def of_workers(self) -> tuple[str, ...]:
        """The arrays that have a part for each worker."""
        return (self.copies, *self.momentum[:1])

    @property
    def changed(self) -> tuple[str, ...]:
        """The arrays of all workers that pulls change."""
        return (self.array, self.copies, *self.momentum[:1], *self.outer, *self.posted)

    @property
    def names(self) -> tuple[str, ...]:
        """All that pulls have to do with."""
        return (*self.own, *self.changed)
