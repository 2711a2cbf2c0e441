"""Examples of `docs/how-it-works/extending.md`, put into a copy of the package: they do what it says."""

import os
import re
import shutil
import subprocess
import sys
from itertools import takewhile

import pytest

from tests.test_documentation import ROOT, blocks

REST = "…"
PAGE = ROOT / "docs" / "how-it-works" / "extending.md"
FOUND = blocks(PAGE)
EXAMPLES = [(lines, one, after) for lines, one, after in zip(FOUND, FOUND[1:], FOUND[2:], strict=False) if one.marker]


def edits(text):
    """The lines of an example by file."""
    found = []
    for line in text.splitlines():
        if line[:1] not in ("", " ", "+", "-", REST):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return found


def changed(text, lines):
    """A file with the lines of an example in it."""
    have = text.splitlines()
    at = 0
    for line in lines:
        sign, rest = line[:1], line[1:]
        if sign == "+":
            have.insert(at, rest)
            at += 1
        elif sign == REST:
            at = len(have)
        else:
            at = have.index(rest)
            if sign == "-":
                del have[at]
            else:
                at += 1
    return "\n".join(have) + "\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package and the tests that the examples name, with all examples in it."""
    folder = tmp_path_factory.mktemp("extended")
    for part in ("orion", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "golden"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for lines, _, _ in EXAMPLES:
        for name, part in edits(lines.text):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(changed(path.read_text() if path.exists() else "", part).lstrip("\n"))
    return folder


def run(tree, *command):
    environment = os.environ | {"PYTHONPATH": str(tree)}
    return subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=240
    )


def test_the_examples_print_what_the_page_says(tree):
    lines = [""] * max(one.line + one.text.count("\n") for _, one, _ in EXAMPLES)
    for _, one, _ in EXAMPLES:
        part = one.text.splitlines()
        lines[one.line - 1 : one.line - 1 + len(part)] = part
    program = tree / "page.py"
    program.write_text("\n".join(lines) + "\n")
    done = run(tree, "-W", "ignore", program.name)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(after.text for _, _, after in EXAMPLES)


def test_the_page_of_the_new_code_is_printed(tree):
    shown = run(tree, "-m", "orion", "explain", "orn135").stdout
    assert shown.startswith("ORN135: an inner loop goes across the rows of an array\n\nNeighbouring iterations")


@pytest.mark.parametrize("command", [("ruff", "check"), ("ruff", "format", "--check")], ids=" ".join)
def test_the_examples_are_as_the_checks_want_them(tree, command):
    names = [name for lines, _, _ in EXAMPLES for name, _ in edits(lines.text) if name.startswith("orion/")]
    done = run(tree, "-m", *command, *sorted({name for name in names if name.endswith(".py")}))
    assert done.returncode == 0, done.stdout


def test_the_tests_that_the_page_names_pass_with_the_examples(tree):
    """Chosen by words in their names, of all the files at once: a process for each would import everything anew."""
    names = {
        "tests/test_same_functions.py": "accepted or among or there",
        "tests/test_inspect_reasons.py": "title or claim",
        "tests/test_inspect_hints.py": "claim",
        "tests/test_schedule_build.py": "strategy_keeps",
        "tests/test_stages.py": "taken and rounds or each_rewrite",
    }
    done = run(tree, "-m", "pytest", "-q", "-p", "no:xdist", *names, "-k", " or ".join(names.values()))
    assert done.returncode == 0, done.stdout


def test_the_numbers_of_lines_are_those_of_the_examples():
    table = takewhile(lambda line: line.strip(), PAGE.read_text().partition("|---|---|---|\n")[2].splitlines())
    said = [int(row.split("|")[3]) for row in table if row.split("|")[3].strip()]
    assert said == [sum(line.startswith("+") for line in lines.text.splitlines()) for lines, _, _ in EXAMPLES]


def test_the_page_names_files_that_there_are():
    new = {name for lines, _, _ in EXAMPLES for name, _ in edits(lines.text)}
    for name in re.findall(r"`((?:orion|tests|docs)/[\w/]+(?:\.\w+)?)/?`", PAGE.read_text()):
        assert name in new or "NAME" in name or (ROOT / name).exists(), name
