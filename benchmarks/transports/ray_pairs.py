"""Ray: actor calls between two nodes, objects, compiled graphs. The nodes are two on this machine."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.cluster_utils import Cluster

from benchmarks.transports.pair import (
    Bytes,
    answer,
    answer_overwriting,
    drive,
    drive_overwriting,
    read,
    timed_rounds,
    write,
)
from orion.runtime.ray.actor import DELIVER, delivery_method
from orion.runtime.ray.orders import Delivery, Piece
from orion.runtime.ray.regions import Region

STORE_BYTES = 3 * 1024**3
WHOLE = Region("payload")


def _raylets() -> tuple[int, ...]:
    """The processes started by this one that move objects for Ray."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return tuple(int(child) for child in children if Path(f"/proc/{child}/comm").read_text().strip() == "raylet")


class _RayPair:
    """What the pairs have in common: a cluster with a CPU on each of so many nodes."""

    def __init__(self, nodes: int) -> None:
        args = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
        self._cluster = Cluster(initialize_head=True, head_node_args=args)
        for _ in range(nodes - 1):
            self._cluster.add_node(**args)
        ray.init(address=self._cluster.address, log_to_driver=False, logging_level="ERROR")
        self.others = _raylets()

    def close(self) -> None:
        """End the cluster."""
        ray.shutdown()
        self._cluster.shutdown()


# ---------------------------------------------------------------- actor calls


class _CallSide:
    """An actor that sends payloads to another one as Orion's actors on different nodes do: as the argument of a call,
    which copies it to where it belongs."""

    def connect(self, other: Any) -> int:
        """Send to that actor. Returns the process."""
        self._deliver, self._there = delivery_method(other), threading.Semaphore(0)
        return os.getpid()

    def prepare(self, size: int) -> None:
        """Be ready for payloads of a size."""
        self.buffer, self._got = np.zeros(size, np.uint8), np.zeros(size, np.uint8)

    def deliver(self, delivery: Delivery) -> None:
        """Take a payload."""
        for piece in delivery.pieces:
            piece.region.of(self._got)[...] = piece.data
        self._there.release()

    def send(self) -> None:
        """Send the buffer."""
        self._deliver.remote(Delivery(1, 0, 0, (), (Piece(WHOLE, self.buffer),), ()))

    def receive(self) -> Bytes:
        """Wait for a payload."""
        self._there.acquire()
        return self._got

    def close(self) -> None:
        """There is nothing to let go of."""

    def drive(self, count: int, touched: bool) -> list[float]:
        """The left one's rounds."""
        return drive(self, count, touched)

    def answer(self, count: int, touched: bool) -> None:
        """The right one's rounds."""
        answer(self, count, touched)

    def drive_overwriting(self, count: int) -> int:
        """The left one's messages that were torn."""
        return drive_overwriting(self, count)

    def answer_overwriting(self, count: int) -> int:
        """The right one's."""
        return answer_overwriting(self, count)


class CallPair(_RayPair):
    """Actor calls with an array between two nodes."""

    def __init__(self) -> None:
        super().__init__(2)
        kind = ray.remote(num_cpus=1, concurrency_groups={DELIVER: 1})(_CallSide)
        self._sides = [kind.remote(), kind.remote()]
        left, right = self._sides
        found = ray.get([left.connect.remote(right), right.connect.remote(left)])
        self.sides = found[0], found[1]

    def prepare(self, size: int) -> None:
        """New buffers."""
        ray.get([side.prepare.remote(size) for side in self._sides])

    def rounds(self, count: int, touched: bool) -> list[float]:
        """The seconds of each round."""
        left, right = self._sides
        taken, _ = ray.get([left.drive.remote(count, touched), right.answer.remote(count, touched)])
        return list(taken)

    def torn(self, messages: int) -> int:
        """How many of so many messages, half of them in each direction, were not received as they were sent."""
        left, right = self._sides
        half = messages // 2
        return sum(ray.get([left.drive_overwriting.remote(half), right.answer_overwriting.remote(half)]))


# ---------------------------------------------------------------- objects and compiled graphs


class _Answering:
    """The right one of the pairs in which this process is the left one."""

    def process(self) -> int:
        """Its number."""
        return os.getpid()

    def swap(self, given: list[Any], touched: bool) -> list[Any]:
        """Get an object, put another."""
        found = ray.get(given[0])
        return [ray.put(self._answer(found, touched))]

    def pass_on(self, found: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Answer to a payload that is not looked at."""
        return self._answer(found, False)

    def touch_and_pass_on(self, found: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Answer to one that is read, with one that is written."""
        return self._answer(found, True)

    def _answer(self, found: NDArray[np.uint8], touched: bool) -> NDArray[np.uint8]:
        if getattr(self, "_buffer", None) is None or self._buffer.size != found.size:
            self._buffer = np.zeros(found.size, np.uint8)
        if touched:
            read(found)
            write(self._buffer, 1)
        return self._buffer


class ObjectPair(_RayPair):
    """Objects that one process puts into the node's store and another one gets from there."""

    def __init__(self) -> None:
        super().__init__(1)
        self._right = ray.remote(num_cpus=1)(_Answering).remote()
        self.sides = os.getpid(), ray.get(self._right.process.remote())

    def prepare(self, size: int) -> None:
        """A new buffer."""
        self._buffer = np.zeros(size, np.uint8)

    def rounds(self, count: int, touched: bool) -> list[float]:
        """The seconds of each round."""

        def there_and_back() -> Bytes:
            found: Bytes = ray.get(self._swapped(ray.put(self._buffer), touched))
            return found

        return timed_rounds(lambda: self._buffer, there_and_back, count, touched)

    def _swapped(self, reference: Any, touched: bool) -> Any:
        return ray.get(self._right.swap.remote([reference], touched))[0]


class GraphPair(_RayPair):
    """A compiled graph of one method of an actor."""

    def __init__(self) -> None:
        super().__init__(1)
        self._right = ray.remote(num_cpus=1)(_Answering).remote()
        self.sides = os.getpid(), ray.get(self._right.process.remote())
        self._graphs: dict[bool, Any] = {}

    def prepare(self, size: int) -> None:
        """Compile graphs whose channels have room for the payload."""
        self._buffer = np.zeros(size, np.uint8)
        self._end_graph()
        self._size = size

    def rounds(self, count: int, touched: bool) -> list[float]:
        """The seconds of each round."""
        graph = self._graph(touched)

        def there_and_back() -> Bytes:
            found: Bytes = ray.get(graph.execute(self._buffer))
            return found

        return timed_rounds(lambda: self._buffer, there_and_back, count, touched)

    def close(self) -> None:
        """End the graph and the cluster."""
        self._end_graph()
        super().close()

    def _graph(self, touched: bool) -> Any:
        """One graph at a time: an actor that has one cannot be in another."""
        from ray.dag import InputNode

        if touched not in self._graphs:
            self._end_graph()
            method = self._right.touch_and_pass_on if touched else self._right.pass_on
            with InputNode() as given:
                node = method.bind(given)
            self._graphs[touched] = node.experimental_compile(_buffer_size_bytes=self._size + (1 << 16))
        return self._graphs[touched]

    def _end_graph(self) -> None:
        for graph in self._graphs.values():
            graph.teardown()
        self._graphs.clear()
