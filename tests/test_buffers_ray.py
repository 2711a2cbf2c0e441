"""Updates that may be late on Ray: the actors of one node share the array and the clocks."""

import warnings

import numpy as np
import pytest

import orion
from tests.dying import kill_in_the_middle
from tests.test_buffers import count, loss, parallel_slr, samples, slowly, slr
from tests.trials import one_in

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def actors():
    with orion.session("ray", 2, force_parallel=True) as session:
        yield session


@pytest.mark.parametrize("bins", [7, 5000], ids=["dense", "listed"])
@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
def test_no_update_is_lost(bins, made, actors):
    group, totals = np.random.default_rng(0).integers(0, bins, 9000), made(bins)
    late = orion.buffer(totals, max_delay=100)
    for _ in range(3):
        count(group, late)
    np.testing.assert_array_equal(np.asarray(totals), 3 * np.bincount(group, minlength=bins))
    told = count.last_run.late  # nothing is late where updates are added at once
    assert [one.worker for one in told] == ([0, 1] if bins == 7 else [])
    assert all(one.latest <= 100 for one in told)


def test_a_model_learns_as_it_does_one_by_one(actors):
    data = samples(3000, 50)
    serial, w = np.zeros(50), np.zeros(50)
    slr(*data, serial, orion.buffer(serial), 0.1)
    parallel_slr(*data, w, orion.buffer(w, max_delay=40), 0.1)
    assert loss(*data, w) < 1.1 * loss(*data, serial)


def test_updates_that_are_no_numbers_leave_all_as_it_was(actors):
    data = samples(300, 20)
    w = orion.ones(20)
    data[2][100] = np.nan
    with pytest.raises(orion.UpdateError, match="is not a number"):
        parallel_slr(*data, w, orion.buffer(w, max_delay=10), 0.1)
    np.testing.assert_array_equal(w.to_numpy(), 1.0)


@pytest.mark.all("test_runtime_ray.py::test_a_run_whose_worker_dies_is_done_again")
@pytest.mark.parametrize("made", one_in(2, [orion.zeros, np.zeros]))
def test_a_worker_that_dies_takes_no_update_with_it(made, actors):
    group, totals = np.arange(4000) % 13, made(13)
    late = orion.buffer(totals, max_delay=50)
    slowly(group, 10, late)
    killing = kill_in_the_middle(actors._backend._team.group.processes[1])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        slowly(group, 400_000, late)
    killing.join()
    assert [one.category for one in seen] == [orion.WorkerReplacedWarning]
    np.testing.assert_array_equal(np.asarray(totals), 2 * np.bincount(group))
