"""Random loops over complex numbers that meet integers, floats and one another, compiled, against Python."""

from __future__ import annotations

import random
import re
import warnings

import numpy as np
import pytest

import orion
from tests.loop_text import defined
from tests.trials import TIMES

SEEDS = range(4 * TIMES)
RELATIVE = 1e-9
"""What may cancel is far from it in nearly all elements; single precision is compared by the digits that it has."""


class Maker:
    """Writes a random function over complex arrays a (128 bits) and b (64), arrays of floats and integers, and scalars;
    every value is a number of Python's or of NumPy's, of each width."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self, depth):
        """A complex number."""
        if depth > 2 or self.random.random() < 0.3:
            return self.pick("a[i]", "b[i]", "c", "z", "1j", "(2 - 0.5j)", "s", "g", "t", "complex(i, 1)", "A[i, 2]")
        left, right = self.number(depth + 1), self.pick(self.number, self.real)(depth + 1)
        return self.pick(
            f"({left} + {right})", f"({right} - {left})", f"{left} * {right}", f"{right} * {left}",
            f"{left} / ({right} + 9)", f"{right} / ({left} + 9j)", f"({left}) ** {self.pick(0, 1, 2, 3)}", f"-{left}",
            f"({left}).conjugate()", f"np.conj({left})", f"np.exp(0.01 * {left})",
            f"({left} if {self.test()} else {right} + 0j)",
            f"complex({self.real(depth + 1)}, {self.real(depth + 1)})", f"np.sqrt({left})", f"np.complex64({right})",
        )  # fmt: skip

    def real(self, depth):
        if depth > 2 or self.random.random() < 0.4:
            return self.pick(
                "x[i]", "k[i]", "f[i]", "i", "n", "r", "2", "0.5", "z.imag", "a[i].real", "b[i].imag", "c.real"
            )
        left, right = self.number(depth + 1), self.real(depth + 1)
        return self.pick(
            f"abs({left})", f"({left}).real", f"({left}).imag", f"({right} + 1)", f"np.abs({left})", f"{right} * 0.5"
        )

    def test(self):
        return self.pick(
            f"abs({self.number(2)}) > 1.5",
            "a[i] == b[i]",
            f"{self.real(2)} < {self.real(2)}",
            "z != 0",
            "a[i]",
            "i % 3 == 0",
        )

    def statement(self):
        return self.pick(
            f"z = {self.number(0)}", f"t = {self.number(0)} + 0j", f"out[i] = {self.number(0)}",
            f"out[i] += {self.number(1)}",
            f"narrow[i] = {self.number(0)}", f"real[i] = {self.real(0)}", f"real[i] += {self.real(1)}",
            f"out[i] *= {self.number(1)}",
            f"out[i] /= 9 + {self.number(2)}", f"total += {self.number(1)}", f"size += {self.real(1)}",
            f"A[i, 1] = {self.number(0)}",
            f"if {self.test()}:\n            out[i] = {self.number(0)}",
            f"for j in range(3):\n            z = 0.5 * z + {self.number(1)}",
        )  # fmt: skip

    def function(self):
        lines = [f"        {self.statement()}" for _ in range(self.random.randint(2, 5))]
        start = "    total, size, s, g = 0j, 0.0, c * 2, np.complex64(r)\n    for i in range(n):\n"
        head = "def f(a, b, A, x, k, f, c, r, n, out, narrow, real):\n" + start
        first = f"        z = {self.pick('a[i]', 'b[i] * 1', '0j', '1.0', '0')}\n        t = a[i]\n"
        return head + first + "\n".join(lines) + "\n    return total, size\n"


def given():
    rng = np.random.default_rng(8)

    def numbers(*shape):
        return rng.normal(size=(*shape, 2)).view(complex)[..., 0]

    return {
        "a": numbers(40), "b": numbers(40).astype(np.complex64), "A": numbers(40, 3), "x": rng.normal(size=40),
        "k": rng.integers(-5, 6, 40).astype(np.int8), "f": rng.normal(size=40).astype(np.float32), "c": 0.5 + 1j,
        "r": 1.5, "n": 40, "out": numbers(40), "narrow": np.zeros(40, np.complex64), "real": np.zeros(40),
    }  # fmt: skip


def difference(text):
    """Where a random function and its loops differ, in words; empty where they do not."""
    function = defined(text)
    mine, its = given(), given()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = function(**its)
        found = orion.parallel_for(function)(**mine)
    if [np.iscomplexobj(one) for one in found] != [np.iscomplexobj(one) for one in want]:
        return f"types {[type(one) for one in found]}, {[type(one) for one in want]} in Python"
    is_narrow = re.search(r"b\[|f\[|\bg\b|64", text.partition("for i in")[2])
    for name, one, other in [
        ("results", found, want),
        *((name, mine[name], its[name]) for name in ("out", "narrow", "real", "A")),
    ]:
        eps = 3e-4 if is_narrow or name == "narrow" else RELATIVE
        with np.errstate(all="ignore"):
            off = np.abs(np.asarray(one) - np.asarray(other)) / (np.abs(other) + 1)
        if (np.isnan(one) != np.isnan(other)).any() or np.nanmax(off, initial=0.0) > eps:
            return f"{name}: {one} is {other} in Python"
    return ""


@pytest.mark.parametrize("seed", SEEDS)
def test_is_what_python_gives(seed):
    text = Maker(seed).function()
    try:
        assert not difference(text), text
    except orion.OrionError as error:
        raise AssertionError(text) from error
