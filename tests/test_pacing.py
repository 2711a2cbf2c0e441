"""`orion.pacing`: what it takes, and which rows go first."""

import re

import numpy as np
import pytest

import orion
from orion.arrays.sending import Sending
from orion.runtime.ray.carrier import least_of
from orion.runtime.ray.choice import MOST_BATCHES, Choice


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, Sending("magnitude", 100_000, 0.0)),
        ({"bandwidth": "40Mbit/s"}, Sending("magnitude", 100_000, 5e6)),
        ({"bandwidth": "1.5 gbit/s", "batch": "1KiB", "order": "fifo"}, Sending("fifo", 1024, 1.875e8)),
        ({"bandwidth": 8000, "batch": 7}, Sending("magnitude", 7, 1000.0)),
        ({"bandwidth": "measured", "order": "random"}, Sending("random", 100_000, 0.0)),
    ],
)
def test_what_it_takes(given, found):
    assert orion.pacing(**given) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": "largest"}, "'magnitude', 'round_robin', 'random', 'fifo'"),
        ({"bandwidth": "fast"}, "40Mbit/s"),
        ({"bandwidth": 0}, "`bandwidth=0`"),
        ({"bandwidth": True}, "`bandwidth=True`"),
        ({"bandwidth": float("inf")}, "`bandwidth=inf`"),
        ({"bandwidth": "40MB/s"}, "bits per second"),
        ({"batch": 0}, "`batch=0`"),
        ({"batch": "1 furlong"}, "no number of bytes"),
    ],
)
def test_what_it_refuses(given, message):
    with pytest.raises(orion.ArgumentError, match=re.escape(message)):
        orion.pacing(**given)
    with pytest.raises(orion.ArgumentError, match=r"send=orion.pacing"):
        orion.buffer(np.zeros(3), send="magnitude")


def chosen(order, weights, count, told=()):
    choice = Choice(Sending(order, 100, 0.0), len(weights), 1.0)
    for rows in told:
        choice.weights[:] = weights
        choice.first(count)
        choice.told(np.array(rows))
    choice.weights[:] = weights
    return choice.first(count).tolist()


def test_the_rows_that_come_first():
    weights = np.array([0.0, 3.0, 1.0, 0.0, 9.0, 2.0])
    assert chosen("magnitude", weights, 3) == [4, 1, 5]
    assert chosen("magnitude", weights, 100) == [4, 1, 5, 2]
    assert chosen("round_robin", weights, 2) == [1, 2]
    assert chosen("round_robin", weights, 3, [[1, 2]]) == [4, 5, 1]
    assert chosen("fifo", weights, 100, [[1, 2]]) == [4, 5, 1, 2]  # the others have waited for longer
    assert sorted(chosen("random", weights, 100)) == [1, 2, 4, 5]
    assert len({tuple(chosen("random", np.ones(50), 3, [[0]] * k)) for k in range(9)}) > 5
    assert all(chosen(order, np.zeros(4), 3) == [] for order in ("magnitude", "round_robin", "random", "fifo"))


def test_looks_take_a_small_share_of_the_time():
    choice = Choice(Sending("magnitude", 100, 0.0), 10, 1.0)
    for _ in range(20):
        choice.note_look(50, 100 * choice.batches, 0.05)  # each message takes twice as long as a look
    assert choice.batches == 16  # 50 of 1,600 are less than a twentieth
    for _ in range(20):
        choice.note_look(50, 100, 0.05)
    assert choice.batches == MOST_BATCHES
    for _ in range(20):
        choice.note_look(1, 10_000, 0.05)
    assert choice.batches == 1


def test_small_values_are_taken_for_larger_ones():
    assert least_of(np.array([1.0, -3.0])) == 0.02
    assert least_of(np.zeros(4)) == least_of(np.zeros(0)) == least_of(np.array([np.nan, 1.0])) == 1.0
    assert least_of(np.array([100, 200], np.uint16)) == 1.5


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16", "uint32"])
def test_importance_and_differences(dtype):
    from orion.kernel.support.carried import RUNS, add, take, weigh

    base = np.array([1, 2, 4, 8, 0, 6, 7], dtype)
    now = base.copy()
    now[[1, 4, 6]] += np.array([2, 3, 7], dtype)
    weights = np.zeros(3)
    assert weigh(now, base, 3, 0.5, np.arange(3), weights) == 3
    np.testing.assert_allclose(weights, [2 / 4, 3 / 3, 7 / 14])
    told = np.full((2, 3), 9, dtype)
    take(now, base, 3, np.array([2, 0]), told)
    np.testing.assert_array_equal(told, [[7, 0, 0], [0, 2, 0]])  # the last row is shorter
    assert weigh(now, base, 3, 0.5, np.arange(3), weights) == 1
    locks, control = np.zeros(8 * 1024, np.int64), np.zeros(8, np.int64)
    others, known = np.arange(7).astype(dtype), np.arange(7).astype(dtype)
    for together in (1, 3, RUNS, 0):
        assert add(others, known, 3, 7, np.array([2, 0]), told, together, locks, control)
    np.testing.assert_array_equal(others, np.arange(7) + 4 * np.array([0, 2, 0, 0, 0, 0, 7]))
    np.testing.assert_array_equal(others, known)
    assert not locks.any()


def test_what_is_infinite_or_no_number_is_told_once():
    from orion.kernel.support.carried import take, weigh

    base, now, weights = np.array([0.0, np.inf, np.nan, 1.0]), np.array([np.inf, np.inf, np.nan, np.nan]), np.zeros(4)
    assert weigh(now, base, 1, 1.0, np.arange(4), weights) == 2
    told = np.zeros((4, 1))
    take(now, base, 1, np.arange(4), told)
    np.testing.assert_array_equal(told[:, 0], [np.inf, 0, np.nan, np.nan])
    assert weigh(now, base, 1, 1.0, np.arange(4), weights) == 0
