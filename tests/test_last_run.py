"""`f.last_run`: what the last call has run, with times where a profile was on."""

import numpy as np
import pytest

import orion
from orion.errors import OutOfBoundsError, PlanError
from tests.runtime_programs import sparse_integers


@orion.parallel_for
def mix(R, W, H):
    for (i, j), r in R:
        W[i] = W[i] * 31 + H[j] + r
        H[j] = H[j] * 17 + W[i]


@orion.parallel_for
def gather(a, index, out):
    for i in range(out.shape[0]):
        out[i] = a[index[i]]


def given():
    generator = np.random.default_rng(3)
    return sparse_integers((60, 40), 3000), generator.integers(0, 9, 60), generator.integers(0, 9, 40)


def test_there_is_none_before_the_first_call():
    @orion.parallel_for
    def new(a):
        for i in range(a.shape[0]):
            a[i] += 1

    assert new.last_run is None
    new.plan(np.zeros(9))
    assert new.last_run is None
    new(np.zeros(9))
    assert new.last_run is not None


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_run_equals_its_serial_order(workers):
    R, W, H = given()
    with orion.session("threads", workers, force_parallel=True):
        mix(R, W, H)
    run = mix.last_run
    assert run.workers == workers
    assert run.plan.strategy == "2d"
    order = run.serial_order()
    assert sorted(order.tolist()) == list(range(3000))
    keys, values = R.coords, R.values
    _, w, h = given()
    with np.errstate(over="ignore"):
        for at in order:
            i, j, r = keys[0][at], keys[1][at], values[at]
            w[i] = w[i] * 31 + h[j] + r
            h[j] = h[j] * 17 + w[i]
    np.testing.assert_array_equal(W, w)
    np.testing.assert_array_equal(H, h)


def test_times_are_those_of_a_profile_and_that_is_said():
    R, W, H = given()
    with orion.session("threads", 2, force_parallel=True):
        mix(R, W, H)
        for name in ("seconds", "times", "bytes_moved"):
            with pytest.raises(PlanError, match=r"with orion\.profile\(\):"):
                getattr(mix.last_run, name)
        assert "orion.profile" in str(mix.last_run)
        with orion.profile():
            mix(R, W, H)
    run = mix.last_run
    assert run.seconds > 0
    assert run.bytes_moved == 0
    assert {(one.worker, one.tiles) for one in run.times} == {(0, 32), (1, 32)}
    assert all(one.compute + one.wait <= run.seconds for one in run.times)
    assert "worker 1" in str(run)
    with orion.session("threads", 2, force_parallel=True):
        mix(R, W, H)
    with pytest.raises(PlanError):
        mix.last_run.times  # noqa: B018


def test_it_is_that_of_the_last_call_that_came_to_its_end():
    with orion.session("threads", 2, force_parallel=True):
        gather(np.arange(9), np.zeros(20, np.int64), np.zeros(20, np.int64))
        run = gather.last_run
        with pytest.raises(OutOfBoundsError):
            gather(np.arange(9), np.full(30, 9), np.zeros(30, np.int64))
    assert gather.last_run.plan is run.plan
