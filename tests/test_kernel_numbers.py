"""Numbers as Python and NumPy compute them: narrow and unsigned integers, shifts, powers, NaN, conversions."""

import numpy as np
import pytest

import orion
from tests.kernel_loops import compiled, make_loop, run_loop
from tests.serial_results import assert_as_serial

generator = np.random.default_rng(4)


def f64(*shape):
    return generator.normal(size=shape)


def f32(*shape):
    return generator.normal(size=shape).astype(np.float32)


# ------------------------------------------------------------ products of rows inside row statements


def made_orthogonal(W, q, out):
    for i in range(W.shape[0]):
        r = W[i].copy()
        r -= (r @ q) * q
        out[i] = r.sum()


def divided_by_its_square(A):
    for i in range(A.shape[0]):
        x = A[i].copy()
        x /= x @ x
        A[i] = x


def scaled_by_products(y, x):
    for _ in range(2):
        y[:] = y * (x @ x) + (y @ x)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (made_orthogonal, (f64(4, 300), f64(300), np.zeros(4))),
        (made_orthogonal, (f64(4, 7), f64(7), np.zeros(4))),
        (divided_by_its_square, (f64(4, 300),)),
        (scaled_by_products, (np.arange(5), np.arange(5) - 2)),
    ],
)
def test_a_product_of_the_row_that_is_written_is_computed_once(function, arguments):
    assert_as_serial(function, *arguments, workers=(1,))


# ------------------------------------------------------------ Python's numbers among narrow ones


def smaller_of_a_thousand(x, y):
    for i in range(x.size):
        y[i] = min(x[i], 1000)


def best_of_row(x, y):
    for i in range(x.shape[0]):
        best = 1000
        for k in range(x.shape[1]):
            if x[i, k] < best:
                best = x[i, k]
        y[i] = best


def one_or_five_hundred(x, y):
    for i in range(x.size):
        y[i] = x[i] if x[i] < 100 else 500


def smallest(x):
    m = 1000
    for i in range(x.size):
        m = min(m, x[i])
    return m


def wrapping_product(x, y):
    for i in range(x.size):
        t = 1
        for _ in range(3):
            t = t * x[i]
        y[i] = t


def small_or_zero(x, flag):
    if flag > 0:
        return 70_000
    return x


def chosen_by_helper(x, y):
    for i in range(x.size):
        y[i] = small_or_zero(x[i], x[i] % 2)


BYTES = np.array([7, 255, 99, 100, 200, 3], np.uint8)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (smaller_of_a_thousand, (BYTES, np.zeros(6, np.int64))),
        (smaller_of_a_thousand, (BYTES.astype(np.int8), np.zeros(6, np.int64))),
        (best_of_row, (BYTES.reshape(3, 2), np.zeros(3, np.int64))),
        (best_of_row, (BYTES[:0].reshape(3, 0), np.zeros(3, np.int64))),
        (one_or_five_hundred, (BYTES, np.zeros(6, np.int64))),
        (smallest, (BYTES,)),
        (smallest, (BYTES[:0],)),
        (wrapping_product, (BYTES, np.zeros(6, np.int64))),
        (chosen_by_helper, (BYTES, np.zeros(6, np.int64))),
        (chosen_by_helper, (BYTES.astype(np.int16), np.zeros(6, np.int64))),
    ],
)
def test_a_choice_between_a_python_integer_and_a_narrow_one_holds_both(function, arguments):
    assert_as_serial(function, *arguments)


# ------------------------------------------------------------ powers


def squares(x, y):
    for i in range(x.size):
        y[i] = x[i] ** 2


def squared_in_place(x):
    for i in range(x.size):
        x[i] **= 2


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint32", "int64", "float32"])
def test_squares_have_the_width_of_numpy(dtype):
    x = np.array([1, 3, 15, 100, 100_000]).astype(dtype)
    assert_as_serial(squares, x, np.zeros(5, np.float64 if dtype == "float32" else np.int64))
    assert_as_serial(squared_in_place, x)


def powers_of_two(y):
    for i in range(y.size):
        y[i] = 2 ** (i + 3)


def powers_below_one(y):
    for i in range(y.size):
        y[i] = 2 ** (i - 3)


def test_a_python_integer_to_a_power():
    assert_as_serial(powers_of_two, np.zeros(5))
    with pytest.raises(ValueError, match=r"2\.0 \*\* k"):
        orion.parallel_for(powers_below_one)(np.zeros(5))


# ------------------------------------------------------------ conversions of rows


def product_of_squares(A, x, out):
    for i in range(A.shape[0]):
        out[i] = (A[i, 1:] ** 2) @ x[1:]


def product_of_negatives(A, x, out):
    for i in range(A.shape[0]):
        out[i] = (-A[i, 1:]) @ x[1:]


def chosen_norms(A, out):
    for i in range(A.shape[0]):
        out[i] = np.linalg.norm(A[i]) if A[i, 0] > 0 else np.linalg.norm(A)


def norms(A, out):
    for i in range(A.shape[0]):
        out[i] = np.linalg.norm(A[i])


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (product_of_squares, (f32(3, 5), f64(5), np.zeros(3))),
        (product_of_negatives, (np.arange(15, dtype=np.uint8).reshape(3, 5), f64(5), np.zeros(3))),
        (norms, (np.full((3, 4), 100, np.int8), np.zeros(3))),
        (norms, (np.full((3, 4), 100, np.int64), np.zeros(3))),
        (chosen_norms, (np.full((3, 4), 100, np.int8), np.zeros(3))),
        (norms, (f32(3, 300), np.zeros(3, np.float32))),
    ],
)
def test_rows_are_converted_before_they_are_multiplied(function, arguments):
    assert_as_serial(function, *arguments)


# ------------------------------------------------------------ unsigned integers


def total(x):
    t = 0
    for i in range(x.size):
        t += x[i]
    return t


def gathered(w, index, out):
    for i in range(index.size):
        out[i] = w[index[i]]


def mixed(x, y, out):
    for i in range(x.size):
        out[i] = x[i] + y[i]
        out[i] += x[i] * y[i] - x[i] // (y[i] + 7)


def signs(x, y):
    for i in range(x.size):
        y[i] = np.sign(x[i])


def signs_of_rows(x, y):
    for i in range(x.shape[0]):
        y[i, 1:] = np.sign(x[i, 1:])


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (gathered, (f64(9), np.array([3, 0, 8], np.uint64), np.zeros(3))),
        (mixed, (np.array([1, 2**63, 5], np.uint64), np.array([-1, 3, -6]), np.zeros(3))),
        (mixed, (np.array([1, 200, 5], np.uint8), np.array([-1, 3, -6], np.int8), np.zeros(3))),
        (signs, (np.array([0, 200, 1], np.uint8), np.zeros(3, int))),
        (signs, (np.array([0, -200, 1]), np.zeros(3, int))),
        (signs_of_rows, (np.array([[0, 200, 1]], np.uint8), np.zeros((1, 3), int))),
    ],
)
def test_unsigned_integers(function, arguments):
    assert_as_serial(function, *arguments)


def test_a_sum_of_unsigned_integers_is_unsigned():
    x = np.array([2**63, 5, 2**62], np.uint64)
    with orion.session(workers=2, force_parallel=True):
        assert orion.parallel_for(total)(x) == total(x) == 2**63 + 5 + 2**62


# ------------------------------------------------------------ shifts


def shifted(x, n, y, z):
    for i in range(x.size):
        y[i] = x[i] << n[i]
        z[i] = x[i] >> n[i]


def shifted_in_place(x, n):
    for i in range(x.size):
        x[i] >>= n[i]


def shifted_by_constants(x, y):
    for i in range(x.size):
        y[i] = (x[i] << 70) + (x[i] >> 65) + (x[i] << 2) + (x[i] >> 1)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint64", "uint8"])
def test_shifts_past_the_width(dtype):
    x = np.array([1, 8, 127, 5, 9, 3]).astype(dtype)
    if dtype.startswith("int"):
        x[1:3] *= -1
    n = np.array([0, 3, 7, 8, 63, 64]).astype(dtype)
    assert_as_serial(shifted, x, n, np.zeros(6, dtype), np.zeros(6, dtype))
    assert_as_serial(shifted, x[::-1].copy(), n, np.zeros(6, dtype), np.zeros(6, dtype))
    assert_as_serial(shifted_in_place, x, n)


def test_shifts_by_constants():
    assert_as_serial(shifted_by_constants, np.array([1, -8, 127]), np.zeros(3, int))


# ------------------------------------------------------------ helpers that stay functions


def tenth(x):
    if x < 0:
        return -x
    return x * 0.1


def of_tenths(x, y):
    for i in range(x.size):
        y[i] = tenth(x[i])


def both(x):
    if x < 0:
        return -x, x
    return x * 0.1, x


def pairs(x, y):
    for i in range(x.size):
        p, q = both(x[i])
        y[i] = p + q * 0.3


@pytest.mark.parametrize("function", [of_tenths, pairs])
def test_what_a_helper_returns_has_the_dtype_that_numpy_gives(function):
    x, y = f32(50), np.zeros(50)
    orion.parallel_for(function)(x, y)
    assert np.array_equal(y, y.astype(np.float32))
    assert_as_serial(function, x, y)


# ------------------------------------------------------------ chains of comparisons


def chained(W, x, js, out):
    for i in range(js.size):
        j = js[i]
        if 0 <= j < W[j] @ x:
            out[i] = 1.0
        out[i] += 0 <= j < W[j, 0]


def affine_chain(x, y, n):
    for i in range(y.size):
        y[i] = 1.0 if 0 <= i + 1 < n and x[i + 1] > 0 else 0.0
        y[i] += x[i + 1] if i + 1 < n else 2.0
        if 0 <= n - 2 - i < x[n - 2 - i]:
            y[i] += 4.0


def test_a_comparison_that_is_decided_evaluates_no_more():
    assert_as_serial(chained, np.ones((3, 4)), np.ones(4), np.array([0, -100, 2]), np.zeros(3))
    assert_as_serial(affine_chain, f64(9), np.zeros(9), 9)


# ------------------------------------------------------------ NaN


def smallest_last(x):
    m = 10.0
    for i in range(x.size):
        m = min(x[i], m)
    return m


def smallest_first(x):
    m = 10.0
    for i in range(x.size):
        m = min(m, x[i])
    return m


def largest_last(x):
    m = -10.0
    for i in range(x.size):
        m = max(x[i], m)
    return m


def smaller_of_two(x, y, out):
    for i in range(x.size):
        out[i] = min(x[i], y[i]) + 10 * max(x[i], y[i])


@pytest.mark.parametrize("function", [smallest_last, smallest_first, largest_last])
def test_min_and_max_of_python_keep_their_order(function):
    x = np.array([3.0, np.nan, 5.0])
    loop = make_loop(function, x)
    start = {"smallest_last": 10.0, "smallest_first": 10.0, "largest_last": -10.0}[function.__name__]
    found = run_loop(loop, compiled(loop), m=start)["m"][0]
    assert found == function(x)  # in one tile; what NaN does between tiles is in docs/project/decisions.md


def test_min_and_max_of_nan():
    values = np.array([1.0, np.nan, 2.0, -0.0, np.inf])
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    assert_as_serial(smaller_of_two, x, y, np.zeros(25))


# ------------------------------------------------------------ what fastmath may not do


def cancelled(W, big, out):
    for i in range(W.shape[0]):
        out[i] = (W[i] + big) - big


def cancelled_rows(W, H, out):
    for i in range(W.shape[0]):
        out[i] = (W[i] + H[i]) - H[i]


def cancelled_products(W, H, a, out):
    for i in range(W.shape[0]):
        out[i] = (W[i] + a * H[i]) - H[i] * a


def test_terms_that_cancel_are_not_cancelled_ahead():
    W, big = np.ones((3, 8)), 2.0**54
    assert_as_serial(cancelled, W, big, np.zeros((3, 8)))
    assert_as_serial(cancelled_rows, W, np.full((3, 8), big), np.zeros((3, 8)))
    assert_as_serial(cancelled_products, W, np.full((3, 8), big), 3.0, np.zeros((3, 8)))


# ------------------------------------------------------------ division


def divided(x, y, out):
    for i in range(x.size):
        out[i] = x[i] // y[i]


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_the_smallest_integer_divided_by_minus_one(dtype):
    x = np.full(3, np.iinfo(dtype).min, dtype)
    assert_as_serial(divided, x, np.array([-1, 2, 0], dtype), np.zeros(3, dtype))


def quotient(n, out):
    for i in range(out.size):
        out[i] = 1.0 / (i - n)


def floor_quotient(n, out):
    for i in range(out.size):
        out[i] = 7 // (i - n)


def remainder(n, out):
    for i in range(out.size):
        out[i] = 7 % (i - n)


def of_elements(x, out):
    for i in range(out.size):
        out[i] = 1.0 / x[i]


@pytest.mark.parametrize("function", [quotient, floor_quotient, remainder])
@pytest.mark.parametrize("n", [3, -1])
def test_python_numbers_divided_by_zero(function, n):
    assert_as_serial(function, n, np.zeros(6))


def test_elements_divided_by_zero():
    assert_as_serial(of_elements, np.array([1.0, 0.0, -2.0]), np.zeros(3))
    assert_as_serial(divided, np.array([1, 0, -2]), np.array([0, 0, 1]), np.zeros(3, int))
