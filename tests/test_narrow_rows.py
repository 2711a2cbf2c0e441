"""Integers of fewer than 64 bits in rows, slices and whole arrays: each operation wraps around as NumPy's does."""

from __future__ import annotations

import numpy as np
import pytest

import orion


@orion.parallel_for
def slices(A, B, C, n):
    for i in range(A.shape[0]):
        C[i, 1:n] = A[i, 1:n] * 3 % 85
        C[i, 1:n] += (A[i, 1:n] - B[i, 1:n]) // 3
        C[i, 1:n] ^= (A[i, 1:n] << 3) >> 2
        C[i, 1:n] -= abs(A[i, 1:n] * B[i, 1:n] + 5) % 9


@orion.parallel_for
def overlapping(A, B, C, n):
    for i in range(A.shape[0]):
        A[i, 2:] = (A[i, :-2] + B[i, :-2]) // 3
        A[i, n - 5 : n] = np.abs(A[i, n - 6 : n - 1] * 3) % 11
        C[i, :n] = -A[i, :n] // 2


@orion.parallel_for
def reduced(A, B, C, n):
    for i in range(A.shape[0]):
        C[i, 0] = np.max((A[i] * B[i] + 5) // 4)
        C[i, n - 1] = np.min((A[i] - B[i]) % 7)
        C[i, 1] = ((A[i] + B[i]) * 2).min()


@orion.parallel_for
def whole(A, B, C, n):
    C[:] = (A * 3 + B) // n
    C[:] += abs(A - 100) % 9
    for i in range(A.shape[0]):
        C[i, 0] += 1


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
@pytest.mark.parametrize("f", [slices, overlapping, reduced, whole], ids=lambda f: f.__name__)
def test_parts_of_expressions_wrap_around(f, dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    A, B = (rng.integers(info.min, info.max, (5, 12), dtype=dtype, endpoint=True) for _ in range(2))
    A[0], B[0, ::2] = info.min, info.max
    wanted, found = ([A.copy(), B, np.zeros_like(A)] for _ in range(2))
    with np.errstate(all="ignore"):
        f.serial(*wanted, 8)
    for workers in (1, 2):
        again = [one.copy() for one in found]
        with orion.session("threads", workers=workers):
            f(*again, 8)
        for mine, theirs in zip(again, wanted, strict=True):
            assert mine.tolist() == theirs.tolist()


def test_operations_by_themselves_make_no_further_array():
    a = np.zeros((5, 12), np.int32)
    assert ".astype" not in orion.parallel_for(alone).kernel_source(a, a.copy(), 8)


def alone(A, C, n):
    for i in range(A.shape[0]):
        C[i, 1:n] = A[i, 1:n] + 3


def into_wider(C, A, B):
    """Values of narrower integers that go to wider arrays, by operators in place on parts of these."""
    for i in range(1, A.shape[0]):
        C[i, 1:] += A[i, 1:] * B[i - 1, :-1]
        C[i, 1:] *= A[i, 1:] + B[i - 1, :-1] * A[i, 1:]
        C[i, i:] += A[i, 0] * B[i, i:]
    for _ in range(2):
        C[1:] -= A[1:] * B[:-1]
        C[1:, 0] -= A[:-1, 0] + B[1:, 1]


WIDER = [("int64", "uint8"), ("float64", "int8"), ("float64", "bool"), ("int64", "int32")]


@pytest.mark.parametrize(("wide", "narrow"), WIDER)
def test_parts_of_wider_arrays_get_what_numpy_computes(wide, narrow):
    made = np.random.default_rng(1)
    least, most = (0, 2) if narrow == "bool" else (np.iinfo(narrow).min, np.iinfo(narrow).max)
    A, B = (made.integers(least, most, (6, 6)).astype(narrow) for _ in range(2))
    mine, its = (made.integers(-9, 9, (6, 6)).astype(wide) for _ in range(2))
    mine[:] = its
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(into_wider)(mine, A, B)
    into_wider(its, A, B)
    np.testing.assert_array_equal(mine, its)


def by_part(x):
    for i in range(x.shape[0]):
        x[i, 1:] = 250


def by_slice(x):
    x[1:] = 250


def by_element(x):
    for i in range(x.shape[0]):
        x[i, 0] = -200


@pytest.mark.parametrize("function", [by_part, by_slice, by_element])
def test_numbers_that_do_not_fit_are_refused(function):
    x = np.zeros((4, 4), np.int8)
    with pytest.raises(orion.UnsupportedLoopError, match="does not fit int8"):
        orion.parallel_for(function)(x)
    assert not x.any()


def scaled_parts(x, k):
    for i in range(x.shape[0]):
        x[i, 1:] = x[i, :-1] * k


def raised_rows(x, k):
    for i in range(x.shape[0]):
        x[i] += k
        x[i, 2:] -= k


@pytest.mark.parametrize("function", [scaled_parts, raised_rows])
def test_integers_that_do_not_fit_what_they_meet_are_told(function):
    looped = orion.parallel_for(function)
    mine, its = np.ones((4, 6), np.int8), np.ones((4, 6), np.int8)
    looped(mine, 3)
    function(its, 3)
    np.testing.assert_array_equal(mine, its)
    with pytest.raises(OverflowError):
        function(its, 1000)
    with pytest.raises(OverflowError):
        looped(mine, 1000)
