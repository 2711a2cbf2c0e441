"""What an install may leave out: loops run without it, and what needs it says which extra brings it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import orion
from orion import extras
from orion.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[1]

CORE_ALONE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("ray", "pyarrow", "ipykernel", "IPython", "scipy", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ("ray", "pyarrow") else found(name, package)
import numpy as np
import orion

@orion.parallel_for
def double(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]
"""


def printed_by(program: str, folder: Path) -> str:
    script = folder / "script.py"
    script.write_text(CORE_ALONE + program, "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout


def test_loops_run_on_threads_with_the_core_alone(tmp_path):
    program = """
a = np.ones(50_000)
with orion.session("threads", 2, force_parallel=True):
    double(a)
    print(a.sum(), double.verify(np.ones(100)).is_same)
"""
    assert printed_by(program, tmp_path).startswith("100000.0 True")


def test_each_call_that_needs_an_extra_says_which(tmp_path):
    """Before the file is looked at, or a worker started."""
    program = """
for call in (
    lambda: orion.read_csv("none.csv", keys=(0,), values=1),
    lambda: orion.read_libsvm("none.txt"),
    lambda: orion.read_parquet("none.parquet", keys=("a",), values="b"),
    lambda: orion.text_file("none.txt", lambda line: None).shape,
    lambda: orion.init("ray", workers=2),
):
    try:
        call()
        double(np.ones(9))
        print("nothing is said")
    except orion.MissingExtraError as error:
        assert isinstance(error, ImportError)
        print(" ".join(str(error).split()))
"""
    lines = printed_by(program, tmp_path).splitlines()
    assert len(lines) == 5
    for line in lines[:4]:
        assert "needs the package `pyarrow`, which is not installed" in line
        assert "pip install 'orion-loops[files]'" in line
    assert "the Ray backend needs the package `ray`, which is not installed" in lines[4]
    assert "pip install 'orion-loops[ray]'" in lines[4]
    assert 'use backend="threads"' in lines[4]


def test_a_version_that_is_too_old_is_told_with_the_one_that_is_needed(monkeypatch):
    monkeypatch.setattr(extras, "least_version", lambda package: "2.40")
    monkeypatch.setattr(extras, "_installed", lambda package: "2.9.3")
    with pytest.raises(MissingExtraError) as told:
        extras.require("ray", "the Ray backend")
    assert "`ray`, version 2.40 or later, and 2.9.3 is installed" in str(told.value)
    assert "orion-loops[ray]" in str(told.value)


@pytest.mark.parametrize("found", ["2.40", "2.40.0rc1", "3.0", "2.100", "", "unknown"])
def test_a_version_that_will_do_or_is_not_known_is_taken(monkeypatch, found):
    monkeypatch.setattr(extras, "least_version", lambda package: "2.40")
    monkeypatch.setattr(extras, "_installed", lambda package: found)
    extras.require("ray", "the Ray backend")


def test_extras_bring_what_calls_ask_for():
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for package, extra in extras.EXTRAS.items():
        assert [one.partition(">")[0] for one in optional[extra]] == [package]
        assert extras.least_version(package) == optional[extra][0].partition(">=")[2]
    assert optional["all"] == ["orion-loops[ray,files,notebook]"]


def test_the_other_project_of_that_name_is_told_at_the_import(tmp_path):
    """Its package has no file of its own at the top, so that ours is what is imported."""
    shutil.copytree(ROOT / "orion", tmp_path / "orion", ignore=shutil.ignore_patterns("__pycache__"))
    program = "import orion; print(orion.__version__)"

    def told() -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.strip() == orion.__version__
        return done.stderr

    assert told() == ""
    (tmp_path / "orion" / "client").mkdir()
    assert "pip uninstall orion" in told()
    assert told().count("UserWarning") == 1
