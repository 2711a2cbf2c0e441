"""Copies of arrays whose workers meet, on several nodes: each pulls all copies together, to the bits of one node."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import orion
from orion.runtime.ray.predicted_meetings import at_meetings
from tests.dying import kill_in_the_middle
from tests.ray_nodes import session_on
from tests.test_replicas import POLICIES, Simulated, blocks_of, follow, parallel_logistic, samples
from tests.test_replicas_ray import follow_slowly
from tests.trials import TIMES, one_in

pytestmark = [
    pytest.mark.all(
        "test_the_bits_are_those_of_threads",
        "test_bytes_are_those_of_the_formula_and_of_the_estimate",
        "test_copies_that_are_no_numbers_leave_all_as_it_was",
        "test_values_that_change_between_calls",
        "test_how_much_loops_over_elements_send_is_not_known",
        "test_other_orders_have_other_bits",
        "test_the_formula",
        "test_results_are_the_same_where_times_are_taken",
    ),
    pytest.mark.ray,
    pytest.mark.timeout(300),
]

MEETING = {
    "sync": lambda every: orion.elastic(mode="sync", sync_every=every),
    "momentum": lambda every: orion.elastic(mode="sync", sync_every=every, momentum=0.5),
    "local_sgd": lambda every: orion.local_sgd(sync_every=every),
    "diloco": lambda every: orion.local_sgd(sync_every=every, outer=(0.7, 0.5)),
}


@pytest.fixture(scope="module")
def nodes():
    """Two nodes, the driver's with two workers, the other with one."""
    with session_on((2, 1)) as session:
        yield session


@contextmanager
def threads(workers=3):
    with orion.session("threads", workers, force_parallel=True):
        yield


def state(*replicas):
    """All that a replica has, as it is between calls, of three workers."""
    parts = []
    for x in replicas:
        part = tuple(slice(0, length) for length in x.shape)
        parts.append(np.asarray(x.array))
        parts.append(x.copies[(slice(0, 3), *part)])
        parts.append(x.velocities[(slice(0, 3), *part)])
        parts.append(x.outer[part])
    return [part.copy() for part in parts]


def assert_same_bits(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.view(f"u{one.itemsize}"), other.view(f"u{other.itemsize}"))


def fitted(policy, n, made=np.zeros, dtype="float64", calls=2, length=300):
    targets = np.random.default_rng(n).normal(size=(n, length)).astype(dtype)
    x = orion.replicate(made(length, dtype), policy=policy)
    for _ in range(calls):
        follow(targets, x, 0.1)
    return state(x)


# ---------------------------------------------------------------- bits


@pytest.mark.parametrize("every", [1, 2, 7])
@pytest.mark.parametrize("n", [0, 1, 3, 5, 8, 50, 100, 211])
@pytest.mark.parametrize("name", MEETING)
def test_the_bits_are_those_of_threads(name, n, every, nodes):
    found = fitted(MEETING[name](every), n)
    brought = follow.last_run.brought
    with threads():
        expected = fitted(MEETING[name](every), n)
    assert_same_bits(found, expected)
    assert len(brought) == (2 if n > 2 else 0)


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MEETING)
def test_any_dtype_and_array(name, dtype, made, nodes):
    found = fitted(MEETING[name](4), 90, made, dtype, length=1003)
    with threads():
        expected = fitted(MEETING[name](4), 90, made, dtype, length=1003)
    assert_same_bits(found, expected)


@orion.parallel_for
def two_layers(data, targets, x, y, step):
    for s in range(data.shape[0]):
        for k in range(x.shape[0]):
            h = 0.0
            for j in range(data.shape[1]):
                h += x[k, j] * data[s, j]
            d = y[k] * h - targets[s]
            y[k] -= step * d * h
            for j in range(data.shape[1]):
                x[k, j] -= step * d * data[s, j]


@pytest.mark.parametrize("name", MEETING)
def test_several_replicas_are_pulled_at_one_meeting(name, nodes):
    rng = np.random.default_rng(1)
    data, targets = rng.normal(size=(120, 6)), rng.normal(size=120)

    def trained():
        x = orion.replicate(np.full((4, 6), 0.1), policy=MEETING[name](5))
        y = orion.replicate(orion.ones(4), policy=MEETING[name](5))
        for _ in range(3):
            two_layers(data, targets, x, y, 0.01)
        return state(x, y)

    found, brought = trained(), two_layers.last_run.brought
    with threads():
        expected = trained()
    assert_same_bits(found, expected)
    counts = [one.pulls for one in two_layers.last_run.pulls]
    expected = at_meetings(counts, [True] * 3, [0, 0, 1], 8 * (4 * 6 + 4), 8 * (4 * 6 + 4) * (name == "diloco"))
    assert [one.meetings for one in brought] == [max(counts[:2]), counts[2]]
    assert sum(one.bytes for one in brought) == expected.bytes
    # one message for each meeting, one that it is through, and one with the array where it met more often
    goes_on = [max(counts[:2]) > counts[2], max(counts[:2]) < counts[2]]
    assert [one.messages - one.meetings for one in brought] == [1 + more for more in goes_on]


@orion.parallel_for
def epochs(targets, x, y, step, n):
    for e in range(n):
        for s in range(targets.shape[0]):
            for k in range(x.shape[0]):
                x[k] -= step * (x[k] - targets[s, k] * (e + 1))
        for k in range(y.shape[0]):
            y[k] += 1.0


@orion.parallel_for
def with_others(targets, w, x, seen, sums, step, n):
    for _ in range(n):
        for s in range(targets.shape[0]):
            seen[s] += step
            for k in range(x.shape[0]):
                x[k] -= step * (x[k] - targets[s, k])
        for k in range(sums.shape[0]):
            sums[k] += w[k]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("n", [4, 29, 60])
@pytest.mark.parametrize("name", MEETING)
def test_rounds_of_a_call(name, n, nodes):
    targets = np.random.default_rng(n).normal(size=(n, 40))

    def trained():
        x, y = orion.replicate(np.ones(40), policy=MEETING[name](7)), orion.zeros(50)
        for _ in range(2):
            epochs(targets, x, y, 0.1, 3)
        return [*state(x), y.to_numpy()]

    found = trained()
    with threads():
        expected = trained()
    assert_same_bits(found, expected)


@pytest.mark.parametrize("n", [4, 29, 60])
@pytest.mark.parametrize("name", MEETING)
def test_other_loops_read_the_array_between_rounds(name, n, nodes):
    targets = np.random.default_rng(n).normal(size=(n, 40))

    def trained():
        w, seen, sums = np.ones(40), np.zeros(n), np.zeros(40)
        x = orion.replicate(w, policy=MEETING[name](7))
        for _ in range(2):
            with_others(targets, w, x, seen, sums, 0.1, 3)
        return [*state(x), seen, sums]

    found = trained()
    with threads():
        expected = trained()
    assert_same_bits(found, expected)


@pytest.mark.parametrize("name", MEETING)
def test_values_that_change_between_calls(name, nodes):
    targets = np.random.default_rng(0).normal(size=(60, 40))

    def trained():
        w = np.zeros(40)
        x = orion.replicate(w, policy=MEETING[name](7))
        for call in range(5):
            if call == 1:
                w[3] = 5.0
            if call == 2:
                w[:] = 1.0
                x.reset()
            if call == 3:
                x.copies[2, 7] = 9.0
            follow(targets[: 60 - 7 * call], x, 0.1)
        return state(x)

    found = trained()
    with threads():
        expected = trained()
    assert_same_bits(found, expected)


@orion.parallel_for
def of_elements(ratings, x, step):
    for (_, j), r in ratings:
        x[j % 30] -= step * (x[j % 30] - r)


@pytest.mark.parametrize("name", MEETING)
def test_loops_over_elements(name, nodes):
    rng = np.random.default_rng(3)
    cells = rng.choice(60 * 80, 900, replace=False)
    ratings = orion.sparse((cells // 80, cells % 80), rng.normal(size=900), (60, 80))

    def trained():
        x = orion.replicate(np.zeros(30), policy=MEETING[name](7))
        for _ in range(2):
            of_elements(ratings, x, 0.1)
        return state(x)

    found, brought = trained(), of_elements.last_run.brought
    with threads():
        expected = trained()
    assert_same_bits(found, expected)
    assert len(brought) == 2


@orion.parallel_for
def where_so(flags, targets, x, step):
    for s in range(targets.shape[0]):
        if flags[s]:
            for k in range(x.shape[0]):
                x[k] -= step * (x[k] - targets[s, k])


class Random:
    """A loop with replicas by a number: its sizes, its policy, and the values that it is given."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.n, self.length = int(rng.integers(0, 90)), int(rng.integers(1, 1500))
        every, self.dtype = int(rng.integers(1, 12)), ["float64", "float32"][rng.integers(2)]
        policies = [
            orion.elastic(mode="sync", sync_every=every, alpha=float(rng.uniform(0.05, 0.49))),
            orion.elastic(mode="sync", sync_every=every, momentum=float(rng.uniform(0.1, 0.9))),
            orion.local_sgd(sync_every=every),
            orion.local_sgd(sync_every=every, outer=(float(rng.uniform(0.1, 1.0)), float(rng.uniform(0, 0.9)))),
            orion.elastic(mode="round_robin", sync_every=every, momentum=float(rng.uniform(0.0, 0.9))),
            orion.elastic(sync_every=every, overlap=True, momentum=float(rng.choice([0.0, 0.4]))),
            orion.elastic(sync_every=every, overlap=True, alpha=float(rng.uniform(0.05, 0.4))),
        ]
        self.policy, self.made = policies[rng.integers(len(policies))], [np.zeros, orion.ones][rng.integers(2)]
        self.targets = rng.normal(size=(self.n, self.length)).astype(self.dtype)
        self.flags, self.calls = rng.random(self.n) < rng.random(), int(rng.integers(1, 4))

    def run(self):
        x = orion.replicate(self.made(self.length, self.dtype), policy=self.policy)
        for call in range(self.calls):
            where_so(self.flags, self.targets, x, 0.05)
            x.copies[call % 3] *= 1.5
        return state(x)


@pytest.mark.parametrize("part", range(TIMES))
def test_random_loops_have_the_bits_of_threads(part, nodes):
    met = 0
    for seed in range(part, 18 * TIMES, TIMES):
        loop = Random(seed)
        found = loop.run()
        met += len(where_so.last_run.brought) == 2
        with threads():
            expected = loop.run()
        assert_same_bits(found, expected)
    assert met >= 9


def test_other_orders_have_other_bits():
    """Of such data as above; what a node would find that pulled copies in another order than others."""
    targets = np.random.default_rng(0).normal(size=(90, 300))
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        simulated = Simulated(np.zeros(300), 3, 7, 0.3, 0.1)
        simulated.run(targets, np.arange(90).reshape(3, 30), lambda one, there, order=order: Simulated.sync(one, order))
        found.append(simulated.centre)
    assert found[0].tobytes() != found[1].tobytes()
    np.testing.assert_allclose(*found, rtol=1e-9)


# ---------------------------------------------------------------- what is sent


@pytest.mark.parametrize("n", [5, 50, 100, 211, 300])
@pytest.mark.parametrize("name", MEETING)
def test_bytes_are_those_of_the_formula_and_of_the_estimate(name, n, nodes):
    targets = np.random.default_rng(n).normal(size=(n, 300))
    x = orion.replicate(np.zeros(300), policy=MEETING[name](8))
    for _ in range(2):
        follow(targets, x, 0.1)
        estimate = follow.plan(targets, x, 0.1).estimate(nodes=2)
        pulls = [-(-len(own) // 8) for own in blocks_of(targets, x)]
        assert [one.pulls for one in follow.last_run.pulls] == pulls
        expected = at_meetings(pulls, [True] * 3, [0, 0, 1], 2400, 2400 * (name == "diloco"))
        assert sum(one.bytes for one in follow.last_run.brought) == expected.bytes
        assert max(one.meetings for one in follow.last_run.brought) == expected.meetings
        assert nodes._backend._team.sent_bytes == estimate.bytes
        assert estimate.loops[0].why_one_node is None
        assert estimate.loops[0].nodes == 2


def test_the_formula():
    """Of copies of 100 bytes on two nodes, with two workers and one."""
    assert at_meetings([4, 4, 4], [True] * 3, [0, 0, 1], 100, 0).bytes == 4 * 3 * 100
    # the third meeting has no worker of node 1, which is sent the copies, as it might have come, and then the array
    assert at_meetings([3, 3, 2], [True] * 3, [0, 0, 1], 100, 7).bytes == (2 * 3 + 2 + 1) * 100 + 7
    # the third has none of the home node, which is sent the copy that has gone on, too
    assert at_meetings([2, 2, 3], [True] * 3, [0, 0, 1], 100, 7).bytes == (2 * 3 + 1 + 2) * 100 + 7
    # nobody sends copies to a node without tiles
    assert at_meetings([3, 3, 0], [True, True, False], [0, 0, 1], 100, 0).bytes == 100


def told(function, given):
    return " ".join(str(function.plan(*given).estimate(nodes=2)).split())


def test_plans_tell_where_loops_with_copies_run(nodes):
    data, labels = samples(300)
    for name, policy in POLICIES.items():
        given = data, labels, orion.replicate(np.zeros(12), policy=policy()), 0.1
        text = " ".join(str(parallel_logistic.plan(*given)).split())
        assert "memory that workers share" not in told(parallel_logistic, given)
        meets = name not in ("async", "hogwild", "round_robin", "overlap")
        assert ("on several nodes each then sends the others the copies of its workers" in text) == meets
        assert ("on several nodes the home node pulls for the workers of others" in text) != meets
        if name in ("sync", "async"):
            parallel_logistic(*given)
            assert len(parallel_logistic.last_run.brought) == 2


def test_how_much_loops_over_elements_send_is_not_known(nodes):
    rng = np.random.default_rng(3)
    ratings = orion.sparse((rng.integers(0, 60, 400), rng.integers(0, 80, 400)), rng.normal(size=400), (60, 80))
    given = ratings, orion.replicate(np.zeros(30), policy=MEETING["sync"](7)), 0.1
    assert "depends on where the elements of `ratings` are" in told(of_elements, given)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("place", [3, 77, 119], ids=["on the home node", "in the middle", "on the other"])
@pytest.mark.parametrize("name", MEETING)
def test_copies_that_are_no_numbers_leave_all_as_it_was(name, place, nodes):
    targets = np.random.default_rng(0).normal(size=(120, 50))
    x = orion.replicate(orion.zeros(50), policy=MEETING[name](5))
    follow(targets, x, 0.1)
    before = state(x)
    wrong = targets.copy()
    wrong[place, 3] = np.nan
    with pytest.raises(orion.UpdateError, match="is not a finite number"):
        follow(wrong, x, 0.1)
    assert_same_bits(state(x), before)
    follow(targets, x, 0.1)  # and goes on
    with threads():
        expected = orion.replicate(orion.zeros(50), policy=MEETING[name](5))
        for _ in range(2):
            follow(targets, expected, 0.1)
    assert_same_bits(state(x), state(expected))


@pytest.mark.parametrize("victim", one_in(2, [0, 1, 2]), ids=["brings copies", "beside it", "elsewhere"].__getitem__)
def test_a_worker_that_dies_takes_no_copy_with_it(victim, nodes):
    targets = np.random.default_rng(0).normal(size=(300, 20))
    found = []
    for kills in (True, False):
        x = orion.replicate(np.zeros(20), policy=orion.elastic(mode="sync", sync_every=1))
        follow_slowly(targets[:100], 1, x, 0.01)
        process = nodes._backend._team.group.processes[victim]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            if kills:
                kill_in_the_middle(process)
            follow_slowly(targets, 4_000_000, x, 0.01)
        assert [one.category for one in seen] == [orion.WorkerReplacedWarning] * kills
        found.append(state(x))
    assert_same_bits(*found)


# ---------------------------------------------------------------- beside


@pytest.mark.parametrize("name", MEETING)
def test_checkpoints_hold_the_same(name, nodes, tmp_path):
    targets = np.random.default_rng(0).normal(size=(100, 50))

    def trained(folder):
        x = orion.replicate(np.zeros(50), policy=MEETING[name](7))
        follow(targets, x, 0.1)
        orion.checkpoint(folder, x=x)
        follow(targets, x, 0.1)
        orion.restore(folder, x=x)
        follow(targets, x, 0.1)
        return state(x)

    found = trained(tmp_path / "nodes")
    with threads():
        expected = trained(tmp_path / "threads")
    assert_same_bits(found, expected)


def test_results_are_the_same_where_times_are_taken(nodes):
    targets = np.random.default_rng(0).normal(size=(100, 50))
    found = []
    for profiles in (False, True):
        x = orion.replicate(np.zeros(50), policy=MEETING["momentum"](7))
        for _ in range(3):
            if profiles:
                with orion.profile():
                    follow(targets, x, 0.1)
            else:
                follow(targets, x, 0.1)
        found.append(state(x))
    assert_same_bits(*found)


def test_three_nodes():
    workers, cpus, found = 4, (1, 2, 1), {}
    with session_on(cpus) as session:
        for name, policy in MEETING.items():
            for n in (2, 3, 4, 31, 64):
                found[name, n] = fitted(policy(7), n, calls=3)
        targets = np.random.default_rng(0).normal(size=(31, 300))
        x = orion.replicate(np.zeros(300), policy=MEETING["diloco"](7))
        follow(targets, x, 0.1)
        sent = sum(one.bytes for one in follow.last_run.brought)
        pulls = [one.pulls for one in follow.last_run.pulls]
        on = session._backend._team.group.nodes
        place = [sorted({*on}, key=on.index).index(node) for node in on]
        assert sent == at_meetings(pulls, [True] * workers, place, 2400, 2400).bytes
        wrong = targets.copy()
        wrong[-1, 5] = np.nan
        before = state(x)
        with pytest.raises(orion.UpdateError):
            follow(wrong, x, 0.1)
        assert_same_bits(state(x), before)
    with threads(workers):
        for (name, n), one in found.items():
            assert_same_bits(one, fitted(MEETING[name](7), n, calls=3))
