"""One everyday loop in a process of its own: `python -m benchmarks.everyday.one NAME --repeats 5 --limit 60`.

Prints what it finds as it goes, one JSON object per line, so that what was found before a crash or a time limit is not
lost; `run.py` reads it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import orion
from benchmarks.everyday.case import Case
from benchmarks.everyday.cases import CASES
from benchmarks.everyday.njit import in_numba
from benchmarks.everyday.planning import Refused, planned
from benchmarks.measure import interleaved, seconds
from benchmarks.process import tell, time_limit

PAUSE = 0.01
"""Seconds before each measurement: the threads of the one before stop looking for work and free their cores."""

TOLERANCE = 1e-6
"""Relative to the largest element of an array: sums over samples may be put in another order."""


def main() -> None:
    options = arguments()
    case = next(case for case in CASES if case.name == options.name)
    warnings.simplefilter("ignore")
    looped = orion.parallel_for(case.function)
    with time_limit("planning", options.limit), orion.session(workers=2):
        found = planned(case, case.arguments(case.large))
    if isinstance(found, Refused):
        tell({"refused": found.message, "cause": found.cause, "as_it_is": found.as_it_is})
        if not found.as_it_is:
            return
    else:
        tell({"part": found.part, "codes": found.codes})
    with time_limit("the small size", options.limit), orion.session(workers=2, force_parallel=True):
        tell({"right": agree(run(looped, case, case.small), run(case.function, case, case.small))})
    contenders: dict[str, Callable[[], float]] = {}
    with time_limit("Numba", options.limit):
        serial = with_numba(case)
    if serial is not None:
        contenders["njit"] = partial(timed, serial, case)
    for workers in (1, 2):
        contenders[f"orion x{workers}"] = partial(on_workers, workers, partial(timed, looped, case))
    with time_limit("the times", options.limit):
        for contender in contenders.values():
            contender()  # compiles
        tell({"times": interleaved(contenders, options.repeats)})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure one everyday loop; see run.py for all of them.")
    parser.add_argument("name", choices=[case.name for case in CASES])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each step")
    return parser.parse_args()


# ---------------------------------------------------------------- results


def run(function: Callable[..., Any], case: Case, n: int) -> list[Any]:
    """The arguments of a case after a call, and what it returned."""
    given = case.arguments(n)
    result = function(*given)
    return [*given, *(result if isinstance(result, tuple) else (result,))]


def agree(found: list[Any], expected: list[Any]) -> bool:
    """Whether all values are the same but for the rounding of sums."""
    return len(found) == len(expected) and all(map(same, found, expected))


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return agree(list(found), list(expected))
    if expected is None or isinstance(expected, str):
        return bool(found == expected)
    mine, theirs = np.asarray(found), np.asarray(expected)
    if mine.shape != theirs.shape:
        return False
    largest = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0) if theirs.dtype.kind in "fc" else 0.0
    return np.allclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE * float(largest), equal_nan=True)


# ---------------------------------------------------------------- times


def on_workers(workers: int, measure: Callable[[], float]) -> float:
    """The second call of a session: the first one starts its threads and plans, once per session."""
    with orion.session(workers=workers):
        measure()
        return measure()


def timed(function: Callable[..., Any], case: Case) -> float:
    """Seconds of a call at the large size."""
    given = case.arguments(case.large)
    time.sleep(PAUSE)
    return seconds(partial(function, *given))


def with_numba(case: Case) -> Callable[..., Any] | None:
    """The same text, and the functions that it calls, compiled by Numba; None where Numba does not take it."""
    compiled = in_numba(case.function)
    try:
        compiled(*case.arguments(case.small))
    except Exception as error:  # whatever Numba raises, it does not compile this
        tell({"without_numba": str(error).splitlines()[0][:100]})
        return None
    return compiled


if __name__ == "__main__":
    main()
