"""What a worker of a run sends to workers on other nodes, and by which way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from time import perf_counter_ns

from orion.runtime.profile.recorder import Recorder
from orion.runtime.ray.orders import CopiedParts, Delivery, Flag, Piece, Results

Way = Callable[[Delivery], object]
"""Sends a delivery to one node."""


class Posts:
    """The messages of worker `sender` in a run, numbered for each node from 0. Where times are taken they are told."""

    def __init__(self, run: int, sender: int, ways: Mapping[str, Way], recorder: Recorder | None) -> None:
        self._run, self._sender, self._ways, self._recorder = run, sender, ways, recorder
        self._sent: Counter[str] = Counter()

    def __call__(
        self, node: str, flags: tuple[Flag, ...], pieces: tuple[Piece, ...], results: tuple[Results | CopiedParts, ...]
    ) -> None:
        """Send flags, pieces of arrays and results to a node."""
        start, number = perf_counter_ns(), self._sent[node]
        delivery = Delivery(self._run, self._sender, number, flags, pieces, results)
        self._ways[node](delivery)
        self._sent[node] += 1
        if self._recorder is not None:
            self._recorder.send(node, number, size_of(delivery), start)


def size_of(delivery: Delivery) -> int:
    """The bytes of arrays, copies and results in a delivery."""
    pieces = sum(piece.data.nbytes for piece in delivery.pieces)
    return pieces + sum(found.values.nbytes for found in delivery.results)
