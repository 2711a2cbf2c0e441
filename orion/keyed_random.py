"""Random numbers in the bodies of loops: each is a function of a seed and a key, so that no draw depends on another.

`orion.random(seed, i, j)` is the same number whenever it is drawn, by whichever worker, in whatever order: in Python,
in compiled loops, and on every machine. The bits come from Threefry-2x64 with 20 rounds (Salmon et al., "Parallel
random numbers: as easy as 1, 2, 3", SC 2011), one block for up to two keys; more are taken in two at a time, each block
being encrypted with the one before. What is drawn and how many keys there are is a part of the cipher's key, so that
`random(7, 1)`, `random(7, 1, 0)` and `random.normal(7, 1)` are independent.

All of it is written once, for Python and for Numba (`orion.kernel.support.keyed`). Of floats the normal distribution
needs sums, products, quotients and roots alone, which every machine rounds alike.
"""

from __future__ import annotations

import math
from operator import index
from types import ModuleType

from orion.errors import ArgumentError, describe

EVERY = 2**64 - 1
PARITY = 0x1BD11BDAA9FC1A22
"""The constant of Threefry's key schedule."""

EVEN, ODD = (16, 42, 12, 31), (16, 32, 24, 21)
"""By how many bits the second word is turned in each of four rounds; the two take turns."""

KINDS = 8
"""More than there are kinds of numbers to draw."""

MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip
"""Numerators and denominators of the quantile of the normal distribution, in the middle, in the tails, and where fewer
than one in 10¹⁰ lie (Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988)."""

SERIES = tuple(2.0 / k for k in range(1, 27, 2))
"""Terms of log((1 + s) / (1 - s)) by powers of s²: enough for |s| < 0.172."""


def word(value: int) -> int:
    """The 64 bits of an integer, as one without a sign. Compiled functions have NumPy's type instead."""
    return int(value) & EVERY


def signed(value: int) -> int:
    """The integer with these bits that has a sign, as all that are drawn fit."""
    return value


# ------------------------------------------------------------ compiled, too: what is in COMPILED


def mixed(x: int, y: int, turn: tuple[int, int, int, int], step: int) -> tuple[int, int]:
    """One round of Threefry."""
    left = word(turn[step])
    x = (x + y) & EVERY
    return x, ((y << left | y >> (word(64) - left)) & EVERY) ^ x


def four_rounds(x: int, y: int, turn: tuple[int, int, int, int], first: int, second: int) -> tuple[int, int]:
    """Four rounds, and the addition of a part of the key."""
    for step in range(4):
        x, y = mixed(x, y, turn, step)
    return (x + first) & EVERY, (y + second) & EVERY


def block(key: int, other: int, x: int, y: int) -> tuple[int, int]:
    """Threefry-2x64-20: the words x and y, encrypted with two words of a key."""
    third = word(PARITY) ^ key ^ other
    x, y = (x + key) & EVERY, (y + other) & EVERY
    x, y = four_rounds(x, y, EVEN, other, third + word(1))
    x, y = four_rounds(x, y, ODD, third, key + word(2))
    x, y = four_rounds(x, y, EVEN, key, other + word(3))
    x, y = four_rounds(x, y, ODD, other, third + word(4))
    return four_rounds(x, y, EVEN, third, key + word(5))


def drawn(kind: int, seed: int, count: int, keys: tuple[int, ...]) -> tuple[int, int]:
    """128 random bits. `count` is the number of keys, which are an even number with the zeros after them."""
    x, y = word(seed), word(count) * word(KINDS) + word(kind)
    for at in range(0, len(keys), 2):
        x, y = block(x, y, word(keys[at]), word(keys[at + 1]))
    return x, y


def polynomial(x: float, terms: tuple[float, ...]) -> float:
    value = terms[-1]
    for number in range(len(terms) - 2, -1, -1):
        value = value * x + terms[number]
    return value


def logarithm(x: float) -> float:
    """log(x), rounded alike everywhere: x = m · 2ᵉ, and log(m) by the series of log((1 + s) / (1 - s))."""
    part, power = math.frexp(x)
    if part < 0.7071067811865476:
        part, power = part * 2.0, power - 1
    s = (part - 1.0) / (part + 1.0)
    return power * 0.6931471805599453 + s * polynomial(s * s, SERIES)


def quantile(p: float) -> float:
    """The number below which a number from the normal distribution is with the probability p."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * polynomial(r, MIDDLE[0]) / polynomial(r, MIDDLE[1])
    r = math.sqrt(-logarithm(p if q < 0.0 else 1.0 - p))
    if r <= 5.0:
        x = polynomial(r - 1.6, TAIL[0]) / polynomial(r - 1.6, TAIL[1])
    else:
        x = polynomial(r - 5.0, FAR[0]) / polynomial(r - 5.0, FAR[1])
    return -x if q < 0.0 else x


def high_product(a: int, b: int) -> int:
    """The upper 64 of the 128 bits of a product."""
    half, low_half = word(32), word(2**32 - 1)
    high, low, more, less = a >> half, a & low_half, b >> half, b & low_half
    cross = high * less + (low * less >> half)
    middle = low * more + (cross & low_half)
    return high * more + (cross >> half) + (middle >> half)


def uniform_of(seed: int, count: int, keys: tuple[int, ...]) -> float:
    """`orion.random`; of 2⁵³ numbers."""
    x, _ = drawn(0, seed, count, keys)
    return float(x >> word(11)) * 2.0**-53


def normal_of(seed: int, count: int, keys: tuple[int, ...]) -> float:
    """`orion.random.normal`: the quantile in the middle of one of 2⁵² intervals."""
    x, _ = drawn(1, seed, count, keys)
    return quantile((float(x >> word(12)) + 0.5) * 2.0**-52)


def integer_of(low: int, high: int, seed: int, count: int, keys: tuple[int, ...]) -> int:
    """`orion.random.integers`: low + ⌊(high - low) · r / 2¹²⁸⌋ for the 128 bits r."""
    x, y = drawn(2, seed, count, keys)
    width = (word(high) - word(low)) & EVERY
    below = high_product(width, y)
    carry = word(1) if ((width * x + below) & EVERY) < below else word(0)
    return signed(low) + signed(high_product(width, x) + carry)


COMPILED = (
    mixed, four_rounds, block, drawn, polynomial, logarithm, quantile, high_product, uniform_of, normal_of, integer_of,
)  # fmt: skip
"""Each after those that it calls."""


# ------------------------------------------------------------ for users


class Random(ModuleType):
    """Draw a random number by key: `orion.random(seed, *key)` is a float, uniform in [0, 1), with 53 random bits.

    The number depends on its arguments alone. It is the same in Python and in loops, on any worker, in any order.

    - `seed`: an integer of 64 bits, with or without a sign.
    - `key`: any number of such integers, such as the variables of a loop.

    Errors: `ArgumentError` for anything else.

    Source: Threefry, of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

    >>> import orion
    >>> orion.random(7, 0, 1) == orion.random(7, 0, 1), orion.random(7, 0, 1) == orion.random(7, 1, 0)
    (True, False)
    """

    def __call__(self, seed: int, *key: int) -> float:
        return uniform_of(*_checked(seed, key))

    @staticmethod
    def normal(seed: int, *key: int) -> float:
        """Draw a float with a normal distribution, of mean 0 and standard deviation 1.

        It is the quantile at one of 2⁵² places (Wichura, "Algorithm AS 241", 1988). Errors are those of `orion.random`.

        >>> import orion
        >>> draws = [orion.random.normal(7, i) for i in range(1000)]
        >>> abs(sum(draws) / 1000) < 0.1
        True
        """
        return normal_of(*_checked(seed, key))

    @staticmethod
    def integers(low: int, high: int, seed: int, *key: int) -> int:
        """Draw an integer from [low, high), uniform but for less than one in 2⁶⁴ draws.

        `ArgumentError` where the range is empty.

        >>> import orion
        >>> sorted({orion.random.integers(-1, 2, 7, i) for i in range(100)})
        [-1, 0, 1]
        """
        low, high = _integer(low), _integer(high)
        if low >= high:
            raise ArgumentError(describe(nothing_between(low, high), hint="`high` itself is never drawn"))
        return integer_of(low, high, *_checked(seed, key))


random = Random("orion.random")
KEYED = (("orion.random", random), ("orion.random.normal", Random.normal), ("orion.random.integers", Random.integers))
"""The names of the functions in the loop language."""


def nothing_between(low: int, high: int) -> str:
    return f"random integers from {low} to {high}: there is none below the higher end"


def padding(count: int) -> int:
    """Return the number of zeros after so many keys: a block takes two, and there is at least one block.

    >>> padding(0), padding(1), padding(2), padding(3)
    (2, 1, 0, 1)
    """
    return count % 2 if count else 2


def _checked(seed: int, key: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
    return _integer(seed), len(key), (*map(_integer, key), *[0] * padding(len(key)))


def _integer(value: int) -> int:
    try:
        found = index(value)
    except TypeError:
        what = f"{value!r} is no integer: seeds, keys and limits of `orion.random` are"
        raise ArgumentError(describe(what, hint="convert it first: `int(x)`")) from None
    if not -(2**63) <= found < 2**64:
        raise ArgumentError(describe(f"{found} does not fit 64 bits", hint="give further digits as another key"))
    return found
