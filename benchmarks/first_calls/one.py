"""The first call of one program in a process of its own: `python -m benchmarks.first_calls.one NAME orion`.

Prints, as a JSON object, the seconds from the import of the contender to the first result, those of the import alone,
those of a second call, and the CPU time to the first result. Both contenders import Numba, and so do some of the
programs: its import is timed ahead, and counted. So is Orion's, which whole programs import. Compiled code is kept in
the folder that `XDG_CACHE_HOME` and `NUMBA_CACHE_DIR` name.
"""

from __future__ import annotations

# ruff: noqa: E402
from time import perf_counter, process_time

import numpy as np  # noqa: F401 - what users have imported anyhow

_begun, _begun_cpu = perf_counter(), process_time()
import numba  # noqa: F401

NUMBA_SECONDS, NUMBA_CPU = perf_counter() - _begun, process_time() - _begun_cpu

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.first_calls.programs import PROGRAMS
from benchmarks.process import tell, time_limit

CONTENDERS = ("orion", "njit", "walker")
"""`walker`: what Orion compiles once for a machine; nothing is called."""


def main() -> None:
    options = arguments()
    begun, begun_cpu = perf_counter(), process_time()
    if options.contender == "orion":
        imported("orion")
    ahead, ahead_cpu = perf_counter() - begun, process_time() - begun_cpu
    program = PROGRAMS[options.name]()
    given = [program.arguments() for _ in range(2)]
    warnings.simplefilter("ignore")
    with time_limit("the first call", options.limit):
        begun, begun_cpu = perf_counter(), process_time()
        decorate = imported(options.contender)
        ready = perf_counter()
        function = decorate(program.function)
        function(*given[0])
        first, cpu = perf_counter(), process_time() - begun_cpu
        function(*given[1])
        second = perf_counter()
    seconds = {"import": ready - begun, "first": first - begun}
    seconds = {name: value + NUMBA_SECONDS + ahead for name, value in seconds.items()}
    tell({**seconds, "second": second - first, "cpu": cpu + NUMBA_CPU + ahead_cpu})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure a first call; see run.py for all of them.")
    parser.add_argument("name", choices=PROGRAMS, metavar="NAME")
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that the calls may take")
    return parser.parse_args()


def imported(contender: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Import a contender; its decorator."""
    if contender == "njit":
        from benchmarks.everyday.njit import in_numba

        return partial(in_numba, kept=True)
    import orion

    if contender == "walker":
        from orion.kernel.build.walker import follower, packing, repeating, walker

        walker(), walker(takes_tiles=True), follower(), packing(), repeating()
        return lambda function: lambda *given: None
    return orion.parallel_for


if __name__ == "__main__":
    main()
