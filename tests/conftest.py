"""What holds for all tests."""

import pytest


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Plans are as wide as they are at most, whatever libraries and earlier tests say of the terminal in `COLUMNS`."""
    monkeypatch.delenv("COLUMNS", raising=False)
