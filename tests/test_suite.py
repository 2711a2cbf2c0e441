"""`make test` runs every test once, and fails where one does or where there are none."""

from pathlib import Path

import pytest

from tests.suite import commands, run

NONE = pytest.ExitCode.NO_TESTS_COLLECTED


def test_every_file_is_in_one_part():
    *parts, ray = commands(["-q"])
    named = [one for part in parts for one in part if one.startswith("tests/")]
    assert sorted(named) == sorted(map(str, Path("tests").glob("test_*.py")))
    assert sum("orion" in part for part in parts) == 1
    assert not any(one.startswith("tests/") for one in ray)


def test_what_is_named_is_run_without_ray_and_with_it():
    first, second = commands(["tests/test_suite.py::test_every_file_is_in_one_part"])
    assert ("not timing and not ray" in first, "not timing and ray" in second) == (True, True)


@pytest.mark.parametrize(
    ("codes", "code"), [([0, 0], 0), ([0, NONE], 0), ([NONE, 0], 0), ([NONE, NONE], NONE), ([1, 0], 1), ([0, 2], 2)]
)
def test_the_exit_code(codes, code, monkeypatch):
    left = iter(codes)
    monkeypatch.setattr("tests.suite.subprocess.run", lambda *_, **__: type("Ended", (), {"returncode": next(left)}))
    assert run(["tests/test_suite.py"]) == code
