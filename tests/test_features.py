"""The table of what others had names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "features.md").read_text()


def test_named_files_are_there():
    named = set(re.findall(r"`((?:tests|examples)/\w+\.py)`", PAGE))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_what_is_here_has_a_test_and_what_is_not_says_so():
    rows = [row.strip("|").split("|") for row in PAGE.splitlines() if row.startswith("| ") and "---" not in row]
    rows = [[cell.strip() for cell in row] for row in rows if row[0].strip() != "there"]
    assert len(rows) > 40
    assert [there for there, here, tests in rows if not tests and not here.startswith("no")] == []
