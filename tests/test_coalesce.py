"""Loops over the segments of an array run as one loop over its elements (`orion.rewrites.coalesce`)."""

import warnings

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import orion
from orion.ir.assumed import Covers
from orion.runtime.shown import covers
from tests.random_functions import rewritten
from tests.trials import one_in, times, worker_counts


def by_colour(u, first, order, ptr, idx):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            i = order[k]
            s = 0.0
            for p in range(ptr[i], ptr[i + 1]):
                s += u[idx[p]]
            u[i] = 0.5 * (u[i] + s)


def rounds_of_colours(u, first, order, near):
    for _ in range(3):
        for c in range(first.shape[0] - 1):
            for k in range(first[c], first[c + 1]):
                u[order[k]] += 0.5 * u[near[order[k]]]


def continued(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            if u[order[k]] < 0.5:
                continue
            u[order[k]] += 0.5 * u[near[order[k]]]


def second_axis(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[1, k]] += 0.5 * u[near[order[0, k]]]


def by_number(u, first, order, near, count=3):
    for c in range(count):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


TAKEN = [by_colour, rounds_of_colours, continued, second_axis]


def uses_the_segment(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]] + c


def leaves_a_segment(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            if u[order[k]] > 0.9:
                break
            u[order[k]] += 0.5 * u[near[order[k]]]


def ends_the_call(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            if u[order[k]] > 0.9:
                return
            u[order[k]] += 0.5 * u[near[order[k]]]


def does_more(u, first, order, near):
    for c in range(len(first) - 1):
        u[c] = 1.0
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


def not_all_segments(u, first, order, near):
    for c in range(len(first) - 2):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


def not_the_first(u, first, order, near):
    for c in range(1, len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


def backwards(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c + 1] - 1, first[c] - 1, -1):
            u[order[k]] += 0.5 * u[near[order[k]]]


def with_gaps(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1] - 1):
            u[order[k]] += 0.5 * u[near[order[k]]]


def other_ends(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], near[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


def writes_starts(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]
            first[0] = 0


def changes_starts_before(u, first, order, near):
    first[1] = 0
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


def another_array_by_the_name(u, first, order, near):
    order = order[10:]
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


def gives_the_variable_another_value(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]
            k = 3
            u[k] = 1.0


def read_later(u, first, order, near):
    k = 0
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]
    u[0] = k


def segment_read_later(u, first, order, near):
    c = 0
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]
    u[0] = c


LEFT = [
    uses_the_segment, leaves_a_segment, ends_the_call, does_more, not_all_segments, not_the_first, backwards, with_gaps,
    other_ends, writes_starts, changes_starts_before, another_array_by_the_name, gives_the_variable_another_value,
    segment_read_later,
]  # fmt: skip
"""Loops of which one over all elements would do something else."""


def arguments(function, first, n=40, seed=0):
    rng = np.random.default_rng(seed)
    u, order, near = rng.random(n), rng.permutation(n), rng.integers(0, n, n)
    if function is by_colour:
        ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 3, n))])
        return u, first, order, ptr, rng.integers(0, n, ptr[-1])
    if function is second_axis:
        order = np.stack([order, rng.permutation(n)])
    return u, first, order, near


def outcome(function, given):
    """The arrays after a call, or the kind of the error and the arrays then."""
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
    try:
        function(*given)
    except IndexError:
        return [IndexError]
    return [value.tobytes() if isinstance(value, np.ndarray) else value for value in given]


def compare(function, given):
    parallel = orion.parallel_for(function)
    expected = outcome(function, given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        for workers in worker_counts(1, 2, 3):
            with orion.session(workers=workers, force_parallel=True):
                plan = parallel.plan(*given, inspect=True) if expected != [IndexError] else None
                assert outcome(parallel, given) == expected
                if plan is not None:
                    plan.check()
    return plan


STARTS = [[0, 40], [0, 20, 40], [0, 0, 13, 13, 25, 40], [0, 40, 40], [*range(41)]]


@pytest.mark.parametrize("first", STARTS, ids=str)
@pytest.mark.parametrize("function", TAKEN)
def test_segments_that_cover_an_array_are_one_loop(function, first):
    given = arguments(function, np.array(first))
    plan = compare(function, given)
    assert "coalesce" in rewritten(plan)
    axis = 1 if function is second_axis else 0
    assert set(plan.conditions) == {"first never goes down", f"first begins with 0 and ends with order.shape[{axis}]"}


@pytest.mark.parametrize(("first", "is_taken"), [([0, 9, 9, 40], True), ([0, 40], False), ([0, 9, 9, 40, 40], False)])
def test_as_many_segments_as_an_argument_says(first, is_taken):
    given = arguments(by_number, np.array(first))
    for more in ((), (3,)):
        plan = compare(by_number, (*given, *more))
        assert is_taken == (plan is not None and "coalesce" in rewritten(plan))
        if is_taken:
            assert any("first.shape[0]" in one and ("count" in one or not more) for one in plan.conditions)


NOT_COVERING = [[0, 39], [1, 40], [0, 30, 20, 40], [0], [], [0, 41], [0, 50, 40], [-3, 40], [0, 20, 0, 40], [40, 0]]


@pytest.mark.parametrize("first", NOT_COVERING, ids=str)
@pytest.mark.parametrize("function", TAKEN)
def test_others_run_as_they_are_written(function, first):
    plan = compare(function, arguments(function, np.array(first, np.int64)))
    assert plan is None or "coalesce" not in rewritten(plan)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_starts_of_any_type(dtype):
    assert "coalesce" in rewritten(compare(by_colour, arguments(by_colour, np.array([0, 13, 40], dtype))))


@pytest.mark.parametrize("function", LEFT)
def test_what_one_loop_would_not_do_is_left(function):
    for first in one_in(2, ([0, 7, 7, 40], [0, 20, 40])):
        plan = compare(function, arguments(function, np.array(first)))
        assert plan is None or "coalesce" not in rewritten(plan)


@pytest.mark.parametrize("first", [[0, 20, 40], [0, 40, 40], [0, 0, 40]])
def test_the_variable_keeps_its_last_value(first):
    compare(read_later, arguments(read_later, np.array(first)))


def test_starts_are_looked_at_in_each_call():
    """One function, starts that change in place between calls."""
    rng = np.random.default_rng(5)
    parallel = orion.parallel_for(by_colour)
    given = arguments(by_colour, np.array([0, 13, 26, 40]))
    first = given[1]
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        for _ in range(times(60, 30)):
            first[rng.integers(0, 4)] = rng.integers(0, 41)
            assert outcome(parallel, given) == outcome(by_colour, given)


def test_an_array_that_is_too_short_for_its_segments_is_told_of():
    given = arguments(by_colour, np.array([0, 20, 41]))
    with orion.session(workers=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        with pytest.raises(orion.OutOfBoundsError, match=r"subscript 40 leaves `order`"):
            orion.parallel_for(by_colour)(*given)


def test_what_does_not_hold_is_told():
    given = arguments(by_colour, np.array([0, 20, 39]))
    plan = orion.parallel_for(by_colour).plan(*given, inspect=True)
    told = [one for one in plan.considered if one.reason.code == "ORN125"]
    assert any("begins with 0 and ends with order.shape[0]` does not hold" in one.reason.message for one in told)


@hypothesis.settings(deadline=None, max_examples=times(100, 40))
@hypothesis.given(st.lists(st.integers(-1, 13), max_size=6), st.integers(0, 12), st.integers(0, 1000))
def test_random_starts(first, n, seed):
    function = TAKEN[seed % len(TAKEN)]
    given = arguments(function, np.array(first, np.int64), n, seed)
    parallel = PARALLEL[function]
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        assert outcome(parallel, given) == outcome(function, given)


PARALLEL = {function: orion.parallel_for(function) for function in TAKEN}


def test_covers():
    wanted = Covers("a", 0)
    for starts, n, holds in [([0, 3], 3, True), ([0], 0, True), ([], 0, False), ([0, 3], 4, False), ([1, 3], 3, False)]:
        assert covers(np.array(starts, np.int64), np.zeros(n), wanted) == holds
    assert not covers(np.zeros((2, 2), np.int64), np.zeros(0), wanted)


def shares_a_function(u, first, order, near, out, perm):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]
    for i in range(len(perm)):
        out[perm[i]] = i


def test_loops_beside_one_over_segments_keep_their_conditions():
    """Also where `first` does not cover `order`: the variants of a function are looked at each by itself."""
    for first in ([0, 20, 40], [0, 20, 39]):
        given = (*arguments(shares_a_function, np.array(first)), np.zeros(40, int), np.arange(40)[::-1].copy())
        plan = compare(shares_a_function, given)
        assert plan.loops[-1].strategy == "independent"
        assert "perm has no two equal elements" in plan.conditions


def segment_in_the_next_round(u, first, order, near):
    c = 0
    for _ in range(3):
        for c in range(len(first) - 1):
            for k in range(first[c], first[c + 1]):
                u[order[k]] += 0.5 * u[near[order[k]]]
        u[0] += c


def segment_before_the_loops(u, first, order, near):
    c = 0
    for _ in range(3):
        u[0] += c
        for c in range(len(first) - 1):
            for k in range(first[c], first[c + 1]):
                u[order[k]] += 0.5 * u[near[order[k]]]


def segment_ends_the_rounds(u, first, order, near):
    c, t = 0, 0
    while c < 1 and t < 4:
        for c in range(len(first) - 1):
            for k in range(first[c], first[c + 1]):
                u[order[k]] += 0.5 * u[near[order[k]]]
        t += 1
    return t


def segment_in_a_branch(u, first, order, near):
    c = 0
    for t in range(3):
        if t == 1:
            u[0] = c
        else:
            for c in range(len(first) - 1):
                for k in range(first[c], first[c + 1]):
                    u[order[k]] += 0.5 * u[near[order[k]]]


def segment_of_an_argument(u, first, order, near, c=7):
    for _ in range(2):
        u[1] += c
        for c in range(len(first) - 1):
            for k in range(first[c], first[c + 1]):
                u[order[k]] += 0.5 * u[near[order[k]]]


def through_an_array_of_its_own(u, first, order, near):
    v = np.zeros(len(order))
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            v[k] = u[order[k]]
            u[order[k]] += 0.5 * u[near[k]]
    return v


def sorted_first(u, first, order, near):
    order.sort()
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]


def filled_first(u, first, order, near):
    near.fill(3)
    for k in range(len(order)):
        u[order[k]] += 0.5 * u[near[order[k]]]


FOUND = [
    segment_in_the_next_round, segment_before_the_loops, segment_ends_the_rounds, segment_in_a_branch,
    segment_of_an_argument, through_an_array_of_its_own, sorted_first, filled_first,
]  # fmt: skip
"""Loops that ran wrong, or not at all, when they were found."""


@pytest.mark.parametrize("first", [[0, 20, 40], [0, 7, 7, 40], [0, 20, 39]], ids=str)
@pytest.mark.parametrize("function", FOUND)
def test_what_was_wrong_once(function, first):
    given = arguments(function, np.array(first))
    expected = [value.copy() for value in given]
    returned = function(*expected)
    compare(function, given)
    mine = [value.copy() for value in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        np.testing.assert_array_equal(orion.parallel_for(function)(*mine), returned)


def two_by_the_same_name(u, first, order, near):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[near[order[k]]]
    for c in range(len(u)):
        u[c] = 0.5 * u[c]


def test_another_loop_over_a_variable_of_that_name_is_in_nobodys_way():
    assert "coalesce" in rewritten(compare(two_by_the_same_name, arguments(two_by_the_same_name, np.array([0, 9, 40]))))


def counted_before(u, first, order):
    m = len(first) - 1
    for c in range(m):
        for k in range(first[c], first[c + 1]):
            u[order[k]] += 0.5 * u[order[k] - 1]


def test_a_count_that_is_the_number_of_segments_needs_no_condition():
    plan = compare(counted_before, (np.ones(4), np.array([0, 2, 4]), np.arange(4)))
    assert set(plan.conditions) == {"first never goes down", "first begins with 0 and ends with order.shape[0]"}


def flattened(u, first, order, m, rows):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            u[0] = u[0] * 0.5 + 1.0
            if k < rows:
                for j in range(m):
                    u[order[k * m + j]] += 0.5 * u[order[k * m + j] - 1]


def columns_of_flattened(u, first, order, m, rows):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            if k >= 0 and k < m:
                for j in range(rows):
                    u[order[j * m + k]] += 0.5 * u[order[j * m + k] - 1]


@pytest.mark.parametrize("function", [flattened, columns_of_flattened])
@pytest.mark.parametrize("first", [[0, 6, 12], [0, 2, 4], [0, 2, 3]], ids=str)
def test_flattened_arrays(function, first):
    compare(function, (np.arange(12.0), np.array(first), np.arange(12)[::-1].copy(), 3, 4))
