"""A process of tests that ends in the middle of one leaves the reason in the output (`tests.ended_processes`), and what
a program holds after a session on Ray is compared by what it is (`tests.ended_programs`)."""

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.ended_processes import MOST_LINES, why_it_ended
from tests.ended_programs import held, kept

ROOT = Path(__file__).resolve().parents[1]


def ended(statement, folder):
    """What is told of a process that has run a statement, and its number."""
    process = subprocess.Popen([sys.executable, "-c", f"import os, signal; {statement}"])
    process.wait()
    node = SimpleNamespace(gateway=SimpleNamespace(id="gw3", _io=SimpleNamespace(popen=process)))
    return why_it_ended(node, folder(process.pid)), process.pid


@pytest.mark.parametrize(
    ("statement", "how"),
    [
        ("os._exit(3)", "has ended with exit code 3"),
        ("os._exit(0)", "has ended with exit code 0"),
        ("signal.raise_signal(signal.SIGKILL)", "was ended by SIGKILL"),
    ],
)
def test_the_signal_or_the_exit_code_is_told(statement, how, tmp_path):
    told, process = ended(statement, lambda _: tmp_path)
    assert told == f"gw3: process {process} {how}"


def test_what_ray_has_logged_last_is_told(tmp_path):
    def folder(process):
        logs = tmp_path / "session_1" / "logs"
        logs.mkdir(parents=True)
        own = logs / f"python-core-driver-0100_{process}.log"
        own.write_text("".join(f"line {number}\n" for number in range(100)))
        (logs / "python-core-driver-0100_1.log").write_text("of another process\n")
        (logs / "raylet.out").write_text("[2026-01-01 10:00:00 I 7 7] fine\n[2026-01-01 10:00:00 E 7 7] dead\n  more\n")
        (logs / "gcs_server.out").write_text("[2026-01-01 10:00:00 I 7 7] fine\n")
        return tmp_path

    told, process = ended("os._exit(1)", folder)
    first, log, *lines = told.splitlines()
    assert first == f"gw3: process {process} has ended with exit code 1"
    assert log == f"{tmp_path}/session_1/logs/python-core-driver-0100_{process}.log:"
    assert lines[:MOST_LINES] == [f"    line {number}" for number in range(100 - MOST_LINES, 100)]
    assert lines[MOST_LINES:] == [f"{tmp_path}/session_1/logs/raylet.out:", "    [2026-01-01 10:00:00 E 7 7] dead"]


def test_a_process_of_xdist_that_ends_in_a_test_is_told_of(tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text("import os, signal\ndef test_it():\n    os.kill(os.getpid(), signal.SIGKILL)\n")
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "--numprocesses", "1", "--max-worker-restart", "0"]
    command = [sys.executable, "-m", "pytest", *options, str(test)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"was ended by {signal.SIGKILL.name}" in run.stdout


# ------------------------------------------------------------ what a program holds


def test_nothing_is_kept_where_nothing_was_added():
    before = held()
    assert kept(before, held()) == ""


def test_a_socket_a_file_and_a_thread_are_told_by_what_they_are(tmp_path):
    before, over = held(), threading.Event()
    thread = threading.Thread(target=over.wait, name="left over")
    thread.start()
    with socket.socket(), (tmp_path / "left").open("w"):
        found = kept(before, held())
    over.set()
    thread.join()
    assert "sockets of Python after one session" in found
    assert f"{tmp_path}/left" in found
    assert "'left over'" in found


def test_of_sockets_that_python_does_not_know_a_few_may_be_kept():
    """They are Ray's."""
    before = held()
    few = [one.detach() for _ in range(2) for one in socket.socketpair()]
    found = [kept(before, held())]
    more = [one.detach() for one in socket.socketpair()]
    found.append(kept(before, held()))
    for descriptor in few + more:
        socket.close(descriptor)
    assert found[0] == ""
    assert "sockets of Ray after one session" in found[1]
