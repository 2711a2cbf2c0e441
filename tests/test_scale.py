"""`orion.scale`: another number of workers in the middle of training, with the same bits and nothing lost."""

import threading
import time

import numpy as np
import pytest

import orion
from tests.kill import factors, gauss_seidel, sgd
from tests.ray_nodes import started_cluster
from tests.runtime_programs import cases, mix
from tests.trials import ALL


def train(counts, backend, make, call):
    """The arrays after a call with each number of workers."""
    arguments = make()
    dense = [one for one in arguments if isinstance(one, orion.DenseArray)]
    with orion.session(backend, counts[0], force_parallel=True) as session:
        call(*arguments)
        views = [one.view for one in dense]
        for count in counts[1:]:
            orion.scale(count)
            assert session.workers == count
            call(*arguments)
            assert all(np.shares_memory(view, one.view) for view, one in zip(views, dense, strict=True))
    arrays = [one for one in arguments if isinstance(one, np.ndarray | orion.DenseArray)]
    return [np.asarray(one).tobytes() for one in arrays]


def small():
    data, W, H, step, reg, _ = factors(20_000)
    return data, W, H, step, reg, 3


def square():
    return np.random.default_rng(0).random((300, 300)), 3


def test_two_four_one_is_as_one_all_the_time():
    expected = train([1, 1, 1, 1], "threads", small, sgd)
    assert train([2, 4, 1, 3], "threads", small, sgd) == expected
    again = train([2, 4, 1], "threads", square, gauss_seidel)
    assert again == train([1, 1, 1], "threads", square, gauss_seidel)


@pytest.mark.all(
    "test_two_four_one_is_as_one_all_the_time",
    "test_promise.py::test_ray_equals_one_worker_bit_for_bit",
)
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_on_ray():
    """Views stay what they are; Ray, which Orion has started, has no room for more workers."""
    expected = train([1, 1, 1], "threads", small, sgd)
    assert train([2, 3, 1] if ALL else [1, 2, 1], "ray", small, sgd) == expected


@pytest.mark.all("test_runtime_ray.py::test_what_the_cluster_has_no_room_for_is_refused")
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_cluster_without_room_leaves_the_workers_that_there_were():
    import ray

    cluster = started_cluster(num_cpus=2, object_store_memory=80 * 2**20)
    try:
        with orion.session("ray", 2, address=cluster.address, force_parallel=True) as session:
            mine, expected = cases()["rotated"][1], cases()["rotated"][1]
            mix(**mine)
            with pytest.raises(orion.ArgumentError, match="no room for 3 workers"):
                orion.scale(3)
            assert session.workers == 2
            mix(**mine)
        with orion.session("serial"):
            mix(**expected)
            mix(**expected)
        np.testing.assert_array_equal(mine["W"], expected["W"])
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.parametrize("backend", ["threads", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.timeout(300)])])
def test_a_call_that_was_planned_for_more_workers_is_planned_anew(backend, monkeypatch):
    """As where another thread scales the session between the plan of a call and its run."""
    expected, mine = small(), small()
    with orion.session("threads", 1):
        sgd(*expected)
    prepare, more = sgd._preparations.plain.prepare, [2]

    def prepared_before(arguments, workers, force_parallel):
        return prepare(arguments, more.pop() if more else workers, force_parallel)

    with orion.session(backend, 1, force_parallel=True):
        monkeypatch.setattr(sgd._preparations.plain, "prepare", prepared_before)
        sgd(*mine)
    assert not more
    assert np.asarray(mine[1]).tobytes() == np.asarray(expected[1]).tobytes()


def test_what_is_no_number_of_workers():
    with orion.session("threads", 2) as session:
        for wrong in (0, -1, 2.5, "2", None, True, 10**9):
            with pytest.raises(orion.ArgumentError, match="workers="):
                orion.scale(wrong)
        assert session.workers == 2
    with orion.session("serial"):
        orion.scale(1)
        with pytest.raises(orion.ArgumentError, match="serial backend has one worker"):
            orion.scale(2)


def test_a_loop_that_another_thread_runs_is_waited_for():
    def sizes():
        data, W, H, step, reg, _ = factors(20_000)
        return data, W, H, step, reg, 300

    expected = sizes()
    with orion.session("threads", 2, force_parallel=True):
        sgd(*expected)
        mine = sizes()
        runner = threading.Thread(target=sgd, args=mine)
        runner.start()
        time.sleep(0.02)
        orion.scale(1)
        runner.join()
    assert np.asarray(mine[1]).tobytes() == np.asarray(expected[1]).tobytes()
