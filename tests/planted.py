"""Faults planted in plans and in the analysis, and whether the checker finds them.

    python tests/planted.py                       # or: make planted
    python tests/planted.py --nests 300 --seed 7

Random loop nests, and some of the kinds that these seldom have, are planned; then one thing at a time is broken: each
field of the plan that is run (blocks, order, waits, owners, strategy, private arrays, copies, roles of scalars, places,
texts of loops, steps, conditions), and the analysis itself (dependences, references, subscripts and roles that are not
seen, conditions of rewrites that always hold), in planning with its own checks switched off. A fault is *killed* if
`orion.verify` refuses the plan, *unproved* if it says that it cannot prove it, and has *survived* otherwise. What has
survived is run: the interpreter runs the kernels in many orders of the tiles. If a result differs then from that of the
undecorated function, the fault was *missed*; the program exits with 1.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orion
from orion.errors import OrionError, PlanError
from orion.ir.signature import argument_types
from orion.kernel.calling import KernelSource
from orion.known import Typed
from orion.pipeline import executed, kernels_of, local_specs, make_plan
from orion.plan.plan import FunctionPlan
from orion.planned import Plan
from orion.prepared_call import rows_of
from orion.runtime.local_arrays import LocalArrays
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.schedule.schedule import Schedule
from orion.verify.check import check
from tests.oracles.faults import plan_faults, schedule_faults
from tests.oracles.interpreted import Order, kernel_code
from tests.oracles.nest_check import SMALL_SIZES, check_program, plain_result
from tests.oracles.nest_strategy import random_nest
from tests.oracles.nests import ArraySpec, Nest
from tests.oracles.tally import Failure
from tests.oracles.unseen import UNSEEN, unchecked

WORKERS = (2, 3)
ORDERS = 6


@dataclass
class Counts:
    """What became of the faults of each kind, and the sources of those that were missed."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, kind: str, outcome: str, source: str) -> None:
        self.outcomes[kind, outcome] += 1
        if outcome == "missed":
            self.missed.append(f"{kind}:\n{source}")

    def __str__(self) -> str:
        columns = ("killed", "unproved", "harmless", "missed")
        kinds = dict.fromkeys(kind for kind, _ in sorted(self.outcomes))
        rows = [[kind, *(str(self.outcomes[kind, column]) for column in columns)] for kind in kinds]
        total = [str(sum(self.outcomes[kind, column] for kind in kinds)) for column in columns]
        lines = [f"{row[0]:34}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in [["", *columns], *rows]]
        return "\n".join([*lines, f"{'all':34}" + "".join(f"{cell:>10}" for cell in total)])


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant faults in plans; see whether the checker finds them.")
    parser.add_argument("--nests", type=int, default=150, help="random nests (150)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = Counts()
    for nest in [*special(), *(random_nest(options.seed, number) for number in range(options.nests))]:
        plant(nest, counts)
    print(counts)
    times = sorted(counts.seconds)
    if times:
        print(f"one check: median {1e3 * times[len(times) // 2]:.1f} ms, worst {1e3 * times[-1]:.0f} ms")
    print("\n".join(counts.missed))
    return 1 if counts.missed else 0


@dataclass(frozen=True)
class Honest:
    """A nest with its plan as it should be."""

    nest: Nest
    expected: Mapping[str, Any]
    typed: Typed
    plan: Plan
    made: FunctionPlan
    kernels: tuple[KernelSource, ...]


def honest(nest: Nest, function: FunctionType) -> Honest:
    expected = plain_result(nest.function(), nest)
    preparation = orion.parallel_for(function)._preparations.plain
    types, shapes = argument_types(nest.arguments())
    typed, shapes = preparation.typed_for(types, shapes, nest.arguments())
    plan = make_plan(typed, nest.arguments(), shapes, max(WORKERS), True)
    made = executed(typed, plan)
    return Honest(nest, expected, typed, plan, made, tuple(kernels_of(typed, plan, made, False)))


def plant(nest: Nest, counts: Counts) -> None:
    """Plant every fault in the plans of a nest."""
    with ExitStack() as stack:
        for (module, name), value in SMALL_SIZES.get(nest.seed, {}).items():
            stack.enter_context(patch.object(module, name, value))
        try:
            given = honest(nest, nest.function())
        except (OrionError, ArithmeticError, ValueError, TypeError, IndexError):
            return
        if not any("orion.kernel.support.vectors" in kernel.text for kernel in given.kernels):  # as they cannot be run
            in_plan(given, counts)
            for kind, unseen in UNSEEN.items():
                in_analysis(given, kind, unseen, counts)


def in_plan(given: Honest, counts: Counts) -> None:
    """Break the plan that is run."""
    made, nest = given.made, given.nest
    for workers in WORKERS:
        schedules = [given.plan.schedule_of(loop, workers) for loop in made.loops]
        for number, one in enumerate(schedules):
            for kind, schedule in schedule_faults(one):
                broken = [*schedules[:number], schedule, *schedules[number + 1 :]]
                counts.add(kind, outcome(given, made, given.kernels, broken, counts), nest.source)
    for kind, wrong in plan_faults(made, dict(made.types)):
        try:
            schedules = [given.plan.schedule_of(loop, max(WORKERS)) for loop in wrong.loops]
            kernels = tuple(kernels_of(given.typed, given.plan, wrong, False))
        except Exception:
            continue
        counts.add(kind, outcome(given, wrong, kernels, schedules, counts), nest.source)


def in_analysis(given: Honest, kind: str, unseen: Callable[[], AbstractContextManager[None]], counts: Counts) -> None:
    """Plan with something in the analysis broken, without the checks that planning makes itself."""
    with unseen(), unchecked():
        try:
            wrong = honest(given.nest, given.nest.function())
            schedules = [wrong.plan.schedule_of(loop, max(WORKERS)) for loop in wrong.made.loops]
        except Exception:  # it broke planning: nothing is run then
            return
    if told(wrong) != told(given):
        counts.add(kind, outcome(wrong, wrong.made, wrong.kernels, schedules, counts), given.nest.source)


def told(one: Honest) -> list[tuple[object, ...]]:
    """What is run of a plan: nothing has changed where this has not."""
    loops = zip(one.made.loops, one.kernels, strict=True)
    return [(loop.strategy, loop.space, loop.time, loop.cuts, loop.rounds_overlap, made.text) for loop, made in loops]


def outcome(
    given: Honest, made: FunctionPlan, kernels: Sequence[KernelSource], schedules: Sequence[Schedule], counts: Counts
) -> str:
    """What becomes of a broken plan."""
    numbers = {id(loop): schedule for loop, schedule in zip(made.loops, schedules, strict=True)}
    begun = perf_counter()
    try:
        unproved = check(made, given.plan._values(), lambda loop, _: numbers[id(loop)], [0], given.plan.inside)
    except PlanError:
        return "killed"
    finally:
        counts.seconds.append(perf_counter() - begun)
    if unproved:
        return "unproved"
    loops = tuple(PreparedLoop(*parts) for parts in zip(made.loops, schedules, kernels, strict=True))
    return "missed" if is_wrong(given, PreparedProgram(made.program, loops, {})) else "harmless"


def is_wrong(given: Honest, program: PreparedProgram) -> bool:
    """Whether some order of the tiles gives another result."""
    codes, plan = [kernel_code(loop.kernel.text) for loop in program.loops], given.plan
    try:
        for seed in range(ORDERS):
            rows, local = rows_of(plan.function.program.function, plan.sizes.shapes), LocalArrays(local_specs(plan))
            check_program(program, codes, given.nest, given.expected, Order(seed), rows, local)
    except Failure:
        return True
    return False


SPECIAL_SOURCES = {
    "private": """\
def nest(A, t, n, m):
    for i in range(n):
        for j in range(m):
            t[j] = 2.0 * A[i, j]
        for j in range(m):
            A[i, j] = t[j] + t[m - 1 - j]
""",
    "sums": """\
def nest(A, t, idx, n):
    for i in range(n):
        t[idx[i]] += A[i, 0]
""",
    "copies": """\
def nest(t, n):
    for i in range(n - 1):
        t[i] = 0.5 * t[i + 1]
""",
    "fused": """\
def nest(t, x, n):
    for i in range(n):
        t[i] = 2.0 * x[i]
    for i in range(n):
        x[i] = t[i] + 1.0
""",
    "argmax": """\
def nest(t, n):
    best = -50.0
    at = -1
    for i in range(n):
        if t[i] > best:
            best = t[i]
            at = i
    return best, at
""",
    "combined": """\
def nest(t, n):
    s = 0.0
    p = 1.0
    all_ = True
    for i in range(n):
        s += t[i]
        p *= 1.0 + 0.01 * t[i]
        all_ = all_ and t[i] > -9.0
    return s, p, all_
""",
    "last": """\
def nest(t, x, n):
    e = 0.0
    for i in range(n):
        e = t[i]
        x[i] = e + 1.0
    return e
""",
    "rounds": """\
def nest(t, x, n, m):
    for k in range(m):
        for i in range(n):
            t[i] = 0.5 * t[i] + x[i]
""",
    "search": """\
def nest(t, x, n):
    at = -1
    s = 0.0
    for i in range(n):
        if t[i] > 0.5:
            at = i
            s += x[i]
            break
        s += t[i]
    return at, s
""",
    "search that keeps a place": """\
def nest(t, x, n):
    at = -1
    for i in range(n):
        if t[i] > x[i]:
            at = i
        if t[i] > 0.5 and at > 2:
            break
    return at
""",
    "search beyond": """\
def nest(t, m, n):
    at = -1
    for i in range(n):
        if t[i + m - 6] > 0.5:
            at = i
            break
    return at
""",
    "search and store": """\
def nest(t, x, n):
    at = -1
    for i in range(n):
        if t[i] > 0.5:
            at = i
            break
        x[i] = 1.0
    return at
""",
    "condition": """\
def nest(t, lo, n):
    for i in range(lo, n):
        t[i] = t[i] + 1.0
""",
}


def special() -> list[Nest]:
    """Nests of the kinds that random ones seldom are."""
    arrays = {
        "A": ArraySpec("float64", "value", (9, 6), (12, 8)),
        "t": ArraySpec("float64", "value", (9,), (12,)),
        "x": ArraySpec("float64", "value", (9,), (12,)),
        "idx": ArraySpec("int64", "index", (9,), (12,)),
    }
    integers = {"n": (9, 12), "m": (6, 8), "lo": (2, 3)}
    found = []
    for source in SPECIAL_SOURCES.values():
        names = source[source.index("(") + 1 : source.index(")")].split(", ")
        own = {name: arrays[name] for name in names if name in arrays}
        found.append(Nest(source, own, {name: integers[name] for name in names if name in integers}, 1))
    return found


if __name__ == "__main__":
    sys.exit(main())
