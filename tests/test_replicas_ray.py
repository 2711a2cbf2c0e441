"""Copies of arrays on Ray: the actors of one node share the array and all copies. On several nodes:
`test_replicas_nodes.py` and `test_replicas_apart.py`."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest

import orion
from tests.test_replicas import POLICIES, REPEATABLE, follow, logistic, loss, parallel_logistic, samples

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def actors():
    with orion.session("ray", 2, force_parallel=True) as session:
        yield session


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("name", REPEATABLE)
def test_the_bits_are_those_of_threads(name, made, actors):
    data, labels = samples(700)
    w, again = made(12), np.zeros(12)
    x = orion.replicate(w, policy=POLICIES[name]())
    for _ in range(2):
        parallel_logistic(data, labels, x, 0.1)
    on_threads = orion.replicate(again, policy=POLICIES[name]())
    with orion.session("threads", 2, force_parallel=True):
        for _ in range(2):
            parallel_logistic(data, labels, on_threads, 0.1)
    np.testing.assert_array_equal(np.asarray(w), again)
    np.testing.assert_array_equal(x.copies[:, :12], on_threads.copies)


@pytest.mark.parametrize("name", ["async", "hogwild"])
def test_a_model_learns(name, actors):
    data, labels = samples()
    serial, w = np.zeros(12), orion.zeros(12)
    x = orion.replicate(w, policy=POLICIES[name]())
    for _ in range(4):
        logistic(data, labels, serial, 0.1)
        parallel_logistic(data, labels, x, 0.1)
    assert loss(data, labels, w.to_numpy()) < 2 * loss(data, labels, serial)


def test_copies_that_are_no_numbers_leave_all_as_it_was(actors):
    targets = np.random.default_rng(0).normal(size=(100, 5))
    w = orion.zeros(5)
    x = orion.replicate(w, policy=POLICIES["sync"]())
    follow(targets, x, 0.1)
    centre, copies = w.to_numpy().copy(), x.copies.copy()
    targets[77, 3] = np.nan
    with pytest.raises(orion.UpdateError, match="is not a finite number"):
        follow(targets, x, 0.1)
    np.testing.assert_array_equal(w.to_numpy(), centre)
    np.testing.assert_array_equal(x.copies, copies)


@orion.parallel_for
def follow_slowly(targets, work, x, step):
    for s in range(targets.shape[0]):
        t = 1.0
        for _ in range(work):
            t = t * 1.0000001
        for k in range(x.shape[0]):
            x[k] -= step * (x[k] - targets[s, k]) + t - t


@pytest.mark.all("test_runtime_ray.py::test_a_run_whose_worker_dies_is_done_again")
def test_a_worker_that_dies_takes_no_copy_with_it(actors):
    targets = np.random.default_rng(0).normal(size=(2_000, 20))
    found = []
    for kills in (False, True):
        w = np.zeros(20)
        x = orion.replicate(w, policy=orion.elastic(mode="sync", sync_every=2))
        follow_slowly(targets[:100], 1, x, 0.01)
        victim = actors._backend._team.group.processes[1]
        timer = threading.Timer(0.2, os.kill, [victim, signal.SIGKILL])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            if kills:
                timer.start()
            follow_slowly(targets, 1_000_000, x, 0.01)
        timer.cancel()
        assert [one.category for one in seen] == [orion.WorkerReplacedWarning] * kills
        found.append(np.concatenate([w, x.copies.ravel()]))
    np.testing.assert_array_equal(*found)
