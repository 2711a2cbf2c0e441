"""`f.measure(...)`, and the times that `plan.estimate` and `plan.scaling` predict by it."""

import json

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, PlanError
from orion.simulate import Network, RoundTimes, TileGraph, makespan, time_of_rounds

NETWORK = Network(1e9, 1e-5, 0.0)


@orion.parallel_for
def smooth(a, b, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1]
        for i in range(1, a.shape[0] - 1):
            a[i] = b[i] + 1e-9 * np.exp(-b[i])


@orion.parallel_for
def add(ratings, w):
    for (i, _), r in ratings:
        w[i] += r


@orion.parallel_for
def as_often_as(counts, a):
    total = 1.0
    for _ in range(counts[0]):
        share = 0.5 * total
        total = 0.0
        for i in range(a.shape[0]):
            a[i] += share
            total += a[i]


@orion.parallel_for
def scale_stored(ratings):
    for (i, j), r in ratings:
        ratings[i, j] = 2.0 * r


def graph(owner, waits=None, place=(0, 0)):
    count = len(owner)
    offsets = np.zeros(count + 1, np.int64)
    found = []
    for tile in range(count):
        found += (waits or {}).get(tile, [])
        offsets[tile + 1] = len(found)
    waited = np.array(found, np.int64)
    return TileGraph(
        np.arange(count), np.array(owner), place, (offsets, waited, np.zeros(waited.size, np.int64)), {}, False
    )


def test_a_tile_begins_when_what_it_waits_for_is_done():
    tiles = graph([0, 1, 0, 1], {1: [0], 2: [1], 3: [2]})
    assert makespan(tiles, np.array([1.0, 2.0, 3.0, 4.0]), 1.0, NETWORK) == 10.0
    assert makespan(graph([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]), 1.0, NETWORK) == 6.0


def test_a_worker_of_another_node_hears_of_a_tile_after_the_latency():
    tiles = graph([0, 1], {1: [0]}, place=(0, 1))
    assert makespan(tiles, np.array([1.0, 2.0]), 1.0, NETWORK) == pytest.approx(3.0 + 1e-5)


def test_rounds_between_samples_are_on_the_line_through_them():
    runs = RoundTimes(np.array([[1.0, 1.0], [3.0, 3.0]]), np.array([0, 2]), 3, 3, overlap=False)
    assert time_of_rounds(graph([0, 0]), runs, 1.0, NETWORK) == pytest.approx(2.0 + 4.0 + 6.0)


def test_measuring_leaves_the_arguments_as_they_are():
    a, b = np.linspace(0.0, 1.0, 5000), np.zeros(10_000)[::2]
    before = a.copy(), b.copy()
    with orion.session(workers=2):
        smooth.measure(a, b, 3)
    assert np.array_equal(a, before[0])
    assert np.array_equal(b, before[1])


def test_measuring_leaves_distributed_arrays_as_they_are():
    ratings = orion.sparse((np.arange(500), np.arange(500) % 7), np.ones(500), shape=(500, 7))
    w = orion.zeros(500)
    with orion.session(workers=2):
        add.measure(ratings, w)
        scale_stored.measure(ratings)
    assert not w.to_numpy().any()
    assert np.array_equal(ratings.values, np.ones(500))


def test_an_estimate_has_times_once_the_call_is_measured():
    a, b = np.linspace(0.0, 1.0, 200_000), np.zeros(200_000)
    with orion.session(workers=2):
        before = smooth.plan(a, b, 4).estimate()
        measured = smooth.measure(a, b, 4)
        for workers in (1, 2):
            found = smooth.plan(a, b, 4).estimate(workers=workers)
            assert found.unmeasured is None
            assert found.workers <= workers
            assert found.seconds > 0
            assert sum(one.seconds for one in found.loops) <= found.seconds
        assert before.seconds is None
        assert "f.measure" in before.unmeasured
        assert measured.is_whole
        assert all(loop.seconds.min() >= 0 for loop in measured.loops)
        assert json.loads(found.to_json())["seconds"] == found.seconds


def test_ten_times_the_rounds_take_ten_times_as_long():
    a, b = np.linspace(0.0, 1.0, 50_000), np.zeros(50_000)
    with orion.session(workers=1):
        smooth.measure(a, b, 64)
        short, long = (smooth.plan(a, b, rounds).estimate() for rounds in (64, 640))
    assert long.seconds / short.seconds == pytest.approx(10.0, rel=0.2)
    assert any("other sizes" in one for one in long.assumed)


def test_rounds_that_depend_on_data_are_those_that_were_measured():
    counts = np.array([5])
    with orion.session(workers=2, force_parallel=True):
        as_often_as.measure(counts, np.zeros(1000))
        found = as_often_as.plan(counts, np.zeros(1000)).estimate()
        other = as_often_as.plan(counts, np.zeros(2000)).estimate()
    assert [loop.rounds for loop in found.loops] == [1, 5]
    assert other.seconds is None
    assert "how often loops run is not known" in other.unmeasured


def test_of_a_long_call_only_some_rounds_are_run():
    a, b = np.linspace(0.0, 1.0, 2000), np.zeros(2000)
    with orion.session(workers=2, force_parallel=True):
        measured = smooth.measure(a, b, 1000, seconds=1e-6)
        found = smooth.plan(a, b, 1000).estimate()
    assert not measured.is_whole
    for loop in measured.loops:
        if loop.rounds > 1:
            assert 1 < loop.sampled.size < loop.rounds
            assert np.all(np.diff(loop.sampled) > 0)
    assert found.seconds is not None
    assert "workers do not slow each other down, which was not measured" in found.assumed


def test_a_call_with_rounds_that_depend_on_data_ends_when_the_time_is_over():
    counts, a = np.array([10_000]), np.zeros(2000)
    with orion.session(workers=2, force_parallel=True):
        measured = as_often_as.measure(counts, a, seconds=1e-6)
        found = as_often_as.plan(counts, a).estimate()
    assert not measured.is_whole
    assert found.seconds is None
    assert "enough seconds" in found.unmeasured
    assert not a.any()


def test_scaling_is_a_curve_that_says_where_more_workers_do_not_pay():
    a, b = np.linspace(0.0, 1.0, 100_000), np.zeros(100_000)
    with orion.session(workers=2):
        with pytest.raises(PlanError, match=r"f\.measure"):
            add.plan(orion.sparse((np.arange(9), np.arange(9)), np.ones(9)), np.zeros(9)).scaling()
        smooth.measure(a, b, 2)
        curve = smooth.plan(a, b, 2).scaling(16)
    assert [workers for workers, _ in curve.points] == [1, 2, 4, 8, 16]
    assert curve.pays_up_to in (None, 1, 2, 4, 8)
    assert str(curve).splitlines()[-1].startswith("More")


def test_what_goes_between_nodes_takes_its_time():
    a, b = np.linspace(0.0, 1.0, 20_000), np.zeros(20_000)
    with orion.session(workers=2, force_parallel=True):
        smooth.measure(a, b, 10)
        plan = smooth.plan(a, b, 10)
        fast, slow = (plan.estimate(nodes=2, bandwidth=bandwidth) for bandwidth in (1e9, 1e3))
    assert fast.bytes == slow.bytes > 0
    assert slow.seconds - fast.seconds > 0.5 * slow.bytes_at_end / 1e3
    assert fast.memory_per_worker == max(fast.memory)
    assert f"per worker at most {fast.memory_per_worker:,}" in str(fast)


@pytest.mark.parametrize("seconds", [0, -1.0, True, "2", float("nan")])
def test_seconds_are_a_number_above_zero(seconds):
    with pytest.raises(ArgumentError, match="seconds"):
        smooth.measure(np.zeros(10), np.zeros(10), 1, seconds=seconds)


def test_too_little_memory_is_refused_with_the_numbers():
    a = np.ones(1000)
    with orion.session(workers=2):
        plan = smooth.plan(a, a.copy(), 1)
    assert plan.estimate(memory=16_000).memory[0] <= 16_000
    with pytest.raises(PlanError, match=r"memory=1,?000"):
        plan.estimate(memory=1000)
