"""Arrays whose elements are in mapped files: how they are asked for, the same bits, and nothing left behind."""

import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.arrays.sorting import sorted_columns
from orion.arrays.storage import IN_MEMORY, KeyPieces, Pieces, Storage, current_storage, storage_from
from orion.errors import ArgumentError, StorageError


@pytest.fixture
def folder(tmp_path):
    """A folder that a session holds all elements in."""
    path = tmp_path / "spill"
    path.mkdir()
    with orion.session(spill=path, spill_above=0):
        yield path


def ratings(count=1000, seed=0):
    random = np.random.default_rng(seed)
    return orion.sparse(random.integers(0, 50, (2, count)), random.random(count).astype("f4"), shape=(50, 50))


def same(found, expected):
    """Whether two sparse arrays have the same elements to the bit, of the same types, in the same order."""
    values = (found.values, expected.values)
    pairs = zip((*found.coords, values[0]), (*expected.coords, values[1]), strict=True)
    return found.shape == expected.shape and all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


def is_in_file(array):
    return "a file in" in array._repr_html_()


# ---------------------------------------------------------------- what is asked for


@pytest.mark.parametrize(
    ("asked", "size"),
    [(0, 0), (np.int64(7), 7), ("12", 12), ("256MB", 256_000_000), ("2 GiB", 2**31), ("1kb", 1000), (None, 64 << 20)],
)
def test_sizes_are_numbers_or_texts(tmp_path, asked, size):
    assert storage_from(tmp_path, asked) == Storage(str(tmp_path), size)


@pytest.mark.parametrize("asked", [-1, True, 1.5, "much", "1.5.1GB", "-3"])
def test_other_sizes_are_refused(tmp_path, asked):
    with pytest.raises(ArgumentError, match=r"spill_above=.* is no number of bytes\n.*write a whole number"):
        orion.init(spill=tmp_path, spill_above=asked)


def test_a_size_without_a_folder_is_refused():
    with pytest.raises(ArgumentError, match="without a folder"):
        orion.init(spill_above="1GB")


def test_what_is_no_folder_is_refused(tmp_path):
    with pytest.raises(StorageError, match=r"there is no such folder\n.*make it"):
        orion.init(spill=tmp_path / "nowhere")
    with pytest.raises(ArgumentError, match="spill=3 is no folder"):
        orion.init(spill=3)


def test_the_environment_says_so_too(tmp_path, monkeypatch):
    monkeypatch.setenv("ORION_SPILL", str(tmp_path))
    monkeypatch.setenv("ORION_SPILL_ABOVE", "2MB")
    with orion.session():
        assert current_storage() == Storage(str(tmp_path), 2_000_000)
    monkeypatch.setenv("ORION_SPILL_ABOVE", "some")
    with pytest.raises(ArgumentError, match="ORION_SPILL_ABOVE='some'"):
        orion.session()


def test_without_it_elements_are_in_memory():
    with orion.session():
        assert current_storage() == IN_MEMORY
        assert not is_in_file(ratings().map(lambda v: v).materialize())


def test_only_columns_above_the_size_are_in_files(tmp_path):
    with orion.session(spill=tmp_path, spill_above=4000):
        assert not is_in_file(ratings(1000).map(lambda v: v).materialize())
        assert is_in_file(ratings(1001).map(lambda v: v).materialize())


# ---------------------------------------------------------------- columns


def test_pieces_of_several_dtypes_are_one_column(tmp_path):
    parts = [np.arange(3, dtype="i1"), np.arange(0), np.array([2.5, -1]), np.arange(5, dtype="i4")]
    for above in (0, 16, 1 << 20):
        pieces = Pieces(Storage(str(tmp_path), above))
        for part in parts:
            pieces.add(part)
        assert [piece.tolist() for piece in pieces] == [part.tolist() for part in parts if len(part)]
        assert pieces.whole(np.dtype("f8")).tolist() == np.concatenate(parts).tolist()


@pytest.mark.parametrize("above", [0, 40, 1 << 20])
def test_keys_are_wide_where_one_is(tmp_path, above):
    pieces = KeyPieces(Storage(str(tmp_path), above), 2)
    for part in (np.arange(5), np.arange(3) + 2**40, np.arange(7)):
        pieces.add((part, np.zeros(len(part), int)))
    keys = pieces.whole()
    assert [axis.dtype for axis in keys] == [np.int64] * 2
    assert keys[0].tolist() == [*range(5), *range(2**40, 2**40 + 3), *range(7)]


# ---------------------------------------------------------------- from a file to a file


def test_the_bits_are_those_of_memory(folder, tmp_path):
    path = tmp_path / "ratings.csv"
    array = ratings(5000)
    rows = zip(*array.coords, array.values, strict=True)
    path.write_text("".join(f"{i},{j},{r}\n" for i, j, r in rows))

    def chain():
        read = orion.read_csv(path, header=False, shape=(50, 50))
        made = read.map(lambda v: v * 2).filter(lambda key, v: v > 0.5).map_keys(lambda i, j: (j, i), shape=(50, 50))
        made.save(tmp_path / "made.npz")
        return read, made, orion.load(tmp_path / "made.npz")

    found = chain()
    with orion.session():
        expected = chain()
    assert all(map(is_in_file, found))
    assert not any(map(is_in_file, expected))
    assert all(map(same, found, expected))


def test_arrays_outlive_their_session(tmp_path):
    with orion.session(spill=tmp_path, spill_above=0):
        found = ratings().map(lambda v: v + 1).materialize()
    shutil.rmtree(tmp_path)
    assert same(found, ratings().map(lambda v: v + 1))


def open_files(folder):
    """How many files of a folder this process has open, those without names among them."""
    links = [os.path.join("/proc/self/fd", one) for one in os.listdir("/proc/self/fd")]
    return sum(str(folder) in os.readlink(link) for link in links if os.path.islink(link))


def test_the_disk_has_room_again_when_an_array_ends(folder):
    found = ratings().map(lambda v: v).materialize()
    assert open_files(folder) == 3  # two columns of keys, one of values
    del found
    assert open_files(folder) == 0


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_the_disk_has_room_again_after_an_error(folder, error):
    seen = []

    def failing(value):
        seen.append(value)
        if len(seen) == 100_000:
            assert open_files(folder) > 3  # what has come out so far
            raise error
        return value

    array = ratings(200_000)
    with pytest.raises(error):
        array.map(failing).materialize()
    gc.collect()
    assert open_files(folder) == 3


# ---------------------------------------------------------------- what goes wrong


def test_a_folder_that_is_gone_is_said(folder):
    made = ratings().map(lambda v: v)
    folder.rmdir()
    with pytest.raises(
        StorageError, match=f"cannot be held in files in {folder}\\n.*No such file.*\\n.*choose another"
    ):
        made.materialize()
    folder.mkdir()
    assert same(made, ratings())


def test_a_full_disk_is_said_and_ends_no_process(folder):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    made, unordered = ratings(100_000).map(lambda v: v), ratings(100_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(StorageError, match="cannot be held in files"):
            made.materialize()
        with pytest.raises(StorageError, match="cannot be held in files"):
            current_storage().empty(100_000, np.dtype("f8"))
        with pytest.raises(StorageError, match="cannot be held in files") as caught:
            next(iter(unordered))
        assert [entry.path.name for entry in caught.traceback] == [Path(__file__).name]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert same(made, ratings(100_000))


def test_a_killed_process_leaves_nothing(tmp_path):
    program = f"""
import numpy as np, orion, time
orion.init(spill={str(tmp_path)!r}, spill_above=0)
made = orion.sparse((np.arange(9),), np.ones(9)).map(lambda v: v * 2).materialize()
print(made.values.sum(), flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "18.0\n"
        assert os.listdir(tmp_path) == []
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------- memory


def peak_megabytes(tmp_path, blocks):
    """The anonymous memory that reading, mapping, filtering, saving, loading, a loop and groups take at most."""
    path = tmp_path / "ratings.csv"
    random = np.random.default_rng(0)
    keys, values = random.integers(0, 50_000, (100_000, 2)).tolist(), random.random(100_000).tolist()
    path.write_text("".join(f"{i},{j},{v:.6f}\n" for (i, j), v in zip(keys, values, strict=True)) * blocks)
    stages = Path(__file__).with_name("spilled_stages.py")
    arguments = [sys.executable, stages, tmp_path, path, tmp_path / "saved.npz"]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
    found = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=100, env=environment)
    return float(found.stdout)


def test_memory_does_not_grow_with_the_data(tmp_path):
    """Of 1.2 and 4.8 million elements of 12 bytes; fewer are not compiled, which takes memory by itself. In memory
    it would be 336 MB more."""
    small, large = peak_megabytes(tmp_path, 12), peak_megabytes(tmp_path, 48)
    assert large < small + 40, (small, large)


# ---------------------------------------------------------------- sorting


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**40) | st.integers(0, 3), st.integers(0, 3)), max_size=300),
    st.sampled_from(["i8", "u4", "i4"]),
    st.integers(1, 2),
)
def test_sorting_in_parts_is_sorting_in_memory(keys, dtype, several):
    first = np.array([one for one, _ in keys], "i8") % 2**31
    columns = first.astype(dtype), np.array([two for _, two in keys], "i4"), np.arange(len(keys)) * 0.5
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("orion.arrays.storage.FEWEST", 4)
        patch.setattr("orion.arrays.sorting.CHUNK", 16)
        found = sorted_columns(columns, several, Storage(folder, 0))
    order = np.lexsort(columns[:several][::-1])
    for column, given_column in zip(found, columns, strict=True):
        assert column.dtype == given_column.dtype
        np.testing.assert_array_equal(column, given_column[order])


def test_groups_loops_and_lines_have_the_bits_of_memory(folder, monkeypatch):
    monkeypatch.setattr("orion.arrays.storage.FEWEST", 100)

    def moved(R, W, H):
        for (i, j), v in R:
            W[i] = W[i] * 0.5 + v * H[j]
            H[j] += W[i]

    def results():
        R, (W, H, V, G) = ratings(3000), np.ones((4, 50))
        groups = {key: group.values.tolist() for key, group in R.group_by(1).items()}
        orion.parallel_for(moved)(R, W, H)
        orion.parallel_for(moved, ordered=True)(R, V, G)
        lines = R.lines(1)
        arrays = (
            W,
            H,
            V,
            G,
            lines.indptr,
            lines.indices,
            lines.values[0],
            R.iteration_order,
            R.coords[0],
            R.histogram(1),
        )
        mixed = R.shuffle_keys([0, 1], seed=2).map_keys(lambda i, j: (j, i)).materialize()
        return groups, R.unique_keys, mixed, [array.tobytes() for array in arrays]

    found = results()
    with orion.session():
        expected = results()
    assert is_in_file(found[2])
    assert same(found[2], expected[2])
    assert (found[:2], found[3]) == (expected[:2], expected[3])


@pytest.mark.parametrize("name", ["r.csv", "r.svm"])
def test_a_folder_that_is_gone_is_not_said_to_be_the_files_fault(name, tmp_path):
    (tmp_path / "r.csv").write_text("".join(f"{k},{k},1.5\n" for k in range(500)))
    (tmp_path / "r.svm").write_text("".join(f"1 {k + 1}:1.5\n" for k in range(500)))
    folder = tmp_path / "spill"
    folder.mkdir()
    with orion.session("serial", spill=folder, spill_above=100):
        folder.rmdir()
        with pytest.raises(orion.StorageError, match=r"(?s)cannot be held in files.*choose another folder") as error:
            (orion.read_csv if name == "r.csv" else orion.read_libsvm)(tmp_path / name)
    assert str(error.value).count("why:") == 1


def test_a_folder_that_takes_no_files_is_refused_at_once():
    with pytest.raises(orion.StorageError, match=r"(?s)held in files in /proc.*choose another folder"):
        orion.session("serial", spill="/proc")


def test_a_wrong_size_is_refused_without_a_folder_too(monkeypatch):
    monkeypatch.setenv("ORION_SPILL_ABOVE", "abc")
    with pytest.raises(orion.ArgumentError, match="ORION_SPILL_ABOVE='abc' is no number of bytes"):
        orion.session("serial")
