"""Thousands of calls in one session: memory, descriptors, threads and the cache folder stay as they are.

    python tests/flat.py                  # 10,000 calls on threads, on Ray, on two nodes of it; `make flat` does that
    python tests/flat.py --calls 2000 --backend threads

Programs take turns: calls on the same arrays, on new arrays each time, and (one call in fifty) of a function that is
decorated anew, as in a loop. Exits with 1 where a number grows by more than its bound between a tenth of the calls and
all of them.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orion
from tests.ray_nodes import session_on

BACKENDS = ("threads", "ray", "nodes")
WORKERS = 2
ANEW = 50
"""One call in so many is of a new function."""

AT = (0.1, 0.2, 0.5, 1.0)
"""The parts of all calls after which numbers are taken."""


@dataclass(frozen=True)
class Numbers:
    """Megabytes of the driver and of its largest worker, descriptors and threads of the driver, megabytes and files of
    the cache folder."""

    driver_mb: float
    worker_mb: float
    descriptors: int
    threads: int
    cache_mb: float
    cache_files: int


BOUNDS = Numbers(driver_mb=8.0, worker_mb=4.0, descriptors=2, threads=2, cache_mb=0.1, cache_files=0)
"""By how much each may grow. Measured: the driver by 0 (threads), 4.2 (Ray) and 3.6 MB (two nodes), most of which islpy
keeps of the 180 functions that are planned meanwhile, 10 KB each: it frees no context of isl in which an operation has
made an object. A worker by 1.1 MB, all others by nothing."""


@orion.parallel_for
def add(a, x):
    for i in range(a.shape[0]):
        a[i] += x


@orion.parallel_for
def total(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i]
    return s


def made_anew() -> Any:
    @orion.parallel_for
    def scale(a, x):
        for i in range(a.shape[0]):
            a[i] *= x

    return scale


def one_call(number: int, kept: Any) -> None:
    """A call of one of the programs."""
    if number % ANEW == 0:
        made_anew()(kept, 1.0)
    elif number % 2:
        add(kept, 1.0)
    elif number % 4:
        add(np.zeros(1000), 1.0)
    else:
        mine = orion.ones(2000)
        add(mine, 1.0)
        assert total(mine) == 4000.0


def numbers(session: Any, folder: Path) -> Numbers:
    gc.collect()
    team = getattr(session._backend, "_team", None)
    processes = () if team is None else team.group.processes
    files = [one for one in folder.rglob("*") if one.is_file()]
    return Numbers(
        driver_mb=_resident(os.getpid()),
        worker_mb=max(map(_resident, processes), default=0.0),
        descriptors=len(os.listdir("/proc/self/fd")),
        threads=len(os.listdir("/proc/self/task")),
        cache_mb=sum(one.stat().st_size for one in files) / 2**20,
        cache_files=len(files),
    )


def _resident(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def opened(backend: str) -> Iterator[Any]:
    """A session; on nodes of one CPU each where the backend is "nodes"."""
    if backend != "nodes":
        with orion.session(backend, WORKERS, force_parallel=True) as session:
            yield session
        return
    with session_on((1,) * WORKERS) as session:
        yield session


def measured(backend: str, calls: int, folder: Path) -> list[Numbers]:
    """The numbers after parts of so many calls."""
    found, done = [], 0
    kept = orion.zeros(5000)
    with opened(backend) as session:
        for part in AT:
            start, before = time.perf_counter(), done
            while done < part * calls:
                done += 1
                one_call(done, kept)
            each = (time.perf_counter() - start) / max(1, done - before)
            found.append(numbers(session, folder))
            shown = "".join(f"{one:12.1f}" for one in astuple(found[-1]))
            print(f"{backend:8}{done:8,}{shown}{each * 1e3:10.2f} ms", flush=True)
    return found


def grown(found: list[Numbers]) -> list[str]:
    """What grew by more than its bound between the first numbers and the last."""
    changes = zip(fields(Numbers), astuple(found[0]), astuple(found[-1]), astuple(BOUNDS), strict=True)
    return [f"{one.name} grew from {a:.1f} to {b:.1f}" for one, a, b, bound in changes if b - a > bound]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--backend", action="append", choices=BACKENDS)
    options = parser.parse_args()
    fewest = round(ANEW / AT[0])
    if options.calls < fewest:
        parser.error(
            f"--calls {options.calls}: one call in {ANEW} is of a new function, and the first numbers are taken "
            f"after a tenth of the calls: write {fewest} or more"
        )
    wrong = []
    print(f"{'':8}{'calls':>8}" + "".join(f"{one.name:>12}" for one in fields(Numbers)) + f"{'a call':>13}")
    with TemporaryDirectory(prefix="orion-flat-") as folder:
        os.environ["ORION_CACHE"] = folder
        for backend in options.backend or BACKENDS:
            wrong += [f"{backend}: {one}" for one in grown(measured(backend, options.calls, Path(folder)))]
    print("\n".join(wrong) or "nothing grew beyond its bound")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
