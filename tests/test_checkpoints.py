"""`orion.checkpoint` and `orion.restore`: what is kept is whole, the newest two stay, nothing is half restored."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import orion
from orion.arrays.files import archive
from orion.runtime import checkpoints


@orion.parallel_for
def add(W, k):
    for i in range(W.shape[0]):
        W[i] += k


def files(folder):
    return sorted(one for one in os.listdir(folder) if not one.startswith(".lock"))


def test_a_program_goes_on_where_it_was(tmp_path):
    W, a = orion.zeros(100), np.zeros(3)
    with orion.session(workers=2):
        for epoch in range(3):
            add(W, epoch)
            a += epoch
            assert orion.checkpoint(tmp_path, W=W, a=a, epoch=epoch).is_file()
    assert files(tmp_path) == ["checkpoint-000002.npz", "checkpoint-000003.npz"]
    V, b = orion.ones(100), np.ones(3)
    found = orion.restore(tmp_path, W=V, a=b)
    assert found["W"] is V
    assert found["epoch"] == 2
    np.testing.assert_array_equal(V.to_numpy(), 3.0)
    np.testing.assert_array_equal(b, 3.0)
    np.testing.assert_array_equal(orion.restore(tmp_path)["W"].to_numpy(), 3.0)
    np.testing.assert_array_equal(orion.restore(tmp_path / "checkpoint-000002.npz")["W"].to_numpy(), 1.0)


def test_a_damaged_one_is_named_and_the_one_before_is_there(tmp_path):
    W = orion.zeros(1000)
    with orion.session(workers=1):
        for k in range(2):
            add(W, 1.0)
            orion.checkpoint(tmp_path, W=W, epoch=k)
    newest = tmp_path / "checkpoint-000002.npz"
    newest.write_bytes(newest.read_bytes()[:2000])
    mine = orion.full(1000, 7.0)
    with pytest.raises(orion.DataFormatError, match=r"checkpoint-000002\.npz is damaged"):
        orion.restore(tmp_path, W=mine)
    np.testing.assert_array_equal(mine.to_numpy(), 7.0)
    assert orion.restore(tmp_path / "checkpoint-000001.npz", W=mine)["epoch"] == 0
    np.testing.assert_array_equal(mine.to_numpy(), 1.0)


SECTIONS = {
    "the description": b'"format"', "the shape of an array": b"'shape'", "elements": np.full(4, 2.0).tobytes(),
    "the directory": b"PK\x01\x02", "the end": b"PK\x05\x06",
}  # fmt: skip


@pytest.mark.parametrize("section", SECTIONS)
def test_damage_in_any_section_leaves_arrays_alone_and_the_one_before(tmp_path, section):
    W, R = orion.zeros(1000), orion.sparse(([0, 3], [1, 2]), np.ones(2), shape=(4, 4))
    with orion.session(workers=1):
        for k in range(2):
            add(W, 1.0)
            orion.checkpoint(tmp_path, W=W, R=R, epoch=k)
        newest = tmp_path / "checkpoint-000002.npz"
        data = bytearray(newest.read_bytes())
        place = data.rindex(SECTIONS[section])
        data[place + 2] ^= 0x10
        newest.write_bytes(data)
        mine = orion.full(1000, 7.0)
        with pytest.raises(orion.DataFormatError, match=r"(?s)checkpoint-000002\.npz is damaged.*take an earlier file"):
            orion.restore(tmp_path, W=mine)
        np.testing.assert_array_equal(mine.to_numpy(), 7.0)
        assert orion.restore(tmp_path / "checkpoint-000001.npz", W=mine)["epoch"] == 0
        np.testing.assert_array_equal(mine.to_numpy(), 1.0)
        orion.checkpoint(tmp_path, W=W, R=R, epoch=2)  # the next one stands beside the damaged one
    assert orion.restore(tmp_path)["epoch"] == 2


def test_automatic_ones_are_written_after_runs(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    W = orion.zeros(10)
    with orion.session(workers=1):
        orion.checkpoint(tmp_path, every=60, W=W)
        for seconds in (30, 59, 61, 62, 125):
            now[0] = seconds
            add(W, 1.0)
    assert files(tmp_path) == ["checkpoint-000002.npz", "checkpoint-000003.npz"]
    np.testing.assert_array_equal(orion.restore(tmp_path)["W"].to_numpy(), 5.0)
    np.testing.assert_array_equal(orion.restore(tmp_path / "checkpoint-000002.npz")["W"].to_numpy(), 3.0)
    now[0] = 1000.0
    with orion.session(workers=1):
        add(W, 1.0)  # that of the session that has ended is no longer written
    assert files(tmp_path) == ["checkpoint-000002.npz", "checkpoint-000003.npz"]


@pytest.mark.parametrize("seconds", [0.0, 1e12])
def test_a_clock_that_is_set_changes_nothing(tmp_path, monkeypatch, seconds):
    """Neither back nor on: what counts is the time that has passed."""
    W, now = orion.zeros(10), [0.0]
    with orion.session(workers=1):
        monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
        orion.checkpoint(tmp_path, every=3600, W=W)
        for name in ("time", "time_ns"):
            monkeypatch.setattr(time, name, lambda: seconds)
        add(W, 1.0)
        assert files(tmp_path) == ["checkpoint-000001.npz"]
        now[0] = 3600.0
        add(W, 1.0)
    assert files(tmp_path) == ["checkpoint-000001.npz", "checkpoint-000002.npz"]
    np.testing.assert_array_equal(orion.restore(tmp_path)["W"].to_numpy(), 2.0)


def test_an_automatic_one_that_cannot_be_written_is_warned_of(tmp_path, monkeypatch):
    W, real = orion.zeros(10), checkpoints.write_archive

    def full(path, values, **named):
        raise orion.StorageError(f"{path} cannot be written\n  why:  No space left on device")

    with orion.session(workers=1):
        orion.checkpoint(tmp_path, every=1e-9, W=W)
        monkeypatch.setattr(checkpoints, "write_archive", full)
        with pytest.warns(orion.CheckpointWarning, match="No space left") as told:
            add(W, 1.0)
        assert told[0].filename == __file__
        monkeypatch.setattr(checkpoints, "write_archive", real)
        add(W, 1.0)
    np.testing.assert_array_equal(orion.restore(tmp_path)["W"].to_numpy(), 2.0)


def test_a_folder_belongs_to_one_session(tmp_path):
    W = orion.zeros(10)
    with orion.session(workers=1):
        orion.checkpoint(tmp_path, W=W)
        with (
            orion.session(workers=2),
            pytest.raises(orion.ArgumentError, match="another session writes checkpoints to"),
        ):
            orion.checkpoint(tmp_path, W=W)
        code = f"import orion; orion.checkpoint({str(tmp_path)!r}, W=orion.zeros(3))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another session writes checkpoints to" in done.stderr
    with orion.session(workers=2):
        orion.checkpoint(tmp_path, W=W)
    assert len(files(tmp_path)) == 2


def test_a_folder_by_another_path_is_the_same_folder(tmp_path):
    W, folder, link = orion.zeros(10), tmp_path / "run", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    with orion.session(workers=1):
        orion.checkpoint(folder, W=W)
        assert orion.checkpoint(link, W=W).name == "checkpoint-000002.npz"
        with orion.session(workers=1), pytest.raises(orion.ArgumentError, match="another session writes"):
            orion.checkpoint(link, W=W)


def test_threads_that_write_at_the_same_time(tmp_path):
    arrays = [orion.full(20_000, k) for k in range(4)]
    with orion.session(workers=1), ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda k: orion.checkpoint(tmp_path, W=arrays[k % 4], k=k % 4), range(40)))
    assert len(set(paths)) == 40
    assert files(tmp_path) == ["checkpoint-000039.npz", "checkpoint-000040.npz"]
    for path in sorted(paths)[-2:]:
        found = orion.restore(path)
        np.testing.assert_array_equal(found["W"].to_numpy(), found["k"])


def test_a_folder_that_is_gone(tmp_path):
    folder, W = tmp_path / "run", orion.zeros(3)
    with orion.session(workers=1):
        orion.checkpoint(folder, every=1e-9, W=W)
        shutil.rmtree(folder)
        with pytest.warns(orion.CheckpointWarning, match="No such file"):
            add(W, 1.0)
        with pytest.raises(orion.StorageError, match="No such file"):
            orion.restore(folder)


def test_a_process_that_is_killed_while_it_writes_leaves_whole_files(tmp_path):
    code = f"""
import orion
W = orion.zeros(300_000)
n = 0
while True:
    W[:] = n
    orion.checkpoint({str(tmp_path)!r}, W=W, n=n)
    n += 1
"""
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", code])
        end = time.monotonic() + 60
        while all(one.endswith(".tmp") for one in files(tmp_path)) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.3 * np.random.default_rng().random())
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = orion.restore(tmp_path)
        np.testing.assert_array_equal(found["W"].to_numpy(), found["n"])
    with orion.session(workers=1):  # what the dead have left is in nobody's way
        orion.checkpoint(tmp_path, W=orion.zeros(3))
    assert [one for one in files(tmp_path) if one.endswith(".tmp")] == []


def test_what_cannot_be_kept_or_restored(tmp_path):
    W = orion.zeros(10)
    refused = [
        (lambda: orion.checkpoint(tmp_path), "a checkpoint of nothing"),
        (lambda: orion.checkpoint(tmp_path, W=[1, 2]), "`W` is a list"),
        (lambda: orion.checkpoint(tmp_path, every=0, W=W), "every=0 is no number of seconds"),
        (lambda: orion.checkpoint(tmp_path, every="1", W=W), "every='1' is no number"),
        (
            lambda: orion.checkpoint(tmp_path, every=5, W=W, epoch=3),
            r"(?s)arrays and accumulators alone.*`epoch` would be 3 in all",
        ),
        (lambda: orion.restore(tmp_path), "there is no checkpoint in"),
    ]
    with orion.session(workers=1):
        for call, message in refused:
            with pytest.raises(orion.ArgumentError, match=message):
                call()
        with pytest.raises(orion.StorageError, match=r"cannot hold checkpoints"):
            orion.checkpoint("/proc/nothing", W=W)
        orion.checkpoint(tmp_path, W=W, R=orion.sparse(([0], [1]), np.ones(1)), n=1)
    frozen = np.zeros(10)
    frozen.flags.writeable = False
    for into, message in [
        ({"V": W}, r"(?s)has no `V`.*it has W, R, n"),
        ({"W": orion.zeros(9)}, r"`W` in .* is float64\[10\], the array given is float64\[9\]"),
        ({"W": orion.zeros(10, dtype="float32")}, "the array given is float32"),
        ({"W": 3}, "`W` is a int, which is not filled in place"),
        ({"n": np.zeros(3)}, "`n` in .* is 1, not a dense array"),
        ({"R": np.zeros((1, 2))}, "`R` in .* is a sparse array"),
        ({"W": frozen}, "nobody may write to"),
    ]:
        with pytest.raises(orion.ArgumentError, match=message):
            orion.restore(tmp_path, **into)


def test_nothing_is_changed_where_one_of_several_does_not_fit(tmp_path):
    with orion.session(workers=1):
        orion.checkpoint(tmp_path, W=orion.ones(3), H=orion.ones(4))
    W = orion.zeros(3)
    with pytest.raises(orion.ArgumentError):
        orion.restore(tmp_path, W=W, H=orion.zeros(5))
    np.testing.assert_array_equal(W.to_numpy(), 0.0)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_arrays_of_actors(tmp_path):
    W = orion.zeros(1000)
    with orion.session("ray", 2, force_parallel=True):
        add(W, 1.0)
        orion.checkpoint(tmp_path, W=W)
        add(W, 1.0)
        orion.restore(tmp_path, W=W)
        add(W, 0.5)
    np.testing.assert_array_equal(W.to_numpy(), 1.5)


@orion.parallel_for
def divide(W, n):
    for t in range(n):
        share = 1 / (n - 3 - t)
        for i in range(W.shape[0]):
            W[i] += share


@pytest.mark.parametrize("kind", [orion.zeros, np.zeros])
def test_what_a_failed_call_has_left_is_not_kept(tmp_path, kind):
    W, V = kind(100), orion.zeros(10)
    with orion.session(workers=2, force_parallel=True):
        orion.checkpoint(tmp_path, every=1e-9, W=W)
        add(W, 1.0)
        with pytest.raises(ZeroDivisionError):
            divide(W, 5)
        with pytest.warns(orion.CheckpointWarning, match=r"(?s)`W` may hold a part.*once more"):
            add(V, 1.0)
        assert set(np.asarray(orion.restore(tmp_path)["W"])) == {1.0}
        W[:] = 5.0
        orion.checkpoint(tmp_path, every=1e-9, W=W)
        add(V, 1.0)
        assert set(np.asarray(orion.restore(tmp_path)["W"])) == {5.0}


def test_loops_of_several_threads_with_automatic_ones(tmp_path):
    arrays = [orion.zeros(1000) for _ in range(4)]
    with orion.session(workers=2, force_parallel=True), ThreadPoolExecutor(4) as pool:
        orion.checkpoint(tmp_path, every=1e-9, **{f"W{k}": one for k, one in enumerate(arrays)})
        list(pool.map(lambda k: [add(arrays[k], 1.0) for _ in range(20)], range(4)))
        found = orion.restore(tmp_path)
        assert all(len(set(found[f"W{k}"].to_numpy())) == 1 for k in range(4))  # none in the middle of a call
    assert len(files(tmp_path)) == 2


def test_a_forked_child_leaves_the_folder_to_its_parent(tmp_path):
    code = f"""
import os, orion
from tests.test_checkpoints import add
W = orion.zeros(10)
with orion.session(workers=1):
    add(W, 1.0)
    orion.checkpoint({str(tmp_path)!r}, every=1e-9, W=W)
    child = os.fork()
    if not child:
        add(W, 100.0)
        os._exit(0)
    os.waitpid(child, 0)
    print(orion.restore({str(tmp_path)!r})["W"][0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "1.0\n", done.stderr


@pytest.mark.parametrize("every", [np.int64(2), np.float32(1), 3])
def test_numbers_of_any_kind_are_seconds(tmp_path, every):
    with orion.session(workers=1):
        orion.checkpoint(tmp_path, every=every, W=orion.zeros(3))


@orion.parallel_for
def add_often(W, n):
    for _ in range(n):
        for i in range(W.shape[0]):
            W[i] += 1.0


def test_none_is_written_in_the_middle_of_a_loop(tmp_path):
    """A handler that asks for one is told so; one of another thread waits for the end of the loop."""
    W = orion.zeros(20_000)

    def handler(*_):
        orion.checkpoint(tmp_path, W=W)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with orion.session(workers=2, force_parallel=True):
            add_often(W, 1)
            is_over = threading.Event()

            def ask():  # before the loop runs, while it is planned, one may be written
                while not is_over.wait(0.05):
                    os.kill(os.getpid(), signal.SIGUSR1)

            asking = threading.Thread(target=ask)
            asking.start()
            with pytest.raises(orion.PlanError, match="asked for a checkpoint, while a loop runs"):
                add_often(W, 100_000)
            is_over.set()
            asking.join()
            W[:] = 0.0
            other = threading.Thread(target=lambda: (time.sleep(0.05), orion.checkpoint(tmp_path, W=W)))
            other.start()
            add_often(W, 20_000)
            other.join()
            assert len(set(orion.restore(tmp_path)["W"].to_numpy())) == 1
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_ctrl_c_while_an_automatic_one_is_written(tmp_path, monkeypatch):
    """The call is through: its results are whole, and nothing is half-written. The checkpoint is written after the next
    call."""
    W, real = orion.zeros(10), archive.npy.write_array

    def interrupted(file, array, **named):
        real(file, array, **named)
        signal.raise_signal(signal.SIGINT)

    with orion.session(workers=1):
        orion.checkpoint(tmp_path, every=0.5, W=W)
        time.sleep(0.6)
        with monkeypatch.context() as patch:
            patch.setattr(archive.npy, "write_array", interrupted)
            with pytest.raises(KeyboardInterrupt):
                add(W, 1.0)
        np.testing.assert_array_equal(W.to_numpy(), 1.0)
        assert files(tmp_path) == ["checkpoint-000001.npz"]
        np.testing.assert_array_equal(orion.restore(tmp_path)["W"].to_numpy(), 0.0)
        add(W, 1.0)
        np.testing.assert_array_equal(orion.restore(tmp_path)["W"].to_numpy(), 2.0)


def test_a_disk_that_is_full_leaves_the_one_before(tmp_path):
    """Of a limit for files the system says what it does of a full disk: no more can be written."""
    code = f"""
import resource, warnings, orion
from tests.test_checkpoints import add
W, V = orion.ones(1000), orion.ones(20_000)
add(V, 1.0)
orion.checkpoint({str(tmp_path)!r}, every=1e-9, V=V)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    orion.checkpoint({str(tmp_path)!r}, V=V)
except orion.StorageError as error:
    print(error)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    add(V, 1.0)
print(*(one.message for one in told))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    by_hand, automatic = done.stdout.split("no checkpoint was written: ")
    for said in (by_hand, automatic):
        assert re.search(r"(?s)checkpoint-000002.npz cannot be written.*File too large.*is as it was; make room", said)
    assert files(tmp_path) == ["checkpoint-000001.npz"]
    np.testing.assert_array_equal(orion.restore(tmp_path)["V"].to_numpy(), 2.0)


FULL = """
import os, warnings, numpy as np, orion
from tests.test_checkpoints import add
V, filler = orion.ones(20_000), "{folder}/filler"
with orion.session(workers=2):
    add(V, 1.0)
    orion.checkpoint("{folder}/run", every=1e-9, V=V)
    with open(filler, "wb") as file:
        file.write(bytes(os.statvfs("{folder}").f_bavail * 4096 - 100_000))
    for write in (lambda: orion.checkpoint("{folder}/run", V=V), lambda: V.save("{folder}/V.npz")):
        try:
            write()
        except orion.StorageError as error:
            print(error)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        add(V, 1.0)
    print(*(one.message for one in told))
    print(sorted(os.listdir("{folder}/run")), sorted(os.listdir("{folder}")))
    os.unlink(filler)
    add(V, 1.0)
    print(sorted(os.listdir("{folder}/run")), set(np.asarray(orion.restore("{folder}/run")["V"])))
"""


def test_a_real_disk_that_is_full(tmp_path):
    """A file system of one megabyte, which only this program and its children see."""
    mount = f"mount -t tmpfs -o size=1m none {tmp_path} && exec {sys.executable} -c '{FULL.format(folder=tmp_path)}'"
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mount]
    if shutil.which("unshare") is None or subprocess.run([*command[:3], "true"], check=False).returncode:
        pytest.skip("this system lets nobody mount a file system of his own")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *said, then, at_last = done.stdout.splitlines()
    text = "\n".join(said)
    assert len(re.findall(r"(?s)npz cannot be written.*?No space left on device.*?is as it was; make room", text)) == 3
    assert "no checkpoint was written: " in text
    assert then == "['.lock', 'checkpoint-000001.npz'] ['filler', 'run']"
    assert at_last == "['.lock', 'checkpoint-000001.npz', 'checkpoint-000002.npz'] {np.float64(4.0)}"
