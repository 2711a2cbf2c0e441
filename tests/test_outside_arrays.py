"""Arrays from outside a function, of its module or of the function around it: as they are when it is called."""

import numpy as np
import pytest

import orion
from orion.errors import AliasError, UnsupportedLoopError

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

WEIGHTS = np.array([0.25, 0.5, 0.25])
STEPS = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
TOTALS = np.zeros(4)


def smoothed(x, out):
    for i in range(1, len(x) - 1):
        for k in range(3):
            out[i] += WEIGHTS[k] * x[i + k - 1]


def neighbours(A, out):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            for di, dj in STEPS:
                out[i, j] += A[i + di, j + dj]


def counted(labels):
    for i in range(len(labels)):
        TOTALS[labels[i]] += 1.0


def both(n):
    total = WEIGHTS.sum()
    for x in WEIGHTS:
        total += x * n
    return total, len(STEPS), STEPS.shape[1]


def test_are_read_as_they_are():
    with orion.session(workers=2, force_parallel=True):
        x, out, expected = np.arange(200.0) ** 2, np.zeros(200), np.zeros(200)
        orion.parallel_for(smoothed)(x, out)
        smoothed(x, expected)
        np.testing.assert_allclose(out, expected)
        A, found, right = np.random.default_rng(0).random((30, 40)), np.zeros((30, 40)), np.zeros((30, 40))
        orion.parallel_for(neighbours)(A, found)
        neighbours(A, right)
        np.testing.assert_allclose(found, right)
        assert orion.parallel_for(both)(3) == both(3)


def test_are_those_of_each_call():
    scale = np.array([1.0, 2.0])

    @orion.parallel_for
    def scaled(v):
        for i in range(len(v)):
            v[i] *= scale[i]

    v = np.ones(2)
    scaled(v)
    scale[1] = 5.0
    scaled(v)
    assert v.tolist() == [1.0, 10.0]
    scale = np.array([3, 4, 5])
    v = np.ones(3)
    scaled(v)
    assert v.tolist() == [3.0, 4.0, 5.0]
    scale = 2.0
    with pytest.raises((UnsupportedLoopError, orion.ArgumentError)):
        scaled(v)
    scale = np.ones(3, np.float32)
    scaled(v)
    assert v.tolist() == [3.0, 4.0, 5.0]


def test_are_written_too():
    TOTALS[:] = 0.0
    labels = np.random.default_rng(1).integers(0, 4, 1000)
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(counted)(labels)
    assert TOTALS.tolist() == np.bincount(labels).tolist()


def test_may_not_be_an_argument_that_is_written():
    with pytest.raises(AliasError, match="WEIGHTS"):
        orion.parallel_for(smoothed)(np.zeros(3), WEIGHTS)


def test_the_plan_has_them():
    plan = orion.parallel_for(smoothed).plan(np.zeros(9), np.zeros(9))
    assert "WEIGHTS" in str(plan)
    assert plan.is_parallel


def test_helpers_take_none():
    def helper(i):
        return WEIGHTS[i]

    @orion.parallel_for
    def f(x):
        for i in range(3):
            x[i] = helper(i)

    with pytest.raises(UnsupportedLoopError, match=r"`WEIGHTS` is an array from outside .* that the loop calls"):
        f(np.zeros(3))


@pytest.mark.ray
def test_are_given_to_actors():
    with orion.session("ray", workers=2, force_parallel=True):
        x, out, expected = np.arange(200.0) ** 2, np.zeros(200), np.zeros(200)
        orion.parallel_for(smoothed)(x, out)
        smoothed(x, expected)
        np.testing.assert_allclose(out, expected)


PROGRAM = """
import numpy as np
import orion

WEIGHTS = np.array([0.25, 0.5, 0.25])

@orion.parallel_for
def weighted(x, out):
    for i in range(len(x)):
        out[i] = x[i] * WEIGHTS[i % 3]
"""


def test_the_command_line_knows_them(capsys, tmp_path):
    from orion.cli.cli import main

    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    assert main(["explain", f"{file}:weighted", "--shape", "x=1000", "--shape", "out=1000"]) == 0
    assert "WEIGHTS" in capsys.readouterr().out
