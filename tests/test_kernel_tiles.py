"""Tiles: the same bits however the loop is cut, flags between workers, errors that end a walk."""

import threading
import time

import numpy as np
import pytest

from orion.kernel.build.compile import compile_kernel
from orion.kernel.calling import ABORT, CONTROL_SIZE, FLAG_STRIDE, OUT_OF_BOUNDS
from tests.kernel_loops import Ratings, adagrad, argument_value, compiled, make_loop, mf, run_loop

generator = np.random.default_rng(5)
ELEMENTS = 200


def stencil(A, B):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            B[i, j] = 0.2 * (A[i, j] + A[i - 1, j] * A[i + 1, j] - A[i, j - 1] * 0.3 + A[i, j + 1] / 3)


def polynomial(x, y):
    for i in range(len(x)):
        y[i] = (x[i] * 0.7 + 0.1) * x[i] * x[i] - y[i] * 1.1 + np.sqrt(x[i])


def moving_dots(A, x, y):
    for i in range(A.shape[0]):
        s = 0.0
        for k in range(A.shape[1]):
            s += A[i, k] * x[k]
        y[i] = s


def ratings(dtype):
    keys = (generator.integers(0, 9, ELEMENTS).astype(np.int32), generator.integers(0, 7, ELEMENTS).astype(np.int32))
    return Ratings(keys, (generator.normal(size=ELEMENTS).astype(dtype),))


def dense(dtype, *shape):
    return generator.uniform(0.1, 1, size=shape).astype(dtype)


def element_loops():
    for dtype in ("float32", "float64"):
        for length in (7, 32, 100, 301):
            W, H = dense(dtype, 9, length) / length, dense(dtype, 7, length) / length
            yield mf, ratings(dtype), W, H, 0.1, 0.02
            yield adagrad, ratings(dtype), W, H, W + 1, H + 1, 0.1, 0.02


def copies(arguments):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


@pytest.mark.parametrize(
    "case", list(element_loops()), ids=lambda case: f"{case[0].__name__}-{case[2].shape[1]}-{case[2].dtype}"
)
def test_cutting_a_loop_over_elements_keeps_every_bit(case):
    function, *arguments = case
    whole = copies(arguments)
    loop = make_loop(function, *whole)
    walk = compiled(loop)
    run_loop(loop, walk)
    for size in (1, 3, 17):
        cut = copies(arguments)
        run_loop(make_loop(function, *cut), walk, [*range(0, ELEMENTS, size), ELEMENTS])
        for first, second in zip(whole, cut, strict=True):
            if isinstance(first, np.ndarray):
                np.testing.assert_array_equal(first, second)


def range_loops():
    for dtype in ("float32", "float64"):
        yield stencil, dense(dtype, 37, 53), dense(dtype, 37, 53)
        yield polynomial, dense(dtype, 143), dense(dtype, 143)
        yield moving_dots, dense(dtype, 41, 203), dense(dtype, 203), dense(dtype, 41)


@pytest.mark.parametrize("case", list(range_loops()), ids=lambda case: f"{case[0].__name__}-{case[1].dtype}")
@pytest.mark.parametrize("size", [1, 3, 16, 29])
def test_cutting_a_nest_of_ranges_keeps_every_bit(case, size):
    function, *arguments = case
    whole, cut = copies(arguments), copies(arguments)
    loop = make_loop(function, *whole)
    walk = compiled(loop)
    run_loop(loop, walk)
    dims = len(loop.plan.nest.loops)
    edges = [[[k, k + size] for k in range(0, 210, size)] for _ in range(dims)]
    boxes = [[a] for a in edges[0]] if dims == 1 else [[a, b] for a in edges[0] for b in edges[1]]
    run_loop(make_loop(function, *cut), walk, boxes)
    for first, second in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(first, second)


def test_rows_give_the_same_bits_wherever_they_lie():
    function, *arguments = next(element_loops())
    buffer = np.zeros(9 * 7 + 16, np.float32)
    results = []
    for shift in (0, 1, 5):
        moved = copies(arguments)
        view = buffer[shift : shift + 63].reshape(9, 7)
        view[:] = moved[1]
        moved[1] = view
        loop = make_loop(function, *moved)
        run_loop(loop, compiled(loop))
        results.append(view.copy())
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


# ------------------------------------------------------------ which iterations a tile runs


def visits(seen, n):
    for i in range(2, n):
        for j in range(i, 2 * i):
            seen[i, j] += 1


def backwards(seen, n):
    for i in range(n - 1, 0, -3):
        seen[i] += i


def test_boxes_cut_bounds_that_depend_on_outer_variables():
    seen = np.zeros((9, 18), np.int64)
    loop = make_loop(visits, seen, 9)
    run_loop(loop, compiled(loop), [[[0, 5], [3, 6]]])
    expected = np.zeros_like(seen)
    for i in range(2, 5):
        for j in range(i, 2 * i):
            expected[i, j] = 3 <= j < 6
    np.testing.assert_array_equal(seen, expected)


def test_boxes_of_other_steps_count_trips():
    seen = np.zeros(12, np.int64)
    loop = make_loop(backwards, seen, 12)
    run_loop(loop, compiled(loop), [[[1, 3]]])
    assert np.flatnonzero(seen).tolist() == [5, 8]  # 11, 8, 5, 2 are trips 0, 1, 2, 3


# ------------------------------------------------------------ flags


def trace(order, count, tiles):
    for t in range(tiles):
        order[t] = count[0]
        count[0] += 1


def start(loop, kernel, tiles, waits, control, done, round=0):
    """A thread that walks `tiles`; `waits` maps a tile to the (tile, lag) pairs that it waits for."""
    total = len(done) // FLAG_STRIDE
    offsets = np.cumsum([0] + [len(waits.get(t, ())) for t in range(total)])
    pairs = [pair for t in range(total) for pair in waits.get(t, ())]
    arrays = [np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1)]
    arguments = [argument_value(a, loop.values, {}, total) for a in loop.source.arguments]
    boxes = np.array([[[t, t + 1]] for t in range(total)], np.int64)

    def walk():
        block = kernel.walk.block(boxes, control, arguments)  # the closure keeps what it has the addresses of
        kernel.walk(block, np.array(tiles), round, offsets, *arrays, done, control)

    thread = threading.Thread(target=walk, daemon=True)
    thread.start()
    return thread


def flags(tiles):
    return np.zeros(CONTROL_SIZE, np.int64), np.zeros(FLAG_STRIDE * tiles, np.int64)


@pytest.mark.parametrize("round_number", [0, 7])
def test_tiles_wait_for_one_another(round_number):
    tiles = 24
    order, count = np.full(tiles, -1), np.zeros(1, np.int64)
    loop = make_loop(trace, order, count, tiles)
    kernel = compile_kernel(loop.source)
    control, done = flags(tiles)
    done[::FLAG_STRIDE] = round_number
    waits = {t: [(t - 1, 0)] for t in range(1, tiles)}
    threads = [start(loop, kernel, range(w, tiles, 3), waits, control, done, round_number) for w in (2, 1, 0)]
    for thread in threads:
        thread.join(20)
    assert order.tolist() == list(range(tiles))
    assert (done[::FLAG_STRIDE] == round_number + 1).all()


def test_a_lag_is_a_round_that_may_be_behind():
    loop = make_loop(trace, np.zeros(2, np.int64), np.zeros(1, np.int64), 2)
    kernel = compile_kernel(loop.source)
    control, done = flags(2)
    thread = start(loop, kernel, [1], {1: [(0, 1)]}, control, done, 0)
    thread.join(20)
    assert done[FLAG_STRIDE] == 1  # tile 0 has finished no round, and none is needed
    done[:] = 0
    thread = start(loop, kernel, [1], {1: [(0, 1)]}, control, done, 1)
    time.sleep(0.05)
    assert thread.is_alive()
    done[0] = 1
    thread.join(20)
    assert done[FLAG_STRIDE] == 2


def test_a_waiting_walk_leaves_when_it_is_told_to():
    loop = make_loop(trace, np.zeros(2, np.int64), np.zeros(1, np.int64), 2)
    control, done = flags(2)
    thread = start(loop, compile_kernel(loop.source), [1], {1: [(0, 0)]}, control, done)
    time.sleep(0.02)
    assert thread.is_alive()
    control[0] = ABORT
    thread.join(20)
    assert not thread.is_alive()
    assert not done.any()


# ------------------------------------------------------------ errors


def gather(x, index, y):
    for i in range(x.shape[0]):
        x[i] = y[index[i], 1]


@pytest.mark.parametrize("bad", [4, -5, 2**40])
def test_a_subscript_out_of_bounds_ends_the_walk(bad):
    x, index, y = np.zeros(6), np.array([0, 3, -4, bad, 1, 1]), np.arange(8.0).reshape(4, 2)
    loop = make_loop(gather, x, index, y)
    found = run_loop(loop, compiled(loop), [[[0, 3]], [[3, 5]], [[5, 6]]])
    assert found["control"][:5].tolist() == [OUT_OF_BOUNDS, 0, bad, 4, 0]
    assert loop.source.sites[0].array == "y"
    assert loop.source.user.line(loop.source.sites[0].span.line).strip() == "x[i] = y[index[i], 1]"
    assert x.tolist() == [1, 7, 1, 0, 0, 0]
    assert found["done"].tolist() == [1, 0, 0]


def row_gather(x, index, y):
    for i in range(x.shape[0]):
        x[i] = y[index[i]] @ y[index[i]]


def test_rows_out_of_bounds_are_found_before_they_are_loaded():
    y = np.ones((4, 32), np.float32)
    loop = make_loop(row_gather, np.zeros(3, np.float32), np.array([3, -1, 4]), y)
    found = run_loop(loop, compiled(loop))
    assert found["control"][0] == OUT_OF_BOUNDS
    assert loop.values["x"].tolist() == [32, 32, 0]


def unequal(A, B, n):
    for i in range(A.shape[0]):
        A[i] = B[i, :n] * 2


def test_an_error_without_a_code_is_raised_and_stops_the_others():
    loop = make_loop(unequal, np.zeros((3, 4)), np.zeros((3, 9)), 7)
    control, done = flags(1)
    none = np.zeros(0, np.int64)
    arguments = [argument_value(a, loop.values, {}, 1) for a in loop.source.arguments]
    boxes = np.array([[[0, 3]]])
    walk = compiled(loop)
    block = walk.block(boxes, control, arguments)
    with pytest.raises(ValueError, match=r"shape|broadcast|size"):
        walk(block, np.zeros(1, np.int64), 0, np.zeros(2, np.int64), none, none, done, control)
    assert control[0] == ABORT
    assert not done.any()
