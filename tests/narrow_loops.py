"""Random loops that compute subscripts, bounds, steps, slices, tests and values with integers of all dtypes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import orion
from orion.errors import ArgumentError, OrionError, UnsupportedLoopError
from tests.loop_text import defined

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "python")
NAMES = ("n", "m")
MOST_TRIPS = 2_000
BEFORE, LENGTH, AFTER = 400, 300, 400
GUARD = -7.0
PLACES = ("subscript", "read", "bound", "both bounds", "step", "slice", "row", "test", "value", "name", "inner", "sum")


class TooManyTripsError(Exception):
    """The loop would run too long in plain Python."""


@dataclass(frozen=True)
class NarrowLoop:
    """A function of `a` (one dimension), `b` (two), `x` (integers of a dtype), and the integers n and m."""

    text: str
    integers: tuple[Any, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.text}\n# n, m = {', '.join(map(repr, self.integers))}; x is {self.dtype}"


def random_loop(seed: int) -> NarrowLoop:
    """The loop of a number: always the same."""
    rng = random.Random(seed)
    integers = tuple(_integer(rng, rng.choice(DTYPES)) for _ in NAMES)
    dtype = rng.choice(DTYPES[:-1])
    return NarrowLoop("\n".join(_lines(rng, rng.choice(PLACES))) + "\n", integers, dtype)


def _integer(rng: random.Random, dtype: str) -> Any:
    if dtype in ("python", "int64"):
        value = rng.choice([*range(-4, 12), 60, 100, 127, 128, 200, 299, -128, 2**31 - 1, 2**31, 2**40])
        return value if dtype == "python" else np.int64(value)
    limits = np.iinfo(dtype)
    least, most = int(limits.min), int(limits.max)
    near = [least, least + 1, most, most - 1, most // 2, most // 2 + 1, 100, 127]
    value = rng.choice([*range(12), *(v for v in [*near, -1, -2, -5] if least <= v <= most)])
    return np.dtype(dtype).type(value)


def _lines(rng: random.Random, place: str) -> Iterator[str]:
    e = lambda *names: _expression(rng, (*NAMES, *names), rng.randint(1, 3))  # noqa: E731
    yield "def f(a, b, x, n, m):"
    yield "    s = 0"
    loop = f"    for i in range({rng.randint(1, 12)}):"
    match place:
        case "subscript":
            yield from (loop, f"        a[{e('i')}] += i + 1")
        case "read":
            yield from (loop, f"        a[i] = a[{e('i')}] + a[x[i] + {e()}] + a[int(x[i]) + {e('i')}]")
        case "bound":
            yield from (f"    for i in range({e()}):", "        a[i] += 1")
        case "both bounds":
            yield from (f"    for i in range({e()}, {e()}):", "        a[i] += 1")
        case "step":
            yield from (f"    for i in range(0, 40, {e()}):", "        a[i] += 1")
        case "slice":
            yield from (loop, f"        a[{e('i')}:{e('i')}] += i")
        case "row":
            yield from (loop, f"        b[i, {e('i')}:{e('i')}] += i + 1")
        case "test":
            yield from (loop, f"        if {e('i')} {rng.choice(['<', '>=', '=='])} {e('i')}:", "            a[i] += 1")
        case "value":
            yield from (loop, f"        a[i] = {e('i')}")
        case "name":
            yield from (f"    k = {e()}", loop, f"        j = {e('i', 'k')}", f"        a[{e('i', 'j', 'k')}] += 1")
        case "inner":
            yield from (loop, f"        for j in range({e('i')}, {e('i')}):", "            b[i, j] += 1")
        case _:
            yield from (loop, f"        s += int({e('i')}) * i")
    yield "    return s"


def expressions(rng: random.Random, names: tuple[str, ...]) -> str:
    """An expression of integers that may be affine."""
    return _expression(rng, names, rng.randint(1, 5))


def _expression(rng: random.Random, names: tuple[str, ...], size: int) -> str:
    if size <= 1:
        return rng.choice([*names, *names, str(rng.randint(0, 5))])
    left = rng.randint(1, size - 1)
    one, other = _expression(rng, names, left), _expression(rng, names, size - left)
    number = rng.randint(1, 4)
    return rng.choice([
        f"({one} + {other})", f"({one} + {other})", f"({one} - {other})", f"({one} - {other})", f"(-{one} + {other})",
        f"({one} * {number})", f"({number} * {one})", f"({one} * -{number})", f"({one} // {number})",
        f"({one} % {number})", f"min(int({one}), int({other}))", f"max(int({one}), int({other}))",
        f"abs({one})", f"({one} << 1)", f"(int({one}) + {other})",
    ])  # fmt: skip


# ---------------------------------------------------------------- what is compared


def few(*bounds: int) -> range:
    found = range(*bounds)
    if found.start < found.stop and found.step > 0 and (found.stop - found.start) // found.step > MOST_TRIPS:
        raise TooManyTripsError
    if found.start > found.stop and found.step < 0 and (found.start - found.stop) // -found.step > MOST_TRIPS:
        raise TooManyTripsError
    return found


class Memory:
    """The arrays of a call, each inside of a larger one."""

    def __init__(self, dtype: str) -> None:
        rng = np.random.default_rng(3)
        self.whole = np.full(BEFORE + LENGTH + AFTER, GUARD)
        self.a = self.whole[BEFORE : BEFORE + LENGTH]
        self.a[:] = rng.integers(0, 9, LENGTH)
        self.rows = np.full((16 + 12 + 16, 200 + 80 + 200), GUARD)
        self.b = self.rows[16:28, 200:280]
        self.b[:] = rng.integers(0, 9, self.b.shape)
        self.x = rng.integers(0, 100, 12).astype(dtype)

    def same_as(self, other: Memory) -> bool:
        return np.array_equal(self.whole, other.whole) and np.array_equal(self.rows, other.rows)

    def is_guarded(self) -> bool:
        """Whether nothing outside of the arrays was written."""
        whole, rows = self.whole.copy(), self.rows.copy()
        whole[BEFORE : BEFORE + LENGTH] = GUARD
        rows[16:28, 200:280] = GUARD
        return bool((whole == GUARD).all() and (rows == GUARD).all())


def problem(loop: NarrowLoop, workers: int) -> str | None:
    """What is wrong with a loop, compared with the undecorated function; None where nothing is. "skipped" and "refused"
    are no problems."""
    wanted, found = Memory(loop.dtype), Memory(loop.dtype)
    plain = defined(loop.text, range=few)
    error: Exception | None = None
    result = None
    try:
        with np.errstate(all="ignore"):
            result = plain(wanted.a, wanted.b, wanted.x, *loop.integers)
    except TooManyTripsError:
        return "skipped"
    except Exception as raised:
        error = raised
    try:
        with orion.session("threads", workers=workers, force_parallel=True):
            other = orion.parallel_for(defined(loop.text))(found.a, found.b, found.x, *loop.integers)
    except (UnsupportedLoopError, ArgumentError):
        return "refused" if found.is_guarded() else "written outside, and refused"
    except (OrionError, OverflowError, ValueError, ZeroDivisionError, IndexError) as raised:
        if not found.is_guarded():
            return f"written outside of an array, and then {raised}"
        return None if error is not None else f"raises {type(raised).__name__}: {raised}"
    if not found.is_guarded():
        return "written outside of an array"
    if error is not None:
        return f"does not raise {type(error).__name__}: {error}"
    if not wanted.same_as(found):
        return "other elements"
    return None if _same(result, other) else f"returns {other!r} for {result!r}"


def _same(one: Any, other: Any) -> bool:
    return bool(one == other)
