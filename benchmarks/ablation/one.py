"""One program in a process of its own: `python -m benchmarks.ablation.one NAME`, with what fired left out in turn.

Prints what it finds as it goes, one JSON object per line, so that what was found before a crash or a time limit is not
lost. `step` is what is done at the moment: the rewrite that is left out, and the workers.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import orion
from benchmarks.measure import interleaved, seconds
from benchmarks.process import tell, time_limit
from orion.cli.stages import rewrites_fired
from orion.pipeline import REWRITES

from .programs import Program, programs

WORKERS = (2, 1)
PAUSE = 0.01
"""Seconds before each measurement: the threads of the one before stop looking for work and free their cores."""
BUDGET = 20.0
"""Seconds that a pair is measured for, at the most."""
NEAR = ((1 / 1.35, 1 / 1.1), (1.1, 1.35))
"""Ratios that are near a limit: measured in three times as many rounds."""
TRIES = 3
"""First plans of which the faster is taken."""
Decorated = orion.ParallelFunction[..., Any]
SETTING = "ORION_REWRITES"


def main() -> None:
    options = arguments()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    trial = Trial(next(one for one in programs() if one.name == options.program))
    for workers in WORKERS:
        with orion.session("threads", workers), time_limit(f"everything x{workers}", options.limit):
            whole, expected = trial.first(())
            fired, acting = trial.fired(), trial.acting()
        tell({"workers": workers, "fired": fired, "acting": acting})
        for name in acting:
            step = f"{name} x{workers}"
            if step in options.skip or (options.rewrites and name not in options.rewrites):
                continue
            with orion.session("threads", workers), time_limit(step, options.limit):
                without, result = trial.first((name,))
                same = same_results(result, expected, trial.program.tolerance)
                tell({"pair": {"workers": workers, "rewrite": name, "same": same,
                               **trial.compared(whole, without, options.rounds)}})  # fmt: skip
    if not options.rewrites:
        with orion.session("threads", WORKERS[0]), time_limit("planning", options.limit):
            tell({"planning": trial.planning()})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What the rewrites of one program are worth; see the package.")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for each pair, compiling included")
    parser.add_argument("--rewrites", nargs="*", default=[], help="these only, and no times of planning")
    parser.add_argument("--skip", nargs="*", default=[], help="steps that are left out, as in 'jam x2'")
    return parser.parse_args()


@contextmanager
def left_out(names: Sequence[str]) -> Iterator[None]:
    """A function that is first planned here does without these rewrites."""
    os.environ[SETTING] = ",".join(f"-{name}" for name in names)
    try:
        yield
    finally:
        del os.environ[SETTING]


class Trial:
    """A program with its arguments, and the same ones again for each run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arguments = program.make()
        self._start = [one.copy() if isinstance(one, np.ndarray) else None for one in self.arguments]
        self._written = list(range(len(self.arguments)))

    def reset(self) -> None:
        for number in self._written:
            start = self._start[number]
            if start is not None:
                np.copyto(self.arguments[number], start)

    def decorated(self) -> Decorated:
        return orion.parallel_for(ordered=self.program.ordered)(self.program.function)

    def first(self, without: Sequence[str]) -> tuple[Decorated, list[Any]]:
        """The function without some rewrites, and what its first call gives."""
        function = self.decorated()
        self.reset()
        with left_out(without):
            returned = function(*self.arguments)
        self._note_written()
        return function, [*(self.arguments[number].copy() for number in self._written), returned]

    def fired(self) -> list[str]:
        """The rewrites that the plan names."""
        self.reset()
        names = {name for name, _ in rewrites_fired(self.decorated().plan(*self.arguments).with_bodies())}
        return [one.name for one in REWRITES if one.name in names]

    def acting(self) -> list[str]:
        """Those without which something else is run, named or not: one may have made room for another."""
        whole = self._what_is_run(())
        return [one.name for one in REWRITES if self._what_is_run((one.name,)) != whole]

    def _what_is_run(self, without: Sequence[str]) -> tuple[str, list[tuple[Any, ...]]]:
        self.reset()
        function = self.decorated()
        with left_out(without):
            plan = function.plan(*self.arguments)
            kernels = function.kernel_source(*self.arguments)
        return kernels, [(loop.strategy, loop.cuts, loop.runs_on) for loop in plan.function.loops]

    def _note_written(self) -> None:
        """Only arrays that a run changes are set again before the next one."""
        pairs = enumerate(zip(self.arguments, self._start, strict=True))
        changed = {n for n, (now, start) in pairs if start is not None and not np.array_equal(now, start)}
        everything = len(self._written) == len(self._start)
        self._written = sorted(changed if everything else changed.union(self._written))

    def time(self, function: Decorated) -> float:
        """Seconds of one run."""
        self.reset()
        time.sleep(PAUSE)
        return seconds(partial(function, *self.arguments))

    def compared(self, whole: Decorated, without: Decorated, rounds: int) -> dict[str, Any]:
        """Seconds with and without, taking turns, and the median of the ratios."""
        for function in (whole, without):
            self.time(function)
        start = time.perf_counter()
        taken = [(self.time(whole), self.time(without))]
        possible = int(BUDGET / (time.perf_counter() - start))
        taken += self._turns(whole, without, min(rounds, possible) - 1)
        if any(low < ratio_of(taken) < high for low, high in NEAR):
            taken += self._turns(whole, without, min(3 * rounds, possible) - len(taken))
        return {"ratio": ratio_of(taken), "with": [a for a, _ in taken], "without": [b for _, b in taken]}

    def _turns(self, whole: Decorated, without: Decorated, rounds: int) -> list[tuple[float, float]]:
        return [(self.time(whole), self.time(without)) for _ in range(rounds)]

    def planning(self) -> dict[str, float]:
        """Seconds of a first plan with everything, and without each rewrite, whether it fires or not."""
        settings: Mapping[str, tuple[str, ...]] = {"": (), **{one.name: (one.name,) for one in REWRITES}}
        self._first_plan(())  # what isl keeps by its text is kept for all of them
        measures = {name: partial(self._first_plan, names) for name, names in settings.items()}
        return {name: min(taken) for name, taken in interleaved(measures, TRIES).items()}

    def _first_plan(self, names: Sequence[str]) -> float:
        function = self.decorated()
        with left_out(names):
            return seconds(partial(function.plan, *self.arguments))


def ratio_of(taken: list[tuple[float, float]]) -> float:
    """The time without over the time with: above 1, the rewrite pays."""
    return median(b / a for a, b in taken)


def same_results(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether two results are the same but for rounding, relative to the largest element."""
    if isinstance(expected, list | tuple):
        return all(same_results(a, b, tolerance) for a, b in zip(found, expected, strict=True))
    if expected is None or found is None:
        return found is expected
    one, other = np.asarray(found), np.asarray(expected)
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    scale = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
    return np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


if __name__ == "__main__":
    main()
