"""BLAS threads: limited while several workers run a loop that calls BLAS, and given back afterwards."""

import os
import threading

import numpy as np
import pytest
import scipy.linalg.cython_blas  # noqa: F401 - the library is one of those that are counted
from threadpoolctl import ThreadpoolController, threadpool_limits

import orion
from orion.runtime import blas
from orion.runtime.blas import BlasLimit, LimitedWalk
from tests.kernel_loops import make_loop

MANY = 4
"""The threads that BLAS has before a call, more than `CORES` give a worker."""

CORES = 2
A = np.eye(3) + np.arange(36.0).reshape(4, 3, 3)


@orion.parallel_for
def products(a, b):
    for i in range(a.shape[0]):
        b[i] = a[i] @ a[i]


@orion.parallel_for
def inverses(a, b):
    for i in range(a.shape[0]):
        b[i] = np.linalg.inv(a[i])


@orion.parallel_for
def powers(a, b, n):
    for _ in range(n):
        for i in range(a.shape[0]):
            b[i] = a[i] @ b[i]


@orion.parallel_for
def sums(a, b):
    for i in range(a.shape[0]):
        b[i, 0, 0] = a[i, 0, 0] + 1.0


# ---------------------------------------------------------------- which kernels call it


def times_itself(x):
    if x[0, 0] > 1.0:
        return x.dot(x)
    return x + x


def product_of_helper(a, b):
    for i in range(a.shape[0]):
        b[i] = times_itself(a[i])


def products_of_rows(a, b):
    for i in range(a.shape[0]):
        b[i, 0, 0] = a[i, 0] @ a[i, 1] + np.dot(a[i, 1], a[i, 2])


def products_of_names(a, b):
    for i in range(a.shape[0]):
        b[i, 0] = a[i, 0]  # not a @ b, and no np.dot(a, b)


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (products.__wrapped__, True),
        (inverses.__wrapped__, True),
        (product_of_helper, True),
        (products_of_rows, False),
        (products_of_names, False),
        (sums.__wrapped__, False),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_kernel_knows_whether_it_calls_blas(loop, expected):
    assert make_loop(loop, A, A.copy()).source.calls_blas is expected


# ---------------------------------------------------------------- runs


@pytest.fixture
def held(monkeypatch):
    """BLAS with many threads; how many it had each time that a worker began with a loop."""
    found = []
    hold = BlasLimit.hold

    def noted(self, threads):
        hold(self, threads)
        found.append(threads_now())

    monkeypatch.setattr(BlasLimit, "hold", noted)
    monkeypatch.setattr(blas, "cores", lambda: CORES)
    with threadpool_limits(MANY, user_api="blas"):
        assert threads_now() == {MANY}
        yield found


def threads_now():
    return {one.get_num_threads() for one in ThreadpoolController().select(user_api="blas").lib_controllers}


def test_workers_that_call_blas_have_their_share_of_the_cores(held):
    with orion.session("threads", 2, force_parallel=True):
        for _ in range(2):
            b = np.zeros_like(A)
            products(A, b)
            np.testing.assert_allclose(b, A @ A)
            assert threads_now() == {MANY}
    assert held == [{CORES // 2}] * 4


def test_a_worker_alone_and_loops_without_blas_have_no_limit(held):
    with orion.session("threads", 1):
        products(A, np.zeros_like(A))
    with orion.session("threads", 2, force_parallel=True):
        sums(A, np.zeros_like(A))
    assert held == []


def test_a_compiled_serial_loop_is_limited_as_a_whole(held):
    b = A.copy()
    with orion.session("threads", 2, force_parallel=True):
        powers(A, b, 3)
    np.testing.assert_allclose(b, A @ A @ A @ A)
    assert held == [{CORES // 2}] * 2
    assert threads_now() == {MANY}


def test_blas_has_its_threads_back_after_an_error(held):
    with orion.session("threads", 2, force_parallel=True), pytest.raises(np.linalg.LinAlgError):
        inverses(np.zeros_like(A), np.zeros_like(A))
    assert held
    assert threads_now() == {MANY}


def test_another_number_of_workers_has_another_share(held):
    with orion.session("threads", 4, force_parallel=True) as session:
        products(A, np.zeros_like(A))
        session.scale(2)
        blas.cores, of_many = (lambda: 2 * CORES), len(held)
        products(A, np.zeros_like(A))
    assert held[:of_many] == [{1}] * 4
    assert held[of_many:] == [{CORES}] * 2


def test_an_actor_has_the_share_of_a_worker_of_its_node(held):
    from orion.runtime.ray.actor import WorkerActor
    from orion.runtime.session import current_session

    with orion.session("threads", 4, force_parallel=True):
        products(A, np.zeros_like(A))
        prepared = next(iter(current_session()._backend._loaded))
    actor, walks = WorkerActor(), [lambda *_: None]
    for nodes, expected in ((("a",) * 4, 1), (("a", "a", "b", "b"), CORES // 2)):
        actor._nodes = nodes
        assert [one.threads for one in actor._walks(prepared, None, walks)] == [expected]
    actor._nodes = ("a", "b", "c", "d")
    assert actor._walks(prepared, None, walks) == walks


# ---------------------------------------------------------------- the limit


class Library:
    """A BLAS library. Each thread has a number of its own where it counts by OpenMP."""

    internal_api = "openblas"

    def __init__(self, threads, threading_layer="pthreads"):
        self.threading_layer = threading_layer
        self._first = self._of_all = threads
        self._own = threading.local()

    def get_num_threads(self):
        return getattr(self._own, "threads", self._first) if self.threading_layer == "openmp" else self._of_all

    def set_num_threads(self, num_threads):
        self._own.threads = self._of_all = num_threads


def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_the_last_holder_gives_the_threads_back():
    libraries = [Library(8), Library(1)]
    limit = BlasLimit(libraries)

    def threads():
        return [one.get_num_threads() for one in libraries]

    def beside():
        limit.hold(2)
        assert threads() == [2, 1]
        limit.hold(6)
        limit.release()
        return threads()

    limit.hold(4)
    assert threads() == [4, 1]
    assert in_thread(beside) == [2, 1]
    limit.release()
    assert threads() == [8, 1]
    limit.release()
    assert threads() == [8, 1]
    limit.hold(3)
    assert threads() == [3, 1]
    limit.release()
    assert threads() == [8, 1]


def test_each_thread_has_its_own_number_back_where_openmp_counts():
    library = Library(8, "openmp")
    limit = BlasLimit([library])

    def held_and_released():
        limit.hold(2)
        within = library.get_num_threads()
        limit.release()
        return within, library.get_num_threads()

    limit.hold(2)
    assert in_thread(held_and_released) == (2, 8)
    assert library.get_num_threads() == 2
    limit.release()
    assert library.get_num_threads() == 8


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_walk_that_raises_lets_go_of_the_limit(error):
    library = Library(8)

    def walk(*arguments):
        assert library.get_num_threads() == 2
        raise error(*arguments)

    with pytest.raises(error, match="what was given"):
        LimitedWalk(walk, 2, BlasLimit([library]))("what was given")
    assert library.get_num_threads() == 8


def test_a_process_that_is_forked_off_during_a_run_has_all_threads():
    limit = blas._limit()
    before = threads_now()
    with threadpool_limits(MANY, user_api="blas"):
        try:
            limit.hold(1)
            child = os.fork()
            if child == 0:
                os._exit(0 if threads_now() == {MANY} else 1)
        finally:
            limit.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert threads_now() == before
