"""Scans: scalars that iterations hand on, in two passes over blocks of iterations."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

import orion
from orion.plan import copies
from orion.rewrites.scans import apply, find
from tests.loop_text import defined
from tests.random_functions import compare, interpreted, outcome, plans, rewritten
from tests.trials import TIMES, times, worker_counts

N = 3_000
"""More than one block, and some iterations after the last."""


def prefix(x, out):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        out[i] = s
    return s


def before(x, out):
    s = 10.0
    for i in range(len(x)):
        out[i] = s
        s = s - x[i] + 1


def chosen(x, out):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            s = x[i] + s
        else:
            s -= 2
        out[i] = s + i
    return s


def ewma(x, out):
    s, alpha = x[0], 0.25
    for i in range(len(x)):
        s = alpha * x[i] + (1 - alpha) * s
        out[i] = s
    return s


def ewma_in_an_array(x, out):
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = 0.25 * x[i] + 0.75 * out[i - 1]


def cumsum_in_an_array(x, out):
    out[0] = x[0]
    for i in range(1, out.shape[0]):
        out[i] = out[i - 1] + x[i]


def cumsum_in_place(x, out):
    for i in range(len(x) - 1):
        x[i + 1] += x[i]


def discounted(x, out):
    g = 0.0
    for i in range(len(x) - 1, -1, -1):
        g = x[i] + 0.5 * g
        out[i] = g


def advantages(x, out):
    a = 0.0
    for t in range(len(x) - 1, -1, -1):
        a = x[t] + 0.5 * (1.0 - (x[t] > 1)) * a
        out[t] = a


def growing_or_not(x, out):
    h = 1.0
    for i in range(len(x)):
        h = h * ((x[i] - 0.5) / 4) + 1
        out[i] = h


def products(x, out):
    p = 1.0
    for i in range(len(x)):
        p *= 1 - x[i] / 1000
        out[i] = p


def resets(x, out):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 2:
            s = x[i] - 1
        s = 0.5 * s + x[i]
        out[i] = s
    return s


def drawdown(x, out):
    peak, worst = x[0], 0.0
    for i in range(len(x)):
        peak = max(peak, x[i])
        worst = max(worst, (peak - x[i]) / (abs(peak) + 3))
        out[i] = np.sqrt(peak * peak + x[i] * x[i])
    return worst


def peaks(x, out):
    peak, low = -np.inf, np.inf
    for i in range(len(x)):
        if x[i] * x[i] > peak:
            peak = x[i] * x[i]
        low = np.minimum(low, x[i])
        out[i] = np.sqrt(peak + 1) * np.sqrt(peak + 2) - low
    return peak, low


def two_sums(x, out):
    s, q = 0.0, 0.0
    for i in range(len(x)):
        s += x[i]
        q += x[i] * x[i]
        out[i] = q / (i + 1) - (s / (i + 1)) ** 2


def with_a_sum(x, out):
    s, total = 0.0, 0.0
    for i in range(len(x)):
        s = 0.9 * s + x[i]
        total += s
        out[i] = s
    return total


def with_a_product(x, out):
    peak, product = x[0], 1.0
    for i in range(len(x)):
        peak = max(peak, x[i])
        product *= 1 + (np.sqrt(peak * peak + 1) + x[i]) / 1e5
        out[i] = np.sqrt(peak * peak + x[i] * x[i])
    return product


def with_sums_in_elements(x, out):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        out[i % 5] += s


SCANS = (
    prefix, before, chosen, ewma, ewma_in_an_array, cumsum_in_an_array, cumsum_in_place, discounted, advantages,
    products, resets, drawdown, peaks, two_sums, growing_or_not, with_a_sum,
    with_a_product, with_sums_in_elements,
)  # fmt: skip


def given(n=N, seed=1):
    return np.random.default_rng(seed).random(n) * 6 - 3, np.zeros(n)


@pytest.fixture
def small(monkeypatch):
    """Blocks of a few iterations, for loops of any size."""
    for module, name, value in ((apply, "LENGTH", 6), (apply, "GROUP", 2), (apply, "LEAST_NS", 1e-3)):
        monkeypatch.setattr(module, name, value)
    for name, value in (("MEMORY_NS", 0.0), ("GAIN", 0.0)):
        monkeypatch.setattr(find, name, value)


@pytest.fixture
def any_size(monkeypatch):
    """Loops are shared out by scans and by copies however short they are, also where nobody forces that."""
    monkeypatch.setattr(copies, "COMBINED_NS", 0.0)
    monkeypatch.setattr(apply, "LEAST_NS", 1e-3)
    for name, value in (("MEMORY_NS", 0.0), ("GAIN", 0.0)):
        monkeypatch.setattr(find, name, value)


def results(function, workers, **options):
    with orion.session(workers=workers, force_parallel=workers > 1):
        return called(orion.parallel_for(function, **options))


def called(function):
    """The arguments after a call, and what it returns."""
    x, out = given()
    returned = function(x, out)
    return x, out, 0.0 if returned is None else returned


@pytest.mark.parametrize("function", SCANS, ids=lambda function: function.__name__)
def test_scans_are_shared_out_and_the_same_on_any_number_of_workers(any_size, function):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function, require_parallel=True).plan(*given())
        assert plan.check() is None
        assert "scans" in [name for name, _ in plan.function.rewrites]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        alone, *others = [results(function, workers) for workers in worker_counts(1, 2, 3, 4)]
    for found, want in zip(alone, called(function), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    for other in others:
        for found, want in zip(other, alone, strict=True):
            np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("function", [with_a_sum, with_a_product], ids=lambda function: function.__name__)
def test_sums_beside_have_the_same_bits_at_sizes_at_which_scans_are_taken_by_themselves(function):
    """Blocks that nobody has asked for, on one worker too."""
    x, found = np.random.default_rng(1).random(1_300_000), []
    for workers in (1, 2):
        with orion.session(workers=workers), warnings.catch_warnings():
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
            out, scan = np.zeros(len(x)), orion.parallel_for(function)
            found.append((scan(x, out), out))
            assert "scans" in [name for name, _ in scan.plan(x, out).function.rewrites]
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("workers", [1, 2])
def test_integers_in_arrays_keep_all_their_digits(any_size, workers):
    x = np.random.default_rng(1).integers(2**50, 2**51, 5_000)
    c = np.zeros(len(x), np.int64)
    with orion.session(workers=workers, force_parallel=True):
        scan = orion.parallel_for(cumsum_in_an_array)
        assert "scans" in [name for name, _ in scan.plan(x, c).function.rewrites]
        scan(x, c)
    np.testing.assert_array_equal(c, np.cumsum(x))


@pytest.mark.parametrize("factor", [0.1, 1e-120, -0.5])
@pytest.mark.parametrize("at", [0, 1, 1999, 2048, 2999])
def test_what_is_infinite_stays_so_where_factors_vanish(any_size, at, factor):
    def recurrence(x, out, a):
        h = 0.0
        for i in range(len(x)):
            h = a * h + x[i]
            out[i] = h

    x = np.ones(3 * 2048 + 5)
    x[at] = -np.inf
    want = np.zeros(len(x))
    recurrence(x, want, factor)
    for workers in (1, 2):
        out = np.zeros(len(x))
        with orion.session(workers=workers, force_parallel=workers > 1), warnings.catch_warnings():
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
            orion.parallel_for(recurrence)(x, out, factor)
        np.testing.assert_allclose(out, want)


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_scans_on_ray(any_size):
    functions = (prefix, ewma, drawdown)
    alone = [results(function, 1) for function in functions]
    with orion.session(backend="ray", workers=2, force_parallel=True):
        found = [called(orion.parallel_for(function)) for function in functions]
    for mine, its in zip(found, alone, strict=True):
        for one, want in zip(mine, its, strict=True):
            np.testing.assert_array_equal(one, want)


@pytest.mark.parametrize("function", [prefix, before, ewma], ids=lambda function: function.__name__)
def test_without_fastmath_every_addition_is_rounded_in_order(any_size, function):
    x = np.random.default_rng(1).random(N)
    out, want = np.zeros(N), np.zeros(N)
    function(x.copy(), want)
    with orion.session(workers=2, force_parallel=True), pytest.warns(orion.SerialLoopWarning):
        orion.parallel_for(function, fastmath=False)(x, out)
    np.testing.assert_array_equal(out, want)


def test_without_fastmath_what_is_exact_is_shared_out(any_size):
    with orion.session(workers=2, force_parallel=True):
        assert orion.parallel_for(drawdown, fastmath=False).plan(*given()).is_parallel


@pytest.mark.parametrize("function", [drawdown, peaks], ids=lambda function: function.__name__)
@pytest.mark.parametrize("at", [0, 5, 2047, 2048, 2999])
def test_extremes_with_nan(any_size, function, at):
    def run(function):
        x, out = given()
        x[at] = np.nan
        with np.errstate(invalid="ignore"):
            return out, function(x, out)

    want = run(function)
    with orion.session(workers=2, force_parallel=True):
        for found, right in zip(run(orion.parallel_for(function)), want, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)


def after_a_nan(x, out):
    peak = 0.0
    for i in range(len(x)):
        peak = max(x[i], peak)
        out[i] = np.sqrt(abs(peak)) + np.sqrt(abs(peak) + 1)
    return peak


@pytest.mark.parametrize("at", [0, 5, 2047, 2048, 2999])
def test_an_extreme_that_forgets_at_a_nan(any_size, at):
    def run(function):
        x, out = given()
        x[0] = 50.0
        x[at] = np.nan
        return out, function(x, out)

    want = run(after_a_nan)
    with orion.session(workers=2, force_parallel=True):
        scan = orion.parallel_for(after_a_nan, require_parallel=True)
        for found, right in zip(run(scan), want, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)


def test_factors_that_grow_past_all_numbers(any_size):
    def recurrence(x, out):
        h = 0.0
        for i in range(len(x)):
            h = 1e200 * h + x[i]
            out[i] = h

    x = np.zeros(3 * 2048)
    x[-1] = 5.0
    for workers in (1, 2):
        out = np.ones(len(x))
        with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
            orion.parallel_for(recurrence)(x, out)
        np.testing.assert_array_equal(out, x)


def test_the_plan_says_that_sums_are_rounded_in_blocks(any_size):
    with orion.session(workers=2, force_parallel=True):
        said = str(orion.parallel_for(prefix).plan(*given()))
    assert "a first pass over its blocks of 2,048 iterations" in " ".join(said.split())
    assert "fastmath=False" in said


def test_small_loops_are_run_as_they_are_written():
    x = np.random.default_rng(1).random(N)
    out, want = np.zeros(N), np.zeros(N)
    prefix(x, want)
    with orion.session(workers=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        orion.parallel_for(prefix)(x, out)
    np.testing.assert_array_equal(out, want)


SERIAL = {
    "a product of two of its values": "s = s * s + x[i]",
    "what is added depends on it": "s += max(s, x[i])",
    "whether depends on it": "if s > x[i]:\n    s += 1",
    "a choice of its values": "s = s + x[i] if x[i] > 0 else s * s",
    "another scalar that depends on it": "s += x[i]\nq = 0.5 * q + s",
    "an array that the loop writes": "s += out[i - 1]\nout[i] = x[i]",
    "an array that the loop writes elsewhere": "s += out[i]\nout[2 * i % 7] = x[i]",
    "two steps back": "out[i] = out[i - 2] + x[i]",
    "stored under a condition": "if x[i] > 0:\n    out[i] = out[i - 1] + x[i]",
    "read after it is stored": "out[i] = x[i]\ns += out[i - 1]",
    "minima and maxima": "s = max(s, x[i])\ns = min(s, x[i] + 1)",
    "a remainder": "s = (s + x[i]) % 5.0",
    "an exit": "s += x[i]\nif s > 50:\n    break",
}


@pytest.mark.parametrize("name", SERIAL)
def test_others_are_no_scans(small, name):
    body = "\n".join(f"        {line}" for line in SERIAL[name].split("\n"))
    after = "" if "out[i] =" in body else "        out[i] = s\n"
    source = (
        f"def f(x, out):\n    s = 0.0\n    q = 0.0\n    for i in range(2, len(x)):\n{body}\n{after}    return s, q\n"
    )
    function = defined(source)
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = orion.parallel_for(function).plan(*given(50))
        assert "scans" not in [name for name, _ in plan.function.rewrites]
        got, want = given(50), given(50)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(orion.parallel_for(function)(*got), function(*want))
        np.testing.assert_allclose(got, want)


# ------------------------------------------------------------ random scans


class Maker:
    """Writes a random function that hands scalars on over arrays of small whole numbers, with factors 0, 1 and -1, so
    that nothing is rounded."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def value(self, depth=0):
        if depth > 1 or self.random.random() < 0.6:
            return self.pick("x[i]", "x[i]", "y[i]", "y[i + 1]", "x[i - 1]", "t", "i", "k", "2", "y[2 * i]")
        left, right = self.value(depth + 1), self.value(depth + 1)
        return self.pick(f"{left} + {right}", f"{left} - {right}", f"min({left}, {right})", f"abs({left})")

    def factor(self):
        return self.pick("f[i]", "f[i]", "-1", "f[i] * f[i + 1]", "(y[i] > 0)", "f[0]")

    def step(self):
        s = self.pick("s", "s", "r", "c")
        value, factor = self.value(), self.factor()
        found = self.pick(
            f"{s} += {value}", f"{s} = {s} + {value} - 1", f"{s} -= {value}", f"{s} = {value} - 3 + {s}",
            f"{s} = {factor} * {s} + {value}", f"{s} = {value} - {s} * {factor}", f"{s} *= {factor}", f"{s} = {value}",
            f"m = max(m, {value})", f"m = max({value}, m)", f"if {value} > m:\n    m = {value}",
            f"m = np.maximum(m, {value})", f"w = min(w, {value})", f"v[i] = v[i - 1] + {value}",
            f"v[i] = {factor} * v[i - 1] + {value}", "x[i] += x[i - 1]", f"for j in range(3):\n    {s} += y[j] * x[i]",
        )  # fmt: skip
        if self.random.random() < 0.3:
            inside = "\n".join(f"    {line}" for line in found.split("\n"))
            otherwise = f"\nelse:\n    {self.pick(f'{s} += 1', f'{s} = {value}')}" if self.random.random() < 0.3 else ""
            found = f"if {self.value()} > {self.value()}:\n{inside}{otherwise}"
        return found

    def use(self):
        return self.pick(
            "out[i] = s", "out[i] = s + r - m", "q += s", "q = max(q, c - r)", "t = s + m", "out[i] = m - w",
            "last = s", "if s > m:\n    last = i", "t = x[i] - y[i]", "out[i] = v[i]", "u = min(u, s)",
        )  # fmt: skip

    def function(self):
        steps = [self.step() for _ in range(self.random.randint(1, 2))]
        lines = steps + [self.use() for _ in range(self.random.randint(1, 3))]
        self.random.shuffle(lines)
        space = self.pick("1, n", "1, n", "n - 1, 0, -1", "1, len(x)", "2, n")
        start = [
            "def f(x, y, f, v, out, k, n):",
            "    s, r, c = 0.0, 1.0, 2.0",
            "    q, m, w, t, last, u = 0.0, -9.0, 9.0, 0.0, -1.0, 1.0",
        ]
        body = [f"        {line}" for text in lines for line in text.split("\n")]
        return "\n".join([*start, f"    for i in range({space}):", *body, "    return s, r, c, q, m, w, last, u", ""])


def arguments(n, seed):
    rng = np.random.default_rng(seed)
    x, y, v, out = (
        rng.integers(-3, 4, n + 3) * 1.0,
        rng.integers(-3, 4, 2 * n + 3) * 1.0,
        np.zeros(n + 3),
        np.zeros(n + 3),
    )
    return {"x": x, "y": y, "f": rng.integers(-1, 2, n + 3) * 1.0, "v": v, "out": out, "k": 2, "n": n}


@pytest.mark.parametrize("seed", range(times(34, 18)))
def test_random_scans_are_pythons(small, seed):
    source = Maker(seed).function()
    function = defined(source)
    for n in (45, 19, 7, 1, 0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(function, lambda n=n: arguments(n, seed), 1 + seed % 3, f"n = {n}\n{source}")


@pytest.mark.parametrize("seed", range(times(17, 9)))
def test_random_scans_have_the_same_bits_on_any_number_of_workers(small, seed):
    """Of numbers that are rounded; without `force_parallel`, as that takes what is for two workers on one as well."""
    source = Maker(seed).function()
    function = defined(source)

    def rounded():
        rng, made = np.random.default_rng(seed), arguments(45, seed)
        return made | {name: rng.random(len(made[name])) - 0.5 for name in "xyf"}

    found = []
    for workers in (1, 2, 3):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found.append(outcome(interpreted(function, workers, force=False), rounded()))
    for other in found[1:]:
        assert (other == "an error") == (found[0] == "an error"), source
        if other != "an error":
            for mine, its in zip(other, found[0], strict=True):
                np.testing.assert_array_equal(mine, its, err_msg=source)


def test_many_of_them_are_shared_out(small):
    """The generator reaches what it is for, and the checker proves what is taken."""
    made = ((defined(Maker(seed).function()), arguments(45, seed)) for seed in range(0, 150 * TIMES, 3))
    assert sum("scans" in rewritten(plan) and plan.is_parallel for plan in plans(made)) >= 10 * TIMES
