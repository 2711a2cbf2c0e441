"""Which Ray cluster a session is on, for as long as it lasts; and who can reach a Ray that Orion starts."""

import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.runtime.session import current_session
from tests.dying import send_in_the_middle
from tests.ray_nodes import SOON, started_cluster
from tests.runtime_programs import long_mix, mix
from tests.trials import one_in

pytestmark = [
    pytest.mark.all(
        "test_two_clusters_at_once_are_refused",
        "test_a_ray_that_orion_starts_listens_on_this_machine_only",
        "test_an_address_where_nothing_is_refused_in_seconds",
    ),
    pytest.mark.ray,
    pytest.mark.timeout(300),
]

STORE = {"object_store_memory": 80 * 1024**2}
HEAD = {"num_cpus": 2, **STORE}


@orion.parallel_for
def add(a, x):
    for i in range(a.shape[0]):
        a[i] += x


@pytest.fixture(scope="module")
def clusters():
    """Two clusters of one node each."""
    import ray

    started = []
    try:
        for _ in range(2):
            started.append(started_cluster(**HEAD))
        yield [cluster.address for cluster in started]
    finally:
        ray.shutdown()
        for cluster in started:
            cluster.shutdown()


def joined():
    import ray

    return ray.get_runtime_context().gcs_address if ray.is_initialized() else None


def run_there(address, workers=1):
    """The cluster that a loop was run on."""
    a = np.zeros(100)
    with orion.session("ray", workers, address=address, force_parallel=True):
        add(a, 1.0)
        assert set(a) == {1.0}
        return joined()


def test_each_session_is_on_its_own_cluster_and_leaves_it(clusters):
    assert [run_there(address) for address in clusters] == clusters
    assert joined() is None
    orion.init("ray", 1, address=clusters[0])
    add(np.zeros(9), 1.0)
    orion.init("ray", address=clusters[1])  # asks the cluster how many CPUs it has
    add(np.zeros(9), 1.0)
    assert joined() == clusters[1]
    orion.shutdown()
    assert joined() is None


def test_two_clusters_at_once_are_refused(clusters):
    first, second = clusters
    a = np.zeros(100)
    with orion.session("ray", 1, address=first, force_parallel=True):
        add(a, 1.0)
        with pytest.raises(orion.ArgumentError, match=f"(?s)address='{second}'.*another Ray cluster, at {first}"):
            run_there(second)
        port = first.rpartition(":")[2]
        for same in one_in(3, [f"localhost:{port}", f"127.0.0.1:{port}", "auto", None]):
            assert run_there(same) == first
        add(a, 1.0)
        assert joined() == first
    assert set(a) == {2.0}
    assert joined() is None


def test_a_connection_that_the_user_made_is_left_alone(clusters):
    import ray

    first, second = clusters
    ray.init(address=first, log_to_driver=False)
    try:
        assert run_there(first) == run_there(None) == first
        with pytest.raises(orion.ArgumentError, match="already joined another"):
            run_there(second)
        assert joined() == first
    finally:
        ray.shutdown()


@contextmanager
def losing_a_node():
    """A node, and a session of two workers, the second of which is on that node; it is seen soon that it is dead."""
    import ray

    cluster = started_cluster(num_cpus=1, _system_config=SOON, **STORE)
    try:
        lost = cluster.add_node(num_cpus=1, **STORE)
        with orion.session("ray", 2, address=cluster.address, force_parallel=True) as session:
            yield lost, session
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_after_a_node_was_lost_loops_go_on_with_fewer_workers():
    with losing_a_node() as (lost, session):
        add(np.zeros(100), 1.0)
        for process in (lost.all_processes["raylet"][0].process.pid, session._backend._team.group.processes[1]):
            os.kill(process, signal.SIGKILL)
        a, b = np.zeros(100), orion.zeros(100)
        with pytest.warns(orion.WorkerReplacedWarning, match="is room for 1 workers on Ray, where there were 2"):
            add(a, 1.0)
        assert session.workers == 1
        add(b, 2.0)
        assert set(a) == {1.0}
        assert set(b.to_numpy()) == {2.0}
        with pytest.raises(orion.ArgumentError, match="the cluster has 1 CPUs, after 1 of its nodes died or left"):
            orion.scale(2)
        add(a, 1.0)
        assert set(a) == {2.0}
        address = joined()
        session.close()
        assert run_there(address) == address


def test_a_node_that_is_lost_in_the_middle_of_a_call():
    """The call is done again from the same arrays by the workers that are left, with the same bits."""
    mine, expected = long_mix(500), long_mix(500)
    with orion.session("serial"):
        mix(**expected)
    with losing_a_node() as (lost, session):
        mix(**long_mix(1))
        raylet, actor = lost.all_processes["raylet"][0].process.pid, session._backend._team.group.processes[1]
        killing = send_in_the_middle(actor, (raylet, signal.SIGKILL), (actor, signal.SIGKILL))
        with pytest.warns(orion.WorkerReplacedWarning) as told:
            mix(**mine)
        killing.join()
        assert session.workers == 1
    assert ["done again" in str(one.message) for one in told][:1] == [True]
    np.testing.assert_array_equal(mine["W"], expected["W"])
    np.testing.assert_array_equal(mine["H"].to_numpy(), expected["H"].to_numpy())


def kill_of_ray(kinds):
    """Kill processes of the Ray that this process has started, by Ray's names for them, and see them dead."""
    import ray._private.worker

    for kind in kinds:
        for one in ray._private.worker._global_node.all_processes[kind]:
            os.kill(one.process.pid, signal.SIGKILL)
            one.process.wait(20)


@pytest.mark.parametrize("kinds", one_in(2, [["raylet"], ["raylet", "gcs_server"], ["gcs_server"]]), ids="+".join)
def test_a_ray_of_orions_own_that_has_died_is_started_anew(kinds):
    a = np.zeros(100)
    orion.init("ray", 1, force_parallel=True)
    try:
        add(a, 1.0)
        actors = current_session()._backend._team.group.processes
        kill_of_ray(kinds)
        with orion.session("ray", 1, force_parallel=True):
            add(a, 1.0)
        for actor in actors:
            with suppress(ProcessLookupError):
                os.kill(actor, signal.SIGKILL)
        add(a, 1.0)
    finally:
        orion.shutdown()
    assert set(a) == {3.0}
    assert joined() is None


def test_a_ray_of_the_programs_own_that_has_died_is_told_of_and_how_to_go_on():
    import ray

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, **STORE)
    try:
        assert run_there(None) == joined()
        kill_of_ray(["raylet"])
        with pytest.raises(orion.ArgumentError, match=r"(?s)no longer there: its node .* has died.*`ray.shutdown\(\)`"):
            run_there(None)
    finally:
        ray.shutdown()
    run_there(None)
    assert joined() is None


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "no.such.host.invalid:6379", "127.0.0.1:99999", ":1"])
def test_an_address_where_nothing_is_refused_in_seconds(address):
    start = time.monotonic()
    with pytest.raises(orion.ArgumentError, match="no Ray cluster at address="):
        run_there(address)
    assert time.monotonic() - start < 20
    assert joined() is None


def test_a_ray_that_orion_starts_listens_on_this_machine_only():
    before = listening()
    with orion.session("ray", 1, force_parallel=True):
        add(np.zeros(100), 1.0)
        new = {process: addresses for process, addresses in listening().items() if ours(process)}
    told = set().union(*new.values()) - set().union(*before.values())
    assert len(told) >= 4  # the head's, the node's, the driver's, the actor's
    assert {address for address, _ in told} <= {LOOPBACK_4, LOOPBACK_4_AS_6, LOOPBACK_6}


LOOPBACK_4, LOOPBACK_4_AS_6 = "0100007F", "0000000000000000FFFF00000100007F"
LOOPBACK_6 = "00000000000000000000000001000000"
LISTENS = "0A"


def listening():
    """The addresses and ports at which the processes of this machine listen for TCP."""
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == LISTENS:
                sockets[f"socket:[{rest[5]}]"] = tuple(local.split(":"))
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            links = {os.readlink(link) for link in (process / "fd").iterdir()}
        except OSError:
            continue
        found[int(process.name)] = {sockets[link] for link in links if link in sockets}
    return found


def ours(process):
    """Whether a process is this one or was started by it."""
    while process > 1:
        if process == os.getpid():
            return True
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False
