"""Progress of the examples, shown while they compute, and seconds extrapolated from a sample in plain Python.

On a terminal `waiting` and `steps` show a bar that is removed at the end. Elsewhere they write a line to stderr every
few seconds: how far the work is, and for how long it has been going on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

FIRST_SECONDS, SECONDS = 1.0, 5.0
"""Until the first line, and between two."""

REFRESH = 4
"""Bars drawn per second: few, as a thread next to those being timed draws them."""


@contextmanager
def waiting(text: str, console: Console | None = None) -> Iterator[None]:
    """Show that a piece of work of unknown length goes on."""
    with _shown(text, None, console):
        yield


def steps(text: str, count: int, console: Console | None = None) -> Iterator[int]:
    """Yield the numbers 1 to `count`, and show how many of these steps are done."""
    with _shown(text, count, console) as advance:
        for number in range(1, count + 1):
            yield number
            advance()


def show_lines_at_once() -> None:
    """Let each printed line be seen at once where the output is a pipe or a file."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


@dataclass(frozen=True)
class Extrapolated:
    """The predicted seconds of a whole run in plain Python, of which a sample was timed: a share of the whole."""

    seconds: float
    share: float

    def __str__(self) -> str:
        return f"plain Python, extrapolated from {100 * self.share:.3g} %: {self.seconds:,.3g} s"


def extrapolated(run: Callable[[int], object], count: int, sample: int) -> Extrapolated:
    """Time `run(n)` for n iterations, at most `sample` of the `count`, and extrapolate to all of them."""
    taken = min(sample, count)
    start = perf_counter()
    run(taken)
    return Extrapolated((perf_counter() - start) * count / taken, taken / count)


# ------------------------------------------------------------------------------------------------ how it is shown


@contextmanager
def _shown(text: str, count: int | None, console: Console | None) -> Iterator[Callable[[], None]]:
    """Show a piece of work until it ends; the value is called after each of its steps."""
    console = console or Console(highlight=False)
    if console.is_terminal:
        counted = () if count is None else (BarColumn(), MofNCompleteColumn())
        columns = (SpinnerColumn(), TextColumn("{task.description}"), *counted, TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, refresh_per_second=REFRESH) as progress:
            task = progress.add_task(text, total=count)
            yield lambda: progress.advance(task)
    else:
        lines = _Lines(text, count)
        lines.start()
        try:
            yield lines.advance
        finally:
            lines.end()


class _Lines(threading.Thread):
    """The thread that writes the lines."""

    def __init__(self, text: str, count: int | None) -> None:
        super().__init__(daemon=True)
        self._text, self._count, self._done = text, count, 0
        self._start, self._ended = perf_counter(), threading.Event()

    def advance(self) -> None:
        self._done += 1

    def end(self) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        wait = FIRST_SECONDS
        while not self._ended.wait(wait):
            wait = SECONDS
            so_far = "" if self._count is None else f"{self._done} of {self._count}, "
            print(f"{self._text}: {so_far}{perf_counter() - self._start:.0f} s", file=sys.stderr, flush=True)
