"""A scalar that a loop has computed is, after the loop, the kind of number that Python would have: Python's own, or
NumPy's, which divide by zero, take roots and meet narrow arrays in other ways."""

import warnings

import numpy as np
import pytest

import orion


def total(x, start):
    s = start
    for i in range(x.shape[0]):
        s += x[i]
    return s


def product(x, start):
    p = 1
    for i in range(x.shape[0]):
        p *= x[i]
    return p


def count(x, start):
    n = 0
    for i in range(x.shape[0]):
        if x[i] > start:
            n += 1
    return n, n / 4


def greatest(x, start):
    m, k = start, -1
    for i in range(x.shape[0]):
        if x[i] > m:
            m, k = x[i], i
    return m, k


def by_max(x, start):
    m = start
    for i in range(x.shape[0]):
        m = max(m, x[i])
    return m


def last(x, start):
    t = start
    for i in range(x.shape[0]):
        t = x[i]
    return t


def any_of(x, start):
    found = False
    for i in range(x.shape[0]):
        found = found or x[i] > 2
    return found


def recurrence(x, start):
    s = start
    for i in range(x.shape[0]):
        s = 0.5 * s + x[i]
    return s


def inverse(x, start):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] - x[i]
    return 1.0 / s


def root(x, start):
    s = 0.0
    for i in range(x.shape[0]):
        s -= abs(x[i])
    return s**0.5


def meets_a_narrow_array(x, start):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s * np.ones(2, np.float32)


def in_rounds(x, start):
    s = 0.0
    for _ in range(3):
        for i in range(x.shape[0]):
            s += x[i]
        s = s / 2
    return s


FUNCTIONS = [
    total, product, count, greatest, by_max, last, any_of, recurrence, inverse, root, meets_a_narrow_array, in_rounds,
]  # fmt: skip
KINDS = ["float64", "float32", "int64", "bool", "int8"]


def starts(kind):
    """Numbers to begin with that are of the same kind as the elements, so that all that the name holds is of one kind;
    a Python integer makes a name of narrow integers one of Python's."""
    dtype = np.dtype(kind)
    return [dtype.type(1)] if dtype.kind in "iu" and dtype.itemsize < 8 else [dtype.type(0).item(), dtype.type(1)]


def is_known(function, kind):
    """Whether Python's result is known to be another one, or none.

    `docs/reference/differences.md` has them, but for differences of truth values, which NumPy does not have.
    """
    return (kind == "int8" and function in (total, product)) or (kind == "bool" and function in (inverse, root))


@pytest.fixture(scope="module", params=[1, 2])
def session(request):
    with orion.session(workers=request.param, force_parallel=True):
        yield


def outcome(function, *arguments):
    """The results with their types, or the type of the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = function(*arguments)
        except ZeroDivisionError as error:
            return type(error)
    found = found if isinstance(found, tuple) else (found,)
    return [(type(value), getattr(value, "dtype", None), str(value)) for value in found]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_it_is_the_number_that_python_has(function, kind, session):
    compiled = orion.parallel_for(function)
    for size in (1, 4, 300):
        x = (np.arange(size) % (3 if function is product else 5)).astype(kind)
        for start in () if is_known(function, kind) else starts(kind):
            assert outcome(compiled, x, start) == outcome(function, x, start), (size, start)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [total, count, greatest, by_max, last, any_of, inverse], ids=lambda f: f.__name__)
def test_what_no_iteration_changes_stays_what_it_is(function, kind, session):
    compiled = orion.parallel_for(function)
    for start in () if is_known(function, kind) else starts(kind):
        assert outcome(compiled, np.zeros(0, kind), start) == outcome(function, np.zeros(0, kind), start), start


def test_a_name_that_is_a_float_anywhere_is_one_where_nothing_is_added(session):
    assert outcome(orion.parallel_for(total), np.zeros(0), 0) == [(float, None, "0.0")]
