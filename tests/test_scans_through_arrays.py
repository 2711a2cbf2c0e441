"""Scans beside elements that the same iteration has stored, which the first of two passes does not store."""

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


REFUSED = [through_an_element, through_an_element_of_another, under_a_test, handed_on_in_an_array]


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
