"""README and docs: every block of Python runs as it is printed, and prints what stands below it.

The blocks of one file are one script, in their order, run in an empty folder as a reader's copy of them would be. One
that is not to be run has a comment in the line before it, which no reader sees: `<!-- not run: why -->`.

In a notebook the blocks are cells, and the site shows what they print. What its text relies on of that is in a comment
below the cell: `<!-- prints:`, the lines, `-->`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(file for place in ("*.md", "docs/**/*.md", "orion/*.md", "benchmarks/*.md") for file in ROOT.glob(place))
FENCE = re.compile(
    r"^(?P<note><!-- (?P<marker>[^\n]*) -->\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
PRINTS = re.compile(r"^<!-- prints:\n(?P<text>.*?)^-->$", re.MULTILINE | re.DOTALL)
CELL = "{code-cell} python"
LANGUAGES = ("python", CELL, "console", "text")
NOT_RUN = "not run: "


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the first line of that in the file, and the comment before it."""

    language: str
    text: str
    line: int
    marker: str

    @property
    def is_python(self):
        return self.language in ("python", CELL)

    @property
    def runs(self):
        return self.is_python and not self.marker.startswith(NOT_RUN)


def blocks(path):
    """The fenced blocks of a file, and what comments say that they print, as blocks of `text`."""
    text = path.read_text(encoding="utf-8")
    found = sorted([*FENCE.finditer(text), *PRINTS.finditer(text)], key=lambda one: one.start())
    return [
        Block(
            one.groupdict().get("language", "text"),
            one["text"],
            text.count("\n", 0, one.start("text")) + 1,
            one.groupdict().get("marker") or "",
        )
        for one in found
    ]


def script(found):
    """The blocks that run as one program, each on the lines that it has in its file."""
    lines = [""] * max((block.line + block.text.count("\n") for block in found), default=0)
    for block in found:
        if block.runs:
            part = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(part)] = part
    return "\n".join(lines) + "\n"


def expected(found):
    """The lines that the `text` blocks right after Python say it prints."""
    return [
        line
        for one, after in pairwise(found)
        if one.runs and after.language == "text"
        for line in after.text.splitlines()
    ]


WITH_PYTHON = [
    pytest.param(path, id=path.name, marks=[pytest.mark.ray] if 'backend="ray"' in script(blocks(path)) else [])
    for path in FILES
    if any(block.runs for block in blocks(path))
]


@pytest.mark.parametrize("path", WITH_PYTHON)
def test_its_python_runs_as_printed(path, tmp_path):
    found = blocks(path)
    program = tmp_path / f"page_{path.stem}.py"  # not `numba.py`, which would be imported in place of the package
    program.write_text(script(found), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, f"{path}:\n{done.stderr}"
    printed = iter(done.stdout.splitlines())
    missing = [line for line in expected(found) if line not in printed]  # in their order: `in` goes on from the last
    assert not missing, f"{path} says that it prints {missing}; it printed:\n{done.stdout}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_python_hides_from_being_run(path):
    for block in blocks(path):
        assert block.language in LANGUAGES, f"{path}:{block.line}: a block of {block.language or 'no language'}"
        if block.marker.startswith(NOT_RUN.strip()):
            assert len(block.marker) > len(NOT_RUN) + 10, f"{path}:{block.line}: say why it is not run"
            assert block.is_python
        if not block.is_python:
            assert "import orion" not in block.text
            assert "@orion." not in block.text
    outside = FENCE.sub("", path.read_text(encoding="utf-8"))
    assert "```" not in outside


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "tutorials").glob("[!i]*.md")), ids=lambda path: path.name)
def test_what_a_notebook_prints_is_not_written_by_hand(path):
    text = path.read_text(encoding="utf-8")
    assert "format_name: myst" in text
    assert CELL in {one.language for one in blocks(path)}
    assert "```text" not in text
    assert all(one.language == CELL for one in blocks(path) if one.runs)


PROJECT = ("pyproject.toml", "README.md", "LICENSE", "orion")
"""What an installation of the project's folder is made of."""


def pip_commands(found):
    """The commands of `console` blocks that install something, in their order."""
    lines = [line for block in found if block.language == "console" for line in block.text.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ pip ")]


@pytest.mark.all("test_its_python_runs_as_printed")
@pytest.mark.ray
@pytest.mark.timeout(1800)
def test_the_readme_runs_in_an_environment_made_by_its_own_commands():
    found = blocks(ROOT / "README.md")
    with tempfile.TemporaryDirectory(prefix="orion-readme-") as name:
        folder = Path(name)
        (folder / "orion").mkdir()
        for part in PROJECT:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, folder / "orion" / part)
        (folder / "readme.py").write_text(script(found), encoding="utf-8")
        venv.create(folder / "env", with_pip=True, symlinks=True)
        around = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        around |= {"PATH": f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        around |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_QUIET": "1"}
        in_folder = [(command, folder / "orion") for command in pip_commands(found)]
        for command, where in (*in_folder, ("python readme.py", folder)):
            done = subprocess.run(
                ["sh", "-c", command], cwd=where, env=around, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"`{command}`:\n{done.stderr}"
    printed = iter(done.stdout.splitlines())
    assert [line for line in expected(found) if line not in printed] == []


def test_the_first_block_of_the_readme_is_complete_by_itself():
    first = next(block for block in blocks(ROOT / "README.md") if block.language == "python")
    assert first.runs
    assert first.text.startswith("import ")


def test_a_block_is_found_with_its_line_and_its_mark(tmp_path):
    path = tmp_path / "page.md"
    marked = "<!-- not run: needs a cluster -->\n```python\ny\n```\n"
    cell = "```{code-cell} python\nprint(x)\n```\n\n<!-- prints:\n1\n-->\n"
    path.write_text(f"# A\n\n```python\nx = 1\n```\n{marked}```text\n1\n```\n\n{cell}")
    first, second, third, fourth, fifth = blocks(path)
    assert (first.line, first.text, first.runs) == (4, "x = 1\n", True)
    assert (second.line, second.marker, second.runs) == (8, "not run: needs a cluster", False)
    assert third.language == "text"
    assert script([first, second, third]).splitlines()[3] == "x = 1"
    assert expected([first, third]) == ["1"]
    assert (fourth.text, fourth.runs) == ("print(x)\n", True)
    assert expected([fourth, fifth]) == ["1"]
