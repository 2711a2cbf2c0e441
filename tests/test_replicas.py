"""Copies of parameters that workers pull together: `orion.replicate`, `orion.elastic` and `orion.local_sgd`."""

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, UnsupportedLoopError, UpdateError

WORKERS = (1, 2, 3)
MODES = ("sync", "async", "hogwild", "round_robin")
POLICIES = {mode: lambda mode=mode: orion.elastic(mode=mode, sync_every=8) for mode in MODES} | {
    "momentum": lambda: orion.elastic(mode="sync", sync_every=8, momentum=0.5),
    "overlap": lambda: orion.elastic(mode="sync", sync_every=8, momentum=0.3, overlap=True),
    "local_sgd": lambda: orion.local_sgd(sync_every=8),
    "diloco": lambda: orion.local_sgd(sync_every=8, outer=(0.7, 0.5)),
}
REPEATABLE = ("sync", "round_robin", "momentum", "overlap", "local_sgd", "diloco")


@pytest.fixture(params=WORKERS)
def workers(request):
    with orion.session("threads", request.param, force_parallel=True):
        yield request.param


def logistic(data, labels, x, step):
    for s in range(labels.size):
        z = 0.0
        for k in range(data.shape[1]):
            z += x[k] * data[s, k]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for k in range(data.shape[1]):
            x[k] -= step * g * data[s, k]


parallel_logistic = orion.parallel_for(logistic)


@orion.parallel_for
def follow(targets, x, step):
    for s in range(targets.shape[0]):
        for k in range(x.shape[0]):
            x[k] -= step * (x[k] - targets[s, k])


def samples(n=3000, features=12, seed=0):
    rng = np.random.default_rng(seed)
    truth, data = rng.normal(size=features), rng.normal(size=(n, features))
    return data, (data @ truth > 0).astype(float)


def loss(data, labels, w):
    z = data @ w
    return float(np.mean(np.log1p(np.exp(np.where(labels > 0, -z, z)))))


# ---------------------------------------------------------------- what comes out


@pytest.mark.parametrize("name", [*POLICIES])
def test_a_model_learns(name, workers):
    data, labels = samples()
    serial, w = np.zeros(12), np.zeros(12)
    for _ in range(4):
        logistic(data, labels, serial, 0.1)
    x = orion.replicate(w, policy=POLICIES[name]())
    plan = parallel_logistic.plan(data, labels, x, 0.1)
    assert plan.strategy == "relaxed"
    assert plan.check() is None
    for _ in range(4):
        parallel_logistic(data, labels, x, 0.1)
    assert loss(data, labels, w) < 2 * loss(data, labels, serial) < 0.2 * loss(data, labels, np.zeros(12))


@pytest.mark.parametrize("name", REPEATABLE)
def test_the_bits_are_the_same_each_time(name, workers):
    data, labels = samples(700)
    found = set()
    for _ in range(4):
        w = np.zeros(12)
        x = orion.replicate(w, policy=POLICIES[name]())
        for _ in range(2):
            parallel_logistic(data, labels, x, 0.1)
        found.add(w.tobytes())
    assert len(found) == 1


def blocks_of(targets, x, step=0.1):
    """The iterations of each worker, in its order."""
    schedule = follow.plan(targets, x, step).schedule()
    edges = schedule.bounds[0]
    return [[s for tile in own for s in range(edges[tile], edges[tile + 1])] for own in schedule.order]


class Simulated:
    """What the policies say, one worker after the other in NumPy, for calls of `follow`."""

    def __init__(self, centre, workers, every, alpha, step):
        self.centre, self.every, self.alpha, self.step = centre.copy(), every, alpha, step
        self.copies = [centre.copy() for _ in range(workers)]
        self.velocities = [np.zeros_like(centre) for _ in range(workers)]

    def run(self, targets, blocks, exchange, momentum=0.0):
        own = [[part[k : k + self.every] for k in range(0, len(part), self.every)] for part in blocks]  # by exchanges
        for number in range(max(map(len, own))):
            there = [worker for worker, parts in enumerate(own) if number < len(parts)]
            for worker in there:
                for s in own[worker][number]:
                    self.local(worker, targets[s], momentum)
            exchange(self, there)

    def local(self, worker, target, momentum):
        x, v = self.copies[worker], self.velocities[worker]
        before = x.copy()
        x -= self.step * (x - target)
        if momentum:
            v[:] = momentum * v + (x - before)
            x[:] = before + v

    def sync(self, there):
        total = np.zeros_like(self.centre)
        for worker in there:
            pull = self.alpha * (self.copies[worker] - self.centre)
            self.copies[worker] -= pull
            total += pull
        self.centre += total

    def in_turn(self, there):
        for worker in there:
            pull = self.alpha * (self.copies[worker] - self.centre)
            self.copies[worker] -= pull
            self.centre += pull

    def average(self, there):
        total = np.zeros_like(self.centre)
        for worker in there:
            total += self.copies[worker]
        self.centre[:] = total / len(there)
        for worker in there:
            self.copies[worker][:] = self.centre


SIMULATED = {
    "sync": (Simulated.sync, lambda: orion.elastic(mode="sync", alpha=0.2, sync_every=7)),
    "round_robin": (Simulated.in_turn, lambda: orion.elastic(mode="round_robin", alpha=0.2, sync_every=7)),
    "local_sgd": (Simulated.average, lambda: orion.local_sgd(sync_every=7)),
}


@pytest.mark.parametrize("name", [*SIMULATED])
@pytest.mark.parametrize("n", [1, 100, 211])
def test_results_are_those_of_the_formulas(name, n, workers):
    exchange, policy = SIMULATED[name]
    targets = np.random.default_rng(1).normal(size=(n, 300))
    w = np.ones(300)
    x = orion.replicate(w, policy=policy())
    simulated = Simulated(w, workers, 7, 0.2, 0.1)
    for _ in range(3):
        simulated.run(targets, blocks_of(targets, x), exchange)
        follow(targets, x, 0.1)
        np.testing.assert_allclose(w, simulated.centre, rtol=1e-13)
    for worker, own in enumerate(x.copies[:workers]):
        np.testing.assert_allclose(own, simulated.copies[worker], rtol=1e-13)


def test_copies_have_momentum(workers):
    targets = np.random.default_rng(1).normal(size=(90, 30))
    w = np.ones(30)
    x = orion.replicate(w, policy=orion.elastic(mode="sync", alpha=0.2, sync_every=7, momentum=0.5))
    simulated = Simulated(w, workers, 7, 0.2, 0.1)
    for _ in range(2):
        simulated.run(targets, blocks_of(targets, x), Simulated.sync, momentum=0.5)
        follow(targets, x, 0.1)
        np.testing.assert_allclose(w, simulated.centre, rtol=1e-12)


def test_the_outer_step_has_nesterov_momentum(workers):
    targets = np.random.default_rng(1).normal(size=(90, 30))
    w = np.ones(30)
    x = orion.replicate(w, policy=orion.local_sgd(sync_every=7, outer=(0.7, 0.9)))
    simulated, velocity = Simulated(w, workers, 7, 0.0, 0.1), np.zeros(30)

    def exchange(self, there):
        difference = self.centre - sum(self.copies[worker] for worker in there) / len(there)
        velocity[:] = 0.9 * velocity + difference
        self.centre -= 0.7 * (difference + 0.9 * velocity)
        for worker in there:
            self.copies[worker][:] = self.centre

    for _ in range(2):
        simulated.run(targets, blocks_of(targets, x), exchange)
        follow(targets, x, 0.1)
        np.testing.assert_allclose(w, simulated.centre, rtol=1e-12)


@pytest.mark.parametrize("mode", ["async", "hogwild"])
def test_one_worker_pulls_as_the_formulas_say(mode):
    targets = np.random.default_rng(1).normal(size=(40, 30))
    w = np.ones(30)
    x = orion.replicate(w, policy=orion.elastic(mode=mode, alpha=0.3, sync_every=7))
    simulated = Simulated(w, 1, 7, 0.3, 0.1)
    with orion.session("threads", 1):
        simulated.run(targets, blocks_of(targets, x), Simulated.sync)
        follow(targets, x, 0.1)
    np.testing.assert_allclose(w, simulated.centre, rtol=1e-13)


def test_nothing_is_lost_under_locks(workers):
    """The sum of the centre and all copies is what local steps add: a pull only moves it from one to the other."""

    @orion.parallel_for
    def add(given, x):
        for i in range(given.shape[0]):
            x[i % 64] += given[i]

    w = np.zeros(64)
    x = orion.replicate(w, policy=orion.elastic(mode="async", alpha=0.5, sync_every=1))
    given = np.ones(200_000)
    add(given, x)
    total = w + x.copies[:workers].sum(axis=0)
    np.testing.assert_allclose(total, 3125.0, rtol=1e-9)


@pytest.mark.parametrize("name", REPEATABLE)
def test_results_are_the_same_where_times_are_taken(name, workers):
    """A profile has workers walk through their tiles one by one."""
    data, labels = samples(700)
    found = []
    for profiles in (False, True):
        w = np.zeros(12)
        x = orion.replicate(w, policy=POLICIES[name]())
        for _ in range(3):
            if profiles:
                with orion.profile():
                    parallel_logistic(data, labels, x, 0.1)
            else:
                parallel_logistic(data, labels, x, 0.1)
        found.append(w)
    np.testing.assert_array_equal(*found)


def test_loops_are_measured_without_changing_anything(workers):
    data, labels = samples(700)
    w = np.zeros(12)
    x = orion.replicate(w, policy=POLICIES["sync"]())
    parallel_logistic(data, labels, x, 0.1)
    before, copies = w.copy(), x.copies.copy()
    assert parallel_logistic.measure(data, labels, x, 0.1, seconds=0.1).loops[0].rounds == 1
    np.testing.assert_array_equal(w, before)
    np.testing.assert_array_equal(x.copies, copies)


# ---------------------------------------------------------------- kinds of arrays and loops


@orion.parallel_for
def rows(data, group, x, step):
    for s in range(data.shape[0]):
        x[group[s]] -= step * (x[group[s]] - data[s])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
def test_rows_are_updated_whole(made, dtype, workers):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 3000)
    data = (group[:, None] + rng.normal(size=(3000, 5)) / 100).astype(dtype)
    w = made((4, 5), dtype)
    x = orion.replicate(w, policy=orion.elastic(mode="sync", sync_every=10))
    rows(data, group, x, 0.2)
    np.testing.assert_allclose(np.asarray(w), np.arange(4)[:, None] * np.ones(5), atol=0.1)


@orion.parallel_for
def epochs(targets, x, w, out, step, rounds):
    for r in range(rounds):
        for s in range(targets.shape[0]):
            for k in range(targets.shape[1]):
                x[k] -= step * (x[k] - targets[s, k])
        for k in range(w.shape[0]):
            out[r, k] = w[k]


@pytest.mark.parametrize("name", ["sync", "local_sgd"])
def test_serial_loops_around_go_on_with_the_same_copies(name, workers):
    targets = np.random.default_rng(0).normal(size=(120, 20))
    _, policy = SIMULATED[name]
    w, again, out = np.zeros(20), np.zeros(20), np.zeros((3, 20))
    epochs(targets, orion.replicate(w, policy=policy()), w, out, 0.1, 3)
    x = orion.replicate(again, policy=policy())
    for r in range(3):
        follow(targets, x, 0.1)
        np.testing.assert_allclose(out[r], again, rtol=1e-13)


@orion.parallel_for
def network(images, labels, first, second, step):
    for s in range(images.shape[0]):
        hidden = np.zeros(first.shape[1])
        for h in range(first.shape[1]):
            z = 0.0
            for k in range(images.shape[1]):
                z += images[s, k] * first[k, h]
            hidden[h] = max(z, 0.0)
        z = 0.0
        for h in range(first.shape[1]):
            z += hidden[h] * second[h]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for h in range(first.shape[1]):
            back = g * second[h] if hidden[h] > 0.0 else 0.0
            second[h] -= step * g * hidden[h]
            for k in range(images.shape[1]):
                first[k, h] -= step * back * images[s, k]


def test_a_loop_has_several_replicas(workers):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(2000, 6))
    labels = (np.abs(images[:, 0]) > 0.7).astype(float)
    first, second = rng.normal(size=(6, 8)) / 2, rng.normal(size=8) / 2
    policy = orion.elastic(mode="sync", sync_every=10)
    given = [orion.replicate(one, policy=policy) for one in (first, second)]
    assert network.plan(images, labels, *given, 0.05).strategy == "relaxed"
    for _ in range(6):
        network(images, labels, *given, 0.05)
    found = np.maximum(images @ first, 0) @ second > 0
    assert (found == (labels > 0)).mean() > 0.85


@orion.parallel_for
def elements(ratings, rows, columns, x, step):
    for (i, j), v in ratings:
        rows[i] += v
        columns[j] += v
        x[0] -= step * (x[0] - v)


@orion.parallel_for
def values(ratings, x, step):
    for (_, j), v in ratings:
        x[j % 3] -= step * (x[j % 3] - v)


def ratings(seed=0):
    rng = np.random.default_rng(seed)
    return orion.sparse((rng.integers(0, 40, 3000), rng.integers(0, 50, 3000)), np.full(3000, 2.0), shape=(40, 50))


@pytest.mark.parametrize("mode", ["async", "hogwild"])
def test_blocks_go_from_worker_to_worker_beside_copies(mode, workers):
    given, w = ratings(), np.zeros(1)
    rows, columns = np.zeros(40), np.zeros(50)
    x = orion.replicate(w, policy=orion.elastic(mode=mode, sync_every=5))
    plan = elements.plan(given, rows, columns, x, 0.1)
    assert plan.strategy == "2d"
    assert plan.check() is None
    for _ in range(3):
        elements(given, rows, columns, x, 0.1)
    assert rows.sum() == columns.sum() == 3 * 6000
    np.testing.assert_allclose(w, 2.0, atol=0.1)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_workers_do_not_wait_for_pulls_where_tiles_wait_for_each_other(workers):
    given, w = ratings(), np.zeros(1)
    rows, columns = np.zeros(40), np.zeros(50)
    x = orion.replicate(w, policy=orion.elastic(mode="sync", sync_every=5))
    plan = elements.plan(given, rows, columns, x, 0.1)
    assert plan.strategy == "serial"
    assert "ORN133" in [one.code for one in plan.reasons]
    elements(given, rows, columns, x, 0.1)
    np.testing.assert_allclose(w, 2.0, atol=0.1)


@pytest.mark.parametrize("name", ["sync", "local_sgd", "async"])
def test_elements_of_sparse_arrays_are_gone_through(name, workers):
    given, w = ratings(), np.zeros(3)
    x = orion.replicate(w, policy=POLICIES[name]())
    plan = values.plan(given, x, 0.1)
    assert plan.strategy == "relaxed"
    assert plan.check() is None
    values(given, x, 0.1)
    np.testing.assert_allclose(w, 2.0, atol=0.1)


@orion.parallel_for
def search(a, x):
    for i in range(a.shape[0]):
        x[0] += a[i]
        if a[i] > 5.0:
            break


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_loops_that_may_end_early_are_serial(workers):
    a, w = np.ones(100), np.zeros(1)
    a[60] = 9.0
    x = orion.replicate(w, policy=orion.elastic(mode="async", alpha=0.5, sync_every=7))
    assert search.plan(a, x).strategy == "serial"
    search(a, x)
    assert w[0] + x.copies[0, 0] == 69.0


def test_dynamic_loops_keep_their_tiles(workers):
    data, labels = samples(700)
    dynamic = orion.parallel_for(schedule="dynamic")(logistic)
    w, again = np.zeros(12), np.zeros(12)
    for array, function in ((w, dynamic), (again, parallel_logistic)):
        function(data, labels, orion.replicate(array, policy=POLICIES["sync"]()), 0.1)
    np.testing.assert_array_equal(w, again)


def test_the_array_need_not_be_an_argument_and_may_be(workers):
    targets = np.random.default_rng(0).normal(size=(200, 5))
    w, out = np.zeros(5), np.zeros((1, 5))
    epochs(targets, orion.replicate(w, policy=orion.local_sgd()), w, out, 0.1, 1)
    np.testing.assert_array_equal(out[0], w)


def whole(targets, x, step):
    for s in range(targets.shape[0]):
        x -= step * (x - targets[s])


def assigned(targets, x, step):
    for s in range(targets.shape[0]):
        x[:] = x - step * (x - targets[s])


def towards(x, target, step):
    for k in range(x.shape[0]):
        x[k] -= step * (x[k] - target[k])


def helped(targets, x, step):
    for s in range(targets.shape[0]):
        towards(x, targets[s], step)


@pytest.mark.parametrize("body", [whole, assigned, helped])
def test_steps_are_written_in_many_ways(body, workers):
    targets = np.random.default_rng(0).normal(size=(120, 9))
    found = []
    for function in (orion.parallel_for(body), follow):
        w = np.zeros(9)
        function(targets, orion.replicate(w, policy=POLICIES["sync"]()), 0.1)
        found.append(w)
    np.testing.assert_allclose(*found, rtol=1e-13)


@orion.parallel_for
def rounds(targets, x, step, n):
    for _ in range(n):
        for s in range(targets.shape[0]):
            for k in range(targets.shape[1]):
                x[k] -= step * (x[k] - targets[s, k])


def test_a_loop_that_only_repeats_others_is_not_shared_out(workers):
    targets, w = np.random.default_rng(0).normal(size=(120, 9)) + 2.0, np.zeros(9)
    x = orion.replicate(w, policy=POLICIES["sync"]())
    plan = rounds.plan(targets, x, 0.05, 4)
    assert plan.check() is None
    rounds(targets, x, 0.05, 4)
    if workers > 1:
        assert plan.loops[0].cuts == (1, workers, 1)
    np.testing.assert_allclose(w, targets.mean(axis=0), atol=0.5)


def test_workers_come_and_go_between_calls():
    targets = np.random.default_rng(0).normal(size=(200, 5))
    w = np.zeros(5)
    x = orion.replicate(w, policy=orion.elastic(mode="sync", sync_every=10))
    for workers in (1, 3, 2, 3):
        with orion.session("threads", workers, force_parallel=True):
            follow(targets, x, 0.1)
        assert len(x.copies) >= workers
    assert np.isfinite(w).all()


def test_python_itself_has_one_copy_which_is_the_array():
    data, labels = samples(50)
    plain, w = np.zeros(12), np.zeros(12)
    logistic(data, labels, plain, 0.1)
    parallel_logistic.serial(data, labels, orion.replicate(w, policy=orion.elastic()), 0.1)
    np.testing.assert_array_equal(w, plain)


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("name", ["momentum", "diloco"])
def test_checkpoints_have_the_centre_and_momentum(name, workers, tmp_path):
    data, labels = samples(300)
    w = np.zeros(12)
    x = orion.replicate(w, policy=POLICIES[name]())
    parallel_logistic(data, labels, x, 0.1)
    orion.checkpoint(tmp_path, x=x)
    centre, momentum = w.copy(), (x.velocities.copy(), x.outer.copy())
    assert any(one.any() for one in momentum)
    found = []
    for _ in range(2):
        parallel_logistic(data, labels, x, 0.1)
        orion.restore(tmp_path, x=x)
        np.testing.assert_array_equal(w, centre)
        np.testing.assert_array_equal(x.copies, np.broadcast_to(centre, x.copies.shape))
        for own, kept in zip((x.velocities, x.outer), momentum, strict=True):
            np.testing.assert_array_equal(own, kept)
        parallel_logistic(data, labels, x, 0.1)
        found.append(w.tobytes())
    assert found[0] == found[1]


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: orion.elastic(mode="sometimes"), "mode='sometimes'"),
        (lambda: orion.elastic(alpha=0.0), "alpha=0.0"),
        (lambda: orion.elastic(alpha=1.01), "at most 1"),
        (lambda: orion.elastic(alpha="much"), "alpha='much'"),
        (lambda: orion.elastic(alpha=float("nan")), "alpha=nan"),
        (lambda: orion.elastic(sync_every=0), "sync_every=0"),
        (lambda: orion.elastic(sync_every=2.5), "sync_every=2.5"),
        (lambda: orion.elastic(sync_every=True), "sync_every=True"),
        (lambda: orion.elastic(momentum=1.0), "momentum=1.0"),
        (lambda: orion.elastic(momentum=-0.1), "momentum=-0.1"),
        (lambda: orion.local_sgd(sync_every=-1), "sync_every=-1"),
        (lambda: orion.local_sgd(outer=0.7), "outer=0.7"),
        (lambda: orion.local_sgd(outer=(1.5, 0.9)), "less than 1.357"),
        (lambda: orion.local_sgd(outer=(0.7, 1.0)), "momentum"),
        (lambda: orion.replicate(np.zeros(3), policy="sync"), "policy='sync'"),
        (lambda: orion.replicate([1.0], policy=orion.elastic()), "is a list"),
        (lambda: orion.replicate(np.zeros(3, int), policy=orion.elastic()), "dtype int64"),
        (lambda: orion.replicate(np.zeros((4, 4))[:, ::2], policy=orion.elastic()), "order of C"),
        (lambda: orion.replicate(orion.freeze(np.zeros(3)), policy=orion.elastic()), "cannot be written"),
    ],
)
def test_what_is_no_replica_is_refused(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


@pytest.mark.parametrize(("mode", "bound"), [("sync", 0.5), ("hogwild", 0.5), ("async", 1.0), ("round_robin", 1.0)])
def test_pulls_that_are_not_stable_are_refused_with_the_bound(mode, bound):
    """With three workers: sums of pulls overshoot for alpha > 2 / (3 + 1)."""
    targets = np.random.default_rng(0).normal(size=(60, 5))

    def run(alpha):
        w = np.zeros(5)
        follow(targets, orion.replicate(w, policy=orion.elastic(mode=mode, alpha=alpha, sync_every=1)), 0.1)
        return w

    with orion.session("threads", 3, force_parallel=True):
        assert np.isfinite(run(bound)).all()
        if bound < 1:
            with pytest.raises(ArgumentError, match=r"at most 2 / \(3 \+ 1\) = 0\.5"):
                run(bound + 0.01)


def test_an_array_has_a_buffer_or_a_replica():
    @orion.parallel_for
    def both(w, a, b):
        for i in range(w.shape[0]):
            a[i] += 1.0
            b[i] += 1.0

    w = np.zeros(9)
    replica = orion.replicate(w, policy=orion.elastic())
    for others in (orion.buffer(w), orion.replicate(w, policy=orion.elastic())):
        with pytest.raises(ArgumentError, match="`a` and `b` have an array"):
            both(w, replica, others)
    with pytest.raises(UnsupportedLoopError, match="buffer"):
        both(w, replica, orion.buffer(np.zeros(9)))
    with pytest.raises(ArgumentError, match="same `mode`, `sync_every` and `overlap`"):
        both(w, replica, orion.replicate(np.zeros(9), policy=orion.elastic(sync_every=3)))


REFUSED = {
    "centre": ("x[i] -= w[i]", "`w` is used"),
    "read": ("y[i] = x[i]", "reads `x`"),
    "between": ("x[i] = 1.0\n    return x[0]", "reads `x`"),
    "assigned": ("x = w\n        x[i] = 1.0", "`x` is given another value"),
}


@pytest.mark.parametrize("name", [*REFUSED])
def test_uses_of_replicas_that_mean_nothing_are_refused(name, tmp_path, monkeypatch):
    body, text = REFUSED[name]
    (tmp_path / f"replica_{name}.py").write_text(
        f"import orion\n@orion.parallel_for\ndef f(w, x, y):\n    for i in range(w.shape[0]):\n        {body}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    function = __import__(f"replica_{name}").f
    w = np.zeros(9)
    with pytest.raises(UnsupportedLoopError, match=text):
        function(w, orion.replicate(w, policy=orion.elastic()), np.zeros(9))


@pytest.mark.parametrize("name", ["async", "sync", "local_sgd"])
def test_copies_that_are_no_numbers_leave_all_as_it_was(name, workers):
    targets = np.random.default_rng(0).normal(size=(100, 5))
    w = np.zeros(5)
    x = orion.replicate(w, policy=POLICIES[name]())
    follow(targets, x, 0.1)
    centre, copies = w.copy(), x.copies.copy()
    targets[77, 3] = np.nan
    with pytest.raises(UpdateError, match="in place 3 in the order of C, is not a finite number"):
        follow(targets, x, 0.1)
    np.testing.assert_array_equal(w, centre)
    np.testing.assert_array_equal(x.copies, copies)


# ---------------------------------------------------------------- what is told


def test_plans_say_how_copies_are_pulled_together():
    targets = np.random.default_rng(0).normal(size=(100, 5))
    w = np.zeros(5)
    with orion.session("threads", 2, force_parallel=True):
        x = orion.replicate(w, policy=orion.elastic(mode="async", alpha=0.25, sync_every=9))
        plan = follow.plan(targets, x, 0.1)
        text = " ".join(str(plan).split())
        assert "relaxed `x` is a copy of its array for each worker" in text
        assert "after 9 iterations of each" in text
        assert "alpha 0.25, stable up to 1" in text
        told = plan.to_dict()["loops"][0]["replicas"]
        assert told[0]["mode"] == "async"
        assert told[0]["sync_every"] == 9
        sync = orion.replicate(w, policy=orion.elastic(mode="sync", sync_every=9))
        text = " ".join(str(follow.plan(targets, sync, 0.1)).split())
        assert "alpha 0.45" in text
        assert "stable up to 0.667" in text


@pytest.mark.parametrize("name", [*POLICIES])
def test_runs_say_how_often_copies_were_pulled_together(name):
    targets, w = np.random.default_rng(0).normal(size=(100, 5)), np.zeros(5)
    with orion.session("threads", 2, force_parallel=True):
        x = orion.replicate(w, policy=POLICIES[name]())
        follow(targets, x, 0.1)
        mine = [len(own) for own in blocks_of(targets, x)]
        told = follow.last_run
    assert told.late == ()
    assert [(one.worker, one.arrays, one.pulls) for one in told.pulls] == [
        (worker, ("x",), -(-iterations // 8)) for worker, iterations in enumerate(mine)
    ]
    assert "no serial run" in str(told.plan)


def test_a_replica_says_what_it_is():
    x = orion.replicate(np.zeros((3, 2)), policy=orion.elastic(mode="async", alpha=0.5, sync_every=4))
    assert repr(x) == "<orion.replicate of float64[3, 2], elastic(mode='async', alpha=0.5, sync_every=4)>"
    assert x.shape == (3, 2)
    assert len(x) == 3
