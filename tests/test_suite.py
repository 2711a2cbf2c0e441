"""`make test` runs every test once, and fails where one does or where there are none."""

import sys
from pathlib import Path

import pytest

from tests.suite import commands, run, run_beside

NONE = pytest.ExitCode.NO_TESTS_COLLECTED


def test_every_file_is_in_one_part():
    *parts, ray = commands(["-q"])
    named = [one for part in parts for one in part if one.startswith("tests/")]
    assert sorted(named) == sorted(map(str, Path("tests").glob("test_*.py")))
    assert sum("orion" in part for part in parts) == 1
    assert {one for one in ray if one.startswith("tests/")} < set(named)


def test_what_is_named_is_run_without_ray_and_with_it():
    first, second = commands(["tests/test_suite.py::test_every_file_is_in_one_part"])
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
    assert run(["tests/test_suite.py"]) == code
    assert capsys.readouterr().out.splitlines() == [f"ended with {types}", "", f"ended with {on_ray}", ""]


def test_what_runs_beside_the_others_is_told_whole():
    text = "print('é' * 100_000); import sys; print('wrong', file=sys.stderr); sys.exit(3)"
    code, said = run_beside([sys.executable, "-c", text])
    assert (code, sorted(said.split())) == (3, ["wrong", "é" * 100_000])


def test_processes_of_tests_keep_bytecode(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert run_beside([sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"]) == (0, "False\n")
