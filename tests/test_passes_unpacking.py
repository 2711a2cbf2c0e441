"""Rows that are taken apart, and loops over the rows of dense arrays."""

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, UnsupportedLoopError
from orion.frontend.parse import parse_function
from orion.ir.printer import print_function
from orion.ir.types import ArrayType
from orion.passes.unpacking import over_dense_arrays
from tests.trials import one_in


def pairs(P, out):
    for x, y in P:
        out[0] += x * y


def triples(P, out):
    for x, y, z in P:
        out[0] += x * y - z


def counted(P, out):
    for k, (x, y) in enumerate(P):
        out[k] = x - y + len(P)


def edges(E, degree):
    for u, v in E:
        degree[u] += 1
        degree[v] += len(E)


def named(P, out):
    for i in range(len(P)):
        x, y = P[i]
        out[i] = x / (1 + y)


def parts(P, out):
    for i in range(len(P)):
        row = P[i]
        x, out[i] = row
        out[i] += x


def swapped(P, out):
    for i in range(len(P)):
        P[i, 1], P[i, 0] = P[i]
        out[i] = P[i, 0]


def zipped(P, Q, out):
    for i, ((x, y), (u, v)) in enumerate(zip(P, Q, strict=False)):
        out[i] = x * u + y * v


def elements(v, out):
    a, b, c = v
    for i in range(len(out)):
        out[i] = a + b * i + c


def written(P, out):
    for j in range(P.shape[1]):
        lo, hi = P[:, j].min(), P[:, j].max()
        out[2 * j] += lo
        P[j] = hi - lo, lo


def exchanged(P, out):
    for i in range(P.shape[0]):
        P[i] = P[i, 1], P[i, 0] + 1


def distance(Q):
    total = 0.0
    for x, y in Q:
        total += x * y
    return total


def in_helpers(P, out):
    for i in range(len(out)):
        out[i] = distance(P[i:]) + distance(P)


def points(columns=2):
    return np.random.default_rng(6).random((300, columns))


LOOPS = [
    (pairs, lambda: (points(), np.zeros(1))),
    (triples, lambda: (points(3), np.zeros(1))),
    (counted, lambda: (points(), np.zeros(300))),
    (edges, lambda: ((points() * 50).astype(np.int64), np.zeros(50, np.int64))),
    (named, lambda: (points(), np.zeros(300))),
    (parts, lambda: (points(), np.zeros(300))),
    (swapped, lambda: (points(), np.zeros(300))),
    (zipped, lambda: (points(), points() + 1, np.zeros(300))),
    (exchanged, lambda: (points(), np.zeros(1))),
    (in_helpers, lambda: (points(), np.zeros(30))),
    (elements, lambda: (np.array([1.0, 2.0, 3.0]), np.zeros(300))),
]


def assert_is_as_in_python(function, make):
    mine, theirs = make(), make()
    orion.parallel_for(function)(*mine)
    function(*theirs)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(("function", "make"), LOOPS)
def test_is_as_in_python(function, make, workers):
    with orion.session(workers=workers, force_parallel=True):
        plan = orion.parallel_for(function).plan(*make())
        assert plan.loops[-1].is_parallel
        assert_is_as_in_python(function, make)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_is_as_in_python_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for function, make in one_in(3, LOOPS):
            assert_is_as_in_python(function, make)


def test_a_loop_over_a_dense_array_is_one_over_a_range():
    found = over_dense_arrays(parse_function(edges), {"E": ArrayType("int64", 2), "degree": ArrayType("int64", 1)})
    assert print_function(found).splitlines() == [
        "def edges(E, degree):",
        "    for u_index in range(E.shape[0]):",
        "        u, v = E[u_index]",
        "        degree[u] += 1",
        "        degree[v] += E.shape[0]",
    ]


def test_a_sparse_array_is_gone_through_by_elements():
    data = orion.sparse((np.array([1, 3]),), np.array([2.0, 5.0]))
    out = np.zeros(1)
    orion.parallel_for(pairs)(data, out)
    assert out[0] == 1 * 2 + 3 * 5


@pytest.mark.parametrize(
    ("function", "arguments", "what"),
    [
        (pairs, (points(3), np.zeros(1)), "a row of 3 elements is given to 2 names"),
        (triples, (points(2), np.zeros(1)), "a row of 2 elements is given to 3 names"),
        (counted, (points(1), np.zeros(300)), "a row of 1 elements is given to 2 names"),
        (named, (points(4), np.zeros(300)), "a row of 4 elements is given to 2 names"),
        (exchanged, (points(3), np.zeros(1)), "2 values are written to a row of 3 elements"),
        (elements, (np.zeros(4), np.zeros(3)), "a row of 4 elements is given to 3 names"),
    ],
)
def test_a_row_of_another_length_is_refused(function, arguments, what):
    before = [argument.copy() for argument in arguments]
    with pytest.raises(ArgumentError, match=rf"test_passes_unpacking.py:\d+: {what}"):
        orion.parallel_for(function)(*arguments)
    for argument, old in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(argument, old)
    with pytest.raises((ValueError, IndexError)):
        function(*arguments)


def test_a_row_that_is_not_reached_may_have_any_length():
    out = np.zeros(0)
    orion.parallel_for(named)(np.zeros((0, 3)), out)


def test_a_tuple_is_written_to_a_row_in_a_serial_loop():
    mine, theirs = (points(), np.zeros(9)), (points(), np.zeros(9))
    with pytest.warns(orion.SerialLoopWarning):
        orion.parallel_for(written)(*mine)
    written(*theirs)
    np.testing.assert_allclose(mine[0], theirs[0])
    np.testing.assert_allclose(mine[1], theirs[1])


def test_what_is_no_row_is_refused():
    def matrices(T, out):
        for x, y in T:
            out[0] += x[0] + y[0]

    def scalars(v, out):
        for i in range(len(v)):
            x, y = v[i]
            out[i] = x + y

    for function, array in ((matrices, np.zeros((3, 2, 2))), (scalars, np.zeros(3))):
        with pytest.raises(UnsupportedLoopError, match="is not taken apart into 2 names"):
            orion.parallel_for(function).plan(array, np.zeros(3))
