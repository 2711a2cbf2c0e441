"""The transports by name, with what each copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.transports.pair import Pair, PlainPair


def _segment() -> Pair:
    from benchmarks.transports.plain import SegmentSide

    return PlainPair(SegmentSide)


def _reading() -> Pair:
    from benchmarks.transports.plain import ReadingSide

    return PlainPair(ReadingSide)


def _socket() -> Pair:
    from benchmarks.transports.plain import SocketSide

    return PlainPair(SocketSide)


def _link() -> Pair:
    from benchmarks.transports.links import LinkSide

    return PlainPair(LinkSide)


def _grpc() -> Pair:
    from benchmarks.transports.grpc_pair import GrpcPair

    return GrpcPair()


def _call() -> Pair:
    from benchmarks.transports.ray_pairs import CallPair

    return CallPair()


def _objects() -> Pair:
    from benchmarks.transports.ray_pairs import ObjectPair

    return ObjectPair()


def _graph() -> Pair:
    from benchmarks.transports.ray_pairs import GraphPair

    return GraphPair()


@dataclass(frozen=True)
class Contender:
    """`label` says who uses it for what. `copies` are those of a payload of a megabyte or more on its way, by what the
    interfaces do; `network` how often it goes through the network stack. `is_of_runtime`: Orion's runtime uses it, and
    no message may be torn."""

    name: str
    label: str
    make: Callable[[], Pair]
    copies: str
    by_what: str
    network: int
    is_of_runtime: bool


CONTENDERS = (
    Contender(
        "segment",
        "Orion on one node: shared segment and flags",
        _segment,
        "0",
        "the reader has the writer's pages mapped",
        0,
        True,
    ),
    Contender(
        "link",
        "Orion between nodes: connections of workers",
        _link,
        "2",
        "as a socket: from the array into the socket's buffers, and from there into the array; nothing is pickled",
        1,
        True,
    ),
    Contender(
        "call",
        "Orion between nodes without connections: calls of Ray",
        _call,
        "6 or more",
        "into the store; by raylets to a message, the socket's buffers, from there, to the store; into place",
        1,
        True,
    ),
    Contender(
        "readv",
        "`process_vm_readv` and flags",
        _reading,
        "1",
        "the system copies from the pages of one process into those of the other",
        0,
        False,
    ),
    Contender("socket", "TCP socket", _socket, "2", "into the socket's buffers, and from there", 1, False),
    Contender(
        "grpc",
        "gRPC, `bytes`",
        _grpc,
        "5",
        "array to `bytes`, to a slice, into the socket's buffers, to slices, to `bytes`",
        1,
        False,
    ),
    Contender("objects", "Ray objects", _objects, "1", "array into the store; the reader maps it", 0, False),
    Contender(
        "graph", "Ray compiled graphs", _graph, "1", "array into the channel's memory; the reader maps it", 0, False
    ),
)
BY_NAME = {one.name: one for one in CONTENDERS}
