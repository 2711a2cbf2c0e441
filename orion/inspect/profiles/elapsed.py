"""The seconds of a call that each of its loops takes: parts of the call that do not overlap, so that they add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from orion.runtime.profile.records import CallRecord, LoopLabel


def elapsed_by_loop(record: CallRecord) -> Iterator[tuple[LoopLabel, float]]:
    """Yield the label of each loop of a call, and its seconds: of each round the time from the end of the round before,
    of any loop, until its last worker is through. Rounds that were not kept are taken to be as long as those that
    were."""
    rounds: dict[tuple[int, int], tuple[int, int]] = {}
    for worker in record.workers:
        for part in worker.parts:
            start, end = rounds.get((part.loop, part.round), (part.start, part.end))
            rounds[part.loop, part.round] = min(start, part.start), max(end, part.end)
    spent: Counter[int] = Counter()
    kept: Counter[int] = Counter()
    clock = record.start
    for (loop, _), (start, end) in sorted(rounds.items(), key=lambda one: one[1][1]):
        spent[loop] += end - max(clock, start)
        kept[loop] += 1
        clock = end
    totals = [total for worker in record.workers for total in worker.totals]
    for number, label in enumerate(record.loops):
        own = [total for total in totals if total.loop == number]
        if not kept[number]:
            yield label, max((total.end for total in own), default=0) / 1e9
            continue
        yield label, spent[number] * max(total.round for total in own) / kept[number] / 1e9
