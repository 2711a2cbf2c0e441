"""What is made of the times of a call: messages under way, clocks of other machines, calls at the same time."""

import numpy as np

from orion.runtime.profile.collector import Collector, of_call
from orion.runtime.profile.recorder import on_drivers_clock
from orion.runtime.profile.records import CallRecord, LoopLabel, Message, Part, TileTimes, Wait, WorkerRecord
from orion.runtime.profile.under_way import under_way
from orion.source import Span

LABEL = LoopLabel(
    "f", Span("train.py", 3, 4, 3, 9), "for i in range(n)", "", 0, "2d", 2, 4, has_waits=True, takes_tiles=False,
    is_compiled=False, bytes=80,
)  # fmt: skip


def worker(number, *, node="", start=100, end=200, compute=60, waits=(), sent=(), arrived=(), sends=0):
    waited = sum(wait.end - wait.start for wait in waits)
    part = Part(0, 0, start, end, 2, compute, compute, waited, sends)
    total = Part(0, 1, 0, end - start, 2, compute, compute, waited, sends)
    tiles = TileTimes(0, 1, np.array([0, 1]), np.array([5, 5]), np.array([30, 30]), np.array([30, 30]))
    return WorkerRecord(
        number, node, start, end, (total,), (tiles,), (part,), tuple(waits), waited, sends, len(sent),
        sum(one.bytes for one in sent), 0, tuple(sent), tuple(arrived),
    )  # fmt: skip


def call(*workers, start=0, end=300, **others):
    times = {"copying": 0, "copied": 0, **others}
    return CallRecord(
        "f", 1, start, start + 10, start + 20, end, loops=(LABEL,), workers=workers, is_planned=True, **times
    )


def test_waiting_while_a_message_is_under_way_is_the_links():
    sender = worker(0, node="a", sent=[Message(120, 0, "b", 0, 800)], sends=5)
    waits = [Wait(0, 110, 150), Wait(0, 160, 170)]
    receiver = worker(1, node="b", waits=waits, arrived=[Message(140, 0, "b", 0, 800)])
    record = call(sender, receiver)
    assert under_way(record, receiver) == 20
    assert under_way(record, sender) == 0
    loop = of_call(record).loops[LABEL]
    assert (loop.workers[1].wait, loop.workers[1].transfer) == (30, 20)
    assert loop.workers[0].transfer == 5
    assert of_call(record).sums.sent == 800


def test_whoever_is_through_first_waits_for_the_last():
    found = of_call(call(worker(0, end=160), worker(1)))
    assert found.workers[0].wait == 40
    assert found.loops[LABEL].workers[0].wait == 40
    assert found.loops[LABEL].workers[1].wait == 0
    assert found.sums.running == 100
    assert found.sums.planning + found.sums.queueing + found.sums.preparing + found.sums.running == 300


def test_times_of_another_machine_lie_where_the_driver_knows_that_it_ran():
    far = worker(1, waits=[Wait(0, 110, 150)], sent=[Message(120, 1, "a", 0, 8)])
    ten_minutes = 600_000_000_000
    found = on_drivers_clock(far, (100, ten_minutes), (1000, 1200))
    assert 1000 <= found.start <= found.end <= 1200
    assert found.end - found.start == 100
    assert found.waits[0].start - found.start == 10
    assert found.sent[0].time - found.start == 20
    assert found.parts[0].start == found.start


def test_calls_of_several_threads_at_once_are_inside_once():
    collected = Collector()
    collected.start = 50
    for start, end in ((0, 300), (100, 400), (600, 700)):
        collected.keep(call(worker(0, start=start + 95, end=end - 60), start=start, end=end))
    collected.end = 1000
    collected.keep(call(worker(0, start=1095, end=1140), start=1000, end=1200))  # it ends when the profile is over
    assert collected.inside() == 350 + 100
    assert collected.wall() == 950
    assert collected.sums.calls == 3
