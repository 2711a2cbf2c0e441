"""The bottleneck of a profile is told from numbers alone: a table of made-up ones."""

from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.inspect.profiles.bottleneck import Kind, bottleneck_of
from orion.inspect.profiles.numbers import LoopNumbers, Numbers, Rate, WorkerNumbers
from orion.runtime.profile.records import LoopLabel
from orion.source import Span

MS = 1_000_000
LABEL = LoopLabel(
    "f", Span("train.py", 3, 4, 3, 9), "for i in range(n)", "", 0, "2d", 2, 64, has_waits=True, takes_tiles=False,
    is_compiled=False, bytes=8 * MS,
)  # fmt: skip
SINGLE = replace(LABEL, workers=1, has_waits=False)
APART = replace(LABEL, strategy="independent", has_waits=False)
COMPILED = replace(APART, is_compiled=True)


def worker(number, compute=90, wait=2, transfer=0, other=1, tiles=32, cpu=None):
    """A worker's times in milliseconds."""
    used = compute if cpu is None else cpu
    return WorkerNumbers(number, tiles, *(int(time * MS) for time in (compute, used, wait, transfer, other)))


def rates(*middles, spread=1.05):
    return tuple(Rate(number, middle / spread, middle, middle * spread) for number, middle in enumerate(middles))


def loop(*workers, label=LABEL, rounds=10, **others):
    return LoopNumbers(label, 10, rounds, workers, **others)


def numbers(*workers, wall=100, loops=None, **others):
    """The numbers of a profile whose workers spent all their time in one loop."""
    found = (loop(*workers),) if loops is None else loops
    times = {name: int(value * MS) for name, value in others.items()}
    return Numbers(wall=wall * MS, calls=10, workers=workers, loops=found, **times)


def in_loop(*workers, label=LABEL, wall=100, **others):
    return numbers(*workers, wall=wall, loops=(loop(*workers, label=label, **others),))


EVEN = worker(0), worker(1)
IDLE = worker(0, compute=50, wait=42), worker(1, compute=92)

CASES = {
    "even": (Kind.NONE, in_loop(*EVEN)),
    "nothing ran": (Kind.NONE, Numbers(wall=100 * MS)),
    "the driver copies": (Kind.LINK, numbers(worker(0, 20), worker(1, 20), copying=60, copied=100)),
    "nodes send": (Kind.LINK, numbers(worker(0, 40, 5, 50), worker(1, 40, 5, 50), sent=1000)),
    "less is sent than computed": (Kind.NONE, in_loop(worker(0, 80, 3, 12), worker(1, 80, 3, 12))),
    "between calls": (Kind.DRIVER, numbers(worker(0, 20), worker(1, 20), outside=75)),
    "plans": (Kind.DRIVER, numbers(worker(0, 20), worker(1, 20), planning=60)),
    "prepares": (Kind.DRIVER, numbers(worker(0, 20), worker(1, 20), preparing=60)),
    "half of it plans, and copies more": (Kind.LINK, numbers(worker(0, 5), worker(1, 5), planning=30, copying=60)),
    "one of two workers has no core": (Kind.WORKER, in_loop(worker(0, 50, 45), worker(1, 95, 0, cpu=50))),
    "none has a core": (Kind.WORKER, in_loop(worker(0, cpu=45), worker(1, cpu=46))),
    "none has a core, but they wait longer": (
        Kind.UNEVEN, in_loop(worker(0, 30, 60, cpu=20), worker(1, 90, 0, cpu=60), rates=rates(1.0, 1.0))
    ),
    "one takes twice as long in all tiles": (Kind.WORKER, in_loop(*IDLE, rates=rates(1.0, 2.0), uneven=2.0)),
    "a few long tiles": (Kind.UNEVEN, in_loop(*IDLE, rates=rates(1.0, 1.2, spread=2.0), uneven=3.0)),
    "a triangle": (Kind.UNEVEN, in_loop(*IDLE, rates=rates(1.0, 3.0, spread=1.6), uneven=1.9)),
    "one has more tiles": (Kind.UNEVEN, in_loop(*IDLE, rates=rates(1.0, 1.0))),
    "short tiles": (
        Kind.SMALL, in_loop(worker(0, 10, 60, 0, 25, 9000), worker(1, 10, 60, 0, 25, 9000), rates=rates(1.0, 1.0))
    ),
    "short rounds": (
        Kind.SMALL,
        in_loop(worker(0, 5, 50, 0, 40, 4000), worker(1, 5, 50, 0, 40, 4000), label=APART, rounds=1000),
    ),
    "short compiled rounds": (
        Kind.SMALL,
        in_loop(worker(0, 5, 50, 0, 40), worker(1, 5, 50, 0, 40), label=COMPILED, rounds=1000),
    ),
    "compiled rounds that a profile cannot see into": (
        Kind.NONE,
        in_loop(worker(0, 20, 40, 0, 30), worker(1, 20, 40, 0, 30), label=COMPILED, rounds=1000),
    ),
    "short tiles, but nobody waits": (
        Kind.NONE, in_loop(worker(0, 90, 1, 0, 5, 90_000), worker(1, 90, 1, 0, 5, 90_000))
    ),
    "even tiles that wait": (
        Kind.ORDER, in_loop(worker(0, 75, 20), worker(1, 75, 20), rates=rates(1.0, 1.0), uneven=1.1)
    ),
    "even tiles that wait for none": (
        Kind.NONE,
        in_loop(worker(0, 75, 20), worker(1, 75, 20), label=APART, rates=rates(1.0, 1.0), uneven=1.1),
    ),
    "beside others it takes longer": (
        Kind.MEMORY, in_loop(*EVEN, label=replace(APART, bytes=800 * MS), alone=MS, together=2 * MS)
    ),
    "the same, with little data": (Kind.NONE, in_loop(*EVEN, label=APART, alone=MS, together=2 * MS)),
    "beside others it takes as long": (
        Kind.NONE, in_loop(*EVEN, label=replace(APART, bytes=800 * MS), alone=MS, together=MS)
    ),
    "a serial loop of two workers": (Kind.SERIAL, in_loop(worker(0), worker(1, 0, 90, tiles=0), label=SINGLE)),
    "one worker, and short rounds": (
        Kind.SMALL, in_loop(worker(0, 3, 0, 0, 40, 48_000), label=replace(APART, workers=1), rounds=3000)
    ),
    "one worker, and a busy driver": (Kind.DRIVER, in_loop(worker(0, 30, 0, 0, 30), label=SINGLE)),
    "one worker": (Kind.SERIAL, in_loop(worker(0), label=SINGLE)),
    "as it is": (
        Kind.SERIAL, replace(numbers(wall=100, unplanned=80, loops=()), functions=(("f", 80 * MS),))
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_bottleneck_of_made_up_numbers(case):
    kind, given = CASES[case]
    found = bottleneck_of(given)
    assert found.kind == kind, found.sentence


@pytest.mark.parametrize("case", CASES)
def test_it_is_told_in_one_sentence_with_its_numbers(case):
    kind, given = CASES[case]
    sentence = bottleneck_of(given).sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert ". " not in sentence
    assert kind is Kind.NONE or any(character.isdigit() for character in sentence)


def test_the_costliest_loop_is_the_one_that_is_told_of():
    small = loop(worker(0, 5), worker(1, 5), label=replace(LABEL, function="small"))
    large = loop(*IDLE, label=replace(LABEL, function="large"), rates=rates(1.0, 1.0, spread=2.0), uneven=3.0)
    found = bottleneck_of(numbers(*IDLE, loops=(small, large)))
    assert found.loop is not None
    assert found.loop.function == "large"
    assert "`large` (train.py:3)" in found.sentence


def test_memory_is_not_blamed_without_a_sample():
    assert "is not known" in bottleneck_of(in_loop(*EVEN)).sentence


# ---------------------------------------------------------------- what it advises


def rows(a, out):
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(i):
            total += np.sin(a[j] * a[i])
        out[i] = total


def copies(a, out):
    for i in range(a.shape[0]):
        out[int(a[i])] += 1.0


def running(a, out):
    for i in range(1, a.shape[0]):
        a[i] = a[i - 1] * a[i - 1] + 1.0
    total = 1.0
    for i in range(1, a.shape[0]):
        total = total * total * a[i] + 1.0
        out[i] = total


def label_of(function, at=0):
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(function).plan(np.ones(90), np.ones(90))
    loop = plan.loops[at]
    return replace(APART, plan=loop, workers=loop.runs_on)


@pytest.mark.parametrize(
    ("label", "advised"),
    [
        (lambda: label_of(rows), '; with `schedule="dynamic"` free workers take tiles that'),
        (lambda: label_of(copies), "waited 23 % of the time."),
        (lambda: replace(label_of(rows), has_waits=True), "; tiles wait for those that must come first"),
        (lambda: replace(label_of(rows), takes_tiles=True), "waited 23 % of the time."),
        (lambda: APART, "waited 23 % of the time."),
    ],
    ids=["rows of their own", "copies of an array", "in order", "dynamic", "unknown"],
)
def test_what_is_advised_keeps_what_the_program_does(label, advised):
    sentence = bottleneck_of(in_loop(*IDLE, label=label(), rates=rates(1.0, 3.0, spread=1.6), uneven=1.9)).sentence
    assert advised in sentence
    assert ("dynamic" in sentence) == ("dynamic" in advised)
    assert "order of rows" not in sentence


def test_tiles_that_wait_for_none_are_not_said_to_wait_for_tiles():
    sentence = bottleneck_of(CASES["even tiles that wait for none"][1]).sentence
    assert "must come first" not in sentence
    assert "wait for none; workers waited 21 % of the time for the last one to be through, worker 0" in sentence


@pytest.mark.parametrize(
    ("at", "why"),
    [(0, "[ORN101]"), (1, "[ORN104]")],
    ids=["a dependence", "a scalar"],
)
def test_it_is_said_why_one_worker_runs_a_loop(at, why):
    label = replace(label_of(running, at), workers=1)
    sentence = bottleneck_of(in_loop(worker(0), worker(1, 0, 90, tiles=0), label=label)).sentence
    assert ", because " in sentence
    assert sentence.endswith(f"{why}.")
    assert "explain" not in sentence
