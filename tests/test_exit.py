"""The end of a process whose main thread left planning or compiling: soon, and with what its files should hold."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orion.aside import MANY_OBJECTS

LIMIT, BUSY = 2.0, 8.0
"""Seconds, and what a busy machine may take more."""

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import atexit, gc, sys, time
from orion.aside import aside

atexit.register(lambda: print(gc.get_freeze_count(), flush=True))

class Ring:
    '''What is collected as garbage, or not at all.'''
    def __init__(self, file):
        self.file, self.itself = file, self

one, ring = open(sys.argv[1], "w"), Ring(open(sys.argv[2], "w"))
one.write("a line")
ring.file.write("a line")

def work():
    made = [[number] for number in range({objects})]
    print("begins", flush=True)
    time.sleep(60)
    return made

aside(work)
"""


@pytest.mark.parametrize("objects", [1000, 2_000_000])
def test_a_process_ends_soon_after_ctrl_c_has_left_its_work(tmp_path, objects):
    script, plain, in_ring = (tmp_path / name for name in ("script.py", "plain.txt", "ring.txt"))
    script.write_text(PROGRAM.format(objects=objects))
    process = subprocess.Popen(
        [sys.executable, str(script), str(plain), str(in_ring)], env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == "begins\n"
    time.sleep(0.1)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    frozen, errors = process.communicate(timeout=50)
    assert time.monotonic() - sent < LIMIT + BUSY
    assert (int(frozen) > objects) == (objects > MANY_OBJECTS)  # garbage is not looked for in so many
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert plain.read_text() == "a line"
    assert in_ring.read_text() == "a line"


AT_EXIT = """
import atexit
import numpy as np, orion

@orion.parallel_for
def hop(x, idx):
    for i in range(len(idx)):
        x[idx[i]] = 0.5 * x[i] + 1.0

def work():
    rng = np.random.default_rng(0)
    idx, x = rng.integers(0, 400, 400), rng.random(400)
    mine, theirs = x.copy(), x.copy()
    with orion.session(workers=2, force_parallel=True):
        for _ in range(2):
            hop(mine, idx)
    for _ in range(2):
        hop.serial(theirs, idx)
    print((mine == theirs).all(), flush=True)

atexit.register(work)
"""


@pytest.mark.parametrize("more", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_loops_are_inspected_while_a_process_ends(tmp_path, more):
    """When no more threads may be started. And where text files are taken to be ASCII."""
    script = tmp_path / "script.py"
    script.write_text(AT_EXIT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | more
    found = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert found.stdout == "True\n", found.stderr


AT_THE_END = """
import numpy as np
import orion

@orion.parallel_for
def doubled(a):
    for i in range(len(a)):
        a[i] *= 2.0

class Late:
    def __del__(self, call=doubled, ones=np.ones):
        try:
            a = ones(3000)
            call(a)
            print("done", a.sum())
        except Exception as error:
            print("told", type(error).__name__)

orion.init(workers={workers}, force_parallel=True)
for _ in range(5):
    doubled(np.ones(3000))
kept = Late()
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_at_the_end_of_the_interpreter_is_done_or_told(tmp_path, workers):
    script = tmp_path / "script.py"
    script.write_text(AT_THE_END.format(workers=workers))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    found = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=True)
    assert found.stdout.split()[0] in ("done", "told"), found
