"""What the matrix factorization example prints: a live line per epoch, and the table at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from live import steps, waiting
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

HEADER = "epoch    train RMSE     test RMSE   updates/s"
NARROWEST = 100
"""Columns of text when the output is not a terminal."""


@dataclass(frozen=True)
class Row:
    """One way to run the training: seconds of one epoch, and the test RMSE it ended with; None where it was not run.

    `ready` is the seconds from nothing to the end of the first epoch: start, plan, compile, sort.
    """

    name: str
    workers: int | None = None
    ready: float | None = None
    epoch: float | None = None
    rmse: float | None = None
    note: str = ""


class Report:
    """Prints to a terminal, with a progress bar, or to a file or pipe, without."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        if not self.console.is_terminal:
            self.console.width = max(NARROWEST, self.console.width)

    def say(self, text: str) -> None:
        """A text as it is: neither wrapped nor coloured."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def waiting(self, text: str) -> AbstractContextManager[None]:
        """A sign of life while something takes time."""
        return waiting(text, self.console)

    def header(self) -> None:
        """What the numbers of the lines of epochs are."""
        self.say(HEADER)

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs 1 to count, with a bar that says how far they are."""
        return steps("training", count, self.console)

    def epoch(self, number: int, train_rmse: float, test_rmse: float, speed: float | None) -> None:
        """The line of one epoch; `speed` in updates per second."""
        shown = "" if speed is None else _speed(speed)
        self.say(f"{number:5d}  {train_rmse:12.8f}  {test_rmse:12.8f}  {shown:>10}".rstrip())

    def table(self, rows: Sequence[Row], ratings: int) -> None:
        """All rows side by side, with speed-ups over the compiled loop on one worker; an epoch is `ratings` updates."""
        one = next((row.epoch for row in rows if row.workers == 1 and row.rmse is not None), None)
        table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        table.add_column("", no_wrap=True)
        for title in ("workers", "ready s", "epoch ms", "updates/s", "speed-up", "test RMSE"):
            table.add_column(title, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(row.name, *_cells(row, ratings, one))
        self.console.print(table)
        for row in rows:
            if row.note:
                self.say(f"{row.name}: {row.note}")


def _cells(row: Row, ratings: int, one: float | None) -> Iterator[str]:
    yield "" if row.workers is None else str(row.workers)
    yield "" if row.ready is None else f"{row.ready:.2f}"
    yield "" if row.epoch is None else f"{1e3 * row.epoch:,.2f}"
    yield "" if row.epoch is None else _speed(ratings / row.epoch)
    yield "" if row.epoch is None or one is None else f"{one / row.epoch:.3g}x"
    yield "" if row.rmse is None else f"{row.rmse:.8f}"


def _speed(updates: float) -> str:
    """Millions of updates per second, to three digits."""
    millions = updates / 1e6
    return f"{millions:,.0f} M" if millions >= 100 else f"{millions:.3g} M"
