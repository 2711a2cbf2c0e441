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
