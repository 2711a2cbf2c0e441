"""The disk cache of generated modules, and what Numba refuses."""

import importlib.util
import marshal
import os
import resource
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

from orion.errors import UnsupportedLoopError
from orion.kernel.build.cache import cache_folder, load_module, write_once
from orion.kernel.build.canonical import canonical
from orion.kernel.build.compile import compile_kernel, module_name, signature
from tests.cpus import AVX2, Cpu, environment
from tests.kernel_loops import make_loop, run_loop
from tests.trials import ALL, one_in

ROOT = Path(__file__).resolve().parents[1]
NATIVE = [name for name, has in llvm.get_host_cpu_features().items() if has]


def scale(x, factor):
    for i in range(x.shape[0]):
        x[i] = x[i] * factor


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ORION_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_folder_is_the_users_own(folder):
    assert cache_folder() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o500])
def test_a_folder_that_others_may_write_to_is_not_used(folder, mode, monkeypatch):
    if mode == 0o500:  # root may write there all the same
        monkeypatch.setattr(os, "access", lambda *_: False)
    folder.mkdir()
    folder.chmod(mode)
    found = cache_folder()
    assert found != folder
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert cache_folder() == found


def blocked(path):
    path.write_text("")
    return path


def closed(path):
    path.mkdir()
    path.chmod(0o777)
    return path


def of_somebody_else(path):
    path.mkdir()
    os.chown(path, os.geteuid() + 1, -1)
    return path


UNUSABLE = {
    "a file in its place": (blocked, "is a file, and no folder"),
    "below a file": (lambda path: blocked(path) / "below", "Not a directory"),
    "no such place": (lambda path: Path("/proc/orion"), "No such file"),
    "open to all": (closed, "other users can write to"),
}
if os.geteuid() == 0:
    UNUSABLE["of somebody else"] = (of_somebody_else, "belongs to another user")
UNUSED = "orion: compiled loops are not kept for later runs: "

PROGRAM = f"""
import numpy as np, orion

@orion.parallel_for
def swept(a, sweeps):
    for t in range(sweeps):
        for i in range(a.shape[0]):
            a[i] = a[i] * 2.0 + i

for dtype in ({", ".join(one_in(2, ["np.float64", "np.float32"]))},):
    a = np.ones(5, dtype)
    swept(a, 3)
    assert a.tolist() == [8.0, 15.0, 22.0, 29.0, 36.0]
"""


def run_program(tmp_path, folder, limit=None, **settings):
    """What a process that may write no file longer than `limit` leaves on the standard error stream."""
    (tmp_path / "program.py").write_text(PROGRAM)
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "ORION_CACHE": str(folder), **settings}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    set_limit = limit is not None and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "always::ResourceWarning", str(tmp_path / "program.py")],
        env=variables, preexec_fn=set_limit or None, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_folder_that_cannot_be_used_is_told_once_and_nothing_is_left(tmp_path, case):
    make, reason = UNUSABLE[case]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    told = run_program(tmp_path, make(tmp_path / "cache"), TMPDIR=str(temporary))
    assert told.startswith(UNUSED)
    assert reason in told
    assert told.endswith("; ORION_CACHE can name another folder\n")
    assert told.count("\n") == 1
    assert list(temporary.iterdir()) == []


LIMITS = [0, 500, 1500, 3000, 30_000, 1_000_000] if ALL else [0, 30_000, 1_000_000]
"""In bytes: no file can be written, some files of each kind, no machine code, all."""


@pytest.mark.parametrize("limit", LIMITS)
def test_files_that_cannot_be_written_whole_are_told_once_and_do_no_harm_afterwards(tmp_path, limit):
    folder = tmp_path / "cache"
    told = run_program(tmp_path, folder, limit)
    if limit > 100_000:
        assert told == ""
    else:
        assert told.startswith(UNUSED)
        assert "File too large" in told
        assert told.count("\n") == 1
    assert not [path for path in folder.rglob("*") if "tmp" in path.name]
    assert run_program(tmp_path, folder) == ""


def apart(kinds, together):
    """Kinds of damage one by one; if no more is asked for, so many together, each in a file of its own."""
    size = 1 if ALL else together
    return [kinds[first : first + size] for first in range(0, len(kinds), size)]


def test_no_bytecode_is_kept_and_none_is_trusted(folder, monkeypatch):
    """Flipped bits in it crash Python, and it would not be made again."""

    def imported():
        monkeypatch.delitem(sys.modules, "orion_kernel_damaged", raising=False)
        return load_module("orion_kernel_damaged", "x = 1\n")

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = Path(imported().__file__)
    assert not [*folder.rglob("*.pyc")]
    other = bytecode_of(path, "x = 2\n")
    assert imported().x == 1
    assert other.exists()


def bytecode_of(path, text):
    """Bytecode of another text, which Python takes for that of a file."""
    file = Path(importlib.util.cache_from_source(str(path)))
    file.parent.mkdir()
    found = path.stat()
    head = importlib.util.MAGIC_NUMBER + b"".join(
        word.to_bytes(4, "little") for word in (0, int(found.st_mtime), found.st_size)
    )
    file.write_bytes(head + marshal.dumps(compile(text, str(path), "exec")))
    return file


def test_without_a_home_there_is_still_a_folder(monkeypatch, capsys):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("orion.kernel.build.cache._told", [])
    monkeypatch.setattr(Path, "home", homeless)
    for name in ("ORION_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder().is_dir()
    assert "Could not determine home directory" in capsys.readouterr().err
    cache_folder()
    assert capsys.readouterr().err == ""


def test_a_folder_below_home_is_named_as_in_a_shell(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ORION_CACHE", "~/kernels")
    assert cache_folder() == tmp_path / "kernels"


def test_a_folder_without_room_for_machine_code_is_told(folder, monkeypatch, capsys):
    """Numba keeps that in a folder inside; where it cannot, and in no other either, it refuses to keep any."""
    monkeypatch.setattr("orion.kernel.build.cache._told", [])
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    loop = make_loop(scale, np.ones(9), np.float32(3))
    run_loop(loop, compile_kernel(loop.source).walk)
    assert loop.values["x"].tolist() == [3.0] * 9
    assert "no locator available" in capsys.readouterr().err


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "kernel.py"

    def full_disk(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full_disk)
        with pytest.raises(OSError, match="no space"):
            write_once(path, "x = 1\n")
    assert list(tmp_path.iterdir()) == []
    path.write_text("x = ")  # a file that something else has damaged is written again
    assert write_once(path, "x = 1\n").read_text() == "x = 1\n"


def test_a_module_that_cannot_be_imported_leaves_nothing_behind(folder):
    with pytest.raises(ZeroDivisionError):
        load_module("orion_kernel_broken", "1 / 0\n")
    assert "orion_kernel_broken" not in sys.modules


def test_a_module_is_imported_once(folder):
    source = make_loop(scale, np.ones(3), 2.0).source
    assert compile_kernel(source).module is compile_kernel(source).module


def test_names_differ_by_source_and_types(folder):
    source = make_loop(scale, np.ones(3), 2.0).source
    narrow = tuple(replace(argument, dtype="float32") for argument in source.arguments)
    names = {name_of(source), name_of(replace(source, text=source.text + "\nx = 1\n"))}
    names.add(name_of(replace(source, arguments=narrow)))
    assert len(names) == 3


def name_of(source):
    return module_name(canonical(source.text, frozenset({source.entry})), signature(source))


RACE = """
import numpy as np
from tests.kernel_loops import make_loop, run_loop
from orion.kernel.calling import OUT_OF_BOUNDS
from orion.kernel.build.compile import compile_kernel

def gather(x, index, y):
    for i in range(x.shape[0]):
        x[i] = y[index[i]]

def race(x, y):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2 + y[i] @ y[i]

x, y = np.ones(3), np.ones((3, 5))
loop = make_loop(race, x, y)
kernel = compile_kernel(loop.source)
run_loop(loop, kernel.walk)
assert x.tolist() == [7.0, 7.0, 7.0]
bad = make_loop(gather, np.zeros(2), np.array([1, 9]), np.ones(3))
assert run_loop(bad, compile_kernel(bad.source).walk)["control"][0] == OUT_OF_BOUNDS
print(sum(k.module.tile.stats.cache_misses != {} for k in (kernel, compile_kernel(bad.source))))
"""


OWNERS = [(0, 0o700, "0"), (0, 0o777, "2")] + [(1, 0o700, "2")] * (os.geteuid() == 0)
"""Whose the folder is, with what rights that of the machine code, and how many kernels are compiled."""


def python(script, folder, settings=None):
    variables = {**os.environ, "ORION_CACHE": str(folder), "PYTHONPATH": str(ROOT), **(settings or {})}
    return subprocess.Popen(
        [sys.executable, str(script)], cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
    )  # fmt: skip


def test_processes_that_race_all_get_a_kernel_and_the_next_one_finds_it_compiled(tmp_path):
    script = tmp_path / "race.py"
    script.write_text(RACE)
    folder = tmp_path / "cache"
    racing = [python(script, folder) for _ in range(3 if ALL else 2)]
    for process in racing:
        process.communicate(timeout=100)
        assert process.returncode == 0
    after = python(script, folder)
    assert after.communicate(timeout=100)[0].strip() == "0"
    assert {path.suffix for path in folder.iterdir() if path.is_file()} == {".py"}


@pytest.mark.parametrize(("owner", "mode", "misses"), OWNERS)
def test_a_warm_folder_that_cannot_be_written_to_is_read(tmp_path, owner, mode, misses):
    """Where only root or the user can have written it: a layer of an image, a mount that is read only."""
    script, reader = tmp_path / "race.py", tmp_path / "reader.py"
    script.write_text(RACE)
    reader.write_text(f"import os\nos.access = lambda *_: False\n{RACE}")
    folder = tmp_path / "cache"
    assert python(script, folder).wait(100) == 0
    for one in (folder, folder / "__pycache__"):
        os.chown(one, os.geteuid() + owner, -1)
    (folder / "__pycache__").chmod(mode)
    before = sorted(folder.rglob("*"))
    assert python(reader, folder).communicate(timeout=100)[0].strip() == misses
    assert sorted(folder.rglob("*")) == before


def cut_off(data):
    return data[:100]


def emptied(data):
    return b""


def without_a_page(data):
    middle = len(data) // 3
    return data[:middle] + bytes(len(data[middle : middle + 4096])) + data[middle + 4096 :]


def with_other_bits(data):
    changed = bytearray(data)
    for place in range(len(data) // 2, len(data), 997):
        changed[place] ^= 8
    return bytes(changed)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A script of two kernels, and a folder with their machine code, beside each other."""
    script = tmp_path_factory.mktemp("compiled") / "race.py"
    script.write_text(RACE)
    python(script, script.parent / "cache").communicate(timeout=100)
    return script


@pytest.mark.parametrize(
    "damages",
    apart([(".nbi", cut_off), (".nbc", emptied), (".nbc", without_a_page), (".nbc", with_other_bits)], 2),
)
def test_damaged_machine_code_is_made_again_and_kept(tmp_path, compiled, damages):
    script, folder = compiled, tmp_path / "cache"
    shutil.copytree(compiled.parent / "cache", folder)
    for module, (suffix, damage) in zip(sorted(folder.glob("*.py")), cycle(damages), strict=False):
        files = list(folder.rglob(f"{module.stem}*{suffix}"))
        assert files
        for file in files:
            file.write_bytes(damage(file.read_bytes()))
    made = []
    for _ in range(2):
        process = python(script, folder)
        made.append(process.communicate(timeout=100)[0].strip())
        assert process.returncode == 0
    assert made == ["2", "0"]


def test_a_cache_that_cannot_be_written_is_done_without(folder, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full_disk)
    loop = make_loop(scale, np.ones(7), np.float32(3))
    run_loop(loop, compile_kernel(loop.source).walk)
    assert loop.values["x"].tolist() == [3.0] * 7


@pytest.mark.parametrize("error", [TypeError, KeyError, ImportError, AttributeError, EOFError])
def test_a_cache_that_cannot_be_read_is_done_without(folder, monkeypatch, error):
    def damaged(*_):
        raise error("damaged")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.load", damaged)
    loop = make_loop(scale, np.ones(8), np.float32(len(error.__name__)))
    run_loop(loop, compile_kernel(loop.source).walk)
    assert loop.values["x"].tolist() == [float(len(error.__name__))] * 8


def test_a_full_disk_is_done_without(folder, monkeypatch):
    replace_file = os.replace

    def full_disk(source, target):
        if Path(target).parent == folder:
            raise OSError("no space left on device")
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", full_disk)
    module = load_module("orion_kernel_for_a_full_disk", "x = 1\n")
    assert module.x == 1
    assert Path(module.__file__).parent != folder


def test_names_differ_by_the_settings_of_numba(folder, monkeypatch):
    source = make_loop(scale, np.ones(3), 2.0).source
    before = name_of(source)
    monkeypatch.setattr(numba.config, "OPT", 0)
    assert name_of(source) != before
    monkeypatch.undo()
    assert name_of(source) == before


WIDTH = """
import numpy as np
from tests.kernel_loops import assembly, make_loop, run_loop
from orion.kernel.build.compile import compile_kernel

def scale(x, y):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2 + y[i]

x, y = np.arange(100.0), np.ones(100)
loop = make_loop(scale, x, y)
kernel = compile_kernel(loop.source)
run_loop(loop, kernel.walk)
assert x.tolist() == [2.0 * k + 1 for k in range(100)]
is_made = bool(kernel.module.tile.stats.cache_misses)
print(kernel.module.__name__, is_made, is_made and "ymm" in assembly(kernel))  # what is found has no text
"""


@pytest.mark.all(
    "test_processes_that_race_all_get_a_kernel_and_the_next_one_finds_it_compiled",
    "test_kernel_vectors.py::test_registers_are_those_of_the_cpu_that_is_compiled_for",
)
@pytest.mark.skipif("avx2" not in NATIVE, reason="needs a CPU that can stand for two others")
def test_machine_code_is_found_again_by_the_cpu_that_it_was_made_for(tmp_path):
    script = tmp_path / "width.py"
    script.write_text(WIDTH)
    told = []
    for name in ("nehalem", "haswell", "nehalem", "haswell"):
        cpu = environment(Cpu(name, "Haswell", AVX2, ()))
        ran = python(script, tmp_path / "cache", cpu)
        told.append(ran.communicate(timeout=100)[0].split())
        assert ran.returncode == 0
    assert told[0][0] == told[2][0] != told[1][0] == told[3][0]
    assert [made for _, made, _ in told] == ["True", "True", "False", "False"]
    assert [is_wide for *_, is_wide in told[:2]] == ["False", "True"]


# ------------------------------------------------------------ refusals


def test_what_numba_refuses_is_told_about_the_users_line(folder):
    source = make_loop(scale, np.ones(3), 2.0).source
    broken = replace(source, text=source.text.replace("* factor", "* factor.x"))
    with pytest.raises(UnsupportedLoopError) as error:
        compile_kernel(broken)
    message = str(error.value)
    assert message.startswith(f"{__file__}:{scale.__code__.co_firstlineno + 2}: ")
    assert "x[i] = x[i] * factor" in message
    assert "why:" in message
    assert "help:" in message
    assert "attribute `x` of type float64" in message
