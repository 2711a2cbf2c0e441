"""Reads that see a copy made before their loop: when that is legal, when it pays, what the plan says, the results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.ir.nodes import Subscript, walk
from orion.ir.printer import print_expr
from orion.ir.types import ArrayType, ScalarType
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.rewrites.copy_in import apply as transform
from orion.rewrites.copy_in.find import may_see_copy
from tests.loop_text import from_body
from tests.renamed_loops import KEPT, RENAMED, many_rounds, next_one, one_before, rows
from tests.trials import worker_counts

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

TYPES = {
    "A": ArrayType("float64", 2),
    "a": ArrayType("float64", 1),
    "at": ArrayType("int64", 1),
    "n": ScalarType("int64", weak=True),
    "x": ScalarType("float64", weak=True),
}

CONDITION = [
    ("for i in range(n):\n    a[i] = a[i] + a[i + 1]", "a[i + 1]", True),
    ("for i in range(n):\n    a[i] = a[i] + a[i + 1]", "a[i]", True),  # its own write comes after it
    ("for i in range(n):\n    a[i + 1] = a[i]", "a[i]", False),
    ("for i in range(n):\n    a[i] = x\n    a[i + 1] = a[i] + a[i + 2]", "a[i]", False),
    ("for i in range(n):\n    a[i] = x\n    a[i + 1] = a[i] + a[i + 2]", "a[i + 2]", True),
    ("for i in range(n):\n    a[i] = x\n    a[i] = a[i] + a[i + 1]", "a[i]", False),  # of its own iteration
    ("for i in range(n):\n    if x > 0:\n        a[i] = x\n    a[i + 1] = a[i]", "a[i]", False),
    ("for i in range(n, 0, -1):\n    a[i] = a[i - 1] + a[i + 1]", "a[i - 1]", True),
    ("for i in range(n, 0, -1):\n    a[i] = a[i - 1] + a[i + 1]", "a[i + 1]", False),
    ("for i in range(n):\n    a[i] = a[at[i]]", "a[at[i]]", False),
    ("for i in range(n):\n    a[at[i]] = a[i]", "a[i]", False),
    ("for i in range(n):\n    a[at[i]] = at[i]", "at[i]", True),
    ("for i in range(n):\n    a[2 * i] = a[2 * i + 2] + a[2 * i + 1]", "a[2 * i + 2]", True),
    ("for i in range(n):\n    a[i] += a[i + 1]\n    a[i + 2] *= 2", "a[i + 1]", False),
    ("for i in range(n):\n    a[i] += 1", "a[i]", False),  # updated in place
    ("for i in range(n):\n    for j in range(n):\n        A[i, j] = A[i + 1, j] + A[i, j + 1]", "A[i, j + 1]", True),
    ("for i in range(n):\n    for j in range(n):\n        A[i, j] = A[i + 1, j] + A[i - 1, j + 1]", "A[i - 1, j + 1]",
     False),
    ("for i in range(n):\n    x = a[i]\n    for j in range(3):\n        a[i + j] = x * a[i + j + 1]", "a[i]", False),
    ("for i in range(n):\n    x = 0.0\n    for j in range(3):\n        a[i] = x\n        x += a[i + 1 + j]",
     "a[i + 1 + j]", True),
    ("for i in range(n):\n    for j in range(3):\n        x = a[i]\n        a[i] = x + 1", "a[i]", False),
    ("for i in range(n):\n    while x > 0:\n        x -= a[i + 1]\n        a[i] = x", "a[i + 1]", False),
    ("for i in range(n):\n    while x > 0:\n        x -= 1\n    a[i] = x * a[i + 1]", "a[i + 1]", True),
    ("for i in range(n - 1):\n    A[i] = A[i + 1] * 2", "A[i + 1]", True),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text", "expected"), CONDITION)
def test_which_reads_may_see_a_copy(body, text, expected):
    program = split_program(through_passes(from_body(body, ", ".join(TYPES)), TYPES), TYPES, True)
    nest = program.nests[0]
    nodes = [node for statement in nest.body for node in walk(statement) if isinstance(node, Subscript)]
    read = [node for node in nodes if print_expr(node) == text][-1]
    assert may_see_copy(nest, TYPES, read.base.name, (read,)) is expected


def copied(plan):
    return tuple(one.array for loop in plan.function.loops for one in loop.nest.copied_in)


@pytest.mark.parametrize(("name", "function", "make", "arrays"), RENAMED + KEPT, ids=[row[0] for row in RENAMED + KEPT])
def test_results_are_those_of_python(name, function, make, arrays):
    for workers in worker_counts(1, 2, 4):
        with orion.session("threads", workers, force_parallel=True):
            ours = orion.parallel_for(function)
            for n in (0, 1, 2, 5, 40):
                same(ours, function, *(make(np.random.default_rng(n), n) for _ in range(2)))


def same(ours, function, arguments, expected):
    """The same bits, or the same error."""
    try:
        wanted = function(*expected)
    except IndexError:
        with pytest.raises(IndexError):
            ours(*arguments)
        return
    np.testing.assert_array_equal(ours(*arguments), wanted) if wanted is not None else ours(*arguments)
    for one, other in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("name", "function", "make", "arrays"), RENAMED + KEPT, ids=[row[0] for row in RENAMED + KEPT])
def test_which_loops_have_copies(name, function, make, arrays):
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*make(np.random.default_rng(0), 40))
    assert copied(plan) == arrays
    assert plan.is_parallel or not arrays
    plan.check()


@pytest.mark.ray
def test_on_ray():
    with orion.session("ray", 2, force_parallel=True):
        for _, function, make, _ in RENAMED[:3]:
            ours = orion.parallel_for(function)
            for _ in range(2):
                same(ours, function, *(make(np.random.default_rng(1), 40) for _ in range(2)))


# ---------------------------------------------------------------- when it pays, and what is said


def heavy(A):
    for i in range(A.shape[0] - 1):
        A[i] = np.exp(-A[i]) + A[i + 1]


def heavy_rounds(A, w, n):
    for t in range(n):
        for i in range(A.shape[0] - 1):
            A[i] = np.exp(-A[i]) + A[i + 1] * w[t, i % 3]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_copy_is_made_where_it_costs_less_than_running_serially(workers):
    with orion.session("threads", workers):
        dear, cheap = (orion.parallel_for(f).plan(np.zeros(1_000_000)) for f in (heavy, next_one))
    assert (dear.strategy, copied(dear)) == ("independent", ("A",))
    assert (cheap.strategy, copied(cheap)) == ("serial", ())
    assert "ORN124" in {reason.code for reason in cheap.reasons}
    assert "a copy of `A` made before the loop, 8,000,000 bytes, would cost more than running it serially" in " ".join(
        str(cheap).split()
    )
    assert "parallel but for `A[i + 1]`" in str(cheap)


def test_the_plan_says_so():
    with orion.session("threads", 2):
        plan = orion.parallel_for(heavy).plan(np.zeros(1_000_000))
    words = "reads of A see a copy made before the loop (8.00 MB): A[i + 1] in line"
    text = " ".join(str(plan).split())  # in one line: it is wrapped at the terminal's width
    assert f"copied in {words}" in text
    assert "1 more array, 8.00 MB" in text
    assert "parallel, reading a copy of `A` made before it" in text
    assert "A_before" not in text
    loop = plan.to_dict()["loops"][-1]
    assert loop["copied_in"] == [{"array": "A", "copy": "A_before", "reads": ["A[i + 1]"]}]
    assert "see a copy made before the loop" in plan._repr_html_()


def test_each_round_of_a_serial_loop_makes_its_copy():
    arguments = np.random.default_rng(0).random(500), np.ones((4, 3)), 4
    with orion.session("threads", 2, force_parallel=True):
        ours = orion.parallel_for(heavy_rounds)
        plan = ours.plan(*arguments)
        if copied(plan):  # where no better order is found
            assert plan.function.local_arrays[0].name == "A_before"
        one, other = arguments[0].copy(), arguments[0].copy()
        ours(one, *arguments[1:])
    with orion.session("serial"):
        orion.parallel_for(heavy_rounds)(other, *arguments[1:])
    np.testing.assert_array_equal(one, other)


def scaled_rounds(A, n):
    for _t in range(n):
        total = 1.0
        for i in range(A.shape[0]):
            total = max(total, A[i])
        for i in range(A.shape[0] - 1):
            A[i] = np.exp(-A[i] / total) + A[i + 1]


def test_a_serial_loop_among_parallel_ones_in_rounds_has_a_copy_in_each():
    with orion.session("threads", 2):
        plan = orion.parallel_for(scaled_rounds).plan(np.zeros(1_000_000), 5)
        assert [loop.strategy for loop in plan.loops] == ["independent", "independent"]
        assert copied(plan) == ("A",)
        plan.check()
        small = orion.parallel_for(scaled_rounds).plan(np.zeros(10), 5)
        assert copied(small) == ()
    results = []
    for workers in worker_counts(1, 2, 4):
        a = np.random.default_rng(0).random(300)
        with orion.session("threads", workers, force_parallel=True):
            orion.parallel_for(scaled_rounds)(a, 5)
        results.append(a)
    b = np.random.default_rng(0).random(300)
    scaled_rounds(b, 5)
    assert all(np.array_equal(results[0], one) for one in results)
    np.testing.assert_allclose(results[0], b, rtol=1e-13)


def test_rounds_are_opened_without_a_copy_where_that_does_not_pay():
    def cheap_rounds(A, B, n):
        for t in range(n):
            for i in range(B.shape[0]):
                B[i] = np.exp(-B[i]) * t
            for i in range(A.shape[0] - 1):
                A[i] = A[i + 1]

    with orion.session("threads", 2):
        plan = orion.parallel_for(cheap_rounds).plan(np.zeros(100_000), np.zeros(1_000_000), 5)
    assert copied(plan) == ()
    assert all(loop.is_parallel for loop in plan.loops)


def test_other_loops_stay_parallel_where_a_copy_does_not_pay():
    def both(A, B, n):
        for i in range(A.shape[0] - 1):
            A[i] = A[i + 1]
        for _t in range(n):
            for i in range(1, B.shape[0]):
                for j in range(B.shape[1]):
                    B[i, j] = 0.5 * (B[i - 1, j] + B[i, j])

    with orion.session("threads", 2):
        plan = orion.parallel_for(both).plan(np.zeros(1_000_000), np.zeros((2000, 2000)), 10)
    assert plan.loops[0].strategy == "serial"
    assert all(loop.is_parallel and loop.runs_on == 2 for loop in plan.loops[1:])
    assert "ORN124" in {reason.code for reason in plan.loops[0].reasons}


def test_arguments_that_share_memory_are_found():
    def other(A, B):
        for i in range(A.shape[0] - 1):
            A[i] = A[i + 1] + B[i]

    a = np.zeros(10)
    with orion.session("threads", 2, force_parallel=True), pytest.raises(orion.AliasError):
        orion.parallel_for(other)(a, a[::-1])


def test_any_order_needs_no_copy():
    plan = orion.parallel_for(ordered=False)(next_one).plan(np.zeros(100))
    assert copied(plan) == ()


# ---------------------------------------------------------------- what is wrong is found


def every_read(nest, types, dependences):
    """A broken condition: all reads with dependences see a copy."""
    nodes = [node for statement in nest.body for node in walk(statement) if isinstance(node, Subscript)]
    written = {d.source.span for d in dependences if d.source.is_write}
    return {"A": tuple(node for node in nodes if node.base.name == "A" and node.span not in written)}


def test_a_broken_condition_is_found_by_the_proof_and_by_the_results(monkeypatch):
    monkeypatch.setattr(transform, "renamable_reads", every_read)
    a = np.random.default_rng(0).random(50)
    b = a.copy()
    with orion.session("threads", 2, force_parallel=True):
        ours = orion.parallel_for(one_before)
        plan = ours.plan(a)
        assert copied(plan) == ("A",)
        with pytest.raises(orion.PlanError, match="reads of A need what the loop writes"):
            plan.check()
        ours(a)
    one_before(b)
    assert not np.array_equal(a, b)


def test_a_copy_that_is_not_made_is_found():
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(rows).plan(np.zeros((20, 5)))
    plan.check()
    program = replace(plan.function.program, steps=plan.function.program.steps[::-1])
    broken = replace(plan, function=replace(plan.function, program=program))
    with pytest.raises(orion.PlanError, match="A_before is no copy of A made right before the loop"):
        broken.check()


def test_rounds_with_tiles_that_wait_have_no_copies():
    with orion.session("threads", 2, force_parallel=True):
        assert copied(orion.parallel_for(many_rounds).plan(np.zeros(100), 3)) == ()


def spread_out(B, n):
    for i in range(n):
        B[i + 1, : n * 2 : 2] = B[2 * i, :n]


def test_a_row_that_is_spread_out_in_place_sees_what_it_has_written():
    """NumPy moves `a[:10:2] = a[:5]` one element after the other."""
    expected = np.random.default_rng(0).random((20, 24))
    mine = expected.copy()
    spread_out(expected, 5)
    for workers in worker_counts(1, 2, 3):
        given = mine.copy()
        with orion.session("threads", workers, force_parallel=True), pytest.warns(orion.SerialLoopWarning):
            orion.parallel_for(spread_out)(given, 5)
        np.testing.assert_array_equal(given, expected)
