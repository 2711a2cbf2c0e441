"""`python -m orion explain --sarif FILE`: reasons as SARIF 2.1.0, and plans of several files."""

import json
from pathlib import Path

import pytest

from orion.cli.cli import main

GOOD = """import orion

@orion.parallel_for
def double(a):
    for i in range(a.shape[0]):
        a[i] = 2 * a[i]
"""
SERIAL = """import orion

@orion.parallel_for
def gather(x, p, n):
    é = 1.0
    for i in range(n):
        x[p[i]] = é * x[p[i]] + x[i]
"""
REFUSED = """import orion

@orion.parallel_for
def keep(x):
    for i in range(x.shape[0]):
        x[i] = open("a").read()
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("good.py").write_text(GOOD)
    Path("deep dir").mkdir()
    Path("deep dir/serial.py").write_text(SERIAL)
    Path("refused.py").write_text(REFUSED)
    Path("plain.py").write_text("x = 1\n")


def written(*arguments, status=0):
    assert main(["explain", *arguments, "--sarif", "out.sarif"]) == status
    return json.loads(Path("out.sarif").read_text())


def check_form(log):
    """What SARIF 2.1.0 asks of a log, as far as it is used here."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "Orion"
    assert run["columnKind"] == "unicodeCodePoints"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            physical = place["physicalLocation"]
            assert not physical["artifactLocation"]["uri"].startswith("/")
            region = physical.get("region")
            if region is not None:
                assert region["startLine"] >= 1
                assert region["startColumn"] >= 1
                assert region["endLine"] >= region["startLine"]
    return run["results"]


def test_reasons_have_code_message_file_and_line():
    results = check_form(written("deep dir/serial.py"))
    first = results[0]
    assert first["ruleId"] == "ORN102"
    assert first["level"] == "warning"
    assert "x[p[i]]" in first["message"]["text"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "deep%20dir/serial.py", "uriBaseId": "%SRCROOT%"}
    line = SERIAL.splitlines()[place["region"]["startLine"] - 1]
    assert line[place["region"]["startColumn"] - 1 : place["region"]["endColumn"] - 1] == "x[p[i]]"
    assert any(result["relatedLocations"] for result in results if len(result.get("relatedLocations", ())))


def test_parallel_loops_have_no_warnings():
    assert [one for one in check_form(written("good.py")) if one["level"] != "note"] == []


def test_what_cannot_be_planned_is_an_error_at_its_line():
    (result,) = check_form(written("refused.py", status=1))
    assert result["level"] == "error"
    assert result["ruleId"] == "unsupported"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 6


def test_several_files_are_one_log(capsys):
    results = check_form(written("good.py", "deep dir/serial.py:gather", "refused.py", "plain.py", status=1))
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results]
    assert {"deep%20dir/serial.py", "refused.py"} <= set(places)
    shown = capsys.readouterr()
    assert "double(a)" in shown.out
    assert "gather(x, p, n)" in shown.out
    assert "plain.py has no function decorated" in shown.err


def test_several_files_check():
    assert main(["explain", "good.py", "good.py:double", "--check"]) == 0
    assert main(["explain", "good.py", "deep dir/serial.py", "--check"]) == 1


def test_files_that_cannot_be_read_do_not_hide_the_others(capsys):
    Path("broken.py").write_text("def (")
    assert main(["explain", "broken.py", "none.py", "good.py"]) == 2
    shown = capsys.readouterr()
    assert "double(a)" in shown.out
    assert "broken.py:1: not a Python file" in shown.err
    assert "cannot read none.py" in shown.err


def test_several_files_without_loops_are_wrong_usage(capsys):
    assert main(["explain", "plain.py", "plain.py"]) == 2
    assert "has no function decorated" in capsys.readouterr().err


def test_codes_together_are_pages(capsys):
    assert main(["explain", "ORN102", "ORN104"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ORN102: ")
    assert "\nORN104: " in out


def test_sizes_are_of_the_functions_of_all_files(capsys):
    assert main(["explain", "good.py", "deep dir/serial.py", "--shape", "a=10", "--integer", "n=5"]) == 0
    assert main(["explain", "good.py", "--integer", "n=5"]) == 2
    assert "`n` is not a parameter" in capsys.readouterr().err


def test_to_the_standard_output_it_is_alone(capsys):
    assert main(["explain", "good.py", "--sarif", "-"]) == 0
    check_form(json.loads(capsys.readouterr().out))


def test_a_log_that_cannot_be_written_is_told(capsys):
    assert main(["explain", "good.py", "--sarif", "none/out.sarif"]) == 2
    assert "cannot write none/out.sarif" in capsys.readouterr().err


def test_files_elsewhere_have_their_whole_path(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    log = written(str(tmp_path / "refused.py"), status=1)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": (tmp_path / "refused.py").as_uri()}


def test_cells_of_a_notebook_are_told_by_the_notebook():
    cell = {"cell_type": "code", "execution_count": 3, "source": SERIAL.splitlines(keepends=True)}
    Path("book.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}))
    result = written("book.ipynb")["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "book.ipynb"
    assert "region" not in place
    assert "cell In[3], line" in result["message"]["text"]
