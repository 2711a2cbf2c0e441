"""Programs on Ray actors of one machine: the same bits as on threads, errors, interruptions and lost workers."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.arrays.dense import array
from tests.runtime_programs import NAMES, assert_same, cases, divides, gather, integers, long_mix, mix, outcome
from tests.torn_messages import differing_elements, torn_elements
from tests.trials import ALL, one_in

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


WORKERS = 4 if ALL else 2
"""Each death has all of them started anew."""


@pytest.fixture(scope="module")
def actors():
    with orion.session("ray", WORKERS, force_parallel=True) as session:
        yield session


@pytest.fixture(scope="module")
def expected():
    with orion.session("serial"):
        return {name: outcome(name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_actors_give_the_serial_result(name, actors, expected):
    for _ in range(2):
        assert_same(outcome(name), expected[name])


@pytest.mark.parametrize("workers", range(1, WORKERS))
def test_any_number_of_workers_gives_the_serial_result(workers, actors, expected):
    """Schedules for fewer workers than there are actors; the others have nothing to do."""
    function, arguments = cases()["two loops"]
    prepared = function._preparations.plain.prepare(arguments, workers, True)
    assert prepared.program.workers == workers
    result = prepared.run(arguments, actors)
    assert_same((result, {"W": arguments["W"], "H": arguments["H"]}), expected["two loops"])


@pytest.fixture
def on_two(actors):
    """Runs a function on two of the actors."""

    def run(function, arguments):
        function._preparations.plain.prepare(arguments, 2, True).run(arguments, actors)

    return run


TORN = 20 if ALL else 5
"""So many times 500 rounds."""


@pytest.mark.parametrize("width", [16, 5_000])
def test_what_is_overwritten_at_once_is_never_seen_in_parts(width, on_two):
    # All rounds where others leave the cores alone: a wait for a core takes a while.
    end = time.monotonic() + 2.0
    for _ in range(TORN):
        assert torn_elements(width, 500, on_two) == 0
        if time.monotonic() > end:
            break


def test_what_is_handed_on_and_then_overwritten_is_never_seen_in_parts(on_two):
    end = time.monotonic() + 2.0
    for _ in range(TORN):
        assert differing_elements(200, 500, on_two) == 0
        if time.monotonic() > end:
            break


def test_dist_arrays_move_into_shared_memory_once(actors):
    _, arguments = cases()["dist arrays"]
    mix(**arguments)
    storage, sparse_keys = arguments["W"].storage, arguments["R"]._elements.keys[0]
    mix(**arguments)
    assert arguments["W"].storage is storage
    assert arguments["R"]._elements.keys[0] is sparse_keys


def test_segments_of_arrays_that_are_gone_are_given_back(actors):
    for _ in range(10):  # the programs of the last few sparse arrays are kept
        mix(**cases()["rotated"][1])
    store = actors._backend._team._store
    before = len(store.names)
    for _ in range(5):
        mix(**cases()["rotated"][1])
    assert len(store.names) <= before


def test_an_error_leaves_numpy_arrays_as_they_were(actors):
    a = np.zeros(1000)
    with pytest.raises(ZeroDivisionError):
        divides(a, 4)
    assert not a.any()
    assert divides(a, 2) == -0.5
    assert set(a) == {-1.5}


def test_a_subscript_out_of_bounds_is_the_caller_s_error(actors):
    a, out, index = np.arange(100.0), np.zeros(10_000), np.zeros(10_000, np.int64)
    index[5_000] = 100
    with pytest.raises(orion.OutOfBoundsError, match=r"(?s)100.*`a`.*out\[i\] = a\[index\[i\]\]"):
        gather(a, index, out)
    assert not out.any()


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_serial_program_is_run_by_the_driver(actors):
    a = np.arange(100.0)
    prefix_sum(a)
    np.testing.assert_array_equal(a, np.cumsum(np.arange(100.0)))


@orion.parallel_for
def prefix_sum(a):
    for i in range(1, a.shape[0]):
        a[i] += a[i - 1]


def test_ctrl_c_leaves_at_the_next_tile(actors):
    arguments = cases()["rotated"][1] | {"rounds": 50_000_000}
    mix(**(arguments | {"rounds": 1}))
    before = arguments["W"].copy()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        mix(**arguments)
    np.testing.assert_array_equal(arguments["W"], before)
    group = actors._backend._team.group
    assert group.is_whole
    assert_same(outcome("two loops"), outcome("two loops"))
    assert actors._backend._team.group is group


def kill_once_begun(team, number):
    """Kill a worker as soon as the workers of a team have begun the next run."""
    for known in list(team._programs.values()):
        known.memory.reset()

    def kill():
        while not any(known.memory.have_met(WORKERS) for known in list(team._programs.values())):
            time.sleep(0.001)
        os.kill(team.group.processes[number], signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


def test_no_worker_begins_before_all_are_there(actors):
    """One that does not take its order keeps the others from changing anything."""
    H = array(integers(40))
    mix(**cases()["rotated"][1] | {"H": H})
    before, group, seen = H.to_numpy(), actors._backend._team.group, []

    def look_and_kill():
        seen.append(H.to_numpy())
        os.kill(group.processes[-1], signal.SIGKILL)

    os.kill(group.processes[-1], signal.SIGSTOP)
    threading.Timer(1.0, look_and_kill).start()
    mix(**cases()["rotated"][1] | {"H": H})
    np.testing.assert_array_equal(seen[0], before)
    assert actors._backend._team.group is not group
    with orion.session("serial"):
        mix(**cases()["rotated"][1] | {"H": before})
    np.testing.assert_array_equal(H.to_numpy(), before)


@pytest.mark.all("test_a_run_whose_worker_dies_is_done_again")
def test_a_killed_actor_is_reported_and_replaced_where_arrays_are_too_large(actors, expected, monkeypatch, tmp_path):
    mix(**cases()["rotated"][1])
    arguments = cases()["rotated"][1] | {"H": array(integers(40)), "rounds": 50_000_000}
    before = arguments["W"].copy()
    monkeypatch.setattr("orion.runtime.ray.before_images.MOST", 0.0)
    orion.checkpoint(tmp_path, given=arguments["H"])
    orion.checkpoint(tmp_path / "others", W=arguments["W"])
    kill_once_begun(actors._backend._team, 1)
    with pytest.raises(orion.WorkerLostError) as caught:
        mix(**arguments)
    assert caught.value.lost == ("H",)
    lost, where = caught.value.__notes__
    assert lost.startswith("these DistArrays hold only a part of the results: H; no copy was kept, as they take ")
    assert lost.endswith("all other arrays are as they were")
    assert re.fullmatch(rf"{tmp_path}/checkpoint-000001.npz has them as they were \d+ s ago: `orion.restore` .*", where)
    np.testing.assert_array_equal(orion.restore(tmp_path)["given"].to_numpy(), integers(40))
    np.testing.assert_array_equal(arguments["W"], before)
    assert_same(outcome("two loops"), expected["two loops"])


def test_a_run_whose_worker_dies_is_done_again(actors):
    expected, mine = long_mix(500), long_mix(500)
    with orion.session("serial"):
        mix(**expected)
    mix(**long_mix(1))
    kill_once_begun(actors._backend._team, 1)
    with pytest.warns(
        orion.WorkerReplacedWarning,
        match=r"worker 1 died while it ran a loop \(its process has ended\); the call of `mix`",
    ) as told:
        mix(**mine)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(mine["W"], expected["W"])
    np.testing.assert_array_equal(mine["H"].to_numpy(), expected["H"].to_numpy())


def test_views_stay_what_they_are(actors):
    H, expected = array(integers(800)), integers(800)
    mix(**long_mix(3) | {"H": H})
    view, storage = H.view, H.storage
    kill_once_begun(actors._backend._team, 1)
    with pytest.warns(orion.WorkerReplacedWarning):
        mix(**long_mix(500) | {"H": H})
    with orion.session("serial"):
        mix(**long_mix(3) | {"H": expected})
        mix(**long_mix(500) | {"H": expected})
    assert H.storage is storage
    np.testing.assert_array_equal(view, expected)
    view[:] = 3
    mix(**long_mix(3) | {"H": H})
    expected[:] = 3
    with orion.session("serial"):
        mix(**long_mix(3) | {"H": expected})
    np.testing.assert_array_equal(view, expected)


def test_stored_elements_are_those_of_one_run(actors):
    """A run that dies after it stored values of elements begins again with those that it found."""
    rng = np.random.default_rng(1)
    coords = np.divmod(rng.choice(120_000, 60_000, replace=False), 300)
    once, mine, expected = (orion.sparse(coords, np.arange(60_000), shape=(400, 300)) for _ in range(3))
    with orion.session("serial"):
        grow(expected, np.zeros(400), 1500)
    grow(once, np.zeros(400), 1)
    kill_once_begun(actors._backend._team, 1)
    with pytest.warns(orion.WorkerReplacedWarning):
        grow(mine, np.zeros(400), 1500)
    np.testing.assert_array_equal(mine.to_numpy(), expected.to_numpy())


@orion.parallel_for
def grow(R, W, rounds):
    for _ in range(rounds):
        for (i, j), r in R:
            W[i] += r % 7
            R[i, j] = (3 * r + j) % 1009


@pytest.mark.all("test_a_run_whose_worker_dies_is_done_again")
def test_a_run_that_always_kills_its_worker_is_given_up(actors, monkeypatch):
    """As where memory runs out: three attempts, then arrays are as they were."""
    mix(**cases()["rotated"][1])
    backend = actors._backend
    start, given = backend._usable_team, cases()["rotated"][1] | {"H": array(integers(40)), "rounds": 50_000_000}
    before = given["H"].to_numpy()
    teams = []

    def deadly():
        teams.append(start())
        kill_once_begun(teams[-1], 0)
        return teams[-1]

    monkeypatch.setattr(backend, "_usable_team", deadly)
    with (
        pytest.warns(orion.WorkerReplacedWarning),
        pytest.raises(orion.WorkerLostError, match="worker 0 died") as caught,
    ):
        mix(**given)
    assert caught.value.__notes__ == ["this was attempt 3; no data was lost: all arrays are as they were before"]
    assert len(teams) == 3
    np.testing.assert_array_equal(given["H"].to_numpy(), before)


@pytest.mark.all("test_a_run_whose_worker_dies_is_done_again")
def test_an_actor_that_died_between_runs_is_replaced_without_an_error(actors, expected):
    mix(**cases()["rotated"][1])
    group = actors._backend._team.group
    os.kill(group.processes[1], signal.SIGKILL)
    end = time.monotonic() + 10
    while group.is_usable() and time.monotonic() < end:
        time.sleep(0.05)
    assert_same(outcome("two loops"), expected["two loops"])
    assert actors._backend._team.group is not group


@pytest.mark.all("test_a_run_whose_worker_dies_is_done_again")
def test_views_stay_what_they_are_where_an_actor_died_between_runs(actors):
    H = array(integers(40))
    mix(**(cases()["rotated"][1] | {"H": H}))
    view, group = H.view, actors._backend._team.group
    os.kill(group.processes[1], signal.SIGKILL)
    mix(**(cases()["rotated"][1] | {"H": H}))
    assert actors._backend._team.group is not group
    np.testing.assert_array_equal(view, H.to_numpy())
    assert np.shares_memory(view, H.view)


@pytest.mark.all("test_a_run_whose_worker_dies_is_done_again")
def test_a_run_right_after_an_actor_was_killed_changes_arrays_once(actors):
    """Whether its death is noticed before the call or only when it does not answer: nothing ran yet."""
    H, expected = array(integers(40)), integers(40)
    for victim in (0, WORKERS - 1):
        mix(**(cases()["rotated"][1] | {"H": H}))
        os.kill(actors._backend._team.group.processes[victim], signal.SIGKILL)
    mix(**(cases()["rotated"][1] | {"H": H}))
    with orion.session("serial"):
        for _ in range(3):
            mix(**(cases()["rotated"][1] | {"H": expected}))
    np.testing.assert_array_equal(H.to_numpy(), expected)


@pytest.mark.all("test_a_run_whose_worker_dies_is_done_again")
def test_a_run_whose_workers_die_again_and_again_is_given_up(actors, monkeypatch):
    from orion.runtime.ray.lines import LostError

    tried = []

    def dead(line, orders):
        tried.append(orders)
        raise LostError(1, "its process has ended")

    monkeypatch.setattr("orion.runtime.ray.lines.ChannelLine.start", dead)
    with pytest.raises(orion.WorkerLostError, match=r"worker 1 died before the loop began(?s:.*)nothing has") as e:
        mix(**cases()["dist arrays"][1])
    assert [len(orders) for orders in tried] == [WORKERS] * 3
    assert not hasattr(e.value, "__notes__")


def test_what_the_cluster_has_no_room_for_is_refused(actors):
    mix(**cases()["rotated"][1])  # Ray runs, with a CPU for each worker
    with (
        orion.session("ray", WORKERS + 1, force_parallel=True),
        pytest.raises(orion.ArgumentError, match=f"no room for {WORKERS + 1} workers"),
    ):
        mix(**cases()["rotated"][1])
    with pytest.raises(orion.ArgumentError, match="Ray client"), orion.session("ray", address="ray://host:10001"):
        pass


def test_an_inner_session_is_told_at_once_that_the_outer_one_holds_the_cpus(actors):
    mix(**cases()["rotated"][1])
    with (
        orion.session("ray", 2, force_parallel=True),
        pytest.raises(orion.ArgumentError, match=rf"this process hold {WORKERS}(?s:.*)`orion.shutdown\(\)`"),
    ):
        mix(**cases()["rotated"][1])


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_serial_loop_shares_the_tiles_of_the_others_over_its_array(actors):
    R, W, H = cases()["rotated"][1]["R"], integers(60), integers(40)
    with orion.session("serial"):
        expected = mix_and_last(R, integers(60), integers(40))
    for _ in range(2):
        assert mix_and_last(R, W.copy(), H.copy()) == expected
    layout = R._elements
    mix_and_last(R, W, H)
    assert R._elements is layout


@orion.parallel_for
def mix_and_last(R, W, H):
    for (i, j), r in R:
        W[i] = W[i] * 31 + H[j] + r
        H[j] = H[j] * 17 + W[i]
    last = 0
    for (i, _j), r in R:
        last = (last * 5 + W[i] + r) % 1009
    return last


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_is_told_that_it_cannot_use_ray_and_ends_nothing(actors):
    mix(**cases()["rotated"][1])
    group = actors._backend._team.group
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(20)
            with pytest.raises(orion.ArgumentError, match="forked off"):
                mix(**cases()["rotated"][1])
            orion.shutdown()
            orion.init("threads", 2)
            mix(**cases()["rotated"][1])
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    mix(**cases()["rotated"][1])
    assert actors._backend._team.group is group


@pytest.mark.all("test_ctrl_c_leaves_at_the_next_tile")
def test_ray_may_be_restarted_and_ctrl_c_while_actors_start_leaves_none(actors, expected, monkeypatch):
    import ray

    mix(**cases()["rotated"][1])
    ray.shutdown()
    killed = []

    def interrupted(references, **options):
        raise KeyboardInterrupt

    def kill(actor, **options):
        killed.append(actor)

    with monkeypatch.context() as patch:
        patch.setattr(ray, "wait", interrupted)
        patch.setattr(ray, "kill", kill)
        with pytest.raises(KeyboardInterrupt):
            mix(**cases()["rotated"][1])
    assert len(killed) == WORKERS
    assert not ray.is_initialized()
    assert_same(outcome("two loops"), expected["two loops"])


def test_ending_the_session_from_another_thread_waits_for_the_loop(actors, expected):
    outcome("two loops")
    results = []
    caller = threading.Thread(target=lambda: results.append(outcome("two loops")), daemon=True)
    caller.start()
    actors.close()
    caller.join()
    assert_same(results[0], expected["two loops"])


def test_too_many_workers_for_this_machine_are_refused_before_ray_is_started(actors, monkeypatch):
    import ray

    actors.close()
    monkeypatch.setattr("orion.runtime.ray.membership.cores", lambda: 2)
    with (
        orion.session("ray", 300, force_parallel=True),
        pytest.raises(orion.ArgumentError, match=r"(?s)workers=300 is too many.*\d+ are the limit"),
    ):
        divides(np.zeros(300), 2)
    assert not ray.is_initialized()


def test_an_array_of_which_workers_have_a_copy_cannot_be_resized_but_made_anew(actors):
    a = np.zeros(8)
    divides(a, 2)
    with pytest.raises(ValueError, match="cannot resize an array that references or is referenced"):
        a.resize(12, refcheck=False)
    a = np.resize(a, 12)
    before = a.copy()
    divides(a, 2)
    divides.serial(before, 2)
    np.testing.assert_array_equal(a, before)


@pytest.mark.all("test_ending_the_session_from_another_thread_waits_for_the_loop")
def test_ray_outlives_the_thread_that_started_it(actors, expected):
    import ray

    actors.close()
    caller = threading.Thread(target=outcome, args=("two loops",))
    caller.start()
    caller.join()
    time.sleep(0.5)
    assert ray.get(ray.remote(num_cpus=0)(lambda: 5).remote(), timeout=30) == 5
    group = actors._backend._team.group
    assert_same(outcome("two loops"), expected["two loops"])
    assert actors._backend._team.group is group


def test_numbers_of_classes_that_the_actors_do_not_know(tmp_path):
    """Such as an IntEnum of the script: they are passed, and found in globals, as plain numbers."""
    script = tmp_path / "script.py"
    script.write_text(
        "import enum, numpy as np, orion\n"
        "class Mode(enum.IntEnum):\n"
        "    ADD = 2\n"
        "STEP = Mode.ADD\n"
        "@orion.parallel_for\n"
        "def add(a, mode):\n"
        "    for i in range(a.shape[0]):\n"
        "        a[i] += mode * 10 + STEP\n"
        "    return mode + STEP\n"
        "a = np.zeros(1000)\n"
        "with orion.session('ray', 1, force_parallel=True):\n"
        "    print(add(a, Mode.ADD), set(a.tolist()))\n"
    )
    root = Path(__file__).resolve().parents[1]
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=root, env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True, text=True, timeout=280, check=True,
    )  # fmt: skip
    assert ran.stdout.splitlines()[-1] == "4 {22.0}"


def own_files() -> list[str]:
    return [name for name in os.listdir("/dev/shm") if name.startswith("orion")]


ENDINGS = {
    "success": "",
    "error": "raise SystemExit(3)",
    "killed": "import os; os.kill(os.getpid(), 9)",
}


@pytest.mark.all("test_kill.py::test_nothing_is_left_of_a_program_that_ends")
@pytest.mark.parametrize("ending", one_in(len(ENDINGS), [*ENDINGS]))  # more of them: `test_kill.py`
def test_nothing_is_left_when_the_interpreter_ends(ending, tmp_path):
    """Without `shutdown`: neither processes of the Ray that was started, nor files in shared memory."""
    script = tmp_path / "script.py"
    script.write_text(
        "import orion, sys\n"
        "from tests.runtime_programs import outcome\n"
        "orion.init('ray', 2, force_parallel=True)\n"
        "outcome('rotated')\n"
        "import ray\n"
        "print(ray._private.worker._global_node.get_session_dir_path(), flush=True)\n" + ENDINGS[ending]
    )
    root = Path(__file__).resolve().parents[1]
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=root, env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    session = ran.stdout.split()[-1]
    end = time.monotonic() + 20
    while (left := processes_mentioning(session)) and time.monotonic() < end:
        time.sleep(0.2)
    assert left == []
    assert own_files() == []


def processes_mentioning(text: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command:
            found.append(command[:200])
    return found
