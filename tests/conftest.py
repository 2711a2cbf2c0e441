"""What holds for all tests."""

import signal

import pytest

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell's `&` has it: tests of Ctrl-C would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Plans are as wide as they are at most, whatever libraries and earlier tests say of the terminal in `COLUMNS`."""
    monkeypatch.delenv("COLUMNS", raising=False)
