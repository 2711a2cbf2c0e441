"""Loops that are parallel for some sizes and integers: the condition is printed, looked at in each call, and exact."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.cost.sizes import Sizes
from orion.dependence.conditions import as_assumed, holds, is_possible
from orion.ir.assumed import OfArray, OfSizes, Property
from orion.ir.nodes import Dim
from orion.ir.signature import argument_types
from orion.ir.spans import NOWHERE
from orion.plan.conditions import conditions_in_words, in_words
from orion.plan.planner import plan_program
from tests.loop_text import defined
from tests.trials import ALL

N = 12


def scale(a, lo, hi):
    for i in range(lo, hi):
        a[i] = a[i] * 2.0 + 1.0


def shift(a, m, n):
    for i in range(n):
        a[i + m] = a[i] * 0.5 + 1.0


def falling(a, lo, hi):
    for i in range(hi, lo, -1):
        a[i] = a[i] * 2.0 + i


def backwards(a, m, n):
    for i in range(n):
        a[m - 2 * i] = a[m - 2 * i] * 3.0 + 1.0


def batch(a, start, b):
    for i in range(start, min(start + b, a.shape[0])):
        a[i] = a[i] * 2.0 + 1.0


def two_apart(a, k, m):
    for i in range(a.shape[0] // 3):
        a[i + k] = a[i + m] + 1.0


def epochs(a, lo, hi):
    for t in range(2):
        for i in range(lo, hi):
            a[i] = a[i] * 0.5 + t


FUNCTIONS = [scale, shift, falling, backwards, batch, two_apart, epochs]


def touched(function, one, other):
    """The elements that each iteration of the innermost loop writes and reads; None where it leaves the array."""

    class Recorder:
        shape = (N,)

        def __init__(self):
            self.rounds = []

        def __getitem__(self, index):
            self.rounds.append(("r", range(N)[index]))
            return 0.0

        def __setitem__(self, index, value):
            self.rounds.append(("w", range(N)[index]))

    array = Recorder()
    try:
        function(array, one, other)
    except IndexError:
        return None
    reads = [at for kind, at in array.rounds if kind == "r"]
    writes = [at for kind, at in array.rounds if kind == "w"]
    found = list(zip(reads, writes, strict=True))
    return found[: len(found) // 2] if function is epochs else found


def meet(iterations):
    """Whether two iterations touch the same element, one of them writing it."""
    return any(one[1] in other or other[1] in one for one, other in itertools.combinations(iterations, 2))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_condition_is_exact(function):
    """It holds where, among calls that stay in the array, no two iterations meet."""
    compiled = orion.parallel_for(function)
    names = compiled.plan(np.zeros(N), 1, 2).function.program.function.given
    conditions = {compiled.plan(np.zeros(N), one, other).conditions for one in range(-3, 4) for other in range(1, 5)}
    (condition,) = {conditions[0] for conditions in conditions if conditions}
    holds = 0
    for one, other in itertools.product(range(-N - 1, N + 2), repeat=2):
        iterations = touched(function, one, other)
        if iterations is None or len(iterations) < 2:
            continue
        says = eval(condition, {"min": min}, dict(zip(names, (np.zeros(N), one, other), strict=True)))
        assert says == (not meet(iterations)), (condition, one, other)
        holds += says
    assert holds > 0, "the condition holds for no call"


TRIED = (-N, -4, -1, 0, 1, 2, 5, N - 1) if ALL else (-N, -4, 0, 1, 5)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_calls_give_what_python_gives_whether_it_holds_or_not(function):
    compiled = orion.parallel_for(function)
    under_condition = 0
    with orion.session("threads", 2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        for one, other in itertools.product(TRIED, repeat=2):
            if touched(function, one, other) is None:
                continue
            expected, got = np.arange(N) * 1.0, np.arange(N) * 1.0
            function(expected, one, other)
            compiled(got, one, other)
            np.testing.assert_array_equal(got, expected, err_msg=f"{one}, {other}")
            plan = compiled.plan(got, one, other)
            plan.check()
            under_condition += bool(plan.conditions)
    assert under_condition > 0, "no call ran the variant with a condition"


def test_a_plan_says_its_condition_and_why_not():
    compiled = orion.parallel_for(shift)
    good, bad = compiled.plan(np.zeros(5000), 2000, 1000), compiled.plan(np.zeros(5000), 7, 1000)
    assert good.is_parallel
    assert good.conditions[0].startswith("m >= n or ")
    assert f" if {good.conditions[0]}: looked at in each call" in " ".join(str(good).split())
    assert json.loads(good.to_json())["conditions"] == list(good.conditions)
    assert "m &gt;= n" in good._repr_html_()
    assert not bad.is_parallel
    assert bad.conditions == ()
    (other,) = [one for one in bad.considered if one.reason.code == "ORN125"]
    assert "m = 7" in other.reason.message
    assert "n = 1000" in other.reason.message
    assert "i=0 and i=7" in str(bad)
    assert "i=0 and i=1)" not in str(bad)


def test_a_plan_of_a_file_says_the_condition(tmp_path):
    path = tmp_path / "shift.py"
    path.write_text(
        "import orion\n\n\n@orion.parallel_for\ndef shift(a, m: int, n: int):\n    for i in range(n):\n"
        "        a[i + m] = a[i] * 0.5\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "orion", "explain", str(path)], capture_output=True, text=True, check=False
    )
    assert "m >= n" in done.stdout, done.stdout + done.stderr


def recurrence(a, n):
    for i in range(1, n):
        a[i] = np.sqrt(a[i - 1])


def far_recurrence(a, n):
    for i in range(5, n):
        a[i] = a[i - 5] + 1.0


def running(a, b, n):
    s = 0.0
    for i in range(n):
        s = s * s * 0.5 + a[i]
        b[i] = s


@pytest.mark.parametrize(("function", "more"), [(recurrence, ()), (far_recurrence, ()), (running, (np.zeros(50),))])
def test_short_loops_are_no_condition(function, more):
    """Any recurrence carries nothing where it has few iterations."""
    plan = orion.parallel_for(function).plan(np.zeros(50), *more, 3)
    assert plan.conditions == ()
    assert not any(one.reason.code == "ORN125" for one in plan.considered)


def test_of_several_loops_those_run_in_parallel_for_which_it_holds():
    @orion.parallel_for
    def both(a, b, m, k, n):
        for i in range(n):
            a[i + m] = a[i] * 0.5
        for j in range(n):
            b[j + k] = b[j] * 0.5

    a, b = np.zeros(5000), np.zeros(5000)
    kinds = [tuple(loop.is_parallel for loop in both.plan(a, b, m, k, 900).loops) for m in (1000, 3) for k in (1000, 3)]
    assert kinds == [(True, True), (True, False), (False, True), (False, False)]


def test_conditions_as_values():
    import islpy as isl

    assumed = as_assumed(0, isl.Set("[lo, n, other] -> { : lo >= 0 or n <= 2lo }"))
    assert set(assumed.names) == {"lo", "n"}
    assert holds(assumed, {"lo": 1, "n": 100})
    assert not holds(assumed, {"lo": -1, "n": 100})
    assert not holds(assumed, {"lo": -1})
    assert is_possible(assumed, {"lo": -1})
    assert not is_possible(assumed, {"lo": -1, "n": 100})
    names = {"A__1": Dim("A", 1, NOWHERE)}
    words = in_words(OfSizes(0, "(m >= n and A__1 >= m)", ("m", "n", "A__1")), names)
    assert words in {"m >= n and A.shape[1] >= m", "A.shape[1] >= m and m >= n"}
    rounded = OfSizes(0, "(n >= 8*floor((d + lo - 1)/8))", ("d", "lo", "n"))
    words = in_words(rounded, {})
    for d, lo, n in itertools.product(range(-9, 10, 3), range(-5, 30, 7), range(-30, 31, 5)):
        values = {"d": d, "lo": lo, "n": n}
        assert eval(words, values) == holds(rounded, values), words


def by_columns(a, b, n, m, w):
    for i in range(n):
        for j in range(w):
            a[i * w + j] = b[(i + m) * w + j] + a[(i + m) * w + j]


def test_conditions_on_rows_of_a_flat_array_name_what_the_caller_has():
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(by_columns).plan(np.ones(120), np.ones(120), 10, 3, 5)
        told = [*plan.conditions, *(one.reason.message for one in plan.considered)]
        assert not any("shape[1]" in one for one in told), told


def doubled(b, n, m, k):
    for i in range(k - n, m):
        b[i] = b[2 * i + k] - 1


def test_dependences_that_are_not_there_in_a_call_stand_in_nobodys_way():
    given, expected = np.arange(24), np.arange(24)
    with orion.session("threads", 2, force_parallel=True):
        compiled = orion.parallel_for(doubled)
        plan = compiled.plan(given, 5, 0, 2)  # the range is -3, -2, -1: it writes 21 to 23 and reads 20, 22 and 0
        plan.check()
        assert plan.loops[0].strategy == "independent"
        compiled(given, 5, 0, 2)
    doubled(expected, 5, 0, 2)
    assert np.array_equal(given, expected)


def test_a_property_of_an_array_is_a_condition_that_only_its_elements_show():
    types, shapes = argument_types({"a": np.zeros(40), "m": 20, "n": 20})
    typed, shapes = orion.parallel_for(shift)._preparations.plain.typed_for(types, shapes, {})
    (condition,) = typed.variants[0].program.function.assumed
    permuted = OfArray(condition.index, "a", Property.DISTINCT)

    def with_property(variant):
        function = replace(variant.program.function, assumed=(permuted,))
        return replace(variant, program=replace(variant.program, function=function))

    variants = [with_property(one) if one.program.function.assumed else one for one in typed.variants]
    sizes = Sizes(shapes, {"m": 5, "n": 20}, workers=2, force_parallel=True)
    plan = plan_program(variants, sizes)
    assert not plan.loops[0].is_parallel
    assert [one.reason.message for one in plan.considered] == ["`a has no two equal elements` does not hold"]
    for known in (replace(sizes, shown=frozenset({("a", Property.DISTINCT, True)})), replace(sizes, symbolic=True)):
        plan = plan_program(variants, known)
        assert plan.loops[0].is_parallel
        assert conditions_in_words(plan.program.function, dict(plan.types)) == ("a has no two equal elements",)


def test_a_condition_needs_dependences_that_are_known_exactly():
    @orion.parallel_for
    def scatter(a, at, n):
        for i in range(n):
            a[at[i]] = a[i] * 0.5

    assert scatter.plan(np.zeros(9), np.zeros(9, np.int64), 9).conditions == ()


def stepped(a, lo, hi, step):
    for i in range(lo, hi, step):
        a[i] = a[i] * 2.0 + i


def in_blocks(a, n, step):
    for i in range(0, n, step):
        for j in range(i, min(i + step, n)):
            a[j] = a[j] * 2.0 + i


def falling_by(a, n, step):
    for i in range(n - 1, -1, -step):
        a[i] = a[i] + 1.0


@pytest.mark.parametrize("step", [1, 2, 3, 7, -1, -4])
def test_a_step_of_the_call_is_the_number_that_it_is(step):
    compiled = orion.parallel_for(stepped)
    lo, hi = (3, 500) if step > 0 else (499, -1)
    expected, got = np.arange(500.0), np.arange(500.0)
    stepped(expected, lo, hi, step)
    with orion.session("threads", 2, force_parallel=True):
        plan = compiled.plan(got, lo, hi, step)
        assert plan.is_parallel
        assert plan.runs_on == 2
        assert f"step == {step}" in plan.conditions
        plan.check()
        compiled(got, lo, hi, step)
    np.testing.assert_array_equal(got, expected)


def with_step(step):
    """Three functions with that step: a loop, a sum, and a nest that gets another order."""
    bodies = (
        "    for i in range(n, k, {step}):\n        a[i, 0] = a[i, 0] * 2 + i\n",
        "    t = 0\n    for i in range(n, k, {step}):\n        t += a[i, 0]\n    a[0, 0] = t\n",
        "    for t in range(3):\n        for i in range(n, k, {step}):\n            a[i, 0] = a[i, 0] * 2 + i + t\n",
    )
    return [defined(f"def f(a, n, k, s):\n{body.format(step=step)}") for body in bodies]


STEPS = {"- -1": (), "-s": (-1, 2), "-3 + 4": (), "s * s": (-1,)}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_the_same_however_it_is_written(step):
    for function in with_step(step):
        for s in STEPS[step] or (0,):
            n, k = (5, 30) if eval(step, {"s": s}) > 0 else (30, 5)
            got = np.arange(64 * 3).reshape(64, 3)
            expected = got.copy()
            function(expected, n, k, s)
            with orion.session("threads", 2, force_parallel=True), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                orion.parallel_for(function).plan(got, n, k, s).check()
                orion.parallel_for(function)(got, n, k, s)
            assert np.array_equal(got, expected), function.__name__


def test_steps_change_from_call_to_call():
    compiled, plain = orion.parallel_for(falling_by), np.zeros(100)
    got = np.zeros(100)
    with orion.session("threads", 2, force_parallel=True):
        for step in (1, 2, 1, 5, np.int8(3), 2):
            falling_by(plain, 100, int(step))
            compiled(got, 100, step)
            assert compiled.plan(got, 100, step).is_parallel
    np.testing.assert_array_equal(got, plain)


def test_blocks_of_a_step_are_parallel():
    compiled = orion.parallel_for(in_blocks)
    expected, got = np.ones(1000), np.ones(1000)
    in_blocks(expected, 1000, 64)
    with orion.session("threads", 2, force_parallel=True):
        plan = compiled.plan(got, 1000, 64)
        plan.check()
        compiled(got, 1000, 64)
    assert plan.is_parallel
    np.testing.assert_array_equal(got, expected)


def test_a_step_of_0_is_pythons_error():
    compiled = orion.parallel_for(stepped)
    compiled(np.zeros(9), 0, 9, 2)
    with pytest.raises(ValueError, match="must not be zero"):
        compiled(np.zeros(9), 0, 9, 0)


def halved(a, k):
    for _ in range(2):
        for i in range(0, a.shape[0], 2 * k):
            a[i] = 1.0


@pytest.mark.parametrize(("function", "given"), [(stepped, (0, 9, 0)), (stepped, (0, 9, False)), (halved, (0,))])
def test_a_step_of_0_is_refused_with_its_line_by_plans_and_calls(function, given):
    compiled = orion.parallel_for(function)
    for asked in (compiled.plan, compiled):
        with pytest.raises(ValueError, match=r"test_conditions.py:\d+: range\(\) arg 3 must not be zero\n.* for i in"):
            asked(np.zeros(9), *given)


def test_names_that_isl_reserves_or_cannot_read():
    @orion.parallel_for
    def moved(a, mod, λ):  # noqa: PLC2401
        for i in range(mod):
            a[i + λ] = a[i] + 1.0

    plan = moved.plan(np.zeros(100), 30, 50)
    assert plan.loops[0].iterations == 30
    assert plan.is_parallel
    assert plan.conditions[0].startswith("λ >= mod or ")
    assert not moved.plan(np.zeros(100), 30, 5).is_parallel


def test_many_steps_are_not_all_compiled():
    compiled = orion.parallel_for(stepped)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        kinds = [compiled.plan(np.zeros(100), 0, 100, step).is_parallel for step in range(1, 12)]
    assert kinds == [True] * 8 + [False] * 3
    assert compiled.plan(np.zeros(100), 0, 100, 4).is_parallel


def below_in_rounds(a, n, m):
    for i in range(n):
        for _j in range(m):
            t = 0.3  # noqa: F841 - so that these loops are no nest
            for k in range(i):
                e = 0 - k
                a[e] += 0.5


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 4), (0, 3)])
def test_a_condition_on_a_loop_around_is_known_inside(n, m):
    """The parameters of the ranges of serial loops around a nest are those of its domain, where conditions name them
    too."""
    expected, got = np.zeros(13), np.zeros(13)
    below_in_rounds(expected, n, m)
    compiled = orion.parallel_for(below_in_rounds)
    with orion.session("threads", 2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        compiled.plan(got, n, m).check()
        compiled(got, n, m)
    np.testing.assert_array_equal(got, expected)
