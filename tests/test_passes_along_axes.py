"""Extremes and means along an axis are loops, and what NumPy gives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion
from tests.trials import one_in


def of_rows(A):
    return A.max(axis=1)


def of_columns(A):
    low = np.min(A, axis=0)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] -= low[j]
    return low


def in_expressions(A):
    m = A.max(1) - A.min(axis=-1) + 1
    return m, np.max(A * 2, axis=0)


def means(A):
    m = A.mean(axis=0)
    B = (A + 1).mean(axis=1)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] - m[j]
    return m, B, A.mean(), A.max()


def in_rounds(A):
    total = 0.0
    for _t in range(3):
        m = A.max(axis=0)
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                A[i, j] = A[i, j] / (1 + abs(m[j]))
        total += A.max(axis=1)[0]
    return total


def under_a_test(A):
    if A.shape[0] > 2:
        return np.max(A, axis=-2)
    return np.min(A, axis=-2)


def products(A):
    return np.prod(A, axis=0)


def more_products(A):
    p = A.prod(0)
    return p + 1, np.prod(A * 2, axis=-1)


def of_one_row(A):
    x = A[0].copy()
    return x.max(axis=0) + np.mean(x, axis=-1), x.prod(0), np.min(x * 2, axis=0), np.sum(A, axis=None)


FUNCTIONS = [of_rows, of_columns, in_expressions, means, in_rounds, under_a_test, more_products, of_one_row]


def arrays():
    rng = np.random.default_rng(1)
    B = rng.random((9, 7))
    B[2, 3] = np.nan
    yield rng.random((9, 7))
    yield rng.random((1, 1))
    yield rng.random((2, 8))
    yield np.asfortranarray(rng.random((6, 5)))
    yield rng.random((12, 10))[::-2, ::3]
    yield rng.random((5, 4)).astype(np.float32)
    yield B


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_is_what_numpy_gives(function, workers):
    with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        compiled = orion.parallel_for(function)
        for A in one_in(2, [*arrays()]):
            mine, its = A.copy(order="K"), A.copy(order="K")
            got, want = compiled(mine), function(its)
            for one, other in zip(np.atleast_1d(*pieces(got)), np.atleast_1d(*pieces(want)), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
                assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(mine, its, rtol=1e-6, atol=1e-7)


def pieces(found):
    return [*found, 0.0] if isinstance(found, tuple) else [found, 0.0]


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("function", [of_rows, under_a_test, products], ids=lambda function: function.__name__)
def test_dtypes_are_those_of_the_array(function, dtype):
    A = np.random.default_rng(1).integers(0, 2, (6, 5)).astype(dtype)
    got, want = orion.parallel_for(function)(A), function(A)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_means_of_integers_are_floats():
    A = np.random.default_rng(1).integers(-9, 9, (6, 5))

    def mean(A):
        return A.mean(axis=0)

    np.testing.assert_array_equal(orion.parallel_for(mean)(A), mean(A))


def test_they_are_shared_out():
    with orion.session(workers=2, force_parallel=True):
        for function in (of_rows, of_columns):
            plan = orion.parallel_for(function, require_parallel=True).plan(np.ones((50, 40)))
            assert plan.check() is None


def test_others_are_refused_with_what_to_write():
    def of_three(A):
        return A.max(axis=1)

    def kept(A):
        return A.max(axis=1, keepdims=True)

    def by_name(A, k):
        return A.max(axis=k)

    with pytest.raises(orion.UnsupportedLoopError, match="`max` with `axis=` of 3 dimensions is not supported"):
        orion.parallel_for(of_three)(np.ones((2, 3, 4)))
    with pytest.raises(orion.UnsupportedLoopError, match="keepdims"):
        orion.parallel_for(kept)(np.ones((2, 3)))
    with pytest.raises(orion.UnsupportedLoopError, match="axis"):
        orion.parallel_for(by_name)(np.ones((2, 3)), 1)


def test_the_product_of_nothing_is_one():
    A = np.ones((0, 3))
    np.testing.assert_array_equal(orion.parallel_for(products)(A), products(A))


def test_nothing_has_no_greatest():
    with pytest.raises((ValueError, IndexError)):
        orion.parallel_for(of_rows)(np.ones((3, 0)))
