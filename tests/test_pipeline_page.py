"""The page that follows a loop through the compiler has what the compiler prints."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from orion.cli.cli import main
from orion.pipeline import PASSES, REWRITES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-it-works" / "pipeline.md"


def test_the_page_has_what_is_printed(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text()
    (command,) = re.findall(r"^python -m orion (stages .*)$", text, re.MULTILINE)
    assert main(shlex.split(command)) == 0
    printed = capsys.readouterr().out.rstrip("\n")
    block = r"(?s)(<!-- what it prints -->\n\n```text\n).*?```"
    page = re.sub(block, lambda found: f"{found.group(1)}{printed}\n```", text)
    if os.environ.get("ORION_WRITE_GOLDEN"):
        PAGE.write_text(page)
    assert page == PAGE.read_text()


def test_the_page_names_files_that_there_are():
    for name in re.findall(r"`(orion/[\w/]+(?:\.py)?)/?`", PAGE.read_text()):
        assert (ROOT / name).exists(), name


def test_every_pass_and_rewrite_has_a_sentence():
    for one in (*PASSES, *REWRITES):
        assert one.does
        assert not one.does.endswith(".")


def test_every_rewrite_has_its_folder():
    folders = {path.parent.name for path in (ROOT / "orion" / "rewrites").glob("*/__init__.py")}
    assert folders == {one.name for one in REWRITES}
