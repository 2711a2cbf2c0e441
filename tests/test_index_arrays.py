"""Loops that are parallel by what arrays of subscripts hold: it is looked at in every call."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from orion.cost.sizes import Asked
from orion.ir.assumed import Property
from tests.loop_text import defined
from tests.trials import TIMES, one_in

N = 3000

LOOPS = {
    "put elsewhere": ("for i in range(n):\n    out[perm[i]] = x[i]", {"perm": "has no two equal elements"}),
    "added elsewhere": ("for i in range(n):\n    out[perm[i]] += x[i]", {"perm": "has no two equal elements"}),
    "at a multiple": ("for i in range(n):\n    wide[2 * perm[i] + 1] = x[i]", {"perm": "has no two equal elements"}),
    "counted from the end": ("for i in range(n):\n    out[-perm[i] - 1] = x[i]", {"perm": "has no two equal elements"}),
    "two arrays at once": (
        "for i in range(n):\n    out[perm[i]] = x[i]\n    wide[perm[i]] += out[perm[i]]",
        {"perm": "has no two equal elements"},
    ),
    "by a name": (
        "for i in range(n):\n    at = perm[i]\n    t = x[i]\n    out[at] = t * 2\n    out[at] += 1.0",
        {"perm": "has no two equal elements"},
    ),
    "rows": (
        "for i in range(n):\n    for j in range(4):\n        rows[perm[i], j] += x[i] * j",
        {"perm": "has no two equal elements"},
    ),
    "whole rows": ("for i in range(n):\n    rows[perm[i], :] += x[i]", {"perm": "has no two equal elements"}),
    "a table of places": (
        "for i in range(n // 4):\n    for j in range(4):\n        out[table[i, j]] = x[i] + j",
        {"table": "has no two equal elements"},
    ),
    "the one before": (
        "for i in range(n):\n    out[perm[i - 1]] = x[i]",
        {},
    ),
    "a ragged row": (
        "for i in range(m):\n    for p in range(ptr[i], ptr[i + 1]):\n        data[p] *= x[i]",
        {"ptr": "never goes down"},
    ),
    "a ragged row twice": (
        "for i in range(m):\n    s = 0.0\n    for p in range(ptr[i], ptr[i + 1]):\n        s += data[p]\n"
        "    for p in range(ptr[i], ptr[i + 1]):\n        data[p] = data[p] / (s + 1.0)",
        {"ptr": "never goes down"},
    ),
    "only the first of a row": (
        "for i in range(m):\n    if ptr[i] < ptr[i + 1]:\n        data[ptr[i]] = x[i]",
        {},
    ),
    "rounds at other places": (
        "for t in range(3):\n    for i in range(n - 3):\n        out[perm[i + t]] += x[i]",
        {"perm": "has no two equal elements"},
    ),
    "rounds apart by a number": (
        "for t in range(3):\n    for i in range(n):\n        wide[perm[i] + t] += x[i]",
        {"perm": "has no two equal elements"},
    ),
    "rounds of it": (
        "for t in range(3):\n    for i in range(n):\n        out[perm[i]] += x[i] * t",
        {"perm": "has no two equal elements"},
    ),
}
"""The text, and what each array is asked for beside having no negative element."""


def of_text(text):
    body = ("n, m = len(x), len(ptr) - 1\n" + text).replace("\n", "\n    ")
    return defined(f"def f(out, wide, rows, data, perm, table, ptr, x):\n    {body}\n", np=np)


def given(dtype=np.int64, seed=0, n=N):
    rng = np.random.default_rng(seed)
    perm = rng.permutation(n).astype(dtype)
    ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 5, n - 1))]).astype(np.int64)
    data, table = rng.random(int(ptr[-1])), perm.reshape(-1, 4).copy()
    return np.zeros(n), np.zeros(2 * n), np.zeros((n, 4)), data, perm, table, ptr, rng.random(n)


ARRAYS = ("out", "wide", "rows", "data", "perm", "table", "ptr", "x")


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", [*LOOPS])
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_results_are_those_of_python(name, workers):
    written = of_text(LOOPS[name][0])
    decorated = orion.parallel_for(written)
    with orion.session(workers=workers, force_parallel=True):
        for seed, dtype in enumerate((np.int64, np.int32, np.int16)):
            mine, theirs = given(dtype, seed), given(dtype, seed)
            decorated(*mine)
            written(*theirs)
            for one, other in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_results_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for name, (text, asked) in one_in(3, [*LOOPS.items()]):
            written = of_text(text)
            decorated = orion.parallel_for(written)
            mine, theirs = given(), given()
            assert not asked or decorated.plan(*mine).is_parallel, name
            decorated(*mine)
            written(*theirs)
            for one, other in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", [name for name, (_, asked) in LOOPS.items() if asked])
def test_they_are_parallel_where_the_arrays_are_such(name):
    text, asked = LOOPS[name]
    decorated = orion.parallel_for(of_text(text))
    with orion.session(workers=2, force_parallel=True):
        plan = decorated.plan(*given())
    plan.check()
    assert plan.is_parallel
    for array, what in asked.items():
        assert f"{array} {what}" in plan.conditions


@pytest.mark.parametrize("name", [name for name, (_, asked) in LOOPS.items() if asked])
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_they_are_right_where_the_arrays_are_not(name):
    text, asked = LOOPS[name]
    written, rng = of_text(text), np.random.default_rng(7)
    decorated = orion.parallel_for(written)
    with orion.session(workers=4, force_parallel=True):
        for trial in range(12):
            mine, theirs = given(), given()
            for array in asked:
                at = ARRAYS.index(array)
                size = mine[at].size
                if array == "ptr":
                    places, values = rng.integers(1, size, 2), np.sort(rng.integers(0, len(mine[3]) - 1, 2))[::-1]
                else:
                    places = rng.integers(0, size, 2)
                    value = mine[at].flat[places[1]]
                    values = [value if trial % 2 else value - N, value]  # the same element, once from the end
                mine[at].flat[places] = theirs[at].flat[places] = values
            for one in (decorated, written):
                one(*(mine if one is decorated else theirs))
            for one, other in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


CHANGED = {
    "an element": "for i in range(n):\n    perm[i] = 5\n    out[perm[i]] = x[i]",
    "an element that is added to": "for i in range(n):\n    perm[i] += i % 2\n    out[perm[i] % n] += x[i]",
    "one of two that are assigned": "for i in range(n):\n    perm[i], data[i] = 7, 1.0\n    out[perm[i]] += x[i]",
    "a part, before": "perm[3:9] = 4\nfor i in range(n):\n    out[perm[i]] = x[i]",
    "all, between rounds": "for t in range(2):\n    for i in range(n):\n        out[perm[i]] += x[i]\n    perm[:] = 2",
    "through another name": "p = perm\np[4] = p[5]\nfor i in range(n):\n    out[perm[i]] = x[i]",
}
"""What the function does to `perm` itself: what it held before the call says nothing then."""


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", CHANGED)
def test_arrays_that_the_function_changes_are_not_asked(name):
    written = of_text(CHANGED[name])
    decorated = orion.parallel_for(written)
    with orion.session(workers=4, force_parallel=True):
        mine, theirs = given(), given()
        plan = decorated.plan(*mine)
        assert not any("perm has" in one for one in plan.conditions)
        plan.check()
        decorated(*mine)
        written(*theirs)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_change_of_one_element_is_noticed():
    written = of_text(LOOPS["put elsewhere"][0])
    decorated, rng = orion.parallel_for(written), np.random.default_rng(3)
    mine = given()
    perm, right = mine[4], mine[4].copy()

    def is_independent():
        """Whether the call, which is made here, is run by a plan with independent iterations."""
        mine[0][:] = 0.0
        decorated(*mine)
        return decorated._preparations.plain._last.prepared.plan.strategy == "independent"

    with orion.session(workers=2, force_parallel=True):
        for _ in range(200 * TIMES):
            assert is_independent()
            np.testing.assert_array_equal(mine[0][perm], mine[7])
            at, other = rng.choice(N, 2, replace=False)
            perm[at] = perm[other]
            assert not is_independent()
            expected = np.zeros(N)
            expected[perm] = mine[7]  # of equal places the last
            np.testing.assert_array_equal(mine[0], expected)
            perm[:] = right


def test_places_that_count_from_the_end_may_be_one_place():
    def rotate(out, perm, x):
        for i in range(len(x)):
            out[perm[i - 1]] = x[i]

    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(rotate).plan(np.zeros(9), np.arange(9), np.zeros(10))  # i = 0 and i = 9 are one place
    assert not plan.is_parallel


def test_frozen_arrays_are_looked_at_once(monkeypatch):
    from orion.runtime import shown

    decorated = orion.parallel_for(of_text(LOOPS["put elsewhere"][0]))
    arguments = [*given()]
    arguments[4] = orion.freeze(arguments[4])
    looked = []
    whole = shown.has_property
    monkeypatch.setattr(shown, "has_property", lambda array, one: looked.append(array.size) or whole(array, one))
    with orion.session(workers=2, force_parallel=True):
        for _ in range(3):
            decorated(*arguments)
    assert looked.count(N) == 2  # no negative element, no two equal
    with pytest.raises(ValueError, match="read-only"):
        arguments[4][0] = 1
    np.testing.assert_array_equal(arguments[0][arguments[4]], arguments[7])


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.array(3.0),
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.arange(12.0)[::-2],
        np.arange(3).astype(">i4"),
        np.array(["2020-01-01"], "M8[D]"),
    ],
    ids=lambda array: array.dtype.str,
)
def test_a_frozen_array_is_the_same_for_ever(array):
    frozen = orion.freeze(array)
    assert (frozen.shape, frozen.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(frozen, array)
    for part in (frozen, frozen[...], frozen.T, frozen.view()):
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.flags.writeable = True
    with pytest.raises(orion.ArgumentError, match="array of Python objects"):
        orion.freeze(np.array([None]))
    with pytest.raises(orion.ArgumentError, match="MaskedArray"):
        orion.freeze(np.ma.array([1, 2], mask=[True, False]))


def test_an_array_that_was_read_only_for_a_while_is_looked_at_again():
    decorated, arguments = orion.parallel_for(of_text(LOOPS["put elsewhere"][0])), [*given()]
    perm = arguments[4]
    with orion.session(workers=2, force_parallel=True):
        for equal in (False, True):
            perm.flags.writeable = True
            if equal:
                perm[-1] = perm[0]
            perm.flags.writeable = False
            assert (decorated.plan(*arguments).strategy == "inspected") == equal


def test_what_was_looked_at_is_let_go_of_with_its_array():
    from orion.runtime.shown import Properties

    properties, perm = Properties(), np.arange(9)
    asked = Asked(frozenset({frozenset({("perm", Property.DISTINCT)})}), frozenset())
    assert properties.of(asked, {"perm": perm}) == {("perm", Property.DISTINCT, True)}
    assert len(properties._looked) == 1
    del perm
    assert not properties._looked


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_an_array_that_changes_while_threads_call():
    from concurrent.futures import ThreadPoolExecutor

    decorated = orion.parallel_for(of_text(LOOPS["put elsewhere"][0]))

    def calls(seed):
        mine, rng = given(seed=seed), np.random.default_rng(seed)
        for _ in range(20):
            mine[4][:] = rng.permutation(N) if rng.random() < 0.5 else rng.integers(0, N, N)
            mine[0][:] = 0.0
            decorated(*mine)
            expected = np.zeros(N)
            expected[mine[4]] = mine[7]
            np.testing.assert_array_equal(mine[0], expected)

    with orion.session(workers=2, force_parallel=True), ThreadPoolExecutor(3) as pool:
        list(pool.map(calls, range(3)))


@pytest.mark.parametrize(
    ("values", "has"),
    [
        ([], "NOT_NEGATIVE SORTED DISTINCT"),
        ([3], "NOT_NEGATIVE SORTED DISTINCT"),
        ([0, 1, 1], "NOT_NEGATIVE SORTED"),
        ([2, 0, 1], "NOT_NEGATIVE DISTINCT"),
        ([-1, 0, 5], "SORTED DISTINCT"),
        ([-3, -3], "SORTED"),
        ([0, 10**9, 5], "NOT_NEGATIVE DISTINCT"),
        ([-(2**63), 2**63 - 1], "SORTED DISTINCT"),
    ],
)
def test_what_one_pass_shows(values, has):
    from orion.runtime.shown import has_property

    array = np.array(values, np.int64)
    assert {one.name for one in Property if has_property(array, one)} == set(has.split())


def test_every_narrow_dtype_is_told_apart():
    from orion.runtime.shown import has_property

    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        info = np.iinfo(dtype)
        whole = np.random.default_rng(0).permutation(np.arange(info.min, info.max + 1)).astype(dtype)
        assert has_property(whole, Property.DISTINCT)
        whole[5] = whole[9]
        assert not has_property(whole, Property.DISTINCT)


def counts_of_rows(out, ptr, x, K):
    for r in range(len(ptr) - 1):
        count = np.zeros(K, np.int32)
        for p in range(ptr[r], ptr[r + 1]):
            count[x[p]] += 1
        for p in range(ptr[r], ptr[r + 1]):
            out[p] = count[x[p]]


def counts_in_memory(out, ptr, x, K, count):
    for r in range(len(ptr) - 1):
        count[:] = 0
        for p in range(ptr[r], ptr[r + 1]):
            count[x[p]] += 1
        for p in range(ptr[r], ptr[r + 1]):
            out[p] = count[x[p]] + K


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("function", [counts_of_rows, counts_in_memory])
def test_rows_that_have_arrays_of_their_own(function, workers):
    rng = np.random.default_rng(0)
    ptr, x = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 40))]), rng.integers(0, 5, 400)
    decorated = orion.parallel_for(function)
    with orion.session(workers=workers, force_parallel=True):
        for row in (0, 17, 18):
            ptr[row] = 0  # from the second time on they go down
            more = [np.full(5, 7)] if function is counts_in_memory else []
            mine, theirs = np.zeros(400, int), np.zeros(400, int)
            plan = decorated.plan(mine, ptr, x, 5, *more)
            if row == 0:
                assert plan.strategy == "independent"
                assert "ptr never goes down" in plan.conditions
                plan.check()
            decorated(mine, ptr, x, 5, *[one.copy() for one in more])
            function(theirs, ptr, x, 5, *[one.copy() for one in more])
            np.testing.assert_array_equal(mine, theirs)


def moved_and_counted(out, ptr, x, total):
    for r in range(len(ptr) - 1):
        for p in range(ptr[r], ptr[r + 1]):
            out[p] = x[p] + 1
            total[x[p]] += 1


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_rows_that_also_add_to_an_array(workers):
    rng = np.random.default_rng(0)
    ptr, x = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 40))]), rng.integers(0, 5, 400)
    decorated = orion.parallel_for(moved_and_counted)
    with orion.session(workers=workers, force_parallel=True):
        for row in (0, 17, 18):
            ptr[row] = 0
            mine, theirs = (np.zeros(400, int), np.zeros(5, int)), (np.zeros(400, int), np.zeros(5, int))
            plan = decorated.plan(mine[0], ptr, x, mine[1])
            if row == 0:
                assert plan.strategy == "independent"
                assert [one.array for one in plan.only.copies] == ["total"]
                plan.check()
            decorated(mine[0], ptr, x, mine[1])
            moved_and_counted(theirs[0], ptr, x, theirs[1])
            np.testing.assert_array_equal(mine[0], theirs[0])
            np.testing.assert_array_equal(mine[1], theirs[1])
