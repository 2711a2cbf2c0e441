"""Functions of elements and operators of special values: zeros of both signs, infinities, NaN, subnormal numbers.

Compared with the undecorated function: where it gives a NaN, a zero of that sign or an infinity, so does the compiled
one, and other values are near. What differs is listed in `docs/project/decisions.md`, and here in `OTHERWISE`.
"""

import importlib.util
import itertools

import numpy as np
import pytest

import orion
from orion.typing.functions import is_elementwise

pytestmark = [
    pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

VALUES = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-40, -1e-310, -3.7, 1e300,
    2.0**60, 1.1, 100.0,
]  # fmt: skip
NAMES = sorted(n for n in dir(np) if is_elementwise(f"np.{n}") and getattr(np, n).__name__ == n)
OPERATORS = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / {y}", "{x} // {y}", "{x} % {y}", "-{x}", "0 - {x}", "{x} * 0",
    "{x} ** 2", "abs({x})", "{x} // 2", "2.0 % {y}", "np.round({x})", "np.clip({x}, -1.0, {y})",
    "np.where({x} > {y}, {x}, -{y})", "{x} + 0.0", "np.clip({x}, {y}, 0.0)", "{x} ** 0.5",
]  # fmt: skip
SCALARS = [
    "min({x}, {y})", "max({x}, {y})", "min({x}, 0.0, {y})", "max(0, {x})", "-float({x})", "0 - float({x})",
    "float({x}) % (float({y}) if {y} != 0 else 1.0)", "float({x}) // (float({y}) if {y} != 0 else 1.0)",
    "math.copysign(1.0, {x})", "math.fabs({x})", "math.atan2({x}, {y})", "float({x}) * 0", "abs(float({x}))",
    "{x} if {x} > {y} else {y}",
]  # fmt: skip

OTHERWISE = {
    "np.power({x}, {y})": lambda x, y: y == 0.5,  # NumPy takes the square root where the exponent is a scalar
    "np.fmax({x}, {y})": lambda x, y: (x == 0) & (y == 0),  # one zero for scalars, the other for rows
    "np.fmin({x}, {y})": lambda x, y: (x == 0) & (y == 0),
    "np.clip({x}, -1.0, {y})": lambda x, y: (x == 0) & (y == 0),
    "np.clip({x}, {y}, 0.0)": lambda x, y: np.maximum(x, y) == 0,
}


def groups(dtype):
    """Expressions by the dtype of their values: a dozen are compiled together."""
    one = np.ones(2, dtype)
    found = {}
    for name in NAMES:
        ufunc = getattr(np, name)
        try:
            kind = ufunc(*[one] * ufunc.nin).dtype.name
        except TypeError:
            continue
        found.setdefault(kind, []).append(f"np.{name}({'{x}, {y}' if ufunc.nin == 2 else '{x}'})")
    found[dtype] += OPERATORS
    for kind, texts in found.items():
        yield from ((kind, texts[k : k + 12]) for k in range(0, len(texts), 12))


def function(texts, place, folder):
    """A loop that stores the value of each text at its own place of `z`."""
    lines = [f"        z[{k}, {place}] = " + t.format(x=f"x[{place}]", y=f"y[{place}]") for k, t in enumerate(texts)]
    head = "import math\nimport numpy as np\n\ndef f(x, y, z):\n    for i in range(x.shape[0]):\n"
    path = folder / "generated.py"
    path.write_text(head + "\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def check(kind, texts, place, x, y, folder):
    made = function(texts, place, folder)
    order = "F" if x.ndim == 2 and not x.flags.c_contiguous else "C"
    expected, given = (np.zeros((len(texts), *x.shape), kind, order=order) for _ in range(2))
    made(x, y, expected)
    orion.parallel_for(made)(x, y, given)
    for text, theirs, mine in zip(texts, expected, given, strict=True):
        with np.errstate(all="ignore"):
            tolerance = 0 if kind == "bool" else 4 * np.finfo(kind).eps
            near = np.isclose(mine, theirs, rtol=tolerance, atol=0, equal_nan=True)
        zeros = (theirs == 0) & (np.signbit(mine * 1.0) != np.signbit(theirs * 1.0))
        wrong = (~near | zeros) & ~OTHERWISE.get(text, lambda x, y: x != x)(x, y)
        assert not wrong.any(), f"{text} of {x[wrong][:5]}, {y[wrong][:5]}: {mine[wrong][:5]}, not {theirs[wrong][:5]}"


def pairs(dtype):
    first, second = zip(*itertools.product(VALUES, VALUES), strict=True)
    with np.errstate(all="ignore"):
        return np.array(first).astype(dtype), np.array(second).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalars(dtype, tmp_path):
    for kind, texts in groups(dtype):
        check(kind, texts, "i", *pairs(dtype), tmp_path)
    check(dtype, SCALARS, "i", *pairs(dtype), tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_in_registers(dtype, tmp_path):
    x, y = (one.reshape(-1, 8) for one in pairs(dtype))
    for kind, texts in groups(dtype):
        check(kind, [text for text in texts if "abs({" not in text], "i", x, y, tmp_path)


def test_rows_by_columns(tmp_path):
    x, y = (np.asfortranarray(one.reshape(-1, 8)) for one in pairs("float64"))
    for kind, texts in groups("float64"):
        check(kind, [text for text in texts if "abs({" not in text], "i", x, y, tmp_path)


def test_parts_of_rows(tmp_path):
    x, y = (one.reshape(-1, 8) for one in pairs("float64"))
    for kind, texts in groups("float64"):
        check(kind, [text for text in texts if "abs({" not in text], "i, 1:", x, y, tmp_path)


def integers(x, y, z):
    for i in range(x.shape[0]):
        z[0, i] = np.sign(x[i])
        z[1, i] = np.maximum(x[i], y[i])
        z[2, i] = abs(x[i])
        z[3, i] = -x[i]
        z[4, i] = min(x[i], y[i])
        z[5, i] = np.abs(x[i])
        z[6, i] = x[i] + y[i]
        z[7, i] = np.square(x[i])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_the_least_and_greatest_integers(dtype):
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype)
    x, y = (np.array(part, dtype) for part in zip(*itertools.product(values, values), strict=True))
    expected, given = np.zeros((8, x.size), dtype), np.zeros((8, x.size), dtype)
    integers(x, y, expected)
    orion.parallel_for(integers)(x, y, given)
    np.testing.assert_array_equal(given, expected)
