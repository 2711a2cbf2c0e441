"""What a statement writes: in-place operators, helpers, views; nothing outside its array, nothing unseen."""

import numpy as np
import pytest

import orion
from tests.serial_results import assert_as_serial

generator = np.random.default_rng(3)


def f64(*shape):
    return generator.normal(size=shape)


def f32(*shape):
    return generator.normal(size=shape).astype(np.float32)


# ------------------------------------------------------------ in-place operators on rows


def longer_than_the_other_side(A, x, n):
    for i in range(A.shape[0]):
        A[i] += x[n:]


def private_longer_than_the_other_side(A, x, n, out):
    for i in range(A.shape[0]):
        r = A[i] * 2.0
        r *= x[n:]
        out[i] = r.sum()


@pytest.mark.parametrize(("length", "n"), [(5, 2), (12, 0), (5, 4), (12, 5)])
def test_an_operator_in_place_reads_nothing_outside_the_other_side(length, n):
    assert_as_serial(longer_than_the_other_side, f64(3, 12), f64(length), n)
    assert_as_serial(private_longer_than_the_other_side, f64(3, 12), f64(length), n, np.zeros(3))


def shifted_in_place(A):
    for i in range(A.shape[0]):
        A[i, 1:] += A[i, :-1]


def reversed_in_place(A):
    for i in range(A.shape[0]):
        A[i] += A[i, ::-1]


def reversed_private(W, out):
    for i in range(W.shape[0]):
        r = W[i].copy()
        r += r[::-1]
        out[i] = r @ W[i]


def power_of_a_part(A):
    for i in range(A.shape[0]):
        A[i, 1:] **= 2


def whole_matrix(A, B):
    for _ in range(3):
        A -= B * 0.5


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (shifted_in_place, (f64(4, 9),)),
        (reversed_in_place, (f64(4, 9),)),
        (reversed_in_place, (f32(4, 300),)),
        (reversed_private, (f64(4, 9), np.zeros(4))),
        (reversed_private, (f64(4, 300), np.zeros(4))),
        (power_of_a_part, (f32(4, 9),)),
        (power_of_a_part, (np.arange(36, dtype=np.int16).reshape(4, 9),)),
        (whole_matrix, (f32(4, 9), f32(4, 9))),
    ],
)
def test_an_operator_in_place_computes_its_right_side_first(function, arguments):
    assert_as_serial(function, *arguments)


# ------------------------------------------------------------ helpers that stay functions


def peek(x, k):
    if k < 0:
        return 0.0
    return x[k]


def peeking(x, out, step):
    for i in range(out.size):
        out[i] = peek(x, i * step)


@pytest.mark.parametrize("step", [1, 7, -1])
def test_a_helper_reads_nothing_outside_its_array(step):
    assert_as_serial(peeking, f64(5), np.zeros(5), step)


def test_a_helper_that_leaves_its_array_says_so():
    with pytest.raises(orion.OutOfBoundsError, match="peek"):
        orion.parallel_for(peeking)(f64(5), np.zeros(5), 7)


# ------------------------------------------------------------ writes that helpers and views hide


def clear(r, flag):
    if flag > 0:
        return 1.0
    r.fill(0.0)
    return 2.0


def clear_transposed(r, flag):
    if flag > 0:
        return 1.0
    q = r.ravel()
    q += 1.0
    return 2.0


def clear_second(r, q, flag):
    if flag > 0:
        return 1.0
    s, t = r, q
    t += 1.0
    return s[0]


def clearing(W, f, out):
    for i in range(W.shape[0] - 1):
        t = clear(W[i + 1], f[i])
        out[i] = t + W[i, 0]


def clearing_by_ravel(W, f, out):
    for i in range(W.shape[0] - 1):
        t = clear_transposed(W[i + 1], f[i])
        out[i] = t + W[i, 0]


def clearing_second(W, H, f, out):
    for i in range(W.shape[0] - 1):
        t = clear_second(H[i], W[i + 1], f[i])
        out[i] = t + W[i, 0]


def filled_by_ravel(W, out):
    for i in range(W.shape[0] - 1):
        W[i + 1].ravel().fill(2.0)
        out[i] = W[i, 0]


def raveled(W, out):
    for i in range(W.shape[0] - 1):
        a = W[i + 1].ravel()
        a += 1.0
        out[i] = W[i].sum()


def transposed(W, out):
    for i in range(W.shape[0] - 1):
        a = np.transpose(W[i + 1])
        a += 1.0
        out[i] = W[i].sum()


def attribute_transposed(W, out):
    for i in range(W.shape[0] - 1):
        a = W[i + 1].T
        a[0] = 5.0
        out[i] = W[i].sum()


N = 2_000


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (clearing, (f64(N, 3), f64(N), np.zeros(N))),
        (clearing_by_ravel, (f64(N, 3), f64(N), np.zeros(N))),
        (clearing_second, (f64(N, 3), f64(N, 3), f64(N), np.zeros(N))),
        (filled_by_ravel, (f64(N, 3), np.zeros(N))),
        (raveled, (f64(N, 3), np.zeros(N))),
        (transposed, (f64(N, 3), np.zeros(N))),
        (attribute_transposed, (f64(N, 3), np.zeros(N))),
    ],
)
def test_writes_through_helpers_and_views_are_seen(function, arguments):
    loops = orion.parallel_for(function).plan(*arguments).loops
    writes = {access.array for loop in loops for access in loop.analysis.accesses if access.is_write}
    assert writes == {"W", "out"}
    assert_as_serial(function, *arguments)


def column_raveled(W, out):
    for i in range(W.shape[1]):
        a = W[:, i].ravel()
        a += 1.0
        out[i] = W[0, i]


def flipped(W, out):
    for i in range(W.shape[0]):
        a = np.flip(W[i])
        a += 1.0
        out[i] = W[i, 0]


def clipped_into(W, H, out):
    for i in range(W.shape[0] - 1):
        np.clip(W[i], 0.2, 0.5, H[i + 1])
        out[i] = H[i, 0]


def rounded_into(W, H, out):
    for i in range(W.shape[0] - 1):
        np.round(W[i], 1, H[i + 1])
        out[i] = H[i, 0]


def summed_into(W, H, out):
    for i in range(W.shape[0] - 1):
        np.sum(W, 0, None, H[i + 1])
        out[i] = H[i, 0]


def product_into(W, H, out):
    for i in range(W.shape[0] - 1):
        np.dot(W, W[0], out)
        H[i, 0] = out[i]


@pytest.mark.parametrize("function", [clipped_into, rounded_into, summed_into, product_into])
def test_results_into_an_argument_are_refused(function):
    with pytest.raises(orion.UnsupportedLoopError, match="help:"):
        orion.parallel_for(function).plan(f64(4, 4), f64(4, 4), np.zeros(4))


@pytest.mark.parametrize("function", [column_raveled, flipped])
def test_parts_that_may_or_may_not_be_copies_are_refused(function):
    with pytest.raises(orion.UnsupportedLoopError, match="copy"):
        orion.parallel_for(function).plan(f64(4, 4), np.zeros(4))


def raveled_twice(W, out):
    for i in range(W.shape[0]):
        b = W[i] * 2.0
        a = b.ravel()
        b = W[i] * 3.0
        out[i] = a.sum() + b[0]


@pytest.mark.parametrize("length", [8, 300])
def test_a_view_of_a_private_row_keeps_that_row(length):
    assert_as_serial(raveled_twice, f64(4, length), np.zeros(4))


# ------------------------------------------------------------ rows in registers and what is written meanwhile


def bump(W, i):
    if i < 0:
        return 0.0
    W[i] += 1.0
    return W[i, 0]


def read_again_after_a_scalar(W, out):
    for i in range(W.shape[0]):
        s = W[i].sum()
        t = bump(W, i)
        out[i] = s + W[i].sum() + t


def read_again_after_a_view(W, c, out):
    for i in range(W.shape[0]):
        w = W[i]
        if c[i] > 0:
            w = W[0]
        s = W[0].sum()
        w[0] = 5.0
        out[i] = W[0].sum() + s


def updated_through_a_view(W, c, out):
    for i in range(W.shape[0]):
        w = W[i]
        if c[i] > 0:
            w = W[0]
        s = W[0].sum()
        w[1] += 5.0
        out[i] = W[0].sum() + s


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (read_again_after_a_scalar, (f64(6, 4), np.zeros(6))),
        (read_again_after_a_view, (f64(6, 4), f64(6), np.zeros(6))),
        (updated_through_a_view, (f64(6, 4), f64(6), np.zeros(6))),
    ],
)
def test_rows_in_registers_are_read_again_after_a_write(function, arguments):
    assert_as_serial(function, *arguments)


def written_in_a_test(W, out):
    for i in range(W.shape[0]):
        s = W[i].sum()
        if bump(W, i) > 0:
            out[i] = W[i].sum() - s


def written_in_a_sum(W, out):
    for i in range(W.shape[0]):
        out[i] = W[i, 0] + bump(W, i) + W[i].sum()


def written_in_a_bound(W, out):
    for i in range(W.shape[0]):
        for _ in range(int(bump(W, i))):
            out[i] += W[i].sum()


def written_in_a_subscript(W, out):
    for i in range(W.shape[0]):
        out[int(bump(W, i))] = W[i].sum()


@pytest.mark.parametrize("function", [written_in_a_test, written_in_a_bound])
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_helper_that_writes_before_anything_is_read_is_called_first(function):
    mine, theirs = (np.arange(24.0).reshape(6, 4), np.zeros(6)), (np.arange(24.0).reshape(6, 4), np.zeros(6))
    orion.parallel_for(function)(*mine)
    function(*theirs)
    np.testing.assert_array_equal(mine[0], theirs[0])
    np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-12)


@pytest.mark.parametrize("function", [written_in_a_sum, written_in_a_subscript])
def test_a_helper_that_writes_inside_an_expression_is_refused(function):
    with pytest.raises(orion.UnsupportedLoopError, match="bump") as error:
        orion.parallel_for(function)(f64(6, 4), np.zeros(6))
    assert "a line of its own" in str(error.value)


def tally(x, k):
    t = x[k]
    t += 1.0
    if t > 0:
        return t
    return -t


def tallies(x, out):
    for i in range(x.size):
        out[i] = tally(x, i) * 2.0 + x[i]


def test_a_helper_that_updates_a_scalar_writes_nothing():
    assert orion.parallel_for(tallies).plan(f64(9), np.zeros(9)).strategy == "independent"
    assert_as_serial(tallies, f64(9), np.zeros(9))


def raise_row(W, i):
    r = W[i]
    r += 1.0
    return r.sum()


def sum_then_raise(W, out):
    for i in range(W.shape[0]):
        out[i] = W[i].sum() + raise_row(W, i)


def test_a_helper_that_writes_through_a_name_is_not_moved_before_what_it_changes():
    with pytest.raises(orion.UnsupportedLoopError, match="raise_row"):
        orion.parallel_for(sum_then_raise)(f64(6, 4), np.zeros(6))


def pick(W, i):
    if i % 2:
        return W[0]
    return W[i]


def written_through_a_result(W, out):
    for i in range(W.shape[0]):
        w = pick(W, i)
        w += 1.0
        out[i] = W[0, 0]


def test_a_helper_that_returns_a_part_of_its_argument_is_refused():
    with pytest.raises(orion.UnsupportedLoopError, match="copy"):
        orion.parallel_for(written_through_a_result).plan(f64(6, 4), np.zeros(6))
