"""Powers of floats by integers that are no constants, of NumPy's numbers and of Python's, against Python and NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion

ROUNDINGS = 1024 * 2.0**-53
BASES = [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 1.0 + 1e-7, 3.7, 1e10, 1e-10, 1e300, 5e-324, np.inf, -np.inf, np.nan]
EXPONENTS = [
    *range(-70, 131),
    1000,
    1001,
    1023,
    1025,
    -1000,
    -1024,
    -1025,
    10**8,
    -(10**8),
    2**62,
    -(2**63),
    2**63 + 1,
    2**64 - 1,
]


@orion.parallel_for
def of_elements(x, t, out):
    for i in range(len(x)):
        for j in range(len(t)):
            out[i, j] = x[i] ** t[j]


@orion.parallel_for
def in_place(x, t, out):
    for i in range(len(x)):
        for j in range(len(t)):
            out[i, j] = x[i]
            out[i, j] **= t[j]


@orion.parallel_for
def of_sums(x, t, out):
    for i in range(len(x)):
        for j in range(len(t)):
            base = 1.0 * x[i]
            out[i, j] = base ** int(t[j])


@orion.parallel_for
def of_pythons_number(base, n, out):
    for j in range(n):
        out[j] = base ** (j - n // 2)


def calculated(function, x, t):
    out = np.empty((len(x), len(t)))
    function(x, t, out)
    return out


def wanted(x, t):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([[a ** float(b) for b in t] for a in x])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.uint64])
@pytest.mark.parametrize("function", [of_elements, in_place, of_sums], ids=lambda f: f.__name__)
def test_are_those_of_numpy_but_for_a_few_roundings(function, dtype, workers):
    limits = np.iinfo(dtype)
    most = min(limits.max, 2**63 - 1) if function is of_sums else limits.max  # Python's integers have 64 bits
    x, t = np.array(BASES), np.array([k for k in EXPONENTS if limits.min <= k <= most], dtype)
    with orion.session(workers=workers):
        found = calculated(function, x, t)
    np.testing.assert_allclose(found, wanted(x, t), rtol=ROUNDINGS, atol=1e-322)
    assert (np.signbit(found) == np.signbit(wanted(x, t)))[~np.isnan(found)].all()


def test_random_powers():
    rng = np.random.default_rng(5)
    x, t = rng.uniform(-4.0, 4.0, 400), rng.integers(-64, 200, 300)
    np.testing.assert_allclose(calculated(of_elements, x, t), wanted(x, t), rtol=ROUNDINGS, atol=1e-322)


def test_large_exponents_are_as_exact_as_those_of_the_c_library():
    t = np.array([1025, 10**6, 10**8])
    found = calculated(of_sums, np.array([1.0 + 1e-7]), t)
    np.testing.assert_allclose(found, wanted([1.0 + 1e-7], t), rtol=4 * 2.0**-53)


@pytest.mark.parametrize("n", [5, 131])
def test_of_a_number_of_pythons(n):
    out, other = np.empty(n), np.empty(n)
    of_pythons_number(-1.25, n, out)
    of_pythons_number.serial(-1.25, n, other)
    np.testing.assert_allclose(out, other, rtol=ROUNDINGS)


def test_zero_of_pythons_to_a_negative_power_is_an_error():
    with pytest.raises(ZeroDivisionError, match=r"test_powers\.py:"):
        of_pythons_number(0.0, 5, np.empty(5))
    with pytest.raises(ZeroDivisionError):
        of_pythons_number.serial(0.0, 5, np.empty(5))


@orion.parallel_for
def of_integers(n, out):
    for j in range(n):
        out[j] = 10 ** (j - 2)


def test_an_integer_to_a_negative_power_is_told_with_its_place():
    with pytest.raises(ValueError, match="an integer to the power -2 is no integer") as caught:
        of_integers(5, np.zeros(5))
    assert "test_powers.py:" in str(caught.value)
    assert "out[j] = 10 ** (j - 2)" in str(caught.value)
