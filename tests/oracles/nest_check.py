"""One random nest through everything: the plan and its proof, results in many orders, dependences by brute force."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from time import process_time
from types import CodeType, FunctionType
from typing import Any
from unittest.mock import patch

import numpy as np

import orion
from orion.api import ParallelFunction
from orion.errors import (
    ArgumentError,
    OutOfBoundsError,
    PlanError,
    SerialLoopWarning,
    UnprovedWarning,
    UnsupportedLoopError,
)
from orion.ir.types import Shapes
from orion.pipeline import REWRITES
from orion.plan.plan import Inspected, Merged, Reordered, Verdict
from orion.planned import Plan
from orion.prepared_call import Prepared, in_rows
from orion.rewrites.lockstep import apply as lockstep
from orion.rewrites.reorder import order
from orion.rewrites.rewrite import OfScalars, UnderConditions
from orion.rewrites.time_tiles import apply as swept
from orion.rewrites.time_tiles import cost as sweeping
from orion.runtime.local_arrays import LocalArrays
from orion.runtime.prepared import PreparedProgram
from orion.schedule.build import build_schedule
from orion.schedule.schedule import Ints
from orion.verify.check import check
from tests.oracles.carried import mentions, update_of
from tests.oracles.interpreted import Order, kernel_code, run_interpreted
from tests.oracles.nests import Nest
from tests.oracles.nodes import run_on_nodes
from tests.oracles.tally import Failure, Tally
from tests.oracles.verdict_check import check_at_call, check_verdicts, verdicts_for_any

WORKERS = (1, 2, 3)
COMPILED_WORKERS = (1, 2, 4)
NODES = ("ab", "abc", "aab", "abb")
"""Which worker is on which node, where nests are run on several."""

ORDERS_ON_NODES = 2
ORDERS = 2
"""Orders of the tiles that are tried on each number of workers."""


def small_tiles(node: Any, *_: Any) -> tuple[int, ...]:
    """Two trips per tile of each loop of a band, three of the innermost."""
    return (*[2] * (node.band_n_member() - 1), 3)


SMALL_SIZES = {
    1: {(order, "tile_sizes"): small_tiles, (lockstep, "ROWS"): 2},
    2: {
        (sweeping, "FILLED"): 0, (sweeping, "FEWEST_ROUNDS"): 2, (sweeping, "SHARED_GRID"): 2,
        (swept, "LONGEST"): 3, (swept, "SHORTEST"): 2, (swept, "INNER"): 2,
    },
    3: {(lockstep, "ROWS"): 3},
}  # fmt: skip
"""In place of sizes of the compiler that are too large for nests of a few iterations, by the seed of the nest."""

NO_NEST = (OverflowError, TypeError, ValueError)
"""What plain Python raises where there is nothing to compare with: an integer may not fit into the type of an argument,
slices that an integer bounds may differ in length."""

OTHER_SCALARS = {one.name for one in REWRITES if isinstance(one, OfScalars | UnderConditions)}
"""Rewrites after which iterations do not hand on what those of the source do: results alone tell whether that is right,
for the loops that they were taken in. The verdicts for any sizes and integers are those on the source."""

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
"""By how much sums in another order may differ: nests have 600 trips at most, and terms below 100 or so; n terms are
rounded by n units in the last place of their sum without signs."""

REFUSALS = (UnsupportedLoopError, ArgumentError, OverflowError)
"""What Orion raises for loops that it does not run; OverflowError where integers leave 64 bits."""

LARGE = 2**57
"""Integers below it, as they are in nests, stay within 64 bits whatever is done with them."""

NEEDLESS = ", and all do"
"""Of refusals by what is known before a run, where the undecorated function stays within 64 bits."""

PROVED = "a subscript that was proved to be inside its array leaves it"
UNSAID = "a subscript leaves its array, and nothing says so"

SLOW_SECONDS = 1.0
"""Processor time of planning that is noted as slow."""


def check_nest(
    nest: Nest,
    tally: Tally,
    *,
    compiled: bool = False,
    thorough: bool = False,
    compiles: Callable[[], None] = lambda: None,
) -> None:
    """Put a nest through every oracle; Failure for the first that objects.

    `compiled`: also compile it and run it on threads, as those in vector registers are in any case; `compiles` is
    called before that, which takes long. `thorough`: also prove its schedules for all numbers of workers
    up to four, and run it as it is planned without `force_parallel`. Some sizes of the compiler are
    made smaller for nests with certain seeds (`SMALL_SIZES`).
    """
    with ExitStack() as stack:
        for (module, name), value in SMALL_SIZES.get(nest.seed, {}).items():
            stack.enter_context(patch.object(module, name, value))
        _check_nest(nest, tally, compiled, thorough, compiles)


def _check_nest(nest: Nest, tally: Tally, compiled: bool, thorough: bool, compiles: Callable[[], None]) -> None:
    function = nest.function()
    decorated = orion.parallel_for(function)
    try:
        expected = plain_result(function, nest)
    except IndexError:
        tally.counts["nests"] += 1
        check_leaving(decorated, nest, tally, compiled, compiles)
        return
    except NO_NEST:
        tally.counts["no nest"] += 1
        return
    tally.counts["nests"] += 1
    begun = process_time()
    try:
        prepared = prepare(decorated, nest, max(WORKERS), force=True)
    except REFUSALS as error:
        tally.counts["refused"] += 1
        needless = type(error) is OverflowError and not wraps_around(nest)
        tally.refusals[refusal(str(error)) + NEEDLESS * needless] += 1
        return
    plan = prepared.plan
    forms = [loop.form for loop in plan.function.loops]
    tally.counts["in sweeps"] += any(isinstance(form, Reordered) and form.is_time_tiled for form in forms)
    tally.counts["slow"] += process_time() - begun > SLOW_SECONDS
    tally.counts["rewritten"] += any(isinstance(loop.form, Merged) for loop in plan.loops)
    tally.counts["parallel"] += any(loop.is_parallel for loop in plan.loops)
    check_proof(plan, thorough, tally)
    in_vectors = is_in_vectors(prepared)
    if not in_vectors:  # what stands for vector registers cannot be interpreted
        check_results(prepared, nest, expected)
    if thorough and not in_vectors:
        unforced = prepare(decorated, nest, 2, force=False)
        if not is_in_vectors(unforced):
            codes = [kernel_code(loop.kernel.text) for loop in unforced.program.loops]
            check_program(scheduled(unforced, 1), codes, nest, expected, Order(0), unforced.rows, unforced.local)
    if compiled or in_vectors:
        tally.counts["compiled"] += 1
        compiles()
        check_compiled(decorated, nest, expected, prepared)
    if not nest.has_views and not nest.has_other_loops:
        check_verdicts(verdicts_for_any(decorated, nest.arguments()), nest, tally, thorough=thorough)
        tally.counts["conditions"] += bool(plan.conditions)
        check_at_call(verdicts_on_source(plan, nest), nest)


def verdicts_on_source(plan: Plan, nest: Nest) -> list[Verdict]:
    """The verdicts of a plan but for those on loops in which, or around which, scalars were rewritten."""
    changed = [line for name, line in plan.function.rewrites if name in OTHER_SCALARS]
    (function,) = ast.parse(nest.source).body
    assert isinstance(function, ast.FunctionDef)
    wholes = [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in function.body]
    left_out = [whole for whole in wholes if any(line in whole for line in changed)]
    return [one for one in plan.verdicts if not any(one.line in whole for whole in left_out)]


def is_in_vectors(prepared: Prepared) -> bool:
    return any("orion.kernel.support.vectors" in loop.kernel.text for loop in prepared.program.loops)


def prepare(decorated: ParallelFunction, nest: Nest, workers: int, *, force: bool, leaves: bool = False) -> Prepared:
    """Everything up to generated kernels. Where the nest `leaves` its arrays, that may be known before."""
    try:
        return decorated._preparations.plain.prepare(nest.arguments(), workers, force)
    except Exception as error:
        if leaves and isinstance(error, OutOfBoundsError):
            raise
        if isinstance(error, REFUSALS) and (type(error) is not OverflowError or is_near_the_limit(nest)):
            raise
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


def check_proof(plan: Plan, thorough: bool, tally: Tally) -> None:
    """Prove the schedules for two workers (preparing has proved those for three), or for all numbers up to four."""
    begun = process_time()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UnprovedWarning)
            plan.check(None if thorough else 2)
        tally.checks.append(process_time() - begun)
    except PlanError as error:
        raise Failure("proof", str(error), "a schedule does not keep a dependence") from error
    except Exception as error:
        raise crash(error) from error
    tally.counts["unproved"] += bool(told)


# ---------------------------------------------------------------- subscripts that leave their arrays


def check_leaving(
    decorated: ParallelFunction, nest: Nest, tally: Tally, compiled: bool, compiles: Callable[[], None]
) -> None:
    """Check that a nest whose undecorated function ends in an IndexError ends in Orion's own, in every order. What it
    has written until then may differ."""
    tally.counts["leaving"] += 1
    try:
        prepared = prepare(decorated, nest, max(WORKERS), force=True, leaves=True)
    except (OutOfBoundsError, *REFUSALS):
        return  # known before anything runs
    in_vectors = is_in_vectors(prepared)
    codes = [] if in_vectors else [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    for number, workers in enumerate(() if in_vectors else WORKERS):
        turns = Order(3 * nest.seed + 5 * workers)
        program = scheduled(prepared, workers, coarse=turns if number else None)
        if number:
            prove(prepared.plan, [program])
        with must_leave(f"interpreted, {program.workers} workers, order {turns.seed}"):
            run_interpreted(program, codes, as_taken(nest.arguments(), prepared.rows, prepared.local), turns)
    if compiled or in_vectors:
        compiles()
    for workers in COMPILED_WORKERS if compiled or in_vectors else ():
        with must_leave(f"compiled, {workers} workers"):
            run_compiled(decorated, nest.arguments(), workers)


@contextmanager
def must_leave(where: str) -> Iterator[None]:
    """Failure unless what is run here ends in Orion's own error for a subscript that leaves its array."""
    try:
        yield
    except OutOfBoundsError:
        return
    except (AssertionError, IndexError) as error:
        raise Failure("wrong", f"{PROVED}: {error} ({where})", PROVED) from error
    except Exception as error:
        raise crash(error) from error
    raise Failure("wrong", f"{UNSAID} ({where})", UNSAID)


# ---------------------------------------------------------------- results


def is_near_the_limit(nest: Nest) -> bool:
    """Whether any integer of a nest is so large that sums with it may leave 64 bits."""
    written = (int(digits) for digits in re.findall(r"\d+", nest.source))
    return any(abs(value) >= LARGE for value in (*written, *(value for _, value in nest.scalars.values())))


def wraps_around(nest: Nest) -> bool:
    """Whether NumPy's scalars leave 64 bits somewhere in the undecorated function. What is known before it runs are
    intervals, so that it may be elsewhere."""
    try:
        with np.errstate(over="raise"):
            nest.function()(**nest.arguments())
    except FloatingPointError:
        return True
    except IndexError:
        pass
    return False


def plain_result(function: FunctionType, nest: Nest) -> dict[str, Any]:
    """The arguments after a run of the undecorated function, and what it returned as "return"."""
    arguments = nest.arguments()
    with np.errstate(all="ignore"):
        result = function(**arguments)
    return arguments | {"return": result}


def check_results(prepared: Prepared, nest: Nest, expected: Mapping[str, Any]) -> None:
    """Run the generated kernels in the interpreter, in several orders, and compare with the undecorated function.

    Nests are so small that most tiles have one iteration; in every other order neighbouring tiles are put together.
    """
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    runs: list[tuple[PreparedProgram, Order]] = []
    for workers in WORKERS:
        for number in range(ORDERS):
            turns = Order(3 * nest.seed + 5 * workers + number)
            program = scheduled(prepared, workers, coarse=turns if number else None)
            if workers == 1 or program.workers > 1:
                runs.append((program, turns))
    prove(prepared.plan, [program for program, _ in runs])
    for program, turns in runs:
        check_program(program, codes, nest, expected, turns, prepared.rows, prepared.local)
        for _ in range(ORDERS_ON_NODES if program.workers > 1 else 0):
            check_on_nodes(program, codes, nest, expected, turns, prepared.rows, prepared.local)


def scheduled(prepared: Prepared, workers: int, coarse: Order | None = None) -> PreparedProgram:
    """The prepared program with schedules for another number of workers, and with larger tiles where `coarse` is given;
    the kernels are the same."""
    plan, loops = prepared.plan, []
    for loop in prepared.program.loops:
        schedule = plan.schedule_of(loop.plan, workers)
        is_fixed = loop.plan.copies or isinstance(loop.plan.tiles, Inspected)  # each block has a copy; no blocks at all
        if coarse is not None and not is_fixed:
            bounds = tuple(fewer(edges, coarse) for edges in schedule.bounds)
            schedule = build_schedule(loop.plan, bounds, schedule.workers)
        loops.append(replace(loop, schedule=schedule))
    return replace(prepared.program, loops=tuple(loops))


def fewer(edges: Ints, choice: Order) -> Ints:
    """Block bounds with some of those between the first and the last left out."""
    keep = choice.random.choice((0.0, 0.3, 0.6))
    inner = [edge for edge in edges[1:-1] if choice.random.random() < keep]
    return np.array([edges[0], *inner, edges[-1]], np.int64)


def prove(plan: Plan, programs: Sequence[PreparedProgram]) -> None:
    """Prove a plan with the schedules of each of these programs."""
    schedules = [{loop.plan.nest.number: loop.schedule for loop in program.loops} for program in programs]
    try:
        check(
            plan.with_bodies(),
            plan._values(),
            lambda loop, which: schedules[which][loop.nest.number],
            [*range(len(programs))],
            plan.inside,
        )
    except PlanError as error:
        raise Failure("proof", str(error), "a schedule does not keep a dependence") from error


def check_program(
    program: PreparedProgram,
    codes: Sequence[CodeType],
    nest: Nest,
    expected: Mapping[str, Any],
    turns: Order,
    rows: Shapes,
    local: LocalArrays | None = None,
) -> None:
    """Run a scheduled program in the interpreter and compare its results."""
    arguments = nest.arguments()
    where = f"interpreted, {program.workers} workers, order {turns.seed}"
    try:
        result = run_interpreted(program, codes, as_taken(arguments, rows, local), turns)
    except AssertionError as error:
        raise Failure("wrong", f"{error} ({where})", re.sub(r"-?\d+", "…", str(error))) from error
    except Exception as error:
        raise crash(error) from error
    compare(arguments | {"return": result}, expected, where, nest, program)


def check_on_nodes(
    program: PreparedProgram,
    codes: Sequence[CodeType],
    nest: Nest,
    expected: Mapping[str, Any],
    turns: Order,
    rows: Shapes,
    local: LocalArrays | None,
) -> None:
    """Run a scheduled program on nodes that share nothing but messages, and compare its results."""
    arguments = nest.arguments()
    nodes = turns.random.choice([one for one in NODES if len(one) == program.workers])
    driver = turns.random.choice([nodes[0], "driver"])
    where = f"interpreted, nodes {nodes}, driver {driver}, order {turns.seed}"
    try:
        result, *_ = run_on_nodes(program, codes, as_taken(arguments, rows, local), turns, nodes, driver)
    except AssertionError as error:
        raise Failure("wrong", f"{error} ({where})", "nodes: " + re.sub(r"-?\d+", "…", str(error))) from error
    except Exception as error:
        raise crash(error) from error
    compare(arguments | {"return": result}, expected, where, nest, program)


def as_taken(arguments: Mapping[str, Any], rows: Shapes, local: LocalArrays | None) -> dict[str, Any]:
    """The arguments as kernels take them: flattened arrays as arrays of `rows`, and those that the function makes."""
    return {**in_rows(arguments, rows), **local_arrays_at(local)}


def local_arrays_at(local: LocalArrays | None) -> dict[str, Any]:
    """The arrays that the function makes, full of what nobody has made them."""
    own = local.take() if local else {}
    for array in own.values():
        array.storage.fill(77)
    return dict(own)


def check_compiled(decorated: ParallelFunction, nest: Nest, expected: Mapping[str, Any], prepared: Prepared) -> None:
    """Compile the nest and run it on threads: where machine code may reassociate sums, also as it may not
    (`fastmath=False`), which is held to every bit."""
    sums = any("add_to_sum(" in loop.kernel.text for loop in prepared.program.loops)
    runs = [(decorated, workers, sums) for workers in COMPILED_WORKERS]
    if sums:
        runs.append((orion.parallel_for(fastmath=False)(nest.function()), max(COMPILED_WORKERS), False))
    for compiled, workers, is_loose in runs:
        arguments = nest.arguments()
        try:
            result = run_compiled(compiled, arguments, workers)
        except Exception as error:
            raise crash(error) from error
        found = arguments | {"return": result}
        compare(found, expected, f"compiled, {workers} workers", nest, prepared.program, reassociated=is_loose)


def run_compiled(decorated: ParallelFunction, arguments: Mapping[str, Any], workers: int) -> Any:
    with warnings.catch_warnings(), orion.session(workers=workers, force_parallel=True):
        warnings.simplefilter("ignore", SerialLoopWarning)
        return decorated(**arguments)


def compare(
    found: Mapping[str, Any],
    expected: Mapping[str, Any],
    where: str,
    nest: Nest,
    program: PreparedProgram,
    *,
    reassociated: bool = False,
) -> None:
    """Failure where results differ in a bit.

    What is returned is compared with a tolerance where a float in it may be combined from the partial results of tiles,
    and so are arrays that are combined from copies, and everything where any of these is used by anything else in the
    function. `reassociated`: so is everything, as machine code has sums of floats that LLVM may put in another order
    (`fastmath`).
    """
    partials = float_partials(program)
    narrow = ("float32",) if reassociated else ()
    tolerance = max(TOLERANCES[dtype] for dtype in ("float64", *narrow, *partials.values()))
    own = {"return", *partials} if partials else set()
    loose = set(expected) if reassociated or used_elsewhere(nest.source, set(partials)) else own
    for name, wanted in expected.items():
        mine, theirs = np.asarray(found[name]), np.asarray(wanted)
        if name == "return" and wanted is None and found[name] is None:
            continue
        is_alike = name in loose and mine.shape == theirs.shape
        close = is_alike and np.allclose(mine, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
        if not close and not same_bits(mine, theirs):
            difference = first_difference(mine, theirs)
            kind = where.partition(",")[0]
            raise Failure("wrong", f"{name} differs: {difference} ({where})", f"{kind} results differ")


def float_partials(program: PreparedProgram) -> dict[str, str]:
    """The floats, and arrays of them, that are combined from the partial results of tiles, with their dtypes."""
    arguments = [argument for loop in program.loops for argument in loop.kernel.arguments]
    combined = [one for one in arguments if one.kind in ("partial", "copies") and one.dtype.startswith("float")]
    return {one.name: one.dtype for one in combined}


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
