"""`python -m orion doctor`: what is installed, what the machine can do, where the cache is, and what is slow here."""

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orion.cli.cli import main
from orion.cli.doctor import Cache, Report, cleared, found_cache, look, report_text, slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ORION_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def report():
    return look()


def filled(folder: Path) -> Path:
    """A cache folder with one compiled module, and two files that are somebody else's."""
    (folder / "__pycache__").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "orion_kernel_f_0_0123456789abcdef01234567.py").write_text("x = 1\n")
    for end in ("tile-7.py311.nbi", "tile-7.py311.1.nbc"):
        (folder / "__pycache__" / f"orion_kernel_f_0_0123456789abcdef01234567.{end}").write_bytes(b"1234")
    (folder / "notes.txt").write_text("mine")
    (folder / "__pycache__" / "other.cpython-311.pyc").write_bytes(b"mine")
    return folder


def test_it_says_what_is_here(report):
    text = report_text(report)
    for word in ("orion", "numpy", "numba", "islpy", "ray", "cores", "BLAS", "cache", "vectors", "measured", "session"):
        assert word in text
    assert report.cores >= 1
    assert report.measured.gigabytes > 0
    assert 0 < report.measured.cores <= 1.5 * report.cores


def test_measuring_is_quick(report):
    assert report.measured.seconds < 2


def test_the_command_prints_it_and_ends_with_0(capsys, folder):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out == out.rstrip() + "\n"
    assert str(folder) in out


def test_json_has_the_same(capsys, folder):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cache"]["folder"] == str(folder)
    assert found["versions"]["numpy"]


def test_nothing_is_made_by_looking(folder):
    assert found_cache().trouble == ""
    assert not folder.exists()


def test_neither_ray_nor_a_worker_is_started():
    code = (
        "import sys, threading; from orion.cli.cli import main; main(['doctor']);"
        "assert 'ray' not in sys.modules; assert threading.active_count() == 1, threading.enumerate()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)


def test_a_cache_is_counted(folder):
    filled(folder)
    found = found_cache()
    assert found == Cache(str(folder), True, 14, 1, "", found.filesystem)


def test_a_cache_of_others_is_no_cache(folder):
    filled(folder)
    folder.chmod(folder.stat().st_mode | stat.S_IWGRP)
    assert "other users can write" in found_cache().trouble


def test_a_file_in_the_place_of_the_cache(folder):
    folder.write_text("")
    assert "is a file" in found_cache().trouble


def test_a_cache_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setenv("ORION_CACHE", str(tmp_path / "closed" / "cache"))
    (tmp_path / "closed").mkdir(mode=0o500)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write there all the same
    assert "cannot be written" in found_cache().trouble


def test_the_cache_is_cleared_and_nothing_else(folder, capsys):
    filled(folder)
    assert main(["doctor", "--clear-cache"]) == 0
    assert "3 files" in capsys.readouterr().out
    left = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert left == ["notes.txt", "other.cpython-311.pyc"]
    assert cleared() == (0, 0)


def test_clearing_follows_no_link(folder, tmp_path):
    other = filled(tmp_path / "other")
    folder.mkdir(mode=0o700)
    (folder / "__pycache__").symlink_to(other / "__pycache__")
    (folder / "orion_kernel_g_0_0123456789abcdef01234567.py").symlink_to(other / "notes.txt")
    cleared()
    assert sorted(path.name for path in other.rglob("*") if path.is_file() and path.suffix != ".py") == sorted(
        ["notes.txt", "other.cpython-311.pyc", *(p.name for p in (other / "__pycache__").glob("*.nb?"))]
    )
    assert (other / "notes.txt").read_text() == "mine"


def test_clearing_what_cannot_be_removed_is_an_error(folder, monkeypatch, capsys):
    filled(folder)

    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert main(["doctor", "--clear-cache"]) == 2
    assert "Permission denied" in capsys.readouterr().err


def sentences(report: Report, **changes) -> str:
    return "\n".join(slow(replace(report, **changes)))


def test_what_is_slow_is_said_with_why(report):
    fine = replace(
        report,
        affinity=8, online=8, quota=None, vectors=512, settings={}, workers=8, backend="threads", cores=8,
        measured=replace(report.measured, cores=7.8), cache=Cache("/c", True, 10, 1, "", "ext4"),
    )  # fmt: skip
    assert slow(fine) == []
    assert "control group" in sentences(fine, quota=1.5, cores=2)
    assert "affinity" in sentences(fine, affinity=2, cores=2, workers=2)
    assert "one core" in sentences(fine, affinity=1, online=1, cores=1, workers=1)
    assert "other programs" in sentences(fine, measured=replace(fine.measured, cores=3.0))
    assert "128 bits" in sentences(fine, vectors=128)
    assert "compiled anew" in sentences(fine, cache=replace(fine.cache, trouble="/c cannot be written to"))
    assert "network" in sentences(fine, cache=replace(fine.cache, filesystem="nfs4"))
    assert "first call" in sentences(fine, cache=replace(fine.cache, kernels=0))
    assert "NUMBA_DISABLE_JIT" in sentences(fine, settings={"NUMBA_DISABLE_JIT": "1"})
    assert "NUMBA_OPT" in sentences(fine, settings={"NUMBA_OPT": "0"})
    assert "ORION_WORKERS" in sentences(fine, workers=2)
    assert "serial" in sentences(fine, backend="serial", workers=1)


def test_settings_that_orion_cannot_read_are_told_and_no_error():
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ORION_WORKERS": "many"}
    command = [sys.executable, "-m", "orion", "doctor"]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert "Orion's settings cannot be read: ORION_WORKERS" in run.stdout
