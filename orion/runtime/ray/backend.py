"""The Ray backend of a session: one actor per worker, arrays in memory that they share with the driver."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from threading import Lock
from typing import Any

from orion.arrays.base import DistArray
from orion.errors import PlanError, WorkerLostError
from orion.runtime.backend import LocalBackend, cores
from orion.runtime.prepared import PreparedProgram
from orion.runtime.ray.cluster import cluster_cpus, end_ray, is_running, join_or_start
from orion.runtime.ray.team import Team


class RayBackend:
    """Ray actors that own the partitions. Ray and the actors are started with the first run."""

    def __init__(self, workers: int | None, address: str | None) -> None:
        self._address = address
        self._lock = Lock()
        self._team: Team | None = None
        self._started_ray = False
        self._driver = LocalBackend(1)
        self.workers = workers or self._available()

    def run(self, prepared: PreparedProgram, arguments: Mapping[str, object]) -> Any:
        """Run a program. One that is scheduled for a single one of several workers is run by the driver,
        where its data is.
        """
        if prepared.workers > self.workers:
            wanted = prepared.workers
            raise PlanError(f"the program is scheduled for {wanted} workers, the session has {self.workers}")
        if prepared.workers == 1 < self.workers:
            return self._driver.run(prepared, arguments)
        with self._lock:
            try:
                return self._usable_team().run(prepared, arguments)
            except WorkerLostError as error:
                error.add_note(_what_is_lost(prepared, arguments))
                raise

    def close(self) -> None:
        """End the actors, and Ray where it was started here."""
        atexit.unregister(self.close)
        team, self._team = self._team, None
        if team is not None:
            team.group.close()
        if self._started_ray:
            self._started_ray = False
            end_ray()

    def _usable_team(self) -> Team:
        """The team of the session; a new one where there is none yet, or actors have died since the last run."""
        if self._team is not None and not (is_running() and self._team.group.is_usable()):
            self._team.group.close()
            self._team = None
        if self._team is None:
            atexit.register(self.close)
            self._started_ray |= join_or_start(self._address, self.workers)
            self._team = Team(self.workers)
        return self._team

    def _available(self) -> int:
        """The number of workers where none was asked for: a CPU of the cluster each."""
        if self._address is None:
            return cores()
        self._started_ray = join_or_start(self._address, 1)
        return max(1, cluster_cpus())


def _what_is_lost(prepared: PreparedProgram, arguments: Mapping[str, object]) -> str:
    lost = [name for name in sorted(prepared.written) if isinstance(arguments[name], DistArray)]
    return f"these DistArrays hold only a part of the results: {', '.join(lost)}" if lost else "no data was lost"
