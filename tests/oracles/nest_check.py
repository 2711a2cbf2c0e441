"""One random nest through everything: the plan and its proof, results in many orders, dependences by brute force."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import orion
from orion.api import ParallelFunction
from orion.errors import PlanError, SerialLoopWarning, UnsupportedLoopError
from orion.plan.plan import Verdict
from orion.planned import Plan
from orion.prepare import Prepared
from orion.runtime.prepared import PreparedProgram
from tests.oracles.carried import LoopFacts, loop_facts, mentions, update_of
from tests.oracles.interpreted import Order, kernel_code, run_interpreted
from tests.oracles.nests import Nest

WORKERS = (1, 2, 3)
COMPILED_WORKERS = (1, 2, 4)
ORDERS = 2
"""Orders of the tiles that are tried on each number of workers above one."""

SLOW_SECONDS = 1.0
"""Processor time of planning that is noted as slow."""

SHOWN = ("nests", "refused", "rewritten", "parallel", "compiled", "unsound", "wrong", "proof", "crash", "hang", "slow")


class Failure(AssertionError):  # noqa: N818  (what the fuzzer reports, by kind)
    """What is wrong with a nest: `kind` is "unsound", "wrong", "proof", "crash" or "hang"; `key` is the same for what
    has the same cause, as far as that can be told."""

    def __init__(self, kind: str, message: str, key: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.key = f"{kind}: {key}"


@dataclass
class Tally:
    """What became of the nests."""

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.refusals += other.refusals
        self.missed += other.missed

    def text(self) -> str:
        """What is printed."""
        count = self.counts
        share = 100 * count["missed"] / max(1, count["truly parallel"])
        lines = [
            ", ".join(f"{name} {count[name]}" for name in SHOWN),
            f"verdicts {count['verdicts']}; truly parallel affine loops {count['truly parallel']}, "
            f"of them missed {count['missed']} ({share:.1f} %)",
        ]
        lines += [f"  refused {number}: {reason}" for reason, number in self.refusals.most_common()]
        lines += [f"  missed {number}: {reason}" for reason, number in self.missed.most_common(8)]
        return "\n".join(lines)


def check_nest(nest: Nest, tally: Tally, *, compiled: bool = False, thorough: bool = False) -> None:
    """Put a nest through every oracle; Failure for the first that objects.

    `compiled`: also compile it and run it on threads. `thorough`: also prove its schedules for all numbers of workers
    up to four, and run it as it is planned without `force_parallel`.
    """
    tally.counts["nests"] += 1
    function = nest.function()
    expected = plain_result(function, nest)
    decorated = orion.parallel_for(function)
    begun = process_time()
    try:
        prepared = prepare(decorated, nest, max(WORKERS), force=True)
    except UnsupportedLoopError as error:
        tally.counts["refused"] += 1
        tally.refusals[refusal(str(error))] += 1
        return
    plan = prepared.plan
    tally.counts["slow"] += process_time() - begun > SLOW_SECONDS
    tally.counts["rewritten"] += any(loop.origin is not None for loop in plan.loops)
    tally.counts["parallel"] += any(loop.is_parallel for loop in plan.loops)
    check_proof(plan, thorough)
    check_results(prepared, nest, expected)
    if thorough:
        check_order(prepare(decorated, nest, 2, force=False), nest, expected, 1, Order(0))
    if compiled:
        tally.counts["compiled"] += 1
        check_compiled(decorated, nest, expected, prepared)
    check_verdicts(plan.verdicts, nest, tally)


def prepare(decorated: ParallelFunction, nest: Nest, workers: int, *, force: bool) -> Prepared:
    """Everything up to generated kernels."""
    try:
        return decorated._preparation.prepare(nest.arguments(), workers, force)
    except UnsupportedLoopError:
        raise
    except Exception as error:
        raise crash(error) from error


def crash(error: Exception) -> Failure:
    """The failure that an error which nobody expects is; its key is the place where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    code = trace.tb_frame.f_code
    where = f"{type(error).__name__} in {code.co_filename.rpartition('/')[2]}, {code.co_name}"
    return Failure("crash", f"{type(error).__name__}: {error}", where)


def refusal(message: str) -> str:
    """The first line of a refusal without the place and the names in it."""
    line = message.splitlines()[0]
    return re.sub(r"`[^`]*`", "`…`", line.partition(": ")[2] or line)


# ---------------------------------------------------------------- the proof


def check_proof(plan: Plan, thorough: bool) -> None:
    """Prove the schedules for two workers (preparing has proved those for three), or for all numbers up to four."""
    try:
        plan.check(None if thorough else 2)
    except PlanError as error:
        raise Failure("proof", str(error), "a schedule does not keep a dependence") from error
    except Exception as error:
        raise crash(error) from error


# ---------------------------------------------------------------- results


def plain_result(function: FunctionType, nest: Nest) -> dict[str, Any]:
    """The arguments after a run of the undecorated function, and what it returned as "return"."""
    arguments = nest.arguments()
    with np.errstate(all="ignore"):
        result = function(**arguments)
    return arguments | {"return": result}


def check_results(prepared: Prepared, nest: Nest, expected: Mapping[str, Any]) -> None:
    """Run the generated kernels in the interpreter, in several orders, and compare with the undecorated function."""
    orders = [(1, Order(0))]
    if prepared.plan.function.executed.loops:
        orders += [(w, Order(nest.seed + k)) for w in WORKERS if w > 1 for k in range(ORDERS)]
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    for workers, order in orders:
        program = scheduled(prepared, workers)
        if workers == 1 or program.workers > 1:
            check_program(program, codes, nest, expected, order)


def scheduled(prepared: Prepared, workers: int) -> PreparedProgram:
    """The prepared program with schedules for another number of workers; the kernels are the same."""
    plan, loops = prepared.plan, prepared.program.loops
    return replace(
        prepared.program, loops=tuple(replace(loop, schedule=plan.schedule_of(loop.plan, workers)) for loop in loops)
    )


def check_order(prepared: Prepared, nest: Nest, expected: Mapping[str, Any], workers: int, order: Order) -> None:
    """Run the kernels on some workers in one order."""
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    check_program(scheduled(prepared, workers), codes, nest, expected, order)


def check_program(
    program: PreparedProgram, codes: Sequence[CodeType], nest: Nest, expected: Mapping[str, Any], order: Order
) -> None:
    """Run a scheduled program in the interpreter and compare its results."""
    arguments = nest.arguments()
    where = f"interpreted, {program.workers} workers, order {order.seed}"
    try:
        result = run_interpreted(program, codes, arguments, order)
    except AssertionError as error:
        raise Failure("wrong", f"{error} ({where})", re.sub(r"-?\d+", "…", str(error))) from error
    except Exception as error:
        raise crash(error) from error
    compare(arguments | {"return": result}, expected, where, nest, program)


def check_compiled(
    decorated: ParallelFunction, nest: Nest, expected: Mapping[str, Any], prepared: Prepared
) -> None:
    """Compile the nest and run it on threads."""
    for workers in COMPILED_WORKERS:
        arguments = nest.arguments()
        try:
            with warnings.catch_warnings(), orion.session(workers=workers, force_parallel=True):
                warnings.simplefilter("ignore", SerialLoopWarning)
                result = decorated(**arguments)
        except Exception as error:
            raise crash(error) from error
        found = arguments | {"return": result}
        compare(found, expected, f"compiled, {workers} workers", nest, prepared.program)


def compare(
    found: Mapping[str, Any], expected: Mapping[str, Any], where: str, nest: Nest, program: PreparedProgram
) -> None:
    """Failure where results differ in a bit.

    What is returned is compared with a tolerance where a float in it may be combined from the partial results of tiles,
    and so is everything where such a float is used by anything else in the function.
    """
    partials = float_partials(program)
    loose = set(expected) if used_elsewhere(nest.source, partials) else {"return"} if partials else set()
    for name, wanted in expected.items():
        mine, theirs = np.asarray(found[name]), np.asarray(wanted)
        if name == "return" and wanted is None and found[name] is None:
            continue
        close = name in loose and mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-9, equal_nan=True)
        if not close and not same_bits(mine, theirs):
            difference = first_difference(mine, theirs)
            kind = where.partition(",")[0]
            raise Failure("wrong", f"{name} differs: {difference} ({where})", f"{kind} results differ")


def float_partials(program: PreparedProgram) -> set[str]:
    """The floats that are combined from the partial results of tiles."""
    arguments = [argument for loop in program.loops for argument in loop.kernel.arguments]
    return {one.name for one in arguments if one.kind == "partial" and one.dtype.startswith("float")}


def used_elsewhere(source: str, names: set[str]) -> bool:
    """Whether any of the scalars is used apart from its updates, constants assigned to it, and what is returned."""
    tree = ast.parse(source)
    for name in names:
        allowed = 0
        for node in ast.walk(tree):
            found = update_of(node)
            is_constant = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.UnaryOp)
            if (found is not None and found[0] == name) or is_constant or isinstance(node, ast.Return):
                allowed += mentions(node, name)
        if allowed != mentions(tree, name):
            return True
    return False


def same_bits(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether arrays or numbers have the same bits; any NaN is the same as any other, and 1 the same as 1.0."""
    if mine.shape != theirs.shape:
        return False
    if mine.dtype.kind == "f" or theirs.dtype.kind == "f":
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        return bool(np.all((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))))
    return bool(np.array_equal(mine, theirs))


def first_difference(mine: np.ndarray, theirs: np.ndarray) -> str:
    if mine.shape != theirs.shape or not mine.ndim:
        return f"{mine} is not {theirs}"
    at = np.argwhere(mine != theirs)
    if not len(at):
        return "the signs of zeros"
    place = tuple(int(k) for k in at[0])
    return f"{len(at)} of {mine.size} elements, {list(place)} is {mine[place]} and should be {theirs[place]}"


# ---------------------------------------------------------------- verdicts


def check_verdicts(verdicts: Sequence[Verdict], nest: Nest, tally: Tally) -> None:
    """Compare the verdicts on the `for`s with the brute-force dependences; those without a verdict are left out."""
    small = loop_facts(nest)
    larger: list[LoopFacts] = []
    for verdict in verdicts:
        if not 0 <= verdict.index < len(small):
            continue
        facts = small[verdict.index]
        tally.counts["verdicts"] += 1
        if verdict.is_parallel and facts.witness:
            message = f"the loop in line {facts.line} is called parallel, but {facts.witness}"
            raise Failure("unsound", message, "a loop is called parallel and is not")
        if not facts.is_affine or facts.witness:
            continue
        larger = larger or loop_facts(nest, 1)
        if larger[verdict.index].witness or larger[verdict.index].most_trips < 2:
            continue
        tally.counts["truly parallel"] += 1
        if not verdict.is_parallel:
            tally.counts["missed"] += 1
            tally.missed[missed_for(verdict, nest)] += 1


def missed_for(verdict: Verdict, nest: Nest) -> str:
    """What a loop that is parallel was thought to carry."""
    if not verdict.carried:
        return ", ".join(sorted({reason.code for reason in verdict.reasons}))
    first = verdict.carried[0]
    what = "an array" if first.array in nest.arrays else "a scalar"
    return f"{first.kind} dependence over {what}{'' if first.exact else ', approximate'}"
