"""Programs that use Ray and end, by themselves or not: nothing is left of them 10 s later.

    python tests/ended_programs.py kill FOLDER             # such a program, which says when it can be ended
    python tests/ended_programs.py error FOLDER ADDRESS    # one that joins a cluster

What is looked for: processes of the Ray that a program started, or of the workers that it had on a cluster, with their
sockets; segments in /dev/shm; files beside those of Ray's logs; and of a program that goes on, its own descriptors and
threads.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orion
from tests.ray_nodes import started_cluster

WAYS = ("shutdown", "return", "error", "interrupt", "kill")
"""By `orion.shutdown`, and the program goes on; with a session that nobody shut down; by an error of a loop; by Ctrl-C;
by SIGKILL. The last two in the middle of a call."""

SECONDS = 10.0

KEPT_OF_A_SESSION = {
    "sockets of Python": 0, "sockets of Ray": 4, "other descriptors": 0, "threads of Python": 0, "threads of Ray": 5,
}  # fmt: skip
"""What Ray itself keeps of a connection that was ended: a socket that had been connected to the head, one to each
process that was just about to connect to this one (the node, two workers), and threads that end at some later time.
Without Orion, it is one or two sockets in most cases, and from session to session not the same number."""

REST_SECONDS = 0.5
"""What is the same for so long has come to rest."""

WAIT_SECONDS = 100.0
STORE = {"object_store_memory": 80 * 1024**2}

Process = tuple[int, str]
"""Its number, and when it was started: numbers are used again."""


@dataclass(frozen=True)
class Left:
    """What is left of a program after `seconds`; `told` is empty where that is nothing."""

    seconds: float
    told: str


@orion.parallel_for
def gather(a, to, out, rounds):
    for _ in range(rounds):
        for i in range(out.shape[0]):
            out[i] += a[to[i]]


# ---------------------------------------------------------------- the program


def program(how: str, folder: str, address: str | None) -> None:
    a, to, out = orion.ones(1000), np.arange(1000) % 10, orion.zeros(1000)
    held = []
    for _ in range(2 if how == "shutdown" else 1):
        orion.init("ray", 2, address=address, force_parallel=True)
        gather(a, to, out, 1)
        orion.checkpoint(folder, every=0.01, out=out)
        team = orion.runtime.session.current_session()._backend._team
        print(json.dumps(sorted({*team.group.processes, *descendants(os.getpid())})), flush=True)
        if how == "shutdown":
            orion.shutdown()
            held.append(held_at_rest())
    if how == "shutdown":
        print(json.dumps(held), flush=True)
        sys.stdin.read()
    elif how == "error":
        gather(a, np.full(1000, 1000), out, 1)
    elif how != "return":
        gather(a, to, out, 10**12)


# ---------------------------------------------------------------- what it holds


Held = dict[str, list[str]]
"""Descriptors of a process, by what they are, and threads, by their names: of each kind a list."""


def held_at_rest() -> Held:
    """What this process holds, once that changes no more: what ends may take a while."""
    start, before, now = time.monotonic(), None, held()
    while now != before and time.monotonic() - start < SECONDS:
        time.sleep(REST_SECONDS)
        before, now = now, held()
    return now


def held() -> Held:
    """What this process holds now. Sockets and threads that Python does not know are Ray's."""
    sockets = [one for one in gc.get_objects() if issubclass(type(one), socket.socket) and one.fileno() >= 0]
    own = {one.fileno(): str(one) for one in sockets}
    links = {int(one): _link(one) for one in os.listdir("/proc/self/fd")}
    of_ray = [number for number, link in links.items() if link.startswith("socket:") and number not in own]
    threads = {one.native_id: one.name for one in threading.enumerate()}
    return {
        "sockets of Python": sorted(own.values()),
        "sockets of Ray": [links[number] for number in of_ray],
        "other descriptors": sorted(link for number, link in links.items() if number not in {*own, *of_ray}),
        "threads of Python": sorted(threads.values()),
        "threads of Ray": [one for one in os.listdir("/proc/self/task") if int(one) not in threads],
    }


def _link(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # that of the folder itself
        return "gone"


def kept(first: Held, second: Held) -> str:
    """What a second session has left that the first one had not, and that is not Ray's to leave; "" for nothing."""
    told = []
    for kind, most in KEPT_OF_A_SESSION.items():
        one, two = first[kind], second[kind]
        if len(two) - len(one) > most:
            told.append(f"{len(one)} {kind} after one session, {len(two)} after two: {one}, then {two}")
    return "; ".join(told)


# ---------------------------------------------------------------- what is left of it


def ends(count: int) -> Iterator[tuple[str, Left]]:
    """So many ends, all ways in turn: of programs with a Ray of their own, then of those that join a cluster."""
    for number in range(min(count, len(WAYS))):
        yield f"{WAYS[number]}, own Ray", end_of(WAYS[number], None)
    if count > len(WAYS):
        yield from _ends_on_a_cluster(WAYS[: count - len(WAYS)])


def _ends_on_a_cluster(ways: tuple[str, ...]) -> Iterator[tuple[str, Left]]:
    import ray

    cluster = started_cluster(num_cpus=1, **STORE)
    try:
        cluster.add_node(num_cpus=1, **STORE)
        for how in ways:
            yield f"{how}, a cluster", end_of(how, cluster.address)
    finally:
        ray.shutdown()
        cluster.shutdown()


def end_of(how: str, address: str | None) -> Left:
    """Run a program, end it, and look what is left."""
    with TemporaryDirectory(prefix="oe") as name:  # names of sockets may have 107 characters
        folder, shared = Path(name), set(os.listdir("/dev/shm"))
        command = [sys.executable, os.path.abspath(__file__), how, str(folder / "run"), *([address] if address else [])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        driver = subprocess.Popen(command, text=True, env=os.environ | {"TMPDIR": name, "RAY_TMPDIR": name}, **pipes)
        try:
            told = [driver.stdout.readline() for _ in range(3 if how == "shutdown" else 1)]
            processes = {one for line in told[:2] for number in json.loads(line) if (one := _process(number))}
            start = time.monotonic()
            if how in ("interrupt", "kill"):
                time.sleep(1.0)  # in the middle of the call
                processes |= {one for number in descendants(driver.pid) if (one := _process(number))}
                start = time.monotonic()
                driver.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGKILL)
            return _left(how, driver, processes, folder, shared, start, told)
        finally:
            driver.kill()
            driver.communicate()


def _left(
    how: str, driver: subprocess.Popen[str], processes: set[Process], folder: Path, shared: set[str], start: float,
    told: list[str],
) -> Left:  # fmt: skip
    errors = {"error": "OutOfBoundsError", "interrupt": "KeyboardInterrupt"}
    if how != "shutdown":
        _, said = driver.communicate(timeout=WAIT_SECONDS)
        if errors.get(how, "") not in said:
            return Left(0.0, f"another end than {how}: {said}")
        start = start if how in errors else time.monotonic()
    else:
        if left := kept(*json.loads(told[2])):
            return Left(0.0, left)
    while found := _found(processes, folder, shared):
        if time.monotonic() - start > SECONDS:
            return Left(time.monotonic() - start, found)
        time.sleep(0.05)
    return Left(time.monotonic() - start, "")


def _found(processes: set[Process], folder: Path, shared: set[str]) -> str:
    started = {f"{number}:{at}" for number, at in processes}
    guards = {one for one in map(_process, _all_processes()) if one and started & {*_command(one[0]).split()}}
    alive = [f"process {one[0]} ({_command(one[0])})" for one in processes | guards if _process(one[0]) == one]
    own = {str(number) for number, _ in processes}
    new = set(os.listdir("/dev/shm")) - shared  # others on this machine have some as well
    segments = [f"/dev/shm/{one}" for one in new if one.startswith("orion-") or own & {*re.findall(r"\d+", one)}]
    files = [str(one) for one in folder.rglob("*") if not _is_expected(one.relative_to(folder)) and not one.is_dir()]
    return ", ".join(alive + segments + files)


def _is_expected(path: Path) -> bool:
    """Ray's own folder of logs, which outlives it; and in that of the checkpoints, these and the lock."""
    is_checkpoint = path.parts[0] == "run" and (path.suffix == ".npz" or path.name == ".lock")
    return path.parts[0] == "ray" or is_checkpoint


# ---------------------------------------------------------------- processes


def descendants(process: int) -> list[int]:
    """The processes that one has started, and those that these have."""
    parents = {}
    for one in _all_processes():
        fields = _fields(one)
        if fields:
            parents[one] = int(fields[1])
    found, new = set(), {process}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return sorted(found)


def _all_processes() -> list[int]:
    return [int(one) for one in os.listdir("/proc") if one.isdecimal()]


def _process(number: int) -> Process | None:
    """A process that is there, and is not only waited for by its parent."""
    fields = _fields(number)
    return None if not fields or fields[0] == "Z" else (number, fields[19])


def _fields(process: int) -> list[str]:
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return "gone"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has its programs ignore it
    program(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
