"""Random loop nests through every oracle, for as long as you like.

    python tests/fuzz.py --minutes 10                 # or: make fuzz
    python tests/fuzz.py --nests 3000 --seed 5 --jobs 2
    python tests/fuzz.py --kind places --nests 5000   # loops of one trip, in rounds, on one line, in one place
    python tests/fuzz.py --kind names --nests 1000    # variables called `max`, `len`, `np`, `tile`
    python tests/fuzz.py --replay FILE                # a file that an earlier run has kept

Each nest is planned and its schedules are proved; its generated kernels are run by the Python interpreter in several
orders of the tiles on one, two and three workers and compared, bit for bit, with the undecorated function; the verdict
on every `for` is compared with dependences found by brute force, that on a serial one at many sizes. One nest in two
hundred is compiled and run on threads, of those with slices or with numbers of few bits more. Where the undecorated
function leaves an array, Orion must say so. In between, random files of CSV are read.
Exits with 1 if a verdict was unsound, a result wrong, a schedule not proved, or if anything crashed or did not end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.oracles.csv_files import check_file, random_file
from tests.oracles.nest_check import check_nest
from tests.oracles.nest_strategy import KINDS, random_nest
from tests.oracles.nests import Nest, read_nest
from tests.oracles.reduce import reduced
from tests.oracles.tally import Failure, Tally

COMPILE_EVERY, COMPILE_OFTEN_EVERY = 200, 8
"""One nest in so many is compiled and run on threads; more of those of which interpreted kernels tell less: those
compute with NumPy's rules for slices and dtypes, machine code with Numba's."""

THOROUGH_EVERY = 8
FILE_EVERY = 4
"""After one nest in so many a file of CSV is read."""

HANG_SECONDS, WAIT_SECONDS = 20.0, 600.0
"""A nest that takes more processor time, or is not done after the second, is reported and its process ended."""

COMPILE_SECONDS = 40.0
"""More of both for a nest that is compiled: Numba and LLVM take up to 15 s for a nest in boxes of a new order, and one
with sums is compiled twice."""

RENEW_AFTER = 500
"""Nests after which a worker process is replaced by a new one: compiled code is never freed."""

REDUCE_SECONDS = 40.0
SHOWN_PER_KEY = 3
"""Failures of one kind that are made smaller and printed; further ones are counted."""


@dataclass(frozen=True)
class Job:
    """What a worker process does: nests number `first`, `first + stride`, … of a seed."""

    seed: int
    first: int
    stride: int
    kind: str = "any"
    compile_every: int | None = None

    @property
    def end(self) -> int:
        """The number after the last nest before the process is replaced."""
        return self.first + RENEW_AFTER * self.stride


# ---------------------------------------------------------------- in a worker process


def work(job: Job, end: Connection) -> None:
    """Check nests, and say at each what became of it."""
    warnings.simplefilter("ignore")
    shown: Counter[str] = Counter()
    for number in range(job.first, job.end, job.stride):
        end.send(("begin", number))
        tally = Tally()
        begun = process_time()
        nest = random_nest(job.seed, number, job.kind)
        failure = checked(nest, number, tally, lambda: end.send(("compiles",)), job.compile_every)
        if number % FILE_EVERY == 0:
            told = wrong_file(job.seed, number, tally)
            if told:
                end.send(("wrong file", number, told))
        tally.examples |= dict.fromkeys(tally.missed, number)
        tally.counts["milliseconds"] += round(1000 * (process_time() - begun))
        if failure is not None:
            tally.counts[failure.kind] += 1
            shown[failure.key] += 1
            if shown[failure.key] <= SHOWN_PER_KEY:
                end.send(("failed", number, failure.key, str(failure)))
                least = smaller(nest, number, failure.key, job.compile_every)
                end.send(("reduced", number, least.file_text(str(failure), command(job.seed, number, job.kind))))
        end.send(("end", tally))
    end.send(("renew", job.end))


def wrong_file(seed: int, number: int, tally: Tally) -> str:
    """What is wrong with how a file of that number is read, nothing if it is right."""
    file = random_file(seed, number)
    tally.counts["files"] += 1
    try:
        check_file(file)
    except Exception as error:  # whatever it is, a file must not raise it
        tally.counts["wrong files"] += 1
        return f"{type(error).__name__}: {error}\n{file}"
    return ""


def checked(
    nest: Nest,
    number: int,
    tally: Tally,
    compiles: Callable[[], None] = lambda: None,
    compile_every: int | None = None,
) -> Failure | None:
    """The failure of a nest, if it fails; `compiles` is called where it is about to be compiled."""
    compiled = is_compiled(nest, number, compile_every)
    thorough, before = number % THOROUGH_EVERY == 0, tally.counts["unproved"]
    try:
        check_nest(nest, tally, compiled=compiled, thorough=thorough, compiles=compiles)
    except Failure as failure:
        return failure
    if tally.counts["unproved"] > before:
        return Failure("proof", "the plan is right, and not proved", "what is right is not proved")
    return None


def is_compiled(nest: Nest, number: int, every: int | None) -> bool:
    """Whether a nest is compiled: one in `every`, or in so many as its kind asks for."""
    often = nest.has_slices or nest.has_other_dtypes or nest.scalars
    every = every or (COMPILE_OFTEN_EVERY if often else COMPILE_EVERY)
    return number % every == every // 2


def smaller(nest: Nest, number: int, key: str, compile_every: int | None = None) -> Nest:
    """The nest, made smaller while it fails in the same way."""

    def fails(candidate: Nest) -> bool:
        try:
            failure = checked(candidate, number, Tally(), compile_every=compile_every)
        except IndexError:  # the oracles run nests only that stay in their arrays
            return False
        return failure is not None and failure.key == key

    return reduced(nest, fails, REDUCE_SECONDS)


def command(seed: int, number: int, kind: str = "any") -> str:
    return f"python tests/fuzz.py --kind {kind} --seed {seed} --first {number} --nests 1"


# ---------------------------------------------------------------- in the first process


@dataclass
class Runner:
    """A worker process and the nest that it is at."""

    job: Job
    process: multiprocessing.process.BaseProcess
    messages: Connection
    number: int = -1
    limits: tuple[float, float] = (0.0, 0.0)

    def allow(self, more: float = 0.0) -> None:
        """Give it the time that one nest may take, and `more`, from now on."""
        self.limits = self.used() + HANG_SECONDS + more, monotonic() + WAIT_SECONDS + more

    def is_hanging(self) -> bool:
        return self.number >= 0 and (self.used() > self.limits[0] or monotonic() > self.limits[1])

    def used(self) -> float:
        """The processor time that the process has used, in seconds; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Fuzzer:
    """The worker processes and what they have found."""

    seed: int
    jobs: int
    first: int
    nests: int | None
    until: float
    keep: Path | None
    kind: str = "any"
    compile_every: int | None = None
    tally: Tally = field(default_factory=Tally)
    keys: Counter[str] = field(default_factory=Counter)
    runners: list[Runner] = field(default_factory=list)

    def run(self) -> None:
        """Fuzz until the time is over or enough nests are done."""
        started = printed = monotonic()
        for k in range(self.jobs):
            self.start(Job(self.seed, self.first + k, self.jobs, self.kind, self.compile_every))
        try:
            while monotonic() < self.until and self.runners:
                for runner in self.ready():
                    self.hear(runner)
                self.end_hanging()
                if monotonic() - printed > 60:
                    printed = monotonic()
                    self.report(printed - started)
        finally:
            for runner in self.runners:
                runner.process.kill()
        self.report(monotonic() - started)

    def start(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(job, there), daemon=True)
        process.start()
        there.close()
        self.runners.append(Runner(job, process, here))

    def ready(self) -> Iterator[Runner]:
        able = wait([runner.messages for runner in self.runners], timeout=1.0)
        yield from [runner for runner in self.runners if runner.messages in able]

    def hear(self, runner: Runner) -> None:
        """Take one message of a worker."""
        try:
            message: tuple[Any, ...] = runner.messages.recv()
        except EOFError:
            self.lost(runner, "crash", "its process ended")
            return
        match message:
            case ("begin", number):
                runner.number = number
                runner.allow()
                if self.nests is not None and number >= self.first + self.nests:
                    self.runners.remove(runner)
                    runner.process.kill()
            case ("compiles",):
                runner.allow(COMPILE_SECONDS)
            case ("failed", number, key, text):
                self.keys[key] += 1
                runner.allow(REDUCE_SECONDS)
                print(f"\nnest {number}: {text}", flush=True)
            case ("wrong file", number, text):
                print(f"\nfile {number}: {text}", flush=True)
            case ("reduced", number, text):
                print(f"\n{text}", flush=True)
                self.save(number, text)
            case ("end", tally):
                self.tally.add(tally)
            case ("renew", number):
                self.runners.remove(runner)
                runner.process.join()
                self.start(replace(runner.job, first=number))

    def end_hanging(self) -> None:
        for runner in [one for one in self.runners if one.is_hanging()]:
            self.lost(
                runner,
                "hang",
                f"not done after {HANG_SECONDS:.0f} seconds of processor time, or {COMPILE_SECONDS:.0f} more",
            )

    def lost(self, runner: Runner, kind: str, why: str) -> None:
        """Note what a worker process was at, end it, and start another one behind that nest."""
        self.runners.remove(runner)
        runner.process.kill()
        number = max(runner.number, runner.job.first)
        self.tally.counts[kind] += 1
        self.tally.counts["nests"] += 1
        nest = random_nest(self.seed, number, self.kind)
        text = nest.file_text(f"{kind}: {why}", command(self.seed, number, self.kind))
        print(f"\n{text}", flush=True)
        self.save(number, text)
        self.start(replace(runner.job, first=number + runner.job.stride))

    def save(self, number: int, text: str) -> None:
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"nest_{self.seed}_{number}.py").write_text(text)

    def report(self, seconds: float) -> None:
        count = self.tally.counts
        rates = [count["nests"] / max(one, 1e-9) for one in (seconds, count["milliseconds"] / 1000)]
        speed = f"{rates[0]:.1f} nests per second, {rates[1]:.1f} per second of processor time"
        print(f"\n{seconds / 60:.1f} minutes, {speed}\n{self.tally.text()}", flush=True)

    @property
    def failures(self) -> int:
        return sum(self.tally.counts[kind] for kind in ("unsound", "wrong", "proof", "crash", "hang", "wrong files"))


def replay(path: Path) -> int:
    """Check the nest of a file, with everything."""
    warnings.simplefilter("ignore")
    nest = read_nest(path.read_text())
    tally = Tally()
    try:
        check_nest(nest, tally, compiled=True, thorough=True)
    except Failure as failure:
        print(failure)
        return 1
    print(tally.text())
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Random loop nests through every oracle.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--nests", type=int, help="how many, however long it takes")
    kinds = "which nests: any, those with loops of one trip, in rounds, on one line or in one place, or with odd names"
    parser.add_argument("--kind", choices=KINDS, default="any", help=kinds)
    parser.add_argument("--seed", type=int, default=0, help="which sequence of nests (default 0)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first nest of the sequence (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (default 1)")
    often = f"compile one nest in so many (default {COMPILE_EVERY}; {COMPILE_OFTEN_EVERY} of those with slices)"
    parser.add_argument("--compile-every", type=int, metavar="N", help=often)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write a file for each failure that is printed")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="check the nest of such a file and nothing else")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ORION_CACHE"] = folder
        if options.replay is not None:
            return replay(options.replay)
        until = monotonic() + (options.minutes * 60 if options.nests is None else 1e9)
        which = options.seed, options.jobs, options.first, options.nests
        fuzzer = Fuzzer(*which, until, options.keep, options.kind, options.compile_every)
        fuzzer.run()
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main())
