"""The sections of a printed plan: what stands in them is true of the loop as it runs, and no two of them disagree."""

import numpy as np
import pytest

import orion

ROWS = 2_000_000


def told(function, *arguments, workers=2, backend="threads"):
    """The printed plan, each run of blanks as one."""
    with orion.session(backend, workers):
        return " ".join(orion.parallel_for(function).plan(*arguments).text().split())


# ---------------------------------------------------------------- order


def total(x):
    found = 0
    for i in range(len(x)):
        found += x[i]
    return found


def largest(x):
    found = x[0]
    for i in range(len(x)):
        found = max(found, x[i])
    return found


def histogram(idx, w, hist):
    for i in range(len(idx)):
        hist[idx[i]] += w[i]


SAME = "order as written: the result is that of the loop run from its first iteration to its last"
PARTS = "order as written, but floats in `{}` are combined from parts: their last digits may differ"


def test_float_sums_are_said_to_be_rounded_in_parts():
    assert PARTS.format("found") in told(total, np.ones(ROWS))


@pytest.mark.parametrize("function", [total, largest])
def test_sums_of_integers_and_maxima_are_those_of_the_loop_as_written(function):
    assert SAME in told(function, np.ones(ROWS, dtype=np.int64))
    if function is largest:
        assert SAME in told(function, np.ones(ROWS))


def running(x, y):
    found, last = 0.0, 0.0
    for i in range(len(x)):
        last = np.sin(last) + x[i]
        found += last
        y[i] = last
    return found


def test_a_serial_float_sum_is_that_of_the_loop_as_written():
    assert SAME in told(running, np.ones(ROWS), np.ones(ROWS))


def test_copies_of_float_arrays_are_said_to_be_rounded_in_parts():
    idx = np.zeros(ROWS, dtype=np.int64)
    assert PARTS.format("hist") in told(histogram, idx, np.ones(ROWS), np.zeros(100))
    assert SAME in told(histogram, idx, np.ones(ROWS, dtype=np.int64), np.zeros(100, dtype=np.int64))
