"""What a Ray cluster has, and the actors that are started on it."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

import ray
import ray._private.worker
from ray.exceptions import GetTimeoutError, RayActorError

from orion.errors import ArgumentError, describe

NEEDED = {"gcs_server": "head", "raylet": "node"}
"""The processes of Ray without which no actor can be started, by Ray's names for them."""

ANSWER_SECONDS = 5.0
"""How long the head of a cluster may take to take a connection, and an actor to answer another one."""

LOOK_SECONDS = 0.5
"""How often it is looked, while actors start, whether the cluster still has room for them."""


class NoRoomError(ArgumentError):
    """The cluster has fewer CPUs than workers were asked for: `room` of them, as far as that is known."""

    room = 0


def cluster_cpus() -> int:
    """The number of CPUs of the cluster that this process has joined."""
    return int(ray.cluster_resources().get("CPU", 0))


def own_node() -> str:
    """The id of the node that this process is on."""
    return str(ray.get_runtime_context().get_node_id())


def own_address() -> str:
    """The address by which other nodes of the cluster reach the node that this process is on."""
    return str(ray.util.get_node_ip_address())


def address_of(node: str) -> str:
    """The address of a node, by its id."""
    return next((str(one["NodeManagerAddress"]) for one in ray.nodes() if one["NodeID"] == node), node)


def answer_of(reference: Any) -> Any:
    """What another actor answers to a call that takes no time. ConnectionError where it does not."""
    try:
        return ray.get(reference, timeout=ANSWER_SECONDS)
    except (RayActorError, GetTimeoutError) as error:
        raise ConnectionError(str(error)) from error


def start_actors(kind: type[Any], number: int, groups: tuple[str, ...], seconds: float, held: int) -> list[Any]:
    """Actors of a class, each with one CPU and a thread more for the calls of each concurrency group, once all
    have started. `held` are the CPUs that other sessions of this process hold meanwhile.

    `ArgumentError` where the cluster has not that many CPUs, or they are not free within `seconds`.
    """
    _refuse_without_room(number, held)
    remote = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, concurrency_groups=dict.fromkeys(groups, 1))(
        kind
    )
    actors: list[Any] = []
    try:
        while len(actors) < number:
            actors.append(remote.remote())
        started = [actor.__ray_ready__.remote() for actor in actors]
        end = time.monotonic() + seconds
        while late := _not_ready(started):
            _refuse_without_room(number, held)  # a node may be lost meanwhile, and it takes a while until that is known
            if time.monotonic() > end:
                why = f"{len(late)} did not start in {seconds:.0f} s: others use the cluster's {cluster_cpus()} CPUs"
                raise _no_room(number, why, "end what else uses the cluster")
    except BaseException:
        kill_actors(actors)
        raise
    return actors


def _not_ready(started: list[Any]) -> list[Any]:
    ready, late = ray.wait(started, num_returns=len(started), timeout=LOOK_SECONDS)
    ray.get(ready)
    return list(late)


def _refuse_without_room(number: int, held: int) -> None:
    cpus = cluster_cpus()
    if cpus - held < number:
        others = f", other sessions of this process hold {held} of them" if held else ""
        dead = sum(not node["Alive"] for node in ray.nodes())
        lost = f", after {dead} of its nodes died or left" if dead else ""
        why = f"the cluster has {cpus} CPUs{lost}{others}, and each worker takes one"
        free = "leave the other session, or end it by `orion.shutdown()`" if held else "give the cluster more CPUs"
        raise _no_room(number, why, free, max(0, cpus - held))


def _no_room(workers: int, why: str, free: str, room: int = 0) -> NoRoomError:
    hint = f"{free}, or ask for fewer workers"
    error = NoRoomError(describe(f"no room for {workers} workers on Ray", why=why, hint=hint))
    error.room = room
    return error


def nodes_of(actors: list[Any]) -> list[str]:
    """The id of the node that each actor is on."""
    return list(ray.get([actor.__ray_call__.remote(_node_id) for actor in actors]))


def _node_id(actor: Any) -> str:
    return own_node()


def connection() -> str:
    """What tells this process's present connection to a cluster from any other: actors last as long as it does."""
    return str(ray.get_runtime_context().get_worker_id())


def kill_actors(actors: list[Any]) -> None:
    """End actors at once, whatever they do. Those of an earlier connection have ended with it, and Ray does not
    know them any more.
    """
    for actor in actors if ray.is_initialized() else ():
        with suppress(Exception):
            ray.kill(actor, no_restart=True)


def what_is_lost() -> str:
    """What has died of the Ray that this process has joined, without which nothing can be started on it; "" where all
    is there. Asks the head only where somebody listens there: Ray ends this process where it gets no answer.
    """
    started_here = getattr(ray._private.worker, "_global_node", None)
    for kind, process in started_here.dead_processes() if started_here is not None else ():
        if kind in NEEDED:
            return f"its {NEEDED[kind]} (process {process.pid}) has died"
    head = str(ray.get_runtime_context().gcs_address)
    if not _is_listening(head):
        return f"nobody answers at {head}"
    own = own_node()
    if not any(node["Alive"] for node in ray.nodes() if node["NodeID"] == own):
        return "the node that this process is on has died"
    return ""


def raylet_started_here() -> int:
    """The process of the node that this process has started."""
    return int(ray._private.worker._global_node.all_processes["raylet"][0].process.pid)


def _is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS):
        return True
    return False


def is_running() -> bool:
    """Whether this process has joined a cluster."""
    return bool(ray.is_initialized())
