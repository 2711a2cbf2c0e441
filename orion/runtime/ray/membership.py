"""Ray itself: joined where it runs, started where it does not, and left when the last session that uses it ends.

Ray has one connection per process, so what is known of it is known once per process, as Ray does.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from threading import Event, RLock, current_thread, main_thread
from typing import Protocol
from weakref import WeakSet

import ray
from ray._private import ray_constants

from orion.cores import cores
from orion.errors import ArgumentError, describe
from orion.own_threads import OwnThread
from orion.runtime.ray.cluster import connection, is_running, raylet_started_here, what_is_lost
from orion.runtime.ray.guard import Guard

OBJECT_STORE_BYTES = 100 * 1024**2
"""Ray's own store holds only what goes between nodes; partitions lie in memory of ours."""

MOST_PROCESSES = 128
"""The most workers of a Ray that is started on a machine of no more cores: each takes about 100 MB."""

LOOK_SECONDS = 5.0
"""How long the head of a cluster may take to answer. Ray itself asks for minutes, and then ends the process."""

QUIET = {"logging_level": logging.ERROR, "log_to_driver": False}


class Member(Protocol):
    """A session that uses the cluster."""

    @property
    def cluster_cpus(self) -> int:
        """The CPUs that it holds now."""


class Membership:
    """The sessions of this process that use its connection to Ray, and which connection Orion made."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._lock = RLock()
        self._members: WeakSet[Member] = WeakSet()
        self._made: str | None = None
        self._guard: Guard | None = None
        self._over = Event()
        self._process = os.getpid()

    def join(self, member: Member, address: str | None, workers: int) -> None:
        """Make Ray usable for a session: by the connection that there is, or a new one."""
        _refuse_clients(address)
        self._notice_fork()
        with self._lock:
            if is_running() and (lost := what_is_lost()):
                self._let_go(lost)
            if not is_running():
                self._members.clear()  # of an earlier connection, which somebody else ended
                self._end_helpers()
                self._connect(address, workers)
            elif not _is_at(address):
                raise _elsewhere(str(address))
            self._members.add(member)

    def leave(self, member: Member) -> None:
        """End the use of Ray by a session; with the last one the connection that Orion made, and with it the Ray that
        Orion started. Safe to call at any time.
        """
        self._notice_fork()
        with self._lock:
            self._members.discard(member)
            if self._made is not None and not self._members:
                if is_running() and connection() == self._made:
                    ray.shutdown()
                self._end_helpers()
                self._made = None

    def held_by_others(self, member: Member) -> int:
        """The CPUs of the cluster that other sessions of this process hold."""
        return sum(other.cluster_cpus for other in list(self._members) if other is not member)

    def _connect(self, address: str | None, workers: int) -> None:
        try:
            self._over = Event()
            if address == "local" or (address is None and "RAY_ADDRESS" not in os.environ):
                _start(workers, self._over)
                self._guard = Guard(raylet_started_here())
            else:
                _join(address, self._over)
            self._made = connection()
        except BaseException:
            ray.shutdown()  # what Ctrl-C left of it
            self._end_helpers()
            raise

    def _let_go(self, lost: str) -> None:
        """End a connection to a Ray that is no longer there: one that Orion made, so that there can be another."""
        if connection() != self._made:
            what = f"the Ray that this program has joined is no longer there: {lost}"
            hint = "end the connection by `ray.shutdown()`, and join Ray again, or leave that to Orion"
            raise ArgumentError(describe(what, hint=hint))
        ray.shutdown()
        self._end_helpers()
        self._made = None

    def _end_helpers(self) -> None:
        """Of a Ray that was ended: what guards its processes, and the thread that started them."""
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        self._over.set()

    def _notice_fork(self) -> None:
        """In a process that was forked off: the connection is the parent's."""
        if os.getpid() != self._process:
            self._forget()


membership = Membership()


# ---------------------------------------------------------------- a cluster that runs


def _join(address: str | None, over: Event) -> None:
    """Join a cluster, to be used until `over`."""
    told = f"address={address!r}" if address is not None else f"RAY_ADDRESS={os.environ['RAY_ADDRESS']!r}"
    try:
        _look_for(address or os.environ["RAY_ADDRESS"])
        _from_lasting_thread(lambda: ray.init(address=address, **QUIET), over)
    except (ConnectionError, ValueError, SystemExit) as error:
        hint = "start one with `ray start --head`, or leave out `address` to start Ray in this process"
        raise ArgumentError(describe(f"no Ray cluster at {told}", why=str(error), hint=hint)) from error


def _look_for(address: str) -> None:
    """ConnectionError where nobody listens at an address of a machine and a port."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise ConnectionError(f"nobody listens there: {error}") from error


def _refuse_clients(address: str | None) -> None:
    if address is not None and address.startswith("ray://"):
        hint = 'run the program on a node of the cluster, with address="auto"'
        raise ArgumentError(describe(f"address={address!r} is that of a Ray client, which shares no memory", hint=hint))


def _is_at(address: str | None) -> bool:
    """Whether the cluster that this process has joined is the one at an address. "auto" stands for `RAY_ADDRESS`, and
    without that for whichever this process has joined.
    """
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS")
    if address is None or address in ("", "auto"):
        return True
    host, _, port = address.rpartition(":")
    here, _, port_here = str(ray.get_runtime_context().gcs_address).rpartition(":")
    return port == port_here and bool(_machines(host) & _machines(here))


def _machines(host: str) -> set[str]:
    """The addresses of a machine; of this one also those by which only itself knows it."""
    host = host.strip("[]")
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return {host}
    own = {"127.0.0.1", "::1", ray.util.get_node_ip_address()}
    return found | own if found & own else found


def _elsewhere(address: str) -> ArgumentError:
    joined = ray.get_runtime_context().gcs_address
    hint = "end what uses that one first: the sessions on it, and your own connection by `ray.shutdown()`"
    what = f"address={address!r}: this process has already joined another Ray cluster, at {joined}"
    return ArgumentError(describe(what, why="Ray has one connection per process", hint=hint))


# ---------------------------------------------------------------- a Ray of one's own


def _start(workers: int, over: Event) -> None:
    """Start Ray on this machine, to be used until `over`."""
    most = max(MOST_PROCESSES, cores())
    if workers > most:
        what = f"workers={workers} is too many for a Ray that is started on this machine"
        why = f"each worker is a process, and {most:,} are the limit; more workers than cores only wait for each other"
        hint = 'ask for fewer, or join a cluster with enough CPUs: orion.init("ray", address=...)'
        raise ArgumentError(describe(what, why=why, hint=hint))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    start = partial(
        ray.init,
        address="local",
        num_cpus=workers,
        num_gpus=0,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES,
        **QUIET,
    )
    with _on_this_machine_only():
        _from_lasting_thread(start, over)


@contextmanager
def _on_this_machine_only() -> Iterator[None]:
    """Ray that is started here listens at 127.0.0.1, not on every interface: anybody who can connect to it can run
    programs. Ray has no argument for that, only a constant, which it sets so by itself on Windows and macOS.
    """
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _from_lasting_thread(start: Callable[[], object], over: Event) -> None:
    """Call a function that starts Ray, or joins it, from a thread that lasts as long as that Ray: the main one, or one
    that then only waits until it is `over`. On Linux, Ray's processes are killed as soon as the thread that started
    them ends. And Ray numbers the calls of the thread that has connected, and of the main one if that has ever
    connected, in the same way: where both call an actor, two calls get the same number, at which Ray ends the process.
    """
    if current_thread() is main_thread():
        start()
        return
    started: Future[None] = Future()

    def body() -> None:
        try:
            start()
        except BaseException as error:
            started.set_exception(error)
        else:
            started.set_result(None)
            over.wait()

    try:
        OwnThread(body, "orion-ray").start()
    except RuntimeError as error:
        hint = "end other threads, or raise the system's limit (`ulimit -u`)"
        raise ArgumentError(describe("Ray needs a thread that starts it", why=str(error), hint=hint)) from error
    started.result()
