"""The Makefile: each target is listed with how long it takes, and says at once what it wants."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import requirements

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "Makefile").read_text(encoding="utf-8")
RULE = re.compile(r"^([a-z-]+):(?:[^#\n]*)(?:##\s*(.*))?\n((?:\t.*\n)*)", re.MULTILINE)
RULES = {name: (about, commands) for name, about, commands in RULE.findall(TEXT)}
TARGETS = re.search(r"^\.PHONY: (.*)$", TEXT, re.MULTILINE)[1].split()
DURATION = re.compile(r"; (about )?[\d.]+ (s|min|h)\b")
WANTS_ROOT = {
    "hosts": "benchmarks.hosts.__main__", "paced": "benchmarks.paced.__main__", "served": "benchmarks.served.__main__",
    "ahead": "benchmarks.ahead.__main__", "kinds": "benchmarks.kinds", "estimates": "benchmarks.estimates_modelled",
}  # fmt: skip
"""Targets that only root can run, and the module that says so."""


def refusal(module, monkeypatch, *arguments):
    """What `main` of a module refuses with; whatever it would start fails the test."""
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **named: pytest.fail(f"{given[0]} is started"))
    with pytest.raises(SystemExit) as ended:
        import_module(module).main()
    assert isinstance(ended.value.code, str)  # Python prints it, and exits with 1
    assert "\n" not in ended.value.code
    return ended.value.code


@pytest.mark.parametrize("target", TARGETS)
def test_each_target_is_listed_with_how_long_it_takes(target):
    about, _ = RULES[target]
    assert about, f"`{target}` has no `##` line"
    assert DURATION.search(about), f"`{target}`: {about!r} does not end with a duration, as in `; 4 min`"


def test_all_targets_are_phony():
    assert sorted(RULES) == sorted(TARGETS)


def test_help_lists_all_targets():
    command = ["make", "--no-print-directory", "help"]  # which `make test` would have its own `make` print
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[0] for line in listed.splitlines()) == sorted(TARGETS)


@pytest.mark.parametrize("target", WANTS_ROOT)
def test_what_wants_root_refuses_at_once_for_others(target, monkeypatch):
    about, commands = RULES[target]
    module = WANTS_ROOT[target]
    assert "wants root" in about
    assert module.removesuffix(".__main__") in commands.splitlines()[0]  # before anything else is run
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: f"/sbin/{name}")
    told = refusal(module, monkeypatch)
    assert told.startswith(f"{target}: ")
    assert "only root can" in told


def test_all_that_want_root_are_tried():
    wanting = {name for name, (about, _) in RULES.items() if "wants root" in about}
    assert wanting == {*WANTS_ROOT}


@pytest.mark.parametrize("target", ["hosts", "paced", "served", "ahead"])
def test_hosts_without_their_programs_are_refused(target, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert refusal(WANTS_ROOT[target], monkeypatch) == f"{target}: there can be no hosts here: `ip` is not installed"


@pytest.mark.parametrize("target", ["kinds", "estimates"])
def test_root_without_what_the_system_must_have_is_refused(target, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "FUSE", tmp_path / "fuse")
    monkeypatch.setattr(requirements, "CPU_QUOTAS", tmp_path / "cpu")
    assert "required" in refusal(WANTS_ROOT[target], monkeypatch)


def test_libmf_without_a_compiler_is_refused(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")  # it is run as a program
    monkeypatch.setattr(import_module("libmf_peer"), "BUILD", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    told = refusal("run", monkeypatch)
    assert told == "bench: `g++` is not on the PATH, and building LIBMF needs it: install it"


def test_topics_without_tomotopy_are_refused(monkeypatch):
    lda = import_module("benchmarks.peers.lda")
    monkeypatch.setattr(lda, "missing_tomotopy", lambda python: f"tomotopy is not installed for {python}")
    assert refusal(lda.__name__, monkeypatch).startswith("lda.py: tomotopy is not installed for ")


def test_nothing_is_missing_where_everything_is_there(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert (requirements.missing_root("x"), requirements.missing_program("sh", "x")) == ("", "")
    requirements.require("a benchmark", "", "")


def test_no_program_names_a_folder_beside_the_project():
    for folder in ("benchmarks", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            assert '"shared"' not in path.read_text(encoding="utf-8"), f"{path}: data is named by an option"


def test_a_part_of_interrupts_without_costs_ends_with_an_empty_table():
    from benchmarks.interrupts_costs import table_of_costs

    assert table_of_costs(1, ["no such kernel"]).row_count == 0
