"""A profile as plain data, for tools: dicts, lists, strings and numbers. Times are seconds."""

from __future__ import annotations

from typing import Any

from orion.inspect.profiles.bottleneck import Bottleneck
from orion.inspect.profiles.numbers import LoopNumbers, Numbers, WorkerNumbers

DRIVER = ("outside", "own", "planning", "queueing", "preparing", "copying", "running", "unplanned")
WORKER = ("compute", "cpu", "wait", "transfer", "other")


def profile_to_dict(numbers: Numbers, bottleneck: Bottleneck) -> dict[str, Any]:
    """The numbers of a profile, with its bottleneck."""
    return {
        "seconds": numbers.wall / 1e9,
        "calls": numbers.calls,
        "failed": numbers.failed,
        "driver": {name: getattr(numbers, name) / 1e9 for name in DRIVER},
        "bytes_copied": numbers.copied,
        "bytes_between_nodes": numbers.sent,
        "messages": numbers.messages,
        "workers": [_worker(one) for one in numbers.workers],
        "loops": [_loop(one) for one in numbers.loops],
        "as_it_is": {name: time / 1e9 for name, time in numbers.functions},
        "bottleneck": {"kind": str(bottleneck.kind), "sentence": bottleneck.sentence},
    }


def _loop(loop: LoopNumbers) -> dict[str, Any]:
    label = loop.label
    return {
        "function": label.function,
        "file": label.span.file,
        "line": label.span.line,
        "code": label.code,
        "part": label.part,
        "strategy": label.strategy,
        "tiles": label.tiles,
        "rounds": loop.rounds,
        "bytes_touched": label.bytes,
        "longest_to_middle_tile": loop.uneven,
        "tile_alone": loop.alone / 1e9 or None,
        "tile_beside_others": loop.together / 1e9 or None,
        "workers": [_worker(one) for one in loop.workers],
    }


def _worker(one: WorkerNumbers) -> dict[str, Any]:
    times = {name: getattr(one, name) / 1e9 for name in WORKER}
    return {"worker": one.worker, "tiles": one.tiles, **times}
