"""Loops over complex numbers, against Python and NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion
from orion import SerialLoopWarning, UnsupportedLoopError
from tests.trials import one_in

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "ignore::RuntimeWarning")

CENTRE = -0.7 + 0.3j
TURN = np.complex128(1j)


def mandelbrot(width, height, most):
    out = np.zeros((height, width), np.int32)
    for y in range(height):
        for x in range(width):
            c = complex(-2.0 + 3.0 * x / width, -1.2 + 2.4 * y / height)
            z = 0j
            n = 0
            while abs(z) <= 2.0 and n < most:
                z = z * z + c
                n += 1
            out[y, x] = n
    return out


def julia(out, zs):
    for i in range(zs.shape[0]):
        for j in range(zs.shape[1]):
            z = zs[i, j]
            k = 0
            for k in range(40):  # noqa: B007 - it is used after the loop
                if z.real * z.real + z.imag * z.imag > 4.0:
                    break
                z = z**2 + CENTRE
            out[i, j] = k


def fourier(x):
    n = len(x)
    X = np.zeros(n, dtype=complex)
    for k in range(n):
        s = 0j
        for t in range(n):
            s += x[t] * np.exp(-2j * np.pi * k * t / n)
        X[k] = s
    return X


def inner(a, b):
    s = 0
    for i in range(len(a)):
        s += a[i] * b[i].conjugate()
    return s


def product(a):
    p = 1.0
    for i in range(len(a)):
        p *= a[i] / abs(a[i])
    return p


def newton(zs, roots):
    out = np.zeros(len(zs), np.int64)
    for i in range(len(zs)):
        z = zs[i]
        for _ in range(30):
            z -= (z**3 - 1) / (3 * z**2)
        best = 0
        for r in range(len(roots)):
            if abs(z - roots[r]) < abs(z - roots[best]):
                best = r
        out[i] = best
    return out


def in_place(a, b):
    for i in range(len(a)):
        a[i] /= b[i]
        a[i] **= 3
        a[i] += 2
        a[i] *= TURN
        a[i] = -a[i]


def spectrum(a):
    power = np.empty(len(a))
    phase = np.empty(len(a))
    for i, z in enumerate(a):
        power[i] = abs(z) ** 2
        phase[i] = np.arctan2(z.imag, z.real)
    return power, phase


def schroedinger(psi, steps, dt):
    n = len(psi)
    new = np.zeros_like(psi)
    for _ in range(steps):
        for i in range(1, n - 1):
            new[i] = psi[i] + 0.5j * dt * (psi[i - 1] - 2 * psi[i] + psi[i + 1])
        for i in range(1, n - 1):
            psi[i] = new[i]


def in_slices(psi, steps):
    for _ in range(steps):
        psi[1:-1] = 0.5 * psi[1:-1] + 0.25j * (psi[:-2] - psi[2:])


def resonator(x, pole):
    y = np.zeros(len(x), np.complex128)
    h = 0j
    for i in range(len(x)):
        h = pole * h + x[i]
        y[i] = h
    return y


def running(a):
    out = np.empty_like(a)
    s = 0j
    for i in range(len(a)):
        s += a[i]
        out[i] = s
    return out


def by_key(a, keys):
    sums = np.zeros(4, complex)
    for i in range(len(a)):
        sums[keys[i]] += a[i]
    return sums


def columns(A):
    out = np.zeros(A.shape[1], A.dtype)
    for i in range(A.shape[0]):
        out += A[i]
    return out


def rows(A, w):
    for i in range(A.shape[0]):
        A[i] = A[i] * w - A[i].conj() + np.where(A[i].real > 0, A[i], 1j)


def compared(a):
    out = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        if a[i] == 1j or not a[i]:
            out[i] = 1
        elif a[i] != a[0]:
            out[i] = 2
    return out


def with_list(a):
    found = []
    for z in a:
        found.append(z * 2j)
    return found


def beside(a):
    z = 0.0
    for i in range(len(a)):
        z = z + a[i]
    return z, z.real, 2 + z


def seidel(A):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + 1j * A[i, j - 1] + A[i, j + 1])


rng = np.random.default_rng(3)


def numbers(*shape, dtype=np.complex128):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


PLANE = np.linspace(-2, 2, 14)[:, None] + 1j * np.linspace(-2, 2, 11)[None, :]
A, B, M, SMALL = numbers(60), numbers(60), numbers(13, 9), numbers(60, dtype=np.complex64)
GIVEN = [
    (mandelbrot, (20, 15, 40), True),
    (julia, (np.zeros((14, 11), np.int64), PLANE), True),
    (fourier, (rng.normal(size=40),), True),
    (fourier, (A,), True),
    (inner, (A, B), True),
    (inner, (SMALL, SMALL), True),
    (product, (A,), True),
    (newton, (PLANE.ravel() + 0.1, np.exp(2j * np.pi * np.arange(3) / 3)), True),
    (in_place, (A, B), True),
    (in_place, (SMALL, SMALL + 1), True),
    (in_place, (A, np.arange(1.0, 61.0)), True),
    (in_place, (A, np.arange(1, 61)), True),
    (spectrum, (A,), True),
    (schroedinger, (A, 5, 0.01), True),
    (in_slices, (A, 4), True),
    (resonator, (A, 0.9 * np.exp(0.3j)), False),
    (running, (A,), False),
    (by_key, (A, rng.integers(0, 4, 60)), True),
    (columns, (M,), True),
    (rows, (M, numbers(9)), True),
    (rows, (M, 0.5 - 0.5j), True),
    (compared, (np.array([1j, 0, -0.0, 2, 1j, 3j, np.nan]),), True),
    (with_list, (A,), True),
    (beside, (A,), True),
    (seidel, (M,), True),
]


def copies(given):
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in given)


def alike(got, wanted, eps=1e-12):
    assert type(got) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            alike(one, other, eps)
    elif wanted is not None:
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        few = np.asarray(wanted).dtype in (np.complex64, np.float32)
        np.testing.assert_allclose(got, wanted, rtol=1e-4 if few else eps, atol=1e-4 if few else eps)


TRIED = [
    case for name in dict.fromkeys(case[0] for case in GIVEN) for case in one_in(2, [c for c in GIVEN if c[0] is name])
]
"""Of the arguments of each loop, one in two if no more is asked for."""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("function", "given", "is_parallel"), TRIED, ids=lambda value: getattr(value, "__name__", ""))
def test_gives_what_python_gives(function, given, is_parallel, workers):
    looped = orion.parallel_for(function)
    mine, other = copies(given), copies(given)
    with orion.session(workers=workers, force_parallel=True):
        alike(looped(*mine), function(*other))
        alike(mine, other)
        assert looped.plan(*given).is_parallel is is_parallel or workers == 1


def added(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] + b[i]


def multiplied(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] * b[i]


def divided(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] / b[i]


def real_by_complex(a, b, out):
    for i in range(len(a)):
        out[i] = a[i].real / b[i]


def powers(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] ** 0 + a[i] ** 1 + a[i] ** 2 + a[i] ** 5


def cubes(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] ** 3


def sizes(a, b, out):
    for i in range(len(a)):
        out[i] = abs(a[i])


def conjugates(a, b, out):
    for i in range(len(a)):
        out[i] = np.conj(a[i]) - a[i].conjugate() + complex(a[i].real, b[i].imag)


def test_conjugates_of_real_arrays_are_the_arrays():
    def written(A, x, out):
        v = x.conjugate()
        for i in range(len(out)):
            row = A[i].conj()
            row[0] = 50.0
            v[i] += 1.0
            out[i] = A[i, 0] + x[i]

    found, wanted = ([np.arange(6.0).reshape(3, 2), np.ones(3), np.zeros(3)] for _ in range(2))
    orion.parallel_for(written)(*found)
    written(*wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


PARTS = [0.0, -0.0, 1.0, -1.5, 2.5, 1e-310, 1e200, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize(
    "function",
    [added, multiplied, divided, real_by_complex, powers, cubes, sizes, conjugates],
    ids=lambda function: function.__name__,
)
def test_zeros_infinities_and_nan_are_those_of_numpy(function, dtype):
    every = np.array([complex(x, y) for x in PARTS for y in PARTS]).astype(dtype)
    a, b = np.repeat(every, len(every)), np.tile(every, len(every))
    found, wanted = np.zeros(len(a), dtype), np.zeros(len(a), dtype)
    orion.parallel_for(function)(a, b, found)
    function(a, b, wanted)
    few = {"rtol": 4e-7 if dtype is np.complex64 else 4e-16}
    np.testing.assert_allclose(found.real, wanted.real, **few)
    np.testing.assert_allclose(found.imag, wanted.imag, **few)


def exponentials(a, out):
    for i in range(len(a)):
        out[i] = np.exp(a[i]) + np.log(a[i]) * np.sqrt(a[i]) - np.abs(a[i])


def test_functions_of_elements():
    a = numbers(500)
    found, wanted = np.zeros(500, complex), np.zeros(500, complex)
    orion.parallel_for(exponentials)(a, found)
    exponentials(a, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


# ------------------------------------------------------------ refused


def real_part_only(a, out):
    for i in range(len(a)):
        out[i] = a[i]


def in_place_of_real(a, out):
    for i in range(len(a)):
        out[i] += 1j


def converted_to_float(a, out):
    for i in range(len(a)):
        out[i] = np.float64(a[i])


def ordered(a, out):
    for i in range(len(a)):
        out[i] = a[i] < 1j


def as_a_subscript(a, out):
    for i in range(len(a)):
        out[a[i]] = 1.0


def of_math(a, out):
    for i in range(len(a)):
        out[i] = max(a[i].real, 0.0) + complex(a[i], 1.0).real


REFUSED = [
    (real_part_only, "a complex number is stored as float64"),
    (in_place_of_real, "a complex number is stored as float64"),
    (converted_to_float, "a complex number becomes float64"),
    (ordered, "`<` is not defined for complex128 and complex128"),
    (as_a_subscript, "a subscript is a complex number"),
    (of_math, "`complex` of two numbers of which one is complex"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=lambda value: getattr(value, "__name__", ""))
def test_what_python_or_numpy_refuse_is_refused(function, message):
    out = np.zeros(3)
    with pytest.raises(UnsupportedLoopError) as caught:
        orion.parallel_for(function)(np.array([1j, 2, 3]), out)
    assert message in str(caught.value)
    assert f"{__file__.rsplit('/', 1)[-1]}:" in str(caught.value)
    assert not out.any()


def of_sines(a, out):
    for i in range(len(a)):
        out[i] = np.sin(a[i])


def any_power(a, out):
    for i in range(len(a)):
        out[i] = a[i] ** 1.5


@pytest.mark.parametrize("function", [of_sines, any_power], ids=lambda function: function.__name__)
def test_other_functions_run_as_they_are(function):
    a = numbers(20)
    found, wanted = np.zeros(20, complex), np.zeros(20, complex)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SerialLoopWarning)
        with pytest.raises(SerialLoopWarning, match="compiled by Numba as it is"):
            orion.parallel_for(function)(a, found)
    orion.parallel_for(function)(a, found)
    function(a, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def systems(a, b, out):
    for i in range(len(a)):
        x = np.linalg.solve(a[i], b[i])
        out[i] = x[0] + np.linalg.inv(a[i])[0, 0] + np.linalg.det(a[i])


def test_systems_of_complex_numbers_are_planned():
    a, b, found, wanted = numbers(36).reshape(4, 3, 3), numbers(12).reshape(4, 3), np.zeros(4, complex), []
    with orion.session(workers=2, force_parallel=True):
        parallel = orion.parallel_for(systems)
        assert parallel.plan(a, b, found).strategy == "independent"
        with pytest.raises(UnsupportedLoopError) as caught:
            parallel.plan(a, b.real.copy(), found)
        parallel(a, b, found)
    assert "`np.linalg.solve` of arrays of complex128 and float64" in str(caught.value)
    assert "`a.astype(np.complex128)`" in str(caught.value)
    for one, other in zip(a, b, strict=True):
        wanted.append(np.linalg.solve(one, other)[0] + np.linalg.inv(one)[0, 0] + np.linalg.det(one))
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def quotient(x, n, out):
    for i in range(n):
        out[i] = x / complex(i, 0)


def test_a_quotient_of_pythons_numbers_by_zero_is_an_error():
    with pytest.raises(ZeroDivisionError, match=r"test_complex\.py:"):
        orion.parallel_for(quotient)(1j, 3, np.zeros(3, complex))


@orion.parallel_for
def sparse_product(R, x, y):
    for (i, j), v in R:
        y[i] += v * x[j]


@pytest.mark.parametrize("workers", [1, 2])
def test_elements_of_sparse_arrays(workers):
    coords = rng.integers(0, 20, (2, 100))
    R = orion.sparse((coords[0], coords[1]), numbers(100), shape=(20, 20))
    x, found, wanted = numbers(20), np.zeros(20, complex), np.zeros(20, complex)
    with orion.session(workers=workers, force_parallel=True):
        sparse_product(R, x, found)
    sparse_product.serial(R, x, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_a_number_from_outside_that_changes_is_noticed(monkeypatch):
    zs = PLANE.copy()
    for centre in (CENTRE, 0.2j, complex(0.2, -0.0)):
        monkeypatch.setitem(globals(), "CENTRE", centre)
        found, wanted = np.zeros(zs.shape, np.int64), np.zeros(zs.shape, np.int64)
        orion.parallel_for(julia)(found, zs)
        julia(wanted, zs)
        np.testing.assert_array_equal(found, wanted)


def of_zeros(a, keys, sums):
    s = complex(-0.0, -0.0)
    for i in range(len(a)):
        s += a[i]
        sums[keys[i]] += a[i]
    return s


@pytest.mark.parametrize("workers", [1, 2])
def test_sums_of_negative_zeros_are_negative_zeros(workers):
    a, keys = np.full(5000, complex(-0.0, -0.0)), np.arange(5000) % 3
    sums = np.full(3, complex(-0.0, -0.0))
    with orion.session(workers=workers, force_parallel=True):
        found = orion.parallel_for(of_zeros)(a, keys, sums)
    for zero in (found, *sums):
        assert np.signbit([zero.real, zero.imag]).all()
