"""Subscripts that are checked as a loop runs: where the check stands, and what it finds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def factors(R, W, H, b, step):
    K = W.shape[1]
    for t in range(R.shape[0]):
        u, i, r = int(R[t, 0]), int(R[t, 1]), R[t, 2]
        p = b[u]
        for k in range(K):
            p += W[u, k] * H[i, k]
        e = r - p
        b[u] += step * e
        for k in range(K):
            w = W[u, k]
            W[u, k] += step * e * H[i, k]
            H[i, k] += step * e * w


def two_ranges(u, n, m, a, W):
    """The second loop may run where the first one does not."""
    for t in range(u.shape[0]):
        v = u[t]
        for k in range(n):
            a[k] += W[v, k]
        for k in range(m):
            a[k] -= W[v, k]


def down(u, a, W):
    for t in range(u.shape[0]):
        v = u[t]
        for k in range(W.shape[1] - 1, -1, -2):
            a[k] += W[v, k]


def changing(u, a, W):
    """What the subscript names changes between two uses, and in the loop."""
    for t in range(u.shape[0]):
        v = u[t]
        a[0] += W[v, 0]
        v = u[v]
        a[0] += W[v, 0]
        for k in range(W.shape[1]):
            a[k] += W[v, k]
            v = u[v]


def perhaps(u, flag, a, W):
    """Nothing is checked that Python would not look at."""
    for t in range(u.shape[0]):
        v = u[t]
        for k in range(W.shape[1]):
            if flag[t] > 0:
                a[k] += W[v, k]
            a[k] += W[v, k] if flag[t] > 1 else 0.5
        if flag[t] > 0:
            a[0] += W[v, 0]
        else:
            v = 0
        a[1] += W[v, 1]


def histogram(bins, H):
    for i in range(bins.shape[0]):
        for f in range(bins.shape[1]):
            H[f, bins[i, f]] += 1


def triples(rows):
    rng = np.random.default_rng(5)
    return np.stack([rng.integers(0, 7, rows), rng.integers(-5, 5, rows), rng.random(rows)], 1)


def arguments(function):
    rng = np.random.default_rng(6)
    u, W = rng.integers(0, 6, 9), rng.random((6, 8))
    return {
        factors: lambda: (triples(50), rng.random((7, 4)), rng.random((5, 4)), np.zeros(7), 0.1),
        two_ranges: lambda: (u, 5, 7, np.zeros(8), W),
        down: lambda: (u - 3, np.zeros(8), W),
        changing: lambda: (u, np.zeros(8), W),
        perhaps: lambda: (u, rng.integers(0, 3, 9), np.zeros(8), W),
        histogram: lambda: (rng.integers(0, 9, (40, 3)).astype(np.uint8), np.zeros((3, 9), np.int64)),
    }[function]()


def copied(given):
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in given)


FUNCTIONS = [factors, two_ranges, down, changing, perhaps, histogram]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_those_of_python(function, workers):
    ours = arguments(function)
    wanted = copied(ours)
    with orion.session("threads", workers, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        orion.parallel_for(function)(*ours)
    function(*wanted)
    for one, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


OUTSIDE = [
    (factors, lambda a: a[0].__setitem__((20, 0), 7.0), r"subscript 7 leaves `b`"),
    (factors, lambda a: a[0].__setitem__((20, 1), -6.0), r"subscript -6 leaves `H`"),
    (two_ranges, lambda a: a[0].__setitem__(4, 6), r"subscript 6 leaves `W`"),
    (down, lambda a: a[0].__setitem__(4, -7), r"subscript -7 leaves `W`"),
    (changing, lambda a: a[0].__setitem__(4, 9), r"subscript 9 leaves `(W|u)`"),
    (histogram, lambda a: a[0].__setitem__((4, 1), 9), r"subscript 9 leaves `H`"),
]


@pytest.mark.parametrize(("function", "spoil", "message"), OUTSIDE)
def test_subscripts_that_leave_their_arrays_are_found(function, spoil, message):
    given = arguments(function)
    spoil(given)
    with orion.session("threads", 1), pytest.raises(orion.OutOfBoundsError, match=message):
        orion.parallel_for(function)(*given)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 7), (7, 0)])
def test_a_loop_without_trips_checks_nothing(n, m):
    """And what one loop would have checked is checked by the next."""
    u, _, _, a, W = arguments(two_ranges)
    u[3] = 6
    ours = orion.parallel_for(two_ranges)
    if n or m:
        with pytest.raises(orion.OutOfBoundsError, match="subscript 6 leaves `W`"):
            ours(u, n, m, a, W)
    else:
        ours(u, n, m, a, W)
        assert not a.any()


def test_what_is_not_evaluated_is_not_checked():
    u, flag, a, W = arguments(perhaps)
    u[4], flag[4] = 100, 0
    wanted = a.copy()
    orion.parallel_for(perhaps)(u, flag, a, W)
    perhaps(u, flag, wanted, W)
    np.testing.assert_allclose(a, wanted)


def test_checks_of_what_stays_the_same_stand_before_the_loop():
    """Inside they would keep it from being run in vectors; and each axis is proved by itself."""
    text = orion.parallel_for(factors).kernel_source(*arguments(factors))
    inside = [line for line in text.splitlines() if line.startswith(" " * 12) and "checked(" in line]
    assert all(line.strip().startswith(("u_of_", "i_of_")) for line in inside)
    assert text.count("W.shape[1], 1") == 0
    (line,) = (
        line
        for line in orion.parallel_for(histogram).kernel_source(*arguments(histogram)).splitlines()
        if "checked_narrow(" in line
    )
    assert line.count("checked") == 1
    assert "H[uint64(f), checked_narrow(" in line


def test_blocks_of_an_inner_loop_are_as_many_as_workers():
    """Each goes through the loops around it: with many of them each line of the cache would be loaded many times. The
    kernel stays the same, and so do the bits."""
    given = arguments(histogram)
    sources = []
    for workers in (1, 2, 3):
        with orion.session("threads", workers, force_parallel=True):
            function = orion.parallel_for(histogram)
            assert function.plan(*given).loops[0].cuts == (1, workers)
            sources.append(function.kernel_source(*given))
    assert len(set(sources)) == 1


def counts(bins, H):
    for i in range(bins.shape[0]):
        H[bins[i]] += 1


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("more", [-2, -1, 0, 1])
def test_elements_of_few_bits_next_to_an_axis_as_long_as_their_values(kind, more):
    limits = np.iinfo(kind)
    extent = limits.max + 1 + more
    compiled = orion.parallel_for(counts)
    for place in (limits.min, limits.min + 1, -1, 0, limits.max - 1, limits.max):
        if place < limits.min:
            continue
        bins, H = np.array([0, place, 0]).astype(kind), np.zeros(extent, np.int64)
        if -extent <= place < extent:
            expected = H.copy()
            counts(bins, expected)
            compiled(bins, H)
            assert np.array_equal(H, expected)
        else:
            with pytest.raises(orion.OutOfBoundsError, match=str(place)):
                compiled(bins, H)


def test_a_sum_of_elements_of_few_bits_is_checked_as_it_is():
    def shifted(bins, H):
        for i in range(bins.shape[0]):
            H[bins[i] + i] += 1

    bins, H = np.array([255, 255, 3], np.uint8), np.zeros(256, np.int64)
    expected = H.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 255 + 1 is 0 in eight bits
        shifted(bins, expected)
    orion.parallel_for(shifted)(bins, H)
    assert np.array_equal(H, expected)


def around(a, b):
    """A grid whose edges meet: the remainders are inside whatever isl makes of them."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            b[i, j] = a[(i - 1) % n, j] + a[i, (j - 1) % m] + a[(i + 1) % n, (7 * j * j) % m]


def hashed(a, x, m):
    for i in range(x.shape[0]):
        x[i] += a[(i * i) % m]


def test_remainders_by_the_length_of_an_axis_are_not_checked():
    a, b, wanted = np.random.default_rng(5).random((9, 7)), np.zeros((9, 7)), np.zeros((9, 7))
    text = orion.parallel_for(around).kernel_source(a, b)
    assert "checked(" not in text.partition("def tile(")[2]
    for workers in (1, 2):
        with orion.session("threads", workers, force_parallel=True):
            orion.parallel_for(around)(a, b)
        around(a, wanted)
        assert np.array_equal(b, wanted)


@pytest.mark.parametrize("workers", [1, 2])
def test_remainders_by_an_argument_are_looked_at_in_every_call(workers):
    """What is sure of one call is not taken for granted in the next."""
    a, compiled = np.arange(1.0, 11.0), orion.parallel_for(hashed)
    with orion.session("threads", workers, force_parallel=True):
        for m in (10, 7, 20, 10, 11, -3, 0, 1):
            x, wanted = np.zeros(50), np.zeros(50)
            try:
                hashed(a, wanted, m)
            except (IndexError, ZeroDivisionError) as error:
                with pytest.raises(type(error)):
                    compiled(a, x, m)
            else:
                compiled(a, x, m)
                assert np.array_equal(x, wanted)


def nearest(labels, points, turned):
    for i in range(points.shape[0]):
        dist = np.zeros(turned.shape[1])
        for j in range(points.shape[1]):
            for k in range(turned.shape[1]):
                dist[k] += (points[i, j] - turned[j, k]) ** 2
        for k in range(turned.shape[1] - 1, 0, -1):
            dist[k - 1] = min(dist[k], dist[k - 1])
        labels[i] = int(dist[0])


def past_the_end(out, n):
    for i in range(out.shape[0]):
        row = np.zeros(out.shape[0])
        for k in range(n):
            row[k] += i
        for k in range(out.shape[0]):
            row[k + 1 - (k + 1) // out.shape[0]] += 1.0
            row[-k] += 0.5
        out[i] = row.sum()


def test_arrays_that_loops_make_are_as_long_as_they_are_made():
    rng = np.random.default_rng(0)
    points, turned, labels, wanted = rng.random((30, 5)), rng.random((5, 7)), np.zeros(30, int), np.zeros(30, int)
    text = orion.parallel_for(nearest).kernel_source(labels, points, turned).partition("def tile(")[2]
    assert "dist[uint64(k)] +=" in text.replace("dist[uint64(k_2)]", "dist[uint64(k)]") or "checked(k, " not in text
    orion.parallel_for(nearest)(labels, points, turned)
    nearest(wanted, points, turned)
    assert np.array_equal(labels, wanted)


@pytest.mark.parametrize("n", [0, 3, 8, 9, 12])
def test_what_leaves_an_array_that_a_loop_makes_is_told(n):
    out, wanted = np.zeros(8), np.zeros(8)
    decorated = orion.parallel_for(past_the_end)
    if n > 8:
        with pytest.raises(orion.OutOfBoundsError, match="`row`"):
            decorated(out, n)
        return
    decorated(out, n)
    past_the_end(wanted, n)
    assert np.array_equal(out, wanted)


def windows(A, b):
    for i in range(A.shape[0]):
        A[i] = b[i : i + 4]


def windows_twice(A, b):
    for i in range(A.shape[0]):
        A[i] += b[i : i + 4]
        A[i] = A[i] * b[i : i + 4]


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (windows, r"py:\d+: could not broadcast input array from shape \(3,\) into shape \(4,\)\n.* A\[i\] = b\[i"),
        (windows_twice, r"operands could not be broadcast together\n  why:  in line \d+ or \d+\n  help: a slice ends"),
    ],
)
def test_a_slice_that_ends_with_its_array_is_told_in_numpys_words(function, told):
    with pytest.raises(ValueError, match=told):
        orion.parallel_for(function)(np.zeros((5, 4)), np.zeros(6))


def more(a, k):
    for i in range(a.shape[0]):
        a[i] = a[i] + k


def test_a_number_that_does_not_fit_is_told_with_the_dtype():
    with pytest.raises(OverflowError, match=r"py:\d+: 300 does not fit int8\n(.*\n)*.*`int\(x\)`"):
        orion.parallel_for(more)(np.zeros(5, np.int8), 300)


def perhaps_in_steps(a, k):
    for j in range(a.shape[0]):
        if a[j] >= 0.0:
            for i in range(0, a.shape[0], k):
                a[i] = 1.0


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_step_of_0_that_may_be_left_out_is_refused_as_the_loop_runs():
    compiled = orion.parallel_for(perhaps_in_steps)
    compiled(-np.ones(3), 0)
    with pytest.raises(ValueError, match=r"test_kernel_checks.py:\d+: range\(\) arg 3 must not be zero\n.* for i in"):
        compiled(np.ones(3), 0)
