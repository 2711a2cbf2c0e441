"""Starts that are given up while they are under way: whoever gave them up goes on at once, and nothing is left."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from orion.runtime.ray.start import Start
from tests.trials import one_in

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 20
LIMIT, BUSY = 1.0, 2.0
"""Seconds from Ctrl-C to the program, and what a busy machine may take more; it was six."""


class Thing:
    """Something whose start waits until it may go on, and which counts how often it was made and ended."""

    def __init__(self, error=None):
        self.may_go_on, self.is_making = threading.Event(), threading.Event()
        self.made, self.ended, self.error = 0, 0, error

    def make(self):
        self.is_making.set()
        assert self.may_go_on.wait(SECONDS)
        if self.error is not None:
            raise self.error
        self.made += 1

    def end(self):
        self.ended += 1


def interrupted(start, thing):
    """Begin with a start, and leave it by Ctrl-C."""

    def interrupt():
        assert thing.is_making.wait(SECONDS)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        start.result()


def test_a_start_that_is_wanted_is_made_once():
    thing = Thing()
    thing.may_go_on.set()
    start = Start(thing.make, thing.end)
    assert start.result()
    assert start.result()
    assert not start.give_up()  # it is there: whoever does not want it any more ends it
    assert (thing.made, thing.ended) == (1, 0)


def test_one_that_is_given_up_is_ended_by_itself():
    thing = Thing()
    start = Start(thing.make, thing.end)
    interrupted(start, thing)
    assert start.give_up()
    thing.may_go_on.set()
    start.wait()
    assert (thing.made, thing.ended) == (1, 1)
    assert start.is_done
    assert not start.result()


def test_one_that_is_wanted_again_stays():
    thing = Thing()
    start = Start(thing.make, thing.end)
    interrupted(start, thing)
    assert start.give_up()
    threading.Timer(0.1, thing.may_go_on.set).start()
    assert start.result()
    assert (thing.made, thing.ended) == (1, 0)


def test_the_next_one_begins_when_that_which_was_given_up_has_ended():
    first, second = Thing(), Thing()
    start, other = Start(first.make, first.end), Start(second.make, second.end)
    interrupted(start, first)
    start.give_up()
    waiting = threading.Thread(target=other.result)
    waiting.start()
    assert not second.is_making.wait(0.2)
    first.may_go_on.set()
    assert second.is_making.wait(SECONDS)
    assert first.ended == 1
    second.may_go_on.set()
    waiting.join(SECONDS)
    assert (second.made, second.ended) == (1, 0)


def test_one_that_fails_after_it_was_given_up_leaves_nothing_to_end_and_holds_up_nobody():
    thing = Thing(ConnectionError("no"))
    start = Start(thing.make, thing.end)
    interrupted(start, thing)
    start.give_up()
    thing.may_go_on.set()
    start.wait()
    assert thing.ended == 0
    assert not start.give_up()
    other = Thing()
    other.may_go_on.set()
    assert Start(other.make, other.end).result()


def test_one_that_never_began_is_not_waited_for():
    thing = Thing()
    start = Start(thing.make, thing.end)
    assert start.give_up()
    start.wait()
    assert not thing.is_making.is_set()


# ------------------------------------------------------------ Ray

PROGRAM = """
import sys, time
import numpy as np, orion

@orion.parallel_for
def add(a, x):
    for i in range(a.shape[0]):
        a[i] += x

def told(kind, error, traceback):
    print("told", time.monotonic(), flush=True)
    before(kind, error, traceback)

before, sys.excepthook = sys.excepthook, told
a = np.zeros(100)
print("begins", flush=True)
try:
    with orion.session("ray", 2, force_parallel=True):
        add(a, 1.0)
except KeyboardInterrupt:
    print("told", time.monotonic(), flush=True)
    if sys.argv[1] == "ends":
        raise
with orion.session("ray", 2, force_parallel=True):
    add(a, 1.0)
print(set(a.tolist()))
"""


def run_interrupted(tmp_path, what, delays):
    """The program, interrupted after so many seconds: seconds until it was told, what it printed, its errors."""
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(script), what], env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "begins\n"
        begun, sent = time.monotonic(), []
        for delay in delays:
            time.sleep(max(0.0, begun + delay - time.monotonic()))
            sent.append(time.monotonic())
            os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=250)
    finally:
        process.kill()
    told = [float(line.split()[1]) for line in out.splitlines() if line.startswith("told")]
    return told[0] - sent[0], out, errors


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.parametrize("delays", one_in(2, [[1.5], [0.3], [2.5, 3.0], [3.0]]), ids=str)
def test_ctrl_c_while_ray_starts_reaches_the_user_at_once_and_in_the_users_line(tmp_path, delays):
    seconds, _, errors = run_interrupted(tmp_path, "ends", delays)
    assert seconds < LIMIT + BUSY
    frames = [line for line in errors.splitlines() if line.lstrip().startswith("File ")]
    assert frames
    assert all("script.py" in frame for frame in frames)
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.all("test_ctrl_c_while_ray_starts_reaches_the_user_at_once_and_in_the_users_line")
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_after_ctrl_c_while_ray_starts_the_next_session_has_a_ray_of_its_own(tmp_path):
    seconds, out, errors = run_interrupted(tmp_path, "goes on", [2.0])
    assert seconds < LIMIT + BUSY
    assert out.splitlines()[-1] in ("{1.0}", "{2.0}"), errors


AFTER_ANOTHER = """
import numpy as np, orion, ray
from tests.ray_nodes import session_on

@orion.parallel_for
def double(a):
    for i in range(a.shape[0]):
        a[i] *= 2.0

quiet = {"include_dashboard": False, "log_to_driver": False, "object_store_memory": 80 * 2**20}
ray.init(num_cpus=1, **quiet)  # from here on Ray numbers the calls of this thread as those of one that connects
ray.shutdown()
with session_on((1,)) as session:  # which joins a cluster
    double(np.ones(1000))
    for actor in session._backend._team.group.actors:
        assert len(ray.get([actor.versions.remote() for _ in range(50)])) == 50
print("goes on")
"""


@pytest.mark.all("test_runtime_ray_clusters.py::test_two_clusters_at_once_are_refused")
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_calls_of_a_thread_that_had_another_ray_have_numbers_of_their_own(tmp_path):
    """Ray would end the process without a word."""
    script = tmp_path / "script.py"
    script.write_text(AFTER_ANOTHER)
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True, capture_output=True,
        timeout=250, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["goes on"]), done.stderr[-2000:]
