"""`raise` and `assert`: the error is Python's, with its text, and what was written before stays written."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from tests.loop_text import from_body

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


@orion.parallel_for
def checked(x, out):
    n = x.shape[0]
    if n < 2:
        raise ValueError(f"too short: {n} {x.shape} {{}}")
    assert n < 9, "too long"
    for i in range(n):
        out[i] = 2 * x[i] + x[1]
    if out[0] > 100.0:
        raise RuntimeError
    return out[0]


@orion.parallel_for
def in_rounds(x):
    for t in range(9):
        for i in range(x.shape[0]):
            x[i] *= 2
        if x[0] > 20.0:
            raise OverflowError(f"{x[0]:.1f} after {t}")
    return t


@orion.parallel_for
def in_a_loop(x, out):
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            raise ValueError(f"row {i} is {x[i]}")
        out[i] = x[i]


CALLS = [
    (checked, lambda: (np.ones(3), np.zeros(3))),
    (checked, lambda: (np.ones(1), np.zeros(3))),
    (checked, lambda: (np.ones(9), np.zeros(9))),
    (checked, lambda: (np.full(3, 99.0), np.zeros(3))),
    (in_rounds, lambda: (np.ones(4),)),
    (in_rounds, lambda: (np.full(4, 1e-9),)),
    (in_a_loop, lambda: (np.ones(5), np.zeros(5))),
    (in_a_loop, lambda: (np.array([1.0, 2.0, -3.0, 4.0]), np.zeros(4))),
]


def outcome(function, given):
    try:
        return function(*given), None
    except Exception as error:
        return type(error), str(error).partition("\n")[0]  # pytest adds to the text of assertions


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("function", "given"), CALLS)
def test_is_what_python_does(function, given, workers):
    mine, theirs = given(), given()
    with orion.session("threads", workers, force_parallel=True):
        assert outcome(function, mine) == outcome(function.serial, theirs)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_place_is_noted():
    with pytest.raises(ValueError, match="too short") as caught:
        checked(np.ones(1), np.zeros(1))
    assert str(caught.value) == "too short: 1 (1,) {}"
    (note,) = caught.value.__notes__
    assert note.splitlines()[0].endswith("raised here")
    assert 'raise ValueError(f"too short' in note


def test_guards_leave_loops_parallel():
    plan = checked.plan(np.ones(8), np.zeros(8))
    assert plan.loops[0].strategy == "independent"
    plan.check()


def test_a_loop_that_raises_says_so():
    (reason,) = in_a_loop.plan(np.ones(5), np.zeros(5)).loops[0].reasons[:1]
    assert (reason.code, reason.message[:7]) == ("ORN110", "`raise`")


def test_bounds_behind_a_guard_are_the_guards():
    with pytest.raises(ValueError, match="too short"):
        checked(np.ones(1), np.zeros(0))


def test_as_text():
    function = from_body("if n < 1:\n    raise ValueError(f'{n:>3} of {W.shape}')\nassert n < 9, 'many'")
    from orion.ir.printer import print_function

    assert print_function(function).splitlines()[1:] == [
        "    if n < 1:",
        "        raise ValueError('{:>3} of {}'.format(n, W.shape))",
        "    if not n < 9:",
        "        raise AssertionError('many')",
    ]
