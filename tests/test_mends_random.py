"""Mends of random loops, made without their plans: whatever the reasons, Python's results are the same."""

import ast
import random

import numpy as np
import pytest

from orion.cli.mends.kinds import KINDS, Site
from orion.cli.mends.text import Source, applied
from orion.reasons import Hint, Reason
from tests.trials import TIMES

AHEAD = ("x = b[i]", "x = a[i] * 2.0", "y = x + 1.0", "x = x + b[i]", "x = A[i, 0]", "a[i] = 1.0", "x = v[i] + 1.0")
TESTS = (
    "b[i] > c", "a[i] > c", "a[i - 1] > c", "x > c", "s > c", "A[i, 0] > c", "W[0] > c", "a[i] > c and b[i] > c",
    "k > 9", "v[i] > c", "row[0] > c",
)  # fmt: skip
REST = (
    "a[i] = b[i] * 2.0", "a[i] += 1.0", "a[i + 1] = b[i]", "b[i] = a[i]", "s += a[i]", "x = 0.0", "i = i + 1", "n = 3",
    "row = A[i]", "row[0] = 9.0", "A[i, 0] = 9.0", "A[i + 1, 0] = 9.0", "W[0] = b[i]", "W[0] += b[i]", "W[1] = a[i]",
    "k += 1", "x += b[i]", "v = a", "v[i + 1] = 7.0", "for j in range(2):\n            a[i] += j", "continue",
    "if b[i] > 0.5:\n            W[0] = b[i]", "if b[i] > 0.5:\n            break", "a[i] = i", "b[i + 1] = n",
)  # fmt: skip
VIEWS = (
    "v, row = b, A[0]", "v = a", "v = a[:]\n    row = A[0]", "row = v = a", "(v := a)", "v = a.T\n    row = A.T",
    "v = a.reshape(12)\n    row = b", "w = b[::-1]\n    v = w", "v = b.copy()\n    row = W.copy()",
    "v, row = b + 1.0, A[0] * 2.0", "for row in A:\n        v = a", "v = W if c > 0.5 else a",
)  # fmt: skip
SEEN = ("v[i] > c", "row[0] > c", "b[i] > c")
SET = ("a[i + 1] = 7.0", "b[i + 1] = 7.0", "A[i + 1, 0] = 7.0", "A[0, 0] = 7.0")
RANGES = (
    "range(n)",
    "range(1, n)",
    "range(len(b) - 1)",
    "range(n - 1, 0, -1)",
    "range(0, n, 1)",
    "range(int(a[0] * 5))",
)
AFTER = ("return s", "return s, x", "return s, i", "return s, n", "for i in range(2):\n        s += i\n    return s")


def drawn(seed: int) -> str:
    choose = random.Random(seed).choice
    lines = [choose(AHEAD) for _ in range(choose((0, 0, 1, 2)))]
    if choose((True, True, False)):
        lines += [
            f"if {choose(TESTS)}:",
            "    "
            + choose(
                (
                    "break",
                    "break",
                    "return i",
                    "return s + x",
                    "return a[i]",
                    "return (i +\n    1 + i)",
                    "return (i +\n                  1)",
                )
            ),
        ]
    lines += [choose(REST) for _ in range(choose((1, 2, 3)))]
    if choose((True, False, False)):  # where another name of an array that is written matters most
        lines = [f"if {choose(SEEN)}:", f"    {choose(('break', 'return i'))}", choose(SET)]
    body = "\n".join(f"        {line}" for line in lines)
    around = f"    {choose(VIEWS)}\n    x, y, s, k, i = 0.0, 0.0, 0.0, 0, 0\n"
    return f"def f(a, b, A, W, c, n):\n{around}    for i in {choose(RANGES)}:\n{body}\n    {choose(AFTER)}\n"


def outcome(text: str, seed: int):
    scope: dict[str, object] = {}
    exec(text, scope)
    rng = np.random.default_rng(seed)
    given = [rng.random(12), rng.random(12), rng.random((12, 2)), rng.random(2)]
    try:
        returned = scope["f"](*given, rng.choice([0.3, 0.9, 1.5]), 10)
    except (IndexError, NameError, TypeError, ValueError):
        return None
    return [*given, np.array(returned, float)]


def sites(text: str):
    source = Source(text)
    (function,) = source.tree.body
    loop = next(node for node in function.body if isinstance(node, ast.For) and ast.unparse(node.target) == "i")
    hints = [Hint.EXIT, *(Hint.ELEMENTS.format(array=name) for name in ("W", "a")), Hint.VARIABLE.format(name="i")]
    reasons = tuple(Reason.of("ORN101", "", hint=hint) for hint in (*hints, Hint.LAST.format(name="n")))
    return Site(source, function, loop, reasons, False)


@pytest.mark.parametrize("part", range(4))
def test_what_a_mend_makes_gives_the_same(part):
    made = 0
    for seed in range(part, 3000 * TIMES, 4):
        text = drawn(seed)
        for words, kind in KINDS.items():
            edits = kind(sites(text))
            if edits is None:
                continue
            new, made = applied(text, edits), made + 1
            for given in range(3):
                want = outcome(text, given)
                if want is not None:
                    found = outcome(new, given)
                    assert found is not None, f"{words}\n{text}\n{new}"
                    for mine, its in zip(found, want, strict=True):
                        np.testing.assert_array_equal(mine, its, err_msg=f"{words}\n{text}\n{new}")
    assert made > 50
