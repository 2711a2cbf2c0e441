"""`f.replay(run, ...)`: a run again, bit for bit, in sessions with other workers and other backends."""

import numpy as np
import pytest

import orion
from orion.errors import PlanError
from orion.replayed import differences
from orion.runtime.backend import LocalBackend


@orion.parallel_for
def total(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i]
    a[0] = s
    return s


@orion.parallel_for(schedule="dynamic")
def dynamic_total(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i]
    a[0] = s
    return s


@orion.parallel_for(ordered=False)
def any_order(a):
    for i in range(a.shape[0]):
        a[i] = a[i] * 1.1 + 0.3


@orion.parallel_for
def sweeps(A):
    for _t in range(3):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i, j - 1] + A[i + 1, j] + A[i, j + 1])


@orion.parallel_for
def sgd(R, W, H):
    for (i, j), r in R:
        e = r - W[i] * H[j]
        w = W[i]
        W[i] += 0.01 * e * H[j]
        H[j] += 0.01 * e * w


def dense(*shape):
    return [np.random.default_rng(7).random(shape)]


R = orion.sparse(
    (np.random.default_rng(1).integers(0, 60, 3000), np.random.default_rng(2).integers(0, 40, 3000)),
    np.random.default_rng(3).random(3000),
    shape=(60, 40),
)
LOOPS = {
    "sum": (total, lambda: dense(100_003)),
    "dynamic": (dynamic_total, lambda: dense(100_003)),
    "1d": (any_order, lambda: dense(10_001)),
    "wavefront": (sweeps, lambda: dense(70, 50)),
    "2d": (sgd, lambda: [R, *dense(60), *dense(40)]),
}


def bits(arguments):
    return [one.tobytes() for one in arguments if isinstance(one, np.ndarray)]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize(("backend", "workers"), [("threads", 2), ("serial", 1)])
def test_a_run_with_three_workers_is_replayed_with_others(name, backend, workers):
    function, given = LOOPS[name]
    first, again = given(), given()
    with orion.session("threads", 3, force_parallel=True):
        returned = function(*first)
    run = function.last_run
    assert run.workers == 3
    with orion.session(backend, workers):
        assert function.replay(run, *again) == returned
    assert bits(again) == bits(first)


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_replayed_is_the_plan_of_the_run(name, monkeypatch):
    """Results alone do not show it: those of these loops are the same with 1, 2 and 3 workers."""
    function, given = LOOPS[name]
    with orion.session("threads", 3, force_parallel=True):
        function(*given())
    seen, run_it = [], LocalBackend.run

    def spy(backend, call):
        seen.append((backend.workers, call.prepared))
        return run_it(backend, call)

    monkeypatch.setattr(LocalBackend, "run", spy)
    run = function.last_run
    with orion.session("threads", 2):
        function.replay(run, *given())
    assert seen == [(3, run.ran.prepared.program)]


@pytest.mark.parametrize("other", [np.ones(99), np.ones(100_003, np.float32)])
def test_arguments_that_the_plan_is_not_for_are_refused(other):
    total(*dense(100_003))
    before = other.copy()
    with pytest.raises(PlanError, match="not one for these arguments"):
        total.replay(total.last_run, other)
    np.testing.assert_array_equal(other, before)


@orion.parallel_for
def scatter(a, to, out):
    for i in range(to.shape[0]):
        out[to[i]] = a[i]


@orion.parallel_for
def hop(x, to):
    for i in range(to.shape[0]):
        x[to[i]] = 0.5 * x[i] + 1.0


@orion.parallel_for
def first_rows(a, rows):
    for i in range(rows):
        a[i] = 2.0 * a[i]


@orion.parallel_for
def with_option(a, mode="twice"):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i] if mode == "twice" else 3.0 * a[i]


def elements(seed, count=3000):
    rng = np.random.default_rng(seed)
    return orion.sparse((rng.integers(0, 60, count), rng.integers(0, 40, count)), rng.random(count), shape=(60, 40))


PLACES = np.random.default_rng(0).permutation(5000)
TWICE = np.where(np.arange(5000) == 7, PLACES[0], PLACES)


@pytest.mark.parametrize(
    ("function", "given", "others", "why"),
    [
        (total, dense(999), [np.ones(99)], r"`a` has shape \(99,\), and had \(999,\) in the run"),
        (total, dense(999), [np.ones(999, np.float32)], "dtype float32 with 1 dimension, and was"),
        (first_rows, [np.ones(9), 5], [np.ones(9), 4], "`rows` is 4, and was 5 in the run"),
        (with_option, [np.ones(9)], [np.ones(9), "thrice"], "`mode` is 'thrice', and was 'twice' in the run"),
        (sgd, [R, *dense(60), *dense(40)], [elements(1, 2999), *dense(60), *dense(40)], "`R` has 2,999 elements"),
        (sgd, [R, *dense(60), *dense(40)], [elements(5), *dense(60), *dense(40)], "`R` has elements with other keys"),
        (scatter, [np.ones(5000), PLACES, np.ones(5000)], [np.ones(5000), TWICE, np.ones(5000)],
         "`to` has no two equal elements: it does not hold now, and it held in the run"),
        (hop, [np.ones(5000), PLACES], [np.ones(5000), np.roll(PLACES, 1)],
         "the contents of `to` are others than in the run"),
    ],
)  # fmt: skip
def test_what_differs_from_the_run_is_told(function, given, others, why):
    with orion.session("threads", 2, force_parallel=True):
        function(*given)
        with pytest.raises(PlanError, match=why):
            function.replay(function.last_run, *others)


def test_an_inspection_since_is_told():
    preparation, given = hop._bind((np.ones(5000), PLACES), {})
    as_written, in_tiles = (preparation.prepare(given, 2, force) for force in (False, True))
    assert "has been inspected since, and would run in the tiles" in differences(in_tiles, as_written)[0]
    assert "ran in tiles that an inspection had found" in differences(as_written, in_tiles)[0]


@pytest.mark.parametrize("function", [scatter, hop])
def test_copies_of_the_arguments_of_a_run_are_replayed(function):
    given = {
        scatter: lambda: [np.ones(5000), PLACES.copy(), np.ones(5000)],
        hop: lambda: [np.ones(5000), PLACES.copy()],
    }
    first, again = given[function](), given[function]()
    with orion.session("threads", 2, force_parallel=True):
        function(*first)
        function.replay(function.last_run, *again)
    assert bits(again) == bits(first)


def test_a_run_of_another_function_is_refused():
    any_order(*dense(999))
    with pytest.raises(PlanError, match="another function"):
        total.replay(any_order.last_run, *dense(999))


@pytest.mark.ray
@pytest.mark.parametrize("name", ["sum", "2d"])
def test_a_run_is_replayed_between_threads_and_actors(name):
    pytest.importorskip("ray")
    function, given = LOOPS[name]
    first, again, local = given(), given(), given()
    with orion.session("threads", 3, force_parallel=True):
        function(*local)
    with orion.session("ray", 2, force_parallel=True):
        function.replay(function.last_run, *again)
        assert bits(again) == bits(local)
        function(*first)
    again = given()
    function.replay(function.last_run, *again)
    assert bits(again) == bits(first)


@pytest.mark.parametrize("run", [None, "last", np.ones(3)])
def test_what_is_no_run_is_refused(run):
    with pytest.raises(orion.ArgumentError, match=r"(?s)the first argument is a run.*total\.last_run"):
        total.replay(run, *dense(999))


def test_an_error_in_a_replay_leaves_the_last_run_and_the_session():
    @orion.parallel_for
    def gather(a, to, out):
        for i in range(out.shape[0]):
            out[i] = a[to[i]]

    a, to, out = np.arange(10.0), np.arange(1000) % 10, np.zeros(1000)
    with orion.session("threads", 2, force_parallel=True):
        gather(a, to, out)
        run, again = gather.last_run, np.zeros(1000)
        with pytest.raises(orion.OutOfBoundsError):
            gather.replay(run, a, np.full(1000, 10), again)
        gather.replay(run, a, to, again)
        np.testing.assert_array_equal(again, out)
        gather(a, to, again)
