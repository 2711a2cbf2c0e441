"""Settings of a session: defaults, the environment, refusals, and what is imported."""

import asyncio
import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

import orion
from orion.cores import cores
from orion.errors import ArgumentError, PlanError
from orion.runtime.session import Session, Settings, current_session, planned_workers, settings_from
from tests.runtime_programs import assert_same, cases, mix, outcome


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch):
    for name in ("ORION_BACKEND", "ORION_WORKERS", "ORION_FORCE_PARALLEL", "ORION_STANDSTILL"):
        monkeypatch.delenv(name, raising=False)
    orion.shutdown()
    yield
    orion.shutdown()


def test_a_call_in_a_closed_session_leaves_no_threads():
    def doubled(a):
        for i in range(len(a)):
            a[i] *= 2.0

    looped, a = orion.parallel_for(doubled), np.ones(8)
    with orion.session("threads", 2, force_parallel=True) as here:
        for _ in range(5):
            looped(a)
        here.close()  # in another thread's `with`, say
        before = {*threading.enumerate()}
        for _ in range(5):
            looped(a)
        left = {*threading.enumerate()} - before
        for one in left:
            one.join(10.0)
        assert not any(one.is_alive() for one in left)
    assert (a == 1024.0).all()


@pytest.mark.parametrize(
    ("environment", "arguments", "settings"),
    [
        ({}, (), Settings("threads", None, None, False)),
        ({}, ("serial",), Settings("serial", None, None, False)),
        ({}, ("ray", 3, "auto", True), Settings("ray", 3, "auto", True)),
        ({"ORION_BACKEND": "serial"}, (), Settings("serial", None, None, False)),
        ({"ORION_BACKEND": "ray", "ORION_WORKERS": "7"}, (), Settings("ray", 7, None, False)),
        ({"ORION_BACKEND": "ray", "ORION_WORKERS": "7"}, ("threads", 2), Settings("threads", 2, None, False)),
        ({"ORION_FORCE_PARALLEL": "1"}, (), Settings("threads", None, None, True)),
        ({"ORION_FORCE_PARALLEL": "1"}, (None, None, None, False), Settings("threads", None, None, False)),
        ({"ORION_FORCE_PARALLEL": "0", "ORION_WORKERS": ""}, (), Settings("threads", None, None, False)),
        ({"ORION_BACKEND": "", "ORION_FORCE_PARALLEL": " "}, (), Settings("threads", None, None, False)),
        ({"ORION_BACKEND": " serial\r"}, (), Settings("serial", None, None, False)),
        ({"ORION_WORKERS": " 3 ", "ORION_FORCE_PARALLEL": "On "}, (), Settings("threads", 3, None, True)),
        ({"ORION_WORKERS": "4"}, ("serial",), Settings("serial", None, None, False)),
        ({}, ("threads", np.int64(4)), Settings("threads", 4, None, False)),
        ({}, ("ray", 2, None, None, 2.5), Settings("ray", 2, None, False, 2.5)),
        ({"ORION_STANDSTILL": " 60 "}, ("ray", 2), Settings("ray", 2, None, False, 60.0)),
        ({"ORION_STANDSTILL": "60"}, ("ray", 2, None, None, math.inf), Settings("ray", 2, None, False, math.inf)),
    ],
)
def test_arguments_come_before_the_environment(monkeypatch, environment, arguments, settings):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    given = (*arguments, None, None, None, None, None)[:5]
    assert settings_from(*given) == settings


@pytest.mark.parametrize(
    ("environment", "arguments", "message"),
    [
        ({}, ("thread",), r"backend='thread' is not a backend(?s:.*)'threads', 'ray', 'serial'"),
        ({"ORION_BACKEND": "dask"}, (), "ORION_BACKEND='dask' is not a backend"),
        ({}, ("threads", 0), "workers=0"),
        ({}, ("threads", -2), "workers=-2"),
        ({}, ("threads", True), "workers=True"),
        ({}, ("threads", 2.0), "workers=2.0"),
        ({}, ("threads", 2.5), "workers=2.5"),
        ({}, ("threads", "4"), "workers='4' is not a number"),
        ({}, ("ray", 0), "workers=0"),
        ({}, ("ray", True), "workers=True"),
        ({}, ("threads", np.int64(-3)), r"workers=np.int64\(-3\) is not a number"),
        ({}, ("threads", np.array([2])), "is not a number"),
        ({}, ("threads", 10**9), r"workers=1000000000 is too many workers(?s:.*)[\d,]{4,} are the limit"),
        ({}, ("ray", 10**9), "workers=1000000000 is too many workers(?s:.*)65,536 are the limit"),
        ({}, ("threads", 10**5000), "workers=a number of more than 18 digits is too many"),
        ({}, ("threads", -(10**5000)), "workers=a number of more than 18 digits is not"),
        ({}, ("ray", 2, None, None, 0), r"standstill=0 is no number of seconds(?s:.*)above 0, `math.inf` for"),
        ({}, ("ray", 2, None, None, True), "standstill=True is no number of seconds"),
        ({}, ("ray", 2, None, None, "5"), "standstill='5' is no number of seconds"),
        ({}, ("ray", 2, None, None, math.nan), "standstill=nan is no number of seconds"),
        ({"ORION_STANDSTILL": "soon"}, (), "ORION_STANDSTILL='soon' is no number of seconds"),
        ({"ORION_WORKERS": "two"}, (), "ORION_WORKERS='two'(?s:.*)whole number from 1 on, or unset it"),
        ({"ORION_WORKERS": "0"}, (), "ORION_WORKERS='0'"),
        ({"ORION_WORKERS": "2.5"}, (), "ORION_WORKERS='2.5'"),
        ({"ORION_WORKERS": "-1"}, (), "ORION_WORKERS='-1'"),
        ({"ORION_WORKERS": "1" * 5000}, (), r"ORION_WORKERS='1+\.\.\.1+' is too many"),
        ({}, ("serial", 2), "the serial backend has one worker, not 2"),
        ({}, ("threads", 2, "auto"), "address"),
        ({}, ("ray", 2, 6379), "address"),
        ({"ORION_FORCE_PARALLEL": "maybe"}, (), "ORION_FORCE_PARALLEL='maybe'(?s:.*)1 or 0, or unset it"),
        ({"ORION_WORKERS": "9999999"}, (), "ORION_WORKERS='9999999' is too many(?s:.*)unset ORION_WORKERS"),
        ({}, ("threads", 2, None, 1), "force_parallel=1"),
    ],
)
def test_wrong_settings_are_refused_and_change_nothing(monkeypatch, environment, arguments, message):
    orion.init("threads", 3)
    before = current_session()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentError, match=message):
        orion.init(*arguments)
    assert current_session() is before


class Failing(Session):
    """A session that cannot be had."""

    error: BaseException = ArgumentError("no Ray cluster there")

    def __init__(self, settings):
        raise self.error


@pytest.mark.parametrize("error", [ArgumentError("no Ray cluster there"), KeyboardInterrupt(), RuntimeError("odd")])
@pytest.mark.parametrize("inside", [False, True])
def test_a_session_that_cannot_be_had_leaves_the_one_before_in_force(monkeypatch, error, inside):
    closed = []
    with orion.session("serial") if inside else nullcontext():
        orion.init("threads", 3)
        before = current_session()
        with monkeypatch.context() as patch:
            patch.setattr(Session, "close", closed.append)
            patch.setattr(Failing, "error", error)
            patch.setattr("orion.runtime.session.Session", Failing)
            with pytest.raises(type(error)):
                orion.init("threads", 2)
            with pytest.raises(type(error)), orion.session("threads", 2):
                pass
        assert current_session() is before
        assert closed == []
        mix(**cases()["rotated"][1])
        orion.init("threads", 2)
        assert planned_workers() == (2, False)


REFUSED_AT_ONCE = pytest.mark.all("test_runtime_ray_clusters.py::test_an_address_where_nothing_is_refused_in_seconds")


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.parametrize("before", [("threads", 2), pytest.param(("ray", 1), marks=REFUSED_AT_ONCE)])
def test_an_address_where_no_cluster_is_leaves_the_session_before_in_force(before):
    orion.init(*before, force_parallel=True)
    session = current_session()
    expected = outcome("rotated")
    with pytest.raises(ArgumentError, match=r"no Ray cluster at address='127\.0\.0\.1:1'"):
        orion.init("ray", address="127.0.0.1:1")
    assert current_session() is session
    assert planned_workers() == (before[1], True)
    assert_same(outcome("rotated"), expected)


def test_the_default_is_a_thread_per_core():
    assert planned_workers() == (cores(), False)


def test_a_session_in_a_with_statement_gives_the_one_before_back():
    orion.init("threads", 3)
    outer = current_session()
    with orion.session("serial", force_parallel=True) as inner:
        assert current_session() is inner
        assert planned_workers() == (1, True)
    assert current_session() is outer
    with pytest.raises(ZeroDivisionError), orion.session("serial"):
        raise ZeroDivisionError
    assert current_session() is outer


def test_a_session_begun_inside_of_another_ends_with_it(monkeypatch):
    closed = []

    def close(session):
        closed.append(session)

    monkeypatch.setattr(Session, "close", close)
    orion.init("threads", 3)
    outer = current_session()
    with orion.session("serial") as inside:
        orion.init("threads", 2)
        begun = current_session()
        assert closed == [inside]
    assert current_session() is outer
    assert closed == [inside, begun, inside]
    with orion.session("serial") as inside:
        orion.shutdown()
        begun = current_session()
        assert begun is not outer
    assert closed[3:] == [inside, begun, inside]


def test_each_thread_has_the_session_of_its_own_with_statement():
    """Two threads that enter and leave by turns; a third one without a session has that of the main thread."""
    steps, seen = [threading.Event() for _ in range(4)], []

    def first():
        with orion.session("threads", 3) as session:
            steps[0].set()
            steps[1].wait(20)  # the second is in its own
            seen.append(current_session() is session)
        steps[2].set()
        seen.append(planned_workers()[0])

    def second():
        steps[0].wait(20)
        with orion.session("threads", 5) as session:
            steps[1].set()
            steps[2].wait(20)  # the first has left its own
            seen.append(current_session() is session)
            outcome("rotated")

    with orion.session("threads", 2) as main:
        callers = [threading.Thread(target=body) for body in (first, second)]
        for caller in callers:
            caller.start()
        assert current_session() is main
        for caller in callers:
            caller.join(60)
        assert current_session() is main
    assert seen.count(True) == 2
    assert seen.count(2) == 1


def test_each_task_has_the_session_of_its_own_with_statement():
    async def task(workers, other):
        with orion.session("threads", workers) as session:
            other.set()
            await asyncio.sleep(0.01)
            assert current_session() is session
        return planned_workers()[0]

    async def both():
        event = asyncio.Event()
        tasks = [asyncio.create_task(task(workers, event)) for workers in (3, 5)]
        await event.wait()
        return planned_workers()[0], await asyncio.gather(*tasks)

    orion.init("threads", 2)
    assert asyncio.run(both()) == (2, [2, 2])


def test_threads_of_a_pool_work_in_the_session_of_the_main_thread():
    with ThreadPoolExecutor(1) as pool:
        with orion.session("threads", 3), orion.session("threads", 4):
            assert pool.submit(planned_workers).result() == (4, False)
        orion.init("threads", 2)
        assert pool.submit(planned_workers).result() == (2, False)


def test_sessions_may_be_left_in_any_order():
    orion.init("threads", 2)
    one, other = orion.session("threads", 3), orion.session("threads", 4)
    one.__enter__()
    inner = other.__enter__()
    one.__exit__(None, None, None)
    assert current_session() is inner
    other.__exit__(None, None, None)
    assert planned_workers() == (2, False)


def test_shutdown_can_be_called_at_any_time_and_loops_still_run():
    orion.shutdown()
    with orion.session("threads", 2, force_parallel=True):
        mix(**cases()["rotated"][1])
        orion.shutdown()
        mix(**cases()["rotated"][1])
    orion.shutdown()


def test_a_session_with_fewer_workers_than_a_schedule_refuses_it():
    arguments = cases()["rotated"][1]
    prepared = mix._preparations.plain.prepare(arguments, 4, True)
    with orion.session("threads", 2) as session, pytest.raises(PlanError, match="4 workers, the session has 2"):
        prepared.run(arguments, session)
    with orion.session("serial") as session:
        prepared.run(arguments, session)
    assert not np.array_equal(arguments["W"], cases()["rotated"][1]["W"])


def test_threads_import_no_ray_and_import_orion_neither_ray_nor_numba():
    program = (
        "import sys, orion\n"
        "assert not {'ray', 'numba', 'islpy'} & set(sys.modules)\n"
        "orion.init('threads', 2)\n"
        "from orion.runtime.session import planned_workers\n"
        "planned_workers()\n"
        "assert not {'ray', 'numba'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    with orion.session("threads", 2, force_parallel=True):
        mix(**cases()["rotated"][1])
        child = os.fork()
        if child == 0:
            status = 1
            try:
                mix(**cases()["rotated"][1])
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
