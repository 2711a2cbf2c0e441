"""What somebody who waits for the first call is told."""

import io
import os
import pty
import subprocess
import sys
import time
from contextlib import redirect_stderr

import pytest

from orion.runtime import notice
from orion.runtime.notice import said_if_slow


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(notice, "PATIENCE", 0.05)


def said(stream, body, wait=0.3):
    """What stands on the stream a while after the body has run inside."""
    with redirect_stderr(stream):
        try:
            with said_if_slow("fit"):
                body()
        finally:
            time.sleep(wait)
    return stream.getvalue()


def fail():
    raise KeyError


def test_it_is_said_once_where_it_takes_long():
    text = said(Terminal(), lambda: time.sleep(1.0))
    assert text == "orion: the first call of `fit` compiles it, or loads what is compiled from disk\n"


def test_nothing_is_said_where_it_is_quick():
    assert said(Terminal(), lambda: None) == ""


def test_nothing_is_said_where_it_fails_soon():
    stream = Terminal()
    with pytest.raises(KeyError):
        said(stream, fail)
    assert stream.getvalue() == ""


def test_nothing_is_said_to_files():
    assert said(io.StringIO(), lambda: time.sleep(0.5)) == ""


SCRIPT = """
import sys
from orion.runtime import notice
notice.PATIENCE = 0.01
import numpy as np, orion
@orion.parallel_for
def fit(a):
    for i in range(a.shape[0]):
        a[i] = np.exp(a[i]) * 3.0 + {salt}
fit(np.zeros(3)); fit(np.zeros(3))
"""


def test_a_call_says_it_at_a_terminal_and_its_output_stays_clean(tmp_path):
    (tmp_path / "fit.py").write_text(SCRIPT.format(salt=time.time()))
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "fit.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert said.count("orion: the first call of `fit`") == 1
    assert done.stdout == b""
