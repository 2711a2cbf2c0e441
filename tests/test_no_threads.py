"""Processes in which no thread can be started, or too few: results are the same, or it is said."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.aside import Aside, aside
from orion.runtime.threads.watch import Watch
from tests.kernel_loops import kernel_cache

__all__ = ["kernel_cache"]

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def threads(monkeypatch):
    """Says how many more threads there may be."""
    start = threading._start_new_thread
    left = []

    def limited(*arguments):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        return start(*arguments)

    def allow(number):
        left[:] = [None] * number

    monkeypatch.setattr(threading, "_start_new_thread", limited)
    return allow


def doubled(a, rounds):
    total = 0.0
    for _ in range(rounds):
        for i in range(a.shape[0]):
            a[i] = 2.0 * a[i]
        for i in range(a.shape[0]):
            total += a[i]
    return total


def counted(data, rows, n):
    for (i, _j), r in data:
        rows[i] += r * n


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_loop_runs_with_the_threads_that_there_are(kernel_cache, threads, workers, number):
    """Or says that they are too few, and has changed nothing."""
    loop, a = orion.parallel_for(doubled), np.ones(500)
    with orion.session("threads", workers, force_parallel=True):
        threads(number)
        if number < workers - 1:
            with pytest.raises(orion.ArgumentError, match=r"(?s)cannot start 2 threads.*ulimit -u"):
                loop(a, 2)
            assert set(a) == {1.0}
        else:
            refusals = loop_or_refusal(loop, a)
            assert refusals or set(a) == {4.0}
        threads(5)
        b = np.ones(500)
        assert loop(b, 2) == 3000.0
        assert set(b) == {4.0}


def loop_or_refusal(loop, a):
    """Which of the threads that there are a loop gets, when others are started first, is not said here."""
    try:
        assert loop(a, 2) == 3000.0
    except orion.ArgumentError:
        return True
    return False


@pytest.mark.parametrize("number", range(4))
def test_sparse_arrays_are_laid_out_and_read(kernel_cache, threads, tmp_path, number):
    random = np.random.default_rng(0)
    keys = random.integers(0, 50, (2, 400_000))
    with orion.session("serial"):
        expected, rows = np.zeros(50), np.zeros(50)
        np.add.at(expected, keys[0], 3.0)
        threads(number)
        data = orion.sparse(tuple(keys), np.ones(keys.shape[1]), shape=(50, 50))
        orion.parallel_for(counted)(data, rows, 3.0)
        np.testing.assert_array_equal(rows, expected)
        path = tmp_path / "ratings.csv"
        path.write_text("0,1,2.0\n3,4,5.0\n")
        assert orion.read_csv(path, keys=[0, 1], values=2, header=False).nnz == 2


def test_a_watch_that_cannot_start_tries_again_with_the_next_run(threads):
    watch, rows = Watch(), np.zeros((1, 8), np.int64)
    for number in (0, 1):
        threads(number)
        watch.begin(rows)
        watch.end()
        assert (watch._thread is not None) == (number == 1)
    watch.close()


def test_work_that_can_have_no_thread_is_done_in_this_one(threads):
    assert aside(threading.current_thread) is threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 // 0)
    work = Aside(object)
    assert work.result() is work.result()


AT_THE_END = """
import atexit
import numpy as np, orion

@orion.parallel_for
def added(data, rows):
    for (i, j), r in data:
        rows[i] += r

def at_the_end():
    rows = np.zeros(3)
    added(orion.sparse((np.array([0, 2]), np.array([1, 1])), np.array([2.0, 3.0])), rows)
    print(rows.tolist())

atexit.register(at_the_end)
"""


def test_loops_run_at_the_end_of_the_process(tmp_path):
    """Where Python starts no threads of its own pools any more, and from 3.12 on none at all."""
    script = tmp_path / "script.py"
    script.write_text(AT_THE_END)
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | {"PYTHONPATH": str(ROOT), "ORION_WORKERS": "1"},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.stdout == "[2.0, 0.0, 3.0]\n", done.stderr
