"""Loops over sparse arrays that write by maps of the keys: they run in blocks of what the maps have, in a serial order
that the plan says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.errors import OutOfBoundsError
from tests.trials import times

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def factors(R, W, H, group, step):
    for (i, j), v in R:
        e = v - W[group[i]] @ H[j]
        W[group[i]] += step * e * H[j]
        H[j] += step * e * W[group[i]]


def offsets(R, b, kind):
    for (i, j), v in R:
        b[kind[j]] += 0.1 * (v - b[kind[j]]) + 0.001 * i


def both_sides(R, U, V, left, right, x):
    for (i, j), v in R:
        e = v - U[left[i]] * V[right[j]] + x[i]
        U[left[i]] += 0.1 * e
        V[right[j]] += 0.1 * e


def itself_and_its_group(R, b, c, group):
    for (i, j), v in R:
        b[i] = 0.5 * b[i] + v
        c[group[i]] = 0.5 * c[group[i]] + b[i] + j


def two_values(R, U, group):
    for (i, j), (v, w) in R:
        if v > 0.5:
            U[group[i]] = 0.5 * U[group[i]] + v * w + j


def one_key(R, U, group):
    for (i,), v in R:
        U[group[i]] = 0.5 * U[group[i]] + v


def three_keys(R, U, V, group, kind):
    for (i, j, k), v in R:
        e = v - U[group[i], k]
        U[group[i], k] += 0.1 * e
        V[kind[j]] = 0.5 * V[kind[j]] + e


def elements(dims, count=300, seed=0, tuples=False):
    rng = np.random.default_rng(seed)
    keys = tuple(rng.integers(0, length, count) for length in dims)
    values = (rng.random(count), rng.random(count)) if tuples else rng.random(count)
    return orion.sparse(keys, values, dims)


def in_order(function, R, order, *arguments):
    """What the plain function makes of the elements in an order."""
    values = R.values if isinstance(R.values, tuple) else (R.values,)

    class Ordered:
        def __iter__(self):
            for e in order:
                own = tuple(value[e] for value in values)
                yield tuple(int(key[e]) for key in R.coords), own if len(own) > 1 else own[0]

    function(Ordered(), *arguments)


def check(function, R, *arguments, wanted=None):
    decorated = orion.parallel_for(function)
    plan = decorated.plan(R, *arguments)
    plan.check()
    assert wanted is None or plan.strategy in wanted
    order = plan.serial_order(orion.runtime.session.current_session().workers)
    mine = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    decorated(R, *mine)
    theirs = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    in_order(function, R, order.tolist(), *theirs)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)  # rows are added up by vectors
    return plan


@pytest.fixture(params=[1, 2, 4], autouse=True)
def workers(request):
    with orion.session(workers=request.param, force_parallel=True):
        yield request.param


RNG = np.random.default_rng(5)
MAPS = {"g": RNG.integers(0, 7, 40), "k": RNG.integers(0, 5, 30).astype(np.uint8)}


def test_a_map_of_one_key():
    check(factors, elements((40, 30)), RNG.random((7, 4)), RNG.random((30, 4)), MAPS["g"], 0.1, wanted={"2d"})
    check(offsets, elements((40, 30)), RNG.random(5), MAPS["k"], wanted={"1d"})


def test_maps_of_both_keys():
    plan = check(both_sides, elements((40, 30)), *map(RNG.random, (7, 5)), MAPS["g"], MAPS["k"], RNG.random(40))
    assert plan.strategy == "2d"
    text = str(plan)
    assert "tiles of left[i] × right[j]" in text
    assert "_by_" not in text
    assert "i_left" not in text


def test_a_key_and_its_map():
    check(itself_and_its_group, elements((40, 30)), RNG.random(40), RNG.random(7), MAPS["g"])


def test_tuples_of_values_and_other_numbers_of_keys():
    check(two_values, elements((40, 30), tuples=True), RNG.random(7), MAPS["g"], wanted={"1d"})
    check(one_key, elements((40,)), RNG.random(7), MAPS["g"], wanted={"1d"})
    check(three_keys, elements((40, 30, 3)), RNG.random((7, 3)), RNG.random(5), MAPS["g"], MAPS["k"])


def test_a_map_that_changes_between_calls():
    decorated, R, group = orion.parallel_for(one_key), elements((40,)), MAPS["g"].copy()
    for place in range(40):
        group[place] = (group[place] + 1) % 7
        U = RNG.random(7)
        theirs = U.copy()
        order = decorated.plan(R, U, group).serial_order()
        decorated(R, U, group)
        in_order(one_key, R, order.tolist(), theirs, group)
        np.testing.assert_array_equal(U, theirs)


def test_values_that_are_stored_between_calls():
    decorated, R = orion.parallel_for(one_key), orion.sparse((np.arange(40),), RNG.random(40))
    for place in range(3):
        R[place] = 100.0 + place
        check(one_key, R, RNG.random(7), MAPS["g"])
        U = RNG.random(7)
        theirs = U.copy()
        order = decorated.plan(R, U, MAPS["g"]).serial_order()
        decorated(R, U, MAPS["g"])
        in_order(one_key, R, order.tolist(), theirs, MAPS["g"])
        np.testing.assert_array_equal(U, theirs)


def test_negative_places_count_from_the_end():
    group = MAPS["g"] - 7
    plan = check(one_key, elements((40,)), RNG.random(7), group)
    assert "group[i] in" not in str(plan)


def test_a_map_that_is_too_short_or_leads_out():
    decorated, R = orion.parallel_for(one_key), elements((40,))
    with pytest.raises(OutOfBoundsError, match="`group`"):
        decorated(R, np.zeros(7), MAPS["g"][:20].copy())
    wrong = MAPS["g"].copy()
    wrong[R.coords[0][5]] = 9
    with pytest.raises(OutOfBoundsError, match="`U`"):
        decorated(R, np.zeros(7), wrong)


def test_the_order_of_keys_stays_where_it_counts():
    decorated = orion.parallel_for(ordered=True)(one_key)
    R, U, theirs = elements((40,)), np.zeros(7), np.zeros(7)
    decorated(R, U, MAPS["g"])
    one_key(R, theirs, MAPS["g"])
    np.testing.assert_array_equal(U, theirs)


def test_a_map_that_the_loop_changes_is_none():
    def changes(R, count, group):
        for (i, j), _ in R:
            count[group[i]] += 1
            group[i] = (group[i] + j) % 7

    decorated, R = orion.parallel_for(changes), elements((40, 30))
    plan = decorated.plan(R, np.zeros(7), MAPS["g"])
    assert plan.loops[0].nest.elements.array == "R"


def test_two_loops_and_an_empty_array():
    def twice(R, U, V, group, kind):
        for (i, _), v in R:
            U[group[i]] = 0.5 * U[group[i]] + v
        for (i, j), v in R:
            V[kind[j]] = 0.5 * V[kind[j]] + v + U[group[i]]

    decorated, R = orion.parallel_for(twice), elements((40, 30))
    given = RNG.random(7), RNG.random(5), MAPS["g"], MAPS["k"]
    plan = decorated.plan(R, *given)
    mine, theirs = [one.copy() for one in given], [one.copy() for one in given]
    decorated(R, *mine)

    def first(R, U, V, group, kind):
        for (i, _), v in R:
            U[group[i]] = 0.5 * U[group[i]] + v

    def second(R, U, V, group, kind):
        for (i, j), v in R:
            V[kind[j]] = 0.5 * V[kind[j]] + v + U[group[i]]

    for number, function in enumerate((first, second)):
        in_order(function, R, plan.serial_order(loop=number).tolist(), *theirs)
    np.testing.assert_array_equal(mine[1], theirs[1])
    decorated(orion.sparse(([], []), [], (40, 30)), *mine)


def test_a_map_that_is_written_under_another_name():
    def counts(R, count, group):
        for (i, _), _ in R:
            count[group[i]] += 1

    one = MAPS["g"].copy()
    with pytest.raises(orion.AliasError):
        orion.parallel_for(counts)(elements((40, 30)), one, one)


@settings(max_examples=times(30, 12), deadline=None)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 60), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_random_maps(rows, columns, count, groups, seed):
    rng = np.random.default_rng(seed)
    R = elements((rows, columns), count, seed)
    left, right = rng.integers(0, groups, rows), rng.integers(0, groups, columns)
    check(both_sides, R, rng.random(groups), rng.random(groups), left, right, rng.random(rows))
    check(itself_and_its_group, R, rng.random(rows), rng.random(groups), left)


@pytest.mark.ray
def test_on_ray(workers):
    if workers != 2:
        pytest.skip("with two workers only")
    with orion.session("ray", workers=2):
        check(factors, elements((40, 30)), RNG.random((7, 4)), RNG.random((30, 4)), MAPS["g"], 0.1, wanted={"2d"})


def test_sums_alone_are_taken_in_copies():
    def add_up(R, sums, group):
        for (i, _), v in R:
            sums[group[i]] += v

    decorated, R, sums = orion.parallel_for(add_up), elements((40, 30)), np.zeros(7)
    plan = decorated.plan(R, sums, MAPS["g"])
    assert [one.array for one in plan.only.copies] == ["sums"]
    decorated(R, sums, MAPS["g"])
    np.testing.assert_allclose(sums, np.bincount(MAPS["g"][R.coords[0]], R.values, minlength=7))
