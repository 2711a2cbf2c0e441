"""Lists to which a loop appends rows, matrices, or tuples of numbers, against Python."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion
from tests.alike import alike

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

X = np.random.default_rng(0).integers(1, 9, (6, 4)).astype(float)


def doubled(X):
    rows = []
    for i in range(len(X)):
        rows.append(X[i] * 2)
    return np.array(rows)


def made_first(X):
    rows = []
    for i in range(len(X)):
        row = np.zeros(X.shape[1])
        for j in range(X.shape[1]):
            row[j] = X[i, j] + i
        rows.append(row)
    return rows, len(rows)


def copies(X):
    states = []
    x = X[0].copy()
    for _ in range(4):
        x[:] = x * 0.5 + X[1]
        states.append(x.copy())
    return states


def given_anew(X):
    states = []
    x = X[0].copy()
    for t in range(5):
        x = x * 0.5 + X[t]
        states.append(x)
    return states, x


def comprehension(X):
    return np.array([x - x[0] for x in X])


def parts(X):
    return np.array([X[i, 1:] for i in range(len(X))])


def changed_before(X):
    rows = []
    for x in X:
        d = x - 1
        d[0] = 0
        rows.append(d)
    return rows


def tuples(X):
    found = []
    for i, x in enumerate(X):
        found.append((x.max(), i, x[0] > 4))
    return np.array(found)


def pairs(X):
    found = []
    for x in X:
        found.append([x[0], x[1] * 2])
    return np.array(found).T.copy()


def matrices(X):
    found = []
    for x in X:
        found.append(np.outer(x, x))
    return np.array(found), np.sum(found)


TAKEN = [doubled, made_first, copies, given_anew, comprehension, parts, changed_before, tuples, pairs, matrices]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("function", TAKEN, ids=lambda function: function.__name__)
def test_is_what_python_gives(function, workers):
    looped = orion.parallel_for(function)
    with orion.session(workers=workers, force_parallel=True):
        looped.plan(X).check()
        alike(looped(X.copy()), function(X.copy()))
        assert looped.plan(X).loops[0].is_parallel or function in (copies, given_anew) or workers == 1


# ------------------------------------------------------------ arrays that are written to when they are items already


def the_same_array(X):
    states = []
    x = X[0].copy()
    for _ in range(4):
        x[:] = x * 0.5 + X[1]
        states.append(x)
    return states


def in_place(X):
    states = []
    x = np.zeros(4)
    for row in X:
        x += row
        states.append(x)
    return np.array(states)


def changed_after(X):
    rows = []
    for x in X:
        d = x - 1
        rows.append(d)
        d[0] = 7
    return rows


def under_another_name(X):
    rows = []
    for x in X:
        d = x - 1
        e = d
        rows.append(d)
        e[0] = 7
    return rows


def after_the_loop(X):
    rows = []
    d = np.zeros(4)
    for x in X:
        d = d + x
        rows.append(d)
    d[0] = 99
    return np.array(rows)


def of_an_argument_that_is_written(X):
    rows = []
    for x in X:
        rows.append(x)
    X[0] = 5
    return np.array(rows)


def views_that_are_returned(X):
    rows = []
    for x in X:
        rows.append(x)
    return rows


def elements_that_are_returned(X):
    rows = []
    for i in range(len(X)):
        rows.append(X[i])
    return rows


def of_several_lengths(X):
    rows = []
    for i in range(len(X)):
        row = np.zeros(i)
        rows.append(row + 1)
    return rows


def tuples_that_are_returned(X):
    found = []
    for x in X:
        found.append((x[0], 2.0))
    return found


OTHERS = [
    the_same_array, in_place, changed_after, under_another_name, after_the_loop, of_an_argument_that_is_written,
    views_that_are_returned, elements_that_are_returned, of_several_lengths, tuples_that_are_returned,
]  # fmt: skip


@pytest.mark.parametrize("function", OTHERS, ids=lambda function: function.__name__)
def test_others_are_not_taken_for_arrays(function):
    looped = orion.parallel_for(function)
    with pytest.raises(orion.UnsupportedLoopError, match="the items of the list") as caught:
        looped.plan(X)
    assert "help: " in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = looped(X.copy())
        except orion.UnsupportedLoopError:
            return  # Numba does not compile it
    np.testing.assert_equal([*map(np.asarray, found)], [*map(np.asarray, function(X.copy()))])
