"""A profile as a trace that Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from orion.inspect.profiles.loops import name_of
from orion.runtime.profile.records import BARRIER, CallRecord, WorkerRecord

PROCESS = 1
DRIVER, OTHER_THREADS = 0, 1_000_000
"""The track of the driver; worker w has track w + 1. Where several threads call loops each has a track, the second one
and those after it from the larger number on."""

Event = dict[str, Any]


def trace_of(calls: Sequence[CallRecord], start: int) -> dict[str, Any]:
    """The trace of some calls, with times from `start` on: one track for the driver, and one for each worker."""
    threads = {thread: number for number, thread in enumerate(dict.fromkeys(call.thread for call in calls))}
    tracks = {thread: OTHER_THREADS + number if number else DRIVER for thread, number in threads.items()}
    workers = sorted({worker.worker: worker.node for call in calls for worker in call.workers}.items())
    events = [_named("process_name", DRIVER, "orion"), _named("thread_name", DRIVER, "driver")]
    events += (_named("thread_name", number + 1, _worker_name(number, node)) for number, node in workers)
    events += (
        _named("thread_name", track, f"driver, thread {track - OTHER_THREADS + 1}")
        for track in tracks.values()
        if track
    )
    for call in calls:
        events += _of_call(call, tracks[call.thread], start)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _worker_name(number: int, node: str) -> str:
    return f"worker {number}{f' on node {node[:8]}' if node else ''}"


def _named(kind: str, track: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": PROCESS, "tid": track, "args": {"name": name}}


def _slice(name: str, kind: str, track: int, span: tuple[int, int], **told: Any) -> Event:
    """A slice of a track; times are microseconds."""
    start, end = span
    found = {"name": name, "cat": kind, "ph": "X", "pid": PROCESS, "tid": track, "ts": start / 1e3}
    return {**found, "dur": max(0, end - start) / 1e3, "args": told}


def _of_call(call: CallRecord, track: int, zero: int) -> Iterator[Event]:
    def between(first: int, last: int) -> tuple[int, int]:
        return first - zero, last - zero

    told = {"error": call.error} if call.error else {}
    yield _slice(call.function, "call", track, between(call.start, call.end), thread=call.thread, **told)
    if not call.is_planned:
        return
    yield _slice("planning", "planning", track, between(call.start, call.planned))
    if call.entered > call.planned:
        yield _slice("another call's turn", "queue", track, between(call.planned, call.entered))
    copied = {"copied bytes": call.copied} if call.copied else {}
    yield _slice("preparation", "preparation", track, between(call.entered, call.begun), **copied)
    yield _slice("workers run", "run", track, between(call.begun, call.ended))
    for worker in call.workers:
        yield from _of_worker(call, worker, zero)


def _of_worker(call: CallRecord, worker: WorkerRecord, zero: int) -> Iterator[Event]:
    track = worker.worker + 1
    for part in worker.parts:
        told = {
            "round": part.round,
            "tiles": part.tiles,
            "compute µs": part.compute / 1e3,
            "wait µs": part.wait / 1e3,
            "core µs": part.cpu / 1e3,
        }
        yield _slice(name_of(call.loops[part.loop]), "loop", track, (part.start - zero, part.end - zero), **told)
    for wait in worker.waits:
        name = "wait for all" if wait.loop == BARRIER else "wait for tiles"
        yield _slice(name, "wait", track, (wait.start - zero, wait.end - zero))
    if worker.parts and call.ended > worker.end:
        yield _slice("wait for the end", "wait", track, (worker.end - zero, call.ended - zero))
    for message in worker.sent:
        sent: Event = {"to node": message.node, "bytes": message.bytes}
        yield {
            "name": "send", "cat": "send", "ph": "i", "s": "t", "pid": PROCESS, "tid": track,
            "ts": (message.time - zero) / 1e3, "args": sent,
        }  # fmt: skip
