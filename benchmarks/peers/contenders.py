"""What the comparisons of this folder share: contenders that take turns, peers that are missing, the table."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numba
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import Measured, interleaved, machine, seconds
from benchmarks.process import ROOT

FOLDER = ROOT / "benchmarks" / "results"
WIDTH = 160  # of the table, where it goes to a file
PAUSE = 0.02
"""Seconds before each measurement: the threads of the one before stop looking for work and free their cores."""


@dataclass(frozen=True, eq=False)
class Contender:
    """A program that is timed: `run` does all of the work once, `within` gives it the threads that it may use."""

    name: str
    workers: int
    run: Callable[[], Any]
    does: str
    within: Callable[[], AbstractContextManager[object]] = nullcontext

    @property
    def title(self) -> str:
        return f"{self.name} ×{self.workers}"

    def result(self) -> Any:
        """What it finds. The first time, this compiles."""
        with self.within():
            return self.run()

    def time(self) -> float:
        with self.within():
            time.sleep(PAUSE)
            return seconds(self.run)


@contextmanager
def workers_of_orion(workers: int, once: Callable[[], object]) -> Iterator[None]:
    """A session in which threads are started and plans made: by calling `once`."""
    with orion.session(workers=workers):
        once()
        yield


@contextmanager
def threads_of_numba(workers: int) -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(min(workers, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def installed(module: str, package: str) -> bool:
    """Whether a peer is there; a line says which package is missing where it is not."""
    if find_spec(module) is not None:
        return True
    print(f"left out: {module}. The package {package} is not installed: pip install {package}")
    return False


def in_turns(benchmark: str, contenders: Sequence[Contender], repeats: int) -> list[Measured]:
    """The seconds of all contenders, in rounds of one measurement each. All have run once before."""
    found = interleaved({one.title: one.time for one in contenders}, repeats)
    return [Measured(benchmark, one.name, one.workers, "s", found[one.title], one.does) for one in contenders]


def table(title: str, measured: Sequence[Measured], result: str, results: Mapping[str, str]) -> Table:
    """Medians, the best, and how many times as long as Orion's median each took; `results` are by name and workers."""
    ours = {one.workers: one.median for one in measured if one.contender == "Orion"}
    ratios = [f"/ Orion ×{workers}" for workers in ours]
    found = Table(title=title, title_justify="left")
    for name in ("contender", "median ms", "best ms", *ratios, result):
        found.add_column(name, justify="left" if name == "contender" else "right", no_wrap=True)
    found.add_column("what it does")
    for one in measured:
        times = (f"{1e3 * value:.1f}" for value in (one.median, one.best))
        over = (f"{one.median / value:.2f}" for value in ours.values())
        shown = f"{one.contender} ×{one.workers}"
        found.add_row(shown, *times, *over, results[shown], one.notes)
    return found


def show(name: str, tables: Sequence[Table], measured: Sequence[Measured], before: Mapping[str, Any]) -> None:
    """Print the tables and what machine this is, and write everything as JSON."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for one in tables:
        console.print(one)
    loads = f"load {before['load'][0]:.2f} before and {machine()['load'][0]:.2f} after"
    console.print(f"{before['processor']}, {before['cores']} cores; {loads}", highlight=False)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"peers-{name}.json"
    path.write_text(json.dumps({"machine": before, "measured": [one.to_dict() for one in measured]}, indent=1) + "\n")
    console.print(f"written to {path.relative_to(ROOT)}", highlight=False)
