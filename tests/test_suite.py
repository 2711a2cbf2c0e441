"""`make test` runs every test once, and fails where one does or where there are none; what it leaves to others."""

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import failures, sample
from tests.covering import ONE_IN, covering
from tests.suite import PARTS, commands, run, run_beside, surroundings

NONE = pytest.ExitCode.NO_TESTS_COLLECTED
FILES = sorted(Path("tests").glob("test_*.py"))


@pytest.mark.parametrize("number", PARTS.values(), ids=PARTS)
def test_every_file_is_in_one_part(number):
    *parts, ray = commands(["-q"], number)
    assert len(parts) == number
    named = [one for part in parts for one in part if one.startswith("tests/")]
    assert sorted(named) == sorted(map(str, FILES))
    assert sum("orion" in part for part in parts) == 1
    assert {one for one in ray if one.startswith("tests/")} < set(named)


def test_what_is_named_is_run_without_ray_and_with_it():
    first, second = commands(["tests/test_suite.py::test_every_file_is_in_one_part"], 3)
    assert ("not timing and not ray" in first, "not timing and ray" in second) == (True, True)


class Ended:
    """Stands for a command that has ended with that code, and has said so."""

    def __init__(self, code):
        self.returncode, self.stdout = code, f"ended with {int(code)}\n".encode()


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((0, 0, 0), 0), ((0, 0, NONE), 0), ((0, NONE, 0), 0), ((0, NONE, NONE), NONE), ((0, 1, 0), 1), ((0, 0, 2), 2),
        ((0, 2, 1), 2), ((1, 0, 0), 1), ((1, NONE, NONE), 1), ((0, NONE, 1), 1),
    ],
)  # fmt: skip
def test_the_exit_code(codes, code, monkeypatch, capsys):
    types, without_ray, on_ray = codes

    def ended(command, **_):
        return Ended(types if "mypy" in command else on_ray if "not timing and ray" in command else without_ray)

    monkeypatch.setattr("tests.suite.subprocess.run", ended)
    assert run(["tests/test_suite.py"], surroundings("once")) == code
    assert capsys.readouterr().out.splitlines() == [f"ended with {types}", "", f"ended with {on_ray}", ""]


def test_what_runs_beside_the_others_is_told_whole():
    text = "print('é' * 100_000); import sys; print('wrong', file=sys.stderr); sys.exit(3)"
    code, said = run_beside([sys.executable, "-c", text], {**os.environ})
    assert (code, sorted(said.split())) == (3, ["wrong", "é" * 100_000])


TWO_THAT_FAIL = """
import subprocess, sys

def test_a():
    assert "much" == "more"

def test_b(missing):
    pass

def test_what_tests_run(tmp_path):
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\\n")
    (tmp_path / "test_inner.py").write_text("def test_inner():\\n    assert False\\n")
    assert subprocess.run([sys.executable, "-m", "pytest", "test_inner.py"], cwd=tmp_path).returncode == 1
"""


def test_what_failed_is_said_again_at_the_end(tmp_path, capfd):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    (folder / "test_two.py").write_text(TWO_THAT_FAIL)
    (folder / "test_well.py").write_text("def test_c():\n    pass\n")

    def run_both(variables):
        here = {**variables, "PYTHONPATH": os.getcwd()}
        codes = [
            subprocess.run([sys.executable, "-m", "pytest", *asked], env=here, cwd=tmp_path, check=False).returncode
            for asked in (["-n2", "tests/test_two.py"], ["tests/test_well.py"])
        ]
        print("all have ended", flush=True)
        return max(codes)

    assert failures.told_again(run_both, os.environ) == 1
    again = capfd.readouterr().out.partition("all have ended")[2]
    assert again.startswith("\n\nWhat failed, once more:\n")
    named = re.findall(r"^---- (\S+::\S+)$", again, re.MULTILINE)
    assert sorted(named) == ["tests/test_two.py::test_a", "tests/test_two.py::test_b"]
    assert 'assert "much" == "more"' in again
    assert "fixture 'missing' not found" in again


def test_where_nothing_fails_nothing_is_said_again(capfd):
    assert failures.told_again(lambda variables: 0, os.environ) == 0
    assert capfd.readouterr().out == ""


def test_processes_of_tests_keep_bytecode(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    asked = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"]
    assert run_beside(asked, surroundings("once")) == (0, "False\n")


# ---------------------------------------------------------------- what `make test` leaves out


@dataclass
class Item:
    """Stands for a test as pytest has collected it."""

    nodeid: str
    only_in_all: tuple[str, ...] | None = None
    path: Path = field(default=Path(__file__))

    @property
    def name(self):
        return self.nodeid.rpartition("::")[2]

    def get_closest_marker(self, name):
        return None if self.only_in_all is None else pytest.mark.all(*self.only_in_all).mark


PLAIN, KILLS, SMALLER = "tests/test_a.py::test_plain", "tests/test_b.py::test_kills", "tests/test_b.py::test_smaller"
VARIED = [f"tests/test_a.py::test_varied[{number}]" for number in range(10)]
ITEMS = [Item(PLAIN), *map(Item, VARIED), Item(KILLS, ("test_smaller",)), Item(SMALLER, ("test_smaller",))]


def names_in(mode, items=ITEMS):
    return [item.nodeid for item in covering(items, frozenset({"test_a"}), mode)]


def test_make_test_has_each_test_but_those_of_the_marker():
    once = names_in("once")
    assert [name for name in once if name not in VARIED] == [PLAIN, SMALLER]
    assert len(once) == 2 + len(VARIED) // ONE_IN


def test_all_are_all():
    assert names_in("all") == [item.nodeid for item in ITEMS]


def test_the_rest_is_what_make_test_leaves_out():
    assert sorted([*names_in("once"), *names_in("rest")]) == sorted(item.nodeid for item in ITEMS)


def test_the_rest_has_all_tests_of_files_that_try_more(tmp_path):
    path = tmp_path / "test_random.py"
    path.write_text("from tests.trials import TIMES\n")
    assert names_in("rest", [Item(PLAIN, path=path)]) == [PLAIN]


def is_about_the_file(statement):
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"


def named_by_markers(path):
    """What the markers `all` of a file name: the test that is marked, "" for the whole file, and the names."""
    tree = ast.parse(path.read_text("utf-8"))
    for statement in tree.body:
        name = statement.name if isinstance(statement, ast.FunctionDef) else ""
        parts = statement.decorator_list if name else [statement] if is_about_the_file(statement) else []
        for call in (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)):
            if ast.unparse(call.func) == "pytest.mark.all":
                yield name, [ast.literal_eval(one) for one in call.args]


MARKERS = {path.name: list(named_by_markers(path)) for path in FILES}
TESTS = {path.name: {*re.findall(r"(?m)^def (test_\w+)", path.read_text("utf-8"))} for path in FILES}


def is_in_make_test(file, test):
    """Whether it is a test, and no marker leaves it to others."""
    marked = {name: names for name, names in MARKERS[file] if name in ("", test)}
    return test in TESTS[file] and test not in marked and ("" not in marked or test in marked[""])


@pytest.mark.parametrize("file", [file for file in MARKERS if MARKERS[file]])
def test_what_only_others_run_is_tried_in_a_smaller_form(file):
    for test, names in MARKERS[file]:
        assert names, f"{file}::{test}: the marker `all` names the tests that hold the same in a smaller form"
        for name in names:
            where, _, smaller = name.rpartition("::")
            assert is_in_make_test(where or file, smaller), f"{file}::{test}: `make test` has no `{name}`"


# ---------------------------------------------------------------- the sample


def test_the_order_of_a_sample_is_that_of_the_tree():
    files = [f"tests/test_{number}.py" for number in range(20)]
    first, second = sample.in_order(iter(files), "one tree"), sample.in_order(iter(files), "another")
    assert sorted(first) == sorted(second) == sorted(files)
    assert first == sample.in_order(iter(files), "one tree") != second


def test_a_tree_has_another_hash_when_a_file_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orion").mkdir()
    hashes = set()
    for text in ("x = 1\n", "x = 2\n"):
        (tmp_path / "orion" / "a.py").write_text(text)
        hashes |= {sample.tree_hash(), sample.tree_hash()}
    assert len(hashes) == 2


@pytest.mark.parametrize(("codes", "code"), [((0, 5, 0), 0), ((0, 1, 5), 1)])
def test_a_sample_fails_where_a_file_does(codes, code, monkeypatch, capsys):
    left = list(codes)
    monkeypatch.setattr(sample, "with_more", lambda: iter(["tests/test_a.py", "tests/test_b.py", "tests/test_c.py"]))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: Ended(left.pop()))
    assert sample.run(100, [], {}) == code
    assert capsys.readouterr().out.splitlines()[-1].startswith("3 of 3 files ")


def test_a_sample_without_time_runs_nothing(capsys):
    assert sample.run(0, [], {}) == 0
    assert capsys.readouterr().out.startswith("0 of ")


@pytest.mark.parametrize(("failed", "code"), [(0, 0), (2, 1)])
def test_when_the_time_is_over_no_test_begins(failed, code, monkeypatch):
    session = SimpleNamespace(shouldstop=False, testsfailed=failed, exitstatus=pytest.ExitCode.INTERRUPTED)
    monkeypatch.delenv(sample.UNTIL, raising=False)
    sample.end_if_over(session)
    assert not session.shouldstop
    monkeypatch.setenv(sample.UNTIL, "1.0")
    sample.end_if_over(session)
    assert session.shouldstop
    sample.pass_if_over(session)
    assert session.exitstatus == code
