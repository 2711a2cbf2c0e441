"""Random loop nests through every oracle: brute-force dependences, schedule proof, undecorated function.

`tests/fuzz.py` does the same for as long as one likes. What it does is tested here too: it must find what is broken.
"""

import re
import warnings
import zlib
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

import orion
from orion.cost.candidate import Strategy
from orion.cost.extents import parameter_values
from orion.dependence.bounds import fix_parameters
from orion.errors import PlanError, SerialLoopWarning
from orion.reasons import Reason, ReasonKind
from orion.schedule.build import build_schedule
from orion.verify.check import check
from tests import fuzz
from tests.oracles import interpreted, nest_check
from tests.oracles.brute_force import record
from tests.oracles.carried import Recording, loop_facts
from tests.oracles.interpreted import Order, StuckError, kernel_code, run_interpreted
from tests.oracles.nest_check import check_nest
from tests.oracles.nest_strategy import nests, random_nest
from tests.oracles.nests import ArraySpec, Nest, read_nest
from tests.oracles.random_nests import RandomNest, random_nests
from tests.oracles.reduce import reduced
from tests.oracles.tally import Failure, Tally
from tests.oracles.varied import INTEGERS
from tests.oracles.verdict_check import check_at_call, check_verdicts, verdicts_for_any
from tests.trials import ALL, TIMES

TOO_MUCH = [HealthCheck.too_slow, HealthCheck.data_too_large]
FEW = settings(max_examples=40 if ALL else 20, deadline=None, suppress_health_check=TOO_MUCH)
COMPILED = settings(FEW, max_examples=15 if ALL else 6)
SEED = 5
CHUNKS, IN_CHUNK = 2 * TIMES, 30 if ALL else 15
FEWEST = 6 if ALL else 2
MISSED = {145, 163}
"""Nests with one loop that is parallel at every size at which none of the loops leaves its arrays, and not at others:
the analysis takes of a loop that its own subscripts are inside, not that those of the loops before it were."""

COMPILE_ONE_IN = 100


# ---------------------------------------------------------------- all kinds of statements, ordered


@settings(FEW, max_examples=30 if ALL else 12)
@given(nests())
def test_nests_of_all_kinds_through_every_oracle(nest: Nest):
    note(str(nest))
    number = zlib.crc32(nest.source.encode())
    check_nest(nest, Tally(), compiled=number % COMPILE_ONE_IN == 0, thorough=number % 8 == 0)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_same_nests_every_time_through_every_oracle(chunk: int):
    tally = Tally()
    for number in range(chunk * IN_CHUNK, (chunk + 1) * IN_CHUNK):
        missed = tally.counts["missed truly parallel"]
        failure = fuzz.checked(random_nest(SEED, number), number, tally)
        if failure is not None:
            nest = fuzz.smaller(random_nest(SEED, number), number, failure.key)
            pytest.fail(nest.file_text(str(failure), fuzz.command(SEED, number)), pytrace=False)
        assert tally.counts["missed truly parallel"] - missed == (number in MISSED), random_nest(SEED, number)
    assert tally.counts["truly parallel"] > FEWEST
    assert tally.counts["parallel"] > FEWEST


# ---------------------------------------------------------------- loops of one trip, in rounds, in one place


@pytest.mark.parametrize("number", range(4 * TIMES))
def test_nests_whose_loops_share_places_through_every_oracle(number: int):
    nest = random_nest(SEED, number, "places")
    failure = fuzz.checked(nest, number, Tally())
    if failure is not None:
        nest = fuzz.smaller(nest, number, failure.key)
        pytest.fail(nest.file_text(str(failure), fuzz.command(SEED, number, "places")), pytrace=False)


TWICE = """\
def again(A, i, j):
    A[i + 6, j] = A[i + 5, j + 1] + A[i + 6, j]

def nest(A, b, z, n, m):
    for i in range(m, -1, -2):
        for j in range(z.shape[0] - i):
            b[:n] = 0.5 * b[1:n + 1]
            again(A, i, j); again(A, i, j)
"""


def test_statements_of_two_calls_on_one_line_are_told_apart():
    """The checker once took them for one, and could not prove the loops in another order."""
    shapes = {"A": ((12, 6), (16, 9)), "b": ((11,), (17,)), "z": ((5, 3), (8, 5))}
    arrays = {name: ArraySpec("float64", "value", *each) for name, each in shapes.items()}
    check_nest(Nest(TWICE, arrays, {"n": (5, 8), "m": (3, 5)}, 2), Tally())


SHARED = {
    "one trip": r"for \w+ in range\((1|one|i, i \+ (1|one))\):",
    "rounds": r"for o\d in range\(3\):|while o\d > 0:",
    "one line": r"for \w+ in range\(.*\): .*; ",
    "one place": r"(?s)again\(.*again\(.*again\(",
    "slices on one line": r"\w\[1:\] = \w\[:-1\]; ",
    "a comprehension": r"= \[0.5 \* ",
    "a name that is rebound": r"row = 0.5 \* row",
    "a part of a part": r"row_part",
}


def test_some_random_nests_have_loops_that_share_places():
    sources = [random_nest(SEED, number, "places").source for number in range(300)]
    counts = {name: sum(re.search(form, source) is not None for source in sources) for name, form in SHARED.items()}
    assert min(counts.values()) > 0, counts
    assert any(re.search(SHARED["one place"], random_nest(SEED, number).source) for number in range(300))


# ---------------------------------------------------------------- perfect nests, ordered and not


def reported(loop, arguments):
    values = parameter_values({n: a.shape for n, a in arguments.items() if isinstance(a, np.ndarray)}, {"c": 2})
    pairs = set()
    private = [dependence for array in loop.private_arrays for dependence in array.dependences]
    for text in {dependence.relation for dependence in (*loop.dependences, *private)}:
        relation = fix_parameters(isl.Map(text).wrap(), values)
        relation.foreach_point(lambda point: pairs.add(_coordinates(point)))
    half = len(loop.nest.dims)
    return {(p[:half], p[half:]) for p in pairs} | {(p[half:], p[:half]) for p in pairs}


def _coordinates(point):
    count = point.get_space().dim(isl.dim_type.set)
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in range(count))


@FEW
@given(random_nests())
def test_brute_force_finds_no_conflict_that_the_analysis_misses(nest: RandomNest):
    note(str(nest))
    function, arguments = nest.function(), nest.arguments()
    plan = orion.parallel_for(ordered=nest.ordered)(function).plan(**arguments)
    if len(plan.loops) != 1 or plan.loops[0].nest.loops[0].index != 0:
        return  # an outer loop was opened: its rounds are not iterations of the planned loop
    (loop,) = plan.loops
    recorder = record(function, arguments, len(loop.nest.dims))
    assert recorder.conflicts() <= reported(loop, arguments)
    if loop.strategy == "independent" and not loop.parts:
        private = {array.name for array in loop.private_arrays}
        assert private <= recorder.private()
        assert not recorder.conflicts(but=private)


@FEW
@given(random_nests())
def test_every_plan_is_proved_by_isl(nest: RandomNest):
    note(str(nest))
    plan = orion.parallel_for(ordered=nest.ordered)(nest.function()).plan(**nest.arguments())
    plan.check()


@COMPILED
@given(random_nests())
def test_results_equal_those_of_the_undecorated_function(nest: RandomNest):
    note(str(nest))
    function = nest.function()
    compiled = orion.parallel_for(ordered=True)(function)
    expected = nest.arguments()
    function(**expected)
    for workers in (1, 2, 3):
        given_arrays = nest.arguments()
        with warnings.catch_warnings(), orion.session(workers=workers, force_parallel=True):
            warnings.simplefilter("ignore", SerialLoopWarning)
            compiled(**given_arrays)
        for name in ("a", "b", "M"):
            np.testing.assert_array_equal(given_arrays[name], expected[name], err_msg=f"{name}, {workers} workers")


# ---------------------------------------------------------------- the oracles find what is broken

SWEEP = """\
def nest(A, n):
    for i in range(1, n):
        for j in range(1, n):
            A[i, j] = 0.3 * (A[i - 1, j] + A[i, j - 1]) + A[i, j]
"""


def sweep() -> Nest:
    return Nest(SWEEP, {"A": ArraySpec("float64", "value", (9, 9), (12, 12))}, {"n": (9, 12)}, 1)


def prepared_sweep(workers):
    """The sweep prepared, its program for that many workers, its kernels and the results that it should have."""
    nest = sweep()
    prepared = nest_check.prepare(orion.parallel_for(nest.function()), nest, 3, force=True)
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    expected = nest_check.plain_result(nest.function(), nest)
    return prepared, nest_check.scheduled(prepared, workers), codes, expected


def with_schedule(program, schedule):
    (loop,) = program.loops
    return replace(program, loops=(replace(loop, schedule=schedule),))


def checked(plan, loop, schedule):
    """Prove another plan of the only loop, with a schedule."""
    text = plan.with_bodies()
    check(replace(text, loops=(loop,)), plan._values(), lambda *_: schedule, [schedule.workers], plan.inside)


def wrong_in_some_order(program, codes, expected) -> bool:
    return any(is_wrong(program, codes, expected, Order(seed)) for seed in range(8))


def is_wrong(program, codes, expected, order) -> bool:
    try:
        nest_check.check_program(program, codes, sweep(), expected, order, {})
    except Failure as failure:
        return failure.kind == "wrong"
    return False


@pytest.mark.parametrize("workers", [2, 3])
def test_a_schedule_that_keeps_every_dependence_gives_the_same_bits_in_every_order(workers):
    _, program, codes, expected = prepared_sweep(workers)
    assert program.loops[0].schedule.waits.size
    assert not wrong_in_some_order(program, codes, expected)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_plan_with_its_dependences_dropped_gives_wrong_results_in_some_order(workers):
    prepared, program, codes, expected = prepared_sweep(workers)
    (loop,) = program.loops
    analysis = replace(loop.plan.analysis, dependences=())
    tiles = replace(loop.plan.tiles, time=())
    broken = replace(loop.plan, analysis=analysis, strategy=Strategy.INDEPENDENT, tiles=tiles)
    schedule = build_schedule(broken, loop.schedule.bounds, workers)
    with pytest.raises(PlanError, match="does not keep a dependence"):
        checked(prepared.plan, broken, schedule)
    assert wrong_in_some_order(with_schedule(program, schedule), codes, expected)


def test_a_wait_that_is_skewed_is_not_proved_and_gives_wrong_results_in_some_order():
    prepared, program, codes, expected = prepared_sweep(2)
    (loop,) = program.loops
    schedule = loop.schedule
    columns = schedule.grid[1]
    skewed = replace(schedule, waits=np.maximum(schedule.waits - (schedule.waits % columns > 0), 0))
    with pytest.raises(PlanError, match="does not keep a dependence"):
        checked(prepared.plan, loop.plan, skewed)
    assert wrong_in_some_order(with_schedule(program, skewed), codes, expected)


def test_a_kernel_that_rounds_in_another_order_gives_wrong_results():
    _, program, codes, expected = prepared_sweep(1)
    other = replace(sweep(), source=SWEEP.replace("+ A[i, j - 1]) +", ") + (0.3 * A[i, j - 1]) +"))
    prepared = nest_check.prepare(orion.parallel_for(other.function()), other, 3, force=True)
    assert not is_wrong(program, codes, expected, Order(0))
    assert is_wrong(program, [kernel_code(loop.kernel.text) for loop in prepared.program.loops], expected, Order(0))


def test_larger_tiles_are_tried_too():
    prepared, fine, codes, expected = prepared_sweep(2)
    coarse = nest_check.scheduled(prepared, 2, coarse=Order(1))
    assert coarse.loops[0].schedule.tiles < fine.loops[0].schedule.tiles
    assert not wrong_in_some_order(coarse, codes, expected)


def test_tiles_that_wait_for_each_other_are_noticed():
    _, program, codes, _ = prepared_sweep(2)
    schedule = program.loops[0].schedule
    stuck = replace(schedule, waits=np.full_like(schedule.waits, schedule.tiles - 1))
    with pytest.raises(StuckError, match="wait for each other"):
        run_interpreted(with_schedule(program, stuck), codes, sweep().arguments(), Order(0))


def test_a_subscript_that_was_wrongly_proved_is_noticed():
    prepared, program, _, expected = prepared_sweep(1)
    text = prepared.program.loops[0].kernel.text.replace("uint64(i - 1)", "uint64(i - 2)")
    with pytest.raises(Failure, match="proved to be inside its array is -1"):
        nest_check.check_program(program, [kernel_code(text)], sweep(), expected, Order(0), {})


def test_a_verdict_with_a_dependence_dropped_is_unsound():
    prepared, *_ = prepared_sweep(1)
    verdicts = prepared.plan.verdicts
    check_verdicts(verdicts, sweep(), Tally())
    for number, verdict in enumerate(verdicts):
        broken = [*verdicts]
        broken[number] = replace(verdict, carried=())
        with pytest.raises(Failure, match=r"unsound: the loop in line \d is called parallel, but trip"):
            check_verdicts(broken, sweep(), Tally())


REWRITTEN = """def nest(a, b, n):
    last = 0
    for i in range(n):
        a[i] = b[i] + last
        last = i
    for i in range(1, n):
        b[i] = b[i - 1] + a[i]
"""


def test_verdicts_on_loops_beside_those_whose_scalars_were_rewritten_are_held_against_the_source():
    arrays = {name: ArraySpec("float64", "value", (13,), (15,)) for name in "ab"}
    nest = Nest(REWRITTEN, arrays, {"n": (9, 11)}, seed=3)
    plan = nest_check.prepare(orion.parallel_for(nest.function()), nest, 2, force=True).plan
    assert ("wrap_around", 3) in plan.function.rewrites
    assert [verdict.line for verdict in plan.verdicts] == [3, 6]
    verdicts = nest_check.verdicts_on_source(plan, nest)
    assert [verdict.line for verdict in verdicts] == [6]
    check_at_call(verdicts, nest)
    with pytest.raises(Failure, match="unsound: the loop in line 6 is called parallel, but trip"):
        check_at_call([replace(verdicts[0], carried=(), reasons=())], nest)


def test_an_array_that_tiles_add_to_in_copies_may_be_rounded_otherwise():
    source = "def nest(A, a, n):\n    for i in range(n):\n        for j in range(n):\n            a += A[0, :]\n"
    arrays = {"A": ArraySpec("float64", "value", (13, 3), (15, 3)), "a": ArraySpec("float64", "value", (3,), (3,))}
    nest = Nest(source, arrays, {"n": (3, 4)}, seed=3)
    tally = Tally()
    nest_check.check_nest(nest, tally)
    assert tally.counts["compiled"] == 1  # rows in registers, of which bits would be compared
    program = nest_check.prepare(orion.parallel_for(nest.function()), nest, 3, force=True).program
    expected = nest_check.plain_result(nest.function(), nest)
    nest_check.compare({**expected, "a": np.nextafter(expected["a"], 9)}, expected, "compiled", nest, program)
    with pytest.raises(Failure, match="a differs"):
        nest_check.compare({**expected, "a": expected["a"] * 1.001}, expected, "compiled", nest, program)


LEAVING = {"affine": "A[i + 1, j] = 0.5", "read": "A[i, idx[j] + 6] = 0.5"}


def leaving(body: str) -> Nest:
    source = f"def nest(A, idx, n):\n    for i in range(n):\n        for j in range(n):\n            {body}\n"
    arrays = {"A": ArraySpec("float64", "value", (9, 9), (12, 12)), "idx": ArraySpec("int64", "index", (9,), (12,))}
    return Nest(source, arrays, {"n": (9, 12)}, 1)


@pytest.mark.parametrize("body", LEAVING.values(), ids=LEAVING)
def test_where_a_nest_leaves_an_array_so_does_the_compiled_one(body):
    tally = Tally()
    check_nest(leaving(body), tally, compiled=True)
    assert tally.counts["leaving"] == 1


def test_a_nest_may_leave_an_array_at_its_larger_size_only():
    source = "def nest(a, n):\n    for i in range(n):\n        a[i] = 0.5 * a[i]\n"
    tally = Tally()
    check_nest(Nest(source, {"a": ArraySpec("float64", "value", (8,), (8,))}, {"n": (6, 9)}, 1), tally, thorough=True)
    assert (tally.counts["leaving"], tally.counts["parallel"]) == (0, 1)


def test_a_subscript_that_leaves_its_array_unsaid_is_noticed(monkeypatch):
    monkeypatch.setattr(nest_check, "run_interpreted", lambda *_: None)
    with pytest.raises(Failure, match="a subscript leaves its array, and nothing says so"):
        check_nest(leaving(LEAVING["read"]), Tally())


def test_a_subscript_that_was_wrongly_proved_to_end_before_its_array_is_noticed(monkeypatch):
    monkeypatch.setitem(interpreted.STAND_INS, "checked", lambda at, *_: at)
    with pytest.raises(Failure, match="proved to be inside its array leaves it: index 9 is out of bounds"):
        check_nest(leaving(LEAVING["read"]), Tally())


# ---------------------------------------------------------------- dependences by brute force

NONE, COPIES, STAYS = "none", "copies", "stays"
CARRIED = [
    ("a[i] = b[i]", "0", [NONE], True),
    ("a[i + 1] = a[i]", "0", [STAYS], True),
    ("a[i + 1] = 1.0; a[i] = 2.0", "0", [STAYS], True),
    ("a[i] = a[i + 6]", "0", [NONE], True),
    ("t = b[i]; a[i] = t", "0", [NONE], True),
    ("t = b[i]; a[i] = t", "t", [COPIES], True),
    ("if i < 3:\n      t = b[i]", "t", [COPIES], True),
    ("if i == 3:\n      t = b[i]", "t", [NONE], True),
    ("a[i] = t; t = b[i]", "0", [STAYS], True),
    ("if i == 3:\n      t = b[i]\n    a[i] = t", "0", [STAYS], True),
    ("if i == 4:\n      t = b[i]\n    a[i] = t", "0", [STAYS], True),
    ("t = t + b[i]", "t", [NONE], True),
    ("t = t + b[i]; a[i] = t", "t", [STAYS], True),
    ("for j in range(3):\n      t = A[i, j]\n    a[i] = t", "0", [NONE, COPIES], True),
    ("a[i] = t; for j in range(3):\n      t = A[i, j]", "0", [STAYS, COPIES], True),
    ("a[idx[i]] = 1.0", "0", [STAYS], False),
    ("a[i if b[i] > 0 else 0] = 1.0", "0", [STAYS], False),
    ("a[i * i] = 1.0", "0", [NONE], False),
    ("for j in range(3):\n      a[i] = a[i] + A[i, j]", "0", [NONE, STAYS], True),
    ("for j in range(3):\n      A[i, j] = A[i, j + 1]", "0", [NONE, STAYS], True),
    ("for j in range(3):\n      A[i + 1, j] = A[i, j]", "0", [STAYS, NONE], True),
    ("for j in range(3):\n      A[i + 1, j] = A[i, j + 1]", "0", [STAYS, NONE], True),
    ("t = 0.0; for j in range(3):\n      t += A[i, j]\n    a[i] = t", "0", [NONE, NONE], True),
    ("for j in range(3):\n      A[i, j] = 1.0\n    a[j] = 1.0", "0", [COPIES, NONE], False),
    ("a[-i - 1] = a[i]", "0", [NONE], True),
    ("a[-i - 1] = a[i + 15]", "0", [STAYS], True),
    ("a[3] = b[i]; b[i] = a[3]", "0", [COPIES], True),
    ("a[3] = a[3] + 1", "0", [STAYS], True),
    ("b[i] = a[3]; a[3] = b[i]", "0", [STAYS], True),
    ("a[3] = a[4]", "0", [STAYS], True),
    ("a[i // 2] = b[i]; b[i] = a[i // 2]", "0", [STAYS], True),
    ("if i % 2 == 0:\n      a[3] = b[i]\n      b[i] = a[3]", "0", [COPIES], True),
    ("if i % 2 == 1:\n      a[3] = b[i]\n      b[i] = a[3]", "0", [STAYS], True),
    ("for j in range(i + 1):\n      a[j] = A[i, j]", "0", [COPIES, NONE], True),
    ("for j in range(5 - i):\n      a[j] = A[i, j]", "0", [STAYS, NONE], True),
]


@pytest.mark.parametrize(("body", "result", "carried", "affine"), CARRIED, ids=[row[0] for row in CARRIED])
def test_which_loops_carry_a_dependence(body, result, carried, affine):
    lines = body.replace("; ", "\n    ")
    source = f"def nest(a, b, A, idx):\n  t = 0.0\n  for i in range(5):\n    {lines}\n  return {result}\n"
    arrays = {name: ArraySpec("float64", "value", (20,), (20,)) for name in "ab"}
    arrays |= {"A": ArraySpec("float64", "value", (9, 9), (9, 9)), "idx": ArraySpec("int64", "index", (9,), (9,))}
    facts = loop_facts(Nest(source, arrays, {}, 3))
    assert [NONE if fact.is_parallel else COPIES if fact.copies_help else STAYS for fact in facts] == carried
    assert facts[0].is_affine == affine


def test_a_run_that_is_ended_says_nothing_of_the_last_trips():
    """All trips of i write the same elements; when the run ends, the one under way has not yet written them all."""
    source = "def nest(A, a):\n  for i in range(5):\n    for j in range(4):\n      a[j] = A[i, j]\n"
    arrays = {"A": ArraySpec("float64", "value", (5, 4), (5, 4)), "a": ArraySpec("float64", "value", (4,), (4,))}
    nest = Nest(source, arrays, {}, 3)
    for most_trips in (None, 13):
        outer, inner = Recording(nest).facts(nest.arguments(0), most_trips)
        assert outer.copies_help
        assert inner.is_parallel


ELSEWHERE = [
    ("a[i + 6] = a[i]", "serial"),  # apart by more than the first two sizes
    ("a[i + 60] = a[i]", "serial"),  # and by more than is drawn: the analysis names the size
    ("a[i] = a[n - i]", "serial"),
    ("a[i] = a[i + n]", "truly parallel"),
    ("a[i - 1] = a[i + 1]", "serial"),
    ("if i >= n - 1:\n            a[0] = a[1]", "single"),
]


@pytest.mark.parametrize(("body", "kind"), ELSEWHERE, ids=[row[0] for row in ELSEWHERE])
def test_a_loop_is_truly_parallel_if_it_is_at_all_sizes(body, kind):
    start = "n - 1" if kind == "single" else "0"
    source = f"def nest(a, n):\n    for i in range({start}, n):\n        {body}\n"
    nest = Nest(source, {"a": ArraySpec("float64", "value", (70,), (80,))}, {"n": (4, 6)}, 0)
    tally = Tally()
    (verdict,) = verdicts_for_any(orion.parallel_for(nest.function()), nest.arguments())
    check_verdicts([verdict], nest, tally)
    assert {name for name in ("serial", "truly parallel", "single") if tally.counts[name]} == {kind}
    claimed = tally.counts["missed truly parallel"]
    check_verdicts([replace(verdict, reasons=(Reason(ReasonKind.BLOCKS, "ORN107", "not known", (), ""),))], nest, tally)
    assert tally.counts["missed truly parallel"] - claimed == (kind == "truly parallel")


# ---------------------------------------------------------------- nests as files, and smaller


def test_a_nest_can_be_read_again_from_its_file():
    for number in range(5):
        nest = random_nest(1, number)
        again = read_nest(nest.file_text("why\nit failed", "python tests/fuzz.py"))
        assert again == nest
        assert str(again.arguments()) == str(nest.arguments())


def test_random_nests_are_small_and_most_stay_inside_their_arrays():
    leave = 0
    for number in range(200):
        nest = random_nest(2, number)
        try:
            for size in (0, 1):
                with np.errstate(all="ignore"):
                    nest.function()(**nest.arguments(size))
        except IndexError:
            leave += 1
        else:
            assert sum(facts.most_trips > 12 for facts in loop_facts(nest)) == 0
    assert 0 < leave < 20


def test_some_random_nests_have_arrays_of_other_dtypes():
    dtypes = {spec.dtype for number in range(500) for spec in random_nest(4, number).arrays.values()}
    assert dtypes == {"float64", "int64", "float32", *INTEGERS}


def test_a_failing_nest_is_made_smaller():
    nest = next(n for n in (random_nest(3, k) for k in range(99)) if "if" in n.source and n.source.count("for") > 2)
    small = reduced(nest, lambda n: n.source.count("for ") >= 2, seconds=20)
    assert small.source.count("for ") == 2
    assert len(small.source.splitlines()) <= 5


@pytest.mark.parametrize("dtype", [*INTEGERS, "int64", "uint64", "float32", "float64", "bool"])
def test_what_nobody_wrote_shows_in_every_dtype(dtype):
    assert interpreted.Numpy().empty_like(np.zeros(3, dtype)).any()
