"""Progress bars of tqdm, as the user wrote them around loops: drawn by worker 0 of a run on threads.

A serial loop around planned loops goes through the bar itself, round by round. A planned loop is one call of compiled
code: its bar is full when that is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from orion.ir.function import Bar


class Bars:
    """The bars of a function by their numbers. Those of workers other than 0 show nothing."""

    def __init__(self, bars: Sequence[Bar]) -> None:
        self._bars = bars

    def around(self, worker: Any, number: int, trips: range, total: int | None) -> Iterator[int]:
        """What a serial loop goes through. `total` are the rounds of the source, of which there may be several in each
        of these; None where they are not known."""
        if worker.number:
            yield from trips
            return
        with self._shown(number, len(trips) if total is None else total) as bar:
            for done, trip in enumerate(trips, 1):
                yield trip
                bar.update(bar.total * done // len(trips) - bar.n)

    @contextmanager
    def whole(self, worker: Any, number: int, total: int | None) -> Iterator[None]:
        """Around a planned loop of so many iterations of the `for` with the bar; None where that is not known."""
        if worker.number:
            yield
            return
        with self._shown(number, total) as bar:
            yield
            bar.update(total or 0 if self._bars[number].is_whole else 0)

    @contextmanager
    def _shown(self, number: int, total: int | None) -> Iterator[Any]:
        bar = self._bars[number]
        shown = bar.make(total=total, **dict(bar.options))
        try:
            yield shown
        finally:
            shown.close()
