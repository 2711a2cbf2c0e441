"""What holds for all tests."""

import gc
import os
import signal
import sys
from contextlib import nullcontext

import hypothesis
import pytest

import orion
from tests import covering, ended_processes, failures, messages, one_ray, sample, trials, uncompiled

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell's `&` has it: tests of Ctrl-C would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("RAY_worker_niceness", "0")
"""Ray gives its workers the priority 15: next to tests that compute all the time they would get a twentieth of a core,
and tests whose workers wait for each other a thousand times would take minutes."""

SPILLED = {
    "test_array_archive", "test_array_csv", "test_array_csv_random", "test_array_dense", "test_array_layout",
    "test_array_libsvm", "test_array_order", "test_array_parquet", "test_array_sparse", "test_array_steps",
    "test_array_steps_compiled", "test_array_steps_random", "test_array_text_file",
}  # fmt: skip
"""The files of tests that run a second time, with all elements in mapped files."""


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__.rpartition(".")[2] in SPILLED:
        metafunc.fixturenames.append("storage")
        metafunc.parametrize("storage", ["memory", "files"], indirect=True)


@pytest.fixture
def storage(request, monkeypatch, tmp_path_factory):
    """Where elements are: in memory, or each column in a file and hardly any of them sorted in memory, whatever session
    a test begins."""
    if request.param == "memory":
        yield
        return
    monkeypatch.setenv("ORION_SPILL", str(tmp_path_factory.mktemp("spill")))
    monkeypatch.setenv("ORION_SPILL_ABOVE", "0")
    monkeypatch.setattr("orion.arrays.storage.FEWEST", 64)
    orion.shutdown()
    yield
    orion.shutdown()


if not trials.ALL:  # so that kernels of random loops are on disk from the run before
    hypothesis.settings.register_profile("the same each time", derandomize=True)
    hypothesis.settings.load_profile("the same each time")

MADE = messages.note_messages()

gc.set_threshold(50_000, 20, 20)  # there are many objects, of compilers above all, and few that only this would free


@pytest.fixture(autouse=True)
def no_code_of_earlier_texts(monkeypatch):
    """Files that a test writes twice within a second, equally long, are compiled twice: Python would take the first
    `__pycache__` for both."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Plans are as wide as they are at most, whatever libraries and earlier tests say of the terminal in `COLUMNS`."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")  # readline sets it for processes that are started, and `os.environ` does not show it


@pytest.fixture(autouse=True)
def messages_of_the_user(request):
    """Errors and warnings show names and files that the user knows, see `tests/messages.py`."""
    with MADE.looked_at(messages.words_in(request.path)):
        yield


def is_on_ray(test):
    return test.get_closest_marker("ray") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """In many files most kernels are run by the interpreter, see `tests/uncompiled.py`."""
    try:
        with uncompiled.mostly_uncompiled() if uncompiled.are_mostly_uncompiled(item) else nullcontext():
            return (yield)
    finally:
        sample.end_if_over(item.session)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Of tests on Ray, those of some files share one, see `tests/one_ray.py`. That is before any fixture: those of a
    whole file begin clusters of their own."""
    if is_on_ray(item):
        one_ray.prepare_for(item.path.stem)
    else:
        one_ray.leave_nodes()


def pytest_sessionfinish(session):
    one_ray.leave_nodes()
    one_ray.let_go()
    sample.pass_if_over(session)


def pytest_terminal_summary(terminalreporter):
    failures.keep(terminalreporter)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Where tests are run by several processes, and one of them ends in the middle."""
    if error is not None:
        print(f"\n{ended_processes.why_it_ended(node)}", flush=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Where tests are not named one by one, some are left out, see `tests/covering.py`."""
    if not any("::" in argument for argument in config.args):
        items[:] = covering.covering(items, SPILLED - {"test_array_steps_compiled"}, trials.MODE)
    items.sort(key=lambda item: one_ray.place_of(item.path.stem) if is_on_ray(item) else 2)
