"""First calls of a process, which import and compile: beside a fork, in a signal handler, on a small stack."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks.first_calls.programs import WHOLE
from benchmarks.programs import all as every
from orion.aside import Aside, aside
from orion.forks import FORK_WAITS, Forks
from orion.own_threads import OwnPool, OwnThread, own_stacks

ROOT = Path(__file__).resolve().parents[1]

HEAD = """
import os, signal, sys, threading, time
import numpy as np, orion

@orion.parallel_for
def grow(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i] + 1.0

def call():
    a = np.zeros(10)
    grow(a)
    return bool(a.sum() == 10.0)

class Imports:
    def __init__(self, see):
        self.see = see

    def find_spec(self, name, path, target=None):
        self.see(name)

main = threading.main_thread()
"""

FORK = """
begun = threading.Event()

def see(name):
    if name == sys.argv[1]:
        begun.set()
        time.sleep(0.2)

sys.meta_path.insert(0, Imports(see))
other = threading.Thread(target=call)
other.start()
assert begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if call() else 1)
print("child", os.waitpid(child, 0)[1])
other.join()
"""

HANDLER = """
found, seen = [], []

def handler(*_):
    try:
        found.append(call())
    except orion.PlanError as error:
        found.append("while a loop runs" in str(error))

signal.signal(signal.SIGUSR1, handler)

def see(name):
    package = name.partition(".")[0]
    if package in ("orion", "islpy", "numba") and name != "orion.api":
        seen.append(threading.current_thread() is main)
        if name in ("islpy", "orion.kernel.build.compile"):
            signal.pthread_kill(main.ident, signal.SIGUSR1)
            time.sleep(0.05)

orion.parallel_for
sys.meta_path.insert(0, Imports(see))
print(call(), found, any(seen))
"""

STACK = """
threading.stack_size(64 * 1024)
orion.init("threads", 2, force_parallel=True)
found = []
call() if sys.argv[1] == "main" else None
thread = threading.Thread(target=lambda: found.append(call()))
thread.start()
thread.join()
print(found, threading.stack_size())
"""


def output(tmp_path, program, *arguments):
    script = tmp_path / "script.py"
    script.write_text(HEAD + program)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "ORION_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), *arguments],
        env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    return done.stdout or f"{done.returncode}: {done.stderr}"


@pytest.mark.parametrize("module", ["islpy", "orion.kernel.build.compile"])
def test_a_fork_in_the_middle_of_a_first_call_has_a_child_that_calls(tmp_path, module):
    assert output(tmp_path, FORK, module) == "child 0\n"


def test_a_signal_handler_calls_in_the_middle_of_a_first_call(tmp_path):
    """No import is left half-way by what interrupts it: none is done by the main thread."""
    assert output(tmp_path, HANDLER) == "True [True, True] False\n"


@pytest.mark.parametrize("first", ["main", "other"])
def test_first_calls_with_small_stacks(tmp_path, first):
    assert output(tmp_path, STACK, first) == f"[True] {64 * 1024}\n"


# ------------------------------------------------------------ forks and work


def at_work(forks, until):
    """A thread at work until the event is set."""
    begun = threading.Event()

    def work():
        forks.begin()
        begun.set()
        until.wait(60)
        forks.end()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(60)
    return thread


def test_a_fork_waits_for_the_work_of_other_threads():
    forks, until = Forks(), threading.Event()
    thread = at_work(forks, until)
    forks.begin()
    forks.begin()
    forks.end()
    threading.Timer(0.1, until.set).start()
    forks.before()
    assert until.is_set()
    assert forks._at_work == {threading.get_ident(): 1}
    forks.after_in_parent()
    thread.join()


def test_work_waits_for_a_fork_and_neither_waits_for_ever(monkeypatch):
    monkeypatch.setattr("orion.forks.FORK_WAITS", 0.05)
    monkeypatch.setattr("orion.forks.WORK_WAITS", 0.05)
    forks, until = Forks(), threading.Event()
    thread = at_work(forks, until)
    forks.before()
    second = at_work(forks, until)
    assert len(forks._at_work) == 2
    forks.after_in_child()
    assert not forks._at_work
    until.set()
    thread.join()
    second.join()
    begin = time.monotonic()
    forks.begin()
    assert time.monotonic() - begin < 0.04


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_no_fork_waits_for_work_that_starts_processes():
    """As that of Ray does, by a thread of its own."""

    def fork():
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    def start():
        thread = OwnThread(fork, "starts")
        thread.start()
        thread.join()

    aside(int)
    begin = time.monotonic()
    Aside(start).result()
    assert time.monotonic() - begin < FORK_WAITS / 2


def test_threads_of_orion_have_stacks_of_their_own():
    before = threading.stack_size(128 * 1024)
    try:
        with own_stacks(), OwnPool(1) as pool:
            assert threading.stack_size() == 16 << 20
            assert pool.submit(pow, 2, 5).result() == 32
        assert threading.stack_size() == 128 * 1024
    finally:
        threading.stack_size(before)


def test_first_calls_of_whole_programs_are_those_of_all():
    assert tuple(program.name for program in every.PROGRAMS) == WHOLE
