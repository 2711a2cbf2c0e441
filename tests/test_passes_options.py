"""Arguments that are None or a string, and what depends on them."""

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, UnsupportedLoopError
from orion.ir.printer import print_function
from orion.passes.options import with_options
from tests.loop_text import from_text
from tests.trials import one_in

KIND = "square"


def weighted(x, y, w=None):
    for i in range(len(x)):
        if w is None:
            y[i] = x[i]
        else:
            y[i] = w[i] * x[i]


def filled(x, y, w=None):
    if w is None:
        w = np.ones(len(x))
    for i in range(len(x)):
        y[i] = w[i] * x[i]


def filled_in_one_line(x, y, w=None):
    w = np.ones(len(x)) if w is None else w
    for i in range(len(x)):
        y[i] = w[i] * x[i]


def modes(x, y, mode="sum"):
    for i in range(len(x)):
        if mode == "sum":
            y[i] += x[i]
        elif mode in ("max", "maximum"):
            y[i] = max(y[i], x[i])
        elif mode != "nothing":
            y[i] = -1.0


def chosen(x, y, scale=None):
    s = 1.0 if scale is None else scale
    for i in range(len(x)):
        y[i] = s * x[i]


def truths(x, y, w=None, name="", log=False):
    for i in range(len(x)):
        if w is not None and not name:
            y[i] = w[i]
        if name or log:
            y[i] += 1.0
        if not (w is None):  # noqa: E714
            y[i] += 2.0


def weight(w, i):
    return 1.0 if w is None else w[i]


def named(value, how):
    return value * value if how == "square" else value


def in_helpers(x, y, w=None, how="square"):
    for i in range(len(x)):
        y[i] = named(x[i], how) * weight(w, i)


def outside(x, y):
    for i in range(len(x)):
        y[i] = x[i] * x[i] if KIND == "square" else x[i]


def among(x, y):
    for i in range(len(x)):
        if int(x[i] * 9) in (1, 3, 5):
            y[i] = 1.0
        if int(x[i] * 9) not in [2, 4]:
            y[i] += 1.0


def values(n=500):
    return np.random.default_rng(2).random(n)


CALLS = [
    (weighted, {}),
    (weighted, {"w": None}),
    (weighted, {"w": values()}),
    (filled, {}),
    (filled, {"w": values()}),
    (filled_in_one_line, {}),
    (filled_in_one_line, {"w": values()}),
    *((modes, {"mode": mode}) for mode in ("sum", "max", "maximum", "nothing", "other")),
    (chosen, {}),
    (chosen, {"scale": 2.5}),
    (chosen, {"scale": None}),
    (truths, {}),
    (truths, {"w": values()}),
    (truths, {"w": values(), "name": "x"}),
    (truths, {"log": True}),
    (in_helpers, {}),
    (in_helpers, {"w": values()}),
    (in_helpers, {"how": "none"}),
    (outside, {}),
    (among, {}),
]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(("function", "options"), CALLS)
def test_gives_what_python_does(function, options, workers):
    mine, theirs = values() + 1, values() + 1
    with orion.session(workers=workers, force_parallel=True):
        plan = orion.parallel_for(function).plan(values(), mine, **options)
        assert all(loop.is_parallel for loop in plan.loops if loop.nest.loops)
        orion.parallel_for(function)(values(), mine, **options)
    function(values(), theirs, **options)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_gives_what_python_does_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for function, options in one_in(3, CALLS):
            mine, theirs = values() + 1, values() + 1
            orion.parallel_for(function)(values(), mine, **options)
            function(values(), theirs, **options)
            np.testing.assert_array_equal(mine, theirs)


def test_a_call_after_another_has_options_of_its_own():
    looped = orion.parallel_for(modes)
    for mode in ("sum", "max", "sum", "other", "max"):
        mine, theirs = values() * 2, values() * 2
        looped(values(), mine, mode)
        modes(values(), theirs, mode)
        np.testing.assert_array_equal(mine, theirs)


def test_what_is_settled_is_gone():
    text = """
    def f(x, y, w, mode):
        for i in range(len(x)):
            if w is None and mode == "sum" and x[i] > 0:
                y[i] = 1
            elif not mode or w is None:
                y[i] = 2
            if mode == "max":
                y[i] = 3
    """
    found = with_options(from_text(text), {"w": None, "mode": "sum"})
    assert found.params == ("x", "y")
    assert print_function(found).splitlines() == [
        "def f(x, y):",
        "    for i in range(len(x)):",
        "        if x[i] > 0:",
        "            y[i] = 1",
        "        else:",
        "            y[i] = 2",
    ]


REFUSED = [
    ("for i in range(n):\n    a[i] = w", {"w": None}, ArgumentError, "argument `w` is None"),
    ("for i in range(n):\n    a[i] = w[i]", {"w": None}, ArgumentError, "argument `w` is None"),
    ("for i in range(len(w)):\n    a[i] = 1", {"w": "text"}, ArgumentError, "argument `w` is the string 'text'"),
    ("w += 1", {"w": None}, ArgumentError, "argument `w` is None"),
    ("if w.shape[0] > 2:\n    a[0] = 1", {"w": None}, ArgumentError, "argument `w` is None"),
    (
        "for i in range(n):\n    if w is None:\n        w = 1.0\n    a[i] = w",
        {"w": None},
        UnsupportedLoopError,
        "whether `w` is still what the call gave is not known",
    ),
    (
        "if n > 3:\n    w = 1.0\na[0] = w",
        {"w": None},
        UnsupportedLoopError,
        "whether `w` is still what the call gave is not known",
    ),
    ("if n == 'text':\n    a[0] = 1", {}, UnsupportedLoopError, "a string is compared with what is no string"),
    ("if w < 'text':\n    a[0] = 1", {"w": "sum"}, UnsupportedLoopError, "strings are compared"),
    ("if 'a' == w == 'b':\n    a[0] = 1", {"w": "sum"}, UnsupportedLoopError, "a chain of comparisons"),
]


@pytest.mark.parametrize(("body", "words", "error", "what"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_more_than_compared_is_refused(body, words, error, what):
    text = "def f(a, n, w):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    with pytest.raises(error, match=what.replace("(", r"\(")) as found:
        with_options(from_text(text), words)
    assert "help:" in str(found.value)
    assert "<test" in str(found.value)


def weight_of(w, i):
    if w is None:
        return 1.0
    return w[i]


def with_a_helper(x, w=None):
    for i in range(len(x)):
        x[i] *= weight_of(w, i)


def test_a_helper_that_cannot_be_settled_is_told():
    with pytest.raises(UnsupportedLoopError, match=r"`weight_of` compares with None.*(?s:.*)if w is None"):
        orion.parallel_for(with_a_helper)(values(), values())


def test_a_wrong_argument_is_told_with_its_line():
    with pytest.raises(ArgumentError, match=r"test_passes_options.py:\d+: argument `x` is None"):
        orion.parallel_for(outside)(None, values())
    with pytest.raises(ArgumentError, match="argument `x` is the string 'values'"):
        orion.parallel_for(outside)("values", values())
    with pytest.raises(ArgumentError, match=f"is the string '{40 * 'x'}…', and is more"):
        orion.parallel_for(outside)(5000 * "x", values())
