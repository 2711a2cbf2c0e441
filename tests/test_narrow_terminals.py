"""What is printed where a terminal is narrow, has no colours, or where its characters are ASCII."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.cli.cli import main
from orion.cli.pages import page_of
from orion.cli.shown import in_columns
from orion.errors import MissingKeyError
from orion.printable import printable
from orion.reasons import CODES

ROOT = Path(__file__).resolve().parents[1]
NARROW = 40

PROGRAM = '''"""Größen → Zahlen"""
import numpy as np
import orion


@orion.parallel_for
def größe(W, n):
    for é in range(n - 1):  # größer → 日本
        W[é + 1] = np.sin(W[é])


@orion.parallel_for
def until(a, limit):
    for i in range(a.shape[0]):
        if a[i] > limit:  # too large → größer
            break
        # the rest
        a[i] = 2.0 * a[i]
'''
REFUSED = (
    "import orion\n\n\n@orion.parallel_for\ndef f(a, größe):\n\tfor i in range(3):\n\t\ta[i] = größe + open('x')\n"
)
COMMANDS = {
    "plans": ("explain", "größen.py"),
    "all loops": ("explain", "größen.py", "--all"),
    "JSON": ("explain", "größen.py", "--json"),
    "mends": ("explain", "größen.py", "--diff"),
    "SARIF": ("explain", "größen.py", "--sarif", "-"),
    "a refused function": ("explain", "refused.py"),
    "a file that is not there": ("explain", "fehlt→.py"),
    "stages": ("stages", "größen.py:größe"),
    "doctor": ("doctor",),
    **{f"the page of {code}": ("explain", code) for code in CODES},
}
STATUS = {"a refused function": 1, "a file that is not there": 2}
LONG = ("JSON", "SARIF", "mends", "stages")
"""For programs, or with lines that have a meaning: these are not broken."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("größen.py").write_text(PROGRAM, encoding="utf-8")
    Path("refused.py").write_text(REFUSED, encoding="utf-8")
    for name, value in {"COLUMNS": str(NARROW), "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def in_ascii(monkeypatch, action) -> str:
    """What an action prints to an output that takes ASCII alone."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        action()
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_what_an_ascii_terminal_takes(name, monkeypatch):
    status = []
    text = in_ascii(monkeypatch, lambda: status.append(main(COMMANDS[name])))
    assert status == [STATUS.get(name, 0)]
    assert bool(text) == (name not in STATUS)
    assert "\x1b" not in text
    if name != "mends":  # which are the bytes of the file
        assert text.isascii()
    if name not in LONG:
        assert_narrow(text)


def assert_narrow(text: str):
    """Lines are wider than the terminal only as a source line, a row of a table or a word is: these stay whole."""
    for line in text.splitlines():
        is_whole = "|" in line or line.startswith("    ") or "^" in line or len(line.split()) == 1
        assert len(line) <= NARROW or is_whole or "orn" in line.lower()[:3], line


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("width", [24, 40, 100])
def test_a_page_says_the_same_in_other_columns(code, width):
    page = page_of(code)
    told = in_columns(page, width)
    assert told.split() == page.split()
    assert code_of(told) == code_of(page)
    for line in "".join(told.split("```")[::2]).splitlines()[2:]:
        assert len(line) <= width or " " not in line.strip() or line.startswith(("|", "    ")), line


def code_of(page: str) -> str:
    return "".join(f"```{part}```" for part in page.split("```")[1::2])


def test_a_quote_stands_as_far_left_as_it_must():
    text = orion.parallel_for(serial).explain(np.ones(9))
    lines = text.splitlines()
    (at,) = [k for k, line in enumerate(lines) if "^" in line]
    assert len(lines[at - 1]) <= NARROW
    assert lines[at].index("^") == lines[at - 1].index("a[i + 1]")


def serial(a):
    for i in range(a.shape[0] - 1):
        a[i + 1] = np.sin(a[i])


@pytest.mark.parametrize("error", [orion.OrionError, orion.OutOfBoundsError, orion.DataFormatError, MissingKeyError])
def test_an_error_can_be_printed(error, monkeypatch):
    text = in_ascii(monkeypatch, lambda: print(error("größe: 2 × 3 … ≤ 4")))
    assert text == "gr\\xf6\\xdfe: 2 x 3 ... <= 4\n"


def test_carets_stand_under_what_they_are_about_behind_tabs(capsys):
    assert main(["explain", "refused.py"]) == 1
    quote, carets = capsys.readouterr().err.splitlines()[1:3]
    assert carets.expandtabs().index("^") == quote.expandtabs().index("open")


def test_texts_in_other_encodings_are_not_changed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert printable("größe … → 日本") == "größe … → 日本"


@pytest.mark.parametrize("arguments", [("explain", "größen.py"), ("explain", "ORN110"), ("doctor",)])
def test_a_process_with_the_c_locale(arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    environment |= {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "orion", *arguments]
    run = subprocess.run(command, check=False, capture_output=True, env=environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.isascii()
    assert b"Traceback" not in run.stderr
