"""What workers do with flags, control rows and boxes, step by step, for the checker of `tests.oracles.protocol`.

Functions have the names of those of the code that they follow: of `orion.kernel.build.walker_text`,
`orion.kernel.support` and `orion.runtime.threads`. Names in `weak` weaken one place each: an ordering that is relaxed
there, or a step that is done otherwise.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from orion.kernel.calling import ABORT, GO, OUT_OF_BOUNDS
from orion.kernel.parking import AWAY, CALLED, PARKED, POSTED
from orion.runtime.barrier import make_barrier
from tests.oracles.protocol import (
    ACQUIRE,
    BOTH,
    RELAXED,
    RELEASE,
    Case,
    Step,
    compare_exchange,
    exchange,
    load,
    read,
    release,
    store,
    take,
    wait,
    write,
)

Steps = Generator[Step, Any, Any]
CLAIMED = -1
STAY = "stay"


class Weakened:
    """Workers of which some places are weakened."""

    def __init__(self, workers: int, weak: str = "") -> None:
        self.workers, self.weak = workers, weak
        self.all = range(workers)

    def order(self, place: str, order: int) -> int:
        return RELAXED if place == self.weak else order

    def others(self, worker: int) -> list[int]:
        return [other for other in self.all if other != worker]


class Flags(Weakened):
    """Workers that walk over tiles."""

    def is_ready(self, flags: list[str], needed: int, control: str = "") -> Steps:
        order = self.order("is_ready: load_acquire", ACQUIRE)
        tests = {control: lambda found: found != GO} if control and self.weak != "is_ready: no is_left" else {}
        for flag in flags:
            found = yield wait({flag: lambda found: found >= needed} | tests, order)
            if found == control:
                return False
        return True if not control else (yield load(control, ACQUIRE)) == GO

    def finish(self, flag: str, round: int) -> Steps:
        yield store(flag, round + 1, self.order("finish: store_release", RELEASE))

    def meet(self, worker: int, round: int, control: str = "") -> Steps:
        """The walk over the two tiles of a barrier, which have no work."""
        barrier = make_barrier(self.workers)
        for tile in barrier.order[worker].tolist():
            waits = barrier.waits[barrier.wait_offsets[tile] : barrier.wait_offsets[tile + 1]]
            if not (yield from self.is_ready([f"meeting {k}" for k in waits.tolist()], round + 1, control)):
                return False
            if tile < self.workers:  # nobody waits for the others
                yield store(f"meeting {tile}", round + 1, self.order("finish: store_release", RELEASE))
        return True

    def two_tiles(self, worker: int, round: int = 0, rounds: int = 2) -> Steps:
        """Tile 1 waits for tile 0, and tile 0 for tile 1 of the round before."""
        if round == rounds:
            return None
        yield from self.is_ready([f"done {1 - worker}"], round + worker)
        found = yield read("element")
        assert found == 2 * round + worker
        yield write("element", found + 1)
        yield from self.finish(f"done {worker}", round)
        return self.two_tiles, worker, round + 1, rounds

    def meetings(self, worker: int, round: int = 0, rounds: int = 2) -> Steps:
        """Loops with a barrier between each and the next one, which reads what all have written."""
        yield write(f"own {worker} {round & 1}", round)
        if round == rounds:
            return None
        yield from self.meet(worker, round)
        for other in self.others(worker):
            assert (yield read(f"own {other} {round & 1}")) == round
        return self.meetings, worker, round + 1, rounds

    def rounds(self, worker: int, round: int = 0, rounds: int = 3) -> Steps:
        """A loop with results, of which rounds have two arrays in turn (`wait_for_all`)."""
        if round == rounds:
            return None
        turn = 0 if self.weak == "one array of results" else round & 1
        yield write(f"result {worker} {turn}", round)
        yield from self.finish(f"done {worker}", round)
        yield from self.is_ready([f"done {other}" for other in self.others(worker)], round + 1)
        for other in self.all:
            assert (yield read(f"result {other} {turn}")) == round
        return self.rounds, worker, round + 1, rounds

    def walk_taking(self, worker: int, tiles: int = 3) -> Steps:
        """One round of tiles that workers take, the last of which waits for the first; then a barrier."""
        acquire = self.order("take: load_acquire of done", ACQUIRE)
        for tile in range(tiles):
            if (yield load(f"begun {tile}", self.order("take: orderings of begun", ACQUIRE))) > 0:
                continue
            if tile == tiles - 1:
                yield wait({"done 0": lambda found: found >= 1}, acquire)
            if self.weak == "take: compare_exchange":
                yield store(f"begun {tile}", 1, RELEASE)
            elif (yield compare_exchange(f"begun {tile}", 0, 1, self.order("take: orderings of begun", BOTH))) != 0:
                continue
            if tile == tiles - 1:
                assert (yield read("element 0")) == 1
            found = yield read(f"element {tile}")
            yield write(f"element {tile}", found + 1)
            yield from self.finish(f"done {tile}", 0)
        yield from self.meet(worker, 0)
        for tile in range(tiles):
            assert (yield read(f"element {tile}")) == 1

    def case(self, name: str) -> Case:
        numbers = [f"{k} {turn}" for k in self.all for turn in (0, 1)]
        flags = {f"{kind} {k}": 0 for kind in ("done", "meeting") for k in self.all}
        plain = {f"{kind} {number}": -1 for kind in ("own", "result") for number in numbers}
        if name == "walk_taking":
            flags |= {f"{kind} {k}": 0 for kind in ("done", "begun") for k in range(3)}
            plain = {f"element {k}": 0 for k in range(3)}
        return Case(tuple((getattr(self, name), worker) for worker in self.all), flags, plain | {"element": 0})


class Parking(Weakened):
    """Worker 0 that posts jobs and has other runs in between, and members of a pool with a box each."""

    def __init__(self, workers: int, script: tuple[str, ...], weak: str = "") -> None:
        super().__init__(workers, weak)
        self.script, self.members = script, range(1, workers)

    # ------------------------------------------------------------ compiled code

    def follow(self, worker: int, job: int) -> Steps:
        """A job reads what all workers have written in the job before, and writes once."""
        for other in self.all if job > 1 else ():
            assert (yield read(f"out {other} {1 - job & 1}")) == job - 1
        assert (yield read(f"out {worker} {job & 1}")) == max(job - 2, 0), "a job is done again"
        yield write(f"out {worker} {job & 1}", job)

    def serve(self, worker: int, woken_by: int = 0) -> Steps:
        box = f"box {worker}"
        if self.weak == "serve: comes in by a plain store":
            yield store(box, PARKED, RELEASE)
        elif (yield compare_exchange(box, AWAY, PARKED, self.order("serve: compare_exchange", BOTH))) != AWAY:
            yield compare_exchange(box, CALLED, PARKED, self.order("serve: compare_exchange", BOTH))
        return self.serving, worker, woken_by

    def serving(self, worker: int, woken_by: int) -> Steps:
        box = f"box {worker}"
        found = yield load(box, self.order("serve: load_acquire", ACQUIRE))
        if found == POSTED:
            job = yield read(f"post {worker}")
            assert woken_by in (0, job), "an error of this job would be noted for another program"
            yield from self.follow(worker, job)
            yield store(box, PARKED, self.order("serve: store_release", RELEASE))
        elif self.weak == "serve: leaves by a plain store":
            yield store(box, AWAY, RELEASE)
            return self.member, worker
        else:  # it is called, or has waited for long enough
            order = self.order("serve: compare_exchange", BOTH)
            if (yield compare_exchange(box, found, AWAY, order)) == found:
                return self.member, worker
        return self.serving, worker, woken_by

    def lead(self, job: int) -> Steps:
        is_away = False
        for worker in self.members:
            box = f"box {worker}"
            yield write(f"post {worker}", job)
            order = {"lead: release of compare_exchange": ACQUIRE, "lead: acquire of compare_exchange": RELEASE}
            if self.weak == "lead: no compare_exchange":
                found = yield load(box, ACQUIRE)
                yield store(box, POSTED, RELEASE)
                is_away |= found != PARKED
            elif (yield compare_exchange(box, PARKED, POSTED, order.get(self.weak, BOTH))) != PARKED:
                yield store(box, POSTED, self.order("lead: store_release", RELEASE))
                is_away = True
        return is_away

    def gather(self) -> Steps:
        for worker in self.members:
            order = self.order("gather: load_acquire", ACQUIRE)
            yield wait({f"box {worker}": lambda found: found != POSTED}, order)

    # ------------------------------------------------------------ Python, by its locks

    def give(self, worker: int, job: Any) -> Steps:
        yield exchange(f"job {worker}", lambda found: job)
        yield release(f"wake {worker}")

    def member(self, worker: int) -> Steps:
        """`Member._serve`: at its locks, and at `job` and `unfinished`, which the interpreter's lock is for."""
        yield take(f"wake {worker}")
        job = yield exchange(f"job {worker}", lambda found: None)
        if job in (STAY, *range(1, len(self.script))):
            return self.serve, worker, 0 if job == STAY else job
        if job != "end" and worker in (yield exchange("unfinished", lambda found: None)):
            yield write(f"body {worker}", job)
            before = yield exchange("unfinished", lambda found: found - {worker})
            if before == {worker}:
                yield release("all_done")
        return None if job == "end" else (self.member, worker)

    def call(self) -> Steps:
        """`Pool._call`, which looks at all boxes first."""
        parked = []
        for worker in self.members:
            if (yield load(f"box {worker}", RELAXED)) == PARKED:
                parked.append(worker)
        for worker in parked:
            yield store(f"box {worker}", CALLED, RELAXED)

    def leading(self, step: int = 0) -> Steps:
        """Worker 0: each step of the script is a job that is `posted`, a `run` of the pool by all members, or one by
        worker 0 alone, for which the others are `called` only."""
        if step == len(self.script):
            yield from self.call()
            for worker in self.members:
                yield from self.give(worker, "end")
            return None
        job = 1 + self.script[:step].count("posted")
        if self.script[step] == "called":
            yield from self.call()
            return self.leading, step + 1
        if self.script[step] == "run":
            yield exchange("unfinished", lambda found: frozenset(self.members))
            yield from self.call()
            for worker in self.members:
                yield from self.give(worker, f"run {step}")
            yield take("all_done")
            for worker in self.members:
                assert (yield read(f"body {worker}")) == f"run {step}"
            return self.leading, step + 1
        if (yield from self.lead(job)) and self.weak != "park: nobody is woken":
            for worker in self.members:
                yield from self.give(worker, job if self.weak == "serve: notes errors for who woke it" else STAY)
        yield from self.follow(0, job)
        yield from self.gather()
        for worker in self.members:
            assert (yield read(f"out {worker} {job & 1}")) == job, "a job is not done"
        return self.leading, step + 1

    def case(self) -> Case:
        atomic = {"unfinished": frozenset[int](), "all_done": 0}
        plain = {f"out {worker} {turn}": 0 for worker in self.all for turn in (0, 1)}
        for worker in self.members:
            atomic |= {f"box {worker}": AWAY, f"wake {worker}": 0, f"job {worker}": ""}
            plain |= {f"post {worker}": 0, f"body {worker}": ""}
        return Case(((self.leading,), *((self.member, worker) for worker in self.members)), atomic, plain)


class Leaving(Flags):
    """Worker 0 that leads, and two more, after posting: one or both of them meet an error in their tiles."""

    def __init__(self, failing: tuple[int, ...], weak: str = "") -> None:
        super().__init__(3, weak)
        self.failing = failing

    def follow(self, worker: int) -> Steps:
        """A tile of each worker in a loop, that of worker 0 after that of worker 1; then a barrier."""
        if worker == 0 and not (yield from self.is_ready(["done 1"], 1, "control 0")):
            return
        if worker in self.failing:
            yield from self.tell_outside(worker)
            return
        yield from self.finish(f"done {worker}", 0)
        yield from self.meet(worker, 0, "control 1")

    def tell_outside(self, worker: int) -> Steps:
        if self.weak == "tell_outside: no compare_exchange":
            yield store("control 0", CLAIMED, BOTH)
        elif (yield compare_exchange("control 0", GO, CLAIMED)) != GO:
            return
        yield write("details", worker)
        yield store("control 0", OUT_OF_BOUNDS, self.order("tell_outside: store_release", RELEASE))

    def abort(self) -> Steps:
        """`RunMemory.abort`: it looks at all rows first."""
        rows = ["control 0", "control 1"]
        going = []
        for row in rows if self.weak != "abort: of its own loop" else rows[:1]:
            if (yield load(row, RELAXED)) == GO:
                going.append(row)
        for row in going:
            yield store(row, ABORT, RELAXED)

    def serve(self, worker: int) -> Steps:
        """`Leading.serve`, from where the worker has seen what is posted."""
        yield from self.follow(worker)
        if worker not in self.failing:
            yield store(f"box {worker}", PARKED, RELEASE)
            return
        yield take("interpreter")
        yield from self.abort()
        if self.weak != "serve: the box stays as it is":
            yield store(f"box {worker}", AWAY, RELAXED)
        yield release("interpreter")

    def leading(self) -> Steps:
        yield from self.follow(0)
        for worker in (1, 2):
            yield wait({f"box {worker}": lambda found: found != POSTED}, ACQUIRE)
        yield take("interpreter")
        assert (yield load("control 0", RELAXED)) == OUT_OF_BOUNDS
        assert (yield read("details")) in self.failing

    def interrupted(self, worker: int) -> Steps:
        """A handler raises in worker 0 (`gather`). Worker 1 is in a long tile of loop 0, worker 2 waits in loop 1."""
        if worker == 0:
            yield compare_exchange("control 0", GO, ABORT)
            for row in ("control 0", "control 1") if self.weak != "gather: no leave_all" else ():
                yield compare_exchange(row, GO, ABORT)
            for other in (1, 2):
                yield wait({f"box {other}": lambda found: found != POSTED}, ACQUIRE)
                assert (yield read(f"left {other}"))
            return
        if worker == 1:
            yield wait({"control 0": lambda found: found != GO}, ACQUIRE)
        else:
            yield from self.is_ready(["done 1"], 1, "control 1")
        yield write(f"left {worker}", 1)
        yield store(f"box {worker}", PARKED, RELEASE)

    def interrupted_case(self) -> Case:
        return replace(self.case(), threads=tuple((self.interrupted, worker) for worker in self.all))

    def case(self) -> Case:
        atomic = {f"{kind} {k}": 0 for kind in ("done", "meeting") for k in self.all}
        atomic |= {"control 0": GO, "control 1": GO, "box 1": POSTED, "box 2": POSTED, "interpreter": 1}
        plain = {"details": 0, "left 1": 0, "left 2": 0}
        return Case(((self.leading,), (self.serve, 1), (self.serve, 2)), atomic, plain)
