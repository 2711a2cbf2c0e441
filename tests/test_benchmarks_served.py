"""The samples and tables of `benchmarks.served`."""

import numpy as np
import pytest

import orion
from benchmarks.served.__main__ import HEADS, cells, medians
from benchmarks.served.one import EACH, loss, one_pass, samples


def test_a_model_of_the_samples_learns():
    data = samples(0.02)
    w = np.zeros(1 << 17)
    assert data[1].max() < len(w)
    before = loss(data, w)
    one_pass(*data, w, orion.buffer(w, max_delay=1000), 0.05)
    assert before == pytest.approx(np.log(2.0))
    assert loss(data, w) < before
    assert np.diff(data[0]).tolist() == [EACH] * len(data[3])
    counts = np.bincount(data[1])
    assert (counts[counts > 0] <= 2).mean() > 0.3  # many features are in hardly any sample
    assert counts.max() > 5 * counts[counts > 0].mean()


def row(kind, number, **more):
    known = {"kind": kind, "megabits": 100.0, "pass": number, "trip": 1e-4, "is_new": number == 3}
    found = {"call": 2.0, "loop": 1.0, "carried": 4e6, "loss": 0.5, "told": 1e6}
    fetched = {"rows": 5000.0, "messages": 4.0, "bytes": 4e4, "fetching": 0.5, "waited": 0.1}
    return {**known, **found, **fetched, **more}


def test_tables_have_medians_and_what_trips_would_take():
    rows = [row("served", k, call=float(k)) for k in range(4)] + [row("whole", k) for k in range(4)]
    served, whole = map(cells, medians(rows))
    assert len(served) == len(whole) == len(HEADS)
    told = dict(zip(HEADS, served, strict=True))
    assert told["call s"] == "1.000"
    assert told["new: call s"] == "3.000"
    assert (told["fetched"], told["on demand: trips"], told["s"]) == ("5,000", "5,000", "0.5")
    assert told["hidden"] == "80%"
    assert whole[5:11] == ("",) * 6
