"""Sums in scalars that are stored in array elements: when they are kept there, and that nothing else changes."""

import re

import numpy as np
import pytest

import orion
from orion.frontend.parse import parse_function
from orion.ir.printer import print_stmt
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.rewrites.stored_sums.apply import with_stored_sums
from tests.trials import combined


def product(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            C[i, j] = total


def scaled(A, B, C, factor):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 1
            for k in range(A.shape[1]):
                if k != i:
                    total -= factor * A[i, k] / B[k, j]
            C[i, j] = total


def two_sums(A, B, C, D):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            one = 0.0
            other = 0.0
            for k in range(A.shape[1]):
                one += A[i, k] * B[k, j]
                other += A[k, i] * B[j, k]
            C[i, j] = one
            D[j, i] = other


def imperfect(A, B, C, x):
    for i in range(C.shape[0]):
        x[i] = 0.0
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[k, i] * B[k, j]
            C[i, j] = total


def read_after_its_loop(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            C[i, j] = total
    return total


def read_meanwhile(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
                A[i, k] = total
            C[i, j] = total


def in_the_sum_itself(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j] + 0.5 * total
            C[i, j] = total


def array_elsewhere(A, B, C):
    for i in range(C.shape[0] - 1):
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j] + C[i + 1, j]
            C[i, j] = total


def subscript_changes(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            at = 0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
                at = j
            C[i, at] = total


def nothing_from_arrays(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for _ in range(A.shape[1]):
                total += 0.1
            C[i, j] = total


def not_always_stored(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            if B[i, j] > 1.0:
                continue
            C[i, j] = total


def read_place_changes(A, B, C, p):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            p[i] = j
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            C[i, p[i]] = total


def loop_variable(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for total in range(A.shape[1]):
                total += A[i, j]
            C[i, j] = total


def in_a_while(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            k = 0
            while k < A.shape[1]:
                total += A[i, k] * B[k, j]
                k += 1
            C[i, j] = total


def arguments(function, n, dtype="float64", stored=None):
    random = np.random.default_rng(n)
    found = [(random.random((n, n)) + 0.5).astype(dtype) for _ in range(3)]
    found[2] = found[2].astype(stored or dtype)
    more = {scaled: [0.5], two_sums: [np.zeros((n, n), dtype)], imperfect: [np.ones(n, dtype)]}
    more[read_place_changes] = [np.zeros(n, int)]
    return [*found, *more.get(function, [])]


def stored(function, values):
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    types, _ = argument_types(dict(zip(names, values, strict=True)))
    program = with_stored_sums(split_program(parse_function(function), types, True), 0, types)
    return None if program is None else print_stmt(program.nests[0].loops[0])


LEGAL = [product, scaled, two_sums, imperfect, in_a_while]
NOT_LEGAL = [
    read_after_its_loop, read_meanwhile, in_the_sum_itself, array_elsewhere, subscript_changes, nothing_from_arrays,
    not_always_stored, read_place_changes, loop_variable,
]  # fmt: skip


@pytest.mark.parametrize("function", LEGAL, ids=lambda f: f.__name__)
def test_sums_that_are_kept_in_elements(function):
    text = stored(function, arguments(function, 5))
    assert text is not None
    assert "total" not in text
    assert "one" not in text


@pytest.mark.parametrize("function", NOT_LEGAL, ids=lambda f: f.__name__)
def test_sums_that_stay_in_scalars(function):
    assert stored(function, arguments(function, 5)) is None


@pytest.mark.parametrize(
    ("dtype", "kept_in"), [("float32", "float64"), ("float64", "float32"), ("int64", "int64"), ("int32", "float64")]
)
def test_sums_of_another_type_than_the_array_stay(dtype, kept_in):
    assert stored(product, arguments(product, 5, dtype, kept_in)) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", LEGAL, ids=lambda f: f.__name__)
def test_the_bits_are_those_of_python(function, dtype):
    compiled = orion.parallel_for(function)
    for n, workers in combined((33, 9, 5, 2, 1), (2, 1)):
        expected, found = arguments(function, n, dtype), arguments(function, n, dtype)
        function(*expected)
        with orion.session(workers=workers, force_parallel=True):
            compiled(*found)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_loops_are_interchanged_only_where_they_jumped_through_memory():
    def rows(A, x, y):
        for i in range(len(y)):
            total = 0.0
            for j in range(len(x)):
                total += A[i, j] * x[j]
            y[i] = total

    def columns(A, x, y):
        for i in range(len(y)):
            total = 0.0
            for j in range(len(x)):
                total += A[j, i] * x[j]
            y[i] = total

    A, x, y = np.ones((50, 50)), np.ones(50), np.ones(50)
    with orion.session(workers=2, force_parallel=True):
        written, changed = (orion.parallel_for(f).kernel_source(A, x, y) for f in (rows, columns))
    assert re.search(r"\n +total = 0\.0\n", written)  # however deep in strips
    assert "y[uint64(i)] += " in changed
