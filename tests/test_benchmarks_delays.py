"""The comparison of methods where gradients are late: the loop by hand, what is told, and what is refused."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import orion
from benchmarks import delays
from benchmarks.peers import slr


@pytest.fixture(scope="module")
def samples():
    return delays.generated(600, 40, 5, 0)


def by_the_paper(samples, step, delay, is_revised):
    """Algorithm 1 of McMahan & Streeter in plain Python: gradients wait in a queue, with what was read beside them."""
    w, total, z, most = (np.full(samples.features, start) for start in (0.0, 0.0, 1.0, 1.0))
    waiting = deque()

    def update():
        at, g, before = waiting.popleft()
        back = total[at] - before if is_revised else 0.0 * g
        old = step / np.sqrt(most[at])
        z[at] += g * g + 2.0 * g * back
        most[at] = np.maximum(z[at], most[at])
        new = step / np.sqrt(most[at])
        w[at] += -new * g + (old - new) * back
        total[at] += g

    for s in range(len(samples)):
        row = slice(samples.indptr[s], samples.indptr[s + 1])
        at, x = samples.indices[row], samples.values[row].astype(float)
        g = 1.0 / (1.0 + np.exp(-(w[at] @ x))) - samples.labels[s]
        waiting.append((at, g * x, total[at]))
        if len(waiting) > delay:
            update()
    while waiting:
        update()
    return slr.loss_of(samples, w)


@pytest.mark.parametrize("method", delays.METHODS)
@pytest.mark.parametrize("delay", [0, 37])
def test_the_loop_by_hand_delays_gradients_as_the_paper_does(method, delay, samples):
    seen = delays.Lateness()
    found = delays.one_by_one(samples, method, 0.4, delay, 1, seen)
    np.testing.assert_allclose(found, by_the_paper(samples, 0.4, delay, method == "adarevision"), rtol=1e-9)
    assert (seen.latest, seen.median) == (delay, delay)


@pytest.mark.all("test_the_loop_by_hand_delays_gradients_as_the_paper_does")
def test_threads_without_delay_do_the_same(samples):
    with orion.session("threads", 2, force_parallel=True):
        for method in delays.METHODS:
            seen = delays.Lateness()
            found = delays.in_threads(samples, method, 0.4, 0, 1, seen)
            np.testing.assert_allclose(found, delays.one_by_one(samples, method, 0.4, 0, 1, seen), rtol=1e-9)


def test_rows_have_the_best_step_and_what_was_late(samples, monkeypatch):
    monkeypatch.setattr(delays, "STEPS", (0.1, 1.6))
    options = delays.argparse.Namespace(passes=1, repeats=2, delays=(20,))
    with orion.session("threads", 2, force_parallel=True):
        rows = delays.compared(samples, options)
    assert [(row.how, row.method) for row in rows] == [
        (how, method) for how in ("one by one", "in threads") for method in delays.METHODS
    ]
    for row in rows:
        losses = [delays.one_by_one(samples, row.method, step, 20, 1, delays.Lateness()) for step in (0.1, 1.6)]
        assert row.step == (0.1, 1.6)[int(np.argmin(losses))]
        assert row.least <= row.loss <= row.most
        assert 0 <= row.median <= row.latest <= 20
    assert len(delays.table_of(rows).rows) == 2


def test_readers_see_nothing_that_is_too_late(monkeypatch):
    monkeypatch.setattr(delays, "READ", (7,))
    assert 0 <= delays.seen_by_readers(2)[7] <= 7


# ---------------------------------------------------------------- next to scikit-learn


@pytest.mark.all("test_rows_have_the_best_step_and_what_was_late")
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_all_contenders_end_with_the_loss_of_the_loop_by_hand():
    case = slr.Case(delays.generated(3000, 200, 6, 0), 0.5, 2)
    losses = {one.title: slr.loss_of(case.samples, one.result()) for one in case.contenders(40)}
    assert {"Orion ×1", "Orion ×2", "Orion, exact ×1", "Numba ×1"} <= {*losses}
    # Threads of the peer race for 200 weights, and how many updates are lost is chance: 1.1 % of the loss, once.
    losses.pop("Numba prange ×2")
    slr.check(losses)
    worse = {**losses, "Orion ×2": 1.02 * losses["Numba ×1"]}
    with pytest.raises(SystemExit, match="Orion ×2 ends with a loss of"):
        slr.check(worse)
