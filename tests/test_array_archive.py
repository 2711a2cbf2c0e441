"""Arrays in files: what is written is read back to the bit; what is damaged, or cannot be written, is told of."""

import errno
import os
import re
import signal
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import orion
from orion.arrays.dtypes import SUPPORTED
from orion.arrays.files import archive
from orion.arrays.files.archive import read_archive, write_archive
from orion.arrays.files.whole import write_whole

rng = np.random.default_rng(0)
COORDS = np.divmod(rng.choice(300, 40, replace=False), 20)


def same(one, other):
    if isinstance(one, orion.SparseArray):
        assert isinstance(other, orion.SparseArray)
        parts = [(a.coords, a.values if isinstance(a.values, tuple) else (a.values,), a.shape) for a in (one, other)]
        arrays = [[*keys, *values] for keys, values, _ in parts]
        assert parts[0][2] == parts[1][2]
        return all(a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in zip(*arrays, strict=True))
    if isinstance(one, np.ndarray | orion.DenseArray):
        assert type(one) is type(other)
        one, other = np.asarray(one), np.asarray(other)
        return one.tobytes() == other.tobytes() and one.dtype == other.dtype and one.shape == other.shape
    return type(one) is type(other) and one == other


VALUES = {
    "dense": orion.array(rng.normal(size=(5, 3))),
    "narrow": orion.array(rng.integers(0, 9, (2, 3, 5)), dtype="int8"),
    "nothing": orion.zeros((0, 4)),
    "one": orion.array(3.5),
    "special": orion.array([np.nan, -0.0, np.inf, 5e-324]),
    "sparse": orion.sparse(COORDS, rng.random(40), shape=(15, 20)),
    "pairs": orion.sparse(COORDS, (rng.random(40), np.arange(40, dtype=np.int16)), shape=(15, 20)),
    "empty": orion.sparse(([], []), np.zeros(0), shape=(4, 5)),
    "numpy": rng.random((4, 5))[:, ::2],
    "columns": np.asfortranarray(rng.random((4, 5))),
    "int": 2**70,
    "float": 0.1,
    "text": "naïve",
    "none": None,
    "true": True,
    "scalar": np.float32(0.1),
    "smallest": np.int64(-(2**63)),
} | {f"of {kind.name}": orion.array(np.arange(7) % 2, dtype=kind) for kind in sorted(SUPPORTED, key=str)}


def test_what_is_written_is_read_back(tmp_path):
    write_archive(tmp_path / "all", VALUES)
    found = read_archive(tmp_path / "all")
    assert [name for name in VALUES if not same(found[name], VALUES[name])] == []
    assert found.keys() == VALUES.keys()
    assert os.listdir(tmp_path) == ["all"]


@pytest.mark.parametrize("name", [name for name, one in VALUES.items() if isinstance(one, orion.DistArray)])
def test_an_array_in_a_file_of_its_own(tmp_path, name):
    VALUES[name].save(tmp_path / "one.npz")
    assert same(orion.load(tmp_path / "one.npz"), VALUES[name])


def test_a_file_is_one_that_numpy_reads(tmp_path):
    VALUES["dense"].save(tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as found:
        np.testing.assert_array_equal(found["array"], VALUES["dense"].to_numpy())


def test_the_same_values_are_the_same_file(tmp_path):
    for name in ("a", "b"):
        write_archive(tmp_path / name, VALUES)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_values_that_loops_have_stored_are_those_that_are_saved(tmp_path):
    @orion.parallel_for
    def double(R):
        for (i, j), r in R:
            R[i, j] = 2 * r

    mine = orion.sparse(COORDS, np.arange(40.0), shape=(15, 20))
    double(mine)
    mine.save(tmp_path / "stored.npz")
    assert same(orion.load(tmp_path / "stored.npz"), orion.sparse(COORDS, 2 * np.arange(40.0), shape=(15, 20)))


# ---------------------------------------------------------------- damaged files


def test_no_changed_byte_goes_unnoticed(tmp_path):
    """Every byte of a file changed, one at a time: it is refused, or the values are the same."""
    values = {"W": VALUES["dense"], "R": VALUES["sparse"], "epoch": 3}
    path = tmp_path / "file"
    write_archive(path, values)
    whole = path.read_bytes()
    refused = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 + at % 255)]) + whole[at + 1 :])
        try:
            found = read_archive(path)
        except orion.DataFormatError:
            refused += 1
        else:
            assert all(same(found[name], values[name]) for name in values)
    assert refused > 0.8 * len(whole)


def test_no_file_that_ends_too_soon_is_taken(tmp_path):
    path = tmp_path / "file"
    write_archive(path, {"W": VALUES["dense"]})
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(orion.DataFormatError, match="damaged, or no file of arrays"):
            read_archive(path)


@pytest.mark.parametrize("change", ["a member less", "a member more", "another shape", "a later version", "objects"])
def test_a_file_that_contradicts_itself_is_refused(tmp_path, change):
    path, other = tmp_path / "file", tmp_path / "other"
    write_archive(path, {"W": VALUES["dense"]})
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(other, "w") as changed:
        for name in whole.namelist():
            data = whole.read(name)
            if name == "W.npy" and change == "a member less":
                continue
            if name == "orion.json" and change == "another shape":
                data = data.replace(b"5", b"4")
            if name == "orion.json" and change == "a later version":
                data = data.replace(b'"version": 1', b'"version": 2')
            if name == "W.npy" and change == "objects":
                data = data.replace(b"<f8", b"|O8")
            changed.writestr(name, data)
        if change == "a member more":
            changed.writestr("V.npy", b"")
    with pytest.raises(orion.DataFormatError, match="has version 2" if "later" in change else "damaged"):
        read_archive(other)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(orion.StorageError, match="No such file"):
        orion.load(tmp_path / "nothing")
    with pytest.raises(orion.StorageError, match="it is a folder"):
        orion.load(tmp_path)
    (tmp_path / "text").write_text("3 4 5\n")
    with pytest.raises(orion.DataFormatError, match="damaged, or no file of arrays"):
        orion.load(tmp_path / "text")
    write_archive(tmp_path / "many", {"W": VALUES["dense"], "epoch": 3})
    with pytest.raises(orion.DataFormatError, match=r"(?s)does not hold one array.*orion.restore"):
        orion.load(tmp_path / "many")


# ---------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize("value", [object(), np.array([object()]), [1, 2], np.array("text"), {"a": 1}, 3j])
def test_values_that_no_file_holds_are_refused_before_anything_is_written(tmp_path, value):
    with pytest.raises(orion.ArgumentError, match="`W` is a"):
        write_archive(tmp_path / "file", {"W": value})
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("after", [0, 100, 3_000, 40_000])
def test_a_disk_that_is_full_leaves_what_was_there(tmp_path, monkeypatch, after):
    path = tmp_path / "file"
    write_archive(path, {"W": VALUES["dense"]})
    before = path.read_bytes()
    real = archive.Path.open

    def full(self, *arguments, **named):
        file = real(self, *arguments, **named)
        write, written = file.write, [0]

        def limited(data):
            written[0] += len(data)
            if written[0] > after:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(data)

        return Limited(file, limited)

    monkeypatch.setattr(archive.Path, "open", full)
    with pytest.raises(orion.StorageError, match=r"(?s)cannot be written.*No space left.*as it was"):
        write_archive(path, {"W": orion.ones((100, 100))})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]


class Limited:
    """A file that takes so many bytes."""

    def __init__(self, file, write):
        self._file, self.write = file, write

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


def test_what_interrupts_writing_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(archive.npy, "write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_archive(tmp_path / "file", {"W": VALUES["dense"]})
    assert not os.listdir(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(orion.StorageError, match=r"(?s)nothing/file.*No such file"):
        VALUES["dense"].save(tmp_path / "nothing" / "file")


def test_names_that_would_be_the_same_member_are_refused(tmp_path):
    S, a = VALUES["sparse"], np.zeros(3)
    for names in ({"W": S, "W.key0": a}, {"W.value0": a, "W": S}):
        with pytest.raises(orion.ArgumentError, match=r"would both be `W\.(key|value)0\.npy`"):
            write_archive(tmp_path / "file", names)
    for name in ("a\0b", "\ud800", "x" * 2000, "a\n"):
        with pytest.raises(orion.ArgumentError, match="is no name for a value"):
            write_archive(tmp_path / "file", {name: a})
    assert not os.listdir(tmp_path)
    odd = {"a/b": a, "..": a + 1, "": a + 2, "orion.json": a + 3, "é": a + 4}
    write_archive(tmp_path / "file", odd)
    assert {name: one.tolist() for name, one in read_archive(tmp_path / "file").items()} == {
        name: one.tolist() for name, one in odd.items()
    }


def test_arrays_of_another_byte_order_are_written_in_that_of_this_machine(tmp_path):
    write_archive(tmp_path / "file", {"a": np.arange(4, dtype=">f8")})
    found = read_archive(tmp_path / "file")["a"]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.arange(4.0))


@pytest.mark.parametrize("value", [np.ma.masked_array([1.0, 2.0], [0, 1]), np.zeros(2, "f4,i4")])
def test_arrays_that_are_more_than_numbers_are_refused(tmp_path, value):
    with pytest.raises(orion.ArgumentError, match="`a` is a .* of " + re.escape(str(value.dtype))):
        write_archive(tmp_path / "file", {"a": value})


def test_links_permissions_and_special_files(tmp_path):
    target, link, pipe = tmp_path / "target", tmp_path / "latest", tmp_path / "pipe"
    VALUES["dense"].save(target)
    target.chmod(0o600)
    link.symlink_to(target)
    VALUES["narrow"].save(link)
    assert link.is_symlink()
    assert same(orion.load(target), VALUES["narrow"])
    assert target.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    for call in (lambda: VALUES["dense"].save(pipe), lambda: orion.load(pipe), lambda: orion.load("/dev/full")):
        with pytest.raises(orion.StorageError, match="it is no regular file"):
            call()
    assert sorted(os.listdir(tmp_path)) == ["latest", "pipe", "target"]


def test_home_folders_are_meant_by_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    orion.ones(3).save("~/ones.npz")
    np.testing.assert_array_equal(orion.load("~/ones.npz"), np.ones(3))
    orion.checkpoint("~/run", a=np.ones(2), epoch=3)
    assert orion.restore("~/run", a=np.zeros(2))["epoch"] == 3
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ones.npz", "run"]


def test_pictures_and_traces_are_written_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    @orion.parallel_for
    def double(a):
        for i in range(a.shape[0]):
            a[i] *= 2.0

    with orion.profile() as profile:
        double(np.ones(100))
    plan = double.plan(np.ones(100))
    for save in (profile.save_svg, profile.save_trace, plan.save_svg):
        save(tmp_path / "file")
        before = (tmp_path / "file").read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(orion.StorageError, match="No space left"):
                save(tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == ["file"]
        with pytest.raises(orion.StorageError, match="cannot be written"):
            save(tmp_path / "no folder" / "file")


def test_what_killed_writers_have_left_is_removed_by_the_next_that_writes_there(tmp_path):
    """And nothing else: neither that of a writer that lives, nor of another file."""
    path, array = tmp_path / "one.npz", VALUES["dense"]
    code = f"""
import os, signal, orion
from orion.arrays.files.whole import write_whole
def write(file):
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
write_whole({str(path)!r}, write)
"""
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".one.npz.")
    others = [f".one.npz.{'0' * 31}.tmp", f".two.npz.{'0' * 32}.tmp", f".one.npz.{'0' * 32}.tmp.bak"]
    for name in others:
        (tmp_path / name).touch()

    def write(file):
        file.write(b"mine")
        array.save(path)  # as another process, or thread, does meanwhile

    write_whole(path, write)
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "one.npz"])
    assert path.read_bytes() == b"mine"
    array.save(path)
    assert same(orion.load(path), array)


def test_threads_that_write_one_file_leave_it_whole_and_nothing_else(tmp_path):
    path = tmp_path / "one.npz"
    arrays = [orion.full(3000, k) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: arrays[k % 4].save(path), range(200)))
    assert len(set(orion.load(path).to_numpy())) == 1
    assert os.listdir(tmp_path) == ["one.npz"]
