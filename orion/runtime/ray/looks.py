"""What the processes of a node are seen to do, and where in a run they are: those of the driver's own machine at once,
those of other nodes by tasks there that take no CPU. Workers themselves are not asked: a stopped one does not answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orion.runtime.memory import allocate_run_memory, place_of
from orion.runtime.prepared import PreparedProgram
from orion.runtime.ray.cluster import address_of
from orion.runtime.ray.processes import State, states_of
from orion.runtime.ray.segments import Arena, SegmentName, open_segment

FIRST_SECONDS = 2.0
"""How long a run takes before other nodes are asked: most are over by then."""

PLACE_SECONDS = 10.0
"""How long a node may take to say where a worker is."""


class Looks(Protocol):
    """What is seen of the processes of a node, by the numbers of their workers."""

    @property
    def processes(self) -> Mapping[int, int]:
        """The processes of workers."""

    @property
    def where(self) -> str:
        """The node, where it is not the driver's own."""

    def newest(self, running: Collection[int]) -> dict[int, State]:
        """The states of workers that have been found since the last time."""


class Here:
    """The processes of this machine."""

    where = ""

    def __init__(self, processes: Mapping[int, int]) -> None:
        self.processes = processes

    def newest(self, running: Collection[int]) -> dict[int, State]:
        """The states of workers now."""
        return states_of({number: one for number, one in self.processes.items() if number in running})


class There:
    """The processes of another node, which is asked one question at a time."""

    def __init__(self, node: str, processes: Mapping[int, int]) -> None:
        self.processes = processes
        self._node, self._asked = node, None
        self._first = time.monotonic() + FIRST_SECONDS

    @property
    def where(self) -> str:
        """The node by its address."""
        return f" on node {address_of(self._node)}"

    def newest(self, running: Collection[int]) -> dict[int, State]:
        """What the node has answered since it was last asked, of workers that still run."""
        found: dict[int, State] = {}
        if self._asked is not None:
            if not ray.wait([self._asked], timeout=0)[0]:
                return {}
            try:
                found = ray.get(self._asked)
            except RayError:  # the node is lost, of which Ray tells those who wait for its workers
                found = {}
        if time.monotonic() >= self._first:
            asked = {number: one for number, one in self.processes.items() if number in running}
            self._asked = asked_there(self._node, states_of, asked) if asked else None
        return {number: state for number, state in found.items() if number in running}


def asked_there(node: str, question: Callable[..., object], *about: object) -> Any:
    """The reference to what a function returns on a node, whatever else runs there."""
    there = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, max_retries=0)(question).options(scheduling_strategy=there).remote(*about)


def place_there(node: str, prepared: PreparedProgram, flags: SegmentName, worker: int) -> str:
    """Where a worker of another node is in a run, by the flags of that node."""
    try:
        return str(ray.get(asked_there(node, _place_of, prepared, flags, worker), timeout=PLACE_SECONDS))
    except (RayError, GetTimeoutError):
        return "where it is in the loop cannot be seen"


def _place_of(prepared: PreparedProgram, flags: SegmentName, worker: int) -> str:
    return place_of(prepared, allocate_run_memory(prepared, Arena(0, open_segment(flags)).allocate, posts=True), worker)
