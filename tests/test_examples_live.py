"""What the examples show while they compute: a bar on a terminal, lines elsewhere; and extrapolated seconds."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import live  # noqa: E402


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(live, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(live, "SECONDS", 0.01)


def until_written(capsys, word):
    """What has been written to stderr, once a word is in it."""
    written, end = "", time.monotonic() + 20
    while word not in written and time.monotonic() < end:
        time.sleep(0.01)
        written += capsys.readouterr().err
    return written


def test_lines_say_how_far_the_steps_are(often, capsys):
    told = ""
    for number in live.steps("late: epochs", 3):
        if number == 3:
            told = until_written(capsys, "late: epochs: 2 of 3, ")
    assert "late: epochs: 2 of 3, 0 s\n" in told


def test_a_wait_is_told_and_ends_with_its_block(often, capsys):
    with live.waiting("planning"):
        assert "planning: 0 s\n" in until_written(capsys, "planning")
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_work_that_is_soon_done_says_nothing(capsys):
    with live.waiting("planning"):
        assert list(live.steps("epochs", 4)) == [1, 2, 3, 4]
    assert capsys.readouterr() == ("", "")


def test_an_error_ends_the_lines(often, capsys):
    with pytest.raises(ValueError, match="wrong"), live.waiting("planning"):
        raise ValueError("wrong")
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(capsys):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    assert list(live.steps("epochs", 2, terminal)) == [1, 2]
    assert "epochs" in terminal.file.getvalue()
    assert "2/2" in terminal.file.getvalue()


def test_plain_python_is_extrapolated_from_a_sample(monkeypatch):
    clock, ran = [0.0], []
    monkeypatch.setattr(live, "perf_counter", lambda: clock[0])

    def run(count):
        ran.append(count)
        clock[0] += 0.5 * count

    found = live.extrapolated(run, 1000, 20)
    assert (ran, found.seconds, found.share) == ([20], 500.0, 0.02)
    assert str(found) == "plain Python, extrapolated from 2 %: 500 s"
    assert live.extrapolated(run, 10, 20) == live.Extrapolated(5.0, 1.0)


def test_output_to_a_pipe_is_seen_line_by_line(monkeypatch):
    pipe = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", pipe)
    live.show_lines_at_once()
    assert pipe.line_buffering
