"""Settings of a session: defaults, the environment, refusals, and what is imported."""

import os
import subprocess
import sys

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, PlanError
from orion.runtime.backend import cores
from orion.runtime.session import Session, Settings, current_session, planned_workers, settings_from
from tests.runtime_programs import cases, mix


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch):
    for name in ("ORION_BACKEND", "ORION_WORKERS", "ORION_FORCE_PARALLEL"):
        monkeypatch.delenv(name, raising=False)
    orion.shutdown()
    yield
    orion.shutdown()


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
        ({"ORION_WORKERS": "4"}, ("serial",), Settings("serial", None, None, False)),
    ],
)
def test_arguments_come_before_the_environment(monkeypatch, environment, arguments, settings):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    given = (*arguments, None, None, None, None)[:4]
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
        ({"ORION_WORKERS": "two"}, (), "ORION_WORKERS='two'"),
        ({"ORION_WORKERS": "0"}, (), "ORION_WORKERS='0'"),
        ({}, ("serial", 2), "the serial backend has one worker, not 2"),
        ({}, ("threads", 2, "auto"), "address"),
        ({}, ("ray", 2, 6379), "address"),
        ({"ORION_FORCE_PARALLEL": "maybe"}, (), "ORION_FORCE_PARALLEL='maybe'"),
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


def test_shutdown_can_be_called_at_any_time_and_loops_still_run():
    orion.shutdown()
    with orion.session("threads", 2, force_parallel=True):
        mix(**cases()["rotated"][1])
        orion.shutdown()
        mix(**cases()["rotated"][1])
    orion.shutdown()


def test_a_session_with_fewer_workers_than_a_schedule_refuses_it():
    arguments = cases()["rotated"][1]
    prepared = mix._preparation.prepare(arguments, 4, True)
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
