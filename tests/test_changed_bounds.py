"""Loops that assign the names in their own bounds: a range is made once, when its loop begins."""

import numpy as np
import pytest

import orion


def counts_down(A):
    end = 3
    for j in range(end):
        A[j] /= 2.0
        end -= 1
    return end


def sets_its_end(A):
    end = 3
    for j in range(end):
        end = 5
        A[j] += end


def sets_it_sometimes(A):
    end = 3
    for j in range(end):
        if A[j] > 0:
            end = j
        A[j] += 1
    return end


def moves_an_inner_end(A):
    end = 4
    for i in range(3):
        for j in range(end):
            A[j] += i
            end -= 1
    return end


def moves_it_between_rounds(A):
    end = 4
    for i in range(3):
        for j in range(end):
            A[j] += i
        end -= 1
    return end


def moves_both(A):
    end, count = 4, 0
    for i in range(end):
        for j in range(end):
            A[j] += i
            count += 1
        end = end + 1
    return end, count


def begins_anew(A):
    count = 0
    for _ in range(1, 8):
        end = 3
        for j in range(end):
            A[j] /= 2.0
            end -= 1
        for _ in range(6, end, -1):
            count += 2
    return count


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(
    "function",
    [
        counts_down, sets_its_end, sets_it_sometimes, moves_an_inner_end, moves_it_between_rounds, moves_both,
        begins_anew,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_results_are_those_of_python(function, workers):
    expected, found = np.ones(20), np.ones(20)
    result = function(expected)
    with orion.session(workers=workers, force_parallel=True):
        assert orion.parallel_for(function)(found) == result
    np.testing.assert_array_equal(found, expected)
