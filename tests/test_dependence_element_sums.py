"""Array elements that iterations only add to: when that is seen, what copies are planned, and what comes out."""

import linecache
import textwrap
import warnings
from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.errors import PlanError, SerialLoopWarning
from orion.frontend.parse import parse_function
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.rewrites.array_sums.find import sum_into
from orion.schedule.build import build_schedule


def helper(row):
    row[0] += 1.0


def function_of(body):
    source = "def loop(h, H, c, idx, x, k, n):\n" + textwrap.indent(body, "    ") + "\n"
    file = f"<sums {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = {"np": np, "helper": helper}
    exec(compile(source, file, "exec"), scope)
    return scope["loop"]


def arguments():
    rng = np.random.default_rng(2)
    return {
        "h": rng.random(7), "H": rng.random((7, 3)), "c": rng.integers(0, 9, 7), "idx": rng.integers(0, 7, 40),
        "x": rng.random(40), "k": rng.integers(1, 4, 40), "n": 40,
    }  # fmt: skip


LOOP = "for i in range(n):\n    "
# The body of the loop, the array (h: floats, H: rows of floats, c: integers), and by which operator it is updated.
TABLE = [
    ("h[idx[i]] += x[i]", "h", "+"),
    ("h[idx[i]] -= x[i]", "h", "+"),
    ("h[idx[i]] *= x[i]", "h", "*"),
    ("h[idx[i]] /= x[i]", "h", None),
    ("h[idx[i]] = h[idx[i]] + x[i]", "h", "+"),
    ("h[idx[i]] = x[i] + h[idx[i]]", "h", "+"),
    ("h[idx[i]] = h[idx[i]] - x[i]", "h", "+"),
    ("h[idx[i]] = x[i] - h[idx[i]]", "h", None),
    ("h[idx[i]] = min(h[idx[i]], x[i])", "h", "min"),
    ("h[idx[i]] = np.maximum(x[i], h[idx[i]])", "h", "max"),
    ("h[idx[i]] = h[idx[i]] + h[idx[i]]", "h", None),
    ("h[idx[i]] = h[idx[i] - 1] + x[i]", "h", None),
    ("h[idx[i]] += h[0]", "h", None),
    ("c[c[i % 7]] += 1", "c", None),
    ("h[idx[i]] += x[i]\n    h[i % 3] -= 2.0", "h", "+"),
    ("h[idx[i]] += x[i]\n    h[i % 3] *= 2.0", "h", None),
    ("h[idx[i]] += x[i]\n    h[0] = 1.0", "h", None),
    ("h[idx[i]] += x[i]\n    x[i] = h[0]", "h", None),
    ("h[idx[i]] += x[i]\n    helper(h)", "h", "+"),
    ("h[idx[i]] += x[i]\n    x[i] = h.sum()", "h", None),
    ("if x[i] > 0.5:\n        h[idx[i]] += x[i]\n    else:\n        h[0] += 1.0", "h", "+"),
    ("for j in range(idx[i]):\n        h[j] += x[i]", "h", "+"),
    ("for j in range(c[0]):\n        c[j] += 1", "c", None),
    ("H[idx[i]] += x[i]", "H", "+"),
    ("H[idx[i], 1:] += x[i]", "H", "+"),
    ("row = H[idx[i]]\n    row += x[i]", "H", "+"),
    ("H[idx[i], k[i] - 1] += x[i]", "H", "+"),
    ("c[idx[i]] += 1", "c", "+"),
    ("c[idx[i]] += k[i]", "c", "+"),
    ("c[idx[i]] += x[i] > 0.5", "c", "+"),
    ("c[idx[i]] = max(c[idx[i]], k[i])", "c", "max"),
    ("c[idx[i]] += int(x[i] * 3)", "c", "+"),
]


@pytest.mark.parametrize(("body", "array", "op"), TABLE, ids=[row[0] for row in TABLE])
def test_what_is_an_update_and_nothing_else(body, array, op):
    types, _ = argument_types(arguments())
    program = split_program(through_passes(parse_function(function_of(LOOP + body)), types), types, None)
    found = sum_into(array, program.nests[0], types)
    assert (found and found[0]) == op


def test_a_float_that_is_added_to_an_integer_is_rounded_each_time():
    def loop(c, idx, x):
        for i in range(idx.size):
            c[idx[i]] = c[idx[i]] + int(x[i]) if x[i] > 2 else c[idx[i]]

    def rounded(c, idx, x):
        for i in range(idx.size):
            c[idx[i]] += x[i]

    types, _ = argument_types({"c": np.zeros(3, np.int64), "idx": np.zeros(4, np.int64), "x": np.zeros(4)})
    for function in (loop, rounded):
        nest = split_program(parse_function(function), types, None).nests[0]
        assert sum_into("c", nest, types) is None


WRAPPING = [
    ("c[idx[i]] += k[i]", "int8", "int64", "+"),
    ("c[idx[i]] *= k[i]", "int8", "int64", "*"),
    ("c[idx[i]] = max(c[idx[i]], k[i])", "int8", "int64", None),
    ("c[idx[i]] = max(c[idx[i]], k[i])", "int64", "int8", "max"),
    ("c[idx[i]] = min(c[idx[i]], 3)", "int8", "int64", "min"),
    ("c[idx[i]] += k[i]", "int64", "uint64", None),  # a float, as NumPy has it
]


@pytest.mark.parametrize(("body", "dtype", "other", "op"), WRAPPING)
def test_integers_that_wrap_around_have_sums_but_no_extremes(body, dtype, other, op):
    given = arguments() | {"c": np.zeros(7, dtype), "k": np.ones(40, other)}
    types, _ = argument_types(given)
    nest = split_program(through_passes(parse_function(function_of(LOOP + body)), types), types, None).nests[0]
    found = sum_into("c", nest, types)
    assert (found and found[0]) == op


# ---------------------------------------------------------------- plans


def histogram(idx, w, hist):
    for i in range(idx.size):
        hist[idx[i]] += w[i]


def plan_of(iterations, elements, workers=4, force=False):
    with orion.session(workers=workers, force_parallel=force):
        found = np.zeros(iterations, np.int64), np.zeros(iterations), np.zeros(elements)
        return orion.parallel_for(histogram).plan(*found)


def test_copies_do_not_depend_on_the_number_of_workers():
    plans = [plan_of(4_000_000, 100, workers) for workers in (1, 2, 3, 8)]
    for plan in plans:
        (loop,) = plan.loops
        assert loop.strategy == "independent"
        assert [(c.array, c.op, c.shape, c.count) for c in loop.copies] == [("hist", "+", (100,), 8)]
        assert loop.cuts == (8,)
        plan.check()


def test_copies_that_do_not_pay_are_not_made():
    plan = plan_of(20_000, 20_000)
    assert plan.strategy == "serial"
    assert not plan.loops[0].copies
    assert "ORN122" in {reason.code for reason in plan.reasons}
    assert "copies of `hist` for each block, 160,000 elements in all, would cost more" in " ".join(str(plan).split())
    assert plan_of(20_000, 20_000, force=True).strategy == "independent"


def test_a_loop_that_is_too_short_to_share_out_has_none():
    (loop,) = plan_of(20_000, 4).loops
    assert (loop.strategy, loop.copies) == ("serial", ())
    assert "copies of `hist` for each block, 32 elements in all, would cost more" in " ".join(
        str(plan_of(20_000, 4)).split()
    )


def test_a_loop_that_needs_no_copies_has_none():
    def own(a, x):
        for i in range(a.size):
            a[i] += x[i]

    def rows(y, A):
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                y[j] += A[i, j]

    for plan in (
        orion.parallel_for(own).plan(np.zeros(10**6), np.zeros(10**6)),
        orion.parallel_for(rows).plan(np.zeros(50), np.zeros((10**4, 50))),
    ):
        assert plan.is_parallel
        assert not any(loop.copies for loop in plan.loops)


def test_the_plan_says_so_and_every_view_has_it():
    plan = plan_of(4_000_000, 100)
    text = " ".join(str(plan).split())
    assert "reductions hist, by + in line" in text
    assert "each block adds to a copy, and they are combined at the end" in text
    assert "in one place; each of the 8 blocks has a copy of 800 bytes to add to" in text
    (loop,) = plan.to_dict()["loops"]
    assert loop["element_sums"] == [{"array": "hist", "operator": "+", "copies": 8}]
    assert "each block adds to a copy" in plan._repr_html_()


def test_a_plan_with_copies_of_an_array_that_is_read_is_not_proved():
    def running(idx, w, hist):
        for i in range(idx.size):
            hist[idx[i]] += w[i]
            w[i] = hist[0]

    honest = plan_of(4_000_000, 100)
    with orion.session(workers=4):
        plan = orion.parallel_for(running).plan(np.zeros(4 * 10**6, np.int64), np.zeros(4 * 10**6), np.zeros(100))
    assert plan.strategy == "serial"
    (loop,) = honest.function.loops
    broken = replace(loop, nest=plan.function.loops[0].nest)
    program = replace(plan.function.program, nests=(broken.nest,))
    with pytest.raises(PlanError, match="iterations cannot add to copies of hist"):
        replace(honest, function=replace(honest.function, program=program, loops=(broken,))).check()
    with pytest.raises(PlanError, match="planned loop 0 is not that of its program"):
        replace(honest, function=replace(honest.function, loops=(broken,))).check()
    without = replace(honest.function, loops=(replace(loop, copies=()),))
    with pytest.raises(PlanError, match="does not keep a dependence"):
        replace(honest, function=without).check()


def test_two_workers_with_one_copy_are_noticed(monkeypatch):
    plan = plan_of(4_000_000, 100)

    def broken(loop, bounds, workers):
        return build_schedule(loop, [np.array([0, *bounds[0][2:]])], workers)

    monkeypatch.setattr("orion.planned.build_schedule", broken)
    with pytest.raises(PlanError, match="two workers add to the same copy"):
        plan.check()


# ---------------------------------------------------------------- results


def least_and_rest(idx, w, low, counts, sums):
    for i in range(idx.size):
        low[idx[i]] = min(low[idx[i]], w[i])
        if w[i] > 0.25:
            counts[idx[i], i % 3] += 1
        sums[idx[i]] += w[i]


def rounds(idx, w, hist, out):
    t = 0
    while t < 5:
        for i in range(idx.shape[0]):
            hist[idx[i]] += w[i] + t
        for k in range(hist.size):
            out[t, k] = hist[k] * 2
            hist[k] = hist[k] % 1000
        t += 1
    return t


def read_between(idx, w, hist):
    total = 0
    for t in range(6):
        for i in range(idx.shape[0]):
            hist[idx[i]] += w[i] + t
        s = 0
        for k in range(hist.size):
            s += hist[k]
        total = total + s * t
    return total


def total_too(idx, w, hist):
    total = 0
    for i in range(idx.size):
        hist[idx[i]] -= w[i]
        total += w[i]
    return total


def with_a_row(idx, A, hist, row):
    for i in range(idx.size):
        for j in range(A.shape[1]):
            row[j] = A[i, j] * 2
        for j in range(A.shape[1]):
            hist[idx[i], j] += row[A.shape[1] - 1 - j]


def remainders(x, y):
    for i in range(x.shape[0]):
        y[i % 4] += x[i]


def small(rng, *shape):
    """Integers as floats: their sums are exact in any order."""
    return rng.integers(-9, 10, shape).astype(np.float64)


def cases():
    rng = np.random.default_rng(7)
    n = 3000
    idx = rng.integers(0, 11, n)
    w = rng.integers(-50, 50, n)
    return [
        (histogram, (idx, w, np.arange(11))),
        (histogram, (idx, small(rng, n), small(rng, 11))),
        (histogram, (idx[:3], small(rng, 3), small(rng, 11))),
        (histogram, (idx[:0], small(rng, 0), small(rng, 11))),
        (histogram, (idx, w.astype(np.int32), np.arange(22, dtype=np.int32)[::2])),
        (least_and_rest, (idx, rng.random(n), np.ones(11), np.zeros((11, 3), np.int32), np.zeros(11, np.float32))),
        (rounds, (idx, w, np.zeros(11, np.int64), np.zeros((5, 11), np.int64))),
        (read_between, (idx, w, np.zeros(11, np.int64))),
        (total_too, (idx, w, np.zeros(11, np.int64))),
        (remainders, (small(rng, n), np.zeros(4))),
    ]


FEW = (2, 3)
"""The cases in which `idx` has no two equal elements."""


def run(number, workers, **options):
    function, found = cases()[number]
    with orion.session(workers=workers, force_parallel=True, **options), warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        decorated = orion.parallel_for(function)
        plan = decorated.plan(*found)
        needs_none = number in FEW  # no two of its iterations add to one element
        assert any(loop.copies for loop in plan.loops) is not needs_none
        assert ("idx has no two equal elements" in plan.conditions) is needs_none
        plan.check()
        return decorated(*found), found


@pytest.mark.parametrize("number", range(len(cases())))
def test_the_bits_are_those_of_the_function_and_the_same_on_any_number_of_workers(number):
    function, expected = cases()[number]
    wanted = function(*expected)
    results = {workers: run(number, workers) for workers in (1, 2, 4)}
    for returned, found in results.values():
        assert returned == wanted
        for mine, theirs, first in zip(found, expected, results[1][1], strict=True):
            np.testing.assert_array_equal(mine, first)
            if mine.dtype == np.float32:
                np.testing.assert_allclose(mine, theirs, rtol=1e-5)
            else:
                np.testing.assert_array_equal(mine, theirs)


def test_elements_that_nothing_is_added_to_keep_their_bits():
    hist, idx = np.full(11, -0.0), np.zeros(3000, np.int64)
    with orion.session(workers=2, force_parallel=True):
        decorated = orion.parallel_for(histogram)
        assert decorated.plan(idx, np.ones(3000), hist).loops[0].copies
        decorated(idx, np.ones(3000), hist)
    assert hist[0] == 3000
    assert np.signbit(hist[1:]).all()


def test_an_array_of_each_iteration_and_copies_of_another_in_one_loop():
    rng = np.random.default_rng(7)
    idx, A = rng.integers(0, 11, 2_000_000), small(rng, 2_000_000, 4)
    expected, row = np.zeros((11, 4)), np.zeros(4)
    np.add.at(expected, idx, 2 * A[:, ::-1])
    with orion.session(workers=2):
        decorated, hist = orion.parallel_for(with_a_row), np.zeros((11, 4))
        plan = decorated.plan(idx, A, hist, row)
        plan.check()
        (loop,) = plan.function.loops
        assert [array.name for array in loop.private_arrays] == ["row"]
        assert [copies.array for copies in loop.copies] == ["hist"]
        decorated(idx, A, hist, row)
    np.testing.assert_array_equal(hist, expected)
    np.testing.assert_array_equal(row, 2 * A[-1])


def test_actors_of_one_machine_give_the_same_bits():
    with orion.session(workers=2, force_parallel=True, backend="ray"):
        for number in (5, 6, 7):
            function, found = cases()[number]
            returned = orion.parallel_for(function)(*found)
            wanted, expected = run(number, 2)
            assert returned == wanted
            for mine, theirs in zip(found, expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)


def by_group(ratings, group, sums):
    for (_, j), r in ratings:
        sums[group[j]] += r


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_elements_of_a_sparse_array(workers):
    rng = np.random.default_rng(4)
    keys, values = (rng.integers(0, 300, 20_000), rng.integers(0, 50, 20_000)), small(rng, 20_000)
    group, expected, sums = rng.integers(0, 5, 50), np.zeros(5), np.zeros(5)
    np.add.at(expected, group[keys[1]], values)
    with orion.session(workers=workers, force_parallel=True):
        decorated, ratings = orion.parallel_for(by_group), orion.sparse(keys, values, shape=(300, 50))
        plan = decorated.plan(ratings, group, sums)
        assert [copies.count for copies in plan.loops[0].copies] == [8]
        plan.check()
        decorated(ratings, group, sums)
    np.testing.assert_array_equal(sums, expected)


def test_a_failing_subscript_is_reported():
    idx = np.zeros(2000, np.int64)
    idx[1234] = 99
    with orion.session(workers=2, force_parallel=True), pytest.raises(orion.OutOfBoundsError):
        orion.parallel_for(histogram)(idx, np.ones(2000), np.zeros(5))


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(("body", "array", "op"), TABLE, ids=[row[0] for row in TABLE])
def test_the_verdict_names_the_arrays_that_copies_make_it_parallel_of(body, array, op):
    plan = orion.parallel_for(function_of(LOOP + body)).plan(*arguments().values())
    (verdict, *_) = plan.verdicts
    assert not verdict.is_parallel
    assert verdict.copies == ((array,) if op else ())
    (told, *_) = plan.to_dict()["loops"][0]["verdicts"]
    assert told["copies"] == list(verdict.copies)


def test_verdicts_of_nested_loops():
    body = "for i in range(n):\n    for j in range(3):\n        H[idx[i], j] += x[i]\n        h[j] = h[j] + 1.0"
    plan = orion.parallel_for(function_of(body)).plan(*arguments().values())
    assert [verdict.copies for verdict in plan.verdicts] == [("H", "h"), ()]
    assert [verdict.is_parallel for verdict in plan.verdicts] == [False, True]
    told = "parallel given copies of H and h, combined at the end"
    assert f"for i in range(n)  {told}" in str(plan)
    assert told in plan._repr_html_()


def test_no_copies_where_something_else_is_carried():
    body = "s = 0.0\nfor i in range(n):\n    h[idx[i]] += x[i]\n    s = s * 0.5 + x[i]\n    x[i] = s"
    (verdict,) = orion.parallel_for(function_of(body)).plan(*arguments().values()).verdicts
    assert {dependence.array for dependence in verdict.carried} == {"h", "s"}
    assert verdict.copies == ()
