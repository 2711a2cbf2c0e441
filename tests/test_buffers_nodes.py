"""Updates that may be late, on several nodes: each has the array, and carriers bring the updates of one to others."""

import sys
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import orion
from tests import one_ray
from tests.dying import kill_in_the_middle
from tests.oracles.buffered_loops import BufferedLoop
from tests.test_buffers import (
    cells,
    count,
    latest,
    look,
    loss,
    parallel_slr,
    samples,
    slowly,
    slr,
    sweeps,
    sweeps_in_order,
    topics,
    topics_in_order,
)
from tests.trials import TIMES, times

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import lda_data
import lda_gibbs

pytestmark = [
    pytest.mark.all(
        "test_no_update_is_lost",
        "test_no_update_is_later_than_was_said",
        "test_a_model_learns_as_it_does_one_by_one",
        "test_updates_that_are_no_numbers_leave_all_as_it_was",
        "test_rounds_that_use_other_elements_of_exact_arrays_each",
        "test_an_estimate_says_that_it_does_not_know_what_is_sent",
    ),
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning"),
]

ORDERS = ["magnitude", "round_robin", "random", "fifo"]


@pytest.fixture
def nodes():
    """Two nodes, the driver's with two workers, the other with one."""
    return one_ray.nodes()


def pacings():
    return {"bound": None, **{order: orion.pacing(order=order, batch="1KB") for order in ORDERS}}


@orion.parallel_for
def add_rows(data, row, late):
    for i in range(data.shape[0]):
        late[row[i], :] += data[i]


@orion.parallel_for
def add_planes(data, row, late):
    for i in range(data.shape[0]):
        late[row[i], 1, :] += data[i]
        late[row[i], i % 2, 2] -= 1.0


@orion.parallel_for
def epochs(group, late, n):
    for _ in range(n):
        for i in range(group.shape[0]):
            late[group[i]] += 1.0


@pytest.mark.parametrize("send", pacings().values(), ids=pacings())
@pytest.mark.parametrize("bins", [1, 7, 100, 50_000], ids=["one", "few", "some", "added at once"])
def test_no_update_is_lost(bins, send, nodes):
    group, totals = np.random.default_rng(bins).integers(0, bins, 9000), orion.zeros(bins)
    late = orion.buffer(totals, max_delay=100, send=send)
    for k in range(3):
        count(group, late)
        totals.view[0] += 1  # by the driver, between calls
        np.testing.assert_array_equal(
            totals.to_numpy(), (k + 1) * np.bincount(group, minlength=bins) + (np.arange(bins) == 0) * (k + 1)
        )
    told = count.last_run.late
    assert [one.worker for one in told] == [0, 1, 2]  # of both nodes
    assert all(0 <= one.latest <= 100 for one in told)
    assert len(count.last_run.sent) == 2
    for sent in count.last_run.sent:
        assert sent.flushes >= 1
        assert sent.rows >= 1
        assert sent.bytes == sent.rows * min(64, bins) * 8
        assert (sent.early == 0) or send is not None
        assert sent.early <= sent.rows


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16", "uint32"])
@pytest.mark.parametrize("shape", [(300, 9), (300, 70), (60_000, 3)])
def test_rows_and_elements_of_any_dtype(shape, dtype, made, nodes):
    row, data, w = np.random.default_rng(1).integers(0, shape[0], 5000), np.ones(5000, dtype), made(shape, dtype)
    add_rows(data, row, orion.buffer(w, max_delay=40))
    cells(data, row, w, orion.buffer(w, max_delay=40))
    each = np.arange(shape[1]) + 2  # one of `add_rows`, then those of `cells`
    each[1:3] += 1
    expected = np.bincount(row, minlength=shape[0])[:, None] * each
    np.testing.assert_array_equal(np.asarray(w), expected.astype(dtype))


def test_arrays_of_three_dimensions(nodes):
    rng = np.random.default_rng(2)
    row, data = rng.integers(0, 40, 3000), np.ones(3000)
    w, expected = orion.zeros((40, 2, 5)), np.zeros((40, 2, 5))
    add_planes(data, row, orion.buffer(w, max_delay=60, send=orion.pacing(batch=100)))
    add_planes.serial(data, row, orion.buffer(expected))
    np.testing.assert_array_equal(w.to_numpy(), expected)


def test_rounds_of_a_call(nodes):
    group, totals = np.random.default_rng(0).integers(0, 9, 2000), np.zeros(9)
    epochs(group, orion.buffer(totals, max_delay=50), 5)
    np.testing.assert_array_equal(totals, 5 * np.bincount(group))


@orion.parallel_for
def turned_around(y, w, late, n):
    for e in range(n):
        for i in range(y.shape[1]):
            late[i % 5] += 1.0 + w[0] * 0.0
            y[e + 1, i] = y[e, y.shape[1] - 1 - i] + 1.0


@pytest.mark.parametrize("max_delay", [3, 100, 10**5])
def test_rounds_that_use_other_elements_of_exact_arrays_each(max_delay, nodes):
    y, w = np.zeros((5, 3000)), np.zeros(5)
    turned_around(y, w, orion.buffer(w, max_delay=max_delay), 4)
    assert len(turned_around.last_run.sent) == 2
    np.testing.assert_array_equal(w, 2400.0)
    np.testing.assert_array_equal(y, np.arange(5.0)[:, None] + np.zeros(3000))


@pytest.mark.parametrize("send", [None, orion.pacing(batch=8)], ids=["bound", "magnitude"])
@pytest.mark.parametrize("max_delay", [1, 2, 7, 100])
def test_no_update_is_later_than_was_said(max_delay, send, nodes):
    """Readers look, and Orion says the same."""
    assert latest(3, max_delay, n=600, send=send) <= max_delay
    assert {one.latest for one in look.last_run.late} <= {*range(max_delay + 1)}


def test_those_who_go_on_alone_have_the_updates_of_those_who_are_through(nodes):
    """The work of the other node is a thousand times that of the home node, which is through long before."""
    n = 600
    w, who, seen, work = np.zeros(3), np.zeros(n, np.int64), np.zeros((n, 3)), np.full(n, 200)
    late = orion.buffer(w, max_delay=1000)
    schedule = look.plan(who, work, seen, w, late).schedule()
    for block, worker in enumerate(schedule.owner.tolist()):
        who[schedule.bounds[0][block] : schedule.bounds[0][block + 1]] = worker
    work[who == 2] *= 2000
    for _ in range(3):
        w[:] = 0
        look(who, work, seen, w, late)
        theirs = seen[who == 2]
        for other in (0, 1):
            assert theirs[-1, other] == (who == other).sum()  # none is kept back until the end


def test_how_late_updates_were_is_no_more_than_there_were(nodes):
    group, totals = np.arange(900) % 7, np.zeros(7)
    for max_delay in (500, 10**6, 10**12):
        count(group, orion.buffer(totals, max_delay=max_delay))
        schedule = count.last_run.plan.schedule()
        most = np.bincount(schedule.owner, np.diff(schedule.bounds[0])).max()
        assert max(one.latest for one in count.last_run.late) <= most


def test_a_model_learns_as_it_does_one_by_one(nodes):
    data = samples(3000, 50)
    serial, w = np.zeros(50), np.zeros(50)
    slr(*data, serial, orion.buffer(serial), 0.1)
    parallel_slr(*data, w, orion.buffer(w, max_delay=40, send=orion.pacing()), 0.1)
    assert loss(*data, w) < 1.1 * loss(*data, serial)


def test_updates_that_are_no_numbers_leave_all_as_it_was(nodes):
    data = samples(300, 20)
    for place in (100, len(data[2]) - 1):  # on one node, and on the other
        w, values = orion.ones(20), data[2].copy()
        values[place] = np.nan
        with pytest.raises(orion.UpdateError, match="is not a number"):
            parallel_slr(*data[:2], values, *data[3:], w, orion.buffer(w, max_delay=10), 0.1)
        np.testing.assert_array_equal(w.to_numpy(), 1.0)
        parallel_slr(*data, w, orion.buffer(w, max_delay=10), 0.1)
        assert np.isfinite(w.to_numpy()).all()


def test_infinite_values_stay_so(nodes):
    group, totals = np.arange(900) % 5, np.array([np.inf, -np.inf, 0.0, 1.0, 2.0])
    count(group, orion.buffer(totals, max_delay=10))
    np.testing.assert_array_equal(totals, [np.inf, -np.inf, 180.0, 181.0, 182.0])


@pytest.mark.parametrize("max_delay", [1, 7, 40, 10**9])
@pytest.mark.parametrize("function", [topics, topics_in_order], ids=["any order", "in order"])
def test_blocks_go_from_node_to_node_beside_buffers(function, max_delay, nodes):
    rng, count = np.random.default_rng(5), 4000 if max_delay > 1 else 400  # each waits for messages then
    keys, n = (rng.integers(0, 60, count), rng.integers(0, 80, count)), rng.integers(1, 5, count)
    tokens = orion.sparse(keys, n, (60, 80))
    words, documents, sums, seen = (np.zeros(k, np.int64) for k in (80, 60, 2, 60))
    given = tokens, words, documents, sums, orion.buffer(sums, max_delay=max_delay), seen
    plan = function.plan(*given)
    assert plan.strategy == "2d"
    assert "iterations of a worker, and at the end of each tile" in " ".join(str(plan).split()) or max_delay < 8
    for calls in (1, 2, 3):
        function(*given)
        assert len(function.last_run.sent) == 2
        for target, key, weight in ((documents, keys[0], 1), (words, keys[1], 2), (sums, sum(keys) % 2, 1)):
            expected = np.zeros_like(target)
            np.add.at(expected, key, n * weight * calls)
            np.testing.assert_array_equal(target, expected)
    assert seen.max() <= sums.sum()


@pytest.mark.parametrize("max_delay", [1, 40])
@pytest.mark.parametrize("function", [sweeps, sweeps_in_order], ids=["any order", "in order"])
def test_rounds_of_blocks_that_go_from_node_to_node(function, max_delay, nodes):
    rng, count = np.random.default_rng(6), 2000 if max_delay > 1 else 200
    keys = rng.integers(0, 60, count), rng.integers(0, 80, count)
    tokens = orion.sparse(keys, rng.integers(1, 5, count), (60, 80))
    words, documents, sums, seen, out = (np.zeros(k, np.int64) for k in (80, 60, 2, 60, (5, 2)))
    function(tokens, words, documents, sums, orion.buffer(sums, max_delay=max_delay), seen, out, 5)
    assert out.sum(axis=1).tolist() == [round * tokens.values.sum() for round in range(1, 6)]
    assert words.sum() == 2 * documents.sum() == 10 * tokens.values.sum()


def test_what_needs_shared_memory_uses_one_node_and_says_so(nodes):
    rng = np.random.default_rng(5)
    group, totals = rng.integers(0, 7, 900), np.zeros(7)
    given = group, orion.buffer(totals, max_delay=20, deterministic=True)
    count(*given)
    assert count.last_run.sent == ()
    assert "are applied in a fixed order" in told(count, given)


def told(function, given):
    return " ".join(str(function.plan(*given).estimate(nodes=2)).split())


def test_an_estimate_says_that_it_does_not_know_what_is_sent(nodes):
    given = np.arange(900) % 7, orion.buffer(np.zeros(7), max_delay=20)
    assert "depends on how fast workers and links are" in told(count, given)


@pytest.mark.parametrize("part", range(TIMES))
def test_no_update_of_a_random_loop_is_lost_or_too_late(part, nodes):
    tally = Counter()
    for seed in range(part, times(60, 20), TIMES):
        loop = BufferedLoop(1000 + seed)
        if loop.n and not loop.is_deterministic:
            loop.run(3, tally, nullcontext())
    assert tally["sent"] > tally["calls"] / 4


@pytest.mark.parametrize("order", ORDERS)
def test_rows_are_sent_before_the_bound_asks_for_them(order, nodes):
    group, totals = np.random.default_rng(3).integers(0, 3000, 6000), orion.zeros(3000)
    send = orion.pacing(order=order, batch="2KB", bandwidth="10Mbit/s")
    slowly(group, 60_000, orion.buffer(totals, max_delay=6000, send=send))
    np.testing.assert_array_equal(totals.to_numpy(), np.bincount(group, minlength=3000))
    first, second = slowly.last_run.sent
    assert first.early > 0 < second.early
    for one in (first, second):
        assert one.flushes <= 3  # at most once for each worker that is through, and once in its half
        assert one.early * 64 * 8 <= 1.25e6 * 60  # what has the bandwidth in a minute


@pytest.mark.parametrize("victim", [1, 2], ids=["beside a carrier", "a carrier"])
def test_a_worker_that_dies_takes_no_update_with_it(victim, nodes):
    group, totals = np.arange(4000) % 13, orion.zeros(13)
    late = orion.buffer(totals, max_delay=50, send=orion.pacing(batch="1KB"))
    slowly(group, 10, late)
    killing = kill_in_the_middle(nodes._backend._team.group.processes[victim])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        slowly(group, 400_000, late)
    killing.join()
    assert [one.category for one in seen] == [orion.WorkerReplacedWarning]
    np.testing.assert_array_equal(totals.to_numpy(), 2 * np.bincount(group))


def test_topics_are_drawn_on_all_nodes(nodes):
    """Words and documents go from node to node, the topics of tokens stay with the documents, totals are late."""
    corpus = lda_data.generated(150, 200, 40, 5, 0)
    model = lda_gibbs.Gibbs(corpus, 10, 0.1, 0.05, 200, 0)
    before = model.likelihood()
    for _ in range(5):
        model.sweep()
        last = lda_gibbs.sweep.last_run
        assert [one.worker for one in last.late] == [0, 1, 2]
        assert max(one.latest for one in last.late) <= 200
        assert len(last.sent) == 2
    assert model.likelihood() > before + 0.1
    words, docs, _ = (np.asarray(keys) for keys in model.tokens.coords)
    of_docs, of_words = np.zeros((150, 10)), np.zeros((corpus.vocabulary, 10))
    np.add.at(of_docs, (docs, np.asarray(model.tokens.values)), 1)
    np.add.at(of_words, (words, np.asarray(model.tokens.values)), 1)
    np.testing.assert_array_equal(model.of_docs, of_docs)
    np.testing.assert_array_equal(model.of_words, of_words)
    np.testing.assert_array_equal(model.totals, of_words.sum(axis=0))
