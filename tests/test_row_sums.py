"""What `fastmath` does to rows: assignments are NumPy's to the last bit, updates the same for every layout."""

import warnings

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def assigned(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        a[i] = a[i] + b[i] * s
        b[i] = s * (b[i] - x * a[i]) - b[i]


def private(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        g = s * (a[i] - x * b[i])
        g = g * g + b[i] / 3
        a[i] = g - s * b[i]


def functions(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        a[i] = np.sqrt(np.abs(a[i] * s - b[i])) + np.maximum(a[i], b[i] * s) - 1
        b[i] *= a[i] * s + b[i]
        b[i] /= 2 + a[i] * s


def extremes(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        c[i] = np.max(a[i] + b[i] * s) - np.min(a[i] - s * b[i])


EXACT = [assigned, private, functions, extremes]


def updated(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        a[i] += s * (c[i] * b[i] - x * a[i])
        b[i] -= s * (c[i] * a[i] - x * b[i])
        a[i] += a[i] * b[i] - b[i] / 3


def updated_by_others(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        a[i] += s * a[k[i]] - c[k[i]] * a[k[i]]
        b[k[i]] += x * b[k[i]] + s * a[i]
        b[i] -= np.sqrt(np.abs(a[i])) * s + 2


def updated_privately(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        g = a[i].copy()
        g += s * (b[i] - x * g)
        g -= x * g
        b[i] = g


def updated_of_other_dtypes(a, b, c, x, s, k):
    for i in range(a.shape[0]):
        b[i] += a[i].astype(np.float64) * x - 0.1 * b[i]
        a[i] += s * b[i] - a[i] * c[i]


UPDATES = [updated, updated_by_others, updated_privately, updated_of_other_dtypes]


def arguments(length, dtype, order):
    rng = np.random.default_rng(length)
    a, b = (np.array(rng.standard_normal((6, length)), dtype=dtype, order=order) for _ in range(2))
    one = np.dtype(dtype).type
    return [a, b, rng.standard_normal(6).astype(dtype), one(0.3), one(0.7), np.array([3, 1, 5, 0, 2, 4])]


def strided(length, dtype, _):
    given = arguments(length, dtype, "C")
    return [np.repeat(one, 2, axis=1)[:, ::2] if one.ndim == 2 else one for one in given]


def run(function, given, **options):
    compiled = orion.parallel_for(**options)(function)
    with orion.session(workers=2, force_parallel=True):
        compiled(*given)
    return given


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", EXACT, ids=lambda f: f.__name__)
def test_assignments_are_those_of_numpy(function, dtype):
    for length in (1, 7, 32, 300):
        for order in "CF":
            expected = arguments(length, dtype, order)
            function(*expected)
            for mine, theirs in zip(run(function, arguments(length, dtype, order)), expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", UPDATES, ids=lambda f: f.__name__)
def test_updates_are_the_same_in_every_layout(function, dtype):
    """Rows of 40 in registers and, by columns or with gaps, in memory; rows of 300 are in memory only."""
    for length in (7, 40, 300):
        in_rows = run(function, arguments(length, dtype, "C"))
        for other in (arguments(length, dtype, "F"), strided(length, dtype, "C")):
            for mine, theirs in zip(run(function, other), in_rows, strict=True):
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", UPDATES, ids=lambda f: f.__name__)
def test_a_row_has_the_same_bits_as_part_of_a_longer_one(function):
    """Registers end at 256 elements: what is computed does not."""
    longer, shorter = arguments(300, "float32", "C"), arguments(300, "float32", "C")
    shorter[:2] = [np.ascontiguousarray(one[:, :40]) for one in shorter[:2]]
    for mine, theirs in zip(run(function, shorter)[:2], run(function, longer)[:2], strict=True):
        np.testing.assert_array_equal(mine, theirs[:, :40])


@pytest.mark.parametrize("function", [*EXACT, *UPDATES], ids=lambda f: f.__name__)
def test_without_fastmath_all_is_as_written(function):
    for order in "CF":
        expected = arguments(40, "float32", order)
        function(*expected)
        for mine, theirs in zip(run(function, arguments(40, "float32", order), fastmath=False), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", UPDATES, ids=lambda f: f.__name__)
def test_updates_are_near_those_of_numpy(function):
    """Four roundings of terms no larger than those that there are, at most, in each of a few statements."""
    expected, given = arguments(40, "float64", "C"), arguments(40, "float64", "C")
    with warnings.catch_warnings():
        function(*expected)
    for mine, theirs in zip(run(function, given), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)
