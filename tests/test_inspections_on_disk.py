"""Inspections in a folder are found by the next process in its first call; damaged ones are not taken."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import orion
from orion.plan.plan import Inspected
from orion.runtime import listing
from tests.loop_text import defined

HOP = """
def hop(x, idx, y):
    for i in range(len(idx)):
        x[idx[i]] = 0.5 * x[i] + y[i]
"""


def given(seed=0, n=400):
    rng = np.random.default_rng(seed)
    return rng.random(n), rng.integers(0, n, n), rng.random(n)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ORION_INSPECTIONS", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def looks(monkeypatch):
    """How often accesses are listed."""
    found = []
    listed = listing.listed
    monkeypatch.setattr(listing, "listed", lambda *given: found.append(1) or listed(*given))
    return found


def called(arguments, text=HOP, workers=2, force_parallel=True):
    """A function made anew, as in another process, called once: the tiles of its loop."""
    decorated = orion.parallel_for(defined(text))
    mine, theirs = [[one.copy() for one in arguments] for _ in range(2)]
    defined(text)(*theirs)
    with orion.session(workers=workers, force_parallel=force_parallel):
        decorated(*mine)
        (loop,) = decorated._preparations.plain._last.prepared.plan.function.loops
        decorated.plan(*[one.copy() for one in arguments], inspect=True).check()
    np.testing.assert_array_equal(mine[0], theirs[0])
    return loop.tiles


def same(one, other):
    for name in ("order", "offsets", "need_offsets", "needs", "owner", "turn"):
        np.testing.assert_array_equal(getattr(one.inspection, name), getattr(other.inspection, name))
    assert one.inspection.kind is other.inspection.kind
    assert one.inspection.depth == other.inspection.depth
    for mine, theirs in zip(one.inspection.accesses, other.inspection.accesses, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_what_one_has_found_others_take(folder, looks):
    first = called(given())
    assert len(looks) == 1
    second = called(given())
    assert len(looks) == 1
    same(first, second)
    assert len(list(folder.iterdir())) == 1


def test_it_is_taken_in_the_first_call_and_plan(folder, looks):
    """Which would not inspect by itself, as it has not seen the contents before."""
    arguments = np.random.default_rng(0).random((60_000, 8)), np.random.default_rng(1).permutation(60_000)
    text = """
def far(W, idx):
    for i in range(len(idx)):
        s = 0.0
        for d in range(8):
            s = np.sqrt(s + W[i, d])
        for d in range(8):
            W[idx[i], d] = s + d
"""
    decorated = orion.parallel_for(defined(text))
    with orion.session(workers=2):
        assert decorated.plan(*arguments, inspect=True).strategy == "inspected"
    assert isinstance(called(arguments, text, force_parallel=False), Inspected)
    with orion.session(workers=2):
        assert orion.parallel_for(defined(text)).plan(*arguments).strategy == "inspected"
    assert len(looks) == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("what", ["contents", "workers", "text", "sizes", "order"])
def test_others_are_not_taken(what, looks):
    x, idx, y = given()
    called((x, idx, y))
    match what:
        case "contents":
            idx[17] = (idx[17] + 1) % idx.size
            called((x, idx, y))
        case "workers":
            called((x, idx, y), workers=3)
        case "text":
            called((x, idx, y), HOP.replace("x[idx[i]]", "x[-1 - idx[i]]"))
        case "sizes":
            called((np.append(x, 1.0), idx, y))
        case "order":
            called((x, idx, y), HOP.replace("range(len(idx))", "range(len(idx) - 1, -1, -1)"))
    assert len(looks) == 2


@pytest.mark.usefixtures("looks")
def test_nothing_is_kept_where_nobody_asks(tmp_path, monkeypatch):
    monkeypatch.delenv("ORION_INSPECTIONS", raising=False)
    monkeypatch.chdir(tmp_path)
    called(given())
    assert not list(tmp_path.iterdir())


DAMAGES = {
    "nothing": lambda data: b"",
    "half of it": lambda data: data[: len(data) // 2],
    "a flipped bit": lambda data: data[:1000] + bytes([data[1000] ^ 1]) + data[1001:],
    "something else": lambda data: b"this is no inspection",
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_files_are_told_of_and_written_anew(what, folder, looks, capsys):
    called(given())
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[what](whole))
    called(given())
    assert len(looks) == 2
    assert "is damaged" in capsys.readouterr().err
    called(given())
    assert len(looks) == 2
    assert not capsys.readouterr().err


WRONG = {
    "an iteration twice": ("order", lambda a: np.where(np.arange(a.size) == 3, a[4], a)),
    "an iteration that there is not": ("order", lambda a: np.where(np.arange(a.size) == 3, 10**6, a)),
    "a negative iteration": ("order", lambda a: np.where(np.arange(a.size) == 3, -1, a)),
    "tiles that fall": ("offsets", lambda a: a[::-1].copy()),
    "a tile that needs itself": ("needs", lambda a: np.full_like(a, 10**6)),
    "needs of nobody": ("need_offsets", lambda a: a + 1),
    "needs that fall": ("need_offsets", lambda a: a[::-1].copy()),
    "a worker that there is not": ("owner", lambda a: a + 7),
    "too few owners": ("owner", lambda a: a[:-1]),
    "turns that are taken twice": ("turn", np.zeros_like),
    "another number of workers": ("workers", lambda a: a + 1),
    "a kind that there is not": ("kind", lambda a: np.array("WHIRLS")),
    "numbers as objects": ("order", lambda a: a.astype(object)),
}


@pytest.mark.parametrize("what", WRONG)
def test_files_that_hold_no_inspection_are_not_taken(what, folder, looks, capsys):
    called(given())
    (file,) = folder.iterdir()
    name, change = WRONG[what]
    with np.load(file) as found:
        parts = dict(found)
    np.savez(file, **{**parts, name: change(parts[name])})
    called(given())
    assert len(looks) == 2
    assert "is damaged" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="folders have modes on POSIX")
def test_folders_that_others_can_write_to_are_not_taken(folder, looks, capsys):
    folder.mkdir()
    folder.chmod(0o777)
    for count in (1, 2):
        called(given())
        assert len(looks) == 2 * count  # the plan that `called` looks at is made without the folder, too
    assert not list(folder.iterdir())
    assert capsys.readouterr().err.count("other users can write to") <= 1  # it is said once in a process


RUN = """
import numpy as np
import orion

{hop}

arguments = [np.load(name) for name in ({names})]
with orion.session(workers=2, force_parallel=True):
    function = orion.parallel_for(hop)
    function(*arguments)
print(repr(arguments[0].sum()))
"""


def _script(tmp_path):
    arrays = given()
    names = []
    for number, one in enumerate(arrays):
        np.save(tmp_path / f"{number}.npy", one)
        names.append(repr(str(tmp_path / f"{number}.npy")))
    script = tmp_path / "run.py"
    script.write_text(RUN.format(hop=textwrap.dedent(HOP), names=", ".join(names)))
    defined(HOP)(*arrays)
    return script, arrays[0].sum()


def _run(script, folder, **more):
    environment = {**os.environ, "ORION_INSPECTIONS": str(folder), **more}
    found = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr
    return found


def test_a_full_disk_is_told_of_once_and_nothing_is_lost(tmp_path):
    """Of a limit for files the system says what it does of a full disk: no more can be written."""
    script, wanted = _script(tmp_path)
    script.write_text("import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n" + script.read_text())
    folder = tmp_path / "kept"
    found = _run(script, folder)
    assert found.stdout.strip() == repr(wanted)
    assert found.stderr.count("inspections are not kept for later runs") == 1
    assert not list(folder.iterdir())


def test_processes_that_write_the_same_file(tmp_path):
    script, wanted = _script(tmp_path)
    folder = tmp_path / "kept"
    with ProcessPoolExecutor(3, get_context("spawn")) as pool:
        for found in pool.map(_run, [script] * 3, [folder] * 3):
            assert found.stdout.strip() == repr(wanted)
            assert not found.stderr
    assert [file.suffix for file in folder.iterdir()] == [".npz"]
