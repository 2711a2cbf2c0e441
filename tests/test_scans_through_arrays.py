"""Scans whose first pass cannot leave out what iterations do beside: stores that are read back, ways out of loops."""

import numpy as np
import pytest

import orion
from benchmarks.everyday.finance import egarch_filter
from orion.rewrites.scans import apply, find


def through_an_element(x, out):
    """`z` is read from the element that holds `s`."""
    s = 0.5
    for i in range(len(x)):
        out[i] = np.exp(s)
        z = x[i] / np.sqrt(out[i])
        s = 0.9 * s + 0.1 * abs(z)
    return s


def through_an_element_of_another(x, out):
    """`z` is read from an element that does not depend on `s`, but is not stored before the first pass is done."""
    s = 0.0
    for i in range(len(x)):
        out[i] = np.sqrt(abs(x[i]))
        z = out[i] * 0.5
        s = 0.9 * s + z
    return s


def under_a_test(x, out):
    s = 0.0
    for i in range(len(x)):
        out[i] = np.sin(s)
        up = out[i] > 0.3
        if up:
            s = s + x[i]
        else:
            s = s - x[i]
    return s


def handed_on_in_an_array(x, out):
    """`out` is what iterations hand on; `z` reads the element that this one has stored."""
    t = 0.0
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = 0.25 * x[i] + 0.75 * out[i - 1]
        z = out[i] * x[i]
        t = 0.5 * t + z
    return t


def before_it_is_stored(x, out):
    """`z` is read from the element as it was before the loop: a scan."""
    s = 0.0
    for i in range(len(x)):
        z = np.exp(out[i]) + np.sin(x[i])
        s = 0.9 * s + z
        out[i] = s
    return s


def stored_beside_a_scalar(x, out):
    """One statement gives the element and a scalar their values."""
    s = 1.0
    for i in range(len(x)):
        out[i], q = s, 1.0
        z = out[i]
        s = 0.5 * s + 0.25 * z * q
    return s


def read_before_stored_beside_a_scalar(x, out):
    """The first pass must not store what the second one reads."""
    s, total = 1.0, 0.0
    for i in range(len(x)):
        total += out[i] * s
        out[i], q = x[i], 2 * x[i]
        s = 0.5 * s + q
    return s + total


def left_inner_loop(x, out):
    """`z` is the sum of the trips before the one that leaves the loop, each of which the first pass has to see."""
    s = 0.0
    for i in range(len(x)):
        z = 0.0
        for j in range(4):
            if x[j] > x[i]:
                break
            z = z + x[j] + 1
        s = 0.5 * s + z
        out[i] = s
    return s


def skipped_trips(x, out):
    s = 0.0
    for i in range(len(x)):
        z = 0.0
        for j in range(4):
            if x[j] > x[i]:
                continue
            z = z + x[j] + 1
        s = 0.5 * s + z
        out[i] = s
    return s


def last_trip(x, out):
    """`j` comes from a loop that does nothing else for `s`."""
    s = 0.0
    for i in range(len(x)):
        for j in range(3):
            out[i] = x[j]
        s = 0.5 * s + j * x[i]
    return s


REFUSED = [through_an_element, through_an_element_of_another, under_a_test, handed_on_in_an_array]
REFUSED += [stored_beside_a_scalar, read_before_stored_beside_a_scalar, left_inner_loop, skipped_trips, last_trip]


@pytest.fixture(autouse=True)
def short_loops(monkeypatch):
    """Loops of any length, and with little work, go through blocks."""
    monkeypatch.setattr(apply, "LEAST_NS", 1)
    monkeypatch.setattr(find, "MEMORY_NS", 0.0)
    monkeypatch.setattr(find, "GAIN", 0.0)


@pytest.mark.parametrize("function", [*REFUSED, before_it_is_stored])
def test_results_are_those_of_the_loop_as_written(function):
    x = np.random.default_rng(5).normal(size=9_000)
    first = np.random.default_rng(6).random(9_000)
    mine, theirs = first.copy(), first.copy()
    wanted = function(x, theirs)
    with orion.session("threads", 2, force_parallel=True):
        decorated = orion.parallel_for(function)
        got = decorated(x, mine)
        plan = decorated.plan(x, mine)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    assert got == pytest.approx(wanted, rel=1e-9)
    assert bool(plan.to_dict()["loops"][-1]["scans"]) == (function is before_it_is_stored)


def test_a_filter_whose_variance_is_read_back_is_serial():
    returns = 0.01 * np.random.default_rng(1).normal(size=200_000)
    wanted, likely = egarch_filter(returns)
    with orion.session("threads", 2):
        decorated = orion.parallel_for(egarch_filter)
        with pytest.warns(orion.SerialLoopWarning, match="log_var"):
            variance, loglik = decorated(returns)
    np.testing.assert_allclose(variance, wanted, rtol=1e-9)
    assert loglik == pytest.approx(likely, rel=1e-9)
