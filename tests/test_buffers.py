"""Arrays whose updates may be late: `orion.buffer` and `relax`."""

import numpy as np
import pytest

import orion
from orion.arrays.buffer import Buffer
from orion.errors import ArgumentError, UnsupportedLoopError, UpdateError

WORKERS = (1, 2, 3)


@pytest.fixture(params=WORKERS)
def workers(request):
    with orion.session("threads", request.param, force_parallel=True):
        yield request.param


@orion.parallel_for
def count(group, late):
    for i in range(group.shape[0]):
        late[group[i]] += 1.0


def slr(indptr, indices, values, labels, w, late, step):
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            late[indices[p]] -= step * g * values[p]


parallel_slr = orion.parallel_for(slr)


def samples(n, features, each=8, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=features)
    indices = rng.integers(0, features, n * each)
    values = rng.random(n * each)
    z = (truth[indices] * values).reshape(n, each).sum(axis=1)
    return np.arange(n + 1) * each, indices, values, (z > 0).astype(float)


def loss(indptr, indices, values, labels, w):
    z = np.add.reduceat(w[indices] * values, indptr[:-1])
    return float(np.mean(np.log1p(np.exp(np.where(labels > 0, -z, z)))))


# ---------------------------------------------------------------- what comes out


@pytest.mark.parametrize("bins", [7, 5000], ids=["dense", "listed"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
def test_no_update_is_lost(dtype, bins, workers):
    group = np.random.default_rng(0).integers(0, bins, 4000)
    totals = np.zeros(bins, dtype)
    late = orion.buffer(totals, max_delay=100)
    plan = count.plan(group, late)
    assert plan.strategy == "relaxed"
    assert plan.loops[0].relaxed.arrays[0].how == ("dense" if bins == 7 else "at once")
    for _ in range(2):
        count(group, late)
    np.testing.assert_array_equal(totals, 2 * np.bincount(group, minlength=bins))


@pytest.mark.parametrize("features", [50, 4000], ids=["dense", "listed"])
def test_a_model_learns_as_it_does_one_by_one(features, workers):
    data = samples(3000, features)
    serial, w = np.zeros(features), np.zeros(features)
    slr(*data, serial, orion.buffer(serial), 0.1)
    parallel_slr(*data, w, orion.buffer(w, max_delay=40), 0.1)
    assert loss(*data, w) < 1.1 * loss(*data, serial) < loss(*data, np.zeros(features))
    assert parallel_slr.plan(*data, w, orion.buffer(w, max_delay=40), 0.1).check() is None


def test_a_worker_alone_reads_its_own_updates_at_once():
    data = samples(500, 20)
    serial, w = np.zeros(20), np.zeros(20)
    slr(*data, serial, orion.buffer(serial), 0.1)
    with orion.session("threads", 1):
        parallel_slr(*data, w, orion.buffer(w, max_delay=100), 0.1)
    np.testing.assert_allclose(w, serial, rtol=1e-12)


@orion.parallel_for
def exact(indptr, indices, values, labels, w, step):
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            w[indices[p]] -= step * g * values[p]


def test_without_delay_the_bits_are_those_of_the_serial_loop(workers):
    data = samples(800, 20)
    serial, w = np.zeros(20), np.zeros(20)
    parallel_slr(*data, w, orion.buffer(w, max_delay=0), 0.1)
    with orion.session("threads", 1):
        exact(*data, serial, 0.1)
    np.testing.assert_array_equal(w, serial)


def test_arrays_are_relaxed_by_their_names(workers):
    @orion.parallel_for(relax=("w",))
    def learn(indptr, indices, values, labels, w, step):
        for s in range(labels.size):
            z = 0.0
            for p in range(indptr[s], indptr[s + 1]):
                z += w[indices[p]] * values[p]
            g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
            for p in range(indptr[s], indptr[s + 1]):
                w[indices[p]] -= step * g * values[p]

    data = samples(3000, 50)
    serial, w = np.zeros(50), np.zeros(50)
    learn.serial(*data, serial, 0.1)
    learn(*data, w, 0.1)
    assert learn.plan(*data, w, 0.1).strategy == "relaxed"
    assert loss(*data, w) < 1.2 * loss(*data, serial)
    with orion.session("threads", 1):
        again = np.zeros(50)
        learn(*data, again, 0.1)
    np.testing.assert_allclose(again, serial, rtol=1e-12)


# ---------------------------------------------------------------- functions that apply updates


def adagrad(w, u, n):
    n = n + u * u
    return w - 0.5 * u / np.sqrt(n), n


APPLIED = {
    "sum": (None, 0),
    "lambda": (lambda w, u: w + u, 0),
    "decay": (lambda w, u: 0.9 * w + u, 0),
    "most": (lambda w, u: max(w, 2.0 * u), 0),
    "adagrad": (adagrad, 1),
    "scaled": (lambda w, u, n: w + u / (1.0 + n), 1),
}


@pytest.mark.parametrize("name", [*APPLIED])
@pytest.mark.parametrize("bins", [9, 3000], ids=["dense", "listed"])
def test_updates_are_applied_by_a_function(name, bins):
    """One worker that applies its updates after each iteration does what the source says, bit for bit."""

    def spread(group, given, w, late, out):
        for i in range(group.shape[0]):
            out[i] = w[group[i]]
            late[group[i]] += given[i]

    apply, helpers = APPLIED[name]
    rng = np.random.default_rng(3)
    group, given = rng.integers(0, bins, 300), rng.normal(size=300)

    def outcome(function):
        w, out, others = np.zeros(bins), np.zeros(300), [np.ones(bins) for _ in range(helpers)]
        function(group, given, w, orion.buffer(w, apply, 1, others), out)
        return [w, out, *others]

    with orion.session("threads", 1):
        found = outcome(orion.parallel_for(spread))
    for one, expected in zip(found, outcome(spread), strict=True):
        np.testing.assert_array_equal(one, expected)


def test_workers_apply_updates_by_a_function_one_at_a_time(workers):
    group = np.random.default_rng(1).integers(0, 3, 20_000)
    w, n = np.zeros(3), np.zeros(3)

    def apply(value, update, calls):
        return value + update, calls + 1.0

    count(group, orion.buffer(w, apply, 4, [n]))
    np.testing.assert_array_equal(w, np.bincount(group))
    assert (n >= np.bincount(group) / 4).all()
    assert n.sum() <= group.size


# ---------------------------------------------------------------- how late


@orion.parallel_for
def slowly(group, work, late):
    for i in range(group.shape[0]):
        t = 1.0
        for _ in range(work):
            t = t * 1.0000001
        late[group[i]] += t - t + 1.0


@orion.parallel_for
def look(who, work, seen, w, late):
    for i in range(who.shape[0]):
        t = 1.0
        for _ in range(work[i]):
            t = t * 1.0000001
        seen[i, 0] = w[0]
        seen[i, 1] = w[1]
        seen[i, 2] = w[2]
        late[who[i]] += t - t + 1.0


def latest(workers, max_delay, n=3000, seed=0, send=None, apply=None):
    """The most iterations by which an update of another worker was late when an iteration read."""
    rng = np.random.default_rng(seed)
    work = (rng.pareto(1.0, n) * 20).astype(np.int64).clip(0, 20_000)
    w, who, seen = np.zeros(3), np.zeros(n, np.int64), np.zeros((n, 3))
    late = orion.buffer(w, apply, max_delay=max_delay, send=send)
    schedule = look.plan(who, work, seen, w, late).schedule()
    edges, owner = schedule.bounds[0], schedule.owner
    for block, worker in enumerate(owner.tolist()):
        who[edges[block] : edges[block + 1]] = worker
    look(who, work, seen, w, late)
    most = 0
    for worker in range(workers):
        mine = np.flatnonzero(who == worker)  # in the order in which it runs them
        for other in set(range(workers)) - {worker}:
            made = np.minimum(np.arange(mine.size), (who == other).sum())
            most = max(most, int((made - seen[mine, other]).max()) + 1)
        np.testing.assert_array_equal(seen[mine, worker], np.arange(mine.size))  # its own it sees at once
    return most


@pytest.mark.parametrize("max_delay", [1, 7, 100])
@pytest.mark.parametrize("workers", [2, 3], indirect=True)
def test_no_update_is_later_than_was_said(max_delay, workers):
    found = [latest(workers, max_delay, seed=seed) for seed in range(5)]
    assert max(found) <= max_delay


# ---------------------------------------------------------------- kinds of loops


@orion.parallel_for
def rows(data, group, w, late):
    for i in range(data.shape[0]):
        late[group[i]] += data[i]


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("bins", [5, 2000], ids=["dense", "listed"])
def test_rows_are_updated_whole(bins, made, workers):
    rng = np.random.default_rng(0)
    data, group = rng.integers(0, 9, (3000, 5)).astype(float), rng.integers(0, bins, 3000)
    w, expected = made((bins, 5)), np.zeros((bins, 5))
    late = orion.buffer(w, max_delay=20)
    plan = rows.plan(data, group, w, late)
    assert plan.strategy == "relaxed"
    rows(data, group, w, late)
    np.add.at(expected, group, data)
    np.testing.assert_array_equal(np.asarray(w), expected)


@orion.parallel_for
def cells(data, row, w, late):
    for i in range(data.shape[0]):
        for k in range(w.shape[1]):
            late[row[i], k] += data[i] * (k + 1)
        late[row[i], 1:3] += data[i]


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("bins", [5, 2000], ids=["dense", "listed"])
def test_elements_of_rows_and_slices_are_updated(bins, made, workers):
    rng = np.random.default_rng(0)
    data, row = rng.integers(0, 9, 2000).astype(float), rng.integers(0, bins, 2000)
    w, expected = made((bins, 5)), np.zeros((bins, 5))
    cells(data, row, w, orion.buffer(w, max_delay=20))
    np.add.at(expected, row, data[:, None] * np.arange(1, 6))
    np.add.at(expected[:, 1:3], row, data[:, None])
    np.testing.assert_array_equal(np.asarray(w), expected)


@orion.parallel_for
def windows(text, late, reach):
    for s in range(text.shape[0]):
        for t in range(text.shape[1]):
            here = text[s, t]
            for near in range(max(t - reach, 0), min(t + reach + 1, text.shape[1])):
                late[text[s, near]] += here


def test_updates_in_a_window_are_counted_as_often_as_it_is_wide():
    """A loop whose bounds are computed goes through the window for each place of the text; it is no row of a sparse
    matrix, all of which together go through their array once."""
    w, text = np.zeros(2000), np.random.default_rng(0).integers(0, 2000, (300, 30))
    late = orion.buffer(w, max_delay=100)
    for reach, how in ((6, "dense"), (1, "at once")):
        assert windows.plan(text, late, reach).loops[0].relaxed.arrays[0].how == how
    windows(text, late, 6)
    expected = np.zeros(2000)
    for t in range(30):
        for near in range(max(t - 6, 0), min(t + 7, 30)):
            np.add.at(expected, text[:, near], text[:, t])
    np.testing.assert_array_equal(w, expected)


def topics(tokens, words, documents, totals, late, seen):
    """Words and documents exactly, by blocks that go from worker to worker; the totals late."""
    for (d, w), n in tokens:
        documents[d] += n
        words[w] += 2 * n
        seen[d] = max(seen[d], totals[0] + totals[1])
        late[(d + w) % 2] += n


def sweeps(tokens, words, documents, totals, late, seen, out, rounds):
    for e in range(rounds):
        for (d, w), n in tokens:
            documents[d] += n
            words[w] += 2 * n
            seen[d] = max(seen[d], totals[0] + totals[1])
            late[(d + w) % 2] += n
        for j in range(2):
            out[e, j] = totals[j]


topics, topics_in_order = orion.parallel_for(topics), orion.parallel_for(ordered=True)(topics)
sweeps, sweeps_in_order = orion.parallel_for(sweeps), orion.parallel_for(ordered=True)(sweeps)


@pytest.mark.parametrize("function", [sweeps, sweeps_in_order], ids=["any order", "in order"])
@pytest.mark.parametrize("max_delay", [1, 40])
def test_nobody_waits_for_who_has_not_begun_a_round(function, max_delay, workers):
    """In order, the first tile of a worker waits for one of another."""
    rng = np.random.default_rng(5)
    tokens = orion.sparse((rng.integers(0, 60, 2000), rng.integers(0, 80, 2000)), rng.integers(1, 5, 2000), (60, 80))
    words, documents, totals, seen, out = (np.zeros(k, np.int64) for k in (80, 60, 2, 60, (5, 2)))
    function(tokens, words, documents, totals, orion.buffer(totals, max_delay=max_delay), seen, out, 5)
    assert out.sum(axis=1).tolist() == [round * tokens.values.sum() for round in range(1, 6)]
    assert words.sum() == 2 * documents.sum() == 10 * tokens.values.sum()


@pytest.mark.parametrize("max_delay", [1, 40, 10**9])
def test_blocks_go_from_worker_to_worker_beside_buffers(max_delay, workers):
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 60, 4000), rng.integers(0, 80, 4000)
    tokens = orion.sparse(keys, rng.integers(1, 5, 4000), shape=(60, 80))
    n = np.asarray(tokens.values)
    words, documents, totals, seen = (np.zeros(k, np.int64) for k in (80, 60, 2, 60))
    late = orion.buffer(totals, max_delay=max_delay)
    given = tokens, words, documents, totals, late, seen
    plan = topics.plan(*given)
    assert plan.strategy == "2d"
    assert plan.check() is None
    for _ in range(3):
        topics(*given)
    assert totals.sum() == 3 * n.sum() == words.sum() // 2
    assert documents.sum() == 3 * n.sum()
    assert seen.max() <= totals.sum()


@orion.parallel_for
def epochs(group, given, w, late, out, rounds):
    for r in range(rounds):
        for i in range(group.shape[0]):
            late[group[i]] += given[i]
        for j in range(w.shape[0]):
            out[r, j] = w[j]


@pytest.mark.parametrize("bins", [4, 3000])
def test_updates_are_applied_before_the_next_loop(bins, workers):
    rng = np.random.default_rng(2)
    group, given = rng.integers(0, bins, 2500), rng.integers(0, 9, 2500).astype(float)
    w, out = np.zeros(bins), np.zeros((6, bins))
    epochs(group, given, w, orion.buffer(w, max_delay=50), out, 6)
    once = np.bincount(group, given, bins)
    np.testing.assert_array_equal(out, once * np.arange(1, 7)[:, None])


@orion.parallel_for
def dense(data, labels, w, late, step, rounds):
    for r in range(rounds):
        rate = step / (r + 1)
        for s in range(labels.size):
            z = 0.0
            for k in range(w.shape[0]):
                z += w[k] * data[s, k]
            g = rate * (1.0 / (1.0 + np.exp(-z)) - labels[s])
            for k in range(w.shape[0]):
                late[k] -= g


def test_samples_are_shared_out_and_epochs_are_not(workers):
    rng = np.random.default_rng(0)
    data, labels, w = rng.normal(size=(500, 4)), (rng.random(500) < 0.3).astype(float), np.zeros(4)
    late = orion.buffer(w, max_delay=10)
    plan = dense.plan(data, labels, w, late, 0.1, 3)
    assert [(loop.strategy, loop.nest.dims) for loop in plan.loops] == [("relaxed", ("s",))]
    dense(data, labels, w, late, 0.1, 3)
    expected = np.zeros(4)
    dense.serial(data, labels, expected, orion.buffer(expected), 0.1, 3)
    np.testing.assert_allclose(w, expected, rtol=0.05)
    if workers == 1:
        np.testing.assert_allclose(w, expected, rtol=1e-9)


def test_dynamic_loops_have_buffers_too(workers):
    group = np.random.default_rng(0).integers(0, 7, 9000)
    totals = np.zeros(7)
    late = orion.buffer(totals, max_delay=64)
    dynamic = orion.parallel_for(schedule="dynamic")(count.serial)
    for _ in range(3):
        dynamic(group, late)
    np.testing.assert_array_equal(totals, 3 * np.bincount(group))


def test_the_array_need_not_be_an_argument(workers):
    group = np.random.default_rng(0).integers(0, 7, 900)
    totals = np.zeros(7)
    late = orion.buffer(totals, lambda v, u, n: v + u, 16, [np.ones(7)])
    count(group, late)
    np.testing.assert_array_equal(totals, np.bincount(group))


# ---------------------------------------------------------------- in a fixed order


@pytest.mark.parametrize("features", [30, 4000], ids=["dense", "listed"])
def test_updates_in_a_fixed_order_give_the_same_bits_each_time(features, workers):
    data = samples(2000, features)
    found = set()
    for _ in range(5):
        w = np.zeros(features)
        late = orion.buffer(w, max_delay=30, deterministic=True)
        parallel_slr(*data, w, late, 0.1)
        parallel_slr(*data, w, late, 0.1)
        found.add(w.tobytes())
    assert len(found) == 1
    serial = np.zeros(features)
    slr(*data, serial, orion.buffer(serial), 0.1)
    assert loss(*data, w) < 1.1 * loss(*data, serial)


def test_all_updates_are_applied_in_a_fixed_order(workers):
    group = np.random.default_rng(0).integers(0, 7, 1003)
    totals = np.zeros(7)
    count(group, orion.buffer(totals, max_delay=30, deterministic=True))
    np.testing.assert_array_equal(totals, np.bincount(group))


def test_a_fixed_order_is_kept_where_times_are_taken(workers):
    """A profile has workers walk through their tiles one by one."""
    data, found = samples(2000, 30), []
    for profiles in (False, True):
        w = np.zeros(30)
        late = orion.buffer(w, max_delay=30, deterministic=True)
        for _ in range(3):
            if profiles:
                with orion.profile():
                    parallel_slr(*data, w, late, 0.1)
            else:
                parallel_slr(*data, w, late, 0.1)
        found.append(w)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("deterministic", [False, True])
def test_loops_with_buffers_are_measured(deterministic, workers):
    group, totals = np.arange(4000) % 7, np.zeros(7)
    late = orion.buffer(totals, max_delay=20, deterministic=deterministic)
    assert count.measure(group, late, seconds=0.1).loops[0].rounds == 1
    assert not totals.any()


# ---------------------------------------------------------------- snapshots


def test_a_snapshot_is_what_a_helper_was_when_the_element_was_used():
    """The helper counts how often updates were applied; the array adds up how many of them an update did not see."""

    def apply(unseen, u, applied, before):
        return unseen + (applied - before), applied + 1.0

    group = np.random.default_rng(0).integers(0, 3, 6000)
    for workers in WORKERS:
        with orion.session("threads", workers, force_parallel=True):
            unseen, applied = np.zeros(3), np.zeros(3)
            count(group, orion.buffer(unseen, apply, 8, [applied], [applied]))
            assert (unseen == 0).all() if workers == 1 else (unseen >= 0).all()
            assert (unseen <= applied * 8 * (workers - 1)).all()


def test_without_delay_a_snapshot_is_the_helper_itself(workers):
    def apply(unseen, u, applied, before):
        return unseen + (applied - before), applied + u

    group = np.random.default_rng(0).integers(0, 3, 200)
    unseen, applied = np.zeros(3), np.zeros(3)
    count(group, orion.buffer(unseen, apply, 0, [applied], [applied]))
    np.testing.assert_array_equal(unseen, 0)
    np.testing.assert_array_equal(applied, np.bincount(group))


# ---------------------------------------------------------------- what is wrong


def test_updates_that_are_no_numbers_leave_all_as_it_was(workers):
    @orion.parallel_for
    def add(group, given, out, late):
        for i in range(group.shape[0]):
            late[group[i]] += given[i]

    group, given = np.arange(4000) % 50, np.ones(4000)
    given[3333] = np.nan
    w, n = np.arange(50.0), np.zeros(50)
    late = orion.buffer(w, lambda v, u, n: (v + u, n + 1.0), 10, [n])
    with pytest.raises(UpdateError, match=r"in place 33 in the order of C, is not a number[^$]*given\[i\]"):
        add(group, given, w, late)
    np.testing.assert_array_equal(w, np.arange(50.0))
    np.testing.assert_array_equal(n, 0)
    given[3333] = 1.0
    add(group, given, w, late)
    np.testing.assert_array_equal(w, np.arange(50.0) + 80)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: orion.buffer([1.0]), "is a list"),
        (lambda: orion.buffer(np.zeros(3, bool)), "dtype bool"),
        (lambda: orion.buffer(np.zeros(3, complex)), "dtype complex128"),
        (lambda: orion.buffer(np.zeros(3), max_delay=-1), "max_delay=-1"),
        (lambda: orion.buffer(np.zeros(3), max_delay=1.5), "max_delay=1.5"),
        (lambda: orion.buffer(np.zeros(3), max_delay=True), "max_delay=True"),
        (lambda: orion.buffer(np.zeros(3), lambda w: w), "takes 1 arguments, and is given 2"),
        (lambda: orion.buffer(np.zeros(3), np.add), "is a ufunc"),
        (lambda: orion.buffer(np.zeros(3), lambda w, u, n: w, helpers=[np.zeros(4)]), "has the shape"),
        (lambda: orion.buffer(np.zeros(3), helpers=[np.zeros(3)]), "no `apply`"),
        (lambda: orion.buffer(np.zeros(3), lambda w, u, n: w, 1, [np.zeros(3)], [np.zeros(3)]), "none of the"),
        (lambda: orion.buffer(np.zeros(3), deterministic=1), "deterministic=1"),
        (lambda: orion.buffer(orion.freeze(np.zeros(3))), "cannot be written"),
    ],
)
def test_what_is_no_buffer_is_refused(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def test_an_array_has_one_buffer():
    @orion.parallel_for
    def both(w, a, b):
        for i in range(w.shape[0]):
            a[i] += 1.0
            b[i] += 1.0

    w = np.zeros(9)
    with pytest.raises(ArgumentError, match="`a` and `b` have an array"):
        both(w, orion.buffer(w), orion.buffer(w))


REFUSED = {
    "read": ("x = late[i]\n        w[i] = x", "can only be updated"),
    "assigned": ("late[i] = 1.0", "only its updates may be late"),
    "multiplied": ("late[i] *= 2.0", "may be late"),
    "array": ("w[i] = 1.0\n        late[i] += 1.0", "has a buffer"),
    "whole": ("late += 1.0", "only its updates may be late"),
    "updated": ("w[i] += 1.0\n        late[i] += 1.0", "`w` is assigned, and has a buffer"),
    "in a pair": ("w[i], x = 1.0, 2.0\n        late[i] += x", "`w` is assigned, and has a buffer"),
}


@pytest.mark.parametrize("name", [*REFUSED])
def test_uses_that_cannot_be_late_are_refused(name, tmp_path, monkeypatch):
    body, text = REFUSED[name]
    (tmp_path / f"refused_{name}.py").write_text(
        f"import orion\n@orion.parallel_for\ndef f(w, late):\n    for i in range(w.shape[0]):\n        {body}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    function = __import__(f"refused_{name}").f
    w = np.zeros(9)
    with pytest.raises(UnsupportedLoopError, match=text):
        function(w, orion.buffer(w))


def test_parts_cannot_be_applied_by_a_function_of_elements():
    w = np.zeros((9, 4))
    late = orion.buffer(w, lambda v, u: v + u, 4)

    @orion.parallel_for
    def f(data, w, late):
        for i in range(data.shape[0]):
            data[i] = w[0] @ w[1]
            late[i, 0] += 1.0

    with pytest.raises(UnsupportedLoopError, match="elements one by one"):
        f(np.zeros(5), w, late)


@pytest.mark.parametrize("names", ["w", (1,)])
def test_relax_takes_names(names):
    with pytest.raises(ArgumentError, match="write a tuple of names"):
        orion.parallel_for(relax=names)


def test_relax_names_arrays():
    relaxed = orion.parallel_for(relax=("missing",))(count.serial)
    with pytest.raises(ArgumentError, match="is no parameter"):
        relaxed(np.arange(3), np.zeros(3))


def test_a_function_that_raises_is_refused_where_it_stands():
    def apply(v, u):
        if u > 2.5:
            raise ValueError("too large")
        return v + u

    w = np.zeros(3)
    with pytest.raises(UnsupportedLoopError, match="`raise` is not supported"):
        count(np.zeros(40, np.int64), orion.buffer(w, apply, 100))
    np.testing.assert_array_equal(w, 0)


RESULTS = {
    "too many": (lambda w, u: (w, u), "returns 2 values"),
    "some": (lambda w, u: w.nothing, "cannot be|is not|unknown|no attribute|not supported"),
}


@pytest.mark.parametrize("name", [*RESULTS])
def test_functions_that_cannot_be_compiled_are_refused(name):
    apply, text = RESULTS[name]
    with pytest.raises(UnsupportedLoopError, match=text):
        count(np.zeros(40, np.int64), orion.buffer(np.zeros(3), apply, 100))


# ---------------------------------------------------------------- what is told


def test_plans_say_what_may_be_late_and_runs_how_late_it_was():
    data = samples(4000, 50)
    w = np.zeros(50)
    late = orion.buffer(w, max_delay=40)
    with orion.session("threads", 2, force_parallel=True):
        plan = parallel_slr.plan(*data, w, late, 0.1)
        text = " ".join(str(plan).split())
        assert "relaxed `w`: updates by `late` are at most 40 iterations late" in text
        assert "a worker applies its updates after 10 iterations of its own" in text
        assert plan.to_dict()["loops"][0]["relaxed"]["max_delay"] == 40
        assert "at most 40 iterations late" in plan._repr_html_()
        parallel_slr(*data, w, late, 0.1)
        told = parallel_slr.last_run.late
    assert [one.worker for one in told] == [0, 1]
    for one in told:
        assert one.arrays == ("w",)
        assert 0 <= one.latest <= 40
        assert one.flushes >= 200
        assert one.bytes == 8 * one.elements > 0
        assert sum(pieces for _, _, pieces in one.histogram) >= 200
        assert one.histogram[0][0] == 0
        assert one.histogram[-1][1] == 40


def test_a_buffer_says_what_it_is():
    late = orion.buffer(np.zeros((3, 2)), adagrad, 5, [np.zeros((3, 2))])
    assert repr(late) == "<orion.buffer of float64[3, 2], apply=adagrad, max_delay=5>"
    assert isinstance(late, Buffer)
    assert late.shape == (3, 2)


def test_how_late_updates_were_is_no_more_than_there_were():
    group, totals = np.arange(900) % 7, np.zeros(7)
    with orion.session("threads", 2, force_parallel=True):
        for max_delay in (500, 10**6, 10**12):
            count(group, orion.buffer(totals, max_delay=max_delay))
            assert count.last_run.late
            assert max(one.latest for one in count.last_run.late) <= 450
    with pytest.raises(orion.ArgumentError, match=r"at most 1,000,000,000,000"):
        orion.buffer(totals, max_delay=10**12 + 1)


def test_a_buffer_of_another_view_of_the_array_is_told_of():
    w, data = np.zeros(50), samples(100, 50)
    with pytest.raises(orion.AliasError) as raised:
        parallel_slr(*data, w, orion.buffer(w[:], max_delay=50), 0.1)
    told = " ".join(str(raised.value).split())
    assert "`w` and `late.array` share memory" in told
    assert "make `late` of the array that is given as `w` itself" in told
    assert "copy" not in told


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "longdouble", "bool", "complex128"])
def test_dtypes_that_buffers_have_not(dtype):
    with pytest.raises(orion.ArgumentError, match="float64 or float32, or of integers of 2 to 8 bytes"):
        orion.buffer(np.zeros(3, dtype))


def test_an_apply_with_other_parameters_is_told_of_with_its_place():
    def keyword(v, u, *, c=3.0):
        return v + u + c

    def starred(*values):
        return sum(values)

    def three(v, u, c=3.0):
        return v + u + c

    for apply, what in [
        (keyword, "parameters with `*`"),
        (starred, "parameters with `*`"),
        (three, "takes 3 arguments"),
    ]:
        with pytest.raises(orion.ArgumentError, match=rf"`{apply.__name__}` \(.*test_buffers.py:\d+\)") as raised:
            orion.buffer(np.zeros(3), apply)
        assert what in str(raised.value)


# ---------------------------------------------------------------- what is read beside the loop with the updates


@orion.parallel_for
def read_after(w, late, out, n):
    for e in range(out.shape[0]):
        for _ in range(n):
            late[0] += 1.0
        out[e] = w[0]


@orion.parallel_for
def read_into_a_scalar(w, late, out, n):
    t = 0.0
    for _ in range(out.shape[0]):
        for i in range(n):
            late[i % 2] += 1.0
        t += w[0]
    out[0] = t


@orion.parallel_for
def read_by_a_condition(w, late, out, n):
    for _ in range(out.shape[0]):
        for _ in range(n):
            late[0] += 1.0
        if w[0] > 2.5 * n:
            break


@orion.parallel_for
def read_before(w, late, out, n):
    for e in range(out.shape[0]):
        c = w[0]
        for i in range(n):
            late[i % 3] += 1.0
        out[e] = c


@orion.parallel_for
def read_by_a_loop(w, late, out, n):
    for e in range(out.shape[0]):
        for i in range(n):
            late[i % 3] += 1.0
        total = 0.0
        for i in range(n):
            total += w[i % 3]
        out[e] = total


@pytest.mark.parametrize("workers", [1, 2], indirect=True)
@pytest.mark.parametrize(
    "function",
    [read_after, read_into_a_scalar, read_by_a_condition, read_before, read_by_a_loop],
    ids=lambda f: f.__name__,
)
def test_what_is_read_beside_the_loop_with_the_updates_has_them_all(function, workers):
    for max_delay in (1, 10, 1000, 10**6):
        found, expected = ((np.zeros(3), np.zeros(5)) for _ in range(2))
        function(found[0], orion.buffer(found[0], max_delay=max_delay), found[1], 300)
        function.serial(expected[0], orion.buffer(expected[0]), expected[1], 300)
        np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))
