"""Programs on hosts with links of their own: what the plan predicts, what the runtime counts, and what the links do."""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from benchmarks.hosts.__main__ import told_on
from benchmarks.hosts.results import TOLERANCE, Row
from tests.hosts import HostsError, cluster, hosts, processes_in, why_not
from tests.trials import ALL

pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]

CALLS = 3 if ALL else 1


@pytest.fixture(scope="module", autouse=True)
def possible():
    """Only where namespaces can be made."""
    if why := why_not():
        pytest.skip(f"there can be no hosts here: {why}")


@pytest.fixture(autouse=True)
def alone():
    """One test at a time, of all processes that run tests: each takes away what killed ones have left."""
    with (Path(tempfile.gettempdir()) / "orion-test-hosts.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def namespaces():
    """The namespaces of hosts of this process."""
    found = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in found if name.startswith(f"orion{os.getpid()}-")]


def test_hosts_and_what_runs_on_them_are_gone_whatever_happens():
    def fail():
        with hosts(2, 100) as made:
            processes.extend(host.start(["sleep", "100"]) for host in made)
            assert len(namespaces()) == 3
            raise KeyboardInterrupt

    processes = []
    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [process.wait(5) != 0 for process in processes] == [True, True]
    assert namespaces() == []


def test_a_host_that_cannot_be_made_leaves_nothing_behind():
    with pytest.raises(HostsError, match="tbf"), hosts(1, 0):
        pass
    assert namespaces() == []


def test_hosts_of_a_process_that_was_killed_are_taken_away_by_the_next_one():
    text = """
from tests.hosts import hosts
with hosts(1, 100) as (host,):
    host.start(["sleep", "100"])
    print(host.name, host.own, flush=True)
    input()
"""
    root = Path(__file__).parents[1]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", text], cwd=root, text=True, **pipes) as killed:
        name, own = killed.stdout.readline().split()
        until = time.monotonic() + 20
        while not processes_in([name]):  # what starts it enters the namespace by and by
            assert time.monotonic() < until
        killed.kill()
    assert processes_in([name])
    assert Path(own).exists()
    with hosts(1, 100):
        assert processes_in([name]) == []
        assert not Path(own).parent.exists()
    assert name not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def test_hosts_reach_each_other_and_nobody_else():
    with hosts(2, 100) as (first, second):
        ask = "import socket, sys; socket.create_connection((sys.argv[1], 5999), 2)"
        wait = "import socket; s = socket.create_server(('', 5999)); print('there', flush=True); s.accept()"
        server = second.start([sys.executable, "-c", wait], stdout=subprocess.PIPE)
        assert server.stdout.readline() == "there\n"
        assert first.start([sys.executable, "-c", ask, "127.0.0.1"], stderr=subprocess.DEVNULL).wait() != 0
        assert first.start([sys.executable, "-c", ask, second.address]).wait() == 0


@pytest.mark.all("test_runtime_ray_nodes.py::test_nodes_send_as_many_bytes_as_the_plan_predicts")
def test_predicted_counted_and_carried_bytes_agree(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # which `ray.init` leaves behind
    with cluster(2, 100) as found:
        told, failed = told_on(found, ["SGD-MF", "Gauss-Seidel", "PageRank"], [1.0], calls=CALLS, megabits=100)
    assert not failed
    rows = [Row(megabits=100, **one) for one in told]
    assert [row.name for row in rows] == ["SGD-MF", "Gauss-Seidel", "PageRank"]
    for row in rows:
        assert row.sent == row.predicted > 1e6, row.place
        assert row.contents == pytest.approx(row.counted, rel=TOLERANCE), row.place
        assert row.carried > row.contents, row.place
