"""Plans that are right, and that the checker once refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion
from orion.errors import UnprovedWarning


def taken_apart(a, n):
    """The second loop's statements run once per round; `t` is given a value there before it is read."""
    for _ in range(n):
        t = 0
    for i in range(n):
        t = a[i]
        low = t
        for j in range(i):
            a[j] += 0.5 * low


def compared(A, T, x, m, c8):
    """The subscripts in a comparison of two values are looked at in each iteration: sizes at which they leave arrays
    need no order."""
    low = 50.0
    for i in range(1, m):
        for j in range(i, 1, -1):
            T[2 * i + 1, c8 + 1, c8 + (6 - i - 2)] = A[i + 2 + c8 % 3, j + 2] + T[j, j, i + 4]
            if low >= 0.25 * T[j + 2, c8 - (j + 2), i + 2 * j + 1 + c8 - 2] * x[i]:
                low = 0.25 * T[c8 - (j + 2), j + 2, i + 2 * j + 1] * x[i]
    return low


def inner_loops_of_no_trips(A, B, y, T):
    """Neighbours that are run as one, of which one has nothing to do in any iteration."""
    n, m = A.shape
    for _ in range(T):
        for i in range(n):
            for j in range(m - 2):
                A[i, j] = 1.0 - 0.5 * B[i, j]
        for i in range(n):
            for j in range(m):
                A[i, j] *= B[i, j] + y[j]


def neighbours_and_a_new_order(A, C, x, y, T):
    """Loops that are run as one stand before a loop in another order."""
    for _ in range(T):
        x[:] = -1.5
        A[-1, :] = C[-2, :]
    for _ in range(T):
        A[-1, :] = A[0, :]
    for _ in range(T):
        A[:, :] += -(y[:] * A[:, :])


def an_end_that_is_not_affine(A, B, y, k):
    """The elements before the beginning of a slice are not in it, whatever its end is."""
    n, m = A.shape
    for i in range(1, n):
        for j in range(m - 1):
            A[i, j] *= -(B[1, 0] + y[j])
        B[i, 2 : k * m] *= A[0, 2:] + A[i - 1, 2:] - 2 * B[i - 1, 2:]


def a_row_that_is_named_anew(W, X):
    """A name of a row of `X` is given another row: nothing is written to `X`."""
    out = np.zeros_like(X)
    for i in range(len(X)):
        h = X[i]
        for k in range(len(W)):
            h = h * W[k] + 1
        out[i] = h
    return out.sum()


def rows_by_numbers(X, w, out):
    """The same with a number as the factor, in a place that is given a whole row, and with another name beside."""
    for i in range(len(X)):
        h, t = X[i], 0.0
        for k in range(len(w)):
            h, t = h * w[k], t + w[k]
        out[i, :] = h + t


def a_row_of_two_that_is_named_anew(X, w, out):
    """The name is that of one row or of another before it is given a new one."""
    for i in range(len(X) - 1):
        h = X[i]
        if w[0] > 0:
            h = X[i + 1]
        h = h * 2
        for k in range(len(w)):
            h = h + w[k]
        out[i] = h


def a_bound_that_its_loop_sets_again(p, q, n):
    """A bound that another statement of the iteration gives is that of the loop, whatever its trips make of it."""
    e = 0
    for i in range(n):
        q[i] -= 0.5
        e = 1
        for j in range(e):
            p[i] += p[j - i + 10]
            e = 0
    return e


def a_test_of_two_types(x, n):
    """A truth value or a number is tested between loops, and an element read for it."""
    t = e = 0
    for i in range(n):
        for j in range(i):
            if t < x[0] if i > i else 0:
                t = 0
                for _ in range(0):
                    e = j
    return e


def truth_values_as_tests(x, y, n):
    """Truth values that a test chooses by are written out in the source, too."""
    c = 0
    for i in range(n):
        if True if c < 3 else False:  # noqa: SIM210
            for k in range(len(y)):
                y[k] += i
        if True if x[i] > 0.0 else False:  # noqa: SIM210
            for k in range(len(y)):
                y[k] *= 2
        while True if c < i else False:  # noqa: SIM210
            for k in range(len(y)):
                y[k] -= 1
            c += 1
        c += 1
    return c


def a_scalar_of_two_loops(A, P, w, n):
    """Both loops hand a scalar on, which the inner one gives the next iteration as it was made of elements."""
    t = 0.5
    d = 1
    for i in range(1, n // 2 + 1, 3):
        for j in range(min(i + 1, 2)):
            A[i, 2] = 0.5 * A[(2 - i) % 3, 10 - j] + 0.25 * t
            t = 0.5 * w[j] + j
            A[i % 3, j] = t * 0.5
        d = (d * 3 + P[i]) % 97
    return d


def names_with_two_underscores(a__, b, n_):
    """Names of the source that look like some that the checker makes."""
    for _ in range(n_):
        for e0__ in range(len(b)):
            b[e0__] = 0.3 * (a__[e0__] + a__[e0__ + 1] - b[e0__])
        for c__ in range(len(b) - 1):
            b[c__ + 1] = 0.3 * (a__[c__] + b[c__] - a__[c__])


def downwards_from_an_element(a, starts):
    for i in range(len(starts)):
        for j in range(starts[i], i, -2):
            if j == 0:
                a[j] = i
            if j == j + 1:
                a[j - 1] = a[j + 1]


def rows_sorted_beside_a_recurrence(A, out):
    """A method writes the row that it is called on, and neither the array's other rows nor the number of the row."""
    s = 1.0
    for i in range(len(out)):
        A[i].sort()
        s = 0.5 * s + A[i, 0]
        out[i] = s
    return s


def cube(*lengths):
    return np.random.default_rng(0).random(lengths) - 0.5


GIVEN = {
    taken_apart: lambda: (cube(13), 5),
    compared: lambda: (cube(40, 40), cube(60, 40, 60), cube(40), 10, np.int8(2)),
    inner_loops_of_no_trips: lambda: (cube(3, 2), cube(3, 2), cube(2), 2),
    an_end_that_is_not_affine: lambda: (cube(7, 6), cube(7, 6), cube(6), 1),
    a_row_that_is_named_anew: lambda: (np.ones((3, 6)), np.ones((10, 6))),
    rows_by_numbers: lambda: (cube(8, 5), cube(3), np.zeros((8, 5))),
    a_row_of_two_that_is_named_anew: lambda: (cube(8, 5), cube(3), np.zeros((8, 5))),
    a_bound_that_its_loop_sets_again: lambda: (cube(26), cube(20), 9),
    a_test_of_two_types: lambda: (cube(13), 5),
    truth_values_as_tests: lambda: (cube(9), np.ones(7), 9),
    a_scalar_of_two_loops: lambda: (cube(7, 11), np.arange(20), cube(2), 8),
    names_with_two_underscores: lambda: (cube(20), cube(18), 6),
    rows_sorted_beside_a_recurrence: lambda: (np.floor(10 * np.sin(cube(9, 4))), cube(9)),
    downwards_from_an_element: lambda: (cube(20), np.arange(9) % 4 + 5),
    neighbours_and_a_new_order: lambda: (cube(7, 6), cube(7, 6), cube(7), cube(6), 2),
}


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("function", GIVEN, ids=lambda f: f.__name__)
def test_is_proved_and_right(function, workers):
    looped = orion.parallel_for(function)
    mine, its = GIVEN[function](), GIVEN[function]()
    with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        warnings.simplefilter("error", UnprovedWarning)
        looped.plan(*mine).check()
        assert looped(*mine) == function(*its)
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_array_equal(one, other)
