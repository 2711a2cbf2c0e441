"""Data larger than memory: read, mapped, grouped, looped over, saved, loaded by a process that has room for a quarter.

    python -m benchmarks.larger
    python -m benchmarks.larger --limit 512 --folder /data/scratch
    python -m benchmarks.larger --nodes 2 --limit 512      # on Ray: a worker on each of two nodes

A process for each of three sizes of data, the elements of which take as much as the limit, twice and four times that,
goes through all stages. Its memory, files in memory among them, is held to the limit by a cgroup (version 1; wants
root). Where there is none, its anonymous memory is, by RLIMIT_DATA, which is said. On Ray each worker has a cgroup of
its own with the same limit; the processes of Ray itself have none, but what the driver puts into Ray's object store,
80 MB at most, counts as the driver's. Told are the seconds of each stage, and its peak of
anonymous memory, which the system cannot write back to files, of the process and of the worker that has most of it:
looked at 200 times a second.
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
from contextlib import ExitStack, contextmanager
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


def anonymous(process: int) -> float:
    """Megabytes of anonymous memory that a process has; none where it has ended."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon")), 0) / 1024


class Watch(threading.Thread):
    """Looks at the anonymous memory of this process, and of workers on Ray."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.workers: tuple[int, ...] = ()
        self.begin()

    def begin(self) -> None:
        """From now on these are the peaks, in megabytes."""
        self.peak, self.of_workers = anonymous(os.getpid()), 0.0

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous(os.getpid()))
            self.of_workers = max([self.of_workers, *map(anonymous, self.workers)])
            time.sleep(0.005)


def workers_in_groups(groups: list[Path]) -> tuple[int, ...]:
    """The processes of this session's workers on Ray, each put into a group, whose limit is lowered by the memory that
    the worker has already: that stays where it was."""
    from orion.runtime.session import current_session

    processes: tuple[int, ...] = current_session()._backend._team.group.processes  # type: ignore[attr-defined]
    for process, group in zip(processes, groups, strict=bool(groups)):
        limit = group / "memory.limit_in_bytes"
        limit.write_text(str(int(limit.read_text()) - int(anonymous(process) * MEGABYTE)))
        (group / "cgroup.procs").write_text(str(process))
    return processes


def stages(path: Path, folder: Path, repeats: int, address: str, groups: list[Path]) -> None:
    """Go through all stages, and print what each of them took, a line of JSON each."""
    import orion
    from benchmarks.larger_loops import totals, warm_up

    watch = Watch()

    def stage(name: str, work: Callable[[], Any]) -> Any:
        watch.begin()
        begun = time.perf_counter()
        found = work()
        print(json.dumps([name, watch.peak, watch.of_workers, time.perf_counter() - begun]), flush=True)
        return found

    def looped(array: Any) -> bool:
        by_user, by_item = np.zeros(USERS), np.zeros(ITEMS)
        totals(array, by_user, by_item)
        users, items, values = block()
        kept = values > 1
        weights = 2 * values[kept] * repeats
        wanted = (np.bincount(users[kept], weights, USERS), np.bincount(items[kept], weights, ITEMS))
        return bool((by_user == wanted[0]).all() and (by_item == wanted[1]).all())

    on_ray = {"backend": "ray", "address": address, "workers": 2} if address else {}
    orion.init(spill=folder, spill_above="4MB", **on_ray)
    watch.start()
    stage("start", warm_up)
    if address:
        watch.workers = workers_in_groups(groups)
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
def groups_of(limit: int, count: int) -> Iterator[list[Path]]:
    """Cgroups, the processes of each of which have so many bytes together; none where none can be made."""
    paths = [GROUPS / f"orion-larger-{os.getpid()}-{number}" for number in range(count)]
    with ExitStack() as stack:
        try:
            for path in paths:
                path.mkdir()
                stack.callback(path.rmdir)
                (path / "memory.limit_in_bytes").write_text(str(limit))
        except OSError:
            paths = []
        yield paths


def wait_until_empty(groups: list[Path]) -> None:
    """Wait until workers that were ended have left their groups, for ten seconds at most."""
    end = time.monotonic() + 10
    while time.monotonic() < end and any((group / "cgroup.procs").read_text() for group in groups):
        time.sleep(0.1)


@contextmanager
def cluster_of(nodes: int) -> Iterator[str]:
    """The address of a Ray cluster with two CPUs on so many nodes; nothing for none."""
    if not nodes:
        yield ""
        return
    import ray
    from ray.cluster_utils import Cluster

    of_node = {"num_cpus": 2 // nodes, "object_store_memory": 80 * MEGABYTE}
    cluster = Cluster(initialize_head=True, head_node_args=of_node)
    try:
        for _ in range(nodes - 1):
            cluster.add_node(**of_node)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def measured(limit: int, times: int, folder: Path, nodes: int) -> tuple[list[tuple[str, float, float, float]], str]:
    """What each stage took, and how it ended."""
    repeats = round(limit * times / ELEMENT / LINES)
    path = folder / "ratings.csv"
    write_text(path, repeats)

    with cluster_of(nodes) as address, groups_of(limit, 3 if nodes else 1) as groups:

        def begin() -> None:
            if groups:
                (groups[0] / "cgroup.procs").write_text(str(os.getpid()))
            else:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        given = [str(path), str(folder), str(repeats), address, *map(str, groups[1:])]
        command = [sys.executable, "-m", "benchmarks.larger", "--stages", *given]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, preexec_fn=begin)
        wait_until_empty(groups)
    path.unlink()
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    if found.returncode:
        return lines, f"ended by {found.returncode} after {len(lines)} stages"
    _, is_right, count = lines.pop()
    return lines, f"{repeats * LINES:,} elements, {count:,} kept, {'right' if is_right else 'WRONG'}"


def told(peak: float, of_workers: float, seconds: float) -> str:
    """Megabytes of the process and of the worker that has most, and seconds, as a cell of the table."""
    workers = f" + {of_workers:,.0f}" if of_workers else ""
    return f"{peak:,.0f}{workers} MB, {seconds:,.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=384, help="megabytes of the process")
    parser.add_argument("--times", type=int, nargs="+", default=TIMES, help="sizes of data as multiples of the limit")
    parser.add_argument("--folder", help="a folder on a disk, with room for ten times as much")
    parser.add_argument("--nodes", type=int, choices=(0, 1, 2), default=0, help="of a Ray cluster; 0: on threads")
    parser.add_argument("--stages", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.stages:
        path, folder, repeats, address, *groups = asked.stages
        stages(Path(path), Path(folder), int(repeats), address, [*map(Path, groups)])
        return
    limit, console, runs = asked.limit * MEGABYTE, Console(), []
    with groups_of(limit, 1) as groups:
        by = "a cgroup, files in memory among it" if groups else "RLIMIT_DATA, anonymous memory alone"
    of = f"each of the driver and two workers on {asked.nodes} nodes" if asked.nodes else "the process"
    console.print(f"{asked.limit} MB for {of}, by {by}")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for times in asked.times:
            rows, end = measured(limit, times, Path(folder), asked.nodes)
            runs.append({name: told(*figures) for name, *figures in rows})
            console.print(f"{times} x {asked.limit} MB: {end}")
    table = Table("stage", *(f"{times * asked.limit} MB of elements" for times in asked.times))
    for name in runs[0]:
        table.add_row(name, *(run.get(name, "") for run in runs))
    console.print(table)


if __name__ == "__main__":
    main()
