"""Pulls of copies while workers go on with their steps, and which pulls are stable with momentum."""

import numpy as np
import pytest

import orion
from orion.arrays.stability import greatest_alpha
from orion.errors import ArgumentError
from tests.test_replicas import Simulated, blocks_of, follow, loss, parallel_logistic, samples

WORKERS = (1, 2, 3, 4)


class Overlapped(Simulated):
    """The formulas of `orion.kernel.support.overlapped`, one worker after the other in NumPy."""

    def run(self, targets, blocks, momentum=0.0):
        own = [[part[k : k + self.every] for k in range(0, len(part), self.every)] for part in blocks]
        posts, givers, centre = {}, [], self.centre.copy()
        for number in range(max(map(len, own)) + 1):
            there = [worker for worker, parts in enumerate(own) if number < len(parts)]
            for worker in there:
                for s in own[worker][number]:
                    self.local(worker, targets[s], momentum)
            pulls = {worker: self.alpha * (posts[worker] - centre) for worker in givers}
            for worker, pull in pulls.items():
                self.copies[worker] -= pull
            centre = centre + sum(pulls.values(), np.zeros_like(centre))
            posts, givers = {worker: self.copies[worker].copy() for worker in there}, there
        self.centre = centre


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("workers", WORKERS)
def test_results_are_those_of_the_formulas(workers, momentum):
    policy = orion.elastic(mode="sync", alpha=0.2, sync_every=7, momentum=momentum, overlap=True)
    with orion.session("threads", workers, force_parallel=True):
        for n in (1, 2, 29, 100, 211):
            targets, w = np.random.default_rng(1).normal(size=(n, 1100)), np.ones(1100)
            x, simulated = orion.replicate(w, policy=policy), Overlapped(w, workers, 7, 0.2, 0.1)
            for _ in range(3):
                simulated.run(targets, blocks_of(targets, x), momentum)
                follow(targets, x, 0.1)
                np.testing.assert_allclose(w, simulated.centre, rtol=1e-11)
            for worker, own in enumerate(x.copies[:workers]):
                np.testing.assert_allclose(own, simulated.copies[worker], rtol=1e-11)


@orion.parallel_for
def uneven(targets, times, x, y, rounds):
    for _ in range(rounds):
        for s in range(targets.shape[0]):
            for _ in range(times[s]):
                for k in range(x.shape[0]):
                    x[k] -= 0.01 * (x[k] - targets[s, k])
            y[0] += 0.1 * (x[0] - y[0])


def test_the_bits_are_the_same_however_long_steps_take():
    rng = np.random.default_rng(2)
    targets, found = rng.normal(size=(37, 600)), set()
    policy = orion.elastic(mode="sync", sync_every=3, overlap=True)
    with orion.session("threads", 3, force_parallel=True):
        for _ in range(12):
            w, v = np.zeros(600), np.zeros(1)
            x, y = orion.replicate(w, policy=policy), orion.replicate(v, policy=policy)
            uneven(targets, np.full(37, 5), x, y, 20)
            found.add((w.tobytes(), v.tobytes(), x.copies.tobytes()))
    assert len(found) == 1


@orion.parallel_for
def slow(targets, times, x, step):
    for s in range(targets.shape[0]):
        z = 0.0
        for q in range(times[s]):
            z += np.sin(z + q)
        for k in range(x.shape[0]):
            x[k] -= step * (x[k] - targets[s, k]) + 0.0 * z


def test_who_ends_first_is_pulled_by_what_there_was():
    """Workers with fewer steps end while others go on, who must not change what they still need."""
    rng = np.random.default_rng(3)
    policy = orion.elastic(alpha=0.1, sync_every=1, overlap=True)
    for workers, n in ((3, 48), (5, 34), (5, 53)):  # some have two steps fewer than others
        targets, w = rng.normal(size=(n, 1500)), np.ones(1500)
        with orion.session("threads", workers, force_parallel=True):
            x, simulated = orion.replicate(w, policy=policy), Overlapped(w, workers, 1, 0.1, 0.1)
            blocks = blocks_of(targets, x)
            for number in range(40):
                simulated.run(targets, blocks)
                slow(targets, rng.choice([1, 1, 50, 3000 * (number % 2)], n), x, 0.1)
                np.testing.assert_allclose(w, simulated.centre, rtol=1e-10, atol=1e-12)
                np.testing.assert_allclose(x.copies[:workers], simulated.copies, rtol=1e-10, atol=1e-12)


def test_the_plan_says_that_pulls_overlap():
    data, labels = samples(500)
    x = orion.replicate(np.zeros(12), policy=orion.elastic(sync_every=5, overlap=True))
    with orion.session("threads", 2, force_parallel=True):
        plan = parallel_logistic.plan(data, labels, x, 0.1)
        plan.check()
        told = " ".join(str(plan).split())
    assert "all workers post their copies, and are pulled by what all have posted before" in told
    assert "alpha 0.45, stable up to 0.5" in told
    assert plan.to_dict()["loops"][0]["replicas"][0]["overlap"] is True


def test_a_resumed_job_goes_on_from_centre_and_momentum(tmp_path):
    data, labels = samples(500)
    policy = orion.elastic(sync_every=5, momentum=0.5, overlap=True)
    with orion.session("threads", 2, force_parallel=True):
        w = np.zeros(12)
        x = orion.replicate(w, policy=policy)
        parallel_logistic(data, labels, x, 0.1)
        orion.checkpoint(tmp_path, x=x)
        again = np.zeros(12)
        resumed = orion.replicate(again, policy=policy)
        orion.restore(tmp_path, x=resumed)
        np.testing.assert_array_equal(again, w)
        np.testing.assert_array_equal(resumed.velocities, x.velocities)
        parallel_logistic(data, labels, resumed, 0.1)
    assert loss(data, labels, again) < loss(data, labels, np.zeros(12)) / 3


# ---------------------------------------------------------------- what is stable


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mode": "async", "overlap": True}, "`overlap=True` of orion.elastic with mode='async'"),
        ({"overlap": 1}, "`overlap=1`"),
        ({"curvature": 0}, "`curvature=0`"),
        ({"curvature": 3.0, "momentum": 0.5}, r"less than 2 \(1 \+ momentum\) = 3"),
    ],
)
def test_bad_policies_are_refused(arguments, said):
    with pytest.raises(ArgumentError, match=said):
        orion.elastic(**arguments)


def test_an_overlapping_pull_has_a_bound_of_its_own():
    data, labels = samples(100)
    with orion.session("threads", 2, force_parallel=True):
        for alpha in (0.5, 0.51):
            x = orion.replicate(np.zeros(12), policy=orion.elastic(alpha=alpha, overlap=True))
            if alpha == 0.5:
                parallel_logistic(data, labels, x, 0.1)
                continue
            with pytest.raises(ArgumentError, match=r"2 / \(2 \+ 2\) = 0.5"):
                parallel_logistic(data, labels, x, 0.1)


def growth(policy, workers, e, pulls=200):
    """By what a worker's copy is greater after so many pulls, where each step is one of e against x²/2."""
    n = policy.sync_every * pulls
    w = np.zeros(1)
    x = orion.replicate(w, policy=policy)
    x.begin(workers)
    x.copies[:] = np.linspace(1.0, 2.0, workers)[:, None]
    with orion.session("threads", workers, force_parallel=True):
        follow(np.zeros((workers * n, 1)), x, e)
    return float(np.abs(x.copies).max())


@pytest.mark.parametrize("overlap", [False, True])
def test_the_bound_with_momentum_is_where_runs_begin_to_grow(overlap):
    e, how = 2.5, {"momentum": 0.9, "sync_every": 5, "overlap": overlap}
    bound = greatest_alpha(orion.elastic(**how, curvature=e), 2)
    assert 0.05 < bound < orion.elastic(**how).bound(2)
    assert growth(orion.elastic(alpha=0.95 * bound, **how), 2, e) < 1e-3
    worst = max(growth(orion.elastic(alpha=1.2 * bound, **how), 2, part * e) for part in np.linspace(0.5, 1, 15))
    assert worst > 1e3


def test_a_pull_that_is_not_stable_with_momentum_is_refused_with_the_bound():
    data, labels = samples(100)
    how = {"alpha": 0.5, "momentum": 0.9, "curvature": 3.5}
    with orion.session("threads", 2, force_parallel=True):
        w = np.zeros(12)
        with pytest.raises(ArgumentError, match=r"sync_every=5 it is to be at most 0\.19"):
            parallel_logistic(data, labels, orion.replicate(w, policy=orion.elastic(sync_every=5, **how)), 0.1)
        assert not w.any()
        calm = orion.elastic(sync_every=5, **{**how, "curvature": 0.002})
        parallel_logistic(data, labels, orion.replicate(w, policy=calm), 0.001)
    assert w.any()


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_what_does_not_oscillate_is_stable_up_to_the_bound_without_momentum(momentum, overlap):
    for workers in (1, 2, 16):
        for every in (1, 10):
            calm = (1 - momentum**0.5) ** 2
            policy = orion.elastic(momentum=momentum, sync_every=every, overlap=overlap, curvature=calm)
            assert greatest_alpha(policy, workers) == policy.bound(workers)
