"""Data larger than memory: read, mapped, grouped, looped over, saved, loaded by a process that has room for a quarter.

    python -m benchmarks.larger
    python -m benchmarks.larger --limit 512 --folder /data/scratch

A process for each of three sizes of data, the elements of which take as much as the limit, twice and four times that,
goes through all stages. Its memory, files in memory among them, is held to the limit by a cgroup (version 1; wants
root). Where there is none, its anonymous memory is, by RLIMIT_DATA, which is said. Told are the seconds of each stage,
and its peak of anonymous memory, which the system cannot write back to files: looked at 200 times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

GROUPS = Path("/sys/fs/cgroup/memory")
MEGABYTE = 1 << 20
ELEMENT = 12
"""Bytes of an element: two keys of int32, a value of float32."""
USERS, ITEMS, LINES = 50_000, 20_000, 1 << 20
"""The shape, and the lines of text that a file repeats."""
TIMES = (1, 2, 4)
"""The sizes of data as multiples of the limit."""


def block() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The users, items and values of the lines that are repeated."""
    random = np.random.default_rng(0)
    return random.integers(0, USERS, LINES), random.integers(0, ITEMS, LINES), random.integers(0, 1000, LINES) / 8


def write_text(path: Path, repeats: int) -> None:
    users, items, values = (column.tolist() for column in block())
    text = "".join(f"{i},{j},{v}\n" for i, j, v in zip(users, items, values, strict=True)).encode()
    with path.open("wb") as file:
        for _ in range(repeats):
            file.write(text)


# ---------------------------------------------------------------- the process that is held to the limit


def anonymous() -> float:
    """Megabytes of anonymous memory that this process has."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024


class Watch(threading.Thread):
    """Looks at the anonymous memory of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = anonymous()

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous())
            time.sleep(0.005)


def stages(path: Path, folder: Path, repeats: int) -> None:
    """Go through all stages, and print what each of them took, a line of JSON each."""
    import orion
    from benchmarks.larger_loops import totals, warm_up

    watch = Watch()

    def stage(name: str, work: Callable[[], Any]) -> Any:
        watch.peak, begun = anonymous(), time.perf_counter()
        found = work()
        print(json.dumps([name, watch.peak, time.perf_counter() - begun]), flush=True)
        return found

    def looped(array: Any) -> bool:
        by_user, by_item = np.zeros(USERS), np.zeros(ITEMS)
        totals(array, by_user, by_item)
        users, items, values = block()
        kept = values > 1
        weights = 2 * values[kept] * repeats
        wanted = (np.bincount(users[kept], weights, USERS), np.bincount(items[kept], weights, ITEMS))
        return bool((by_user == wanted[0]).all() and (by_item == wanted[1]).all())

    orion.init(spill=folder, spill_above="4MB")
    watch.start()
    stage("start", warm_up)
    held = {"now": stage("read_csv", lambda: orion.read_csv(path, header=False, shape=(USERS, ITEMS)))}
    steps = held["now"].filter(lambda key, v: v > 1).map(lambda v: v * 2)
    held["now"] = stage("map, filter", steps.materialize)
    del steps
    stage("group_by", lambda: len(held["now"].group_by(1)[7]))
    stage("shuffle_keys", lambda: held["now"].shuffle_keys([0, 1], seed=1).materialize() and None)
    is_right = stage("loop", lambda: looped(held["now"]))
    stage("save", lambda: held.pop("now").save(folder / "kept.npz"))
    loaded = stage("load", lambda: orion.load(folder / "kept.npz"))
    is_right &= stage("loop over loaded", lambda: looped(loaded))
    print(json.dumps(["right", is_right, len(loaded)]), flush=True)


# ---------------------------------------------------------------- the limit


@contextmanager
def group_of(limit: int) -> Iterator[Path | None]:
    """A cgroup whose processes have so many bytes together; None where none can be made."""
    path = GROUPS / f"orion-larger-{os.getpid()}"
    try:
        path.mkdir()
    except OSError:
        yield None
        return
    try:
        (path / "memory.limit_in_bytes").write_text(str(limit))
        yield path
    finally:
        path.rmdir()


def measured(limit: int, times: int, folder: Path) -> tuple[list[tuple[str, float, float]], str]:
    """What each stage took, and how it ended."""
    repeats = round(limit * times / ELEMENT / LINES)
    path = folder / "ratings.csv"
    write_text(path, repeats)

    with group_of(limit) as group:

        def begin() -> None:
            if group is not None:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            else:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        command = [sys.executable, "-m", "benchmarks.larger", "--stages", str(path), str(folder), str(repeats)]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, preexec_fn=begin)
    path.unlink()
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    if found.returncode:
        return lines, f"ended by {found.returncode} after {len(lines)} stages"
    _, is_right, count = lines.pop()
    return lines, f"{repeats * LINES:,} elements, {count:,} kept, {'right' if is_right else 'WRONG'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=384, help="megabytes of the process")
    parser.add_argument("--times", type=int, nargs="+", default=TIMES, help="sizes of data as multiples of the limit")
    parser.add_argument("--folder", help="a folder on a disk, with room for ten times as much")
    parser.add_argument("--stages", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.stages:
        stages(Path(asked.stages[0]), Path(asked.stages[1]), int(asked.stages[2]))
        return
    limit, console, runs = asked.limit * MEGABYTE, Console(), []
    with group_of(limit) as group:
        by = "a cgroup, files in memory among it" if group is not None else "RLIMIT_DATA, anonymous memory alone"
    console.print(f"{asked.limit} MB for the process, by {by}")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for times in asked.times:
            rows, end = measured(limit, times, Path(folder))
            runs.append({name: f"{peak:,.0f} MB, {seconds:,.1f} s" for name, peak, seconds in rows})
            console.print(f"{times} x {asked.limit} MB: {end}")
    table = Table("stage", *(f"{times * asked.limit} MB of elements" for times in asked.times))
    for name in runs[0]:
        table.add_row(name, *(run.get(name, "") for run in runs))
    console.print(table)


if __name__ == "__main__":
    main()
