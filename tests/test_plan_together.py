"""Neighbouring loops that are run as one: when that is legal, when it pays, and that nothing else changes."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.cost.caches import Caches
from orion.cost.sizes import Sizes
from orion.errors import PlanError
from orion.plan.plan import Fused
from orion.plan.planner import plan_program
from orion.prepare import Preparation
from orion.prepared_call import Options
from orion.rewrites.fuse.apply import Group, fuse_loops
from tests.loop_text import defined
from tests.oracles.interpreted import Order, kernel_code, run_interpreted
from tests.trials import times, worker_counts

ONE = "for i in range({0}):\n    {1}\nfor i in range({0}):\n    {2}"
TWO = """\
for i in range({0}):
    for j in range({1}):
        {2}
for i in range({0}):
    for j in range({1}):
        {3}"""


def one(first, second, space="n"):
    return ONE.format(space, first, second)


def two(first, second, rows="n", columns="m"):
    return TWO.format(rows, columns, first, second)


# Body, and for each loop that stands for several: how many, and the dimensions that they share.
LEGAL = [
    ("same elements", one("b[i] = 2 * a[i]", "c[i] = a[i] + b[i]"), [(2, "i")]),
    ("only read", one("b[i] = 2 * a[i]", "c[i] = a[i] + 1"), [(2, "i")]),
    ("reads of neighbours", one("b[i] = a[i - 1] + a[i + 1]", "c[i] = a[i - 1] - a[i]", "1, n - 1"), [(2, "i")]),
    ("flow to an earlier iteration", one("b[i] = a[i]", "c[i] = a[i] + b[i + 1]", "n - 1"), []),
    ("flow to a later iteration", one("b[i] = a[i]", "c[i] = a[i] + b[i - 1]", "1, n"), []),
    ("anti to a later iteration", one("b[i] = a[i - 1]", "a[i] = b[i]", "1, n"), []),
    ("anti to an earlier iteration", one("b[i] = a[i + 1]", "a[i] = b[i]", "n - 1"), []),
    ("output in another iteration", one("b[i] = a[i]", "b[i - 1] = a[i]", "1, n"), []),
    ("reversed", one("b[i] = a[i]", "c[i] = b[n - 1 - i] + a[i]"), []),
    ("everything", one("b[i] = a[i]", "c[i] = b[idx[i]] + a[i]"), []),
    ("overwritten", one("b[i] = a[i]", "b[i] = a[i] + 1"), [(2, "i")]),
    ("every second", one("b[i] = a[i]", "c[i] = a[i] + b[i]", "0, n, 2"), []),  # which blocks they share is not known
    ("other step", "for i in range(0, n, 2):\n    b[i] = a[i]\nfor i in range(0, n, 3):\n    c[i] = a[i] + b[i]", []),
    ("other start", "for i in range(n):\n    b[i] = a[i]\nfor i in range(1, n):\n    c[i] = a[i] + b[i]", []),
    ("other end", "for i in range(n):\n    b[i] = a[i]\nfor i in range(n - 1):\n    c[i] = a[i] + b[i]", []),
    ("same end by name",
     "k = n - 1\nfor i in range(k):\n    b[i] = a[i]\nfor i in range(n - 1):\n    c[i] = a[i] + b[i]",
     [(2, "i")]),
    ("other variable",
     "for i in range(n):\n    b[i] = a[i]\nfor j in range(n):\n    c[j] = a[j] + b[j] * j", [(2, "i")]),
    ("no array in common", one("b[i] = a[i]", "c[i] = d[i]"), []),
    ("a scalar", one("b[i] = s * a[i]", "c[i] = s + b[i]"), [(2, "i")]),
    ("own scalars", one("t = a[i] + 1\n    b[i] = t * t", "t = b[i] + a[i]\n    c[i] = t * t"), [(2, "i")]),
    ("a scalar read, then assigned", "t = s + 1\n" + one("b[i] = t * a[i]", "t = a[i] + b[i]\n    c[i] = t"), []),
    ("the other's variable",
     "t = n - 5\nfor i in range(n):\n    b[i] = t * a[i]\nfor t in range(n):\n    c[t] = a[t] + b[t]", [(2, "i")]),
    ("the other's inner variable",
     "j = n - 5\nfor i in range(n):\n    for p in range(m):\n        B[i, p] = j * A[i, p]\n"
     "for i in range(n):\n    for j in range(m):\n        C[i, j] = A[i, j] + B[i, j]", [(2, "ip")]),
    ("a scalar between", "for i in range(n):\n    b[i] = a[i]\ns = s + 1\nfor i in range(n):\n    c[i] = s + b[i]", []),
    ("elements between",
     "for i in range(n):\n    b[i] = a[i]\na[0] = 1\nfor i in range(n):\n    c[i] = a[i] + b[i]", []),
    ("a sum", one("b[i] = a[i]", "s += b[i]"), [(2, "i")]),
    ("two parts of a sum", one("s += a[i]", "s += a[i] * b[i]"), []),
    ("a sum over rows", two("B[i, j] = A[i, j]", "s += A[i, j] * B[i, j]"), [(2, "ij")]),
    ("a sum and rows", two("B[i, j] = A[i, j]", "s += A[i, j] * B[i, m - 1 - j]"), []),  # it may have other blocks
    ("the largest", one("b[i] = a[i]", "s = max(s, b[i])"), [(2, "i")]),
    ("a sum before", one("s += a[i]", "b[i] = s * a[i]"), []),
    ("a last value", one("s = a[i]\n    b[i] = s", "c[i] = s + b[i]"), []),
    ("a break", one("b[i] = a[i]", "if a[i] > 9:\n        break\n    c[i] = b[i]"), []),
    ("a chain", one("b[i] = a[i]", "c[i] = c[i - 1] + b[i]", "1, n"), []),
    ("a call without vectors", one("b[i] = 2 * a[i]", "c[i] = np.exp(b[i])"), []),
    ("a call with vectors", one("b[i] = 2 * a[i]", "c[i] = np.sqrt(abs(b[i]))"), [(2, "i")]),
    ("a branch", one("b[i] = 2 * a[i]", "if a[i] > 0:\n        c[i] = b[i]"), []),
    ("three", one("b[i] = a[i]", "c[i] = b[i]") + "\nfor i in range(n):\n    d[i] = c[i] - a[i]", [(3, "i")]),
    ("two of three", one("b[i] = a[i]", "c[i] = b[i]") + "\nfor i in range(1, n):\n    d[i] = c[i - 1]", [(2, "i")]),
    ("the last two",
     one("b[i] = a[i]", "c[i] = b[n - 1 - i]") + "\nfor i in range(n):\n    d[i] = c[i] + a[i]", [(2, "i")]),
    ("both dimensions", two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, j]"), [(2, "ij")]),
    ("rows", two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, m - 1 - j]"), [(2, "i")]),
    ("other rows", two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i - 1, j]", "1, n"), []),
    ("columns", two("B[i, j] = A[i, j]", "C[j, i] = B[j, i]", "n", "n"), []),
    ("other columns", two("B[i, j] = A[i, j]", "C[i, j] = A[i, j]").replace("range(m)", "range(m - 1)", 1), [(2, "i")]),
    ("triangles", two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, j]", "n", "i, n"), [(2, "ij")]),
    ("swapped names", two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, j] * j", "n", "m").replace(
        "for i in range(n):\n    for j in range(m):\n        C[i, j] = A[i, j] + B[i, j] * j",
        "for j in range(n):\n    for i in range(m):\n        C[j, i] = A[j, i] + B[j, i] * i"), [(2, "ij")]),
    ("rows with a chain",
     two("B[i, j] = A[i, j]", "C[i, j] = C[i, j - 1] + B[i, j] + A[i, j]", "n", "1, m"), [(2, "i")]),
    ("in a serial loop", textwrap.indent(one("b[i] = 2 * a[i]", "a[i] = a[i] + b[i]"), "    ").replace(
        "    for i", "for t in range(k):\n    for i", 1), [(2, "i")]),
    ("jacobi", "for t in range(k):\n" + textwrap.indent(
        one("b[i] = a[i - 1] + a[i + 1]", "a[i] = b[i - 1] + b[i + 1]", "1, n - 1"), "    "), []),
]  # fmt: skip
PARAMETERS = "a, b, c, d, A, B, C, idx, n, m, k, s"


def arguments(n=70, m=70):
    rng = np.random.default_rng(0)
    found = {name: rng.random(n) for name in "abcd"} | {name: rng.random((n, m)) for name in "ABC"}
    return found | {"idx": rng.permutation(n), "n": n, "m": m, "k": 3, "s": 1.5}


def function(body):
    return defined(f"def f({PARAMETERS}):\n{textwrap.indent(body, '    ')}\n    return s\n")


def groups(plan):
    """How many loops each loop that is run stands for, where it is more than one, and its dimensions."""
    return [(members(loop), "".join(loop.nest.dims)) for loop in plan.loops if members(loop)]


def members(loop):
    return len(loop.form.members) if isinstance(loop.form, Fused) else 0


def planned(body, *, caches=None, force=False, **sizes):
    """The plan of a body for arrays of some size, and caches of another."""
    f, found = orion.parallel_for(function(body)), arguments(**sizes)
    typed = f._preparations.plain.typed(f.plan(**found).function.types and dict(f.plan(**found).function.types))
    shapes = {name: value.shape for name, value in found.items() if isinstance(value, np.ndarray)}
    integers = {name: found[name] for name in typed.parameters}
    used = caches or Caches()
    return plan_program(typed.variants, Sizes(shapes, integers, {}, 2, force, caches=used))


def interpreted(f, mine, workers):
    """Prepare a run on some workers, prove its plan, and run its kernels in the interpreter."""
    prepared = orion.parallel_for(f)._preparations.plain.prepare(mine, workers, True)
    prepared.plan.check(workers)
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    return prepared.plan, run_interpreted(prepared.program, codes, {**mine, **prepared.local.take()}, Order(workers))


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in LEGAL], ids=[row[0] for row in LEGAL])
def test_what_is_legal_and_the_result(body, expected):
    f, serial = function(body), arguments(24, 24)
    returned = f(**serial)
    for workers in (1, 3):
        mine = arguments(24, 24)
        plan, found = interpreted(f, mine, workers)
        assert groups(plan.function) == expected
        assert np.isclose(found, returned)
        for name in "abcdABC":
            np.testing.assert_array_equal(mine[name], serial[name], name)


def test_the_compiled_result_is_the_same_on_any_number_of_workers():
    inner = textwrap.indent(one("b[i] = 2 * a[i]", "a[i] = a[i] - 0.3 * b[i]"), "    ")
    rows = two("B[i, j] = A[i, j] * 0.1", "C[i, j] = A[i, j] + B[i, m - 1 - j]")
    f = function(f"for t in range(k):\n{inner}\n{rows}")
    serial = arguments()
    f(**serial)
    compiled = orion.parallel_for(f)
    for workers in worker_counts(1, 2, 4):
        mine = arguments()
        with orion.session(workers=workers, force_parallel=True):
            assert groups(compiled.plan(**mine).function) == [(2, "i"), (2, "i")]
            compiled(**mine)
        for name in "abcABC":
            np.testing.assert_array_equal(mine[name], serial[name], name)


def test_sums_have_the_same_bits_as_one_loop_after_the_other():
    f, bits = function(one("b[i] = a[i] - 0.3", "s += a[i] * b[i]")), set()
    for second, workers in ((100, 1), (10**9, 1), (3000, 1), (3000, 2), (10**9, 4), (3000, 4)):
        compiled, mine = orion.parallel_for(f), arguments(1000)
        compiled._preparations.plain = Preparation(f, Options(), Caches(second))
        assert groups(compiled.plan(**mine).function) == ([(2, "i")] if second == 3000 else [])
        with orion.session(workers=workers):
            bits.add(compiled(**mine).hex())
    assert len(bits) == 1


def test_there_is_one_plan_per_loop_of_the_source_and_one_verdict_per_for():
    body = two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, j]")
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function(body)).plan(**arguments())
    assert [loop.nest.span.line for loop in plan.loops] == [2, 5]
    assert [(v.index, v.line, v.is_parallel) for v in plan.verdicts] == [(k, k + 2 + k // 2, True) for k in range(4)]
    assert len(plan.function.loops) == len(plan.function.program.nests) == 1
    for number, loop in enumerate(plan.loops):
        assert plan.schedule(loop=number).grid[0] == plan.function.loops[0].cuts[0]
        assert loop.form.fused_with.lines == (5 - 3 * number,)
        assert len(plan.serial_order(loop=number)) == 70 * 70
    assert plan.to_dict()["loops"][1]["fused_with"] == {"lines": [2], "arrays": ["A", "B"], "bytes_saved": None}
    assert "with the loop in line 5, iteration by iteration" in str(plan)
    assert "with the loop in line 5, iteration by iteration" in plan._repr_html_()


# ---------------------------------------------------------------- when it pays

LOOPS = one("b[i] = 2 * a[i]", "c[i] = a[i] + b[i]")
COLUMNS = """\
for j in range(m):
    t = 0.0
    for i in range(n):
        t = A[i, j] + 0.5 * t
        B[i, j] = t
for j in range(m):
    t = 0.0
    for i in range(n):
        t = A[i, j] + B[n - 1 - i, j] + 0.5 * t
        C[i, j] = t"""
BYTES = 70 * 8


@pytest.mark.parametrize(
    ("body", "second", "sizes", "expected"),
    [
        (LOOPS, BYTES - 1, {}, [(2, "i")]),
        (LOOPS, BYTES, {}, []),
        (two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, j]"), 400, {"n": 31}, []),  # fewer rows than blocks
        (two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, m - 1 - j]"), 6 * BYTES, {}, [(2, "i")]),
        (two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, m - 1 - j]"), 6 * BYTES - 1, {}, []),  # rows do not fit
        (COLUMNS, 8 * 6 * BYTES, {}, [(2, "j")]),
        (COLUMNS, 8 * 6 * BYTES - 1, {}, []),  # a cache line for each element
        (two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, j]"), 400, {}, [(2, "ij")]),
    ],
)
def test_loops_are_run_as_one_where_that_saves_traffic(body, second, sizes, expected):
    plan = planned(body, caches=Caches(second=second), **sizes)
    assert groups(plan) == expected
    assert plan.considered == ()
    assert len(plan.program.nests) == (1 if expected else 2)


def test_each_group_of_neighbours_is_decided_on_by_itself():
    small = "s = s + 1\nfor i in range(n):\n    b[i] = 2 * a[i]\nfor i in range(n):\n    c[i] = a[i] + b[i]"
    body = two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, m - 1 - j]") + "\n" + small
    f = function(body)
    expected = arguments()
    f(**expected)
    for second, found in ((6 * BYTES, [2, 0, 0]), (BYTES - 1, [0, 0, 2]), (10**9, [0, 0, 0, 0])):
        plan = planned(body, caches=Caches(second))
        assert [members(loop) for loop in plan.loops] == found
        compiled, mine = orion.parallel_for(f), arguments()
        compiled._preparations.plain = Preparation(f, Options(), Caches(second))
        assert len(compiled.plan(**mine).loops) == 4
        with orion.session(workers=2):
            compiled(**mine)
        for name in "bcBC":
            np.testing.assert_array_equal(mine[name], expected[name], name)


def test_what_is_saved_is_told():
    plan = planned(LOOPS + "\nfor i in range(n):\n    d[i] = a[i] * c[i]", caches=Caches(second=BYTES - 1))
    (loop,) = plan.loops
    why = [member.form.fused_with for member in loop.form.members]
    assert [one.lines for one in why] == [(4, 6), (2, 6), (2, 4)]
    assert why[0].arrays == ("a", "b", "c")
    assert why[0].saved == (2 + 1 + 1) * BYTES


def test_the_plan_says_why_loops_are_not_run_as_one():
    body = one("b[i] = a[i]", "c[i] = a[i] + b[i - 1]", "1, n")
    first, second = planned(body, caches=Caches(second=400)).loops
    (reason,) = [reason for reason in (*first.reasons, *second.reasons) if reason.code == "ORN123"]
    assert reason in second.reasons
    assert "line 2" in reason.message
    assert "`b[i]` (written in line 3)" in reason.message
    assert "`b[i - 1]` (read in line 5)" in reason.message
    others = [reason.code for loop in planned(body).loops for reason in loop.reasons]
    assert "ORN123" not in others  # nothing to gain: nothing to say


def test_unknown_sizes_are_not_run_as_one():
    typed = Preparation(function(LOOPS), Options()).typed(dict(planned(LOOPS).types))
    assert len(plan_program(typed.variants, Sizes(symbolic=True)).loops) == 2


# ---------------------------------------------------------------- the proof


def test_an_order_that_breaks_a_dependence_is_caught():
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function(LOOPS)).plan(**arguments())
        other = orion.parallel_for(function(one("b[i] = a[i]", "c[i] = a[i] + b[i + 1]", "n - 1"))).plan(**arguments())
    plan.check()
    (loop,) = plan.function.loops
    together = fuse_loops(other.function.program, (Group(0, 2, 1),))
    fused = replace(loop, nest=together.nests[0], form=Fused(other.loops))
    wrong = replace(other.function, program=together, unfused=other.function.program, loops=(fused,))
    with pytest.raises(PlanError, match="not legal as one"):
        replace(other, function=wrong).check()
    wrong = replace(wrong, program=replace(together, nests=(loop.nest,)), loops=(replace(fused, nest=loop.nest),))
    with pytest.raises(PlanError, match="does not do what they do"):
        replace(other, function=wrong).check()


# ---------------------------------------------------------------- random pairs

SUBSCRIPTS = st.sampled_from(["i", "i", "i", "i + 1", "i - 1", "n - 1 - i"])
SPACES = st.sampled_from(["1, n - 1", "1, n - 1", "1, n - 1, 2", "2, n - 1", "n - 2, 0, -1"])


@st.composite
def loops(draw):
    lines = []
    space = draw(SPACES)
    for _ in range(draw(st.integers(2, 4))):
        target, first, second = (draw(st.sampled_from("abc")) for _ in range(3))
        value = f"{first}[{draw(SUBSCRIPTS)}] - 0.5 * {second}[{draw(SUBSCRIPTS)}]"
        operator = draw(st.sampled_from(["=", "+="]))
        loop = f"for i in range({space}):\n    {target}[{draw(SUBSCRIPTS)}] {operator} {value}"
        in_j = loop.replace("[i", "[j").replace("- i]", "- j]").replace("for i", "for j")
        lines.append(draw(st.sampled_from([loop, in_j])))
        space = draw(st.one_of(st.just(space), SPACES))
    return "\n".join(lines)


@settings(max_examples=times(30, 12), deadline=None)
@given(loops())
def test_random_loops_give_what_python_gives(body):
    f = function(body)
    serial, mine = arguments(12, 1), arguments(12, 1)
    f(**serial)
    interpreted(f, mine, 3)
    for name in "abc":
        np.testing.assert_array_equal(mine[name], serial[name], f"{name}\n{body}")


# ---------------------------------------------------------------- on Ray


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_on_ray():
    body = "for t in range(k):\n" + textwrap.indent(one("b[i] = 2 * a[i]", "a[i] = a[i] - b[i]"), "    ")
    f = function(body + "\n" + two("B[i, j] = A[i, j]", "C[i, j] = A[i, j] + B[i, m - 1 - j]"))
    serial, mine = arguments(), arguments()
    f(**serial)
    with orion.session("ray", 2, force_parallel=True):
        compiled = orion.parallel_for(f)
        assert [members(loop) for loop in compiled.plan(**mine).function.loops][-1] == 2
        compiled(**mine)
    for name in "abcABC":
        np.testing.assert_array_equal(mine[name], serial[name], name)
