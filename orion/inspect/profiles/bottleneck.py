"""Bottleneck of a profiled program: one answer, from measured numbers alone."""

from __future__ import annotations

from enum import StrEnum

from orion.cost.worth import STARTED_NS, SYNC_NS
from orion.dataclass import dataclass
from orion.inspect.profiles.loops import is_better_dynamic, loop_in_words, why_on_one_worker
from orion.inspect.profiles.numbers import LoopNumbers, Numbers, Rate
from orion.inspect.text.words import bytes_in_words, counted, time_in_words
from orion.runtime.profile.records import LoopLabel

LINK, DRIVER, SERIAL = 0.3, 0.5, 0.5
"""The least parts of the time that must go into moving data, into the driver, or into functions that run as they are,
for that to be the bottleneck."""

WAITING = 0.12
"""The part of a loop's time that its workers may wait before anything is said of it."""

SLOW, STARVED = 1.35, 0.75
"""A worker is slow that takes so many times as long per iteration as the others, or gets less of a core."""

JUDGED_NS, SAMPLED_NS = 50_000, 20_000
"""Of shorter tiles it is not said whether they had a core, and whether they take longer beside others: the clock of a
thread is not exact enough."""

STEADY = 1.25
"""How far the slowest tiles of a worker may be from its fastest ones for the worker to be to blame, not its tiles."""

UNEVEN = 1.4
"""How many times as long as those in the middle the longest tiles take, at least, that are called uneven."""

IDLE, SMALL = 0.3, 4.0
"""Tiles are too small where workers do not compute for this part of the time, and what they compute in a round takes
less than so many times what beginning and waiting cost."""

FLAG_NS = 1_000
"""What waiting for a tile of another core takes when that is done already: 0.2 to 1 µs."""

SHARED, BYTES_PER_NS = 1.3, 5.0
"""A tile that takes so many times as long beside others lacks what they share: memory where all together move so many
bytes per nanosecond, at least, as cores that compute seldom do."""


NOTHING = (
    "No loop of this session ran while the profile was on: `with orion.session(…)` and `orion.init(…)` come before "
    "`with orion.profile()`."
)


class Kind(StrEnum):
    """Kind of a bottleneck."""

    LINK = "slow link"
    WORKER = "slow worker"
    UNEVEN = "uneven tiles"
    SMALL = "too small tiles"
    MEMORY = "memory bandwidth"
    DRIVER = "driver"
    SERIAL = "one worker"
    ORDER = "order of tiles"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Bottleneck of a profile: its `kind`, its `loop` (None where it is in none), and a `sentence` with the numbers and
    what to do."""

    kind: Kind
    loop: LoopLabel | None
    sentence: str


def bottleneck_of(numbers: Numbers) -> Bottleneck:
    """The bottleneck that these numbers tell of."""
    if not numbers.calls:
        return Bottleneck(Kind.NONE, None, NOTHING)
    wall = max(1, numbers.wall)
    driver = numbers.outside + numbers.planning + numbers.preparing
    moving = numbers.copying + _mean([one.transfer for one in numbers.workers])
    waiting = _mean([one.wait for one in numbers.workers])
    if moving >= LINK * wall and moving > max(driver, waiting):
        return _link(numbers, moving / wall)
    if driver >= DRIVER * wall:
        return _driver(numbers)
    if numbers.unplanned >= SERIAL * wall:
        return _unplanned(numbers)
    return _of_loop(numbers)


# ---------------------------------------------------------------- outside of tiles


def _link(numbers: Numbers, share: float) -> Bottleneck:
    size = numbers.copied + numbers.sent
    seconds = (numbers.copying + _mean([one.transfer for one in numbers.workers])) / 1e9
    rate = bytes_in_words(int(size / seconds)) if seconds else "unknown"
    where, todo = "between the driver and the workers", "make arrays that are used again Orion's, `orion.array(a)`"
    if numbers.sent > numbers.copied:
        where, todo = (
            "between nodes",
            "use fewer nodes, or do more with what is moved (`print(f.plan(…))` says what that is)",
        )
    return Bottleneck(
        Kind.LINK,
        None,
        f"The link is the bottleneck: {_percent(share)} of the time goes into moving {bytes_in_words(size)} {where} "
        f"({rate}/s); {todo}, or use narrower dtypes.",
    )


def _driver(numbers: Numbers) -> Bottleneck:
    outside = (
        numbers.outside,
        "in the program between calls",
        "give the loops more to do per call, or put them into one function",
    )
    planning = numbers.planning, "planning", "call with the same types and sizes again: plans and kernels are kept"
    preparing = (
        numbers.preparing,
        "compiling, preparing arguments and starting workers",
        "call with the same arrays again, or give the loops more to do per call",
    )
    wall = max(1, numbers.wall)
    time, what, todo = max(outside, planning, preparing)
    share = (numbers.outside + numbers.planning + numbers.preparing) / wall
    return Bottleneck(
        Kind.DRIVER,
        None,
        f"The driver is the bottleneck: {_percent(share)} of the time is outside of the workers, most of it "
        f"({time_in_words(time)} of {time_in_words(wall)}, {_each(time, numbers.calls)}) {what}; {todo}.",
    )


def _unplanned(numbers: Numbers) -> Bottleneck:
    name, time = max(numbers.functions, key=lambda one: one[1])
    return Bottleneck(
        Kind.SERIAL,
        None,
        f"One worker is the bottleneck: `{name}` runs as it is, without a plan, for {_percent(time / numbers.wall)} of "
        f"the time; `{name}.explain(…)` says what stands in the way.",
    )


# ---------------------------------------------------------------- in the costliest loop


def _of_loop(numbers: Numbers) -> Bottleneck:
    if not numbers.loops:
        return Bottleneck(Kind.NONE, None, "No loop had anything to run.")
    loop = max(numbers.loops, key=lambda one: max(worker.total for worker in one.workers))
    working = [one for one in loop.workers if one.tiles]
    if loop.label.workers == 1 or len(working) < 2:
        return _one_worker(numbers, loop)
    total = max(1, loop.total)
    idle = sum(one.wait + one.other for one in loop.workers) / total
    waits = sum(one.wait for one in loop.workers) / total
    starved = _starved(loop, waits)
    if starved is not None:
        return starved
    if loop.label.is_compiled and _per_round(loop) < STARTED_NS:
        return _small(loop) if _per_round(loop) < SMALL * _overhead(loop) else _too_short(loop)
    if idle >= IDLE and _per_round(loop) < SMALL * _overhead(loop):
        return _small(loop)
    if waits >= WAITING:
        return _slow(loop, waits) or _uneven(loop, waits) or _order(loop, waits)
    if loop.alone >= SAMPLED_NS and loop.together >= SHARED * loop.alone:
        return _shared(numbers, loop)
    return _nothing(numbers, loop)


def _one_worker(numbers: Numbers, loop: LoopNumbers) -> Bottleneck:
    share = loop.compute / max(1, numbers.wall)
    if share < SERIAL:
        return _small(loop) if _per_round(loop) < SMALL * _overhead(loop) else _driver(numbers)
    return Bottleneck(
        Kind.SERIAL,
        loop.label,
        f"One worker is the bottleneck: {_where(loop)} runs on one for {_percent(share)} of the time"
        f"{why_on_one_worker(loop.label)}.",
    )


def _starved(loop: LoopNumbers, waits: float) -> Bottleneck | None:
    """Workers that did not have a core while they computed."""
    got = {one.worker: one.cpu / one.compute for one in loop.workers if one.compute and one.tiles}
    slow = {worker: part for worker, part in got.items() if part < STARVED}
    if not slow or loop.label.takes_tiles or loop.tile_ns < JUDGED_NS:
        return None
    if len(slow) == len(got):
        if sum(one.compute - one.cpu for one in loop.workers) < sum(one.wait for one in loop.workers):
            return None
        least, most = min(got.values()), max(got.values())
        parts = _percent(least) if round(least, 2) == round(most, 2) else f"{_percent(least)} to {_percent(most)}"
        return Bottleneck(
            Kind.WORKER,
            loop.label,
            f"Slow workers are the bottleneck: all {len(got)} had a core for only {parts} of the time that they were "
            f"in tiles of {_where(loop)}; look what else runs on the machine, or use fewer workers, "
            "`orion.scale(workers=…)`.",
        )
    if waits < WAITING and loop.label.workers > 2 * len(slow):
        return None
    worker, part = min(slow.items(), key=lambda one: one[1])
    return Bottleneck(
        Kind.WORKER,
        loop.label,
        f"A slow worker is the bottleneck: worker {worker} had a core for only {_percent(part)} of the time that it "
        f"was in tiles of {_where(loop)}, the others for {_percent(min(p for w, p in got.items() if w not in slow))} "
        f"at least, and workers waited {_percent(waits)} of the time; look what else runs where it is.",
    )


def _per_round(loop: LoopNumbers) -> float:
    """Return the time that a worker computes in a round."""
    return loop.cpu / max(1, loop.rounds * len(loop.workers))


def _overhead(loop: LoopNumbers) -> float:
    """About what it costs a worker, in a round, to begin with the loop and to wait for tiles that are done."""
    tiles = loop.runs / max(1, loop.rounds * len(loop.workers))
    return (SYNC_NS if loop.label.is_compiled else STARTED_NS) + FLAG_NS * tiles * loop.label.has_waits


def _small(loop: LoopNumbers) -> Bottleneck:
    return Bottleneck(
        Kind.SMALL,
        loop.label,
        f"Too small tiles are the bottleneck: in {_where(loop)} a tile takes {time_in_words(loop.tile_ns)}, a worker "
        f"computes {time_in_words(_per_round(loop))} in a round, and beginning with it and waiting for single tiles "
        f"costs about {time_in_words(_overhead(loop))}; give the loop more to do per round"
        f"{', or use fewer workers' if len(loop.workers) > 1 else ''}.",
    )


def _too_short(loop: LoopNumbers) -> Bottleneck:
    """Return the answer for rounds that compiled code starts in less time than Python takes under a profile."""
    return Bottleneck(
        Kind.NONE,
        loop.label,
        f"No bottleneck can be told: a worker computes {time_in_words(_per_round(loop))} in a round of {_where(loop)}, "
        f"which compiled code starts without a profile; what a profile takes to start it ({time_in_words(STARTED_NS)}) "
        "hides how long workers wait for each other.",
    )


def _slow(loop: LoopNumbers, waits: float) -> Bottleneck | None:
    """A worker all of whose tiles take longer than those of the others, though none of them stands out."""
    if len(loop.rates) < 2:
        return None
    slow = max(loop.rates, key=lambda one: one.middle)
    others = [one for one in loop.rates if one is not slow]
    usual = max(one.high for one in others)
    if not all(map(_is_steady, loop.rates)) or slow.low < SLOW * usual:
        return None
    middle = sorted(one.middle for one in others)[len(others) // 2]
    return Bottleneck(
        Kind.WORKER,
        loop.label,
        f"A slow worker is the bottleneck: worker {slow.worker} takes {slow.middle / middle:.1f} times as long per "
        f"iteration of {_where(loop)} as the others, in all of its tiles, and workers waited {_percent(waits)} of the "
        "time; look what else runs where it is, or leave it out, `orion.scale(workers=…)`; if its part of the data is "
        "what takes longer, spread that over the range.",
    )


def _is_steady(rate: Rate) -> bool:
    return rate.high <= STEADY * rate.low


def _uneven(loop: LoopNumbers, waits: float) -> Bottleneck | None:
    computes = [one.compute for one in loop.workers]
    most, mean = max(computes), _mean(computes)
    if loop.uneven < UNEVEN and most < (1 + WAITING) * mean:
        return None
    busiest = max(loop.workers, key=lambda one: one.compute)
    return Bottleneck(
        Kind.UNEVEN,
        loop.label,
        f"Uneven tiles are the bottleneck: in {_where(loop)} the longest tiles take {loop.uneven:.1f} times as long as "
        f"those in the middle, worker {busiest.worker} computes {most / max(1, mean):.2f} times the average, and "
        f"workers waited {_percent(waits)} of the time{_if_uneven(loop.label)}.",
    )


def _if_uneven(label: LoopLabel) -> str:
    """Return advice against uneven tiles that does not change the program's results; empty if there is none."""
    if label.has_waits:
        return "; tiles wait for those that must come first, so that a long one holds up others"
    if is_better_dynamic(label):
        return '; with `schedule="dynamic"` free workers take tiles that others have not begun'
    return ""


def _order(loop: LoopNumbers, waits: float) -> Bottleneck:
    if not loop.label.has_waits:
        return _at_the_end(loop, waits)
    return Bottleneck(
        Kind.ORDER,
        loop.label,
        f"The order of tiles is the bottleneck: in {_where(loop)} tiles take about equally long, and workers waited "
        f"{_percent(waits)} of the time for tiles that must come first, or for all to be through; use fewer workers, "
        "or larger arrays.",
    )


def _at_the_end(loop: LoopNumbers, waits: float) -> Bottleneck:
    """Return the answer for tiles without waits: workers wait for the last one to finish its part."""
    last = min(loop.workers, key=lambda one: one.wait)
    return Bottleneck(
        Kind.NONE,
        loop.label,
        f"No bottleneck stands out: in {_where(loop)} tiles take about equally long and wait for none; workers waited "
        f"{_percent(waits)} of the time for the last one to be through, worker {last.worker}, which spent "
        f"{time_in_words(last.other)} outside of its tiles.",
    )


def _shared(numbers: Numbers, loop: LoopNumbers) -> Bottleneck:
    label, ratio = loop.label, loop.together / loop.alone
    seconds = max(one.compute for one in loop.workers) / 1e9
    rate = label.bytes * loop.rounds / max(1e-9, seconds)
    told = f"{_where(loop)} takes {ratio:.1f} times as long per tile beside the other workers as alone"
    if rate < BYTES_PER_NS * 1e9:
        return Bottleneck(
            Kind.NONE,
            label,
            f"No single bottleneck: {told}, while all arrays go past at {bytes_in_words(int(rate))}/s at least: "
            "whether it is a cache, memory, or cores that share their units cannot be told from times; try one worker "
            "less.",
        )
    return Bottleneck(
        Kind.MEMORY,
        label,
        f"Memory bandwidth is the bottleneck: {told}, and all arrays go past at {bytes_in_words(int(rate))}/s at "
        "least; more workers will not help: use narrower dtypes, or do more with each element while it is there.",
    )


def _nothing(numbers: Numbers, loop: LoopNumbers) -> Bottleneck:
    share = _mean([one.compute for one in numbers.workers]) / max(1, numbers.wall)
    working = counted(len(loop.workers), "worker")
    sample = (
        ""
        if loop.alone >= SAMPLED_NS
        else "; whether they share memory bandwidth is not known: no tile of it was run alone"
    )
    return Bottleneck(
        Kind.NONE,
        loop.label,
        f"No bottleneck stands out: {working} compute for {_percent(share)} of the time, most of it in "
        f"{_where(loop)}{sample}.",
    )


# ---------------------------------------------------------------- words


def _where(loop: LoopNumbers) -> str:
    return loop_in_words(loop.label)


def _each(time: float, calls: int) -> str:
    return f"{time_in_words(time / max(1, calls))} a call" if calls > 1 else "one call"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0
