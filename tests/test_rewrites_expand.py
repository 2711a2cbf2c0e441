"""Scalars that each iteration begins anew, in arrays with a place for each: where a loop has another order then, with
the same bits on any number of workers; and where they stay what they are."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from tests.trials import worker_counts

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "error::orion.UnprovedWarning")


def box(img, out, col, n):
    for i in range(n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += img[i, j]
            out[i, j] = row + col[j]


def from_two(img, out, col, n):
    for i in range(2, n):
        row = img[i, 0]
        for j in range(img.shape[1]):
            row = row * 0.5 + img[i, j]
            col[j] += row
            out[i, j] = row + col[j]


def from_minus(img, out, col, n):
    for i in range(-2, n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += row
            out[i, j] = row + col[j]


def down(img, out, col, n):
    for i in range(n - 1, -1, -1):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += row
            out[i, j] = row + col[j]


def j_down(img, out, col, n):
    for i in range(n):
        row = 0
        for j in range(img.shape[1] - 1, -1, -1):
            row += img[i, j] * 0.3
            col[j] = 0.5 * col[j] + row
            out[i, j] = row + col[j]


def after(img, out, col, n):
    for i in range(n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += img[i, j]
            out[i, j] = row + col[j]
    out[0, 0] = row


def returned(img, out, col, n):
    row = 0.0
    for i in range(n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += img[i, j]
            out[i, j] = row + col[j]
    return row


def two(img, out, col, n):
    for i in range(n):
        row = 0.0
        low = 5.0
        for j in range(img.shape[1]):
            row += img[i, j]
            low = min(low, img[i, j]) * 0.99
            col[j] += img[i, j]
            out[i, j] = row + col[j] - low
        out[i, 0] += low + row


def broken(img, out, col, n):
    for i in range(n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            if row > 5.0:
                break
            col[j] += img[i, j]
            out[i, j] = row + col[j]


def brk_outer(img, out, col, n):
    for i in range(n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += img[i, j]
            out[i, j] = row + col[j]
        if row > 16.0:
            break


def rounds(img, out, col, n):
    for _t in range(3):
        for i in range(n):
            row = 0.0
            for j in range(img.shape[1]):
                row += img[i, j]
                col[j] += img[i, j]
                out[i, j] = row + col[j]
        for i in range(n):
            for j in range(img.shape[1]):
                img[i, j] = 0.001 * out[i, j]


def moved(img, out, col, n):
    for i in range(n):
        i2 = i
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i2, j]
            col[j] += img[i2, j]
            out[i, j] = row + col[j]
        i = 0


def ints(img, out, col, n):
    for i in range(n):
        c = 0
        for j in range(img.shape[1]):
            if img[i, j] > 0.5:
                c += 1
            col[j] += c
            out[i, j] = c + col[j]


def size_n(img, out, col, n):
    for i in range(n * 2 - n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += img[i, j]
            out[i, j] = row + col[j]


def same_name(img, out, col, n):
    for i in range(n):
        row_i = img[i, 0]
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j] * row_i
            col[j] += img[i, j]
            out[i, j] = row + col[j]


def cond_begin(img, out, col, n):
    for i in range(n):
        if img[i, 0] > 0.5:
            row = 1.0
        else:
            row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += img[i, j]
            out[i, j] = row + col[j]


def row_as_view(img, out, col, n):
    for i in range(n):
        row = 0.0
        x = img[i]
        o = out[i]
        for j in range(img.shape[1]):
            row += x[j]
            col[j] += x[j]
            o[j] = row + col[j]


def triangle(img, out, col, n):
    for i in range(n):
        row = 0.0
        for j in range(i, img.shape[1]):
            row += img[i, j]
            col[j] += row
            out[i, j] = row + col[j]


def alias(img, out, col, n):
    for i in range(1, n):
        acc = 0.0
        for j in range(1, img.shape[1]):
            acc = 0.5 * acc + out[i - 1, j - 1]
            out[i, j] = acc + img[i, j] + col[j]


def integral(img, out, col, n):
    for i in range(n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            if i == 0:
                out[i, j] = row
            else:
                out[i, j] = out[i - 1, j] + row


EXPANDED = [box, from_two, j_down, two, size_n, same_name, row_as_view, triangle, alias, integral]
OTHERS = [from_minus, down, after, returned, broken, brk_outer, rounds, moved, ints, cond_begin]


def of_shape(rows, columns, dtype=np.float64):
    given = np.random.default_rng(3).random((rows, columns)).astype(dtype)
    return given, np.zeros((rows, columns), dtype), np.zeros(columns, dtype), rows


def in_steps(rows, columns):
    given = np.random.default_rng(3).random((rows, 2 * columns))[:, ::-2]
    return given, np.zeros((columns, rows)).T, np.zeros(2 * columns)[::2], rows


def compare(function, make):
    expected = make()
    returned = function(*expected)
    for workers in worker_counts(1, 2, 4):
        with orion.session("threads", workers, force_parallel=True):
            ours, arguments = orion.parallel_for(function, fastmath=False), make()
            ours.plan(*arguments).check()
            assert ours(*arguments) == returned
        for one, other in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def rewrites_of(function, arguments):
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*arguments)
    return {name for name, _ in plan.function.rewrites}


@pytest.mark.parametrize("make", [of_shape, in_steps])
@pytest.mark.parametrize("function", [*EXPANDED, *OTHERS], ids=lambda one: one.__name__)
def test_the_bits_are_those_of_python(function, make):
    compare(function, lambda: make(33, 40))


@pytest.mark.parametrize("function", EXPANDED, ids=lambda one: one.__name__)
def test_the_places_are_taken(function):
    assert "expand" in rewrites_of(function, of_shape(33, 40))


@pytest.mark.parametrize("function", OTHERS, ids=lambda one: one.__name__)
def test_what_is_used_otherwise_stays_a_scalar(function):
    assert "expand" not in rewrites_of(function, of_shape(33, 40))


@pytest.mark.parametrize("count", [0, 1, -3])
def test_loops_of_no_or_one_iteration(count):
    for function in (box, from_two, size_n):
        compare(function, lambda: (*of_shape(3, 40)[:3], count))


def test_other_types_stay_scalars():
    for dtype in (np.float32, np.int16):
        assert "expand" not in rewrites_of(box, of_shape(33, 40, dtype))
    compare(box, lambda: of_shape(33, 40, np.float32))


def by_place(img, out, col, n):
    for i in range(n):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[int(row) % 7] += row
            out[i, j] = row + col[j]


def test_a_loop_that_stays_serial_keeps_its_scalars():
    assert "expand" not in rewrites_of(by_place, of_shape(33, 40))
    compare(by_place, lambda: of_shape(33, 40))


def test_indices_out_of_bounds_are_told():
    with pytest.raises(IndexError, match=r"leaves `img`(?s:.)*`img.shape\[0\]` is 33"):
        orion.parallel_for(box)(*of_shape(33, 40)[:3], 34)
