"""`orion.report(path)`: plans, profile and last runs of the process as one HTML file."""

import gc
import os
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.errors import StorageError

ROOT = Path(__file__).resolve().parents[1]


@orion.parallel_for
def halve_all(a):
    for i in range(a.shape[0]):
        a[i] = 0.5 * a[i]


@orion.parallel_for
def never_called(a):
    for i in range(a.shape[0]):
        a[i] = 0.5 * a[i]


@orion.parallel_for
def fills_a_dict(n):
    found = {}
    for i in range(n):
        found[i] = i
    return len(found)


class Checked(HTMLParser):
    """Elements that are opened and closed in turn, and what would fetch or run something."""

    VOID = ("meta", "br", "img", "hr", "link", "input")

    def __init__(self):
        super().__init__()
        self.open, self.outside, self.ids, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("script", "link", "iframe", "object", "embed") or any(name.startswith("on") for name in given):
            self.outside.append(tag)
        self.outside += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"][1:]] if given.get("href", "").startswith("#") and tag == "a" else []

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    parser = Checked()
    parser.feed(text)
    assert parser.open == []
    assert parser.outside == []
    assert set(parser.links) <= set(parser.ids)
    return text


def test_plans_profile_and_times_are_in_one_file(tmp_path):
    with orion.session("threads", 2, force_parallel=True), orion.profile():
        halve_all(np.ones(1000))
    orion.report(tmp_path / "run.html")
    text = checked(tmp_path / "run.html")
    assert text.startswith("<!doctype html>")
    assert "halve_all(a)" in text
    assert "profile: " in text
    assert "compute" in text
    assert "never_called" not in text
    assert text.count("<style>") == 2  # the page's, and that of all views


def test_without_a_profile_it_says_how_times_are_taken(tmp_path):
    halve_all(np.ones(1000))
    orion.report(str(tmp_path / "run.html"))
    text = checked(tmp_path / "run.html")
    assert "orion.profile()" in text


def test_what_ran_as_it_is_is_named(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fills_a_dict(3)
    orion.report(tmp_path / "run.html")
    assert "fills_a_dict" in checked(tmp_path / "run.html")


def test_functions_that_are_gone_are_not_kept(tmp_path):
    def make():
        @orion.parallel_for
        def gone_by_now(a):
            for i in range(a.shape[0]):
                a[i] += 1.0

        gone_by_now(np.ones(10))

    make()
    gc.collect()
    orion.report(tmp_path / "run.html")
    assert "gone_by_now" not in checked(tmp_path / "run.html")


def test_texts_of_the_user_are_escaped(tmp_path):
    @orion.parallel_for
    def compares(a, b):
        for i in range(a.shape[0]):
            if a[i] < b[i] and b[i] > 0:  # <script>alert(1)</script>
                a[i] = b[i]

    compares(np.ones(10), np.ones(10))
    orion.report(tmp_path / "run.html")
    checked(tmp_path / "run.html")


@pytest.mark.parametrize("program", ["pass", "orion.parallel_for"])
def test_a_process_without_loops_has_a_report(tmp_path, program):
    code = f"import orion; {program}; orion.report('run.html')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert "No loop of this process has run" in checked(tmp_path / "run.html")


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(StorageError):
        orion.report(tmp_path / "none" / "run.html")
