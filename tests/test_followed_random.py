"""Random functions of short loops with anything between them, against Python."""

from __future__ import annotations

import linecache
import math
import warnings

import numpy as np
import pytest

import orion
from orion.errors import PlanError
from orion.runtime.followed.part import FollowedSteps
from tests.oracles.skeletons import skeleton_text
from tests.trials import times

TRIALS = times(10, 20)
"""Functions for each number of workers: where all kernels are compiled, one takes some seconds."""

SIZES = (24, 7)


def made(seed):
    """The function of a seed."""
    text, file = skeleton_text(seed), f"<skeleton {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"np": np, "math": math}
    exec(compile(text, file, "exec"), space)
    return space["skeleton"]


def arguments(seed, length):
    drawn = np.random.default_rng(seed)
    floats = (drawn.integers(0, 200, length) / 8 for _ in range(2))
    integers = (drawn.integers(0, 80, length) for _ in range(2))
    return (*floats, *integers, int(drawn.integers(0, 9)), float(drawn.integers(0, 9)) / 4)


def outcome(function, given):
    """What a call returns, or the class of what it raises; and what it leaves in its arrays."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            returned = function(*given)
    except (ArithmeticError, ValueError, TypeError) as error:
        return type(error), [array.copy() for array in given[:4]]
    return returned, [array.copy() for array in given[:4]]


def is_same(one, other, *, in_types=False):
    if isinstance(one, type) or isinstance(other, type):
        return one is other
    if in_types and [*map(type, one)] != [*map(type, other)]:
        return False
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


class Seen:
    """Whether steps are followed: as they are, or by Python alone; and how often they were."""

    def __init__(self, monkeypatch):
        self.is_off, self.answers = False, []
        followed = FollowedSteps.variant_for

        def variant_for(steps, values):
            variant = None if self.is_off else followed(steps, values)
            self.answers += [] if self.is_off else [variant is not None]
            return variant

        monkeypatch.setattr(FollowedSteps, "variant_for", variant_for)


def check(seed, workers, seen):
    """Whether Orion takes the function; AssertionError where it does otherwise than Python, or followed steps otherwise
    than the same ones in Python. PlanError where its plan is not proved."""
    function = made(seed)
    parallel = orion.parallel_for(function)
    told = f"seed {seed}, {workers} workers:\n{skeleton_text(seed)}"
    for length in SIZES:
        returned, arrays = outcome(function, arguments(seed, length))
        try:
            parallel.plan(*arguments(seed, length)).check()
            found = []
            for seen.is_off in (False, True, False):
                found.append(outcome(parallel, arguments(seed, length)))
        except PlanError:
            raise
        except orion.OrionError:
            return False
        for other, changed in found:
            assert is_same(returned, other), f"{returned} in Python, {other} here; {length} elements; {told}"
            assert is_same(found[0][0], other, in_types=True), f"{found[0][0]}, {other}; {length} elements; {told}"
            for one, own in zip(arrays, changed, strict=True):
                np.testing.assert_array_equal(one, own, err_msg=told)
    return True


@pytest.mark.timeout(1200)
def test_random_functions_do_what_they_do_in_python(monkeypatch):
    seen, taken = Seen(monkeypatch), []
    for workers in (1, 2, 4):
        with orion.session("threads", workers, force_parallel=True):
            taken += [check(seed, workers, seen) for seed in range(workers * 100_000, workers * 100_000 + TRIALS)]
    assert sum(taken) > 0.7 * len(taken)
    assert sum(seen.answers) > 0.4 * len(seen.answers) > 0


@pytest.mark.parametrize("seed", [100_230, 100_648])
def test_functions_that_were_wrong_once(seed, monkeypatch):
    """A bound that is a remainder, of a loop whose iterations have an array of their own each; a truth value that a
    loop keeps, so that it has Python's class."""
    with orion.session("threads", 1, force_parallel=True):
        assert check(seed, 1, Seen(monkeypatch))
