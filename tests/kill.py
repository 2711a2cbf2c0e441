"""Kills at random moments, between calls and in the middle of them; results are compared, bit for bit, with those of a
run in which nobody dies. Then programs that end, by themselves or not, of which nothing may be left.

    python tests/kill.py                  # all kinds, as many of each as below; `make kill` does the same
    python tests/kill.py --kills 10 --seed 3 --kind node

The programs: SGD matrix factorization, whose factors are Orion's own arrays, and Gauss-Seidel sweeps over a NumPy
array. What is killed, always by SIGKILL:

    worker      a worker process, all of them being on one node
    again       one, and then one of those that do the call again
    elsewhere   a worker process on another node than the driver's
    node        such a node, its raylet and its workers; another one takes its place, or workers go on that are left
    idle        a worker process, or both, right before a call: the call says nothing of it
    idle_there  the same on another node than the driver's
    driver      the driver while it writes a checkpoint (`tests/killed_driver.py`); a new one goes on from the newest
    end         no worker: a program ends by itself, by an error, by Ctrl-C or by SIGKILL (`tests/ended_programs.py`)

Exits with 1 where a result differs, where a call raises, where one warns of a death between calls, and where something
is left of a program 10 s after its end.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orion
from tests.ended_programs import ends
from tests.killed_driver import driver_kills
from tests.ray_nodes import started_cluster
from tests.test_promise import epochs as sgd

CALLS = 3
"""The calls of a program between two comparisons; the kill falls into one of them."""

WORKERS = 2

SHARES = {
    "worker": 40, "again": 10, "elsewhere": 20, "node": 20, "driver": 10, "idle": 30, "idle_there": 20, "end": 8,
}  # fmt: skip
"""How many of each kind: a hundred at random moments, fifty between calls, eight ends."""

STORE = {"object_store_memory": 80 * 1024**2}


@orion.parallel_for
def gauss_seidel(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@dataclass(frozen=True)
class Program:
    """`fresh()` gives new arguments, the same each time; `call` runs it on them."""

    name: str
    fresh: Callable[[], tuple[Any, ...]]
    call: Callable[..., None]

    def run(self, arguments: tuple[Any, ...], before: Callable[[int], None] = lambda _: None) -> list[bytes]:
        """The arrays after all calls; `before` is called with the number of each before it."""
        for number in range(CALLS):
            before(number)
            self.call(*arguments)
        arrays = [one for one in arguments if isinstance(one, np.ndarray | orion.DenseArray)]
        return [np.asarray(one).tobytes() for one in arrays]


@dataclass(frozen=True)
class Sizes:
    """Epochs of a call, and the size of the square that others sweep over, and how often."""

    epochs: int
    square: int
    sweeps: int


def factors(epochs: int, ratings: int = 100_000) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2000, ratings), rng.integers(0, 1500, ratings)
    data = orion.sparse(keys, rng.random(ratings, np.float32), shape=(2000, 1500))
    W, H = (orion.uniform((n, 16), dtype="float32", seed=n) for n in (2000, 1500))
    return data, W, H, np.float32(0.01), np.float32(0.02), epochs


def square(size: int, sweeps: int) -> tuple[Any, ...]:
    return np.random.default_rng(0).random((size, size)), sweeps


def programs(sizes: Sizes) -> tuple[Program, Program]:
    sweeping = Program("gauss_seidel", partial(square, sizes.square, sizes.sweeps), gauss_seidel)
    return Program("sgd", partial(factors, sizes.epochs), sgd), sweeping


@dataclass(frozen=True)
class Kill:
    """What one kill did: seconds after the first call began, whether it came in the middle of a call (of the driver: of
    a checkpoint), what all calls took (of the driver: what it took the next one to go on)."""

    kind: str
    program: str
    at: float
    is_inside: bool
    seconds: float
    wrong: str


# ---------------------------------------------------------------- who is killed


class OneNode:
    """A session on a Ray of its own."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def group(self) -> Any:
        """The workers that there are; None while there are none."""
        team = self.session._backend._team
        return None if team is None else team.group

    def worker(self, chance: random.Random) -> Callable[[Event], None]:
        """Kills one worker."""
        victim = chance.choice(self.group().processes)
        return lambda _: os.kill(victim, signal.SIGKILL)

    def again(self, chance: random.Random) -> Callable[[Event], None]:
        """Kills one worker, and then one of those that come after it, until all calls are `over`."""
        before, later = self.group(), chance.uniform(0, 0.3)
        victim, number = chance.choice(before.processes), chance.randrange(WORKERS)

        def kill(over: Event) -> None:
            os.kill(victim, signal.SIGKILL)
            while (group := self.group()) is None or group is before or not hasattr(group, "processes"):
                if over.wait(0.01):
                    return
            over.wait(later)
            os.kill(group.processes[number], signal.SIGKILL)

        return kill

    def idle(self, chance: random.Random) -> None:
        """Kills a worker, or all, and waits a while or not."""
        for victim in chance.sample(self.group().processes, chance.choice((1, WORKERS))):
            os.kill(victim, signal.SIGKILL)
        time.sleep(chance.choice((0.0, 0.0, 0.1 * chance.random())))

    def mend(self) -> None:
        """Have as many workers as before."""


class SeveralNodes(OneNode):
    """A session on a cluster whose nodes have one CPU each."""

    def __init__(self, session: Any, cluster: Any) -> None:
        super().__init__(session)
        self._cluster = cluster

    def elsewhere(self, chance: random.Random) -> Callable[[Event], None]:
        """Kills a worker on another node than the driver's."""
        group = self.group()
        victim = chance.choice([p for p, node in self._workers() if node != group.driver_node])
        return lambda _: os.kill(victim, signal.SIGKILL)

    def idle_there(self, chance: random.Random) -> None:
        """Kills a worker on another node than the driver's, and waits a while or not."""
        self.elsewhere(chance)(Event())
        time.sleep(chance.choice((0.0, 0.0, 0.1 * chance.random())))

    def node(self, chance: random.Random) -> Callable[[Event], None]:
        """Kills another node than the driver's with all that is on it, or its raylet alone, without which the others
        end by themselves. In half of the cases there is a node to take its place."""
        if chance.random() < 0.5:
            self._cluster.add_node(num_cpus=1, **STORE)
        lost = chance.choice([node for _, node in self._workers() if node != self.group().driver_node])
        there = [one for one in self._cluster.list_all_nodes() if one.node_id == lost]
        victims = [one.process.pid for node in there for one in node.all_processes["raylet"]]
        if chance.random() < 0.5 or not there:  # its workers may outlive their raylet for long
            victims += [process for process, node in self._workers() if node == lost]

        def kill(_: Event) -> None:
            for victim in victims:
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)

        return kill

    def mend(self) -> None:
        """Have one node for each worker, all alive."""
        nodes = self._cluster.list_all_nodes()
        dead = [one for one in nodes if one.all_processes["raylet"][0].process.poll() is not None]
        alive = [one for one in nodes if one not in dead]
        used = () if self.group() is None else self.group().nodes
        idle = [one for one in alive[1:] if one.node_id not in used]  # the first is the driver's
        for one in dead + idle[: max(0, len(alive) - WORKERS)]:
            self._cluster.remove_node(one)
        for _ in range(WORKERS - len(alive)):
            self._cluster.add_node(num_cpus=1, **STORE)
        if self.session.workers < WORKERS:
            orion.scale(WORKERS)

    def _workers(self) -> Iterator[tuple[int, str]]:
        return zip(self.group().processes, self.group().nodes, strict=True)


@contextmanager
def one_node(_: dict[str, int]) -> Iterator[OneNode]:
    with orion.session("ray", WORKERS, force_parallel=True) as session:
        yield OneNode(session)


@contextmanager
def several_nodes(of_ray: dict[str, int]) -> Iterator[SeveralNodes]:
    import ray

    cluster = started_cluster(num_cpus=1, _system_config=of_ray, **STORE)
    try:
        cluster.add_node(num_cpus=1, **STORE)
        with orion.session("ray", WORKERS, address=cluster.address, force_parallel=True) as session:
            yield SeveralNodes(session, cluster)
    finally:
        ray.shutdown()
        cluster.shutdown()


PLACES: tuple[tuple[tuple[str, ...], Any, Sizes], ...] = (
    (("worker", "again", "idle"), one_node, Sizes(200, 1200, 150)),
    (("elsewhere", "node", "idle_there"), several_nodes, Sizes(40, 2400, 25)),
)
"""Kinds of kills, where they happen, and the sizes of a call there: nodes send each other messages in each epoch and
sweep, for which they wait long where the machine has other work."""


# ---------------------------------------------------------------- kills


def kills(program: Program, place: OneNode, counts: dict[str, int], chance: random.Random) -> tuple[float, list[Kill]]:
    """So many kills of each kind, in any order, and the seconds that the calls take without one."""
    with orion.session("threads", WORKERS, force_parallel=True):
        expected = program.run(program.fresh())
    program.call(*program.fresh())  # starts the workers
    usual = timed(lambda: program.run(program.fresh()))
    wanted = [kind for kind, count in counts.items() for _ in range(count)]
    chance.shuffle(wanted)
    done = {"idle": one_idle_kill, "idle_there": one_idle_kill}
    return usual, [done.get(kind, one_kill)(kind, program, expected, place, chance) for kind in wanted]


def one_kill(kind: str, program: Program, expected: list[bytes], place: OneNode, chance: random.Random) -> Kill:
    """One at any moment of the calls, as long as they take now, or soon after them."""
    usual = CALLS * ready(program, place)
    arguments = program.fresh()
    at, kill, over, early = chance.uniform(0, 1.1 * usual), getattr(place, kind)(chance), Event(), Event()
    killer = Thread(target=lambda: (time.sleep(at), early.set() if not over.is_set() else None, kill(over)))
    killer.start()
    seconds, wrong, told = outcome(lambda: program.run(arguments), expected)
    over.set()
    killer.join()
    again = [one for one in told if "is done again" in one]
    if len(again) > 1 + (kind == "again") or (again and not early.is_set()):
        wrong = wrong or f"warned {len(again)} times of one death"
    return Kill(kind, program.name, at, bool(again), seconds, wrong)


def one_idle_kill(kind: str, program: Program, expected: list[bytes], place: OneNode, chance: random.Random) -> Kill:
    """One right before one of the calls, none of which may warn of anything."""
    ready(program, place)
    arguments, which = program.fresh(), chance.randrange(CALLS)
    before = lambda number: getattr(place, kind)(chance) if number == which else None  # noqa: E731
    seconds, wrong, told = outcome(lambda: program.run(arguments, before), expected)
    wrong = wrong or (f"warned of a death between calls: {told[0]}" if told else "")
    return Kill(kind, program.name, which, False, seconds, wrong)


def ready(program: Program, place: OneNode) -> float:
    """The seconds that a call takes, once there are as many workers as before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.WorkerReplacedWarning)  # of a death after all calls
        for _ in range(2):  # the first may find that a node is gone
            place.mend()
            seconds = timed(lambda: program.call(*program.fresh()))
    return seconds


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def outcome(run: Callable[[], list[bytes]], expected: list[bytes]) -> tuple[float, str, list[str]]:
    """The seconds that a run takes, what is wrong with its results, and what it warns of."""
    wrong, start = "", time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            if run() != expected:
                wrong = "another result"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
    return time.perf_counter() - start, wrong, [str(one.message) for one in told]


def counted(total: int, kinds: Sequence[str]) -> dict[str, int]:
    """How many kills of each kind, of `total` together, in proportion."""
    whole, left, found = sum(SHARES[kind] for kind in kinds), total, {}
    for kind in kinds:
        found[kind] = round(left * SHARES[kind] / whole)
        left, whole = left - found[kind], whole - SHARES[kind]
    return found


def all_kills(
    counts: dict[str, int], seed: int, of_ray: dict[str, int] | None = None
) -> Iterator[tuple[str, float, list[Kill]]]:
    """All kills, with what they are of, and the seconds that this takes without one. `of_ray` are settings of the
    clusters."""
    chance = random.Random(seed)
    for kinds, open_place, sizes in PLACES:
        if not any(counts.get(kind) for kind in kinds):
            continue
        with open_place(of_ray or {}) as place:
            for number, program in enumerate(programs(sizes)):
                own = {kind: (counts.get(kind, 0) + number) // 2 for kind in kinds}
                if not any(own.values()):
                    continue
                usual, found = kills(program, place, own, chance)
                for kind in (one for one, count in own.items() if count):
                    yield f"{kind}, {program.name}", usual, [one for one in found if one.kind == kind]
    for backend, count in (("threads", (counts.get("driver", 0) + 1) // 2), ("ray", counts.get("driver", 0) // 2)):
        if count:
            usual, lives = driver_kills(backend, count, chance)
            yield f"driver, on {backend}", usual, [Kill("driver", backend, *one) for one in lives]
    for how, left in ends(counts.get("end", 0)):
        yield f"end, {how}", left.seconds, [Kill("end", how, 0.0, False, left.seconds, left.told)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, help="how many, over all kinds (default: as many of each as are listed)")
    parser.add_argument("--kind", action="append", choices=[*SHARES], help="kills of this kind only")
    parser.add_argument("--seed", type=int, default=0, help="what moments and victims are drawn from (default: 0)")
    options = parser.parse_args()
    kinds = options.kind or [*SHARES]
    counts = counted(options.kills or sum(SHARES[kind] for kind in kinds), kinds)
    bad, total, start = 0, 0, time.perf_counter()
    print(f"{'':24}{'kills':>6}{'same':>6}{'without':>9}  inside: median, max (kills)  outside: median, max (kills)")
    for name, usual, found in all_kills(counts, options.seed):
        wrong = [one for one in found if one.wrong]
        bad, total = bad + len(wrong), total + len(found)
        inside = _seconds([one.seconds for one in found if one.is_inside])
        outside = _seconds([one.seconds for one in found if not one.is_inside])
        print(f"{name:24}{len(found):6}{len(found) - len(wrong):6}{usual:7.2f} s  {inside:28} {outside}", flush=True)
        for one in wrong:
            print(f"  at {one.at:.3f} s: {one.wrong}")
    print(f"{total} kills, {total - bad} results the same, {time.perf_counter() - start:.0f} s, {os.cpu_count()} CPUs")
    sys.exit(1 if bad else 0)


def _seconds(found: list[float]) -> str:
    return f"{median(found):.2f} s, {max(found):.2f} s ({len(found)})" if found else "–"


if __name__ == "__main__":
    main()
