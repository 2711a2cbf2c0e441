"""Tuples as values: names that stand for them, constants from outside, nested targets, results."""

import numpy as np
import pytest

import orion
from orion.errors import UnsupportedLoopError
from orion.ir.printer import print_function
from tests.loop_text import from_body
from tests.trials import one_in

SHAPE = (13, 17)
OFFSETS = ((0, 1), (1, 0), (0, -1), (-1, 0))
WEIGHTS = (0.25, 0.5, 0.25)


def constants(A):
    for i in range(SHAPE[0]):
        for j in range(SHAPE[-1]):
            A[i, j] += len(SHAPE)


def local_shape(A):
    size = 3, 4
    for i in range(size[0]):
        for j in range(size[1]):
            A[i, j] += 1


def greatest(A):
    best, at = -np.inf, (-1, -1)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > best:
                best, at = A[i, j], (i, j)
    return best, at


def least_pair(A):
    found = (A[0, 0], 0, 0)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] < found[0]:
                found = (A[i, j], i, j)
    return found


def first_above(A, limit):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > limit:
                at = i, j
                return A[i, j], at
    return 0.0, (-1, -1)


def nested(A, out):
    for i in range(len(out)):
        (a, b), (c, out[i]) = (A[i, 0], A[i, 1]), (i, A[i, 2])
        out[i] += a * b + c


def four_neighbours(A, B):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            total = 0.0
            for di, dj in OFFSETS:
                total += A[i + di, j + dj]
            for k, w in enumerate(WEIGHTS):
                total += w * A[i, j + k - 1]
            B[i, j] = total


def swapped(A, out):
    for i in range(len(out)):
        pair = (A[i, 0], A[i, 1])
        other = (1.0, 2.0)
        pair, other = other, pair
        x, y = other
        out[i] = x - y + pair[0]


def left_to_right(A, out):
    i, n = 0, 0
    i, out[i] = 1, 9.0
    (i, out[i]), out[i + 1] = (2, 5.0), 7.0
    out[5], out[int(out[5]) + 6] = 3.0, 4.0
    while n < 4:
        n, out[n + 10] = n + 1, float(n)
    for k in range(20, len(out)):
        j = k
        j, out[j] = 59 - k, A[k, 0]
        out[j], A[j, 0] = A[j, 0], out[j]
    return i


def made(A):
    shape = (A.shape[0], 2)
    out = np.zeros(shape)
    for i in range(shape[0]):
        out[i, 0] = A[i, 0]
    return out, shape


def grid():
    return np.random.default_rng(5).random((40, 30))


LOOPS = [
    (constants, lambda: (grid(),)),
    (local_shape, lambda: (grid(),)),
    (greatest, lambda: (grid(),)),
    (least_pair, lambda: (grid(),)),
    (first_above, lambda: (grid(), 0.999)),
    (first_above, lambda: (grid(), 2.0)),
    (nested, lambda: (grid(), np.zeros(40))),
    (four_neighbours, lambda: (grid(), grid())),
    (swapped, lambda: (grid(), np.zeros(40))),
    (left_to_right, lambda: (grid(), np.zeros(40))),
    (made, lambda: (grid(),)),
]


def assert_is_as_in_python(function, make):
    mine, theirs = make(), make()
    found, wanted = orion.parallel_for(function)(*mine), function(*theirs)
    assert np.array_equal(found[0], wanted[0]) if function is made else found == wanted
    assert str(found) == str(wanted)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(("function", "make"), LOOPS)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_is_as_in_python(function, make, workers):
    with orion.session(workers=workers, force_parallel=True):
        assert_is_as_in_python(function, make)


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_is_as_in_python_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for function, make in one_in(3, LOOPS):
            assert_is_as_in_python(function, make)


@pytest.mark.parametrize("function", [constants, local_shape, greatest, least_pair, nested, four_neighbours, swapped])
def test_is_parallel(function):
    make = next(make for one, make in LOOPS if one is function)
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*make())
    assert all(loop.is_parallel for loop in plan.loops)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("at = (n, 2)\na[0] = at[1]", "at_0, at_1 = n, 2\na[0] = at_1"),
        ("at = (n, 2)\nb[0] = len(at)", "at_0, at_1 = n, 2\nb[0] = 2"),
        ("at_0 = 1\nat = (n, 2)\na[at_0] = at[0]", "at_0 = 1\nat_0_, at_1 = n, 2\na[at_0] = at_0_"),
        ("p = n, 1\nq = p\nreturn q", "p_0, p_1 = n, 1\nq_0, q_1 = p_0, p_1\nreturn q_0, q_1"),
        (
            "p = n, 1\nq = p\nr = q\na[0] = r[0]",
            "p_0, p_1 = n, 1\nq_0, q_1 = p_0, p_1\nr_0, r_1 = q_0, q_1\na[0] = r_0",
        ),
        ("p = n, 1\nreturn a[0], p", "p_0, p_1 = n, 1\nreturn a[0], (p_0, p_1)"),
        ("(a[0], x), y = (1, 2), 3", "a[0], x, y = 1, 2, 3"),
    ],
)
def test_how_it_is_read(body, read):
    lines = print_function(from_body(body)).splitlines()[1:]
    assert "\n".join(line[4:] for line in lines) == read


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("at = (n, 2)\na[0] = at[n]", "the subscript of a tuple is not a number"),
        ("at = (n, 2)\na[0] = at[2]", "the tuple has 2 items"),
        ("at = (n, 2)\nat[0] = 1", "this cannot be assigned to"),
        ("at = (n, 2)\nat = (1, 2, 3)", "a tuple as a value"),
        ("at = 1\nat = (1, 2)", "a tuple as a value"),
        ("p = n, 1\nq = p\nq = 3", "a tuple as a value"),
        ("p = n, 1\nq = p\nr = 1, 2, 3\nr = q", "a tuple as a value"),
        ("(x, y), z = (1, 2, 3), 3", "nested tuples of targets and values do not go together"),
        ("(x, y), z = a, 3", "nested tuples of targets and values do not go together"),
    ],
)
def test_what_is_refused(body, what):
    with pytest.raises(UnsupportedLoopError, match=what):
        from_body(body)
