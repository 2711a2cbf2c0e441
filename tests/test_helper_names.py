"""What is said of a loop that a helper has: names and lines are those that the user wrote."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from orion.ir.function import in_users_words


def running(x, y):
    last = 0.0
    for i in range(x.shape[0]):
        d = x[i] - last
        last = 0.5 * last + d * d
        y[i] = last


def twice(x):
    made = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        made[i] = 0.5 * made[i - 1] + x[i]
    return made


def plain(x, y):
    running(x, y)


def with_names_of_its_own(x, y):
    last, d, i = 1.0, 2.0, 3
    running(x, y)
    y[0] = last + d + i


def through_another(x, y):
    i = 1
    inner(x, y)
    y[i] = 2.0


def inner(x, y):
    i = 0
    running(x, y)
    y[i] = 1.0


def two_calls(x, y):
    i = 0
    a = twice(x)
    b = twice(a)
    y[:] = a + b
    y[i] = 0.0


def told(function):
    arguments = np.random.default_rng(1).random(50), np.zeros(50)
    expected = [one.copy() for one in arguments]
    function(*expected)
    compiled = orion.parallel_for(function, fastmath=False)
    with pytest.warns(orion.SerialLoopWarning) as found:
        compiled(*arguments)
    np.testing.assert_array_equal(arguments[1], expected[1])
    plan = compiled.plan(*arguments)
    plan.check()
    return str(found[0].message), str(plan), plan._repr_html_()


def test_names_of_a_helper_are_its_own():
    warning, text, page = told(plain)
    assert "the loop over (i) is serial" in warning
    assert "`last`" in warning
    for shown in text, page:
        assert "running_" not in shown
        assert "d = x[i] - last" in shown


@pytest.mark.parametrize(
    ("function", "said"), [(with_names_of_its_own, "running.last"), (through_another, "running.i")]
)
def test_names_that_the_function_has_too_say_whose_they_are(function, said):
    warning, text, page = told(function)
    assert said in warning
    for shown in warning, text, page:
        assert "running_" not in shown
        assert "inner_" not in shown
    assert "`running.last`" in text or "`last`" in text


def test_names_of_a_second_call_are_told_apart():
    for shown in told(two_calls)[1:]:
        assert "twice_" not in shown
        assert "twice.i" in shown
    function = orion.parallel_for(two_calls).plan(np.zeros(5), np.zeros(5)).function.program.function
    names = [one.name for one in function.helper_locals if one.local == "i"]
    assert [in_users_words(name, function) for name in names] == ["twice.i", "twice.i'"]
    assert in_users_words("a longer_twice_i_name and y", function) == "a longer_twice_i_name and y"


def test_lines_of_a_helper_are_quoted():
    _, text, _ = told(with_names_of_its_own)
    assert "for i in range(x.shape[0]):" in text
