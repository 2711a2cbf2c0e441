"""Rows that are written with rows of other lengths: refused before anything runs, with the place and both shapes."""

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def added(g, X):
    for i in range(X.shape[0]):
        g += X[i]


def scaled(g, X):
    for i in range(X.shape[0]):
        g -= 2 * X[i]


def added_to_all(g, X):
    for i in range(X.shape[0]):
        g[:] += X[i]


def assigned(g, X):
    for i in range(X.shape[0]):
        g[:] = X[i]


def rows(g, X):
    for i in range(g.shape[0]):
        g[i] += X[i]


def parts_of_rows(g, X):
    for i in range(g.shape[0]):
        g[i, 0:1] += X[i]


def last_parts(g, X):
    for i in range(X.shape[0]):
        g[-1:] = X[i]


def every_second(g, X):
    for i in range(X.shape[0]):
        g[::2] += X[i, 1:]


def broadcast_first(g, X):
    for i in range(X.shape[0]):
        X[i] = X[i] + g


def once(g, X):
    g += X[0]


def outer(g, X):
    for i in range(X.shape[0]):
        g += np.outer(X[i], X[i])


FUNCTIONS = [
    added, scaled, added_to_all, assigned, rows, parts_of_rows, last_parts, every_second, broadcast_first, once, outer,
]  # fmt: skip
SHAPES = [
    ((1,), (3, 4)), ((4,), (3, 4)), ((4,), (3, 1)), ((1,), (3, 1)), ((3,), (3, 4)), ((0,), (3, 4)), ((1,), (3, 0)),
    ((1, 4), (3, 4)), ((3, 4), (3, 4)), ((3, 1), (3, 4)), ((3, 4), (3, 1)), ((4, 4), (3, 4)), ((4, 1), (3, 4)),
    ((1, 1), (3, 4)), ((2, 4), (3, 2, 4)), ((1, 4), (3, 2, 4)), ((2, 4), (3, 1, 4)), ((4,), (3, 2, 4)), ((2,), (3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_numpy_writes_is_written_and_what_it_refuses_is_refused_with_both_shapes(function):
    compiled = orion.parallel_for(function)
    for shape, given in SHAPES:
        X = np.arange(float(np.prod(given))).reshape(given)
        wanted, found = (np.ones(shape), X.copy()), (np.ones(shape), X.copy())
        try:
            function(*wanted)
        except (ValueError, IndexError):
            with pytest.raises(orion.OrionError, match=r"test_lengths.py:\d+: ") as caught:
                compiled(*found)
            if isinstance(caught.value, orion.ArgumentError):
                assert f"`g` has shape {shape}" in str(caught.value)
                assert f"`X` has shape {given}" in str(caught.value)
            continue
        try:
            compiled(*found)
        except orion.UnsupportedLoopError:
            continue  # of so many dimensions it is not written, whatever their lengths
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])


def test_the_sentence():
    with pytest.raises(orion.ArgumentError) as caught:
        orion.parallel_for(added)(np.zeros(1), np.ones((3, 4)))
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("`g` and `X[i]` differ in length: 1 and 4")
    assert lines[1].endswith("g += X[i]")
    assert lines[3:] == [
        "  why:  NumPy repeats a single element that is read, not one that is written; `g` has shape (1,), "
        "`X` has shape (3, 4)",
        "  help: pass arrays whose rows have the same length",
    ]


# ---------------------------------------------------------------- what a call does not reach is not looked at


def under_a_test(C, A, B, n):
    for i in range(n):
        if A.shape[1] == B.shape[1]:
            C[i] = A[i] + B[i]
        else:
            C[i] = A[i]


def under_two_tests(C, A, B, n):
    for i in range(n):
        if n > 3 and not (A.shape[1] < B.shape[1] or A.shape[1] > B.shape[1]):
            C[i] = A[i] + B[i]


def behind_a_return(C, A, B, n):
    if A.shape[1] != B.shape[1]:
        return
    for i in range(n):
        C[i] = A[i] + B[i]


def behind_a_continue(C, A, B, n):
    for i in range(n):
        C[i] = A[i]
        if A.shape[1] < B.shape[1] or A.shape[1] > B.shape[1]:
            continue
        C[i] += B[i]


def one_of_two(C, A, B, n):
    for i in range(n):
        C[i, 0] = A[i] @ B[i] if A.shape[1] == B.shape[1] else 7.0


def only_if_needed(C, A, B, n):
    for i in range(n):
        C[i, 0] = A.shape[1] == B.shape[1] and A[i] @ B[i] > 2.0


def no_trips(C, A, B, n):
    for i in range(A.shape[1] - B.shape[1], n - 4):
        C[i] = A[i] + B[i]


def by_a_name(C, A, B, n):
    width, other = A.shape[1], B.shape[1]
    for i in range(n):
        if width == other:
            C[i] = A[i] + B[i]


REACHING = [
    under_a_test, under_two_tests, behind_a_return, behind_a_continue, one_of_two, only_if_needed, no_trips, by_a_name,
]  # fmt: skip


@pytest.mark.parametrize("function", REACHING, ids=lambda f: f.__name__)
def test_rows_that_a_call_does_not_reach_may_have_any_lengths(function):
    compiled = orion.parallel_for(function)
    for width in (5, 3, 5):  # the compiled loop of one call is not taken for the other
        wanted, found = (((np.zeros((4, 5)), np.ones((4, 5)), np.full((4, width), 2.0), 4)) for _ in range(2))
        function(*wanted)
        compiled(*found)
        np.testing.assert_array_equal(found[0], wanted[0])


def reached_at_last(C, A, B, n):
    for i in range(n):
        if i >= 3:
            C[i] = A[i] + B[i]


def given_another_value(C, A, B, n):
    m = n
    n = 4
    for i in range(m - n, m):
        C[i] = A[i] + B[i]


@pytest.mark.parametrize("function", [reached_at_last, no_trips, given_another_value], ids=lambda f: f.__name__)
def test_rows_that_may_be_reached_are_refused_before_anything_is_written(function):
    compiled = orion.parallel_for(function)
    compiled(np.zeros((9, 5)), np.ones((9, 5)), np.ones((9, 5)), 4)
    C = np.zeros((9, 5))
    with pytest.raises(orion.ArgumentError, match=r"`A\[i\]` and `B\[i\]` differ in length: 5 and 3"):
        compiled(C, np.ones((9, 5)), np.ones((9, 3)), 9)
    assert not C.any()


def between_loops(a, B, lo, hi):
    k = B[lo:hi].shape[0]
    for i in range(k):
        a[i] += 1.0
    return B[lo:hi, 1:].shape[1]


def in_loops(a, B, lo, hi):
    for i in range(len(a)):
        k = B[lo:hi, lo:].shape[-1]
        for j in range(k):
            a[i] += B[lo, lo + j] * B[lo:hi].size
        if B[lo:hi].shape[-2] > 1:
            a[i] += B[:, lo:hi].shape[1] + (B[lo, :i] + 1.0).shape[0]


def as_bounds(a, B, lo, hi):
    while lo < B[lo:hi].shape[0]:
        lo += 1
        for i in range(B[lo:hi].T.shape[1]):
            a[i] += 1.0
    return lo


@pytest.mark.parametrize("bounds", [(1, 3), (0, -1), (4, 2)])
@pytest.mark.parametrize("function", [between_loops, in_loops, as_bounds], ids=lambda f: f.__name__)
def test_shapes_of_parts_of_arrays_are_those_that_python_gives(function, bounds):
    found, wanted = np.ones(6), np.ones(6)
    matrix = np.arange(20.0).reshape(5, 4)
    assert orion.parallel_for(function)(found, matrix, *bounds) == function(wanted, matrix, *bounds)
    np.testing.assert_array_equal(found, wanted)
