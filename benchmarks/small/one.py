"""One program in a process of its own: `python -m benchmarks.small.one NAME --repeats 15 --limit 60`.

Prints what it finds as it goes, one JSON object per line, so that what was found before a crash or a time limit is not
lost; `run.py` reads it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from inspect import signature
from itertools import groupby
from typing import Any

import numpy as np

import orion
from benchmarks.everyday.njit import in_numba
from benchmarks.measure import interleaved, seconds
from benchmarks.process import tell, time_limit
from benchmarks.small.program import Program
from benchmarks.small.programs import PROGRAMS

PAUSE = 0.01
"""Seconds before each measurement: the threads of the one before stop looking for work and free their cores."""

FIRST_CALLS = 3
"""Calls of a session before the first measured one: they compile, plan and start threads."""

TOLERANCE = 1e-6
"""Relative to the largest element of an array: sums may be put in another order."""


def main() -> None:
    options = arguments()
    program = next(program for program in PROGRAMS if program.name == options.name)
    warnings.simplefilter("ignore")
    njit, looped = in_numba(program.function), orion.parallel_for(program.function)
    given = program.arguments()
    with time_limit("Numba", options.limit):
        expected = results(njit, program, given)
    with time_limit("planning", options.limit), orion.session("threads", 2):
        tell({"plan": plan_of(looped, given)})
    for workers in (1, 2):
        with time_limit(f"{workers} workers", options.limit), orion.session("threads", workers):
            differing = differences(results(looped, program, given), expected)
            tell({"wrong": differing})
            if differing:
                return
            tell({f"times x{workers}": times({"njit": njit, "orion": looped}, given, options.repeats)})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure one program of small loops; see run.py for all of them.")
    parser.add_argument("name", choices=[program.name for program in PROGRAMS])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each step")
    return parser.parse_args()


def plan_of(looped: orion.ParallelFunction, given: tuple[Any, ...]) -> str:
    """Return the strategies of the planned loops, or why nothing is planned."""
    try:
        plan = looped.plan(*given)
    except orion.OrionError as error:
        return f"{'as it is' if error.is_for_numba else 'refused'}: {str(error).splitlines()[0]}"
    runs = [(strategy, len([*same])) for strategy, same in groupby(loop.strategy for loop in plan.loops)]
    return ", ".join(strategy if count == 1 else f"{strategy} ×{count}" for strategy, count in runs)


# ---------------------------------------------------------------- results


def results(function: Callable[..., Any], program: Program, given: tuple[Any, ...]) -> dict[str, Any]:
    """Return the outputs of a call by name, and the parts of the returned value as `return 0`, `return 1`, …"""
    copies = copied(given)
    returned = function(*copies)
    parts = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    named = dict(zip(signature(program.function).parameters, copies, strict=True))
    return {name: named[name] for name in program.outputs} | {f"return {k}": part for k, part in enumerate(parts)}


def copied(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with copies of the arrays."""
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in given)


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return the names of the results that differ: integers at all, floats by more than the rounding of sums."""
    return [name for name in found.keys() | expected.keys() if not same(found.get(name), expected.get(name))]


def same(found: Any, expected: Any) -> bool:
    """Return whether two results agree."""
    mine, theirs = np.asarray(found), np.asarray(expected)
    if mine.shape != theirs.shape or mine.dtype.kind != theirs.dtype.kind:
        return False
    if theirs.dtype.kind != "f":
        return bool(np.array_equal(mine, theirs))
    largest = float(np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0))
    return np.allclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE * largest, equal_nan=True)


# ---------------------------------------------------------------- times


def times(
    contenders: dict[str, Callable[..., Any]], given: tuple[Any, ...], repeats: int
) -> dict[str, tuple[float, ...]]:
    """Return the seconds of calls, of one contender after the other in turn."""
    measures = {name: partial(timed, function, given) for name, function in contenders.items()}
    for measure in measures.values():
        for _ in range(FIRST_CALLS):
            measure()
    return interleaved(measures, repeats)


def timed(function: Callable[..., Any], given: tuple[Any, ...]) -> float:
    """Return the seconds of a call with copies of the arguments."""
    copies = copied(given)
    time.sleep(PAUSE)
    return seconds(partial(function, *copies))


if __name__ == "__main__":
    main()
