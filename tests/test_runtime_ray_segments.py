"""Memory shared by processes: anonymous segments, and files where there are none."""

import errno
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import orion
from orion.arrays.storage import IN_MEMORY, Storage
from orion.errors import StorageError
from orion.runtime.ray.segments import Arena, Block, create_segment, open_segment, remove_name
from tests.runtime_programs import assert_same, outcome

MODES = pytest.mark.parametrize("anonymous", [True, False])


@pytest.fixture(params=["memory", "disk"])
def storage(request, tmp_path):
    """Where segments are: in memory, or all of them in files."""
    yield IN_MEMORY if request.param == "memory" else Storage(str(tmp_path), 0)
    assert os.listdir(tmp_path) == []


def own_files():
    return [name for name in os.listdir("/dev/shm") if name.startswith("orion")]


@MODES
def test_another_process_sees_and_changes_a_segment(anonymous, storage):
    name, memory = create_segment(100, anonymous, storage)
    block = Block(1, 64, (3,), "<i4")
    block.on(memory)[:] = 1, 2, 3
    program = (
        "from orion.runtime.ray.segments import *\n"
        f"array = Block(1, 64, (3,), '<i4').on(open_segment({name!r}))\n"
        "array += 10\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert block.on(memory).tolist() == [11, 12, 13]


@MODES
def test_a_segment_lasts_as_long_as_an_array_on_it(anonymous, storage):
    released = []
    name, memory = create_segment(1 << 16, anonymous, storage, on_release=lambda: released.append(True))
    last = Block(1, 128, (2, 2), "<f8").on(memory)[1:]
    del memory
    gc.collect()
    last[:] = 5.0
    assert open_segment(name)[128 + 16 : 128 + 32].view(np.float64).tolist() == [5.0, 5.0]
    assert not released
    del last
    gc.collect()
    assert released == [True]
    with pytest.raises(OSError, match="No such file"):
        open_segment(name)
    assert own_files() == []


@MODES
def test_the_pages_of_a_segment_go_with_its_last_array_though_others_have_mapped_it(anonymous, storage):
    name, memory = create_segment(1 << 16, anonymous, storage)
    with open(name.path, "rb") as other:
        assert os.fstat(other.fileno()).st_size == 1 << 16
        del memory
        gc.collect()
        assert os.fstat(other.fileno()).st_size == 0


@MODES
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_that_lets_go_of_a_segment_leaves_it_to_its_parent(anonymous, storage):
    name, memory = create_segment(1 << 16, anonymous, storage)
    memory[5] = 7
    child = os.fork()
    if child == 0:
        status = 1
        try:
            del memory
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert memory[5] == 7
    assert open_segment(name)[5] == 7


@MODES
def test_arrays_can_be_used_until_the_process_ends(anonymous, storage):
    program = (
        "import atexit\n"
        "memory = None\n"
        "atexit.register(lambda: print(memory.sum()))\n"
        "from orion.runtime.ray.segments import *\n"
        f"name, memory = create_segment(1 << 16, {anonymous}, {storage})\n"
        "memory[:] = 1\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert ran.stdout.split() == ["65536"]
    assert own_files() == []


@pytest.fixture
def full(monkeypatch):
    """No file system has room."""

    def refuse(descriptor, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)


def test_a_file_that_there_is_no_room_for_is_refused_before_it_is_used(full):
    with pytest.raises(OSError, match="No space left"):
        create_segment(1 << 16, anonymous=False)
    assert own_files() == []


@MODES
def test_a_disk_that_is_full_is_named(full, anonymous, tmp_path):
    open_before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(StorageError, match=rf"files in {tmp_path}\n.*No space left on device\n.*make room"):
        create_segment(1 << 16, anonymous, Storage(str(tmp_path), 1 << 15))
    assert os.listdir(tmp_path) == []
    assert set(os.listdir("/proc/self/fd")) == open_before
    create_segment(1 << 15, True, Storage(str(tmp_path), 1 << 15))  # one that is small is in memory


def test_a_file_without_its_name_is_still_there_for_those_who_have_it():
    name, memory = create_segment(64, anonymous=False)
    other = open_segment(name)
    remove_name(name)
    assert own_files() == []
    memory[0] = 7
    assert other[0] == 7


def test_an_arena_hands_out_the_same_places_for_the_same_requests():
    requests = [((3,), "<i8"), ((0,), "<f4"), ((2, 5), "<f4"), ((1,), "|b1")]
    sizing, placing = Arena(), Arena(9)
    blocks = [placing.block(shape, np.dtype(dtype)) for shape, dtype in requests]
    for shape, dtype in requests:
        sizing.allocate(shape, np.dtype(dtype))
    assert [block.offset for block in blocks] == [0, 64, 64, 128]
    assert sizing.size == placing.size == 192


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_actors_that_cannot_open_anonymous_segments_get_files(monkeypatch):
    import orion.runtime.ray.group as group

    with orion.session("serial"):
        expected = outcome("two loops")
    monkeypatch.setattr(group, "can_be_anonymous", lambda: False)
    with orion.session("ray", 2, force_parallel=True) as session:
        assert_same(outcome("two loops"), expected)
        assert not session._backend._team._store.anonymous
        assert own_files() == []
