"""What holds for all tests."""

import gc
import signal

import pytest

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell's `&` has it: tests of Ctrl-C would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.set_threshold(50_000, 20, 20)  # there are many objects, of compilers above all, and few that only this would free


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Plans are as wide as they are at most, whatever libraries and earlier tests say of the terminal in `COLUMNS`."""
    monkeypatch.delenv("COLUMNS", raising=False)
