"""Random numbers by key: the published cipher, the distributions, and the same bits wherever they are drawn."""

from __future__ import annotations

import math
import random
import statistics

import numpy as np
import pytest

import orion
from orion import keyed_random
from orion.keyed_random import EVERY, block, drawn, high_product, logarithm, quantile

VECTORS = [  # of the Random123 distribution, for threefry2x64 with 20 rounds
    ((0, 0), (0, 0), (0xC2B6E3A8C2C69865, 0x6F81ED42F350084D)),
    ((EVERY, EVERY), (EVERY, EVERY), (0xE02CB7C4D95D277A, 0xD06633D0893B8B68)),
    (
        (0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x243F6A8885A308D3, 0x13198A2E03707344),
        (0x263C7D30BB0F0AF1, 0x56BE8361D3311526),
    ),
]


@pytest.mark.parametrize(("key", "counter", "expected"), VECTORS)
def test_the_cipher_gives_its_published_numbers(key, counter, expected):
    assert block(*key, *counter) == expected


def test_arithmetic():
    numbers = random.Random(0)
    for _ in range(2000):
        a, b = numbers.getrandbits(64), numbers.getrandbits(numbers.randint(1, 64))
        assert high_product(a, b) == a * b >> 64
        x = numbers.random() * 10.0 ** numbers.randint(-300, 5)
        assert logarithm(x) == pytest.approx(math.log(x), rel=4e-16, abs=1e-16)
        p = min(max(x % 1.0, 1e-18), 1 - 1e-16)
        assert quantile(p) == pytest.approx(statistics.NormalDist().inv_cdf(p), rel=1e-15, abs=1e-16)


def test_integers_are_the_upper_bits_of_a_product():
    numbers = random.Random(1)
    for _ in range(500):
        low = numbers.randint(-(2**63), 2**63 - 2)
        high = numbers.randint(low + 1, 2**63 - 1)
        x, y = drawn(2, 5, 1, (low, 0))
        assert orion.random.integers(low, high, 5, low) == low + ((high - low) * (x << 64 | y) >> 128)
    assert orion.random.integers(3, 4, 0) == 3


def test_distributions():
    """The greatest distance of 4,000 numbers from the distribution is not above the 99.9 % point of Kolmogorov's."""
    count = 4000
    uniform = sorted(orion.random(11, i) for i in range(count))
    normal = sorted(statistics.NormalDist().cdf(orion.random.normal(11, i)) for i in range(count))
    whole = sorted((orion.random.integers(-500, 500, 11, i) + 500.5) / 1000 for i in range(count))
    for found in (uniform, normal, whole):
        assert 0.0 <= found[0] <= found[-1] < 1.0
        distance = max(max(abs(value - i / count), abs(value - (i + 1) / count)) for i, value in enumerate(found))
        assert distance < 1.95 / math.sqrt(count) + 1e-3


def test_each_seed_key_number_of_keys_and_kind_has_its_own():
    keys = [
        (),
        (0,),
        (1,),
        (0, 0),
        (0, 1),
        (1, 0),
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 0, 0),
        (0, 1, 0, 0),
        (-1,),
        (2**64 - 2,),
    ]
    draws = {draw(seed, *key) for seed in (0, 1, -1) for key in keys for draw in (orion.random, orion.random.normal)}
    assert len(draws) == 2 * 3 * len(keys)
    assert orion.random(-1, -2) == orion.random(2**64 - 1, 2**64 - 2) == orion.random(np.int8(-1), np.int8(-2))


@pytest.mark.parametrize("given", [(0.5,), (1, 2.0), ("a",), (2**64,), (0, -(2**63) - 1), (None,)])
def test_what_is_no_integer_of_64_bits_is_refused(given):
    for draw in (orion.random, orion.random.normal):
        with pytest.raises(orion.ArgumentError, match=r"no integer|64 bits"):
            draw(*given)


# ------------------------------------------------------------ in loops


def noise(seed, i):
    return orion.random.normal(seed, i, 1) + orion.random.integers(-2, 3, seed, i)


def drawn_in_loops(x, y, counts, ids, seed, n):
    hits = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = orion.random(seed, i, j) + 2 * orion.random.normal(seed, ids[i], j, 3) + orion.random(seed)
        y[i] = noise(seed, ids[i])
        if orion.random(seed, i) < 0.25:
            hits += 1
    for i in range(n):
        counts[orion.random.integers(0, 10, seed, i)] += 1
    return hits


def arguments(dtype, seed=9):
    ids = np.random.default_rng(0).permutation(60).astype(np.uint8)
    return np.zeros((60, 7), dtype), np.zeros(60, dtype), np.zeros(10, np.int64), ids, seed, 500


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_loops_draw_what_python_draws(workers, dtype):
    check(dtype, workers=workers, force_parallel=True)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_loops_on_ray_draw_what_python_draws():
    check(np.float64, backend="ray", workers=2, force_parallel=True)


def check(dtype, **session):
    mine, its = arguments(dtype), arguments(dtype)
    looped = orion.parallel_for(drawn_in_loops)
    with orion.session(**session):
        assert looped(*mine) == drawn_in_loops(*its)
        assert all(loop.is_parallel for loop in looped.plan(*mine).loops)
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_array_equal(one, other)


def too_low(x, seed):
    for i in range(x.shape[0]):
        x[i] = orion.random.integers(3, 6 - i, seed, i)


def of_floats(x, seed):
    for i in range(x.shape[0]):
        x[i] = orion.random(seed, 0.5 * i)


def too_few(x, seed):
    for i in range(x.shape[0]):
        x[i] = orion.random.integers(seed, i)


def listed(n, seed):
    found = []
    for i in range(n):
        if i != 3:
            found.append(orion.random(seed, i))
    found.sort()
    return found


REFUSALS = [
    (too_low, orion.ArgumentError, r"random integers from 3 to 3.*x\[i\] = .*`high` itself is never drawn"),
    (of_floats, orion.UnsupportedLoopError, r"`orion.random` of float64.*x\[i\] = .*integers.*`int"),
    (too_few, orion.UnsupportedLoopError, "is given no seed"),
]


@pytest.mark.parametrize(("function", "kind", "text"), REFUSALS, ids=lambda value: getattr(value, "__name__", ""))
def test_bad_draws_are_told(function, kind, text):
    with orion.session(workers=2), pytest.raises(kind, match=rf"(?s){text}"):
        orion.parallel_for(function)(np.zeros(10), 3)


def test_a_function_that_cannot_be_analysed_says_so():
    with pytest.raises(orion.UnsupportedLoopError) as caught:
        orion.parallel_for(listed)(10, 3)
    assert any("analysed alone" in note for note in caught.value.__notes__)


rng = np.random.default_rng(0)
state = random.Random(0)


def drawn_by_module(x):
    for i in range(x.shape[0]):
        x[i] = np.random.randint(10)


def drawn_by_generator(x):
    for i in range(x.shape[0]):
        x[i] = rng.standard_normal()


def drawn_by_python(x):
    for i in range(x.shape[0]):
        x[i] = state.random()


def drawn_by_argument(x, state):
    for i in range(x.shape[0]):
        x[i] = state.normal()


INSTEAD = [
    (drawn_by_module, (), r"orion\.random\.integers\(low, high, seed, i\)"),
    (drawn_by_generator, (), r"orion\.random\.normal\(seed, i\)"),
    (drawn_by_python, (), r"orion\.random\(seed, i\)"),
    (drawn_by_argument, (np.ones(3),), r"orion\.random\.normal\(seed, i\)"),
]


@pytest.mark.parametrize(("function", "more", "hint"), INSTEAD, ids=lambda value: getattr(value, "__name__", ""))
def test_hidden_generators_are_refused_with_what_to_write(function, more, hint):
    with pytest.raises(orion.UnsupportedLoopError, match=hint):
        orion.parallel_for(function)(np.zeros(10), *more)


def test_the_module_is_what_users_see():
    assert keyed_random.random is orion.random
    assert "orion.random" in repr(orion.random)
