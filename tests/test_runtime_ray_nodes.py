"""Programs on Ray actors of several nodes, started on one machine: what the nodes share they send to each
other.
"""

import os
import signal
import socket
import threading

import numpy as np
import pytest

import orion
from orion.arrays.dense import array
from orion.arrays.storage import Storage
from orion.errors import StorageError
from orion.runtime.ray.group import Group
from orion.runtime.ray.lines import ChannelLine, RayLine
from orion.runtime.ray.mirrors import Mirrors
from orion.runtime.ray.orders import Ready
from orion.runtime.ray.reordered import Reordered
from tests.dying import kill_in_the_middle
from tests.element_stores import scale
from tests.ray_nodes import session_on
from tests.runtime_programs import (
    NAMES,
    assert_same,
    cases,
    divides,
    gather,
    integers,
    long_mix,
    mix,
    outcome,
    sparse_integers,
    values_only,
)
from tests.torn_messages import differing_elements, torn_elements
from tests.trials import one_in

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def expected():
    with orion.session("serial"):
        return {name: outcome(name) for name in NAMES}


PLACES = {"driver with workers": ((2, 2), None), "driver without workers, all arrays in files": ((0, 1, 1), 0)}
"""The CPUs of nodes, and from how many bytes on arrays are in files."""

on_one = pytest.mark.parametrize("nodes", one_in(2, [*PLACES]), indirect=True, scope="module")
"""Tests of workers that are started anew, and of what breaks off: one of these will do, by default."""


@pytest.fixture(scope="module", params=[*PLACES])
def nodes(request, tmp_path_factory):
    """A session over several nodes; the first is the driver's. Arrays are in memory, or all in files."""
    cpus, above = PLACES[request.param]
    spill = {} if above is None else {"spill": tmp_path_factory.mktemp("spill"), "spill_above": above}
    with session_on(cpus, **spill) as session:
        yield session


@pytest.mark.parametrize("name", NAMES)
def test_nodes_give_the_serial_result(name, nodes, expected):
    for _ in range(2):
        assert_same(outcome(name), expected[name])
    assert len(set(nodes._backend._team.group.nodes)) == 2


@pytest.mark.parametrize("name", [name for name in NAMES if name != "sweeps"])
def test_nodes_send_as_many_bytes_as_the_plan_predicts(name, nodes):
    function, arguments = cases()[name]
    estimate = function.plan(**arguments).estimate(nodes=2)
    function(**arguments)
    team = nodes._backend._team
    if estimate.workers == len(team.group.nodes):
        assert estimate.bytes == team.sent_bytes > 0
    else:
        assert estimate.workers < len(team.group.nodes)  # these may be on one node


@pytest.mark.parametrize(("width", "rounds"), [(16, 100), (25_000, 40)])
def test_a_message_whose_source_is_overwritten_at_once_is_never_torn(width, rounds, nodes):
    assert torn_elements(width, rounds) == 0


def test_a_message_whose_source_is_overwritten_as_soon_as_it_was_read_is_never_torn(nodes):
    assert differing_elements(200, rounds=50) == 0


@pytest.mark.all("test_workers_of_different_nodes_have_connections_and_without_them_calls_of_ray_do_the_same")
@on_one
def test_where_the_driver_cannot_be_reached_orders_are_calls_of_ray(nodes, expected, monkeypatch):
    def closed(host):
        raise PermissionError("a firewall")

    assert_same(outcome("rotated"), expected["rotated"])
    assert isinstance(nodes._backend._team.group._line, ChannelLine)
    monkeypatch.setattr("orion.runtime.ray.lines.Door", closed)
    before = nodes._backend.workers
    orion.scale(workers=before)
    try:
        assert_same(outcome("rotated"), expected["rotated"])
        assert isinstance(nodes._backend._team.group._line, RayLine)
    finally:
        monkeypatch.undo()
        orion.scale(workers=before)


def test_the_workers_of_the_driver_s_node_come_first(nodes):
    mix(**cases()["rotated"][1])
    group = nodes._backend._team.group
    assert list(group.nodes) == sorted(group.nodes, key=lambda node: (node != group.driver_node, node))


def test_a_second_loop_finds_the_keys_that_the_first_had_no_use_for(nodes):
    """Both go over the elements in the same tiles; the first uses their values only."""
    R, W, H = sparse_integers((60, 40), 3000, seed=11), integers(60), integers(40)
    expected = integers(60), integers(40)
    with orion.session("serial"):
        mix(sparse_integers((60, 40), 3000, seed=11), *expected, 2, 5)
    assert values_only(R) == (R.values**2).sum()
    mix(R, W, H, 2, 5)
    np.testing.assert_array_equal(W, expected[0])
    np.testing.assert_array_equal(H, expected[1])


@orion.parallel_for
def weigh(X, R, out, W):
    for s in range(X.shape[0]):
        out[s] = 3 * X[s, 0] - X[s, 1]
    for (i, _), r in R:
        W[i] = W[i] * 31 + r


def test_nodes_have_rows_and_elements_in_their_new_order_after_a_shuffle(nodes):
    def outcome():
        X, R = array(np.arange(600).reshape(300, 2)), sparse_integers((60, 40), 3000, seed=11)
        out, W, found = np.zeros(300, int), integers(60), []
        for epoch in range(3):
            weigh(X, R, out, W)
            found += [out.copy(), W.copy()]
            X.shuffle(exchange=0.5, seed=1, ranks=4, epoch=epoch)
            R.shuffle(exchange=1, seed=1, epoch=epoch)
        return found

    with orion.session("serial"):
        expected = outcome()
    for mine, its in zip(outcome(), expected, strict=True):
        np.testing.assert_array_equal(mine, its)


@orion.parallel_for
def add_rows(X, out):
    for s in range(X.shape[0]):
        out[s] += X[s].sum()


@orion.parallel_for
def raise_rows(X):
    for s in range(X.shape[0]):
        for k in range(X.shape[1]):
            X[s, k] += s


def test_nodes_are_sent_the_rows_alone_that_come_from_elsewhere(nodes):
    ranks = nodes.workers
    X, out = array(np.arange(6400).reshape(1600, 4)), orion.zeros(1600, dtype=int)
    add_rows(X, out)
    group = nodes._backend._team.group
    before = group.moved
    add_rows(X, out)
    unshuffled = group.moved - before
    away = [rank for rank, node in enumerate(group.nodes) if node != group.driver_node]
    here = [rank for rank in range(ranks) if rank not in away]
    for part in (0, 0.25, 1, 0.5):
        X.shuffle(exchange=part, seed=2)
        last, order = X.last_shuffle, X.last_shuffle.order()
        before = group.moved
        add_rows(X, out)
        node_of = np.array(group.nodes)[np.repeat(np.arange(ranks), last.counts)]
        came = np.isin(np.repeat(np.arange(ranks), last.counts), away) & (node_of != node_of[order])
        assert group.moved - before - unshuffled == came.sum() * 4 * 8
        if not here and len(set(group.nodes)) == ranks:  # each rank has a node of its own
            assert came.sum() * 4 * 8 == last.bytes
        assert part == 0 or came.any()


def test_nodes_have_what_was_written_between_shuffles(nodes):
    """Shuffles, calls that read or write, and writes from outside, in any order."""
    random = np.random.default_rng(5)
    X, out, total = array(np.arange(1200).reshape(300, 4)), orion.zeros(300, dtype=int), np.zeros(300, int)
    own = X.to_numpy()
    for _ in range(60):
        match random.integers(6):
            case 0 | 1:
                X.shuffle(exchange=random.choice([0, 0.3, 1]), seed=int(random.integers(9)), ranks=4)
                own = own[X.last_shuffle.order()]
            case 2:
                row = random.integers(300)
                X[row] = own[row] = random.integers(1000)
            case 3:
                raise_rows(X)
                own += np.arange(300)[:, None]
            case _:
                add_rows(X, out)
                total += own.sum(axis=1)
                np.testing.assert_array_equal(out.view, total)
        np.testing.assert_array_equal(X.view, own)


@pytest.mark.parametrize("when", ["told", "before it is told", "before it is known what to tell"])
def test_a_node_that_may_have_put_rows_in_order_is_sent_them_anew(nodes, monkeypatch, when):
    X, out = array(np.arange(1200).reshape(300, 4)), orion.zeros(300, dtype=int)
    add_rows(X, out)
    X.shuffle(exchange=0.5, seed=1)
    make_ready = Group.make_ready

    def breaks_off(self, *given):
        if when == "told":
            make_ready(self, *given)
        raise KeyboardInterrupt

    if when == "before it is known what to tell":
        monkeypatch.setattr(Reordered, "of", breaks_off)
    else:
        monkeypatch.setattr(Group, "make_ready", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        add_rows(X, out)
    monkeypatch.undo()
    out[:] = 0
    add_rows(X, out)
    np.testing.assert_array_equal(out.view, X.view.sum(axis=1))


@orion.parallel_for
def twice(out, tokens):
    for (d, w), z in tokens:
        tokens[d, w] = 2 * z
        out[d] = 0
    for (d, _), z in tokens:
        out[d] += z


@orion.parallel_for
def twice_by_words(out, tokens):
    for (d, w), z in tokens:
        tokens[d, w] = 2 * z
        out[d] = 0
    for (_, w), z in tokens:
        out[w] += z


def has_moved(nodes, function, *given):
    """The bytes that have gone between the driver and other nodes for a call."""
    group = nodes._backend._team.group
    before = group.moved
    function(*given)
    return group.moved - before


@pytest.mark.parametrize("function", [twice, twice_by_words])
def test_elements_are_stored_where_their_tiles_are(function, nodes):
    tokens = orion.sparse((np.arange(60), np.arange(60) % 7), np.arange(60.0))
    for times in (1, 2, 3):
        out = np.zeros(60)
        scale(tokens, 2.0)
        function(out, tokens)
        np.testing.assert_array_equal(tokens.values, np.arange(60.0) * 4**times)
        assert out.sum() == tokens.values.sum()
    estimate = str(function.plan(out, tokens).estimate(nodes=2))
    assert ("are stored, which other nodes would need" in estimate) == (function is twice_by_words)


def test_elements_that_nodes_have_stored_are_not_sent_to_them_again(nodes):
    keys, values = (np.arange(3000) % 60, np.arange(3000) // 60), np.arange(3000.0)
    tokens, out = orion.sparse(keys, values), np.zeros(60)
    twice(out, tokens)
    first, again = has_moved(nodes, twice, out, tokens), has_moved(nodes, twice, out, tokens)
    assert first == again
    away = [node != nodes._backend._team.group.driver_node for node in nodes._backend._team.group.nodes]
    assert again <= 3000 * 8 * sum(away) / len(away) * 1.2 + 2 * out.nbytes  # values come back, and the rows of `out`
    tokens[5, 7] = 0.5
    assert has_moved(nodes, twice, out, tokens) > again + 3000 * 8 * sum(away) / len(away) * 0.8
    expected = values * 16
    expected[5 + 60 * 7] = 1.0
    np.testing.assert_array_equal(tokens.values, expected)


@orion.parallel_for(ordered=True)
def draw(tokens, words, documents, seed):
    """Values of elements by what words and documents have, which go from worker to worker."""
    for (d, w), z in tokens:
        words[w] = (words[w] * 31 + z) % 1000
        documents[d] = (documents[d] * 17 + words[w]) % 1000
        tokens[d, w] = (z + words[w] + documents[d]) % 10 + seed


def test_stored_elements_of_blocks_that_go_from_node_to_node(nodes):
    rng = np.random.default_rng(4)
    keys, drawn = np.divmod(rng.permutation(1500)[:900], 50), rng.integers(0, 9, 900)

    def outcome():
        tokens = orion.sparse(tuple(keys), drawn, (30, 50))
        words, documents, found = np.zeros(50, np.int64), np.zeros(30, np.int64), []
        for call in range(4):
            draw(tokens, words, documents, call)
            found += [np.array(tokens.values), words.copy(), documents.copy()]
            if call == 1:
                tokens[int(keys[0][0]), int(keys[1][0])] = 3  # between calls, by Python
        return found, draw.plan(tokens, words, documents, 1)

    with orion.session("serial"):
        expected, _ = outcome()
    found, plan = outcome()
    assert plan.strategy == "2d"
    assert "one node" not in str(plan.estimate(nodes=2))
    for mine, its in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_elements_that_were_stored_are_sent_again(nodes):
    tokens = orion.sparse((np.arange(60), np.arange(60) % 7), np.arange(60.0))

    @orion.parallel_for
    def rows(out, tokens):
        for (d, _), z in tokens:
            out[d] += z

    for k in range(3):
        rows(out := np.zeros(60), tokens)
        np.testing.assert_array_equal(out, tokens.values)
        for d in range(60):
            tokens[d, d % 7] = d + 100.0 * k


@on_one
def test_segments_that_are_files_have_no_names_during_a_run(nodes, expected, monkeypatch):
    import orion.runtime.ray.group as group

    nodes.close()
    with monkeypatch.context() as patch:
        patch.setattr(group, "can_be_anonymous", lambda: False)
        for name in ("two loops", "sums"):
            assert_same(outcome(name), expected[name])
        assert not nodes._backend._team._store.anonymous
        assert [name for name in os.listdir("/dev/shm") if name.startswith("orion")] == []
    nodes.close()


@on_one
def test_an_error_on_one_node_ends_the_run_on_all(nodes):
    a, out, index = np.arange(100.0), np.zeros(10_000), np.zeros(10_000, np.int64)
    index[9_000] = 100  # among the last iterations: those of the last worker, which is not on the first node
    with pytest.raises(orion.OutOfBoundsError, match=r"(?s)100.*`a`"):
        gather(a, index, out)
    assert not out.any()
    with pytest.raises(ZeroDivisionError):
        divides(np.zeros(1000), 4)


@on_one
def test_ctrl_c_reaches_all_nodes(nodes):
    mix(**cases()["rotated"][1])  # the actors are there, and have the kernels
    arguments = cases()["rotated"][1] | {"rounds": 1_000_000}
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        mix(**arguments)
    assert nodes._backend._team.group.is_whole
    np.testing.assert_array_equal(arguments["W"], integers(60))


@pytest.mark.all("test_runtime_ray.py::test_a_run_whose_worker_dies_is_done_again")
@on_one
def test_a_run_whose_worker_on_another_node_dies_is_done_again(nodes):
    mix(**long_mix(1))
    mine, expected = long_mix(500), long_mix(500)
    with orion.session("serial"):
        mix(**expected)
    killing = kill_in_the_middle(nodes._backend._team.group.processes[-1])
    with pytest.warns(orion.WorkerReplacedWarning, match="is done again"):
        mix(**mine)
    killing.join()
    np.testing.assert_array_equal(mine["W"], expected["W"])
    np.testing.assert_array_equal(mine["H"].to_numpy(), expected["H"].to_numpy())


@pytest.mark.all("test_runtime_ray.py::test_a_run_whose_worker_dies_is_done_again")
@on_one
def test_a_killed_actor_on_another_node_is_reported_where_arrays_are_too_large(nodes, expected, monkeypatch):
    mix(**cases()["rotated"][1])
    monkeypatch.setattr("orion.runtime.ray.before_images.MOST", 0.0)
    victim = nodes._backend._team.group.processes[-1]
    arguments = cases()["rotated"][1] | {"H": array(integers(40)), "rounds": 1_000_000}
    timer = threading.Timer(1.0, os.kill, [victim, signal.SIGKILL])
    timer.start()
    with pytest.raises(orion.WorkerLostError):
        mix(**arguments)
    np.testing.assert_array_equal(arguments["W"], integers(60))
    assert_same(outcome("two loops"), expected["two loops"])


@pytest.mark.all("test_runtime_ray.py::test_a_run_whose_worker_dies_is_done_again")
def test_an_actor_on_another_node_that_died_between_runs_is_replaced_without_an_error(nodes):
    H, expected = array(integers(40)), integers(40)
    mix(**(cases()["rotated"][1] | {"H": H}))
    group = nodes._backend._team.group
    os.kill(group.processes[-1], signal.SIGKILL)
    mix(**(cases()["rotated"][1] | {"H": H}))
    assert nodes._backend._team.group is not group
    with orion.session("serial"):
        for _ in range(2):
            mix(**(cases()["rotated"][1] | {"H": expected}))
    np.testing.assert_array_equal(H.to_numpy(), expected)


@on_one
def test_what_goes_wrong_while_nodes_are_made_ready_leaves_the_next_call_right(nodes, monkeypatch):
    """Ctrl-C before the answers are read: the same workers go on. A worker that says no: its error is raised."""
    H, expected = array(integers(40)), integers(40)
    mix(**(cases()["rotated"][1] | {"H": H}))
    group, real = nodes._backend._team.group, ChannelLine.wait

    def interrupt(line, seconds):
        monkeypatch.setattr(ChannelLine, "wait", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(ChannelLine, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        mix(**(cases()["rotated"][1] | {"H": H}))
    assert nodes._backend._team.group is group
    monkeypatch.setattr("orion.runtime.ray.group.Ready", lambda memory, fillings: Ready(-1, fillings))
    with pytest.raises(KeyError):
        mix(**(cases()["rotated"][1] | {"H": H}))
    monkeypatch.undo()
    mix(**(cases()["rotated"][1] | {"H": H}))
    assert nodes._backend._team.group is group
    with orion.session("serial"):
        for _ in range(2):
            mix(**(cases()["rotated"][1] | {"H": expected}))
    np.testing.assert_array_equal(H.to_numpy(), expected)


def on_all(nodes, what):
    """Call `what` with the object of each worker, where it is."""
    import ray

    return ray.get([actor.__ray_call__.remote(what) for actor in nodes._backend._team.group.actors])


def test_workers_of_different_nodes_have_connections_and_without_them_calls_of_ray_do_the_same(nodes, expected):
    def connected(worker):
        return [link is not None for link in worker._links.values()]

    def give_up_connections(worker):
        worker.unused, worker._links = worker._links, dict.fromkeys(range(4))

    def take_them_again(worker):
        worker._links = worker.unused

    mix(**cases()["rotated"][1])
    sent = nodes._backend._team.sent_bytes
    found = on_all(nodes, connected)
    assert any(found)
    assert all(map(all, found))
    on_all(nodes, give_up_connections)
    for name in ("rotated", "two loops", "sums"):
        assert_same(outcome(name), expected[name])
    mix(**cases()["rotated"][1])
    assert nodes._backend._team.sent_bytes == sent
    on_all(nodes, take_them_again)
    assert_same(outcome("sums"), expected["sums"])


@pytest.mark.all("test_runtime_ray.py::test_a_run_whose_worker_dies_is_done_again")
@on_one
def test_a_run_whose_connections_break_is_done_again(nodes, expected):
    def break_connections(worker):
        for link in worker._links.values():
            link._socket.shutdown(socket.SHUT_RDWR)

    mix(**cases()["rotated"][1])
    group = nodes._backend._team.group
    on_all(nodes, break_connections)
    with pytest.warns(orion.WorkerReplacedWarning, match="its connection is broken"):
        assert_same(outcome("rotated"), expected["rotated"])
    assert nodes._backend._team.group is not group


@orion.parallel_for
def times(A, x, y):
    for i in range(A.shape[0]):
        y[i] = x[0]
        for j in range(A.shape[1]):
            y[i] = y[i] + A[i, j] * x[j]


@pytest.mark.parametrize("kind", [np.array, orion.freeze, array])
def test_arrays_that_nobody_changed_are_sent_once(kind, nodes):
    """Whoever changes an array, by whatever view of it: the rows around the change are sent again."""
    A, x, y = kind(integers(40, 30)), array(integers(30, seed=5)), np.zeros(40, np.int64)

    def sent():
        before = nodes._backend._team.group.moved if nodes._backend._team else 0
        times(A, x, y)
        expected = np.zeros(40, np.int64)
        times.serial(np.array(A), np.array(x), expected)
        assert np.array_equal(y, expected)
        return nodes._backend._team.group.moved - before

    first = sent()
    again = sent()
    assert again < first / 2
    view = x.view[3:]
    view[0] += 1
    assert again < sent() <= again + 2 * x.nbytes
    if kind is not orion.freeze:
        A[7, 7] = 3
        assert sent() > again + 8 * 30 * 10


def test_what_is_changed_while_a_call_runs_is_sent_with_the_next_one(nodes, monkeypatch):
    """By another thread, in a row that the call only reads; and in an array that is read-only in between."""
    A, x, y, expected = integers(40, 30), array(integers(30, seed=5)), *np.zeros((2, 40), np.int64)
    A.flags.writeable = False
    times(A, x, y)

    def change_first(mirrors, *rest, keep=Mirrors.keep):
        x.view[5] += 1
        keep(mirrors, *rest)

    with monkeypatch.context() as changing:
        changing.setattr(Mirrors, "keep", change_first)
        times(A, x, y)
    A.flags.writeable = True
    A[30, 7] = 55
    A.flags.writeable = False
    times(A, x, y)
    times.serial(A, x.to_numpy(), expected)
    assert np.array_equal(y, expected)


@orion.parallel_for
def mix_rows(R, W, H):
    for (i, j), _ in R:
        for k in range(W.shape[1]):
            W[i, k] = W[i, k] * 31 + H[j, k]
            H[j, k] = H[j, k] * 17 + W[i, k]


def test_what_pads_the_rows_of_arrays_is_not_sent(nodes):
    """Rows of three numbers take the memory of eight."""
    given = {"R": cases()["rotated"][1]["R"], "W": array(integers(60, 3)), "H": array(integers(40, 3))}
    assert given["W"].storage.shape == (60, 8)
    expected = {name: value.to_numpy() if name in "WH" else value for name, value in given.items()}
    estimate = mix_rows.plan(**given).estimate(nodes=2)
    mix_rows(**given)
    assert estimate.bytes == nodes._backend._team.sent_bytes > 0
    with orion.session("serial"):
        mix_rows(**expected)
    for name in "WH":
        assert np.array_equal(given[name].view, expected[name])
        assert not given[name].storage[:, 3:].any()


# ---------------------------------------------------------------- arrays in files


def test_what_loops_work_on_is_where_the_session_holds_arrays(nodes):
    function, arguments = cases()["rotated"]
    function(**arguments)
    in_files = nodes.settings.storage.above == 0
    shown = [value._repr_html_() for value in arguments.values() if isinstance(value, orion.SparseArray)]
    assert shown
    for text in shown:
        assert ("a file in" in text) == in_files
        assert ("memory shared by the workers" in text) != in_files


def test_a_node_without_the_folder_is_named(nodes):
    function, arguments = cases()["rotated"]
    function(**arguments)
    group = nodes._backend._team.group
    node = next(node for node in group.nodes if node != group.driver_node)
    with pytest.raises(StorageError, match=r"held in files in /nowhere\n.*No such file") as caught:
        group.create(node, {10**6: 1 << 16}, True, Storage("/nowhere", 0))
    assert node in caught.value.__notes__[0]
    function(**arguments)  # the workers are as they were
