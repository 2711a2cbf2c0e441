"""Loops of one trip are their bodies: what is in them is shared out as if they were not there."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from tests.alike import alike
from tests.loop_text import defined

UNWRAPPED = {
    "a number of rounds that is a default": (
        "for e in range(rounds):\n    for i in range(n):\n        y[i] += x[i] * w[e]"
    ),
    "a literal": "for e in range(1):\n    for i in range(n):\n        y[i] += x[i] * w[e]",
    "from another number": "for e in range(3, 4):\n    for i in range(n):\n        y[i] += x[i] * w[e]",
    "downwards": "for e in range(2, -1, -3):\n    for i in range(n):\n        y[i] += x[i] * w[e]",
    "from the end": "for e in range(-1, 0):\n    for i in range(n):\n        y[i] += x[i] * w[e]",
    "one in another": (
        "for e in range(1):\n    for d in range(e, e + 1):\n        for i in range(n):\n            y[i] += x[i] * w[d]"
    ),
    "a number of it, and a new array": (
        "for e in range(1):\n    rate, t = w[e], np.zeros(n)\n    for i in range(n):\n        t[i] = rate * x[i]\n"
        "    for i in range(n):\n        y[i] += t[i]"
    ),
    "read after it": "for e in range(1):\n    for i in range(n):\n        y[i] += x[i]\nreturn e + y[0]",
    "read after several": (
        "for e in range(2, 3):\n    for i in range(n):\n        y[i] += x[i]\nfor e in range(1):\n    y[0] += w[e]\n"
        "return e"
    ),
    "changed in it": "for e in range(1):\n    e += 2\n    for i in range(n):\n        y[i] += x[i] * w[e]\nreturn e",
    "under a condition": (
        "e = 5\nif w[0] < 0.0:\n    for e in range(1):\n        for i in range(n):\n            y[i] += x[i]\nreturn e"
    ),
    "with names that change": (
        "u, v = x, y\nfor e in range(2):\n"
        "    for i in range(1, n - 1):\n        v[i] = u[i - 1] + u[i + 1]\n    u, v = v, u"
    ),
}

AS_THEY_ARE = {
    "left early": (
        "for e in range(1):\n    if w[e] > 0.5:\n        break\n    for i in range(n):\n        y[i] += x[i]\nreturn e"
    ),
    "passed over": (
        "for e in range(1):\n    if w[e] > 0.5:\n        continue\n"
        "    for i in range(n):\n        y[i] += x[i]\nreturn e"
    ),
    "a row that has a name": (
        "for e in range(1):\n    v = y[:]\n    for i in range(n):\n        v[i] += x[i]\n    v = x[1:]\n"
        "    for i in range(n - 1):\n        y[i] += v[i]"
    ),
    "the only one": "for e in range(1):\n    y[e] += x[e] * w[e]",
    "no trip": "for e in range(0):\n    for i in range(n):\n        y[i] += x[i] * w[e]",
}


def of_text(text):
    body = ("n = len(x)\n" + text).replace("\n", "\n    ")
    return defined(f"def f(x, y, w, rounds=1):\n    {body}\n", np=np)


def given(first=0.25):
    rng = np.random.default_rng(1)
    return rng.random(60_000), np.zeros(60_000), np.array([first, 0.75, 0.5, 1.0])


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", [*UNWRAPPED, *AS_THEY_ARE])
def test_results_are_those_of_python(name, workers):
    written = of_text((UNWRAPPED | AS_THEY_ARE)[name])
    decorated = orion.parallel_for(written)
    with orion.session(workers=workers, force_parallel=True):
        for first in (0.25, 0.75, -1.0):
            mine, theirs = given(first), given(first)
            assert decorated(*mine) == written(*theirs)
            alike(mine[:2], theirs[:2])


@pytest.mark.parametrize("name", [*UNWRAPPED])
def test_what_is_in_them_is_shared_out(name):
    decorated = orion.parallel_for(of_text(UNWRAPPED[name]))
    with orion.session(workers=2, force_parallel=True):
        plan = decorated.plan(*given())
    assert [loop.runs_on for loop in plan.loops if (loop.iterations or 0) > 1000]
    assert all(loop.runs_on == 2 for loop in plan.loops if (loop.iterations or 0) > 1000)


def test_rounds_that_a_call_gives_are_rounds():
    decorated = orion.parallel_for(of_text(UNWRAPPED["a number of rounds that is a default"]))
    with orion.session(workers=2):
        mine = given()
        decorated(*mine, 2)
    assert np.array_equal(mine[1], mine[0] * mine[2][0] + mine[0] * mine[2][1])
