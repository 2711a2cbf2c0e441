"""A profile as text: what `print(profile)` shows."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from orion.inspect.profiles.bottleneck import bottleneck_of
from orion.inspect.profiles.loops import title_of
from orion.inspect.profiles.numbers import LoopNumbers, Numbers, WorkerNumbers, numbers_of
from orion.inspect.text.text import WIDTH, table
from orion.inspect.text.words import bytes_in_words, counted, time_in_words
from orion.runtime.profile.collector import of_call
from orion.runtime.profile.records import CallRecord

HEADS = ("", "compute", "wait", "transfer", "other", "tiles", "per tile")
Row = tuple[str, ...]


def profile_text(numbers: Numbers, width: int = WIDTH) -> str:
    """The tables of a profile, and the sentence that names its bottleneck."""
    first = [f"profile: {time_in_words(numbers.wall)}, {counted(numbers.calls, 'call')}{_failed(numbers)}"]
    lines = [*first, "", *_laid_out(list(loop_rows(numbers))), "", *_laid_out(list(driver_rows(numbers)))]
    lines += ["", *notes(numbers), *wrap(bottleneck_of(numbers).sentence, width)]
    return "\n".join(lines)


def call_text(record: CallRecord, width: int = WIDTH) -> str:
    """The same of one call."""
    return profile_text(numbers_of(of_call(record)), width)


def loop_rows(numbers: Numbers) -> Iterator[Row]:
    """A row for each loop, and one for each of its workers; the first has what the columns are."""
    yield HEADS
    for loop in numbers.loops:
        yield (loop_title(loop), *[""] * (len(HEADS) - 1))
        for one in loop.workers:
            yield _worker_row(one)
    for name, time in numbers.functions:
        yield (f"{name}, as it is", time_in_words(time), *[""] * (len(HEADS) - 2))


def loop_title(loop: LoopNumbers) -> str:
    """What a loop is called in tables."""
    return title_of(loop.label) + (f", {loop.rounds:,} rounds" if loop.rounds != 1 else "")


def _worker_row(one: WorkerNumbers) -> Row:
    times = [_time(value) for value in (one.compute, one.wait, one.transfer, one.other)]
    each = time_in_words(one.compute / one.tiles) if one.tiles else "-"
    return (f"  worker {one.worker}", *times, f"{one.tiles:,}", each)


def driver_rows(numbers: Numbers) -> Iterator[Row]:
    """Where the driver's time went, each with its share."""
    yield "driver", "", ""
    parts = [
        ("  outside of calls", numbers.outside, ""),
        ("  planning", numbers.planning, "until it is known what to run"),
        ("  another call's turn", numbers.queueing, "another thread's loop runs"),
        ("  preparing", numbers.preparing, "compiling, preparing arguments, telling workers"),
        ("  copying", numbers.copying, _copied(numbers)),
        ("  workers run", numbers.running, ""),
        ("  the profile", numbers.own, "adding up its numbers, which no other run does"),
    ]
    for name, time, about in parts:
        share = 100 * time / max(1, numbers.wall)
        if (
            share >= (5 if "turn" in name else 1)
            or name.strip() in ("planning", "workers run")
            or (about and time and "copying" in name)
        ):
            percent = f" ({share:.0f} %)" if share <= 100 else ""  # of several threads together it is more
            yield name, f"{_time(time)}{percent}", about


def notes(numbers: Numbers) -> list[str]:
    """What is to be known of the numbers, a line each, and an empty one."""
    found = []
    if any(loop.label.takes_tiles for loop in numbers.loops):
        found.append(
            "Where workers take each other's tiles (inspected, dynamic loops) waiting is counted as computing."
        )
    if any(loop.label.is_compiled for loop in numbers.loops):
        found.append(
            "Rounds that compiled code starts were started one by one: without a profile `wait` and `other` are less."
        )
    return [*found, ""] if found else []


def _copied(numbers: Numbers) -> str:
    sent = (
        f"; {bytes_in_words(numbers.sent)} between nodes in {counted(numbers.messages, 'message')}"
        if numbers.messages
        else ""
    )
    return f"{bytes_in_words(numbers.copied)} between the driver and the workers{sent}"


def _failed(numbers: Numbers) -> str:
    return f", {numbers.failed:,} of which raised" if numbers.failed else ""


def _time(nanoseconds: int) -> str:
    return time_in_words(nanoseconds) if nanoseconds else "0"


def _laid_out(rows: list[Row]) -> list[str]:
    """Rows in columns; a row of a title alone is as long as it is."""
    full = [row for row in rows if any(row[1:])]
    lines = iter([line.words.rstrip() for line in table(full)])
    return [next(lines) if any(row[1:]) else row[0] for row in rows]
