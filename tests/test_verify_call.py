"""`f.verify(...)`: a call on copies, in parallel, on one worker and by Python, compared."""

import numpy as np
import pytest
import scipy.sparse

import orion
from orion.arrays.copied import copies_of
from orion.compared import Content, Outcome, Scale, compare
from orion.errors import AliasError, ArgumentError, NotParallelError, SerialLoopWarning, UnsupportedLoopError
from orion.runtime.backend import LocalBackend

RNG = np.random.default_rng


@orion.parallel_for
def scale(a, b, factor):
    for i in range(a.shape[0]):
        b[i] = a[i] * factor


@orion.parallel_for
def total(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i]
    return s, a.shape[0]


@orion.parallel_for
def shift(a):
    for i in range(1, a.shape[0]):
        a[i] = 0.5 * a[i - 1] + a[i]


@orion.parallel_for
def sgd(ratings, W, H):
    for (i, j), r in ratings:
        e = r - W[i] * H[j]
        w = W[i]
        W[i] += 0.1 * e * H[j]
        H[j] += 0.1 * e * w


@orion.parallel_for
def double_stored(ratings):
    for (i, j), r in ratings:
        ratings[i, j] = 2.0 * r


@orion.parallel_for
def gather(a, at, out):
    for i in range(out.shape[0]):
        out[i] = a[at[i]]


@orion.parallel_for
def count(group, late):
    for i in range(group.shape[0]):
        late[group[i]] += 1.0


TOTALS = np.zeros(4)


@orion.parallel_for
def count_outside(group):
    for i in range(group.shape[0]):
        TOTALS[group[i]] += 1.0


@pytest.fixture
def two_workers():
    with orion.session("threads", 2, force_parallel=False) as session:
        yield session


def ratings(count=600):
    rng = RNG(1)
    return orion.sparse((rng.integers(0, 40, count), rng.integers(0, 30, count)), rng.random(count), shape=(40, 30))


@pytest.fixture
def disturbed(monkeypatch):
    """Have runs on more than one worker, or on one too, change what they are given, after the run."""
    run = LocalBackend.run

    def set_up(change, *, one_worker=False):
        def disturbing(backend, call):
            returned = run(backend, call)
            return change(call.arguments, returned) if one_worker or backend.workers > 1 else returned

        monkeypatch.setattr(LocalBackend, "run", disturbing)

    return set_up


# ------------------------------------------------------------ results that are the same


def test_of_a_right_loop_nothing_differs_and_all_workers_ran(two_workers):
    a, b = np.arange(100.0), np.full(100, 7.0)
    found = scale.verify(a, b, 0.1)
    assert found
    assert found.is_same
    assert found.differences == ()
    assert found.workers == 2  # though so short a loop runs on one
    assert found.parallel.compared == found.python.compared == ("b",)
    assert (found.parallel.expected, found.python.expected) == ("bits", "rounding")
    assert np.array_equal(b, np.full(100, 7.0))
    assert scale.last_run is None
    text = str(found)
    assert text.startswith("scale: the results are the same.")
    assert "which must have the same bits" in text
    assert repr(found) == "<orion.Verification of scale: same>"


def test_rounding_against_python_is_told_in_ulps_and_counts_as_the_same(two_workers):
    a = RNG(0).random(100_000)
    found = total.verify(a)
    assert found
    assert found.parallel.differences == ()
    (one,) = found.differences
    assert one == found.python.differences[0]
    assert one.name == "return value[0]"
    assert one.runs == ("Python", "2 workers")
    assert (one.count, one.size, one.place) == (1, 1, ())
    assert 1 <= one.ulps <= 1000
    assert one.is_rounding
    expected, result = one.values
    assert one.absolute == abs(expected - result)
    assert one.relative == one.absolute / abs(expected)
    assert "ulp" in str(found)
    assert "rounding" in str(found)


def test_with_one_worker_it_is_said_that_nothing_ran_in_parallel():
    with orion.session("serial"):
        found = scale.verify(np.arange(10.0), np.zeros(10), 2.0)
    assert found
    assert (found.parallel, found.workers) == (None, 1)
    assert "one worker" in str(found)


def test_a_serial_plan_is_compared_with_python(two_workers):
    @orion.parallel_for
    def logistic(x, n):
        for _ in range(n):
            x[0] = 3.5 * x[0] * (1.0 - x[0])

    x = np.array([0.3])
    with pytest.warns(SerialLoopWarning) as caught:
        found = logistic.verify(x, 10)
    assert caught[0].filename == __file__
    assert found
    assert found.parallel is None
    assert x[0] == 0.3


# ------------------------------------------------------------ differences


def test_a_parallel_run_that_differs_is_told_by_name_place_and_values(two_workers, disturbed):
    def change(arguments, returned):
        arguments["b"][[3, 50]] += 1.0
        return returned

    disturbed(change)
    a, b = np.arange(100.0), np.zeros(100)
    found = scale.verify(a, b, 2.0)
    assert not found
    (one,) = found.parallel.differences
    assert (one.name, one.count, one.size, one.place, one.values) == ("b", 2, 100, (3,), (6.0, 7.0))
    assert one.runs == ("one worker", "2 workers")
    assert (one.absolute, one.relative, one.is_rounding) == (1.0, 1.0 / 6.0, False)
    assert found.python.differences[0].values == (6.0, 7.0)
    text = str(found)
    assert text.startswith("scale: the results differ.")
    assert "fault of Orion" in text
    assert "`b`: 2 of 100 elements differ" in text
    assert "first b[3]: 6.0 on one worker, 7.0 on 2 workers" in text
    assert not b.any()


def test_a_bit_that_differs_between_workers_is_a_difference(two_workers, disturbed):
    def change(arguments, returned):
        arguments["b"][7] = np.nextafter(arguments["b"][7], np.inf)
        return returned

    disturbed(change)
    found = scale.verify(np.arange(100.0), np.zeros(100), 2.0)
    assert not found
    assert [(one.place, one.ulps, one.is_rounding) for one in found.differences] == [((7,), 1, True)] * 2


def test_a_returned_value_that_differs_is_named(two_workers, disturbed):
    disturbed(lambda arguments, returned: (returned[0], returned[1] + 1))
    found = total.verify(np.ones(50))
    assert not found
    assert [(one.name, one.values) for one in found.parallel.differences] == [("return value[1]", (50, 51))]


def test_an_element_that_is_not_a_number_on_one_side_is_a_difference(two_workers, disturbed):
    def change(arguments, returned):
        arguments["b"][2] = np.nan
        return returned

    disturbed(change)
    found = scale.verify(np.arange(9.0), np.zeros(9), 1.0)
    (one,) = found.parallel.differences
    assert one.place == (2,)
    assert np.isinf(one.absolute)
    assert one.ulps is None


def test_no_numbers_on_both_sides_are_the_same(two_workers):
    a = np.array([np.nan, 1.0, np.inf, -0.0] * 20)
    assert scale.verify(a, np.zeros(80), 2.0).differences == ()


def test_a_wrong_result_of_compiled_loops_is_told(two_workers, disturbed):
    def change(arguments, returned):
        arguments["b"][5] = 0.25
        return returned

    disturbed(change, one_worker=True)
    found = scale.verify(np.arange(20.0), np.zeros(20), 2.0)
    assert not found
    assert found.parallel.is_same
    assert [(one.place, one.values) for one in found.python.differences] == [((5,), (10.0, 0.25))]
    assert "more than rounding" in str(found)
    assert "fault of Orion" not in str(found)


# ------------------------------------------------------------ kinds of arguments


def test_sparse_arrays_run_in_python_in_the_order_of_the_plan(two_workers):
    rng = RNG(2)
    R, W, H = ratings(), rng.random(40), rng.random(30)
    before = W.copy(), H.copy()
    found = sgd.verify(R, W, H)
    assert found
    assert found.plan.strategy == "2d"
    assert found.python.compared == ("W", "H")
    assert "plan.serial_order()" in str(found)
    assert np.array_equal(W, before[0])
    assert np.array_equal(H, before[1])
    sgd.serial(R, *before)  # by ascending keys: another order, with another result
    again = RNG(2).random(40)
    sgd(R, again, RNG(2).random(70)[40:])
    assert not np.allclose(before[0], again, rtol=1e-8)


def test_stored_values_and_dense_arrays_of_orion_stay_as_they_are(two_workers, disturbed):
    R = orion.sparse((np.arange(300) % 20, np.arange(300) // 20), RNG(1).random(300))
    values = R.values.copy()
    assert double_stored.verify(R)
    assert np.array_equal(R.values, values)
    a, b = orion.array(np.arange(12.0).reshape(3, 4)), orion.zeros((3, 4))
    assert scale.verify(a, b, 2.0)
    assert not b.to_numpy().any()

    def change(arguments, returned):
        arguments["ratings"][2, 3] = 9.0
        return returned

    unique = orion.sparse(([5, 2, 7], [1, 3, 0]), np.array([1.0, 2.0, 3.0]))
    disturbed(change)
    (one,) = double_stored.verify(unique).parallel.differences
    assert (one.name, one.count, one.place, one.values) == ("ratings", 1, (2, 3), (4.0, 9.0))


def test_views_with_strides_and_read_only_arrays_are_as_in_a_call(two_workers):
    whole = np.arange(40.0)
    out = np.zeros((20, 2))
    assert scale.verify(np.arange(20.0), out[:, 1], 3.0)
    assert scale.verify(whole[1::2], whole[::2], 3.0)  # one array, elements apart
    assert np.array_equal(whole, np.arange(40.0))
    out.flags.writeable = False
    with pytest.raises(UnsupportedLoopError, match="`b` is written, and is a read-only array"):
        scale.verify(np.arange(20.0), out[:, 1], 3.0)


def test_arrays_that_overlap_are_refused_as_in_a_call(two_workers):
    a = np.zeros(30)
    with pytest.raises(AliasError, match="share memory"):
        scale.verify(a[1:], a[:-1], 2.0)
    with pytest.raises(AliasError):
        scale.verify(a, a, 2.0)


def test_matrices_of_scipy_are_named_by_their_arrays(two_workers, disturbed):
    @orion.parallel_for
    def halve(A):
        for p in range(A.nnz):
            A.data[p] *= 0.5

    A = scipy.sparse.random_array((20, 30), density=0.2, rng=RNG(3)).tocsr()
    before = A.data.copy()

    def change(arguments, returned):
        next(value for name, value in arguments.items() if "data" in name)[4] = -1.0
        return returned

    assert halve.verify(A)
    disturbed(change)
    (one,) = halve.verify(A).parallel.differences
    assert (one.name, one.place, one.values) == ("A.data", (4,), (before[4] / 2, -1.0))
    assert np.array_equal(A.data, before)


def test_accumulators_are_compared_by_their_values(two_workers):
    @orion.parallel_for
    def look(x, nearest):
        for i in range(x.shape[0]):
            nearest.add((abs(x[i] - 0.5), i))

    nearest = orion.accumulator((np.inf, -1), combine=lambda a, b: a if a <= b else b)
    found = look.verify(RNG(5).random(500), nearest)
    assert found
    assert found.python.compared == ("nearest.value[0]", "nearest.value[1]")
    assert nearest.value == (np.inf, -1)


def test_late_updates_are_not_comparable_exactly_and_that_is_said(two_workers):
    group, totals = RNG(4).integers(0, 4, 400), np.zeros(4)
    found = count.verify(group, orion.buffer(totals, max_delay=50))
    assert found
    assert found.parallel is None
    assert found.python.expected == "nothing"
    assert found.python.note.startswith("updates of `late` may be late")
    assert found.python.compared == ("late.array",)
    assert found.differences == ()
    assert not totals.any()


def test_copies_of_workers_are_not_comparable_exactly(two_workers):
    @orion.parallel_for
    def descend(x, y, w):
        for i in range(x.shape[0]):
            w[0] -= 0.1 * (w[0] * x[i] - y[i]) * x[i]

    rng, centre = RNG(8), np.zeros(1)
    w = orion.replicate(centre, policy=orion.elastic(mode="sync", alpha=0.2, sync_every=10))
    found = descend.verify(rng.random(200), rng.random(200), w)
    assert found
    assert found.parallel is None
    assert "each worker has a copy of `w`" in found.python.note
    (one,) = found.differences
    assert (one.name, one.count) == ("w.array", 1)
    assert "do not count" in str(found)
    assert not centre.any()
    assert not w.copies.any()


def test_ranges_in_any_order_are_compared_without_a_promise_of_python(two_workers):
    @orion.parallel_for(ordered=False)
    def chain(a, at):
        for i in range(at.shape[0]):
            a[at[i]] = 0.5 * a[at[i]] + i

    found = chain.verify(np.zeros(20), RNG(6).integers(0, 20, 300))
    assert found
    if found.plan.strategy != "independent":
        assert "any order" in found.python.note


def test_an_array_from_outside_is_given_back(two_workers):
    assert count_outside.verify(np.arange(100) % 4)
    assert count_outside.verify(np.arange(100) % 4).python.compared == ("TOTALS",)
    assert not TOTALS.any()


def test_defaults_keywords_and_an_argument_called_verify(two_workers):
    @orion.parallel_for
    def add(a, verify=2, *, more=1.0):
        for i in range(a.shape[0]):
            a[i] += verify * more

    a = np.zeros(50)
    assert add.verify(a)
    assert add.verify(a, verify=3, more=2.0)
    assert not a.any()
    with pytest.raises(ArgumentError, match="mor"):
        add.verify(a, mor=2.0)


# ------------------------------------------------------------ errors


def test_the_same_error_in_all_runs_is_the_same(two_workers):
    a, out = np.arange(5.0), np.zeros(400)
    found = gather.verify(a, np.full(400, 5), out)
    assert found
    assert found.differences == ()
    assert "raise IndexError" in str(found)
    assert not out.any()


def test_an_error_of_one_side_is_a_difference(two_workers, disturbed):
    def change(arguments, returned):
        raise ZeroDivisionError("disturbed")

    disturbed(change)
    found = scale.verify(np.arange(50.0), np.zeros(50), 2.0)
    assert not found
    (one,) = found.parallel.differences
    assert one.name == "error"
    assert one.values[0] is None
    assert isinstance(one.values[1], ZeroDivisionError)
    assert "ZeroDivisionError: disturbed" in str(found)


def test_an_interrupt_passes_and_leaves_everything_as_it_was(two_workers, disturbed):
    def change(arguments, returned):
        raise KeyboardInterrupt

    R = orion.sparse((np.arange(300) % 20, np.arange(300) // 20), RNG(1).random(300))
    values = R.values.copy()
    disturbed(change)
    with pytest.raises(KeyboardInterrupt):
        double_stored.verify(R)
    assert np.array_equal(R.values, values)


def test_what_a_call_refuses_is_refused(two_workers):
    with pytest.raises(ArgumentError, match="`b`"):
        scale.verify(np.zeros(3), ["x"], 2.0)
    with pytest.raises(NotParallelError):
        orion.parallel_for(require_parallel=True)(shift_for_ever).verify(np.ones(50))
    with pytest.raises(UnsupportedLoopError):
        orion.parallel_for(unsupported).verify(np.ones(5), np.zeros(5))


def shift_for_ever(a):
    for i in range(1, a.shape[0]):
        a[i] = np.sin(a[i - 1]) + a[i]


def unsupported(a, b):
    for i in range(a.shape[0]):
        b[i] = eval("a[i]")


def test_a_function_that_runs_as_it_is_is_compared_with_python(two_workers):
    @orion.parallel_for
    def collect(a, found):
        kept = {}
        for i in range(a.shape[0]):
            kept[a[i] % 3] = i
        found[0] = len(kept)
        return len(kept)

    a, n = np.arange(10), np.zeros(1)
    with pytest.warns(SerialLoopWarning) as caught:
        found = collect.verify(a, n)
    assert caught[0].filename == __file__
    assert found
    assert (found.plan, found.parallel, found.workers) == (None, None, 1)
    assert found.python.compared == ("a", "found", "return value")
    assert "compiled by Numba as it is" in str(found)
    assert not n.any()


# ------------------------------------------------------------ values compared, and copies


def found_in(first, second, expected="bits"):
    contents = [Outcome({"x": Content(np.asarray(one))}) for one in (first, second)]
    return compare(("one worker", "2 workers"), *contents, expected)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([np.nan, 1.0]), np.array([-np.nan, 1.0])),
        (np.array([1 + np.nan * 1j]), np.array([1 + np.nan * 1j])),
        (3, np.int32(3)),
        (1.5, np.float64(1.5)),
        (np.zeros(0), np.zeros(0)),
        (2**70, 2**70),
        (True, np.True_),
    ],
)
def test_values_that_are_the_same(first, second):
    assert found_in(first, second).differences == ()


@pytest.mark.parametrize(
    ("first", "second", "absolute", "ulps", "is_rounding"),
    [
        (0.0, -0.0, 0.0, 0, True),
        (1.0, 1.0 + 2**-52, 2**-52, 1, True),
        (np.float32(1.0), np.float32(1.0 + 2**-23), 2**-23, 1, True),
        (-(2.0**-1074), 2.0**-1074, 2.0**-1073, 2, False),
        (1.0, 1.001, pytest.approx(0.001), 4503599627370, False),
        (1 + 1j, 1 + 1j * (1 + 2**-52), 2**-52, 1, True),
        (1.0, np.nan, np.inf, None, False),
        (np.inf, 1.0, np.inf, None, False),
        (np.int64(-(2**63)), np.int64(2**63 - 1), float(2**64), None, False),
        (np.uint64(2**64 - 1), np.uint64(0), float(2**64), None, False),
        (np.int8(-128), np.int8(127), 255.0, None, False),
        (True, False, 1.0, None, False),
    ],
)
def test_how_much_values_differ(first, second, absolute, ulps, is_rounding):
    (one,) = found_in(first, second).differences
    assert (one.absolute, one.ulps, one.is_rounding) == (absolute, ulps, is_rounding)
    assert str(first) in str(one)


def test_what_cancels_out_in_an_array_is_rounding():
    first, second = np.array([1.0, 1e-16]), np.array([1.0, -1e-16])
    assert found_in(first, second, "rounding").is_same
    assert not found_in(first[1:], second[1:], "rounding").is_same


def test_what_cancels_out_in_rounds_is_rounding_of_what_was_there_before():
    scale = Scale(largest=40.0, total=400.0)
    outcomes = [Outcome({"r": Content(np.array([one]))}, scale=scale) for one in (2e-8, 2.00001e-8)]
    assert compare(("Python", "2 workers"), *outcomes, "rounding").is_same


def test_a_sum_that_cancels_out_differs_by_rounding(two_workers):
    rng = RNG(9)
    half = rng.random(20_000).astype(np.float32)
    found = total.verify(rng.permutation(np.concatenate([half, -half])))
    assert found
    assert found.differences[0].relative > 1e-3


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (np.zeros(3), np.zeros(4), ("shape (3,)", "shape (4,)")),
        (3, 3.0, ("3 (int64)", "3.0 (float64)")),
        (2**70, 5, (f"{2**70} (int)", "5 (int64)")),
        ("a", "b", ("a", "b")),
    ],
)
def test_other_shapes_and_types_are_told(first, second, words):
    (one,) = found_in(first, second).differences
    assert one.absolute is None
    assert all(word in str(one) for word in words)


def test_a_value_that_only_one_run_returns_is_told():
    outcomes = Outcome({"return value": Content(np.asarray(2.5))}), Outcome({})
    (one,) = compare(("Python", "2 workers"), *outcomes, "rounding").differences
    assert str(one) == "the return value: 2.5 (float64) in Python, none on 2 workers"


def test_values_of_tuples_in_sparse_arrays_are_told_as_they_are_written(two_workers, disturbed):
    @orion.parallel_for
    def swap(R):
        for (i, j), (a, b) in R:
            R[i, j] = b, a

    def change(arguments, returned):
        arguments["R"][2, 3] = 0.0, 7.0
        return returned

    R = orion.sparse(([5, 2, 7], [1, 3, 0]), (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])))
    disturbed(change)
    text = str(swap.verify(R))
    assert "first R[2, 3][0]: 5.0 on one worker, 0.0 on 2 workers" in text
    assert "first R[2, 3][1]: 2.0 on one worker, 7.0 on 2 workers" in text


def test_copies_share_memory_as_the_arguments_do():
    whole = np.arange(24.0).reshape(4, 6)
    arrays = [whole[::-1, ::2], whole[:, 1::2], whole.T[1:], np.arange(5)[:0], np.arange(3, dtype=np.int8)]
    copies = copies_of([("a", one) for one in arrays])
    for one, copy in zip(arrays, copies, strict=True):
        assert np.array_equal(one, copy)
        assert (one.strides, one.dtype) == (copy.strides, copy.dtype)
        assert one.ctypes.data % 64 == copy.ctypes.data % 64 or not one.size
        assert not np.shares_memory(one, copy)
    copies[0][0, 0] = -1.0
    assert copies[2][0].tolist() == whole[:, 1].tolist()
    copies[1][2, 0] = -2.0
    assert copies[2][0, 2] == -2.0
    assert np.array_equal(whole, np.arange(24.0).reshape(4, 6))


# ------------------------------------------------------------ Ray


@pytest.mark.ray
def test_runs_on_actors_are_compared_with_python_and_with_one_worker():
    pytest.importorskip("ray")
    rng = RNG(2)
    with orion.session("ray", 2, force_parallel=True):
        found = sgd.verify(ratings(), rng.random(40), rng.random(30))
        b = orion.zeros(100)
        second = scale.verify(np.arange(100.0), b, 0.1)
    assert found
    assert (found.workers, found.parallel.differences) == (2, ())
    assert second
    assert not b.to_numpy().any()


@orion.parallel_for
def doubled_in_place(a, scale):
    for i in range(a.shape[0]):
        a[i] = scale * a[i]


@pytest.mark.parametrize("run", [doubled_in_place.verify, doubled_in_place.measure])
def test_a_copy_that_has_no_room_is_named(run):
    """Memory from end to end of an array that has its elements far apart."""
    a = np.lib.stride_tricks.as_strided(np.zeros(1), (100,), (1 << 50,))
    with pytest.raises(MemoryError, match=r"(?s)no memory for a copy of `a`, 101376\.0 TiB.*help: give smaller arrays"):
        run(a, 2.0)


@orion.parallel_for
def swapped(R):
    for (i, j), (a, b) in R:
        R[i, j] = b, a


def test_a_copy_of_the_values_of_a_sparse_array_that_has_no_room_is_named(monkeypatch):
    def no_memory(self):
        raise MemoryError

    monkeypatch.setattr(orion.SparseArray, "before_image", no_memory)
    R = orion.sparse(([5, 2, 7], [1, 3, 0]), (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])))
    for run in (swapped.verify, swapped.measure):
        with pytest.raises(MemoryError, match="no memory for a copy of `R`, 48 bytes"):
            run(R)
