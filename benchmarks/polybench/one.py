"""One kernel in a process of its own: `python -m benchmarks.polybench.one NAME --size bench --repeats 5 --limit 60`.

Prints what it finds as it goes, one JSON object per line, so that what was found before a crash or a time limit is not
lost: fields of `Outcome`, and `step`, what Orion does at the moment. `run.py` reads it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import numba
import numpy as np

import orion
from benchmarks.measure import interleaved, seconds
from benchmarks.process import tell, time_limit

from .kernel import SIZES, Inputs, Kernel
from .kernels import KERNELS
from .outcome import Agreement, agreement

WORKERS = 2
PAUSE = 0.01
"""Seconds before each measurement: the threads of the one before stop looking for work and free their cores."""


def main() -> None:
    options = arguments()
    kernel = next(kernel for kernel in KERNELS if kernel.name == options.kernel)
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    numba.set_num_threads(min(WORKERS, numba.config.NUMBA_NUM_THREADS))
    contenders: dict[str, Callable[..., None]] = {"serial": numba.njit(kernel.function), "prange": kernel.prange}
    trial = Trial(kernel, options.size)
    expected = trial.result(contenders["serial"])
    trial.result(contenders["prange"])  # compiles
    if not options.without_orion:
        function = orion.parallel_for(kernel.function)
        if accepts(kernel, function, trial, expected, options.limit):
            contenders["orion"] = function
    with orion.session(workers=WORKERS):
        tell(measured(trial, contenders, options.repeats, options.limit))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure one kernel of PolyBench; see run.py for all of them.")
    parser.add_argument("kernel", choices=[kernel.name for kernel in KERNELS])
    parser.add_argument("--size", choices=SIZES, default="bench")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each step of Orion's")
    parser.add_argument("--without-orion", action="store_true", help="measure the other two only")
    return parser.parse_args()


class Trial:
    """The arguments of a kernel at one size, and the same ones again for each run."""

    def __init__(self, kernel: Kernel, size: str) -> None:
        self.kernel = kernel
        self.arguments: Inputs = kernel.inputs(size)
        self._start = {name: self.arguments[name].copy() for name in kernel.outputs}

    def reset(self) -> None:
        for name, array in self._start.items():
            np.copyto(self.arguments[name], array)

    def result(self, function: Callable[..., None]) -> Inputs:
        """Copies of the outputs after one run."""
        self.reset()
        function(*self.arguments.values())
        return {name: self.arguments[name].copy() for name in self.kernel.outputs}

    def time(self, function: Callable[..., None]) -> float:
        """Seconds of one run."""
        self.reset()
        time.sleep(PAUSE)
        return seconds(partial(function, *self.arguments.values()))

    def agreement(self, function: Callable[..., None], expected: Inputs) -> Agreement:
        """How a run's result compares with the expected one."""
        return agreement(self.result(function), expected, self.kernel.outputs)


# ---------------------------------------------------------------- Orion


def accepts(kernel: Kernel, function: orion.ParallelFunction, trial: Trial, expected: Inputs, limit: float) -> bool:
    """Whether Orion runs the kernel; what it makes of it, and whether the results are right, is told on the way."""
    try:
        with orion.session(workers=WORKERS):
            with time_limit("planning", limit):
                plan = function.plan(*trial.arguments.values())
            tell({"strategies": [loop.strategy for loop in plan.loops], "runs_on": plan.runs_on})
        with orion.session(workers=WORKERS, force_parallel=True), time_limit("the tiny size", limit):
            tiny = Trial(kernel, "tiny")
            tell({"tiny": asdict(tiny.agreement(function, tiny.result(kernel.function)))})
        with orion.session(workers=WORKERS):
            with time_limit("the first call", limit):
                tell({"first_call": trial.time(function)})
            with time_limit("a run", limit):
                tell({"at_size": asdict(trial.agreement(function, expected))})
    except orion.UnsupportedLoopError as error:
        tell({"refused": first_line(error)})
    except Exception as error:  # an error of one kernel is a row of the table
        tell({"failed": f"{type(error).__name__}: {first_line(error)}"})
    else:
        return True
    return False


def first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


# ---------------------------------------------------------------- times


def measured(
    trial: Trial, contenders: dict[str, Callable[..., None]], repeats: int, limit: float
) -> dict[str, tuple[float, ...]]:
    """Seconds of each contender, in rounds of one each; fewer rounds where they would take longer than the limit."""
    measures = {name: partial(trial.time, function) for name, function in contenders.items()}
    start = time.perf_counter()
    first = interleaved(measures, 1)
    rounds = int(min(repeats, max(1.0, limit / (time.perf_counter() - start))))
    return interleaved(measures, rounds) if rounds > 1 or repeats == 1 else first


if __name__ == "__main__":
    main()
