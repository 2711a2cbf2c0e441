"""Loops over sparse arrays as anybody may write them: ends before the last element, shapes, lengths, types of values.
Each was wrong, or refused, once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import orion
from orion.errors import AliasError, UnsupportedLoopError
from tests.trials import worker_counts

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def first_alone(R, count):
    for (_, _), _ in R:
        count[0] += 1
        break


def until(R, count):
    n = 0
    for (i, _), v in R:
        n += 1
        count[i] += v
        if v > 0.8:
            break
    return n


def where(R, count):
    for (i, _), v in R:
        count[i] += v
        if v > 0.9:
            return i
    return -1


def or_else(R, count):
    for (i, _), v in R:
        count[i] += v
        if v > 2.0:
            break
    else:
        count[0] = 100.0


def in_rounds(R, count):
    for t in range(3):
        for (i, _), v in R:
            count[i] += v
            if v > 0.5 + 0.1 * t:
                break


def by_a_map(R, count):
    for (i, j), v in R:
        count[R.shape[0] - 1 - i] += v * j
        if v > 0.7:
            break


def as_long_as_its_shape(R, count):
    for i in range(R.shape[0]):
        count[i] += 1.0


def by_its_shape(R, count):
    for (i, _), v in R:
        count[i] += v / R.shape[1]
    z = np.zeros(R.shape[0])
    n, m = R.shape
    count[: R.shape[0]] += 1.0
    return n * m + len(z) + R.nnz + len(R)


def lengths(R, count):
    for i in range(R.shape[0]):
        count[i] = len(R[i])


def nothing(R, count):
    for (_, _), _ in R:
        pass


def squares(R, count):
    for i in range(R.shape[0]):
        for _, v in R[i]:
            count[i] += v * v


def shifted_rows(R, count):
    for i in range(R.shape[0]):
        i = i - 2
        for j, v in R[i]:
            count[0] += v * (j + 1)


def rows_of_an_inner_variable(R, count):
    for i in range(2):
        for i in range(-3, 2):
            for j, v in R[i]:
                count[0] += v * (j + 1)


FUNCTIONS = (
    first_alone, until, where, or_else, in_rounds, by_a_map, as_long_as_its_shape, by_its_shape, lengths, nothing,
    squares, shifted_rows, rows_of_an_inner_variable,
)  # fmt: skip


def arrays():
    rng = np.random.default_rng(0)
    cells = rng.permutation(12 * 9)[:60]
    yield orion.sparse((cells // 9, cells % 9), rng.random(60), (12, 9))
    yield orion.sparse(([], []), [], (12, 9))
    yield orion.sparse(([0, 1], [0, 1]), [1.0, 2.0], (12, 9))
    yield orion.sparse(([3, 1], [0, 8]), np.array([100, 7], np.uint8), (12, 9))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("ordered", [None, True, False])
def test_results_are_pythons(function, ordered):
    decorated = orion.parallel_for(ordered=ordered)(function)
    for workers in worker_counts(1, 2, 4):
        with orion.session(workers=workers, force_parallel=True):
            for R in arrays():
                mine, theirs = np.zeros(12), np.zeros(12)
                with np.errstate(over="ignore"):
                    assert decorated(R, mine) == function(R, theirs)
                np.testing.assert_allclose(mine, theirs, rtol=1e-13)


def test_a_shape_of_three_numbers():
    @orion.parallel_for
    def third(T, out):
        for k in range(T.shape[2]):
            out[k] = T.shape[0] * T.shape[-1]

    out = np.zeros(5)
    third(orion.sparse(([0], [0], [0]), [1.0], (3, 4, 5)), out)
    assert out.tolist() == [15.0] * 5


def test_matrices_of_which_only_numbers_are_used():
    @orion.parallel_for
    def numbers(A, out):
        for i in range(A.shape[0]):
            out[i] = A.nnz

    out, A = np.zeros(12), scipy.sparse.random_array((12, 9), density=0.3, format="csr", rng=0)
    numbers(A, out)
    assert out.tolist() == [A.nnz] * 12


def test_assigning_to_an_attribute_is_refused():
    def swapped(A, B):
        A.data, B.data = B.data, A.data
        for p in range(A.nnz):
            A.data[p] += 1.0

    A = scipy.sparse.random_array((12, 9), density=0.3, format="csr", rng=0)
    with pytest.raises(UnsupportedLoopError, match=r"assigning to `A\.data` is not supported"):
        orion.parallel_for(swapped)(A, A.copy())


def test_errors_speak_of_the_matrix():
    @orion.parallel_for
    def added(A, B):
        for p in range(A.nnz):
            A.data[p] += B.data[p]

    A = scipy.sparse.random_array((12, 9), density=0.3, format="csr", rng=0)
    with pytest.raises(AliasError, match=r"`A\.data` and `B\.data` share memory"):
        added(A, A)
    B = A.copy()
    A.data = A.data.astype(">f8")
    with pytest.raises(orion.ArgumentError, match=r"argument `A\.data` is in foreign byte order"):
        added(A, B)
