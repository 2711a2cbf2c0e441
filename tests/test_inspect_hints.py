"""What reasons say to write instead: done here as a user would, the loop is parallel and its results are the same.

A case has a loop whose plan gives the code with the hint, and the loop that follows the hint.
"""

import re
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest

import orion
from orion.reasons import CODES, Hint
from tests.loop_text import defined

N = 240


@dataclass(frozen=True)
class Case:
    """`given` makes the arguments of the loop, `cured` those of the other one from these. Dense arrays of float64, in
    their order, and what is returned are compared."""

    code: str
    hint: str
    loop: str
    cure: str
    given: object
    cured: object = staticmethod(lambda *given: given)
    name: str = ""
    options: dict = field(default_factory=dict)

    def __str__(self):
        return f"{self.code} {self.name}"


def vector(seed=0, size=N):
    return np.random.default_rng(seed).random(size)


def numbers(size=N, most=N):
    return np.random.default_rng(5).integers(0, most, size)


def rows():
    return np.array([0, 7, 7, 60, 100, N])


def row_of_each():
    return np.repeat(np.arange(5), np.diff(rows()))


def keyed(index, values):
    """The values with the index as first key, and their place as second: in this order they are gone over."""
    return orion.sparse((index, np.arange(index.size)), values, shape=(N, index.size))


def grouped(index):
    """The places of each value of the index, one group after the other, and where the groups begin."""
    return np.argsort(index, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(index, minlength=N))])


CASES = [
    Case(
        "ORN101", Hint.NEEDED, name="another formula",
        loop="def f(W):\n    for i in range(W.shape[0] - 1):\n        W[i + 1] = 0.5 * W[i]",
        cure="def f(W):\n    first = W[0]\n    for i in range(1, W.shape[0]):\n        W[i] = first * 0.5 ** i",
        given=lambda: (vector(),),
    ),
    Case(
        "ORN101", Hint.COPY.format(array="W"), name="a copy",
        loop="def f(W):\n    for i in range(W.shape[0] - 1):\n        W[i] = W[i + 1]",
        cure="def f(W):\n    C = W.copy()\n    for i in range(W.shape[0] - 1):\n        W[i] = C[i + 1]",
        given=lambda: (vector(),),
    ),
    Case(
        "ORN101", Hint.ELEMENTS.format(array="W"), name="elements of its own",
        loop="def f(W, b):\n    for i in range(b.shape[0]):\n        W[i // 2] = b[i]",
        cure="def f(W, b):\n    for k in range(b.shape[0] // 2):\n        W[k] = b[2 * k + 1]",
        given=lambda: (vector(), vector(1)),
    ),
    Case(
        "ORN101", Hint.ELEMENTS.format(array="W"), name="a scalar stored afterwards",
        loop="def f(W, b):\n    for i in range(b.shape[0]):\n        if b[i] > 0.5:\n            W[0] = b[i]",
        cure="def f(W, b):\n    x = W[0]\n    for i in range(b.shape[0]):\n        if b[i] > 0.5:\n"
        "            x = b[i]\n"
        "    W[0] = x",
        given=lambda: (vector(), vector(1)),
    ),
    Case(
        "ORN101", Hint.STEP, name="step",
        loop="def f(y, x, n, k):\n    step = int(k[0])\n    for i in range(0, n, step):\n        y[i] += x[i]",
        cure="def f(y, x, n, step):\n    for i in range(0, n, step):\n        y[i] += x[i]",
        given=lambda: (vector(), vector(1), N, np.array([3])),
        cured=lambda y, x, n, k: (y, x, n, int(k[0])),
    ),
    Case(
        "ORN102", Hint.KEY, name="a key",
        loop="def f(W, index, g):\n    for i in range(index.shape[0]):\n        W[index[i]] = 0.5 * W[index[i]] + g[i]",
        cure="def f(W, data):\n    for (k, i), g in data:\n        W[k] = 0.5 * W[k] + g",
        given=lambda: (vector(), numbers(), vector(1)),
        cured=lambda W, index, g: (W, keyed(index, g)),
        options={"ordered": True},
    ),
    Case(
        "ORN102", Hint.KEY, name="groups",
        loop="def f(W, index, g):\n    for i in range(index.shape[0]):\n        W[index[i]] = 0.5 * W[index[i]] + g[i]",
        cure="def f(W, order, start, g):\n    for k in range(W.shape[0]):\n"
        "        for p in range(start[k], start[k + 1]):\n            W[k] = 0.5 * W[k] + g[order[p]]",
        given=lambda: (vector(), numbers(), vector(1)),
        cured=lambda W, index, g: (W, *grouped(index), g),
    ),
    Case(
        "ORN102", Hint.OLD_VALUES.format(array="x"), name="old values",
        loop="def f(x, index, b):\n    for i in range(x.shape[0]):\n        x[i] = b[i] + 0.5 * x[index[i]]",
        cure="def f(x, index, b):\n    old = x.copy()\n    for i in range(x.shape[0]):\n"
        "        x[i] = b[i] + 0.5 * old[index[i]]",
        given=lambda: (vector(), np.minimum(np.arange(N) + numbers(), N - 1), vector(1)),
    ),
    Case(
        "ORN103", Hint.AFFINE, name="a sum",
        loop="def f(y, x):\n    for i in range(x.shape[0]):\n        y[i ^ 1] = x[i] + y[i ^ 1]",
        cure="def f(y, x):\n    for h in range(x.shape[0] // 2):\n        y[2 * h + 1] = x[2 * h] + y[2 * h + 1]\n"
        "        y[2 * h] = x[2 * h + 1] + y[2 * h]",
        given=lambda: (vector(), vector(1)),
    ),
    Case(
        "ORN103", Hint.AFFINE, name="a key",
        loop="def f(y, x):\n    for i in range(x.shape[0]):\n        y[i * i] = 0.5 * y[i * i] + x[i]",
        cure="def f(y, data):\n    for (k, i), x in data:\n        y[k] = 0.5 * y[k] + x",
        given=lambda: (vector(), vector(1, 15)),
        cured=lambda y, x: (y, keyed(np.arange(15) ** 2, x)),
        options={"ordered": True},
    ),
    Case(
        "ORN103", Hint.FLATTENED, name="two dimensions",
        loop="def f(y, n, m):\n    for i in range(n):\n        for j in range(m):\n"
        "            y[i * (m + 1) + j] *= 2.0",
        cure="def f(Y, n, m):\n    for i in range(n):\n        for j in range(m):\n            Y[i, j] *= 2.0",
        given=lambda: (vector(), 12, 19),
        cured=lambda y, n, m: (y.reshape(12, 20), n, m),
    ),
    Case(
        "ORN103", Hint.FLATTENED, name="an integer argument",
        loop="def f(y, n, m):\n    for i in range(n):\n        for j in range(m):\n"
        "            y[i * (m + 1) + j] *= 2.0",
        cure="def f(y, n, m):\n    for i in range(n):\n        for j in range(m - 1):\n            y[i * m + j] *= 2.0",
        given=lambda: (vector(), 12, 19),
        cured=lambda y, n, m: (y, n, m + 1),
    ),
    Case(
        "ORN104", Hint.SCALAR.format(name="t"), name="from the loop variable",
        loop="def f(a):\n    t = 1.0\n    for i in range(a.shape[0]):\n        t = t * 0.5\n        a[i] += t",
        cure="def f(a):\n    for i in range(a.shape[0]):\n        t = 0.5 ** (i + 1)\n        a[i] += t",
        given=lambda: (vector(),),
    ),
    Case(
        "ORN104", Hint.SCALAR.format(name="t"), name="from arrays",
        loop="def f(a, d):\n    t = np.sin(d[0])\n    for i in range(1, d.shape[0]):\n        a[i] = d[i] - t\n"
        "        t = np.sin(d[i])",
        cure="def f(a, d):\n    for i in range(1, d.shape[0]):\n        t = np.sin(d[i - 1])\n        a[i] = d[i] - t",
        given=lambda: (vector(), vector(1)),
    ),
    Case(
        "ORN104", Hint.BEST.format(name="best"), name="a greatest value",
        loop="def f(a):\n    best = a[0]\n    for i in range(a.shape[0]):\n"
        "        new = a[i] if a[i] > best else best\n"
        "        best = new\n    return best",
        cure="def f(a):\n    best = a[0]\n    for i in range(a.shape[0]):\n        if a[i] > best:\n"
        "            best = a[i]\n"
        "    return best",
        given=lambda: (vector(),),
    ),
    Case(
        "ORN104", Hint.LIST.format(name="y"), name="a list with an item for each",
        loop="def f(a):\n    y = []\n    for i in range(a.shape[0]):\n        if a[i] >= 0.0:\n"
        "            y.append(a[i])\n    return len(y)",
        cure="def f(a):\n    y = []\n    for i in range(a.shape[0]):\n        y.append(a[i])\n    return len(y)",
        given=lambda: (vector(),),
    ),
    Case(
        "ORN104", Hint.IN_TURN.format(name="hit"), name="evaluated in turn",
        loop="def f(a, n):\n    hit = False\n    for i in range(n):\n        hit = hit or a[i] > 0.9\n    return hit",
        cure="def f(a, n):\n    hit = False\n    for i in range(min(n, a.shape[0])):\n        found = a[i] > 0.9\n"
        "        hit = hit or found\n    return hit",
        given=lambda: (vector(), N + 1),
    ),
    Case(
        "ORN105", Hint.VIEW, name="one row",
        loop="def f(W, V, flag):\n    for i in range(W.shape[0]):\n        w = W[i, :]\n        if flag[i] > 2.0:\n"
        "            w = W[0, :]\n        w -= 0.1 * V[i, :]",
        cure="def f(W, V, flag):\n    for i in range(W.shape[0]):\n        w = W[i, :]\n        w -= 0.1 * V[i, :]",
        given=lambda: (vector().reshape(12, 20), vector(1).reshape(12, 20), vector(2)),
    ),
    Case(
        "ORN107", Hint.BOUNDS, name="all elements in one loop",
        loop="def f(start, x, d):\n    at = start + 0\n    for i in range(start.shape[0] - 1):\n"
        "        for p in range(at[i], at[i + 1]):\n"
        "            x[p] = 2.0 * x[p] + d[i]",
        cure="def f(row, x, d):\n    for p in range(x.shape[0]):\n        x[p] = 2.0 * x[p] + d[row[p]]",
        given=lambda: (rows(), vector(), vector(1)),
        cured=lambda start, x, d: (row_of_each(), x, d),
    ),
    Case(
        "ORN107", Hint.BOUNDS, name="rows of one length",
        loop="def f(start, x):\n    at = start + 0\n    for i in range(start.shape[0] - 1):\n"
        "        for p in range(at[i] + 1, at[i + 1]):\n            x[p] = 0.5 * x[p - 1] + x[p]",
        cure="def f(x, n, m):\n    for i in range(n):\n        for p in range(1, m):\n"
        "            x[i * m + p] = 0.5 * x[i * m + p - 1] + x[i * m + p]",
        given=lambda: (np.arange(0, N + 1, 20), vector()),
        cured=lambda start, x: (x, 12, 20),
    ),
    Case(
        "ORN107", Hint.STEP, name="step",
        loop="def f(A, k):\n    step = int(k[0])\n    for i in range(A.shape[0]):\n"
        "        for j in range(0, i + 1, step):\n"
        "            A[i - j, 0] = A[i - j, 0] * 0.5 + A[i, 1]",
        cure="def f(A, step):\n    for i in range(A.shape[0]):\n        for j in range(0, i + 1, step):\n"
        "            A[i - j, 0] = A[i - j, 0] * 0.5 + A[i, 1]",
        given=lambda: (vector().reshape(12, 20), np.array([2])),
        cured=lambda A, k: (A, int(k[0])),
    ),
    Case(
        "ORN108", Hint.RANGE, name="an argument",
        loop="def f(a, counts):\n    n = int(counts[0])\n    for i in range(n):\n        a[i] = 0.0",
        cure="def f(a, n):\n    for i in range(n):\n        a[i] = 0.0",
        given=lambda: (vector(), np.array([7.0])),
        cured=lambda a, counts: (a, int(counts[0])),
    ),
    Case(
        "ORN108", Hint.RANGE, name="a start",
        loop="def f(a, first):\n    for i in range(first[0], a.shape[0]):\n        a[i] += 1.0",
        cure="def f(a, first):\n    for i in range(first, a.shape[0]):\n        a[i] += 1.0",
        given=lambda: (vector(), np.array([7])),
        cured=lambda a, first: (a, int(first[0])),
    ),
    Case(
        "ORN108", Hint.TRUTH.format(name="n"), name="a truth value",
        loop="def f(a, n):\n    for i in range(9 * n):\n        a[i] += 1.0",
        cure="def f(a, n):\n    for i in range(9 * n):\n        a[i] += 1.0",
        given=lambda: (vector(), True),
        cured=lambda a, n: (a, int(n)),
    ),
    Case(
        "ORN110", Hint.EXIT, name="break",
        loop="def f(a, limit):\n    for i in range(a.shape[0]):\n        if a[i] > limit:\n            break\n"
        "        a[i] = 2.0 * a[i]",
        cure="def f(a, limit):\n    first = a.shape[0]\n    for i in range(a.shape[0]):\n        if a[i] > limit:\n"
        "            first = i\n            break\n    for i in range(a.shape[0]):\n        if i < first:\n"
        "            a[i] = 2.0 * a[i]",
        given=lambda: (vector(), 0.99),
    ),
    Case(
        "ORN110", Hint.EXIT, name="return",
        loop="def f(a, x):\n    for i in range(a.shape[0]):\n        if a[i] == x:\n            return i\n"
        "        a[i] = 0.0\n    return a.shape[0]",
        cure="def f(a, x):\n    first = a.shape[0]\n    for i in range(a.shape[0]):\n        if a[i] == x:\n"
        "            first = i\n            break\n    for i in range(a.shape[0]):\n        if i < first:\n"
        "            a[i] = 0.0\n    return first",
        given=lambda: (np.floor(vector() * 30), 7.0),
    ),
    Case(
        "ORN111", Hint.STEP, name="step",
        loop="def f(a, b, k):\n    x = 0.0\n    step = int(k[0])\n"
        "    for i in range(0, a.shape[0], step):\n        x = a[i]\n"
        "        b[i] = x * x\n    return x",
        cure="def f(a, b, step):\n    x = 0.0\n    for i in range(0, a.shape[0], step):\n        x = a[i]\n"
        "        b[i] = x * x\n"
        "    return x",
        given=lambda: (vector(), vector(1), np.array([3])),
        cured=lambda a, b, k: (a, b, int(k[0])),
    ),
    Case(
        "ORN111", Hint.VARIABLE.format(name="i"), name="the loop variable",
        loop="def f(a, b):\n    x = 0.0\n    for i in range(a.shape[0]):\n        x = a[i]\n        b[i] = x * x\n"
        "        i = 3\n        b[i] = b[i]\n    return x",
        cure="def f(a, b):\n    x = 0.0\n    for i in range(a.shape[0]):\n        x = a[i]\n        b[i] = x * x\n"
        "    return x",
        given=lambda: (vector(), vector(1)),
    ),
    Case(
        "ORN111", Hint.LAST.format(name="n"), name="another name",
        loop="def f(a, n):\n    for i in range(n):\n        a[i] *= 2.0\n        n = 3\n    return n",
        cure="def f(a, n):\n    for i in range(n):\n        a[i] *= 2.0\n        m = 3\n    return m",
        given=lambda: (vector(), 100),
    ),
]  # fmt: skip
NO_CURE = {code for code in CODES if code >= "ORN120"} | {"ORN109"}
"""As the page of the codes says."""


def outcome(function, arguments):
    """What a call leaves in its dense arrays, and what it returns."""
    returned = function(*arguments)
    arrays = [value.ravel() for value in arguments if isinstance(value, np.ndarray) and value.dtype == np.float64]
    return arrays, returned


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loop_gives_the_code_and_the_hint(case):
    plan = orion.parallel_for(**case.options)(defined(case.loop + "\n")).plan(*case.given())
    assert not plan.is_parallel
    assert (case.code, case.hint) in {(reason.code, reason.hint) for reason in plan.reasons}
    told = " ".join(str(plan).replace("\N{NO-BREAK SPACE}", " ").split())
    assert case.hint in told or "ORN124" in told  # which says that the copy would not pay here


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_the_hint_says_is_parallel_and_gives_the_same(case):
    cure = orion.parallel_for(**case.options)(defined(case.cure + "\n"))
    given = case.cured(*case.given())
    with orion.session("threads", 2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = cure.plan(*given)
        plan.check()
        found, returned = outcome(cure, given)
    assert plan.is_parallel
    assert all(loop.is_parallel for loop in plan.loops)
    assert plan.runs_on == 2
    expected, wanted = outcome(defined(case.loop + "\n"), case.given())
    assert returned == wanted
    assert found
    for mine, theirs in zip(found, expected, strict=False):  # data that went into a sparse array are not compared
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_every_hint_has_a_case():
    """All but that of the limits of analysis, which says that it may help."""
    texts = [text for name, text in vars(Hint).items() if name.isupper() and text != Hint.LIMIT]
    patterns = [re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(text))) for text in texts]
    assert [text for text, pattern in zip(texts, patterns, strict=True) if not any_match(pattern)] == []


def test_hints_of_codes_that_claim_a_cure_have_cases():
    """Those of notes stand in their rows alone."""
    texts = {text for name, text in vars(Hint).items() if name.isupper()}
    assert {row.hint for code, row in CODES.items() if code not in NO_CURE} <= {*texts, ""}


def any_match(pattern):
    return any(pattern.fullmatch(case.hint) for case in CASES)


def test_every_code_has_a_case_or_claims_no_cure():
    assert {case.code for case in CASES} | NO_CURE == set(CODES)
    assert not {case.code for case in CASES} & NO_CURE


def moving_average(prices, out):
    total = 0.0
    for i, p in enumerate(prices):
        total += p
        if i >= 20:
            total -= prices[i - 20]
        out[i] = total / min(i + 1, 20)


def moving_averages(prices, out):
    for k in range(prices.shape[0]):
        total = 0.0
        for i in range(prices.shape[1]):
            total += prices[k, i]
            if i >= 20:
                total -= prices[k, i - 20]
            out[k, i] = total / min(i + 1, 20)


def test_a_scan_that_does_not_pay_is_to_be_left_or_to_be_run_in_a_loop_around():
    with orion.session("threads", 2):
        one = orion.parallel_for(moving_average).plan(np.ones(100_000), np.ones(100_000))
        many = orion.parallel_for(moving_averages).plan(np.ones((40, 100_000)), np.ones((40, 100_000)))
    text = " ".join(str(one).split())
    assert "where computing it so takes longer, leave the loop as it is: several such loops, each on arrays" in text
    assert many.strategy != "serial"
    assert many.loops[0].runs_on == 2
