"""Loops over a sparse array that store the values of its elements: results are those of the plain function, on any
number of workers, and nothing that was made of the values before is used after."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.errors import AliasError, ArgumentError, MissingKeyError, OrionError, UnsupportedLoopError
from tests.element_stores import (
    Bodies,
    add_by_rows,
    both,
    clip,
    count_up,
    halve,
    in_rounds,
    running,
    sample,
    sample_ordered,
    scale,
    shift,
    store_and_sum,
    store_and_sum_ordered,
    store_two,
    vector,
)
from tests.trials import times, worker_counts

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


@pytest.fixture(params=[1, 2, 4], autouse=True)
def workers(request):
    with orion.session(workers=request.param, force_parallel=True):
        yield request.param


def unique_keys(rng, count, shape):
    """So many different keys, in no order."""
    cells = rng.permutation(int(np.prod(shape)))[:count]
    return tuple(np.unravel_index(cells, shape))


def tokens_of(dtype=np.int64, count=300, shape=(40, 30), seed=0):
    rng = np.random.default_rng(seed)
    return orion.sparse(unique_keys(rng, count, shape), rng.integers(0, 100, count).astype(dtype), shape)


def copy_of(tokens):
    return orion.sparse(tokens.coords, tokens.values, tokens.shape, allow_nan=True)


class InOrder:
    """A sparse array of which Python goes through the elements in the order that a plan tells."""

    def __init__(self, tokens, order):
        self.tokens, self.order = tokens, order

    def __iter__(self):
        for at in self.order.tolist():
            key = tuple(int(axis[at]) for axis in self.tokens.coords)
            yield key, self.tokens[key]

    def __setitem__(self, key, value):
        self.tokens[key] = value

    def __getitem__(self, key):
        return self.tokens[key]

    def __len__(self):
        return len(self.tokens)


def same_values(mine, theirs):
    for one, other in zip(np.atleast_2d(mine.values), np.atleast_2d(theirs.values), strict=True):
        if np.asarray(one).dtype.kind in "fc":  # sums inside an iteration are rounded fewer times
            np.testing.assert_allclose(one, other, rtol=1e-5)
        else:
            np.testing.assert_array_equal(one, other)


def same_as_serial(decorated, tokens, *rest, in_order=False):
    """Run it and the plain function on copies, and compare these, and what is returned. `in_order`: in the order of the
    plan."""
    mine, theirs = copy_of(tokens), copy_of(tokens)
    copies = [[one.copy() if isinstance(one, np.ndarray) else one for one in rest] for _ in range(2)]
    plan = decorated.plan(mine, *copies[0])
    plan.check()
    given = InOrder(theirs, plan.serial_order()) if in_order else theirs
    returned = decorated(mine, *copies[0])
    expected = decorated.__wrapped__(given, *copies[1])
    if expected is not None:
        np.testing.assert_allclose(returned, expected)
    same_values(mine, theirs)
    for one, other in zip(*copies, strict=True):
        np.testing.assert_allclose(one, other)
    return mine


# ---------------------------------------------------------------- in Python


def test_elements_in_python():
    tokens = orion.sparse(([2, 0, 2], [0, 3, 1]), np.array([4.0, 3.5, 5.0]))
    given = tokens.values
    assert tokens[2, 1] == 5.0
    assert isinstance(tokens[0, 3], np.float64)
    tokens[0, 3] = 7
    tokens[np.int32(2), 0] += 0.5
    assert given.tolist() == [4.0, 3.5, 5.0]  # what was shown before stays
    assert tokens.values.tolist() == [4.5, 7.0, 5.0]
    assert list(tokens) == [((0, 3), 7.0), ((2, 0), 4.5), ((2, 1), 5.0)]
    assert tokens[2] == [(0, 4.5), (1, 5.0)]
    assert tokens.to_numpy()[0, 3] == 7.0
    again = tokens.values
    tokens[0, 3] = 8.0
    assert again.tolist() == [4.5, 7.0, 5.0]
    tokens[2, 1] = np.nan
    assert np.isnan(tokens[2][1][1])


def test_keys_that_are_not_there():
    tokens = orion.sparse(([2, 0, 2], [0, 3, 0]), np.array([4.0, 3.5, 5.0]))
    for wrong in ((0, 0), (-1, 0), (99, 0), (0, -1)):
        with pytest.raises(MissingKeyError, match="no element"):
            tokens[wrong] = 1.0
        with pytest.raises(KeyError, match="no element"):
            tokens[wrong]
    with pytest.raises(OrionError, match="2 elements with the key"):
        tokens[2, 0] = 1.0
    with pytest.raises(OrionError, match="2 elements with the key"):
        tokens[2, 0]
    for wrong in ((0, 3, 1), 0, (0.0, 3), (slice(None), 3), (0, slice(None))):
        with pytest.raises(ArgumentError):
            tokens[wrong] = 1.0
    with pytest.raises(MissingKeyError):
        orion.sparse(([], []), [], (3, 3))[1, 1]


def test_other_dimensions_in_python():
    line = orion.sparse(([5, 2],), np.array([1, 2]))
    line[5] = 9
    assert line[5] == 9
    assert line[(2,)] == 2
    cube = orion.sparse(([0, 10**12], [10**12, 0], [5, 10**12]), np.array([1, 2]), (10**13,) * 3)
    cube[10**12, 0, 10**12] = 4
    assert cube[10**12, 0, 10**12] == 4
    assert cube[0, 10**12, 5] == 1


def test_tuples_in_python():
    tokens = orion.sparse(([2, 0], [0, 3]), (np.array([1, 2], np.uint8), np.array([0.5, 1.5])))
    assert tokens[0, 3] == (2, 1.5)
    tokens[0, 3] = 7, 2
    assert tokens[0, 3] == (7, 2.0)
    for wrong in (1, (1, 2, 3)):
        with pytest.raises(ArgumentError, match="2 values"):
            tokens[0, 3] = wrong
    with pytest.raises(OverflowError):
        tokens[0, 3] = 256, 9.0
    assert tokens[0, 3] == (7, 2.0)


def test_values_are_converted_as_numpy_converts_them():
    tokens = orion.sparse(([2, 0], [0, 3]), np.array([1, 2], np.uint8))
    tokens[2, 0] = 3.7
    assert tokens[2, 0] == 3
    tokens[2, 0] = np.int64(257)
    assert tokens[2, 0] == 1
    with pytest.raises(OverflowError):
        tokens[2, 0] = 300


def test_arrays_that_were_taken_over_stay_as_they_are():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    A = scipy_sparse.coo_array((np.ones(2), ([0, 1], [1, 0])))
    tokens = orion.from_scipy(A)
    tokens[0, 1] = 5.0
    assert A.data.tolist() == [1.0, 1.0]


# ---------------------------------------------------------------- in loops


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.int16, np.float32, np.float64])
def test_values_of_all_types(dtype):
    same_as_serial(scale, tokens_of(dtype), dtype(3))
    with np.errstate(over="ignore"):
        same_as_serial(count_up, tokens_of(dtype), np.full(40, 200, dtype))


def test_truth_values_and_complex_ones():
    rng = np.random.default_rng(0)
    keys = unique_keys(rng, 50, (9, 9))
    same_as_serial(clip, orion.sparse(keys, rng.random(50) < 0.5, (9, 9)), np.arange(9))
    same_as_serial(halve, orion.sparse(keys, rng.random(50) + 1j, (9, 9)))


def test_floats_are_cut_off_and_integers_wrap_around():
    same_as_serial(halve, tokens_of(np.int32))
    with np.errstate(over="ignore"):
        same_as_serial(shift, tokens_of(np.uint8), np.arange(40) * 100)
    same_as_serial(shift, tokens_of(np.float32), np.arange(40) / 3)


def test_branches_continue_and_inner_loops():
    rng = np.random.default_rng(1)
    same_as_serial(clip, tokens_of(), rng.integers(0, 100, 40))
    same_as_serial(running, tokens_of(np.float64), rng.random((30, 5)))


def test_conflicts_through_other_arrays():
    counts = np.zeros((40, 4), np.int64)
    totals = np.zeros((30, 4), np.int64)
    tokens = tokens_of()
    mine = same_as_serial(sample, tokens, counts, totals, 7, in_order=True)
    assert not np.array_equal(mine.values, tokens.values)
    same_as_serial(sample_ordered, tokens, counts, totals, 7)
    plan = sample.plan(tokens, counts, totals, 7)
    assert plan.strategy == "2d"
    text = " ".join(str(plan).split())
    assert "values are written in place" in text
    assert "W[w, tokens[d, w]]" in text
    assert "tokens_value" not in text


def test_values_are_seen_everywhere_after():
    tokens = tokens_of()
    shown, lines, listed = tokens.values, tokens.lines(0), list(tokens)
    before = shown.copy()
    add_by_rows(out := np.zeros(40), tokens)
    scale(tokens, 3)
    np.testing.assert_array_equal(shown, before)
    np.testing.assert_array_equal(tokens.values, 3 * before)
    assert list(tokens) == [(key, 3 * value) for key, value in listed]
    np.testing.assert_array_equal(tokens.lines(0).values[0], 3 * lines.values[0])
    assert tokens[listed[5][0]] == 3 * listed[5][1]
    np.testing.assert_array_equal(tokens.to_numpy(), 3 * orion.sparse(tokens.coords, before, tokens.shape).to_numpy())
    np.testing.assert_array_equal(tokens.to_scipy().data, 3 * before)
    add_by_rows(after := np.zeros(40), tokens)
    np.testing.assert_array_equal(after, 3 * out)


def test_layouts_of_other_loops_are_not_stale():
    tokens = tokens_of(np.float64)
    total, total_in_order = store_and_sum, store_and_sum_ordered
    kept = tokens.layout(([0, 40], [0, 30]), "ascending")  # somebody holds it
    for k in range(3):
        before = tokens.values.copy()
        assert np.isclose(total(tokens, 1.0), (before + 1).sum())
        assert np.isclose(total_in_order(tokens, 2.0), (before + 3).sum())
        key = tuple(int(axis[k]) for axis in tokens.coords)
        tokens[key] = 1000.0
        assert tokens.values[k] == 1000.0
        scale(tokens, 1.0)
        assert tokens.values[k] == 1000.0
    again = tokens.layout(([0, 40], [0, 30]), "ascending")
    assert again is not kept
    np.testing.assert_array_equal(np.sort(again.values[0]), np.sort(tokens.values))


def test_a_loop_sees_what_another_has_stored():
    rng = np.random.default_rng(1)
    tokens = tokens_of(np.float64)
    same_as_serial(store_and_sum, tokens, 2.5)
    same_as_serial(store_and_sum_ordered, tokens, 2.5)
    same_as_serial(in_rounds, tokens, rng.random(40), rng.random(30), 5)
    same_as_serial(in_rounds, tokens, rng.random(40), rng.random(30), 0)


@orion.parallel_for
def raised_and_summed(tokens, rows, columns, rounds):
    for _ in range(rounds):
        for (i, j), v in tokens:
            rows[i] += v
            columns[j] += v
            tokens[i, j] = v + 1
    for (i, j), v in tokens:
        rows[i] += v
        columns[j] += v


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_loop_may_store_in_no_round(rounds, workers):
    tokens = orion.sparse(tuple(np.divmod(np.arange(0, 100, 2), 10)), np.ones(50), shape=(10, 10))
    rows, columns = np.zeros(10), np.zeros(10)
    plans = raised_and_summed.plan(tokens, rows, columns, rounds).loops
    raised_and_summed(tokens, rows, columns, rounds)
    assert plans[0].cuts == plans[1].cuts
    assert rows.sum() == columns.sum() == 50 * sum(range(1, rounds + 2))
    assert (tokens.values == rounds + 1).all()


def test_ordered_loops_that_are_cut_differently():
    @orion.parallel_for(ordered=True)
    def along_both(tokens, rows, columns):
        for (d, w), z in tokens:
            rows[d] = 0.5 * rows[d] + z
            tokens[d, w] = rows[d]
        for (d, w), z in tokens:
            columns[w] = 0.5 * columns[w] + z
            tokens[d, w] += columns[w]

    rng = np.random.default_rng(1)
    mine = same_as_serial(along_both, tokens_of(np.float64), rng.random(40), rng.random(30))
    assert not np.array_equal(mine.values, tokens_of(np.float64).values)


def test_tuples_of_values():
    rng = np.random.default_rng(3)
    keys = unique_keys(rng, 200, (20, 30))
    tokens = orion.sparse(keys, (rng.integers(0, 200, 200).astype(np.uint8), rng.random(200)), (20, 30))
    with np.errstate(over="ignore"):
        same_as_serial(store_two, tokens, np.arange(20))


def test_one_and_three_dimensions():
    rng = np.random.default_rng(3)
    same_as_serial(vector, orion.sparse((rng.permutation(500)[:90],), rng.random(90), (500,)), rng.random(500))
    cube = orion.sparse(unique_keys(rng, 150, (9, 8, 7)), rng.random(150), (9, 8, 7))

    @orion.parallel_for
    def in_three(T, a):
        for (i, j, k), t in T:
            T[i, j, k] = t * a[k]

    same_as_serial(in_three, cube, rng.random(7))


def test_a_dense_array_of_pairs_stays_what_it_is():
    @orion.parallel_for
    def pairs(P, q):
        for x, y in P:
            q[int(x)] += y

    P, q = np.array([[0.0, 1.0], [2.0, 3.0]]), np.zeros(3)
    pairs(P, q)
    assert q.tolist() == [1.0, 0.0, 3.0]


def test_names_of_values_that_are_used_for_others():
    @orion.parallel_for
    def other(tokens, out):
        for (d, w), z in tokens:
            z = z + 0.5
            tokens[d, w] = z * 2
            out[d] += z

    same_as_serial(other, tokens_of(np.int32), np.zeros(40))


def test_several_targets():
    @orion.parallel_for
    def swap(tokens, out):
        for (d, w), z in tokens:
            t = tokens[d, w]
            t, tokens[d, w] = z + 1, t + 5
            x = tokens[d, w] = tokens[d, w] + t
            out[d] += x

    same_as_serial(swap, tokens_of(np.int32), np.zeros(40))


def test_helpers_that_are_put_in_place():
    def fresh(value, rate):
        return value * rate if value > 50 else value + 1

    @orion.parallel_for
    def helped(tokens, rate):
        for (d, w), _ in tokens:
            tokens[d, w] = fresh(tokens[d, w], rate)

    same_as_serial(helped, tokens_of(np.int32), 0.5)


def test_loops_in_helpers(workers):
    def bump(items, by):
        for (i, j), v in items:
            items[i, j] = v + by

    @orion.parallel_for
    def helped(tokens, rate):
        bump(tokens, rate)

    same_as_serial(helped, tokens_of(np.int32), 3)
    with pytest.raises(ArgumentError, match=r"argument `tokens`.*more than once"):
        helped(orion.sparse(([0, 0], [1, 1]), np.arange(2.0)), 2.0)


def test_sums_and_choices_beside_stores():
    @orion.parallel_for
    def counted(tokens, limit):
        changed = 0
        best = -1.0
        for (d, w), z in tokens:
            if z > limit:
                tokens[d, w] = limit
                changed += 1
            best = max(best, tokens[d, w])
        return changed, best

    same_as_serial(counted, tokens_of(np.float64), 40.0)


def test_breaks():
    @orion.parallel_for(ordered=True)
    def until(tokens, limit):
        for (d, w), z in tokens:
            tokens[d, w] += 1
            if z > limit:
                break

    same_as_serial(until, tokens_of(), 95)


def test_loops_in_branches_and_whiles():
    @orion.parallel_for
    def rounds(tokens, limit):
        total = 0
        n = 0
        while total < limit and n < 9:
            if n % 2 == 0:
                for (d, w), z in tokens:
                    tokens[d, w] = z + n
            else:
                for (d, w), z in tokens:
                    tokens[d, w] = z * 2 - d
            total = 0
            for (_, _), z in tokens:
                total += z
            n += 1
        return total

    same_as_serial(rounds, tokens_of(), 100_000)


def test_ordered_loops_that_cannot_have_the_same_tiles():
    def along(T, a, b):
        for (i, j, k), t in T:
            a[i] = 0.5 * a[i] + t
            T[i, j, k] = a[i]
        for (i, j, k), t in T:
            b[k] = 0.5 * b[k] + t
            T[i, j, k] = t + b[k]

    rng = np.random.default_rng(3)
    cube = orion.sparse(unique_keys(rng, 150, (9, 8, 7)), rng.random(150), (9, 8, 7))
    decorated = orion.parallel_for(ordered=True)(along)
    same_as_serial(decorated, cube, rng.random(9), rng.random(7))
    plan = decorated.plan(cube, rng.random(9), rng.random(7))
    assert {loop.strategy for loop in plan.loops} == {"serial"}
    assert all("ORN130" in {one.code for one in loop.reasons} for loop in plan.loops)


def test_sums_have_the_same_bits_on_any_number_of_workers():
    @orion.parallel_for(ordered=True)
    def summed(tokens, columns):
        for (d, w), z in tokens:
            columns[w] = 0.5 * columns[w] + z
            tokens[d, w] += columns[w]
        total = 0.0
        for (_, _), z in tokens:
            total += z
        return total

    found = set()
    for workers in worker_counts(1, 2, 3, 4):
        with orion.session(workers=workers, force_parallel=True):
            tokens = orion.sparse(tokens_of().coords, np.random.default_rng(0).random(300), (40, 30))
            found.add((summed(tokens, np.zeros(30)), tokens.values.tobytes()))
    assert len(found) == 1


def test_nan_may_be_stored():
    @orion.parallel_for
    def roots(tokens):
        for (d, w), z in tokens:
            tokens[d, w] = np.sqrt(z - 50)

    with np.errstate(invalid="ignore"):
        mine = same_as_serial(roots, tokens_of(np.float64))
    assert np.isnan(mine.values).any()


def test_without_elements():
    same_as_serial(scale, orion.sparse(([], []), np.zeros(0), (3, 4)), 2.0)


def test_an_error_in_the_middle_leaves_no_stale_values(workers):
    @orion.parallel_for
    def fails(tokens, places, out):
        for (d, w), z in tokens:
            tokens[d, w] = z + 1000
            out[places[d]] = 1

    tokens = tokens_of()
    tokens.lines(0)
    with pytest.raises(IndexError):
        fails(tokens, np.array([0] * 39 + [99]), np.zeros(5))
    assert (tokens.lines(0).values[0] >= 1000).sum() == (tokens.values >= 1000).sum() > 0


# ---------------------------------------------------------------- what is refused


def test_keys_that_occur_twice_are_refused():
    tokens = orion.sparse(([0, 1, 0], [2, 2, 2]), np.arange(3.0))
    for ask in (scale, scale.plan):
        with pytest.raises(ArgumentError, match=r"argument `tokens`.*more than once"):
            ask(tokens, 2.0)
    assert tokens.values.tolist() == [0.0, 1.0, 2.0]

    @orion.parallel_for
    def read(tokens, out):
        for (d, w), _ in tokens:
            out[d] += tokens[d, w]

    with pytest.raises(ArgumentError, match="more than once"):
        read(tokens, np.zeros(2))
    same_as_serial(read, tokens_of(np.int64), np.zeros(40))


def test_one_array_under_two_names_is_refused():
    tokens = tokens_of()
    with pytest.raises(AliasError, match="same sparse array"):
        both(tokens, tokens)
    both(tokens, tokens_of())


def _other_subscript(tokens, other):
    for (d, _), z in tokens:
        tokens[d, other] = z


def _other_order(tokens, other):
    for (d, w), z in tokens:
        tokens[w, d] = z


def _assigned_key(tokens, other):
    for (d, w), z in tokens:
        d = d + 1
        tokens[d, w] = z


def _other_read(tokens, other):
    for (d, w), z in tokens:
        tokens[d, w] = z + tokens[d, 0]


def _outside(tokens, other):
    for (d, w), z in tokens:
        tokens[d, w] = z + 1
    tokens[0, 0] = 1


def _in_a_range(tokens, other):
    for i in range(3):
        tokens[i, other] = 1


def _rows_too(tokens, other):
    for (d, w), z in tokens:
        tokens[d, w] = z + 1
    for i in range(tokens.shape[0]):
        for j, v in tokens[i]:
            v + j


def _whole(tokens, other):
    for (d, w), _ in tokens:
        tokens[d, w] = np.sum(tokens)


def _in_two_steps(tokens, other):
    for (d, w), _ in tokens:
        tokens[d][w] = 1


def _in_two_steps_read(tokens, other):
    for (d, w), z in tokens:
        tokens[d, w] = z + tokens[d][w]


def _to_a_helper(tokens, other):
    for (d, w), _ in tokens:
        tokens[d, w] = _first(tokens, w)


def _first(items, w):
    while w > 3:
        w -= 1
        if items[0, w] > 3:
            return w
    return 0


def _all_at_once(tokens, other):
    for (d, w), z in tokens:
        tokens[d, w] = z
    tokens += other


def _two_values(tokens, other):
    for (d, w), z in tokens:
        tokens[d, w] = z, 1


REFUSED = {
    _other_subscript: "`tokens\\[d, other\\]`",
    _other_order: "`tokens\\[w, d\\]`",
    _assigned_key: "`d`",
    _other_read: "`tokens\\[d, 0\\]`",
    _outside: "`tokens\\[0, 0\\]`",
    _in_a_range: "`tokens\\[i, other\\]`",
    _rows_too: "rows",
    _whole: "`tokens`",
    _in_two_steps: "a part of a row",
    _in_two_steps_read: "`tokens\\[d\\]`",
    _to_a_helper: "`tokens`",
    _all_at_once: "`tokens`",
    _two_values: "1 value",
}


@pytest.mark.parametrize("wrong", REFUSED, ids=lambda one: one.__name__)
def test_other_uses_are_refused(wrong):
    tokens = tokens_of()
    with pytest.raises(UnsupportedLoopError, match=REFUSED[wrong]) as error:
        orion.parallel_for(wrong)(tokens, 2)
    assert "help:" in str(error.value)


# ---------------------------------------------------------------- at random


@settings(max_examples=times(30, 12), deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(0, 60), st.integers(0, 2**32 - 1),
    st.sampled_from([np.int64, np.uint8, np.int16, np.float32, np.float64]), st.sampled_from(Bodies),
)  # fmt: skip
def test_random_arrays(rows, columns, count, seed, dtype, body):
    rng = np.random.default_rng(seed)
    shape = (rows, columns)
    keys = unique_keys(rng, count, shape)
    tokens = orion.sparse(keys, rng.integers(0, 250, len(keys[0])).astype(dtype), shape)
    a, b = rng.integers(0, 9, rows).astype(dtype), rng.integers(0, 9, columns).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        same_as_serial(body.function, tokens, a, b, in_order=body.is_unordered)


# ---------------------------------------------------------------- Ray


@pytest.mark.ray
@pytest.mark.parametrize("workers", [2], indirect=True)
def test_on_ray(workers):
    rng = np.random.default_rng(1)
    with orion.session("ray", workers=2, force_parallel=True):
        tokens = tokens_of(np.float64)
        same_as_serial(in_rounds, tokens, rng.random(40), rng.random(30), 5)
        same_as_serial(store_and_sum, tokens, 2.5)
        same_as_serial(store_and_sum_ordered, tokens, 2.5)
        same_as_serial(sample, tokens_of(), np.zeros((40, 4), np.int64), np.zeros((30, 4), np.int64), 7, in_order=True)
        before = tokens.values.copy()
        for _ in range(3):
            scale(tokens, 2.0)
        key = tuple(int(axis[0]) for axis in tokens.coords)
        tokens[key] = 1.0
        scale(tokens, 2.0)
        np.testing.assert_array_equal(tokens.values, np.append(2.0, 16 * before[1:]))
        add_by_rows(out := np.zeros(40), tokens)
        np.testing.assert_allclose(out, tokens.to_numpy().sum(axis=1))
    scale(tokens, 0.5)
    np.testing.assert_array_equal(tokens.values, np.append(1.0, 8 * before[1:]))
