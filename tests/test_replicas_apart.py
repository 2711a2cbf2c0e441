"""Copies of arrays that workers pull one by one, on several nodes: the home node pulls those of others for them."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest

import orion
from orion.runtime.ray.predicted_meetings import AtMeetings, one_by_one
from tests.ray_nodes import session_on
from tests.runtime_programs import integers, sparse_integers
from tests.test_replicas import POLICIES, blocks_of, follow, logistic, loss, parallel_logistic, samples

pytestmark = [
    pytest.mark.all(
        "test_the_bits_are_those_of_threads",
        "test_pulls_move_what_there_is_and_lose_nothing",
        "test_any_dtype_and_array",
        "test_plans_say_where_copies_are_pulled",
        "test_all_workers_pull_as_often_as_on_one_node",
        "test_the_formula",
    ),
    pytest.mark.ray,
    pytest.mark.timeout(300),
]

MODES = ("async", "hogwild", "round_robin", "overlap")


@pytest.fixture(scope="module")
def nodes():
    """Two nodes, the driver's with one worker, the other with two."""
    with session_on((1, 2)) as session:
        yield session


@orion.parallel_for
def count_up(of, work, x):
    for s in range(of.shape[0]):
        t = 1.0
        for _ in range(work):
            t = t * 1.0000001
        for k in range(x.shape[0]):
            x[k] += of[s] + t - t


def replica(name, centre, every=3, **more):
    mode = {"mode": "sync", "overlap": True} if name == "overlap" else {"mode": name}
    return orion.replicate(centre, policy=orion.elastic(**mode, sync_every=every, **more))


# ---------------------------------------------------------------- nothing is lost, nothing is there twice


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("length", [1, 7, 513, 20_000])
@pytest.mark.parametrize("n", [1, 2, 3, 40, 500])
def test_pulls_move_what_there_is_and_lose_nothing(n, length, made, nodes):
    """What a pull takes from a copy it gives the centre: the sum of all is what it was, and what steps have added."""
    centre = made(length)
    centre[:] = 3.0
    x = replica("async", centre, alpha=0.25)
    of = np.random.default_rng(n).integers(-8, 9, n).astype(float)
    for calls in (1, 2, 3):
        count_up(of, 1, x)
        found = np.asarray(centre) + x.copies[:, :length].sum(axis=0)
        np.testing.assert_allclose(found, 3.0 * (1 + len(x.copies)) + calls * of.sum(), rtol=0, atol=1e-8)
    assert len(count_up.last_run.brought) == (2 if n > 1 else 0)


def test_of_several_replicas_too(nodes):
    @orion.parallel_for
    def both(of, x, y):
        for s in range(of.shape[0]):
            for k in range(x.shape[0]):
                x[k] += of[s]
            for k in range(y.shape[0]):
                y[k] -= 2 * of[s]

    of = np.arange(200.0)
    x, y = replica("async", np.zeros(3000)), replica("async", orion.zeros(600))
    for calls in (1, 2):
        both(of, x, y)
        for one, total in ((x, of.sum()), (y, -2 * of.sum())):
            length = one.shape[0]
            found = np.asarray(one.array) + one.copies[:, :length].sum(axis=0)
            np.testing.assert_allclose(found, calls * total, rtol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("name", MODES)
def test_a_model_learns(name, momentum, nodes):
    data, labels = samples()
    serial, w = np.zeros(12), orion.zeros(12)
    x = replica(name, w, 10, momentum=momentum)
    for _ in range(4):
        logistic(data, labels, serial, 0.1)
        parallel_logistic(data, labels, x, 0.1)
    assert loss(data, labels, w.to_numpy()) < 2 * loss(data, labels, serial)
    assert [one.bytes > 0 and one.messages > 0 for one in parallel_logistic.last_run.brought] == [True, True]


def test_all_workers_pull_as_often_as_on_one_node(nodes):
    targets = np.random.default_rng(0).normal(size=(301, 40))
    x = replica("async", np.zeros(40), 4)
    follow(targets, x, 0.1)
    found = [one.pulls for one in follow.last_run.pulls]
    with orion.session("threads", 3, force_parallel=True):
        follow(targets, replica("async", np.zeros(40), 4), 0.1)
    assert found == [one.pulls for one in follow.last_run.pulls]
    assert sum(found) >= 301 // 4


# ---------------------------------------------------------------- bits


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("n", [1, 3, 5, 50, 211])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("name", ["round_robin", "overlap"])
def test_the_bits_are_those_of_threads(name, momentum, n, every, nodes):
    targets = np.random.default_rng(n).normal(size=(n, 300))

    def fitted():
        x = replica(name, np.zeros(300), every, momentum=momentum)
        for _ in range(2):
            follow(targets, x, 0.1)
        return [x.array, x.copies[:3], x.velocities[:3]]

    found = fitted()
    with orion.session("threads", 3, force_parallel=True):
        expected = fitted()
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


@orion.parallel_for
def both(of, x, y):
    for s in range(of.shape[0]):
        for k in range(x.shape[0]):
            x[k] += of[s] * (k + 1) - 0.1 * x[k]
        for k in range(y.shape[0]):
            for m in range(y.shape[1]):
                y[k, m] -= 2 * of[s] + 0.1 * y[k, m]


@pytest.mark.parametrize("mode", ["round_robin", "overlap"])
def test_each_replica_has_its_own_alpha(mode, nodes):
    """Of one and of two dimensions, whose rows are longer in memory."""
    of = np.random.default_rng(4).normal(size=50)

    def fitted():
        x, y = replica(mode, np.zeros(7), 2, alpha=0.35), replica(mode, orion.zeros((3, 5)), 2, alpha=0.1)
        both(of, x, y)
        return [x.array, x.copies[:3], np.asarray(y.array), y.copies[:3, :, :5]]

    found = fitted()
    with orion.session("threads", 3, force_parallel=True):
        expected = fitted()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@orion.parallel_for
def two_numbers(of, x, step):
    for s in range(of.shape[0]):
        x[0] -= step * (x[0] - of[s])
        x[1] += step * x[0]


@orion.parallel_for
def epochs(of, x, step, n):
    for e in range(n):
        for s in range(of.shape[0]):
            x[0] -= step * (x[0] - of[s] * (e + 1))
        for s in range(2):
            x[1] += of[s] * step


@pytest.mark.parametrize("mode", ["sync", "round_robin", "overlap"])
def test_single_elements_are_read_anew_after_each_pull(mode, nodes):
    """Such as a compiler would rather keep in registers; and rounds of two loops, one of which has fewer iterations
    than there are workers."""
    of = np.random.default_rng(5).normal(size=40)

    def fitted():
        x, y = replica(mode, np.zeros(2), 3), replica(mode, np.zeros(2), 1)
        two_numbers(of, x, 0.1)
        epochs(of, y, 0.1, 4)
        return [x.array, x.copies[:3], y.array, y.copies[:3]]

    found = fitted()
    with orion.session("threads", 3, force_parallel=True):
        expected = fitted()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["round_robin", "overlap"])
def test_any_dtype_and_array(name, dtype, made, nodes):
    targets = np.random.default_rng(0).normal(size=(90, 1003)).astype(dtype)

    def fitted():
        w = made(1003, dtype)
        follow(targets, replica(name, w, 4), 0.1)
        return np.asarray(w).tobytes()

    found = fitted()
    with orion.session("threads", 3, force_parallel=True):
        assert fitted() == found


# ---------------------------------------------------------------- what is sent


@pytest.mark.parametrize("n", [3, 5, 50, 211])
@pytest.mark.parametrize("name", MODES)
def test_bytes_are_those_of_the_formula_and_of_the_estimate(name, n, nodes):
    """The copies of workers that are not on the home node, there and back at each of their pulls."""
    targets = np.random.default_rng(n).normal(size=(n, 300))
    x = replica(name, np.zeros(300), 8)
    for _ in range(2):
        follow(targets, x, 0.1)
        estimate = follow.plan(targets, x, 0.1).estimate(nodes=2)
        pulls = [-(-len(own) // 8) for own in blocks_of(targets, x)]
        assert [one.pulls for one in follow.last_run.pulls] == pulls
        elsewhere = sum(pulls[1:])
        brought = follow.last_run.brought
        assert sum(one.bytes for one in brought) == 2 * 2400 * elsewhere
        assert [one.meetings for one in brought] == [0, elsewhere] * (elsewhere > 0)
        assert nodes._backend._team.sent_bytes == 2 * 2400 * elsewhere
        assert estimate.bytes == 2 * 2400 * pulls[2]  # of nodes with two workers and one
        assert estimate.loops[0].why_one_node is None


def test_the_formula():
    assert one_by_one([3, 3, 2], [0, 0, 1], 100, in_turn=False).meetings == 4
    assert one_by_one([3, 3, 2, 5], [0, 0, 1, 2], 100, in_turn=False) == AtMeetings(1400, 700, 10)
    assert one_by_one([3, 3, 2, 5], [0, 0, 1, 2], 100, in_turn=True) == AtMeetings(1400, 700, 14)
    assert one_by_one([3, 3], [0, 0], 100, in_turn=True) == AtMeetings(0, 0, 0)


def test_plans_say_where_copies_are_pulled(nodes):
    data, labels = samples(300)
    for name in MODES:
        plan = parallel_logistic.plan(data, labels, orion.replicate(np.zeros(12), policy=POLICIES[name]()), 0.1)
        told = "on several nodes the home node pulls for the workers of others, which send it their copies"
        assert told in " ".join(str(plan).split())


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("place", [3, 119], ids=["on the home node", "on the other"])
@pytest.mark.parametrize("name", MODES)
def test_copies_that_are_no_numbers_leave_all_as_it_was(name, place, nodes):
    targets = np.random.default_rng(0).normal(size=(120, 50))
    w = orion.zeros(50)
    x = replica(name, w, 5)
    follow(targets, x, 0.1)
    centre, copies = w.to_numpy().copy(), x.copies.copy()
    wrong = targets.copy()
    wrong[place, 3] = np.nan
    with pytest.raises(orion.UpdateError, match="is not a finite number"):
        follow(wrong, x, 0.1)
    np.testing.assert_array_equal(w.to_numpy(), centre)
    np.testing.assert_array_equal(x.copies, copies)
    follow(targets, x, 0.1)
    assert np.isfinite(w.to_numpy()).all()


@pytest.mark.parametrize("name", MODES)
def test_infinite_copies_are_told_of(name, nodes):
    of = np.ones(9)
    of[[1, 7]] = np.inf
    x = replica(name, orion.zeros(5), 20)
    with pytest.raises(orion.UpdateError, match="is not a finite number"):
        count_up(of, 1, x)
    assert not np.asarray(x.array).any()


@pytest.mark.parametrize("victim", [0, 2], ids=["who pulls for others", "on the other node"])
def test_a_worker_that_dies_takes_no_pull_with_it(victim, nodes):
    """One that dies before the call has begun is replaced without a word: then it is tried once more, later."""
    of, x = np.ones(1000), replica("async", np.zeros(20), 2)
    for calls, delay in enumerate((0.2, 0.6, 1.5), 1):
        count_up(of[:10], 1, x)
        timer = threading.Timer(delay, os.kill, [nodes._backend._team.group.processes[victim], signal.SIGKILL])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            timer.start()
            count_up(of, 2_000_000, x)
        timer.join()
        np.testing.assert_allclose(x.array + x.copies[:, :20].sum(axis=0), 1010.0 * calls, rtol=1e-12)
        if seen:
            assert [one.category for one in seen] == [orion.WorkerReplacedWarning]
            return
    pytest.fail("no death came while the loop ran")


def test_three_nodes():
    with session_on((1, 1, 1)):
        x = replica("async", orion.zeros(900), 2)
        of = np.arange(100.0)  # what is sent from a third node is in no order with that of the second
        for calls in (1, 2):
            count_up(of, 1000, x)
            found = np.asarray(x.array) + x.copies[:, :900].sum(axis=0)
            np.testing.assert_allclose(found, calls * of.sum(), rtol=1e-12)
        assert len(count_up.last_run.brought) == 3


@orion.parallel_for
def turning(R, W, H, x):
    for (i, j), r in R:
        W[i] = W[i] * 3 + H[j] + r
        H[j] = H[j] * 5 + W[i]
        for k in range(x.shape[0]):
            x[k] += r


@pytest.mark.parametrize("name", ["async", "hogwild"])
def test_blocks_of_other_arrays_go_round_meanwhile(name, nodes):
    R, found = sparse_integers((60, 40), 1500), []
    for _ in range(2):
        W, H = orion.array(integers(60)), integers(40)
        x = replica(name, np.zeros(50), 20)
        turning(R, W, H, x)
        found.append((np.asarray(W).tobytes(), H.tobytes()))
        if name == "async":
            np.testing.assert_allclose(x.array + x.copies.sum(axis=0), R.values.sum(), rtol=1e-12)
        assert len(turning.last_run.brought) == 2
    with orion.session("threads", 3, force_parallel=True):
        W, H = orion.array(integers(60)), integers(40)
        turning(R, W, H, replica(name, np.zeros(50), 20))
    assert found == [(np.asarray(W).tobytes(), H.tobytes())] * 2
