"""Progress bars of tqdm around loops: results as without, and bars that are drawn and filled."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import tqdm as whole_module
from tqdm import tqdm, trange

import orion


def training(x, w, n):
    for _ in tqdm(range(n), desc="training"):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * w[i]
        for i in range(x.shape[0]):
            w[i] += 0.5 * x[i] / (1.0 + s)


def planned(x, w, n):
    for i in whole_module.trange(1, x.shape[0], desc="planned", leave=True):
        w[i] = x[i] * n


def counted(x, w, n):
    for i, v in enumerate(tqdm(x, total=len(x))):
        w[i] = v * n


def swapped(x, w, n):
    for _ in trange(n, desc="swapped"):
        for i in range(1, x.shape[0] - 1):
            w[i] = 0.5 * (x[i - 1] + x[i + 1])
        x, w = w, x
    return x


def stopped(x, w, n):
    for t in tqdm(range(n), desc="stopped"):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        if t == 3:
            break
        for i in range(x.shape[0]):
            w[i] += x[i] / s
    return t


def found(x, w, n):
    for i in tqdm(range(x.shape[0]), desc="found"):
        if x[i] > 0.5:
            break
    return i


def nested(x, w, n):
    for _ in tqdm(range(n), desc="outer"):
        s = 0.0
        for i in tqdm(range(x.shape[0]), desc="inner"):
            s += x[i]
        for i in range(x.shape[0]):
            w[i] += s


SHOWN = {
    training: ["training: 100%", "7/7"],
    planned: ["planned: 100%", "2999/2999"],
    counted: ["100%", "3000/3000"],
    swapped: ["swapped: 100%", "7/7"],
    stopped: ["stopped:  43%", "3/7"],
    found: ["found:   0%", "0/3000"],
    nested: ["outer: 100%", "7/7", "inner: 100%", "3000/3000"],
}


def run(function, **session):
    made = np.random.default_rng(0).random(3000)
    mine, its = (made.copy(), np.ones(3000), 7), (made.copy(), np.ones(3000), 7)
    with orion.session(**session), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        got = orion.parallel_for(function)(*mine)
    return got, mine, its


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("function", SHOWN, ids=lambda f: f.__name__)
def test_the_bar_is_drawn_and_the_result_is_pythons(function, workers, capsys):
    got, mine, its = run(function, workers=workers, force_parallel=True)
    drawn = capsys.readouterr().err
    want = function(*its)
    assert all(text in drawn for text in SHOWN[function]), drawn
    assert len(re.findall(r"outer: 100%", drawn)) <= 1
    np.testing.assert_allclose(got, want) if want is not None else None
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_on_ray_the_result_is_the_same():
    _, mine, its = run(training, backend="ray", workers=2)
    training(*its)
    np.testing.assert_allclose(mine[1], its[1], rtol=1e-12)


def with_text(x, n):
    for i in tqdm(range(n), desc=f"n = {n}"):
        x[i] = 1.0


def with_position(x, n):
    for i in tqdm(range(n), "training"):
        x[i] = 1.0


def by_another_name(x, n):
    tqdm = 2.0
    for i in range(n):
        x[i] = tqdm


@pytest.mark.parametrize(("function", "text"), [(with_text, "is no constant"), (with_position, "options by name")])
def test_what_a_run_cannot_know_is_refused(function, text):
    with pytest.raises(orion.UnsupportedLoopError, match=rf"{text}"):
        orion.parallel_for(function)(np.zeros(5), 5)


def test_a_local_name_is_no_bar():
    x = np.zeros(5)
    orion.parallel_for(by_another_name)(x, 5)
    assert (x == 2.0).all()


def test_an_option_that_there_is_not_is_told_by_tqdm():
    def wrong(x):
        for i in tqdm(range(x.shape[0]), colour_of_it="red"):
            x[i] = 1.0

    with pytest.raises(Exception, match="colour_of_it"):
        orion.parallel_for(wrong)(np.zeros(5))
