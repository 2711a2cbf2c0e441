"""The types of the public interface, as type checkers see them: uses of every name (`typed_uses.py`)."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from mypy import api as mypy

import orion

ROOT = Path(__file__).resolve().parents[1]
USES = ROOT / "tests" / "typed_uses.py"
ALREADY_CHECKED = "tests/typed_uses.py"
"""The file as `[tool.mypy]` names it: `make check` and `make test` run mypy over it together with the package."""


def pyright() -> str | None:
    """The pyright of the environment, or of an `npm install pyright` in this folder."""
    found = shutil.which("pyright", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    local = ROOT / "node_modules" / ".bin" / "pyright"
    return found or (str(local) if local.exists() else None)


def test_every_public_name_is_used():
    tree = ast.parse(USES.read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {one.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names}
    assert not set(orion.__all__) - used


def test_mypy_checks_the_uses_with_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"], "strict mypy also reports an ignore that hides no error"
    assert ALREADY_CHECKED in settings["files"]


@pytest.mark.all
def test_mypy_finds_each_wrong_use_and_no_other_error(tmp_path, monkeypatch):
    """As a user's program somewhere else, with the codes of the errors that the comments name."""
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    program = tmp_path / "uses.py"
    program.write_bytes(USES.read_bytes())
    out, err, _ = mypy.run([str(program), "--strict", "--cache-dir", str(tmp_path / "cache"), "--config-file="])
    assert out.startswith("Success"), out + err


@pytest.mark.skipif(pyright() is None, reason="no pyright here: `npm install pyright` or `pip install pyright`")
def test_pyright_finds_each_wrong_use_and_no_other_error():
    command = [str(pyright()), "--project", str(ROOT / "tests" / "pyrightconfig.json"), "--pythonpath", sys.executable]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 errors, 0 warnings" in ended.stdout
